"""One log write gathers transactions in any order; undo rows that LogMiner does not support."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from oracle_embedded.redo import Wart
from tests.oracle_embedded.redo.driver import Live, live, run

WARTS = (Wart.LATE_REDO, Wart.GATHERED_WRITES)


@pytest.fixture
def gathered(tmp_path: Path) -> Iterator[Live]:
    with live(tmp_path, *WARTS) as running:
        run(running.connect(), "create table t (id number primary key, name varchar2(20))")
        yield running


def test_a_commit_can_stand_in_front_of_its_rows_and_of_older_transactions(gathered: Live) -> None:
    owner, miner = gathered.connect(), gathered.miner()
    for number in range(20):
        run(owner, f"insert into t values ({number}, 'a')")
        owner.commit()
    rows = [row for row in miner.mine() if row["OPERATION_CODE"] in (1, 6, 7)]
    ends = {bytes(row["XID"]): at for at, row in enumerate(rows) if row["OPERATION_CODE"] == 7}
    changes = [(at, row) for at, row in enumerate(rows) if row["OPERATION_CODE"] == 1]
    assert len(changes) == 20
    assert any(ends[bytes(row["XID"])] < at for at, row in changes), "behind its COMMIT"
    scns = [row["SCN"] for row in rows]
    assert scns != sorted(scns)
    addresses = [row["RS_ID"] for row in rows]
    assert addresses == sorted(addresses), "the order of the log"


def test_what_was_committed_is_in_the_log_whenever_somebody_looks(gathered: Live) -> None:
    owner, miner = gathered.connect(), gathered.miner()
    run(owner, "insert into t values (1, 'a')")
    assert miner.mine(where="operation_code = 1") == []
    owner.commit()
    assert len(miner.mine(where="operation_code = 1")) == 1


def test_undo_rows_can_have_code_255_and_their_commits_scn(tmp_path: Path) -> None:
    with live(tmp_path, unsupported_undo=True) as running:
        owner, miner = running.connect(), running.miner()
        run(owner, "create table t (id number primary key, name varchar2(20))")
        run(
            owner,
            "insert into t values (1, 'a')",
            "savepoint s",
            "update t set name = 'b'",
            "rollback to s",
            "update t set name = 'c'",
        )
        owner.commit()
        rows = miner.mine(where="seg_owner = 'DEMO' and operation_code in (1, 3, 255)")
        assert [row["OPERATION_CODE"] for row in rows] == [1, 3, 255, 3]
        _, forward, undo, last = rows
        assert (undo["ROLLBACK"], undo["ROW_ID"]) == (1, forward["ROW_ID"])
        assert undo["SCN"] > last["SCN"]
        assert forward["RS_ID"] < undo["RS_ID"] < last["RS_ID"]
