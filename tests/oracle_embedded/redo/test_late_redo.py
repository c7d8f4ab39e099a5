"""Redo of open transactions reaches the log late, with its old SCNs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from oracle_embedded.api import OracleError, TableVersion, Value
from oracle_embedded.redo import Wart
from tests.oracle_embedded.redo.conftest import World, num
from tests.oracle_embedded.redo.driver import Live, live, operations, run

ROW: dict[str, Value] = {"ID": num(1), "NAME": b"a" * 100, "AGE": None}
LATE = frozenset({Wart.LATE_REDO})
CHANGES = "seg_owner = 'DEMO' and operation_code in (1, 2, 3)"


@pytest.fixture
def late(tmp_path: Path) -> Iterator[Live]:
    with live(tmp_path, Wart.LATE_REDO, strand_records=100) as running:
        run(running.connect(), "create table t (id number primary key, name varchar2(20))")
        yield running


# --- through the driver ----------------------------------------------------------------------------------------------


def test_rows_of_an_open_transaction_are_missing_until_it_commits(late: Live) -> None:
    owner, miner = late.connect(), late.miner()
    run(owner, "insert into t values (1, 'a')", "insert into t values (2, 'b')")
    (bound,) = miner.query("select current_scn from v$database")
    assert miner.mine(where=CHANGES) == []
    owner.commit()
    rows = miner.mine(where=CHANGES)
    assert operations(rows) == ["INSERT", "INSERT"]
    assert all(row["SCN"] < bound["CURRENT_SCN"] for row in rows)


def test_late_rows_stand_behind_rows_with_higher_scns(late: Live) -> None:
    slow, quick, miner = late.connect(), late.connect(), late.miner()
    run(slow, "insert into t values (1, 'slow')")
    run(quick, "insert into t values (2, 'quick')")
    quick.commit()
    slow.commit()
    first, second = miner.mine(where=CHANGES)
    assert ("quick" in first["SQL_REDO"], "slow" in second["SQL_REDO"]) == (True, True)
    assert first["SCN"] > second["SCN"]
    assert first["RS_ID"] < second["RS_ID"]


def test_another_sessions_commit_binds_nothing(late: Live) -> None:
    slow, quick, miner = late.connect(), late.connect(), late.miner()
    run(slow, "insert into t values (1, 'slow')")
    run(quick, "insert into t values (2, 'quick')")
    quick.commit()
    assert operations(miner.mine(where=CHANGES)) == ["INSERT"]


def test_a_log_switch_binds_what_is_open_into_the_old_log(late: Live) -> None:
    owner, miner = late.connect(), late.miner()
    run(owner, "insert into t values (1, 'a')")
    late.admin("alter system switch logfile")
    (log,) = miner.query("select * from v$archived_log")
    (row,) = miner.mine(where=CHANGES)
    assert row["RBASQN"] == log["SEQUENCE#"]
    assert log["FIRST_CHANGE#"] <= row["SCN"] < log["NEXT_CHANGE#"]


def test_a_full_strand_is_bound_while_its_transaction_is_open(late: Live) -> None:
    owner, miner = late.connect(), late.miner()
    for at in range(150):
        run(owner, f"insert into t values ({at}, 'x')")
    rows = miner.mine(where=CHANGES)
    assert len(rows) == 99  # and the START
    owner.rollback()


def test_the_last_redo_change_says_nothing_of_open_transactions(late: Live) -> None:
    owner, miner = late.connect(), late.miner()
    run(owner, "insert into t values (1, 'a')")
    (thread,) = miner.query("select last_redo_change# from v$thread")
    assert miner.mine(where=CHANGES) == []
    owner.commit()
    (row,) = miner.mine(where=CHANGES)
    assert row["SCN"] < thread["LAST_REDO_CHANGE#"]


def test_a_visible_commit_has_all_its_rows_at_lower_addresses(late: Live) -> None:
    sessions = [late.connect() for _ in range(4)]
    for at in range(60):
        run(sessions[at % 4], f"insert into t values ({at}, 'x')")
    for session in sessions:
        session.commit()
    rows = late.miner().mine(where="seg_owner = 'DEMO' or operation_code in (6, 7)")
    counts: dict[bytes, list[str]] = {}
    for row in rows:
        counts.setdefault(row["XID"], []).append(row["OPERATION"])
    written = [kinds for kinds in counts.values() if "INSERT" in kinds]
    assert written == [["START", *["INSERT"] * 15, "COMMIT"]] * 4


def test_redo_is_in_time_when_the_oddity_is_switched_off(late: Live) -> None:
    owner, miner = late.connect(), late.miner()
    run(owner, "insert into t values (1, 'a')")
    late.admin("begin dbms_redolake_faults.set_wart('late_redo', 0); end;")
    assert operations(miner.mine(where=CHANGES)) == ["INSERT"]
    run(owner, "insert into t values (2, 'b')")
    assert operations(miner.mine(where=CHANGES)) == ["INSERT", "INSERT"]
    late.admin("begin dbms_redolake_faults.set_wart('late_redo'); end;")
    run(owner, "insert into t values (3, 'c')")
    assert operations(miner.mine(where=CHANGES)) == ["INSERT", "INSERT"]
    owner.commit()
    assert len(miner.mine(where=CHANGES)) == 3


# --- without an engine -----------------------------------------------------------------------------------------------


def scns_of(rows: list[dict[str, Any]]) -> list[int]:
    return [row["SCN"] for row in rows if row["OPERATION"] == "INSERT"]


def test_each_log_holds_all_redo_of_its_scn_range(tmp_path: Path, people: TableVersion) -> None:
    world = World(tmp_path / "small.db", log_bytes=8192, warts=LATE, strand_records=7)
    open_ones = [world.begin() for _ in range(3)]
    written = [world.insert(open_ones[at % 3], people, ROW) for at in range(200)]
    for tx in open_ones:
        world.commit(tx)
    logs = world.view("V$ARCHIVED_LOG")
    assert len(logs) > 5
    for earlier, later in pairwise(logs):
        assert earlier["NEXT_CHANGE#"] == later["FIRST_CHANGE#"]
    rows = world.mine()
    assert sorted(scns_of(rows)) == written
    assert scns_of(rows) != written
    for log in logs:
        found = [row["SCN"] for row in rows if row["RBASQN"] == log["SEQUENCE#"]]
        assert all(log["FIRST_CHANGE#"] <= scn < log["NEXT_CHANGE#"] for scn in found)
    assert [row["RS_ID"] for row in rows] == sorted(row["RS_ID"] for row in rows)


def test_the_index_of_scns_finds_late_rows(tmp_path: Path, people: TableVersion) -> None:
    world = World(tmp_path / "many.db", warts=LATE, strand_records=900, strand_bytes=2**30)
    slow = world.begin()
    early = [world.insert(slow, people, ROW) for _ in range(3)]
    for _ in range(3000):
        quick = world.begin()
        world.insert(quick, people, ROW)
        world.commit(quick)
    world.commit(slow)
    rows = world.mine(startscn=early[0], endscn=early[-1])
    assert scns_of(rows) == early
    middle = early[-1] + 4000
    found = scns_of(world.mine(startscn=middle, endscn=middle + 9))
    assert found
    assert all(middle <= scn <= middle + 9 for scn in found)


def test_a_killed_process_loses_no_redo_that_waited(tmp_path: Path, people: TableVersion) -> None:
    world = World(tmp_path / "ora.db", warts=LATE)
    slow, quick = world.begin(), world.begin()
    scn = world.insert(slow, people, ROW)
    world.insert(quick, people, ROW)
    world.commit(quick)
    world.reopen(scn=world.db.scn + 100)
    assert len(scns_of(world.mine())) == 1
    world.db.open[slow.xid] = slow
    world.rollback(slow)
    rows = world.mine()
    assert scns_of(rows)[1] == scn
    assert rows[-1]["OPERATION"] == "ROLLBACK"


def test_a_statement_rolled_back_in_sqlite_leaves_the_strand_as_it_was(
    tmp_path: Path, people: TableVersion
) -> None:
    world = World(tmp_path / "ora.db", warts=LATE)
    slow = world.begin()
    kept = world.insert(slow, people, ROW)

    def fail() -> None:
        with world.db.writing():
            world.insert(slow, people, ROW)
            raise OracleError(1013, "user requested cancel of current operation")

    with pytest.raises(OracleError):
        fail()
    world.commit(slow)
    assert scns_of(world.mine()) == [kept]


def test_a_transaction_that_begins_later_has_a_later_start(
    tmp_path: Path, people: TableVersion
) -> None:
    """The START of a transaction is never below the log in which it lies."""
    world = World(tmp_path / "ora.db", warts=LATE)
    with world.db.writing():
        world.xids += 1
    early = world.begin()
    world.redo.switch_log()
    world.insert(early, people, ROW)
    world.commit(early)
    (log,) = world.view("V$ARCHIVED_LOG")
    starts = [row for row in world.mine() if row["OPERATION"] == "START"]
    assert [row["RBASQN"] for row in starts] == [log["SEQUENCE#"]]


def test_a_start_is_not_below_a_log_that_began_behind_the_first_lock(late: Live) -> None:
    """A statement that finds no row locks its table and writes no redo; the redo of the transaction begins with its first change."""
    owner, miner = late.connect(), late.miner()
    run(owner, "delete from t where id = 9")
    late.admin("alter system switch logfile")
    run(owner, "insert into t values (1, 'a')")
    owner.commit()
    (log,) = miner.query("select * from v$log where status = 'CURRENT'")
    rows = miner.mine(where="username = 'DEMO'")[-3:]
    assert operations(rows) == ["START", "INSERT", "COMMIT"]
    assert [row["RBASQN"] for row in rows] == [log["SEQUENCE#"]] * 3
    assert all(log["FIRST_CHANGE#"] <= row["SCN"] for row in rows)
