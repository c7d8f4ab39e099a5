"""How do the entries and states of one column become Arrow buffers, block by block?"""

from __future__ import annotations

from cdc_core.decode.kernels import printed, times
from cdc_core.decode.kernels.cache import inner
from cdc_core.decode.kernels.memory import (
    copy_bytes,
    copy_exactly,
    load8,
    load64,
    store8,
    store32,
    store64,
)
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
    TOTAL,
    VALID,
    ZONED,
    field,
    is_measured,
    set_field,
)
from cdc_core.decode.kernels.text import write_hex, write_text, write_undoubled


@inner
def has_any(states: int, first: int, last: int) -> bool:
    """Has one of the rows the column?"""
    found = 0
    for row in range(first, last):
        found |= load8(states + row)
    return found != 0


@inner
def overlay(table: int, column: int, first: int, last: int, operations: int) -> None:
    """Give updates the old value of a column that SET does not carry. A second time changes
    nothing."""
    before = field(table, column, STATES + BEFORE)
    after = field(table, column, STATES + AFTER)
    stride = field(table, column, STRIDE)
    source = field(table, column, ENTRIES + BEFORE)
    target = field(table, column, ENTRIES + AFTER)
    for row in range(first, last):
        if load8(operations + row) == UPDATE and load8(after + row) == ABSENT:
            store8(after + row, load8(before + row))
            store64(target + row * stride, load64(source + row * stride))
            if stride == 16:
                store64(target + row * stride + 8, load64(source + row * stride + 8))


@inner
def measure(table: int, column: int, first: int, last: int, side: int) -> int:
    """Number of bytes that the text of rows takes."""
    states = field(table, column, STATES + side)
    entries = field(table, column, ENTRIES + side)
    total = 0
    for row in range(first, last):
        if load8(states + row) == PRESENT:
            total += load64(entries + row * 16 + 8)
    return total


@inner
def write(table: int, column: int, first: int, last: int, side: int) -> None:
    """Write the rows' part of the bitmap, and for text and bytes of the offsets and bytes.
    ``first`` is a multiple of 8."""
    states = field(table, column, STATES + side)
    _write_bitmap(states + first, last - first, field(table, column, VALID + side) + (first >> 3))
    kind = field(table, column, KIND)
    if not is_measured(kind):
        return
    entries = field(table, column, ENTRIES + side)
    offsets = field(table, column, OFFSETS + side)
    start = field(table, column, BYTES + side)
    total = field(table, column, TOTAL + side)
    for row in range(first, last):
        if load8(states + row) == PRESENT:
            word = load64(entries + row * 16)
            length = load64(entries + row * 16 + 8)
            _write_entry(word >> 2, word & 3, length, kind, start + total)
            total += length
        store32(offsets + row * 4 + 4, total)
    set_field(table, column, TOTAL + side, total)


@inner
def copy_old(table: int, column: int, rows: int) -> None:
    """Make what was written of the old values, of a multiple of 8 rows, the new values' too."""
    copy_exactly(
        field(table, column, VALID + AFTER), field(table, column, VALID + BEFORE), rows >> 3
    )
    if is_measured(field(table, column, KIND)):
        total = field(table, column, TOTAL + BEFORE)
        copy_exactly(
            field(table, column, OFFSETS + AFTER),
            field(table, column, OFFSETS + BEFORE),
            4 * (rows + 1),
        )
        copy_bytes(field(table, column, BYTES + AFTER), field(table, column, BYTES + BEFORE), total)
        set_field(table, column, TOTAL + AFTER, total)
    else:
        stride = field(table, column, STRIDE)
        copy_exactly(
            field(table, column, ENTRIES + AFTER),
            field(table, column, ENTRIES + BEFORE),
            stride * rows,
        )


@inner
def _write_bitmap(states: int, rows: int, bitmap: int) -> None:
    row = 0
    while row + 8 <= rows:
        # PRESENT is 2, the others 0 and 1: the second bit of each byte, gathered by one
        # multiplication.
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
