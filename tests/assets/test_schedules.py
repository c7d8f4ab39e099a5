"""Windows by the clock: each tick takes everything up to the present, once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg
import pytest
from dagster_shared.error import DagsterError

from assets.components import OracleCdc
from assets.history import add_partitions
from assets.runs import RANGE_END_TAG, RANGE_START_TAG
from assets.settings import DagsterConfig, WindowsSensorConfig
from assets.translator import Translator
from assets.waiting import CHANGED_TAG
from cdc_core.errors import LeaseHeldError, OracleUnavailableError
from tests.assets.standin import EMPLOYEES, JOBS, StandIn, partition
from tests.assets.test_sensors import Sensors, raising

FIRST, SECOND = partition(1000, 1500), partition(1500, 2000)
NIGHT = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """In files: a schedule's context finds its instance by a reference."""
    with dg.instance_for_test() as made:
        yield made


def component_with(pipeline: StandIn, **windows: object) -> OracleCdc:
    options = DagsterConfig(
        windows=WindowsSensorConfig.model_validate({"cron": "30 2 * * *", **windows})
    )
    return OracleCdc(pipeline.config, pipeline.opened, translator=Translator("hr", options))


class Schedule:
    """Ticks the schedule of a repository."""

    def __init__(self, component: OracleCdc, instance: dg.DagsterInstance) -> None:
        self.repository = component.build_defs().get_repository_def()
        self.instance = instance

    def tick(self, at: datetime = NIGHT) -> dg.SkipReason | list[dg.RunRequest]:
        schedule = self.repository.get_schedule_def("hr_windows_schedule")
        with dg.build_schedule_context(
            instance=self.instance, scheduled_execution_time=at, repository_def=self.repository
        ) as context:
            found = schedule.evaluate_tick(context)
        requests = list(found.run_requests or [])
        return requests or dg.SkipReason(found.skip_message)

    def requests(self, at: datetime = NIGHT) -> list[dg.RunRequest]:
        found = self.tick(at)
        assert isinstance(found, list), found
        return found

    def run(self, request: dg.RunRequest) -> None:
        job = self.repository.get_job("hr_windows")
        selection = list(request.asset_selection) if request.asset_selection else None
        result = job.execute_in_process(
            instance=self.instance, tags=request.tags, asset_selection=selection
        )
        assert result.success


def test_there_is_a_schedule_where_the_configuration_has_a_cron(pipeline: StandIn) -> None:
    def built(options: DagsterConfig) -> dg.RepositoryDefinition:
        made = OracleCdc(pipeline.config, pipeline.opened, translator=Translator("hr", options))
        return made.build_defs().get_repository_def()

    plain = built(DagsterConfig())
    assert not plain.has_schedule_def("hr_windows_schedule")
    windows = WindowsSensorConfig(cron="30 2 * * *", timezone="Europe/Berlin", enabled=True)
    found = built(DagsterConfig(windows=windows))
    schedule = found.get_schedule_def("hr_windows_schedule")
    assert schedule.cron_schedule == "30 2 * * *"
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
    sensor = found.get_sensor_def("hr_windows_sensor")
    assert sensor.default_status is dg.DefaultSensorStatus.STOPPED, "the schedule takes its place"
    assert schedule.execution_timezone == "Europe/Berlin"


def test_a_tick_takes_all_that_waits_in_one_run(
    pipeline: StandIn, instance: dg.DagsterInstance
) -> None:
    """However many windows a run of the sensor may take."""
    schedule = Schedule(component_with(pipeline), instance)
    pipeline.snapshotted().scn = 10_000
    [request] = schedule.requests()
    assert request.tags[RANGE_START_TAG] == FIRST
    assert request.tags[RANGE_END_TAG] == partition(9500, 10_000)
    schedule.run(request)
    assert pipeline.pending_windows() == []
    assert "no captured table has changed" in str(schedule.tick())


def test_a_tick_that_is_evaluated_again_asks_under_the_same_key(
    pipeline: StandIn, instance: dg.DagsterInstance
) -> None:
    schedule = Schedule(component_with(pipeline), instance)
    pipeline.snapshotted()
    [first], [again] = schedule.requests(), schedule.requests()
    assert first.run_key == again.run_key
    later = datetime(2026, 3, 30, 0, 30, tzinfo=UTC)
    [next_night] = schedule.requests(later)
    assert next_night.run_key != first.run_key, "what failed is asked for again by the next tick"


def test_a_tick_catches_up_what_a_night_without_dagster_left(
    pipeline: StandIn, instance: dg.DagsterInstance
) -> None:
    schedule = Schedule(component_with(pipeline), instance)
    pipeline.snapshotted()
    schedule.run(schedule.requests()[0])
    pipeline.scn = 8000
    [request] = schedule.requests(datetime(2026, 4, 9, 0, 30, tzinfo=UTC))
    assert request.tags[RANGE_START_TAG] == partition(2000, 2500)
    assert request.tags[RANGE_END_TAG] == partition(7500, 8000)


def test_a_tick_beside_a_run_that_is_still_going_is_skipped(
    pipeline: StandIn, instance: dg.DagsterInstance
) -> None:
    schedule = Schedule(component_with(pipeline), instance)
    pipeline.snapshotted()
    [request] = schedule.requests()
    Sensors(schedule.repository, instance).start(request, dg.DagsterRunStatus.STARTED)
    assert "the next tick takes what comes meanwhile" in str(schedule.tick())


def test_a_database_that_is_down_fails_the_tick_and_another_process_skips_it(
    pipeline: StandIn, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A night that was skipped for a reason that nobody sees would be lost; Dagster tries a failed tick again."""
    schedule = Schedule(component_with(pipeline), instance)
    pipeline.snapshotted()
    raising(monkeypatch, pipeline, OracleUnavailableError("cannot connect"))
    with pytest.raises(DagsterError) as raised:
        schedule.tick()
    assert "cannot connect" in str(raised.value.__cause__)
    raising(monkeypatch, pipeline, LeaseHeldError("another process works"))
    assert "another process works" in str(schedule.tick())


def test_partitions_that_are_not_in_a_row_are_runs_in_order(
    pipeline: StandIn, instance: dg.DagsterInstance
) -> None:
    schedule = Schedule(component_with(pipeline), instance)
    pipeline.snapshotted()
    schedule.requests()
    instance.delete_dynamic_partition("hr_windows", FIRST)
    found = schedule.requests()
    assert [one.tags[RANGE_START_TAG] for one in found] == [FIRST, SECOND]
    assert len({one.run_key for one in found}) == 2
    for request in found:
        schedule.run(request)
    assert pipeline.pending_windows() == []


def test_a_run_of_a_tick_shows_the_tables_that_its_windows_change(
    pipeline: StandIn, instance: dg.DagsterInstance
) -> None:
    """Nobody knows them when the run is asked for."""
    component = component_with(pipeline, assets="changed")
    schedule = Schedule(component, instance)
    pipeline.snapshotted()
    [request] = schedule.requests()
    assert request.asset_selection is None
    assert request.tags[CHANGED_TAG] == "true"
    pipeline.unchanged = {EMPLOYEES}
    schedule.run(request)
    names = component.translator
    assert instance.get_materialized_partitions(names.key("mirror", JOBS)) == {FIRST, SECOND}
    assert not instance.get_materialized_partitions(names.key("mirror", EMPLOYEES))
    assert pipeline.pending_windows() == []


def test_an_asset_that_follows_a_mirror_is_asked_for_with_each_run_of_windows(
    pipeline: StandIn,
) -> None:
    """The example of the documentation: a condition on what follows, none on the windows."""
    component = OracleCdc(pipeline.config, pipeline.opened)
    mirror = component.translator.key("mirror", JOBS)

    eager = dg.AutomationCondition.eager()
    updated = eager.without(~dg.AutomationCondition.any_deps_missing())

    @dg.asset(deps=[mirror], automation_condition=updated)
    def daily_revenue() -> None:
        pass

    defs = dg.Definitions.merge(component.build_defs(), dg.Definitions(assets=[daily_revenue]))
    job = defs.get_repository_def().get_job("hr_windows")
    pipeline.snapshotted().plan_windows()
    with dg.DagsterInstance.ephemeral() as instance:
        add_partitions(instance, pipeline.records, pipeline.config, component.translator)
        seen = dg.evaluate_automation_conditions(defs, instance)
        requested = []
        for key in (FIRST, SECOND):
            tags = {RANGE_START_TAG: key, RANGE_END_TAG: key}
            assert job.execute_in_process(instance=instance, tags=tags).success
            seen = dg.evaluate_automation_conditions(defs, instance, cursor=seen.cursor)
            requested.append(seen.get_num_requested(daily_revenue.key))
            dg.materialize([daily_revenue], instance=instance)
            seen = dg.evaluate_automation_conditions(defs, instance, cursor=seen.cursor)
            assert seen.get_num_requested(daily_revenue.key) == 0
        assert requested == [1, 1]
