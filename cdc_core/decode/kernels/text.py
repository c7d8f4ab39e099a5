r"""How are quoted text, ``UNISTR('...')``, concatenations and ``HEXTORAW('...')`` measured and
written?

Measuring comes first, so that a column's bytes are written once into memory of the right size. What
is written was measured, so writers check nothing.
"""

from __future__ import annotations

import numpy as np

from cdc_core.decode.kernels.cache import inner
from cdc_core.decode.kernels.memory import (
    copy16,
    load8,
    load32,
    load64,
    quotes16,
    store8,
    trailing_zeros,
)

QUOTE = 39
_BACKSLASH, _BLANK, _BAR = 92, 32, 124
_SURROGATES = 0xD800
"""Code units below stand for a character each."""
_UNISTR = int.from_bytes(b"UNISTR('", "little")

_HEX = np.full(256, -1, np.int64)
for _digit in b"0123456789abcdefABCDEF":
    _HEX[_digit] = int(chr(_digit), 16)


@inner
def find_quote_end(at: int, limit: int) -> tuple[int, int]:
    """``(address of the closing quote, number of doubled quotes before it)``; the address is -1
    where there is none."""
    doubled = 0
    while at < limit:
        quotes = quotes16(at)
        if quotes == 0:
            at += 16
            continue
        at += trailing_zeros(quotes)
        if at >= limit:
            break
        if at + 1 >= limit or load8(at + 1) != QUOTE:
            return at, doubled
        doubled += 1
        at += 2
    return -1, 0


@inner
def write_undoubled(at: int, length: int, target: int) -> None:
    """Write ``length`` bytes of quoted text with doubled quotes undone; writes up to 15 bytes
    more."""
    end = target + length
    while target < end:
        quotes = quotes16(at)
        copy16(target, at)
        if quotes == 0:
            at += 16
            target += 16
        else:
            step = trailing_zeros(quotes)
            at += step + 2
            target += step + 1


@inner
def find_join(at: int, limit: int) -> int:
    """Where the part behind ``||`` begins, if that stands here with at most one blank on each side;
    else -1."""
    if at < limit and load8(at) == _BLANK:
        at += 1
    if at + 2 >= limit or load8(at) != _BAR or load8(at + 1) != _BAR:
        return -1
    at += 2
    return at + 1 if load8(at) == _BLANK else at


@inner
def measure_text(at: int, limit: int) -> tuple[int, int]:
    """``(end, bytes of UTF-8)`` of parts joined by ``||``; end is -1 for the plain form."""
    total = 0
    while True:
        if load8(at) == QUOTE:
            end, doubled = find_quote_end(at + 1, limit)
            if end < 0:
                return -1, 0
            total += end - at - 1 - doubled
            at = end + 1
        elif load64(at) == _UNISTR:
            at, length = _measure_unistr(at + 8, limit)
            if at < 0:
                return -1, 0
            total += length
        else:
            return -1, 0
        if at > limit:
            return -1, 0
        behind = find_join(at, limit)
        if behind < 0:
            return at, total
        at = behind


@inner
def write_text(at: int, length: int, target: int) -> None:
    """Write what :func:`measure_text` measured."""
    end = target + length
    while target < end:
        at, target = (
            _write_quoted(at + 1, target) if load8(at) == QUOTE else _write_unistr(at + 8, target)
        )
        while load8(at) == _BLANK or load8(at) == _BAR:
            at += 1


@inner
def _write_quoted(at: int, target: int) -> tuple[int, int]:
    while True:
        byte = load8(at)
        if byte == QUOTE:
            at += 1
            if load8(at) != QUOTE:
                return at, target
        store8(target, byte)
        at += 1
        target += 1


@inner
def _read_unit(at: int) -> int:
    """The code unit of four hex digits, or a negative number."""
    first, second = _HEX[load8(at)], _HEX[load8(at + 1)]
    third, fourth = _HEX[load8(at + 2)], _HEX[load8(at + 3)]
    if (first | second | third | fourth) < 0:
        return -1
    unit: int = (first << 12) | (second << 8) | (third << 4) | fourth
    return unit


@inner
def _measured_unit(at: int) -> int:
    """The code unit of four hex digits that are known to be some: the low half of a digit's byte,
    and 9 more for letters."""
    word = load32(at)
    halves = (word & 0x0F0F0F0F) + ((word >> 6) & 0x01010101) * 9
    unit: int = ((halves & 15) << 12) | (halves & 0xF00) | ((halves >> 12) & 0xF0) | (halves >> 24)
    return unit


@inner
def _read_character(at: int) -> tuple[int, int]:
    r"""``(end, code point)`` of ``\XXXX``, a surrogate pair of them, or ``\\``, behind the
    backslash; end is -1 if it is none."""
    if load8(at) == _BACKSLASH:
        return at + 1, _BACKSLASH
    unit = _read_unit(at)
    if unit < 0 or 0xDC00 <= unit <= 0xDFFF:
        return -1, 0
    at += 4
    if unit < 0xD800 or unit > 0xDFFF:
        return at, unit
    low = _read_unit(at + 1) if load8(at) == _BACKSLASH else -1
    if low < 0xDC00 or low > 0xDFFF:
        return -1, 0
    return at + 5, 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00)


@inner
def _measure_unistr(at: int, limit: int) -> tuple[int, int]:
    """``(end behind the closing parenthesis, bytes)`` of an argument of UNISTR."""
    length = 0
    while at < limit:
        byte = load8(at)
        if byte == _BACKSLASH:
            unit = _read_unit(at + 1)
            if 0 <= unit < _SURROGATES:
                at += 5
                length += 1 + (unit >= 0x80) + (unit >= 0x800)
                continue
            at, point = _read_character(at + 1)
            if at < 0:
                return -1, 0
            length += 1 + (point >= 0x80) + (point >= 0x800) + (point >= 0x10000)
        elif byte == QUOTE and load8(at + 1) != QUOTE:
            return (at + 2, length) if load8(at + 1) == 41 else (-1, 0)
        else:
            at += 2 if byte == QUOTE else 1
            length += 1
    return -1, 0


@inner
def _write_unistr(at: int, target: int) -> tuple[int, int]:
    while True:
        byte = load8(at)
        if byte == _BACKSLASH:
            unit = _SURROGATES if load8(at + 1) == _BACKSLASH else _measured_unit(at + 1)
            if unit < _SURROGATES:
                at += 5
                target = _write_utf8(unit, target)
                continue
            at, point = _read_character(at + 1)
            target = _write_utf8(point, target)
        elif byte == QUOTE and load8(at + 1) != QUOTE:
            return at + 2, target
        else:
            store8(target, byte)
            at += 2 if byte == QUOTE else 1
            target += 1


@inner
def _write_utf8(point: int, target: int) -> int:
    if point < 0x80:
        store8(target, point)
        return target + 1
    if point < 0x800:
        store8(target, 0xC0 | (point >> 6))
        store8(target + 1, 0x80 | (point & 63))
        return target + 2
    if point < 0x10000:
        store8(target, 0xE0 | (point >> 12))
        store8(target + 1, 0x80 | ((point >> 6) & 63))
        store8(target + 2, 0x80 | (point & 63))
        return target + 3
    store8(target, 0xF0 | (point >> 18))
    store8(target + 1, 0x80 | ((point >> 12) & 63))
    store8(target + 2, 0x80 | ((point >> 6) & 63))
    store8(target + 3, 0x80 | (point & 63))
    return target + 4


@inner
def measure_hex(at: int, limit: int, quote: int) -> tuple[int, int]:
    """``(address of the closing quote, bytes)`` of pairs of hex digits; the address is -1 for the
    plain form."""
    start = at
    while at < limit and (_HEX[load8(at)] | _HEX[load8(at + 1)]) >= 0:
        at += 2
    if at >= limit or load8(at) != quote:
        return -1, 0
    return at, (at - start) >> 1


@inner
def write_hex(at: int, length: int, target: int) -> None:
    """Write ``length`` bytes from twice as many hex digits."""
    for place in range(length):
        store8(target + place, (_HEX[load8(at)] << 4) | _HEX[load8(at + 1)])
        at += 2
