"""A loop maintains the Delta tables once a day, in a process beside it."""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cdc_core.config import MaintenanceConfig
from pipelines.commands.nightly import Nightly

EVENING = datetime(2026, 3, 28, 22, 30, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = EVENING

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def nightly(clock: Clock, monkeypatch: pytest.MonkeyPatch, code: str, hour: int | None) -> Nightly:
    """One whose command is a line of Python."""
    made = Nightly(MaintenanceConfig(daily_at_hour=hour), [], now=clock)
    monkeypatch.setattr(made, "command", [sys.executable, "-c", code])
    return made


def ended(found: Nightly) -> str:
    """What it says when its process has ended, however long that takes."""
    while found.is_working:
        time.sleep(0.02)
    return found.look()


def test_it_is_started_once_a_day_at_its_hour(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nightly(clock, monkeypatch, "raise SystemExit(1)", 3) as found:
        assert found.look() == ""
        assert not found.is_working, "it is not three yet"
        clock.now += timedelta(hours=4, minutes=31)
        found.look()
        assert "exit code 1" in ended(found)
        clock.now += timedelta(hours=23, minutes=50)
        found.look()
        assert not found.is_working
        clock.now += timedelta(minutes=10)
        found.look()
        assert "exit code 1" in ended(found)


def test_what_goes_well_says_nothing(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its process ends when the test lets it."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with nightly(clock, monkeypatch, f"open({str(gate)!r}).read()", 23) as found:
        clock.now += timedelta(hours=1)
        found.look()
        assert found.is_working
        gate.write_text("")
        assert ended(found) == ""


def test_it_ends_with_the_loop(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    with nightly(clock, monkeypatch, "import time; time.sleep(600)", 23) as found:
        clock.now += timedelta(hours=1)
        found.look()
        assert found.is_working
    assert not found.is_working


def test_null_is_never(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    with nightly(clock, monkeypatch, "", None) as found:
        clock.now += timedelta(days=9)
        found.look()
        assert not found.is_working


def test_the_one_writer_of_a_lake_does_it_itself(clock: Clock) -> None:
    done: list[int] = []
    options = MaintenanceConfig(daily_at_hour=23)
    with Nightly(options, [], own=lambda: done.append(1), now=clock) as found:
        found.look()
        assert done == []
        clock.now += timedelta(hours=1)
        found.look()
        found.look()
        assert done == [1]
        assert not found.is_working


def test_a_process_that_cannot_start_leaves_the_loop(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory may be short, or the machine out of processes; the next night tries again."""
    with nightly(clock, monkeypatch, "", 23) as found:
        monkeypatch.setattr(found, "command", ["/there/is/no/such/program"])
        clock.now += timedelta(hours=1)
        assert "Maintenance did not start" in found.look()
        assert found.look() == ""
        assert not found.is_working
