"""Benchmarks' results: their form in the file, ratios the right way round, a failure that hides nothing."""

from __future__ import annotations

import json
import types
from pathlib import Path

import pytest

from benchmarks import run
from benchmarks.common import Result, median_seconds

KEYS = ["question", "ours", "unit", "against", "theirs", "ratio", "goal", "correct"]


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


def _with(monkeypatch: pytest.MonkeyPatch, **modules: object) -> None:
    monkeypatch.setattr(run, "BENCHMARKS", tuple(modules))
    made = {
        f"benchmarks.{name}": types.SimpleNamespace(rows=rows) for name, rows in modules.items()
    }
    monkeypatch.setattr(run.importlib, "import_module", made.__getitem__)


def test_results_are_written_and_a_failing_benchmark_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*, quick: bool) -> list[Result]:
        raise RuntimeError("no such table")

    def works(*, quick: bool) -> list[Result]:
        return [Result("how fast", 2.0 if quick else 3.0, "rows/s", "a loop", 1.0)]

    _with(monkeypatch, broken=fails, sound=works)
    output = tmp_path / "results.json"
    assert run.main(["--quick", "--output", str(output)]) == 1
    assert [row["ours"] for row in json.loads(output.read_text())] == [2.0]
    said = capsys.readouterr().out
    assert "no such table" in said
    assert "Did not run to the end: broken" in said
    assert run.main(["--only", "sound", "--output", str(output)]) == 0


def test_a_wrong_result_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _with(monkeypatch, wrong=lambda quick: [Result("q", 1.0, "s", "p", 1.0, correct=False)])
    assert run.main(["--output", str(tmp_path / "results.json")]) == 1
