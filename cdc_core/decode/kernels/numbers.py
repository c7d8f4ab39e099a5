"""How is number text read into int64, decimal128, float64, float32 and canonical text?

Each reader takes the address of the first character, and returns where the number ends, or -1 where
the plain form must decide: exponents in NUMBERs, more digits than fit machine words, and everything
that is no number.
"""

from __future__ import annotations

import numpy as np

from cdc_core.decode.kernels.cache import inner
from cdc_core.decode.kernels.memory import (
    is_below,
    leading_zeros,
    load8,
    load64,
    multiply_add128,
    multiply_wide,
    shift_right,
    store8,
    store64,
)

_ZERO, _NINE, _PLUS, _MINUS, _POINT, _UPPER_E, _LOWER_E = 48, 57, 43, 45, 46, 69, 101
_DIGITS_MAX = 18
"""Digits that an int64 holds whatever they are."""
_TEXT_MAX = 120
"""Length of number text up to which the canonical form is written here."""

POWERS_OF_TEN = np.array([10**exponent for exponent in range(19)], np.int64)
_EIGHT_DIGITS = 10**8
_ZEROS = int.from_bytes(b"0" * 8, "little")
_NIBBLES = int.from_bytes(b"\x0f" * 8, "little")
_CARRY = int.from_bytes(b"\x76" * 8, "little")
_TOP_BITS = int(np.array(int.from_bytes(b"\x80" * 8, "little"), np.uint64).view(np.int64))
_LANES16 = int.from_bytes(b"\xff\0" * 4, "little")
_LANES32 = int.from_bytes(b"\xff\xff\0\0" * 2, "little")


@inner
def is_digit(at: int) -> bool:
    """Is the byte at an address a digit?"""
    return _ZERO <= load8(at) <= _NINE


@inner
def read_int64(at: int, limit: int, target: int) -> int:
    """Write an int64 of at most 18 digits without a point."""
    negative = load8(at) == _MINUS
    if negative:
        at += 1
    start = at
    number = 0
    while at < limit:
        digit = load8(at) - _ZERO
        if digit < 0 or digit > 9:
            break
        number = number * 10 + digit
        at += 1
    if at == start or at - start > _DIGITS_MAX:
        return -1
    store64(target, -number if negative else number)
    return at


@inner
def are_digits8(at: int) -> bool:
    """Are the eight bytes at an address digits?"""
    digits = load64(at) ^ _ZEROS
    # Adding 0x76 carries a digit's value into the top bit from 10 on.
    return ((digits + _CARRY) | digits) & _TOP_BITS == 0


@inner
def read_digits8(at: int) -> int:
    """The number that eight digits at an address make: neighbours are put together three times.

    One multiplication adds ten, then a hundred, then ten thousand times each lane to its upper
    neighbour.
    """
    pairs = ((load64(at) & _NIBBLES) * 2561 >> 8) & _LANES16
    fours = (pairs * 6553601 >> 16) & _LANES32
    number: int = fours * 42949672960001 >> 32
    return number


@inner
def read_decimal(at: int, limit: int, target: int, precision: int, scale: int) -> int:
    """Write a decimal128 (low word, high word) of the column's precision and scale."""
    negative = load8(at) == _MINUS
    if negative:
        at += 1
    digits = 0  # all but leading zeros
    seen = 0
    fraction = -1  # digits after the point; -1 before it
    high = 0  # with low, the number that the digits make; more of them than a decimal has are refused below
    low = 0
    if _ZERO < load8(at) <= _NINE:
        while at + 8 <= limit and are_digits8(at):
            high, low = multiply_add128(high, low, _EIGHT_DIGITS, read_digits8(at))
            digits += 8
            at += 8
        seen = digits
    rest = 0  # the digits behind them, as long as they fit a word
    pending = 0
    while at < limit:
        byte = load8(at)
        digit = byte - _ZERO
        if 0 <= digit <= 9:
            seen += 1
            if digits > 0 or digit > 0:
                digits += 1
            if pending == _DIGITS_MAX:
                high, low = multiply_add128(high, low, POWERS_OF_TEN[_DIGITS_MAX], rest)
                rest = 0
                pending = 0
            rest = rest * 10 + digit
            pending += 1
            if fraction >= 0:
                fraction += 1
        elif byte == _POINT and fraction < 0:
            fraction = 0
        else:
            break
        at += 1
    fraction = max(fraction, 0)
    missing = scale - fraction
    if seen == 0 or missing < 0 or (digits > 0 and digits + missing > precision):
        return -1
    if digits + missing <= _DIGITS_MAX:
        number = (low * POWERS_OF_TEN[pending] + rest) * POWERS_OF_TEN[max(missing, 0)]
        number = -number if negative else number
        store64(target, number)
        store64(target + 8, number >> 63)
        return at
    high, low = multiply_add128(high, low, POWERS_OF_TEN[pending], rest)
    while missing > 0:
        step = min(missing, _DIGITS_MAX)
        high, low = multiply_add128(high, low, POWERS_OF_TEN[step], 0)
        missing -= step
    if negative:
        low = -low
        high = ~high + (1 if low == 0 else 0)
    store64(target, low)
    store64(target + 8, high)
    return at


@inner
def measure_canonical(at: int, limit: int) -> tuple[int, int, int, bool]:
    """``(end, source, length, is the canonical text what stands at source)``; end is -1 for the
    plain form."""
    start = at
    negative = load8(at) == _MINUS
    is_plain = True
    if negative:
        at += 1
    elif load8(at) == _PLUS:
        is_plain = False
        at += 1
    seen = 0
    whole = 0  # digits before the point without leading zeros
    while at < limit:
        digit = load8(at) - _ZERO
        if digit < 0 or digit > 9:
            break
        seen += 1
        if whole > 0 or digit > 0:
            whole += 1
        at += 1
    is_plain = is_plain and seen == max(whole, 1)
    fraction = 0  # digits after the point up to the last that is not 0
    if at < limit and load8(at) == _POINT:
        at += 1
        after = 0
        while at < limit:
            digit = load8(at) - _ZERO
            if digit < 0 or digit > 9:
                break
            after += 1
            if digit > 0:
                fraction = after
            at += 1
        is_plain = is_plain and after > 0 and fraction == after
        seen += after
    if seen == 0 or at - start > _TEXT_MAX:
        return -1, 0, 0, False
    if whole == 0 and fraction == 0:
        # Any of its digits will do: the canonical text of zero is one of them.
        return at, start if is_digit(start) else start + (1 if is_digit(start + 1) else 2), 1, True
    length = max(whole, 1) + (fraction + 1 if fraction > 0 else 0) + (1 if negative else 0)
    return at, start, length, is_plain


@inner
def write_canonical(at: int, length: int, target: int) -> None:
    """Write the canonical text, other than zero's, that :func:`measure_canonical` measured."""
    end = target + length
    negative = load8(at) == _MINUS
    if negative or load8(at) == _PLUS:
        at += 1
    while load8(at) == _ZERO:
        at += 1
    if negative:
        store8(target, _MINUS)
        target += 1
    if load8(at) == _POINT:
        store8(target, _ZERO)
        target += 1
    while target < end:
        store8(target, load8(at))
        at += 1
        target += 1


# Binary floating point ----------------------------------------------------------------------------

_LOWEST_POWER, _HIGHEST_POWER = -342, 308
_LEAST_ROUNDED_UP = -27


def _power_words() -> tuple[np.ndarray, np.ndarray]:
    """The 128 highest bits of 5**q for every power of ten that a double can hold, as two words."""
    high, low = [], []
    for power in range(_LOWEST_POWER, _HIGHEST_POWER + 1):
        if power >= 0:
            five = 5**power
            shift = five.bit_length() - 128
            word = five >> shift if shift >= 0 else five << -shift
        else:
            five = 5**-power
            # The reciprocal, normalised to 128 bits; the short ones are rounded up, as the
            # algorithm's proof wants it.
            word = (1 << (five.bit_length() + 127)) // five + (
                1 if power >= _LEAST_ROUNDED_UP else 0
            )
        high.append(word >> 64)
        low.append(word & (2**64 - 1))
    return np.array(high, np.uint64).view(np.int64), np.array(low, np.uint64).view(np.int64)


_FIVE_HIGH, _FIVE_LOW = _power_words()


@inner
def read_float(at: int, limit: int, target: int, is_double: bool) -> int:
    """Write the bits of the nearest float64 (or float32, zero extended)."""
    negative = load8(at) == _MINUS
    if negative:
        at += 1
    seen = 0
    digits = 0
    number = 0
    power = 0
    after_point = False
    while at < limit:
        byte = load8(at)
        digit = byte - _ZERO
        if 0 <= digit <= 9:
            seen += 1
            if number > 0 or digit > 0:
                digits += 1
            if digits > _DIGITS_MAX:
                return -1
            number = number * 10 + digit
            if after_point:
                power -= 1
        elif byte == _POINT and not after_point:
            after_point = True
            while number > 0 and digits + 8 <= _DIGITS_MAX and are_digits8(at + 1):
                number = number * _EIGHT_DIGITS + read_digits8(at + 1)
                digits += 8
                power -= 8
                at += 8
        else:
            break
        at += 1
    if seen == 0:
        return -1
    if at < limit and (load8(at) == _UPPER_E or load8(at) == _LOWER_E):
        at += 1
        is_small = load8(at) == _MINUS
        if is_small or load8(at) == _PLUS:
            at += 1
        start = at
        exponent = 0
        while at < limit and _ZERO <= load8(at) <= _NINE:
            exponent = exponent * 10 + load8(at) - _ZERO
            at += 1
            if at - start > 5:
                return -1
        if at == start:
            return -1
        power += -exponent if is_small else exponent
    bits = 0
    if number > 0:
        bits = _double_bits(number, power) if is_double else _float_bits(number, power)
        if bits < 0:
            return -1
    if negative:
        bits |= -(2**63) if is_double else 2**31
    store64(target, bits)
    return at


@inner
def _double_bits(number: int, power: int) -> int:
    return _nearest_bits(number, power, 52, -1023, 0x7FF, -4, 23, -342, 308)


@inner
def _float_bits(number: int, power: int) -> int:
    return _nearest_bits(number, power, 23, -127, 0xFF, -17, 10, -64, 38)


@inner
def _nearest_bits(
    number: int,
    power: int,
    mantissa_bits: int,
    exponent_least: int,
    exponent_infinite: int,
    tie_least: int,
    tie_most: int,
    power_least: int,
    power_most: int,
) -> int:
    """Bits of the nearest binary number to ``number * 10**power``; -1 where it would be 0 or
    infinite.

    Source:
        D. Lemire, "Number Parsing at a Gigabyte per Second" (2021): one or two 64-bit products with
        a table of powers of five decide the rounding for up to 19 digits.
    """
    if power < power_least or power > power_most:
        return -1
    zeros = leading_zeros(number)
    normal = number << zeros
    row = power - _LOWEST_POWER
    high, low = multiply_wide(normal, _FIVE_HIGH[row])
    mask = shift_right(-1, mantissa_bits + 3)
    if (high & mask) == mask:
        more, _rest = multiply_wide(normal, _FIVE_LOW[row])
        low += more
        if is_below(low, more) == 1:
            high += 1
    upper = shift_right(high, 63)
    shift = upper + 64 - mantissa_bits - 3
    mantissa = shift_right(high, shift)
    exponent = (((152170 + 65536) * power) >> 16) + 63 + upper - zeros - exponent_least
    if exponent <= 0:
        if 1 - exponent >= 64:
            return -1
        mantissa = shift_right(mantissa, 1 - exponent)
        mantissa = (mantissa + (mantissa & 1)) >> 1
        # A subnormal that rounds up to 2**mantissa_bits is the least normal number: the same bits.
        return mantissa if mantissa > 0 else -1
    is_tie_power = tie_least <= power <= tie_most
    if (
        is_below(low, 2) == 1
        and is_tie_power
        and (mantissa & 3) == 1
        and (mantissa << shift) == high
    ):
        mantissa &= ~1
    mantissa = (mantissa + (mantissa & 1)) >> 1
    if mantissa >= (2 << mantissa_bits):
        mantissa = 1 << mantissa_bits
        exponent += 1
    if exponent >= exponent_infinite:
        return -1
    return (mantissa & ~(1 << mantissa_bits)) | (exponent << mantissa_bits)
