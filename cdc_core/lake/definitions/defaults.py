"""What do rows have in a column that was added after they were written? Its DEFAULT then, which a
Delta table's property remembers as text.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from cdc_core.lake.tables import spark_type, string_literal


def default_text(default: pa.Scalar) -> str | None:
    """A value as text; None for NULL."""
    value = default.as_py()
    return value.hex() if isinstance(value, bytes) else None if value is None else str(value)


def default_of(text: str | None, kind: pa.DataType) -> pa.Scalar:
    """The value of a text by :func:`default_text`."""
    if text is None or pa.types.is_string(kind):
        return pa.scalar(text, kind)
    if pa.types.is_binary(kind):
        return pa.scalar(bytes.fromhex(text), kind)
    if pa.types.is_date(kind):
        return pa.scalar(date.fromisoformat(text), kind)
    if pa.types.is_timestamp(kind):
        return pa.scalar(datetime.fromisoformat(text), kind)
    return pa.scalar(Decimal(text) if pa.types.is_decimal(kind) else text).cast(kind)


def sql_literal(value: Any, kind: pa.DataType) -> str:
    """A Spark SQL literal of exactly the column's type."""
    if value is None:
        return f"CAST(NULL AS {spark_type(kind)})"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, date):
        return f"{spark_type(kind)}{string_literal(str(value))}"
    if isinstance(value, (int, float, Decimal)):
        return f"CAST({string_literal(str(value))} AS {spark_type(kind)})"
    return string_literal(value)
