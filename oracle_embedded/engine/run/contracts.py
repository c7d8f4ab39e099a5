"""What may the parts that run statements use of a session and of its database?

They stand below both: sessions run statements, and the database opens sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from oracle_embedded.api import (
    BindMeta,
    ColumnMeta,
    EngineSession,
    Logon,
    OraType,
    Outcome,
    Procedure,
    ResultRows,
    Value,
    VirtualTable,
)
from oracle_embedded.charsets import CharacterSets
from oracle_embedded.engine.compile.compilation import StoredFunction
from oracle_embedded.engine.compile.dml import RowPlan
from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.functions.context import CallContext
from oracle_embedded.engine.run.prepared import PreparedStatement
from oracle_embedded.engine.run.security import Security
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.storage.catalog import Definition, TableDef
from oracle_embedded.engine.storage.rows import Shape
from oracle_embedded.engine.storage.sequences import Sequences
from oracle_embedded.engine.storage.store import Connection, Store
from oracle_embedded.engine.storage.transactions import Transaction, Transactions

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LobPlace:
    """Where a LOB is kept: a row's column."""

    table: TableDef
    column: str
    rid: int


@dataclass(slots=True)
class OpenCursor:
    """An open query that a program fetches from, or that a client takes over."""

    rows: ResultRows
    columns: list[ColumnMeta]
    count: int = 0
    found: bool | None = None


@dataclass(slots=True)
class Output:
    """What DBMS_OUTPUT keeps until somebody asks for it; None for ``lines`` while it is
    disabled."""

    lines: list[str] | None = None
    partial: str = ""


RowTrigger: TypeAlias = Callable[
    ["SessionState", dict[int, Value] | None, dict[int, Value] | None], None
]

StatementKey: TypeAlias = tuple[str, str, str, str]
"""What a prepared statement depends on, beside the catalog: text, user, schema, container."""


class Programs(Protocol):
    """The stored programs: what SQL and changes of rows ask of them."""

    def function(self, session: SessionState, name: ast.Name) -> StoredFunction | None:
        """A stored function that SQL may call."""

    def call(
        self, session: SessionState, name: str, given: Mapping[str, Value]
    ) -> bytes | str | None:
        """Call one for a row of a query."""

    def firing(self, table: TableDef, event: str, columns: Collection[int]) -> Firing | None:
        """The triggers that a change of some columns fires; None if there are none."""


@dataclass(frozen=True, slots=True)
class Firing:
    """Triggers of one change: each gets the session, and the row's old and new image, whose new one
    it may change."""

    before_statement: Sequence[Callable[[SessionState], None]]
    before_row: Sequence[RowTrigger]
    after_row: Sequence[RowTrigger]
    after_statement: Sequence[Callable[[SessionState], None]]


class DatabaseState(Protocol):
    """The database that a session works in: its storage, its rights, and what its names mean."""

    database_name: str
    instance_name: str
    container_name: str
    container_id: int
    container_dbid: int
    closed_containers: set[str]
    """Pluggable databases besides that one, all of them closed."""
    other_containers: dict[str, int]
    """Those that are open, by name, with their numbers."""
    started: float
    first_scn: int
    store: Store
    prepared: dict[StatementKey, tuple[int, PreparedStatement]]
    """Statements that all sessions share, each with the version of the catalog for which it was
    prepared."""
    transactions: Transactions
    security: Security
    sequences: Sequences
    packaged_types: dict[str, SqlType]
    """Types that packages declare, by their numbers, as far as clients have asked for them."""
    constants: dict[tuple[str, str], int]
    procedures: dict[tuple[str, str], Procedure]
    programs: Programs
    system_settings: set[str]
    character_sets: CharacterSets
    nls: dict[str, str]
    """NLS parameters of the instance, with which sessions begin."""
    has_extended_strings: bool
    """MAX_STRING_SIZE is EXTENDED."""
    release: str
    """The release that the views name."""
    shapes: dict[tuple[int, int], Shape]
    check_plans: dict[tuple[int, int], RowPlan]
    """CHECK constraints, compiled, by object and version."""

    @property
    def sessions(self) -> Mapping[int, SessionState]:
        """Open sessions by number."""

    def find(self, session: SessionState, owner: str, name: str) -> Definition | None:
        """An object by name, as a session sees it."""

    def find_virtual(
        self, session: SessionState, name: str, owner: str | None
    ) -> tuple[VirtualTable, bool] | None:
        """A computed view that a session may read, and whether it belongs to the dictionary."""

    def computed_views(self) -> set[str]:
        """Names of all computed views."""

    def dictionary_rows(
        self,
        name: str,
        session: SessionState,
        scn: int | None,
        filters: Sequence[tuple[str, str, Value]],
        read: Sequence[int],
    ) -> Iterator[Sequence[Value]]:
        """Rows of a dictionary view, as of an SCN if one is given, each with the columns at the
        places ``read``; filters as in :class:`VirtualTable`."""

    def is_system_object(self, owner: str, name: str) -> bool:
        """Is this a dictionary view or a package?"""

    def is_connected(self, user: str) -> bool:
        """Has a user a session?"""

    def forget_session(self, session: SessionState) -> None:
        """A session has ended."""

    def current_scn(self) -> int:
        """The SCN of now; asking moves it on."""

    def scn_time(self, scn: int) -> float | None:
        """When an SCN was current."""

    def zone_at(self, scn: int | None = None) -> str:
        """DBTIMEZONE, now or as of an SCN."""

    def set_time_zone(self, zone: str) -> None:
        """Change DBTIMEZONE."""

    def set_password(self, name: str, password: str) -> None:
        """Give a user another password."""

    def stored_function(self, session: SessionState, name: ast.Name) -> StoredFunction | None:
        """A stored function that a session's SQL may call."""

    def changing_catalog(self) -> AbstractContextManager[None]:
        """The writer's lock for a DDL statement; if it fails, the catalog is read again."""

    def log_ddl(self, session: SessionState, text: str, table: TableDef | None = None) -> None:
        """Put a statement that concerns the whole database into the redo."""

    def alter_system_hooks(self) -> dict[str, Callable[[EngineSession], None]]:
        """Actions of ALTER SYSTEM by text."""

    def alter_database_hooks(self) -> dict[str, Callable[[EngineSession], None]]:
        """Actions of ALTER DATABASE by text."""


class SessionState(EngineSession, Protocol):
    """The session for which a statement runs: its user, settings, transaction and LOBs."""

    schema: str
    container: str
    move: Callable[[str], None] | None
    """Goes on in another pluggable database, whose storage is its own; None where the server has
    none."""
    logon: Logon
    edition: str
    shows_archived: bool
    """ALTER SESSION SET ROW ARCHIVAL VISIBILITY = ALL."""
    contexts: dict[str, dict[str, str]]
    """Attributes of application contexts by namespace."""
    logon_time: float
    nls: dict[str, str]
    time_zone: str
    attributes: dict[str, str | None]
    transaction: Transaction | None
    read_only_scn: int | None
    serial_scn: int | None
    """As of which SCN a serializable transaction sees data."""
    is_serializable: bool
    """ALTER SESSION SET ISOLATION_LEVEL = SERIALIZABLE."""
    open_rows: set[ResultRows]
    rights: str
    """The user whose rights count: the owner of the stored program that runs, or the session's
    own."""
    cursors: dict[bytes, OpenCursor]
    packages: dict[int, Any]
    """What the session has of packages, by their numbers."""
    output: Output
    filling: int
    """The materialized view whose rows are made just now."""
    enforcing: set[int]
    """Tables whose policy functions run just now."""
    has_recycle_bin: bool
    """Does a DROP TABLE without PURGE leave the table in the recycle bin?"""
    temporary_lobs: int
    results: list[bytes]
    """Handles of queries that DBMS_SQL.RETURN_RESULT gives to the client."""

    @property
    def database(self) -> DatabaseState:
        """The database."""

    def run(
        self, sql: str, binds: Sequence[Value] = (), bind_metas: Sequence[BindMeta] = ()
    ) -> Outcome:
        """Parse and execute a statement once."""

    def control(self, node: ast.Simple) -> None:
        """COMMIT, ROLLBACK, SAVEPOINT, SET TRANSACTION."""

    def need_transaction(self) -> Transaction:
        """The open transaction, begun now if there is none. Under the store's lock."""

    def empty_private(self, table: TableDef) -> None:
        """Throw away the session's own rows of a temporary table."""

    def snapshot_scn(self) -> int | None:
        """As of which SCN the transaction sees data; None where each statement has its own. Under
        the store's lock."""

    def drop_empty_transaction(self) -> None:
        """Forget a transaction that changed and locked nothing. Under the store's lock."""

    def set_schema(self, name: str) -> None:
        """Change the schema in which unqualified names are looked up."""

    def enter(self, context: CallContext) -> None:
        """Let the functions of a connection work for this session's next statement."""

    def kill(self) -> None:
        """Roll back what the session did and let it do nothing more; from another session's
        thread."""

    def running(self, connection: Connection) -> AbstractContextManager[None]:
        """While the block runs, a cancel interrupts this connection. Only for statements that
        read."""

    def with_handles(
        self,
        rows: list[Sequence[Value]],
        positions: list[int],
        columns: Sequence[ColumnMeta],
        places: Sequence[Mapping[int, LobPlace]] = (),
    ) -> list[Sequence[Value]]:
        """Rows with handles in place of LOB contents; ``places`` say, per row and position, where
        they are kept."""

    def keep_cursor(self, opened: OpenCursor) -> bytes:
        """A handle for an open query, which programs fetch from and the client may take."""

    def keep_lob(self, kind: OraType, content: bytes, place: LobPlace | None) -> bytes:
        """A handle for a LOB's content. One whose place is told may be written while its row is
        locked."""

    def is_kept_lob(self, handle: bytes) -> bool:
        """Is it a row's LOB that stands behind a handle?"""
