"""How is a key of the lake written as text that Oracle reads back exactly, and how does it become a
value of the lake again?

The texts are those of :class:`~cdc_core.snapshot.plan.ChunkRange`'s bounds: row values, which stay
in the metadata store.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import arrow_type


def key_texts(values: Sequence[Any], schema: TableSchema) -> tuple[str, ...]:
    """A key's values, of the Arrow types of ``schema.types`` and in the key's order, as texts."""
    columns = [schema.column(name) for name in schema.key]
    return tuple(_text(value, column) for value, column in zip(values, columns, strict=True))


def key_values(texts: Sequence[str], schema: TableSchema) -> tuple[Any, ...]:
    """The inverse of :func:`key_texts`."""
    columns = [schema.column(name) for name in schema.key]
    return tuple(_value(text, column) for text, column in zip(texts, columns, strict=True))


def _text(value: Any, column: Column) -> str:
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        moment = value.isoformat(sep=" ", timespec="microseconds")
        # The format model's S takes one character: the sign, or a blank.
        return f" {moment[:19]}" if column.data_type == "DATE" else f" {moment}000"
    if isinstance(value, bytes | bytearray):
        return value.hex().upper()
    if column.data_type.startswith("TIMESTAMP"):
        return value if value.startswith("-") else f" {value}"
    return str(value)


def _value(text: str, column: Column) -> Any:
    kind = arrow_type(column)
    if pa.types.is_integer(kind):
        return int(text)
    if pa.types.is_floating(kind):
        return float(text)
    if pa.types.is_decimal(kind):
        return Decimal(text)
    if pa.types.is_binary(kind):
        return bytes.fromhex(text)
    if pa.types.is_timestamp(kind):
        return datetime.fromisoformat(text.strip()[:26])
    return text.strip() if column.data_type.startswith("TIMESTAMP") else text
