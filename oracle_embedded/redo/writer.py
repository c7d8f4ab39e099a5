"""Where in the log does a record go?

Records are collected in memory and written many at a time, always before the engine commits SQLite.
A record gets its address when it enters the log of its thread: at once, or, where redo comes late,
when its transaction's strand is bound.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from oracle_embedded.api import DatabaseView, OracleError, RowOp
from oracle_embedded.redo import store, threads
from oracle_embedded.redo.logs import LogWriter, Shared, capacity_of
from oracle_embedded.redo.settings import RedoSettings
from oracle_embedded.redo.strands import Held, Sized, Strands

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


def _shuffled(strands: list[list[Sized]], dice: Random) -> Iterator[Sized]:
    """Records of ended transactions in any order but that of each one's changes."""
    keyed: list[tuple[float, Sized]] = []
    for strand in strands:
        changes = [one for one in strand if not _is_control(one)]
        places = sorted(dice.random() for _ in changes)
        keyed += zip(places, changes, strict=True)
        keyed += [(dice.random(), one) for one in strand if _is_control(one)]
    return (one for _, one in sorted(keyed, key=lambda pair: pair[0]))


def _is_control(record: Sized) -> bool:
    """Does a record begin or end its transaction, or else change no row?"""
    _size, (_scn, _time, _tx, op, *_rest) = record
    return op > RowOp.UPDATE


@dataclass(slots=True)
class RedoThread:
    """A thread that is written: its log, and the strands of its open transactions."""

    logs: LogWriter
    strands: Strands


class RedoWriter:
    """Takes records in the order of their SCNs and puts each into a thread's log; used in the
    writer's block only.

    Attributes:
        late: Does redo of open transactions wait in strands?
        scn: The highest SCN taken.
        last_time: When the last record was taken, in seconds since 1970.
        last_is_internal: Did the instance itself write the last record?
    """

    def __init__(self, database: DatabaseView, settings: RedoSettings, *, late: bool) -> None:
        self._database = database
        self._settings = settings
        self._clock = settings.clock
        self._log_bytes = capacity_of(settings.log_bytes)
        self._shared = Shared()
        self._threads: dict[int, RedoThread] = {}
        self._rows: list[Row] = []
        self._marked_id = 0
        self._flushed_scn = 0
        self.beside: list[RedoWriter] = []
        self.late = late
        self.scn = 0
        self.last_time = 0.0
        self.last_is_internal = False

    @property
    def connection(self) -> sqlite3.Connection:
        """The writing connection."""
        return self._database.connection()

    @property
    def next_id(self) -> int:
        """Id of the next record that enters a log."""
        return self._shared.next_id

    @property
    def open_threads(self) -> list[int]:
        """Threads that an instance writes."""
        return [number for number, thread in self._threads.items() if thread.logs.is_open]

    def least_scn(self, thread: int) -> int:
        """The lowest SCN that the next record of a thread may have: that of the newest record, or
        its log's FIRST_CHANGE#.

        What waits in strands keeps its own SCNs; a switch has put it into the log before.
        """
        return max(self.scn, self._threads[thread].logs.scn)

    @property
    def last_of_all(self) -> RedoWriter:
        """This container's writer or that of another one: the one that took the newest record."""
        return max((self, *self.beside), key=lambda writer: writer.scn)

    def written_beside(self, thread: int) -> int:
        """The highest SCN that other containers have written into a thread's log; 0 where there are
        none."""
        return max((writer._written(thread) for writer in self.beside), default=0)

    def _written(self, thread: int) -> int:
        with self._database.reading() as connection:
            logs = [log for log in store.read_logs(connection) if log.thread == thread]
        return logs[-1].last_change if logs else 0

    # --- opening ----------------------------------------------------------------------------------

    def open(self) -> None:
        """Make tables, the incarnation and the first thread where there are none, then load the end
        of the redo."""
        store.create_tables(self.connection)
        if not store.read_meta(self.connection):
            self._create()
        self.load()

    def _create(self) -> None:
        scn, now = self._database.current_scn(), self._now()
        facts: dict[str, Any] = {
            "dbid": zlib.crc32(self._database.database_name.encode()),
            "created": now,
            "resetlogs_change": scn,
            "resetlogs_time": now,
            "log_mode": "ARCHIVELOG" if self._settings.archivelog else "NOARCHIVELOG",
            "supplemental": [],
        }
        store.write_meta(self.connection, facts)
        threads.enable(self.connection, threads.FIRST, threads.PUBLIC, scn, now)
        threads.mark_open(self.connection, threads.FIRST, now)
        LogWriter(self._database, self._settings, self._shared, threads.FIRST).open(scn)

    def load(self) -> None:
        """Forget what SQLite does not hold, and read the end of the redo."""
        self._rows.clear()
        (last_id,) = self.connection.execute(
            "SELECT max((SELECT coalesce(max(id), 0) + 1 FROM redo_record),"
            " (SELECT coalesce(max(first_id), 1) FROM redo_log))"
        ).fetchone()
        self._shared.next_id = last_id
        self._threads = {
            found.thread: self._thread(found.thread)
            for found in threads.read_threads(self.connection)
        }
        self._load_strands()
        written = max(thread.logs.scn for thread in self._threads.values())
        held = [scn for thread in self._threads.values() for scn in thread.strands.scns_last()]
        self.scn = max([written, *held])
        self._flushed_scn = written
        (self._marked_id,) = self.connection.execute(
            "SELECT coalesce(max(id), 0) FROM redo_mark"
        ).fetchone()
        if not self.late:
            self.bind()

    def _thread(self, number: int) -> RedoThread:
        settings = self._settings
        return RedoThread(
            LogWriter(self._database, settings, self._shared, number),
            Strands(settings.strand_records, settings.strand_bytes),
        )

    def _load_strands(self) -> None:
        for number, size, *record in self.connection.execute(store.STRAND_QUERY):
            self._threads[number].strands.restore(size, tuple(record))

    def _now(self) -> int:
        return int(self._clock())

    # --- records ----------------------------------------------------------------------------------

    def append(
        self,
        thread: int,
        scn: int,
        tx: int | None,
        op: int,
        flags: int,
        number: int | None,
        row_id: bytes | None,
        before: bytes | None,
        after: bytes | None,
    ) -> None:
        """Take the next record of a thread: into its transaction's strand, or into the log.

        Raises:
            OracleError: ORA-00600 when an SCN falls.
        """
        size = _RECORD_BYTES + len(before or b"") + len(after or b"")
        own = self._threads[thread]
        if scn != self.scn:
            if scn < (least := self.least_scn(thread)):
                raise OracleError(
                    600, f"internal error code, arguments: [redo scn {scn}], [{least}]"
                )
            taken = own.logs.position + own.strands.size
            if taken + size > self._log_bytes and taken:
                self._switch(own, scn)
            self.scn = scn
        self.last_time = self._clock()
        record: Held = (scn, int(self.last_time), tx, op, flags, number, row_id, before, after)
        if not self.late or tx is None:
            self._write(own.logs, size, record)
        elif own.strands.hold(tx, size, record):
            self.bind_transaction(thread, tx)

    def bind_transaction(self, thread: int, tx: int) -> None:
        """Write what waits in a transaction's strand to the log."""
        own = self._threads[thread]
        for size, record in own.strands.take(self.connection, tx):
            self._write(own.logs, size, record)

    def move_undo(self, thread: int, tx: int, scn: int) -> None:
        """Give the undo rows of a transaction an SCN, that of its COMMIT."""
        self.flush()
        self._threads[thread].strands.move_undo(tx, scn)
        moved = "UPDATE {} SET scn = ? WHERE tx = ? AND flags & 1 AND object IS NOT NULL"
        for table in ("redo_record", "redo_strand"):
            self.connection.execute(moved.format(table), (scn, tx))
        # What the sparse index says of records before a mark no longer holds.
        self.connection.execute("DELETE FROM redo_mark")

    def gather(self) -> None:
        """Write the strands of all transactions that have ended, in one log write: each strand's
        changes stand in their order, and what begins and ends transactions anywhere."""
        for thread, own in self._threads.items():
            ended = [tx for tx in own.strands.transactions() if self._has_ended(tx)]
            if not ended:
                continue
            dice = Random(thread << 32 | own.logs.position)  # noqa: S311 - the same for the same redo
            for size, record in _shuffled(
                [own.strands.take(self.connection, tx) for tx in ended], dice
            ):
                self._write(own.logs, size, record)
            self.connection.executemany(
                "UPDATE redo_transaction SET last_id = ? WHERE tx = ?",
                [(self.next_id - 1, tx) for tx in ended],
            )

    def _has_ended(self, tx: int) -> bool:
        query = "SELECT end_scn FROM redo_transaction WHERE tx = ?"
        (end,) = self.connection.execute(query, (tx,)).fetchone()
        return end is not None

    def bind(self) -> None:
        """Write what waits in all strands to the logs."""
        self.gather()
        for number in self._threads:
            self._bind_thread(number)

    def _bind_thread(self, thread: int) -> None:
        for tx in self._threads[thread].strands.transactions():
            self.bind_transaction(thread, tx)

    def _write(self, logs: LogWriter, size: int, record: Held) -> None:
        """Give a record its address."""
        shared = self._shared
        self._rows.append((shared.next_id, logs.log_id, logs.position, *record))
        shared.next_id += 1
        logs.position += size
        if record[0] > logs.scn:
            logs.scn = record[0]
        if len(self._rows) >= _BATCH_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write the collected records, and what waits in strands."""
        for number, thread in self._threads.items():
            thread.strands.save(self.connection, number)
        if not self._rows:
            return
        self.connection.executemany(store.RECORD_INSERT, self._rows)
        first_id, last_id = self._rows[0][0], self._rows[-1][0]
        if last_id - self._marked_id >= _MARK_ROWS:
            self._mark(first_id)
            self._marked_id = last_id
        self._rows.clear()
        written = [thread.logs for thread in self._threads.values() if thread.logs.is_open]
        self._flushed_scn = max([self._flushed_scn, *(logs.scn for logs in written)])
        for logs in written:
            logs.save()

    def _mark(self, first_id: int) -> None:
        held = [scn for thread in self._threads.values() for scn in thread.strands.scns()]
        floor = min(*(row[3] for row in self._rows), *held, self.scn)
        self.connection.execute(
            "INSERT INTO redo_mark VALUES (?, ?, ?)", (first_id, self._flushed_scn, floor)
        )

    # --- logs -------------------------------------------------------------------------------------

    def switch(self, *numbers: int) -> int:
        """Switch the logs of these threads; returns the first SCN of the new ones."""
        scn = self._database.next_scn()
        for number in numbers:
            self._switch(self._threads[number], scn)
        return scn

    def _switch(self, thread: RedoThread, scn: int) -> None:
        """Switch a log at an SCN above those of all its thread's redo, which must be in the log
        before; it holds the redo of every container."""
        self._switch_own(thread, scn)
        for other in self.beside:
            other.follow(thread.logs.thread, scn)

    def follow(self, number: int, scn: int) -> None:
        """Switch a thread's log where that of another container is switched."""
        with self._database.writing():
            self._switch_own(self._threads[number], scn)

    def join(self, other: RedoWriter) -> None:
        """Write into the logs of another container from here on: both are new, and stand in the
        first log of one incarnation."""
        meta = store.read_meta(other.connection)
        reset, when = meta["resetlogs_change"], meta["resetlogs_time"]
        store.write_meta(self.connection, {"resetlogs_change": reset, "resetlogs_time": when})
        self.connection.execute(
            "UPDATE redo_log SET resetlogs_change = ?, resetlogs_time = ?, first_change = ?",
            (reset, when, reset),
        )
        self.load()
        self.beside.append(other)
        other.beside.append(self)

    def _switch_own(self, thread: RedoThread, scn: int) -> None:
        self.gather()
        self._bind_thread(thread.logs.thread)
        self.flush()
        thread.logs.switch(scn)

    def hold_archiver(self, *, held: bool) -> None:
        """Let ended logs wait for the archiver, or archive them all."""
        self.flush()
        self._shared.archiver_held = held
        self._threads[threads.FIRST].logs.archive()

    def keep_for_standby(self) -> None:
        """Forget no redo from now on."""
        self._shared.has_standby = True

    def reset(self) -> int:
        """Begin a new incarnation in all open threads; returns its first SCN."""
        scn = self._database.next_scn()
        self.flush()
        self._shared.archiver_held = False
        store.write_meta(self.connection, {"resetlogs_change": scn, "resetlogs_time": self._now()})
        for thread in self._threads.values():
            if thread.logs.is_open:
                thread.logs.reset(scn)
        return scn

    def reset_pluggable(self) -> int:
        """Begin a new incarnation of the pluggable database, whose redo goes on; returns the SCN at
        which it was opened."""
        scn = self._database.next_scn()
        resets = store.read_meta(self.connection).get("pdb_resets", [])
        store.write_meta(self.connection, {"pdb_resets": [*resets, (scn, self._now())]})
        return scn

    def mark_dictionary(self) -> int:
        """Note that a whole dictionary was written into the first thread's current log; returns
        that log's id."""
        logs = self._threads[threads.FIRST].logs
        logs.mark_dictionary()
        return logs.log_id

    def delete_archived(self, sequence: int, thread: int) -> None:
        """Delete an archived log as RMAN does."""
        self.flush()
        self._known(thread).logs.delete_archived(sequence)

    def forget_archived(self, sequence: int, thread: int) -> None:
        """Delete an archived log, and its entry in the control file."""
        self.flush()
        self._known(thread).logs.forget_archived(sequence)

    def remove_archived(self, sequence: int, thread: int) -> None:
        """Remove the file of an archived log."""
        self.flush()
        self._known(thread).logs.remove_archived(sequence)

    # --- threads ----------------------------------------------------------------------------------

    def enable_thread(self, number: int, kind: str) -> None:
        """Enable a thread, which stays closed.

        Raises:
            OracleError: ORA-01612 when it is enabled.
        """
        known = {thread.thread: thread for thread in threads.read_threads(self.connection)}
        if number in known and known[number].enabled != threads.DISABLED:
            raise OracleError(1612, f"instance is already enabled on thread {number}")
        scn = self._database.next_scn()
        self.flush()
        threads.enable(self.connection, number, kind, scn, self._now())
        self._threads[number] = self._thread(number)

    def disable_thread(self, number: int) -> None:
        """Disable a closed thread.

        Raises:
            OracleError: ORA-01614 when it is not enabled, ORA-01615 while it is open.
        """
        if self._known(number).logs.is_open:
            raise OracleError(1615, f"instance (thread {number}) is mounted, cannot disable")
        scn = self._database.next_scn()
        threads.disable(self.connection, number, scn, self._now())

    def open_thread(self, number: int) -> None:
        """Let an instance open an enabled thread.

        Raises:
            OracleError: ORA-01618 when it is not enabled.
        """
        if self._known(number).logs.is_open:
            return
        scn = self._database.next_scn()
        self.flush()
        threads.mark_open(self.connection, number, self._now())
        self._threads[number].logs.open(scn)

    def close_thread(self, number: int) -> int:
        """Let its instance close a thread without open transactions; returns the SCN at which its
        redo ends."""
        scn = self._database.next_scn()
        self._bind_thread(number)
        self.flush()
        threads.mark_closed(self.connection, number, scn)
        self._threads[number].logs.close(scn)
        return scn

    def _known(self, number: int) -> RedoThread:
        enabled = {
            thread.thread
            for thread in threads.read_threads(self.connection)
            if thread.enabled != threads.DISABLED
        }
        if number not in enabled:
            raise OracleError(1618, f"redo thread {number} is not enabled - cannot mount")
        return self._threads[number]
