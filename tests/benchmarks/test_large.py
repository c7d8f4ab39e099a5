"""Benchmarks of large lakes, at a size that a test has time for."""

from __future__ import annotations

import pytest

from benchmarks import cluster_backfill, large_mirror, large_snapshot
from benchmarks.common import Form


def test_a_mirror_of_many_rows_is_made_and_changed_without_spark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(large_mirror, "CHUNK_ROWS", 15_000)
    monkeypatch.setattr(large_mirror, "CHANGED", 100)
    loading, window = large_mirror.rows(many=40_000, ways=["auto"])
    assert window.correct
    assert window.ours
    assert loading.ours


@pytest.mark.slow
@pytest.mark.spark
def test_both_ways_give_one_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_mirror, "CHANGED", 100)
    monkeypatch.setattr(large_mirror, "ROUNDS", 1)
    _, *windows = large_mirror.rows(many=40_000)
    assert [one.correct for one in windows] == [True, True]


@pytest.mark.slow
@pytest.mark.spark
def test_a_cluster_carries_a_backfill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_backfill, "ROWS", 500)
    monkeypatch.setattr(cluster_backfill, "CHANGED", 20)
    row, tasks = cluster_backfill.rows(Form.QUICK)
    assert row.correct
    assert row.ratio
    assert tasks.ours
    assert tasks.theirs


def test_a_snapshot_that_is_killed_twice_is_whole_in_the_end() -> None:
    snapshot, memory, _, comparison = large_snapshot.rows(many=6_000)
    assert snapshot.correct
    assert comparison.correct
    assert memory.ours
