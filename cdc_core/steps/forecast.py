"""What would the next run do, how long would it take, and what would break first? Nothing is done,
planned or kept."""

from __future__ import annotations

from cdc_core.model.identifiers import TableId
from cdc_core.model.lag import LagFacts
from cdc_core.model.plans import TouchedTable, WindowsPlan, WorkPlan
from cdc_core.steps.alerts import known_headroom
from cdc_core.steps.context import Context
from cdc_core.steps.delta_logs import mirror_files
from cdc_core.steps.lag import WINDOWS_LOOKED_AT, lag
from cdc_core.steps.preview import preview
from cdc_core.steps.snapshots.estimating import estimate_snapshot


def plan_work(
    ctx: Context, tables: list[TableId] | None = None, *, windows: int = WINDOWS_LOOKED_AT
) -> WorkPlan:
    """What `redolake run` would do now, and with ``tables`` what `redolake snapshot --table` would
    read of these.

    Args:
        ctx: The source.
        tables: Tables to read again.
        windows: How many windows say how fast windows are, the newest ones.

    Raises:
        ConfigError: A named table is not captured, or none is left to capture.
        CdcError: The database cannot be reached.
    """
    run = preview(ctx)
    estimate = estimate_snapshot(ctx, tables)
    facts = lag(ctx, windows=windows)
    return WorkPlan(
        run=run,
        snapshot=estimate,
        windows=_windows(ctx, facts),
        headroom=known_headroom(ctx),
    )


def _windows(ctx: Context, facts: LagFacts) -> WindowsPlan:
    work = facts.work
    seconds = {one.what: one.seconds or 0.0 for one in facts.parts if one.seconds is not None}
    to_capture = seconds.get("capture", 0.0)
    redo = to_capture + seconds.get("apply", 0.0) if seconds else None
    capture = apply = pace = None
    if work.redo_seconds:
        capture = to_capture * work.capture_seconds / work.redo_seconds / 60
        apply = (redo or 0.0) * work.apply_seconds / work.redo_seconds / 60
        spent = work.capture_seconds + work.apply_seconds
        pace = work.redo_seconds / spent if spent else None
    return WindowsPlan(
        to_capture=facts.windows_to_capture,
        to_apply=facts.windows_to_apply + facts.windows_to_capture,
        redo_seconds=redo,
        capture_minutes=capture,
        apply_minutes=apply,
        pace=pace,
        tables=tuple(_touched(ctx, one.table, one.changes) for one in work.tables if one.changes),
    )


def _touched(ctx: Context, name: str, changes: int) -> TouchedTable:
    found = mirror_files(ctx.config, TableId.parse(name))
    files, size = (None, None) if found is None else found
    return TouchedTable(table=name, changes=changes, files=files, bytes=size)
