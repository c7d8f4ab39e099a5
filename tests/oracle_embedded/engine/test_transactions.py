"""Sessions see committed data and their own; rows are locked; the past can be queried."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from oracle_embedded.api import Logon, OracleError
from oracle_embedded.database import open_database

if TYPE_CHECKING:
    from tests.oracle_embedded.engine.conftest import Client, Connect


@pytest.fixture
def table(sql: Client) -> Client:
    sql("create table t (id number primary key, v varchar2(10))")
    sql.many("insert into t values (:1, :2)", [(n, f"v{n}") for n in range(5)])
    sql.session.commit()
    return sql


def rows(client: Any) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = client("select id, v from t order by id")
    return found


def test_a_session_that_changed_nothing_ends_without_waiting(
    table: Client, connect: Connect
) -> None:
    other = connect()
    with table.session.database.store.lock:
        ending = threading.Thread(target=other.session.close, daemon=True)
        ending.start()
        ending.join()
    assert other.session.closed


def test_uncommitted_changes_are_seen_by_their_session_only(
    table: Client, connect: Connect
) -> None:
    other = connect()
    before = rows(table)
    table("update t set v = 'new' where id = 1")
    table("delete from t where id = 2")
    table("insert into t values (9, 'nine')")
    assert rows(table) == [("0", "v0"), ("1", "new"), ("3", "v3"), ("4", "v4"), ("9", "nine")]
    assert rows(other) == before
    assert other("select v from t where id = 2") == [("v2",)]
    assert other("select v from t where id = 9") == []
    table.session.commit()
    assert rows(other) == rows(table)


def test_a_query_sees_the_moment_it_began(table: Client, connect: Connect) -> None:
    outcome = table.session.run("select v from t order by id")
    assert outcome.rows is not None
    first = outcome.rows.fetch(1)
    other = connect()
    other("update t set v = 'later'")
    other.session.commit()
    assert [value for (value,) in first + outcome.rows.fetch(100)] == [
        b"v0",
        b"v1",
        b"v2",
        b"v3",
        b"v4",
    ]


def test_a_read_only_transaction_stays_at_its_start(table: Client, connect: Connect) -> None:
    table("set transaction read only")
    before = rows(table)
    other = connect()
    other("delete from t")
    other.session.commit()
    assert rows(table) == before
    with pytest.raises(OracleError, match="ORA-01456"):
        table("delete from t")
    table.session.commit()
    assert rows(table) == []


def test_savepoints_take_back_what_follows_them(table: Client) -> None:
    table("update t set v = 'a' where id = 1")
    table("savepoint one")
    table("update t set v = 'b' where id = 1")
    table("insert into t values (8, 'x')")
    table("savepoint two")
    table("delete from t where id = 1")
    table("rollback to savepoint one")
    assert table("select v from t where id in (1, 8)") == [("a",)]
    with pytest.raises(OracleError, match="ORA-01086"):
        table("rollback to two")
    table.session.rollback()
    assert table("select v from t where id = 1") == [("v1",)]


def in_thread(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(work())
        except OracleError as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, results


def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.01)


def waits(client: Any) -> bool:
    transaction = client.session.transaction
    return transaction is not None and transaction.waits_for is not None


def test_a_locked_row_is_waited_for_and_then_read_anew(table: Client, connect: Connect) -> None:
    other = connect()
    table("update t set v = 'first' where id = 1")
    thread, results = in_thread(lambda: other("update t set v = v || '+' where id = 1"))
    wait_until(lambda: waits(other))
    table.session.commit()
    thread.join()
    assert results == [1]
    assert other.one("select v from t where id = 1") == "first+"


def test_an_insert_waits_for_the_key_of_another(table: Client, connect: Connect) -> None:
    other = connect()
    table("delete from t where id = 1")
    thread, results = in_thread(lambda: other("insert into t values (1, 'again')"))
    wait_until(lambda: waits(other))
    table.session.rollback()
    thread.join()
    assert results[0].code == 1


def test_nowait_and_skip_locked_do_not_wait(table: Client, connect: Connect) -> None:
    other = connect()
    assert table("select v from t where id = 1 for update") == [("v1",)]
    with pytest.raises(OracleError, match="ORA-00054"):
        other("select v from t where id = 1 for update nowait")
    assert other("select id from t where id < 3 for update skip locked") == [("0",), ("2",)]
    with pytest.raises(OracleError, match="ORA-00054"):
        other("lock table t in exclusive mode nowait")
    table.session.rollback()
    assert other("select id from t where id = 1 for update nowait") == [("1",)]


def test_a_circle_of_waiters_is_a_deadlock(table: Client, connect: Connect) -> None:
    other = connect()
    table("update t set v = 'x' where id = 1")
    other("update t set v = 'y' where id = 2")
    thread, results = in_thread(lambda: table("update t set v = 'x' where id = 2"))
    wait_until(lambda: waits(table))
    with pytest.raises(OracleError, match="ORA-00060"):
        other("update t set v = 'y' where id = 1")
    other.session.rollback()
    thread.join()
    assert results == [1]


def test_a_waiting_statement_can_be_cancelled(table: Client, connect: Connect) -> None:
    other = connect()
    table("delete from t where id = 1")
    thread, results = in_thread(lambda: other("delete from t where id = 1"))
    wait_until(lambda: waits(other))
    other.session.interrupt()
    thread.join()
    assert results[0].code == 1013


def test_a_running_query_can_be_cancelled(shared: Client) -> None:
    query = "select count(*) from (select level l from dual connect by level < 3000000) where mod(l, 7) = 3"
    thread, results = in_thread(lambda: shared(query))
    wait_until(lambda: shared.session._running is not None)

    def is_cancelled() -> bool:
        shared.session.interrupt()  # nothing comes of one before the query's first step
        return not thread.is_alive()

    wait_until(is_cancelled)
    assert results[0].code == 1013


# --- the past --------------------------------------------------------------------------------------------------------


def test_as_of_scn_shows_the_table_as_it_was(table: Client) -> None:
    states = []
    for number in range(4):
        table("update t set v = :1 where id = :2", f"s{number}", number)
        table("delete from t where id = :1", 4 - number if number == 2 else 99)
        table("insert into t values (:1, 'new')", 100 + number)
        table.session.commit()
        states.append((table.scn(), rows(table)))
    table("update t set v = 'mine'")
    for scn, expected in states:
        assert table("select id, v from t as of scn :1 order by id", scn) == expected
        assert table("select count(*) from t as of scn :1", scn) == [(str(len(expected)),)]
    assert table(
        "select a.v, b.v from t as of scn :1 a join t b on b.id = a.id where a.id = 0", states[0][0]
    ) == [("s0", "mine")]


def test_an_scn_must_be_valid(table: Client) -> None:
    for scn in (table.scn() + 1000, 1):
        with pytest.raises(OracleError, match="ORA-08181"):
            table("select * from t as of scn :1", scn)


@pytest.mark.parametrize(
    "ddl",
    [
        "alter table t add (x number)",
        "alter table t modify (v varchar2(20))",
        "truncate table t",
    ],
)
def test_the_past_ends_at_a_change_of_the_table(table: Client, ddl: str) -> None:
    scn = table.scn()
    table(ddl)
    with pytest.raises(OracleError, match="ORA-01466"):
        table("select * from t as of scn :1", scn)
    assert len(table("select * from t as of scn :1", table.scn())) in (0, 5)


def test_the_past_has_columns_under_their_present_names(table: Client) -> None:
    """Also where they have swapped their names since."""
    scn = table.scn()
    before = table("select id, v from t order by id")
    table("alter table t rename column v to w")
    assert table("select id, w from t as of scn :1 order by id", scn) == before
    with pytest.raises(OracleError, match="ORA-00904"):
        table("select v from t as of scn :1", scn)
    table("alter table t rename column id to v")
    table("alter table t rename column w to id")
    assert table("select v, id from t as of scn :1 order by v", scn) == before


def test_supplemental_logging_leaves_the_past_alone(table: Client) -> None:
    scn = table.scn()
    table("alter table t add supplemental log data (all) columns")
    assert len(table("select * from t as of scn :1", scn)) == 5


def test_old_undo_is_gone() -> None:
    clock = [1_700_000_000.0]
    opened = open_database(now=lambda: clock[0])
    try:
        from tests.oracle_embedded.engine.conftest import Client

        admin = Client(opened.engine.open_session(Logon("REDOLAKE_ADMIN")))
        admin("alter system set undo_retention = 60")
        demo = Client(opened.engine.open_session(Logon("DEMO")))
        demo("create table t (id number)")
        demo("create table still (id number)")
        demo("insert into t values (1)")
        demo.session.commit()
        clock[0] += 10
        scn = demo.scn()
        clock[0] += 10
        demo("update t set id = 2")
        demo.session.commit()
        clock[0] += 50
        assert demo("select id from t as of scn :1", scn) == [("1",)]
        clock[0] += 50
        with pytest.raises(OracleError, match="ORA-01555"):
            demo("select id from t as of scn :1", scn)
        assert demo("select id from still as of scn :1", scn) == []
        assert demo.one("select to_char(scn_to_timestamp(:1), 'YYYY') from dual", scn) == "2023"
    finally:
        opened.close()


def test_as_of_timestamp_finds_the_scn_of_a_time() -> None:
    clock = [1_700_000_000.0]
    opened = open_database(now=lambda: clock[0])
    try:
        from tests.oracle_embedded.engine.conftest import Client

        demo = Client(opened.engine.open_session(Logon("DEMO")))
        demo("create table t (id number)")
        for number in range(3):
            clock[0] += 10
            demo("insert into t values (:1)", number)
            demo.session.commit()
        clock[0] += 10
        assert demo(
            "select count(*) from t as of timestamp systimestamp - interval '15' second"
        ) == [("2",)]
        with pytest.raises(OracleError, match="ORA-08180"):
            demo("select * from t as of timestamp date '2000-01-01'")
    finally:
        opened.close()


def test_current_scn_grows_even_when_idle(table: Client) -> None:
    first = table.scn()
    assert table.scn() > first


@pytest.mark.parametrize("waits", [False, True], ids=["idle", "waiting-for-a-row"])
def test_a_killed_session_is_rolled_back_and_does_nothing_more(
    connect: Connect, waits: bool
) -> None:
    holder, victim, admin = connect(), connect(), connect("REDOLAKE_ADMIN")
    holder("create table t (id number(9), v number(9))")
    holder("insert into t select level, 0 from dual connect by level <= 2")
    holder.session.commit()
    holder("update t set v = 1 where id = 1")
    victim("update t set v = 2 where id = 2")
    errors: list[OracleError] = []

    def wait_for_the_row() -> None:
        try:
            victim("update t set v = 2 where id = 1")
        except OracleError as error:
            errors.append(error)

    waiter = threading.Thread(target=wait_for_the_row)
    if waits:
        waiter.start()
        blocked = "select count(*) from v$session where blocking_session is not null"
        while admin.one(blocked) == "0":
            pass
    session_id, serial = victim.session.session_id, victim.session.serial
    admin(f"alter system kill session '{session_id},{serial}' immediate")
    if waits:
        waiter.join()
        assert [error.code for error in errors] == [28]
    with pytest.raises(OracleError, match="ORA-00028"):
        victim("select 1 from dual")
    holder.session.commit()
    assert holder("select v from t order by id") == [("1",), ("0",)]
    with pytest.raises(OracleError, match="ORA-00030"):
        admin("alter system kill session '9999,1'")
    own = admin.session
    with pytest.raises(OracleError, match="ORA-00027"):
        admin(f"alter system kill session '{own.session_id},{own.serial}'")
