"""Which windows are cut next, and which wait to be applied?"""

from __future__ import annotations

import time
from functools import partial

from cdc_core.errors import OvertakenError, WindowConflictError
from cdc_core.model.records import WindowRecord
from cdc_core.model.reports import StepReport
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.steps.context import Context, seconds_since
from cdc_core.steps.snapshots.rows import streams


def plan_windows(ctx: Context, *, until: int | None = None) -> list[ScnWindow]:
    """Cut windows from the last planned one to the present (or to ``until``) and record them;
    return the new ones.

    None where the source captures no changes (``snapshot.mode: initial_only``).

    An idle database gives a window too, so that the position never ages out. Windows wait for no
    table: one that is still in its snapshot, or paused, takes them later.

    Raises:
        OvertakenError: Another process has cut windows meanwhile.
        RedoUnavailableError: Redo behind the position is gone; names the tables that need a
            snapshot.
        LogsNotReadyError: Redo is not archived yet.
    """
    started = time.monotonic()
    if not streams(ctx):
        return []
    with ctx.lease("window-plan", wait_seconds=30):
        source = ctx.source_record()
        last = ctx.store.windows.find(newest_first=True, limit=1)
        low = last[0].window.scn_high if last else source.snapshot_scn
        found = ctx.change_reader.next_windows(
            low,
            read_from=low if last else source.mining_low,
            until=None if until is None else Scn(until),
            applied=partial(_applied, ctx, low) if last else None,
        )
        if not found:
            return []
        bounds = [one.window for one in found]
        try:
            ctx.store.windows.plan(bounds, ends=[one.ended for one in found])
        except WindowConflictError as error:
            if ctx.store.windows.find(newest_first=True, limit=1) == last:
                raise
            raise OvertakenError(
                "another process has cut windows meanwhile",
                hint="Run the command again: it continues with those.",
                source=ctx.source,
            ) from error
        high = bounds[-1].scn_high
        ctx.reported(
            StepReport(
                kind="windows-planned",
                key=f"{low}-{high}",
                seconds=seconds_since(started),
                rows=len(bounds),
                scn_low=low,
                scn_high=high,
            )
        )
        return bounds


def _applied(ctx: Context, planned: Scn) -> Scn:
    """All tables have what committed up to this SCN; windows are planned up to another one."""
    waiting = ctx.store.windows.find(states=("planned", "captured"), limit=1)
    return waiting[0].window.scn_low if waiting else planned


def pending_windows(ctx: Context) -> list[ScnWindow]:
    """Windows that are not captured, or that a table wants and has not taken, in order."""
    return [record.window for record in pending_records(ctx)]


def pending_records(ctx: Context) -> list[WindowRecord]:
    """The same, as the store knows them. A window that was applied is among them if a table that
    was resumed, or that joined behind the others, has not taken it."""
    positions = [
        table.mirror_scn
        for table in ctx.store.tables.all()
        if table.mirror_scn is not None and table.takes_windows
    ]
    open_states = ctx.store.windows.find(states=("planned", "captured"))
    backlog: list[WindowRecord] = []
    if positions:
        end = open_states[0].window.scn_low if open_states else None
        backlog = ctx.store.windows.after(min(positions), until=end)
    return [*backlog, *open_states]
