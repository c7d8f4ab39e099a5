"""Which change does each redo statement of a block mean?

One pass over the bytes: names are matched against where they stood in the statement before,
literals are read straight into their columns' entries.
"""

from __future__ import annotations

import numpy as np

from cdc_core.decode.kernels.cache import inner
from cdc_core.decode.kernels.literal import read_literal, skip_literal
from cdc_core.decode.kernels.memory import is_same, load8, load32, load64, store8, store64
from cdc_core.decode.kernels.table import (
    ABSENT,
    AFTER,
    BEFORE,
    ENTRIES,
    KIND,
    NAME_LENGTH,
    NULL,
    PRECISION,
    SCALE,
    SKIPPED,
    STATES,
    STRIDE,
    field,
    find_column,
)
from cdc_core.decode.kernels.text import QUOTE, find_quote_end
from cdc_core.model.operations import Operation

# Plain integers: compiled code takes them as constants.
INSERT, DELETE, UPDATE = int(Operation.INSERT), int(Operation.DELETE), int(Operation.UPDATE)
_BLANK, _OPEN, _CLOSE, _COMMA, _POINT, _SEMICOLON, _DOUBLE = 32, 40, 41, 44, 46, 59, 34


def _word(text: bytes) -> int:
    return int(np.array(int.from_bytes(text, "little"), np.uint64).view(np.int64))


_INSERT_0, _INSERT_4 = _word(b"insert i"), _word(b"rt into ")
_UPDATE_0, _UPDATE_3 = _word(b"upda"), _word(b"ate ")
_DELETE_0, _DELETE_4 = _word(b"delete f"), _word(b"te from ")
_VALUES_0, _VALUES_2 = _word(b") values"), _word(b"values (")
_SET, _SET_END = _word(b" set"), _BLANK
_WHERE_0 = _word(b" whe")
_WHERE_3 = _word(b"ere ")
_AND_0 = _word(b" and")
_IS_NULL = _word(b" IS NULL")
_ROWID_0, _ROWID_4 = _word(b"ROWI"), _word(b"D = ")

# The memo: what the statement before looked like, as int64 words.
MEMO_HEADER, MEMO_HEADER_LENGTH, MEMO_COUNT, MEMO_ORDER = 0, 1, 2, 3
"""Address, length and number of columns of the last INSERT's header; then its columns, and after
them those of WHERE and SET."""


@inner
def scan_rows(
    data: int,
    tail: int,
    tail_row: int,
    offsets: int,
    first: int,
    last: int,
    table: int,
    columns: int,
    names: int,
    table_name: int,
    table_name_length: int,
    memo: int,
    operations: int,
) -> None:
    """Read the rows from ``first`` to before ``last``; write ``operations`` (int8, 0 for rows left
    to the plain form), entries and states.

    Args:
        data: Address of the statements' bytes.
        tail: Address of a copy of the rows from ``tail_row`` on, with readable bytes behind it.
        offsets: Address of int64 offsets, one more than rows.
        table: Address of the table's fields, ``columns`` captured ones of ``names``.
        memo: Address of ``MEMO_ORDER + 3 * names`` words; the first three are 0.
    """
    for row in range(first, last):
        start = load64(offsets + row * 8)
        length = load64(offsets + row * 8 + 8) - start
        at = data + start
        if row >= tail_row:
            at = tail + start - load64(offsets + tail_row * 8)
        limit = at + length
        operation = 0
        end = -1
        if length > 12:
            if load64(at) == _INSERT_0 and load64(at + 4) == _INSERT_4:
                operation = INSERT
                end = _scan_insert(
                    at, limit, row, table, names, table_name, table_name_length, memo
                )
            elif load32(at) == _UPDATE_0 and load32(at + 3) == _UPDATE_3:
                operation = UPDATE
                end = _scan_update(
                    at + 7, limit, row, table, names, table_name, table_name_length, memo
                )
            elif load64(at) == _DELETE_0 and load64(at + 4) == _DELETE_4:
                operation = DELETE
                end = _scan_delete(
                    at + 12, limit, row, table, names, table_name, table_name_length, memo
                )
        if end >= 0 and end < limit and load8(end) == _SEMICOLON:
            end += 1
        if end != limit:
            if operation != 0:
                forget(row, table, columns, operation)
            operation = 0
        store8(operations + row, operation)


@inner
def forget(row: int, table: int, columns: int, operation: int) -> None:
    """Undo a row that was read in part."""
    for column in range(columns):
        if operation != INSERT:
            store8(field(table, column, STATES + BEFORE) + row, ABSENT)
        if operation != DELETE:
            store8(field(table, column, STATES + AFTER) + row, ABSENT)


@inner
def _read_value(at: int, limit: int, row: int, table: int, column: int, side: int) -> int:
    kind = field(table, column, KIND)
    if kind == SKIPPED:
        return skip_literal(at, limit)
    state = field(table, column, STATES + side) + row
    if load8(state) != ABSENT:
        return -1
    into = field(table, column, ENTRIES + side) + row * field(table, column, STRIDE)
    return read_literal(
        at,
        limit,
        kind,
        field(table, column, PRECISION),
        field(table, column, SCALE),
        into,
        state,
    )


@inner
def _scan_insert(
    at: int, limit: int, row: int, table: int, names: int, name: int, name_length: int, memo: int
) -> int:
    header_length = load64(memo + MEMO_HEADER_LENGTH * 8)
    is_known = (
        header_length > 0
        and header_length < limit - at
        and is_same(at, load64(memo + MEMO_HEADER * 8), header_length)
    )
    if not is_known:
        header_length = _read_header(at, limit, table, names, name, name_length, memo)
        if header_length < 0:
            return -1
    at += header_length
    order = memo + MEMO_ORDER * 8
    count = load64(memo + MEMO_COUNT * 8)
    for place in range(count):
        at = _read_value(at, limit, row, table, load64(order + place * 8), AFTER)
        if at < 0 or at >= limit:
            return -1
        if load8(at) != (_COMMA if place + 1 < count else _CLOSE):
            return -1
        at += 1
    return at


@inner
def _read_header(
    at: int, limit: int, table: int, names: int, name: int, name_length: int, memo: int
) -> int:
    """Read an INSERT up to its first value, remember it, and return its length, or -1."""
    start = at
    store64(memo + MEMO_HEADER_LENGTH * 8, 0)
    at += 12
    if not is_same(at, name, name_length):
        return -1
    at += name_length
    if load8(at) == _BLANK:
        at += 1
    separator = _OPEN
    count = 0
    while load8(at) == separator and at < limit:
        at += 1
        column = find_column(table, names, at, count)
        if column < 0 or count == names:
            return -1
        store64(memo + (MEMO_ORDER + count) * 8, column)
        count += 1
        at += field(table, column, NAME_LENGTH)
        separator = _COMMA
    if count == 0 or load64(at) != _VALUES_0 or load64(at + 2) != _VALUES_2:
        return -1
    at += 10
    if at >= limit:
        return -1
    store64(memo + MEMO_HEADER * 8, start)
    store64(memo + MEMO_HEADER_LENGTH * 8, at - start)
    store64(memo + MEMO_COUNT * 8, count)
    return at - start


@inner
def _skip_alias(at: int, limit: int) -> int:
    """Length of an alias that stands here behind a blank (0 without one), or -1 for the plain
    form."""
    if at >= limit or load8(at) != _BLANK or load32(at) == _SET or load32(at) == _WHERE_0:
        return 0
    length = 0
    while at + 1 + length < limit and load8(at + 1 + length) != _BLANK:
        byte = load8(at + 1 + length)
        if not (65 <= byte <= 90 or 97 <= byte <= 122):
            return -1
        length += 1
    return length if length > 0 else -1


@inner
def _scan_update(
    at: int, limit: int, row: int, table: int, names: int, name: int, name_length: int, memo: int
) -> int:
    if not is_same(at, name, name_length):
        return -1
    at += name_length
    alias = at + 1
    alias_length = _skip_alias(at, limit)
    if alias_length < 0:
        return -1
    if alias_length > 0:
        at += alias_length + 1
    if load32(at) != _SET or load8(at + 4) != _SET_END:
        return -1
    at += 5
    order = memo + (MEMO_ORDER + 2 * names) * 8
    place = 0
    while True:
        if at >= limit or place == names:
            return -1
        at = _skip_prefix(at, alias, alias_length)
        if at < 0:
            return -1
        column = find_column(table, names, at, load64(order + place * 8))
        if column < 0:
            return -1
        store64(order + place * 8, column)
        place += 1
        at += field(table, column, NAME_LENGTH)
        if load8(at) != _BLANK or load8(at + 1) != 61 or load8(at + 2) != _BLANK:
            return -1
        at = _read_value(at + 3, limit, row, table, column, AFTER)
        if at < 0 or at > limit:
            return -1
        if at + 1 >= limit or load8(at) != _COMMA or load8(at + 1) != _BLANK:
            break
        at += 2
    return _scan_where(at, limit, row, table, names, alias, alias_length, memo)


@inner
def _scan_delete(
    at: int, limit: int, row: int, table: int, names: int, name: int, name_length: int, memo: int
) -> int:
    if not is_same(at, name, name_length):
        return -1
    at += name_length
    alias = at + 1
    alias_length = _skip_alias(at, limit)
    if alias_length < 0:
        return -1
    if alias_length > 0:
        at += alias_length + 1
    return _scan_where(at, limit, row, table, names, alias, alias_length, memo)


@inner
def _skip_prefix(at: int, alias: int, alias_length: int) -> int:
    """The address behind ``alias.`` if it stands here; -1 where neither it nor a name does."""
    if load8(at) == _DOUBLE or alias_length == 0:
        return at
    if is_same(at, alias, alias_length) and load8(at + alias_length) == _POINT:
        return at + alias_length + 1
    return at


@inner
def _scan_where(
    at: int, limit: int, row: int, table: int, names: int, alias: int, alias_length: int, memo: int
) -> int:
    if at + 7 >= limit or load32(at) != _WHERE_0 or load32(at + 3) != _WHERE_3:
        return at
    at += 7
    order = memo + (MEMO_ORDER + names) * 8
    place = 0
    while True:
        at = _skip_prefix(at, alias, alias_length)
        if load32(at) == _ROWID_0 and load32(at + 4) == _ROWID_4:
            return _skip_row_id(at + 8, limit)
        if place == names:
            return -1
        column = find_column(table, names, at, load64(order + place * 8))
        if column < 0:
            return -1
        store64(order + place * 8, column)
        place += 1
        at = _scan_predicate(at + field(table, column, NAME_LENGTH), limit, row, table, column)
        if at < 0 or at > limit:
            return -1
        if at + 5 >= limit or load32(at) != _AND_0 or load8(at + 4) != _BLANK:
            return at
        at += 5


@inner
def _skip_row_id(at: int, limit: int) -> int:
    if load8(at) != QUOTE:
        return -1
    end, _doubled = find_quote_end(at + 1, limit)
    return end + 1 if end >= 0 else -1


@inner
def _scan_predicate(at: int, limit: int, row: int, table: int, column: int) -> int:
    if load64(at) != _IS_NULL:
        if load8(at) != _BLANK or load8(at + 1) != 61 or load8(at + 2) != _BLANK:
            return -1
        return _read_value(at + 3, limit, row, table, column, BEFORE)
    if field(table, column, KIND) != SKIPPED:
        state = field(table, column, STATES + BEFORE) + row
        if load8(state) != ABSENT:
            return -1
        store8(state, NULL)
    return at + 8
