"""What does a row have in a column that its insert does not carry? The column's DEFAULT, as Spark
SQL."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from cdc_core.decode.defaults import scalar_of_older_rows
from cdc_core.lake.tables import spark_type, string_literal
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import arrow_type


def default_values(schema: TableSchema, columns: Iterable[str]) -> dict[str, str]:
    """SQL of what older rows have in each named column
    (:func:`~cdc_core.decode.defaults.scalar_of_older_rows`)."""
    values = {}
    for name in columns:
        column = schema.column(name)
        values[name] = sql_literal(_value(column), arrow_type(column))
    return values


def _value(column: Column) -> Any:
    scalar = scalar_of_older_rows(column)
    return None if scalar is None else scalar.as_py()


def has_value(default: str) -> bool:
    """Is a default, as :func:`default_values` gives it, another one than NULL?"""
    return not default.startswith("CAST(NULL ")


def sql_literal(value: Any, kind: pa.DataType) -> str:
    """A Spark SQL literal of exactly the column's type."""
    if value is None:
        return f"CAST(NULL AS {spark_type(kind)})"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, datetime):
        return f"TIMESTAMP_NTZ{string_literal(value.isoformat(sep=' '))}"
    if isinstance(value, (int, float, Decimal)):
        return f"CAST({string_literal(str(value))} AS {spark_type(kind)})"
    return string_literal(value)
