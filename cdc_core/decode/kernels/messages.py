"""What do OpenLogReplicator's messages of changed rows say, line by line?

A message that has all that a change needs, and nothing that is not known here, is taken; others are
left to the plain form: those of transactions, DDL and checkpoints too.
"""

from __future__ import annotations

import numpy as np

from cdc_core.decode.kernels.cache import entry, inner
from cdc_core.decode.kernels.json import (
    CLOSE,
    CLOSE_LIST,
    COLON,
    COMMA,
    NEWLINE,
    OPEN,
    OPEN_LIST,
    skip_nested,
    skip_string,
    skip_value,
)
from cdc_core.decode.kernels.memory import load8, load32, load64, store64
from cdc_core.decode.kernels.numbers import is_digit, read_int64
from cdc_core.decode.kernels.records import (
    AFTER_AT,
    BEFORE_AT,
    COMMIT_SCN,
    DATABASE,
    IS_BASE64,
    LINE,
    OPERATION,
    ROW_ID,
    ROW_ID_LENGTH,
    SCHEMA,
    SCN,
    THREAD,
    TIME,
    WORDS,
    XID,
    XID_LENGTH,
    find_shared,
    number_shared,
)
from cdc_core.decode.kernels.scan import DELETE, INSERT, UPDATE
from cdc_core.decode.kernels.table import NAME_LENGTH, field, find_column

NAMES = (
    "scn", "e_scn", "tm", "rth", "c_scn", "c_idx", "b_scn", "b_tm", "e_tm", "xid", "db", "usr", "payload",
    "op", "schema", "num", "rid", "before", "after", "offset",
)  # fmt: skip
"""Members of a message, and behind ``payload`` those of its one element."""
_NUMBERS = (SCN, COMMIT_SCN, TIME, THREAD)
_NUMBER_WORDS = np.array(_NUMBERS, np.int64)
_PLAIN_NUMBERS_END, _XID, _DB, _USR, _PAYLOAD = 9, 9, 10, 11, 12
_OP, _SCHEMA, _NUM, _RID, _BEFORE, _AFTER, _OFFSET = 13, 14, 15, 16, 17, 18, 19
_NULL = int.from_bytes(b"null", "little")
_LETTER_C, _LETTER_U, _LETTER_D = 99, 117, 100
_NEEDED = 1 << 0 | 1 << 1 | 1 << 2 | 1 << _XID | 1 << _PAYLOAD | 1 << _OP | 1 << _SCHEMA | 1 << _RID
_IS_HEX = np.zeros(256, np.uint8)
_IS_HEX[list(b"0123456789abcdef")] = 1


@entry
def scan_messages(
    data: int,
    limit: int,
    records: int,
    room: int,
    names: int,
    order: int,
    schemas: int,
    databases: int,
) -> int:
    """Read all lines; returns their number, -1 where there are more of them than there is room.

    Args:
        data: Address of whole lines, up to ``limit``, with readable bytes behind.
        records: Address of words for each line.
        names: Address of the fields of :data:`NAMES`.
        order: Address of as many words as names, one for each place of a member: which stood there.
        schemas: Address of words for the texts of tables' descriptions, as :func:`number_shared`
            has them.
        databases: The same of databases' names.
    """
    at = data
    count = 0
    while at < limit:
        if count == room:
            return -1
        record = records + count * WORDS * 8
        for word in range(WORDS):
            store64(record + word * 8, 0)
        store64(record + LINE * 8, at - data)
        store64(record + THREAD * 8, -1)
        store64(record + DATABASE * 8, -1)
        end = _read_message(at, limit, record, names, order, schemas, databases)
        if end < 0:
            store64(record + OPERATION * 8, 0)
            end = at
            while load8(end) != NEWLINE:
                end += 1
            end += 1
        at = end
        count += 1
    return count


@inner
def _read_message(
    at: int, limit: int, record: int, names: int, order: int, schemas: int, databases: int
) -> int:
    """The address of the line behind a message; -1 for the plain form."""
    if load8(at) != OPEN:
        return -1
    seen = 0
    place = 0
    is_inside = False
    while at < limit:
        at += 1
        guess = load64(order + place * 8)
        name = find_column(names, len(NAMES), at, guess)
        if name < 0 or seen & (1 << name) != 0 or (name > _PAYLOAD) != is_inside:
            return -1
        if name != guess:
            store64(order + place * 8, name)
        place += 1
        seen |= 1 << name
        at += field(names, name, NAME_LENGTH)
        if load8(at) != COLON:
            return -1
        at += 1
        if name == _PAYLOAD:
            if load8(at) != OPEN_LIST or load8(at + 1) != OPEN:
                return -1
            at += 1
            is_inside = True
            continue
        at = _read_member(at, limit, name, record, schemas, databases)
        if at < 0:
            return -1
        if is_inside and load8(at) == CLOSE:
            if load8(at + 1) != CLOSE_LIST:
                return -1
            at += 2
            is_inside = False
        if load8(at) == CLOSE and not is_inside:
            is_whole = load8(at + 1) == NEWLINE and seen & _NEEDED == _NEEDED
            return at + 2 if is_whole and _has_images(record) else -1
        if load8(at) != COMMA:
            return -1
    return -1


@inner
def _has_images(record: int) -> bool:
    """Has the change the images that its operation has?"""
    operation = load64(record + OPERATION * 8)
    has_before = load64(record + BEFORE_AT * 8) != 0
    has_after = load64(record + AFTER_AT * 8) != 0
    return has_before == (operation != INSERT) and has_after == (operation != DELETE)


@inner
def _read_member(at: int, limit: int, name: int, record: int, schemas: int, databases: int) -> int:
    if name < len(_NUMBERS):
        end = skip_value(at, limit)
        return end if is_digit(at) and read_int64(at, end, record + _NUMBER_WORDS[name] * 8) == end else -1  # fmt: skip
    if name < _PLAIN_NUMBERS_END or name in (_NUM, _OFFSET):
        return skip_value(at, limit) if is_digit(at) else -1
    if name in (_BEFORE, _AFTER):
        word = BEFORE_AT if name == _BEFORE else AFTER_AT
        if load32(at) == _NULL:
            return at + 4
        end = skip_nested(at, limit)
        store64(record + word * 8, at)
        store64(record + word * 8 + 8, end)
        return end
    if name == _SCHEMA:
        return _read_schema(at, limit, record, schemas)
    end = skip_string(at, limit)
    if end < 0 or name == _USR:
        return end
    if name == _XID:
        return end if _read_xid(at + 1, end - at - 2, record) else -1
    if name == _RID:
        return end if _read_row_id(at + 1, end - at - 2, record) else -1
    if name == _DB:
        number = number_shared(databases, at + 1, end - at - 2)
        store64(record + DATABASE * 8, number)
        return end if number >= 0 else -1
    return end if _read_operation(at + 1, end - at - 2, record) else -1


@inner
def _read_schema(at: int, limit: int, record: int, schemas: int) -> int:
    number = find_shared(schemas, at)
    if number < 0:
        end = skip_nested(at, limit)
        if end < 0 or load8(at) != OPEN:
            return -1
        number = number_shared(schemas, at, end - at)
    store64(record + SCHEMA * 8, number)
    return at + load64(schemas + 16 + number * 16 + 8) if number >= 0 else -1


@inner
def _read_operation(at: int, length: int, record: int) -> bool:
    letter = load8(at)
    operation = 0
    if letter == _LETTER_C:
        operation = INSERT
    elif letter == _LETTER_U:
        operation = UPDATE
    elif letter == _LETTER_D:
        operation = DELETE
    store64(record + OPERATION * 8, operation)
    return length == 1 and operation != 0


@inner
def _read_xid(at: int, length: int, record: int) -> bool:
    if length != XID_LENGTH:
        return False
    for place in range(XID_LENGTH):
        if _IS_HEX[load8(at + place)] == 0:
            return False
    store64(record + XID * 8, load64(at))
    store64(record + XID * 8 + 8, load64(at + 8))
    return True


@inner
def _read_row_id(at: int, length: int, record: int) -> bool:
    if length != ROW_ID_LENGTH:
        return False
    for place in range(ROW_ID_LENGTH):
        if IS_BASE64[load8(at + place)] == 0:
            return False
    store64(record + ROW_ID * 8, at)
    return True
