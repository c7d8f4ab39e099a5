"""Many sessions at once on one server: nobody freezes it, and nobody sees the dictionary half-done.

The server is a process of its own: what freezes there must not freeze the tests.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import oracledb
import pytest

from tests.invariants.server import EmbeddedServer

ROUNDS = 4
CALL_SECONDS_MAX = 120
"""A frozen server ends the test with the driver's own error."""
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
    works = (change, look, look, look, define)
    rounds = [0] * len(works)
    failed = threading.Event()

    def busy(place: int) -> None:
        try:
            with session(server) as opened, opened.cursor() as cursor:
                while min(rounds) < ROUNDS and not failed.is_set():
                    works[place](cursor, rounds[place])
                    rounds[place] += 1
        except BaseException:
            failed.set()
            raise

    with ThreadPoolExecutor() as pool:
        jobs = [pool.submit(busy, place) for place in range(len(works))]
        for job in jobs:
            job.result()
    assert min(rounds) >= ROUNDS
