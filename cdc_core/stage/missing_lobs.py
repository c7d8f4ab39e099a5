"""Which values of LOBs does the redo carry in part only, that Oracle has as of the commit of their
transaction?

With ``capture.lobs: reselect``, capture asks Oracle for them by key, AS OF the commit's SCN, and
lands for each such change the UPDATE that it means, as a row of its own
(:attr:`~cdc_core.model.operations.Operation.RESELECTED`) with the number of the redo row that it
stands for.

**Which change it is.** What Oracle has as of the commit is what the transaction's last change of
that LOB made. So of the changes that the redo carries in part, the last one of its row and column
has that value, if nothing of the transaction follows that changes the LOB. Every other one (another
change of the LOB, or the row's DELETE, follows) has a value that nobody knows: it lands as a change
that does not carry the column, and what follows brings the value.

**By ROWID.** Where the ROWID identifies the table's rows, the row is looked up by it: the
transaction has locked the row until its commit, so nobody else can have moved it. A change with a
value that nobody knows names no row by a key there, and lands as no change at all.

**What is left alone.** The row is looked up by the key that it has at the commit. So it must keep
its key from the change on: where the transaction moves a row away from the key or onto it, or
inserts one under it, or has a row that is not understood, the change stays what it is, a part of a
value, and whoever decodes it refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from cdc_core.decode.lob import LobPlace
from cdc_core.landing.damage import reading_file
from cdc_core.model.identifiers import TableId
from cdc_core.model.operations import Operation
from cdc_core.schema.table import TableSchema
from cdc_core.stage.committed import Transaction, groups_of

Key = tuple[Any, ...]
Slot = tuple[Key, str]
"""A row's key, and a column."""

MISSING_MAX = 200_000
"""So many changes of open transactions wait for the end of these; further ones stay parts of
values."""


@dataclass(frozen=True, slots=True)
class MissingLob:
    """A change that the redo carries in part: where, of which version of the table, and the facts
    of its last redo row.

    ``is_last``: what Oracle has as of the commit is what this change made.
    """

    place: LobPlace
    schema: TableSchema
    row: Mapping[str, Any]
    is_last: bool = True

    @property
    def slot(self) -> Slot:
        """Which LOB."""
        return self.place.key, self.place.column

    @property
    def sql_without(self) -> str:
        """The UPDATE that names the row and carries no other column; empty where no column names
        it."""
        if not self.place.predicates:
            return ""
        sets = ", ".join(self.place.predicates)
        return f"update {self.schema.table.sql} set {sets} where {self.place.where};"

    def sql_with(self, literal: str) -> str:
        """The UPDATE that gives the LOB a value."""
        name, where = self.place.column, f" where {self.place.where}" if self.place.where else ""
        return f'update {self.schema.table.sql} set "{name}" = {literal}{where};'


@dataclass(slots=True)
class MissingLobs:
    """The changes that wait for the end of their transaction, at most ``limit`` at once, and those
    of which it is known what they are."""

    limit: int = MISSING_MAX
    _open: dict[Transaction, dict[Key, dict[str, MissingLob]]] = field(default_factory=dict)
    _found: list[MissingLob] = field(default_factory=list)
    _count: int = 0

    def take(self) -> list[MissingLob]:
        """What is known by now, in the order of the redo."""
        found, self._found = self._found, []
        return sorted(found, key=lambda one: int(one.row["ordinal"]))

    def put(self, transaction: Transaction, missing: MissingLob) -> None:
        """A change of which the redo has a part."""
        self.settle(transaction, missing.slot)
        if self._count < self.limit:
            rows = self._open.setdefault(transaction, {})
            rows.setdefault(missing.place.key, {})[missing.place.column] = missing
            self._count += 1

    def settle(self, transaction: Transaction, slot: Slot) -> None:
        """The transaction gives the LOB a value again, or deletes it."""
        key, column = slot
        missing = self._open.get(transaction, {}).get(key, {}).pop(column, None)
        if missing is not None:
            self._found.append(replace(missing, is_last=False))
            self._count -= 1

    def follow(
        self,
        transaction: Transaction,
        old: Key | None,
        new: Key | None,
        before: Mapping[str, Any],
        after: Mapping[str, Any],
    ) -> None:
        """An INSERT, UPDATE or DELETE of the transaction: the row had the key ``old``, and has
        ``new``; what its images carry."""
        rows = self._open.get(transaction)
        if not rows:
            return
        if any(value is None for key in (old, new) if key is not None for value in key):
            self.doubt(transaction)
        elif old is None or (new is not None and new != old):
            for key in (old, new):
                self._leave(rows, key)
        elif new is None:
            for column in list(rows.get(old, ())):
                self.settle(transaction, (old, column))
        else:
            for column in [name for name in rows.get(old, ()) if name in after]:
                self.settle(transaction, (old, column))
            # What the old image carries may be what the new one still has.
            if any(name in before for name in rows.get(old, ())):
                self._leave(rows, old)

    def doubt(self, transaction: Transaction) -> None:
        """Something of the transaction is not understood."""
        rows = self._open.pop(transaction, {})
        self._count -= sum(map(len, rows.values()))

    def end(self, transaction: Transaction) -> None:
        """The transaction has no further rows."""
        for columns in self._open.pop(transaction, {}).values():
            self._found += columns.values()
            self._count -= len(columns)

    def _leave(self, rows: dict[Key, dict[str, MissingLob]], key: Key | None) -> None:
        self._count -= len(rows.pop(key, ())) if key is not None else 0


SqlOf = Callable[[int], str | None]
"""What landing has in place of a change that the redo carries in part: the UPDATE that stands for
the redo row of that number, empty for no change; None if there is none."""


def no_sql(_: int) -> None:
    """The same where nothing was read again."""


class LandedLobs:
    """Those of a table in some redo files, found by the rows' numbers. Holds the numbers, and the
    texts of one row group."""

    def __init__(self, table: TableId, paths: Sequence[str]) -> None:
        self._table, self._paths = table, paths
        self._groups: list[tuple[str, int]] | None = None
        self._ordinals: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._places: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._read_group = -1
        self._texts: dict[int, str] = {}

    def sql_of(self, ordinal: int) -> str | None:
        """As :data:`SqlOf`."""
        groups = self._index() if self._groups is None else self._groups
        at = int(np.searchsorted(self._ordinals, ordinal))
        if at == len(self._ordinals) or self._ordinals[at] != ordinal:
            return None
        group = int(self._places[at])
        if group != self._read_group:
            path, number = groups[group]
            with reading_file(path), pq.ParquetFile(path) as file:
                rows = file.read_row_group(number, columns=["ordinal", "sql_redo"])
            texts = zip(rows["ordinal"].to_pylist(), rows["sql_redo"].to_pylist(), strict=True)
            self._texts, self._read_group = dict(texts), group
        return self._texts[ordinal]

    def _index(self) -> list[tuple[str, int]]:
        groups: list[tuple[str, int]] = []
        numbers: list[npt.NDArray[np.int64]] = [self._ordinals]
        for path in self._paths:
            with reading_file(path), pq.ParquetFile(path) as file:
                place = file.schema.names.index("operation_code")
                for group in groups_of(file, self._table):
                    statistics = file.metadata.row_group(group).column(place).statistics
                    if statistics is not None and statistics.max == Operation.RESELECTED:
                        rows = file.read_row_group(group, columns=["ordinal"])
                        numbers.append(rows["ordinal"].to_numpy())
                        groups.append((path, group))
        ordinals = np.concatenate(numbers)
        order = np.argsort(ordinals)
        lengths = [len(one) for one in numbers[1:]]
        self._ordinals, self._places = (
            ordinals[order],
            np.repeat(np.arange(len(groups)), lengths)[order],
        )
        self._groups = groups
        return groups
