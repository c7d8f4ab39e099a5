"""How is a window that was applied before taken again?"""

from __future__ import annotations

import time
from dataclasses import replace

from cdc_core.errors import NotYetError
from cdc_core.landing.manifest import SchemaChange, WindowManifest
from cdc_core.leases import POLL_SECONDS
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord
from cdc_core.model.reports import LeftOut, StepReport, TableApplied
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.steps.context import Context, seconds_since
from cdc_core.steps.foreign_commits import refuse_foreign
from cdc_core.steps.windows.shared import side_by_side, window_report
from cdc_core.steps.windows.table_part import summed
from cdc_core.steps.windows.table_ranges import stream_end, stretches


def replay_window(
    ctx: Context, window: ScnWindow, tables: list[TableId] | None = None
) -> StepReport:
    """Replay an old window: its keys are derived once more from the change log, so an undamaged
    mirror stays as it is.

    A table that has not applied the window (paused, stopped) is named in ``left_out``; the others
    are replayed.

    Raises:
        NotYetError: No table has applied the window yet.
    """
    started = time.monotonic()
    _give_way(ctx)
    ctx.captured_window(window)
    manifest, _ = ctx.window_manifest(window)
    wanted = set(manifest.tables_held if tables is None else tables)
    records = {state.table: state for state in ctx.store.tables.all()}
    ends = {
        table: end
        for table, state in records.items()
        if table in wanted and (end := stream_end(state, manifest)) is not None
    }
    positions = {table: state.mirror_scn or 0 for table, state in records.items()}
    missing = [table for table, end in ends.items() if positions[table] < end]
    left_out = tuple(_left_out(records[table]) for table in missing)
    if left_out and len(left_out) == len(ends):
        raise NotYetError(
            "only a window that was applied can be replayed",
            hint=left_out[0].way_out,
            window=window.key,
            tables=", ".join(one.table for one in left_out),
        )
    touched = [
        table for table in ends if table not in missing and str(table) in manifest.tables_committed
    ]
    applied = side_by_side(
        ctx, touched, lambda table: _replay_table(ctx, manifest, table, ends[table])
    )
    report = window_report("window-replayed", window, started, applied, repeated=True)
    return ctx.reported(replace(report, left_out=left_out))


def _left_out(record: TableRecord) -> LeftOut:
    return LeftOut(
        str(record.table),
        record.reason or f"it has not applied this window: its mirror is at {record.mirror_scn}",
        record.way_out or "Run `redolake run` (or materialize the window) first.",
    )


def _give_way(ctx: Context) -> None:
    """Let whoever waits for a table have it before the next replay does: a backfill of a year of
    windows must not keep the new ones from its tables."""
    if ctx.store.windows.find(states=("captured",), limit=1):
        time.sleep(2 * POLL_SECONDS)


def _replay_table(ctx: Context, manifest: WindowManifest, table: TableId, end: Scn) -> TableApplied:
    """What a TRUNCATE of the whole table that was followed has removed counts no more, so of such a
    window what lies behind it is replayed."""
    started = time.monotonic()
    pieces = stretches(ScnWindow(manifest.window.scn_low, end), manifest, table)
    whole = [isinstance(one, SchemaChange) and not one.partitions for one in pieces]
    behind = pieces[len(pieces) - whole[::-1].index(True) :] if any(whole) else pieces
    windows = [one for one in behind if not isinstance(one, SchemaChange)]
    if not windows:
        return TableApplied(table=table, skipped=True)
    with ctx.writing(table) as lease:
        state = ctx.table_record(table)
        lake = ctx.table_lake(state, lease.check)
        refuse_foreign(state, lake.position(), ["changelog"])
        latest = ctx.visible(ctx.store.schemas.versions(table)[-1].schema)
        covered = ctx.store.chunks.covered_scn(table)
        done = [
            lake.replay_window(
                replace(manifest, window=window),
                latest,
                covered_scn=covered,
                applied_scn=state.mirror_scn or 0,
            )
            for window in windows
        ]
        return replace(summed(table, done), seconds=seconds_since(started))
