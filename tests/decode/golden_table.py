"""The table of the golden pairs, and how its values are written in JSON."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import arrow_schema


def column(
    name: str, data_type: str, precision: int | None = None, scale: int | None = None
) -> Column:
    """A column as the tests need it."""
    return Column(name, data_type, 100, 100, precision, scale, nullable=True)


GOLDEN = TableSchema(
    table=TableId("S", "T"),
    scn_from=Scn(1),
    columns=(
        column("ID", "NUMBER", 10, 0),
        column("V", "VARCHAR2"),
        column("C", "CHAR"),
        column("NV", "NVARCHAR2"),
        column("L", "CLOB"),
        column("I", "NUMBER", 18, 0),
        column("NEG", "NUMBER", 12, -2),
        column("N92", "NUMBER", 9, 2),
        column("BIG", "NUMBER", None, 0),
        column("WIDE", "NUMBER", 38, 17),
        column("SMALL", "NUMBER", 3, 5),
        column("N", "NUMBER"),
        column("F", "FLOAT", 126),
        column("BD", "BINARY_DOUBLE"),
        column("BF", "BINARY_FLOAT"),
        column("D", "DATE"),
        column("T6", "TIMESTAMP(6)"),
        column("T9", "TIMESTAMP(9)"),
        column("R", "RAW"),
        column("B", "BLOB"),
        column("TZ", "TIMESTAMP(6) WITH TIME ZONE"),
        column("LTZ", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        column("YM", "INTERVAL YEAR(2) TO MONTH"),
        column("DS", "INTERVAL DAY(2) TO SECOND(6)"),
        column("it's ü / x", "VARCHAR2"),
    ),
    key=("ID",),
    excluded=("GEO",),
)


def value_from_json(name: str, value: Any) -> Any:
    """A golden value in the Python type that the column's Arrow type has."""
    held = arrow_schema(GOLDEN).field(name).type
    if value is None:
        return None
    if pa.types.is_decimal(held):
        return Decimal(value)
    if pa.types.is_timestamp(held):
        return datetime.fromisoformat(value)
    if pa.types.is_binary(held):
        return bytes.fromhex(value)
    if pa.types.is_floating(held):
        return float(value)
    return value
