"""What people do in Dagster's UI: the table of ``docs/how-to/dagster.md``, line by line."""

from __future__ import annotations

import time
from dataclasses import replace

import dagster as dg
import pytest

from assets.components import OracleCdc
from assets.history import add_partitions
from assets.runs import PRIORITY_TAG, RANGE_END_TAG, RANGE_START_TAG, release_dead_runs
from assets.translator import Translator
from assets.waiting import window_keys
from cdc_core.errors import LandingDamagedError
from cdc_core.model.identifiers import TableId
from cdc_core.model.signals import Signal
from tests.assets.standin import JOBS, StandIn, partition
from tests.assets.test_materialize import run_windows
from tests.assets.test_sensors import NAMES, Sensors

FIRST, SECOND, THIRD = partition(1000, 1500), partition(1500, 2000), partition(2000, 2500)


@pytest.fixture
def sensors(repository: dg.RepositoryDefinition, instance: dg.DagsterInstance) -> Sensors:
    return Sensors(repository, instance)


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause after failures holds a tick back."""
    now = time.time() + 10_000
    monkeypatch.setattr("assets.runs.time.time", lambda: now)


# -- runs ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("late")
@pytest.mark.parametrize("deleted", [(), (0,), (1,), (0, 1), (0, 2), (0, 1, 2)], ids=str)
def test_a_range_whose_runs_failed_and_were_deleted_is_asked_for_under_a_new_key(
    pipeline: StandIn,
    sensors: Sensors,
    instance: dg.DagsterInstance,
    deleted: tuple[int, ...],
) -> None:
    """Dagster starts no second run under a key that a run which is left has had."""
    pipeline.snapshotted()
    keys: dict[str, str] = {}
    for _ in range(3):
        request = sensors.request("windows")
        assert request.run_key is not None
        run = sensors.start(request, dg.DagsterRunStatus.FAILURE)
        keys[run.run_id] = request.run_key
    assert len(set(keys.values())) == 3
    for number in deleted:
        instance.delete_run(list(keys)[number])
    left = {key for run, key in keys.items() if instance.has_run(run)}
    asked = sensors.request("windows").run_key
    assert asked not in left
    assert sensors.request("windows").run_key == asked, "a tick that is repeated asks for one run"


def test_a_busy_instance_hides_neither_the_own_run_nor_a_dead_one(
    pipeline: StandIn, sensors: Sensors, instance: dg.DagsterInstance
) -> None:
    """250 newer runs of somebody else's are queued or running."""
    pipeline.snapshotted()
    own = sensors.start(sensors.request("windows"), dg.DagsterRunStatus.STARTED)

    @dg.job(name="others")
    def others() -> None:
        pass

    for number in range(250):
        status = dg.DagsterRunStatus.STARTED if number % 2 else dg.DagsterRunStatus.NOT_STARTED
        instance.create_run_for_job(others, status=status)
    pipeline.scn = 3000
    data = sensors.tick("windows")
    assert data.run_requests == []
    assert own.run_id[:8] in str(data.skip_message)
    lease = pipeline.store.leases.acquire(f"hr/run/{own.run_id}/77", "elsewhere/1/1/1", 60)
    pipeline.store.leases.renew(replace(lease, seconds=-1))
    keys = window_keys(pipeline.config, NAMES)
    assert release_dead_runs(instance, pipeline, pipeline.config, keys) == [own.run_id]


def test_a_canceled_run_is_asked_for_again_at_once(pipeline: StandIn, sensors: Sensors) -> None:
    """Who wants no runs switches the sensor off."""
    pipeline.snapshotted()
    first = sensors.request("windows")
    sensors.start(first, dg.DagsterRunStatus.CANCELED)
    second = sensors.request("windows")
    assert second.run_key != first.run_key
    assert second.tags[RANGE_START_TAG] == FIRST


# -- backfills beside the sensor -------------------------------------------------------------------------------


def backfill_of(
    instance: dg.DagsterInstance, repository: dg.RepositoryDefinition, first: str, last: str
) -> dg.DagsterRun:
    """A run that the backfill daemon has launched over one mirror."""
    return instance.create_run_for_job(
        repository.get_job("__ASSET_JOB"),
        tags={RANGE_START_TAG: first, RANGE_END_TAG: last},
        asset_selection=frozenset({NAMES.key("mirror", JOBS)}),
        status=dg.DagsterRunStatus.STARTED,
    )


def test_a_backfill_of_old_windows_does_not_stop_new_ones(
    pipeline: StandIn,
    sensors: Sensors,
    repository: dg.RepositoryDefinition,
    instance: dg.DagsterInstance,
) -> None:
    pipeline.snapshotted()
    sensors.request("windows")
    assert run_windows(repository, instance, FIRST, SECOND).success
    backfill_of(instance, repository, FIRST, SECOND)
    pipeline.scn = 2500
    request = sensors.request("windows")
    assert request.tags[RANGE_START_TAG] == THIRD
    assert request.tags[PRIORITY_TAG] == "1", "it leaves the queue before the backfill's other runs"


def test_a_backfill_of_windows_that_wait_is_waited_for(
    pipeline: StandIn,
    sensors: Sensors,
    repository: dg.RepositoryDefinition,
    instance: dg.DagsterInstance,
) -> None:
    pipeline.snapshotted()
    sensors.request("windows")
    run = backfill_of(instance, repository, FIRST, SECOND)
    data = sensors.tick("windows")
    assert data.run_requests == []
    assert run.run_id[:8] in str(data.skip_message)


# -- partitions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(3))
def test_a_waiting_window_whose_partition_was_deleted_is_one_again(
    pipeline: StandIn,
    sensors: Sensors,
    repository: dg.RepositoryDefinition,
    instance: dg.DagsterInstance,
    number: int,
) -> None:
    """It comes back as the last one, where no range from an earlier one to a later one has it: runs take stretches."""
    pipeline.snapshotted().scn = 2500
    sensors.request("windows")
    instance.delete_dynamic_partition("hr_windows", [FIRST, SECOND, THIRD][number])
    for _ in range(3):
        found = sensors.tick("windows").run_requests or []
        if not found:
            break
        first, last = found[0].tags[RANGE_START_TAG], found[0].tags[RANGE_END_TAG]
        assert run_windows(repository, instance, first, last).success
    assert pipeline.pending_windows() == []
    assert instance.get_materialized_partitions(NAMES.key("mirror", JOBS)) == {
        FIRST,
        SECOND,
        THIRD,
    }


def test_partitions_of_taken_windows_stay_deleted(
    pipeline: StandIn,
    sensors: Sensors,
    repository: dg.RepositoryDefinition,
    instance: dg.DagsterInstance,
) -> None:
    pipeline.snapshotted()
    sensors.request("windows")
    run_windows(repository, instance, FIRST, SECOND)
    instance.delete_dynamic_partition("hr_windows", FIRST)
    pipeline.scn = 2500
    sensors.request("windows")
    assert instance.get_dynamic_partitions("hr_windows") == [SECOND, THIRD]


@pytest.mark.parametrize(
    "typed", ["yesterday", "5-6", "1000-1500", "2030-01-01T00:00:00Z_99999999", "1-99999999"]
)
def test_a_partition_that_somebody_typed_stops_nothing(
    pipeline: StandIn,
    sensors: Sensors,
    repository: dg.RepositoryDefinition,
    instance: dg.DagsterInstance,
    typed: str,
) -> None:
    """Neither between two windows of one run, nor as an SCN that is yet to come."""
    pipeline.snapshotted().scn = 1500
    sensors.request("windows")
    instance.add_dynamic_partitions("hr_windows", [typed])
    pipeline.scn = 2500
    taken = []
    for _ in range(4):
        for request in sensors.tick("windows").run_requests or []:
            ends = request.tags[RANGE_START_TAG], request.tags[RANGE_END_TAG]
            assert run_windows(repository, instance, *ends).success
            taken.append(ends)
    assert pipeline.pending_windows() == []
    if typed == "5-6":
        assert typed not in instance.get_dynamic_partitions("hr_windows"), "older than all windows"
        return
    assert taken == [(FIRST, FIRST), (SECOND, THIRD)]
    run = run_windows(repository, instance, typed, typed)
    if typed == "1000-1500":
        assert run.success, "a window by its plain name"
        return
    failure = next(event for event in run.all_events if event.is_step_failure)
    told = failure.step_failure_data.user_failure_data
    assert told is not None
    assert "this is not a window key" in (told.description or "") or (
        "Delete the partition in Dagster" in (told.description or "")
    )


def test_partitions_of_waiting_chunks_that_were_deleted_are_partitions_again(
    pipeline: StandIn,
    sensors: Sensors,
    repository: dg.RepositoryDefinition,
    instance: dg.DagsterInstance,
) -> None:
    pipeline.snapshotted()
    data = {"data-collections": ["HR.JOBS"]}
    pipeline.add_signal(Signal(id="x1", source="hr", type="execute-snapshot", data=data))
    sensors.request("snapshots")
    cursor = sensors.tick("snapshots").cursor
    instance.delete_dynamic_partition("hr_hr_jobs_chunks", "s2000_2-of-3")
    requests = sensors.tick("snapshots", cursor=cursor).run_requests or []
    ranges = [(one.tags[RANGE_START_TAG], one.tags[RANGE_END_TAG]) for one in requests]
    assert sorted(ranges) == [(f"s2000_{n}-of-3", f"s2000_{n}-of-3") for n in (1, 2, 3)]
    assets = [repository.assets_defs_by_key[NAMES.key("snapshot", JOBS)]]
    for request in requests:
        assert dg.materialize(assets, instance=instance, tags=request.tags).success
    assert pipeline.pending_chunks() == []


def test_wiped_materializations_change_no_table_and_no_later_run(
    pipeline: StandIn,
    sensors: Sensors,
    repository: dg.RepositoryDefinition,
    instance: dg.DagsterInstance,
) -> None:
    pipeline.snapshotted()
    sensors.request("windows")
    run_windows(repository, instance, FIRST, SECOND)
    instance.wipe_assets([NAMES.key("mirror", JOBS), NAMES.redo_key])
    pipeline.calls.clear()
    pipeline.scn = 2500
    request = sensors.request("windows")
    assert request.tags[RANGE_START_TAG] == THIRD
    assert run_windows(repository, instance, FIRST, SECOND).success
    assert ("replay", "1000-1500") in pipeline.calls
    shown = instance.get_materialized_partitions(NAMES.key("mirror", JOBS))
    assert shown == {FIRST, SECOND}, "a backfill reports them again"


def test_a_sensor_whose_cursor_was_reset_shows_and_asks_for_the_same(
    pipeline: StandIn,
    sensors: Sensors,
    repository: dg.RepositoryDefinition,
    instance: dg.DagsterInstance,
) -> None:
    pipeline.snapshotted()
    first = sensors.tick("windows")
    [asked] = first.run_requests or []
    run_windows(repository, instance, FIRST, SECOND)
    pipeline.scn = 2500
    known = sensors.tick("windows", cursor=first.cursor).run_requests or []
    mirror = NAMES.key("mirror", JOBS)
    events = len(instance.fetch_materializations(mirror, limit=50).records)
    reset = sensors.tick("windows", cursor=None).run_requests or []
    assert [one.tags for one in reset] == [one.tags for one in known]
    assert asked.tags[RANGE_START_TAG] == FIRST
    assert len(instance.fetch_materializations(mirror, limit=50).records) == events


# -- names -----------------------------------------------------------------------------------------------------------


def test_no_two_tables_of_any_sources_share_a_name() -> None:
    """Of chunk partitions and steps: two tables, or two sources, may run together alike."""
    parts = ["A", "B", "A_B", "B_A", "A_", "_A", "A__B", "a", "A1", "A_1", "A_1_1", "1"]
    sources = ["a", "b", "a_b", "a_b_a", "a_1", "a_b_3_1"]
    named = {
        (source, table): Translator(source).name(table)
        for source in sources
        for table in [TableId(owner, name) for owner in parts for name in parts]
    }
    assert len(set(named.values())) == len(named)
    assert all(name.replace("_", "").isalnum() for name in named.values())


def test_tables_that_run_together_alike_have_partitions_of_their_own(
    pipeline: StandIn, instance: dg.DagsterInstance
) -> None:
    """`APP.ARCHIVE_ORDERS` and `APP_ARCHIVE.ORDERS`."""
    tables = [{"name": "APP.ARCHIVE_ORDERS"}, {"name": "APP_ARCHIVE.ORDERS"}]
    config = type(pipeline.config).model_validate(
        {**pipeline.config.model_dump(mode="json"), "tables": tables}
    )
    pipeline.configure(config)
    component = OracleCdc(config, pipeline.opened)
    repository = component.build_defs().get_repository_def()
    pipeline.start_snapshot()
    requests = Sensors(repository, instance).tick("snapshots").run_requests or []
    assert len(requests) == 2
    for request in requests:
        [key] = request.asset_selection or []
        assets = [repository.assets_defs_by_key[key]]
        assert dg.materialize(assets, instance=instance, tags=request.tags).success
    assert pipeline.pending_chunks() == []


# -- damage that a run meets ------------------------------------------------------------------------------------------


def test_what_is_wrong_with_a_window_is_the_first_thing_that_the_failed_run_says(
    pipeline: StandIn, repository: dg.RepositoryDefinition, instance: dg.DagsterInstance
) -> None:
    pipeline.snapshotted().plan_windows()
    add_partitions(instance, pipeline.records, pipeline.config, NAMES)
    pipeline.fail_at["apply 1000-1500"] = LandingDamagedError("a file differs", hint="Recapture.")
    result = run_windows(repository, instance, FIRST, FIRST)
    failure = next(event for event in result.all_events if event.is_step_failure)
    assert "a file differs. Recapture." in (failure.step_failure_data.error_display_string or "")
