"""How are angles and their sines computed, to Oracle's 38 digits?"""

from __future__ import annotations

from decimal import Decimal

from oracle_embedded.api import OracleError
from oracle_embedded.engine.datatypes.numbers import QUOTIENT, decode, encode

_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")
_HALF = QUOTIENT.divide(_PI, Decimal(2))
_FULL = QUOTIENT.multiply(_PI, Decimal(2))
_SMALLEST = Decimal("1e-60")
_OUTSIDE = OracleError(1428, "argument is out of range")


def sine(value: bytes) -> bytes:
    """SIN of radians."""
    return encode(_sine(decode(value)))


def cosine(value: bytes) -> bytes:
    """COS of radians."""
    return encode(_sine(QUOTIENT.add(decode(value), _HALF)))


def tangent(value: bytes) -> bytes:
    """TAN of radians."""
    angle = decode(value)
    return encode(QUOTIENT.divide(_sine(angle), _sine(QUOTIENT.add(angle, _HALF))))


def arc_sine(value: bytes) -> bytes:
    """ASIN in radians.

    Raises:
        OracleError: ORA-01428 for what is no sine.
    """
    return encode(_arc_sine(decode(value)))


def arc_cosine(value: bytes) -> bytes:
    """ACOS in radians; ORA-01428 likewise."""
    return encode(QUOTIENT.subtract(_HALF, _arc_sine(decode(value))))


def arc_tangent(value: bytes) -> bytes:
    """ATAN in radians."""
    return encode(_arc_tangent(decode(value)))


def arc_tangent_of_two(y: bytes, x: bytes) -> bytes:
    """ATAN2, the angle of a point.

    Raises:
        OracleError: ORA-01428 for the origin.
    """
    up, right = decode(y), decode(x)
    if not right:
        if not up:
            raise _OUTSIDE
        return encode(_HALF.copy_sign(up))
    angle = _arc_tangent(QUOTIENT.divide(up, right))
    if right < 0:
        angle = QUOTIENT.add(angle, _PI.copy_sign(up) if up else _PI)
    return encode(angle)


def hyperbolic_sine(value: bytes) -> bytes:
    """SINH."""
    grown, shrunk = _exponentials(decode(value))
    return encode(QUOTIENT.divide(QUOTIENT.subtract(grown, shrunk), Decimal(2)))


def hyperbolic_cosine(value: bytes) -> bytes:
    """COSH."""
    grown, shrunk = _exponentials(decode(value))
    return encode(QUOTIENT.divide(QUOTIENT.add(grown, shrunk), Decimal(2)))


def hyperbolic_tangent(value: bytes) -> bytes:
    """TANH."""
    grown, shrunk = _exponentials(decode(value))
    return encode(QUOTIENT.divide(QUOTIENT.subtract(grown, shrunk), QUOTIENT.add(grown, shrunk)))


def _exponentials(value: Decimal) -> tuple[Decimal, Decimal]:
    return QUOTIENT.exp(value), QUOTIENT.exp(QUOTIENT.minus(value))


def _sine(angle: Decimal) -> Decimal:
    angle = QUOTIENT.remainder_near(angle, _FULL)
    total, term, number = angle, angle, 1
    square = QUOTIENT.multiply(angle, angle)
    while abs(term) > _SMALLEST:
        number += 2
        term = QUOTIENT.divide(
            QUOTIENT.multiply(QUOTIENT.minus(term), square), Decimal(number * (number - 1))
        )
        total = QUOTIENT.add(total, term)
    return total if abs(total) > Decimal("1e-45") else Decimal(0)


def _arc_sine(value: Decimal) -> Decimal:
    if abs(value) > 1:
        raise _OUTSIDE
    if abs(value) == 1:
        return _HALF.copy_sign(value)
    rest = QUOTIENT.sqrt(QUOTIENT.subtract(Decimal(1), QUOTIENT.multiply(value, value)))
    return _arc_tangent(QUOTIENT.divide(value, rest))


def _arc_tangent(value: Decimal) -> Decimal:
    """The series, after halving the angle until it is short."""
    doubled = 0
    while abs(value) > Decimal("0.1"):
        root = QUOTIENT.sqrt(QUOTIENT.add(Decimal(1), QUOTIENT.multiply(value, value)))
        value = QUOTIENT.divide(value, QUOTIENT.add(Decimal(1), root))
        doubled += 1
    total, power, number = value, value, 1
    square = QUOTIENT.multiply(value, value)
    while abs(power) > _SMALLEST:
        number += 2
        power = QUOTIENT.multiply(QUOTIENT.minus(power), square)
        total = QUOTIENT.add(total, QUOTIENT.divide(power, Decimal(number)))
    return QUOTIENT.multiply(total, Decimal(2**doubled))
