"""Which keys does a chunk speak for, in the lake's own types?

A whole-table chunk of a key range also says which keys are not there, so that the mirror can drop them. The bounds are kept
as Oracle's text; here they become values that compare in Delta as the key compares in Oracle.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from cdc_core.lake.chunks import KeyRange
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import arrow_type, is_number_text
from cdc_core.snapshot.plan import Bound, ChunkRange


def key_range(chunk: ChunkRange, schema: TableSchema, *, condition: str | None) -> KeyRange | None:
    """The keys for which the chunk holds every row that there is; None if it cannot be said.

    It cannot for a chunk with a condition, for ROWID ranges, and for bounds of NUMBER columns without scale: these are text
    in Delta, which does not compare as numbers do.
    """
    if condition is not None or chunk.kind != "key":
        return None
    if chunk.low is None and chunk.high is None:
        return KeyRange()
    columns = [schema.column(name) for name in schema.key]
    if any(is_number_text(column) for column in columns):
        return None
    return KeyRange(
        _values(chunk.low, columns),
        _values(chunk.high, columns),
        low_included=True,
        high_included=False,
    )


def _values(bound: Bound | None, columns: list[Column]) -> tuple[Any, ...] | None:
    if bound is None:
        return None
    return tuple(_value(text, column) for text, column in zip(bound, columns, strict=True))


def _value(text: str, column: Column) -> Any:
    kind = arrow_type(column)
    if pa.types.is_integer(kind):
        return int(text)
    if pa.types.is_decimal(kind):
        return Decimal(text)
    if pa.types.is_binary(kind):
        return bytes.fromhex(text)
    if pa.types.is_timestamp(kind):
        return datetime.fromisoformat(text.strip()[:26])
    return text.strip() if column.data_type.startswith("TIMESTAMP") else text
