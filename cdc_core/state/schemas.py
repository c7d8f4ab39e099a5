"""Which definitions has a table had, and which one was valid at an SCN?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, func, insert, select, update

from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.segments import knowing
from cdc_core.schema.table import TableSchema
from cdc_core.state.database import StorePart, cached
from cdc_core.state.sql_tables import SCHEMA_VERSIONS as VERSIONS
from cdc_core.state.sql_tables import TABLES, of

_OF_TABLE = (
    VERSIONS.c.source == bindparam("of"),
    VERSIONS.c.owner == bindparam("of_owner"),
    VERSIONS.c.name == bindparam("of_name"),
)
_ALL = select(VERSIONS).where(VERSIONS.c.source == bindparam("of")).order_by(VERSIONS.c.scn_from)
_VERSIONS = select(VERSIONS).where(*_OF_TABLE).order_by(VERSIONS.c.scn_from)
_NEWEST = select(VERSIONS).where(*_OF_TABLE).order_by(VERSIONS.c.scn_from.desc()).limit(1)
_AT = _NEWEST.where(VERSIONS.c.scn_from <= bindparam("at"))


@cache
def _newest_versions() -> Any:
    newest = (
        select(VERSIONS.c.owner, VERSIONS.c.name, func.max(VERSIONS.c.scn_from).label("scn_from"))
        .where(VERSIONS.c.source == bindparam("of"))
        .group_by(VERSIONS.c.owner, VERSIONS.c.name)
        .subquery()
    )
    same = and_(
        VERSIONS.c.owner == newest.c.owner,
        VERSIONS.c.name == newest.c.name,
        VERSIONS.c.scn_from == newest.c.scn_from,
    )
    return select(VERSIONS).join(newest, same).where(VERSIONS.c.source == bindparam("of"))


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """A version of a table's definition, valid from ``schema.scn_from`` on; ``ddl`` is the
    statement that made it."""

    source: str
    schema: TableSchema
    ddl: str | None = None


class SchemaHistory(StorePart):
    """The schema history."""

    @cached
    def versions(self, table: TableId) -> list[SchemaVersion]:
        """A table's versions, oldest first."""
        with self._database.reading() as connection:
            rows = connection.execute(_VERSIONS, _place(self._source, table)).mappings()
            return [_version_from_row(row) for row in rows]

    @cached
    def by_table(self) -> dict[TableId, tuple[SchemaVersion, ...]]:
        """The versions of every table, oldest first: one query, however many tables there are."""
        found: dict[TableId, list[SchemaVersion]] = {}
        with self._database.reading() as connection:
            for row in connection.execute(_ALL, {"of": self._source}).mappings():
                version = _version_from_row(row)
                found.setdefault(version.schema.table, []).append(version)
        return {table: tuple(versions) for table, versions in found.items()}

    @cached
    def newest(self) -> dict[TableId, TableSchema]:
        """Every table's newest version."""
        with self._database.reading() as connection:
            rows = connection.execute(_newest_versions(), {"of": self._source}).mappings()
            found = [_version_from_row(row).schema for row in rows]
        return {schema.table: schema for schema in found}

    @cached
    def at(self, table: TableId, scn: Scn) -> TableSchema | None:
        """The version valid at an SCN; None if the SCN is before the first one."""
        place = {**_place(self._source, table), "at": scn}
        with self._database.reading() as connection:
            row = connection.execute(_AT, place).mappings().first()
            return _version_from_row(row).schema if row else None

    def save(self, version: SchemaVersion) -> None:
        """Write the version that is valid from its ``schema.scn_from`` on, new or not."""
        with self._database.writing() as connection:
            put_schema(connection, version.source, version.schema, version.ddl)


def newest_schema(connection: Connection, source: str, table: TableId) -> TableSchema | None:
    """A table's newest version, inside the caller's transaction."""
    row = connection.execute(_NEWEST, _place(source, table)).mappings().first()
    return _version_from_row(row).schema if row else None


def put_schema(connection: Connection, source: str, schema: TableSchema, ddl: str | None) -> None:
    """Write one version inside the caller's transaction, with which the table has a new
    revision."""
    named = of(TABLES, source, schema.table)
    connection.execute(update(TABLES).where(named).values(revision=TABLES.c.revision + 1))
    place = of(VERSIONS, source, schema.table, scn_from=schema.scn_from)
    connection.execute(delete(VERSIONS).where(place))
    connection.execute(
        insert(VERSIONS).values(
            source=source,
            owner=schema.table.owner,
            name=schema.table.name,
            scn_from=schema.scn_from,
            schema=schema,
            ddl=ddl,
        )
    )


def keep_segments(connection: Connection, source: str, schema: TableSchema) -> None:
    """Add what a version knows of its table's segments to the stored one, inside the caller's
    transaction."""
    if not schema.segments:  # a table without partitions, as most are: nothing is asked
        return
    place = of(VERSIONS, source, schema.table, scn_from=schema.scn_from)
    row = connection.execute(select(VERSIONS).where(place)).mappings().first()
    if row is None:
        return
    stored = _version_from_row(row)
    known = knowing(stored.schema, schema.segments)
    if known is not stored.schema:
        put_schema(connection, source, known, stored.ddl)


def _place(source: str, table: TableId) -> dict[str, Any]:
    return {"of": source, "of_owner": table.owner, "of_name": table.name}


def _version_from_row(row: Any) -> SchemaVersion:
    return SchemaVersion(row["source"], row["schema"], row["ddl"])
