"""How are Oracle NUMBERs added, multiplied, rounded and fitted into columns, in their own encoding?

Python's operators on Decimal, ``-`` and ``abs`` among them, round to the 28 digits of its default
context: every operation here names its context, or is one that never rounds (``copy_abs``,
``copy_negate``)."""

from __future__ import annotations

import decimal
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from functools import lru_cache

from oracle_embedded.api import OracleError
from oracle_embedded.engine.errors import ora
from oracle_embedded.values import decimal_from_number, number_from_decimal

WIDE = decimal.Context(prec=300, Emax=999999, Emin=-999999, rounding=ROUND_HALF_UP)
QUOTIENT = decimal.Context(prec=60, Emax=999999, Emin=-999999, rounding=ROUND_HALF_UP)

decode = lru_cache(maxsize=1 << 16)(decimal_from_number)
encode = number_from_decimal
ONE = encode(1)


def add(left: bytes, right: bytes) -> bytes:
    """Sum."""
    return encode(WIDE.add(decode(left), decode(right)))


def subtract(left: bytes, right: bytes) -> bytes:
    """Difference."""
    return encode(WIDE.subtract(decode(left), decode(right)))


def multiply(left: bytes, right: bytes) -> bytes:
    """Product."""
    return encode(WIDE.multiply(decode(left), decode(right)))


def divide(left: bytes, right: bytes) -> bytes:
    """Quotient to 40 digits.

    Raises:
        OracleError: ORA-01476 for the divisor 0.
    """
    divisor = decode(right)
    if not divisor:
        raise ora(1476)
    return encode(QUOTIENT.divide(decode(left), divisor))


def negate(value: bytes) -> bytes:
    """The number with its sign changed."""
    return encode(decode(value).copy_negate())


def absolute(value: bytes) -> bytes:
    """The number without its sign."""
    return encode(decode(value).copy_abs())


def remainder(left: bytes, right: bytes) -> bytes:
    """MOD: sign of the dividend; a divisor 0 gives the dividend."""
    divisor = decode(right)
    if not divisor:
        return left
    dividend = decode(left)
    quotient = WIDE.divide(dividend, divisor).to_integral_value(ROUND_DOWN, WIDE)
    return encode(WIDE.subtract(dividend, WIDE.multiply(quotient, divisor)))


def nearest_remainder(left: bytes, right: bytes) -> bytes:
    """REMAINDER: the quotient is rounded to the nearest whole number."""
    divisor = decode(right)
    if not divisor:
        raise OracleError(1428, "argument '0' is out of range")
    dividend = decode(left)
    quotient = WIDE.divide(dividend, divisor).to_integral_value(decimal.ROUND_HALF_EVEN, WIDE)
    return encode(WIDE.subtract(dividend, WIDE.multiply(quotient, divisor)))


def _quantize(value: Decimal, places: int, rounding: str) -> Decimal:
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and -exponent <= places:
        return value
    return value.quantize(Decimal((0, (1,), -places)), rounding, WIDE)


def round_to(value: bytes, places: bytes) -> bytes:
    """ROUND(n, places), half away from zero."""
    return encode(_quantize(decode(value), int(decode(places)), ROUND_HALF_UP))


def truncate_to(value: bytes, places: bytes) -> bytes:
    """TRUNC(n, places), towards zero."""
    return encode(_quantize(decode(value), int(decode(places)), ROUND_DOWN))


def floor(value: bytes) -> bytes:
    """FLOOR."""
    return encode(decode(value).to_integral_value(ROUND_FLOOR, WIDE))


def ceil(value: bytes) -> bytes:
    """CEIL."""
    return encode(decode(value).to_integral_value(ROUND_CEILING, WIDE))


def power(base: bytes, exponent: bytes) -> bytes:
    """POWER."""
    number, times = decode(base), decode(exponent)
    if number < 0 and times != times.to_integral_value():
        raise OracleError(1428, f"argument '{number}' is out of range")
    if not number and times < 0:
        raise OracleError(1428, f"argument '{times}' is out of range")
    return encode(QUOTIENT.power(number, times)) if number or times else ONE


def _real(operation: str, value: bytes) -> bytes:
    number = decode(value)
    if number < 0 or (operation != "sqrt" and not number):
        raise OracleError(1428, f"argument '{number}' is out of range")
    match operation:
        case "sqrt":
            return encode(QUOTIENT.sqrt(number))
        case "ln":
            return encode(QUOTIENT.ln(number))
    return encode(QUOTIENT.log10(number))


def square_root(value: bytes) -> bytes:
    """SQRT."""
    return _real("sqrt", value)


def natural_logarithm(value: bytes) -> bytes:
    """LN."""
    return _real("ln", value)


def logarithm(base: bytes, value: bytes) -> bytes:
    """LOG(base, n)."""
    return divide(natural_logarithm(value), natural_logarithm(base))


def exponential(value: bytes) -> bytes:
    """EXP."""
    return encode(QUOTIENT.exp(decode(value)))


@lru_cache(maxsize=1 << 16)
def fit(value: bytes, precision: int | None, scale: int) -> bytes:
    """A number as a column NUMBER(precision, scale) keeps it: rounded half away from zero.

    Raises:
        OracleError: ORA-01438 when the whole part has too many digits.
    """
    number = _quantize(decode(value), scale, ROUND_HALF_UP)
    if number and number.adjusted() >= (38 if precision is None else precision) - scale:
        raise OracleError(1438, "value larger than specified precision allowed for this column")
    return encode(number)


@lru_cache(maxsize=1 << 16)
def fit_float(value: bytes, bits: int) -> bytes:
    """A number as a column FLOAT(bits) keeps it: rounded to the decimal digits of so many bits."""
    digits = -(-bits * 30103 // 100000)
    return encode(decimal.Context(prec=digits, rounding=ROUND_HALF_UP).plus(decode(value)))


def whole(value: bytes) -> int:
    """A number cut towards zero."""
    return int(decode(value))
