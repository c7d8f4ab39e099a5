"""How do the redo rows of a window get into files, laid out by table, so that each table reads its
own rows alone?

Rows are sorted by table, held back until there are many, and written in row groups that have rows
of one table only. A table with much redo gets files of its own; all others share one, since a file
costs a sync, a request to S3 and a digest. Each table's rows stay in LogMiner's order.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cdc_core.landing.layout import REDO_SCHEMA
from cdc_core.landing.manifest import LandedFile
from cdc_core.landing.store import LandingStore, LandingWriter
from cdc_core.model.identifiers import TableId

REDO_DICTIONARY = (
    "xid", "seg_owner", "table_name", "info", "operation_code", "status", "thread", "data_obj",
    "data_objv", "data_objd", "timestamp", "rollback",
)  # fmt: skip
"""Columns of redo files that are worth dictionary encoding."""

FILE_ROWS_MAX = 2_000_000
HELD_ROWS_MAX = 100_000
HELD_BYTES_MAX = 48 * 1024**2
"""So much is held back. When it is there, the tables with most of it are written, until half is
gone or longer."""
GROUP_ROWS = 5_000
"""A table with so many rows of what is held is written in any case: longer row groups would gain
nothing."""
FULL_GROUP_ROWS = 20_000
"""A table that has so many, and half of what is held, is written at once: its rows are encoded
while Oracle makes the next ones."""
OWN_FILE_BYTES = 1024**2
"""A table with so much redo at once, as it is in memory, gets a file of its own."""
OWN_FILES_MAX = 100
"""So many tables have files of their own: a process may open some hundred files."""

Place = TypeVar("Place")
"""Whose rows an open file takes."""


@dataclass(slots=True)
class OpenFile:
    """A file that is being written, its number, and how many rows it has."""

    number: int
    writer: LandingWriter
    rows: int = 0


class WindowFiles(Generic[Place]):
    """The numbered files of a window, of which some are open at once, each for one place. Leaving
    the block by an exception gives the open ones up."""

    prefix: str

    def __init__(self, landing: LandingStore, folder: str) -> None:
        self._landing, self._folder = landing, folder
        self._stack = ExitStack()
        self._open: dict[Place, OpenFile] = {}
        self._begun = 0
        self._landed: dict[int, LandedFile] = {}
        self._by_table: dict[str, list[int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    @property
    def by_table(self) -> dict[str, tuple[int, ...]]:
        """Per table (``OWNER.NAME``), the numbers of the files with its rows, once all are
        closed."""
        return {table: tuple(numbers) for table, numbers in sorted(self._by_table.items())}

    def close(self) -> list[LandedFile]:
        """All files in the order in which they were begun, none without rows."""
        for place in list(self._open):
            self._close(place)
        return [file for _, file in sorted(self._landed.items())]

    def _begin(self, place: Place, schema: pa.Schema) -> OpenFile:
        name = f"{self.prefix}-{self._begun:05d}.parquet"
        writer = self._landing.writer(self._folder, name, schema, dictionary=REDO_DICTIONARY)
        self._open[place] = file = OpenFile(self._begun, self._stack.enter_context(writer))
        self._begun += 1
        return file

    def _append(self, place: Place, file: OpenFile, rows: pa.RecordBatch | pa.Table) -> None:
        """Rows as a row group of their own; a full file is closed."""
        file.writer.write(rows)
        file.writer.end_group()
        file.rows += rows.num_rows
        if file.rows >= FILE_ROWS_MAX:
            self._close(place)

    def _close(self, place: Place) -> None:
        file = self._open.pop(place)
        self._landed[file.number] = file.writer.close()


class RedoFiles(WindowFiles[TableId | None]):
    """The redo files of a window: a table's own (its place), and the one that all others share
    (None)."""

    prefix = "redo"

    def __init__(self, landing: LandingStore, folder: str) -> None:
        super().__init__(landing, folder)
        self._held: dict[TableId, list[pa.RecordBatch]] = {}
        self._rows_of = Counter[TableId]()
        self._held_rows = self._held_bytes = 0
        self._own: set[TableId] = set()

    def write(self, rows: pa.RecordBatch) -> None:
        """Append rows of ``REDO_SCHEMA``, in LogMiner's order."""
        if rows.num_rows == 0:
            return
        most = 0
        for table, own in _by_table(rows):
            self._held.setdefault(table, []).append(own)
            self._rows_of[table] += own.num_rows
            most = max(most, self._rows_of[table])
        self._held_rows += rows.num_rows
        self._held_bytes += rows.nbytes
        is_full = most >= max(FULL_GROUP_ROWS, self._held_rows / 2)
        if is_full or self._held_rows >= HELD_ROWS_MAX or self._held_bytes >= HELD_BYTES_MAX:
            self._write_fullest()

    def close(self) -> list[LandedFile]:
        """Write what is left; all files, as :meth:`WindowFiles.close`."""
        for table in sorted(self._held):
            self._write(table, self._taken(table))
        return super().close()

    def _write_fullest(self) -> None:
        """Write tables, those with most rows first, until half of the held rows are written, and
        every table with many rows."""
        enough = self._held_rows / 2
        for table, count in sorted(self._rows_of.items(), key=lambda one: (-one[1], one[0])):
            rows = self._taken(table)
            if self._held_rows > enough or count >= GROUP_ROWS:
                self._write(table, rows)
                self._held_rows -= count
                del self._rows_of[table]
            else:
                # A copy: a slice would keep in memory what lies beside it.
                copied = rows.take(pa.array(np.arange(count)))
                self._held[table] = copied.combine_chunks().to_batches()
        self._held_bytes = sum(own.nbytes for held in self._held.values() for own in held)

    def _taken(self, table: TableId) -> pa.Table:
        return pa.Table.from_batches(self._held.pop(table), REDO_SCHEMA)

    def _write(self, table: TableId, rows: pa.Table) -> None:
        place = self._place(table, rows)
        file = self._open.get(place) or self._begin(place, REDO_SCHEMA)
        numbers = self._by_table.setdefault(str(table), [])
        if file.number not in numbers[-1:]:
            numbers.append(file.number)
        self._append(place, file, rows)

    def _place(self, table: TableId, rows: pa.Table) -> TableId | None:
        """The table itself if it has or is to have its own file; else the shared file.

        It never goes back to the shared one: that may hold rows of it that stand before those of
        its own file.
        """
        if rows.nbytes >= OWN_FILE_BYTES and len(self._own) < OWN_FILES_MAX:
            self._own.add(table)
        return table if table in self._own else None


def _by_table(rows: pa.RecordBatch) -> list[tuple[TableId, pa.RecordBatch]]:
    """The rows of each table, in their order."""
    codes, tables = _tables(rows)
    if len(tables) == 1:
        return [(tables[0], rows)]
    rows = rows.take(pa.array(np.argsort(codes, kind="stable")))
    ends = np.cumsum(np.bincount(codes, minlength=len(tables))).tolist()
    return [
        (table, rows.slice(start, end - start))
        for table, start, end in zip(tables, [0, *ends[:-1]], ends, strict=True)
    ]


def _tables(
    rows: pa.RecordBatch,
) -> tuple[npt.NDArray[np.unsignedinteger[Any]], list[TableId]]:
    """Per row the place of its table, and the tables."""
    owner_codes, owners = _encoded(rows, "seg_owner")
    name_codes, names = _encoded(rows, "table_name")
    pairs = owner_codes * len(names) + name_codes
    there = np.flatnonzero(np.bincount(pairs))
    tables = [TableId(owners[one // len(names)], names[one % len(names)]) for one in there.tolist()]
    rank = np.zeros(int(there[-1]) + 1, dtype=np.min_scalar_type(len(tables)))
    rank[there] = np.arange(len(tables))
    return rank[pairs], tables


def _encoded(rows: pa.RecordBatch, column: str) -> tuple[npt.NDArray[np.int64], list[str]]:
    encoded = rows.column(column).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()
