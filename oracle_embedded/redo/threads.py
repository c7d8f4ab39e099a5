"""Which redo threads are there, and which instances write into them?

A thread belongs to an instance of a cluster. It is enabled once (PUBLIC for any instance, PRIVATE
for one that names it), and open while its instance runs; a closed thread's last log has ended.
Source: Oracle Real Application Clusters Administration and Deployment Guide 19c; Oracle Database
Reference 19c, V$THREAD.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

PUBLIC, PRIVATE, DISABLED = "PUBLIC", "PRIVATE", "DISABLED"
FIRST = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A thread as the control file has it; times are seconds since 1970, SCNs 0 while there is
    none.

    ``close_change`` is where the thread was closed the last time.
    """

    thread: int
    enabled: str
    is_open: int
    enable_change: int
    enable_time: int
    disable_change: int
    disable_time: int | None
    open_time: int
    close_change: int


def read_threads(connection: sqlite3.Connection) -> list[Thread]:
    """All threads that were ever enabled."""
    rows = connection.execute(f"SELECT {', '.join(_FIELDS)} FROM redo_thread ORDER BY thread")
    return [_thread_from(row) for row in rows]


_FIELDS = tuple(part.name for part in fields(Thread))


def _thread_from(row: Sequence[Any]) -> Thread:
    facts = dict(zip(_FIELDS, row, strict=True))
    enabled = facts["enabled"]
    facts["enabled"] = enabled.decode() if isinstance(enabled, bytes) else enabled
    return Thread(**facts)


def enable(connection: sqlite3.Connection, thread: int, kind: str, scn: int, now: int) -> None:
    """Enable a thread, which is closed at first."""
    connection.execute(
        "INSERT OR REPLACE INTO redo_thread VALUES (?, ?, 0, ?, ?, 0, NULL, ?, ?)",
        (thread, kind, scn, now, now, scn),
    )


def disable(connection: sqlite3.Connection, thread: int, scn: int, now: int) -> None:
    """Disable a closed thread."""
    connection.execute(
        "UPDATE redo_thread SET enabled = ?, disable_change = ?, disable_time = ? WHERE thread = ?",
        (DISABLED, scn, now, thread),
    )


def mark_open(connection: sqlite3.Connection, thread: int, now: int) -> None:
    """Note that an instance has opened the thread."""
    connection.execute(
        "UPDATE redo_thread SET is_open = 1, open_time = ? WHERE thread = ?", (now, thread)
    )


def mark_closed(connection: sqlite3.Connection, thread: int, scn: int) -> None:
    """Note that its instance has closed the thread."""
    connection.execute(
        "UPDATE redo_thread SET is_open = 0, close_change = ? WHERE thread = ?", (scn, thread)
    )
