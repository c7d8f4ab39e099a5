"""How are windows of several pluggable databases cut at one SCN, and captured from one reading of
the redo?

SCNs and redo logs belong to the container database. Nothing here is needed for one source to be
right: what cannot be cut or captured together is left to each source's own turn, which then says
why.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from cdc_core.errors import CdcError
from cdc_core.fleet.shared_redo import shared_redo
from cdc_core.model.reports import StepReport
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.steps.pipeline import Pipeline

_LOG = logging.getLogger("cdc_core.steps")

SHARED_LEASE = "shared-capture"
"""Held, of the source whose name is first, by who reads redo for several: another process finds it
landed, and reads nothing."""


def cut_windows(source: Pipeline, others: Sequence[Pipeline], *, pending_max: int) -> None:
    """Cut a source's windows to where the furthest of the others is, and on to the present; then
    those of the others to the same SCN. One with ``pending_max`` windows that wait gets no more.

    Raises:
        CdcError: The source's windows cannot be cut. Of the others, that is left to their own
            turns.
    """
    ends = [end for end in map(newest_end, others) if end is not None]
    ahead, own = max(ends, default=Scn(0)), newest_end(source)
    if len(source.pending_windows()) < pending_max:
        if own is not None and own < ahead:
            source.plan_windows(until=ahead)
        source.plan_windows()
    end = newest_end(source)
    for other in others:
        its = newest_end(other)
        if its is None or end is None or its >= end or len(other.pending_windows()) >= pending_max:
            continue
        worked(other.config.name, partial(other.plan_windows, until=end))


def capture_window(
    source: Pipeline,
    others: Sequence[Pipeline],
    window: ScnWindow,
    *,
    wait_seconds: float = 0,
) -> StepReport:
    """Capture a window, and that of the others with the same bounds where it is their next one, if
    one reading serves them all.

    Args:
        wait_seconds: How long to wait while another process reads redo for several.

    Raises:
        LeaseHeldError: Another process still does.
        CdcError: The source's window cannot be captured. Of the others, that is left to their own
            turns.
    """
    if not _is_next(source, window) or not any(_is_next(other, window) for other in others):
        return source.capture_window(window)
    keeper = min([source, *others], key=lambda one: one.config.name)
    with keeper.lease(SHARED_LEASE, wait_seconds=wait_seconds, of_process=True):
        sharing = [one for one in (source, *others) if _is_next(one, window)]
        with shared_redo(window, sharing) as is_read:
            for one, was_read in zip(sharing, is_read, strict=True):
                if was_read and one is not source:
                    worked(one.config.name, partial(one.capture_window, window))
            return source.capture_window(window)


def is_awaited(others: Sequence[Pipeline], window: ScnWindow) -> bool:
    """Has one of the others a window with these bounds that is not captured yet?"""
    found = [other.records.window(window) for other in others]
    return any(one is not None and one.state == "planned" for one in found)


def capture_common_windows(
    pipelines: Mapping[str, Pipeline], *, until: int | None = None
) -> dict[str, list[StepReport]]:
    """Cut windows with common ends, up to the present or to ``until``, and capture those that
    several sources have from one pass over the redo; what was captured of each."""
    done: dict[str, list[StepReport]] = {name: [] for name in pipelines}
    waiting: dict[str, list[ScnWindow]] = {}
    cut: Scn | None = None
    for name, pipeline in pipelines.items():
        if worked(name, partial(_plan, pipeline, until if cut is None else cut)):
            planned = pipeline.records.windows(states=("planned",))
            waiting[name] = [one.window for one in planned]
            cut = cut or newest_end(pipeline)
    counted = Counter(window for windows in waiting.values() for window in windows)
    for window in sorted(window for window, sources in counted.items() if sources > 1):
        for name in [name for name, windows in waiting.items() if window in windows]:
            at = waiting[name].index(window)
            before, waiting[name] = waiting[name][:at], waiting[name][at:]
            if not worked(name, partial(_capture, pipelines[name], before, done[name])):
                del waiting[name]
        sharing = [name for name, windows in waiting.items() if window in windows]
        with shared_redo(window, [pipelines[name] for name in sharing]):
            for name in sharing:
                if not worked(name, partial(_capture, pipelines[name], [window], done[name])):
                    del waiting[name]
    return done


def newest_end(source: Pipeline) -> Scn | None:
    """The end of the newest window that was planned; before the first one where the source begins,
    None if it has not begun."""
    newest = source.records.windows(newest_first=True, limit=1)
    return newest[0].window.scn_high if newest else source.records.begins_at


def worked(name: str, step: Callable[[], object]) -> bool:
    """Did a step succeed? What stops it, the source's own turn says."""
    try:
        step()
    except CdcError as error:
        _LOG.info("left to the source's own turn source=%s: %s", name, error)
        return False
    return True


def _plan(pipeline: Pipeline, until: int | None) -> None:
    if pipeline.records.is_begun:
        pipeline.plan_windows(until=until)


def _capture(pipeline: Pipeline, windows: Sequence[ScnWindow], done: list[StepReport]) -> None:
    for window in windows:
        done.append(pipeline.capture_window(window))


def _is_next(source: Pipeline, window: ScnWindow) -> bool:
    """Is it the first of the source's windows that is not captured?"""
    planned = source.records.windows(states=("planned",), limit=1)
    return [one.window for one in planned] == [window]
