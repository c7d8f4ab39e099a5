"""How is ``YYYY-MM-DD HH24:MI:SS`` read into microseconds since 1970, and what may follow it?

Source: proleptic Gregorian calendar, as Arrow and Spark count it; Oracle's own days before 1582
keep their labels.
"""

from __future__ import annotations

from datetime import date

import numpy as np

from cdc_core.decode.kernels.cache import inner
from cdc_core.decode.kernels.memory import copy16, load8, load64, store8

LENGTH = 19
"""Characters of the text without a fraction."""

_ZERO, _POINT, _COLON, _BLANK = 48, 46, 58, 32
_YEAR_MAX = 9999


def _eight(text: bytes) -> int:
    return int.from_bytes(text, "little")


def _year_days() -> np.ndarray:
    """Days from 1970-01-01 to 1 January of each year up to 10000; the row of year 0 is not used."""
    epoch = date(1970, 1, 1).toordinal()
    days = [0, *(date(year, 1, 1).toordinal() - epoch for year in range(1, _YEAR_MAX + 1))]
    return np.array([*days, date(_YEAR_MAX, 12, 31).toordinal() + 1 - epoch], np.int64)


_LENGTHS = ((31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31),)
_YEAR_DAYS = _year_days()
_MONTH_LENGTH = np.zeros(32, np.int64)
_MONTH_DAYS = np.zeros(32, np.int64)
for _leap in (0, 1):
    for _month in range(1, 13):
        _MONTH_LENGTH[16 * _leap + _month] = _LENGTHS[0][_month - 1] + (_leap and _month == 2)
        _MONTH_DAYS[16 * _leap + _month] = _MONTH_LENGTH[16 * _leap : 16 * _leap + _month].sum()

# A digit XOR '0' is 0 to 9; a separator XOR itself is 0. Adding 0x76 carries into the top bit from
# 10 on.
_DATE_SHAPE = _eight(b"0000-00-")
_TIME_SHAPE, _LETTER_SHAPE = _eight(b"00 00:00"), _eight(b"00T00:00")
_CARRY = _eight(b"\x76" * 8)
_TOP_BITS = int(np.array(_eight(b"\x80" * 8), np.uint64).view(np.int64))
_DATE_SEPARATORS = int(np.array(_eight(b"\0\0\0\0\xff\0\0\xff"), np.uint64).view(np.int64))
_TIME_SEPARATORS = _eight(b"\0\0\xff\0\0\xff\0\0")


@inner
def read_seconds(at: int, has_letter: bool) -> int:
    """Seconds since 1970 of the 19 characters at an address, with a T before the time or, without
    that letter, a blank; the least int64 where they are no moment of years 1 to 9999."""
    refused = -(2**63)
    first = load64(at) ^ _DATE_SHAPE
    second = load64(at + 8) ^ (_LETTER_SHAPE if has_letter else _TIME_SHAPE)
    colon = load8(at + 16) - _COLON
    tens = load8(at + 17) - _ZERO
    ones = load8(at + 18) - _ZERO
    bad = ((first + _CARRY) | first | (second + _CARRY) | second) & _TOP_BITS
    bad |= (first & _DATE_SEPARATORS) | (second & _TIME_SEPARATORS) | colon
    if bad != 0 or tens < 0 or tens > 5 or ones < 0 or ones > 9:
        return refused
    year = (
        (first & 15) * 1000
        + ((first >> 8) & 15) * 100
        + ((first >> 16) & 15) * 10
        + ((first >> 24) & 15)
    )
    month = ((first >> 40) & 15) * 10 + ((first >> 48) & 15)
    day = (second & 15) * 10 + ((second >> 8) & 15)
    hour = ((second >> 24) & 15) * 10 + ((second >> 32) & 15)
    minute = ((second >> 48) & 15) * 10 + ((second >> 56) & 15)
    if year < 1 or month < 1 or month > 12 or hour > 23 or minute > 59:
        return refused
    start = _YEAR_DAYS[year]
    row = 16 * (_YEAR_DAYS[year + 1] - start - 365) + month
    if day < 1 or day > _MONTH_LENGTH[row]:
        return refused
    days = start + _MONTH_DAYS[row] + day - 1
    seconds: int = days * 86400 + hour * 3600 + minute * 60 + tens * 10 + ones
    return seconds


@inner
def read_fraction(at: int, limit: int) -> tuple[int, int]:
    """``(end, nanoseconds)`` of an optional fraction of a second; end is -1 for more than nine
    digits."""
    if load8(at) != _POINT:
        return at, 0
    at += 1
    digits = 0
    nanoseconds = 0
    while at < limit:
        digit = load8(at) - _ZERO
        if digit < 0 or digit > 9:
            break
        nanoseconds = nanoseconds * 10 + digit
        digits += 1
        if digits > 9:
            return -1, 0
        at += 1
    while digits < 9:
        nanoseconds *= 10
        digits += 1
    return at, nanoseconds


@inner
def write_text(at: int, target: int) -> None:
    """Write the 29 characters with nine fractional digits; the text was read by the functions
    above."""
    copy16(target, at)
    copy16(target + 3, at + 3)
    store8(target + 10, _BLANK)
    store8(target + 19, _POINT)
    at += 19
    if load8(at) == _POINT:
        at += 1
    for place in range(20, 29):
        byte = load8(at)
        if _ZERO <= byte <= _ZERO + 9:
            store8(target + place, byte)
            at += 1
        else:
            store8(target + place, _ZERO)
