"""Log groups, switches, archiving, deletion, and what survives a kill."""

from __future__ import annotations

import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from oracle_embedded.api import OracleError, RowOp, TableVersion, Value
from oracle_embedded.redo import RedoSettings
from tests.oracle_embedded.redo.conftest import World, num

ROW: dict[str, Value] = {"ID": num(1), "NAME": b"a" * 100, "AGE": None}


def archived(world: World) -> list[dict[str, Any]]:
    return world.view("V$ARCHIVED_LOG")


@pytest.fixture
def small(tmp_path: Path) -> World:
    return World(tmp_path / "small.db", log_bytes=8192)


def test_a_full_log_is_switched_and_archived(small: World, people: TableVersion) -> None:
    tx = small.begin()
    for _ in range(200):
        small.insert(tx, people, ROW)
    small.commit(tx)
    logs = archived(small)
    assert len(logs) > 3
    assert [log["SEQUENCE#"] for log in logs] == list(range(1, len(logs) + 1))
    for earlier, later in pairwise(logs):
        assert earlier["NEXT_CHANGE#"] == later["FIRST_CHANGE#"]
    assert all(log["BLOCKS"] * log["BLOCK_SIZE"] <= 8192 for log in logs)
    online = small.view("V$LOG")
    assert sorted(log["STATUS"] for log in online) == ["ACTIVE", "CURRENT", "INACTIVE"]
    current = next(log for log in online if log["STATUS"] == "CURRENT")
    assert current["FIRST_CHANGE#"] == logs[-1]["NEXT_CHANGE#"]
    assert current["NEXT_CHANGE#"] == 2**64 - 1
    assert len([row for row in small.mine() if row["OPERATION"] == "INSERT"]) == 200


def test_each_log_holds_the_records_of_its_scn_range(small: World, people: TableVersion) -> None:
    tx = small.begin()
    for _ in range(100):
        small.insert(tx, people, ROW)
    logs = archived(small)
    for log in logs:
        if small.view("V$LOGMNR_LOGS"):
            small.call("DBMS_LOGMNR.END_LOGMNR")
        small.call("DBMS_LOGMNR.ADD_LOGFILE", logfilename=log["NAME"])
        small.start("DICT_FROM_ONLINE_CATALOG")
        rows = small.view("V$LOGMNR_CONTENTS")
        assert rows
        assert {row["RBASQN"] for row in rows} == {log["SEQUENCE#"]}
        assert all(log["FIRST_CHANGE#"] <= row["SCN"] < log["NEXT_CHANGE#"] for row in rows)


def test_one_scn_is_never_split_over_two_logs(small: World, people: TableVersion) -> None:
    tx = small.begin()
    scn = small.db.next_scn()
    for _ in range(100):
        small.insert(tx, people, ROW, scn=scn)
    assert archived(small) == []
    small.insert(tx, people, ROW)
    assert [log["NEXT_CHANGE#"] for log in archived(small)] == [scn + 1]


def test_switch_logfile_archives_under_a_real_name(world: World) -> None:
    for statement in ("SWITCH LOGFILE", "ARCHIVE LOG CURRENT"):
        world.db.system[statement](world.session)
    logs = archived(world)
    (database,) = world.view("V$DATABASE")
    base = "/opt/oracle/oradata/ORCLCDB/archive"
    assert [log["NAME"] for log in logs] == [
        f"{base}/1_{sequence}_{logs[0]['RESETLOGS_ID']}.arc" for sequence in (1, 2)
    ]
    for log in logs:
        assert log["RESETLOGS_CHANGE#"] == database["RESETLOGS_CHANGE#"]
        assert log["RESETLOGS_TIME"] == database["RESETLOGS_TIME"]
        assert (log["STATUS"], log["ARCHIVED"], log["DEST_ID"]) == ("A", "YES", 1)
    history = world.view("V$LOG_HISTORY")
    assert [row["SEQUENCE#"] for row in history] == [1, 2]
    assert world.view("V$THREAD")[0]["SEQUENCE#"] == 3


def test_a_deleted_archived_log_keeps_its_entry(world: World, people: TableVersion) -> None:
    world.insert(world.begin(), people, ROW)
    for _ in range(3):
        world.redo.switch_log()
    world.redo.delete_archived_log(1)
    first = archived(world)[0]
    assert (first["NAME"], first["STATUS"], first["DELETED"]) == (None, "D", "YES")
    held = world.db._connection.execute("SELECT count(*) FROM redo_record").fetchone()
    assert held == (0,)
    with pytest.raises(OracleError, match="ORA-00308"):
        world.redo.delete_archived_log(1)


def test_without_archiving_overwritten_logs_are_gone(tmp_path: Path, people: TableVersion) -> None:
    world = World(tmp_path / "no.db", archivelog=False)
    world.insert(world.begin(), people, ROW)
    for _ in range(3):
        world.redo.switch_log()
    assert world.view("V$DATABASE")[0]["LOG_MODE"] == "NOARCHIVELOG"
    assert archived(world) == []
    assert len(world.view("V$LOG_HISTORY")) == 3
    held = world.db._connection.execute("SELECT count(*) FROM redo_record").fetchone()
    assert held == (0,)


def test_a_held_archiver_leaves_ended_logs_online(world: World, people: TableVersion) -> None:
    world.insert(world.begin(), people, ROW)
    world.redo.hold_archiver(held=True)
    world.redo.switch_log()
    assert archived(world) == []
    ended = world.view("V$LOG")[0]
    assert (ended["SEQUENCE#"], ended["ARCHIVED"], ended["STATUS"]) == (1, "NO", "ACTIVE")
    world.redo.switch_log()
    world.redo.switch_log()
    assert [log["SEQUENCE#"] for log in archived(world)] == [1]
    world.redo.hold_archiver(held=False)
    assert [log["SEQUENCE#"] for log in archived(world)] == [1, 2, 3]
    assert "INSERT" in {row["OPERATION"] for row in world.mine()}


def test_resetlogs_begins_a_new_incarnation(world: World, people: TableVersion) -> None:
    tx = world.begin()
    world.insert(tx, people, ROW)
    with pytest.raises(OracleError, match="ORA-01126"):
        world.redo.open_resetlogs()
    world.commit(tx)
    world.redo.switch_log()
    world.now += 60
    scn = world.redo.open_resetlogs()
    world.redo.switch_log()
    logs = archived(world)
    assert [(log["SEQUENCE#"], log["RESETLOGS_CHANGE#"]) for log in logs] == [
        (1, 1000), (2, 1000), (1, scn),
    ]  # fmt: skip
    assert logs[1]["NEXT_CHANGE#"] == logs[2]["FIRST_CHANGE#"] == scn
    assert len({log["NAME"] for log in logs}) == 3
    assert sorted(log["STATUS"] for log in world.view("V$LOG")) == ["ACTIVE", "CURRENT", "UNUSED"]
    assert world.view("V$DATABASE")[0]["RESETLOGS_CHANGE#"] == scn
    incarnations = world.view("V$DATABASE_INCARNATION")
    assert [row["STATUS"] for row in incarnations] == ["PARENT", "CURRENT"]
    world.call("DBMS_LOGMNR.ADD_LOGFILE", logfilename=logs[1]["NAME"])
    with pytest.raises(OracleError, match="ORA-01287"):
        world.call("DBMS_LOGMNR.ADD_LOGFILE", logfilename=logs[2]["NAME"])


def test_the_thread_writes_redo_when_idle(world: World, people: TableVersion) -> None:
    tx = world.begin()
    world.insert(tx, people, ROW)
    commit = world.commit(tx)
    (thread,) = world.view("V$THREAD")
    assert thread["LAST_REDO_CHANGE#"] == commit + 1
    assert world.view("V$THREAD")[0]["LAST_REDO_CHANGE#"] == commit + 1
    world.now += 3
    assert world.view("V$THREAD")[0]["LAST_REDO_CHANGE#"] == commit + 2
    assert [row["OPERATION"] for row in world.mine()][-2:] == ["INTERNAL", "INTERNAL"]


def test_redo_of_a_killed_process_ends_with_its_last_sqlite_commit(
    world: World, people: TableVersion
) -> None:
    tx = world.begin()
    world.insert(tx, people, ROW)
    commit = world.commit(tx)
    world.redo.switch_log()
    scn = world.db.scn
    world.db._connection.execute("BEGIN IMMEDIATE")
    late = world.db.next_scn()
    world.redo.sink.writer.switch(1)
    world.redo.sink.flush()
    assert late
    world.db._connection.close()  # uncommitted work is lost, as when the process dies

    world.reopen(scn=scn)
    assert [log["SEQUENCE#"] for log in archived(world)] == [1]
    tx = world.begin()
    last = world.insert(tx, people, ROW)
    rows = world.mine()
    assert [row["SCN"] for row in rows if row["OPERATION"] == "COMMIT"] == [commit]
    assert rows[-1]["SCN"] == last
    assert rows[-1]["RBASQN"] == 2
    assert len({row["RS_ID"] for row in rows}) == len(rows)


_WRITER = """
import sys
from pathlib import Path
from tests.oracle_embedded.redo.conftest import World, column, num, table
from oracle_embedded.api import OraType

world = World(Path(sys.argv[1]), log_bytes=8192)
made = table(column(1, "ID", OraType.NUMBER))
for key in range(1_000_000):
    tx = world.begin()
    world.insert(tx, made, {"ID": num(key)})
    print(world.commit(tx), flush=True)
"""


def test_every_acknowledged_commit_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "killed.db"
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    assert writer.stdout is not None
    acknowledged = [int(writer.stdout.readline()) for _ in range(150)]
    writer.send_signal(signal.SIGKILL)
    acknowledged += [int(line) for line in writer.stdout if line.endswith(b"\n")]
    writer.wait()

    world = World(path, log_bytes=8192)
    logs = archived(world)
    assert len(logs) > 1
    for earlier, later in pairwise(logs):
        assert earlier["NEXT_CHANGE#"] == later["FIRST_CHANGE#"]
    rows = world.mine()
    scns = [row["SCN"] for row in rows]
    assert scns == sorted(scns)
    commits = {row["SCN"] for row in rows if row["OPERATION"] == "COMMIT"}
    assert set(acknowledged) <= commits
    ended = {row["XID"] for row in rows if row["OPERATION"] == "COMMIT"}
    changed = {row["XID"] for row in rows if row["OPERATION"] == "INSERT"}
    assert ended <= changed


def test_a_statement_rolled_back_in_sqlite_leaves_no_redo(
    world: World, people: TableVersion
) -> None:
    tx = world.begin()
    world.insert(tx, people, ROW)

    def fail_after_many_rows() -> None:
        with world.db.writing():
            for _ in range(1500):
                world.insert(tx, people, ROW)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_after_many_rows()
    world.change(tx, people, RowOp.DELETE, ROW)
    world.commit(tx)
    operations = [row["OPERATION"] for row in world.mine()]
    assert operations == ["START", "INSERT", "DELETE", "COMMIT"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param({"log_bytes": 512}, "log_bytes", id="tiny-log"),
        pytest.param({"groups": 1}, "two log groups", id="one-group"),
    ],
)
def test_settings_refuse_what_cannot_work(settings: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RedoSettings(**settings)  # type: ignore[arg-type]
