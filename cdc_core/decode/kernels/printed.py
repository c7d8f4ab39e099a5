"""How are times with zone and intervals read from their literals, and written as ``decode.printed``
has them?"""

from __future__ import annotations

import numpy as np

from cdc_core.decode.kernels import times
from cdc_core.decode.kernels.cache import inner
from cdc_core.decode.kernels.memory import copy_bytes, load8, load64, store8, store64
from cdc_core.decode.kernels.table import FORM_REWRITTEN, INTERVAL_DS, INTERVAL_YM

ZONED_LENGTH = times.LENGTH + 10 + 7
"""Characters of the text: seconds, nine fractional digits, offset."""

_BLANK, _PLUS, _MINUS, _POINT, _ZERO, _COLON, _QUOTE, _OPEN, _CLOSE = (
    32,
    43,
    45,
    46,
    48,
    58,
    39,
    40,
    41,
)
_DIGITS_MAX = 9


def _word(text: bytes) -> int:
    return int(np.array(int.from_bytes(text, "little"), np.uint64).view(np.int64))


_TO_TIMES, _STAMP_TZ = _word(b"TO_TIMES"), _word(b"TAMP_TZ(")
_TO_YMINT, _TO_DSINT, _INTERVAL = _word(b"TO_YMINT"), _word(b"TO_DSINT"), _word(b"INTERVAL")
_UTC = b" +00:00"


@inner
def read_zoned(at: int, limit: int, entry: int) -> int:
    """Read ``TO_TIMESTAMP_TZ('…')``; returns the address behind it, or -1 where the plain form must
    decide."""
    if load64(at) != _TO_TIMES or load64(at + 8) != _STAMP_TZ or load8(at + 16) != _QUOTE:
        return -1
    at += 17
    if load8(at) == _BLANK:
        at += 1
    source = at
    if times.read_seconds(at, False) == -(2**63):
        return -1
    at, _nanoseconds = times.read_fraction(at + times.LENGTH, limit)
    if at < 0:
        return -1
    if load8(at) == _BLANK:
        at = _offset_end(at + 1)
        if at < 0:
            return -1
    store64(entry, source * 4 + FORM_REWRITTEN)
    store64(entry + 8, ZONED_LENGTH)
    return at + 2 if load8(at) == _QUOTE and load8(at + 1) == _CLOSE else -1


@inner
def _offset_end(at: int) -> int:
    """The address behind ``+02:00``; -1 for anything else."""
    if load8(at) != _PLUS and load8(at) != _MINUS:
        return -1
    if _two_digits(at + 1) < 0 or load8(at + 3) != _COLON or _two_digits(at + 4) < 0:
        return -1
    return at + 6


@inner
def _two_digits(at: int) -> int:
    """Their number; -1 where there are others."""
    tens, ones = load8(at) - _ZERO, load8(at + 1) - _ZERO
    if tens < 0 or tens > 9 or ones < 0 or ones > 9:
        return -1
    return tens * 10 + ones


@inner
def write_zoned(source: int, target: int) -> None:
    """Write what :func:`read_zoned` read."""
    times.write_text(source, target)
    at = source + times.LENGTH
    if load8(at) == _POINT:
        at += 1
        while _is_digit(load8(at)):
            at += 1
    if load8(at) == _BLANK:
        copy_bytes(target + times.LENGTH + 10, at, 7)
    else:
        for place in range(7):
            store8(target + times.LENGTH + 10 + place, _UTC[place])


@inner
def read_interval(at: int, limit: int, kind: int, entry: int) -> int:
    """Read ``TO_YMINTERVAL('…')`` or ``TO_DSINTERVAL('…')``, by the kind; as :func:`read_zoned`."""
    function = _TO_YMINT if kind == INTERVAL_YM else _TO_DSINT
    if load64(at) != function or load64(at + 5) != _INTERVAL:
        return -1
    if load8(at + 13) != _OPEN or load8(at + 14) != _QUOTE:
        return -1
    at += 15
    source = at
    is_negative = load8(at) == _MINUS
    if is_negative or load8(at) == _PLUS:
        at += 1
    start = at
    while load8(at) == _ZERO:
        at += 1
    first = at
    while _is_digit(load8(at)):
        at += 1
    if at == start or at - start > _DIGITS_MAX:
        return -1
    length = max(at - first, 1) + (1 if is_negative else 0)
    if kind == INTERVAL_YM:
        if load8(at) != _MINUS or _two_digits(at + 1) < 0:
            return -1
        at += 3
        length += 3
    else:
        at = _time_end(at, limit)
        if at < 0:
            return -1
        length += 19
    store64(entry, source * 4 + FORM_REWRITTEN)
    store64(entry + 8, length)
    return at + 2 if load8(at) == _QUOTE and load8(at + 1) == _CLOSE else -1


@inner
def _time_end(at: int, limit: int) -> int:
    """The address behind `` 04:03:02`` and a fraction; -1 for anything else."""
    if load8(at) != _BLANK or load8(at + 3) != _COLON or load8(at + 6) != _COLON:
        return -1
    if _two_digits(at + 1) < 0 or _two_digits(at + 4) < 0 or _two_digits(at + 7) < 0:
        return -1
    end, _nanoseconds = times.read_fraction(at + 9, limit)
    return end


@inner
def write_interval(source: int, kind: int, target: int) -> None:
    """Write what :func:`read_interval` read."""
    at = source
    if load8(at) == _MINUS:
        store8(target, _MINUS)
        target += 1
    if load8(at) == _MINUS or load8(at) == _PLUS:
        at += 1
    while load8(at) == _ZERO and _is_digit(load8(at + 1)):
        at += 1
    while _is_digit(load8(at)):
        store8(target, load8(at))
        target += 1
        at += 1
    if kind == INTERVAL_DS:
        copy_bytes(target, at, 9)
        _write_fraction(at + 9, target + 9)
    else:
        copy_bytes(target, at, 3)


@inner
def _write_fraction(at: int, target: int) -> None:
    """A point and nine digits, of what stands there."""
    store8(target, _POINT)
    if load8(at) == _POINT:
        at += 1
    for place in range(1, 10):
        byte = load8(at)
        if _is_digit(byte):
            store8(target + place, byte)
            at += 1
        else:
            store8(target + place, _ZERO)


@inner
def _is_digit(byte: int) -> bool:
    return _ZERO <= byte <= _ZERO + 9
