"""Where does one literal end, and what is its value in its column?"""

from __future__ import annotations

import numpy as np

from cdc_core.decode.kernels import printed, times
from cdc_core.decode.kernels.cache import inner
from cdc_core.decode.kernels.memory import load8, load32, load64, store8, store64
from cdc_core.decode.kernels.numbers import (
    measure_canonical,
    read_decimal,
    read_float,
    read_int64,
)
from cdc_core.decode.kernels.table import (
    BLOB,
    CLOB,
    DATE,
    DECIMAL,
    FLOAT32,
    FLOAT64,
    FORM_AS_IS,
    FORM_DOUBLED,
    FORM_PARTS,
    FORM_REWRITTEN,
    INT64,
    INTERVAL_DS,
    INTERVAL_YM,
    NULL,
    NUMBER,
    PRESENT,
    RAW,
    TEXT,
    TIMESTAMP,
    TIMESTAMP_TEXT,
    ZONED,
)
from cdc_core.decode.kernels.text import (
    QUOTE,
    find_join,
    find_quote_end,
    measure_hex,
    measure_text,
)


def _words(text: bytes) -> tuple[int, ...]:
    return tuple(
        int(np.array(int.from_bytes(text[at : at + 8], "little"), np.uint64).view(np.int64))
        for at in range(0, len(text) - 7)
    )


_NULL = int.from_bytes(b"NULL", "little")
_EMPTY_CLOB = _words(b"EMPTY_CLOB()")
_EMPTY_CLOB_0, _EMPTY_CLOB_4 = _EMPTY_CLOB[0], _EMPTY_CLOB[4]
_EMPTY_BLOB = _words(b"EMPTY_BLOB()")
_EMPTY_BLOB_0, _EMPTY_BLOB_4 = _EMPTY_BLOB[0], _EMPTY_BLOB[4]
_HEXTORAW = _words(b"HEXTORAW")[0]
_TO_DATE = _words(b"TO_DATE(")[0]
_TO_TIMESTAMP = _words(b"TO_TIMESTAMP('")
_TO_TIMESTAMP_0, _TO_TIMESTAMP_6 = _TO_TIMESTAMP[0], _TO_TIMESTAMP[6]
_MASK = _words(b"'YYYY-MM-DD HH24:MI:SS')")
_MASK_0, _MASK_8, _MASK_16, _MASK_LENGTH = _MASK[0], _MASK[8], _MASK[16], 24
_MASK_1, _MASK_9 = _MASK[1], _MASK[9]
_UNSUPPORTED = _words(b"Unsupported Type")
_UNSUPPORTED_0, _UNSUPPORTED_8 = _UNSUPPORTED[0], _UNSUPPORTED[8]
_OPEN, _CLOSE, _COMMA, _BLANK, _LETTER_N, _LETTER_S, _LETTER_U = 40, 41, 44, 32, 78, 83, 85
_MICROSECOND = 1000


@inner
def read_literal(
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
    if kind in (TEXT, CLOB):
        return _read_text(at, limit, kind, entry, state)
    if kind in (TIMESTAMP, DATE, TIMESTAMP_TEXT):
        at = _read_moment(at, limit, kind, entry)
    elif kind in (RAW, BLOB):
        return _read_raw(at, limit, kind, entry, state)
    elif kind == ZONED:
        at = printed.read_zoned(at, limit, entry)
    elif kind in (INTERVAL_YM, INTERVAL_DS):
        at = printed.read_interval(at, limit, kind, entry)
    else:
        is_quoted = first == QUOTE
        at = _read_number(at + 1 if is_quoted else at, limit, kind, precision, scale, entry)
        if is_quoted and at >= 0:
            at = at + 1 if load8(at) == QUOTE else -1
    store8(state, PRESENT)
    return at


@inner
def _read_number(at: int, limit: int, kind: int, precision: int, scale: int, entry: int) -> int:
    if kind == INT64:
        return read_int64(at, limit, entry)
    if kind == DECIMAL:
        return read_decimal(at, limit, entry, precision, scale)
    if kind == NUMBER:
        end, source, length, is_canonical = measure_canonical(at, limit)
        store64(entry, source * 4 + (FORM_AS_IS if is_canonical else FORM_REWRITTEN))
        store64(entry + 8, length)
        return end
    if kind == FLOAT64:
        return read_float(at, limit, entry, True)
    if kind == FLOAT32:
        return read_float(at, limit, entry, False)
    return -1


@inner
def _read_text(at: int, limit: int, kind: int, entry: int, state: int) -> int:
    form = FORM_PARTS
    if load8(at) == QUOTE:
        end, doubled = find_quote_end(at + 1, limit)
        if end < 0:
            return -1
        form = FORM_DOUBLED if doubled > 0 else FORM_AS_IS
        source = at + 1
        length = end - source - doubled
        end += 1
        # Only where a concatenation goes on is the literal read again as parts.
        if find_join(end, limit) >= 0:
            form = FORM_PARTS
    elif kind == CLOB and load64(at) == _EMPTY_CLOB_0 and load64(at + 4) == _EMPTY_CLOB_4:
        store64(entry, at * 4)
        store64(entry + 8, 0)
        store8(state, PRESENT)
        return at + 12
    if form == FORM_PARTS:
        source = at
        end, length = measure_text(at, limit)
        if end < 0:
            return -1
    store64(entry, source * 4 + form)
    store64(entry + 8, length)
    store8(state, PRESENT if length > 0 else NULL)
    return end


@inner
def _read_raw(at: int, limit: int, kind: int, entry: int, state: int) -> int:
    if kind == BLOB and load64(at) == _EMPTY_BLOB_0 and load64(at + 4) == _EMPTY_BLOB_4:
        store64(entry, at * 4)
        store64(entry + 8, 0)
        store8(state, PRESENT)
        return at + 12
    if load64(at) != _HEXTORAW or load8(at + 8) != _OPEN or load8(at + 9) != QUOTE:
        return -1
    end, length = measure_hex(at + 10, limit, QUOTE)
    if end < 0 or load8(end + 1) != _CLOSE:
        return -1
    store64(entry, (at + 10) * 4 + FORM_REWRITTEN)
    store64(entry + 8, length)
    store8(state, PRESENT if length > 0 else NULL)
    return end + 2


@inner
def _read_moment(at: int, limit: int, kind: int, entry: int) -> int:
    is_date = load64(at) == _TO_DATE and load8(at + 8) == QUOTE
    if is_date:
        at += 9
    elif load64(at) == _TO_TIMESTAMP_0 and load64(at + 6) == _TO_TIMESTAMP_6 and kind != DATE:
        at += 14
    else:
        return -1
    is_signed = load8(at) == _BLANK
    if is_signed:
        at += 1
    source = at
    seconds = times.read_seconds(at, False)
    if seconds == -(2**63):
        return -1
    at += times.LENGTH
    nanoseconds = 0
    if not is_date:
        at, nanoseconds = times.read_fraction(at, limit)
        if at < 0:
            return -1
    if kind == TIMESTAMP_TEXT:
        store64(entry, source * 4 + FORM_REWRITTEN)
        store64(entry + 8, times.LENGTH + 10)
    else:
        if nanoseconds % _MICROSECOND != 0:
            return -1
        store64(entry, seconds * 1_000_000 + nanoseconds // _MICROSECOND)
    if load8(at) != QUOTE:
        return -1
    at += 1
    return _skip_mask(at, is_signed) if is_date else (at + 1 if load8(at) == _CLOSE else -1)


@inner
def _skip_mask(at: int, is_signed: bool) -> int:
    """Only a mask with a sign, SYYYY, leaves a place for one."""
    if load8(at) != _COMMA:
        return -1
    at += 2 if load8(at + 1) == _BLANK else 1
    if load8(at) == QUOTE and load8(at + 1) == _LETTER_S:
        if load64(at + 2) != _MASK_1 or load64(at + 10) != _MASK_9 or load64(at + 17) != _MASK_16:
            return -1
        return at + _MASK_LENGTH + 1
    if is_signed:
        return -1
    if load64(at) != _MASK_0 or load64(at + 8) != _MASK_8 or load64(at + 16) != _MASK_16:
        return -1
    return at + _MASK_LENGTH


@inner
def skip_literal(at: int, limit: int) -> int:
    """The address behind a value of a column that is not captured, whatever it is; -1 where the
    plain form must decide."""
    if load8(at) == _LETTER_N and load32(at) == _NULL:
        return at + 4
    if load8(at) == _LETTER_U and load64(at) == _UNSUPPORTED_0 and load64(at + 8) == _UNSUPPORTED_8:
        return at + 16
    while True:
        at = _skip_string(at, limit) if load8(at) == QUOTE else _skip_call(at, limit)
        if at < 0:
            return -1
        behind = find_join(at, limit)
        if behind < 0:
            return at
        at = behind


@inner
def _skip_string(at: int, limit: int) -> int:
    end, _doubled = find_quote_end(at + 1, limit)
    return end + 1 if end >= 0 else -1


@inner
def _skip_call(at: int, limit: int) -> int:
    start = at
    while at < limit and _is_name_byte(load8(at)):
        at += 1
    if at == start or at >= limit or load8(at) != _OPEN or 48 <= load8(start) <= 57:
        return -1
    depth = 0
    while at < limit:
        byte = load8(at)
        if byte == QUOTE:
            at = _skip_string(at, limit)
            if at < 0:
                return -1
            continue
        at += 1
        if byte == _OPEN:
            depth += 1
        elif byte == _CLOSE:
            depth -= 1
            if depth == 0:
                return at
    return -1


@inner
def _is_name_byte(byte: int) -> bool:
    return 65 <= byte <= 90 or 97 <= byte <= 122 or 48 <= byte <= 57 or byte == 95
