"""How are the sources of several pluggable databases of one container database carried, so that all
stand at one SCN?

SCNs and redo logs belong to the container database, so a window of each can end at the same SCN,
and redo is read once for windows with the same bounds (:mod:`cdc_core.fleet.windows`). Each source
has its own fate: one whose pluggable database is closed or gone leaves the others alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from cdc_core.errors import CdcError
from cdc_core.fleet.windows import capture_common_windows, newest_end, worked
from cdc_core.model.reports import StepReport
from cdc_core.model.scn import Scn
from cdc_core.steps.pipeline import Pipeline
from cdc_core.steps.readable_scns import common
from cdc_core.steps.snapshots.joining import FirstStart

REDO_ATTEMPTS = 10
REDO_SECONDS = 1.0
"""How often, and after how long, redo behind a snapshot is looked for again. An open database
writes some every few seconds."""


@dataclass(frozen=True, slots=True)
class Round:
    """What was done of each source, and the errors that stopped some of them, by the names of the
    pluggable databases."""

    done: Mapping[str, list[StepReport]]
    errors: Mapping[str, CdcError]


def run_together(
    pipelines: Mapping[str, Pipeline],
    *,
    sleep: Callable[[float], None] = time.sleep,
    follow: Callable[[str, Iterator[StepReport]], Iterable[StepReport]] = lambda _, steps: steps,
) -> Round:
    """Everything that there is to do now, source by source; then all of those that nothing stopped
    end at one SCN, as of which all of them can be read.

    New ones are read as of one SCN. Windows of those that have begun are cut up to the present
    first, and captured together; else the first one cuts windows up to the present, the others up
    to where it did. One that is ahead, because a snapshot was read later or it was carried alone,
    takes the others along with a window each.

    Where windows end at the redo written last, what was read a moment ago waits for redo behind it,
    for :data:`REDO_ATTEMPTS` seconds; a window ends nowhere else. ``follow`` sees the steps of each
    as they come.
    """
    done: dict[str, list[StepReport]] = {name: [] for name in pipelines}
    errors: dict[str, CdcError] = {}
    ends: dict[str, Scn] = {}

    def carry(name: str, steps: Callable[[], Iterator[StepReport]]) -> None:
        try:
            done[name] += follow(name, steps())
            if (end := newest_end(pipelines[name])) is not None:
                ends[name] = end
        except CdcError as error:
            errors[name] = error
            ends.pop(name, None)

    begin_together(pipelines)
    cut = _shared_end(pipelines, capture_common_windows(pipelines))
    for name, pipeline in pipelines.items():
        carry(name, partial(pipeline.run_once, until=max(ends.values(), default=cut)))
    for attempt in range(REDO_ATTEMPTS):
        read_at = {name: _read_at(pipelines[name]) for name in ends}
        latest = max(read_at, key=read_at.__getitem__, default=None)
        if latest is not None and read_at[latest] > max(ends.values()):
            if attempt:
                sleep(REDO_SECONDS)
            carry(latest, pipelines[latest].run_windows)
        furthest = max(ends.values(), default=Scn(0))
        for name in [name for name, end in ends.items() if end < furthest]:
            carry(name, partial(pipelines[name].run_windows, until=furthest))
        if all(read_at[name] <= furthest or not _closes_online(pipelines[name]) for name in ends):
            break
    return Round(done, errors)


def capture_together(pipelines: Mapping[str, Pipeline], *, until: int | None = None) -> Round:
    """Windows of all, cut up to one SCN, the present or ``until``, and captured; nothing is
    applied."""
    done = capture_common_windows(pipelines, until=until)
    errors: dict[str, CdcError] = {}
    ends = [end for end in map(newest_end, pipelines.values()) if end is not None]
    for name, pipeline in pipelines.items():
        try:
            pipeline.plan_windows(until=max(ends, default=until))
            windows = [one.window for one in pipeline.records.windows(states=("planned",))]
            with pipeline.prefetching(windows):
                done[name] += map(pipeline.capture_window, windows)
        except CdcError as error:
            errors[name] = error
    return Round(done, errors)


def begin_together(pipelines: Mapping[str, Pipeline]) -> None:
    """Begin the sources that are new as of one SCN: the newest of those where each may begin, which
    Oracle has reached in all of them. One that cannot begin now is left to its own turn."""
    firsts: dict[str, FirstStart] = {}

    def look(name: str, pipeline: Pipeline) -> None:
        if not pipeline.records.is_begun:
            firsts[name] = pipeline.read_first_start()

    for name, pipeline in pipelines.items():
        worked(name, partial(look, name, pipeline))
    scn = max((first.snapshot_scn for first in firsts.values()), default=Scn(0))
    for name, first in firsts.items():
        worked(name, partial(pipelines[name].start_snapshot, first=first.read_at(scn)))


def common_scn(pipelines: Mapping[str, Pipeline]) -> Scn | None:
    """The newest SCN as of which every captured mirror of every source can be read; None where
    there is none."""
    spans = common([pipeline.records.readable() for pipeline in pipelines.values()])
    return spans[-1].high if spans else None


def what_delays(pipelines: Mapping[str, Pipeline]) -> str:
    """Why no SCN is common, and what brings one, for people."""
    tables = [
        (name, one)
        for name, pipeline in pipelines.items()
        for one in pipeline.records.tables()
        if one.is_captured
    ]
    for name, one in tables:
        if one.mirror_scn is None:
            return f"the snapshot of {one.table} in {name} is not complete: `redolake run` continues it"
    newest, late = max(tables, key=lambda of: of[1].consistent_scn or 0, default=(None, None))
    behind, slow = min(tables, key=lambda of: of[1].mirror_scn or 0, default=(None, None))
    if late is None or slow is None or (late.consistent_scn or 0) <= (slow.mirror_scn or 0):
        return "`redolake run` ends the windows of all of them at one"
    way_out = (
        f"`redolake --pdb {behind} table resume {slow.table.argument}` lets it follow"
        if slow.state == "paused"
        else "`redolake run` takes it there, as soon as windows can end behind that SCN"
    )
    return (
        f"{late.table} in {newest} was read as of SCN {late.consistent_scn}, and {slow.table} in {behind} stands at SCN "
        f"{slow.mirror_scn}: {way_out}"
    )


def _shared_end(
    pipelines: Mapping[str, Pipeline], captured: Mapping[str, list[StepReport]]
) -> Scn | None:
    """Where the windows end that several sources captured together: what was written since waits
    for the next round, so that it is read together too. None where there are none."""
    ends = [newest_end(pipelines[name]) for name, reports in captured.items() if reports]
    return max(filter(None, ends)) if len(ends) > 1 else None


def _read_at(pipeline: Pipeline) -> Scn:
    """The newest SCN as of which rows of a captured mirror were read."""
    tables = [one for one in pipeline.records.tables() if one.is_captured and one.mirror_scn]
    return Scn(max((one.consistent_scn or 0 for one in tables), default=0))


def _closes_online(pipeline: Pipeline) -> bool:
    return not pipeline.config.capture.waits_for_log_switch
