"""The assets of the log path: redo windows in landing, and change logs and mirrors on the same windows.

A run takes a contiguous range of windows. Each finished window is reported at once, so that a failure half-way leaves the
windows before it materialized; the end of the step repeats those events with the columns added. Order and exactly-once
are kept by the pipeline's own state: a window that the mirrors have is replayed, one too early is refused.
"""

# No postponed annotations in this module: Dagster wants the context's class itself, not its name.

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from assets import metadata
from assets.protocols import SourcePipeline
from assets.resource import dagster_failures, pipeline_of
from assets.translator import Layer, Translator
from cdc_core.config import LocalLandingConfig, SourceConfig
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import TableApplied
from cdc_core.model.scn import ScnWindow


def redo_windows(config: SourceConfig, names: Translator) -> dg.AssetsDefinition:
    """The landing asset: mines the redo of all tables once per window."""

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
                metadata={"cdc/source": names.source, "dagster/uri": landing_uri(config)},
            )
        ],
        partitions_def=names.windows,
        backfill_policy=dg.BackfillPolicy.single_run(),
        required_resource_keys={names.resource_key},
        pool=names.capture_pool,
    )
    def capture(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult]:
        pipeline = pipeline_of(context, names.resource_key)
        with dagster_failures():
            for window in in_order(context.partition_keys):
                report = pipeline.capture_window(window)
                finished(
                    context,
                    names.redo_key,
                    window.key,
                    metadata.of_report(report) | {"dagster/partition_row_count": report.rows},
                )
        yield dg.MaterializeResult(asset_key=names.redo_key)

    return capture


def lake_tables(config: SourceConfig, names: Translator) -> dg.AssetsDefinition:
    """Change log and mirror of every table: one step, so one Spark session, of which any part can be chosen."""
    tables = [table.table for table in config.tables]

    @dg.multi_asset(
        name=f"{names.source}_apply",
        specs=[
            spec
            for table in tables
            for spec in (_changelog_spec(config, names, table), _mirror_spec(config, names, table))
        ],
        partitions_def=names.windows,
        backfill_policy=dg.BackfillPolicy.single_run(),
        can_subset=True,
        required_resource_keys={names.resource_key},
        pool=names.apply_pool,
    )
    def apply(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult]:
        selected = context.selected_asset_keys
        chosen = [
            table
            for table in tables
            if selected & {names.key("changelog", table), names.key("mirror", table)}
        ]
        pipeline = pipeline_of(context, names.resource_key)
        work = _Application(context, pipeline, config, names, chosen)
        with dagster_failures():
            for window in in_order(context.partition_keys):
                work.take(window)
            results = work.results(in_order(context.partition_keys)[-1])
        yield from results

    return apply


def in_order(keys: Sequence[str]) -> list[ScnWindow]:
    """The windows of a run, by SCN.

    Raises:
        PartitionKeyError: A key is not a window.
    """
    return sorted(ScnWindow.parse(key) for key in keys)


def finished(
    context: dg.AssetExecutionContext, key: dg.AssetKey, partition: str, values: dict[str, Any]
) -> None:
    """Report one finished partition at once, and the same values for the event at the end of the step."""
    context.log_event(dg.AssetMaterialization(key, partition=partition, metadata=values))
    context.add_asset_metadata(values, asset_key=key, partition_key=partition)


def landing_uri(config: SourceConfig) -> str:
    """Where landing files are."""
    if isinstance(config.landing, LocalLandingConfig):
        return f"file://{config.landing.path}"
    return f"s3://{config.landing.bucket}/{config.landing.prefix}"


def lake_path(config: SourceConfig, layer: str, table: TableId) -> str:
    """Where a Delta table is."""
    return f"{config.lake.path}/{config.name}/{layer}/{table.path}"


def lake_uri(config: SourceConfig, layer: str, table: TableId) -> str:
    """Where a Delta table is, as a URI."""
    path = lake_path(config, layer, table)
    return path if "://" in path else f"file://{path}"


def _changelog_spec(config: SourceConfig, names: Translator, table: TableId) -> dg.AssetSpec:
    spec = names.spec("changelog", table)
    return spec.replace_attributes(
        deps=[
            dg.AssetDep(names.redo_key),
            dg.AssetDep(names.key("snapshot", table), partition_mapping=dg.AllPartitionMapping()),
        ]
    ).merge_attributes(metadata={"dagster/uri": lake_uri(config, "changelog", table)})


def _mirror_spec(config: SourceConfig, names: Translator, table: TableId) -> dg.AssetSpec:
    spec = names.spec("mirror", table)
    return spec.replace_attributes(deps=[names.key("changelog", table)]).merge_attributes(
        metadata={"dagster/uri": lake_uri(config, "mirror", table)}
    )


@dataclass(frozen=True)
class _Application:
    """Windows taken by some tables in one step."""

    context: dg.AssetExecutionContext
    pipeline: SourcePipeline
    config: SourceConfig
    names: Translator
    tables: list[TableId]

    def take(self, window: ScnWindow) -> None:
        """Apply the window, or replay it if the mirrors have it; report it for each chosen asset."""
        lag: dict[str, float] = {}  # a replay would only say how old its window is
        if self._all_have(window):
            report = self.pipeline.replay_window(window, self.tables)
        else:
            report = self.pipeline.apply_window(window, self.tables)
            lag = self._lag_seconds(window)
        applied = {one.table: one for one in report.tables}
        for table in self.tables:
            one = applied.get(table, TableApplied(table=table, skipped=True))
            self._finished("changelog", table, window, metadata.of_changelog(report, one))
            self._finished("mirror", table, window, metadata.of_mirror(report, one) | lag)

    def results(self, last: ScnWindow) -> list[dg.MaterializeResult]:
        """The end of the step: each chosen asset with its columns as of the last window, and its rows."""
        done: list[dg.MaterializeResult] = []
        for table in self.tables:
            schema = self.pipeline.store.schema_at(self.names.source, table, last.scn_high)
            layers: tuple[tuple[Layer, Layer], ...] = (
                ("changelog", "oracle"),
                ("mirror", "changelog"),
            )
            for layer, upstream in layers:
                key = self.names.key(layer, table)
                if key in self.context.selected_asset_keys:
                    values = metadata.of_schema(schema, self.names.key(upstream, table))
                    values |= metadata.of_rows(lake_path(self.config, layer, table))
                    done.append(dg.MaterializeResult(asset_key=key, metadata=values))
        return done

    def _all_have(self, window: ScnWindow) -> bool:
        states = {state.table: state for state in self.pipeline.store.tables(self.names.source)}
        return all(
            table in states and (states[table].mirror_scn or 0) >= window.scn_high
            for table in self.tables
        )

    def _lag_seconds(self, window: ScnWindow) -> dict[str, float]:
        """From the moment up to which the window reaches (when it was cut) to now."""
        record = self.pipeline.store.window(self.names.source, window)
        if record is None:
            return {}
        return {"cdc/lag_seconds": round((datetime.now(UTC) - record.created).total_seconds(), 1)}

    def _finished(
        self, layer: Layer, table: TableId, window: ScnWindow, values: dict[str, Any]
    ) -> None:
        key = self.names.key(layer, table)
        if key in self.context.selected_asset_keys:
            finished(self.context, key, window.key, values)
