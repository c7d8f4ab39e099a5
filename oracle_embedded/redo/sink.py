"""How do the engine's changes become redo records?"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from oracle_embedded.api import (
    DatabaseView,
    OracleError,
    OraType,
    RowChange,
    RowOp,
    TableVersion,
    TransactionInfo,
    Value,
)
from oracle_embedded.redo import store, threads
from oracle_embedded.redo.levels import level_of
from oracle_embedded.redo.lob import is_lob
from oracle_embedded.redo.settings import RedoSettings, Wart
from oracle_embedded.redo.writer import RedoWriter

OP_INTERNAL = 0
OP_DDL = 5
OP_START = 6
OP_COMMIT = 7
OP_ROLLBACK = 36
OP_SAVEPOINT_UNDONE = 1000
"""Stored only: here a rollback to a savepoint ended."""

FLAG_ROLLBACK = 1
FLAG_NO_THREAD = 2
LEVEL_SHIFT = 2
LEVEL_MASK = 3
FLAG_NEXT = 16
"""The record before it is of the same statement, table and kind."""


@dataclass(frozen=True, slots=True)
class _Open:
    """An open transaction: its number, and the thread of the instance that runs it."""

    tx: int
    thread: int


_NOT_MINED = frozenset({OraType.CLOB, OraType.BLOB, OraType.LONG, OraType.LONG_RAW, OraType.OBJECT})
"""Types of which MINE_VALUE says nothing. Source: PL/SQL Packages and Types Reference 19c,
DBMS_LOGMNR, MINE_VALUE."""


class Sink:
    """The :class:`~oracle_embedded.api.RedoSink`; used in the writer's block only."""

    def __init__(self, database: DatabaseView, settings: RedoSettings) -> None:
        self._database = database
        self._settings = settings
        self.warts = settings.warts
        self.untranslated: frozenset[bytes] = frozenset()
        self.writer = RedoWriter(database, settings, late=Wart.LATE_REDO in settings.warts)
        self.supplemental: frozenset[str] = frozenset()
        self._session_threads: dict[int, int] = {}
        self._transactions: dict[bytes, _Open] = {}
        self._undone: set[int] = set()
        self._objects: dict[tuple[object, ...], int] = {}
        self._table: TableVersion | None = None
        self._object = 0
        self._flags = 0
        self._lobs: tuple[int, ...] = ()
        self.unlogged: frozenset[str] = frozenset()
        self.lost_ends: set[int] = set()
        self.role, self.open_mode = "PRIMARY", "READ WRITE"

    @property
    def connection(self) -> sqlite3.Connection:
        """The writing connection."""
        return self.writer.connection

    def open(self) -> None:
        """Prepare the storage; within the writer's block."""
        self.writer.open()
        self._load()

    def reload(self) -> None:
        """Forget what SQLite does not hold."""
        self.writer.load()
        self._load()

    def _load(self) -> None:
        rows = self.connection.execute(
            "SELECT xid, tx, thread FROM redo_transaction WHERE committed IS NULL"
        )
        self._transactions = {xid: _Open(tx, thread) for xid, tx, thread in rows}
        self._undone = {
            found.tx for found in self._transactions.values()
        }  # perhaps: nobody remembers
        self._objects = {}
        for number, packed in self.connection.execute("SELECT object, definition FROM redo_object"):
            self._objects[_table_key(store.unpack_table(packed))] = number
        self.load_supplemental()

    def set_warts(self, warts: frozenset[Wart]) -> None:
        """Show these oddities from now on."""
        self.warts = warts
        self.writer.late = Wart.LATE_REDO in warts
        if not self.writer.late:
            self.writer.bind()
        elif Wart.GATHERED_WRITES not in warts:
            self.writer.gather()

    def load_supplemental(self) -> None:
        """Read which supplemental logging is on for the database."""
        self.supplemental = frozenset(store.read_meta(self.connection)["supplemental"])
        self._table = None

    # --- what the engine reports ------------------------------------------------------------------

    def begin(self, transaction: TransactionInfo) -> None:
        """Write the START record."""
        self._begin(transaction, ddl=False)

    def change(self, change: RowChange) -> None:
        """Write a row change.

        LOB values of old rows are not logged, only whether they were NULL; those of undoing tell
        what to undo. A direct load without logging leaves no row, only its SCN in the control file.
        """
        if f"{change.table.owner}.{change.table.name}" in self.unlogged:
            store.write_meta(self.connection, {"unrecoverable_change": change.scn})
            return
        if change.table is not self._table:
            self._select_table(change.table)
        open_one = self._transactions[change.xid]
        if change.rollback:
            self._undone.add(open_one.tx)
        before = change.before
        if before is not None and self._lobs and not change.rollback:
            before = _emptied(before, self._lobs)
        self.writer.last_is_internal = False
        self.writer.append(
            open_one.thread,
            change.scn,
            open_one.tx,
            change.op,
            self._flags | change.rollback | (FLAG_NEXT if change.is_next and self._lobs else 0),
            self._object,
            change.rowid.encode(),
            None if before is None else store.pack_image(before),
            None if change.after is None else store.pack_image(_with_call(change)),
        )

    def commit(self, transaction: TransactionInfo, scn: int, when: float) -> None:
        """Write the COMMIT record."""
        self._end(transaction, scn, when, committed=True)

    def rollback(self, transaction: TransactionInfo, scn: int, when: float) -> None:
        """Write the ROLLBACK record, unless it is to be lost."""
        is_lost = transaction.session_id in self.lost_ends
        self.lost_ends.discard(transaction.session_id)
        self._end(transaction, scn, when, committed=False, is_written=not is_lost)

    def undone(self, transaction: TransactionInfo) -> None:
        """Note that a part of the transaction is undone, and that it goes on."""
        if Wart.SPURIOUS_ROLLBACKS in self.warts:
            thread = self._transactions[transaction.xid].thread
            self._note(transaction.xid, self.writer.least_scn(thread), OP_SAVEPOINT_UNDONE)

    def commit_empty(self, transaction: TransactionInfo, scn: int, when: float) -> None:
        """Write START and COMMIT of a transaction that locked rows and changed none."""
        if Wart.EMPTY_TRANSACTIONS in self.warts:
            self._begin(transaction, ddl=False)
            self._end(transaction, scn, when, committed=True, flags=FLAG_NO_THREAD)

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
        """Write a DDL record, with a START and a COMMIT of its own unless its transaction is
        open."""
        alone = transaction.xid not in self._transactions
        if alone:
            self._begin(transaction, ddl=True)
        facts = store.pack_facts((text, owner, table, object_id))
        self._note(transaction.xid, scn, OP_DDL, facts=facts)
        if alone:
            self._end(transaction, scn, when, committed=True)

    def xid_at(self, scn: int) -> bytes | None:
        """The transaction that committed at an SCN."""
        query = "SELECT xid FROM redo_transaction WHERE end_scn = ? AND committed = 1"
        with self._database.reading() as connection:
            found = connection.execute(query, (scn,)).fetchone()
        return None if found is None else bytes(found[0])

    def mined(self, number: int, column: str) -> tuple[OraType, Value] | None:
        """What a record says of a column: its new value for a REDO_VALUE, the old one for an
        UNDO_VALUE."""
        query = (
            "SELECT op, before, after, definition FROM redo_record NATURAL JOIN redo_object"
            " WHERE id = ?"
        )
        with self._database.reading() as connection:
            found = connection.execute(query, (number // 2,)).fetchone()
        if found is None:
            return None
        operation, before, after, definition = found
        table = store.unpack_table(definition)
        prefix = f"{table.owner}.{table.name}."
        wanted = column.replace('"', "")
        described = next((one for one in table.columns if prefix + one.name == wanted), None)
        if described is None:
            return None
        new, old = (store.unpack_image(one) if one is not None else {} for one in (after, before))
        image = new if number % 2 == 0 else old
        if operation == RowOp.UPDATE and described.internal_id not in new:
            return None
        if described.internal_id not in image or described.type in _NOT_MINED:
            return None
        return described.type, image[described.internal_id]

    def flush(self) -> None:
        """Write the collected records."""
        self.writer.flush()

    # --- what the redo side itself writes ---------------------------------------------------------

    def open_resetlogs(self) -> int:
        """Begin a new incarnation; returns its first SCN.

        Raises:
            OracleError: ORA-01126 while transactions are open.
        """
        if self._transactions:
            raise OracleError(
                1126, "database must be mounted in this instance and not open in any instance"
            )
        return self.writer.reset()

    def write_internal(self) -> None:
        """Write records of the open instances themselves, as their background processes do."""
        for thread in self.writer.open_threads:
            if Wart.EMPTY_TRANSACTIONS in self.warts:
                scn = self._database.next_scn()
                self.writer.append(thread, scn, None, OP_START, 0, None, None, None, None)
            scn = self._database.next_scn()
            self.writer.append(thread, scn, None, OP_INTERNAL, 0, None, None, None, None)
        self.writer.last_is_internal = True
        self.flush()

    def keep_alive(self) -> None:
        """Let the instances write redo of their own, unless they just have.

        A real instance does so all the time. Without it the last commit would stay the last redo,
        and who mines below LAST_REDO_CHANGE# would never see it. The redo of other containers
        counts: it is in the same log.
        """
        self.write_log()
        if math.isinf(self._settings.idle_redo_seconds):
            return
        with self._database.writing():
            last = self.writer.last_of_all
            idle = self._settings.clock() - last.last_time
            if not last.last_is_internal or idle >= self._settings.idle_redo_seconds:
                self.write_internal()

    def write_log(self) -> None:
        """Write the log, as the log writer has before a COMMIT was answered."""
        if Wart.GATHERED_WRITES in self.warts:
            with self._database.writing():
                self.writer.gather()

    def write_dictionary(self) -> None:
        """Write the dictionary into the redo, as DBMS_LOGMNR_D.BUILD does with
        STORE_IN_REDO_LOGS."""
        self.write_internal()
        self._keep_dictionary(log_id=self.writer.mark_dictionary(), file=None)

    def write_dictionary_file(self, file: str) -> None:
        """Write the dictionary into a file, as DBMS_LOGMNR_D.BUILD does with STORE_IN_FLAT_FILE."""
        self._keep_dictionary(log_id=None, file=file)

    def _keep_dictionary(self, *, log_id: int | None, file: str | None) -> None:
        store.write_dictionary(
            self.connection,
            self._database.next_scn(),
            log_id=log_id,
            file=file,
            versions=self._database.segment_versions(),
        )

    # --- instances --------------------------------------------------------------------------------

    def thread_of(self, session_id: int) -> int:
        """The thread of the instance to which a session is connected."""
        return self._session_threads.get(session_id, threads.FIRST)

    def thread_of_transaction(self, transaction: TransactionInfo) -> int:
        """The thread of the instance that runs a transaction."""
        found = self._transactions.get(transaction.xid)
        return self.thread_of(transaction.session_id) if found is None else found.thread

    def connect_session(self, session_id: int, thread: int) -> None:
        """Let a session be one of the instance that writes a thread, from its next transaction on.

        Raises:
            OracleError: ORA-01034 when no instance has the thread open.
        """
        if thread not in self.writer.open_threads:
            raise OracleError(1034, "ORACLE not available")
        self._session_threads[session_id] = thread

    def close_thread(self, thread: int) -> int:
        """Shut the instance of a thread down; returns the SCN at which its redo ends.

        Raises:
            OracleError: ORA-01097 while transactions of it are open.
        """
        if any(found.thread == thread for found in self._transactions.values()):
            raise OracleError(
                1097, "cannot shutdown while in a transaction - commit or rollback first"
            )
        self._session_threads = {
            session: own for session, own in self._session_threads.items() if own != thread
        }
        return self.writer.close_thread(thread)

    # --- inside -----------------------------------------------------------------------------------

    def _begin(self, info: TransactionInfo, *, ddl: bool) -> None:
        thread = self.thread_of(info.session_id)
        # The engine takes the start's SCN at the first lock; others may have written, or switched
        # the log, since.
        start_scn = max(info.start_scn, self.writer.least_scn(thread))
        cursor = self.connection.execute(
            "INSERT INTO redo_transaction (xid, session_id, serial, username, client_id, start_scn,"
            " start_time, first_id, ddl, thread) VALUES (?,?,?,?,?,?,?,?,?,?)",
            (
                info.xid,
                info.session_id,
                info.serial,
                info.username,
                info.client_id,
                start_scn,
                int(info.start_time),
                self.writer.next_id,  # or later, in the same log
                ddl,
                thread,
            ),
        )
        assert cursor.lastrowid is not None
        self._transactions[info.xid] = _Open(cursor.lastrowid, thread)
        self._note(info.xid, start_scn, OP_START)

    def _end(
        self,
        info: TransactionInfo,
        scn: int,
        when: float,
        *,
        committed: bool,
        flags: int = 0,
        is_written: bool = True,
    ) -> None:
        if is_written:
            self._note(info.xid, scn, OP_COMMIT if committed else OP_ROLLBACK, flags=flags)
        ended = self._transactions.pop(info.xid)
        if committed and self._settings.unsupported_undo and ended.tx in self._undone:
            self.writer.move_undo(ended.thread, ended.tx, scn)
        if not (Wart.GATHERED_WRITES in self.warts and self.writer.late):
            self.writer.bind_transaction(ended.thread, ended.tx)
        self.connection.execute(
            "UPDATE redo_transaction SET end_scn = ?, end_time = ?, last_id = ?, committed = ?,"
            " undone = ? WHERE tx = ?",
            (
                scn,
                int(when),
                self.writer.next_id - 1,
                committed,
                ended.tx in self._undone,
                ended.tx,
            ),
        )
        self._undone.discard(ended.tx)

    def _note(
        self, xid: bytes, scn: int, op: int, *, flags: int = 0, facts: bytes | None = None
    ) -> None:
        """Write a record that changes no row."""
        open_one = self._transactions[xid]
        self.writer.last_is_internal = False
        self.writer.append(open_one.thread, scn, open_one.tx, op, flags, None, None, None, facts)

    def _select_table(self, table: TableVersion) -> None:
        key = _table_key(table)
        number = self._objects.get(key)
        if number is None:
            cursor = self.connection.execute(
                "INSERT INTO redo_object (object_id, definition) VALUES (?, ?)",
                (table.object_id, store.pack_table(table)),
            )
            assert cursor.lastrowid is not None
            number = self._objects[key] = cursor.lastrowid
        self._table = table
        self._object = number
        self._flags = level_of(table, self.supplemental) << LEVEL_SHIFT
        self._lobs = tuple(c.internal_id for c in table.columns if is_lob(c))


def _table_key(table: TableVersion) -> tuple[object, ...]:
    return (
        table.object_id,
        table.object_version,
        table.data_object_id,
        table.owner,
        table.name,
        table.columns,
        table.key_columns,
        table.partition,
    )


def _with_call(change: RowChange) -> Mapping[int, Value]:
    """The new image, with the call that wrote its LOB where no column stands."""
    after, call = change.after or {}, change.lob_call
    if call is None:
        return after
    offset = -1 if call.offset is None else call.offset
    return {**after, store.LOB_CALL: b"%d %d" % (offset, call.length)}


def _emptied(image: Mapping[int, Value], columns: tuple[int, ...]) -> dict[int, Value]:
    return {
        column: b"" if value is not None and column in columns else value
        for column, value in image.items()
    }
