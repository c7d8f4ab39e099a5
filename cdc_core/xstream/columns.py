"""How do stored bytes of one column, in hexadecimal digits, become an Arrow column at once?

What every value of a block has alike is read so: one type, text in AL32UTF8, times of the years 1
to 9999. None stands for a column that is otherwise, and is read value by value.
"""

from __future__ import annotations

import binascii
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cdc_core.decode.plan import ColumnPlan, Kind
from cdc_core.decode.values import number_text
from cdc_core.errors import DecodeError

Numbers = npt.NDArray[np.int64]

_UNICODE = "AL32UTF8"
_DAY_MICROS = 86_400 * 10**6
_MOMENT_BYTES, _FINE_BYTES = 7, 11
_FLOATS: dict[Kind, tuple[int, Any, Any]] = {
    Kind.FLOAT64: (8, np.uint64, np.float64),
    Kind.FLOAT32: (4, np.uint32, np.float32),
}


def column_at_once(hexes: pa.StringArray, plan: ColumnPlan, charset: str) -> pa.Array | None:
    """The values of a column, in its plan's type; None where they are read one by one.

    Args:
        hexes: Stored bytes of values that are of a type which the column has; nulls stay.
        plan: Of the column.
        charset: Of its text.

    Raises:
        pa.ArrowException: A value is not of the plan's type.
    """
    stored = _unhexed(hexes)
    if stored is None:
        return None
    if plan.is_number:
        try:
            texts = number_text(stored)
        except DecodeError:
            return None
        return texts.cast(plan.type)
    match plan.kind:
        case Kind.TEXT if charset == _UNICODE:
            found = stored.cast(pa.binary())
            text = pa.Array.from_buffers(pa.string(), len(found), found.buffers())
            text.validate(full=True)
            return text.cast(plan.type)
        case Kind.RAW:
            return stored.cast(plan.type)
        case Kind.DATE | Kind.TIMESTAMP:
            return _moments(stored, plan)
        case Kind.FLOAT64 | Kind.FLOAT32:
            return _floats(stored, plan)
    return None


def _unhexed(hexes: pa.StringArray) -> pa.LargeBinaryArray | None:
    """The bytes; None where some are none, or are empty."""
    count = len(hexes)
    valid, ends, data = hexes.buffers()
    at = np.frombuffer(ends, np.int32)[hexes.offset : hexes.offset + count + 1].astype(np.int64)
    lengths = np.diff(at)
    if (lengths % 2).any() or hexes.offset or (lengths == 0).sum() > hexes.null_count:
        return None
    try:
        raw = binascii.unhexlify(memoryview(data)[at[0] : at[-1]] if data is not None else b"")
    except binascii.Error:
        return None
    buffers = [valid, pa.py_buffer((at - at[0]) // 2), pa.py_buffer(raw)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), count, buffers)


def _matrix(stored: pa.LargeBinaryArray, size: int) -> npt.NDArray[np.uint8] | None:
    """A row of bytes for each value that is there; None where they are not so many each."""
    _, ends, data = stored.buffers()
    at = np.frombuffer(ends, np.int64)[: len(stored) + 1]
    lengths = np.diff(at)
    if not np.isin(lengths, (0, size)).all():
        return None
    return np.frombuffer(data, np.uint8).reshape(-1, size)


def _placed(values: npt.NDArray[np.generic], stored: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values of what is there, at their places."""
    is_there = stored.is_valid().to_numpy(zero_copy_only=False)
    whole = np.zeros(len(stored), values.dtype)
    whole[is_there] = values
    bitmap = pa.py_buffer(np.packbits(is_there, bitorder="little"))
    return pa.Array.from_buffers(kind, len(stored), [bitmap, pa.py_buffer(whole)])


def _moments(stored: pa.LargeBinaryArray, plan: ColumnPlan) -> pa.Array | None:
    """Century and year with 100 added, month, day, then hour, minute and second with 1 added;
    nanoseconds if any."""
    parts = _matrix(stored, _MOMENT_BYTES)
    nanos: Numbers | int = 0
    if parts is None and plan.kind is Kind.TIMESTAMP:
        parts = _matrix(stored, _FINE_BYTES)
        if parts is not None:
            fine = np.ascontiguousarray(parts[:, _MOMENT_BYTES:]).view(">u4")
            nanos = fine.reshape(-1).astype(np.int64)
    if parts is None or not pa.types.is_timestamp(plan.type) or plan.type.unit != "us":
        return None
    century, year, month, day, hour, minute, second = parts[:, :_MOMENT_BYTES].T.astype(np.int64)
    years = (century - 100) * 100 + year - 100
    months = ((years - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1)
    is_known = (years > 0) & (years < 10_000) & (month > 0) & (month < 13) & (day > 0)
    is_known &= days.astype("datetime64[M]") == months
    is_known &= (hour > 0) & (hour < 25) & (minute > 0) & (minute < 61)
    is_known &= (second > 0) & (second < 61)
    if not is_known.all() or np.any(nanos % np.int64(1000)) or np.any(nanos >= np.int64(10**9)):
        return None
    seconds = ((hour - 1) * 60 + minute - 1) * 60 + second - 1
    micros = days.astype(np.int64) * _DAY_MICROS + seconds * 10**6 + nanos // 1000
    return _placed(micros, stored, plan.type)


def _floats(stored: pa.LargeBinaryArray, plan: ColumnPlan) -> pa.Array | None:
    """IEEE 754, big endian: a positive number has its sign bit set, a negative one all bits
    flipped."""
    size, bits, kind = _FLOATS[plan.kind]
    parts = _matrix(stored, size)
    if parts is None:
        return None
    words = np.ascontiguousarray(parts).view(np.dtype(bits).newbyteorder(">")).reshape(-1)
    words = words.astype(bits)
    sign = bits(1 << (8 * size - 1))
    found = np.where(words & sign != 0, words & ~sign, ~words).astype(bits)
    return _placed(found.view(kind), stored, plan.type)
