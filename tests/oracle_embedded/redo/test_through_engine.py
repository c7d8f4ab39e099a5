"""Redo that the engine writes, mined through the driver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import oracledb
import pytest

from oracle_embedded.api import Logon
from oracle_embedded.database import CAPTURE, OWNER, OpenDatabase, open_database
from oracle_embedded.server import EmbeddedServer


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[OpenDatabase]:
    made = open_database(tmp_path / "ora")
    yield made
    made.close()


@pytest.fixture
def server(opened: OpenDatabase) -> Iterator[EmbeddedServer]:
    made = EmbeddedServer(opened.engine)
    made.start()
    yield made
    made.stop()


def connect(opened: OpenDatabase, server: EmbeddedServer, user: str) -> Any:
    return oracledb.connect(user=user, password=opened.password(user), dsn=server.dsn)


def mine(opened: OpenDatabase, server: EmbeddedServer) -> list[tuple[Any, ...]]:
    """Operation code, ROLLBACK and SQL_REDO of DEMO's row changes."""
    with connect(opened, server, CAPTURE) as miner:
        cursor = miner.cursor()
        cursor.execute("alter session set container = cdb$root")
        (session,) = (s for s in opened.engine.sessions.values() if s.username == CAPTURE)
        call = {p.name: p.run for p in opened.redo.procedures}
        cursor.execute(
            "select name from v$archived_log where status = 'A' union all select f.member"
            " from v$log l join v$logfile f on f.group# = l.group# where l.status = 'CURRENT'"
        )
        for (name,) in cursor.fetchall():
            call["ADD_LOGFILE"](session, {"LOGFILENAME": name, "OPTIONS": 3})
        call["START_LOGMNR"](session, {"STARTSCN": 0, "ENDSCN": 0, "OPTIONS": 16 + 2048})
        cursor.execute(
            "select operation_code, rollback, sql_redo from v$logmnr_contents"
            " where seg_owner = 'DEMO' and operation_code in (1, 2, 3)"
        )
        return list(cursor)


def test_changes_of_a_client_are_mined_by_another(
    opened: OpenDatabase, server: EmbeddedServer
) -> None:
    with connect(opened, server, OWNER) as owner:
        cursor = owner.cursor()
        cursor.execute("create table t (id number primary key, name varchar2(20))")
        cursor.execute("insert into t values (1, 'O''Neil')")
        cursor.execute("savepoint s")
        cursor.execute("update t set name = 'x' where id = 1")
        cursor.execute("rollback to s")
        owner.commit()
    assert mine(opened, server) == [
        (1, 0, 'insert into "DEMO"."T"("ID","NAME") values (\'1\',\'O\'\'Neil\');'),
        (3, 0, 'update "DEMO"."T" set "NAME" = \'x\' where "NAME" = \'O\'\'Neil\';'),
        (3, 1, 'update "DEMO"."T" set "NAME" = \'O\'\'Neil\';'),
    ]


def test_a_statement_that_fails_shows_its_undoing(
    opened: OpenDatabase, server: EmbeddedServer
) -> None:
    with connect(opened, server, OWNER) as owner:
        cursor = owner.cursor()
        cursor.execute("create table t (id number primary key)")
        cursor.execute("insert into t select level from dual connect by level <= 2")
        with pytest.raises(oracledb.IntegrityError):
            cursor.execute("update t set id = 2")
        owner.commit()
    rows = mine(opened, server)
    done = sum(1 if op in (1, 3) and not rollback else 0 for op, rollback, _ in rows)
    undone = [op for op, rollback, _ in rows if rollback]
    assert done - len(undone) == 2


def test_work_that_a_dead_process_left_open_is_rolled_back(tmp_path: Path) -> None:
    folder = tmp_path / "ora"
    first = open_database(folder)
    session = first.engine.open_session(Logon(OWNER, program="pytest"))
    session.execute(session.parse("create table t (id number primary key)"))
    session.execute(session.parse("insert into t values (7)"))
    first.engine.store.flush()
    with first.engine.store.lock:
        first.engine.store.writer.sqlite.close()  # as when the process dies

    second = open_database(folder)
    server = EmbeddedServer(second.engine)
    server.start()
    try:
        rows = mine(second, server)
    finally:
        server.stop()
        second.close()
    assert [row[:2] for row in rows] == [(1, 0), (2, 1)]
    assert rows[0][2] == 'insert into "DEMO"."T"("ID") values (\'7\');'
    assert rows[1][2].startswith('delete from "DEMO"."T" where ROWID = ')
