"""How far are a source and its tables?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    Connection,
    CursorResult,
    and_,
    bindparam,
    delete,
    func,
    insert,
    select,
    true,
    update,
)

from cdc_core.model.chunks import NEW_ROWS
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import SourceRecord, TableRecord
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.streams import ReadAgain
from cdc_core.state.database import Database, moment
from cdc_core.state.json_text import json_from_text, text_from_json
from cdc_core.state.tables import CHUNKS, SOURCES, TABLES, WINDOWS

_AWAITS_ROWS = (
    select(CHUNKS.c.number)
    .where(
        CHUNKS.c.source == TABLES.c.source,
        CHUNKS.c.owner == TABLES.c.owner,
        CHUNKS.c.name == TABLES.c.name,
        func.substr(CHUNKS.c.snapshot_id, 1, len(NEW_ROWS)) == NEW_ROWS,
        CHUNKS.c.state != "applied",
    )
    .exists()
    .label("awaits_rows")
)
_SOURCE = select(SOURCES).where(SOURCES.c.name == bindparam("of"))
_TABLES = (
    select(TABLES, _AWAITS_ROWS)
    .where(TABLES.c.source == bindparam("of"))
    .order_by(TABLES.c.owner, TABLES.c.name)
)
_TABLE = select(TABLES, _AWAITS_ROWS).where(
    TABLES.c.source == bindparam("of"),
    TABLES.c.owner == bindparam("of_owner"),
    TABLES.c.name == bindparam("of_name"),
)
"""Every step asks for these several times, and building a query takes longer than SQLite takes to answer it."""

_REVISIONS = select(TABLES.c.owner, TABLES.c.name, TABLES.c.revision).where(
    TABLES.c.source == bindparam("of")
)


class SourceQueries:
    """Sources and their tables."""

    _database: Database

    def source(self, name: str) -> SourceRecord | None:
        """The source of that name."""
        with self._database.reading() as connection:
            return source_row(connection, name)

    def save_source(self, record: SourceRecord) -> None:
        """Write a source, new or not."""
        values = {column.name: getattr(record, column.name) for column in SOURCES.columns}
        with self._database.writing() as connection:
            connection.execute(delete(SOURCES).where(SOURCES.c.name == record.name))
            connection.execute(insert(SOURCES).values(values))

    def tables(self, source: str) -> list[TableRecord]:
        """The source's tables in the order of their names."""
        with self._database.reading() as connection:
            return table_rows(connection, source)

    def table_revisions(self, source: str) -> dict[tuple[str, str], int]:
        """How often each table's record was changed, by owner and name."""
        with self._database.reading() as connection:
            rows = connection.execute(_REVISIONS, {"of": source})
            return {(owner, name): revision for owner, name, revision in rows}

    def table(self, source: str, table: TableId) -> TableRecord | None:
        """One table."""
        with self._database.reading() as connection:
            return table_row(connection, source, table)

    def finish_snapshot(self, source: str, table: TableId) -> bool:
        """Make a joining table ready for windows, from its snapshot's SCN on, if all chunks of that snapshot are applied.

        Returns:
            Whether the table has become ready just now.
        """
        with self._database.writing() as connection:
            record = table_row(connection, source, table)
            if record is None or record.state != "snapshotting":
                return False
            unfinished = select(CHUNKS.c.number).where(
                CHUNKS.c.source == source,
                CHUNKS.c.owner == table.owner,
                CHUNKS.c.name == table.name,
                CHUNKS.c.snapshot_id == record.snapshot_id,
                CHUNKS.c.state != "applied",
            )
            if connection.execute(unfinished.limit(1)).first() is not None:
                return False
            ready = {
                "state": "ready",
                "mirror_scn": record.snapshot_scn,
                "revision": record.revision + 1,
            }
            connection.execute(update(TABLES).where(is_table(source, table)).values(ready))
            return True

    def record_error(
        self, source: str, window: ScnWindow, text: str, *, while_pending: bool = False
    ) -> None:
        """Keep an error's text with the window that it stopped; with ``while_pending`` unless the window is applied by now."""
        bounds = and_(
            WINDOWS.c.source == source,
            WINDOWS.c.scn_low == window.scn_low,
            WINDOWS.c.scn_high == window.scn_high,
            WINDOWS.c.state != "applied" if while_pending else true(),
        )
        with self._database.writing() as connection:
            connection.execute(update(WINDOWS).where(bounds).values(last_error=text))


def source_row(connection: Connection, name: str) -> SourceRecord | None:
    row = connection.execute(_SOURCE, {"of": name}).mappings().first()
    return SourceRecord(**row) if row else None


def is_table(source: str, table: TableId) -> Any:
    return and_(
        TABLES.c.source == source, TABLES.c.owner == table.owner, TABLES.c.name == table.name
    )


def table_row(connection: Connection, source: str, table: TableId) -> TableRecord | None:
    place = {"of": source, "of_owner": table.owner, "of_name": table.name}
    return next(iter(_records(connection.execute(_TABLE, place))), None)


def table_rows(connection: Connection, source: str) -> list[TableRecord]:
    return _records(connection.execute(_TABLES, {"of": source}))


def _records(rows: CursorResult[Any]) -> list[TableRecord]:
    # A mapping for each row takes as long as all the rest.
    names = list(rows.keys())
    return [_record(dict(zip(names, row, strict=True))) for row in rows]


def move_tables(connection: Connection, source: str, positions: Mapping[TableId, Scn]) -> None:
    """Set the positions of tables, in one call."""
    if not positions:
        return
    place = and_(
        TABLES.c.source == source,
        TABLES.c.owner == bindparam("of_owner"),
        TABLES.c.name == bindparam("of_name"),
    )
    moved = [
        {"of_owner": table.owner, "of_name": table.name, "to_scn": scn}
        for table, scn in positions.items()
    ]
    connection.execute(update(TABLES).where(place).values(mirror_scn=bindparam("to_scn")), moved)


def _record(values: dict[str, Any]) -> TableRecord:
    table = _table_id(values.pop("owner"), values.pop("name"))
    values |= {"since": moment(values["since"]), "read_again": _read_again(values["read_again"])}
    return TableRecord(table=table, **values)


_table_id = lru_cache(maxsize=4096)(TableId)
"""The same tables are read again and again, and a name is checked when it is made."""


def _read_again(text: str | None) -> tuple[ReadAgain, ...]:
    return tuple(map(ReadAgain.from_json, json_from_text(text))) if text else ()


def put_table(connection: Connection, record: TableRecord) -> None:
    """Write a table inside the caller's transaction, as a new revision."""
    known = table_row(connection, record.source, record.table)
    write_table(connection, replace(record, revision=1 + (known.revision if known else 0)))


def write_table(connection: Connection, record: TableRecord) -> None:
    """Write a table as it is inside the caller's transaction."""
    connection.execute(delete(TABLES).where(is_table(record.source, record.table)))
    values = {
        column.name: getattr(record, column.name)
        for column in TABLES.columns
        if column.name not in {"owner", "name"}
    }
    values |= {"owner": record.table.owner, "name": record.table.name}
    values["since"] = None if record.since is None else record.since.timestamp()
    values["read_again"] = text_from_json([one.as_json() for one in record.read_again])
    connection.execute(insert(TABLES).values(values))
