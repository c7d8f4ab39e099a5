"""How do entries and states become Arrow buffers?"""

from __future__ import annotations

from cdc_core.decode.kernels import printed, times
from cdc_core.decode.kernels.cache import entry, inner
from cdc_core.decode.kernels.memory import copy_bytes, load8, load64, store8, store32, store64
from cdc_core.decode.kernels.numbers import write_canonical
from cdc_core.decode.kernels.scan import UPDATE
from cdc_core.decode.kernels.table import (
    ABSENT,
    AFTER,
    BEFORE,
    BYTES,
    ENTRIES,
    FORM_AS_IS,
    FORM_DOUBLED,
    FORM_PARTS,
    INTERVAL_DS,
    INTERVAL_YM,
    KIND,
    NUMBER,
    OFFSETS,
    PRESENT,
    STATES,
    STRIDE,
    TIMESTAMP_TEXT,
    VALID,
    ZONED,
    field,
    is_measured,
)
from cdc_core.decode.kernels.text import write_hex, write_text, write_undoubled

_BLOCK_ROWS = 64
"""Rows whose text is copied for all columns before the next ones: their statements stay in the processor's cache."""


@entry
def overlay(
    table: int, columns: int, rows: int, operations: int, shared: int, is_all_updates: bool
) -> int:
    """Give updates the old values of the columns that SET does not carry.

    Writes ``shared``, a byte per column: 1 where every row is an update and none sets the column, so that the old values can
    serve as the new ones and nothing was copied. Returns the number of the other columns.
    """
    copied = 0
    for column in range(columns):
        is_shared = is_all_updates and not _has_any(field(table, column, STATES + AFTER), rows)
        store8(shared + column, 1 if is_shared else 0)
        if not is_shared:
            copied += 1
            _overlay_column(table, column, rows, operations)
    return copied


@inner
def _has_any(states: int, rows: int) -> bool:
    found = 0
    for row in range(rows):
        found |= load8(states + row)
    return found != 0


@inner
def _overlay_column(table: int, column: int, rows: int, operations: int) -> None:
    before = field(table, column, STATES + BEFORE)
    after = field(table, column, STATES + AFTER)
    stride = field(table, column, STRIDE)
    source = field(table, column, ENTRIES + BEFORE)
    target = field(table, column, ENTRIES + AFTER)
    for row in range(rows):
        if load8(operations + row) == UPDATE and load8(after + row) == ABSENT:
            store8(after + row, load8(before + row))
            store64(target + row * stride, load64(source + row * stride))
            if stride == 16:
                store64(target + row * stride + 8, load64(source + row * stride + 8))


@entry
def measure(table: int, columns: int, rows: int, side: int, shared: int, totals: int) -> int:
    """Write bitmaps, and for text and bytes Arrow offsets; ``totals`` gets each column's number of bytes.

    Columns marked in ``shared`` are left out. Returns the greatest total; offsets are right only where it fits 31 bits.
    """
    most = 0
    for column in range(columns):
        store64(totals + column * 8, 0)
        if load8(shared + column) != 0:
            continue
        _write_bitmap(field(table, column, STATES + side), rows, field(table, column, VALID + side))
        if is_measured(field(table, column, KIND)):
            total = _write_offsets(table, column, rows, side)
            store64(totals + column * 8, total)
            most = max(most, total)
    return most


@inner
def _write_bitmap(states: int, rows: int, bitmap: int) -> None:
    row = 0
    while row + 8 <= rows:
        # PRESENT is 2, the others 0 and 1: the second bit of each byte, gathered by one multiplication.
        bits = (load64(states + row) >> 1) & 0x0101010101010101
        store8(bitmap + (row >> 3), (bits * 0x0102040810204080) >> 56)
        row += 8
    last = 0
    for place in range(rows - row):
        if load8(states + row + place) == PRESENT:
            last |= 1 << place
    if row < rows:
        store8(bitmap + (row >> 3), last)


@inner
def _write_offsets(table: int, column: int, rows: int, side: int) -> int:
    states = field(table, column, STATES + side)
    entries = field(table, column, ENTRIES + side)
    offsets = field(table, column, OFFSETS + side)
    total = 0
    store32(offsets, 0)
    for row in range(rows):
        if load8(states + row) == PRESENT:
            total += load64(entries + row * 16 + 8)
        store32(offsets + row * 4 + 4, total)
    return total


@entry
def write(table: int, columns: int, rows: int, side: int, shared: int) -> int:
    """Write the bytes of text and bytes columns that :func:`measure` measured; returns the number of columns written."""
    written = 0
    for column in range(columns):
        if load8(shared + column) == 0 and is_measured(field(table, column, KIND)):
            written += 1
    if written == 0:
        return 0
    first = 0
    while first < rows:
        last = min(first + _BLOCK_ROWS, rows)
        for column in range(columns):
            if load8(shared + column) == 0 and is_measured(field(table, column, KIND)):
                _write_block(table, column, first, last, side)
        first = last
    return written


@inner
def _write_block(table: int, column: int, first: int, last: int, side: int) -> None:
    kind = field(table, column, KIND)
    states = field(table, column, STATES + side)
    entries = field(table, column, ENTRIES + side)
    offsets = field(table, column, OFFSETS + side)
    target = field(table, column, BYTES + side) + (load64(offsets + first * 4) & 0x7FFFFFFF)
    for row in range(first, last):
        if load8(states + row) != PRESENT:
            continue
        word = load64(entries + row * 16)
        length = load64(entries + row * 16 + 8)
        _write_entry(word >> 2, word & 3, length, kind, target)
        target += length


@inner
def _write_entry(source: int, form: int, length: int, kind: int, target: int) -> None:
    if form == FORM_AS_IS:
        copy_bytes(target, source, length)
    elif form == FORM_DOUBLED:
        write_undoubled(source, length, target)
    elif form == FORM_PARTS:
        write_text(source, length, target)
    elif kind == NUMBER:
        write_canonical(source, length, target)
    elif kind == TIMESTAMP_TEXT:
        times.write_text(source, target)
    elif kind == ZONED:
        printed.write_zoned(source, target)
    elif kind in (INTERVAL_YM, INTERVAL_DS):
        printed.write_interval(source, kind, target)
    else:
        write_hex(source, length, target)
