"""A physical standby beside the primary: read only, behind it, with its own copies of the archived logs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import oracledb
import pytest

from tests.oracle.embedded import (
    ADMIN,
    CAPTURE,
    OWNER,
    Oracle,
    StandbyOracle,
    running_oracle,
    standby_of,
)
from tests.oracle_embedded.redo.driver import ONLINE_CATALOG, Miner
from tests.steps.ways import FILE, build_in_file

SWITCH = "ALTER SYSTEM SWITCH LOGFILE"
DDL_TRACKING = 8
FROM_REDO = 32


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    with running_oracle() as running:
        running.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO T VALUES (1)")
        running.run(SWITCH, user=ADMIN)
        yield running


@pytest.fixture
def standby(oracle: Oracle) -> Iterator[StandbyOracle]:
    with standby_of(oracle) as running:
        yield running


@pytest.fixture
def primary(oracle: Oracle) -> Iterator[Any]:
    """A connection of the capture user."""
    with oracledb.connect(user=CAPTURE, password="capture", dsn=oracle.server.dsn) as connection:
        yield connection


def rows(connection: Any, sql: str) -> list[Any]:
    return list(connection.cursor().execute(sql))


def test_a_standby_says_what_it_is(oracle: Oracle, primary: Any, standby: StandbyOracle) -> None:
    """The same database by its DBID and incarnation, with a name of its own, as far as redo is applied."""
    facts = (
        "SELECT DBID, RESETLOGS_CHANGE#, DATABASE_ROLE, OPEN_MODE, DB_UNIQUE_NAME FROM V$DATABASE"
    )
    with oracle.owner() as writer, standby.connect(CAPTURE) as reader:
        writer.cursor().execute("INSERT INTO T VALUES (2)")
        [(primary_id, primary_reset, *_)] = rows(primary, facts)
        [(dbid, reset, *others)] = rows(reader, facts)
        assert (dbid, reset) == (primary_id, primary_reset)
        assert others == ["PHYSICAL STANDBY", "READ ONLY WITH APPLY", "ORCL_STBY"]
        assert rows(primary, "SELECT COUNT(*) FROM V$TRANSACTION") == [(1,)]
        assert rows(reader, "SELECT COUNT(*) FROM V$TRANSACTION") == [(0,)]
        assert rows(reader, "SELECT LAST_REDO_CHANGE# FROM V$THREAD") == [(0,)]


def test_queries_see_what_is_applied(oracle: Oracle, primary: Any, standby: StandbyOracle) -> None:
    [(standby.site.applied_scn,)] = rows(primary, "SELECT CURRENT_SCN FROM V$DATABASE")
    oracle.run("INSERT INTO T VALUES (2)")
    with standby.connect(OWNER) as reader, standby.connect(CAPTURE) as capture:
        assert rows(reader, "SELECT ID FROM T") == [(1,)]
        [(current,)] = rows(capture, "SELECT CURRENT_SCN FROM V$DATABASE")
        assert current == standby.site.applied_scn
        standby.site.applied_scn = None
        assert rows(reader, "SELECT COUNT(*) FROM T") == [(2,)]


@pytest.mark.parametrize(
    "statement",
    ["INSERT INTO T VALUES (9)", "SELECT ID FROM T FOR UPDATE", "CREATE TABLE U (ID NUMBER)",
     "TRUNCATE TABLE T", "BEGIN DELETE FROM T; END;"],
)  # fmt: skip
def test_nothing_can_be_changed(standby: StandbyOracle, statement: str) -> None:
    with standby.connect(OWNER) as reader:
        with pytest.raises(oracledb.DatabaseError, match="ORA-16000"):
            reader.cursor().execute(statement)
        reader.cursor().execute("ALTER SESSION SET NLS_SORT = 'BINARY'")


def test_archived_logs_are_the_standbys_own(oracle: Oracle, standby: StandbyOracle) -> None:
    """They come from the primary, are applied, and stay when the primary's are deleted."""
    names = "SELECT SEQUENCE#, NAME, APPLIED FROM V$ARCHIVED_LOG ORDER BY SEQUENCE#"
    oracle.run(SWITCH, user=ADMIN)
    standby.site.missing.add((1, 2))
    with standby.connect(CAPTURE) as reader:
        [(sequence, name, applied)] = rows(reader, names)
        assert (sequence, applied) == (1, "YES")
        assert "/ORCL_STBY/archive/1_1_" in name
        standby.site.missing.clear()
        standby.site.applied_scn = 1
        assert [row[::2] for row in rows(reader, names)] == [(1, "NO"), (2, "NO")]
        for _ in range(3):
            oracle.run(SWITCH, user=ADMIN)
        oracle.database.redo.delete_archived_log(1)
        assert rows(reader, names)[0][1] == name
        standby.site.deleted.add((1, 1))
        assert rows(reader, names)[0][1] is None


def test_logminer_reads_them_with_a_dictionary_file_alone(
    oracle: Oracle, standby: StandbyOracle
) -> None:
    """Every other dictionary needs a database that is open for writing."""
    build_in_file(oracle)
    with standby.connect(CAPTURE) as reader:
        reader.cursor().execute("ALTER SESSION SET CONTAINER = CDB$ROOT")
        miner = Miner(reader)
        [(name,)] = rows(reader, "SELECT NAME FROM V$ARCHIVED_LOG WHERE SEQUENCE# = 1")
        with pytest.raises(oracledb.DatabaseError, match="ORA-01284"):
            miner.add(name.replace("ORCL_STBY", "ORCLCDB"))
        miner.add(name)
        for options in (ONLINE_CATALOG, FROM_REDO, FROM_REDO + DDL_TRACKING):
            with pytest.raises(oracledb.DatabaseError, match="ORA-01300"):
                miner.start(options=options)
        reader.cursor().callproc(
            "dbms_logmnr.start_logmnr", keyword_parameters={"dictfilename": FILE, "options": 0}
        )
        found = miner.contents("operation = 'INSERT' and table_name = 'T'")
        assert [row["SEG_OWNER"] for row in found] == [OWNER]


def test_an_incarnation_begins_where_it_is_applied(oracle: Oracle, standby: StandbyOracle) -> None:
    reset = "SELECT RESETLOGS_CHANGE# FROM V$DATABASE"
    with standby.connect(CAPTURE) as reader:
        [(before,)] = rows(reader, reset)
        [(standby.site.applied_scn,)] = rows(reader, "SELECT CURRENT_SCN FROM V$DATABASE")
        oracle.database.redo.open_resetlogs()
        assert rows(reader, reset) == [(before,)]
        standby.site.applied_scn = None
        assert rows(reader, reset) > [(before,)]
