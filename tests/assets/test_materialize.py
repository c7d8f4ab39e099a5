"""Windows and chunks as partitions: ranges, failures half-way, replays, metadata."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

from assets.components import OracleCdc
from assets.history import add_partitions
from assets.runs import RANGE_END_TAG, RANGE_START_TAG
from assets.streams import show_streams
from assets.translator import Translator
from cdc_core.errors import CdcError, LogsNotReadyError, RedoUnavailableError
from cdc_core.lake.side_tables.source_tables import DeltaSideTable
from cdc_core.lake.table_context import no_fence
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import LeftOut
from cdc_core.stage.definitions import SCHEMA_CHANGES
from tests.assets.standin import EMPLOYEES, JOBS, StandIn, ended, partition

NAMES = Translator("hr")
FIRST, SECOND = partition(1000, 1500), partition(1500, 2000)


def run_windows(
    repository: dg.RepositoryDefinition,
    instance: dg.DagsterInstance,
    first: str,
    last: str,
    selection: list[dg.AssetKey] | None = None,
) -> dg.ExecuteInProcessResult:
    return repository.get_job("hr_windows").execute_in_process(
        instance=instance,
        tags={RANGE_START_TAG: first, RANGE_END_TAG: last},
        asset_selection=selection,
        raise_on_error=False,
    )


@pytest.fixture
def planned(pipeline: StandIn, instance: dg.DagsterInstance) -> StandIn:
    pipeline.snapshotted().plan_windows()
    add_partitions(instance, pipeline.records, pipeline.config, NAMES)
    return pipeline


def test_histories_follow_at_the_end_of_a_run(
    planned: StandIn,
    repository: dg.RepositoryDefinition,
    instance: dg.DagsterInstance,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of the tables that have one; a history that stays behind is an error in the log, and no failure of the windows."""
    tables = [{"name": "HR.EMPLOYEES", "history": "scd2"}, {"name": "HR.JOBS"}]
    planned.configure(
        type(planned.config).model_validate({**dict(planned.config), "tables": tables})
    )
    planned.history_fails[EMPLOYEES] = "a file is gone"
    assert run_windows(repository, instance, FIRST, SECOND).success
    assert planned.calls[-1] == ("history", str(EMPLOYEES))
    assert [what for what, _ in planned.calls].count("history") == 1
    assert "the history of HR.EMPLOYEES: a file is gone" in capsys.readouterr().err


def test_views_of_the_newest_cut_are_an_asset_of_the_last_window(
    planned: StandIn, instance: dg.DagsterInstance, capsys: pytest.CaptureFixture[str]
) -> None:
    """Behind the mirrors in the lineage. Where no mirror is exact yet, the windows count all the same."""
    lake = {**dict(planned.config.lake), "current_views": {"duckdb": "/data/current.duckdb"}}
    config = type(planned.config).model_validate({**dict(planned.config), "lake": lake})
    planned.configure(config)
    component = OracleCdc(planned.config, planned.opened, translator=NAMES)
    repository = component.build_defs().get_repository_def()
    above = set(repository.asset_graph.get(NAMES.views_key).parent_keys)
    assert above == {NAMES.key("mirror", table) for table in (EMPLOYEES, JOBS)}
    planned.views_fail = True
    assert run_windows(repository, instance, FIRST, FIRST).success
    assert "no views yet: no mirror is exact" in capsys.readouterr().err
    assert not instance.get_materialized_partitions(NAMES.views_key)
    planned.views_fail = False
    assert run_windows(repository, instance, FIRST, SECOND).success
    assert planned.calls[-1] == ("views", "")
    assert instance.get_materialized_partitions(NAMES.views_key) == {SECOND}
    values = latest(instance, NAMES.views_key, SECOND)
    assert values["cdc/scn"].value == 2000
    assert values["cdc/versions"].value == {str(EMPLOYEES): 7, str(JOBS): 7}
    chosen = [NAMES.key("mirror", JOBS)]
    planned.calls.clear()
    assert run_windows(repository, instance, FIRST, FIRST, chosen).success
    assert ("views", "") not in planned.calls


def test_a_range_of_windows_is_one_run_in_scn_order_and_each_has_its_own_metadata(
    planned: StandIn, repository: dg.RepositoryDefinition, instance: dg.DagsterInstance
) -> None:
    """The end of a step would copy one value to all partitions of the range."""
    assert run_windows(repository, instance, FIRST, SECOND).success
    assert planned.calls == [
        ("capture", "1000-1500"),
        ("capture", "1500-2000"),
        ("apply", "1000-1500"),
        ("apply", "1500-2000"),
    ]
    assert planned.read_early == [["1000-1500", "1500-2000"]]
    for key in (NAMES.redo_key, NAMES.key("changelog", JOBS), NAMES.key("mirror", EMPLOYEES)):
        assert instance.get_materialized_partitions(key) == {FIRST, SECOND}
    for window, high in ((FIRST, 1500), (SECOND, 2000)):
        values = latest(instance, NAMES.key("mirror", JOBS), window)
        assert values["cdc/scn_high"].value == high
        assert values["cdc/rows_inserted"].value == 3
        how = values["cdc/mirror_write"].value
        assert how == "copy-on-write without Spark: mirror of 3.0 MB"
        assert values["cdc/lag_seconds"].value >= 0
        assert values["cdc/window_end"].value == ended(high).timestamp()
    columns = values["dagster/column_schema"].value.columns
    assert [(column.name, column.type) for column in columns] == [
        ("ID", "NUMBER(10,0)"),
        ("NAME", "VARCHAR2(40)"),
    ]
    lineage = values["dagster/column_lineage"].value.deps_by_column
    assert lineage["ID"][0].asset_key == NAMES.key("changelog", JOBS)
    redo = latest(instance, NAMES.redo_key, SECOND)
    assert redo["cdc/bytes"].value == 1000


def test_each_partition_has_one_event_in_scn_order(
    planned: StandIn, repository: dg.RepositoryDefinition, instance: dg.DagsterInstance
) -> None:
    """Dagster's own events of a range come in no order, each partition once more."""
    planned.scn = 20_000
    planned.plan_windows()
    add_partitions(instance, planned.records, planned.config, NAMES)
    keys = [record.key for record in planned.store.windows.find()]
    assert run_windows(repository, instance, keys[0], keys[-1]).success
    for key in (NAMES.redo_key, NAMES.key("changelog", JOBS), NAMES.key("mirror", EMPLOYEES)):
        records = instance.fetch_materializations(key, limit=1000, ascending=True).records
        assert [record.partition_key for record in records] == keys
        tags = records[0].asset_materialization.tags or {}  # type: ignore[union-attr]
        assert tags["dagster/code_version"] == "1"


def test_old_windows_are_replayed_and_rows_are_told_only_where_the_table_stands(
    planned: StandIn,
    repository: dg.RepositoryDefinition,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("assets.window_steps.delta_rows", lambda *_: 42)
    run_windows(repository, instance, FIRST, SECOND)
    mirror = NAMES.key("mirror", JOBS)
    assert latest(instance, mirror, SECOND)["dagster/row_count"].value == 42
    assert "dagster/row_count" not in latest(instance, mirror, FIRST)
    planned.calls.clear()
    assert run_windows(repository, instance, FIRST, FIRST).success
    assert planned.calls == [("capture", "1000-1500"), ("replay", "1000-1500")]
    assert "dagster/row_count" not in latest(instance, mirror, FIRST)
    state = planned.store.tables.get(JOBS)
    assert state is not None
    assert state.mirror_scn == 2000, "a mirror keeps its position"


def test_what_follows_in_the_same_run_sees_the_assets_as_made(
    planned: StandIn, component: OracleCdc, instance: dg.DagsterInstance
) -> None:
    made = []

    @dg.asset(deps=[NAMES.key("mirror", JOBS)], partitions_def=NAMES.windows)
    def downstream() -> None:
        made.append(True)

    defs = component.build_defs()
    result = dg.materialize(
        [*defs.assets, downstream],  # type: ignore[misc]
        instance=instance,
        resources=defs.resources,
        selection=dg.AssetSelection.assets(NAMES.key("mirror", JOBS), "downstream").upstream()
        - dg.AssetSelection.assets(NAMES.key("snapshot", JOBS)),
        partition_key=FIRST,
    )
    assert result.success
    assert made


def test_windows_before_a_failure_stay_materialized(
    planned: StandIn, repository: dg.RepositoryDefinition, instance: dg.DagsterInstance
) -> None:
    planned.fail_at["apply 1500-2000"] = RedoUnavailableError("redo is gone", hint="Snapshot.")
    result = run_windows(repository, instance, FIRST, SECOND)
    assert not result.success
    mirror = NAMES.key("mirror", JOBS)
    assert instance.get_materialized_partitions(mirror) == {FIRST}
    failure = next(event for event in result.all_events if event.is_step_failure)
    data = failure.step_failure_data.user_failure_data
    assert data is not None
    assert "redo is gone. Snapshot." in (data.description or "")
    assert data.metadata["cdc/what_to_do"].value == "Snapshot."


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        pytest.param(LogsNotReadyError("not archived yet"), 2, id="goes-away-by-itself"),
        pytest.param(RedoUnavailableError("gone"), 1, id="someone-has-to-act"),
    ],
)
def test_only_what_may_go_away_is_tried_again_and_the_run_fails_with_the_cause(
    planned: StandIn,
    repository: dg.RepositoryDefinition,
    instance: dg.DagsterInstance,
    error: CdcError,
    attempts: int,
) -> None:
    """Not with "Exceeded max_retries", which alerts would show in its place."""
    planned.fail_at["capture 1000-1500"] = error
    result = run_windows(repository, instance, FIRST, FIRST)
    assert planned.calls == [("capture", "1000-1500")] * attempts
    failure = next(event for event in result.all_events if event.is_step_failure)
    told = failure.step_failure_data
    assert error.message in (told.error_display_string or "")
    assert told.user_failure_data is not None
    assert told.user_failure_data.metadata["cdc/error"].value == type(error).__name__
    lines = [entry.user_message for entry in instance.all_logs(result.run_id)]
    assert sum("more attempts" in line for line in lines) == attempts - 1, "each says why"


def test_one_table_can_be_chosen(
    planned: StandIn, repository: dg.RepositoryDefinition, instance: dg.DagsterInstance
) -> None:
    chosen = [NAMES.redo_key, NAMES.key("changelog", JOBS), NAMES.key("mirror", JOBS)]
    assert run_windows(repository, instance, FIRST, FIRST, chosen).success
    assert not instance.get_materialized_partitions(NAMES.key("mirror", EMPLOYEES))
    assert planned.store.tables.get(JOBS).mirror_scn == 1500  # type: ignore[union-attr]
    assert planned.store.tables.get(EMPLOYEES).mirror_scn == 1000  # type: ignore[union-attr]


def test_tables_beside_are_materialized_when_all_tables_have_the_window(
    planned: StandIn, repository: dg.RepositoryDefinition, instance: dg.DagsterInstance
) -> None:
    """By the run in which the last table takes the window, and by one for them alone after that."""
    beside = [NAMES.side_table_key("transactions"), NAMES.side_table_key("schema_changes")]
    chosen = [NAMES.redo_key, NAMES.key("changelog", JOBS), NAMES.key("mirror", JOBS), *beside]
    assert run_windows(repository, instance, FIRST, FIRST, chosen).success
    assert not any(instance.get_materialized_partitions(key) for key in beside)
    bring(planned, 1500, count=2)
    others = [NAMES.key("changelog", EMPLOYEES), NAMES.key("mirror", EMPLOYEES), beside[1]]
    assert run_windows(repository, instance, FIRST, FIRST, others).success
    assert instance.get_materialized_partitions(beside[1]) == {FIRST}
    values = latest(instance, beside[1], FIRST)
    assert values["dagster/partition_row_count"].value == 2
    planned.calls.clear()
    assert run_windows(repository, instance, FIRST, FIRST, beside[:1]).success
    assert instance.get_materialized_partitions(beside[0]) == {FIRST}
    assert not planned.calls, "it applies nothing"


def bring(pipeline: StandIn, scn_high: int, *, count: int) -> None:
    """What the pipeline would write: rows of a window in the table of schema changes."""
    config = pipeline.config
    table = DeltaSideTable(config.lake.path, config.name, "schema_changes", no_fence)
    row = {"owner": "HR", "scn": 1200, "type": "ALTER", "scn_high": scn_high, "is_followed": True}
    rows = [row | {"table_name": f"T{number}"} for number in range(count)]
    table.put(pa.Table.from_pylist(rows, SCHEMA_CHANGES), scn_high)


def test_a_window_that_comes_too_early_is_refused(
    planned: StandIn, repository: dg.RepositoryDefinition, instance: dg.DagsterInstance
) -> None:
    planned.capture_window(planned.pending_windows()[0])
    assert not run_windows(repository, instance, SECOND, SECOND).success
    assert not instance.get_materialized_partitions(NAMES.key("mirror", JOBS))


def test_a_partition_key_that_is_no_window_is_one_clear_failure(
    planned: StandIn, repository: dg.RepositoryDefinition, instance: dg.DagsterInstance
) -> None:
    instance.add_dynamic_partitions("hr_windows", ["yesterday"])
    result = run_windows(repository, instance, "yesterday", "yesterday")
    failure = next(event for event in result.all_events if event.is_step_failure)
    data = failure.step_failure_data.user_failure_data
    assert data is not None
    assert "this is not a window key (key=yesterday)" in (data.description or "")


def test_chunks_of_one_table_are_one_run(
    pipeline: StandIn, repository: dg.RepositoryDefinition, instance: dg.DagsterInstance
) -> None:
    pipeline.start_snapshot()
    add_partitions(instance, pipeline.records, pipeline.config, NAMES)
    key = NAMES.key("snapshot", JOBS)
    result = dg.materialize(
        [repository.assets_defs_by_key[key]],
        instance=instance,
        tags={RANGE_START_TAG: "s1000_1-of-3", RANGE_END_TAG: "s1000_3-of-3"},
    )
    assert result.success
    assert len(pipeline.calls) == 3
    assert len(instance.get_materialized_partitions(key)) == 3
    values = latest(instance, key, "s1000_2-of-3")
    assert values["dagster/partition_row_count"].value == 10
    assert values["cdc/chunk"].value == "2 of 3"
    assert values["cdc/range"].value == "a key range, 10 rows"
    state = pipeline.store.tables.get(JOBS)
    assert state is not None
    assert state.state == "ready"


def test_checks_compare_only_when_asked_for(
    planned: StandIn, repository: dg.RepositoryDefinition, instance: dg.DagsterInstance
) -> None:
    planned.differences["HR.JOBS"] = 2
    result = repository.get_job("hr_reconcile").execute_in_process(instance=instance)
    found = {one.asset_key: one for one in result.get_asset_check_evaluations()}
    assert found[NAMES.key("oracle", EMPLOYEES)].passed
    assert not found[NAMES.key("oracle", JOBS)].passed
    assert found[NAMES.key("oracle", JOBS)].metadata["cdc/differences"].value == 2
    assert found[NAMES.key("oracle", JOBS)].metadata["cdc/mirror"].value == NAMES.key(
        "mirror", JOBS
    )
    windows = run_windows(repository, instance, FIRST, FIRST)
    names = {one.check_name for one in windows.get_asset_check_evaluations()}
    assert names == {"in_the_stream", "equals_oracle"}


def test_the_last_comparison_stands_at_the_mirror_with_scn_and_time(
    planned: StandIn, repository: dg.RepositoryDefinition, instance: dg.DagsterInstance
) -> None:
    """Whoever compared: Dagster, or a command, whose comparison the next tick shows. Nothing where nobody has."""
    run = run_windows(repository, instance, FIRST, FIRST)
    assert run.success
    assert {one.check_name for one in run.get_asset_check_evaluations()} == {"in_the_stream"}
    planned.differences["HR.JOBS"] = 2
    planned.reconcile([EMPLOYEES, JOBS])
    show_streams(instance, planned.records, NAMES, [EMPLOYEES, JOBS])
    found = proof_of(instance, EMPLOYEES)
    assert found.passed
    assert found.metadata["cdc/scn"].value == 2000
    assert abs(found.metadata["cdc/compared_at"].value - time.time()) < 600  # type: ignore[operator]
    assert "10 rows, all equal, as of SCN 2000, compared at 20" in (found.description or "")
    assert not proof_of(instance, JOBS).passed
    assert "2 rows differ as of SCN 2000" in (proof_of(instance, JOBS).description or "")
    planned.differences.clear()
    assert repository.get_job("hr_reconcile").execute_in_process(instance=instance).success
    assert proof_of(instance, JOBS).passed


def proof_of(instance: dg.DagsterInstance, table: TableId) -> dg.AssetCheckEvaluation:
    key = dg.AssetCheckKey(NAMES.key("mirror", table), "equals_oracle")
    found = instance.event_log_storage.get_latest_asset_check_execution_by_key([key])
    event = found[key].event
    assert event is not None
    assert event.dagster_event is not None
    return event.dagster_event.asset_check_evaluation_data


def test_a_table_that_cannot_be_compared_yet_is_a_warning_and_others_are_compared(
    planned: StandIn,
    repository: dg.RepositoryDefinition,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As behind an ad hoc snapshot: a state of things, which a nightly comparison is not red for, nor waits for."""
    whole = planned.reconcile

    def reconcile(tables: list[TableId] | None = None, **more: Any) -> Any:
        found = whole([one for one in tables or [] if one != JOBS], **more)
        why = LeftOut(str(JOBS), "an ad hoc snapshot is newer", "Run `redolake run`.")
        return replace(found, left_out=(why,))

    monkeypatch.setattr(planned, "reconcile", reconcile)
    result = repository.get_job("hr_reconcile").execute_in_process(instance=instance)
    found = {one.asset_key: one for one in result.get_asset_check_evaluations()}
    assert found[NAMES.key("oracle", EMPLOYEES)].passed
    jobs = found[NAMES.key("oracle", JOBS)]
    assert not jobs.passed
    assert jobs.severity is dg.AssetCheckSeverity.WARN
    assert "not compared: an ad hoc snapshot is newer" in (jobs.description or "")


def test_maintenance_shows_at_each_table_what_became_of_it(
    planned: StandIn, repository: dg.RepositoryDefinition, instance: dg.DagsterInstance
) -> None:
    job = repository.get_job("hr_maintain")
    assert job.execute_in_process(instance=instance).success
    mirror = NAMES.key("mirror", EMPLOYEES)
    [found] = instance.fetch_observations(mirror, limit=5).records
    seen = found.asset_observation
    assert seen is not None
    assert seen.metadata["cdc/files_after"].value == 1
    assert seen.metadata["cdc/deletion_vectors"].value is True
    planned.differences["HR.JOBS"] = 1
    op = {"config": {"tables": ["HR.JOBS"]}}
    failed = job.execute_in_process(
        instance=instance,
        raise_on_error=False,
        run_config={"ops": {"hr_maintain_tables": op}},
    )
    assert not failed.success
    assert planned.calls[-1] == ("maintain", "HR.JOBS")


def latest(instance: dg.DagsterInstance, key: dg.AssetKey, partition: str) -> dict[str, Any]:
    records = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=key, asset_partitions=[partition]), limit=1
    ).records
    found = records[0].asset_materialization
    assert found is not None
    return dict(found.metadata)
