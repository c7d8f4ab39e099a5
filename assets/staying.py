"""How does a run take windows as they come, once it has taken those for which it was requested?

Starting a run costs Dagster more than a small window costs the pipeline. So a run that the windows
sensor requested stays for some minutes: it looks for new redo as often as the sensor does, adds
each window as a partition, captures and applies it by the same steps, and reports it at once, so
that partitions and lineage are as if each window had a run. What stops a window ends the stay and
not the run; the next run is requested for that window, and fails, is tried again or waits as any
other. Neither Kafka nor Dagster's own storage ends a stay at their first error: what they did not
take is sent, and reported, at a later look.
"""

# No postponed annotations in this module: Dagster wants the classes themselves, not their names.

import time
from collections.abc import Sequence

import dagster as dg
from sqlalchemy.exc import SQLAlchemyError

from assets.history import add_keys
from assets.publishing import report_published
from assets.runs import MINUTES_TAG, needs_its_place
from assets.translator import Translator
from assets.waiting import NOTHING, Tick, next_windows, snapshot_keys, window_keys
from assets.window_steps import WindowApplication, capture_each
from cdc_core import fleet
from cdc_core.config import SourceConfig
from cdc_core.errors import CdcError, LeaseHeldError, LogsNotReadyError, NotYetError
from cdc_core.model.reports import StepReport
from cdc_core.model.scn import ScnWindow
from cdc_core.steps import Pipeline

LOOK_SECONDS_MAX = 10.0
"""How long a run that stays rests before it looks again whether another one needs its place."""

STORAGE_FAILURES_MAX = 5
"""So many times in a row Dagster's storage may fail before the stay ends. The next tick of the
windows sensor reports what is missing."""


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
    failures = 0
    while time.monotonic() < end:
        try:
            if why := needs_its_place(context.instance, context.run, pools, keeps_out=keeps_out):
                context.log.info(f"{why}: this run ends, and the next one continues")
                return
            if time.monotonic() < due:
                rest = min(due - time.monotonic(), LOOK_SECONDS_MAX, end - time.monotonic())
                time.sleep(max(0.0, rest))
                continue
            due = time.monotonic() + interval
            visit.look()
            failures = 0
        except (NotYetError, LeaseHeldError, LogsNotReadyError) as error:
            context.log.info(f"{error}: the next look is in {interval} s")
        except CdcError as error:
            context.log.warning(f"this run ends, and the next one tries again: {error}")
            return
        except Exception as error:
            if not _is_of_storage(error):
                raise
            failures += 1
            visit.is_behind = True
            context.log.warning(f"Dagster's storage failed: {type(error).__name__}")
            if failures == STORAGE_FAILURES_MAX:
                context.log.warning(
                    "this run ends; the sensor's next tick reports its last windows"
                )
                return
            time.sleep(min(interval, LOOK_SECONDS_MAX))


def _is_of_storage(error: BaseException | None) -> bool:
    """Does Dagster's storage not answer? It raises SQLAlchemy's errors, or its own because of one.
    Those of the metadata store are a CdcError before they get here."""
    while error is not None and not isinstance(error, SQLAlchemyError):
        error = error.__cause__
    return error is not None


class _Visit:
    """What a run that stays does at each look.

    Attributes:
        is_behind: Dagster may lack events of windows that were taken.
    """

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
        self.is_behind = False
        self._owes_events = False
        self._pause = names.options.windows.interval_seconds
        self._publishes_at = 0.0

    def look(self) -> None:
        """Cut windows up to the present, take and report those that wait, and send their events.

        Raises:
            CdcError: What stops a window, or the look at Oracle.
            SQLAlchemyError: Dagster's storage fails.
        """
        try:
            if self.is_behind:
                self._tick.show()
                self.is_behind = False
            self._take()
            if self._owes_events and time.monotonic() >= self._publishes_at:
                self._publish()
        finally:
            self._pipeline.release_sessions()

    def _take(self) -> None:
        limit, landed = self._config.capture.windows_per_run_max, dict[ScnWindow, StepReport]()

        def capture(window: ScnWindow) -> StepReport:
            landed[window] = fleet.capture_window(self._pipeline, self._others, window)
            return landed[window]

        if not self._tick.look(self._others, limit=limit, capture=capture):
            return
        waiting = next_windows(self._pipeline, limit)
        if not waiting:
            return
        partitions = [(one.window, one.key) for one in waiting]
        self._owes_events = self._config.publish.bootstrap_servers is not None
        add_keys(self._context.instance, self._names.windows, [key for _, key in partitions])
        captured = capture_each(
            self._context, self._pipeline, self._others, self._names, partitions, landed
        )
        self._work.take_each(captured, last=partitions[-1])

    def _publish(self) -> None:
        """Send events as the run behind this one would. What fails is sent at a later look, the
        pause before it twice as long after each failure: Kafka's client waits for a minute."""
        try:
            report_published(self._context, self._pipeline, self._names)
        except CdcError as error:
            self._publishes_at = time.monotonic() + self._pause
            self._pause *= 2
            self._context.log.warning(f"events are sent later, in the same order: {error}")
        else:
            self._owes_events = False
            self._pause = self._names.options.windows.interval_seconds
