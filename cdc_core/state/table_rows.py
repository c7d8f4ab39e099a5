"""How does a captured table lie in the metadata store?"""

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
    update,
)

from cdc_core.model.chunks import BLOCKING, NEW_ROWS
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord
from cdc_core.model.scn import Scn
from cdc_core.state.sql_tables import CHUNKS, TABLES, of, values_of

_AWAITS_ROWS = (
    select(CHUNKS.c.number)
    .where(
        CHUNKS.c.source == TABLES.c.source,
        CHUNKS.c.owner == TABLES.c.owner,
        CHUNKS.c.name == TABLES.c.name,
        func.substr(CHUNKS.c.snapshot_id, 1, 1).in_((NEW_ROWS, BLOCKING)),
        CHUNKS.c.state.not_in(("applied", "dropped")),
    )
    .exists()
    .label("awaits_rows")
)
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
"""Every step asks for these several times, and building a query takes longer than SQLite takes to
answer it."""

TABLE_REVISIONS = select(TABLES.c.owner, TABLES.c.name, TABLES.c.revision).where(
    TABLES.c.source == bindparam("of")
)


def is_table(source: str, table: TableId) -> Any:
    return of(TABLES, source, table)


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
    return TableRecord(table=table, **values)


_table_id = lru_cache(maxsize=4096)(TableId)
"""The same tables are read again and again, and a name is checked when it is made."""


def put_table(connection: Connection, record: TableRecord) -> None:
    """Write a table inside the caller's transaction, as a new revision."""
    known = table_row(connection, record.source, record.table)
    write_table(connection, replace(record, revision=1 + (known.revision if known else 0)))


def write_table(connection: Connection, record: TableRecord) -> None:
    """Write a table as it is inside the caller's transaction."""
    connection.execute(delete(TABLES).where(is_table(record.source, record.table)))
    connection.execute(insert(TABLES).values(values_of(TABLES, record)))
