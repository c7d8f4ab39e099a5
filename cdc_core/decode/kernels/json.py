"""How are JSON's values passed over and read, as writers write them: without blanks between tokens?

Whatever is rarer - an escape, an exponent, a number with needless zeros - is left to the plain
form.
"""

from __future__ import annotations

from cdc_core.decode.kernels import times
from cdc_core.decode.kernels.cache import inner
from cdc_core.decode.kernels.memory import (
    json_marks16,
    load8,
    load32,
    store8,
    store64,
    trailing_zeros,
)
from cdc_core.decode.kernels.numbers import (
    is_digit,
    measure_canonical,
    read_decimal,
    read_int64,
)
from cdc_core.decode.kernels.table import (
    BLOB,
    CLOB,
    DATE,
    DECIMAL,
    FORM_AS_IS,
    FORM_REWRITTEN,
    INT64,
    NULL,
    NUMBER,
    PRESENT,
    RAW,
    TEXT,
    TIMESTAMP,
    TIMESTAMP_TEXT,
    TOKEN,
)
from cdc_core.decode.kernels.text import measure_hex

QUOTE, BACKSLASH, COMMA, COLON, NEWLINE = 34, 92, 44, 58, 10
OPEN, CLOSE, OPEN_LIST, CLOSE_LIST = 123, 125, 91, 93
_MINUS, _POINT, _ZERO, _LETTER_N, _LETTER_T, _LETTER_Z = 45, 46, 48, 110, 84, 90
_NULL = int.from_bytes(b"null", "little")
_MICROSECOND = 1000


@inner
def find_string_end(at: int, limit: int) -> tuple[int, bool]:
    """``(address of the closing quote, is there an escape before it)`` of a string from behind its
    opening quote; the address is -1 where it does not end, or has a control character."""
    has_escape = False
    while at < limit:
        marks = json_marks16(at)
        if marks == 0:
            at += 16
            continue
        at += trailing_zeros(marks)
        if at >= limit:
            break
        byte = load8(at)
        if byte == QUOTE:
            return at, has_escape
        if byte != BACKSLASH:
            break
        has_escape = True
        at += 2
    return -1, False


@inner
def skip_string(at: int, limit: int) -> int:
    """The address behind a string without escapes; -1 for the plain form."""
    if load8(at) != QUOTE:
        return -1
    end, has_escape = find_string_end(at + 1, limit)
    return -1 if end < 0 or has_escape else end + 1


@inner
def skip_number(at: int, limit: int) -> int:
    """The address behind a number without an exponent."""
    if load8(at) == _MINUS:
        at += 1
    if not is_digit(at) or (load8(at) == _ZERO and is_digit(at + 1)):
        return -1
    while at < limit and is_digit(at):
        at += 1
    if load8(at) == _POINT:
        at += 1
        if not is_digit(at):
            return -1
        while at < limit and is_digit(at):
            at += 1
    return at


@inner
def skip_value(at: int, limit: int) -> int:
    """The address behind a string, a number or null."""
    byte = load8(at)
    if byte == QUOTE:
        return skip_string(at, limit)
    if byte == _LETTER_N:
        return at + 4 if load32(at) == _NULL else -1
    return skip_number(at, limit)


@inner
def skip_nested(at: int, limit: int) -> int:
    """The address behind an object or a list, in which strings may have escapes."""
    depth = 0
    while at < limit:
        byte = load8(at)
        if byte == QUOTE:
            end, _ = find_string_end(at + 1, limit)
            if end < 0:
                return -1
            at = end + 1
            continue
        if byte < 32:
            return -1
        at += 1
        if byte in (OPEN, OPEN_LIST):
            depth += 1
        elif byte in (CLOSE, CLOSE_LIST):
            depth -= 1
            if depth == 0:
                return at
    return -1


@inner
def read_value(
    at: int, limit: int, kind: int, precision: int, scale: int, entry: int, state: int
) -> int:
    """Read a value for a captured column; write its entry and state.

    Returns the address behind it, or -1 where the plain form must decide.
    """
    first = load8(at)
    if first == _LETTER_N:
        if load32(at) != _NULL:
            return -1
        store8(state, NULL)
        return at + 4
    store8(state, PRESENT)
    if kind == TOKEN:
        end = skip_value(at, limit)
        store64(entry, at * 4 + FORM_AS_IS)
        store64(entry + 8, end - at)
        return end
    if kind in (INT64, DECIMAL, NUMBER):
        return _read_number(at, limit, kind, precision, scale, entry)
    if first != QUOTE:
        return -1
    at += 1
    if kind in (TEXT, CLOB):
        end, has_escape = find_string_end(at, limit)
        store64(entry, at * 4 + FORM_AS_IS)
        store64(entry + 8, end - at)
        return -1 if end < 0 or has_escape else end + 1
    if kind in (TIMESTAMP, DATE, TIMESTAMP_TEXT):
        return _read_moment(at, limit, kind, entry)
    if kind in (RAW, BLOB):
        end, length = measure_hex(at, limit, QUOTE)
        store64(entry, at * 4 + FORM_REWRITTEN)
        store64(entry + 8, length)
        return -1 if end < 0 else end + 1
    return -1


@inner
def _read_number(at: int, limit: int, kind: int, precision: int, scale: int, entry: int) -> int:
    end = skip_number(at, limit)
    if end < 0:
        return -1
    if kind == INT64:
        behind = read_int64(at, end, entry)
    elif kind == DECIMAL:
        behind = read_decimal(at, end, entry, precision, scale)
    else:
        behind, source, length, is_canonical = measure_canonical(at, end)
        store64(entry, source * 4 + (FORM_AS_IS if is_canonical else FORM_REWRITTEN))
        store64(entry + 8, length)
    return end if behind == end else -1


@inner
def _read_moment(at: int, limit: int, kind: int, entry: int) -> int:
    """Date and time as ISO 8601 has them, with a T between or a blank, and with a Z behind or
    not."""
    source = at
    seconds = times.read_seconds(at, load8(at + 10) == _LETTER_T)
    if seconds == -(2**63):
        return -1
    at, nanoseconds = times.read_fraction(at + times.LENGTH, limit)
    if at < 0 or load8(at - 1) == _POINT:
        return -1
    if kind == TIMESTAMP_TEXT:
        store64(entry, source * 4 + FORM_REWRITTEN)
        store64(entry + 8, times.LENGTH + 10)
    else:
        if nanoseconds % _MICROSECOND != 0:
            return -1
        store64(entry, seconds * 1_000_000 + nanoseconds // _MICROSECOND)
    if load8(at) == _LETTER_Z:
        at += 1
    return at + 1 if load8(at) == QUOTE else -1
