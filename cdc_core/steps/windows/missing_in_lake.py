"""Which windows has a table taken by the metadata store, and lost since: its Delta tables were
restored from an older copy, or their last commits never reached the disk? And which chunks of
signals and repairs?

A mirror's own log says which window brought it changes last, the metadata store which windows
brought it some. What lies between is taken again, in order, before the next window: else it would
be missing without an error. Windows whose changes the change log has still are not appended to it
twice. A chunk that is lost stops the table.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from cdc_core.errors import LakeError
from cdc_core.lake.applied_in_delta import AppliedInDelta
from cdc_core.lake.foreign_words import LAYER_WORDS
from cdc_core.lake.table_context import DeltaPosition
from cdc_core.landing.kept import kept_retired
from cdc_core.landing.manifest import WindowManifest
from cdc_core.model.records import TableRecord, WindowRecord
from cdc_core.model.reports import DeltaLayer
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.steps.context import Context
from cdc_core.steps.windows.table_ranges import stream_end

_LOG = logging.getLogger(__name__)

_HINT = (
    "`redolake table rebuild --from-landing {table}` writes both Delta tables from landing; where landing does not reach back so far, "
    "`redolake table resnapshot --fresh {table}` reads the table again into new ones."
)


@dataclass(frozen=True, slots=True)
class LostPart:
    """A window that is to be taken again, and which part of it."""

    record: WindowRecord
    manifest: WindowManifest
    part: ScnWindow


def lost_parts(ctx: Context, state: TableRecord, log: DeltaPosition) -> list[LostPart]:
    """What the table takes again before it goes on, in order. Result and errors are those of
    :func:`find_lost`."""
    if found := find_lost(ctx, state, log):
        _LOG.warning(
            "the mirror is behind the metadata store and takes windows again table=%s mirror=%d store=%d windows=%d",
            state.table, found[0].part.scn_low, state.mirror_scn, len(found),
        )  # fmt: skip
    return found


def find_lost(ctx: Context, state: TableRecord, log: DeltaPosition) -> list[LostPart]:
    """What the table has taken by the metadata store, and not by its Delta logs, in order; nothing
    as a rule, and where a Delta table is missing, which the next step says. ``log`` is what the
    Delta logs say, in which nobody else put other rows there.

    Raises:
        LakeError: Landing does not hold what is lost, or the change log is older than the mirror.
    """
    position = state.mirror_scn
    if position is None:
        return []
    begun = max(state.snapshot_scn or 0, log.emptied_scn)
    has, logged = max(begun, log.mirror_scn or 0), max(begun, log.changelog_scn or 0)
    retired = _retired(ctx, state, has)
    is_lost = retired > has or _brought(ctx, state, has, position)
    is_older = logged < has and _brought(ctx, state, logged, has)
    layer = _layer_without_chunks(ctx, state)
    if not is_lost and not is_older and layer is None:
        return []
    taken = ctx.table_lake(state).applied()
    if taken.schema_scn is None or taken.lacks_mirror:
        return []
    lost: list[LostPart] = []
    problem = None
    if is_older:
        problem = "the change log is older than its mirror"
    elif layer is not None:
        problem = f"the {LAYER_WORDS[layer]} is older than rows that were read again, or read without redo"
    elif _lacks_chunks(ctx, state, taken):
        problem = "the mirror is older than its snapshot"
    elif retired > has:
        problem = "the mirror is older than windows that were retired"
    else:
        landed = _landed(ctx, has, position)
        if _lacks_what_moved(ctx, state, landed, has):
            problem = "the mirror is older than a window that was read again"
        else:
            lost = list(_parts(state, landed, has))
    if problem is None:
        return lost
    raise LakeError(
        f"{problem}, so windows that were applied are lost",
        hint=_HINT.format(table=state.table.argument),
        table=state.table,
        position=position,
        changelog=logged,
        mirror=has,
    )


def _lacks_chunks(ctx: Context, state: TableRecord, taken: AppliedInDelta) -> bool:
    """Does the mirror lack a chunk of its snapshot? One without rows makes no commit."""
    chunks = ctx.store.chunks.find(state.table, snapshot_id=state.snapshot_id, states=["applied"])
    return any(
        one.rows != 0 and (one.snapshot_id, one.number) not in taken.chunks for one in chunks
    )


def _layer_without_chunks(ctx: Context, state: TableRecord) -> DeltaLayer | None:
    """Which of both Delta tables lacks a chunk of a signal or a repair that the metadata store says
    is applied."""
    if state.snapshot_id is None:
        return None
    # The store is asked first: what it knows is committed before.
    chunks = ctx.store.chunks.of_other_snapshots(
        state.table, state.snapshot_id, state.snapshot_scn or 0
    )
    if not chunks:
        return None
    return ctx.table_lake(state).layer_without(state.snapshot_id, chunks)


def _retired(ctx: Context, state: TableRecord, has: int) -> int:
    """Up to where windows that were retired brought changes, 0 where ``has`` is among the windows
    that are there."""
    first = ctx.store.windows.find(limit=1)
    if not first or has >= first[0].window.scn_low:
        return 0
    return kept_retired(ctx.landing, ctx.source_record()).touched.get(str(state.table), 0)


def _brought(ctx: Context, state: TableRecord, above: int, up_to: int) -> bool:
    return above < up_to and ctx.store.windows.brought_changes(
        state.table, above=Scn(above), up_to=Scn(up_to)
    )


def _landed(ctx: Context, above: int, up_to: Scn) -> list[tuple[WindowRecord, WindowManifest]]:
    windows = ctx.store.windows.after(Scn(above), until=up_to)
    return [(record, ctx.window_manifest(record.window)[0]) for record in windows]


def _parts(
    state: TableRecord, landed: list[tuple[WindowRecord, WindowManifest]], above: int
) -> Iterator[LostPart]:
    for record, manifest in landed:
        end = stream_end(state, manifest)
        low = Scn(max(above, record.window.scn_low))
        if end is not None and low < end:
            yield LostPart(record, manifest, ScnWindow(low, end))


def _lacks_what_moved(
    ctx: Context, state: TableRecord, landed: list[tuple[WindowRecord, WindowManifest]], has: int
) -> bool:
    """Does the mirror stand in a window that lacked commits, and does the later one that brought
    them not do so any more?"""
    table = str(state.table)
    stands_in = ctx.store.windows.after(Scn(has - 1), until=Scn(has))
    keys = {one.inexact.window for one in stands_in if one.inexact and table in one.inexact.tables}
    return any(
        record.window.key in keys and table not in manifest.tables_late
        for record, manifest in landed
    )
