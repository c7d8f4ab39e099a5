"""What does the metadata store keep of a table's definition?"""

from __future__ import annotations

from dataclasses import dataclass

from cdc_core.schema.table import TableSchema


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """A version of a table's definition, valid from ``schema.scn_from`` on; ``ddl`` is the statement that made it."""

    source: str
    schema: TableSchema
    ddl: str | None = None
