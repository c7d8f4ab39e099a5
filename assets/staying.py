"""How does a run take windows as they come, once it has taken those for which it was requested?

Starting a run costs Dagster more than a small window costs the pipeline. So a run that the windows
sensor requested stays for some minutes: it looks for new redo as often as the sensor does, adds
each window as a partition, captures and applies it by the same steps, and reports it at once, so
that partitions and lineage are as if each window had a run. What stops a window ends the stay and
not the run; the next run is requested for that window, and fails, is tried again or waits as any
other.
"""

# No postponed annotations in this module: Dagster wants the classes themselves, not their names.

import time
from collections.abc import Sequence

import dagster as dg

from assets.history import add_keys
from assets.publishing import report_published
from assets.runs import MINUTES_TAG, needs_its_place
from assets.translator import Translator
from assets.waiting import NOTHING, Tick, next_windows, snapshot_keys, window_keys
from assets.window_steps import WindowApplication, capture_each
from cdc_core.config import SourceConfig
from cdc_core.errors import CdcError, LeaseHeldError, LogsNotReadyError, NotYetError
from cdc_core.steps import Pipeline

LOOK_SECONDS_MAX = 10.0
"""How long a run that stays rests before it looks again whether another one needs its place."""


def stay(
    context: dg.AssetExecutionContext,
    pipeline: Pipeline,
    config: SourceConfig,
    names: Translator,
    others: Sequence[Pipeline],
) -> None:
    """Take windows as they come, for as many minutes as the run's tag says; return at once where it
    has none.

    Args:
        others: The sources beside it, cut and read together with it.
    """
    left = 60 * float(context.run.tags.get(MINUTES_TAG, 0))
    interval = names.options.windows.interval_seconds
    end, due = time.monotonic() + left, time.monotonic() + interval
    pools = (names.capture_pool, names.apply_pool)
    has_one_writer = not config.lake.has_atomic_commits
    keys = window_keys(config, names) | set(snapshot_keys(config, names))
    keeps_out = keys if has_one_writer else ()
    visit = _Visit(context, pipeline, config, names, others)
    while time.monotonic() < end:
        if why := needs_its_place(context.instance, context.run, pools, keeps_out=keeps_out):
            context.log.info(f"{why}: this run ends, and the next one continues")
            return
        if time.monotonic() < due:
            rest = min(due - time.monotonic(), LOOK_SECONDS_MAX, end - time.monotonic())
            time.sleep(max(0.0, rest))
            continue
        due = time.monotonic() + interval
        try:
            visit.look()
        except (NotYetError, LeaseHeldError, LogsNotReadyError) as error:
            context.log.info(f"{error}: the next look is in {interval} s")
        except CdcError as error:
            context.log.warning(f"this run ends, and the next one tries again: {error}")
            return
        finally:
            pipeline.release_sessions()


class _Visit:
    """What a run that stays does at each look."""

    def __init__(
        self,
        context: dg.AssetExecutionContext,
        pipeline: Pipeline,
        config: SourceConfig,
        names: Translator,
        others: Sequence[Pipeline],
    ) -> None:
        self._context, self._pipeline = context, pipeline
        self._config, self._names, self._others = config, names, others
        self._tick = Tick(context.instance, context.log, NOTHING, config, names, pipeline)
        tables = [one.table for one in config.tables]
        self._work = WindowApplication(
            context,
            pipeline,
            config,
            names,
            tables,
            window_keys(config, names),
            changed_only=not names.options.takes_all(len(tables)),
        )
        self._publishes = config.publish.bootstrap_servers is not None

    def look(self) -> None:
        """Cut windows up to the present, and take and report those that wait.

        Raises:
            CdcError: What stops a window, or the look at Oracle.
        """
        limit = self._config.capture.windows_per_run_max
        if not self._tick.look(self._others, limit=limit):
            return
        waiting = next_windows(self._pipeline, limit)
        if not waiting:
            return
        partitions = [(one.window, one.key) for one in waiting]
        add_keys(self._context.instance, self._names.windows, [key for _, key in partitions])
        captured = capture_each(
            self._context, self._pipeline, self._others, self._names, partitions
        )
        self._work.take_each(captured, last=partitions[-1])
        if self._publishes:
            self._publish()

    def _publish(self) -> None:
        """Send events as the run behind this one would; what fails is left to it."""
        try:
            report_published(self._context, self._pipeline, self._names)
        except CdcError as error:
            self._publishes = False
            self._context.log.warning(f"events are published when this run has ended: {error}")
