"""What do people say of tables and their columns in Oracle (COMMENT ON …)?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cdc_core.model.identifiers import TableId
from cdc_core.schema.dictionary_queries import Queries, rows_about

_TABLES = "SELECT OWNER, TABLE_NAME, COMMENTS FROM ALL_TAB_COMMENTS WHERE COMMENTS IS NOT NULL AND {tables}"
_COLUMNS = (
    "SELECT OWNER, TABLE_NAME, COLUMN_NAME, COMMENTS FROM ALL_COL_COMMENTS"
    " WHERE COMMENTS IS NOT NULL AND {tables}"
)


@dataclass(slots=True)
class TableComments:
    """The comment of a table, empty if it has none, and those of its columns."""

    table: str = ""
    columns: dict[str, str] = field(default_factory=dict)


def read_comments(session: Queries, tables: Iterable[TableId]) -> Mapping[TableId, TableComments]:
    """The comments of tables, each of which is in the answer."""
    found = {table: TableComments() for table in tables}
    for table, text in rows_about(session, _TABLES, found):
        found[table].table = text
    for table, column, text in rows_about(session, _COLUMNS, found):
        found[table].columns[column] = text
    return found
