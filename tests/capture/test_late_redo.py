"""Redo of open transactions that reaches the log late, through the driver: each row once, each transaction whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc_core.landing.manifest import WindowManifest
from oracle_embedded.database import ADMIN
from oracle_embedded.redo import Wart
from tests.capture.source import Source
from tests.oracle.embedded import Oracle, running_oracle

COMPLETED = {"capture": {"close_at": "completed_logs"}}


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    with running_oracle(warts=[Wart.LATE_REDO]) as oracle:
        oracle.run("CREATE TABLE EMP (ID NUMBER(10) PRIMARY KEY, NAME VARCHAR2(40))")
        yield oracle


def ids(source: Source, manifest: WindowManifest) -> list[str]:
    """The first value of each landed INSERT."""
    return [row["sql_redo"].split("'")[1] for row in source.rows(manifest)]


def test_rows_that_come_late_are_read_with_the_next_window_and_once(
    oracle: Oracle, tmp_path: Path
) -> None:
    source = Source.begin(oracle, tmp_path)
    slow = oracle.owner()
    slow.cursor().execute("INSERT INTO EMP VALUES (1, 'waits in its strand')")
    oracle.run("INSERT INTO EMP VALUES (2, 'quick')")
    first = source.window()
    assert ids(source, first) == ["2"]

    slow.cursor().execute("INSERT INTO EMP VALUES (3, 'above the first window')")
    slow.commit()
    oracle.run("INSERT INTO EMP VALUES (4, 'quick')")
    second = source.window()
    assert ids(source, second) == ["1", "3", "4"]
    late = source.rows(second)[0]
    assert late["scn"] <= second.window.scn_low
    assert second.mining_low < second.window.scn_low
    assert [(one["state"], one["rows"]) for one in source.transactions(second)] == [
        ("commit", 2),
        ("commit", 1),
    ]
    assert ids(source, source.window()) == []


def test_a_strand_that_a_switch_binds_is_read_with_the_next_window(
    oracle: Oracle, tmp_path: Path
) -> None:
    source = Source.begin(oracle, tmp_path)
    slow = oracle.owner()
    slow.cursor().execute("INSERT INTO EMP VALUES (1, 'waits in its strand')")
    assert ids(source, source.window()) == []
    for _ in range(5):
        oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
    second = source.window()
    assert ids(source, second) == ["1"]
    assert [one["state"] for one in source.transactions(second)] == ["open"]
    slow.commit()
    assert source.window().tables_committed == ("DEMO.EMP",)


def test_windows_that_end_with_switched_logs_are_complete_and_look_nowhere_twice(
    oracle: Oracle, tmp_path: Path
) -> None:
    source = Source.begin(oracle, tmp_path, **COMPLETED)
    slow = oracle.owner()
    slow.cursor().execute("INSERT INTO EMP VALUES (1, 'waits in its strand')")
    oracle.run("INSERT INTO EMP VALUES (2, 'quick')")
    first = source.window()
    assert sorted(ids(source, first)) == ["1", "2"]
    assert all(log.next_change > first.window.scn_high for log in first.logs[-1:])
    slow.cursor().execute("INSERT INTO EMP VALUES (3, 'x')")
    slow.commit()
    second = source.window()
    assert ids(source, second) == ["3"]
    assert second.mining_low == second.window.scn_low
