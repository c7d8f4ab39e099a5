"""What do the wire, the engine and the redo of the embedded Oracle know of each other?

Three parts meet only here:

* ``wire`` speaks TNS/TTC with the driver and calls an :class:`EngineSession`;
* ``engine`` parses and runs SQL over versioned storage, and tells :class:`RedoSink` of every
  change;
* ``redo`` keeps the redo log, and gives the engine :class:`VirtualTable` (V$ views) and
  :class:`Procedure` (DBMS_LOGMNR and friends) objects to serve.

Values cross these borders in Oracle's own encodings (``bytes``, ``None`` is NULL): NUMBER, DATE (7
bytes), TIMESTAMP (11 bytes), RAW, BINARY_DOUBLE in Oracle's sortable form, text as UTF-8 (national
text too: the wire recodes). They are stored, compared and sent as they are, whatever the database's
character sets are: who shows or counts bytes asks :mod:`oracle_embedded.charsets`. BOOLEAN is
``00`` or ``01``; JSON and VECTOR are their text as it was given, which no query returns; ROWID and
UROWID are their printed characters. A CLOB or BLOB column of a query holds a handle of at most 200
bytes for :meth:`EngineSession.read_lob`; a LOB *bind*, in or out, holds the whole content. An
object or a collection is an image (:func:`oracle_embedded.values.packed`) of its attributes or
elements, in which LOBs are whole contents.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass, field
from enum import IntEnum
from typing import Protocol

from oracle_embedded.charsets import CharacterSets

Value = bytes | None

BANNER = "Oracle Database 19c Enterprise Edition Release 19.0.0.0.0 - Production"
"""What the database says that it is, to clients that ask by a call as well as in V$VERSION."""


class OraType(IntEnum):
    """Type numbers of the wire protocol, used throughout for columns and binds."""

    VARCHAR = 1
    NUMBER = 2
    BINARY_INTEGER = 3
    LONG = 8
    ROWID = 11
    DATE = 12
    RAW = 23
    LONG_RAW = 24
    CHAR = 96
    BINARY_FLOAT = 100
    BINARY_DOUBLE = 101
    CURSOR = 102
    OBJECT = 109
    CLOB = 112
    BLOB = 113
    JSON = 119
    VECTOR = 127
    TIMESTAMP = 180
    TIMESTAMP_TZ = 181
    INTERVAL_YM = 182
    INTERVAL_DS = 183
    UROWID = 208
    TIMESTAMP_LTZ = 231
    BOOLEAN = 252


class OracleError(Exception):
    """An error as Oracle raises it: ``ORA-ccccc: text``, with the 0-based character offset into the
    SQL.

    ``row_count`` is the number of rows that array DML changed before it, ``row_counts`` that of
    each execution.
    """

    def __init__(self, code: int, text: str, offset: int = 0) -> None:
        super().__init__(code, text, offset)
        self.code = code
        self.text = text
        self.offset = offset
        self.row_count = 0
        self.row_counts: list[int] = []

    def __str__(self) -> str:
        return f"ORA-{self.code:05d}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectShape:
    """An object type or collection type, as images and clients have it.

    ``parts`` are the attributes in order, or the one element of a collection; behind ``has_index``
    each element's image follows that of its index, four bytes. ``package`` is the one that declares
    a type of PL/SQL. ``known_as`` is what the engine knows of it. One that ``is_xml`` is XMLTYPE,
    whose image is the document's text.
    """

    owner: str
    name: str
    oid: bytes
    parts: tuple[ShapePart, ...]
    package: str = ""
    is_collection: bool = False
    has_index: bool = False
    known_as: object = None
    is_xml: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapePart:
    """One attribute, or the element, of a shape."""

    name: str
    type: OraType
    charset_form: int = 0
    shape: ObjectShape | None = None
    is_xml: bool = False


@dataclass(frozen=True, slots=True)
class ColumnMeta:
    """One column of a query as describe shows it.

    ``precision`` and ``scale`` follow the wire: NUMBER without precision is 0 / -127, TIMESTAMP(n)
    has scale n. ``size`` is in bytes and never 0; ``char_size`` in characters for text, else 0.
    ``charset_form`` is 1 for database text, 2 for national text, 0 for the rest.
    """

    name: str
    type: OraType
    _: KW_ONLY
    precision: int = 0
    scale: int = 0
    size: int = 22
    char_size: int = 0
    nullable: bool = True
    charset_form: int = 0
    shape: ObjectShape | None = None
    is_json: bool = False
    """A column whose values a constraint holds to be JSON."""


@dataclass(frozen=True, slots=True)
class BindMeta:
    """Type of one bind position as the client declared it; ``size`` is its buffer size in bytes.

    The value of one that ``is_array`` is a list, for a collection of PL/SQL.
    """

    type: OraType
    size: int
    charset_form: int = 0
    is_array: bool = False
    shape: ObjectShape | None = None


@dataclass(slots=True)
class OutBind:
    """Result of one OUT or RETURNING bind position: metadata, and one list of values per execution.

    In PL/SQL each of those lists has exactly one value; behind RETURNING it has one value per
    affected row. ``also_in`` says that the block reads the bind as well (IN OUT): the client then
    sends it at every execution. ``has_handles`` says that the values are handles of LOBs, as in a
    query's row, instead of their contents.
    """

    position: int
    meta: BindMeta
    values: list[list[Value]] = field(default_factory=list)
    also_in: bool = False
    has_handles: bool = False


class ResultRows(Protocol):
    """Rows of one open query. Not thread safe; ``close`` may be called twice."""

    columns: Sequence[ColumnMeta]

    def fetch(self, count: int) -> list[Sequence[Value]]:
        """Return up to ``count`` further rows; fewer than ``count`` (also none) means that the
        result has ended."""

    def close(self) -> None:
        """Give up the rest of the rows."""


class StatementKind(IntEnum):
    """How the client and the wire classify a statement."""

    QUERY = 1
    DML = 2
    DDL = 3
    PLSQL = 4
    OTHER = 5


@dataclass(slots=True)
class Outcome:
    """What one execute did.

    ``rows`` is set for queries. ``row_counts`` has one entry per execution of array DML,
    ``row_count`` is their sum. ``batch_errors`` (execution index, error) is filled only where
    ``execute`` was called with ``batch_errors=True``. ``last_rowid`` is the ROWID's 18 characters
    of the last row changed.
    """

    kind: StatementKind
    rows: ResultRows | None = None
    row_count: int = 0
    row_counts: list[int] = field(default_factory=list)
    out_binds: list[OutBind] = field(default_factory=list)
    batch_errors: list[tuple[int, OracleError]] = field(default_factory=list)
    last_rowid: str | None = None
    results: list[bytes] = field(default_factory=list)
    """Handles of queries that a block gives to the client besides (DBMS_SQL.RETURN_RESULT)."""
    has_warning: bool = False
    """A program was made whose text does not compile."""


class Statement(Protocol):
    """A parsed statement. ``columns`` is empty unless it is a query.

    ``bind_names`` has one entry per bind position, in wire order: in SQL one per placeholder
    occurrence, in PL/SQL one per distinct name. ``returning`` holds the positions behind
    ``RETURNING … INTO``.
    """

    kind: StatementKind
    columns: Sequence[ColumnMeta]
    bind_names: Sequence[str]
    returning: Sequence[int]


@dataclass(slots=True)
class StandbySite:
    """What a physical standby has of its own. Tests change it while it runs.

    Attributes:
        name: DB_UNIQUE_NAME, and the folder of its archived logs.
        applied_scn: How far redo is applied: what queries see, and CURRENT_SCN. None means all that
            the primary has.
        role: DATABASE_ROLE.
        open_mode: OPEN_MODE.
        dbid: Of another database, where it is no copy of the primary; None for the primary's own.
        missing: Archived logs that have not come from the primary, by thread and sequence.
        deleted: Those that were deleted here, as RMAN does.
    """

    name: str = "ORCL_STBY"
    applied_scn: int | None = None
    role: str = "PHYSICAL STANDBY"
    open_mode: str = "READ ONLY WITH APPLY"
    dbid: int | None = None
    missing: set[tuple[int, int]] = field(default_factory=set)
    deleted: set[tuple[int, int]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Logon:
    """Who begins a session, as the client says it.

    Attributes:
        user: Whose session it is, in upper case.
        service: Leads to a container; without one, to the database's own.
        proxy: The authenticated user who works for ``user``; empty for ``user`` itself.
        as_sysdba: The session is SYS's then.
        program, machine, os_user, terminal, driver: Of the client, for V$ views.
    """

    user: str
    _: KW_ONLY
    service: str = ""
    proxy: str = ""
    as_sysdba: bool = False
    program: str = ""
    machine: str = ""
    os_user: str = "oracle"
    terminal: str = "unknown"
    driver: str = ""


class EngineSession(Protocol):
    """One database session: its transaction, NLS settings, container, LogMiner state. Used by one
    thread at a time, but for ``interrupt``, which any thread may call."""

    session_id: int
    serial: int
    username: str
    character_sets: CharacterSets
    standby: StandbySite | None
    """The physical standby in which the session is; None in the primary."""
    round_trips: int
    """Calls of the client, which the wire counts."""

    def parameter(self, name: str) -> str:
        """A session setting in force: ``NLS_DATE_FORMAT``, ``NLS_TIMESTAMP_FORMAT``,
        ``NLS_TIMESTAMP_TZ_FORMAT``, ``NLS_NUMERIC_CHARACTERS``, ``TIME_ZONE`` (as ``+00:00``),
        ``CONTAINER`` (``CDB$ROOT`` or the PDB's name), ``CURRENT_SCHEMA``, ``EDITION``, ``DB_NAME``
        (of the whole database)."""

    def set_context(self, namespace: str, values: Mapping[str, str]) -> None:
        """Give attributes of an application context values; none at all clears it.

        Raises:
            OracleError: ORA-28267 for a context that clients may not set.
        """

    def set_password(self, password: str, name: str = "") -> None:
        """Give the session's user another password, whose owner has proved that the old one is
        known; or another user, with the right ALTER USER.

        Raises:
            OracleError: ORA-00988 for one that cannot be.
        """

    def instance_name(self) -> str:
        """The instance in which the session is."""

    def object_shape(self, oid: bytes) -> ObjectShape:
        """The object type, collection type or type of a package that has a number.

        Raises:
            OracleError: ORA-21700 where there is none (any more).
        """

    def set_temporary_lobs(self, count: int) -> None:
        """Note how many temporary LOBs the client has, which the wire keeps."""

    def has_privilege(self, privilege: str) -> bool:
        """Does the user hold a system privilege or role (``LOGMINING``, ``EXECUTE_CATALOG_ROLE``,
        ``DBA`` …)?"""

    def parse(self, sql: str) -> Statement:
        """Parse and describe.

        Raises:
            OracleError: The statement is wrong or not supported; with offset where known.
        """

    def execute(
        self,
        statement: Statement,
        binds: Sequence[Sequence[Value]] = (),
        *,
        bind_metas: Sequence[BindMeta] = (),
        batch_errors: bool = False,
    ) -> Outcome:
        """Run the statement once per row of ``binds`` (once without binds when it is empty).

        An error in the middle of array DML keeps the rows done before it (as Oracle does) and
        carries their number in ``error.row_count``.

        Raises:
            OracleError: As Oracle would; a failed statement leaves no trace of itself, the
                transaction goes on.
        """

    def ping(self) -> None:
        """Do nothing.

        Raises:
            OracleError: ORA-00028 and the like where the session can do nothing more.
        """

    def commit(self) -> None:
        """Commit the transaction, if one is open."""

    def rollback(self) -> None:
        """Roll the transaction back, if one is open."""

    def in_transaction(self) -> bool:
        """Is a transaction open (the call status bit 0x02)?"""

    def set_attribute(self, name: str, value: str | None) -> None:
        """Set CLIENT_IDENTIFIER, MODULE, ACTION, CLIENT_INFO, DBOP or CURRENT_SCHEMA, which clients
        send beside a call.

        Raises:
            OracleError: ORA-01435 for a schema that does not exist.
        """

    def interrupt(self) -> None:
        """Make the running statement end with ORA-01013, from another thread.

        The wire calls it again every few hundredths of a second until the call has ended, so it
        must be cheap, and one that comes before the statement runs may be forgotten.
        """

    def is_interrupted(self) -> bool:
        """Has ``interrupt`` been called since the statement began? Whoever works or waits for long
        asks now and then."""

    def take_cursor(self, handle: bytes) -> ResultRows:
        """The open query behind a handle that an OUT bind of type CURSOR holds; whoever takes it
        closes it."""

    def give_cursor(self, rows: ResultRows) -> bytes:
        """A handle for an open query of the client, as a bind of type CURSOR holds it, from which
        blocks may fetch."""

    def read_lob(self, handle: bytes) -> tuple[OraType, bytes]:
        """The whole value behind a locator's handle that this session gave out: type and bytes
        (text as UTF-8)."""

    def write_lob(self, handle: bytes, content: bytes, call: LobCall) -> None:
        """Give the LOB behind a handle another content (text as UTF-8), which a call has made of
        the present one.

        Raises:
            OracleError: ORA-22920 unless this session's transaction has locked or changed the LOB's
                row.
        """

    def close(self) -> None:
        """Roll back and release everything. May be called twice."""


class Engine(Protocol):
    """The database behind the listener."""

    character_sets: CharacterSets
    service_names: Sequence[str]
    """In upper case; clients that name no service get the first."""

    def password_of(self, user: str, service: str = "") -> str | None:
        """Clear password of a user (name in upper case), None if the service's container has no
        such user or it is locked."""

    def open_session(self, logon: Logon) -> EngineSession:
        """Start a session for an authenticated user, or for whom an authenticated proxy works, in
        the container that the service leads to.

        Raises:
            OracleError: ORA-01045 without CREATE SESSION, ORA-28150 for a proxy that may not work
                for the user, ORA-01031 without SYSDBA, ORA-28009 for SYS without it, and the like.
        """

    def close(self) -> None:
        """Flush and release the storage. May be called twice."""


# --- engine <-> redo ------------------------------------------------------------------------------


class RowOp(IntEnum):
    """LogMiner's operation codes for row changes."""

    INSERT = 1
    DELETE = 2
    UPDATE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredColumn:
    """A column of one version of a table, as the dictionary has it.

    ``data_type`` is Oracle's name as in ALL_TAB_COLS.DATA_TYPE (``TIMESTAMP(6)``, ``VARCHAR2`` …).
    ``internal_id`` never changes and is never used again in the table, so redo keeps values by it.
    ``segment_id`` is the column's place in the rows of the version, from 1.
    """

    internal_id: int
    name: str
    data_type: str
    type: OraType
    length: int
    char_length: int
    char_used: str | None
    precision: int | None
    scale: int | None
    nullable: bool
    default_text: str | None
    charset_form: int
    segment_id: int = 0
    is_nested_table: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVersion:
    """One version of a table's definition: valid from ``scn_from`` until the next version.

    ``object_id`` stays; ``data_object_id`` changes with TRUNCATE; ``object_version`` counts the
    DDLs that changed columns. ``key_columns`` is the primary key. ``supplemental_all`` and
    ``supplemental_primary_key`` are the table's own log groups. In rows of a partition both numbers
    are the partition's, which is named then; in those of an index-organized table the numbers of
    its top index.
    """

    object_id: int
    data_object_id: int
    object_version: int
    owner: str
    name: str
    columns: tuple[StoredColumn, ...]
    key_columns: tuple[str, ...]
    supplemental_all: bool
    supplemental_primary_key: bool
    scn_from: int
    partition: str | None = None
    is_index_organized: bool = False


@dataclass(frozen=True, slots=True)
class RowChange:
    """One row changed, or the undoing of such a change (``rollback``).

    Images map ``internal_id`` to the stored value. ``before`` is the whole old row (UPDATE,
    DELETE), ``after`` the whole new row (INSERT) or just the columns that the SET clause assigned
    (UPDATE). What of it LogMiner may show depends on supplemental logging and is the redo side's to
    decide. ``is_next``: the change before it is of the same statement, table and kind. ``lob_call``
    is what made the one LOB that ``after`` has out of the one before it, where that came through a
    locator.
    """

    scn: int
    xid: bytes
    op: RowOp
    rollback: bool
    table: TableVersion
    rowid: str
    before: Mapping[int, Value] | None
    after: Mapping[int, Value] | None
    lob_call: LobCall | None = None
    is_next: bool = False


@dataclass(frozen=True, slots=True)
class LobCall:
    """What a client wrote into a LOB through its locator: ``length`` bytes or characters from
    ``offset`` (0-based) on; a trim to ``length`` where ``offset`` is None."""

    offset: int | None
    length: int


@dataclass(frozen=True, slots=True)
class TransactionInfo:
    """Who runs a transaction: its XID (8 bytes: usn and slot as two u16le, sequence as u32le, as
    V$TRANSACTION.XID)."""

    xid: bytes
    session_id: int
    serial: int
    username: str
    client_id: str | None
    start_scn: int
    start_time: float


class RedoSink(Protocol):
    """Where the engine reports every change, in the order of its SCNs, inside its own write lock
    and SQLite transaction.

    All redo of a statement is written before the statement's success is told to the client; a
    commit is durable before it is acknowledged.
    """

    def begin(self, transaction: TransactionInfo) -> None:
        """The transaction's first change is about to follow."""

    def change(self, change: RowChange) -> None:
        """A row change, also one that undoes another."""

    def commit(self, transaction: TransactionInfo, scn: int, when: float) -> None:
        """The transaction has ended at ``scn``."""

    def undone(self, transaction: TransactionInfo) -> None:
        """What was reported as undone since the last change undid a part of the transaction, which
        goes on."""

    def commit_empty(self, transaction: TransactionInfo, scn: int, when: float) -> None:
        """A transaction that has locked rows and changed none has ended at ``scn``."""

    def rollback(self, transaction: TransactionInfo, scn: int, when: float) -> None:
        """The transaction was rolled back; its undoing changes were reported before."""

    def ddl(
        self,
        transaction: TransactionInfo,
        scn: int,
        when: float,
        text: str,
        owner: str,
        table: str | None,
        object_id: int,
    ) -> None:
        """A DDL statement as typed; it is its own committed transaction."""

    def xid_at(self, scn: int) -> bytes | None:
        """The transaction that committed at an SCN, from any thread; None if the redo does not
        know."""

    def mined(self, number: int, column: str) -> tuple[OraType, Value] | None:
        """What a redo record says of ``OWNER.TABLE.COLUMN``, from any thread; None if it says
        nothing. ``number`` is that of REDO_VALUE or UNDO_VALUE."""

    def flush(self) -> None:
        """Write what was reported and is still in memory; the engine calls it before each commit of
        its SQLite transaction."""

    def reload(self) -> None:
        """Forget what was reported and not committed in SQLite; the engine calls it after it rolled
        SQLite back."""


@dataclass(frozen=True, slots=True)
class VirtualTable:
    """A view that is computed when it is queried (V$…).

    ``rows`` receives the session and the equality and range constraints that the query puts on
    columns (column name, operator in ``= < <= > >=``, value in Oracle's encoding); it may use them
    to skip rows, the engine checks them again. ``rows`` also receives the names of the columns that
    the query reads (None: all); positions of other columns may hold None whatever their value. Rows
    come in the view's natural order.
    """

    name: str
    columns: Sequence[ColumnMeta]
    rows: Callable[
        [EngineSession, Sequence[tuple[str, str, Value]], frozenset[str] | None],
        Iterator[Sequence[Value]],
    ]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A formal parameter of a procedure; ``default`` is used when the call leaves it out."""

    name: str
    type: OraType
    required: bool = True
    default: object = None


@dataclass(frozen=True, slots=True)
class Procedure:
    """A packaged procedure that PL/SQL blocks may call.

    ``run`` gets the session and the arguments by name as plain Python values (``str``, ``int``,
    ``Decimal``, ``bytes``, ``datetime`` or None).
    """

    package: str
    name: str
    parameters: Sequence[Parameter]
    run: Callable[[EngineSession, Mapping[str, object]], None]


@dataclass(frozen=True, slots=True)
class PackageConstant:
    """A constant such as ``DBMS_LOGMNR.COMMITTED_DATA_ONLY``, usable in expressions of PL/SQL
    blocks."""

    package: str
    name: str
    value: int


class RedoProvider(Protocol):
    """What the redo side adds to the engine. Built by ``redo.open_redo(database)``."""

    @property
    def sink(self) -> RedoSink:
        """Where changes are reported."""

    @property
    def virtual_tables(self) -> Sequence[VirtualTable]:
        """V$ views."""

    @property
    def procedures(self) -> Sequence[Procedure]:
        """DBMS_LOGMNR and friends."""

    @property
    def constants(self) -> Sequence[PackageConstant]:
        """Their constants."""


VERSIONS = {"19c": "19.3.0.0.0", "23ai": "23.26.2.0.0"}
"""What the views call each release that a database may say it is. Its features are the same in
each."""
COMPATIBLE = "19.0.0"
"""The initialisation parameter of that name."""
ROOT_DBID = 2_718_281_828
"""The DBID of CDB$ROOT."""


class DatabaseView(Protocol):
    """What the redo side may ask of the engine."""

    database_name: str
    instance_name: str
    container_name: str
    container_id: int
    container_dbid: int
    closed_containers: set[str]
    """Pluggable databases besides that one, all of them closed."""

    def current_scn(self) -> int:
        """The SCN of the latest change or tick."""

    def connection(self) -> sqlite3.Connection:
        """The connection of the storage's one writer, inside whose transaction the sink runs; the
        redo side keeps its own tables (prefix ``redo_``) in the same file, so that data and redo
        commit together."""

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """A connection on the same file for the short queries of a block."""

    def read_connection(self) -> sqlite3.Connection:
        """A fresh read-only connection on the same file; the caller closes it."""

    def zone_at(self, scn: int) -> str:
        """DBTIMEZONE as of an SCN: an offset, or the name of a region."""

    def zone_minutes(self, zone: str, moment: bytes) -> int:
        """By how much a zone is ahead of UTC at a moment in UTC, a TIMESTAMP's bytes."""

    def segment_version(self, object_id: int) -> TableVersion | None:
        """The present definition of the table that has a segment: its own, a partition's, or a top
        index; None if the segment is gone."""

    def segment_versions(self) -> Mapping[int, TableVersion]:
        """The present definitions of all tables, by the numbers of their segments."""

    def open_transactions(self) -> Sequence[TransactionInfo]:
        """Transactions with at least one change, not ended."""

    def session_statistics(self) -> Mapping[int, Mapping[str, int]]:
        """What each session has counted, by its number and the statistic's name: calls of its
        client, statements parsed and run, transactions ended."""

    def ended_statistics(self) -> Mapping[str, int]:
        """What sessions had counted that have ended."""

    def alter_system_hooks(self) -> dict[str, Callable[[EngineSession], None]]:
        """Registry of ``ALTER SYSTEM`` actions by normalised text (``SWITCH LOGFILE``,
        ``ARCHIVE LOG CURRENT``, ``CHECKPOINT``) that the redo side fills. Called without the
        writer's lock; hooks take ``writing()`` themselves."""

    def alter_database_hooks(self) -> dict[str, Callable[[EngineSession], None]]:
        """The same for ``ALTER DATABASE``: ``ADD SUPPLEMENTAL LOG DATA``,
        ``DROP SUPPLEMENTAL LOG DATA (PRIMARY KEY, UNIQUE) COLUMNS``, ``ARCHIVELOG`` … (upper case,
        one blank between words and after a comma)."""

    def writing(self) -> AbstractContextManager[None]:
        """Hold the writer's lock and a SQLite transaction, committed (after ``RedoSink.flush``)
        when the block ends well, rolled back otherwise. May be nested in itself by the same thread;
        only the outermost one commits."""

    def next_scn(self) -> int:
        """Take the next SCN, within ``writing()``: no later change gets this number or a lower
        one."""


def session_address(session_id: int) -> bytes:
    """V$SESSION.SADDR of a session, which V$TRANSACTION.SES_ADDR shows too."""
    return (0x70000000 + session_id * 0x1000).to_bytes(8, "big")
