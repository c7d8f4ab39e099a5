"""Under which object numbers do a table's rows lie?

A redo row carries the number of its segment (``DATA_OBJ#``): the table's own, or that of a
partition, a subpartition, or the top index of an index-organized table. A number is given once and
never again. ADD, SPLIT, MERGE and EXCHANGE give new ones, and so does an interval; MOVE, TRUNCATE
and RENAME keep them.

Source: measured on 23ai by others; Oracle Database Reference 19c, ALL_OBJECTS (SUBOBJECT_NAME),
ALL_INDEXES (``IOT - TOP``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cdc_core.errors import OracleError, PreflightError, SchemaMismatchError, SnapshotTooOldError
from cdc_core.model.data_objects import DataObjects
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.dictionary_queries import Queries, in_lists, rows_about, tables_condition
from cdc_core.schema.table import TableSchema

PAST_ERRORS = (OracleError, PreflightError, SchemaMismatchError, SnapshotTooOldError)
"""How Oracle refuses to look back: no right, no undo, no time known for an SCN."""
OBJECT_NUMBER_MAX = 2**32 - 1

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

_DATA_OBJECTS = f"""
SELECT OWNER, OBJECT_NAME, COUNT(*), SUM(DATA_OBJECT_ID), SUM(DATA_OBJECT_ID * DATA_OBJECT_ID), MAX(DATA_OBJECT_ID)
  FROM {{{{objects}}}}{{as_of}}
 WHERE OBJECT_TYPE IN ('TABLE', {_PARTS}) AND DATA_OBJECT_ID <= :newest AND {{tables}}
 GROUP BY OWNER, OBJECT_NAME"""
_OF_TOP_INDEXES = f"""
SELECT I.TABLE_OWNER, I.TABLE_NAME, COUNT(*), SUM(P.DATA_OBJECT_ID), SUM(P.DATA_OBJECT_ID * P.DATA_OBJECT_ID), MAX(P.DATA_OBJECT_ID)
  FROM ALL_INDEXES{{as_of}} I, {{{{objects}}}}{{as_of}} P
 WHERE I.INDEX_TYPE = 'IOT - TOP' AND P.OWNER = I.OWNER AND P.OBJECT_NAME = I.INDEX_NAME
   AND P.OBJECT_TYPE IN ({_INDEXES}) AND P.DATA_OBJECT_ID <= :newest AND {{tables}}
 GROUP BY I.TABLE_OWNER, I.TABLE_NAME"""


def read_segments(
    session: Queries, tables: Sequence[TableSchema]
) -> tuple[dict[TableId, set[int]], bool]:
    """The numbers of the segments that the tables have now, besides their own, with no entry for
    one that has none; and whether these are all, or those that one may see. A table is known by its
    number, whatever it is called now."""
    owners = {one.object_id: one.table for one in tables if one.object_id}
    found: dict[TableId, set[int]] = {}
    is_whole = len(owners) == len(tables)
    for numbers in in_lists(owners):
        condition = f"T.OBJECT_ID IN ({numbers})"
        rows, are_all = ask_objects(
            session, _SEGMENTS.format(objects="{objects}", numbers=condition)
        )
        is_whole &= are_all
        for table, segment in rows:
            found.setdefault(owners[int(table)], set()).add(int(segment))
    return found, is_whole


def have_segments(session: Queries, tables: Sequence[TableId]) -> set[TableId]:
    """Which of these are partitioned or index-organized now?"""
    return {table for (table,) in rows_about(session, _SEGMENTED, tables)}


def with_segments(session: Queries, schemas: Sequence[TableSchema]) -> list[TableSchema]:
    """Definitions with the segments that their tables have now, with one read for all."""
    segments, _ = read_segments(session, schemas)
    return [knowing(one, segments.get(one.table, ())) for one in schemas]


def knowing(schema: TableSchema, segments: Iterable[int]) -> TableSchema:
    """A definition that knows more segments of its table."""
    known = tuple(sorted({*schema.segments, *segments}))
    return schema if known == schema.segments else replace(schema, segments=known)


def read_data_objects(
    session: Queries,
    tables: Sequence[TableId],
    *,
    scn: Scn | None = None,
    newest: int = OBJECT_NUMBER_MAX,
) -> dict[TableId, DataObjects]:
    """The tables' data objects as of an SCN, now by default; of an index-organized table that of
    its top index. A table whose partitions one may not see has none.

    Args:
        newest: Count no data object that is younger.

    Raises:
        CdcError: Oracle does not look back so far, or the user has no right to.
    """
    as_of = "" if scn is None else " AS OF SCN :scn"
    binds = {"newest": newest} if scn is None else {"newest": newest, "scn": scn}
    found: dict[TableId, DataObjects] = {}
    asked = (
        (_DATA_OBJECTS, ("OWNER", "OBJECT_NAME")),
        (_OF_TOP_INDEXES, ("I.TABLE_OWNER", "I.TABLE_NAME")),
    )
    for sql, names in asked:
        missing = [one for one in tables if one not in found]
        if not missing:
            break
        condition, named = tables_condition(missing, *names)
        sql = sql.format(as_of=as_of, tables=condition)
        rows, _ = ask_objects(session, sql, {**binds, **named}, may_be_part=scn is None)
        for owner, name, *sums in rows:
            count, total, squares, last = map(int, sums)
            found[TableId(owner, name)] = DataObjects(
                count=count, total=total, squares=squares, newest=last
            )
    return found


def knowing_data_objects(
    session: Queries, schemas: Sequence[TableSchema], scn: Scn, before: Sequence[TableSchema]
) -> list[TableSchema]:
    """Definitions as of an SCN with the tables' data objects as of it.

    Args:
        before: Definitions with the data objects of a time before it, for where Oracle does not
            look back: what they are before and behind it, they are as of it.
    """
    tables = [one.table for one in schemas]
    try:
        found = read_data_objects(session, tables, scn=scn)
    except PAST_ERRORS:
        known = {one.table: one.data_objects for one in before}
        now = read_data_objects(session, tables)
        found = {table: one for table, one in now.items() if known.get(table) == one}
    return [replace(one, data_objects=found.get(one.table)) for one in schemas]


def ask_objects(
    session: Queries,
    sql: str,
    binds: Mapping[str, Any] | None = None,
    *,
    may_be_part: bool = True,
) -> tuple[list[tuple[Any, ...]], bool]:
    """Ask a query with ``{objects}`` of all objects, or where one may not and ``may_be_part``, of
    those that one may see; were it all?"""
    every, visible = VIEWS
    try:
        return session.fetch_all(sql.format(objects=every), binds), True
    except PreflightError:
        if not may_be_part:
            raise
        return session.fetch_all(sql.format(objects=visible), binds), False
