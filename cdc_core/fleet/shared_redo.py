"""How is the redo of one window read once for the sources of several pluggable databases?"""

from __future__ import annotations

from collections.abc import Sequence

from cdc_core.model.scn import ScnWindow
from cdc_core.source import FleetWindow, PrefetchedRedo, Prefetcher, WindowWork
from cdc_core.steps.context import Context
from cdc_core.steps.windows.capture import window_work


def read_shared(
    ctx: Context, window: ScnWindow, beside: Sequence[Context]
) -> list[PrefetchedRedo | None]:
    """Read a window's redo in one pass for a source and for those beside it, which have planned a window with the same bounds.

    Returns:
        What was read for the source, and for each beside it, which their :func:`~cdc_core.steps.windows.capture.capture_window` takes;
        None where that cannot be done.

    Raises:
        CdcError: The pass failed; each window says in its turn whether that lasts.
    """
    source, together = ctx.redo_source, (ctx, *beside)
    if not isinstance(source, Prefetcher):
        return [None for _ in together]
    windows = [FleetWindow(one.redo_source, _work(one, window), one.landing) for one in together]
    return source.prefetch_shared(windows)


def _work(ctx: Context, window: ScnWindow) -> WindowWork:
    record = ctx.window_record(window)
    before = ctx.store.windows.find(ctx.source, ordinals=range(record.ordinal - 1, record.ordinal))
    return window_work(ctx, record, before[0] if before else None, ())
