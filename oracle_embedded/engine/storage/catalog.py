"""What objects does the database have, and which had it at an earlier SCN?

Every definition is an immutable value with a validity range of SCNs; a DDL statement closes one and
opens the next.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

from oracle_embedded.api import OraType, StoredColumn, TableVersion, Value
from oracle_embedded.engine.datatypes.scns import SCN_MAX
from oracle_embedded.engine.datatypes.types import SqlType, UserType
from oracle_embedded.engine.storage.companions import External
from oracle_embedded.engine.storage.partitions import Partition, Partitioning
from oracle_embedded.engine.storage.policies import RedactedColumn, Redaction, RowPolicy

_FIRST_ID = 70_000
_IS_JSON = re.compile(r'\s*(?:"([^"]+)"|([\w$#]+))\s+is\s+json\b', re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class ColumnDef:
    """A column; ``internal_id`` never changes and names the storage column ``c<internal_id>``.

    One that ``is_invisible`` must be named to be seen. One that became visible again stands behind
    the others, at ``position``; else the internal id is the place. A virtual column has an
    ``expression`` and is stored nowhere. Oracle made one that ``is_guard``.
    """

    internal_id: int
    name: str
    type: SqlType
    nullable: bool = True
    default_text: str | None = None
    comment: str | None = None
    identity: str | None = None
    is_invisible: bool = False
    is_guard: bool = False
    position: int = 0
    expression: str | None = None

    @cached_property
    def stored(self) -> StoredColumn:
        """The column as the redo side sees it."""
        kind = self.type
        return StoredColumn(
            internal_id=self.internal_id,
            name=self.name,
            data_type=kind.data_type(),
            type=kind.ora,
            length=data_length(kind),
            char_length=kind.char_length if kind.family == "text" else 0,
            char_used=kind.char_used if kind.family == "text" else None,
            precision=kind.precision,
            scale=kind.scale,
            nullable=self.nullable,
            default_text=self.default_text,
            charset_form=kind.form,
            is_nested_table=self.nested_element is not None,
        )

    @property
    def nested_element(self) -> SqlType | None:
        """What a nested table is made of; None where the column is none."""
        user = self.type.user
        return None if user is None or user.limit is not None else user.element


ARCHIVE_STATE = "ORA_ARCHIVE_STATE"
"""The hidden column of a table with row archival: rows with another value than 0 are archived."""
_OBJECT_LENGTH, _COLLECTION_LENGTH = 1, 16
_DOCUMENT_LENGTH = 8200


def data_length(kind: SqlType) -> int:
    """ALL_TAB_COLS.DATA_LENGTH of a type."""
    match kind.family:
        case "text":
            return 0 if kind.ora == OraType.LONG else kind.length
        case "raw":
            return 0 if kind.ora == OraType.LONG_RAW else kind.length
        case "clob" | "blob":
            return 4000
        case "timestamp" | "ltz":
            return 7 if kind.scale == 0 else 11
        case "rowid":
            return kind.length
        case "bool":
            return 1
        case "json" | "vector":
            return _DOCUMENT_LENGTH
    if kind.user is not None:
        return _OBJECT_LENGTH if kind.user.element is None else _COLLECTION_LENGTH
    return {"number": 22, "float": 4, "double": 8, "date": 7, "tz": 13, "ids": 11, "iym": 5}.get(
        kind.family, 22
    )


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """A constraint; ``kind`` is P, U, R or C as in ALL_CONSTRAINTS. ``columns`` are internal ids.
    One that is ``deferrable`` is checked at the end of a statement, or of the transaction where
    that says so; ``deferred``: where it says nothing, too."""

    name: str
    kind: str
    columns: tuple[int, ...]
    condition: str | None = None
    not_null: bool = False
    referenced: int = 0
    referenced_constraint: str | None = None
    delete_rule: str | None = None
    enabled: bool = True
    generated: bool = False
    index_name: str | None = None
    validated: bool = True
    deferrable: bool = False
    deferred: bool = False


@dataclass(frozen=True, kw_only=True)
class IndexDef:
    """An index on columns (internal ids); ``descending`` runs beside them. One that came with a key
    (``of_key``) goes with it."""

    object_id: int
    owner: str
    name: str
    columns: tuple[int, ...]
    descending: tuple[bool, ...]
    unique: bool
    generated: bool = False
    expressions: tuple[str, ...] = ()
    """What it is on, as typed, where that is more than columns."""
    keys: tuple[int, ...] = ()
    """What it is on where hidden columns are among it, by internal ids: one that is on columns in
    ascending order has none."""
    values: tuple[str, ...] = ()
    """What a unique one on expressions is on, compiled."""
    is_bitmap: bool = False
    of_key: bool = False
    tablespace: str = ""
    compression: str = ""
    """By how many columns, or ADVANCED; BASIC stands for as many as there can be."""


@dataclass(frozen=True)
class LogGroup:
    """A supplemental log group as in ALL_LOG_GROUPS."""

    name: str
    kind: str
    always: bool = True
    columns: tuple[int, ...] = ()
    generated: bool = True


@dataclass(frozen=True, kw_only=True)
class TableDef:
    """One version of a table; ``column_version`` counts the DDLs that changed its columns.

    One that is index-organized lives in the index of its primary key. ``unused`` are columns that
    SET UNUSED took out of the table and that its rows hold still; ``virtual`` are those that no row
    holds, and so are the ``hidden`` ones, which Oracle makes for indexes on expressions, and in
    descending order, for itself.
    """

    object_id: int
    data_object_id: int
    object_version: int
    owner: str
    name: str
    columns: tuple[ColumnDef, ...]
    constraints: tuple[Constraint, ...] = ()
    indexes: tuple[IndexDef, ...] = ()
    log_groups: tuple[LogGroup, ...] = ()
    comment: str | None = None
    created: float = 0.0
    changed: float = 0.0
    structure_scn: int = 0
    scn_from: int = 0
    next_internal_id: int = 1
    temporary: bool = False
    keeps_rows: bool = False
    """A temporary table's rows stay until the end of the session, not of the transaction."""
    query: str | None = None
    """The query of a materialized view."""
    column_version: int = 1
    partitioning: Partitioning | None = None
    is_index_organized: bool = False
    has_row_movement: bool = False
    original_name: str | None = None
    """What a table in the recycle bin was called."""
    unused: tuple[ColumnDef, ...] = ()
    virtual: tuple[ColumnDef, ...] = ()
    hidden: tuple[ColumnDef, ...] = ()
    policies: tuple[RowPolicy, ...] = ()
    redaction: Redaction | None = None
    cluster: int = 0
    """The object number of the cluster in whose segment its rows lie."""
    external: External | None = None
    companion: str = ""
    """Which part of another table, its ``parent``, it stores
    (:mod:`~oracle_embedded.engine.storage.companions`)."""
    parent: int = 0
    parent_column: int = 0
    object_type: tuple[str, str] | None = None
    """Owner and name of the type of which its rows are: that of an object table, or XMLTYPE."""
    tablespace: str = ""
    compression: str = ""
    """BASIC, ADVANCED, or nothing."""

    @cached_property
    def shown(self) -> tuple[ColumnDef, ...]:
        """The visible columns in the table's order, virtual ones among them: what ``*`` means."""
        visible = (column for column in (*self.columns, *self.virtual) if not column.is_invisible)
        return tuple(sorted(visible, key=lambda column: column.position or column.internal_id))

    @cached_property
    def named(self) -> tuple[ColumnDef, ...]:
        """All columns that a statement may name: the visible ones in order, then the others."""
        hidden = (column for column in (*self.columns, *self.virtual) if column.is_invisible)
        return (*self.shown, *hidden)

    @cached_property
    def by_name(self) -> dict[str, ColumnDef]:
        """Columns by name."""
        return {column.name: column for column in self.columns}

    @cached_property
    def by_id(self) -> dict[int, ColumnDef]:
        """Columns by internal id."""
        return {column.internal_id: column for column in self.columns}

    @cached_property
    def ids(self) -> tuple[int, ...]:
        """Internal ids in column order."""
        return tuple(column.internal_id for column in self.columns)

    @cached_property
    def segment_ids(self) -> dict[int, int]:
        """The place of each column in the rows, from 1, by internal id: new columns stand behind
        all others, unused ones stay."""
        stored = sorted((*self.ids, *(column.internal_id for column in self.unused)))
        return {internal_id: place for place, internal_id in enumerate(stored, 1)}

    @cached_property
    def storage(self) -> str:
        """Names of the storage columns, separated by commas."""
        return ", ".join(f"c{internal_id}" for internal_id in self.ids)

    @cached_property
    def key(self) -> Constraint | None:
        """The primary key."""
        return next((item for item in self.constraints if item.kind == "P"), None)

    @cached_property
    def unique_keys(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Names and columns of everything that must be unique."""
        found = {
            item.columns: item.name
            for item in reversed(self.constraints)
            if item.kind in "PU" and item.enabled
        }
        for index in self.indexes:
            if index.unique and index.columns:
                found.setdefault(index.columns, index.name)
        return tuple((name, columns) for columns, name in found.items())

    @cached_property
    def unique_values(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Names and compiled expressions of unique indexes that are on more than columns."""
        return tuple((index.name, index.values) for index in self.indexes if index.values)

    @cached_property
    def hidden_by_id(self) -> dict[int, ColumnDef]:
        """The hidden columns by internal id."""
        return {column.internal_id: column for column in self.hidden}

    @property
    def next_place(self) -> int:
        """The place of the next column among all: stored, virtual, unused and hidden ones."""
        return len((*self.columns, *self.virtual, *self.unused, *self.hidden)) + 1

    @cached_property
    def deferrable_keys(self) -> dict[tuple[int, ...], Constraint]:
        """Enabled keys that a transaction may leave for its end, by columns."""
        return {
            item.columns: item
            for item in self.constraints
            if item.kind in "PU" and item.enabled and item.deferrable
        }

    @cached_property
    def foreign_keys(self) -> tuple[Constraint, ...]:
        """Enabled foreign keys."""
        return tuple(item for item in self.constraints if item.kind == "R" and item.enabled)

    @cached_property
    def checks(self) -> tuple[Constraint, ...]:
        """Enabled check constraints other than NOT NULL."""
        return tuple(
            item
            for item in self.constraints
            if item.kind == "C" and item.enabled and not item.not_null
        )

    @cached_property
    def json_columns(self) -> frozenset[str]:
        """Names of the columns that an enabled constraint holds to be JSON."""
        found = (_IS_JSON.match(item.condition or "") for item in self.checks)
        return frozenset(one[1] or one[2].upper() for one in found if one is not None)

    @cached_property
    def version(self) -> TableVersion:
        """This version as the redo side sees it."""
        kinds = {group.kind for group in self.log_groups}
        key = self.key
        return TableVersion(
            object_id=self.object_id,
            data_object_id=self.data_object_id,
            object_version=self.column_version,
            owner=self.owner,
            name=self.name,
            columns=tuple(
                replace(column.stored, segment_id=self.segment_ids[column.internal_id])
                for column in self.columns
            ),
            key_columns=tuple(self.by_id[internal_id].name for internal_id in key.columns)
            if key
            else (),
            supplemental_all="ALL COLUMN LOGGING" in kinds,
            supplemental_primary_key="PRIMARY KEY LOGGING" in kinds,
            scn_from=self.scn_from,
        )

    @cached_property
    def top_index(self) -> IndexDef | None:
        """The index in which the rows of an index-organized table live."""
        key = self.key
        if not self.is_index_organized or key is None:
            return None
        return next(index for index in self.indexes if index.name == key.index_name)

    @cached_property
    def segment_versions(self) -> dict[int, TableVersion]:
        """This version as the redo side sees it in rows of each segment, by the segment's object
        number."""
        if self.top_index is not None:
            number = self.top_index.object_id
            return {
                number: replace(
                    self.version, object_id=number, data_object_id=number, is_index_organized=True
                )
            }
        if self.partitioning is None:
            return {self.object_id: self.version}
        return {
            leaf.object_id: replace(
                self.version,
                object_id=leaf.object_id,
                data_object_id=leaf.data_object_id,
                partition=leaf.name,
            )
            for leaf in self.partitioning.leaves
        }

    def leaf_of(self, image: Mapping[int, Value]) -> Partition | None:
        """The partition of a row of a partitioned table; None if none takes it."""
        assert self.partitioning is not None
        return self.partitioning.find(image)

    def version_of(self, image: Mapping[int, Value]) -> TableVersion:
        """This version as the redo side sees it in the segment of a row."""
        if self.partitioning is None:
            return (
                self.version
                if self.top_index is None
                else self.segment_versions[self.top_index.object_id]
            )
        leaf = self.leaf_of(image)
        assert leaf is not None, "a row that is there has a partition"
        return self.segment_versions[leaf.object_id]

    @property
    def row_storage(self) -> str:
        """Names of the storage columns of a row, and of its data object number where that is not
        the table's."""
        return f"{self.storage}, dobj" if self.partitioning is not None else self.storage


@dataclass(frozen=True, kw_only=True)
class ViewDef:
    """A view: its query as typed, and its columns' names if they were given."""

    object_id: int
    owner: str
    name: str
    text: str
    columns: tuple[str, ...] = ()
    comment: str | None = None
    created: float = 0.0
    changed: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ClusterDef:
    """A cluster: one with an index, which takes rows when that is there, or a hash cluster."""

    object_id: int
    data_object_id: int
    owner: str
    name: str
    columns: tuple[ColumnDef, ...]
    is_hash: bool = False
    index: IndexDef | None = None
    created: float = 0.0
    changed: float = 0.0


@dataclass(frozen=True, kw_only=True)
class SequenceDef:
    """A sequence; its state lives beside the catalog."""

    object_id: int
    owner: str
    name: str
    start: int = 1
    increment: int = 1
    minimum: int = 1
    maximum: int = 10**28 - 1
    cycle: bool = False
    cache: int = 20
    order: bool = False
    created: float = 0.0
    changed: float = 0.0


@dataclass(frozen=True, kw_only=True)
class SynonymDef:
    """A synonym of an object; owner PUBLIC for everybody's."""

    object_id: int
    owner: str
    name: str
    target_owner: str
    target_name: str
    created: float = 0.0
    changed: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ProgramDef:
    """A stored procedure, function, package, package body or trigger: its text from its kind on.

    ``errors`` are (line, column, text) of what its compiler found; such a program cannot run. A
    trigger has a table, and may be disabled.
    """

    object_id: int
    owner: str
    name: str
    kind: str
    text: str
    errors: tuple[tuple[int, int, str], ...] = ()
    created: float = 0.0
    changed: float = 0.0
    table: int = 0
    enabled: bool = True


@dataclass(frozen=True)
class UserDef:
    """A user: system privileges and roles in ``privileges``; ``grants`` are (privilege, owner,
    object). With ``container_data`` views in the root show what belongs to the other containers,
    too."""

    object_id: int
    name: str
    password: str
    privileges: tuple[str, ...] = ()
    grants: tuple[tuple[str, str, str], ...] = ()
    locked: bool = False
    is_role: bool = False
    created: float = 0.0
    common: bool = False
    container_data: bool = False
    proxies: tuple[str, ...] = ()
    """Users who may log in for this one."""


@dataclass(frozen=True, kw_only=True)
class TypeDef:
    """An object type or collection type, with its text from its kind on."""

    object_id: int
    owner: str
    name: str
    type: SqlType
    text: str
    errors: tuple[tuple[int, int, str], ...] = ()
    created: float = 0.0
    changed: float = 0.0


Definition = (
    TypeDef | TableDef | ViewDef | ClusterDef | SequenceDef | SynonymDef | ProgramDef | UserDef
)
_CLASSES = {
    cls.__name__: cls
    for cls in (
        TableDef,
        ViewDef,
        ClusterDef,
        SequenceDef,
        SynonymDef,
        ProgramDef,
        UserDef,
        ColumnDef,
        Constraint,
        External,
        IndexDef,
        LogGroup,
        Partition,
        Partitioning,
        RedactedColumn,
        Redaction,
        RowPolicy,
        SqlType,
        TypeDef,
        UserType,
    )
}


def _plain(value: object) -> object:
    if is_dataclass(value):
        body = {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
        return {"_": type(value).__name__, **body}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _rebuilt(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_rebuilt(item) for item in value)
    if isinstance(value, dict):
        cls = _CLASSES[value.pop("_")]
        body = {name: _rebuilt(item) for name, item in value.items()}
        if cls is SqlType:
            body["ora"] = OraType(body["ora"])
        return cls(**body)
    return value


@dataclass
class _History:
    """Versions of one definition, oldest first: (from, to, definition)."""

    versions: list[tuple[int, int, Definition]] = field(default_factory=list)


def _place(definition: Definition) -> tuple[str, str]:
    if isinstance(definition, UserDef):
        return "", definition.name
    if isinstance(definition, ProgramDef):
        return definition.owner, _program_name(definition.name, definition.kind)
    return definition.owner, definition.name


def _program_name(name: str, kind: str) -> str:
    """Bodies of packages and triggers have names apart from those of other objects."""
    return f"{name}\0{kind}" if kind in ("PACKAGE BODY", "TRIGGER") else name


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


class Catalog:
    """All definitions and settings.

    Changed under the writer's lock only. Read by every thread without it: from memory alone (the
    writer's connection must never be touched by two threads), and a replaced definition is at no
    moment absent.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._histories: dict[int, _History] = {}
        self._named: dict[str, set[int]] = {}
        """Which ids have, or had, a name."""
        self._current: dict[tuple[str, str], Definition] = {}
        self._users: dict[str, UserDef] = {}
        self._settings: dict[str, str] = {}
        self._triggers: dict[int, list[ProgramDef]] | None = None
        self._temporary, self._temporary_at = False, -1
        self._policies, self._policies_at = False, -1
        self.private: dict[int, TableDef] = {}
        """What sessions have of temporary tables, by numbers of their own."""
        self.version = 0
        self._next_id = _FIRST_ID
        connection.execute(
            "CREATE TABLE IF NOT EXISTS catalog (id INTEGER, scn_from INTEGER, scn_to INTEGER, body TEXT,"
            " PRIMARY KEY (id, scn_from))"
        )
        connection.execute(
            "CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT)"
        )
        self.load()

    def load(self) -> None:
        """Read everything from SQLite, also to forget a DDL statement that failed."""
        histories: dict[int, _History] = {}
        named: dict[str, set[int]] = {}
        rows = self._connection.execute(
            "SELECT id, scn_from, scn_to, body FROM catalog ORDER BY id, scn_from"
        )
        for identifier, scn_from, scn_to, body in rows.fetchall():
            definition = _rebuilt(json.loads(_text(body)))
            versions = histories.setdefault(identifier, _History()).versions
            versions.append((scn_from, scn_to, definition))
            named.setdefault(definition.name, set()).add(identifier)
            self._next_id = max(self._next_id, identifier + 1)
        settings = self._connection.execute("SELECT name, value FROM settings").fetchall()
        self._settings = {_text(name): _text(value) for name, value in settings}
        self._next_id = max(self._next_id, int(self.setting("next_object_id") or 0))
        valid = [
            history.versions[-1][2]
            for history in histories.values()
            if history.versions[-1][1] == SCN_MAX
        ]
        self._users = {item.name: item for item in valid if isinstance(item, UserDef)}
        self._current = {_place(item): item for item in valid if not isinstance(item, UserDef)}
        self._histories, self._named = histories, named
        self._triggers = None
        self.version += 1

    def _enter(self, definition: Definition) -> None:
        if isinstance(definition, UserDef):
            self._users[definition.name] = definition
        else:
            self._current[_place(definition)] = definition
        self._triggers = None

    def _leave(self, definition: Definition) -> None:
        if isinstance(definition, UserDef):
            del self._users[definition.name]
        else:
            del self._current[_place(definition)]
        self._triggers = None

    def new_id(self) -> int:
        """Take an object id that was never used."""
        self._next_id += 1
        self.set_setting("next_object_id", str(self._next_id))
        return self._next_id - 1

    def setting(self, name: str) -> str | None:
        """A persistent setting of the database."""
        return self._settings.get(name)

    def set_setting(self, name: str, value: str) -> None:
        """Change a persistent setting, within the caller's transaction."""
        self._connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))
        self._settings[name] = value

    def put(self, definition: Definition, scn: int) -> None:
        """Add a definition, or replace the current one of the same id, from ``scn`` on."""
        history = self._histories.setdefault(definition.object_id, _History())
        old = self._close(definition.object_id, scn)
        history.versions.append((scn, SCN_MAX, definition))
        self._named[definition.name] = {*self._named.get(definition.name, ()), definition.object_id}
        body = json.dumps(_plain(definition))
        self._connection.execute(
            "INSERT OR REPLACE INTO catalog VALUES (?, ?, ?, ?)",
            (definition.object_id, scn, SCN_MAX, body),
        )
        self._enter(definition)
        if old is not None and _place(old) != _place(definition):
            self._leave(old)
        self.version += 1

    def drop(self, definition: Definition, scn: int) -> None:
        """End a definition at ``scn``."""
        old = self._close(definition.object_id, scn)
        if old is not None:
            self._leave(old)
        self.version += 1

    def _close(self, identifier: int, scn: int) -> Definition | None:
        """End the current version of an id, if it has one, and return it."""
        versions = self._histories[identifier].versions
        if not versions or versions[-1][1] != SCN_MAX:
            return None
        scn_from, _, old = versions.pop()
        if scn_from == scn:
            self._connection.execute(
                "DELETE FROM catalog WHERE id = ? AND scn_from = ?", (identifier, scn_from)
            )
            return old
        versions.append((scn_from, scn, old))
        self._connection.execute(
            "UPDATE catalog SET scn_to = ? WHERE id = ? AND scn_from = ?",
            (scn, identifier, scn_from),
        )
        return old

    def find(self, owner: str, name: str) -> Definition | None:
        """The current object of a schema by name."""
        return self._current.get((owner, name))

    def program(self, owner: str, name: str, kind: str) -> ProgramDef | None:
        """The current program of a kind by name."""
        found = self._current.get((owner, _program_name(name, kind)))
        return found if isinstance(found, ProgramDef) and found.kind == kind else None

    def triggers_of(self, object_id: int) -> list[ProgramDef]:
        """The enabled triggers of a table, in the order in which they were made."""
        if self._triggers is None:
            made: dict[int, list[ProgramDef]] = {}
            for item in [*self._current.values()]:
                if isinstance(item, ProgramDef) and item.kind == "TRIGGER" and item.enabled:
                    made.setdefault(item.table, []).append(item)
            for items in made.values():
                items.sort(key=lambda item: item.object_id)
            self._triggers = made
        return self._triggers.get(object_id, [])

    def by_id(self, identifier: int) -> Definition | None:
        """The current definition of an id."""
        if identifier in self.private:
            return self.private[identifier]
        history = self._histories.get(identifier)
        if history is None or not history.versions or history.versions[-1][1] != SCN_MAX:
            return None
        return history.versions[-1][2]

    def at(self, identifier: int, scn: int) -> Definition | None:
        """The definition of an id that was valid at an SCN."""
        history = self._histories.get(identifier)
        for scn_from, scn_to, definition in reversed(history.versions if history else []):
            if scn_from <= scn < scn_to:
                return definition
        return None

    def user(self, name: str) -> UserDef | None:
        """A user or role by name."""
        return self._users.get(name)

    def all(self, scn: int | None = None, named: str | None = None) -> Iterator[Definition]:
        """All definitions, or those of one name, current or as of an SCN, in order of their ids."""
        for identifier in sorted(
            [*(self._histories if named is None else self._named.get(named, ()))]
        ):
            found = self.by_id(identifier) if scn is None else self.at(identifier, scn)
            if found is not None and named in (None, found.name):
                yield found

    def segment_version(self, object_id: int) -> TableVersion | None:
        """The present definition of the table that has a segment: the table's own, a partition, or
        a top index."""
        found = self.by_id(object_id)
        if isinstance(found, TableDef):
            return found.version
        for table in self.tables():
            if (
                table.partitioning or table.is_index_organized
            ) and object_id in table.segment_versions:
                return table.segment_versions[object_id]
        return None

    @property
    def has_temporary(self) -> bool:
        """Is there a temporary table?"""
        if self._temporary_at != self.version:
            self._temporary = any(table.temporary for table in self.tables())
            self._temporary_at = self.version
        return self._temporary

    @property
    def has_policies(self) -> bool:
        """Has a table row-level security? Its predicates may be others with each statement."""
        if self._policies_at != self.version:
            self._policies = any(table.policies for table in self.tables())
            self._policies_at = self.version
        return self._policies

    def tables(self) -> Iterable[TableDef]:
        """All current tables."""
        return [item for item in [*self._current.values()] if isinstance(item, TableDef)]
