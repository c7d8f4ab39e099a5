"""Two instances, each with a redo thread of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import oracledb
import pytest

from oracle_embedded.redo import Wart
from tests.oracle_embedded.redo.driver import Live, Miner, Row, live, run

INSERTS = "operation_code = 1 and seg_owner = 'DEMO'"
CURRENT = "select f.member from v$log l join v$logfile f on f.group# = l.group# where l.status = 'CURRENT'"
GROUPS = 3


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Live]:
    """Thread 2 is enabled and open; T is empty."""
    with live(tmp_path, groups=GROUPS) as running:
        run(running.connect(), "create table t (id number primary key, name varchar2(20))")
        running.admin("alter database enable public thread 2")
        running.fault("open_thread(2)")
        yield running


def second(cluster: Live) -> Any:
    """A session of the second instance."""
    connection = cluster.connect()
    run(connection, "begin dbms_redolake_faults.use_thread(2); end;")
    return connection


def insert(connection: Any, *keys: int, name: str = "x") -> None:
    for key in keys:
        run(connection, f"insert into t values ({key}, '{name}')")


def mine(miner: Miner, low: int = 0, high: int = 0, where: str = INSERTS) -> list[Row]:
    """With the current logs of all threads, and the archived ones that no current file repeats."""
    files = miner.query(
        f"select name from v$archived_log where name is not null union all {CURRENT}"
    )
    miner.add(*(row["NAME"] for row in files))
    miner.start(low, high)
    try:
        return miner.contents(where)
    finally:
        miner.end()


def thread(miner: Miner, number: int) -> Row:
    (row,) = miner.query("select * from v$thread where thread# = :n", n=number)
    return row


def code(call: Any) -> str:
    with pytest.raises(oracledb.DatabaseError) as caught:
        call()
    (error,) = caught.value.args
    return str(error.full_code)


# --- rows ------------------------------------------------------------------------------------------------------------


def test_each_instance_writes_the_logs_of_its_thread(cluster: Live) -> None:
    first, other, miner = cluster.connect(), second(cluster), cluster.miner()
    insert(first, 1)
    insert(other, 2)
    insert(first, 3)
    for connection in (first, other):
        connection.commit()
    rows = mine(miner)
    assert [row["THREAD#"] for row in rows] == [1, 2, 1]
    assert [row["SCN"] for row in rows] == sorted(row["SCN"] for row in rows)
    own = {number: [r for r in rows if r["THREAD#"] == number] for number in (1, 2)}
    for found in own.values():
        addresses = [row["RS_ID"] for row in found]
        assert addresses == sorted(addresses)


def test_addresses_of_two_threads_mean_nothing_to_each_other(cluster: Live) -> None:
    first, other = cluster.connect(), second(cluster)
    insert(other, 1)
    insert(first, 2)
    for connection in (first, other):
        connection.commit()
    of_second, of_first = mine(cluster.miner())
    assert of_second["SCN"] < of_first["SCN"]
    assert of_second["RBASQN"] == of_first["RBASQN"] == 1
    assert of_second["RS_ID"] < of_first["RS_ID"]  # by chance: thread 1 has written more
    for key in range(3, 200):
        insert(other, key)
    other.commit()
    insert(first, 1000)
    first.commit()
    rows = mine(cluster.miner())
    assert rows[-1]["THREAD#"] == 1
    assert rows[-1]["RS_ID"] < rows[-2]["RS_ID"]


def test_late_redo_keeps_its_place_in_its_thread(cluster: Live) -> None:
    cluster.opened.redo.set_wart(Wart.LATE_REDO, shown=True)
    slow, quick, other = cluster.connect(), cluster.connect(), second(cluster)
    insert(slow, 1, name="slow")
    insert(quick, 2, name="quick")
    quick.commit()
    insert(other, 3, name="other")
    other.commit()
    slow.commit()
    insert(other, 4, name="last")
    other.commit()
    names = [row["SQL_REDO"].split("'")[3] for row in mine(cluster.miner())]
    assert names == ["quick", "slow", "other", "last"]


def test_a_switch_binds_the_strands_of_its_thread_only(cluster: Live) -> None:
    cluster.opened.redo.set_wart(Wart.LATE_REDO, shown=True)
    first, other, miner = cluster.connect(), second(cluster), cluster.miner()
    insert(first, 1)
    insert(other, 2)
    cluster.admin("alter system switch logfile")
    assert [row["THREAD#"] for row in mine(miner)] == [1]
    cluster.admin("alter system archive log current")
    assert [row["THREAD#"] for row in mine(miner)] == [1, 2]
    logs = miner.query("select thread#, sequence# from v$archived_log order by 1, 2")
    assert [(row["THREAD#"], row["SEQUENCE#"]) for row in logs] == [(1, 1), (1, 2), (2, 1)]


def test_without_a_threads_logs_its_rows_are_missing(cluster: Live) -> None:
    first, other, miner = cluster.connect(), second(cluster), cluster.miner()
    insert(first, 1)
    insert(other, 2)
    for connection in (first, other):
        connection.commit()
    cluster.admin("alter system archive log current")
    (file,) = miner.query("select name from v$archived_log where thread# = 1")
    miner.add(file["NAME"])
    miner.start()
    assert [row["THREAD#"] for row in miner.contents(INSERTS)] == [1]


# --- views -----------------------------------------------------------------------------------------------------------


def test_each_thread_has_groups_sequences_and_files_of_its_own(cluster: Live) -> None:
    miner = cluster.miner()
    logs = miner.query("select * from v$log order by group#")
    assert [row["THREAD#"] for row in logs] == [1] * GROUPS + [2] * GROUPS
    assert [row["GROUP#"] for row in logs if row["STATUS"] == "CURRENT"] == [1, GROUPS + 1]
    assert len({row["MEMBER"] for row in miner.query("select member from v$logfile")}) == 6
    cluster.admin("alter system archive log current", "alter system archive log current")
    archived = miner.query("select * from v$archived_log order by thread#, sequence#")
    assert [(row["THREAD#"], row["SEQUENCE#"]) for row in archived] == [
        (1, 1), (1, 2), (2, 1), (2, 2),
    ]  # fmt: skip
    assert len({row["NAME"] for row in archived}) == 4
    for earlier, later in pairwise(row for row in archived if row["THREAD#"] == 2):
        assert earlier["NEXT_CHANGE#"] == later["FIRST_CHANGE#"]


def test_a_switch_is_about_the_sessions_own_thread(cluster: Live) -> None:
    connection = cluster.connect("REDOLAKE_ADMIN")
    run(
        connection,
        "begin dbms_redolake_faults.use_thread(2); end;",
        "alter system switch logfile",
    )
    archived = cluster.miner().query("select thread# from v$archived_log")
    assert [row["THREAD#"] for row in archived] == [2]


def test_v_thread_says_what_each_thread_is(cluster: Live) -> None:
    miner = cluster.miner()
    other = second(cluster)
    insert(other, 1)
    other.commit()
    one, two = thread(miner, 1), thread(miner, 2)
    assert (one["STATUS"], one["ENABLED"]) == (two["STATUS"], two["ENABLED"]) == ("OPEN", "PUBLIC")
    assert one["INSTANCE"] != two["INSTANCE"]
    assert two["ENABLE_CHANGE#"] > one["ENABLE_CHANGE#"]
    assert (two["CURRENT_GROUP#"], two["SEQUENCE#"]) == (GROUPS + 1, 1)
    (row,) = mine(miner)
    assert two["LAST_REDO_CHANGE#"] > row["SCN"]


def test_v_transaction_shows_the_own_instances_transactions(cluster: Live) -> None:
    first, other, miner = cluster.connect(), second(cluster), cluster.miner()
    insert(first, 1)
    insert(other, 2)
    assert len(miner.query("select * from v$transaction")) == 1
    rows = miner.query("select inst_id, xid from gv$transaction order by 1")
    assert [row["INST_ID"] for row in rows] == [1, 2]
    assert len({row["XID"] for row in rows}) == 2


def test_gv_views_repeat_the_control_file_for_every_instance(cluster: Live) -> None:
    miner = cluster.miner()
    rows = miner.query("select inst_id, thread#, group# from gv$log")
    assert len(rows) == 2 * 2 * GROUPS
    assert {row["INST_ID"] for row in rows} == {1, 2}
    cluster.fault("close_thread(2)")
    assert {row["INST_ID"] for row in miner.query("select inst_id from gv$log")} == {1}


# --- closing, opening, enabling --------------------------------------------------------------------------------------


def test_a_closed_thread_ends_its_redo_and_goes_on_with_the_next_sequence(cluster: Live) -> None:
    other, miner = second(cluster), cluster.miner()
    insert(other, 1)
    other.commit()
    cluster.fault("close_thread(2)")
    closed = thread(miner, 2)
    (ended,) = miner.query("select * from v$archived_log where thread# = 2")
    assert (closed["STATUS"], closed["ENABLED"]) == ("CLOSED", "PUBLIC")
    assert closed["CHECKPOINT_CHANGE#"] == ended["NEXT_CHANGE#"]
    first = cluster.connect()
    insert(first, 2)
    first.commit()
    assert [row["THREAD#"] for row in mine(miner, high=10**12)] == [2, 1]
    cluster.fault("open_thread(2)")
    (current,) = miner.query("select * from v$log where thread# = 2 and status = 'CURRENT'")
    assert current["SEQUENCE#"] == ended["SEQUENCE#"] + 1
    assert current["FIRST_CHANGE#"] > ended["NEXT_CHANGE#"]
    insert(second(cluster), 3)
    assert [row["THREAD#"] for row in mine(miner)] == [2, 1, 2]


def test_a_thread_that_was_closed_at_the_start_of_the_range_is_mined_from_its_opening(
    cluster: Live,
) -> None:
    miner = cluster.miner()
    cluster.fault("close_thread(2)")
    first = cluster.connect()
    insert(first, 1)
    first.commit()
    (begin,) = miner.query("select current_scn from v$database")
    cluster.fault("open_thread(2)")
    other = second(cluster)
    insert(other, 2)
    other.commit()
    miner.add(*(row["MEMBER"] for row in miner.query(CURRENT)))
    miner.start(low=int(begin["CURRENT_SCN"]))
    assert [row["THREAD#"] for row in miner.contents(INSERTS)] == [2]


def test_a_thread_is_not_closed_under_its_transactions(cluster: Live) -> None:
    other = second(cluster)
    insert(other, 1)
    assert code(lambda: cluster.fault("close_thread(2)")) == "ORA-01097"
    other.rollback()
    cluster.fault("close_thread(2)")


def test_a_private_thread_holds_redo_of_users_too(cluster: Live) -> None:
    cluster.admin("alter database enable thread 3")
    cluster.fault("open_thread(3)")
    connection = cluster.connect()
    run(connection, "begin dbms_redolake_faults.use_thread(3); end;")
    insert(connection, 1)
    connection.commit()
    miner = cluster.miner()
    assert thread(miner, 3)["ENABLED"] == "PRIVATE"
    assert [row["THREAD#"] for row in mine(miner)] == [3]


def test_a_thread_is_enabled_opened_and_disabled_in_order(cluster: Live) -> None:
    assert code(lambda: cluster.admin("alter database enable public thread 2")) == "ORA-01612"
    assert code(lambda: cluster.fault("open_thread(3)")) == "ORA-01618"
    assert code(lambda: cluster.fault("use_thread(3)")) == "ORA-01034"
    assert code(lambda: cluster.admin("alter database disable thread 2")) == "ORA-01615"
    cluster.fault("close_thread(2)")
    cluster.admin("alter database disable thread 2")
    row = thread(cluster.miner(), 2)
    assert (row["STATUS"], row["ENABLED"]) == ("CLOSED", "DISABLED")
    assert row["DISABLE_CHANGE#"] > row["ENABLE_CHANGE#"]


def test_threads_outlive_the_process(tmp_path: Path) -> None:
    with live(tmp_path) as running:
        run(running.connect(), "create table t (id number primary key, name varchar2(20))")
        running.admin("alter database enable public thread 2")
        running.fault("open_thread(2)")
        insert(second(running), 1)
        running.admin("alter system archive log current")
    with live(tmp_path) as again:
        insert(second(again), 2)
        rows = mine(again.miner())
        assert [(row["THREAD#"], row["RBASQN"]) for row in rows] == [(2, 1), (2, 2)]
