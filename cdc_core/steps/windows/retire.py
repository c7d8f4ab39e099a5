"""Which windows need no longer be kept, and how does a source with nothing to do stay quiet?

A window in which captured tables have nothing only moves the position. It is forgotten as soon as a
later one is applied: the next window joins the newest one, whatever lay between. Windows with
changes stay for ``retention.window_days``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from cdc_core.landing.kept import RetiredWindows, keep_retired, kept_retired
from cdc_core.landing.layout import window_folder
from cdc_core.model.records import WindowRecord
from cdc_core.model.scn import ScnWindow
from cdc_core.steps.context import Context
from cdc_core.steps.overtaken import overtaken_where_forgotten
from cdc_core.steps.signal_rows import unread_signals_from
from cdc_core.steps.windows.apply import apply_window
from cdc_core.steps.windows.definition_sets import remove_unnamed, sets_of
from cdc_core.steps.windows.plan import pending_records

READ_SECONDS_MAX = 15.0
READ_SECONDS_START = 1.0
READ_SPAN_MAX = timedelta(hours=2)


def pass_idle_windows(ctx: Context, capture: Callable[[ScnWindow], object]) -> WindowRecord | None:
    """Capture the next windows and let the tables take those that are idle, which needs no Spark;
    stop at the first one that is not, or that may take long to read.

    Args:
        capture: Captures one window.

    Returns:
        The window at which it stopped, the first that waits; None if none does.

    Raises:
        OvertakenError: Another process has taken one of them, and forgotten it.
    """
    pending = pending_records(ctx)
    look_up = ctx.store.windows.get
    with overtaken_where_forgotten(look_up, [one.window for one in pending]):
        for waiting in pending:
            record = waiting
            if waiting.state == "planned":
                if not _is_quickly_read(ctx, waiting):
                    return waiting
                capture(waiting.window)
                record = ctx.window_record(waiting.window)
            if not record.is_idle:
                return record
            apply_window(ctx, record.window)
    return None


def retire_windows(ctx: Context) -> list[WindowRecord]:
    """Forget windows that are not needed any more, in metadata store and landing; return them.

    The newest applied window stays, and so does every one in which a transaction that is still open
    may have begun, or whose signals nobody has read.
    """
    days = ctx.config.retention.window_days
    before = None if days is None else datetime.now(UTC) - timedelta(days=days)
    wanted_from = unread_signals_from(ctx)
    listed = ctx.store.history.retirable(before=before, wanted_from=wanted_from)
    if not listed:
        return []
    with ctx.lease("retire", wait_seconds=60):
        # What landing does not keep now, nobody could keep once the store has forgotten it.
        keep_retired(ctx.landing, ctx.source, _retired(ctx, listed))
        retired = ctx.store.history.retire(before=before, wanted_from=wanted_from)
        if retired != listed:  # the tables got on meanwhile
            keep_retired(ctx.landing, ctx.source, _retired(ctx, retired))
        sets = sets_of(ctx, retired)
        for record in retired:
            ctx.landing.remove(window_folder(ctx.source, record.window))
        if sets:
            remove_unnamed(ctx, sets)
        ctx.store.history.forget_counts([record.ordinal for record in retired])
    return retired


def _retired(ctx: Context, gone: list[WindowRecord]) -> RetiredWindows:
    """What landing keeps of windows below the first one that is left; every table that takes
    windows has them."""
    known = kept_retired(ctx.landing, ctx.source_record())
    # The newest window stays in any case.
    first = next(one for one in ctx.store.windows.find(limit=len(gone) + 1) if one not in gone)
    touched = dict(known.touched)
    brought = ctx.store.windows.table_counts(range(known.ordinal, first.ordinal))
    for record in gone:
        if record.ordinal < first.ordinal:
            for one in brought.get(record.ordinal, ()):
                touched[str(one.table)] = int(record.window.scn_high)
    return RetiredWindows(first.ordinal, int(first.window.scn_low), touched)


def _is_quickly_read(ctx: Context, window: WindowRecord) -> bool:
    """Would this window take seconds to read, judged by the last one and by the SCNs of both?
    Whoever looks for idle windows must not wait for long; a window that takes longer is announced
    unread."""
    done = ctx.captured_windows()
    if not done or done[0].ended is None or window.ended is None:
        return False
    beyond_start = max(0.0, (done[0].seconds or 0.0) - READ_SECONDS_START)
    expected = READ_SECONDS_START + beyond_start * _scns(window) / _scns(done[0])
    return expected <= READ_SECONDS_MAX and window.ended - done[0].ended <= READ_SPAN_MAX


def _scns(record: WindowRecord) -> int:
    return record.window.scn_high - record.window.scn_low
