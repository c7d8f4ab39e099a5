"""A long run sums up its lives, says what they lack, and goes on where it was stopped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tests.invariants import long
from tests.invariants.long import lives_of, summarize
from tests.invariants.points import points_of
from tests.invariants.sums import ENOUGH, LifeResult, lacking, not_hit, sums, thin

QUIET = Console(quiet=True)
EVENTS = {"load": 300, "stop": 20, "grow": 15, "snapshot": 20, "signal": 20}
LATE = {"windows with late redo": 20, "windows that a late commit belongs to": 10}


def life(**more: object) -> LifeResult:
    kills = dict.fromkeys([*points_of("kept"), *points_of("delta")], 10)
    found = LifeResult(
        seed=1, lake="kept", services=False, planned=400, happened=EVENTS, kills=kills | {"apply at random": 70},
        replayed={"windows": 40, "chunks": 20}, late=LATE, comparisons=1900, compared={"NOTES": [9, 30]}, differences=0,
        consistent=90, seconds=60.0, faults=[],
    )  # fmt: skip
    return replace(found, **more)  # type: ignore[arg-type]


def test_lives_that_met_enough_and_found_nothing_are_a_proof(tmp_path: Path) -> None:
    assert summarize([life()], [], tmp_path, QUIET, 60) == []
    assert "| differences | 0 |" in (tmp_path / "summary.md").read_text()
    assert '"minutes": 1.0' in (tmp_path / "summary.json").read_text()


@pytest.mark.parametrize(
    ("found", "says"),
    [
        pytest.param(life(faults=["unequal: NOTES"]), "unequal: NOTES", id="a-fault"),
        pytest.param(life(shrunk="--only 3"), "--only 3", id="how-to-repeat-it"),
        pytest.param(life(compared={"NOTES": [9, 3]}), "NOTES was compared", id="an-empty-table"),
        pytest.param(life(late={}), "too few: windows with late redo", id="nothing-late"),
        pytest.param(life(kills={"apply at random": 300}), "never killed at", id="a-missed-point"),
    ],
)
def test_what_is_wrong_is_said(found: LifeResult, says: str, tmp_path: Path) -> None:
    failed = summarize([found], [], tmp_path, QUIET, 60)
    assert any(says in text for text in failed), failed
    assert says in (tmp_path / "summary.md").read_text()


def test_a_life_without_a_result_is_a_fault(tmp_path: Path) -> None:
    assert summarize([life()], ["it ended"], tmp_path, QUIET, 60) == ["it ended"]


def test_sums_are_over_all_lives() -> None:
    found = sums([life(), life()])
    assert set(ENOUGH) <= set(found)
    assert found["kills at random"] == 140
    assert not lacking(found)
    assert lacking(sums([]))
    assert not_hit([life()]) == []
    assert thin(life(compared={"NOTES": [1, 30]}))


def test_a_long_run_goes_on_with_the_lives_that_have_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived: list[str] = []

    def live(planned: long.Planned, folder: Path) -> str:
        lived.append(planned.name)
        if planned.lake == "delta":
            return "it ended"
        life(seed=planned.seed, services=planned.services).write(folder / f"{planned.name}.json")
        return ""

    monkeypatch.setattr(long, "live", live)
    planned = lives_of(7)
    assert len({one.name for one in planned}) == len(planned)
    life(seed=9).write(tmp_path / "kept-9.json")
    found, problems = long.live_all(planned, tmp_path, QUIET, 2)
    assert problems == ["it ended"] * 2
    assert set(lived) == {one.name for one in planned} - {"kept-9"}
    assert len(found) == len(planned) - 2
    assert found[1].read(tmp_path / "kept-9.json").seed == 9
