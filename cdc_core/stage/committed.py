"""Which redo rows belong to the transactions that a window commits?

A window's landing files hold every captured row whose own SCN is in its mining range, whether its
transaction has ended or not. A transaction appears whole in the window of its commit: its earlier
rows are read from the files of earlier windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_core.errors import REPORT_HINT, LandingDamagedError, RowCountError
from cdc_core.landing.damage import reading_file, unless_away
from cdc_core.landing.layout import IMAGES
from cdc_core.model.identifiers import TableId
from cdc_core.model.operations import Operation
from cdc_core.model.scn import ScnWindow
from cdc_core.runtime.arrow import whole

_LEDGER_COLUMNS = [
    "xid", "state", "commit_scn", "commit_ordinal", "commit_timestamp", "username", "first_ordinal", "has_rollback",
    "tables", "table_rows", "late", "start_scn", "start_timestamp", "client_id",
]  # fmt: skip
_CARRIED = [
    "commit_scn",
    "commit_timestamp",
    "username",
    "has_rollback",
    "start_scn",
    "start_timestamp",
    "client_id",
]
"""What a redo row gets from its transaction."""
_FOUND_BY = ["xid", "ordinal", "seg_owner", "table_name", "operation_code"]
"""What decides whether a redo row is taken; the other columns are read only of row groups that have
such rows."""
_READ = [
    "ordinal", "scn", "xid", "operation_code", "rollback", "row_id", "sql_redo", "status", "timestamp", "thread", "rs_id", "ssn",
]  # fmt: skip

Transaction = tuple[str, int]
"""XID and commit SCN: an XID is used again."""


@dataclass(frozen=True, slots=True)
class CommittedTransactions:
    """What a window's transactions file says of one table: the transactions that touched it and
    commit in the window.

    ``late`` of the ``count`` committed at or below the window's lower end.
    """

    ledger: pa.Table
    late: int

    @property
    def count(self) -> int:
        """Number of transactions."""
        return int(self.ledger.num_rows)

    @property
    def rows(self) -> int:
        """Number of their redo rows of the table."""
        return int(pc.sum(self.ledger["table_rows"]).as_py() or 0)

    @property
    def has_rollback(self) -> bool:
        """Has one of them taken rows back itself?"""
        return bool(pc.any(self.ledger["has_rollback"]).as_py())


@dataclass(frozen=True, slots=True, kw_only=True)
class LandedInput:
    """The landed files from which a table's part of a window is staged.

    Attributes:
        table: The table.
        window: The part of the window that the table takes.
        redo_paths: Redo files, or change files, of this window and of every earlier one in which a
            transaction began that commits here.
        transactions_paths: This window's transactions file.
        late_above: The SCN at which the table was read, if commits that belong to earlier windows
            came to light with this one: those above it are taken too. None if there are none.
    """

    table: TableId
    window: ScnWindow
    redo_paths: Sequence[str]
    transactions_paths: Sequence[str]
    late_above: int | None = None

    def committed(self) -> CommittedTransactions:
        """The transactions whose rows the table takes.

        Raises:
            LandingDamagedError: A file is missing or not Parquet.
        """
        paths = self.transactions_paths
        return read_committed(paths, self.table, self.window, late_above=self.late_above)

    def rows(self, committed: CommittedTransactions, share: Share | None = None) -> CommittedRows:
        """The redo rows of these transactions; with a ``share``, those in its row groups."""
        return CommittedRows(committed, self, share)


def read_committed(
    paths: Sequence[str],
    table: TableId,
    window: ScnWindow,
    *,
    late_above: int | None = None,
) -> CommittedTransactions:
    """Read the ledger files of a window.

    Args:
        paths: The window's transactions file.
        table: Whose transactions.
        window: The part of the window that the table takes.
        late_above: Also take commits at or below the window's lower end that came to light with it,
            above this SCN, at which the table was read; None where there are none.

    Raises:
        LandingDamagedError: A file is missing or not Parquet.
    """
    ledger = pa.concat_tables([_read_ledger(path) for path in paths]).combine_chunks()
    scns = ledger["commit_scn"]
    inside = pc.and_(
        pc.greater(scns, int(window.scn_low)), pc.less_equal(scns, int(window.scn_high))
    )
    if late_above is not None:
        is_late = pc.and_(pc.fill_null(ledger["late"], False), pc.greater(scns, late_above))
        inside = pc.or_(inside, is_late)
    taken = pc.and_(pc.equal(ledger["state"], "commit"), pc.fill_null(inside, False))
    ledger = _touching(ledger.filter(taken), table)
    late = pc.sum(pc.less_equal(ledger["commit_scn"], int(window.scn_low))).as_py() or 0
    return CommittedTransactions(ledger.drop_columns(["state", "tables", "late"]), late)


def committed_ledger(paths: Sequence[str]) -> pa.Table:
    """What the ledger files of a window say of all transactions that committed in it: ``xid,
    commit_scn, commit_ordinal, commit_timestamp, username, start_scn, start_timestamp,
    client_id``."""
    ledger = pa.concat_tables([_read_ledger(path) for path in paths])
    return ledger.filter(pc.equal(ledger["state"], "commit")).drop_columns(
        ["state", "first_ordinal", "has_rollback", "tables", "table_rows", "late"]
    )


def _read_ledger(path: str) -> pa.Table:
    with reading_file(path):
        return pq.ParquetFile(path).read(_LEDGER_COLUMNS)


def _touching(ledger: pa.Table, table: TableId) -> pa.Table:
    """The transactions that touched the table, ``table_rows`` being the number of its rows."""
    tables = whole(ledger["tables"])
    mine = pc.equal(pc.list_flatten(tables), str(table))
    touching = ledger.take(pc.list_parent_indices(tables).filter(mine))
    at = ledger.schema.get_field_index("table_rows")
    counts = whole(ledger["table_rows"])
    return touching.set_column(at, "table_rows", pc.list_flatten(counts).filter(mine))


@dataclass(slots=True)
class Share:
    """Which row groups of the files are read: each ``of``-th, from the ``number``-th on. ``rows``
    says afterwards how many rows each transaction has in them, in the order of :func:`in_order`."""

    number: int = 0
    of: int = 1
    rows: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))


def in_order(ledger: pa.Table) -> pa.Table:
    """A ledger's transactions by XID; those of one XID, which is used again, by their beginning."""
    return ledger.sort_by([("xid", "ascending"), ("first_ordinal", "ascending")]).combine_chunks()


class CommittedRows:
    """A table's redo rows of a window's transactions, file by file.

    A row belongs to a transaction if it has its XID and lies between its first row and its COMMIT,
    so that a re-used XID of an old window is never taken. DDL rows are left out, since schema
    changes go their own way, but for TRUNCATE, which changes rows and is refused by whoever
    decodes.
    """

    def __init__(
        self,
        committed: CommittedTransactions,
        landed: LandedInput,
        share: Share | None = None,
    ) -> None:
        self.committed, self.landed = committed, landed
        self._ledger = ledger = in_order(committed.ledger)
        self._share = Share() if share is None else share
        self._firsts = ledger["first_ordinal"].to_numpy()
        self._commits = ledger["commit_ordinal"].to_numpy()
        self._rows = np.zeros(self._ledger.num_rows, dtype=np.int64)
        xids = whole(ledger["xid"])
        self._xids = xids.unique()
        at = pc.index_in(xids, value_set=self._xids).to_numpy()
        self._starts = np.flatnonzero(np.diff(at, prepend=-1))
        self._ends = np.append(self._starts[1:], len(at))

    def taking_back(self) -> CommittedRows:
        """All rows of those of the transactions that took rows back themselves."""
        return self._of(self.committed.ledger["has_rollback"])

    def parted(self, by: Callable[[int], bool]) -> tuple[CommittedRows, CommittedRows]:
        """The rows of the transactions whose commit SCNs are so, and of the others."""
        own = pa.array(map(by, self.committed.ledger["commit_scn"].to_pylist()), pa.bool_())
        return self._of(own), self._of(pc.invert(own))

    def _of(self, transactions: pa.Array) -> CommittedRows:
        ledger = self.committed.ledger.filter(transactions)
        return self.landed.rows(replace(self.committed, ledger=ledger))

    def reselected(self) -> Iterator[pa.Table]:
        """The rows of these transactions that Oracle was asked for, as :meth:`batches` gives redo:
        those with images, and one without ROWID behind all that belong to a transaction.

        Raises:
            LandingDamagedError: A file is missing or not Parquet.
        """
        return self._read(_READ, is_redo=False)

    def batches(self, columns: Sequence[str] = _READ) -> Iterator[pa.Table]:
        """The rows in the share's row groups, with ``columns`` of ``REDO_SCHEMA``, of change files
        with the images beside ``sql_redo``, and of their transactions ``commit_scn,
        commit_timestamp, username, has_rollback, start_scn, start_timestamp, client_id``.

        One table per row group that has some, in the order of the paths.

        Raises:
            LandingDamagedError: A file is missing or not Parquet.
            StoreUnavailableError: The disk or the share does not give a file now.
            RowCountError: At the end: a transaction has more or fewer rows of the table here than
                the ledger counted when they were read from redo. Whoever reads shares of the row
                groups checks their sum by :func:`check_counts`.
        """
        self._rows[:] = 0
        yield from self._read(columns, is_redo=True)
        self._share.rows = self._rows
        if self._share.of == 1:
            check_counts(self._ledger, self._rows, self.landed.table, self.landed.window)

    def _read(self, columns: Sequence[str], *, is_redo: bool) -> Iterator[pa.Table]:
        number = 0
        try:
            for path in self.landed.redo_paths:
                with pq.ParquetFile(path) as file:
                    for group in groups_of(file, self.landed.table):
                        if self._is_read(file, group, number):
                            found = self._of_group(file, group, columns, is_redo=is_redo)
                            if found is not None:
                                yield found
                        number += 1
        except (OSError, ValueError) as error:
            damaged = _damaged("a redo file", self.landed.window)
            raise unless_away(error, damaged) from error

    def _is_read(self, file: pq.ParquetFile, group: int, number: int) -> bool:
        """Is the row group, the ``number``-th of all that may have rows of the table, in the share,
        and has it rows from between the transactions' first row and last COMMIT?"""
        if number % self._share.of != self._share.number or len(self._firsts) == 0:
            return False
        place = file.schema.names.index("ordinal")
        found = file.metadata.row_group(group).column(place).statistics
        if found is None or not found.has_min_max:
            return True
        return bool(found.min < self._commits.max() and found.max >= self._firsts.min())

    def _of_group(
        self, file: pq.ParquetFile, group: int, columns: Sequence[str], *, is_redo: bool
    ) -> pa.Table | None:
        keys = file.read_row_group(group, columns=_FOUND_BY).combine_chunks()
        transactions = self._transactions(keys)
        wanted = transactions >= 0
        if not wanted.any():
            return None
        has_images = "sql_redo" in columns and IMAGES[0] in file.schema_arrow.names
        if not (is_redo or has_images):
            return None
        rows = file.read_row_group(group, columns=[*columns, *(IMAGES if has_images else ())])
        # Of those that are no redo, `missing_lobs` reads the ones without images.
        wanted &= (
            pc.not_equal(keys["operation_code"], int(Operation.RESELECTED)).to_numpy() == is_redo
        )
        if not wanted.any():
            return None
        ddl = pc.equal(keys["operation_code"], int(Operation.DDL)).to_numpy()
        if (ddl & wanted).any():
            wanted &= ~(ddl & ~_truncates(file.read_row_group(group, columns=["sql_redo"])))
        if is_redo:
            self._rows += np.bincount(transactions[wanted & ~ddl], minlength=len(self._rows))
        picked = np.flatnonzero(wanted)
        carried = self._ledger.select(_CARRIED).take(transactions[picked])
        rows = rows if len(picked) == len(wanted) else rows.take(picked)
        for name in _CARRIED:
            rows = rows.append_column(name, carried[name])
        return rows if rows.num_rows else None

    def _transactions(self, keys: pa.Table) -> npt.NDArray[np.int64]:
        """Per row, the place of its transaction in the ledger; -1 if it has none or is another
        table's."""
        known = pc.fill_null(pc.index_in(keys["xid"], value_set=self._xids), -1)
        own = pc.and_(
            pc.equal(keys["seg_owner"], self.landed.table.owner),
            pc.equal(keys["table_name"], self.landed.table.name),
        )
        places = np.where(
            pc.fill_null(own, False).to_numpy(), known.to_numpy().astype(np.int64), -1
        )
        rows = np.flatnonzero(places >= 0)
        if len(rows) == 0:
            return places
        xid, ordinals = places[rows], keys["ordinal"].to_numpy()[rows]
        at, ends = self._starts[xid], self._ends[xid]
        while True:  # as often as one XID committed in the window: a slot is used again
            further = (at + 1 < ends) & (self._firsts[np.minimum(at + 1, ends - 1)] <= ordinals)
            if not further.any():
                break
            at = at + further
        inside = (self._firsts[at] <= ordinals) & (ordinals < self._commits[at])
        places[rows] = np.where(inside, at, -1)
        return places


def check_counts(
    ledger: pa.Table, rows: npt.NDArray[np.int64], table: TableId, window: ScnWindow
) -> None:
    """Hold the rows that each transaction of a ledger, :func:`in_order`, has in landing against
    what was counted at capture.

    Raises:
        RowCountError: A transaction has more or fewer.
    """
    counted = ledger["table_rows"].to_numpy()
    differing = np.flatnonzero(counted != rows)
    if len(differing):
        first = int(differing[0])
        raise RowCountError(
            "a transaction's rows in landing are not as many as were read from redo; nothing of the window was applied",
            hint=REPORT_HINT,
            table=table,
            window=window.key,
            transactions=len(differing),
            xid=ledger["xid"][first].as_py(),
            found=int(rows[first]),
            counted=int(counted[first]),
        )


def groups_of(file: pq.ParquetFile, table: TableId) -> Iterator[int]:
    """The row groups of a redo file that may have rows of a table: by their statistics, which are
    exact for names."""
    names = file.schema.names
    wanted = ((names.index("seg_owner"), table.owner), (names.index("table_name"), table.name))
    for group in range(file.num_row_groups):
        columns = file.metadata.row_group(group)
        if all(_may_hold(columns.column(at).statistics, name) for at, name in wanted):
            yield group


def _may_hold(statistics: pq.Statistics | None, name: str) -> bool:
    if statistics is None or not statistics.has_min_max:
        return True
    return bool(statistics.min <= name <= statistics.max)


def _truncates(rows: pa.Table) -> npt.NDArray[np.bool_]:
    text = pc.utf8_upper(pc.utf8_ltrim_whitespace(rows["sql_redo"]))
    found: npt.NDArray[np.bool_] = pc.fill_null(pc.starts_with(text, "TRUNCATE"), False).to_numpy()
    return found


def _damaged(what: str, window: ScnWindow) -> LandingDamagedError:
    return LandingDamagedError(
        f"{what} is missing or cannot be read",
        hint="Check the folder; capture the window again if its files are damaged.",
        window=window.key,
    )
