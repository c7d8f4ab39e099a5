"""Where does a source begin, and of which database is it?"""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, delete, insert, select

from cdc_core.model.records import SourceRecord
from cdc_core.state.database import StorePart, cached
from cdc_core.state.sql_tables import SOURCES, values_of

_SOURCE = select(SOURCES).where(SOURCES.c.name == bindparam("of"))


class SourceRow(StorePart):
    """The source itself, once its first snapshot was begun."""

    @cached
    def get(self) -> SourceRecord | None:
        """The source; None before its first snapshot."""
        with self._database.reading() as connection:
            return source_row(connection, self._source)

    def save(self, record: SourceRecord) -> None:
        """Write a source, new or not."""
        with self._database.writing() as connection:
            connection.execute(delete(SOURCES).where(SOURCES.c.name == record.name))
            connection.execute(insert(SOURCES).values(values_of(SOURCES, record)))


def source_row(connection: Connection, name: str) -> SourceRecord | None:
    """The source of that name, inside the caller's transaction."""
    row = connection.execute(_SOURCE, {"of": name}).mappings().first()
    return SourceRecord(**row) if row else None
