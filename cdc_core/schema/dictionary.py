"""How is a captured table defined, now or as of an SCN?

Source: Oracle Database Reference 19c, ALL_TAB_COLS, ALL_CONSTRAINTS, ALL_INDEXES; Database
Development Guide 19c, "Using Oracle Flashback Query": past data of static dictionary views can be
queried, of V$ views not.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cdc_core.config import TableConfig
from cdc_core.errors import (
    CdcError,
    ConfigError,
    OracleError,
    PreflightError,
    SchemaMismatchError,
    SnapshotTooOldError,
    TransientError,
)
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.dictionary_queries import UserQueries, by_table, rows_about, tables_condition
from cdc_core.schema.dictionary_rows import (
    TableKeys,
    column_from_row,
    indexes_from_rows,
    is_derived,
    schema_from_rows,
)
from cdc_core.schema.keys import lobs_among, refuse_clustered, refuse_unmeasured
from cdc_core.schema.later_ddl import altered_since, refuse_later_ddl
from cdc_core.schema.table import TableSchema

_COLUMNS = """
SELECT OWNER, TABLE_NAME, COLUMN_NAME, DATA_TYPE, DATA_LENGTH, CHAR_LENGTH, DATA_PRECISION, DATA_SCALE, NULLABLE,
       DATA_DEFAULT, CASE WHEN HIDDEN_COLUMN = 'YES' AND USER_GENERATED = 'NO' THEN 'YES' ELSE 'NO' END, VIRTUAL_COLUMN,
       SEGMENT_COLUMN_ID
  FROM ALL_TAB_COLS{as_of}
 WHERE {tables}
 ORDER BY OWNER, TABLE_NAME, INTERNAL_COLUMN_ID"""
"""In the order in which the columns came: an invisible one has no COLUMN_ID, and another one when
it is visible again."""


_KEYS_AND_OBJECTS = """
SELECT K.OWNER, K.TABLE_NAME, K.COLUMN_NAME, C.DEFERRABLE, NULL, K.POSITION, 'key'
  FROM ALL_CONSTRAINTS{as_of} C, ALL_CONS_COLUMNS{as_of} K
 WHERE C.CONSTRAINT_TYPE = 'P' AND C.STATUS = 'ENABLED'
   AND K.OWNER = C.OWNER AND K.CONSTRAINT_NAME = C.CONSTRAINT_NAME AND {constraints}
 UNION ALL
SELECT K.TABLE_OWNER, K.TABLE_NAME, K.INDEX_OWNER, K.INDEX_NAME, K.COLUMN_NAME, K.COLUMN_POSITION, 'index'
  FROM ALL_INDEXES{as_of} I, ALL_IND_COLUMNS{as_of} K
 WHERE I.UNIQUENESS = 'UNIQUE' AND K.INDEX_OWNER = I.OWNER AND K.INDEX_NAME = I.INDEX_NAME AND {indexes}
 UNION ALL
SELECT OWNER, OBJECT_NAME, TO_CHAR(OBJECT_ID), NULL, NULL, 0, 'object'
  FROM ALL_OBJECTS{as_of}
 WHERE OBJECT_TYPE = 'TABLE' AND {objects}"""
"""Primary keys, unique indexes and objects: one statement, of which the last column says whose a
row is."""
_INDEX_ORGANIZED = (
    "SELECT OWNER, TABLE_NAME FROM ALL_TABLES WHERE IOT_TYPE IS NOT NULL AND {tables}"
)
_CLUSTERED = "SELECT OWNER, TABLE_NAME, CLUSTER_NAME FROM ALL_TABLES WHERE CLUSTER_NAME IS NOT NULL AND {tables}"
CHARACTER_SETS = """
SELECT PARAMETER, VALUE FROM NLS_DATABASE_PARAMETERS WHERE PARAMETER IN ('NLS_CHARACTERSET', 'NLS_NCHAR_CHARACTERSET')
 UNION ALL SELECT 'DBTIMEZONE', DBTIMEZONE FROM DUAL
 UNION ALL SELECT 'VERSION', MAX(VERSION) FROM PRODUCT_COMPONENT_VERSION WHERE PRODUCT LIKE 'Oracle%Database%'"""
"""Neither changes while the instance runs: a change of DBTIMEZONE counts once it was restarted.
Source: SQL Language Reference 19c, ALTER DATABASE (set_time_zone_clause)."""
_LOCAL_TIMES = "SELECT OWNER, TABLE_NAME, COLUMN_NAME FROM ALL_TAB_COLS WHERE DATA_TYPE LIKE '%LOCAL TIME ZONE' AND {tables}"
_NEAR = "SELECT OWNER, TABLE_NAME FROM ALL_TABLES WHERE OWNER = :owner OR TABLE_NAME = :name"


_PAST_ERRORS = (OracleError, PreflightError, SchemaMismatchError, SnapshotTooOldError)
"""How Oracle refuses to look back; the facts have its code."""

AlteredAfter = Callable[[TableId, Scn], bool]
"""Was a table altered within seconds after an SCN? Asked where the times of SCN and DDL cannot
tell, after the present definition was read."""


def read_table_schema(
    session: UserQueries,
    config: TableConfig,
    *,
    scn: Scn | None = None,
    before: TableSchema | None = None,
    altered_after: AlteredAfter | None = None,
    after: TableSchema | None = None,
) -> TableSchema:
    """One table's definition.

    Args:
        session: In the container of the table.
        config: What the user wants of it.
        scn: As of when; now if None. Where Oracle refuses to look back (no FLASHBACK right on
            dictionary views, no undo), the present definition is used if no DDL has happened since.
        before: A definition that was valid at ``scn`` or right before it: where the present one is
            the same, no DDL of the seconds around ``scn`` changed it.
        altered_after: Tells of DDL within these seconds; without an answer it counts as later.
        after: A definition from any time before: as that of ``before``, it keeps its key as long as
            this identifies rows, whatever other key or unique index comes beside it.

    Returns:
        A schema with ``scn_from`` = ``scn`` (0 if None). Virtual columns are among ``excluded``,
        and those that Oracle hides for itself; invisible ones are columns like others. Of a table
        that a pattern took in, columns of types that are not captured are too.

    Raises:
        ConfigError: The table, or a column of its configured key, is unknown; the hint has names
            that are near. Other columns that the configuration names may come later, or have gone:
            what it says of them holds while they are there.
        PreflightError: The table has no key.
        SchemaMismatchError: The definition as of ``scn`` cannot be known any more.
    """
    known = before or after
    key = () if known is None else known.key

    def read(past: Scn | None) -> TableSchema:
        rows = _read_rows(session, [config], past)
        return _schema_of(session, config, rows, key, Scn(0) if scn is None else scn)

    if scn is None:
        return read(None)
    try:
        return read(scn)
    except _PAST_ERRORS as error:
        # No right to look back, no undo any more, or a dictionary table that was altered itself.
        if "ora" not in error.facts:
            raise
        is_near, is_repeated = refuse_later_ddl(session, config.table, scn, error)
        found = read(None)
        is_same = before is not None and replace(before, scn_from=scn) == found
        if (is_near and not is_same) and (
            is_repeated or altered_after is None or altered_after(config.table, scn)
        ):
            raise altered_since(session, config.table, scn) from error
        return found


def read_each_schema(
    session: UserQueries,
    configs: Sequence[TableConfig],
    *,
    scn: Scn | None = None,
    before: Sequence[TableSchema] = (),
) -> dict[TableId, TableSchema | CdcError]:
    """The tables' definitions as :func:`read_table_schema` gives them, with one read for all; for
    a table that has none, the error that says why.

    Where Oracle refuses to look back, each table is read by itself: a DDL of one of them keeps no
    other from it.
    """
    if not configs:
        return {}
    keys = {one.table: one.key for one in before}
    try:
        rows = _read_rows(session, configs, scn)
    except _PAST_ERRORS:
        return {
            config.table: _or_error(partial(_read_one, session, config, scn, before))
            for config in configs
        }
    valid_from = Scn(0) if scn is None else scn
    return {
        config.table: _or_error(
            partial(_schema_of, session, config, rows, keys.get(config.table, ()), valid_from)
        )
        for config in configs
    }


def _read_one(
    session: UserQueries, config: TableConfig, scn: Scn | None, before: Sequence[TableSchema]
) -> TableSchema:
    own = next((one for one in before if one.table == config.table), None)
    return read_table_schema(session, config, scn=scn, before=own)


def _or_error(read: Callable[[], TableSchema]) -> TableSchema | CdcError:
    try:
        return read()
    except TransientError:
        raise
    except CdcError as error:
        return error


_ByTable = Mapping[TableId, Sequence[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class _Rows:
    """What the dictionary says of some tables."""

    columns: _ByTable
    keys: _ByTable
    indexes: _ByTable
    objects: _ByTable
    character_sets: Mapping[str, str]
    index_organized: Set[TableId]
    clusters: Mapping[TableId, str]
    local_times: Mapping[TableId, Set[str]] | None
    """Columns WITH LOCAL TIME ZONE that the tables have now, where the rows are of the past."""


def _read_rows(session: UserQueries, configs: Sequence[TableConfig], scn: Scn | None) -> _Rows:
    tables = [config.table for config in configs]
    as_of = "" if scn is None else " AS OF SCN :scn"
    past = {} if scn is None else {"scn": scn}
    sql = _COLUMNS.replace("{as_of}", as_of)
    columns = by_table(rows_about(session, sql, tables, past))
    keys, indexes, objects = _keys_and_objects(session, tables, as_of, past)
    placed = [
        one.table
        for one in configs
        if one.identity != "key" or lobs_among(columns.get(one.table, []))
    ]
    by_row_id = [one.table for one in configs if one.identity == "rowid"]
    return _Rows(
        columns,
        keys,
        indexes,
        objects,
        dict(session.fetch_once(CHARACTER_SETS)),
        {one for (one,) in rows_about(session, _INDEX_ORGANIZED, placed)},
        dict(rows_about(session, _CLUSTERED, by_row_id)),
        None if scn is None else _local_times(session, columns),
    )


def _keys_and_objects(
    session: UserQueries, tables: Sequence[TableId], as_of: str, past: Mapping[str, Any]
) -> tuple[_ByTable, _ByTable, _ByTable]:
    """The rows of primary keys and unique indexes, in the order of their columns, and of
    objects."""
    objects, binds = tables_condition(tables, "OWNER", "OBJECT_NAME")
    sql = _KEYS_AND_OBJECTS.format(
        as_of=as_of,
        constraints=tables_condition(tables, "C.OWNER", "C.TABLE_NAME")[0],
        indexes=tables_condition(tables, "I.TABLE_OWNER", "I.TABLE_NAME")[0],
        objects=objects,
    )
    found: dict[str, dict[TableId, list[tuple[Any, ...]]]] = {"key": {}, "index": {}, "object": {}}

    def place(row: tuple[Any, ...]) -> tuple[Any, ...]:
        index = row[2:4] if row[-1] == "index" else ("", "")
        return (*index, row[-2] or 0)

    for owner, name, *row, _, kind in sorted(session.fetch_all(sql, {**binds, **past}), key=place):
        found[kind].setdefault(TableId(owner, name), []).append(tuple(row))
    return found["key"], found["index"], found["object"]


def _local_times(session: UserQueries, columns: _ByTable) -> dict[TableId, set[str]]:
    """The columns WITH LOCAL TIME ZONE that tables have now, of those that had some."""
    tables = [
        one
        for one, rows in columns.items()
        if any(column_from_row(row).is_local_time for row in rows)
    ]
    found = by_table(rows_about(session, _LOCAL_TIMES, tables))
    return {table: {column for (column,) in rows} for table, rows in found.items()}


def _schema_of(
    session: UserQueries,
    config: TableConfig,
    rows: _Rows,
    known_key: Sequence[str],
    valid_from: Scn,
) -> TableSchema:
    columns = rows.columns.get(config.table)
    if not columns:
        raise _unknown_table(session, config.table)
    of_users = [row for row in columns if not is_derived(row)]
    refuse_unmeasured(config, of_users, rows.character_sets.get("VERSION", ""))
    refuse_clustered(config, rows.clusters.get(config.table))
    keys = rows.keys.get(config.table, [])
    objects = rows.objects.get(config.table, [])
    found = schema_from_rows(
        config,
        columns,
        TableKeys(
            primary=[row[0] for row in keys],
            unique=indexes_from_rows(rows.indexes.get(config.table, [])),
            is_deferrable=any(row[1] == "DEFERRABLE" for row in keys),
            known=known_key,
        ),
        object_id=int(objects[0][0]) if objects else 0,
        scn=valid_from,
        character_sets=rows.character_sets,
        is_index_organized=config.table in rows.index_organized,
    )
    # DBTIMEZONE is that of now. It was the same then, if a column has been there since that keeps
    # it.
    if rows.local_times is not None and not found.local_times & rows.local_times.get(
        config.table, set()
    ):
        return replace(found, time_zone="")
    return found


def _unknown_table(session: UserQueries, table: TableId) -> ConfigError:
    rows = session.fetch_all(_NEAR, {"owner": table.owner, "name": table.name})
    known = [str(one) for row in rows if (one := TableId(*row)) != table]
    near = difflib.get_close_matches(str(table), known, n=3, cutoff=0.5)
    meant = f"Did you mean {' or '.join(near)}? " if near else ""
    return ConfigError(
        "there is no such table, or the capture user may not read it",
        hint=f"{meant}If it exists: GRANT SELECT, FLASHBACK ON {table.sql} TO {session.user}",
        table=table,
    )
