"""What the component builds, by name: a change here is a change for users."""

from __future__ import annotations

from datetime import timedelta

import dagster as dg
import pytest
from dagster_pyspark import LazyPySparkResource

from assets.components import OracleCdc
from assets.history import add_partitions
from assets.resource import RedolakeResource, dotted
from assets.runs import RANGE_END_TAG, RANGE_START_TAG
from assets.settings import ComponentConfig, DagsterConfig
from assets.translator import Translator
from cdc_core.schema.table import Column
from cdc_core.steps.definition_changes import type_text
from tests.assets.standin import EMPLOYEES, JOBS, StandIn, partition

NAMES = Translator("hr")


def test_names_of_everything(repository: dg.RepositoryDefinition) -> None:
    keys = {key.to_user_string() for key in repository.asset_graph.get_all_asset_keys()}
    beside = {"hr/transactions", "hr/schema_changes"}
    assert keys == {"hr/landing/redo_windows", "hr/database"} | beside | {
        f"hr/{layer}/hr/{table}"
        for layer in ("oracle", "snapshot", "changelog", "mirror")
        for table in ("employees", "jobs")
    }
    jobs = {job.name for job in repository.get_all_jobs() if not job.name.startswith("__")}
    assert jobs == {
        "hr_windows",
        "hr_reconcile",
        "hr_maintain",
        "hr_start_snapshot",
        "hr_send_signal",
        "hr_skip_gap",
    }
    assert {sensor.name for sensor in repository.sensor_defs} == {
        "hr_windows_sensor",
        "hr_snapshots_sensor",
        "hr_alerts_sensor",
    }
    assert {schedule.name for schedule in repository.schedule_defs} == {
        "hr_reconcile_nightly",
        "hr_maintain_nightly",
    }


def test_lineage_leads_from_oracle_to_the_mirror(repository: dg.RepositoryDefinition) -> None:
    graph = repository.asset_graph

    def above(key: dg.AssetKey) -> set[dg.AssetKey]:
        return set(graph.get(key).parent_keys)

    table, snapshot = NAMES.key("oracle", EMPLOYEES), NAMES.key("snapshot", EMPLOYEES)
    assert above(NAMES.key("mirror", EMPLOYEES)) == {NAMES.key("changelog", EMPLOYEES)}
    assert above(NAMES.key("changelog", EMPLOYEES)) == {NAMES.redo_key, snapshot}
    assert table in above(NAMES.redo_key)
    assert above(snapshot) == {table}
    assert graph.get(table).is_external
    change_logs = {NAMES.key("changelog", EMPLOYEES), NAMES.key("changelog", JOBS)}
    assert above(NAMES.side_table_key("transactions")) == change_logs
    assert above(NAMES.side_table_key("schema_changes")) == {NAMES.redo_key}


def test_partitions_pools_and_policies(repository: dg.RepositoryDefinition) -> None:
    graph = repository.asset_graph
    for key in graph.materializable_asset_keys:
        node = graph.get(key)
        assert isinstance(node.partitions_def, dg.DynamicPartitionsDefinition)
        assert node.backfill_policy == dg.BackfillPolicy.single_run()
        assert node.pools
    assert graph.get(NAMES.redo_key).partitions_def.name == "hr_windows"  # type: ignore[union-attr]
    chunks = graph.get(NAMES.key("snapshot", EMPLOYEES)).partitions_def
    assert chunks.name == "hr_hr_employees_chunks"  # type: ignore[union-attr]


def test_what_the_file_says_of_dagster_holds(pipeline: StandIn) -> None:
    options = DagsterConfig.model_validate(
        {
            "windows": {"interval_seconds": 300, "enabled": True},
            "reconcile": {"cron": "0 6 * * 1", "timezone": "Europe/Berlin"},
            "pools": {"capture": "oracle_sessions"},
            "executor": "multiprocess",
            "owners": ["team:data"],
            "tags": {"domain": "people"},
            "run_tags": {"cost": "cdc"},
            "freshness": {"fail_minutes": 90, "warn_minutes": 30},
        }
    )
    config = ComponentConfig.model_validate({**dict(pipeline.config), "dagster": options})
    defs = OracleCdc(config, pipeline.opened).build_defs()
    repository = defs.get_repository_def()
    specs = {spec.key: spec for spec in defs.resolve_all_asset_specs()}
    assert {tuple(spec.owners) for spec in specs.values()} == {("team:data",)}
    assert {spec.tags["domain"] for spec in specs.values()} == {"people"}
    mirror = specs[NAMES.key("mirror", EMPLOYEES)]
    assert mirror.freshness_policy == dg.FreshnessPolicy.time_window(
        fail_window=timedelta(minutes=90), warn_window=timedelta(minutes=30)
    )
    assert mirror.code_version
    sensor = repository.get_sensor_def("hr_windows_sensor")
    assert sensor.minimum_interval_seconds == 300
    assert sensor.default_status == dg.DefaultSensorStatus.RUNNING
    schedule = repository.get_schedule_def("hr_reconcile_nightly")
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("0 6 * * 1", "Europe/Berlin")
    assert repository.asset_graph.get(NAMES.redo_key).pools == {"oracle_sessions"}
    assert repository.get_job("hr_windows").tags["cost"] == "cdc"
    assert defs.executor is dg.multiprocess_executor
    never = DagsterConfig.model_validate({"reconcile": {"cron": None}, "maintain": {"cron": None}})
    quiet = OracleCdc(pipeline.config, pipeline.opened, translator=Translator("hr", never))
    assert not quiet.build_defs().schedules


def test_spark_comes_from_the_project_where_it_has_some(
    pipeline: StandIn, instance: dg.DagsterInstance
) -> None:
    """A PySparkResource inside the project's own RedolakeResource is what runs work in."""
    session = object()

    class Given(LazyPySparkResource):
        @property
        def spark_session(self) -> object:
            return session

    options = DagsterConfig(own_resource=True)
    config = ComponentConfig.model_validate({**dict(pipeline.config), "dagster": options})
    defs = OracleCdc(config, pipeline.opened).build_defs()
    assert not defs.resources
    own = RedolakeResource(pyspark=Given(spark_config={}))
    defs = dg.Definitions.merge(defs, dg.Definitions(resources={"redolake": own}))
    pipeline.snapshotted().plan_windows()
    add_partitions(instance, pipeline.records, pipeline.config, NAMES)
    key = partition(1000, 1500)
    tags = {RANGE_START_TAG: key, RANGE_END_TAG: key}
    job = defs.get_repository_def().get_job("hr_windows")
    assert job.execute_in_process(instance=instance, tags=tags).success
    assert pipeline.spark is not None
    assert pipeline.spark(config.lake) is session


def test_spark_settings_are_written_nested_or_dotted() -> None:
    nested = {"spark": {"ui": {"enabled": False}, "executor.memory": "2g"}, "spark.cores.max": 4}
    assert dotted(nested) == {
        "spark.ui.enabled": "false",
        "spark.executor.memory": "2g",
        "spark.cores.max": "4",
    }


def test_names_can_be_chosen(pipeline: StandIn) -> None:
    class Named(Translator):
        def group(self, layer: object) -> str:
            return "people"

    component = OracleCdc(pipeline.config, pipeline.opened, translator=Named("hr"))
    graph = component.build_defs().get_repository_def().asset_graph
    assert {graph.get(key).group_name for key in graph.get_all_asset_keys()} == {"people"}


@pytest.mark.parametrize(
    ("column", "text"),
    [
        pytest.param(
            Column("A", "NUMBER", 22, 0, 10, 2, True), "NUMBER(10,2)", id="precision-and-scale"
        ),
        pytest.param(Column("A", "NUMBER", 22, 0, None, 0, True), "NUMBER(*,0)", id="scale-alone"),
        pytest.param(Column("A", "NUMBER", 22, 0, None, None, True), "NUMBER", id="neither"),
        pytest.param(
            Column("A", "VARCHAR2", 80, 20, None, None, True), "VARCHAR2(20)", id="characters"
        ),
        pytest.param(Column("A", "RAW", 16, 0, None, None, True), "RAW(16)", id="bytes"),
        pytest.param(Column("A", "TIMESTAMP(6)", 11, 0, None, 6, True), "TIMESTAMP(6)", id="other"),
    ],
)
def test_types_read_as_in_oracle(column: Column, text: str) -> None:
    assert type_text(column) == text
