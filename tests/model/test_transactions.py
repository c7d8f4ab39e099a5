"""In which windows a transaction's rows landed."""

from __future__ import annotations

import random

import pytest

from cdc_core.model.transactions import WINDOW_RUNS_MAX, windows_of, with_window


@pytest.mark.parametrize(
    ("ordinals", "runs"),
    [
        pytest.param([], (), id="none"),
        pytest.param([5], (5, 5), id="one"),
        pytest.param([5, 5, 6, 7, 7], (5, 7), id="one-after-the-other"),
        pytest.param([5, 6, 9, 11, 12], (5, 6, 9, 9, 11, 12), id="with-others-between"),
    ],
)
def test_windows_are_noted_as_runs(ordinals: list[int], runs: tuple[int, ...]) -> None:
    found: tuple[int, ...] = ()
    for ordinal in ordinals:
        found = with_window(found, ordinal)
    assert found == runs
    assert {one for run in windows_of(found) for one in run} == set(ordinals)


def test_of_too_many_runs_the_closest_become_one_and_no_window_is_left_out() -> None:
    rng = random.Random(11)
    ordinals = sorted(rng.sample(range(100_000), 500))
    found: tuple[int, ...] = ()
    for ordinal in ordinals:
        found = with_window(found, ordinal)
        assert len(found) <= 2 * WINDOW_RUNS_MAX
    noted = {one for run in windows_of(found) for one in run}
    assert noted >= set(ordinals)
    assert list(found) == sorted(found)
    assert len(noted) < 100_000 - 100, "long times without a row are left out"
