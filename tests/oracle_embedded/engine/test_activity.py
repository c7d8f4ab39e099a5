"""What sessions do, as DBAs look at it: locks and who waits for whom, statements, statistics."""

from __future__ import annotations

import time
from threading import Thread
from typing import TYPE_CHECKING

from oracle_embedded.database import ADMIN

if TYPE_CHECKING:
    from tests.oracle_embedded.engine.conftest import Client, Connect


def _wait_for(admin: Client, query: str) -> None:
    while admin.one(query) == "0":
        time.sleep(0.02)


def test_a_session_that_waits_for_a_row_is_shown_with_its_holder(connect: Connect) -> None:
    owner, waiting, admin = connect(), connect(), connect(ADMIN)
    owner("create table t (id number primary key, v number)")
    owner("insert into t values (1, 1)")
    owner.session.commit()
    owner("update t set v = 2")
    held, asked = str(owner.session.session_id), str(waiting.session.session_id)
    thread = Thread(target=waiting, args=("update t set v = 3",))
    thread.start()
    try:
        _wait_for(admin, "select count(*) from v$lock where request > 0")
        pairs = admin(
            "select h.sid, w.sid, h.type, h.lmode, w.request from v$lock h join v$lock w"
            " on h.id1 = w.id1 and h.id2 = w.id2 where h.block = 1 and w.request > 0"
        )
        assert pairs == [(held, asked, "TX", "6", "6")]
        assert admin(
            "select o.object_name, l.locked_mode from v$locked_object l"
            f" join dba_objects o on o.object_id = l.object_id where l.session_id = {held}"
        ) == [("T", "3")]
        found = admin(
            "select blocking_session_status, blocking_session, final_blocking_session, event, wait_class, state"
            f" from v$session where sid = {asked}"
        )  # fmt: skip
        event = "enq: TX - row lock contention"
        assert found == [("VALID", held, held, event, "Application", "WAITING")]
    finally:
        owner.session.rollback()
        thread.join()
    waiting.session.rollback()
    assert admin("select * from v$lock") == []


def test_a_session_leads_to_its_transaction_and_its_process(connect: Connect) -> None:
    client, admin = connect(), connect(ADMIN)
    client("create table t (id number)")
    client("insert into t values (1)")
    found = admin(
        "select s.sid, t.status, p.pid from v$session s join v$transaction t on t.addr = hextoraw(s.taddr)"
        " join v$process p on p.addr = s.paddr"
    )  # fmt: skip
    number = str(client.session.session_id)
    assert found == [(number, "ACTIVE", number)]


def test_views_have_oracles_columns(connect: Connect) -> None:
    """As DESCRIBE shows them in release 19c: how many, and the last."""
    admin = connect(ADMIN)
    shapes = {}
    for view in ("V$SESSION", "V$DATABASE", "V$TRANSACTION", "V$LOCK", "V$SQL", "V$SYSSTAT"):
        columns = admin.session.parse(f"select * from {view}").columns
        shapes[view] = (len(columns), columns[-1].name)
    assert shapes == {
        "V$SESSION": (103, "PLSQL_DEBUGGER_CONNECTED"),
        "V$DATABASE": (59, "SUPPLEMENTAL_LOG_DATA_SR"),
        "V$TRANSACTION": (47, "CON_ID"),
        "V$LOCK": (11, "CON_ID"),
        "V$SQL": (101, "AVOIDED_EXECUTIONS"),
        "V$SYSSTAT": (6, "CON_ID"),
    }


def test_statements_are_counted_by_their_text(connect: Connect) -> None:
    client, admin = connect(), connect(ADMIN)
    for _ in range(3):
        client("select * from dual")
    found = admin(
        "select sql_id, hash_value, executions, parse_calls, command_type, parsing_schema_name from v$sql"
        " where sql_text = 'select * from dual'"
    )  # fmt: skip
    assert found == [("a5ks9fhw2v9s1", "942515969", "3", "3", "3", "DEMO")]


def test_statistics_of_the_instance_keep_those_of_sessions_that_ended(connect: Connect) -> None:
    client, admin = connect(), connect(ADMIN)
    commits = "select value from v$sysstat where name = 'user commits'"
    before = int(admin.one(commits))
    client("create table t (id number)")
    for number in range(3):
        client("insert into t values (:1)", number)
        client.session.commit()
    client.session.close()
    assert int(admin.one(commits)) == before + 3
