"""Which windows are cut next, and which wait to be applied?"""

from __future__ import annotations

import time

from cdc_core.capture.logs import read_logs
from cdc_core.capture.positions import upper_bound
from cdc_core.capture.times import times_of
from cdc_core.capture.windows import cut_windows
from cdc_core.errors import WindowOrderError
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import StepReport
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.steps.context import Context, seconds_since


def plan_windows(ctx: Context, *, until: int | None = None) -> list[ScnWindow]:
    """Cut windows from the last planned one to the present (or to ``until``) and record them; return the new ones.

    An idle database gives a window too, so that the position never ages out. Nothing is planned while the first snapshot
    has not been applied.

    Raises:
        RedoUnavailableError: Redo behind the position is gone; names the tables that need a snapshot.
        LogsNotReadyError: Redo is not archived yet.
    """
    started = time.monotonic()
    with ctx.lease("window-plan", wait_seconds=30):
        source = ctx.source_record()
        unready = _unready(ctx)
        if unready:
            raise WindowOrderError(
                "windows begin when the first snapshot has been applied",
                hint="Run `redolake snapshot`, which goes on where it stood.",
                tables=", ".join(map(str, unready)),
            )
        last = ctx.store.windows(ctx.source, newest_first=True, limit=1)
        low = last[0].window.scn_high if last else source.snapshot_scn
        assert low is not None
        mining_low = low if last else source.mining_low
        assert mining_low is not None
        with ctx.oracle() as session:
            high = upper_bound(session, ctx.config.capture.close_at)
            if until is not None:
                high = min(high, Scn(until))
            if high <= low:
                return []
            logs = read_logs(session, Scn(mining_low))
            bounds = cut_windows(low, high, logs, ctx.config.capture.window_redo_bytes_max)
            ends = times_of(session, [window.scn_high for window in bounds])
        ctx.store.plan_windows(ctx.source, bounds, mining_low, ends=ends)
        ctx.reported(
            StepReport(
                "windows-planned",
                f"{low}-{high}",
                seconds_since(started),
                rows=len(bounds),
                scn_low=low,
                scn_high=high,
            )
        )
        return list(bounds)


def pending_windows(ctx: Context) -> list[ScnWindow]:
    """Windows that are planned or captured and not applied, in order."""
    return [
        record.window for record in ctx.store.windows(ctx.source, states=("planned", "captured"))
    ]


def _unready(ctx: Context) -> list[TableId]:
    states = {record.table: record.state for record in ctx.store.tables(ctx.source)}
    return [config.table for config in ctx.config.tables if states.get(config.table) != "ready"]
