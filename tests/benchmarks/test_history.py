"""A row that costs more CPU seconds than in the newest run like it is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.history import keep, regressions

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
    path = keep(one, tmp_path)
    assert path.name == "2026-11-01T023205-normal.json"
    assert not list(regressions(one, tmp_path))
    assert not list(regressions(report(2, 9.0), tmp_path / "none"))
