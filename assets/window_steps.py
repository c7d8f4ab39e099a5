"""How does a run take windows, one after the other, and report each as a partition?

Each finished window is reported at once, in SCN order, so that a failure half-way leaves the
windows before it materialized and the newest event is the newest window's. Order and exactly-once
are kept by the pipeline's own state: a window that the mirrors have is replayed, one too early is
refused.
"""

# No postponed annotations in this module: Dagster wants the classes themselves, not their names.

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import dagster as dg

from assets import metadata
from assets.streams import stopping_line
from assets.translator import CODE_VERSION, Layer, Translator
from cdc_core import fleet
from cdc_core.config import SourceConfig
from cdc_core.errors import ConfigError, NotYetError, OvertakenError
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import DeltaLayer, StepReport, TableApplied
from cdc_core.model.scn import Scn, ScnWindow, window_end
from cdc_core.steps import Pipeline
from cdc_core.steps.delta_logs import delta_rows, side_table_names, side_table_rows
from cdc_core.steps.overtaken import look_again, overtaken_where_forgotten

REPORTED = {"__source_asset_observation__": True}
"""Metadata of an output whose partitions have been reported already. Dagster writes no further
events for such an output: what it would write is one event per partition in no order. Other steps
of the run see the output as any."""

Partition = tuple[ScnWindow, str]

SHARED_WAIT_SECONDS = 600.0
"""How long a run waits while another one reads the redo of a window for both, before it fails and
is tried again."""


def capture_each(
    context: dg.AssetExecutionContext,
    pipeline: Pipeline,
    others: Sequence[Pipeline],
    names: Translator,
    partitions: Sequence[Partition],
    landed: Mapping[ScnWindow, StepReport] = MappingProxyType({}),
) -> Iterator[Partition]:
    """Capture windows in order, and report and yield each; the redo of later ones is prefetched.

    Windows land for the sources beside it as well, where they wait for one with the same bounds.

    Args:
        landed: Windows that this process has just captured, with what it reported of them.
    """
    alone = [
        window
        for window, _ in partitions
        if window not in landed and not fleet.is_awaited(others, window)
    ]
    with pipeline.carrying_windows(), pipeline.prefetching(alone):
        for window, key in partitions:
            step = partial(
                fleet.capture_window, pipeline, others, window, wait_seconds=SHARED_WAIT_SECONDS
            )
            report = landed.get(window) or unless_forgotten(context, pipeline, window, step)
            if report is None:
                continue
            log_stopped(context, report)
            values = metadata.of_report(report) | _times(pipeline, window)
            values["dagster/partition_row_count"] = report.rows
            finished(context, names.redo_key, key, values)
            yield window, key


def in_order(context: dg.AssetExecutionContext, pipeline: Pipeline) -> list[Partition]:
    """The windows of a run with their partition keys, by SCN. One that the source keeps no more,
    and that every table has passed, is left out: another process found it idle and forgot it, or it
    is older than the retention.

    Raises:
        PartitionKeyError: A key is not a window.
        ConfigError: The source never had such a window.
    """
    records, found = pipeline.records, []
    for key in context.partition_keys:
        record = records.window_named(key)
        if record is not None:
            found.append((record.window, key))
        elif window_end(key) <= records.taken_up_to:
            _say_forgotten(context, key)
        else:
            raise ConfigError(
                "this partition is not a window of the source",
                hint="Delete the partition in Dagster; the sensor and the schedule add the "
                "existing ones.",
                partition=key,
            )
    return sorted(found)


def unless_forgotten(
    context: dg.AssetExecutionContext,
    pipeline: Pipeline,
    window: ScnWindow,
    step: Callable[[], StepReport],
) -> StepReport | None:
    """A step's report; None where another process has taken the window meanwhile, and forgotten it
    since it was idle.

    Raises:
        CdcError: What stopped the step.
    """
    records = pipeline.records
    try:
        with overtaken_where_forgotten(records.window, [window]):
            return look_again(step)
    except OvertakenError:
        if records.window(window) is not None or window.scn_high > records.taken_up_to:
            raise
        _say_forgotten(context, window.key)
        return None


def _say_forgotten(context: dg.AssetExecutionContext, key: str) -> None:
    context.log.info(
        f"window {key} is retired: every table has passed it, so there is nothing to do"
    )


def finished(
    context: dg.AssetExecutionContext, key: dg.AssetKey, partition: str, values: dict[str, Any]
) -> None:
    """Report one finished partition."""
    tags = {"dagster/code_version": CODE_VERSION}
    context.log_event(dg.AssetMaterialization(key, partition=partition, metadata=values, tags=tags))


def log_stopped(context: dg.AssetExecutionContext, report: StepReport) -> None:
    """Say in the run's log which tables a step stopped."""
    for end in report.stopped:
        context.log.error(stopping_line(end))


def _times(pipeline: Pipeline, window: ScnWindow) -> dict[str, Any]:
    record = pipeline.records.window(window)
    return {} if record is None else metadata.of_times(record)


@dataclass(frozen=True)
class WindowApplication:
    """Windows taken by some tables in one step.

    Args:
        selected: The assets that are reported.
        changed_only: Of the tables, those that a window changes are reported for it.
    """

    context: dg.AssetExecutionContext
    pipeline: Pipeline
    config: SourceConfig
    names: Translator
    tables: list[TableId]
    selected: Collection[dg.AssetKey]
    changed_only: bool

    def take_each(self, partitions: Iterable[Partition], *, last: Partition | None) -> bool:
        """Take windows in order, each reported when it is done; then bring up to the ``last`` of
        them what follows the mirrors: histories, views, names in the catalog. Were the views
        renewed?"""
        for partition in partitions:
            if self.tables:
                self.take(partition, is_last=partition == last)
            if self.finished_by_all(partition[0]):
                self.report_side_tables(partition)
        self.keep_history()
        has_views = last is not None and self.keep_views(last[1])
        self.register()
        return has_views

    def take(self, partition: Partition, *, is_last: bool) -> None:
        """Apply the window, or replay it if it was applied before; report it for each asset that
        has it now.

        The last window of a run has the tables' columns as well.
        """
        window, key = partition
        replayed = self._is_applied(window)
        if replayed:
            step = partial(self.pipeline.replay_window, window, self._having(window))
        else:
            step = partial(self.pipeline.apply_window, window, self.tables)
        report = unless_forgotten(self.context, self.pipeline, window, step)
        if report is None:
            return
        log_stopped(self.context, report)
        times = _times(self.pipeline, window)
        if replayed:  # it would only say how old the window is
            times.pop("cdc/lag_seconds", None)
        applied = {one.table: one for one in report.tables if one.changes or not self.changed_only}
        for table in self._having(window):
            if self.changed_only and table not in applied:
                continue
            one = applied.get(table, TableApplied(table=table, skipped=True))
            for layer in ("changelog", "mirror"):
                self._report(layer, key, report, one, times, with_columns=is_last)

    def keep_history(self) -> None:
        """Bring the tables' histories up to what was applied; say which stay behind."""
        config = self.pipeline.config
        having = [one for one in self.tables if one in config.entries and config.has_history(one)]
        for found in self.pipeline.keep_history(having):
            if found.failed is not None:
                self.context.log.error(f"the history of {found.table}: {found.failed}")

    def keep_views(self, partition: str) -> bool:
        """Let the views show the newest consistent cut, and report which with the run's last
        window; False where they are not selected, or no mirror is exact yet."""
        if self.names.views_key not in self.selected:
            return False
        try:
            cut = self.pipeline.keep_current_views()
        except NotYetError as error:
            self.context.log.warning(f"no views yet: {error.message}")
            return False
        if cut is None:
            return False
        finished(self.context, self.names.views_key, partition, metadata.of_cut(cut))
        return True

    def register(self) -> None:
        """Let the catalog follow the tables; say which do not get there."""
        if self.pipeline.config.lake.catalog is None:
            return
        for found in self.pipeline.register_tables(list(self.tables)):
            if found.failed is not None:
                self.context.log.error(f"{found.table} in the catalog: {found.failed}")

    def _report(
        self,
        layer: DeltaLayer,
        partition: str,
        report: StepReport,
        applied: TableApplied,
        times: dict[str, Any],
        *,
        with_columns: bool,
    ) -> None:
        key = self.names.key(layer, applied.table)
        if key not in self.selected:
            return
        values = metadata.of_layer(layer, report, applied) | times
        if with_columns:
            values |= self._columns_and_rows(layer, applied.table, report)
        finished(self.context, key, partition, values)

    def _columns_and_rows(
        self, layer: DeltaLayer, table: TableId, report: StepReport
    ) -> dict[str, Any]:
        """Columns as of the window; the table's rows only where it stands at that window."""
        records = self.pipeline.records
        assert report.scn_high is not None
        upstream: Layer = "oracle" if layer == "changelog" else "changelog"
        columns = records.columns(table, Scn(report.scn_high))
        values = metadata.of_columns(columns, self.names.key(upstream, table))
        state = records.table(table)
        if state is not None and state.mirror_scn == report.scn_high:
            values |= metadata.of_rows(delta_rows(self.config, layer, table))
        return values

    def finished_by_all(self, window: ScnWindow) -> bool:
        """Has every table in the stream applied the window, so that the side tables have its
        rows?"""
        record = self.pipeline.records.window(window)
        return record is not None and record.state == "applied"

    def report_side_tables(self, partition: Partition) -> None:
        """Report what the window added to the side tables."""
        window, key = partition
        for name in side_table_names(self.config):
            asset = self.names.side_table_key(name)
            if asset in self.selected:
                rows = side_table_rows(self.config, name, window)[window.scn_high]
                values = metadata.of_window(window, rows)
                finished(self.context, asset, key, values)

    def having_all(self, partitions: Sequence[Partition]) -> set[TableId]:
        """The chosen tables that have all of these windows, which are in order: whose mirrors have
        the last one."""
        return set(self._having(partitions[-1][0]) if partitions else self.tables)

    def _is_applied(self, window: ScnWindow) -> bool:
        """Has every active table applied the window?"""
        record = self.pipeline.records.window(window)
        lacking = set(self.tables).difference(self._having(window))
        is_wanted = any(
            state.takes_windows and state.table in lacking
            for state in self.pipeline.records.tables()
        )
        return record is not None and record.state == "applied" and not is_wanted

    def _having(self, window: ScnWindow) -> list[TableId]:
        """The chosen tables whose mirrors have the window."""
        records = self.pipeline.records.tables()
        having = {one.table for one in records if (one.mirror_scn or 0) >= window.scn_high}
        return [table for table in self.tables if table in having]
