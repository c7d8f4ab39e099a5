"""How does a column of NUMBERs in Oracle's own bytes become canonical text? The loops, and one
number's rules.

A NUMBER is an exponent byte and up to 20 base-100 digits, one a byte: ``exponent + 193`` and
``digit + 1`` when it is positive, ``62 - exponent`` and ``101 - digit`` behind which a byte 102
stands (unless there are 20 digits) when it is negative. Zero is the byte 128 alone.

Source:
    Oracle Call Interface Programmer's Guide, "NUMBER" under external data types; package UTL_RAW,
    CAST_FROM_NUMBER.
"""

from __future__ import annotations

from cdc_core.decode.kernels.cache import entry, inner
from cdc_core.decode.kernels.memory import load8, load64, store8, store32
from cdc_core.decode.kernels.table import ABSENT, PRESENT

_SIGN, _TERMINATOR, _DIGITS_MAX = 128, 102, 20
_ZERO, _MINUS, _POINT = 48, 45, 46


@entry
def measure_stored(data: int, offsets: int, rows: int, states: int, target_offsets: int) -> int:
    """Measure the canonical text of all rows whose state is PRESENT on entry.

    Writes Arrow's 32-bit offsets; rows that hold no NUMBER get state ABSENT. Returns the total
    length.
    """
    total = 0
    store32(target_offsets, 0)
    for row in range(rows):
        if load8(states + row) == PRESENT:
            start = load64(offsets + row * 8)
            length = _text_length(data + start, load64(offsets + row * 8 + 8) - start)
            if length > 0:
                total += length
            else:
                store8(states + row, ABSENT)
        store32(target_offsets + row * 4 + 4, total)
    return total


@entry
def write_stored(data: int, offsets: int, rows: int, states: int, target: int) -> int:
    """Write what :func:`measure_stored` measured; returns the end."""
    for row in range(rows):
        if load8(states + row) == PRESENT:
            start = load64(offsets + row * 8)
            target = _write_text(data + start, load64(offsets + row * 8 + 8) - start, target)
    return target


@inner
def _digit(at: int, is_positive: bool) -> int:
    byte = load8(at)
    return byte - 1 if is_positive else 101 - byte


@inner
def _digit_count(at: int, size: int, is_positive: bool) -> int:
    """Number of base-100 digits."""
    if not is_positive and load8(at + size - 1) == _TERMINATOR:
        return size - 2
    return size - 1


@inner
def _point(at: int, is_positive: bool) -> int:
    """Number of decimal digits before the point; 0 or less where zeros follow it."""
    first = load8(at)
    exponent = first - 193 if is_positive else 62 - first
    return 2 * (exponent + 1) - (1 if _digit(at + 1, is_positive) < 10 else 0)


@inner
def _significant(at: int, count: int, is_positive: bool) -> int:
    """Number of decimal digits without zeros at either end."""
    digits = 2 * count
    if _digit(at + 1, is_positive) < 10:
        digits -= 1
    if _digit(at + count, is_positive) % 10 == 0:
        digits -= 1
    return digits


@inner
def _text_length(at: int, size: int) -> int:
    """Length of the canonical text; 0 where the bytes are no NUMBER."""
    if size == 1:
        return 1 if load8(at) == _SIGN else 0
    if size == 0:
        return 0
    is_positive = load8(at) >= _SIGN
    count = _digit_count(at, size, is_positive)
    if count < 1 or count > _DIGITS_MAX:
        return 0
    for place in range(1, count + 1):
        digit = _digit(at + place, is_positive)
        if digit < 0 or digit > 99:
            return 0
    if _digit(at + 1, is_positive) == 0 or _digit(at + count, is_positive) == 0:
        return 0
    digits = _significant(at, count, is_positive)
    point = _point(at, is_positive)
    sign = 0 if is_positive else 1
    if point <= 0:
        return sign + 2 - point + digits
    return sign + max(point, digits + 1 if digits > point else 0)


@inner
def _write_text(at: int, size: int, target: int) -> int:
    """Write the canonical text of a NUMBER; returns its end."""
    if size == 1:
        store8(target, _ZERO)
        return target + 1
    is_positive = load8(at) >= _SIGN
    count = _digit_count(at, size, is_positive)
    point = _point(at, is_positive)
    skipped = 1 if _digit(at + 1, is_positive) < 10 else 0
    digits = _significant(at, count, is_positive)
    if not is_positive:
        store8(target, _MINUS)
        target += 1
    if point <= 0:
        store8(target, _ZERO)
        store8(target + 1, _POINT)
        target += 2
        for _ in range(-point):
            store8(target, _ZERO)
            target += 1
    for place in range(digits):
        if place > 0 and place == point:
            store8(target, _POINT)
            target += 1
        nibble = place + skipped
        pair = _digit(at + 1 + nibble // 2, is_positive)
        store8(target, _ZERO + (pair // 10 if nibble % 2 == 0 else pair % 10))
        target += 1
    for _ in range(point - digits):
        store8(target, _ZERO)
        target += 1
    return target
