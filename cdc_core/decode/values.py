"""How does a NUMBER in Oracle's own bytes become canonical text, so that snapshot and log path hold
the same text for it?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cdc_core.decode.kernels.stored import measure_stored, write_stored
from cdc_core.decode.kernels.table import ABSENT, NULL, PRESENT
from cdc_core.errors import DecodeError

_BYTES_MAX = 2**31 - 1


def number_text(stored: pa.Array) -> pa.Array:
    """Canonical text of NUMBERs: no exponent, no leading zeros but ``0.5``, no trailing zeros of a
    fraction.

    Args:
        stored: large_binary, as ``UTL_RAW.CAST_FROM_NUMBER`` gives NUMBERs; nulls stay.

    Returns:
        string array of the same length, every digit kept.

    Raises:
        DecodeError: Bytes are not a finite NUMBER; the facts name their row.
    """
    rows = len(stored)
    is_valid = stored.is_valid().to_numpy(zero_copy_only=False)
    states = np.where(is_valid, PRESENT, NULL).astype(np.uint8)
    _validity, offsets, data = stored.buffers()
    where = offsets.address + stored.offset * 8 if rows else 0
    start = data.address if data is not None else 0
    ends = np.empty(rows + 1, np.int32)
    total = measure_stored(start, where, rows, states.ctypes.data, ends.ctypes.data)
    refused = np.flatnonzero(states == ABSENT)
    if len(refused):
        raise DecodeError(
            "Oracle sent bytes that are not a finite NUMBER",
            hint="Correct the value in Oracle, or name the column under columns_exclude of its table.",
            row=int(refused[0]),
        )
    if total > _BYTES_MAX:
        raise DecodeError(
            "a batch of numbers is larger than 2 GiB", hint="Read fewer rows a batch."
        )
    target = np.empty(total, np.uint8)
    write_stored(start, where, rows, states.ctypes.data, target.ctypes.data)
    bitmap = pa.py_buffer(np.packbits(is_valid, bitorder="little"))
    return pa.Array.from_buffers(
        pa.string(), rows, [bitmap, pa.py_buffer(ends), pa.py_buffer(target)]
    )
