"""What the component builds, by name: a change here is a change for users."""

from __future__ import annotations

import dagster as dg
import pytest

from assets.components import OracleCdc
from assets.metadata import type_text
from assets.translator import Translator
from cdc_core.schema.table import Column
from tests.assets.standin import EMPLOYEES, StandIn

NAMES = Translator("hr")


def test_names_of_everything(repository: dg.RepositoryDefinition) -> None:
    keys = {key.to_user_string() for key in repository.asset_graph.get_all_asset_keys()}
    assert keys == {"hr/landing/redo_windows"} | {
        f"hr/{layer}/hr/{table}"
        for layer in ("oracle", "snapshot", "changelog", "mirror")
        for table in ("employees", "jobs")
    }
    jobs = {job.name for job in repository.get_all_jobs() if not job.name.startswith("__")}
    assert jobs == {"hr_windows", "hr_reconcile", "hr_start_snapshot"}
    assert {sensor.name for sensor in repository.sensor_defs} == {
        "hr_windows_sensor",
        "hr_snapshots_sensor",
    }
    assert {schedule.name for schedule in repository.schedule_defs} == {"hr_reconcile_nightly"}


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
