"""How is a captured table defined, now or as of an SCN?

Source: Oracle Database Reference 19c, ALL_TAB_COLS, ALL_CONSTRAINTS, ALL_INDEXES; Database Development Guide 19c, "Using
Oracle Flashback Query": past data of static dictionary views can be queried, of V$ views not.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

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
from cdc_core.schema.all_columns import refuse_all_columns
from cdc_core.schema.ddl_times import ddl_times
from cdc_core.schema.forms import in_forms
from cdc_core.schema.table import (
    IN_ROW_BYTES_MAX,
    LOB_TYPES,
    ROW_DIGEST,
    ROW_DIGEST_COLUMN,
    ROW_ID,
    ROW_ID_COLUMN,
    Column,
    TableSchema,
)
from cdc_core.schema.types import MASKED_TYPES, is_captured

LIST_MAX = 1000
"""So many values may stand in one IN list (ORA-01795); since 23ai 65,535.

Source: Oracle Database SQL Language Reference 19c, "Expression Lists"; Error Help, ORA-01795.
"""


class Queries(Protocol):
    """What the dictionary is read through: an :class:`~cdc_core.oracle.session.OracleSession`."""

    user: str
    """The user that is logged on, to whom rights would have to be granted."""

    def fetch_all(self, sql: str, binds: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """All rows of a query."""


_COLUMNS = """
SELECT OWNER, TABLE_NAME, COLUMN_NAME, DATA_TYPE, DATA_LENGTH, CHAR_LENGTH, DATA_PRECISION, DATA_SCALE, NULLABLE,
       DATA_DEFAULT, CASE WHEN HIDDEN_COLUMN = 'YES' AND USER_GENERATED = 'NO' THEN 'YES' ELSE 'NO' END, VIRTUAL_COLUMN,
       SEGMENT_COLUMN_ID
  FROM ALL_TAB_COLS{as_of}
 WHERE {tables}
 ORDER BY OWNER, TABLE_NAME, INTERNAL_COLUMN_ID"""
"""In the order in which the columns came: an invisible one has no COLUMN_ID, and another one when it is visible again."""

OF_ROWS = "(VIRTUAL_COLUMN = 'NO' OR USER_GENERATED = 'YES')"
"""Of ALL_TAB_COLS: not a column that Oracle derives for itself, for an index on an expression or in descending order (SYS_NC0000n$) or
for extended statistics (SYS_STS…). No row has those, no redo names them, and they come and go with no DDL of the table."""

_PRIMARY_KEYS = """
SELECT K.OWNER, K.TABLE_NAME, K.COLUMN_NAME, C.DEFERRABLE
  FROM ALL_CONSTRAINTS{as_of} C, ALL_CONS_COLUMNS{as_of} K
 WHERE C.CONSTRAINT_TYPE = 'P' AND C.STATUS = 'ENABLED'
   AND K.OWNER = C.OWNER AND K.CONSTRAINT_NAME = C.CONSTRAINT_NAME AND {tables}
 ORDER BY K.OWNER, K.TABLE_NAME, K.POSITION"""
_UNIQUE_INDEXES = """
SELECT K.TABLE_OWNER, K.TABLE_NAME, K.INDEX_OWNER, K.INDEX_NAME, K.COLUMN_NAME
  FROM ALL_INDEXES{as_of} I, ALL_IND_COLUMNS{as_of} K
 WHERE I.UNIQUENESS = 'UNIQUE' AND K.INDEX_OWNER = I.OWNER AND K.INDEX_NAME = I.INDEX_NAME AND {tables}
 ORDER BY K.TABLE_OWNER, K.TABLE_NAME, K.INDEX_OWNER, K.INDEX_NAME, K.COLUMN_POSITION"""
_OBJECTS = """
SELECT OWNER, OBJECT_NAME, OBJECT_ID
  FROM ALL_OBJECTS{as_of}
 WHERE OBJECT_TYPE = 'TABLE' AND {tables}"""
_INDEX_ORGANIZED = (
    "SELECT OWNER, TABLE_NAME FROM ALL_TABLES WHERE IOT_TYPE IS NOT NULL AND {tables}"
)
_CLUSTERED = "SELECT OWNER, TABLE_NAME, CLUSTER_NAME FROM ALL_TABLES WHERE CLUSTER_NAME IS NOT NULL AND {tables}"
_CHARACTER_SETS = """
SELECT PARAMETER, VALUE FROM NLS_DATABASE_PARAMETERS WHERE PARAMETER IN ('NLS_CHARACTERSET', 'NLS_NCHAR_CHARACTERSET')
 UNION ALL SELECT 'DBTIMEZONE', DBTIMEZONE FROM DUAL"""
_LOCAL_TIMES = "SELECT OWNER, TABLE_NAME, COLUMN_NAME FROM ALL_TAB_COLS WHERE DATA_TYPE LIKE '%LOCAL TIME ZONE' AND {tables}"
_RELEASE = "SELECT VERSION FROM PRODUCT_COMPONENT_VERSION WHERE PRODUCT LIKE 'Oracle%Database%'"
_MEASURED_FROM = 23
_LATER_DDL = """
SELECT OWNER, OBJECT_NAME, CASE WHEN LAST_DDL_TIME > :behind THEN 1 ELSE 0 END
  FROM ALL_OBJECTS
 WHERE OBJECT_TYPE = 'TABLE' AND {tables}
   AND LAST_DDL_TIME > :before"""
_NEAR = "SELECT OWNER, TABLE_NAME FROM ALL_TABLES WHERE OWNER = :owner OR TABLE_NAME = :name"

_NO_KEY = (
    "Name unique NOT NULL columns under the table's key; or set identity: rowid in the table's "
    "own entry: rows are then identified by ROWID, and any operation that changes ROWIDs (ALTER "
    "TABLE … MOVE, SHRINK SPACE, partitions that are split or merged) stops the table until you "
    "resnapshot it; or, for a table without LOBs, set identity: all_columns there, which counts "
    "equal rows and allows rows to move."
)
_NO_KEY_WITH_DOCUMENTS = (
    "Name unique NOT NULL columns under the table's key, or leave the table out. Its rows "
    "cannot be identified by ROWID, since LogMiner does not always show it in tables with "
    "XMLTYPE columns: {documents}."
)


AlteredAfter = Callable[[TableId, Scn], bool]
"""Was a table altered within seconds after an SCN? Asked where the times of SCN and DDL cannot tell, after the present definition was
read."""


def read_table_schema(
    session: Queries,
    config: TableConfig,
    *,
    scn: Scn | None = None,
    before: TableSchema | None = None,
    altered_after: AlteredAfter | None = None,
    after: TableSchema | None = None,
) -> TableSchema:
    """One table's definition; see :func:`read_table_schemas`."""
    return read_table_schemas(
        session,
        [config],
        scn=scn,
        before=[] if before is None else [before],
        altered_after=altered_after,
        after=[] if after is None else [after],
    )[0]


def read_table_schemas(
    session: Queries,
    configs: Sequence[TableConfig],
    *,
    scn: Scn | None = None,
    before: Sequence[TableSchema] = (),
    altered_after: AlteredAfter | None = None,
    after: Sequence[TableSchema] = (),
) -> list[TableSchema]:
    """The tables' definitions, in the order of ``configs``, with one read for all.

    Args:
        session: In the container of the tables.
        configs: At least one table.
        scn: As of when; now if None. Where Oracle refuses to look back (no FLASHBACK right on dictionary views, no undo), the
            present definition is used if no DDL has happened since.
        before: Definitions that were valid at ``scn`` or right before it: where the present one is the same, no DDL of the seconds
            around ``scn`` changed it.
        altered_after: Tells of DDL within these seconds; without an answer it counts as later.
        after: Definitions from any time before: as those of ``before``, they keep their keys as long as these identify rows, whatever other
            key or unique index comes beside them.

    Returns:
        Schemas with ``scn_from`` = ``scn`` (0 if None). Virtual columns are among ``excluded``, and those that Oracle hides for itself;
        invisible ones are columns like others. Of tables that a pattern took in, columns of types that are not captured are too.

    Raises:
        ConfigError: A table, or a column of its configured key, is unknown; the hint has names that are near. Other columns that the
            configuration names may come later, or have gone: what it says of them holds while they are there.
        PreflightError: A table has no key.
        SchemaMismatchError: The definition as of ``scn`` cannot be known any more.
    """
    keys = {one.table: one.key for one in (*after, *before)}
    if scn is None:
        return _read(session, configs, keys, scn=None, valid_from=Scn(0))
    try:
        return _read(session, configs, keys, scn=scn, valid_from=scn)
    except (OracleError, PreflightError, SchemaMismatchError, SnapshotTooOldError) as error:
        # No right to look back, no undo any more, or a dictionary table that was altered itself.
        if "ora" not in error.facts:
            raise
        near, is_repeated = _refuse_later_ddl(session, configs, scn, error)
        found = _read(session, configs, keys, scn=None, valid_from=scn)
        same = {one.table for one in found if replace(one, scn_from=Scn(0)) in _timeless(before)}
        later = [
            table
            for table in near
            if table not in same
            and (is_repeated or altered_after is None or altered_after(table, scn))
        ]
        if later:
            raise _altered(session, later, scn) from error
        return found


def read_each_schema(
    session: Queries,
    configs: Sequence[TableConfig],
    *,
    scn: Scn | None = None,
    before: Sequence[TableSchema] = (),
) -> dict[TableId, TableSchema | CdcError]:
    """The tables' definitions as :func:`read_table_schemas` gives them, with one read for all; for a table that has none, the error that says why.

    Where Oracle refuses to look back, each table is read by itself: a DDL of one of them keeps no other from it.
    """
    if not configs:
        return {}
    keys = {one.table: one.key for one in before}
    try:
        rows = _read_rows(session, configs, scn)
    except (OracleError, PreflightError, SchemaMismatchError, SnapshotTooOldError):
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
    session: Queries, config: TableConfig, scn: Scn | None, before: Sequence[TableSchema]
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


def schema_from_rows(
    config: TableConfig,
    columns: Sequence[tuple[Any, ...]],
    primary_key: Sequence[str],
    unique_indexes: Sequence[Sequence[str]],
    *,
    object_id: int,
    scn: Scn,
    character_sets: Mapping[str, str] | None = None,
    is_index_organized: bool = False,
    primary_is_deferrable: bool = False,
    known_key: Sequence[str] = (),
) -> TableSchema:
    """Build one table's schema from dictionary rows. Pure.

    Args:
        config: What the user wants of it.
        columns: Rows (name, type, length, char length, precision, scale, nullable, default, hidden by Oracle, virtual, segment
            position) in order. Those that are hidden and virtual are no columns of the table.
        primary_key: Its columns; empty without one.
        unique_indexes: Columns of each unique index.
        character_sets: The database's ``NLS_CHARACTERSET`` and ``NLS_NCHAR_CHARACTERSET``, and its ``DBTIMEZONE``.
        is_index_organized: Its rows have no ROWIDs of a place, and a key. Asked for where that matters: with LOBs, or where no key identifies
            rows.
        primary_is_deferrable: Oracle may check the primary key at the end of a transaction. (An index that is unique is checked at once.)
        known_key: The key so far, which it stays as long as it is one of the table's.
    """
    unique_indexes = _of_columns(columns, unique_indexes)
    columns = [row for row in columns if not _is_derived(row)]
    left_out = [row[0] for row in columns if row[8] == "YES" or row[9] == "YES"]
    if config.takes_what_it_can and config.identity != "all_columns":
        of_keys = {name for one in (primary_key, *unique_indexes) for name in one}
        others = in_forms(config, tuple(_column(row) for row in columns), tuple(of_keys))
        left_out += [one.name for one in others if one.name not in of_keys and not is_captured(one)]
    usable = [_column(row) for row in columns if row[0] not in left_out]
    captured = tuple(column for column in usable if column.name not in config.columns_exclude)
    if is_index_organized:
        _refuse_unplaced_lobs(config, columns)
    key: tuple[str, ...] = (ROW_ID,)
    if config.identity == "rowid":
        _refuse_row_ids(config, columns, is_index_organized=is_index_organized)
        captured = (ROW_ID_COLUMN, *captured)
    elif config.identity == "all_columns":
        refuse_all_columns(config, usable, is_index_organized=is_index_organized)
        key, captured = (ROW_DIGEST,), (ROW_DIGEST_COLUMN, *captured)
    else:
        virtual = {row[0] for row in columns if row[9] == "YES"}
        keys = _candidates(primary_key, unique_indexes, known_key)
        key = _key(config, captured, primary_key, keys, virtual, _documents(columns))
    _refuse_held_keys(config, key)
    if refusal := mask_refusal(config, captured, key):
        raise ConfigError(
            refusal,
            hint="Leave them out there, or name them under columns_exclude.",
            table=config.table,
        )
    excluded = tuple(dict.fromkeys([*config.columns_exclude, *left_out]))
    checked = [*unique_indexes, *([] if primary_is_deferrable else [primary_key])]
    sets = character_sets or {}
    return TableSchema(
        table=config.table,
        scn_from=scn,
        columns=in_forms(config, captured, key),
        key=key,
        object_id=object_id,
        excluded=excluded,
        stored=_stored(columns),
        charset=sets.get("NLS_CHARACTERSET", ""),
        ncharset=sets.get("NLS_NCHAR_CHARACTERSET", ""),
        time_zone=sets.get("DBTIMEZONE", "") if any(one.is_local_time for one in captured) else "",
        masked=masks_of(config, captured),
        key_is_deferred=config.identity == "key"
        and not any(one and set(one) <= set(key) for one in checked),
        key_is_configured=bool(config.key),
        has_lobs=bool(_lobs(columns)),
    )


def _read(
    session: Queries,
    configs: Sequence[TableConfig],
    known_keys: Mapping[TableId, Sequence[str]],
    *,
    scn: Scn | None,
    valid_from: Scn,
) -> list[TableSchema]:
    rows = _read_rows(session, configs, scn)
    return [
        _schema_of(session, config, rows, known_keys.get(config.table, ()), valid_from)
        for config in configs
    ]


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


def _read_rows(session: Queries, configs: Sequence[TableConfig], scn: Scn | None) -> _Rows:
    tables = [config.table for config in configs]

    def rows(sql: str, owner: str, name: str) -> dict[TableId, list[tuple[Any, ...]]]:
        return _by_table(session, sql, tables, owner, name, scn)

    columns = rows(_COLUMNS, "OWNER", "TABLE_NAME")
    return _Rows(
        columns,
        rows(_PRIMARY_KEYS, "C.OWNER", "C.TABLE_NAME"),
        rows(_UNIQUE_INDEXES, "I.TABLE_OWNER", "I.TABLE_NAME"),
        rows(_OBJECTS, "OWNER", "OBJECT_NAME"),
        dict(session.fetch_all(_CHARACTER_SETS)),
        _index_organized(
            session,
            [one for one in configs if one.identity != "key" or _lobs(columns.get(one.table, []))],
        ),
        _clusters(session, [one for one in configs if one.identity == "rowid"]),
        None if scn is None else _local_times(session, columns),
    )


def _local_times(session: Queries, columns: _ByTable) -> dict[TableId, set[str]]:
    """The columns WITH LOCAL TIME ZONE that tables have now, of those that had some."""
    tables = [
        one for one, rows in columns.items() if any(_column(row).is_local_time for row in rows)
    ]
    if not tables:
        return {}
    condition, binds = tables_condition(tables, "OWNER", "TABLE_NAME")
    found: dict[TableId, set[str]] = {}
    for owner, name, column in session.fetch_all(_LOCAL_TIMES.format(tables=condition), binds):
        found.setdefault(TableId(owner, name), set()).add(column)
    return found


def _schema_of(
    session: Queries, config: TableConfig, rows: _Rows, known_key: Sequence[str], valid_from: Scn
) -> TableSchema:
    columns = rows.columns.get(config.table)
    if not columns:
        raise _unknown_table(session, config.table)
    _refuse_unmeasured(session, config, [row for row in columns if not _is_derived(row)])
    _refuse_clustered(config, rows.clusters.get(config.table))
    keys = rows.keys.get(config.table, [])
    objects = rows.objects.get(config.table, [])
    found = schema_from_rows(
        config,
        columns,
        [row[0] for row in keys],
        _indexes(rows.indexes.get(config.table, [])),
        object_id=int(objects[0][0]) if objects else 0,
        scn=valid_from,
        character_sets=rows.character_sets,
        is_index_organized=config.table in rows.index_organized,
        primary_is_deferrable=any(row[1] == "DEFERRABLE" for row in keys),
        known_key=known_key,
    )
    # DBTIMEZONE is that of now. It was the same then, if a column has been there since that keeps it.
    if rows.local_times is not None and not found.local_times & rows.local_times.get(
        config.table, set()
    ):
        return replace(found, time_zone="")
    return found


def _clusters(session: Queries, configs: Sequence[TableConfig]) -> dict[TableId, str]:
    """The clusters of those that are in one."""
    if not configs:
        return {}
    condition, binds = tables_condition([one.table for one in configs], "OWNER", "TABLE_NAME")
    rows = session.fetch_all(_CLUSTERED.format(tables=condition), binds)
    return {TableId(owner, name): cluster for owner, name, cluster in rows}


def _refuse_clustered(config: TableConfig, cluster: str | None) -> None:
    """Tables of a cluster share blocks: rows of two of them may have one ROWID, but within a table it is unique, which is all that an
    identity needs. An UPDATE of the cluster key, though, moves the row to the block of the other key while its ROWID stays; which one
    LogMiner shows of it from then on, nobody has measured.

    Source: Oracle Database SQL Language Reference 19c, "ROWID Pseudocolumn"; Oracle Database Concepts, "Rowid Data Types".
    """
    if cluster is not None:
        raise ConfigError(
            "identity: rowid is not for a table in a cluster: an UPDATE of the cluster key "
            "moves a row, and it is unproved which ROWID LogMiner shows from then on",
            hint="Name unique NOT NULL columns under the table's key, or set identity: all_columns, which knows rows by their values.",
            table=config.table,
            cluster=cluster,
        )


def _index_organized(session: Queries, configs: Sequence[TableConfig]) -> set[TableId]:
    """Those that are index-organized, which a table is for ever."""
    if not configs:
        return set()
    tables = [config.table for config in configs]
    condition, binds = tables_condition(tables, "OWNER", "TABLE_NAME")
    rows = session.fetch_all(_INDEX_ORGANIZED.format(tables=condition), binds)
    return {TableId(owner, name) for owner, name in rows}


def _by_table(
    session: Queries,
    sql: str,
    tables: Sequence[TableId],
    owner: str,
    name: str,
    scn: Scn | None,
) -> dict[TableId, list[tuple[Any, ...]]]:
    condition, binds = tables_condition(tables, owner, name)
    as_of = ""
    if scn is not None:
        as_of = " AS OF SCN :scn"
        binds["scn"] = scn
    found: dict[TableId, list[tuple[Any, ...]]] = {}
    for row in session.fetch_all(sql.format(as_of=as_of, tables=condition), binds):
        found.setdefault(TableId(row[0], row[1]), []).append(row[2:])
    return found


def tables_condition(
    tables: Iterable[TableId], owner: str, name: str, prefix: str = ""
) -> tuple[str, dict[str, Any]]:
    """A predicate that holds for rows of ``tables``, and its binds, whose names begin with ``prefix``.

    One term per owner, with its tables in lists that are no longer than Oracle takes: the predicate of 1,000 tables is as deep as that
    of one.
    """
    by_owner: dict[str, list[str]] = {}
    for table in sorted(set(tables)):
        by_owner.setdefault(table.owner, []).append(table.name)
    terms: list[str] = []
    binds: dict[str, Any] = {}
    named = 0
    for number, (of, names) in enumerate(by_owner.items()):
        own = {f"{prefix}n{named + at}": one for at, one in enumerate(names)}
        named += len(own)
        lists = (f"{name} IN ({listed})" for listed in in_lists(f":{one}" for one in own))
        terms.append(f"{owner} = :{prefix}o{number} AND ({' OR '.join(lists)})")
        binds |= {f"{prefix}o{number}": of, **own}
    return f"({' OR '.join(terms)})", binds


def in_lists(values: Iterable[object]) -> Iterator[str]:
    """The values in texts for IN lists, in their order, of which Oracle takes no longer ones."""
    listed = list(values)
    for at in range(0, len(listed), LIST_MAX):
        yield ", ".join(map(str, listed[at : at + LIST_MAX]))


def _indexes(rows: Sequence[tuple[Any, ...]]) -> list[list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for owner, index, column in rows:
        found.setdefault((owner, index), []).append(column)
    return list(found.values())


def _is_derived(row: tuple[Any, ...]) -> bool:
    """Is a column one that Oracle made for an index or for statistics? See :data:`OF_ROWS`."""
    return bool(row[8] == "YES" and row[9] == "YES")


def _of_columns(
    columns: Sequence[tuple[Any, ...]], indexes: Sequence[Sequence[str]]
) -> list[list[str]]:
    """The indexes with the columns that they are on in descending order in the place of what Oracle derives from them: values are as unique
    from the last to the first. An index on another expression keeps a name that no column of the table has, and is no key.

    Source: Oracle Database Reference 19c, ALL_IND_EXPRESSIONS; the expression of such a column is its name in quotes alone.
    """
    names = {f'"{row[0]}"': row[0] for row in columns if not _is_derived(row)}
    turned = {row[0]: names.get((row[7] or "").strip()) for row in columns if _is_derived(row)}
    return [[turned.get(name) or name for name in index] for index in indexes]


def _column(row: tuple[Any, ...]) -> Column:
    name, data_type, length, char_length, precision, scale, nullable, default = row[:8]
    return Column(
        name=name,
        data_type=data_type,
        length=int(length),
        char_length=int(char_length or 0),
        precision=None if precision is None else int(precision),
        scale=None if scale is None else int(scale),
        nullable=nullable == "Y",
        default=_default(default),
    )


def _stored(columns: Sequence[tuple[Any, ...]]) -> tuple[str, ...]:
    """Names by segment position, which only stored columns have."""
    placed = sorted((int(row[10]), row[0]) for row in columns if row[10] is not None)
    return tuple(name for _, name in placed)


def _default(text: str | None) -> str | None:
    stripped = (text or "").strip()
    return None if stripped.upper() in {"", "NULL"} else stripped


def _refuse_held_keys(config: TableConfig, key: Sequence[str]) -> None:
    named = [name for name in key if name in config.columns_as]
    if named:
        raise ConfigError(
            "columns_as names columns of the key",
            hint="Leave them out there: keys have the types of the type mapping.",
            table=config.table,
            columns=", ".join(named),
        )


def _refuse_row_ids(
    config: TableConfig, columns: Sequence[tuple[Any, ...]], *, is_index_organized: bool
) -> None:
    """The ROWID of an index-organized table's row changes with its key. Of tables with LOBs LogMiner shows a placeholder in most rows,
    and the ROWID in the row that closes the statement; where a statement writes a document beside LOBs, that row is not told from
    others (SEQUENCE# is 1, measured on 26ai by others), whether the document is captured or not."""
    if is_index_organized:
        raise ConfigError(
            "identity: rowid is not for an index-organized table, whose rows have no fixed ROWIDs",
            hint="Leave identity out: the table has a primary key.",
            table=config.table,
        )
    if documents := _documents(columns):
        raise ConfigError(
            "identity: rowid is not for a table with XMLTYPE columns, since LogMiner does not always show the ROWIDs of rows that a "
            "statement with documents writes",
            hint="Name unique NOT NULL columns under the table's key, or leave the table out.",
            table=config.table,
            columns=", ".join(documents),
        )


def _refuse_unmeasured(
    session: Queries, config: TableConfig, columns: Sequence[tuple[Any, ...]]
) -> None:
    """What closes the statements of tables with LOBs was measured from 23ai on. Where it is missing, nothing tells a statement from the one
    behind it if their rows are equal, as they may be in tables without a key."""
    if config.identity != "rowid" or not _lobs(columns):
        return
    [(version,), *_] = session.fetch_all(_RELEASE)
    if int(version.partition(".")[0]) < _MEASURED_FROM:
        raise ConfigError(
            "identity: rowid for a table with LOBs (or VARCHAR2 over 4000 bytes) needs Oracle "
            "23ai: it is unproved that LogMiner shows the ROWIDs of all its rows before that",
            hint="Name unique NOT NULL columns under the table's key, or leave the table out.",
            table=config.table,
            columns=", ".join(_lobs(columns)),
            version=version,
        )


def _refuse_unplaced_lobs(config: TableConfig, columns: Sequence[tuple[Any, ...]]) -> None:
    """A statement that writes LOBs has several redo rows and one undo row, and in an index-organized table none of them has an address:
    nothing shows what a partial rollback takes back, whether the LOB is captured or not."""
    if lobs := _lobs(columns):
        raise PreflightError(
            "an index-organized table with LOBs (or VARCHAR2 over 4000 bytes) is not captured, since its rows have no addresses by which "
            "LogMiner shows what a partial rollback takes back",
            hint="Leave the table out of `tables`, or make it a heap table (DBMS_REDEFINITION).",
            table=config.table,
            columns=", ".join(lobs),
        )


def _lobs(columns: Sequence[tuple[Any, ...]]) -> list[str]:
    """The columns that Oracle stores as LOBs, or may store so."""
    return [
        name
        for name, data_type, length, *_ in columns
        if data_type in LOB_TYPES or length > IN_ROW_BYTES_MAX.get(data_type, length)
    ]


def _documents(columns: Sequence[tuple[Any, ...]]) -> list[str]:
    return [name for name, data_type, *_ in columns if data_type == "XMLTYPE"]


def masks_of(config: TableConfig, captured: Sequence[Column]) -> tuple[tuple[str, str], ...]:
    """The captured columns that the configuration masks, and how, by name."""
    names = {column.name for column in captured}
    return tuple(sorted(one for one in config.columns_mask.items() if one[0] in names))


def mask_refusal(config: TableConfig, captured: Sequence[Column], key: Sequence[str]) -> str | None:
    """Why the configuration's masks cannot be; None if they can.

    A masked key would make one row of many, or give a row another key than Oracle's. A LOB is written in pieces, of which each would
    have to be masked alone.
    """
    of_key = [name for name in key if name in config.columns_mask]
    if of_key:
        return f"columns_mask names columns of the key: {', '.join(of_key)}"
    others = [
        f"{column.name} {column.data_type}"
        for column in captured
        if column.name in config.columns_mask and column.data_type not in MASKED_TYPES
    ]
    return f"columns_mask masks short text alone, not {', '.join(others)}" if others else None


def _candidates(
    primary_key: Sequence[str], unique_indexes: Sequence[Sequence[str]], known_key: Sequence[str]
) -> list[tuple[str, ...]]:
    """What may identify rows: the key so far, by which the lake knows them, else the primary key, else the shortest unique index."""
    found = [tuple(primary_key)] if primary_key else []
    found += sorted((tuple(index) for index in unique_indexes), key=lambda key: (len(key), key))
    return sorted(found, key=lambda key: key != tuple(known_key))


def _key(
    config: TableConfig,
    captured: Sequence[Column],
    primary_key: Sequence[str],
    candidates: Sequence[tuple[str, ...]],
    virtual: Set[str],
    documents: Sequence[str],
) -> tuple[str, ...]:
    """The configured key, else the first candidate whose columns are all NOT NULL."""
    certain = {column.name for column in captured if not column.nullable}
    names = {column.name for column in captured}
    if config.key:
        if named := virtual & set(config.key):
            raise _virtual_key(config, named)
        _refuse_unknown(config, "key", config.key, sorted(names))
        loose = [name for name in config.key if name not in certain]
        if loose:
            raise ConfigError(
                "columns of the configured key may be NULL",
                hint="Name NOT NULL columns under key, or make them NOT NULL.",
                table=config.table,
                columns=", ".join(loose),
            )
        return config.key
    for candidate in candidates:
        if candidate and certain.issuperset(candidate):
            return candidate
    if named := virtual & set(primary_key):
        raise _virtual_key(config, named)
    if primary_key and not names.issuperset(primary_key):
        raise ConfigError(
            "columns_exclude names a column of the primary key",
            hint="Capture the whole key, or name another one under key.",
            table=config.table,
        )
    raise PreflightError(
        "the table has no primary key and no unique index over NOT NULL columns",
        hint=_NO_KEY_WITH_DOCUMENTS.format(documents=", ".join(documents))
        if documents
        else _NO_KEY,
        table=config.table,
    )


def _virtual_key(config: TableConfig, named: Set[str]) -> PreflightError:
    return PreflightError(
        "the key has virtual columns, which are not in the redo",
        hint="Name unique NOT NULL columns that are stored under the table's key, or set identity: rowid in an entry of the table's own.",
        table=config.table,
        columns=", ".join(sorted(named)),
    )


def _refuse_unknown(
    config: TableConfig, field: str, named: Sequence[str], known: Sequence[str]
) -> None:
    unknown = [name for name in named if name not in known]
    if unknown:
        near = near_names(unknown[0], known)
        raise ConfigError(
            f"{field} names columns that the table does not have",
            hint=near or "Write names as the dictionary has them.",
            table=config.table,
            columns=", ".join(unknown),
        )


def near_names(name: str, known: Sequence[str]) -> str:
    """A sentence with the names that somebody may have meant; empty if none is near."""
    near = difflib.get_close_matches(name.upper(), known, n=3, cutoff=0.5)
    return f"Similar names: {', '.join(near)}." if near else ""


def _unknown_table(session: Queries, table: TableId) -> ConfigError:
    rows = session.fetch_all(_NEAR, {"owner": table.owner, "name": table.name})
    known = [str(one) for row in rows if (one := TableId(*row)) != table]
    near = difflib.get_close_matches(str(table), known, n=3, cutoff=0.5)
    meant = f"Did you mean {' or '.join(near)}? " if near else ""
    return ConfigError(
        "there is no such table, or the capture user may not read it",
        hint=f"{meant}If it exists: GRANT SELECT, FLASHBACK ON {table.sql} TO {session.user}",
        table=table,
    )


def _timeless(schemas: Sequence[TableSchema]) -> list[TableSchema]:
    return [replace(one, scn_from=Scn(0)) for one in schemas]


def _refuse_later_ddl(
    session: Queries, configs: Sequence[TableConfig], scn: Scn, cause: Exception
) -> tuple[list[TableId], bool]:
    """The tables whose last DDL lies within seconds of the SCN, before it or after it, and whether these seconds are an hour, which the host's
    clock repeats."""
    condition, binds = tables_condition(
        [config.table for config in configs], "OWNER", "OBJECT_NAME"
    )
    try:
        times = ddl_times(session, scn)
    except SnapshotTooOldError as error:  # after some five days Oracle maps an SCN to no time
        raise SchemaMismatchError(
            "whether the tables were altered after this SCN is no longer known, and Oracle does not show their earlier definition",
            hint="Plan a new snapshot of the tables: `redolake table resnapshot OWNER.TABLE`.",
            tables=", ".join(str(config.table) for config in configs),
            scn=scn,
        ) from error
    binds |= {"before": times.before, "behind": times.behind}
    changed = session.fetch_all(_LATER_DDL.format(tables=condition), binds)
    later = [TableId(owner, name) for owner, name, is_certain in changed if is_certain]
    if later:
        raise _altered(session, later, scn) from cause
    return [TableId(owner, name) for owner, name, _ in changed], bool(times.repeated)


def _altered(session: Queries, tables: Sequence[TableId], scn: Scn) -> SchemaMismatchError:
    return SchemaMismatchError(
        "the tables were altered after this SCN, or within seconds of it, and Oracle does not show their earlier definition",
        hint="GRANT FLASHBACK on SYS.ALL_TAB_COLS, ALL_CONSTRAINTS, ALL_CONS_COLUMNS, ALL_INDEXES, ALL_IND_COLUMNS and "
        f"ALL_OBJECTS TO {session.user}, or plan a new snapshot of the tables.",
        tables=", ".join(map(str, tables)),
        scn=scn,
    )
