"""What is one database session?"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from oracle_embedded.api import (
    BindMeta,
    ColumnMeta,
    LobCall,
    Logon,
    ObjectShape,
    OracleError,
    OraType,
    Outcome,
    ResultRows,
    StandbySite,
    Value,
)
from oracle_embedded.engine.datatypes import rowids, temporal
from oracle_embedded.engine.dictionary.table_ddl import create_table
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.functions.context import CallContext
from oracle_embedded.engine.run.contracts import DatabaseState, LobPlace, OpenCursor, Output
from oracle_embedded.engine.run.prepared import PreparedStatement
from oracle_embedded.engine.run.security import SYS
from oracle_embedded.engine.run.statement import prepare
from oracle_embedded.engine.run.user_types import shape_by_number
from oracle_embedded.engine.run.userenv import user_environment
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.statements import kept_binds, run_statement
from oracle_embedded.engine.storage.catalog import TableDef, UserDef
from oracle_embedded.engine.storage.editions import DEFAULT_EDITION
from oracle_embedded.engine.storage.store import Connection
from oracle_embedded.engine.storage.transactions import Transaction

_CLIENT_CONTEXT = "CLIENTCONTEXT"
_PASSWORD_BYTES_MAX = 30
_LOB_BYTES_MAX = 256 * 1024 * 1024
_ATTRIBUTES = frozenset({"CLIENT_IDENTIFIER", "MODULE", "ACTION", "CLIENT_INFO", "DBOP"})


class Session:
    """The engine's :class:`~oracle_embedded.api.EngineSession`."""

    def __init__(
        self,
        database: DatabaseState,
        user: UserDef,
        session_id: int,
        serial: int,
        logon: Logon,
    ) -> None:
        self.database = database
        self.user = user
        self.username = user.name
        self.session_id = session_id
        self.serial = serial
        self.standby: StandbySite | None = None
        self.logon = logon
        self.logon_time = database.store.now()
        self.schema = user.name
        self.container = database.container_name
        self.move: Callable[[str], None] | None = None
        self.nls = dict(database.nls)
        self.character_sets = database.character_sets
        self.time_zone = "+00:00"
        self.attributes: dict[str, str | None] = {}
        self.transaction: Transaction | None = None
        self.read_only_scn: int | None = None
        self.serial_scn: int | None = None
        self.is_serializable = False
        self.open_rows: set[ResultRows] = set()
        self.current_values: dict[int, int] = {}
        self.closed = False
        self.round_trips = 0
        self.edition = DEFAULT_EDITION
        self.shows_archived = False
        self.contexts: dict[str, dict[str, str]] = {}
        self.parses = self.executions = self.commits = self.rollbacks = 0
        self.killed = False
        self._interrupted = threading.Event()
        self._running: Connection | None = None
        self._running_lock = threading.Lock()
        self._lobs: OrderedDict[bytes, tuple[OraType, bytes, LobPlace | None]] = OrderedDict()
        self._lob_bytes = 0
        self._lob_number = 0
        self.cursors: dict[bytes, OpenCursor] = {}
        self._cursor_number = 0
        self.rights = user.name
        self.packages: dict[int, Any] = {}
        self.filling = 0
        self.enforcing: set[int] = set()
        self.has_recycle_bin = True
        self._private: dict[int, tuple[TableDef, TableDef]] = {}
        self.output = Output()
        self.results: list[bytes] = []
        self.temporary_lobs = 0

    # --- statements -------------------------------------------------------------------------------

    def parse(self, sql: str) -> PreparedStatement:
        """Parse and describe a statement."""
        self._check_open()
        self.parses += 1
        return prepare(self, self.character_sets.database.keep(sql))

    def execute(
        self,
        statement: Any,
        binds: Sequence[Sequence[Value]] = (),
        *,
        bind_metas: Sequence[BindMeta] = (),
        batch_errors: bool = False,
    ) -> Outcome:
        """Run a statement once per row of binds."""
        self._check_open()
        if not isinstance(statement, PreparedStatement):
            raise TypeError("the statement does not come from parse()")
        self._interrupted.clear()
        self.executions += 1
        statement.executions += 1
        statement.active_at = self.database.store.now()
        binds = kept_binds(binds, bind_metas, self.character_sets.database)
        try:
            return run_statement(self, statement, binds, bind_metas, batch_errors=batch_errors)
        except OracleError as error:
            if self.killed:
                raise _killed() from error
            raise

    def run(
        self, sql: str, binds: Sequence[Value] = (), bind_metas: Sequence[BindMeta] = ()
    ) -> Outcome:
        """Parse and execute a statement once."""
        return self.execute(self.parse(sql), [binds] if binds else (), bind_metas=bind_metas)

    def ping(self) -> None:
        """Do nothing, in a session that could do something."""
        self._check_open()

    def kill(self) -> None:
        """Roll back what the session did and let it do nothing more; from another session's
        thread."""
        self.killed = True
        self.interrupt()
        with self.database.store.lock:
            self.rollback()

    def _check_open(self) -> None:
        if self.killed:
            raise _killed()
        if self.closed:
            raise OracleError(1012, "not logged on")
        if self.database.store.closed:
            raise OracleError(1034, "ORACLE not available")

    # --- transaction ------------------------------------------------------------------------------

    def need_transaction(self) -> Transaction:
        """The open transaction, begun now if there is none. Under the store's lock."""
        if self.standby is not None:
            raise ora(16000)
        if self.read_only_scn is not None:
            raise ora(1456)
        if self.transaction is None:
            self.transaction = self.database.transactions.begin(
                self.session_id,
                self.serial,
                self.username,
                self.attributes.get("CLIENT_IDENTIFIER"),
            )
        return self.transaction

    def drop_empty_transaction(self) -> None:
        """Forget a transaction that changed and locked nothing. Under the store's lock."""
        transaction = self.transaction
        if (
            transaction is not None
            and not transaction.begun
            and not transaction.row_locks
            and not transaction.savepoints
            and not transaction.changes
            and not transaction.deferral.is_set
        ):
            self.database.transactions.rollback(transaction)
            self.transaction = None

    def commit(self) -> None:
        """Commit the transaction, if one is open.

        Without one, this takes no lock, and neither does :meth:`rollback`: a client in the same
        process may be closed by the garbage collector in the middle of another session's statement,
        and then waits here for the thread that it runs in.
        """
        self.serial_scn = None
        if not self.in_transaction():
            return
        with self.database.store.lock:
            self.read_only_scn = None
            if self.transaction is not None:
                transaction, self.transaction = self.transaction, None
                self.database.transactions.commit(transaction)
                self.commits += 1
                self._forget_private_rows()

    def rollback(self) -> None:
        """Roll the transaction back, if one is open."""
        self.serial_scn = None
        if not self.in_transaction():
            return
        with self.database.store.lock:
            self.read_only_scn = None
            if self.transaction is not None:
                transaction, self.transaction = self.transaction, None
                self.database.transactions.rollback(transaction)
                self.rollbacks += 1
                self._forget_private_rows()

    # --- temporary tables -------------------------------------------------------------------------

    def private_table(self, table: TableDef) -> TableDef:
        """What the session has of a temporary table: storage of its own, made when it is first
        named."""
        kept = self._private.get(table.object_id)
        if kept is not None and kept[0] is table:
            return kept[1]
        store = self.database.store
        with store.lock:
            number = store.catalog.new_id()
            made = replace(table, object_id=number, data_object_id=number)
            store.create_table(made)
            store.catalog.private[number] = made
            if kept is not None:
                self._drop_private(kept[1])
            self._private[table.object_id] = (table, made)
        return made

    def empty_private(self, table: TableDef) -> None:
        """Throw away the session's own rows of a temporary table."""
        kept = self._private.get(table.object_id)
        if kept is not None:
            self.database.store.empty_table(kept[1])

    def _forget_private_rows(self) -> None:
        """ON COMMIT DELETE ROWS, at the end of a transaction. Under the store's lock."""
        for _, made in self._private.values():
            if not made.keeps_rows:
                self.database.store.empty_table(made)

    def _drop_all_private(self) -> None:
        """At the end of the session; one that has nothing takes no lock."""
        if self._private:
            with self.database.store.lock:
                for _, made in self._private.values():
                    self._drop_private(made)
        self._private.clear()

    def _drop_private(self, made: TableDef) -> None:
        self.database.store.catalog.private.pop(made.object_id, None)
        self.database.store.drop_table(made)

    def in_transaction(self) -> bool:
        """Is a transaction open?"""
        return self.transaction is not None or self.read_only_scn is not None

    def control(self, node: ast.Simple) -> None:
        """COMMIT, ROLLBACK, SAVEPOINT, SET TRANSACTION."""
        match node.action:
            case "COMMIT":
                self.commit()
            case "ROLLBACK":
                self.rollback()
            case "SAVEPOINT":
                with self.database.store.lock:
                    if self.read_only_scn is None:
                        self.need_transaction().savepoints[node.argument] = (
                            self.database.transactions.seq
                        )
            case "ROLLBACK TO":
                self._rollback_to(node.argument)
            case "SET TRANSACTION":
                self._set_transaction(node.argument)

    def _rollback_to(self, name: str) -> None:
        with self.database.store.lock:
            transaction = self.transaction
            if transaction is None or name not in transaction.savepoints:
                raise OracleError(
                    1086, f"savepoint '{name}' never established in this session or is invalid"
                )
            seq = transaction.savepoints[name]
            self.database.transactions.undo_to(transaction, seq)
            names = list(transaction.savepoints)
            for later in names[names.index(name) + 1 :]:
                del transaction.savepoints[later]

    def _set_transaction(self, mode: str) -> None:
        with self.database.store.lock:
            if self.in_transaction():
                raise OracleError(1453, "SET TRANSACTION must be first statement of transaction")
            if mode == "READ ONLY":
                self.read_only_scn = self.database.store.clock.value
            elif mode == "SERIALIZABLE":
                self.serial_scn = self.database.store.clock.value

    def snapshot_scn(self) -> int | None:
        """As of which SCN the transaction sees data; None where each statement has its own. Under
        the store's lock."""
        if self.is_serializable and self.serial_scn is None:
            self.serial_scn = self.database.store.clock.value
        applied = None if self.standby is None else self.standby.applied_scn
        return self.read_only_scn or self.serial_scn or applied

    # --- settings ---------------------------------------------------------------------------------

    def parameter(self, name: str) -> str:
        """A session setting in force."""
        match name.upper():
            case "TIME_ZONE":
                offset = temporal.zone_offset(
                    self.time_zone, temporal.nanos_from_epoch(self.database.store.now())
                )
                return f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02d}:{abs(offset) % 60:02d}"
            case "CONTAINER":
                return self.container
            case "CURRENT_SCHEMA":
                return self.schema
            case "EDITION":
                return self.edition
            case "DB_NAME":
                return self.database.database_name
        return self.nls[name.upper()]

    def object_shape(self, oid: bytes) -> ObjectShape:
        """The type behind a number."""
        return shape_by_number(self, oid)

    def has_privilege(self, privilege: str) -> bool:
        """Does the user hold a system privilege or role?"""
        return self.database.security.has(self.username, privilege)

    def set_context(self, namespace: str, values: Mapping[str, str]) -> None:
        """Give attributes of an application context values; none at all clears it.

        Source:
            Oracle Database Security Guide 19c, Using Client Session-Based Application Contexts:
            clients set CLIENTCONTEXT alone.
        """
        if namespace.upper() != _CLIENT_CONTEXT:
            raise OracleError(28267, "Invalid NameSpace Value")
        if values:
            known = self.contexts.setdefault(_CLIENT_CONTEXT, {})
            known.update({name.upper(): value for name, value in values.items()})
        else:
            self.contexts.pop(_CLIENT_CONTEXT, None)

    def set_temporary_lobs(self, count: int) -> None:
        """Note how many temporary LOBs the client has."""
        self.temporary_lobs = count

    def set_password(self, password: str, name: str = "") -> None:
        """Give the session's user another password, or another user with the right for it. No redo
        has its text."""
        if name not in ("", self.username) and not self.has_privilege("ALTER USER"):
            raise ora(1031)
        if not 0 < len(password.encode()) <= _PASSWORD_BYTES_MAX or '"' in password:
            raise OracleError(988, "missing or invalid password(s)")
        database = self.database
        name = name or self.username
        if name != SYS and database.store.catalog.user(name) is None:
            raise OracleError(1918, f"user '{name}' does not exist")
        if name == SYS and self.username != SYS:
            raise ora(1031)
        database.set_password(name, password)

    def instance_name(self) -> str:
        """The instance in which the session is."""
        return self.database.instance_name

    def set_attribute(self, name: str, value: str | None) -> None:
        """Set an attribute that clients send beside a call."""
        upper = name.upper()
        if upper == "CURRENT_SCHEMA":
            self.set_schema(value or self.username)
        elif upper in _ATTRIBUTES:
            self.attributes[upper] = value or None
        else:
            raise OracleError(2248, "invalid option for ALTER SESSION")

    def set_schema(self, name: str) -> None:
        """Change the schema in which unqualified names are looked up."""
        user = self.database.store.catalog.user(name)
        if name != SYS and (user is None or user.is_role):
            raise ora(1435)
        self.schema = name

    def enter(self, context: CallContext) -> None:
        """Let the functions of a connection work for this session's next statement."""
        database = self.database
        context.nls = self.nls
        context.character_sets = database.character_sets
        context.time_zone = self.time_zone
        context.database_zone = database.zone_at()
        context.now_utc = temporal.nanos_from_epoch(database.store.now())
        context.user = self.username
        context.schema = self.schema
        context.error = None
        context.is_program = False
        context.userenv = lambda name: user_environment(self, name)
        context.contexts = self.contexts
        context.next_value = lambda identifier: database.sequences.next_value(
            identifier, self.current_values
        )
        context.current_value = lambda identifier: database.sequences.current_value(
            identifier, self.current_values
        )
        context.table_ddl = self.table_ddl
        context.call_stored = lambda name, given: database.programs.call(self, name, given)
        context.scn_time = database.scn_time
        context.time_scn = database.store.clock.at_time
        context.current_scn = database.current_scn
        if database.store.sink is not None:
            context.xid_at = database.store.sink.xid_at
            context.mined = database.store.sink.mined

    def table_ddl(self, name: str, owner: str | None) -> str:
        """CREATE TABLE of a table, as DBMS_METADATA gives it."""
        owner = owner or self.schema
        table = self.database.find(self, owner, name)
        if not isinstance(table, TableDef):
            raise OracleError(31603, f'object "{name}" of type TABLE not found in schema "{owner}"')
        return create_table(table)

    # --- cancel -----------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """Make the running statement end with ORA-01013."""
        self._interrupted.set()
        with self._running_lock:
            if self._running is not None:
                self._running.sqlite.interrupt()

    def is_interrupted(self) -> bool:
        """Has a cancel arrived since the statement began?"""
        return self._interrupted.is_set()

    @contextmanager
    def running(self, connection: Connection) -> Iterator[None]:
        """While the block runs, a cancel interrupts this connection. Only for statements that
        read."""
        with self._running_lock:
            self._running = connection
        try:
            yield
        finally:
            with self._running_lock:
                self._running = None

    # --- cursors of blocks ------------------------------------------------------------------------

    def keep_cursor(self, opened: OpenCursor) -> bytes:
        """A handle for an open query of a block."""
        self._cursor_number += 1
        handle = self._cursor_number.to_bytes(8, "big")
        self.cursors[handle] = opened
        return handle

    def give_cursor(self, rows: ResultRows) -> bytes:
        """A handle for an open query of the client."""
        return self.keep_cursor(OpenCursor(rows, list(rows.columns)))

    def take_cursor(self, handle: bytes) -> ResultRows:
        """The open query behind a handle."""
        opened = self.cursors.pop(handle, None)
        if opened is None:
            raise OracleError(1001, "invalid cursor")
        return opened.rows

    # --- LOBs -------------------------------------------------------------------------------------

    def with_handles(
        self,
        rows: list[Sequence[Value]],
        positions: list[int],
        columns: Sequence[ColumnMeta],
        places: Sequence[Mapping[int, LobPlace]] = (),
    ) -> list[Sequence[Value]]:
        """Rows with handles in place of LOB contents."""
        if not positions:
            return rows
        found: list[Sequence[Value]] = []
        for number, row in enumerate(rows):
            cells = list(row)
            where = places[number] if places else {}
            for at in positions:
                content = cells[at]
                if content is not None:
                    cells[at] = self.keep_lob(columns[at].type, content, where.get(at))
            found.append(cells)
        return found

    def keep_lob(self, kind: OraType, content: bytes, place: LobPlace | None) -> bytes:
        """A handle for a LOB's content."""
        self._lob_number += 1
        handle = b"L" + self._lob_number.to_bytes(8, "big")
        self._lobs[handle] = (kind, content, place)
        self._lob_bytes += len(content)
        while self._lob_bytes > _LOB_BYTES_MAX and len(self._lobs) > 1:
            _, (_, old, _) = self._lobs.popitem(last=False)
            self._lob_bytes -= len(old)
        return handle

    def read_lob(self, handle: bytes) -> tuple[OraType, bytes]:
        """The whole value behind a handle."""
        kind, content, _ = self._lob(handle)
        return kind, content

    def is_kept_lob(self, handle: bytes) -> bool:
        """Is it a row's LOB that stands behind a handle?"""
        return self._lob(handle)[2] is not None

    def _lob(self, handle: bytes) -> tuple[OraType, bytes, LobPlace | None]:
        found = self._lobs.get(handle)
        if found is None:
            raise OracleError(22922, "nonexistent LOB value")
        return found

    def write_lob(self, handle: bytes, content: bytes, call: LobCall) -> None:
        """Change a LOB whose row this session's transaction has locked.

        Oracle writes pieces; here the row is updated with the whole value, and the redo has the
        call.
        """
        kind, old, place = self._lob(handle)
        if place is None or not self._holds_row(place):
            raise OracleError(22920, "row containing the LOB value is not locked")
        table = place.table
        with self.database.store.lock:
            number = self.database.store.data_object_of(table, place.rid)
        rowid = rowids.printed(number, place.rid).encode()
        form = table.by_name[place.column].type.form
        transaction = self.transaction
        assert transaction is not None, "it holds the row"
        transaction.lob_call = call
        try:
            self.run(
                f'UPDATE "{table.owner}"."{table.name}" SET "{place.column}" = :1 WHERE ROWID = :2',
                [content, rowid],
                [BindMeta(kind, len(content), form), BindMeta(OraType.VARCHAR, len(rowid), 1)],
            )
        finally:
            transaction.lob_call = None
        self._lobs[handle] = (kind, content, place)
        self._lob_bytes += len(content) - len(old)

    def _holds_row(self, place: LobPlace) -> bool:
        with self.database.store.lock:
            transactions = self.database.transactions
            return transactions.holds_row(self.transaction, place.table, place.rid)

    def close(self) -> None:
        """Roll back and release everything."""
        if self.closed:
            return
        for rows in list(self.open_rows):
            rows.close()
        if not self.database.store.closed:
            self.rollback()
            self._drop_all_private()
        self.closed = True
        self._lobs.clear()
        self.database.forget_session(self)


def _killed() -> OracleError:
    return OracleError(28, "your session has been killed")
