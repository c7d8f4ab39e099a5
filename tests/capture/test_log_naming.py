"""LogMiner inside a pluggable database: a range of SCNs names the logs, and nothing is lost by it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdc_core.capture.logs.coverage import RedoLog, read_logs
from cdc_core.capture.logs.naming import logs_read, where_logminer_runs
from cdc_core.errors import (
    LogsNotReadyError,
    PreflightError,
    RedoUnavailableError,
    RedoUnreadableError,
)
from cdc_core.model.scn import SCN_MAX
from oracle_embedded.database import ADMIN
from oracle_embedded.redo import Wart
from tests.capture.source import Source
from tests.oracle.embedded import LOCAL_CAPTURE, Oracle, running_oracle
from tests.oracle.fake_session import FakeSession

SWITCH = "ALTER SYSTEM SWITCH LOGFILE"


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    with running_oracle(warts=[Wart.LATE_REDO]) as oracle:
        oracle.add_local_capture()
        oracle.run("CREATE TABLE EMP (ID NUMBER(10) PRIMARY KEY, NAME VARCHAR2(40))")
        yield oracle


def begin(oracle: Oracle, path: Path, *, close_at: str = "online") -> Source:
    """A source whose user is local to the pluggable database."""
    capture = {"close_at": close_at, "logs": "scn_range"}
    return Source.begin(oracle, path, capture=capture, oracle=oracle.login(LOCAL_CAPTURE))


def ids(source: Source, manifest: Any) -> list[str]:
    return [row["sql_redo"].split("'")[1] for row in source.rows(manifest)]


@pytest.mark.parametrize("close_at", ["online", "completed_logs"])
def test_late_redo_and_transactions_over_windows_are_read_whole(
    oracle: Oracle, tmp_path: Path, close_at: str
) -> None:
    source = begin(oracle, tmp_path, close_at=close_at)
    slow = oracle.owner()
    slow.cursor().execute("INSERT INTO EMP VALUES (1, 'waits in its strand')")
    oracle.run("INSERT INTO EMP VALUES (2, 'quick')")
    first = source.window()
    oracle.run(SWITCH, user=ADMIN)
    slow.cursor().execute("INSERT INTO EMP VALUES (3, 'x')")
    slow.commit()
    second = source.window()
    assert sorted([*ids(source, first), *ids(source, second)]) == ["1", "2", "3"]
    [ended] = source.transactions(second)
    assert (ended["state"], ended["rows"]) == ("commit", 2)
    assert ids(source, source.window()) == []
    assert {log.sequence for log in second.logs} <= {
        log.sequence for log in read_logs(source.session, source.start.mining_low)
    }
    said = " ".join(oracle.sent)
    assert "ADD_LOGFILE" not in said
    assert "SRC_CON_NAME IS NULL" in said, "the view need not name its only container"
    assert "CONTAINER" not in said.replace("SRC_CON", "").replace("CON_NAME", "")


def test_another_incarnation_stops_the_window(oracle: Oracle, tmp_path: Path) -> None:
    source = begin(oracle, tmp_path)
    source.window()
    oracle.database.redo.open_resetlogs()
    oracle.run("INSERT INTO EMP VALUES (1, 'x')")
    with pytest.raises(RedoUnavailableError, match="RESETLOGS"):
        source.window()


def test_a_log_that_is_gone_stops_the_window(oracle: Oracle, tmp_path: Path) -> None:
    """Deleted by RMAN: the proof says so. Removed as a file: LogMiner does, with an error of recursive SQL."""
    source = begin(oracle, tmp_path)
    oracle.run("INSERT INTO EMP VALUES (1, 'x')")
    for _ in range(5):
        oracle.run(SWITCH, user=ADMIN)
    [archived, *_] = [
        log for log in read_logs(source.session, source.start.mining_low) if log.state == "archived"
    ]
    oracle.database.redo.remove_archived_log(archived.sequence)
    with pytest.raises(RedoUnreadableError) as caught:
        source.window()
    assert caught.value.facts["file"] == archived.name
    oracle.database.redo.delete_archived_log(archived.sequence + 1)
    [record] = source.store.windows.find()
    with pytest.raises(RedoUnavailableError, match="deleted"):
        source.capture(record)


def test_a_range_is_for_pluggable_databases_alone() -> None:
    with (
        pytest.raises(PreflightError, match="scn_range"),
        where_logminer_runs(FakeSession(), "scn_range"),  # type: ignore[arg-type]
    ):
        raise AssertionError("no LogMiner here")


# --- what LogMiner has read -------------------------------------------------------------------------------------------


def log(sequence: int, name: str, state: Any = "archived", first: int = 0) -> RedoLog:
    first = first or sequence * 100
    following = SCN_MAX if state == "current" else first + 100
    return RedoLog(
        thread=1, sequence=sequence, name=name, first_change=first, next_change=following, bytes=1, state=state
    )  # fmt: skip


NEEDED = [log(4, "/arc4"), log(5, "/arc5"), log(6, "/redo6", "current")]
COPIES = [*NEEDED, log(4, "/redo4", "online"), log(5, "/other/arc5"), log(4, "/old/arc4", first=7)]


def listed(*rows: tuple[int, int, str]) -> Any:
    return FakeSession({"THREAD_SQN": [(1, *row) for row in rows]})


def test_the_copies_that_logminer_has_read_are_looked_at_again() -> None:
    session = listed((4, 400, "/redo4"), (5, 500, "/other/arc5"), (6, 600, "/redo6b"), (3, 300, "/arc3"))  # fmt: skip
    found = logs_read(session, NEEDED, COPIES, "scn_range")
    assert [one.name for one in found] == ["/redo4", "/other/arc5", "/redo6"]


def test_an_unknown_name_counts_as_the_online_file() -> None:
    session = listed((4, 400, "/redo4b"), (5, 500, "/ARC5"), (6, 600, "/redo6"))
    found = logs_read(session, NEEDED, COPIES, "scn_range")
    assert [one.name for one in found] == ["/redo4", "/arc5", "/redo6"]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([(4, 400, "/arc4"), (6, 600, "/redo6")], id="not-listed"),
        pytest.param([(4, 400, "/arc4"), (5, 7, "/arc5"), (6, 600, "/redo6")], id="of-another-incarnation"),
    ],
)  # fmt: skip
def test_a_log_that_logminer_did_not_have_makes_the_window_wait(
    rows: list[tuple[int, int, str]],
) -> None:
    with pytest.raises(LogsNotReadyError) as caught:
        logs_read(listed(*rows), NEEDED, COPIES, "scn_range")
    assert caught.value.facts["logs"] == "1.5"


def test_named_files_are_the_files_that_are_read() -> None:
    assert logs_read(listed(), NEEDED, COPIES, "files") == NEEDED
