"""What is the digest of a table's values, independent of the order of its rows? The rule, in plain Python.

``cdc_core.lake.comparison.sides`` states the rule; Spark SQL and Arrow compute it, on Oracle's side and on Delta's, and tests hold both to this form.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

SEPARATOR = "\x1f"
HEX_DIGITS = 15

Value = int | str | bytes | float | Decimal | datetime | None


def table_digest(rows: Iterable[Sequence[Value]]) -> str:
    """The digest of rows whose columns stand in the table's order."""
    return f"{sum(row_number(row) for row in rows):x}"


def row_number(row: Sequence[Value]) -> int:
    """What one row adds to the digest."""
    text = SEPARATOR.join(value_text(value) for value in row)
    return int(hashlib.sha256(text.encode()).hexdigest()[:HEX_DIGITS], 16)


def value_text(value: Value) -> str:
    """A value's canonical text."""
    match value:
        case None:
            return "N"
        case str():
            return "V" + value.replace("\\", "\\\\").replace(SEPARATOR, "\\u")
        case bytes():
            return "V" + value.hex().upper()
        case datetime():
            return f"V{(value - datetime(1970, 1, 1)) // timedelta(microseconds=1)}"
        case Decimal():
            return f"V{value:f}"
        case float():
            return "V" + _float_text(value)
        case bool():
            return "Vtrue" if value else "Vfalse"
        case _:
            return f"V{value}"


def _float_text(value: float) -> str:
    """``Double.toString`` of Java 19 and later."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "0.0"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0") or "0"
    point = len(digits) + exponent  # value = 0.text * 10**point
    minus = "-" if sign else ""
    if -2 <= point <= 7:  # 1E-3 <= value < 1E7
        whole = text[:point].ljust(point, "0") if point > 0 else "0"
        return f"{minus}{whole}.{('0' * -point + text[max(point, 0) :]) or '0'}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{point - 1}"
