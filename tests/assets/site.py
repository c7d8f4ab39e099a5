"""A source as Dagster runs it, with the embedded Oracle and the lake in memory: ticks of sensors, and the runs they ask for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
from dagster._core.definitions.sensor_definition import SensorExecutionData

from assets.components import OracleCdc
from assets.settings import ComponentConfig, DagsterConfig, WindowsSensorConfig
from cdc_core.config import SourceConfig
from cdc_core.spark.session import SparkSource
from cdc_core.steps import Pipeline
from tests.steps.harness import Source, table_id

WINDOW_LAYERS = {"landing", "changelog", "mirror"}


def in_dagster(
    config: SourceConfig, options: DagsterConfig | None = None, *, run_minutes: float = 0
) -> ComponentConfig:
    """A source with its Dagster side, where runs end with the windows for which they were requested, unless they stay."""
    options = options or DagsterConfig()
    windows = WindowsSensorConfig(**dict(options.windows) | {"run_minutes": run_minutes})
    dagster = DagsterConfig(**dict(options) | {"windows": windows})
    written = {name: getattr(config, name) for name in SourceConfig.model_fields}
    return ComponentConfig(**written, dagster=dagster)


class MemorySite:
    """One code location with one source."""

    def __init__(
        self,
        source: Source,
        instance: dg.DagsterInstance,
        dagster: DagsterConfig | None = None,
        *,
        run_minutes: float = 0,
    ) -> None:
        self.source = source
        self.instance = instance
        written = in_dagster(source.written(), dagster, run_minutes=run_minutes)
        self.component = OracleCdc(written, self.opened)
        self.names = self.component.translator
        self.repository = self.component.build_defs().get_repository_def()
        self.cursors: dict[str, str | None] = {}

    @contextmanager
    def opened(self, *, spark: SparkSource | None = None) -> Iterator[Pipeline]:
        yield self.source.pipeline

    def tick(self, sensor: str = "windows") -> list[dg.RunRequest]:
        """What a sensor asks for now."""
        return list(self.evaluate(sensor).run_requests or [])

    def evaluate(self, sensor: str) -> SensorExecutionData:
        """A sensor's whole answer; its cursor is kept for the next tick."""
        with dg.build_sensor_context(
            instance=self.instance,
            repository_def=self.repository,
            cursor=self.cursors.get(sensor),
        ) as context:
            found = self.repository.get_sensor_def(f"src_{sensor}_sensor").evaluate_tick(context)
        self.cursors[sensor] = found.cursor
        return found

    def run(self, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
        """A run that a sensor asked for."""
        selection = request.asset_selection
        if selection and not any(key.path[1] in WINDOW_LAYERS for key in selection):
            assets = [self.repository.assets_defs_by_key[key] for key in selection]
            return dg.materialize(
                assets, instance=self.instance, tags=request.tags, raise_on_error=False
            )
        return self.repository.get_job("src_windows").execute_in_process(
            instance=self.instance,
            tags=request.tags,
            raise_on_error=False,
            asset_selection=list(selection) if selection else None,
        )

    def windows(self) -> dg.ExecuteInProcessResult:
        """One tick of the windows sensor and its run."""
        [request] = self.tick()
        return self.run(request)

    def tables(self) -> set[str]:
        """The tables that are assets."""
        keys = self.repository.asset_graph.get_all_asset_keys()
        return {key.path[-1] for key in keys if key.path[1] == "mirror"}

    def partitions(self, name: str, layer: str = "mirror") -> set[str]:
        """The windows for which a table's asset is materialized."""
        key = self.names.key(layer, table_id(name))  # type: ignore[arg-type]
        return set(self.instance.get_materialized_partitions(key))

    def check(self, name: str) -> dg.AssetCheckEvaluation:
        """The last evaluation of the table's check."""
        key = dg.AssetCheckKey(self.names.key("mirror", table_id(name)), "in_the_stream")
        [record] = self.instance.event_log_storage.get_latest_asset_check_execution_by_key(
            [key]
        ).values()
        assert record.event is not None
        assert record.event.dagster_event is not None
        return record.event.dagster_event.asset_check_evaluation_data
