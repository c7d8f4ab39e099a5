"""What are the rows of the metadata store, as values?"""

from __future__ import annotations

from dataclasses import dataclass

from cdc_core.model.records import (
    AskedBy,
    ChunkRecord,
    ChunkState,
    Inexact,
    Lease,
    SourceRecord,
    TableRecord,
    TableState,
    WindowRecord,
    WindowState,
)
from cdc_core.schema.table import TableSchema

__all__ = [
    "AskedBy",
    "ChunkRecord",
    "ChunkState",
    "Inexact",
    "Lease",
    "SchemaVersion",
    "SourceRecord",
    "TableRecord",
    "TableState",
    "WindowRecord",
    "WindowState",
]


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """A version of a table's definition, valid from ``schema.scn_from`` on; ``ddl`` is the statement that made it."""

    source: str
    schema: TableSchema
    ddl: str | None = None
