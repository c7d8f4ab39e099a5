"""How does a batch of redo text become Arrow columns? Memory for the compiled loops, and Arrow
arrays of what they leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cdc_core.decode.kernels import blocks, scan, table
from cdc_core.decode.kernels.records import AFTER_AT, AFTER_END
from cdc_core.decode.kernels.scan import DELETE, INSERT, UPDATE
from cdc_core.decode.plan import Kind, TablePlan
from cdc_core.decode.text_source import Bytes, TextSource, Words
from cdc_core.errors import DecodeError

_MEASURED = frozenset(
    {
        Kind.TEXT, Kind.CLOB, Kind.NUMBER, Kind.TIMESTAMP_TEXT, Kind.RAW, Kind.ZONED, Kind.INTERVAL_YM, Kind.INTERVAL_DS,
        Kind.BLOB, Kind.TOKEN,
    }
)  # fmt: skip
_BYTES_MAX = 2**31 - 1
_GAP = 64
"""Bytes behind a column's text, since copies write up to 15 bytes more than they should."""
_BLOCK_BYTES, _BLOCK_ROWS_MAX = 1 << 18, 512
"""Of the statements of a block: they and their entries stay in the processor's cache until their
bytes are written."""
_NOTHING: Bytes = np.zeros(_GAP, np.uint8)

Operations = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class ScannedBatch:
    """What the loops understood of a batch.

    Attributes:
        operations: int8 per row: LogMiner's operation code, 0 where the plain form must decide.
        before: array per column, or None where no row has an old image.
        after: array per column, or None where no row has a new image.
        carried: column by row: does the statement carry the column?
        carried_before: column by row: does its old image carry the column?
    """

    operations: npt.NDArray[np.int8]
    before: list[pa.Array] | None
    after: list[pa.Array] | None
    carried: npt.NDArray[np.bool_]
    carried_before: npt.NDArray[np.bool_]


def scan_batch(sql: pa.Array, plan: TablePlan) -> ScannedBatch:
    """Run the compiled loops over a batch of redo text.

    Args:
        sql: large_string without nulls.

    Raises:
        DecodeError: A column's text needs more than 2 GiB in one batch.
    """
    source = TextSource(sql)
    starts = source.first_bytes()
    has = {letter: bool((starts == ord(letter)).any()) for letter in "iud"}
    size = int(source.offsets[-1] - source.offsets[0])
    operations = np.zeros(len(sql), np.int8)
    return _scanned(plan, operations, has["i"], has["u"], has["d"], size, source=source)


def scan_records(records: Words, operations: Operations, plan: TablePlan) -> ScannedBatch:
    """Run the compiled loops over the images of changed rows in JSON.

    Args:
        records: Rows of words, see :mod:`~cdc_core.decode.kernels.records`; behind the images are
            readable bytes.
        operations: LogMiner's operation code of each; 0 afterwards where the plain form must
            decide.
        plan: Of the rows' table.

    Raises:
        DecodeError: A column's text needs more than 2 GiB in one batch.
    """
    inserts, updates, deletes = (
        bool((operations == one).any()) for one in (INSERT, UPDATE, DELETE)
    )
    size = int((records[:, AFTER_END] - records[:, AFTER_AT]).sum())
    return _scanned(plan, operations, inserts, updates, deletes, size, records=records)


def _scanned(
    plan: TablePlan,
    operations: Operations,
    has_inserts: bool,
    has_updates: bool,
    has_deletes: bool,
    size: int,
    *,
    source: TextSource | None = None,
    records: Words | None = None,
) -> ScannedBatch:
    rows = len(operations)
    names = _names(plan)
    fields = names.fields.copy()
    memo = names.memo()
    columns = len(plan.columns)
    block = _block_rows(size, rows)
    has_before, has_after = has_updates or has_deletes, has_updates or has_inserts
    before = _Side(plan, rows, block, fields, table.BEFORE) if has_before else None
    after = _Side(plan, rows, block, fields, table.AFTER) if has_after else None
    is_updates_alone = not has_inserts and not has_deletes
    shared = np.full(columns, blocks.SHARED if is_updates_alone else blocks.OWN, np.uint8)
    offsets = records if source is None else source.offsets
    assert offsets is not None
    scanned = first = 0
    while first < rows:
        first = blocks.decode_blocks(
            0 if source is None else source.data,
            0 if source is None else source.tail.ctypes.data,
            rows if source is None else source.tail_row,
            offsets.ctypes.data,
            scanned,
            first,
            rows,
            block,
            fields.ctypes.data,
            columns,
            len(fields),
            names.table_name.ctypes.data,
            names.table_name_length,
            memo.ctypes.data,
            operations.ctypes.data,
            has_before,
            has_after,
            shared.ctypes.data,
            records is not None,
        )
        scanned = min(first + block, rows)
        if first < rows:
            for side in (before, after):
                if side is not None:
                    side.grow(fields, scanned)
    nothing = np.zeros((columns, rows), np.bool_)
    sides = [side.states for side in (before, after) if side is not None]
    carried = (sides[0] | sides[1] if len(sides) == 2 else sides[0]) if sides else nothing
    old = before.arrays(fields) if before is not None else None
    new = after.arrays(fields, old, shared) if after is not None else None
    return ScannedBatch(
        operations,
        old,
        new,
        carried != table.ABSENT,
        nothing if before is None else before.states != table.ABSENT,
    )


def _block_rows(size: int, rows: int) -> int:
    """So many rows, a multiple of 8, that their statements fit the processor's cache."""
    size = size // max(rows, 1)
    return int(min(max(_BLOCK_BYTES // max(size, 1), 8), _BLOCK_ROWS_MAX)) // 8 * 8


def names_where(missing: npt.NDArray[np.bool_], names: Sequence[str]) -> pa.ListArray:
    """Per row, the names of the columns that are missing there.

    Args:
        missing: Column by row.
        names: Of the columns.
    """
    count = missing.shape[1]
    if not missing.any():
        return pa.ListArray.from_arrays(pa.array(np.zeros(count + 1, np.int32)), _NO_NAMES)
    rows, columns = np.nonzero(missing.T)
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(rows, minlength=count), out=offsets[1:])
    found = pa.array(names, pa.string()).take(pa.array(columns))
    return pa.ListArray.from_arrays(pa.array(offsets), found)


_NO_NAMES = pa.nulls(0, pa.string())  # a list would bring pandas while this is imported


class _Names:
    """The part of the loops' table that is the same for all batches of a table."""

    def __init__(self, plan: TablePlan) -> None:
        names = [*(column.name for column in plan.columns), *plan.skipped]
        quoted = [f'"{name}"'.encode() for name in names]
        blob = b"".join(text + bytes(16) for text in quoted)
        self._blob: Bytes = np.frombuffer(blob, np.uint8)
        self.fields: Words = np.zeros((len(names), table.FIELDS), np.int64)
        at = self._blob.ctypes.data
        for number, text in enumerate(quoted):
            self.fields[number, table.NAME] = at
            self.fields[number, table.NAME_LENGTH] = len(text)
            at += len(text) + 16
        for number, column in enumerate(plan.columns):
            self.fields[number, table.KIND] = column.kind
            self.fields[number, table.PRECISION] = column.precision
            self.fields[number, table.SCALE] = column.scale
            self.fields[number, table.STRIDE] = _stride(column.kind)
        table_name = plan.name_sql.encode()
        self.table_name: Bytes = np.frombuffer(table_name + bytes(16), np.uint8)
        self.table_name_length = len(table_name)

    def memo(self) -> Words:
        """A fresh memo: no INSERT seen, names expected in the table's order."""
        count = len(self.fields)
        memo = np.zeros(scan.MEMO_ORDER + 3 * count, np.int64)
        memo[scan.MEMO_ORDER :] = np.tile(np.arange(count), 3)
        return memo


@lru_cache(maxsize=1024)
def _names(plan: TablePlan) -> _Names:
    return _Names(plan)


def _stride(kind: Kind) -> int:
    return 16 if kind in _MEASURED or kind is Kind.DECIMAL else 8


class _Side:
    """Memory of the old or the new images of a batch."""

    def __init__(self, plan: TablePlan, rows: int, block: int, fields: Words, side: int) -> None:
        self.plan, self.rows, self.side = plan, rows, side
        columns = len(plan.columns)
        self._is_measured = np.array([column.kind in _MEASURED for column in plan.columns])
        captured = fields[:columns]
        # Fixed values go to Arrow as they are; entries of text are needed until a block's bytes are
        # written.
        sizes = np.where(self._is_measured, 0, captured[:, table.STRIDE] * rows)
        self._fixed: Bytes = np.zeros(int(sizes.sum()), np.uint8)
        self._fixed_at = _starts(sizes)
        captured[:, table.ENTRIES + side] = self._fixed.ctypes.data + self._fixed_at
        sizes = np.where(self._is_measured, 16 * block, 0)
        self._scratch: Bytes = np.empty(int(sizes.sum()), np.uint8)
        captured[:, table.SCRATCH + side] = self._scratch.ctypes.data + _starts(sizes)
        self.states = np.zeros((columns, rows), np.uint8)
        captured[:, table.STATES + side] = self.states.ctypes.data + np.arange(columns) * rows
        self._bitmap_size = (rows + 7) // 8
        self._valid: Bytes = np.empty(columns * self._bitmap_size, np.uint8)
        captured[:, table.VALID + side] = (
            self._valid.ctypes.data + np.arange(columns) * self._bitmap_size
        )
        sizes = np.where(self._is_measured, 4 * (rows + 1), 0)
        self._offsets_at = _starts(sizes)
        self._offsets: Bytes = np.empty(int(sizes.sum()), np.uint8)
        captured[:, table.OFFSETS + side] = self._offsets.ctypes.data + self._offsets_at
        self._texts: list[Bytes] = [_NOTHING] * columns

    def grow(self, fields: Words, scanned: int) -> None:
        """Make room for the text and bytes that a block needs, and for as many more as the rows
        behind ``scanned`` may.

        Raises:
            DecodeError: A column's text needs more than Arrow's offsets can say.
        """
        for number in np.flatnonzero(self._is_measured).tolist():
            of = fields[number]
            needed = int(of[table.NEEDED + self.side])
            if needed <= of[table.CAPACITY + self.side]:
                continue
            if needed > _BYTES_MAX:
                raise DecodeError(
                    "a column's text in one batch is larger than 2 GiB",
                    hint="Decode fewer rows in a batch: lower spark.sql.execution.arrow.maxRecordsPerBatch.",
                    table=self.plan.name_sql,
                )
            capacity = min(_BYTES_MAX, needed * self.rows * 9 // (scanned * 8) + _GAP)
            text: Bytes = np.empty(capacity + _GAP, np.uint8)
            written = int(of[table.TOTAL + self.side])
            text[:written] = self._texts[number][:written]
            self._texts[number] = text
            of[table.CAPACITY + self.side] = capacity
            of[table.BYTES + self.side] = text.ctypes.data

    def arrays(
        self, fields: Words, old: list[pa.Array] | None = None, shared: Bytes = _NOTHING
    ) -> list[pa.Array]:
        """The columns, when all their rows are written; shared ones are those of ``old``."""
        buffers = {
            "valid": pa.py_buffer(self._valid),
            "fixed": pa.py_buffer(self._fixed),
            "offsets": pa.py_buffer(self._offsets),
        }
        totals = fields[:, table.TOTAL + self.side].tolist()
        return [
            old[number]
            if old is not None and shared[number] == blocks.SHARED
            else self._array(number, buffers, totals[number])
            for number in range(len(self.plan.columns))
        ]

    def _array(self, number: int, buffers: dict[str, pa.Buffer], total: int) -> pa.Array:
        column = self.plan.columns[number]
        valid = buffers["valid"].slice(number * self._bitmap_size, self._bitmap_size)
        if column.kind in _MEASURED:
            offsets = buffers["offsets"].slice(int(self._offsets_at[number]), 4 * (self.rows + 1))
            parts = [valid, offsets, pa.py_buffer(self._texts[number]).slice(0, total)]
        else:
            at = int(self._fixed_at[number])
            values = buffers["fixed"].slice(at, _stride(column.kind) * self.rows)
            if column.kind is Kind.FLOAT32:
                values = pa.py_buffer(np.frombuffer(values, np.int64).astype(np.uint32))
            parts = [valid, values]
        return pa.Array.from_buffers(column.type, self.rows, parts)


def _starts(sizes: npt.NDArray[np.int64]) -> Words:
    """Where each area begins when they lie one behind the other."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)[:-1]))
