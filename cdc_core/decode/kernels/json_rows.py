"""Which columns have the JSON objects of changed rows?"""

from __future__ import annotations

from cdc_core.decode.kernels.cache import inner
from cdc_core.decode.kernels.json import (
    CLOSE,
    COLON,
    COMMA,
    OPEN,
    QUOTE,
    read_value,
    skip_string,
    skip_value,
)
from cdc_core.decode.kernels.memory import load8, load64, store8, store64
from cdc_core.decode.kernels.records import AFTER_AT, AFTER_END, BEFORE_AT, BEFORE_END, WORDS
from cdc_core.decode.kernels.scan import MEMO_ORDER, forget
from cdc_core.decode.kernels.table import (
    ABSENT,
    AFTER,
    BEFORE,
    ENTRIES,
    KIND,
    NAME_LENGTH,
    PRECISION,
    SCALE,
    STATES,
    STRIDE,
    field,
    find_column,
)


@inner
def scan_json_rows(
    records: int,
    first: int,
    last: int,
    table: int,
    columns: int,
    memo: int,
    operations: int,
) -> None:
    """Read the rows from ``first`` to before ``last``; write entries and states, and 0 into
    ``operations`` for rows left to the plain form.

    Args:
        records: Address of the rows' words, see :mod:`records`.
        table: Address of the table's fields.
        memo: As for redo text.
    """
    order = memo + MEMO_ORDER * 8
    for row in range(first, last):
        record = records + row * WORDS * 8
        old, new = load64(record + BEFORE_AT * 8), load64(record + AFTER_AT * 8)
        is_read = True
        if old != 0:
            limit = load64(record + BEFORE_END * 8)
            is_read = _read_row(old, limit, row, table, columns, BEFORE, order) == limit
        if is_read and new != 0:
            limit = load64(record + AFTER_END * 8)
            is_read = _read_row(new, limit, row, table, columns, AFTER, order) == limit
        if not is_read:
            forget(row, table, columns, load8(operations + row))
            store8(operations + row, 0)


@inner
def _read_row(
    at: int, limit: int, row: int, table: int, columns: int, side: int, order: int
) -> int:
    """The address behind an object; -1 for the plain form."""
    if load8(at) != OPEN:
        return -1
    at += 1
    if load8(at) == CLOSE:
        return at + 1
    place = 0
    while at < limit:
        guess = load64(order + place * 8)
        column = find_column(table, columns, at, guess)
        if column < 0:
            at = skip_string(at, limit)
            if at < 0 or load8(at) != COLON:
                return -1
            at = skip_value(at + 1, limit)
        else:
            if column != guess:
                store64(order + place * 8, column)
            if place + 1 < columns:
                place += 1
            at += field(table, column, NAME_LENGTH)
            state = field(table, column, STATES + side) + row
            if load8(at) != COLON or load8(state) != ABSENT:
                return -1
            at = read_value(
                at + 1,
                limit,
                field(table, column, KIND),
                field(table, column, PRECISION),
                field(table, column, SCALE),
                field(table, column, ENTRIES + side) + row * field(table, column, STRIDE),
                state,
            )
        if at < 0 or at >= limit:
            return -1
        if load8(at) == CLOSE:
            return at + 1
        if load8(at) != COMMA or load8(at + 1) != QUOTE:
            return -1
        at += 1
    return -1
