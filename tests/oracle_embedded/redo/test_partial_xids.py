"""XIDs without their sequence, ROLLBACK rows that end nothing, transactions that are none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from oracle_embedded.api import RowOp, TableVersion, Value
from oracle_embedded.redo import Wart
from tests.oracle_embedded.redo.conftest import World, num
from tests.oracle_embedded.redo.driver import Live, live, run

ROW: dict[str, Value] = {"ID": num(1), "NAME": b"a", "AGE": None}
NO_ADDRESS = "0x000000.00000000.0000"
ENDS = "operation_code in (1, 2, 3, 7, 36) and (seg_owner = 'DEMO' or operation_code > 3)"
WARTS = (Wart.PARTIAL_XIDS, Wart.SPURIOUS_ROLLBACKS, Wart.EMPTY_TRANSACTIONS)


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[Live]:
    with live(tmp_path, *WARTS, partial_xid_every=1, idle_redo_seconds=0) as running:
        run(running.connect(), "create table t (id number primary key, name varchar2(20))")
        running.admin("alter system switch logfile")
        yield running


def found(running: Live) -> list[tuple[str, int, bool]]:
    """Operation, ROLLBACK, and whether the XID is partial, of DEMO's rows and of ends in the newest transaction's log."""
    rows = running.miner().mine(where=ENDS)
    newest = max(row["RBASQN"] for row in rows)
    return [
        (row["OPERATION"], row["ROLLBACK"], row["XID"].endswith(b"\xff" * 4))
        for row in rows
        if row["RBASQN"] in (0, newest)
    ]


def test_undo_rows_and_ends_have_partial_xids_in_the_online_log(odd: Live) -> None:
    owner = odd.connect()
    run(owner, "insert into t values (1, 'a')", "update t set name = 'b'")
    owner.rollback()
    run(owner, "insert into t values (2, 'a')")
    owner.commit()
    assert found(odd) == [
        ("INSERT", 0, False),
        ("UPDATE", 0, False),
        ("UPDATE", 1, True),
        ("DELETE", 1, True),
        ("ROLLBACK", 0, True),
        ("INSERT", 0, False),
        ("COMMIT", 0, True),
    ]


def test_mined_again_from_the_archive_they_have_their_full_xids(odd: Live) -> None:
    owner = odd.connect()
    run(owner, "insert into t values (1, 'a')", "savepoint s", "update t set name = 'b'")
    run(owner, "rollback to s")
    owner.rollback()
    odd.admin("alter system switch logfile")
    assert found(odd) == [
        ("INSERT", 0, False),
        ("UPDATE", 0, False),
        ("UPDATE", 1, False),
        ("DELETE", 1, False),
        ("ROLLBACK", 0, False),
    ]


def test_all_parts_of_a_partial_xid_agree(odd: Live) -> None:
    owner = odd.connect()
    run(owner, "insert into t values (1, 'a')")
    owner.rollback()
    rows = odd.miner().mine(where=ENDS)
    insert, undo = rows[-3], rows[-2]
    assert (undo["XIDUSN"], undo["XIDSLT"]) == (insert["XIDUSN"], insert["XIDSLT"])
    assert (undo["XIDSQN"], undo["PXIDSQN"]) == (4294967295, 4294967295)
    assert undo["XID"] == undo["PXID"] == insert["XID"][:4] + b"\xff" * 4


def test_a_rollback_row_may_close_a_savepoint_only(odd: Live) -> None:
    owner = odd.connect()
    run(owner, "insert into t values (1, 'a')", "savepoint s", "update t set name = 'b'")
    run(owner, "rollback to s", "update t set name = 'c'")
    owner.commit()
    assert found(odd) == [
        ("INSERT", 0, False),
        ("UPDATE", 0, False),
        ("UPDATE", 1, True),
        ("ROLLBACK", 0, True),
        ("UPDATE", 0, False),
        ("COMMIT", 0, True),
    ]
    (spurious,) = (r for r in odd.miner().mine() if r["OPERATION"] == "ROLLBACK")
    assert spurious["RS_ID"].strip() == NO_ADDRESS
    assert (spurious["RBASQN"], spurious["RBABLK"], spurious["RBABYTE"]) == (0, 0, 0)


def test_a_failed_statement_is_closed_by_a_rollback_row_too(odd: Live) -> None:
    owner = odd.connect()
    run(owner, "insert into t select level, 'x' from dual connect by level <= 2")
    with pytest.raises(Exception, match="ORA-00001"):
        run(owner, "update t set id = 2")
    assert ("ROLLBACK", 0, True) in found(odd)
    owner.commit()


def test_a_rollback_row_in_the_online_log_has_no_address(odd: Live) -> None:
    owner = odd.connect()
    run(owner, "insert into t values (1, 'a')")
    owner.rollback()
    rows = odd.miner().mine()
    (end,) = (row for row in rows if row["OPERATION"] == "ROLLBACK")
    assert end["RS_ID"].strip() == NO_ADDRESS
    others = [row for row in rows if row is not end]
    assert all(row["RS_ID"].strip() != NO_ADDRESS for row in others)


def test_every_other_transaction_has_partial_xids_by_default(
    tmp_path: Path, people: TableVersion
) -> None:
    world = World(tmp_path / "ora.db", warts=frozenset({Wart.PARTIAL_XIDS}))
    for _ in range(4):
        tx = world.begin()
        world.insert(tx, people, ROW)
        world.commit(tx)
    ends = [row for row in world.mine() if row["OPERATION"] == "COMMIT"]
    assert [row["XIDSQN"] == 0xFFFFFFFF for row in ends] == [False, True, False, True]


def test_ends_of_transactions_that_began_before_the_range_have_partial_xids(
    tmp_path: Path, people: TableVersion
) -> None:
    world = World(tmp_path / "ora.db", warts=frozenset({Wart.PARTIAL_XIDS}), partial_xid_every=1)
    tx = world.begin()
    world.insert(tx, people, ROW)
    later = world.insert(tx, people, ROW)
    world.change(tx, people, RowOp.DELETE, ROW, None, rollback=True)
    world.commit(tx)
    world.redo.switch_log()
    partial = {
        (row["OPERATION"], row["ROLLBACK"]): row["XIDSQN"] == 0xFFFFFFFF
        for row in world.mine(startscn=later)
    }
    assert partial == {("INSERT", 0): False, ("DELETE", 1): True, ("COMMIT", 0): True}


def test_a_filter_on_the_operation_finds_the_rollback_of_a_savepoint(
    tmp_path: Path, people: TableVersion
) -> None:
    world = World(tmp_path / "ora.db", warts=frozenset({Wart.SPURIOUS_ROLLBACKS}))
    tx = world.begin()
    world.insert(tx, people, ROW)
    world.change(tx, people, RowOp.DELETE, ROW, None, rollback=True)
    world.undone(tx)
    world.add_all_logs()
    world.start("DICT_FROM_ONLINE_CATALOG")
    (row,) = world.view("V$LOGMNR_CONTENTS", ("OPERATION_CODE", "=", num(36)))
    assert (row["SQL_REDO"], row["XIDSQN"]) == ("rollback;", 0xFFFFFFFF)
    world.call("DBMS_LOGMNR.END_LOGMNR")
    world.commit(tx)
    committed = world.mine("COMMITTED_DATA_ONLY")
    assert "ROLLBACK" not in {row["OPERATION"] for row in committed}


# --- transactions that are none --------------------------------------------------------------------------------------


def test_a_transaction_that_only_locked_rows_commits_without_a_thread(odd: Live) -> None:
    owner = odd.connect()
    run(owner, "insert into t values (1, 'a')")
    owner.commit()
    run(owner, "select * from t for update")
    owner.commit()
    rows = odd.miner().mine(where="operation_code in (6, 7)")
    start, end = [row for row in rows if row["XID"] != bytes(8)][-2:]
    assert (start["OPERATION"], start["THREAD#"]) == ("START", 1)
    assert (end["OPERATION"], end["THREAD#"], end["SQL_REDO"]) == ("COMMIT", 0, "commit;")


def test_the_instance_writes_starts_without_an_xid(odd: Live) -> None:
    miner = odd.miner()
    miner.query("select * from v$thread")
    rows = [row for row in miner.mine(where="operation_code = 6") if row["XID"] == bytes(8)]
    assert rows
    assert {row["USERNAME"] for row in rows} == {"UNKNOWN"}


def test_none_of_it_is_seen_when_it_is_switched_off(odd: Live) -> None:
    for wart in WARTS:
        odd.opened.redo.set_wart(wart, shown=False)
    owner = odd.connect()
    run(owner, "insert into t values (1, 'a')", "savepoint s", "update t set name = 'b'")
    run(owner, "rollback to s")
    owner.commit()
    run(owner, "select * from t for update")
    owner.commit()
    assert found(odd) == [
        ("INSERT", 0, False),
        ("UPDATE", 0, False),
        ("UPDATE", 1, False),
        ("COMMIT", 0, False),
    ]
