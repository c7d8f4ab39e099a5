"""Which log is being written, and what happens when it is full, switched, archived or deleted?"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from oracle_embedded.api import DatabaseView, OracleError
from oracle_embedded.redo import store
from oracle_embedded.redo.settings import RedoSettings

BLOCK_BYTES = 512
BLOCK_HEADER_BYTES = 16
_BLOCK_USABLE = BLOCK_BYTES - BLOCK_HEADER_BYTES


def resetlogs_id(resetlogs_time: int) -> int:
    """RESETLOGS_ID of an incarnation: its time in Oracle's calendar of equal months."""
    when = datetime.fromtimestamp(resetlogs_time, UTC)
    days = ((when.year - 1988) * 12 + when.month - 1) * 31 + when.day - 1
    return ((days * 24 + when.hour) * 60 + when.minute) * 60 + when.second


def capacity_of(log_bytes: int) -> int:
    """Redo bytes that a log file of that size takes."""
    return (log_bytes // BLOCK_BYTES - 2) * _BLOCK_USABLE


def blocks_from_bytes(bytes_used: int) -> int:
    """Blocks of a log of that many redo bytes."""
    return -(-bytes_used // _BLOCK_USABLE) + 1


@dataclass(slots=True)
class Shared:
    """What the writers of all threads have in common.

    Attributes:
        next_id: Id of the next record.
        archiver_held: Whether ended logs stay unarchived as long as an online file holds them.
        has_standby: Whether a standby keeps the redo of archived logs.
    """

    next_id: int = 1
    archiver_held: bool = False
    has_standby: bool = False


class LogWriter:
    """The end of one thread's redo: current log, position in it, last SCN. All methods run in the
    writer's block.

    Attributes:
        thread: The thread's number.
        is_open: Is there a log to write into?
        log_id: The current log's id in ``redo_log``.
        position: Bytes already in it.
        scn: The highest SCN of all records, which is not the last one's when redo was bound late.
    """

    def __init__(
        self, database: DatabaseView, settings: RedoSettings, shared: Shared, thread: int
    ) -> None:
        self._database = database
        self._settings = settings
        self._shared = shared
        self.thread = thread
        self.is_open = False
        self.log_id = 0
        self.position = 0
        self.scn = 0
        self.load()

    @property
    def connection(self) -> sqlite3.Connection:
        """The storage's one writing connection."""
        return self._database.connection()

    def _now(self) -> int:
        return int(self._settings.clock())

    def load(self) -> None:
        """Read the end of the thread's redo, as after an opening or a rollback in SQLite."""
        newest = self.newest()
        self.is_open = newest is not None and newest.next_change is None
        if newest is not None:
            self.log_id = newest.log_id
            self.position = newest.bytes_used
            self.scn = newest.last_change or newest.first_change

    def newest(self) -> store.Log | None:
        """The thread's log with the highest sequence: the current one while the thread is open."""
        row = self.connection.execute(
            f"SELECT {store.LOG_COLUMNS} FROM redo_log WHERE thread = ?"
            " ORDER BY log_id DESC LIMIT 1",
            (self.thread,),
        ).fetchone()
        return None if row is None else store.log_from(row)

    def save(self) -> None:
        """Note the position."""
        self.connection.execute(
            "UPDATE redo_log SET bytes_used = ?, last_change = ? WHERE log_id = ?",
            (self.position, self.scn, self.log_id),
        )

    def open(self, first_change: int) -> None:
        """Begin the thread's next sequence."""
        newest = self.newest()
        sequence = 1 if newest is None else newest.sequence + 1
        self._begin(sequence, first_change, store.read_meta(self.connection), opens=True)

    def close(self, next_change: int) -> None:
        """End the current log, and begin no other."""
        self._end(next_change, closes=True)
        self.is_open = False
        self.archive()

    def switch(self, next_change: int) -> None:
        """End the current log at ``next_change``, begin the next sequence there, and archive."""
        newest = self._end(next_change)
        self._begin(newest.sequence + 1, next_change, store.read_meta(self.connection))
        self.archive()
        self._forget_overwritten()

    def _end(self, next_change: int, *, closes: bool = False) -> store.Log:
        self.connection.execute(
            "UPDATE redo_log SET next_change = ?, next_time = ?, bytes_used = ?, closes = ?"
            " WHERE log_id = ?",
            (next_change, self._now(), self.position, closes, self.log_id),
        )
        newest = self.newest()
        assert newest is not None
        return newest

    def archive(self) -> None:
        """Archive what has ended; while the archiver is held, only what is about to be written
        over."""
        if store.read_meta(self.connection)["log_mode"] != "ARCHIVELOG":
            return
        online = self._online() if self._shared.archiver_held else frozenset()
        for log in store.read_logs(self.connection, "next_change IS NOT NULL AND NOT archived"):
            if log.log_id not in online:
                self.connection.execute(
                    "UPDATE redo_log SET archived = 1, name = ?, completed = ? WHERE log_id = ?",
                    (self._archived_name(log), self._now(), log.log_id),
                )

    def reset(self, scn: int) -> None:
        """Begin a new incarnation at ``scn``: sequences start again, as ALTER DATABASE OPEN
        RESETLOGS has it."""
        self._end(scn)
        self.archive()
        self._begin(1, scn, store.read_meta(self.connection))
        self._forget_overwritten()

    def mark_dictionary(self) -> None:
        """Note that a whole dictionary was written into the current log."""
        self.connection.execute(
            "UPDATE redo_log SET dictionary_begin = 1, dictionary_end = 1 WHERE log_id = ?",
            (self.log_id,),
        )

    def delete_archived(self, sequence: int) -> None:
        """Delete an archived log as RMAN does: its entry stays with STATUS D and without a name.

        Raises:
            OracleError: ORA-00308 when there is no such archived log.
        """
        self.connection.execute(
            "UPDATE redo_log SET deleted = 1, name = NULL WHERE log_id = ?",
            (self._archived(sequence).log_id,),
        )
        self._forget_overwritten()

    def forget_archived(self, sequence: int) -> None:
        """Let a deleted log's entry age out of the control file: V$ARCHIVED_LOG does not show it
        any more.

        Raises:
            OracleError: ORA-00308 when there is no such archived log.
        """
        log_id = self._archived(sequence).log_id
        self.delete_archived(sequence)
        self.connection.execute("DELETE FROM redo_log WHERE log_id = ?", (log_id,))

    def remove_archived(self, sequence: int) -> None:
        """Remove the file of an archived log, as ``rm`` does: its entry stays as it was.

        Raises:
            OracleError: ORA-00308 when there is no such archived log.
        """
        self.connection.execute(
            "UPDATE redo_log SET gone = 1 WHERE log_id = ?", (self._archived(sequence).log_id,)
        )
        self._forget_overwritten()

    def _archived(self, sequence: int) -> store.Log:
        row = self.connection.execute(
            f"SELECT {store.LOG_COLUMNS} FROM redo_log WHERE thread = ? AND sequence = ? AND name IS NOT NULL"
            " AND gone = 0 ORDER BY log_id DESC",
            (self.thread, sequence),
        ).fetchone()
        if row is None:
            raise OracleError(308, f"cannot open archived log of sequence {sequence}")
        return store.log_from(row)

    def _forget_overwritten(self) -> None:
        """Drop the records of logs that no file holds any more."""
        if self._shared.has_standby:
            return
        online = self._online()
        for log in store.read_logs(self.connection, "name IS NULL OR gone"):
            if log.log_id not in online:
                self.connection.execute(
                    "DELETE FROM redo_record WHERE log_id = ? AND id >= ? AND id < coalesce("
                    "(SELECT min(first_id) FROM redo_log WHERE thread = ? AND log_id > ?), ?)",
                    (log.log_id, log.first_id, log.thread, log.log_id, self._shared.next_id),
                )

    def _online(self) -> frozenset[int]:
        """The logs that online files hold, as :func:`store.online_logs` has it."""
        return frozenset(
            log_id
            for (log_id,) in self.connection.execute(
                "SELECT max(log_id) FROM redo_log WHERE resetlogs_change ="
                " (SELECT max(resetlogs_change) FROM redo_log) GROUP BY thread, group_number"
            )
        )

    def _begin(
        self, sequence: int, first_change: int, meta: Mapping[str, Any], *, opens: bool = False
    ) -> None:
        group = group_of(self.thread, sequence, self._settings)
        cursor = self.connection.execute(
            "INSERT INTO redo_log (thread, sequence, group_number, resetlogs_change, resetlogs_time,"
            " first_change, first_time, first_id, bytes_used, member, opens)"
            " VALUES (?,?,?,?,?,?,?,?,0,?,?)",
            (
                self.thread,
                sequence,
                group,
                meta["resetlogs_change"],
                meta["resetlogs_time"],
                first_change,
                self._now(),
                self._shared.next_id,
                member_name(group, self._settings, self._database),
                opens,
            ),
        )
        self.log_id = cast(int, cursor.lastrowid)
        self.position = 0
        self.is_open = True
        self.scn = max(self.scn, first_change)

    def _archived_name(self, log: store.Log) -> str:
        """As LOG_ARCHIVE_FORMAT ``%t_%s_%r.arc`` names it."""
        directory = archive_directory(self._settings, self._database)
        return f"{directory}/{log.thread}_{log.sequence}_{resetlogs_id(log.resetlogs_time)}.arc"


def group_of(thread: int, sequence: int, settings: RedoSettings) -> int:
    """The log group that holds a sequence; each thread has groups of its own."""
    return (thread - 1) * settings.groups + (sequence - 1) % settings.groups + 1


def member_name(group: int, settings: RedoSettings, database: DatabaseView) -> str:
    """The online file of a group."""
    return f"{settings.directory}/{database.database_name}/redo{group:02d}.log"


def archive_directory(settings: RedoSettings, database: DatabaseView) -> str:
    """Where LOG_ARCHIVE_DEST_1 points."""
    return f"{settings.directory}/{database.database_name}/archive"
