"""Redo that is read in several sessions at once lands as if it were read window by window, whatever happens on the way."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from cdc_core.capture import logminer
from cdc_core.capture.passes import stored_rows
from cdc_core.capture.window_rows import TRANSACTIONS_NAME
from cdc_core.errors import CdcError, PreflightError
from cdc_core.landing.layout import windows_folder
from cdc_core.landing.manifest import MANIFEST_NAME
from cdc_core.oracle import database
from cdc_core.oracle.session import connect
from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from oracle_embedded.redo.settings import DEFAULT_WARTS
from tests.oracle.embedded import ADMIN, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id

NAMES = ("ONE", "TWO")
SWITCH = "ALTER SYSTEM SWITCH LOGFILE"
SESSIONS = 4
ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 300.0

oracle = oracle_with(
    *(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))" for name in NAMES),
    *(f"INSERT INTO {name} VALUES (1, 'first')" for name in NAMES),
    warts=DEFAULT_WARTS,
)


@pytest.fixture
def source(oracle: Oracle, tmp_path: Path) -> Iterator[Source]:
    path = tmp_path / "one"
    path.mkdir()
    with source_of(oracle, path, *NAMES, capture=capture_of(1)) as opened:
        list(opened.pipeline.run_snapshot())
        yield opened


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Per window that was captured, whether its redo had been read before its turn."""
    seen: list[bool] = []
    answer = logminer._Turn._answer

    def noted(self: Any, prefetched: Any) -> Any:
        seen.append(prefetched is not None and prefetched.question == self._question)
        return answer(self, prefetched)

    monkeypatch.setattr(logminer._Turn, "_answer", noted)
    return seen


def capture_of(sessions: int, close_at: str = "completed_logs") -> dict[str, Any]:
    """A window for each log."""
    return {"close_at": close_at, "window_redo_bytes_max": 1, "sessions": sessions}


def twin_of(source: Source, path: Path, sessions: int = SESSIONS) -> Source:
    """The same source with the same planned windows in other folders, which reads in several sessions."""
    source.close()
    shutil.copytree(source.path, path)
    capture = {**source.more["capture"], "sessions": sessions}
    return Source(
        source.oracle,
        path,
        source.tables,
        deepcopy(source.lake),
        {**source.more, "capture": capture},
    )


def work(oracle: Oracle, *between: Callable[[], None]) -> None:
    """Transactions over several logs, with savepoints, a rollback and keys that move; ``between`` happens in the middle."""
    with oracle.owner() as long, oracle.owner() as torn, oracle.owner() as lost:
        run(long, "INSERT INTO ONE VALUES (100, 'long')")
        run(torn, "INSERT INTO TWO (ID, V) VALUES (200, 'kept')", "SAVEPOINT S")
        oracle.run(SWITCH, user=ADMIN)
        oracle.run("INSERT INTO ONE (ID, V) VALUES (2, 'a')", "UPDATE ONE SET V = 'b' WHERE ID = 1")
        run(torn, "UPDATE TWO SET V = 'undone' WHERE ID = 200", "DELETE FROM TWO WHERE ID = 1")
        run(lost, "INSERT INTO TWO (ID, V) VALUES (300, 'lost')")
        oracle.run(SWITCH, user=ADMIN)
        run(torn, "ROLLBACK TO SAVEPOINT S", "INSERT INTO TWO (ID, V) VALUES (201, 'late')")
        oracle.run("UPDATE ONE SET ID = 3 WHERE ID = 2", "DELETE FROM ONE WHERE ID = 1")
        oracle.run(SWITCH, user=ADMIN)
        run(long, "UPDATE ONE SET V = 'l' WHERE ID = 100")
        oracle.run("INSERT INTO ONE (ID, V) VALUES (1, 'again')")
        lost.rollback()
        torn.commit()
        long.commit()
        for happens in between:
            happens()
        oracle.run(SWITCH, user=ADMIN)
        oracle.run("DELETE FROM TWO WHERE ID = 200", "INSERT INTO ONE (ID, V) VALUES (7, 'x')")
        oracle.run(SWITCH, user=ADMIN)
        oracle.run("UPDATE ONE SET V = 'y' WHERE ID = 7")
        oracle.run(SWITCH, user=ADMIN)
        oracle.run("DELETE FROM ONE WHERE ID = 3")
        oracle.run(SWITCH, user=ADMIN)


def run(connection: Any, *statements: str) -> None:
    for statement in statements:
        connection.cursor().execute(statement)


def landed(source: Source) -> dict[str, Any]:
    """All of landing's windows by path: bytes of redo, and what manifests and transactions say, but for when it was asked."""
    root = source.path / "landing"
    found: dict[str, Any] = {}
    for path in sorted((root / windows_folder("src")).rglob("*.*")):
        name = path.relative_to(root).as_posix()
        if path.name == MANIFEST_NAME:
            found[name] = _timeless(json.loads(path.read_text())["body"])
        elif path.name == TRANSACTIONS_NAME:
            rows = pq.read_table(path).to_pylist()
            found[name] = [{**row, "absent_scn": row["absent_scn"] is None} for row in rows]
        else:
            found[name] = path.read_bytes()
    return found


def _timeless(body: dict[str, Any]) -> dict[str, Any]:
    """A manifest without its times, and the digests of what holds times."""
    planned = {key: one for key, one in body["planned"].items() if key != "before_sha256"}
    left_out = (
        "seconds",
        "mining_start_seconds",
        "mining_fetch_seconds",
        "landed",
        "transactions_file",
    )
    return {key: one for key, one in body.items() if key not in left_out} | {"planned": planned}


def check_equal_landing(one: Source, other: Source) -> None:
    """What landed of both is equal."""
    expected, found = landed(one), landed(other)
    assert list(found) == list(expected)
    for name, content in expected.items():
        assert found[name] == content, name


def check_equal(one: Source, other: Source) -> None:
    """Landing and lake of both are equal, and equal to Oracle."""
    check_equal_landing(one, other)
    for name in NAMES:
        table = table_id(name)
        assert other.lake.image(table) == one.lake.image(table)
        assert changes_of(other, name) == changes_of(one, name)
    other.check_current(*NAMES)


def changes_of(source: Source, name: str) -> list[dict[str, Any]]:
    """The change log, but for when its windows landed."""
    changes = source.lake.tables[table_id(name)].changes
    return [{key: one for key, one in row.items() if key != "_cdc_landed"} for row in changes]


def test_what_lands_is_the_same_with_one_session_and_with_four(
    oracle: Oracle, source: Source, tmp_path: Path, answered: list[bool]
) -> None:
    """Open transactions over windows, savepoints, redo that reaches the log late, XIDs that are not known in full."""
    work(oracle)
    windows = source.pipeline.plan_windows()
    assert len(windows) >= 2 * SESSIONS - 1
    twin = twin_of(source, tmp_path / "four")
    assert source.windows() == windows
    assert not any(answered)
    answered.clear()
    assert twin.windows() == windows
    assert sum(answered) == len(windows) - 1, (
        "the first window is captured while the next ones are read"
    )
    check_equal(source, twin)
    twin.close()


@pytest.mark.parametrize(
    "ddl",
    [
        pytest.param("ALTER TABLE ONE ADD (W NUMBER(9))", id="added-column"),
        pytest.param("RENAME TWO TO SECOND", id="renamed", marks=pytest.mark.slow),
        pytest.param("TRUNCATE TABLE TWO", id="truncated", marks=pytest.mark.slow),
    ],
)
def test_ddl_between_the_windows_changes_nothing(
    oracle: Oracle, source: Source, tmp_path: Path, answered: list[bool], ddl: str
) -> None:
    """Windows behind it ask another question than the one that was answered early, and are read in their turn."""
    names = NAMES if "ADD" in ddl else ("ONE",)
    work(oracle)
    oracle.run(ddl)
    oracle.run("INSERT INTO ONE (ID, V) VALUES (20, 'after')")
    for number in range(3):
        oracle.run(SWITCH, user=ADMIN)
        oracle.run(f"INSERT INTO ONE (ID, V) VALUES ({30 + number}, 'after')")
    oracle.run(SWITCH, user=ADMIN)
    windows = source.pipeline.plan_windows()
    twin = twin_of(source, tmp_path / "four")
    assert source.windows() == windows
    answered.clear()
    assert twin.windows() == windows
    assert 0 < sum(answered) < len(windows) - 1
    check_equal_landing(source, twin)
    twin.check_current(*names)
    twin.close()


def test_a_log_that_is_missing_stops_its_own_window_and_loses_nothing(
    oracle: Oracle, source: Source, tmp_path: Path
) -> None:
    """It is found early, and told in its turn: the windows before it are captured and applied, none behind it is."""
    work(oracle)
    windows = source.pipeline.plan_windows()
    twin = twin_of(source, tmp_path / "four")
    lost = log_of(source, windows[2].scn_low)
    oracle.database.redo.remove_archived_log(lost)
    errors = []
    for each in (source, twin):
        with pytest.raises(CdcError) as caught:
            each.windows()
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    check_equal_landing(source, twin)
    records = twin.pipeline.store.windows.find()
    assert [one.state for one in records] == ["applied"] * 2 + ["planned"] * (len(windows) - 2)
    for name in NAMES:
        assert twin.record(name).mirror_scn == windows[1].scn_high
    twin.check_exact(*NAMES)
    twin.close()


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"kind": FaultKind.ORA_ERROR, "code": 1368, "nth": 3}, id="changed-log"),
        pytest.param({"kind": FaultKind.LOST_CONNECTION, "nth": 4}, id="lost-connection"),
        pytest.param({"kind": FaultKind.ORA_ERROR, "code": 1013, "nth": 2}, id="cancelled"),
    ],
)
@pytest.mark.slow
def test_a_session_that_fails_early_changes_nothing(
    oracle: Oracle, source: Source, tmp_path: Path, fault: dict[str, Any]
) -> None:
    work(oracle)
    source.pipeline.plan_windows()
    twin = twin_of(source, tmp_path / "four")
    source.windows()
    oracle.database.faults.arm(
        Fault(event=FaultEvent.FETCH, sql_contains="V$LOGMNR_CONTENTS", **fault)
    )
    twin.windows()
    assert all(one.seen >= one.nth for one in oracle.database.faults.armed())
    check_equal(source, twin)
    twin.close()


@pytest.mark.parametrize(
    "is_ahead",
    [
        pytest.param(False, id="who-captures-is-refused"),
        pytest.param(True, id="who-reads-ahead-is-refused", marks=pytest.mark.slow),
    ],
)
def test_a_database_that_allows_fewer_sessions_is_read_in_those(
    oracle: Oracle,
    source: Source,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_ahead: bool,
) -> None:
    work(oracle)
    windows = source.pipeline.plan_windows()
    twin = twin_of(source, tmp_path / "four")
    source.windows()
    refused: list[int] = []

    def limited(*arguments: Any, **more: Any) -> Any:
        reads_ahead = threading.current_thread().name.startswith("read ")
        if reads_ahead == is_ahead and (is_ahead or not refused):
            refused.append(1)
            raise PreflightError("too many sessions", hint="Lower capture.sessions.")
        return connect(*arguments, **more)

    monkeypatch.setattr(database, "connect", limited)
    assert list(twin.pipeline.run_windows())
    assert refused
    assert {one.state for one in twin.pipeline.store.windows.find()} == {"applied"}
    monkeypatch.undo()
    assert len(windows) == len([one for one in landed(twin) if one.endswith(MANIFEST_NAME)])
    check_equal(source, twin)
    twin.close()


def test_only_redo_that_does_not_change_any_more_is_read_early(
    oracle: Oracle, source: Source, tmp_path: Path, answered: list[bool]
) -> None:
    """The last window ends in the log that is being written: redo of an open transaction can still come into its range."""
    source.more["capture"] = capture_of(1, close_at="online")
    source.close()
    work(oracle)
    with oracle.owner() as open_one:
        run(open_one, "INSERT INTO ONE VALUES (50, 'open')")
        oracle.run("INSERT INTO TWO VALUES (51, 'seen')")
        windows = source.pipeline.plan_windows()
        twin = twin_of(source, tmp_path / "four")
        assert source.windows()[: len(windows)] == windows
        answered.clear()
        assert twin.windows()[: len(windows)] == windows
        assert answered[: len(windows)] == [False, *[True] * (len(windows) - 2), False]
        open_one.commit()
    for each in (source, twin):
        oracle.run("INSERT INTO TWO VALUES (52 + (SELECT COUNT(*) FROM TWO), 'end')")
        each.windows()
        each.check_exact(*NAMES)
    twin.close()


def test_values_that_are_left_out_do_not_wait_in_a_file_either(
    oracle: Oracle, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.configure({"name": "ONE", "columns_exclude": ["V"]}, "TWO")
    for number in range(5):
        oracle.run(f"UPDATE ONE SET V = 'secret{number}' WHERE ID = 1", "DELETE FROM TWO")
        oracle.run(SWITCH, user=ADMIN)
    source.more["capture"] = capture_of(SESSIONS)
    kept: list[str] = []
    write = stored_rows.StoredRows.write

    def noted(self: Any, batch: Any) -> None:
        kept.extend(text for text in batch.rows.column("sql_redo").to_pylist() if text)
        write(self, batch)

    monkeypatch.setattr(stored_rows.StoredRows, "write", noted)
    source.windows()
    assert any('"ONE"' in text for text in kept)
    assert not any("secret" in text for text in kept)


@pytest.mark.slow
def test_a_process_that_is_killed_while_four_sessions_read_leaves_nothing_behind(
    oracle: Oracle, source: Source, tmp_path: Path
) -> None:
    work(oracle)
    source.pipeline.plan_windows()
    twin = twin_of(source, tmp_path / "four")
    source.windows()
    source.pipeline.database.close()  # the session that it keeps for its next step
    delay = Fault(
        FaultKind.DELAY, sql_contains="V$LOGMNR_CONTENTS", nth=3, times=0, delay_seconds=30
    )
    oracle.database.faults.arm(delay)
    process = subprocess.Popen(
        [sys.executable, "-c", CAPTURE, config_text(twin)], cwd=ROOT, stdout=subprocess.DEVNULL
    )
    try:
        until(
            lambda: (
                process.poll() is not None
                or len(waiting_files(process.pid, twin.path)) >= SESSIONS - 1
            )
        )
        assert process.poll() is None
        assert oracle.server.connection_count <= SESSIONS
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    oracle.database.faults.disarm_all()
    until(lambda: oracle.server.connection_count == 0)
    left = [path.name for path in (twin.path / "landing").rglob("*") if path.is_file()]
    assert not [name for name in left if name.startswith("tmp")], "a waiting file has no name"
    twin.windows()
    check_equal(source, twin)
    twin.close()


CAPTURE = """
import sys
from cdc_core.config import SourceConfig
from cdc_core.steps import Pipeline
with Pipeline(SourceConfig.model_validate_json(sys.argv[1])) as pipeline:
    windows = pipeline.pending_windows()
    with pipeline.prefetching(windows):
        for window in windows:
            pipeline.capture_window(window)
"""


def config_text(source: Source) -> str:
    """The configuration with its password, which JSON of the model hides."""
    written = source.written()
    values = written.model_dump(mode="json")
    values["oracle"]["password"] = written.oracle.password.get_secret_value()
    return json.dumps(values)


def waiting_files(pid: int, path: Path) -> list[str]:
    """Files below the path that the process has open and that have no name."""
    try:
        targets = [str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return []
    return [one for one in targets if one.startswith(str(path)) and one.endswith("(deleted)")]


def until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT_SECONDS
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def log_of(source: Source, scn: int) -> int:
    """The sequence of the archived log that holds the SCN behind this one."""
    with source.pipeline.database.session() as session:
        [(sequence,)] = session.fetch_all(
            "SELECT MAX(SEQUENCE#) FROM V$ARCHIVED_LOG WHERE FIRST_CHANGE# <= :scn AND NEXT_CHANGE# > :scn",
            {"scn": scn + 1},
        )
    return int(sequence)
