"""What does the metadata store hold of one source, as a whole, and how is that put into another
store?

An image is what can be made anew from landing and the Delta logs. Signals, leases, refused
passwords and the tables that patterns were found to name are not part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import delete, insert, select

from cdc_core.state.database import StorePart
from cdc_core.state.sql_tables import (
    CHUNKS,
    OPEN_TRANSACTIONS,
    SCHEMA_VERSIONS,
    SOURCES,
    TABLES,
    WINDOW_TABLES,
    WINDOWS,
)

Image = Mapping[str, Sequence[Mapping[str, Any]]]
"""Rows by the names of the store's tables, in the order of their primary keys."""

NOT_RECOVERABLE: Mapping[str, frozenset[str]] = {
    "windows": frozenset({"captured", "applied", "apply_seconds", "last_error"}),
    "window_tables": frozenset({"applied", "seconds", "write_way", "write_reason"}),
    "chunks": frozenset({"applied", "apply_seconds"}),
}
"""Columns that neither landing nor a Delta log has: when Redolake recorded a step, how long
applying took, and which way a mirror was written."""

_TABLES = (SOURCES, TABLES, WINDOWS, WINDOW_TABLES, CHUNKS, OPEN_TRANSACTIONS, SCHEMA_VERSIONS)


class Images(StorePart):
    """The whole of a source at once."""

    def get(self) -> Image:
        """All that the store holds of a source, but for what is not part of an image."""
        with self._database.reading() as connection:
            return {
                table.name: [
                    dict(row)
                    for row in connection.execute(
                        select(table)
                        .where(_source_of(table) == self._source)
                        .order_by(*table.primary_key.columns)
                    ).mappings()
                ]
                for table in _TABLES
            }

    def put(self, image: Image) -> None:
        """Put an image in the place of all that the store holds of the source, in one
        transaction."""
        with self._database.writing() as connection:
            for table in _TABLES:
                connection.execute(delete(table).where(_source_of(table) == self._source))
                if rows := image[table.name]:
                    connection.execute(insert(table), [dict(row) for row in rows])


def _source_of(table: Any) -> Any:
    return table.c.name if table is SOURCES else table.c.source
