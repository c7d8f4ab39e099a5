"""What do the steps of a window have in common?"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from cdc_core.landing.layout import window_folder
from cdc_core.landing.manifest import WindowManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord
from cdc_core.model.reports import StepKind, StepReport, TableApplied
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.steps.context import Context, seconds_since

T = TypeVar("T")

_LOG = logging.getLogger(__name__)


def lacks_commits(ctx: Context, state: TableRecord) -> bool:
    """Do commits of the table that belong at or below its position come with a later window? A
    window is marked up to the last one that brings some, so the one in which the table stands says
    it."""
    position = state.mirror_scn or Scn(0)
    at_position = ctx.store.windows.after(Scn(position - 1), until=position)
    return any(one.inexact and str(state.table) in one.inexact.tables for one in at_position)


def verify_files(ctx: Context, manifest: WindowManifest) -> list[str]:
    """Paths of a window's redo files, checked against the manifest."""
    folder = window_folder(ctx.source, manifest.window)
    ctx.landing.local_paths(folder, [manifest.transactions_file])
    return ctx.landing.local_paths(folder, manifest.redo_files)


def side_by_side(ctx: Context, tables: Sequence[TableId], work: Callable[[TableId], T]) -> list[T]:
    """Run the tables' work in a few threads; the first error is raised after all have ended."""
    with ThreadPoolExecutor(max_workers=ctx.config.lake.tables_at_once) as pool:
        futures = [pool.submit(work, table) for table in tables]
    return [future.result() for future in futures]


def note_quarantine(ctx: Context, table: TableId, window: ScnWindow, applied: TableApplied) -> None:
    """Note and tell how many rows of the table are in quarantine."""
    if applied.in_quarantine is not None:
        ctx.store.tables.note_quarantine(table, applied.in_quarantine)
    if applied.unfit_values:
        _LOG.warning(
            "values that do not fit their columns are NULL table=%s window=%s values=%d",
            table, window.key, applied.unfit_values,
        )  # fmt: skip
    if applied.quarantined:
        _LOG.warning(
            "redo rows are in quarantine table=%s window=%s rows=%d all=%d",
            table, window.key, applied.quarantined, applied.in_quarantine,
        )  # fmt: skip


def window_report(
    kind: StepKind,
    window: ScnWindow,
    started: float,
    applied: Iterable[TableApplied],
    *,
    repeated: bool,
) -> StepReport:
    done = tuple(applied)
    return StepReport(
        kind=kind,
        key=window.key,
        seconds=seconds_since(started),
        rows=sum(table.changes for table in done),
        tables=done,
        scn_low=window.scn_low,
        scn_high=window.scn_high,
        repeated=repeated,
    )
