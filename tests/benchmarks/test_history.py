"""A row that costs more CPU seconds than in the newest run like it is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.history import keep, newest, path_of, regressions
from docs.tools.benchmarks import markdown

MACHINE = {"cores": 2, "processor": "x86_64", "system": "Linux", "python": "3.11.7"}


def report(day: int, used: float, **more: Any) -> dict[str, Any]:
    row = {
        "benchmark": "windows",
        "question": "a window",
        "cpu_seconds": {"driver": used, "database": 90.0 - used},
    }
    return {
        "began": f"2026-11-{day:02d}T02:32:05+00:00",
        "form": "normal",
        "machine": MACHINE,
        "rows": [row],
    } | more


@pytest.mark.parametrize(
    ("used", "more", "is_dearer"),
    [
        pytest.param(2.3, {}, True, id="dearer"),
        pytest.param(2.15, {}, False, id="within-a-tenth"),
        pytest.param(1.0, {}, False, id="cheaper"),
        pytest.param(9.0, {"form": "quick"}, False, id="of-another-form"),
        pytest.param(9.0, {"machine": {**MACHINE, "cores": 4}}, False, id="on-another-machine"),
    ],
)
def test_a_regression_is_more_than_a_tenth_of_the_newest_run_alike(
    tmp_path: Path, used: float, more: dict[str, Any], is_dearer: bool
) -> None:
    keep(report(1, 8.0), tmp_path)
    keep(report(2, 2.0), tmp_path)
    keep(report(3, 50.0, rows=[]), tmp_path)
    now = report(4, used, **more)
    found = list(regressions(now, tmp_path))
    assert bool(found) == is_dearer
    if found:
        assert str(found[0]) == "a window: 2.3 CPU s, 2 before (2026-11-02), +15%"


def test_a_run_is_not_compared_with_itself(tmp_path: Path) -> None:
    one = report(1, 2.0)
    keep(one, tmp_path)
    assert path_of(one, tmp_path).name == "2026-11-01T023205-normal.json"
    assert path_of(one, tmp_path).exists()
    assert not list(regressions(one, tmp_path))
    assert not list(regressions(report(2, 9.0), tmp_path / "none"))


def test_the_page_has_each_benchmark_with_its_newest_run(tmp_path: Path) -> None:
    """A run of some benchmarks leaves the others as they were; one that found nothing, or took other inputs, changes nothing."""
    cells = {"warm": False, "ours": 1.0, "unit": "s", "against": "a goal", "theirs": None}
    cells |= {"ratio": None, "goal": None, "load": 0.1, "correct": True}

    def of(day: int, *names: str, **more: Any) -> dict[str, Any]:
        rows = [
            {"benchmark": name, "question": f"{name} of {day}", "cpu_seconds": {}} | cells
            for name in names
        ]
        return report(day, 1.0, rows=rows, load_before=0.5, failed={"decode": "exit code 1"}) | more

    for one in (
        of(1, "windows", "decode"), of(2, "windows"), of(3), of(4, "windows", form="quick"),
    ):  # fmt: skip
        keep(one, tmp_path)
    runs = newest(["windows", "capture", "decode"], "normal", tmp_path)
    assert {name: run["began"][:10] for name, run in runs.items()} == {
        "windows": "2026-11-02",
        "decode": "2026-11-01",
    }
    page = markdown(tmp_path)
    assert page.index("windows of 2") < page.index("decode of 1")
    assert "* run of 2026-11-02 on 2 cores, load 0.5 before it began: `windows`." in page
    assert "* `decode` did not run to the end: exit code 1." in page
    assert "windows of 1" not in page
