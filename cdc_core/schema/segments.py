"""Under which object numbers do a table's rows lie?

A redo row carries the number of its segment (``DATA_OBJ#``): the table's own, or that of a partition, a subpartition, or the top index
of an index-organized table. A number is given once and never again. ADD, SPLIT, MERGE and EXCHANGE give new ones, and so does an
interval; MOVE, TRUNCATE and RENAME keep them.

Source: measured on 23ai by others; Oracle Database Reference 19c, ALL_OBJECTS (SUBOBJECT_NAME), ALL_INDEXES (``IOT - TOP``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from cdc_core.errors import PreflightError
from cdc_core.model.identifiers import TableId
from cdc_core.schema.dictionary import in_lists, tables_condition
from cdc_core.schema.table import TableSchema

# Who may only read a table need not see its partitions in ALL_OBJECTS.
VIEWS = ("DBA_OBJECTS", "ALL_OBJECTS")
_PARTS = "'TABLE PARTITION', 'TABLE SUBPARTITION'"
_INDEXES = "'INDEX', 'INDEX PARTITION', 'INDEX SUBPARTITION'"
_SEGMENTS = f"""
SELECT T.OBJECT_ID, P.OBJECT_ID
  FROM {{objects}} T, {{objects}} P
 WHERE T.OBJECT_TYPE = 'TABLE' AND {{numbers}}
   AND P.OWNER = T.OWNER AND P.OBJECT_NAME = T.OBJECT_NAME AND P.OBJECT_TYPE IN ({_PARTS})
UNION ALL
SELECT T.OBJECT_ID, P.OBJECT_ID
  FROM {{objects}} T, ALL_INDEXES I, {{objects}} P
 WHERE T.OBJECT_TYPE = 'TABLE' AND {{numbers}}
   AND I.INDEX_TYPE = 'IOT - TOP' AND I.TABLE_OWNER = T.OWNER AND I.TABLE_NAME = T.OBJECT_NAME
   AND P.OWNER = I.OWNER AND P.OBJECT_NAME = I.INDEX_NAME AND P.OBJECT_TYPE IN ({_INDEXES})"""

_SEGMENTED = """
SELECT OWNER, TABLE_NAME FROM ALL_TABLES WHERE (PARTITIONED = 'YES' OR IOT_TYPE = 'IOT') AND {tables}"""


class Queries(Protocol):
    """What is asked: an :class:`~cdc_core.oracle.session.OracleSession` in the container of the tables."""

    def fetch_all(self, sql: str, binds: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """All rows of a query."""


def read_segments(session: Queries, tables: Sequence[TableSchema]) -> dict[TableId, set[int]]:
    """The numbers of the segments that the tables have now, besides their own; no entry for one that has none. A table is known by its
    number, whatever it is called now."""
    owners = {one.object_id: one.table for one in tables if one.object_id}
    found: dict[TableId, set[int]] = {}
    for numbers in in_lists(owners):
        condition = f"T.OBJECT_ID IN ({numbers})"
        rows, _ = ask_objects(session, _SEGMENTS.format(objects="{objects}", numbers=condition))
        for table, segment in rows:
            found.setdefault(owners[int(table)], set()).add(int(segment))
    return found


def have_segments(session: Queries, tables: Sequence[TableId]) -> set[TableId]:
    """Which of these are partitioned or index-organized now?"""
    if not tables:
        return set()
    condition, binds = tables_condition(tables, "OWNER", "TABLE_NAME")
    rows = session.fetch_all(_SEGMENTED.format(tables=condition), binds)
    return {TableId(owner, name) for owner, name in rows}


def with_segments(session: Queries, schemas: Sequence[TableSchema]) -> list[TableSchema]:
    """Definitions with the segments that their tables have now, with one read for all."""
    segments = read_segments(session, schemas)
    return [knowing(one, segments.get(one.table, ())) for one in schemas]


def knowing(schema: TableSchema, segments: Iterable[int]) -> TableSchema:
    """A definition that knows more segments of its table."""
    known = tuple(sorted({*schema.segments, *segments}))
    return schema if known == schema.segments else replace(schema, segments=known)


def ask_objects(
    session: Queries, sql: str, binds: Mapping[str, Any] | None = None
) -> tuple[list[tuple[Any, ...]], bool]:
    """Ask a query with ``{objects}`` of all objects, or where one may not, of those that one may see; were it all?"""
    every, visible = VIEWS
    try:
        return session.fetch_all(sql.format(objects=every), binds), True
    except PreflightError:
        return session.fetch_all(sql.format(objects=visible), binds), False
