"""Two pluggable databases of one container database: equal names and numbers, one redo."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import oracledb
import pytest

from oracle_embedded.redo.settings import DEFAULT_WARTS
from tests.oracle.embedded import (
    ADMIN,
    CAPTURE,
    Oracle,
    container_database,
    running_oracle,
    second_container,
)
from tests.oracle_embedded.redo.driver import Miner, Row

TABLE = "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))"
LOGS = "SELECT SEQUENCE#, FIRST_CHANGE#, NEXT_CHANGE# FROM V$LOG ORDER BY SEQUENCE#"


@pytest.fixture
def both() -> Iterator[tuple[Oracle, Oracle]]:
    with running_oracle(warts=DEFAULT_WARTS) as one, second_container(one) as two:
        for container in (one, two):
            container.run(TABLE)
        yield one, two


def miner_of(oracle: Oracle) -> Any:
    return oracledb.connect(user=CAPTURE, password="capture", dsn=oracle.server.dsn)


def rows(connection: Any, sql: str) -> list[Any]:
    return list(connection.cursor().execute(sql))


def mined(oracle: Oracle, where: str) -> list[Row]:
    """What a session that came through this container's service sees in the root."""
    with miner_of(oracle) as connection:
        connection.cursor().execute("ALTER SESSION SET CONTAINER = CDB$ROOT")
        return Miner(connection).mine(where=where)


def test_names_and_numbers_of_both_are_equal(both: tuple[Oracle, Oracle]) -> None:
    numbers = "SELECT OBJECT_ID FROM ALL_OBJECTS WHERE OWNER = 'DEMO' AND OBJECT_NAME = 'T'"
    found, open_xids = [], []
    for container in both:
        with container.owner() as writer, miner_of(container) as reader:
            writer.cursor().execute("INSERT INTO T VALUES (1, 'open')")
            found.append(rows(reader, numbers))
            open_xids.append(rows(reader, "SELECT XID FROM V$TRANSACTION"))
    assert found[0] == found[1]
    assert open_xids[0] == open_xids[1]


def test_the_root_shows_the_redo_of_both_with_its_container(both: tuple[Oracle, Oracle]) -> None:
    """In the order of the SCNs, through whichever service the root was reached."""
    for number, container in enumerate((*both, *both)):
        container.run(f"INSERT INTO T VALUES ({number}, 'x')")
    for container in both:
        inserts = mined(container, "operation = 'INSERT' and table_name = 'T'")
        assert [(row["SRC_CON_NAME"], row["SRC_CON_ID"], row["CON_ID"]) for row in inserts] == [
            ("ORCLPDB1", 3, 1), ("ORCLPDB2", 4, 1), ("ORCLPDB1", 3, 1), ("ORCLPDB2", 4, 1)
        ]  # fmt: skip
        scns = [row["SCN"] for row in inserts]
        assert scns == sorted(scns)
        assert len({row["DATA_OBJ#"] for row in inserts}) == 1


def test_a_log_that_is_switched_ends_for_both(both: tuple[Oracle, Oracle]) -> None:
    one, two = both
    for container in (one, two, one):
        container.run("INSERT INTO T VALUES (1, 'x')", "DELETE FROM T")
        container.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
        with miner_of(one) as first, miner_of(two) as second:
            assert rows(first, LOGS) == rows(second, LOGS)
    inserts = mined(two, "operation = 'INSERT' and table_name = 'T'")
    assert [row["RBASQN"] for row in inserts] == [1, 2, 3]


def test_redo_that_one_writes_counts_as_written_in_both(both: tuple[Oracle, Oracle]) -> None:
    """The thread and its logs are the container database's."""
    written = "SELECT LAST_REDO_CHANGE# FROM V$THREAD"
    one, two = both
    with miner_of(one) as first, miner_of(two) as second:
        for writing, own, other in ((one, first, second), (two, second, first)):
            rows(other, written)
            writing.run("INSERT INTO T VALUES (1, 'x')")
            assert rows(own, written) <= rows(other, written)


def test_both_see_one_scn_and_each_other(both: tuple[Oracle, Oracle]) -> None:
    one, two = both
    with miner_of(one) as first, miner_of(two) as second:
        current = "SELECT CURRENT_SCN, DBID, RESETLOGS_CHANGE# FROM V$DATABASE"
        [(before, dbid, reset)] = rows(first, current)
        [(behind, *same)] = rows(second, current)
        assert behind > before
        assert same == [dbid, reset]
        first.cursor().execute("ALTER SESSION SET CONTAINER = CDB$ROOT")
        assert {name for (name,) in rows(first, "SELECT NAME FROM V$PDBS WHERE OPEN_MODE = 'READ WRITE'")} == {
            "ORCLPDB1", "ORCLPDB2"
        }  # fmt: skip


def test_a_common_user_changes_from_the_root_to_each_pluggable_database_and_back() -> None:
    """One session, one name of a table, the rows of the container that it is in."""
    with container_database() as cdb:
        for name, container in cdb.pdbs.items():
            container.run(TABLE, f"INSERT INTO T VALUES (1, '{name}')")
        with oracledb.connect(user=CAPTURE, password="capture", dsn=cdb.dsn) as connection:
            where = "SELECT SYS_CONTEXT('USERENV', 'CON_NAME') FROM DUAL"
            assert rows(connection, where) == [("CDB$ROOT",)]
            for name in (*cdb.pdbs, *cdb.pdbs):
                connection.cursor().execute(f"ALTER SESSION SET CONTAINER = {name}")
                assert rows(connection, where) == [(name,)]
                assert rows(connection, "SELECT V FROM DEMO.T") == [(name,)]
            connection.cursor().execute("ALTER SESSION SET CONTAINER = CDB$ROOT")
            assert rows(connection, where) == [("CDB$ROOT",)]
        with oracledb.connect(user=ADMIN, password="admin", dsn=cdb.dsn) as connection:
            connection.cursor().execute("ALTER SESSION SET CONTAINER = ORCLPDB2")
            connection.cursor().execute("DELETE FROM DEMO.T")
            with pytest.raises(oracledb.DatabaseError, match="ORA-65023"):
                connection.cursor().execute("ALTER SESSION SET CONTAINER = ORCLPDB1")
            connection.rollback()


def test_a_closed_container_is_mounted_and_one_that_was_dropped_is_gone() -> None:
    modes = "SELECT NAME, OPEN_MODE FROM V$PDBS ORDER BY NAME"
    with (
        container_database() as cdb,
        oracledb.connect(user=CAPTURE, password="capture", dsn=cdb.dsn) as connection,
    ):
        cdb.close_pdb("ORCLPDB2")
        assert rows(connection, modes) == [("ORCLPDB1", "READ WRITE"), ("ORCLPDB2", "MOUNTED")]
        connection.cursor().execute("ALTER SESSION SET CONTAINER = ORCLPDB2")
        with pytest.raises(oracledb.DatabaseError, match="ORA-01109"):
            rows(connection, "SELECT * FROM DUAL")
        cdb.open_pdbs()
        assert rows(connection, "SELECT * FROM DUAL") == [("X",)]
        connection.cursor().execute("ALTER SESSION SET CONTAINER = CDB$ROOT")
        cdb.drop("ORCLPDB2")
        assert rows(connection, modes) == [("ORCLPDB1", "READ WRITE")]
        with pytest.raises(oracledb.DatabaseError, match="ORA-65011"):
            connection.cursor().execute("ALTER SESSION SET CONTAINER = ORCLPDB2")
