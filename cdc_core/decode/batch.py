"""How does a batch of redo text become Arrow columns? Memory for the compiled loops, and Arrow arrays of what they leave."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cdc_core.decode.kernels import finish, scan, table
from cdc_core.decode.plan import Kind, TablePlan
from cdc_core.decode.text_source import Bytes, TextSource, Words
from cdc_core.errors import DecodeError

_MEASURED = frozenset(
    {
        Kind.TEXT, Kind.CLOB, Kind.NUMBER, Kind.TIMESTAMP_TEXT, Kind.RAW, Kind.ZONED, Kind.INTERVAL_YM, Kind.INTERVAL_DS,
        Kind.BLOB,
    }
)  # fmt: skip
_BYTES_MAX = 2**31 - 1
_GAP = 64
"""Bytes between columns' areas, since copies write up to 15 bytes more than they should."""


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
    """Run the compiled loops over a batch.

    Args:
        sql: large_string without nulls.

    Raises:
        DecodeError: A column's text needs more than 2 GiB in one batch.
    """
    rows = len(sql)
    source = TextSource(sql)
    names = _names(plan)
    fields = names.fields.copy()
    memo = names.memo()
    columns = len(plan.columns)
    operations = np.zeros(rows, np.int8)
    starts = source.first_bytes()
    has = {letter: bool((starts == ord(letter)).any()) for letter in "iud"}
    before = _Side(plan, rows, fields, table.BEFORE) if has["u"] or has["d"] else None
    after = _Side(plan, rows, fields, table.AFTER) if has["u"] or has["i"] else None
    scan.scan(
        source.data,
        source.tail.ctypes.data,
        source.tail_row,
        source.offsets.ctypes.data,
        rows,
        fields.ctypes.data,
        columns,
        len(fields),
        names.table_name.ctypes.data,
        names.table_name_length,
        memo.ctypes.data,
        operations.ctypes.data,
    )
    sides = [side.states for side in (before, after) if side is not None]
    carried = (
        (sides[0] | sides[1] if len(sides) == 2 else sides[0]) != table.ABSENT if sides else None
    )
    nothing = np.zeros((columns, rows), np.bool_)
    carried_before = nothing if before is None else before.states != table.ABSENT
    shared = np.zeros(columns, np.uint8)
    none_shared = np.zeros(columns, np.uint8)
    if before is not None and after is not None:
        is_all_updates = not has["i"] and not has["d"] and bool((operations == scan.UPDATE).all())
        finish.overlay(
            fields.ctypes.data,
            columns,
            rows,
            operations.ctypes.data,
            shared.ctypes.data,
            is_all_updates,
        )
    old = before.arrays(fields, none_shared, None) if before is not None else None
    new = after.arrays(fields, shared, old) if after is not None else None
    return ScannedBatch(
        operations,
        old,
        new,
        carried if carried is not None else nothing,
        carried_before,
    )


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

    def __init__(self, plan: TablePlan, rows: int, fields: Words, side: int) -> None:
        self.plan, self.rows, self.side = plan, rows, side
        columns = len(plan.columns)
        is_measured = np.array([column.kind in _MEASURED for column in plan.columns])
        captured = fields[:columns]
        sizes = captured[:, table.STRIDE] * rows
        # Fixed values go to Arrow as they are; entries of text are needed until its bytes are written.
        self._fixed: Bytes = np.zeros(int(sizes[~is_measured].sum()), np.uint8)
        self._entries: Bytes = np.empty(int(sizes[is_measured].sum()), np.uint8)
        self._fixed_at = _starts(np.where(is_measured, 0, sizes))
        entries_at = _starts(np.where(is_measured, sizes, 0))
        captured[:, table.ENTRIES + side] = np.where(
            is_measured,
            self._entries.ctypes.data + entries_at,
            self._fixed.ctypes.data + self._fixed_at,
        )
        self.states = np.zeros((columns, rows), np.uint8)
        captured[:, table.STATES + side] = self.states.ctypes.data + np.arange(columns) * rows
        self._bitmap_size = (rows + 7) // 8
        self._valid: Bytes = np.empty(columns * self._bitmap_size, np.uint8)
        captured[:, table.VALID + side] = (
            self._valid.ctypes.data + np.arange(columns) * self._bitmap_size
        )
        self._offsets_at = _starts(np.where(is_measured, 4 * (rows + 1), 0))
        # Four bytes more, since the loops read offsets eight bytes at a time.
        self._offsets: Bytes = np.empty(int(is_measured.sum()) * 4 * (rows + 1) + 4, np.uint8)
        captured[:, table.OFFSETS + side] = self._offsets.ctypes.data + self._offsets_at

    def arrays(self, fields: Words, shared: Bytes, old: list[pa.Array] | None) -> list[pa.Array]:
        """Finish the buffers and wrap them; shared columns are those of ``old``."""
        columns = len(self.plan.columns)
        totals: Words = np.zeros(columns, np.int64)
        at = fields.ctypes.data, columns, self.rows, self.side, shared.ctypes.data
        if finish.measure(*at, totals.ctypes.data) > _BYTES_MAX:
            raise DecodeError(
                "a column's text in one batch is larger than 2 GiB",
                hint="Decode fewer rows in a batch: lower spark.sql.execution.arrow.maxRecordsPerBatch.",
                table=self.plan.name_sql,
            )
        bytes_at = _starts(totals + _GAP)
        text: Bytes = np.empty(int(totals.sum()) + _GAP * (columns + 1), np.uint8)
        fields[:columns, table.BYTES + self.side] = text.ctypes.data + bytes_at
        finish.write(*at)
        buffers = {
            "valid": pa.py_buffer(self._valid),
            "fixed": pa.py_buffer(self._fixed),
            "offsets": pa.py_buffer(self._offsets),
            "text": pa.py_buffer(text),
        }
        arrays = []
        for number in range(columns):
            if shared[number] and old is not None:
                arrays.append(old[number])
            else:
                span = int(bytes_at[number]), int(totals[number])
                arrays.append(self._array(number, buffers, span))
        return arrays

    def _array(self, number: int, buffers: dict[str, pa.Buffer], span: tuple[int, int]) -> pa.Array:
        column = self.plan.columns[number]
        valid = buffers["valid"].slice(number * self._bitmap_size, self._bitmap_size)
        if column.kind in _MEASURED:
            offsets = buffers["offsets"].slice(int(self._offsets_at[number]), 4 * (self.rows + 1))
            parts = [valid, offsets, buffers["text"].slice(*span)]
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
