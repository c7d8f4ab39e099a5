"""Which digest stands for the values of a row, where all of them together identify it?

SHA-256 of one text of bytes per row that no other values give: column by column the length of the
value in four bytes, then the value; NULL has a length that no value has. Snapshot and log path give
equal values of a row (``schema.types``), so they give one digest.

Values are what Delta holds: numbers in their fixed width, texts in UTF-8 (CHAR with its blanks),
times in microseconds. Where two forms are one value to Oracle, one is taken: -0 is 0, and every NaN
is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_NULL = 2**32 - 1
"""The length of NULL: no value is that long, since an Arrow array of bytes ends at 2**31."""


def row_digests(columns: Sequence[pa.Array]) -> pa.BinaryArray:
    """A digest of 32 bytes per row.

    Args:
        columns: The values, in the order of the table's columns and in the Arrow types of
            ``schema.types``; all of one length, at least one column.
    """
    pieces: list[pa.Array] = []
    for column in columns:
        values = _as_bytes(column)
        lengths = pc.fill_null(pc.binary_length(values), _NULL)
        pieces += [_fixed(lengths.to_numpy().astype(">u4")), pc.fill_null(values, b"")]
    rows = pc.binary_join_element_wise(*pieces, pa.scalar(b"", pa.large_binary()))
    return pa.array([sha256(row).digest() for row in rows.to_pylist()], pa.binary())


def _as_bytes(column: pa.Array) -> pa.Array:
    """The values' bytes; NULL stays NULL."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return column.cast(pa.large_binary())
    if pa.types.is_floating(kind):
        column = pc.add(column, pa.scalar(0.0, kind))  # -0 + 0 is 0
        column = pc.if_else(pc.is_nan(column), pa.scalar(np.nan, kind), column)
    if pa.types.is_decimal(kind):
        fixed = pa.binary(kind.byte_width)
        return column.view(fixed).cast(pa.large_binary())
    width = {1: np.uint8, 4: np.int32, 8: np.int64}[max(kind.bit_width // 8, 1)]
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    numbers = pc.fill_null(column, pa.scalar(0).cast(column.type)).to_numpy(zero_copy_only=False)
    octets = _fixed(numbers.view(width).astype(np.dtype(width).newbyteorder(">")))
    return pc.if_else(column.is_valid(), octets, pa.scalar(None, octets.type))


def _fixed(numbers: np.ndarray) -> pa.Array:
    """Numbers as bytes of their width."""
    data = pa.py_buffer(np.ascontiguousarray(numbers))
    kind = pa.binary(numbers.dtype.itemsize)
    return pa.Array.from_buffers(kind, len(numbers), [None, data]).cast(pa.large_binary())
