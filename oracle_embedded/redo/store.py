"""How does the redo lie in the engine's SQLite file?

All tables have the prefix ``redo_``. ``redo_record.id`` grows in the order of the redo, which is
not the order of SCNs: redo that was bound late has old ones. ``redo_mark`` is a sparse index that
costs nothing to keep: before ``id`` no SCN is above ``scn``, from ``id`` on none is below
``floor``. ``redo_strand`` holds redo that is not in the log yet.

Images and definitions are stored with :mod:`marshal`: the file is written and read by this program
only.
"""

from __future__ import annotations

import json
import marshal
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, cast

from oracle_embedded.api import OraType, StoredColumn, TableVersion, Value

_SCHEMA = """
CREATE TABLE IF NOT EXISTS redo_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS redo_log (
    log_id INTEGER PRIMARY KEY, thread INTEGER NOT NULL, sequence INTEGER NOT NULL,
    group_number INTEGER NOT NULL, resetlogs_change INTEGER NOT NULL, resetlogs_time INTEGER NOT NULL,
    first_change INTEGER NOT NULL, first_time INTEGER NOT NULL, next_change INTEGER, next_time INTEGER,
    first_id INTEGER NOT NULL, bytes_used INTEGER NOT NULL, dictionary_begin INTEGER NOT NULL DEFAULT 0,
    dictionary_end INTEGER NOT NULL DEFAULT 0, member TEXT NOT NULL, name TEXT,
    archived INTEGER NOT NULL DEFAULT 0, deleted INTEGER NOT NULL DEFAULT 0, completed INTEGER,
    last_change INTEGER NOT NULL DEFAULT 0, gone INTEGER NOT NULL DEFAULT 0,
    opens INTEGER NOT NULL DEFAULT 0, closes INTEGER NOT NULL DEFAULT 0,
    UNIQUE (thread, sequence, resetlogs_change));
CREATE TABLE IF NOT EXISTS redo_thread (
    thread INTEGER PRIMARY KEY, enabled TEXT NOT NULL, is_open INTEGER NOT NULL,
    enable_change INTEGER NOT NULL, enable_time INTEGER NOT NULL, disable_change INTEGER NOT NULL,
    disable_time INTEGER, open_time INTEGER NOT NULL, close_change INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS redo_transaction (
    tx INTEGER PRIMARY KEY, xid BLOB NOT NULL, session_id INTEGER NOT NULL, serial INTEGER NOT NULL,
    username TEXT NOT NULL, client_id TEXT, start_scn INTEGER NOT NULL, start_time INTEGER NOT NULL,
    first_id INTEGER NOT NULL, end_scn INTEGER, end_time INTEGER, last_id INTEGER,
    committed INTEGER,
    ddl INTEGER NOT NULL DEFAULT 0, undone INTEGER NOT NULL DEFAULT 0, thread INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS redo_transaction_scn ON redo_transaction (end_scn) WHERE committed = 1;
CREATE INDEX IF NOT EXISTS redo_transaction_end ON redo_transaction (last_id) WHERE committed = 1;
CREATE TABLE IF NOT EXISTS redo_object (
    object INTEGER PRIMARY KEY, object_id INTEGER NOT NULL, definition BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS redo_record (
    id INTEGER PRIMARY KEY, log_id INTEGER NOT NULL, position INTEGER NOT NULL, scn INTEGER NOT NULL,
    time INTEGER NOT NULL, tx INTEGER, op INTEGER NOT NULL, flags INTEGER NOT NULL, object INTEGER,
    row_id BLOB, before BLOB, after BLOB);
CREATE TABLE IF NOT EXISTS redo_strand (
    seq INTEGER PRIMARY KEY, thread INTEGER NOT NULL, size INTEGER NOT NULL, scn INTEGER NOT NULL, time INTEGER NOT NULL,
    tx INTEGER NOT NULL, op INTEGER NOT NULL, flags INTEGER NOT NULL, object INTEGER,
    row_id BLOB, before BLOB, after BLOB);
CREATE TABLE IF NOT EXISTS redo_dictionary (
    id INTEGER PRIMARY KEY, scn INTEGER NOT NULL, log_id INTEGER, file TEXT, last_object INTEGER NOT NULL, objects BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS redo_mark (id INTEGER PRIMARY KEY, scn INTEGER NOT NULL, floor INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS redo_mark_scn ON redo_mark (scn);
CREATE INDEX IF NOT EXISTS redo_mark_floor ON redo_mark (floor);
"""

RECORD_INSERT = "INSERT INTO redo_record VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
STRAND_INSERT = (
    "INSERT INTO redo_strand (thread, size, scn, time, tx, op, flags, object, row_id, before, after)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
STRAND_QUERY = "SELECT thread, size, scn, time, tx, op, flags, object, row_id, before, after FROM redo_strand ORDER BY seq"


class Record(NamedTuple):
    """A record: ``tx`` and ``object`` are numbers of ``redo_transaction`` and ``redo_object``;
    ``before`` and ``after`` are packed images. Both are None, and so is ``object``, where no row is
    changed; a DDL has its facts in ``after``."""

    id: int
    log_id: int
    position: int
    scn: int
    time: int
    tx: int | None
    op: int
    flags: int
    object: int | None
    row_id: bytes | None
    before: bytes | None
    after: bytes | None


RECORD_COLUMNS = ", ".join(Record._fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """One sequence of one thread. ``member`` is its online file, ``name`` its archived one (None:
    not archived, or deleted). ``first_id`` is the id of the first record that it may hold,
    ``last_change`` the highest SCN of its records, 0 while it has none. ``gone`` is 1 when the
    archived file was removed behind the control file's back. ``opens`` and ``closes`` say that the
    thread was opened or closed with it. Times are seconds since 1970."""

    log_id: int
    thread: int
    sequence: int
    group_number: int
    resetlogs_change: int
    resetlogs_time: int
    first_change: int
    first_time: int
    next_change: int | None
    next_time: int | None
    first_id: int
    bytes_used: int
    dictionary_begin: int
    dictionary_end: int
    member: str
    name: str | None
    archived: int
    deleted: int
    completed: int | None
    last_change: int
    gone: int
    opens: int
    closes: int

    def is_in(self, file: str, online: Mapping[int, Log]) -> bool:
        """Does a file hold this log? ``online`` is what :func:`online_logs` gives."""
        archived = self.name == file and not self.gone
        return archived or (self.member == file and self.log_id in online)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """A transaction as the redo knows it.

    ``committed`` is None while it is open, 0 after a rollback. ``undone`` is 1 when a part of it
    was undone.
    """

    tx: int
    xid: bytes
    session_id: int
    serial: int
    username: str
    client_id: str | None
    start_scn: int
    start_time: int
    first_id: int
    end_scn: int | None
    end_time: int | None
    last_id: int | None
    committed: int | None
    ddl: int
    undone: int
    thread: int


_LOG_FIELDS = tuple(part.name for part in fields(Log))
_TRANSACTION_FIELDS = tuple(part.name for part in fields(Transaction))
LOG_COLUMNS = ", ".join(_LOG_FIELDS)
TRANSACTION_COLUMNS = ", ".join(_TRANSACTION_FIELDS)


@dataclass(frozen=True, slots=True)
class KnownObject:
    """What a dictionary knows of a segment: the names and the version of its table."""

    owner: str
    name: str
    partition: str | None
    object_version: int


@dataclass(frozen=True, slots=True)
class Dictionary:
    """A LogMiner dictionary as DBMS_LOGMNR_D.BUILD wrote it at ``scn``, into a log of the redo or
    into a file.

    ``objects`` is what it knows, by number; ``last_object`` the newest definition of which a row
    had been written before.
    """

    scn: int
    log_id: int | None
    file: str | None
    last_object: int
    objects: Mapping[int, KnownObject]


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables where they are missing, inside the caller's transaction."""
    for statement in _SCHEMA.split(";\n"):
        if statement.strip():
            connection.execute(statement)


def read_meta(connection: sqlite3.Connection) -> dict[str, Any]:
    """Facts of the whole database: DBID, creation, incarnation, log mode, supplemental logging."""
    rows = connection.execute("SELECT key, value FROM redo_meta")
    return {_text(key): json.loads(value) for key, value in rows}


def write_meta(connection: sqlite3.Connection, facts: Mapping[str, Any]) -> None:
    """Set facts, leaving the others."""
    connection.executemany(
        "INSERT OR REPLACE INTO redo_meta VALUES (?, ?)",
        [(key, json.dumps(value)) for key, value in facts.items()],
    )


def read_logs(connection: sqlite3.Connection, where: str = "TRUE") -> list[Log]:
    """The logs that the control file still knows and for which ``where`` holds, oldest first."""
    query = f"SELECT {LOG_COLUMNS} FROM redo_log WHERE {where} ORDER BY log_id"
    return [log_from(row) for row in connection.execute(query)]


def log_from(row: Sequence[Any]) -> Log:
    """A row of ``redo_log`` that was read with :data:`LOG_COLUMNS`."""
    parts: list[Any] = [_text(part) if isinstance(part, bytes) else part for part in row]
    return Log(**dict(zip(_LOG_FIELDS, parts, strict=True)))


def transaction_from(row: Sequence[Any]) -> Transaction:
    """A row of ``redo_transaction`` that was read with :data:`TRANSACTION_COLUMNS`."""
    parts = dict(zip(_TRANSACTION_FIELDS, row, strict=True))
    for name in ("username", "client_id"):
        parts[name] = None if parts[name] is None else _text(parts[name])
    return Transaction(**parts)


def _text(value: str | bytes) -> str:
    """The engine's connections give text as bytes."""
    return value.decode() if isinstance(value, bytes) else value


def online_logs(logs: list[Log]) -> dict[int, Log]:
    """What each online file holds: the newest log per thread and group of this incarnation, by
    ``log_id``."""
    incarnation = max((log.resetlogs_change for log in logs), default=0)
    newest = {
        (log.thread, log.group_number): log for log in logs if log.resetlogs_change == incarnation
    }
    return {log.log_id: log for log in newest.values()}


def read_transaction(connection: sqlite3.Connection, tx: int) -> Transaction:
    """One transaction by its number."""
    query = f"SELECT {TRANSACTION_COLUMNS} FROM redo_transaction WHERE tx = ?"
    return transaction_from(connection.execute(query, (tx,)).fetchone())


def write_dictionary(
    connection: sqlite3.Connection,
    scn: int,
    *,
    log_id: int | None,
    file: str | None,
    versions: Mapping[int, TableVersion],
) -> None:
    """Keep a dictionary with the present definitions; a file is written over."""
    (last,) = connection.execute("SELECT coalesce(max(object), 0) FROM redo_object").fetchone()
    known = {
        number: (one.owner, one.name, one.partition, one.object_version)
        for number, one in versions.items()
    }
    if file is not None:
        connection.execute("DELETE FROM redo_dictionary WHERE file = ?", (file,))
    connection.execute(
        "INSERT INTO redo_dictionary (scn, log_id, file, last_object, objects) VALUES (?, ?, ?, ?, ?)",
        (scn, log_id, file, last, marshal.dumps(known, 2)),
    )


def read_dictionaries(connection: sqlite3.Connection) -> list[Dictionary]:
    """All dictionaries, the newest last."""
    rows = connection.execute(
        "SELECT scn, log_id, file, last_object, objects FROM redo_dictionary ORDER BY scn, id"
    )
    return [
        Dictionary(
            scn,
            log_id,
            None if file is None else _text(file),
            last,
            {number: KnownObject(*facts) for number, facts in unpack_objects(packed).items()},
        )
        for scn, log_id, file, last, packed in rows
    ]


def unpack_objects(packed: bytes) -> dict[int, tuple[str, str, str | None, int]]:
    """What :func:`write_dictionary` packed."""
    return cast(dict[int, tuple[str, str, str | None, int]], marshal.loads(packed))  # noqa: S302 - our own file


def ids_between(connection: sqlite3.Connection, low: int, high: int) -> tuple[int, int | None]:
    """A range of ids, the upper end excluded, outside of which no record has an SCN from ``low`` to
    ``high``."""
    (first,) = connection.execute(
        "SELECT id FROM redo_mark WHERE scn < ? ORDER BY scn DESC, id DESC LIMIT 1", (low,)
    ).fetchone() or (0,)
    (end,) = connection.execute("SELECT min(id) FROM redo_mark WHERE floor > ?", (high,)).fetchone()
    return first, end


LOB_CALL = 0
"""The place in the new image of a LOB that was written through its locator, for offset (-1 for a
trim) and length of what was written: columns have greater numbers."""


def pack_image(image: Mapping[int, Value]) -> bytes:
    """A row image as stored."""
    return marshal.dumps(image if type(image) is dict else dict(image), 2)


def unpack_image(packed: bytes) -> dict[int, Value]:
    """Inverse of :func:`pack_image`."""
    return cast(dict[int, Value], marshal.loads(packed))  # noqa: S302 - our own file


def pack_facts(facts: tuple[str | int | None, ...]) -> bytes:
    """What a DDL record holds instead of an image."""
    return marshal.dumps(facts, 2)


def unpack_facts(packed: bytes) -> tuple[Any, ...]:
    """Inverse of :func:`pack_facts`."""
    return cast(tuple[Any, ...], marshal.loads(packed))  # noqa: S302 - our own file


def pack_table(table: TableVersion) -> bytes:
    """A table's definition as stored: its fields by name."""
    facts = {name: getattr(table, name) for name in _TABLE_FIELDS}
    facts["columns"] = tuple(
        {name: getattr(column, name) for name in _COLUMN_FIELDS} | {"type": int(column.type)}
        for column in table.columns
    )
    return marshal.dumps(facts, 2)


def unpack_table(packed: bytes) -> TableVersion:
    """Inverse of :func:`pack_table`."""
    facts = cast(dict[str, Any], marshal.loads(packed))  # noqa: S302 - our own file
    facts["columns"] = tuple(
        StoredColumn(**(parts | {"type": OraType(parts["type"])})) for parts in facts["columns"]
    )
    return TableVersion(**facts)


_TABLE_FIELDS = tuple(part.name for part in fields(TableVersion))
_COLUMN_FIELDS = tuple(part.name for part in fields(StoredColumn))
