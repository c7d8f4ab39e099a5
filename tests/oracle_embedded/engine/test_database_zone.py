"""The time zone of the database: what it shows, and when it may change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import oracledb
import pytest

from oracle_embedded.database import ADMIN, open_database
from oracle_embedded.server import EmbeddedServer


@contextmanager
def cursor_of(folder: Path, time_zone: str = "+00:00") -> Iterator[Any]:
    """A cursor of the administrator's."""
    opened = open_database(folder, time_zone=time_zone, passwords={ADMIN: "secret"})
    try:
        with (
            EmbeddedServer(opened.engine) as server,
            oracledb.connect(user=ADMIN, password="secret", dsn=server.dsn) as connection,
        ):
            yield connection.cursor()
    finally:
        opened.close()


def shown(cursor: Any) -> tuple[Any, ...]:
    cursor.execute(
        "SELECT DBTIMEZONE, property_value, SESSIONTIMEZONE FROM database_properties WHERE property_name = 'DBTIMEZONE'"
    )
    [found] = cursor.fetchall()
    return tuple(found)


def test_a_database_keeps_its_time_zone(tmp_path: Path) -> None:
    with cursor_of(tmp_path, "+05:45") as cursor:
        assert shown(cursor)[:2] == ("+05:45", "+05:45")
        cursor.execute("ALTER SESSION SET TIME_ZONE = DBTIMEZONE")
        assert shown(cursor) == ("+05:45",) * 3
        cursor.execute("ALTER DATABASE SET TIME_ZONE = 'Europe/Berlin'")
    with cursor_of(tmp_path) as cursor:
        assert shown(cursor)[:2] == ("Europe/Berlin", "Europe/Berlin")


def test_it_changes_only_while_no_column_holds_times_in_it(tmp_path: Path) -> None:
    with cursor_of(tmp_path, "-03:30") as cursor:
        cursor.execute("CREATE TABLE demo.t (id NUMBER, l TIMESTAMP WITH LOCAL TIME ZONE)")
        with pytest.raises(oracledb.DatabaseError, match="ORA-30079"):
            cursor.execute("ALTER DATABASE SET TIME_ZONE = '+01:00'")
        cursor.execute("ALTER SESSION SET TIME_ZONE = '+00:00'")
        cursor.execute("INSERT INTO demo.t VALUES (1, TIMESTAMP '2024-01-01 12:00:00 +02:00')")
        cursor.execute("SELECT TO_CHAR(l, 'HH24:MI') FROM demo.t")
        assert cursor.fetchall() == [("10:00",)]
        cursor.execute("ALTER TABLE demo.t DROP COLUMN l")
        cursor.execute("ALTER DATABASE SET TIME_ZONE = '+01:00'")
        assert shown(cursor)[0] == "+01:00"
        with pytest.raises(oracledb.DatabaseError, match="ORA-01882"):
            cursor.execute("ALTER DATABASE SET TIME_ZONE = 'Nowhere/Land'")
