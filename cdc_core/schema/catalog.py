"""Which tables of a database do patterns name, and what stands in the way of some of them?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cdc_core.config import MatchedTable, TableConfig
from cdc_core.errors import CdcError, PreflightError
from cdc_core.model.identifiers import TableId, can_be_named
from cdc_core.model.patterns import whose_tool
from cdc_core.model.reports import FoundTable
from cdc_core.schema.dictionary import read_each_schema
from cdc_core.schema.dictionary_queries import UserQueries, in_lists, rows_about, tables_condition
from cdc_core.schema.table import LOGMINER_NAME_BYTES_MAX, TableSchema
from cdc_core.schema.types import is_captured, is_unbounded_number

_TABLES = """
SELECT OWNER, TABLE_NAME, NUM_ROWS, TEMPORARY, NESTED, SECONDARY, IOT_TYPE
  FROM ALL_TABLES
 WHERE NVL(DROPPED, 'NO') = 'NO'
 ORDER BY OWNER, TABLE_NAME"""
"""DROPPED may be NULL for partitioned tables (Oracle Database Reference 19c, ALL_TABLES)."""
_SPECIAL = """
SELECT OWNER, QUEUE_TABLE, NULL, 'queue' FROM ALL_QUEUE_TABLES WHERE {queues}
 UNION ALL
SELECT OWNER, TABLE_NAME, TABLE_TYPE, 'object' FROM ALL_ALL_TABLES WHERE TABLE_TYPE IS NOT NULL AND NESTED = 'NO' AND {tables}
 UNION ALL
SELECT OWNER, TABLE_NAME, NULL, 'document' FROM ALL_XML_TABLES WHERE {tables}
 UNION ALL
SELECT OWNER, TABLE_NAME, NULL, 'external' FROM ALL_EXTERNAL_TABLES WHERE {tables}"""
_REASONS = {
    "queue": "it is the table of a queue, whose messages are objects",
    "object": "it is an object table, whose rows LogMiner does not show whole",
    "document": "it is an XMLTYPE table, whose rows LogMiner does not show whole",
    "external": "it is an external table: its rows are not in the redo",
}
"""Of a table that is of several kinds, the last one counts."""
_KINDS = """
SELECT OWNER, TABLE_NAME, 'N', NESTED, SECONDARY, IOT_TYPE
  FROM ALL_TABLES
 WHERE (NESTED = 'YES' OR SECONDARY = 'Y' OR IOT_TYPE <> 'IOT') AND {tables}"""
_NAMES = "SELECT OBJECT_ID, OWNER, OBJECT_NAME FROM ALL_OBJECTS WHERE OBJECT_TYPE = 'TABLE' AND OBJECT_ID IN ({numbers})"
_EXISTING = "SELECT OWNER, TABLE_NAME FROM ALL_TABLES WHERE NVL(DROPPED, 'NO') = 'NO' AND {tables}"
_OF_ORACLE = "SELECT USERNAME FROM ALL_USERS WHERE ORACLE_MAINTAINED = 'Y'"


def _of_its_own(table: TableId) -> TableConfig:
    """A table of which nobody has said anything."""
    return MatchedTable(name=table.sql)


def find_tables(
    session: UserQueries,
    wanted: Callable[[TableId], bool],
    known: Sequence[FoundTable] = (),
    entry: Callable[[TableId], TableConfig] = _of_its_own,
) -> list[FoundTable]:
    """The tables that are wanted, by name: among those that the session's user may see, and not
    Oracle's own.

    Args:
        session: In the container of the tables.
        wanted: Is it among those that the patterns name?
        known: Tables that were found before. One that could be captured then is not examined again.
        entry: What the configuration says of a table's key and columns.
    """
    taken = {one.table: one for one in known if not one.left_out and not whose_tool(one.table.name)}
    of_oracle = {owner for (owner,) in session.fetch_all(_OF_ORACLE)}
    listed = [
        (TableId(owner, name), rows, _kind(*kind) or _of_a_tool(name))
        for owner, name, rows, *kind in session.fetch_all(_TABLES)
        if owner not in of_oracle and can_be_named(owner, name) and wanted(TableId(owner, name))
    ]
    special = {
        table: reason
        for table, reason in _special_kinds(session).items()
        if table.owner not in of_oracle and wanted(table) and not whose_tool(table.name)
    }
    shown = {table for table, _, _ in listed}
    listed += [(table, None, reason) for table, reason in special.items() if table not in shown]
    listed.sort(key=lambda one: one[0])
    reasons = {table: special.get(table, kind) for table, _, kind in listed}
    examined = [entry(one) for one in reasons if one not in taken and not reasons[one]]
    schemas = read_each_schema(session, examined)
    found = []
    for table, rows, _ in listed:
        size = None if rows is None else int(rows)
        if table in taken and table not in special:
            found.append(taken[table])
        elif table in schemas:
            found.append(_examined(table, size, schemas[table]))
        else:
            found.append(FoundTable(table, size, left_out=reasons[table]))
    return found


def kinds_that_cannot_be_captured(
    session: UserQueries, tables: Sequence[TableId]
) -> dict[TableId, str]:
    """Which of these tables are of a kind whose rows the redo does not have under their name, and
    why: external tables, tables of objects, of documents and of queues, and what holds rows of
    another table or of an index. (Temporary tables are :mod:`cdc_core.preflight.rows`'s.)"""
    if not tables:
        return {}
    found = {table: _kind(*kind) for table, *kind in rows_about(session, _KINDS, tables)}
    named = set(tables)
    special = _special_kinds(session, tables)
    return found | {table: reason for table, reason in special.items() if table in named}


def _special_kinds(
    session: UserQueries, tables: Sequence[TableId] | None = None
) -> dict[TableId, str]:
    """Tables of kinds that have views of their own, and why they cannot be captured: of these, or
    all."""
    queues = condition = "1 = 1"
    binds: dict[str, Any] = {}
    if tables is not None:
        queues, binds = tables_condition(tables, "OWNER", "QUEUE_TABLE")
        condition, _ = tables_condition(tables, "OWNER", "TABLE_NAME")
    found: dict[str, dict[TableId, str]] = {kind: {} for kind in _REASONS}
    rows = session.fetch_all(_SPECIAL.format(queues=queues, tables=condition), binds)
    for owner, name, type_name, kind in rows:
        told = "document" if type_name == "XMLTYPE" else kind
        if can_be_named(owner, name):
            found[kind][TableId(owner, name)] = _REASONS[told]
    return {table: reason for of_kind in found.values() for table, reason in of_kind.items()}


def read_object_names(session: UserQueries, numbers: Iterable[int]) -> dict[int, TableId]:
    """What the tables with these object numbers are called now, as far as they are there."""
    found: dict[int, TableId] = {}
    for listed in in_lists(numbers):
        rows = session.fetch_all(_NAMES.format(numbers=listed))
        found |= {int(number): TableId(owner, name) for number, owner, name in rows}
    return found


def existing_tables(session: UserQueries, tables: Sequence[TableId]) -> set[TableId]:
    """Those that there are, and that one may see."""
    return {table for (table,) in rows_about(session, _EXISTING, tables)}


def _of_a_tool(name: str) -> str:
    whose = whose_tool(name)
    return whose and f"its name says that it is {whose}; its own entry would capture it"


def _kind(temporary: str, nested: str, secondary: str, iot_type: str | None) -> str:
    """Why a table of this kind cannot be captured; empty if it can."""
    if temporary == "Y":
        return "it is a temporary table: its rows are not in the redo"
    if nested == "YES":
        return "it holds a nested table of another table"
    if secondary == "Y":
        return "it belongs to an index"
    if iot_type not in {None, "IOT"}:
        return "it holds the overflow or the mapping of an index-organized table"
    return ""


def _examined(table: TableId, rows: int | None, schema: TableSchema | CdcError) -> FoundTable:
    if isinstance(schema, PreflightError):  # what is to be done is for its owner to choose
        return FoundTable(table, rows, left_out=f"{schema.message}. {schema.hint}")
    if isinstance(schema, CdcError):
        return FoundTable(table, rows, left_out=schema.message)
    unsupported = tuple(one.name for one in schema.columns if not is_captured(one))
    reason = _unusable(schema, unsupported)
    names = tuple(column.name for column in schema.columns)
    numbers = tuple(one.name for one in schema.columns if is_unbounded_number(one))
    return FoundTable(table, rows, schema.key, unsupported, reason, names, numbers)


def _unusable(schema: TableSchema, unsupported: Sequence[str]) -> str:
    in_key = [name for name in schema.key if name in unsupported]
    if in_key:
        return f"its key has columns of types that are not captured: {', '.join(in_key)}"
    captured = [name for name in schema.column_names if name not in unsupported]
    long = [
        name
        for name in (schema.table.owner, schema.table.name, *captured)
        if len(name.encode()) > LOGMINER_NAME_BYTES_MAX
    ]
    if long:
        return (
            f"LogMiner does not support names longer than {LOGMINER_NAME_BYTES_MAX} bytes: "
            f"{', '.join(long)}"
        )
    return ""
