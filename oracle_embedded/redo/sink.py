"""How do the engine's changes become redo records?

Records are collected in memory and written many at a time, always before the engine commits SQLite. A record gets its
address when it enters the log: at once, or, where redo comes late, when its transaction's strand is bound.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from oracle_embedded.api import (
    DatabaseView,
    OracleError,
    OraType,
    RowChange,
    TableVersion,
    TransactionInfo,
    Value,
)
from oracle_embedded.redo import store
from oracle_embedded.redo.levels import level_of
from oracle_embedded.redo.logs import LogWriter, capacity_of
from oracle_embedded.redo.settings import RedoSettings, Wart
from oracle_embedded.redo.strands import Held, Strands

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

LOB_TYPES = frozenset({OraType.CLOB, OraType.BLOB})

_BATCH_ROWS = 1000
_MARK_ROWS = 1000
_RECORD_BYTES = 128
"""Estimated redo of a record's headers, and the least distance of two records in a log."""

Row = tuple[
    int,  # id
    int,  # log_id
    int,  # position
    int,  # scn
    int,  # time
    int | None,  # tx
    int,  # op
    int,  # flags
    int | None,  # object
    bytes | None,  # row_id
    bytes | None,  # before
    bytes | None,  # after
]


class Sink:
    """The :class:`~oracle_embedded.api.RedoSink`; used in the writer's block only."""

    def __init__(self, database: DatabaseView, settings: RedoSettings) -> None:
        self._database = database
        self._settings = settings
        self._clock = settings.clock
        self._log_bytes = capacity_of(settings.log_bytes)
        self._logs = LogWriter(database, settings)
        self._strands = Strands(settings.strand_records, settings.strand_bytes)
        self.warts = settings.warts
        self._late = Wart.LATE_REDO in settings.warts
        self._scn = 0
        self.supplemental: frozenset[str] = frozenset()
        self._rows: list[Row] = []
        self._transactions: dict[bytes, int] = {}
        self._undone: set[int] = set()
        self._objects: dict[tuple[object, ...], int] = {}
        self._marked_id = 0
        self._flushed_scn = 0
        self._table: TableVersion | None = None
        self._object = 0
        self._flags = 0
        self._lobs: tuple[int, ...] = ()
        self._last_change_time = 0.0
        self._last_is_internal = False

    @property
    def connection(self) -> sqlite3.Connection:
        """The writing connection."""
        return self._logs.connection

    def open(self) -> None:
        """Prepare the storage; within the writer's block."""
        self._logs.open()
        self._load()

    def reload(self) -> None:
        """Forget what SQLite does not hold."""
        self._rows.clear()
        self._logs.load()
        self._load()

    def _load(self) -> None:
        rows = self.connection.execute(
            "SELECT xid, tx FROM redo_transaction WHERE committed IS NULL"
        )
        self._transactions = dict(rows)
        self._strands.load(self.connection)
        self._scn = max([self._logs.scn, *self._strands.scns_last()])
        self._flushed_scn = self._logs.scn
        if not self._late:
            self.bind()
        self._undone = set(self._transactions.values())  # perhaps: nobody remembers
        self._objects = {}
        for number, packed in self.connection.execute("SELECT object, definition FROM redo_object"):
            self._objects[_table_key(store.unpack_table(packed))] = number
        (self._marked_id,) = self.connection.execute(
            "SELECT coalesce(max(id), 0) FROM redo_mark"
        ).fetchone()
        self.load_supplemental()

    def set_warts(self, warts: frozenset[Wart]) -> None:
        """Show these oddities from now on."""
        self.warts = warts
        self._late = Wart.LATE_REDO in warts
        if not self._late:
            self.bind()

    def load_supplemental(self) -> None:
        """Read which supplemental logging is on for the database."""
        self.supplemental = frozenset(store.read_meta(self.connection)["supplemental"])
        self._table = None

    # --- what the engine reports -------------------------------------------------------------------------------------

    def begin(self, transaction: TransactionInfo) -> None:
        """Write the START record."""
        self._begin(transaction, ddl=False)

    def change(self, change: RowChange) -> None:
        """Write a row change.

        LOB values of old rows are not logged, only whether they were NULL; those of undoing tell what to undo.
        """
        if change.table is not self._table:
            self._select_table(change.table)
        if change.rollback:
            self._undone.add(self._transactions[change.xid])
        before = change.before
        if before is not None and self._lobs and not change.rollback:
            before = _emptied(before, self._lobs)
        old = None if before is None else store.pack_image(before)
        new = None if change.after is None else store.pack_image(change.after)
        self._append(
            change.scn,
            self._transactions[change.xid],
            change.op,
            self._flags | change.rollback,
            self._object,
            change.rowid.encode(),
            old,
            new,
        )

    def commit(self, transaction: TransactionInfo, scn: int, when: float) -> None:
        """Write the COMMIT record."""
        self._end(transaction, scn, when, committed=True)

    def rollback(self, transaction: TransactionInfo, scn: int, when: float) -> None:
        """Write the ROLLBACK record."""
        self._end(transaction, scn, when, committed=False)

    def undone(self, transaction: TransactionInfo) -> None:
        """Note that a part of the transaction is undone, and that it goes on."""
        if Wart.SPURIOUS_ROLLBACKS in self.warts:
            tx = self._transactions[transaction.xid]
            self._append(self._scn, tx, OP_SAVEPOINT_UNDONE, 0, None, None, None, None)

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
        """Write a DDL record, with a START and a COMMIT of its own unless its transaction is open."""
        alone = transaction.xid not in self._transactions
        if alone:
            self._begin(transaction, ddl=True)
        facts = store.pack_facts((text, owner, table, object_id))
        tx = self._transactions[transaction.xid]
        self._append(scn, tx, OP_DDL, 0, None, None, None, facts)
        if alone:
            self._end(transaction, scn, when, committed=True)

    def flush(self) -> None:
        """Write the collected records, and what waits in strands."""
        self._strands.save(self.connection)
        if not self._rows:
            return
        connection = self.connection
        connection.executemany(store.RECORD_INSERT, self._rows)
        first_id, last_id = self._rows[0][0], self._rows[-1][0]
        if last_id - self._marked_id >= _MARK_ROWS:
            floor = min(*(row[3] for row in self._rows), *self._strands.scns(), self._scn)
            connection.execute(
                "INSERT INTO redo_mark VALUES (?, ?, ?)", (first_id, self._flushed_scn, floor)
            )
            self._marked_id = last_id
        self._rows.clear()
        self._flushed_scn = self._logs.scn
        self._logs.save()

    def bind(self) -> None:
        """Write what waits in strands to the log, one transaction after the other."""
        for tx in self._strands.transactions():
            self._bind(tx)

    # --- what the redo side itself writes ----------------------------------------------------------------------------

    def switch(self) -> int:
        """Switch the log, as ALTER SYSTEM SWITCH LOGFILE; returns the new log's first SCN."""
        scn = self._database.next_scn()
        self._switch(scn)
        return scn

    def hold_archiver(self, *, held: bool) -> None:
        """Let ended logs wait for the archiver, or archive them all."""
        self.flush()
        self._logs.archiver_held = held
        self._logs.archive()

    def open_resetlogs(self) -> int:
        """Begin a new incarnation; returns its first SCN."""
        if self._transactions:
            raise OracleError(
                1126, "database must be mounted in this instance and not open in any instance"
            )
        scn = self._database.next_scn()
        self.flush()
        self._logs.reset(scn)
        return scn

    def write_internal(self) -> int:
        """Write a record of the instance itself, as its background processes do; returns its SCN."""
        scn = self._database.next_scn()
        if Wart.EMPTY_TRANSACTIONS in self.warts:
            self._append(scn, None, OP_START, 0, None, None, None, None)
        self._append(scn, None, OP_INTERNAL, 0, None, None, None, None)
        self.flush()
        return scn

    def keep_alive(self) -> None:
        """Let the instance write redo of its own, unless it just has.

        A real instance does so all the time. Without it the last commit would stay the last redo, and who mines below
        LAST_REDO_CHANGE# would never see it.
        """
        with self._database.writing():
            idle = self._clock() - self._last_change_time
            if not self._last_is_internal or idle >= self._settings.idle_redo_seconds:
                self.write_internal()

    def member_name(self, group: int) -> str:
        """The online file of a group."""
        return self._logs.member_name(group)

    def archive_directory(self) -> str:
        """Where archived logs lie."""
        return self._logs.archive_directory()

    def write_dictionary(self) -> None:
        """Write the dictionary into the redo, as DBMS_LOGMNR_D.BUILD does."""
        self.write_internal()
        self._logs.mark_dictionary()

    def delete_archived(self, sequence: int) -> None:
        """Delete an archived log."""
        self.flush()
        self._logs.delete_archived(sequence)

    def remove_archived(self, sequence: int) -> None:
        """Remove the file of an archived log."""
        self.flush()
        self._logs.remove_archived(sequence)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _begin(self, info: TransactionInfo, *, ddl: bool) -> None:
        # The engine takes the start's SCN at the first lock, others may have written since.
        start_scn = max(info.start_scn, self._scn)
        cursor = self.connection.execute(
            "INSERT INTO redo_transaction (xid, session_id, serial, username, client_id, start_scn,"
            " start_time, first_id, ddl) VALUES (?,?,?,?,?,?,?,?,?)",
            (
                info.xid,
                info.session_id,
                info.serial,
                info.username,
                info.client_id,
                start_scn,
                int(info.start_time),
                self._logs.next_id,  # or later, in the same log
                ddl,
            ),
        )
        tx = cursor.lastrowid
        assert tx is not None
        self._transactions[info.xid] = tx
        self._append(start_scn, tx, OP_START, 0, None, None, None, None)

    def _end(
        self,
        info: TransactionInfo,
        scn: int,
        when: float,
        *,
        committed: bool,
        flags: int = 0,
    ) -> None:
        tx = self._transactions.pop(info.xid)
        op = OP_COMMIT if committed else OP_ROLLBACK
        self._append(scn, tx, op, flags, None, None, None, None)
        self._bind(tx)
        self.connection.execute(
            "UPDATE redo_transaction SET end_scn = ?, end_time = ?, last_id = ?, committed = ?,"
            " undone = ? WHERE tx = ?",
            (scn, int(when), self._logs.next_id - 1, committed, tx in self._undone, tx),
        )
        self._undone.discard(tx)

    def _append(
        self,
        scn: int,
        tx: int | None,
        op: int,
        flags: int,
        number: int | None,
        row_id: bytes | None,
        before: bytes | None,
        after: bytes | None,
    ) -> None:
        """Take the next record of the redo, in the order of SCNs: into its strand, or into the log."""
        size = _RECORD_BYTES + len(before or b"") + len(after or b"")
        logs, strands = self._logs, self._strands
        if scn != self._scn:
            if scn < self._scn:
                raise OracleError(
                    600, f"internal error code, arguments: [redo scn {scn}], [{self._scn}]"
                )
            taken = logs.position + strands.size
            if taken + size > self._log_bytes and taken:
                self._switch(scn)
            self._scn = scn
        now = self._last_change_time = self._clock()
        record: Held = (scn, int(now), tx, op, flags, number, row_id, before, after)
        self._last_is_internal = op == OP_INTERNAL
        if not self._late or tx is None:
            self._write(size, record)
        elif strands.hold(tx, size, record):
            self._bind(tx)

    def _switch(self, scn: int) -> None:
        """Switch the log at an SCN above those of all redo, which must be in the log before."""
        self.bind()
        self.flush()
        self._logs.switch(scn)

    def _bind(self, tx: int) -> None:
        for size, record in self._strands.take(self.connection, tx):
            self._write(size, record)

    def _write(self, size: int, record: Held) -> None:
        """Give a record its address."""
        logs = self._logs
        self._rows.append((logs.next_id, logs.log_id, logs.position, *record))
        logs.next_id += 1
        logs.position += size
        if record[0] > logs.scn:
            logs.scn = record[0]
        if len(self._rows) >= _BATCH_ROWS:
            self.flush()

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
        self._lobs = tuple(c.internal_id for c in table.columns if c.type in LOB_TYPES)


def _table_key(table: TableVersion) -> tuple[object, ...]:
    return (
        table.object_id,
        table.object_version,
        table.data_object_id,
        table.owner,
        table.name,
        table.columns,
        table.key_columns,
    )


def _emptied(image: Mapping[int, Value], columns: tuple[int, ...]) -> dict[int, Value]:
    return {
        column: b"" if value is not None and column in columns else value
        for column, value in image.items()
    }
