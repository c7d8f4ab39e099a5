"""The demo's own steps that need no database: its clock, and the counting of changes."""

from __future__ import annotations

import json
import threading
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from cdc_core.config import SourceConfig
from cdc_core.errors import OracleUnavailableError
from cdc_core.model.templates import DEFAULT_PATHS
from cdc_core.steps.delta_logs import changes_applied
from pipelines.demo import run, settings
from pipelines.demo.server import Served
from pipelines.demo.workload import Plan

SERVED = Served(
    dsn="127.0.0.1:1521/FREEPDB1",
    user="NYC",
    password="x",
    capture_user="REDOLAKE",
    capture_password="y",
    port=1521,
)


def test_flight_time_passes_at_a_steady_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    pace = run._Pace(0.2, holds_at=datetime.max)
    moment = datetime(2013, 2, 1)
    clock = [100.0]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(round(seconds, 6))
        clock[0] += seconds + 0.05  # the work between two moments

    monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep))
    for hours in range(4):
        pace(moment + timedelta(hours=hours))
    assert slept == [0.0, 0.15, 0.15, 0.15]


def test_the_airport_waits_for_the_snapshot_and_no_longer() -> None:
    pace = run._Pace(0.0, holds_at=datetime(2013, 2, 1, 12))
    pace(datetime(2013, 2, 1, 11))
    waiting = threading.Thread(target=pace, args=(datetime(2013, 2, 1, 13),))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    pace.go_on()
    waiting.join()


def test_each_lap_waits_for_the_windows() -> None:
    """However long they take; the end of the demo frees the airport."""
    start = datetime(2013, 2, 1)
    pace = run._Pace(0.0, holds_at=start, lap=timedelta(hours=3))
    pace.go_on()
    passed: list[int] = []

    def fly() -> None:
        for hour in range(12):
            pace(start + timedelta(hours=hour))
            passed.append(hour)

    flying = threading.Thread(target=fly)
    flying.start()
    for hours in (3, 6, 9):
        while len(passed) < hours:
            flying.join(0.01)
        flying.join(0.2)  # it goes no further, however long that is
        assert passed == list(range(hours))
        (pace.lap_is_over if hours < 9 else pace.release)()
    flying.join()
    assert passed == list(range(12))


@pytest.mark.parametrize(
    ("positions", "arrives"),
    [
        pytest.param([0, 0, 10, 20, 30, 40], True, id="slow-and-steady"),
        pytest.param([0, 10, 10, 10, 40], False, id="stands-still"),
    ],
)
def test_mirrors_may_take_their_time_but_not_stand_still(
    monkeypatch: pytest.MonkeyPatch, positions: list[int], *, arrives: bool
) -> None:
    """Each round takes nearly as long as mirrors may stand still."""
    clock, left = [0.0], iter(positions)

    def round_of_windows(*_: object) -> None:
        clock[0] += 0.9 * run.SETTLE_SECONDS

    monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(run, "_position", lambda _: next(left))
    monkeypatch.setattr(run, "_windows", round_of_windows)
    pipeline: Any = SimpleNamespace(status=lambda: SimpleNamespace(scn_oracle=40))
    nobody: Any = None
    if arrives:
        run._catch_up(pipeline, nobody)
        return
    with pytest.raises(OracleUnavailableError, match="do not reach"):
        run._catch_up(pipeline, nobody)


@pytest.mark.parametrize("scale", settings.SCALES)
def test_no_table_is_altered_before_the_snapshot_is_read(scale: str) -> None:
    """Oracle cannot read a table as of before its DDL."""
    plan = Plan.of_scale(scale)
    assert plan.begins < run.holds_at(plan, scale) <= plan.alters_at


@pytest.fixture
def config(tmp_path: Path) -> SourceConfig:
    return settings.write_definitions(tmp_path, SERVED)


def test_changes_are_counted_by_the_mirrors_own_commits(config: SourceConfig) -> None:
    flights = config.tables[-1].table
    log = Path(DEFAULT_PATHS.path("mirror", config.lake.path, config.name, flights)) / "_delta_log"
    log.mkdir(parents=True)
    kinds = [
        ("chunk", {}),
        ("window", {"changes": 40}),
        ("window", {"changes": 2}),
        ("other", {"changes": 9}),
    ]
    for version, (kind, facts) in enumerate(kinds):
        said = json.dumps({"kind": kind, **facts})
        line = json.dumps({"commitInfo": {"operation": "MERGE", "userMetadata": said}})
        (log / f"{version:020d}.json").write_text(line + "\n")
    assert changes_applied(config) == {
        "NYC.AIRLINES": 0, "NYC.AIRPORTS": 0, "NYC.PLANES": 0, "NYC.WEATHER": 0, "NYC.FLIGHTS": 42,
    }  # fmt: skip


def test_an_interrupted_demo_says_that_it_can_go_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "_demo", interrupted)
    assert run.run_demo(folder=tmp_path, console=Console()) == 130
    assert "Run the same command to continue" in capsys.readouterr().out
