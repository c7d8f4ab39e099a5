"""How is a number's text made canonical, so that snapshot and log path hold the same text for the same NUMBER?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cdc_core.decode.kernels.canonical import measure_numbers, write_numbers
from cdc_core.decode.kernels.table import ABSENT, NULL, PRESENT
from cdc_core.decode.literals import LiteralRefusedError, canonical_number_text
from cdc_core.decode.text_source import TextSource, one_text_array, replace_rows
from cdc_core.errors import DecodeError

_BYTES_MAX = 2**31 - 1
_SLACK = 16


def canonical_number(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Canonical text of NUMBERs: no exponent, no leading zeros but ``0.5``, no trailing zeros of a fraction, ``-0`` is ``0``.

    Args:
        array: string or large_string, as ``TO_CHAR`` or SQL_REDO prints numbers (``.5``, ``-.00012``, ``1E+10``); nulls stay.

    Returns:
        string array of the same length.

    Raises:
        DecodeError: A text is not a number; the facts name its row.
    """
    text = one_text_array(array)
    rows = len(text)
    source = TextSource(text)
    is_valid = text.is_valid().to_numpy(zero_copy_only=False)
    states = np.where(is_valid, PRESENT, NULL).astype(np.uint8)
    entries = np.empty(2 * rows, np.int64)
    offsets = np.empty(rows + 1, np.int32)
    total = measure_numbers(
        source.data,
        source.tail.ctypes.data,
        source.tail_row,
        source.offsets.ctypes.data,
        rows,
        states.ctypes.data,
        entries.ctypes.data,
        offsets.ctypes.data,
    )
    if total > _BYTES_MAX:
        raise DecodeError(
            "a batch of numbers is larger than 2 GiB", hint="Read fewer rows a batch."
        )
    target = np.empty(total + _SLACK, np.uint8)
    write_numbers(rows, states.ctypes.data, entries.ctypes.data, target.ctypes.data)
    bitmap = pa.py_buffer(np.packbits(is_valid, bitorder="little"))
    buffers = [bitmap, pa.py_buffer(offsets), pa.py_buffer(target)]
    canonical = pa.Array.from_buffers(pa.string(), rows, buffers)
    left = np.flatnonzero(states == ABSENT).tolist()
    if not left:
        return canonical
    return replace_rows(canonical, left, [_canonical(text[row].as_py(), row) for row in left])


def _canonical(text: str, row: int) -> str:
    try:
        return canonical_number_text(text)
    except LiteralRefusedError as error:
        raise DecodeError(error.what, hint=error.hint, row=row) from None
