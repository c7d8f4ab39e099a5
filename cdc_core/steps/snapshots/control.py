"""How are snapshots stopped, paused and resumed while windows go on?

A stopped snapshot loses the chunks that were not read yet; those that were read stay right, since
the apply rule needs no other chunk. A table whose first snapshot was stopped takes windows like any
other, and its mirror holds a part of the rows until a snapshot reads them all. A pause holds back
every chunk that was not begun.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from cdc_core.errors import OvertakenError, SnapshotPausedError
from cdc_core.model.chunks import NEW_ROWS, ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord
from cdc_core.model.wording import counted
from cdc_core.steps.context import Context

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoppedSnapshots:
    """Chunks that were dropped, by table."""

    dropped: dict[TableId, int]

    def __str__(self) -> str:
        """What became of the signal, for people."""
        dropped = [
            f"{table}: {counted(chunks, 'chunk')} dropped" for table, chunks in self.dropped.items()
        ]
        return "; ".join(dropped) or "no chunk waited to be read"


def stop_snapshots(ctx: Context, tables: Sequence[TableId]) -> StoppedSnapshots:
    """Drop the chunks of tables that nobody has read. Harmless when repeated.

    A table that joins keeps one chunk, with which its Delta tables begin.
    """
    dropped: dict[TableId, int] = {}
    records = {one.table: one for one in ctx.store.tables.all()}
    for table in tables:
        record = records.get(table)
        joins = record is not None and record.state == "snapshotting"
        chunks = ctx.store.chunks.drop_unread(
            table, keeps_first=joins and not _has_read(ctx, record)
        )
        if chunks:
            dropped[table] = len(chunks)
            _LOG.warning("a snapshot was stopped table=%s chunks_dropped=%d", table, len(chunks))
        ctx.store.tables.finish_snapshot(table)
    return StoppedSnapshots(dropped)


def _has_read(ctx: Context, record: TableRecord | None) -> bool:
    """Has a chunk of the snapshot landed with which the table joins?"""
    if record is None:
        return False
    chunks = ctx.store.chunks.find(
        record.table, snapshot_id=record.snapshot_id, states=("landed", "applied")
    )
    return bool(chunks)


def refuse_held(ctx: Context, key: ChunkKey) -> None:
    """May this chunk be read now?

    Raises:
        SnapshotPausedError: Snapshots are paused.
        OvertakenError: It was dropped since it was listed.
    """
    record = ctx.store.chunks.get(key)
    is_unread = record is None or record.state == "planned"
    if is_unread and held_snapshots(ctx)(key.snapshot_id):
        raise SnapshotPausedError(
            "snapshots are paused",
            hint="`redolake signal resume-snapshot` continues them.",
            table=key.table,
            chunk=key.key,
        )
    if record is not None and record.state == "dropped":
        raise OvertakenError(
            "a signal stopped this snapshot",
            hint=f"`redolake snapshot --table {key.table.argument}` reads the table.",
            table=key.table,
            chunk=key.key,
        )


def held_snapshots(ctx: Context) -> Callable[[str], bool]:
    """Which snapshots, by their ids, wait now for ``resume-snapshot``? Those of rows that came
    without redo never do: windows wait for them."""
    is_paused = ctx.store.signals.paused_since() is not None
    return lambda snapshot_id: is_paused and not snapshot_id.startswith(NEW_ROWS)


def partial_tables(ctx: Context, records: Iterable[TableRecord]) -> frozenset[TableId]:
    """Tables in their stream whose mirrors hold a part of the rows, since no snapshot has read all
    of them since they joined: it was stopped, or read rows of a condition, or none."""
    joined = [one for one in records if one.mirror_scn is not None and one.state != "snapshotting"]
    covered = ctx.store.chunks.covered_scns() if joined else {}
    return frozenset(
        one.table for one in joined if covered.get(one.table, 0) < (one.snapshot_scn or 0)
    )
