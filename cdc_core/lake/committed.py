"""Which redo rows belong to the transactions that a window commits?

A window's landing files hold every captured row whose own SCN is in its mining range, whether its transaction has ended or
not. A transaction appears whole in the window of its commit: its earlier rows are read from the files of earlier windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow.dataset as ds

from cdc_core.errors import LandingDamagedError
from cdc_core.lake.tables import string_literal
from cdc_core.landing.layout import ORDINAL_SHIFT
from cdc_core.model.identifiers import TableId
from cdc_core.model.operations import Operation
from cdc_core.model.scn import ScnWindow

EARLIER_XIDS_MAX = 1000
"""Up to here earlier files are filtered by the transactions' names, which Parquet's statistics turn into skipped pages."""


@dataclass(frozen=True, slots=True)
class CommittedTransactions:
    """What a window's transactions file says of one table.

    ``count`` transactions that touched the table committed in the window; ``has_rollback`` if one of them took rows back;
    ``earlier`` names those that began in an earlier window, None if they are more than :data:`EARLIER_XIDS_MAX`. ``late`` of
    the ``count`` committed at or below the window's lower end, above ``late_above``.
    """

    count: int
    has_rollback: bool
    earlier: tuple[str, ...] | None
    late: int = 0
    late_above: int | None = None


def read_committed(
    paths: Sequence[str],
    table: TableId,
    window: ScnWindow,
    *,
    ordinal: int,
    late_above: int | None = None,
) -> CommittedTransactions:
    """Read the ledger files of a window batch by batch.

    Args:
        paths: The window's transactions file.
        table: Whose transactions.
        window: The part of the window that the table takes.
        ordinal: Of the window.
        late_above: Also take commits at or below the window's lower end that came to light with it, above this SCN, at which the
            table was read; None where there are none.

    Raises:
        LandingDamagedError: A file is missing or not Parquet.
    """
    committed = (
        (ds.field("state") == "commit")
        & (ds.field("commit_scn") > window.scn_low)
        & (ds.field("commit_scn") <= window.scn_high)
    )
    if late_above is not None:
        committed |= (
            (ds.field("state") == "commit")
            & ds.field("late")
            & (ds.field("commit_scn") > late_above)
        )
    count, late, has_rollback, earlier = 0, 0, False, []
    try:
        data = ds.dataset(list(paths), format="parquet")
        columns = ["xid", "commit_scn", "first_ordinal", "has_rollback", "tables"]
        for batch in data.to_batches(filter=committed, columns=columns):
            for row in batch.to_pylist():
                if str(table) in row["tables"]:
                    count += 1
                    late += row["commit_scn"] <= window.scn_low
                    has_rollback |= row["has_rollback"]
                    if row["first_ordinal"] >> ORDINAL_SHIFT < ordinal:
                        earlier.append(row["xid"])
    except (OSError, ValueError) as error:
        raise LandingDamagedError(
            "a transactions file is missing or cannot be read",
            hint="Check the folder; capture the window again if its files are damaged.",
            window=window.key,
        ) from error
    known = tuple(earlier) if len(earlier) <= EARLIER_XIDS_MAX else None
    return CommittedTransactions(count, has_rollback, known, late, late_above)


def committed_rows_sql(
    redo: str,
    transactions: str,
    table: TableId,
    window: ScnWindow,
    *,
    ordinal: int,
    committed: CommittedTransactions,
) -> str:
    """SELECT of a table's redo rows of the window's transactions, over the views ``redo`` and ``transactions``.

    Columns: those of ``REDO_SCHEMA`` and ``commit_scn, commit_timestamp, username, has_rollback``. A row must lie between
    its transaction's first row and its COMMIT, so that a re-used XID of an old window is never taken. DDL rows are left out, since
    schema changes go their own way, but for TRUNCATE, which changes rows and is refused by whoever decodes.
    """
    first = ordinal << ORDINAL_SHIFT
    taken = f"t.commit_scn > {window.scn_low} AND t.commit_scn <= {window.scn_high}"
    if committed.late:
        taken = f"({taken} OR (t.late AND t.commit_scn > {committed.late_above}))"
    nearby = "TRUE"
    if committed.earlier is not None:
        listed = ", ".join(string_literal(xid) for xid in committed.earlier)
        nearby = f"(r.ordinal >= {first}" + (f" OR r.xid IN ({listed}))" if listed else ")")
    return f"""
        SELECT r.*, t.commit_scn, t.commit_timestamp, t.username, t.has_rollback
        FROM {redo} r JOIN {transactions} t
          ON r.xid = t.xid AND r.ordinal >= t.first_ordinal AND r.ordinal < t.commit_ordinal
        WHERE t.state = 'commit' AND {taken}
          AND r.seg_owner = {string_literal(table.owner)} AND r.table_name = {string_literal(table.name)}
          AND (r.operation_code <> {int(Operation.DDL)} OR UPPER(LTRIM(r.sql_redo)) LIKE 'TRUNCATE%') AND {nearby}
    """
