"""How is a window that was applied before taken again?"""

from __future__ import annotations

import time
from dataclasses import replace

from cdc_core.errors import WindowOrderError
from cdc_core.landing.manifest import WindowManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import StepReport, TableApplied
from cdc_core.model.scn import ScnWindow
from cdc_core.steps.context import Context, seconds_since
from cdc_core.steps.windows.shared import captured_window, covered_scn, side_by_side, window_report


def replay_window(
    ctx: Context, window: ScnWindow, tables: list[TableId] | None = None
) -> StepReport:
    """Take an old window again: its keys are derived once more from the change log, so an undamaged mirror stays as it is.

    Raises:
        WindowOrderError: A table has not taken the window yet: apply it first.
    """
    started = time.monotonic()
    captured_window(ctx, window)
    manifest, _ = ctx.window_manifest(window)
    states = {table.table: table for table in ctx.store.tables(ctx.source)}
    wanted = ctx.configured(tables)
    for table in wanted:
        state = states.get(table)
        if state is None or state.mirror_scn is None or state.mirror_scn < window.scn_high:
            raise WindowOrderError(
                "only a window that was applied can be replayed",
                hint="Run `redolake run` (or materialize the window) first.",
                window=window.key,
                table=table,
            )
    touched = [table for table in wanted if str(table) in manifest.tables_committed]
    applied = side_by_side(ctx, touched, lambda table: _replay_table(ctx, manifest, table))
    return ctx.reported(window_report("window-replayed", window, started, applied, repeated=True))


def _replay_table(ctx: Context, manifest: WindowManifest, table: TableId) -> TableApplied:
    started = time.monotonic()
    with ctx.lease(f"table/{table}", wait_seconds=120) as lease:
        latest = ctx.store.schema_versions(ctx.source, table)[-1].schema
        done = ctx.lake.replay_window(
            manifest,
            table,
            latest,
            generation=ctx.source_record().generation,
            covered_scn=covered_scn(ctx, table),
            fence=lease.check,
        )
        return replace(done, seconds=seconds_since(started))
