"""Many sessions at once on one server: nobody freezes it, and nobody sees the dictionary half-done.

The server is a process of its own: what freezes there must not freeze the tests.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import oracledb
import pytest

from tests.invariants.server import EmbeddedServer

SECONDS = 4.0
CALL_SECONDS_MAX = 20
DICTIONARY = (
    "SELECT COUNT(*) FROM ALL_OBJECTS",
    "SELECT COUNT(*) FROM USER_TAB_COLUMNS WHERE TABLE_NAME = 'WORK'",
    "SELECT NUM_ROWS FROM USER_TABLES WHERE TABLE_NAME = 'WORK'",
    "SELECT COUNT(*) FROM WORK WHERE LOWER(NAME) LIKE 'name%'",
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(tmp_path / "oracle") as running:
        yield running


def session(server: EmbeddedServer) -> oracledb.Connection:
    opened = server.connect()
    opened.call_timeout = CALL_SECONDS_MAX * 1000
    return opened


def change(cursor: oracledb.Cursor, number: int) -> None:
    """A statement of the writer that calls functions for many rows, and changes one."""
    cursor.execute(
        "UPDATE WORK SET NAME = 'other' WHERE INITCAP(LOWER(NAME)) = :1", [f"Name{number % 2000}"]
    )
    cursor.connection.rollback()


def look(cursor: oracledb.Cursor, number: int) -> None:
    cursor.execute(DICTIONARY[number % len(DICTIONARY)])
    assert cursor.fetchone()[0]


def define(cursor: oracledb.Cursor, number: int) -> None:
    """DDL that replaces a definition, and DDL that fails and is forgotten."""
    cursor.execute(f"ALTER TABLE OTHER MODIFY (NAME VARCHAR2({100 + number}))")
    with pytest.raises(oracledb.DatabaseError, match="ORA-01430"):
        cursor.execute("ALTER TABLE OTHER ADD (NAME NUMBER)")


def test_changes_dictionary_queries_and_ddl_side_by_side(server: EmbeddedServer) -> None:
    with session(server) as first, first.cursor() as cursor:
        cursor.execute("CREATE TABLE OTHER (ID NUMBER PRIMARY KEY, NAME VARCHAR2(99))")
        cursor.execute("CREATE TABLE WORK (ID NUMBER PRIMARY KEY, NAME VARCHAR2(99))")
        cursor.execute(
            "INSERT INTO WORK SELECT LEVEL, 'name' || LEVEL FROM DUAL CONNECT BY LEVEL <= 2000"
        )
        first.commit()
    stop = threading.Event()

    def busy(work: Callable[[oracledb.Cursor, int], None]) -> int:
        number = 0
        try:
            with session(server) as opened, opened.cursor() as cursor:
                while not stop.is_set():
                    work(cursor, number)
                    number += 1
        finally:
            stop.set()
        return number

    with ThreadPoolExecutor() as pool:
        jobs = [pool.submit(busy, work) for work in (change, look, look, look, define)]
        stop.wait(SECONDS)
        stop.set()
        begun = time.monotonic()
        counts = [job.result() for job in jobs]
    assert min(counts) > 3, counts
    assert time.monotonic() - begun < CALL_SECONDS_MAX
