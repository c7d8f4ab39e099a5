"""Which copies of redo logs are read is the user's choice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from cdc_core.capture.logs.coverage import RedoLog, RedoThread, archived_end, best_copies, read_logs
from cdc_core.capture.logs.dictionaries import DictionaryMark, RedoDictionary, newest_dictionary
from cdc_core.config import LogMinerConfig
from cdc_core.errors import PreflightError, RedoUnavailableError
from cdc_core.model.scn import Scn
from tests.oracle.embedded import ADMIN, Oracle
from tests.oracle.fake_session import FakeSession
from tests.oracle.findings import findings_of
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import source_of

SWITCH = "ALTER SYSTEM SWITCH LOGFILE"
COMPLETED = {"close_at": "completed_logs"}

oracle = oracle_with("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)")


def test_archived_logs_alone_are_read_once_they_are_there(oracle: Oracle, tmp_path: Path) -> None:
    capture = {**COMPLETED, "archived_only": True}
    with source_of(oracle, tmp_path, "T", capture=capture) as source:
        with pytest.raises(PreflightError, match="no log is archived yet"):
            source.run()
        oracle.run(SWITCH, user=ADMIN)
        source.run()
        oracle.database.redo.hold_archiver(held=True)
        oracle.run("INSERT INTO T VALUES (1)")
        oracle.run(SWITCH, user=ADMIN)
        assert source.windows() == [], "the log that ended is not archived"
        oracle.database.redo.hold_archiver(held=False)
        [window] = source.windows()
        source.check_current("T")
        with source.pipeline.database.session() as session:
            found = read_logs(session, window.scn_low, source.pipeline.config.logminer)
        assert {log.state for log in found} == {"archived", "before"}


def test_logs_that_are_older_than_the_limit_count_as_gone(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path, "T", capture={**COMPLETED, "archive_hours": 1}) as source:
        source.run()
        oracle.run("INSERT INTO T VALUES (1)")
        for _ in range(4):  # no online file holds the first ones any more
            oracle.run(SWITCH, user=ADMIN)
        oracle.clock.ahead += 2 * 3600
        oracle.run(SWITCH, user=ADMIN)
        with pytest.raises(RedoUnavailableError, match=r"older than capture\.archive_hours"):
            source.windows()
        source.close()
        source.more["capture"] = {**COMPLETED, "archive_hours": 3}
        source.windows()
        source.check_current("T")


def test_a_destination_that_is_none_is_reported(oracle: Oracle, tmp_path: Path) -> None:
    def problems(*names: str) -> list[str]:
        config = oracle.config(tmp_path, "T", capture={**COMPLETED, "archive_destinations": names})
        found = findings_of(oracle.capture_session(config), config)
        return [one.problem for one in found if one.is_problem]

    assert problems("LOG_ARCHIVE_DEST_1") == []
    [problem] = problems("LOG_ARCHIVE_DEST_1", "LOG_ARCHIVE_DEST_2")
    assert "LOG_ARCHIVE_DEST_2, which is not a valid local destination" in problem


@pytest.mark.parametrize(
    ("names", "read"),
    [
        pytest.param((), "/one/8", id="lowest-number"),
        pytest.param(("LOG_ARCHIVE_DEST_10", "LOG_ARCHIVE_DEST_2"), "/ten/8", id="first-named"),
        pytest.param(("LOG_ARCHIVE_DEST_2", "LOG_ARCHIVE_DEST_10"), "/two/8", id="as-named"),
        pytest.param(("LOG_ARCHIVE_DEST_3", "LOG_ARCHIVE_DEST_2"), "/two/8", id="next-named"),
        pytest.param(("LOG_ARCHIVE_DEST_3",), "/r8", id="online-where-none-has-it"),
    ],
)
def test_the_copy_of_the_first_named_destination_is_read(names: tuple[str, ...], read: str) -> None:
    session = FakeSession(
        {
            "FROM V$LOG L": [(1, 8, "/r8", 800, 900, 50, "INACTIVE")],
            "MAX(A.SEQUENCE#)": [],
            "A.BLOCKS": [
                (1, 8, f"/{name}/8", 800, 900, 40, "A", "YES", number, 60)
                for name, number in (("two", 2), ("one", 1), ("ten", 10))
            ],
        }
    )
    how = LogMinerConfig(archive_destinations=names)
    [best] = best_copies(read_logs(session, Scn(850), how))  # type: ignore[arg-type]
    assert best.name == read


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"archived_only": True, "close_at": "online"}, "close_at: completed_logs"),
        ({"archive_hours": 1, "logs": "scn_range"}, "finds its logs itself"),
        ({"archive_destinations": ["LOG_ARCHIVE_DEST_32"]}, "archive_destinations"),
        ({"archive_destinations": ["backup"]}, "archive_destinations"),
        ({"strategy": "redo_log_catalog", "logs": "scn_range"}, "ORA-01371"),
        ({"strategy": "dictionary_from_file"}, "need each other"),
        ({"dictionary_file": "/d"}, "need each other"),
    ],
)
def test_options_that_exclude_each_other_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        LogMinerConfig(**options)


def log(thread: int, end: int, state: str = "archived") -> RedoLog:
    return RedoLog(thread=thread, sequence=end, name="", first_change=1, next_change=end, bytes=1, state=state)  # type: ignore[arg-type]  # fmt: skip


def thread(number: int, *, is_open: bool = True) -> RedoThread:
    return RedoThread(thread=number, is_open=is_open, enabled="PUBLIC", enable_change=0, disable_change=0, checkpoint_change=0, last_redo_change=0)  # fmt: skip


def test_what_is_archived_ends_with_the_thread_that_is_behind() -> None:
    logs = [log(1, 50), log(1, 90), log(2, 70), log(2, 99, "online"), log(3, 10)]
    assert archived_end(logs, [thread(1), thread(2), thread(3, is_open=False)]) == 69
    assert archived_end(logs, [thread(1), thread(4)]) is None
    assert archived_end(logs, []) is None


def mark(sequence: int, marks: str, *, number: int = 1) -> DictionaryMark:
    return DictionaryMark(number, sequence, sequence * 10, sequence * 10 + 10, "b" in marks, "e" in marks)  # fmt: skip


@pytest.mark.parametrize(
    ("marks", "found"),
    [
        pytest.param([], None, id="none"),
        pytest.param([mark(3, "be")], (30, 40), id="in-one-log"),
        pytest.param([mark(3, "b"), mark(5, "e")], (30, 60), id="in-several-logs"),
        pytest.param([mark(3, "be"), mark(7, "b")], (30, 40), id="the-newest-is-not-complete"),
        pytest.param([mark(4, "e")], None, id="its-beginning-is-gone"),
        pytest.param([mark(3, "b"), mark(4, "b"), mark(5, "e")], (40, 60), id="begun-again"),
        pytest.param([mark(3, "b"), mark(4, "e", number=2)], None, id="of-two-threads"),
        pytest.param([mark(3, "be"), mark(2, "be", number=2)], (30, 40), id="the-one-that-ends-last"),
    ],
)  # fmt: skip
def test_the_newest_whole_dictionary_is_found(
    marks: list[DictionaryMark], found: tuple[int, int] | None
) -> None:
    expected = None if found is None else RedoDictionary(*found)
    assert newest_dictionary(marks) == expected
