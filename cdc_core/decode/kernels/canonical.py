"""How does a column of number text become canonical? The loops around one number's reader and writer."""

from __future__ import annotations

from cdc_core.decode.kernels.cache import entry
from cdc_core.decode.kernels.memory import copy_bytes, load8, load64, store8, store32, store64
from cdc_core.decode.kernels.numbers import measure_canonical, write_canonical
from cdc_core.decode.kernels.table import ABSENT, FORM_AS_IS, FORM_REWRITTEN, PRESENT


@entry
def measure_numbers(
    data: int,
    tail: int,
    tail_row: int,
    offsets: int,
    rows: int,
    states: int,
    entries: int,
    target_offsets: int,
) -> int:
    """Measure the canonical text of all rows whose state is PRESENT on entry.

    Writes entries (address * 4 + form, length) and Arrow's 32-bit offsets; rows left to the plain form get state ABSENT.
    Returns the total length.
    """
    total = 0
    store32(target_offsets, 0)
    for row in range(rows):
        if load8(states + row) == PRESENT:
            start = load64(offsets + row * 8)
            length = load64(offsets + row * 8 + 8) - start
            at = data + start
            if row >= tail_row:
                at = tail + start - load64(offsets + tail_row * 8)
            limit = at + length
            end = -1
            if length > 0:
                end, source, length, is_canonical = measure_canonical(at, limit)
                store64(
                    entries + row * 16,
                    source * 4 + (FORM_AS_IS if is_canonical else FORM_REWRITTEN),
                )
                store64(entries + row * 16 + 8, length)
            if end == limit:
                total += length
            else:
                store8(states + row, ABSENT)
        store32(target_offsets + row * 4 + 4, total)
    return total


@entry
def write_numbers(rows: int, states: int, entries: int, target: int) -> int:
    """Write what :func:`measure_numbers` measured; returns the end."""
    for row in range(rows):
        if load8(states + row) == PRESENT:
            word = load64(entries + row * 16)
            length = load64(entries + row * 16 + 8)
            if word & 3 == FORM_AS_IS:
                copy_bytes(target, word >> 2, length)
            else:
                write_canonical(word >> 2, length, target)
            target += length
    return target
