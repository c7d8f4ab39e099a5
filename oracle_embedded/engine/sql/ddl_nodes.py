"""What does a parsed DDL statement look like?"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.sql.ast import Name, Query


@dataclass(frozen=True, slots=True)
class ConstraintSpec:
    """A constraint as written; NOT NULL is kind C with ``not_null``."""

    kind: str
    name: str | None
    columns: tuple[str, ...]
    _: KW_ONLY
    condition: str | None = None
    not_null: bool = False
    referenced: Name = ()
    referenced_columns: tuple[str, ...] = ()
    delete_rule: str | None = None
    enabled: bool = True
    validated: bool = True
    deferrable: bool = False
    deferred: bool = False


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """A column as written; in MODIFY most parts may be missing."""

    name: str
    type: SqlType | None
    default_text: str | None = None
    has_default: bool = False
    nullable: bool | None = None
    constraints: tuple[ConstraintSpec, ...] = ()
    identity: str | None = None
    identity_options: tuple[tuple[str, int | bool], ...] = ()
    expression: str | None = None
    is_visible: bool | None = None


@dataclass(frozen=True, slots=True)
class LogGroupSpec:
    """A supplemental log clause: kind as in ALL_LOG_GROUPS, or USER LOG GROUP with columns."""

    kind: str
    name: str | None = None
    columns: tuple[str, ...] = ()
    always: bool = True


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """A partition as written: values of its bounds as text, RANGE one tuple, LIST one per value."""

    name: str | None
    values: tuple[tuple[str, ...], ...]
    high_value: str


@dataclass(frozen=True, slots=True)
class PartitioningSpec:
    """PARTITION BY as written; without ``partitions`` there are ``count`` of them. ``sub_columns``
    are those of SUBPARTITION BY, which is by hash, or has a template."""

    kind: str
    columns: tuple[str, ...]
    partitions: tuple[PartitionSpec, ...]
    count: int = 0
    interval: str | None = None
    sub_columns: tuple[str, ...] = ()
    sub_count: int = 1
    sub_kind: str = "HASH"
    sub_template: tuple[PartitionSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionFor:
    """``FOR (…)``: the partition, or subpartition, that takes these values, as text; of a
    subpartition the partition's come first."""

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SplitSpec:
    """SPLIT PARTITION … AT or VALUES, and the names of what it becomes."""

    name: str
    values: tuple[tuple[str, ...], ...]
    by_value: bool
    into: tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class ExchangeSpec:
    """EXCHANGE PARTITION … WITH TABLE …; are its rows looked at?"""

    name: str
    table: Name
    is_checked: bool


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """CLUSTER name (columns) of a table."""

    cluster: Name
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CreateCluster:
    """CREATE CLUSTER; one with an index unless it has HASHKEYS."""

    name: Name
    columns: tuple[ColumnSpec, ...]
    is_hash: bool


@dataclass(frozen=True, slots=True)
class ExternalSpec:
    """ORGANIZATION EXTERNAL: which driver reads which files of which directory, and its parameters
    as they are written."""

    driver: str
    directory: str
    parameters: str | None
    locations: tuple[str, ...]
    reject_limit: str


@dataclass(frozen=True, slots=True)
class Storage:
    """What the dictionary shows of physical attributes: the tablespace, and how a table or an index
    is compressed (``BASIC``, ``ADVANCED``, or by how many columns of its key); empty where nothing
    is said."""

    tablespace: str = ""
    compression: str = ""


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE, perhaps AS SELECT."""

    name: Name
    columns: tuple[ColumnSpec, ...]
    constraints: tuple[ConstraintSpec, ...]
    log_groups: tuple[LogGroupSpec, ...]
    query: Query | None
    column_names: tuple[str, ...] = ()
    temporary: bool = False
    partitioning: PartitioningSpec | None = None
    is_index_organized: bool = False
    has_row_movement: bool = False
    has_row_archival: bool = False
    keeps_rows: bool = False
    """A temporary table's ON COMMIT PRESERVE ROWS."""
    view_text: str | None = None
    """The query of a materialized view."""
    cluster: ClusterSpec | None = None
    external: ExternalSpec | None = None
    nested: tuple[tuple[str, str], ...] = ()
    """Columns that are nested tables, each with the table in which their rows are stored."""
    has_overflow: bool = False
    has_mapping: bool = False
    object_type: Name | None = None
    """The type of which the rows are."""
    storage: Storage = Storage()


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE: a list of actions, each (verb, argument)."""

    name: Name
    actions: tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """CREATE [UNIQUE|BITMAP] INDEX on columns, or on expressions as typed; each perhaps
    descending."""

    name: Name
    table: Name
    columns: tuple[tuple[str, bool], ...]
    unique: bool
    bitmap: bool = False
    has_expressions: bool = False
    is_of_cluster: bool = False
    """On the columns of a cluster, which ``table`` names."""
    storage: Storage = Storage()


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE [OR REPLACE] VIEW."""

    name: Name
    columns: tuple[str, ...]
    text: str
    query: Query
    replace: bool


@dataclass(frozen=True, slots=True)
class CreateSequence:
    """CREATE or ALTER SEQUENCE with options by name."""

    name: Name
    options: tuple[tuple[str, int | bool], ...]
    alter: bool = False


@dataclass(frozen=True, slots=True)
class CreateSynonym:
    """CREATE [OR REPLACE] [PUBLIC] SYNONYM."""

    name: Name
    target: Name
    public: bool
    replace: bool


@dataclass(frozen=True, slots=True)
class CreateUser:
    """CREATE USER, CREATE ROLE or ALTER USER."""

    name: str
    password: str | None
    locked: bool | None = None
    role: bool = False
    alter: bool = False
    container_data: bool = False
    proxies: tuple[str, ...] = ()
    """Users who may log in for this one, or may not any more."""
    revokes_proxies: bool = False


@dataclass(frozen=True, slots=True)
class CreateType:
    """CREATE TYPE of an object type (``attributes``) or a collection type (``element``, for a
    VARRAY with ``limit``)."""

    name: Name
    text: str
    replacing: bool
    attributes: tuple[tuple[str, SqlType], ...] = ()
    element: SqlType | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Edition:
    """CREATE EDITION or DROP EDITION."""

    name: str
    is_dropped: bool


@dataclass(frozen=True, slots=True)
class Drop:
    """DROP of an object of a kind."""

    kind: str
    name: Name
    cascade: bool = False
    purge: bool = False
    including_tables: bool = False
    """Those of a cluster."""
    preserves_table: bool = False
    """The one that holds a materialized view's rows, which is an ordinary one from then on."""


@dataclass(frozen=True, slots=True)
class FlashbackDrop:
    """FLASHBACK TABLE … TO BEFORE DROP."""

    name: Name
    new_name: str | None = None


@dataclass(frozen=True, slots=True)
class FlashbackRows:
    """FLASHBACK TABLE … TO SCN | TIMESTAMP; ``point`` is that, as typed."""

    names: tuple[Name, ...]
    point: str


@dataclass(frozen=True, slots=True)
class Purge:
    """PURGE of a table in the recycle bin, or of all."""

    name: Name = ()
    is_of_all: bool = False


@dataclass(frozen=True, slots=True)
class Truncate:
    """TRUNCATE TABLE or TRUNCATE CLUSTER."""

    name: Name
    is_cluster: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class Grant:
    """GRANT or REVOKE."""

    privileges: tuple[str, ...]
    target: Name
    users: tuple[str, ...]
    revoke: bool


@dataclass(frozen=True, slots=True)
class Comment:
    """COMMENT ON TABLE or COLUMN."""

    kind: str
    name: Name
    text: str


@dataclass(frozen=True, slots=True)
class RenameTable:
    """RENAME old TO new, also as ALTER TABLE … RENAME TO."""

    name: Name
    new_name: str


@dataclass(frozen=True, slots=True)
class AlterSession:
    """ALTER SESSION SET name = value …"""

    settings: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AlterSystem:
    """ALTER SYSTEM or ALTER DATABASE with the rest of its words."""

    target: str
    words: str
    settings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CreateProgram:
    """CREATE of a procedure, function, package, package body or trigger; ``text`` begins with its
    kind."""

    kind: str
    name: Name
    text: str
    replace: bool


@dataclass(frozen=True, slots=True)
class AlterProgram:
    """ALTER … COMPILE, or of a trigger ENABLE or DISABLE."""

    kind: str
    name: Name
    action: str
