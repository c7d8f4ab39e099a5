"""How far are snapshots, how fast are they read, and how long will the rest take?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from cdc_core.model.identifiers import TableId
from cdc_core.model.records import ChunkRecord
from cdc_core.model.reports import SnapshotProgress

_NEWEST = 20
"""Chunks of which the rate is taken: what went on an hour ago says little of now."""
_IS_STILL = timedelta(minutes=5)
"""After so long without a chunk, and ten times as long as one takes, nobody reads."""


def progress_of(snapshot_id: str, chunks: Sequence[ChunkRecord], now: datetime) -> SnapshotProgress:
    """The progress of a snapshot, or of several together. Pure.

    How many rows there are is estimated by those of the chunks that are applied. The rate is that
    of the newest chunks, from when the first of them was begun; None while nobody reads.

    Args:
        snapshot_id: Its id, or what several together are called.
        chunks: All of its chunks; dropped ones do not count.
        now: In UTC.
    """
    wanted = [one for one in chunks if one.state != "dropped"]
    done = [one for one in wanted if one.state == "applied"]
    rows = sum(one.rows or 0 for one in done)
    expected = round(rows / len(done) * len(wanted)) if done else None
    rate = _rows_per_second(done, now)
    left = None
    if rate and expected is not None and len(done) < len(wanted):
        left = round((expected - rows) / rate, 1)
    return SnapshotProgress(
        snapshot_id=snapshot_id,
        chunks_applied=len(done),
        chunks_planned=len(wanted),
        rows=rows,
        rows_expected=expected,
        rows_per_second=rate,
        seconds_left=left,
    )


def progress_in_all(
    unfinished: Mapping[tuple[TableId, str], Sequence[ChunkRecord]], now: datetime
) -> SnapshotProgress | None:
    """The progress of snapshots together, by table and id; None without one."""
    chunks = [one for every in unfinished.values() for one in every]
    return progress_of("all", chunks, now) if chunks else None


def _rows_per_second(done: Sequence[ChunkRecord], now: datetime) -> float | None:
    known = [(one.applied, one) for one in done if one.applied is not None]
    timed = sorted(known, key=lambda one: one[0])[-_NEWEST:]
    if not timed:
        return None
    took = [timedelta(seconds=(one.seconds or 0) + (one.apply_seconds or 0)) for _, one in timed]
    last = timed[-1][0]
    if now - last > max(_IS_STILL, 10 * max(took)):
        return None
    begun = min(at - long for (at, _), long in zip(timed, took, strict=True))
    span = (last - begun).total_seconds()
    return round(sum(one.rows or 0 for _, one in timed) / span, 1) if span > 0 else None
