"""Benchmarks' results: their form in the file, ratios the right way round, a failure that hides nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import run
from benchmarks.common import Result, measured, median_seconds

KEYS = [
    "question", "ours", "unit", "against", "theirs", "ratio", "goal", "correct", "seconds", "cpu_seconds", "runs", "spread", "warm", "load",
]  # fmt: skip


def test_a_result_has_the_keys_of_the_file() -> None:
    row = Result("how fast", 1234.5678, "rows/s", "a loop", 617.0, goal=2.0).as_json()
    assert list(row) == KEYS
    assert row["ours"] == 1235.0
    assert row["ratio"] == 2.001


@pytest.mark.parametrize(
    ("result", "ratio"),
    [
        pytest.param(Result("q", 10.0, "rows/s", "p", 5.0), 2.0, id="more-rows-are-better"),
        pytest.param(
            Result("q", 10.0, "s", "p", 5.0, higher_is_better=False),
            0.5,
            id="more-seconds-are-worse",
        ),
        pytest.param(Result("q", 10.0, "s", "no peer here"), None, id="nothing-to-compare-with"),
        pytest.param(Result("q", None, "s", "no JDK here", 5.0), None, id="could-not-run"),
    ],
)
def test_a_ratio_above_one_means_that_we_are_better(result: Result, ratio: float | None) -> None:
    assert result.ratio == ratio


def test_the_median_is_taken_of_all_runs() -> None:
    calls: list[int] = []
    assert median_seconds(lambda: calls.append(1), repeats=3) >= 0
    assert len(calls) == 3


def _with(monkeypatch: pytest.MonkeyPatch, **seconds: int) -> None:
    """The runner knows the examples alone, by the path of their modules."""
    examples = {f"tests.benchmarks.examples.{name}": allowed for name, allowed in seconds.items()}
    monkeypatch.setattr(run, "BENCHMARKS", examples)
    monkeypatch.setattr(run, "PACKAGE", "")


STUCK_SECONDS = 15


class Hasty(subprocess.Popen[bytes]):
    """Lets the time of what sticks pass as soon as its row is there."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, or say that the time has passed."""
        if timeout != STUCK_SECONDS:
            return super().wait(timeout)
        assert isinstance(self.args, list)
        found = Path(str(self.args[self.args.index("--output") + 1]))
        while self.poll() is None and not (found.exists() and found.read_text()):
            time.sleep(0.02)
        raise subprocess.TimeoutExpired(self.args, timeout)


def test_what_fails_or_sticks_ends_nothing_else_and_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows that were found before count."""
    _with(monkeypatch, broken=600, stuck=STUCK_SECONDS, sound=600)
    monkeypatch.setattr(subprocess, "Popen", Hasty)
    assert run.main(["--quick", "--history", str(tmp_path / "history")]) == 1
    [kept] = (tmp_path / "history").iterdir()
    report = json.loads(kept.read_text())
    found = {row["question"]: row["ours"] for row in report["rows"]}
    assert found == {"before it broke": 1.0, "before it stuck": 1.0, "how fast": 2.0}
    reasons = {name.rpartition(".")[2]: reason for name, reason in report["failed"].items()}
    assert reasons == {"broken": "exit code 1", "stuck": f"not done after {STUCK_SECONDS} s"}
    assert "Did not run to the end" in capsys.readouterr().out


def test_right_results_end_well_and_wrong_ones_do_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _with(monkeypatch, sound=600)
    assert run.main(["--history", str(tmp_path / "one")]) == 0
    [kept] = (tmp_path / "one").iterdir()
    [row] = json.loads(kept.read_text())["rows"]
    assert (row["ours"], row["cpu_seconds"]) == (3.0, {"driver": 0.5})
    assert run.main(["--history", str(tmp_path / "other"), "--minutes", "0"]) == 1
    [kept] = (tmp_path / "other").iterdir()
    assert "no time was left" in kept.read_text()


def test_cpu_seconds_of_children_are_told_apart() -> None:
    """What ran and ended below this process is the work of others, what ran here is the driver's."""
    with measured() as watch:
        subprocess.run([sys.executable, "-c", "sum(range(6_000_000))"], check=True)
    assert watch.cpu["other"] > 0
    with measured() as watch:
        sum(range(6_000_000))
    assert watch.cpu["driver"] > 0
