"""How are the sources of several pluggable databases of one container database carried, so that all stand at one SCN?

SCNs and redo logs belong to the container database, so a window of each can end at the same SCN, and the redo of windows with the same
bounds is read once for all. Each source has its own fate: one whose pluggable database is closed or gone leaves the others alone.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from cdc_core.errors import CdcError
from cdc_core.model.reports import StepReport
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.steps.pipeline import Pipeline

_LOG = logging.getLogger("cdc_core.steps")

WINDOWS_COMPARED = 1_000
"""Among so many of each source's newest windows one with a common end is looked for."""


@dataclass(frozen=True, slots=True)
class Round:
    """What was done of each source, and the errors that stopped some of them, by the names of the pluggable databases."""

    done: Mapping[str, list[StepReport]]
    errors: Mapping[str, CdcError]


def run_together(pipelines: Mapping[str, Pipeline]) -> Round:
    """Everything that there is to do now, source by source; then all of those that nothing stopped have windows with one common end.

    The first one cuts windows up to the present, the others up to where it did. One that is ahead, because its snapshot was read later or
    it was carried alone, takes the others along with a window each.
    """
    done: dict[str, list[StepReport]] = {name: [] for name in pipelines}
    errors: dict[str, CdcError] = {}
    ends: dict[str, Scn] = {}

    def carry(name: str, steps: Callable[[], Iterator[StepReport]]) -> None:
        try:
            done[name] += steps()
            ends[name] = newest_end(pipelines[name]) or Scn(0)
        except CdcError as error:
            errors[name] = error
            ends.pop(name, None)

    capture_shared(pipelines)
    for name, pipeline in pipelines.items():
        cut = next(iter(ends.values()), None)
        carry(name, partial(pipeline.run_once, until=cut))
        if ends.get(name) == 0:  # its snapshot was read behind the cut
            carry(name, pipeline.run_windows)
    furthest = max(ends.values(), default=Scn(0))
    for name in [name for name, end in ends.items() if end < furthest]:
        carry(name, partial(pipelines[name].run_windows, until=furthest))
    return Round(done, errors)


def capture_shared(pipelines: Mapping[str, Pipeline]) -> None:
    """Cut windows with common ends, and capture those that several sources have from one pass over the redo. What cannot be done now is
    left to each source, which then says why."""
    waiting: dict[str, list[ScnWindow]] = {}
    cut: Scn | None = None
    for name, pipeline in pipelines.items():
        if _worked(name, partial(_plan, pipeline, cut)):
            planned = pipeline.records.windows(states=("planned",))
            waiting[name] = [one.window for one in planned]
            cut = cut or newest_end(pipeline)
    counted = Counter(window for windows in waiting.values() for window in windows)
    for window in sorted(window for window, sources in counted.items() if sources > 1):
        for name in [name for name, windows in waiting.items() if window in windows]:
            at = waiting[name].index(window)
            before, waiting[name] = waiting[name][:at], waiting[name][at:]
            if not _worked(name, partial(_capture, pipelines[name], before)):
                del waiting[name]
        sharing = [name for name, windows in waiting.items() if window in windows]
        with _shared_redo(window, [pipelines[name] for name in sharing]):
            for name in sharing:
                if not _worked(name, partial(_capture, pipelines[name], [window])):
                    del waiting[name]


def _plan(pipeline: Pipeline, until: Scn | None) -> None:
    if pipeline.records.is_begun:
        pipeline.plan_windows(until=until)


def _capture(pipeline: Pipeline, windows: Sequence[ScnWindow]) -> None:
    for window in windows:
        pipeline.capture_window(window)


@contextmanager
def _shared_redo(window: ScnWindow, sharing: Sequence[Pipeline]) -> Iterator[None]:
    """The block captures the window of these sources, from one reading if that can be."""
    with ExitStack() as opened:
        if len(sharing) > 1:
            try:
                opened.enter_context(sharing[0].reading_shared(window, sharing[1:]))
            except CdcError as error:
                _LOG.info(
                    "each source reads the window for itself window=%s: %s", window.key, error
                )
        yield


def _worked(name: str, step: Callable[[], object]) -> bool:
    """Did a step succeed? What stops it, the source's own turn says."""
    try:
        step()
    except CdcError as error:
        _LOG.info("left to the source's own turn pdb=%s: %s", name, error)
        return False
    return True


def common_scn(pipelines: Mapping[str, Pipeline]) -> Scn | None:
    """The newest SCN as of which every mirror of every source can be read: each source has an applied window that ends there, and no
    captured table has a newer snapshot or stands behind it; None where there is none."""
    ends: set[Scn] | None = None
    for pipeline in pipelines.values():
        records = pipeline.records
        applied = records.windows(states=("applied",), newest_first=True, limit=WINDOWS_COMPARED)
        tables = [one for one in records.tables() if one.is_captured]
        low = max((one.consistent_scn or 0 for one in tables), default=0)
        high = min((one.mirror_scn or 0 for one in tables), default=0)
        own = {one.window.scn_high for one in applied if low <= one.window.scn_high <= high}
        ends = own if ends is None else ends & own
    return max(ends, default=None) if ends else None


def newest_end(pipeline: Pipeline) -> Scn | None:
    """The end of the newest window that was planned; None before the first one."""
    newest = pipeline.records.windows(newest_first=True, limit=1)
    return newest[0].window.scn_high if newest else None
