"""Which number functions and aggregates are registered?"""

from __future__ import annotations

import math
import random
import string
from decimal import Decimal
from functools import partial, reduce

from oracle_embedded.engine.datatypes import numbers, trigonometry
from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.functions.registry import (
    AGGREGATES,
    WINDOWS,
    Entries,
    Implementation,
    register,
)
from oracle_embedded.values import (
    binary_float_from_float,
    double_from_float,
    float_from_binary_float,
    float_from_double,
)

_LIMIT_MAX = _RANGE_MAX = (1 << 62) - 1


def _share(rows: int, percent: bytes) -> int:
    """How many rows a share of them is, rounded up."""
    return max(0, math.ceil(rows * numbers.decode(percent) / 100))


def _millionths(value: bytes) -> int:
    """A number as SQLite counts from it in RANGE.

    Raises:
        OracleError: ORA-03001 for more than six decimals, or beyond 64 bits.
    """
    shifted = numbers.decode(value).scaleb(6)
    whole = int(shifted)
    if whole != shifted or abs(whole) > _RANGE_MAX:
        raise unsupported("RANGE with an offset over numbers that are no millionths in 64 bits")
    return whole


def _folded(run: Implementation, *values: bytes) -> bytes:
    """An operation over many operands, from left to right."""
    return reduce(run, values)


def _double_arithmetic(operation: str) -> Implementation:
    def run(left: bytes, right: bytes) -> bytes:
        a, b = float_from_double(left), float_from_double(right)
        match operation:
            case "+":
                result = a + b
            case "-":
                result = a - b
            case "*":
                result = a * b
            case _:
                result = _ieee_quotient(a, b)
        return double_from_float(result)

    return run


def _ieee_quotient(a: float, b: float) -> float:
    if b == 0.0:
        return math.nan if a == 0.0 or math.isnan(a) else math.copysign(math.inf, a)
    return a / b


def number_from_double(value: bytes) -> bytes:
    """BINARY_DOUBLE to NUMBER, with the shortest digits that give the double again."""
    real = float_from_double(value)
    if math.isnan(real) or math.isinf(real):
        raise ora(1426)
    return numbers.encode(Decimal(repr(real)))


def double_from_number(value: bytes) -> bytes:
    """NUMBER to BINARY_DOUBLE."""
    return double_from_float(float(numbers.decode(value)))


def _limit(value: bytes) -> int:
    number = numbers.decode(value)
    return max(0, min(math.floor(number), _LIMIT_MAX))


def _limit_below(value: bytes) -> int:
    number = numbers.decode(value)
    return max(0, min(math.ceil(number) - 1, _LIMIT_MAX))


def _bucket(value: bytes, low: bytes, high: bytes, count: bytes) -> bytes:
    number, least, most = numbers.decode(value), numbers.decode(low), numbers.decode(high)
    buckets = int(numbers.decode(count))
    if number < least:
        return numbers.encode(0)
    if number >= most:
        return numbers.encode(buckets + 1)
    exact = numbers.WIDE
    passed = exact.multiply(exact.subtract(number, least), Decimal(buckets))
    return numbers.encode(int(exact.divide(passed, exact.subtract(most, least))) + 1)


class Total:
    """SUM over NUMBER, also as a window."""

    def __init__(self) -> None:
        self.total = Decimal(0)
        self.count = 0

    def step(self, value: bytes | None) -> None:
        """Add a value."""
        if value is not None:
            self.total = numbers.WIDE.add(self.total, numbers.decode(value))
            self.count += 1

    def inverse(self, value: bytes | None) -> None:
        """Take a value out that left the window."""
        if value is not None:
            self.total = numbers.WIDE.subtract(self.total, numbers.decode(value))
            self.count -= 1

    def value(self) -> bytes | None:
        """The sum, NULL of nothing."""
        return numbers.encode(self.total) if self.count else None

    def finalize(self) -> bytes | None:
        """The sum, NULL of nothing."""
        return self.value()


class Mean(Total):
    """AVG over NUMBER."""

    def value(self) -> bytes | None:
        """The mean, NULL of nothing."""
        if not self.count:
            return None
        return numbers.divide(numbers.encode(self.total), numbers.encode(self.count))


class DoubleTotal:
    """SUM over BINARY_DOUBLE."""

    def __init__(self) -> None:
        self.total = 0.0
        self.count = 0

    def step(self, value: bytes | None) -> None:
        """Add a value."""
        if value is not None:
            self.total += float_from_double(value)
            self.count += 1

    def inverse(self, value: bytes | None) -> None:
        """Take a value out that left the window."""
        if value is not None:
            self.total -= float_from_double(value)
            self.count -= 1

    def value(self) -> bytes | None:
        """The sum, NULL of nothing."""
        return double_from_float(self.total) if self.count else None

    def finalize(self) -> bytes | None:
        """The sum, NULL of nothing."""
        return self.value()


class DoubleMean(DoubleTotal):
    """AVG over BINARY_DOUBLE."""

    def value(self) -> bytes | None:
        """The mean, NULL of nothing."""
        return double_from_float(self.total / self.count) if self.count else None


class _Moments:
    """Base of the statistical aggregates: keeps all values, computes exactly enough."""

    sample = True
    root = False

    def __init__(self) -> None:
        self.values: list[Decimal] = []

    def step(self, value: bytes | None) -> None:
        """Add a value."""
        if value is not None:
            self.values.append(numbers.decode(value))

    def finalize(self) -> bytes | None:
        """The statistic, NULL of nothing."""
        count = len(self.values)
        if not count:
            return None
        if count == 1:
            return numbers.encode(0)
        exact = numbers.WIDE
        mean = exact.divide(_sum(self.values), Decimal(count))
        deviations = [exact.subtract(value, mean) for value in self.values]
        squares = _sum([exact.multiply(deviation, deviation) for deviation in deviations])
        variance = exact.divide(squares, Decimal(count - 1 if self.sample else count))
        return numbers.encode(exact.sqrt(variance) if self.root else variance)


def _sum(values: list[Decimal]) -> Decimal:
    return reduce(numbers.WIDE.add, values, Decimal(0))


class Variance(_Moments):
    """VARIANCE and VAR_SAMP."""


class Deviation(_Moments):
    """STDDEV."""

    root = True


class PopulationVariance(_Moments):
    """VAR_POP."""

    sample = False


class PopulationDeviation(_Moments):
    """STDDEV_POP."""

    sample = False
    root = True


class Median(_Moments):
    """MEDIAN of numbers."""

    def finalize(self) -> bytes | None:
        """The middle value, NULL of nothing."""
        if not self.values:
            return None
        ordered = sorted(self.values)
        middle = len(ordered) // 2
        if len(ordered) % 2:
            return numbers.encode(ordered[middle])
        total = numbers.WIDE.add(ordered[middle - 1], ordered[middle])
        return numbers.encode(numbers.WIDE.divide(total, Decimal(2)))


class Single:
    """The value of a scalar subquery."""

    def __init__(self) -> None:
        self.held: object = None
        self.count = 0

    def step(self, value: object) -> None:
        """Take the one row.

        Raises:
            OracleError: ORA-01427 at the second.
        """
        self.count += 1
        if self.count > 1:
            raise ora(1427)
        self.held = value

    def finalize(self) -> object:
        """The value, NULL without a row."""
        return self.held


_FIRST_ENTRIES: Entries = (
    ("o_add", numbers.add, 2),
    ("o_sub", numbers.subtract, 2),
    ("o_mul", numbers.multiply, 2),
    ("o_div", numbers.divide, 2),
    ("o_neg", numbers.negate, 1),
    ("o_mod", numbers.remainder, 2),
    ("o_remainder", numbers.nearest_remainder, 2),
    ("o_round", numbers.round_to, 2),
    ("o_trunc", numbers.truncate_to, 2),
    ("o_floor", numbers.floor, 1),
    ("o_ceil", numbers.ceil, 1),
    ("o_power", numbers.power, 2),
    ("o_sqrt", numbers.square_root, 1),
    ("o_ln", numbers.natural_logarithm, 1),
    ("o_log", numbers.logarithm, 2),
    ("o_exp", numbers.exponential, 1),
    ("o_abs", numbers.absolute, 1),
    ("o_sign", lambda value: numbers.encode(int(value > b"\x80") - int(value < b"\x80")), 1),
    ("o_sin", trigonometry.sine, 1),
    ("o_cos", trigonometry.cosine, 1),
    ("o_tan", trigonometry.tangent, 1),
    ("o_asin", trigonometry.arc_sine, 1),
    ("o_acos", trigonometry.arc_cosine, 1),
    ("o_atan", trigonometry.arc_tangent, 1),
    ("o_atan2", trigonometry.arc_tangent_of_two, 2),
    ("o_sinh", trigonometry.hyperbolic_sine, 1),
    ("o_cosh", trigonometry.hyperbolic_cosine, 1),
    ("o_tanh", trigonometry.hyperbolic_tangent, 1),
    ("o_int", numbers.encode, 1),
    ("o_whole", numbers.whole, 1),
    ("o_limit", _limit, 1),
    ("o_share", _share, 2),
    ("o_limit_below", _limit_below, 1),
    ("o_real", lambda value: numbers.encode(Decimal(repr(value))), 1),
    ("o_range_number", _millionths, 1),
    ("o_width_bucket", _bucket, 4),
    ("o_dadd", _double_arithmetic("+"), 2),
    ("o_dsub", _double_arithmetic("-"), 2),
    ("o_dmul", _double_arithmetic("*"), 2),
    ("o_ddiv", _double_arithmetic("/"), 2),
    ("o_double_nan", lambda: double_from_float(math.nan), 0),
    ("o_double_infinity", lambda: double_from_float(math.inf), 0),
    ("o_float_nan", lambda: binary_float_from_float(math.nan), 0),
    ("o_float_infinity", lambda: binary_float_from_float(math.inf), 0),
    ("o_dneg", lambda value: double_from_float(-float_from_double(value)), 1),
    ("cv_double_number", number_from_double, 1),
    ("cv_number_double", double_from_number, 1),
    ("cv_float_double", lambda value: double_from_float(float_from_binary_float(value)), 1),
    ("cv_double_float", lambda value: binary_float_from_float(float_from_double(value)), 1),
    ("cv_float_number", lambda value: number_from_double(double_from_float(float_from_binary_float(value))), 1),
    ("cv_number_float", lambda value: binary_float_from_float(float(numbers.decode(value))), 1),
    ("o_fit", lambda value, precision, scale: numbers.fit(value, precision, scale), 3),
)  # fmt: skip
for _name, _run, _arguments in _FIRST_ENTRIES:
    register(_name, _run, _arguments)
for _name, _run, _arguments in _FIRST_ENTRIES:
    if _name.endswith(("add", "sub", "mul", "div")):
        register(f"{_name}_all", partial(_folded, _run), -1)

_RANDOM = random.Random()  # noqa: S311  DBMS_RANDOM is no more secret


def _random_between(low: bytes, high: bytes) -> bytes:
    """A number from ``low`` to below ``high``, of 38 digits."""
    share = Decimal(_RANDOM.randrange(10**38)).scaleb(-38)
    first, last = numbers.decode(low), numbers.decode(high)
    return numbers.encode(numbers.WIDE.add(first, numbers.WIDE.multiply(share, last - first)))


_LETTERS = {
    "u": string.ascii_uppercase,
    "l": string.ascii_lowercase,
    "a": string.ascii_letters,
    "x": string.ascii_uppercase + string.digits,
    "p": "".join(map(chr, range(32, 127))),
}
"""From which letters DBMS_RANDOM.STRING chooses; from those of U where it is told none of these."""


def _random_string(option: str, length: bytes) -> str | None:
    letters = _LETTERS.get(option[:1].lower(), string.ascii_uppercase)
    return "".join(_RANDOM.choices(letters, k=min(int(numbers.decode(length)), 4000))) or None


register("o_random", _random_between, 2, deterministic=False)
register("o_random_string", _random_string, 2, deterministic=False)
register("o_random_normal", lambda: numbers.encode(Decimal(repr(_RANDOM.gauss(0, 1)))), 0, deterministic=False)  # fmt: skip
AGGREGATES["o_single"] = (Single, 1)
for _name, _cls in (
    ("o_variance", Variance),
    ("o_stddev", Deviation),
    ("o_var_pop", PopulationVariance),
    ("o_stddev_pop", PopulationDeviation),
    ("o_median", Median),
):
    AGGREGATES[_name] = (_cls, 1)
for _name, _window in (
    ("o_sum", Total),
    ("o_avg", Mean),
    ("o_dsum", DoubleTotal),
    ("o_davg", DoubleMean),
):
    WINDOWS[_name] = (_window, 1)
