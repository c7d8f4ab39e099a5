"""Which log is being written, and what happens when it is full, switched, archived or deleted?"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from oracle_embedded.api import DatabaseView, OracleError
from oracle_embedded.redo import store
from oracle_embedded.redo.settings import RedoSettings

NEXT_CHANGE_OPEN = 18446744073709551615
"""NEXT_CHANGE# of a log that is still being written (V$LOG of 19c)."""

BLOCK_BYTES = 512
BLOCK_HEADER_BYTES = 16
_BLOCK_USABLE = BLOCK_BYTES - BLOCK_HEADER_BYTES
_THREAD = 1


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


class LogWriter:
    """The end of the redo: current log, position in it, last SCN. All methods run in the writer's block.

    Attributes:
        log_id: The current log's id in ``redo_log``.
        position: Bytes already in it.
        next_id: Id of the next record.
        scn: The highest SCN of all records, which is not the last one's when redo was bound late.
        archiver_held: Whether ended logs stay unarchived as long as an online file holds them.
    """

    def __init__(self, database: DatabaseView, settings: RedoSettings) -> None:
        self._database = database
        self._settings = settings
        self.log_id = 0
        self.position = 0
        self.next_id = 1
        self.scn = 0
        self.archiver_held = False

    @property
    def connection(self) -> sqlite3.Connection:
        """The storage's one writing connection."""
        return self._database.connection()

    def now(self) -> int:
        """Seconds since 1970."""
        return int(self._settings.clock())

    def open(self) -> None:
        """Make tables, the incarnation and the first log where there are none, then load the end of the redo."""
        store.create_tables(self.connection)
        if not store.read_meta(self.connection):
            self._create()
        self.load()

    def load(self) -> None:
        """Read the end of the redo back, as after an opening or a rollback in SQLite."""
        current = self.current()
        self.log_id = current.log_id
        self.position = current.bytes_used
        self.scn = current.last_change or current.first_change
        (last_id,) = self.connection.execute(
            "SELECT coalesce(max(id), 0) FROM redo_record"
        ).fetchone()
        self.next_id = max(last_id + 1, current.first_id)

    def current(self) -> store.Log:
        """The log that is being written."""
        row = self.connection.execute(
            "SELECT * FROM redo_log WHERE thread = ? ORDER BY log_id DESC LIMIT 1", (_THREAD,)
        ).fetchone()
        return store.log_from(row)

    def save(self) -> None:
        """Note the position."""
        self.connection.execute(
            "UPDATE redo_log SET bytes_used = ?, last_change = ? WHERE log_id = ?",
            (self.position, self.scn, self.log_id),
        )

    def switch(self, next_change: int) -> None:
        """End the current log at ``next_change``, begin the next sequence there, and archive."""
        self.connection.execute(
            "UPDATE redo_log SET next_change = ?, next_time = ?, bytes_used = ? WHERE log_id = ?",
            (next_change, self.now(), self.position, self.log_id),
        )
        sequence = self.current().sequence + 1
        self._begin(sequence, next_change, store.read_meta(self.connection))
        self.scn = max(self.scn, next_change)
        self.archive()
        self._forget_overwritten()

    def archive(self) -> None:
        """Archive what has ended; while the archiver is held, only what is about to be written over."""
        if store.read_meta(self.connection)["log_mode"] != "ARCHIVELOG":
            return
        logs = store.read_logs(self.connection)
        online = store.online_logs(logs)
        for log in logs:
            pending = log.next_change is not None and not log.archived
            if pending and not (self.archiver_held and log.log_id in online):
                self.connection.execute(
                    "UPDATE redo_log SET archived = 1, name = ?, completed = ? WHERE log_id = ?",
                    (self._archived_name(log), self.now(), log.log_id),
                )

    def reset(self, scn: int) -> None:
        """Begin a new incarnation at ``scn``: sequences start again, as ALTER DATABASE OPEN RESETLOGS has it."""
        self.archiver_held = False
        self.switch(scn)
        self.connection.execute("DELETE FROM redo_log WHERE log_id = ?", (self.log_id,))
        facts = {"resetlogs_change": scn, "resetlogs_time": self.now()}
        store.write_meta(self.connection, facts)
        self._begin(1, scn, facts)
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
            "SELECT * FROM redo_log WHERE thread = ? AND sequence = ? AND name IS NOT NULL"
            " AND gone = 0 ORDER BY log_id DESC",
            (_THREAD, sequence),
        ).fetchone()
        if row is None:
            raise OracleError(308, f"cannot open archived log of sequence {sequence}")
        return store.log_from(row)

    def _forget_overwritten(self) -> None:
        """Drop the records of logs that no file holds any more."""
        logs = store.read_logs(self.connection)
        online = store.online_logs(logs)
        for log in logs:
            if (log.name is None or log.gone) and log.log_id not in online:
                self.connection.execute(
                    "DELETE FROM redo_record WHERE log_id = ? AND id >= ?"
                    " AND id < (SELECT first_id FROM redo_log WHERE log_id = ?)",
                    (log.log_id, log.first_id, log.log_id + 1),
                )

    def _create(self) -> None:
        now = self.now()
        scn = self._database.current_scn()
        facts: dict[str, Any] = {
            "dbid": zlib.crc32(self._database.database_name.encode()),
            "created": now,
            "resetlogs_change": scn,
            "resetlogs_time": now,
            "log_mode": "ARCHIVELOG" if self._settings.archivelog else "NOARCHIVELOG",
            "supplemental": [],
        }
        store.write_meta(self.connection, facts)
        self._begin(1, scn, facts)

    def _begin(self, sequence: int, first_change: int, meta: Mapping[str, Any]) -> None:
        group = (sequence - 1) % self._settings.groups + 1
        cursor = self.connection.execute(
            "INSERT INTO redo_log (thread, sequence, group_number, resetlogs_change, resetlogs_time,"
            " first_change, first_time, first_id, bytes_used, member) VALUES (?,?,?,?,?,?,?,?,0,?)",
            (
                _THREAD,
                sequence,
                group,
                meta["resetlogs_change"],
                meta["resetlogs_time"],
                first_change,
                self.now(),
                self.next_id,
                self.member_name(group),
            ),
        )
        self.log_id = cast(int, cursor.lastrowid)
        self.position = 0

    def member_name(self, group: int) -> str:
        """The online file of a group."""
        return f"{self._directory()}/redo{group:02d}.log"

    def _archived_name(self, log: store.Log) -> str:
        """As LOG_ARCHIVE_FORMAT ``%t_%s_%r.arc`` names it."""
        incarnation = resetlogs_id(log.resetlogs_time)
        return f"{self.archive_directory()}/{log.thread}_{log.sequence}_{incarnation}.arc"

    def archive_directory(self) -> str:
        """Where LOG_ARCHIVE_DEST_1 points."""
        return f"{self._directory()}/archive"

    def _directory(self) -> str:
        return f"{self._settings.directory}/{self._database.database_name}"
