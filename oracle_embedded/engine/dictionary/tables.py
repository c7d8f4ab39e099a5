"""What do the dictionary views of tables, columns, constraints, indexes and log groups show?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from oracle_embedded.api import OracleError
from oracle_embedded.engine.compile.queries import compile_select
from oracle_embedded.engine.datatypes import types
from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.dictionary.registry import Row, View, Views
from oracle_embedded.engine.run.environment import compilation
from oracle_embedded.engine.sql.queries import parse_query
from oracle_embedded.engine.storage.blocks import BLOCK_SIZE, DATA_FILE
from oracle_embedded.engine.storage.catalog import (
    ARCHIVE_STATE,
    ClusterDef,
    ColumnDef,
    IndexDef,
    SequenceDef,
    TableDef,
    ViewDef,
    data_length,
)
from oracle_embedded.engine.storage.companions import MAPPING, NESTED, OVERFLOW
from oracle_embedded.engine.storage.partitions import (
    DEFAULT,
    MAXVALUE,
    Partition,
    Partitioning,
)
from oracle_embedded.values import fields_from_date, nanos_from_timestamp, text_from_number

VIEWS = Views()
VIEWS.synonyms |= {
    "CLU": "USER_CLUSTERS",
    "COLS": "USER_TAB_COLUMNS",
    "IND": "USER_INDEXES",
    "TABS": "USER_TABLES",
}

_TABLESPACE = "USERS"
_DATE_BYTES = 7


def _tables(view: View) -> Iterator[TableDef]:
    return (item for item in view.definitions() if isinstance(item, TableDef))


def _named_tables(view: View) -> Iterator[TableDef]:
    """Those of which rows with TABLE_NAME are asked for."""
    named = view.definitions(view.wanted.get("TABLE_NAME"))
    return (item for item in named if isinstance(item, TableDef))


def _wanted_tables(view: View) -> Iterator[TableDef]:
    """Those of which rows with OWNER and TABLE_NAME are asked for."""
    return (item for item in _named_tables(view) if _is_wanted(view, item.owner, item.name))


def _is_wanted(view: View, owner: str, name: str) -> bool:
    return view.wants("OWNER", owner) and view.wants("TABLE_NAME", name)


def _row_count(view: View, table: TableDef) -> int | None:
    store = view.database.store
    with store.lock:
        if table.object_id not in store.activity:
            return None
        row = store.writer.sqlite.execute(f"SELECT count(*) FROM t{table.object_id}").fetchone()
    return int(row[0])


def _cluster_of(view: View, table: TableDef) -> str | None:
    if not table.cluster:
        return None
    found = view.definition(table.cluster)
    return found.name if isinstance(found, ClusterDef) else None


def _index_organized(view: View, table: TableDef) -> str | None:
    """The table that an overflow or mapping table belongs to."""
    parent = _parent(view, table) if table.companion in (OVERFLOW, MAPPING) else None
    return None if parent is None else parent.name


_TABLE_COLUMNS = (
    "OWNER:v128 TABLE_NAME:v128 TABLESPACE_NAME:v30 CLUSTER_NAME:v128 IOT_NAME:v128 STATUS:v8 PCT_FREE:n PCT_USED:n INI_TRANS:n"
    " MAX_TRANS:n INITIAL_EXTENT:n NEXT_EXTENT:n MIN_EXTENTS:n MAX_EXTENTS:n PCT_INCREASE:n FREELISTS:n FREELIST_GROUPS:n LOGGING:v3"
    " BACKED_UP:v1 NUM_ROWS:n BLOCKS:n EMPTY_BLOCKS:n AVG_SPACE:n CHAIN_CNT:n AVG_ROW_LEN:n AVG_SPACE_FREELIST_BLOCKS:n"
    " NUM_FREELIST_BLOCKS:n DEGREE:v10 INSTANCES:v10 CACHE:v5 TABLE_LOCK:v8 SAMPLE_SIZE:n LAST_ANALYZED:d PARTITIONED:v3 IOT_TYPE:v12"
    " TEMPORARY:v1 SECONDARY:v1 NESTED:v3 BUFFER_POOL:v7 FLASH_CACHE:v7 CELL_FLASH_CACHE:v7 ROW_MOVEMENT:v8 GLOBAL_STATS:v3"
    " USER_STATS:v3 DURATION:v15 SKIP_CORRUPT:v8 MONITORING:v3 CLUSTER_OWNER:v128 DEPENDENCIES:v8 COMPRESSION:v8 COMPRESS_FOR:v30"
    " DROPPED:v3 READ_ONLY:v3 SEGMENT_CREATED:v3 RESULT_CACHE:v7 CLUSTERING:v3 ACTIVITY_TRACKING:v23 DML_TIMESTAMP:v25 HAS_IDENTITY:v3"
    " CONTAINER_DATA:v3 INMEMORY:v8 INMEMORY_PRIORITY:v8 INMEMORY_DISTRIBUTE:v15 INMEMORY_COMPRESSION:v17 INMEMORY_DUPLICATE:v13"
    " DEFAULT_COLLATION:v100 DUPLICATED:v1 SHARDED:v1 EXTERNAL:v3 HYBRID:v3 CELLMEMORY:v24 CONTAINERS_DEFAULT:v3 CONTAINER_MAP:v3"
    " EXTENDED_DATA_LINK:v3 EXTENDED_DATA_LINK_MAP:v3 INMEMORY_SERVICE:v12 INMEMORY_SERVICE_NAME:v1000 CONTAINER_MAP_OBJECT:v3"
    " MEMOPTIMIZE_READ:v8 MEMOPTIMIZE_WRITE:v8 HAS_SENSITIVE_COLUMN:v3 ADMIT_NULL:v3 DATA_LINK_DML_ENABLED:v3 LOGICAL_REPLICATION:v8"
)
_OF_EACH_TABLE: Row = {
    "INI_TRANS": 1, "MAX_TRANS": 255, "BACKED_UP": "N", "FLASH_CACHE": "DEFAULT", "CELL_FLASH_CACHE": "DEFAULT", "GLOBAL_STATS": "NO",
    "USER_STATS": "NO", "SKIP_CORRUPT": "DISABLED", "RESULT_CACHE": "DEFAULT", "CLUSTERING": "NO", "CONTAINER_DATA": "NO",
    "INMEMORY": "DISABLED", "DUPLICATED": "N", "SHARDED": "N", "CONTAINERS_DEFAULT": "NO", "CONTAINER_MAP": "NO",
    "EXTENDED_DATA_LINK": "NO", "EXTENDED_DATA_LINK_MAP": "NO", "CONTAINER_MAP_OBJECT": "NO", "MEMOPTIMIZE_READ": "DISABLED",
    "MEMOPTIMIZE_WRITE": "DISABLED", "HAS_SENSITIVE_COLUMN": "NO", "ADMIT_NULL": "NO", "DATA_LINK_DML_ENABLED": "NO",
    "LOGICAL_REPLICATION": "ENABLED",
}  # fmt: skip
_OBJECT_TABLE_COLUMNS = " OBJECT_ID_TYPE:v16 TABLE_TYPE_OWNER:v128 TABLE_TYPE:v128"


@VIEWS.family("TABLES", _TABLE_COLUMNS, object_name="TABLE_NAME")
def _tables_view(view: View) -> Iterator[Row]:
    """Relational tables. Those in the recycle bin are in none of the views of tables, columns,
    indexes and objects.

    Source: Oracle Database Reference 19c, ALL_TABLES, column DROPPED.
    """
    return (row for row in _every_table(view) if not row["TABLE_TYPE"])


@VIEWS.family("OBJECT_TABLES", _TABLE_COLUMNS + _OBJECT_TABLE_COLUMNS, object_name="TABLE_NAME")
def _object_tables(view: View) -> Iterator[Row]:
    return (row for row in _every_table(view) if row["TABLE_TYPE"])


@VIEWS.family(
    "XML_TABLES",
    "OWNER:v128 TABLE_NAME:v128 XMLSCHEMA:v700 SCHEMA_OWNER:v128 ELEMENT_NAME:v2000 STORAGE_TYPE:v17",
    object_name="TABLE_NAME",
)
def _xml_tables(view: View) -> Iterator[Row]:
    for row in _object_tables(view):
        if (row["TABLE_TYPE_OWNER"], row["TABLE_TYPE"]) == ("SYS", "XMLTYPE"):
            yield {**row, "STORAGE_TYPE": "BINARY"}


@VIEWS.family("ALL_TABLES", _TABLE_COLUMNS + _OBJECT_TABLE_COLUMNS, object_name="TABLE_NAME")
def _every_table(view: View) -> Iterator[Row]:
    for table in _wanted_tables(view):
        if table.original_name:
            continue
        type_owner, type_name = table.object_type or (None, None)
        # The Reference says that the tablespace of a temporary table is NULL, too.
        has_segment = not (
            table.partitioning or table.is_index_organized or table.external or table.temporary
        )
        yield {
            **_OF_EACH_TABLE,
            "CLUSTER_NAME": _cluster_of(view, table),
            "OWNER": table.owner, "TABLE_NAME": table.name, "STATUS": "VALID",
            "HAS_IDENTITY": "YES" if any(column.identity for column in table.columns) else "NO",
            "TABLESPACE_NAME": (table.tablespace or _TABLESPACE) if has_segment else None,
            "PCT_FREE": None if table.partitioning else 10, "LOGGING": None if table.partitioning else "YES", "PARTITIONED": "YES" if table.partitioning else "NO",
            "IOT_TYPE": "IOT" if table.is_index_organized else table.companion if table.companion in (OVERFLOW, MAPPING) else None,
            "IOT_NAME": _index_organized(view, table),
            "TEMPORARY": "Y" if table.temporary else "N",
            "DURATION": ("SYS$SESSION" if table.keeps_rows else "SYS$TRANSACTION") if table.temporary else None,
            "SECONDARY": "N", "NESTED": "YES" if table.companion == NESTED else "NO",
            "ROW_MOVEMENT": "ENABLED" if table.has_row_movement else "DISABLED",
            "MONITORING": "YES", "DEPENDENCIES": "DISABLED", "COMPRESS_FOR": None if table.partitioning else table.compression or None,
            "COMPRESSION": None if table.partitioning else "ENABLED" if table.compression else "DISABLED",
            # The Reference says that it is NULL for partitioned tables.
            "DROPPED": None if table.partitioning else "NO", "READ_ONLY": "NO",
            "OBJECT_ID_TYPE": "SYSTEM GENERATED" if type_name else None, "TABLE_TYPE_OWNER": type_owner, "TABLE_TYPE": type_name,
            "SEGMENT_CREATED": "YES", "EXTERNAL": "YES" if table.external else "NO", "HYBRID": "NO", "DEFAULT_COLLATION": "USING_NLS_COMP",
            "NUM_ROWS": _row_count(view, table), "BLOCKS": _block_count(view, table), "LAST_ANALYZED": table.changed,
            "DEGREE": "         1", "INSTANCES": "         1", "CACHE": "    N", "TABLE_LOCK": "ENABLED", "BUFFER_POOL": "DEFAULT",
        }  # fmt: skip


@VIEWS.family(
    "CLUSTERS",
    "OWNER:v128 CLUSTER_NAME:v128 TABLESPACE_NAME:v30 PCT_FREE:n KEY_SIZE:n CLUSTER_TYPE:v5 FUNCTION:v15 HASHKEYS:n DEGREE:v10"
    " INSTANCES:v10 CACHE:v5 BUFFER_POOL:v7 SINGLE_TABLE:v5 DEPENDENCIES:v8",
    object_name="CLUSTER_NAME",
)
def _clusters(view: View) -> Iterator[Row]:
    for one in view.definitions():
        if isinstance(one, ClusterDef):
            yield {
                "OWNER": one.owner, "CLUSTER_NAME": one.name, "TABLESPACE_NAME": _TABLESPACE, "PCT_FREE": 10,
                "CLUSTER_TYPE": "HASH" if one.is_hash else "INDEX", "FUNCTION": "DEFAULT2" if one.is_hash else None,
                "DEGREE": "         1", "INSTANCES": "         1", "CACHE": "    N", "BUFFER_POOL": "DEFAULT", "SINGLE_TABLE": "    N",
                "DEPENDENCIES": "DISABLED",
            }  # fmt: skip


@VIEWS.family(
    "TAB_STATISTICS",
    "OWNER:v128 TABLE_NAME:v128 PARTITION_NAME:v128 OBJECT_TYPE:v12 NUM_ROWS:n BLOCKS:n AVG_ROW_LEN:n LAST_ANALYZED:d STALE_STATS:v7",
    object_name="TABLE_NAME",
)
def _statistics(view: View) -> Iterator[Row]:
    for table in _wanted_tables(view):
        yield {
            "OWNER": table.owner, "TABLE_NAME": table.name, "OBJECT_TYPE": "TABLE", "NUM_ROWS": _row_count(view, table),
            "BLOCKS": _block_count(view, table), "LAST_ANALYZED": table.changed, "STALE_STATS": "NO",
        }  # fmt: skip


# --- columns --------------------------------------------------------------------------------------

_COLUMN_NAMES = (
    "OWNER:v128 TABLE_NAME:v128 COLUMN_NAME:v128 DATA_TYPE:v128 DATA_TYPE_MOD:v3 DATA_TYPE_OWNER:v128 DATA_LENGTH:n"
    " DATA_PRECISION:n DATA_SCALE:n NULLABLE:v1 COLUMN_ID:n DEFAULT_LENGTH:n DATA_DEFAULT:v4000 NUM_DISTINCT:n LOW_VALUE:r2000"
    " HIGH_VALUE:r2000 DENSITY:n NUM_NULLS:n NUM_BUCKETS:n LAST_ANALYZED:d SAMPLE_SIZE:n CHARACTER_SET_NAME:v44 CHAR_COL_DECL_LENGTH:n"
    " GLOBAL_STATS:v3 USER_STATS:v3 AVG_COL_LEN:n CHAR_LENGTH:n CHAR_USED:v1 V80_FMT_IMAGE:v3 DATA_UPGRADED:v3 HISTOGRAM:v15"
    " DEFAULT_ON_NULL:v3 IDENTITY_COLUMN:v3 EVALUATION_EDITION:v128 UNUSABLE_BEFORE:v128 UNUSABLE_BEGINNING:v128 COLLATION:v100"
)
_HIDDEN_NAMES = " HIDDEN_COLUMN:v3 VIRTUAL_COLUMN:v3 SEGMENT_COLUMN_ID:n INTERNAL_COLUMN_ID:n QUALIFIED_COL_NAME:v4000 USER_GENERATED:v3 COLLATED_COLUMN_ID:n"


def _column(
    owner: str,
    table: str,
    position: int | None,
    place: int | None,
    internal: int,
    column: ColumnDef,
    *,
    is_unused: bool = False,
) -> Row:
    """``position`` is None for a column that is unused or invisible, and hidden therefore;
    ``place`` is the one in the rows, which a virtual column does not have, ``internal`` the one
    among all."""
    kind = column.type
    text = kind.family == "text"
    scale = kind.scale
    precision = kind.precision
    if kind.family == "number" and kind.float_bits is not None:
        precision = kind.float_bits
    default = column.expression or column.default_text
    return {
        "OWNER": owner, "TABLE_NAME": table, "COLUMN_NAME": column.name, "DATA_TYPE": kind.data_type(),
        "DATA_TYPE_OWNER": kind.user.owner if kind.user is not None else None,
        "DATA_LENGTH": data_length(kind), "DATA_PRECISION": precision, "DATA_SCALE": scale,
        "NULLABLE": "Y" if column.nullable else "N", "COLUMN_ID": position,
        "DEFAULT_LENGTH": len(default) if default else None, "DATA_DEFAULT": default,
        "CHARACTER_SET_NAME": {1: "CHAR_CS", 2: "NCHAR_CS"}.get(kind.form) if kind.family in ("text", "clob") else None,
        "CHAR_COL_DECL_LENGTH": _declared(kind), "CHAR_LENGTH": kind.char_length if text else 0,
        "CHAR_USED": kind.char_used if text and kind.data_type() != "LONG" else None,
        "GLOBAL_STATS": "NO", "USER_STATS": "NO", "V80_FMT_IMAGE": "NO", "DATA_UPGRADED": "YES", "HISTOGRAM": "NONE",
        "DEFAULT_ON_NULL": "YES" if column.identity == "BY DEFAULT ON NULL" else "NO",
        "IDENTITY_COLUMN": "YES" if column.identity else "NO", "HIDDEN_COLUMN": "YES" if position is None else "NO", "VIRTUAL_COLUMN": "YES" if column.expression else "NO",
        "SEGMENT_COLUMN_ID": place, "INTERNAL_COLUMN_ID": internal, "QUALIFIED_COL_NAME": column.name,
        "USER_GENERATED": "NO" if is_unused or column.is_guard or column.name == ARCHIVE_STATE else "YES", "COLLATION": "USING_NLS_COMP" if text else None,
    }  # fmt: skip


def _declared(kind: SqlType) -> int | None:
    return kind.length if kind.family == "text" else None


def _columns(view: View) -> Iterator[Row]:
    for item in view.definitions(view.wanted.get("TABLE_NAME")):
        if isinstance(item, TableDef | ViewDef) and not _is_wanted(view, item.owner, item.name):
            continue
        if isinstance(item, TableDef) and item.original_name:
            continue
        if isinstance(item, TableDef):
            internal = _internal_ids(item)
            for position, column in enumerate(item.named, 1):
                if column.is_guard:
                    continue
                place = item.segment_ids.get(column.internal_id)
                shown = None if column.is_invisible else position
                number = internal[column.internal_id]
                yield _column(item.owner, item.name, shown, place, number, column)
        elif isinstance(item, ViewDef):
            for position, found in enumerate(_view_columns(view, item), 1):
                yield _column(item.owner, item.name, position, position, position, found)


def _all_columns(view: View) -> Iterator[Row]:
    """The columns, those that are unused, and those that Oracle made for itself."""
    yield from _columns(view)
    for table in _wanted_tables(view):
        if table.original_name:
            continue
        internal = _internal_ids(table)
        for column in table.columns:
            if column.is_guard:
                place, number = table.segment_ids[column.internal_id], internal[column.internal_id]
                yield _column(table.owner, table.name, None, place, number, column)
        for column in table.hidden:
            number = internal[column.internal_id]
            yield _column(table.owner, table.name, None, None, number, column)
        for column in table.unused:
            place, number = table.segment_ids[column.internal_id], internal[column.internal_id]
            yield _column(table.owner, table.name, None, place, number, column, is_unused=True)


def _internal_ids(table: TableDef) -> dict[int, int]:
    """The place of each column among all: stored, virtual, unused and hidden ones, in the order in
    which they came."""
    every = sorted(one.internal_id for one in (*table.named, *table.unused, *table.hidden))
    return {internal_id: place for place, internal_id in enumerate(every, 1)}


def _view_columns(view: View, definition: ViewDef) -> list[ColumnDef]:
    """Columns of a view as its query has them now; a view that does not compile shows names
    only."""
    state = compilation(view.session, None)
    state.view_depth = 1
    state.environment.schema = definition.owner
    try:
        plan = compile_select(state, parse_query(definition.text))
    except OracleError:
        return [
            ColumnDef(internal_id=number, name=name, type=types.TEXT)
            for number, name in enumerate(definition.columns, 1)
        ]
    names = definition.columns or tuple(column.name for column in plan.columns)
    return [
        ColumnDef(internal_id=number, name=name, type=column.type, nullable=column.nullable)
        for number, (name, column) in enumerate(zip(names, plan.columns, strict=True), 1)
    ]


VIEWS.family("TAB_COLUMNS", _COLUMN_NAMES, object_name="TABLE_NAME")(_columns)
VIEWS.family("TAB_COLS", _COLUMN_NAMES + _HIDDEN_NAMES, object_name="TABLE_NAME")(_all_columns)


@VIEWS.family(
    "TAB_COMMENTS",
    "OWNER:v128 TABLE_NAME:v128 TABLE_TYPE:v11 COMMENTS:v4000 ORIGIN_CON_ID:n",
    object_name="TABLE_NAME",
)
def _table_comments(view: View) -> Iterator[Row]:
    for item in view.definitions():
        if isinstance(item, TableDef | ViewDef):
            if isinstance(item, TableDef) and (item.original_name or item.query is not None):
                continue
            kind = "TABLE" if isinstance(item, TableDef) else "VIEW"
            yield {
                "OWNER": item.owner,
                "TABLE_NAME": item.name,
                "TABLE_TYPE": kind,
                "COMMENTS": item.comment,
                "ORIGIN_CON_ID": 3,
            }


@VIEWS.family(
    "COL_COMMENTS",
    "OWNER:v128 TABLE_NAME:v128 COLUMN_NAME:v128 COMMENTS:v4000 ORIGIN_CON_ID:n",
    object_name="TABLE_NAME",
)
def _column_comments(view: View) -> Iterator[Row]:
    for table in _wanted_tables(view):
        for column in table.columns:
            yield {
                "OWNER": table.owner,
                "TABLE_NAME": table.name,
                "COLUMN_NAME": column.name,
                "COMMENTS": column.comment,
                "ORIGIN_CON_ID": 3,
            }


@VIEWS.family(
    "TAB_IDENTITY_COLS",
    "OWNER:v128 TABLE_NAME:v128 COLUMN_NAME:v128 GENERATION_TYPE:v10 SEQUENCE_NAME:v128 IDENTITY_OPTIONS:v298",
    object_name="TABLE_NAME",
)
def _identity_columns(view: View) -> Iterator[Row]:
    for table in _wanted_tables(view):
        for column in table.columns:
            name = f"ISEQ$$_{table.object_id}"
            sequence = view.database.store.catalog.find(table.owner, name)
            if column.identity and isinstance(sequence, SequenceDef):
                options = (
                    f"START WITH: {sequence.start}, INCREMENT BY: {sequence.increment}, MAX_VALUE: {sequence.maximum}, MIN_VALUE: {sequence.minimum},"
                    f" CYCLE_FLAG: {'Y' if sequence.cycle else 'N'}, CACHE_SIZE: {sequence.cache}, ORDER_FLAG: {'Y' if sequence.order else 'N'}"
                )
                generation = "ALWAYS" if column.identity == "ALWAYS" else "BY DEFAULT"
                yield {
                    "OWNER": table.owner, "TABLE_NAME": table.name, "COLUMN_NAME": column.name, "GENERATION_TYPE": generation,
                    "SEQUENCE_NAME": name, "IDENTITY_OPTIONS": options,
                }  # fmt: skip


# --- constraints and indexes ----------------------------------------------------------------------


@VIEWS.family(
    "CONSTRAINTS",
    "OWNER:v128 CONSTRAINT_NAME:v128 CONSTRAINT_TYPE:v1 TABLE_NAME:v128 SEARCH_CONDITION:v4000 SEARCH_CONDITION_VC:v4000 R_OWNER:v128"
    " R_CONSTRAINT_NAME:v128 DELETE_RULE:v9 STATUS:v8 DEFERRABLE:v14 DEFERRED:v9 VALIDATED:v13 GENERATED:v14 BAD:v3 RELY:v4"
    " LAST_CHANGE:d INDEX_OWNER:v128 INDEX_NAME:v128 INVALID:v7 VIEW_RELATED:v14",
    object_name="TABLE_NAME",
)
def _constraints(view: View) -> Iterator[Row]:
    for table in _wanted_tables(view):
        for item in table.constraints:
            parent = view.definition(item.referenced or 0) if item.kind == "R" else None
            yield {
                "OWNER": table.owner, "CONSTRAINT_NAME": item.name, "CONSTRAINT_TYPE": item.kind, "TABLE_NAME": table.name,
                "SEARCH_CONDITION": item.condition, "SEARCH_CONDITION_VC": item.condition, "R_OWNER": parent.owner if isinstance(parent, TableDef) else None,
                "R_CONSTRAINT_NAME": item.referenced_constraint, "DELETE_RULE": item.delete_rule,
                "STATUS": "ENABLED" if item.enabled else "DISABLED", "DEFERRED": "DEFERRED" if item.deferred else "IMMEDIATE",
                "DEFERRABLE": "DEFERRABLE" if item.deferrable else "NOT DEFERRABLE",
                "VALIDATED": "VALIDATED" if item.validated else "NOT VALIDATED",
                "GENERATED": "GENERATED NAME" if item.generated else "USER NAME", "LAST_CHANGE": table.changed,
                "INDEX_OWNER": table.owner if item.index_name else None, "INDEX_NAME": item.index_name,
            }  # fmt: skip


@VIEWS.family(
    "CONS_COLUMNS",
    "OWNER:v128 CONSTRAINT_NAME:v128 TABLE_NAME:v128 COLUMN_NAME:v4000 POSITION:n",
    object_name="TABLE_NAME",
)
def _constraint_columns(view: View) -> Iterator[Row]:
    for table in _wanted_tables(view):
        for item in table.constraints:
            for position, internal_id in enumerate(item.columns, 1):
                if internal_id in table.by_id:
                    yield {
                        "OWNER": table.owner, "CONSTRAINT_NAME": item.name, "TABLE_NAME": table.name,
                        "COLUMN_NAME": table.by_id[internal_id].name, "POSITION": position if item.kind != "C" else None,
                    }  # fmt: skip


@VIEWS.family(
    "INDEXES",
    "OWNER:v128 INDEX_NAME:v128 INDEX_TYPE:v27 TABLE_OWNER:v128 TABLE_NAME:v128 TABLE_TYPE:v11 UNIQUENESS:v9 COMPRESSION:v13"
    " PREFIX_LENGTH:n TABLESPACE_NAME:v30 INI_TRANS:n MAX_TRANS:n INITIAL_EXTENT:n NEXT_EXTENT:n MIN_EXTENTS:n MAX_EXTENTS:n"
    " PCT_INCREASE:n PCT_THRESHOLD:n INCLUDE_COLUMN:n FREELISTS:n FREELIST_GROUPS:n PCT_FREE:n LOGGING:v3 BLEVEL:n LEAF_BLOCKS:n"
    " DISTINCT_KEYS:n AVG_LEAF_BLOCKS_PER_KEY:n AVG_DATA_BLOCKS_PER_KEY:n CLUSTERING_FACTOR:n STATUS:v8 NUM_ROWS:n SAMPLE_SIZE:n"
    " LAST_ANALYZED:d DEGREE:v40 INSTANCES:v40 PARTITIONED:v3 TEMPORARY:v1 GENERATED:v1 SECONDARY:v1 BUFFER_POOL:v7 FLASH_CACHE:v7"
    " CELL_FLASH_CACHE:v7 USER_STATS:v3 DURATION:v15 PCT_DIRECT_ACCESS:n ITYP_OWNER:v128 ITYP_NAME:v128 PARAMETERS:v1000"
    " GLOBAL_STATS:v3 DOMIDX_STATUS:v12 DOMIDX_OPSTATUS:v6 FUNCIDX_STATUS:v8 JOIN_INDEX:v3 IOT_REDUNDANT_PKEY_ELIM:v3 DROPPED:v3"
    " VISIBILITY:v9 DOMIDX_MANAGEMENT:v14 SEGMENT_CREATED:v3 ORPHANED_ENTRIES:v3 INDEXING:v7 AUTO:v3 CONSTRAINT_INDEX:v3",
    object_name=None,
)
def _indexes(view: View) -> Iterator[Row]:
    for table in _named_tables(view):
        if table.original_name:
            continue
        used = {item.index_name for item in table.constraints}
        for index in table.indexes:
            yield {
                "OWNER": index.owner, "INDEX_NAME": index.name, "INDEX_TYPE": _index_type(table, index),
                "TABLE_OWNER": table.owner, "TABLE_NAME": table.name,
                "TABLE_TYPE": "TABLE", "UNIQUENESS": "UNIQUE" if index.unique else "NONUNIQUE", **_index_compression(index),
                "TABLESPACE_NAME": index.tablespace or _TABLESPACE, "STATUS": "VALID", "PARTITIONED": "NO", "TEMPORARY": "N",
                "GENERATED": "Y" if index.generated else "N", "SECONDARY": "N", "VISIBILITY": "VISIBLE", "JOIN_INDEX": "NO",
                "DROPPED": "NO", "CONSTRAINT_INDEX": "YES" if index.name in used else "NO",
            }  # fmt: skip


def _index_compression(index: IndexDef) -> Row:
    """How an index is compressed: by all columns of its key, but for the last one of a unique key,
    where no number is said."""
    if index.compression in ("", "ADVANCED"):
        return {"COMPRESSION": "ADVANCED LOW" if index.compression else "DISABLED"}
    most = len(index.descending) - index.unique
    length = int(index.compression) if index.compression.isdigit() else most
    return {"COMPRESSION": "ENABLED", "PREFIX_LENGTH": length}


@VIEWS.family(
    "IND_COLUMNS",
    "INDEX_OWNER:v128 INDEX_NAME:v128 TABLE_OWNER:v128 TABLE_NAME:v128 COLUMN_NAME:v4000 COLUMN_POSITION:n COLUMN_LENGTH:n"
    " CHAR_LENGTH:n DESCEND:v4",
    owner="INDEX_OWNER",
)
def _index_columns(view: View) -> Iterator[Row]:
    for table in _named_tables(view):
        for index in table.indexes:
            for position, (internal_id, descending) in enumerate(
                zip(index.keys or index.columns, index.descending, strict=True), 1
            ):
                column = table.by_id.get(internal_id) or table.hidden_by_id[internal_id]
                yield {
                    "INDEX_OWNER": index.owner, "INDEX_NAME": index.name, "TABLE_OWNER": table.owner, "TABLE_NAME": table.name,
                    "COLUMN_NAME": column.name, "COLUMN_POSITION": position, "COLUMN_LENGTH": data_length(column.type),
                    "CHAR_LENGTH": column.type.char_length, "DESCEND": "DESC" if descending else "ASC",
                }  # fmt: skip


def _none(_view: View) -> Iterator[Row]:
    return iter(())


def _index_type(table: TableDef, index: IndexDef) -> str:
    if index == table.top_index:
        return "IOT - TOP"
    kind = "BITMAP" if index.is_bitmap else "NORMAL"
    return f"FUNCTION-BASED {kind}" if index.keys else kind


@VIEWS.family(
    "IND_EXPRESSIONS",
    "INDEX_OWNER:v128 INDEX_NAME:v128 TABLE_OWNER:v128 TABLE_NAME:v128 COLUMN_EXPRESSION:v4000 COLUMN_POSITION:n",
    owner="INDEX_OWNER",
)
def _index_expressions(view: View) -> Iterator[Row]:
    for table in _named_tables(view):
        for index in table.indexes:
            for position, internal_id in enumerate(index.keys, 1):
                if (column := table.hidden_by_id.get(internal_id)) is not None:
                    yield {
                        "INDEX_OWNER": index.owner, "INDEX_NAME": index.name, "TABLE_OWNER": table.owner, "TABLE_NAME": table.name,
                        "COLUMN_EXPRESSION": column.expression, "COLUMN_POSITION": position,
                    }  # fmt: skip


def _partitioned(view: View) -> Iterator[tuple[TableDef, Partitioning]]:
    for table in _tables(view):
        if table.partitioning is not None:
            yield table, table.partitioning


@VIEWS.family(
    "TAB_PARTITIONS",
    "TABLE_OWNER:v128 TABLE_NAME:v128 COMPOSITE:v3 PARTITION_NAME:v128 SUBPARTITION_COUNT:n HIGH_VALUE:v4000 HIGH_VALUE_LENGTH:n"
    " PARTITION_POSITION:n TABLESPACE_NAME:v30 INTERVAL:v3",
    owner="TABLE_OWNER",
)
def _tab_partitions(view: View) -> Iterator[Row]:
    for table, made in _partitioned(view):
        for position, one in enumerate(made.partitions, 1):
            yield {
                "TABLE_OWNER": table.owner, "TABLE_NAME": table.name, "COMPOSITE": "YES" if one.subpartitions else "NO",
                "PARTITION_NAME": one.name, "SUBPARTITION_COUNT": len(one.subpartitions), "HIGH_VALUE": (high := _high_value(table, made, one)),
                "HIGH_VALUE_LENGTH": len(high), "PARTITION_POSITION": position,
                "TABLESPACE_NAME": _TABLESPACE, "INTERVAL": "NO" if one.low is None else "YES",
            }  # fmt: skip


def _high_value(table: TableDef, made: Partitioning, partition: Partition) -> str:
    """The bound as Oracle prints it: dates and timestamps in a form of its own, whatever the DDL
    said, and those of a table with an interval by their values (Database Reference 19c,
    ALL_TAB_PARTITIONS; VLDB and Partitioning Guide 19c has examples). Other constants are as they
    were typed.
    """
    families = {table.by_id[column].type.family for column in made.columns}
    is_moment = families <= {"date", "timestamp"}
    if len(partition.bounds) != 1 or not (is_moment or made.interval is not None):
        return partition.high_value
    form = _moment if is_moment else text_from_number
    return ", ".join(
        one if one in (MAXVALUE, DEFAULT) else "NULL" if one is None else form(bytes.fromhex(one))
        for one in partition.bounds[0]
    )


def _moment(stored: bytes) -> str:
    moment = datetime(*fields_from_date(stored))
    if len(stored) == _DATE_BYTES:
        return f"TO_DATE(' {moment}', 'SYYYY-MM-DD HH24:MI:SS', 'NLS_CALENDAR=GREGORIAN')"
    nanos = nanos_from_timestamp(stored)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    return f"TIMESTAMP' {moment}{fraction}'"


@VIEWS.family(
    "TAB_SUBPARTITIONS",
    "TABLE_OWNER:v128 TABLE_NAME:v128 PARTITION_NAME:v128 SUBPARTITION_NAME:v128 HIGH_VALUE:v4000 HIGH_VALUE_LENGTH:n SUBPARTITION_POSITION:n"
    " TABLESPACE_NAME:v30",
    owner="TABLE_OWNER",
)
def _tab_subpartitions(view: View) -> Iterator[Row]:
    for table, made in _partitioned(view):
        for one in made.partitions:
            own = Partitioning(made.sub_kind, made.sub_columns, one.subpartitions)
            for position, sub in enumerate(one.subpartitions, 1):
                yield {
                    "TABLE_OWNER": table.owner, "TABLE_NAME": table.name, "PARTITION_NAME": one.name, "SUBPARTITION_NAME": sub.name,
                    "HIGH_VALUE": (high := _high_value(table, own, sub)), "HIGH_VALUE_LENGTH": len(high),
                    "SUBPARTITION_POSITION": position, "TABLESPACE_NAME": _TABLESPACE,
                }  # fmt: skip


@VIEWS.family(
    "PART_TABLES",
    "OWNER:v128 TABLE_NAME:v128 PARTITIONING_TYPE:v9 SUBPARTITIONING_TYPE:v9 PARTITION_COUNT:n PARTITIONING_KEY_COUNT:n STATUS:v8"
    " INTERVAL:v1000",
)
def _part_tables(view: View) -> Iterator[Row]:
    for table, made in _partitioned(view):
        yield {
            "OWNER": table.owner, "TABLE_NAME": table.name, "PARTITIONING_TYPE": made.kind,
            "SUBPARTITIONING_TYPE": made.sub_kind if made.sub_count else "NONE",
            "PARTITION_COUNT": len(made.partitions) if made.interval is None else 1048575,
            "PARTITIONING_KEY_COUNT": len(made.columns), "STATUS": "VALID", "INTERVAL": made.interval,
        }  # fmt: skip


@VIEWS.family(
    "PART_KEY_COLUMNS",
    "OWNER:v128 NAME:v128 OBJECT_TYPE:v5 COLUMN_NAME:v4000 COLUMN_POSITION:n",
    object_name="NAME",
)
def _part_key_columns(view: View) -> Iterator[Row]:
    for table, made in _partitioned(view):
        yield from _key_columns(table, made.columns)


@VIEWS.family(
    "SUBPART_KEY_COLUMNS",
    "OWNER:v128 NAME:v128 OBJECT_TYPE:v5 COLUMN_NAME:v4000 COLUMN_POSITION:n",
    object_name="NAME",
)
def _subpart_key_columns(view: View) -> Iterator[Row]:
    for table, made in _partitioned(view):
        yield from _key_columns(table, made.sub_columns)


def _key_columns(table: TableDef, columns: Sequence[int]) -> Iterator[Row]:
    for position, column in enumerate(columns, 1):
        yield {
            "OWNER": table.owner, "NAME": table.name, "OBJECT_TYPE": "TABLE", "COLUMN_NAME": table.by_id[column].name,
            "COLUMN_POSITION": position,
        }  # fmt: skip


@VIEWS.family(
    "MVIEWS",
    "OWNER:v128 MVIEW_NAME:v128 CONTAINER_NAME:v128 QUERY:v4000 QUERY_LEN:n UPDATABLE:v1 UPDATE_LOG:v128 MASTER_ROLLBACK_SEG:v128"
    " MASTER_LINK:v128 REWRITE_ENABLED:v1 REWRITE_CAPABILITY:v9 REFRESH_MODE:v9 REFRESH_METHOD:v8 BUILD_MODE:v9 FAST_REFRESHABLE:v18"
    " LAST_REFRESH_TYPE:v8 LAST_REFRESH_DATE:d LAST_REFRESH_END_TIME:d STALENESS:v19 AFTER_FAST_REFRESH:v19 COMPILE_STATE:v19"
    " USE_NO_INDEX:v1 DEFAULT_COLLATION:v100 ON_QUERY_COMPUTATION:v1",
)
def _materialized_views(view: View) -> Iterator[Row]:
    for table in _tables(view):
        if table.query is not None:
            yield {
                "OWNER": table.owner, "MVIEW_NAME": table.name, "CONTAINER_NAME": table.name, "QUERY": table.query[:4000],
                "QUERY_LEN": len(table.query), "UPDATABLE": "N", "REWRITE_ENABLED": "N", "REFRESH_MODE": "DEMAND",
                "REFRESH_METHOD": "COMPLETE", "BUILD_MODE": "IMMEDIATE", "LAST_REFRESH_DATE": table.changed,
                "REWRITE_CAPABILITY": "NONE", "FAST_REFRESHABLE": "NO", "LAST_REFRESH_TYPE": "COMPLETE", "STALENESS": "UNKNOWN",
                "AFTER_FAST_REFRESH": "NA", "COMPILE_STATE": "VALID", "USE_NO_INDEX": "N", "DEFAULT_COLLATION": "USING_NLS_COMP",
                "ON_QUERY_COMPUTATION": "N",
            }  # fmt: skip


@VIEWS.family("MVIEW_COMMENTS", "OWNER:v128 MVIEW_NAME:v128 COMMENTS:v4000 ORIGIN_CON_ID:n")
def _materialized_view_comments(view: View) -> Iterator[Row]:
    for table in _tables(view):
        if table.query is not None:
            yield {
                "OWNER": table.owner,
                "MVIEW_NAME": table.name,
                "COMMENTS": table.comment
                or f"snapshot table for snapshot {table.owner}.{table.name}",
                "ORIGIN_CON_ID": 3,
            }


# --- external tables, and tables that store a part of another one ---------------------------------


@VIEWS.family(
    "EXTERNAL_TABLES",
    "OWNER:v128 TABLE_NAME:v128 TYPE_OWNER:v3 TYPE_NAME:v128 DEFAULT_DIRECTORY_OWNER:v3 DEFAULT_DIRECTORY_NAME:v128 REJECT_LIMIT:v40"
    " ACCESS_TYPE:v7 ACCESS_PARAMETERS:v4000 PROPERTY:v10 INMEMORY:v8 INMEMORY_COMPRESSION:v17",
    object_name="TABLE_NAME",
)
def _external_tables(view: View) -> Iterator[Row]:
    for table in _wanted_tables(view):
        if (made := table.external) is not None:
            yield {
                "OWNER": table.owner, "TABLE_NAME": table.name, "TYPE_OWNER": "SYS", "TYPE_NAME": made.driver, "DEFAULT_DIRECTORY_OWNER": "SYS",
                "DEFAULT_DIRECTORY_NAME": made.directory, "REJECT_LIMIT": made.reject_limit, "ACCESS_TYPE": "CLOB",
                "ACCESS_PARAMETERS": made.parameters, "PROPERTY": "ALL", "INMEMORY": "DISABLED",
            }  # fmt: skip


@VIEWS.family(
    "EXTERNAL_LOCATIONS",
    "OWNER:v128 TABLE_NAME:v128 LOCATION:v4000 DIRECTORY_OWNER:v3 DIRECTORY_NAME:v128",
    object_name="TABLE_NAME",
)
def _external_locations(view: View) -> Iterator[Row]:
    for table in _wanted_tables(view):
        if (made := table.external) is not None:
            for location in made.locations:
                yield {
                    "OWNER": table.owner, "TABLE_NAME": table.name, "LOCATION": location, "DIRECTORY_OWNER": "SYS",
                    "DIRECTORY_NAME": made.directory,
                }  # fmt: skip


@VIEWS.family(
    "NESTED_TABLES",
    "OWNER:v128 TABLE_NAME:v128 TABLE_TYPE_OWNER:v128 TABLE_TYPE_NAME:v128 PARENT_TABLE_NAME:v128 PARENT_TABLE_COLUMN:v4000 STORAGE_SPEC:v30"
    " RETURN_TYPE:v20 ELEMENT_SUBSTITUTABLE:v25",
    object_name="TABLE_NAME",
)
def _nested_tables(view: View) -> Iterator[Row]:
    for table in _wanted_tables(view):
        parent = _parent(view, table) if table.companion == NESTED else None
        column = None if parent is None else parent.by_id.get(table.parent_column)
        kind = None if column is None else column.type.user
        if parent is not None and column is not None and kind is not None:
            yield {
                "OWNER": table.owner, "TABLE_NAME": table.name, "TABLE_TYPE_OWNER": kind.owner, "TABLE_TYPE_NAME": kind.name,
                "PARENT_TABLE_NAME": parent.name, "PARENT_TABLE_COLUMN": column.name, "STORAGE_SPEC": "USER_SPECIFIED",
                "RETURN_TYPE": "VALUE", "ELEMENT_SUBSTITUTABLE": "N",
            }  # fmt: skip


def _parent(view: View, table: TableDef) -> TableDef | None:
    found = view.definition(table.parent)
    return found if isinstance(found, TableDef) else None


VIEWS.family(
    "QUEUE_TABLES",
    "OWNER:v128 QUEUE_TABLE:v128 TYPE:v7 OBJECT_TYPE:v257 SORT_ORDER:v22 RECIPIENTS:v8 MESSAGE_GROUPING:v13 COMPATIBLE:v6"
    " PRIMARY_INSTANCE:n SECONDARY_INSTANCE:n OWNER_INSTANCE:n USER_COMMENT:v50 SECURE:v3",
)(_none)
VIEWS.family("ENCRYPTED_COLUMNS", "OWNER:v128 TABLE_NAME:v128 COLUMN_NAME:v128 ENCRYPTION_ALG:v29")(
    _none
)
VIEWS.family("DB_LINKS", "OWNER:v128 DB_LINK:v128 USERNAME:v128 HOST:v2000 CREATED:d")(_none)


@VIEWS.family(
    "LOBS",
    "OWNER:v128 TABLE_NAME:v128 COLUMN_NAME:v4000 SEGMENT_NAME:v128 CHUNK:n CACHE:v10 IN_ROW:v3 SECUREFILE:v3",
    object_name="TABLE_NAME",
)
def _lobs(view: View) -> Iterator[Row]:
    for table in _tables(view):
        for column in table.columns:
            if column.type.family in ("clob", "blob"):
                yield {
                    "OWNER": table.owner, "TABLE_NAME": table.name, "COLUMN_NAME": column.name,
                    "SEGMENT_NAME": f"SYS_LOB{table.object_id:010d}C{column.internal_id:05d}$$", "CHUNK": BLOCK_SIZE, "CACHE": "NO",
                    "IN_ROW": "YES", "SECUREFILE": "YES",
                }  # fmt: skip


@VIEWS.family(
    "LOG_GROUPS",
    "OWNER:v128 LOG_GROUP_NAME:v128 TABLE_NAME:v128 LOG_GROUP_TYPE:v19 ALWAYS:v11 GENERATED:v14",
    object_name="TABLE_NAME",
)
def _log_groups(view: View) -> Iterator[Row]:
    for table in _wanted_tables(view):
        for group in table.log_groups:
            yield {
                "OWNER": table.owner, "LOG_GROUP_NAME": group.name, "TABLE_NAME": table.name, "LOG_GROUP_TYPE": group.kind,
                "ALWAYS": "ALWAYS" if group.always else "CONDITIONAL", "GENERATED": "GENERATED NAME" if group.generated else "USER NAME",
            }  # fmt: skip


@VIEWS.family(
    "LOG_GROUP_COLUMNS",
    "OWNER:v128 LOG_GROUP_NAME:v128 TABLE_NAME:v128 COLUMN_NAME:v4000 POSITION:n LOGGING_PROPERTY:v6",
    object_name="TABLE_NAME",
)
def _log_group_columns(view: View) -> Iterator[Row]:
    for table in _wanted_tables(view):
        for group in table.log_groups:
            for position, internal_id in enumerate(group.columns, 1):
                yield {
                    "OWNER": table.owner, "LOG_GROUP_NAME": group.name, "TABLE_NAME": table.name,
                    "COLUMN_NAME": table.by_id[internal_id].name, "POSITION": position, "LOGGING_PROPERTY": "LOG",
                }  # fmt: skip


# --- space ----------------------------------------------------------------------------------------


def _segments_of(view: View, table: TableDef) -> Iterator[tuple[Row, list[tuple[int, int]]]]:
    """Each segment of a table as the views of space name it, and its extents: first block and
    blocks."""
    store = view.database.store
    name, kind = table.name, "TABLE"
    if table.top_index is not None:
        name, kind = table.top_index.name, "INDEX"
    names: dict[int, tuple[str | None, str]] = {table.object_id: (None, kind)}
    if table.partitioning is not None:
        names = {
            leaf.object_id: (leaf.name, "TABLE SUBPARTITION" if one.subpartitions else "TABLE PARTITION")
            for one in table.partitioning.partitions
            for leaf in one.leaves
        }  # fmt: skip
    if table.cluster:
        return
    for number, (partition, kind) in names.items():
        segment = store.segments.get(number)
        facts: Row = {
            "OWNER": table.owner, "SEGMENT_NAME": name, "PARTITION_NAME": partition, "SEGMENT_TYPE": kind,
            "TABLESPACE_NAME": table.tablespace or _TABLESPACE, "RELATIVE_FNO": DATA_FILE,
        }  # fmt: skip
        yield facts, list(segment.extents) if segment is not None else []


def _all_segments(view: View) -> Iterator[tuple[Row, list[tuple[int, int]]]]:
    """Those of tables, and those of clusters, in which their tables lie."""
    for table in _tables(view):
        yield from _segments_of(view, table)
    for one in view.definitions():
        if isinstance(one, ClusterDef):
            facts: Row = {
                "OWNER": one.owner, "SEGMENT_NAME": one.name, "SEGMENT_TYPE": "CLUSTER", "TABLESPACE_NAME": _TABLESPACE,
                "RELATIVE_FNO": DATA_FILE,
            }  # fmt: skip
            yield facts, list(view.database.store.segments[one.object_id].extents)


def _block_count(view: View, table: TableDef) -> int:
    if table.cluster:
        return sum(blocks for _, blocks in view.database.store.segments[table.cluster].extents)
    return sum(blocks for _, extents in _segments_of(view, table) for _, blocks in extents)


_EXTENT_COLUMNS = (
    "OWNER:v128 SEGMENT_NAME:v128 PARTITION_NAME:v128 SEGMENT_TYPE:v18 TABLESPACE_NAME:v30 EXTENT_ID:n FILE_ID:n BLOCK_ID:n BYTES:n"
    " BLOCKS:n RELATIVE_FNO:n"
)


@VIEWS.family("EXTENTS", _EXTENT_COLUMNS, object_name="SEGMENT_NAME")
def _extents(view: View) -> Iterator[Row]:
    for facts, extents in _all_segments(view):
        for number, (first, blocks) in enumerate(extents):
            yield {
                **facts, "EXTENT_ID": number, "FILE_ID": DATA_FILE, "BLOCK_ID": first, "BYTES": blocks * BLOCK_SIZE, "BLOCKS": blocks,
            }  # fmt: skip


@VIEWS.family(
    "SEGMENTS",
    "OWNER:v128 SEGMENT_NAME:v128 PARTITION_NAME:v128 SEGMENT_TYPE:v18 TABLESPACE_NAME:v30 HEADER_FILE:n HEADER_BLOCK:n BYTES:n BLOCKS:n"
    " EXTENTS:n INITIAL_EXTENT:n RELATIVE_FNO:n",
    object_name="SEGMENT_NAME",
)
def _segments(view: View) -> Iterator[Row]:
    for facts, extents in _all_segments(view):
        if extents:
            blocks = sum(size for _, size in extents)
            yield {
                **facts, "HEADER_FILE": DATA_FILE, "HEADER_BLOCK": extents[0][0] + 2, "BYTES": blocks * BLOCK_SIZE, "BLOCKS": blocks,
                "EXTENTS": len(extents), "INITIAL_EXTENT": 8 * BLOCK_SIZE,
            }  # fmt: skip
