"""Which tables of a database could be captured, and what stands in the way of the others?"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from cdc_core.config import TableConfig
from cdc_core.errors import CdcError, UnsupportedTypeError
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import FoundTable
from cdc_core.schema.dictionary import Queries, read_table_schema
from cdc_core.schema.types import arrow_type

_TABLES = """
SELECT OWNER, TABLE_NAME, NUM_ROWS
  FROM ALL_TABLES
 WHERE TEMPORARY = 'N' AND NESTED = 'NO' AND SECONDARY = 'N' AND DROPPED = 'NO'
   AND (IOT_TYPE IS NULL OR IOT_TYPE = 'IOT')
 ORDER BY OWNER, TABLE_NAME"""


def find_tables(session: Queries, patterns: Sequence[str]) -> list[FoundTable]:
    """The tables whose ``OWNER.TABLE`` matches one of the patterns (``SHOP.*``, ``SHOP.ORDER?``), by name.

    Only tables that the session's user may see are found.
    """
    found = []
    for owner, name, rows in session.fetch_all(_TABLES):
        if any(fnmatchcase(f"{owner}.{name}", pattern) for pattern in patterns):
            found.append(
                _examine(session, TableId(owner, name), None if rows is None else int(rows))
            )
    return found


def _examine(session: Queries, table: TableId, rows: int | None) -> FoundTable:
    try:
        schema = read_table_schema(session, TableConfig(name=table.sql))
    except CdcError as error:
        return FoundTable(table, rows, left_out=error.message)
    unsupported = []
    for column in schema.columns:
        try:
            arrow_type(column)
        except UnsupportedTypeError:
            unsupported.append(column.name)
    in_key = [name for name in schema.key if name in unsupported]
    if in_key:
        why = f"its key has columns of types that are not captured: {', '.join(in_key)}"
        return FoundTable(table, rows, left_out=why)
    return FoundTable(table, rows, schema.key, tuple(unsupported))
