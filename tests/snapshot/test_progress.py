"""How far snapshots are, how fast, and how long the rest takes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cdc_core.model.identifiers import TableId
from cdc_core.model.records import ChunkRecord, ChunkState
from cdc_core.model.reports import SnapshotProgress
from cdc_core.model.scn import Scn
from cdc_core.snapshot.progress import progress_in_all, progress_of
from pipelines.commands.inspect import progress_text

T = TableId("SHOP", "ORDERS")
NOW = datetime(2026, 1, 2, 3, tzinfo=UTC)


def chunk(number: int, state: ChunkState, rows: int | None = None, ago: float = 0) -> ChunkRecord:
    applied = NOW - timedelta(seconds=ago) if state == "applied" else None
    return ChunkRecord(
        source="src", table=T, snapshot_id="s1", number=number, scn=Scn(1), range={}, state=state,
        rows=rows, seconds=8.0, apply_seconds=2.0, applied=applied,
    )  # fmt: skip


def test_a_snapshot_that_nobody_began_has_no_pace() -> None:
    found = progress_of("s1", [chunk(n, "planned") for n in range(3)], NOW)
    assert (found.chunks_applied, found.chunks_planned, found.rows) == (0, 3, 0)
    assert (found.rows_expected, found.rows_per_second, found.seconds_left) == (None, None, None)


def test_rows_rate_and_time_left_follow_from_the_applied_chunks() -> None:
    """Two chunks of 10 s each, side by side for 5 s: 1,500 rows in 15 s. Dropped ones are gone."""
    chunks = [chunk(0, "applied", 1000, ago=5), chunk(1, "applied", 500, ago=0)]
    chunks += [chunk(2, "landed", 700), chunk(3, "planned"), chunk(4, "dropped")]
    found = progress_of("s1", chunks, NOW)
    assert (found.chunks_applied, found.chunks_planned, found.rows) == (2, 4, 1500)
    assert (found.rows_expected, found.rows_per_second, found.seconds_left) == (3000, 100.0, 15.0)


@pytest.mark.parametrize(
    ("seconds", "left"), [(49.4, "49 s"), (300, "5 min"), (7_500, "2 h 5 min")]
)
def test_the_time_left_is_said_for_people(seconds: float, left: str) -> None:
    known = SnapshotProgress(
        snapshot_id="s1", chunks_applied=3, chunks_planned=8, rows=1_200_000,
        rows_expected=3_200_000, rows_per_second=41_000.4, seconds_left=seconds,
    )  # fmt: skip
    assert progress_text(known) == (
        f"3 of 8 chunks applied, 1,200,000 of about 3,200,000 rows, 41,000 rows/s, {left} left"
    )


def test_a_snapshot_that_stands_still_has_no_rate() -> None:
    chunks = [chunk(0, "applied", 1000, ago=301), chunk(1, "planned")]
    found = progress_of("s1", chunks, NOW)
    assert (found.rows, found.rows_expected) == (1000, 2000)
    assert (found.rows_per_second, found.seconds_left) == (None, None)


def test_several_snapshots_have_one_progress_in_all() -> None:
    assert progress_in_all({}, NOW) is None
    found = progress_in_all(
        {(T, "s1"): [chunk(0, "applied", 10)], (T, "s2"): [chunk(0, "planned")]}, NOW
    )
    assert found is not None
    assert (found.snapshot_id, found.chunks_applied, found.chunks_planned) == ("all", 1, 2)
