"""Windows by the clock: a schedule in place of the windows sensor.

Each tick takes everything up to the present, so a night in which Dagster was off, or Oracle was
down, is caught up by the tick behind it. Dagster makes up the last tick that it has missed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from assets.fleet import opened_siblings
from assets.instances import instance_of
from assets.protocols import Opener
from assets.translator import Translator
from assets.waiting import Asked, Tick
from cdc_core.config import SourceConfig
from cdc_core.errors import LeaseHeldError, NotYetError


def windows_schedules(
    config: SourceConfig,
    names: Translator,
    open_pipeline: Opener,
    job_name: str,
    siblings: Sequence[Opener] = (),
) -> list[dg.ScheduleDefinition]:
    """The schedule ``<source>_windows_schedule``; none where the configuration has no ``cron``."""
    options = names.options.windows
    if options.cron is None:
        return []
    on, off = dg.DefaultScheduleStatus.RUNNING, dg.DefaultScheduleStatus.STOPPED
    name = f"{names.source}_windows_schedule"

    @dg.schedule(
        name=name,
        job_name=job_name,
        cron_schedule=options.cron,
        execution_timezone=options.timezone,
        default_status=on if options.enabled else off,
        description="Cuts windows of commit SCNs up to the present, adds them as partitions, "
        "and requests runs for all pending windows, including those that earlier "
        "ticks missed. Does nothing while such a run is in progress.",
    )
    def windows(context: dg.ScheduleEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
        kept = _Kept(instance_of(context), name)
        with open_pipeline() as pipeline, opened_siblings(siblings) as others:
            tick = Tick(instance_of(context), context.log, kept.read(), config, names, pipeline)
            tick.release()
            if busy := tick.busy():
                return dg.SkipReason(f"{busy}; the next tick takes what comes meanwhile")
            try:
                asked = tick.ask(others, limit=None, is_whole=True)
            except (NotYetError, LeaseHeldError) as error:
                return dg.SkipReason(str(error))
            if new := tick.not_loaded():
                context.log.warning(new)
        kept.write(asked.kept)
        if asked.is_idle:
            return dg.SkipReason("no captured table has changed")
        return _once(context, asked) or dg.SkipReason(asked.reason)

    return [windows]


def _once(context: dg.ScheduleEvaluationContext, asked: Asked) -> list[dg.RunRequest]:
    """The runs under keys that name the tick, so that one that is evaluated again asks for none
    twice."""
    time = context.scheduled_execution_time.isoformat()
    return [
        dg.RunRequest(
            run_key=f"{time}:{number}", tags=one.tags, asset_selection=one.asset_selection
        )
        for number, one in enumerate(asked.requests)
    ]


class _Kept:
    """What a tick keeps for the next one. A schedule has no cursor; Dagster keeps those of its
    daemons in a table of keys and values."""

    def __init__(self, instance: dg.DagsterInstance, name: str) -> None:
        self._storage, self._key = instance.daemon_cursor_storage, f"redolake/{name}"

    def read(self) -> dict[str, Any]:
        found = self._storage.get_cursor_values({self._key})
        kept: dict[str, Any] = json.loads(found.get(self._key, "{}"))
        return kept

    def write(self, kept: Mapping[str, Any]) -> None:
        if kept:
            self._storage.set_cursor_values({self._key: json.dumps(dict(kept))})
