"""What do people say of tables and their columns in Oracle (COMMENT ON …)?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cdc_core.model.identifiers import TableId
from cdc_core.schema.dictionary_queries import Queries, tables_condition

_TABLES = "SELECT OWNER, TABLE_NAME, COMMENTS FROM ALL_TAB_COMMENTS WHERE COMMENTS IS NOT NULL AND "
_COLUMNS = (
    "SELECT OWNER, TABLE_NAME, COLUMN_NAME, COMMENTS FROM ALL_COL_COMMENTS"
    " WHERE COMMENTS IS NOT NULL AND "
)


@dataclass(slots=True)
class TableComments:
    """The comment of a table, empty if it has none, and those of its columns."""

    table: str = ""
    columns: dict[str, str] = field(default_factory=dict)


def read_comments(session: Queries, tables: Iterable[TableId]) -> Mapping[TableId, TableComments]:
    """The comments of tables, each of which is in the answer."""
    found = {table: TableComments() for table in tables}
    if not found:
        return found
    condition, binds = tables_condition(found, "OWNER", "TABLE_NAME")
    for owner, name, text in session.fetch_all(_TABLES + condition, binds):
        found[TableId(owner, name)].table = text
    for owner, name, column, text in session.fetch_all(_COLUMNS + condition, binds):
        found[TableId(owner, name)].columns[column] = text
    return found
