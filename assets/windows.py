"""The assets of the log path: redo windows in landing, and change logs and mirrors on the same
windows.

A table that left the stream, or was paused, is not materialized for the windows that it does not
take; the others are. A run takes a contiguous range of windows. Each finished window is reported at
once, in SCN order, so that a failure half-way leaves the windows before it materialized and the
newest event is the newest window's. Order and exactly-once are kept by the pipeline's own state: a
window that the mirrors have is replayed, one too early is refused.
"""

# No postponed annotations in this module: Dagster wants the classes themselves, not their names.

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import dagster as dg

from assets import metadata
from assets.fleet import opened_siblings
from assets.protocols import Opener
from assets.resource import RedolakeResource, dagster_failures
from assets.streams import proof_check, stopping_line, stream_check, verdicts
from assets.translator import CODE_VERSION, Layer, Translator
from assets.waiting import CHANGED_TAG
from cdc_core import fleet
from cdc_core.config import SourceConfig
from cdc_core.errors import ConfigError, NotYetError, OvertakenError
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import DeltaLayer, StepReport, TableApplied
from cdc_core.model.scn import Scn, ScnWindow, window_end
from cdc_core.steps import Pipeline
from cdc_core.steps.delta_logs import (
    delta_rows,
    delta_uri,
    side_table_names,
    side_table_rows,
    side_table_uri,
)
from cdc_core.steps.overtaken import look_again, overtaken_where_forgotten

REPORTED = {"__source_asset_observation__": True}
"""Metadata of an output whose partitions have been reported already. Dagster writes no further
events for such an output: what it would write is one event per partition in no order. Other steps
of the run see the output as any."""

Partition = tuple[ScnWindow, str]

SHARED_WAIT_SECONDS = 600.0
"""How long a run waits while another one reads the redo of a window for both, before it fails and
is tried again."""


def redo_windows(
    config: SourceConfig,
    names: Translator,
    open_pipeline: Opener,
    siblings: Sequence[Opener] = (),
) -> dg.AssetsDefinition:
    """The landing asset: mines the redo of all tables once per window.

    What it mines lands for its ``siblings`` as well, where they wait for a window with the
    same bounds.
    """

    @dg.multi_asset(
        name=f"{names.source}_capture",
        specs=[
            dg.AssetSpec(
                names.redo_key,
                deps=[names.key("oracle", table.table) for table in config.tables],
                group_name=names.group("landing"),
                kinds={"oracle", "parquet"},
                description="Redo of all captured tables as LogMiner prints it, one partition per window of commit "
                "SCNs: immutable Parquet files with a manifest.",
                metadata={"cdc/source": names.source, "dagster/uri": config.landing.uri},
                code_version=CODE_VERSION,
                **names.common,
            )
        ],
        partitions_def=names.windows,
        backfill_policy=dg.BackfillPolicy.single_run(),
        retry_policy=names.retries,
        pool=names.capture_pool,
    )
    def capture(
        context: dg.AssetExecutionContext, redolake: RedolakeResource
    ) -> Iterator[dg.MaterializeResult]:
        with dagster_failures(context, names.retries), opened_siblings(siblings) as others:
            pipeline = redolake.source(names.source, open_pipeline)
            partitions = in_order(context, pipeline)
            alone = [window for window, _ in partitions if not fleet.is_awaited(others, window)]
            with pipeline.carrying_windows(), pipeline.prefetching(alone):
                for window, key in partitions:
                    capture = partial(
                        fleet.capture_window,
                        pipeline,
                        others,
                        window,
                        wait_seconds=SHARED_WAIT_SECONDS,
                    )
                    report = unless_forgotten(context, pipeline, window, capture)
                    if report is None:
                        continue
                    log_stopped(context, report)
                    values = metadata.of_report(report) | _times(pipeline, window)
                    values["dagster/partition_row_count"] = report.rows
                    finished(context, names.redo_key, key, values)
        yield dg.MaterializeResult(asset_key=names.redo_key, metadata=REPORTED)

    return capture


def lake_tables(
    config: SourceConfig, names: Translator, open_pipeline: Opener
) -> dg.AssetsDefinition:
    """Change log and mirror of every table, and the side tables: one step, so one Spark session, of
    which any part can be chosen.

    The tables beside get a window's rows with the last table that takes the window, and are
    materialized then.

    At its end the step evaluates whether each table is in the stream (:mod:`assets.streams`); that
    check can be executed alone.
    """
    tables = [table.table for table in config.tables]

    @dg.multi_asset(
        name=f"{names.source}_apply",
        specs=[
            spec
            for table in tables
            for spec in (_changelog_spec(config, names, table), _mirror_spec(config, names, table))
        ]
        + _side_table_specs(config, names)
        + _views_specs(config, names),
        check_specs=[
            check(names, table) for table in tables for check in (stream_check, proof_check)
        ],
        partitions_def=names.windows,
        backfill_policy=dg.BackfillPolicy.single_run(),
        can_subset=True,
        retry_policy=names.retries,
        pool=names.apply_pool,
    )
    def apply(
        context: dg.AssetExecutionContext, redolake: RedolakeResource
    ) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:
        selected = context.selected_asset_keys
        chosen = [table for table in tables if selected & set(_lake_keys(names, table))]
        beside = {name: names.side_table_key(name) for name in side_table_names(config)}
        with dagster_failures(context, names.retries):
            pipeline = redolake.source(names.source, open_pipeline)
            work = _Application(context, pipeline, config, names, chosen)
            partitions = in_order(context, pipeline) if selected else []
            for partition in partitions:
                if chosen:
                    work.take(partition, is_last=partition == partitions[-1])
                if work.finished_by_all(partition[0]):
                    work.report_side_tables(partition)
            work.keep_history()
            has_views = bool(partitions) and work.keep_views(partitions[-1][1])
            work.register()
        taken = work.having_all(partitions)
        for table in chosen:
            if table in taken:
                for key in sorted(selected & set(_lake_keys(names, table))):
                    yield dg.MaterializeResult(asset_key=key, metadata=REPORTED)
        if all(work.finished_by_all(window) for window, _ in partitions):
            for key in sorted(selected & set(beside.values())):
                yield dg.MaterializeResult(asset_key=key, metadata=REPORTED)
        if has_views:
            yield dg.MaterializeResult(asset_key=names.views_key, metadata=REPORTED)
        yield from _stream_results(pipeline, names, tables, context.selected_asset_check_keys)

    return apply


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
    context.log.info(f"{key} was retired: every table has passed it, nothing is left to do")


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


def _lake_keys(names: Translator, table: TableId) -> list[dg.AssetKey]:
    return [names.key("changelog", table), names.key("mirror", table)]


def _stream_results(
    pipeline: Pipeline,
    names: Translator,
    tables: Sequence[TableId],
    checks: Iterable[dg.AssetCheckKey],
) -> Iterator[dg.AssetCheckResult]:
    """The verdicts of the checks; none of the comparison of a table that was never compared."""
    found = verdicts(pipeline.records, names, tables)
    for check in sorted(checks):
        if check in found:
            yield found[check].as_result(check)


def _changelog_spec(config: SourceConfig, names: Translator, table: TableId) -> dg.AssetSpec:
    spec = names.spec("changelog", table)
    return spec.replace_attributes(
        skippable=True,
        deps=[
            dg.AssetDep(names.redo_key),
            dg.AssetDep(names.key("snapshot", table), partition_mapping=dg.AllPartitionMapping()),
        ],
    ).merge_attributes(metadata=_place(config, "changelog", table))


def _mirror_spec(config: SourceConfig, names: Translator, table: TableId) -> dg.AssetSpec:
    spec = names.spec("mirror", table)
    return spec.replace_attributes(
        skippable=True, deps=[names.key("changelog", table)]
    ).merge_attributes(metadata=_place(config, "mirror", table))


def _place(config: SourceConfig, layer: DeltaLayer, table: TableId) -> dict[str, str]:
    """Where a Delta table is, and its name in a catalog."""
    catalog = config.lake.catalog
    name = None if catalog is None else catalog.name_of(layer, config.name, table)
    found = {"dagster/uri": delta_uri(config, layer, table)}
    return found if name is None else {**found, "dagster/table_name": name}


def _side_table_specs(config: SourceConfig, names: Translator) -> list[dg.AssetSpec]:
    change_logs = [names.key("changelog", table.table) for table in config.tables]
    return [
        names.side_table_spec(name)
        .replace_attributes(
            skippable=True, deps=change_logs if name == "transactions" else [names.redo_key]
        )
        .merge_attributes(metadata={"dagster/uri": side_table_uri(config, name)})
        for name in side_table_names(config)
    ]


def _views_specs(config: SourceConfig, names: Translator) -> list[dg.AssetSpec]:
    if not config.lake.current_views.is_any:
        return []
    mirrors = [names.key("mirror", table.table) for table in config.tables]
    return [names.views_spec.replace_attributes(skippable=True, deps=mirrors)]


def _times(pipeline: Pipeline, window: ScnWindow) -> dict[str, Any]:
    record = pipeline.records.window(window)
    return {} if record is None else metadata.of_times(record)


@dataclass(frozen=True)
class _Application:
    """Windows taken by some tables in one step."""

    context: dg.AssetExecutionContext
    pipeline: Pipeline
    config: SourceConfig
    names: Translator
    tables: list[TableId]

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
        changed_only = CHANGED_TAG in self.context.run.tags
        applied = {one.table: one for one in report.tables if one.changes or not changed_only}
        for table in self._having(window):
            if changed_only and table not in applied:
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
        if self.names.views_key not in self.context.selected_asset_keys:
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
        """Let Spark's catalog follow the tables; say which do not get there."""
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
        if key not in self.context.selected_asset_keys:
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
            if asset in self.context.selected_asset_keys:
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
        having = self._having(window)
        wanting = [
            state
            for state in self.pipeline.records.tables()
            if state.table in self.tables and state.table not in having and state.takes_windows
        ]
        return record is not None and record.state == "applied" and not wanting

    def _having(self, window: ScnWindow) -> list[TableId]:
        """The chosen tables whose mirrors have the window."""
        records = self.pipeline.records.tables()
        having = {one.table for one in records if (one.mirror_scn or 0) >= window.scn_high}
        return [table for table in self.tables if table in having]
