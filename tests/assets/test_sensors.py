"""Sensors: polite, in order, exactly once; and the janitor that releases runs of dead processes."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import replace
from datetime import UTC, datetime

import dagster as dg
import pytest
from dagster._core.definitions.sensor_definition import SensorExecutionData

from assets.components import OracleCdc
from assets.history import add_partitions, remove_partitions, report_history
from assets.instances import instance_of
from assets.runs import RANGE_END_TAG, RANGE_START_TAG, release_dead_runs
from assets.sensors import WAITED_AT_MOST
from assets.settings import DagsterConfig, WindowsSensorConfig
from assets.streams import CHECK_NAME
from assets.translator import Translator
from assets.waiting import window_keys
from cdc_core.errors import (
    ConfigError,
    LeaseHeldError,
    OracleUnavailableError,
    RedoUnavailableError,
    StoreUnavailableError,
)
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.signals import Signal
from cdc_core.state.machine import Machine
from tests.assets.standin import JOBS, StandIn, ended, partition
from tests.assets.test_materialize import latest

NAMES = Translator("hr")
FIRST, SECOND = partition(1000, 1500), partition(1500, 2000)


class Sensors:
    """Ticks the sensors of a repository."""

    def __init__(self, repository: dg.RepositoryDefinition, instance: dg.DagsterInstance) -> None:
        self._repository = repository
        self._instance = instance

    def tick(self, name: str, *, cursor: str | None = None) -> SensorExecutionData:
        sensor = self._repository.get_sensor_def(f"hr_{name}_sensor")
        with dg.build_sensor_context(
            instance=self._instance, repository_def=self._repository, cursor=cursor
        ) as context:
            return sensor.evaluate_tick(context)

    def request(self, name: str) -> dg.RunRequest:
        """The one run that a sensor asks for."""
        (request,) = self.tick(name).run_requests or []
        return request

    def start(self, request: dg.RunRequest, status: dg.DagsterRunStatus) -> dg.DagsterRun:
        """What the daemon makes of a request for windows."""
        job = self._repository.get_job("hr_windows")
        run = self._instance.create_run_for_job(
            job,
            tags=request.tags,
            status=status,
        )
        found = self._instance.get_run_by_id(run.run_id)
        assert found is not None
        return found


@pytest.fixture
def sensors(repository: dg.RepositoryDefinition, instance: dg.DagsterInstance) -> Sensors:
    return Sensors(repository, instance)


def test_windows_up_to_the_present_are_one_request(
    pipeline: StandIn, sensors: Sensors, instance: dg.DagsterInstance
) -> None:
    pipeline.snapshotted()
    request = sensors.request("windows")
    assert instance.get_dynamic_partitions("hr_windows") == [FIRST, SECOND]
    assert request.tags[RANGE_START_TAG] == FIRST
    assert request.tags[RANGE_END_TAG] == SECOND
    assert request.tags["cdc/source"] == "hr"


def test_a_run_takes_a_bounded_number_of_windows(pipeline: StandIn, sensors: Sensors) -> None:
    pipeline.snapshotted().scn = 10_000
    request = sensors.request("windows")
    assert request.tags[RANGE_END_TAG] == partition(2500, 3000)


def test_nothing_is_requested_when_oracle_has_not_moved(
    pipeline: StandIn, sensors: Sensors
) -> None:
    pipeline.snapshotted().scn = 1000
    data = sensors.tick("windows")
    assert data.run_requests == []
    assert "has not moved" in str(data.skip_message)


def test_an_idle_database_is_quiet(
    pipeline: StandIn, sensors: Sensors, instance: dg.DagsterInstance
) -> None:
    """No partition, no run, no event but the position now and then; the next window with changes joins."""
    pipeline.snapshotted().idle_below = 5000
    for scn in (2000, 3000, 4000):
        pipeline.scn = scn
        data = sensors.tick("windows")
        assert data.run_requests == []
        assert f"no captured table changed up to SCN {scn} (2026-01-01 " in str(data.skip_message)
        assert instance.get_dynamic_partitions("hr_windows") == []
        for table in pipeline.tables:
            state = pipeline.store.tables.get(table)
            assert state is not None
            assert state.mirror_scn == scn
    assert len(pipeline.store.windows.find()) == 1, "only where the next window begins"
    observed = sensors.tick("windows").asset_events
    assert [one.metadata["cdc/position"].value for one in observed] == [4000]
    quiet = sensors.tick("windows", cursor=json.dumps({"observed": datetime.now(UTC).isoformat()}))
    assert quiet.asset_events == []

    pipeline.idle_below, pipeline.scn = 4000, 4500
    request = sensors.request("windows")
    assert request.tags[RANGE_START_TAG] == partition(4000, 4500)
    assert instance.get_dynamic_partitions("hr_windows") == [partition(4000, 4500)]


def test_windows_may_be_left_to_automation_conditions(
    pipeline: StandIn, instance: dg.DagsterInstance
) -> None:
    options = DagsterConfig(windows=WindowsSensorConfig(request_runs=False))
    component = OracleCdc(pipeline.config, pipeline.opened, translator=Translator("hr", options))
    pipeline.snapshotted()
    data = Sensors(component.build_defs().get_repository_def(), instance).tick("windows")
    assert data.run_requests == []
    assert instance.get_dynamic_partitions("hr_windows") == [FIRST, SECOND]


def test_old_windows_are_retired_from_dagster(
    pipeline: StandIn, instance: dg.DagsterInstance
) -> None:
    names = Translator("hr", DagsterConfig(partitions_keep=100))
    pipeline.snapshotted().scn = 1000 + 120 * 500
    pipeline.plan_windows()
    add_partitions(instance, pipeline.records, pipeline.config, names)
    instance.add_dynamic_partitions("hr_windows", ["by hand", partition(500, 1000)])
    assert remove_partitions(instance, pipeline.records, names) == 1, "nothing was taken yet"
    for number in range(20):
        window = ScnWindow(Scn(1000 + number * 500), Scn(1500 + number * 500))
        pipeline.capture_window(window)
        pipeline.apply_window(window)
    assert remove_partitions(instance, pipeline.records, names) == 20
    kept = instance.get_dynamic_partitions("hr_windows")
    assert "by hand" in kept
    assert kept[0] == partition(1000 + 20 * 500, 1000 + 21 * 500)
    assert remove_partitions(instance, pipeline.records, names) == 0
    assert add_partitions(instance, pipeline.records, pipeline.config, names) == 0, "and stay away"


def test_nothing_is_requested_before_the_first_snapshot(sensors: Sensors) -> None:
    data = sensors.tick("windows")
    assert "this source has no snapshot yet" in str(data.skip_message)


@pytest.mark.parametrize(
    "status", [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTED], ids=lambda s: s.value
)
def test_a_run_in_progress_is_waited_for(
    pipeline: StandIn, sensors: Sensors, status: dg.DagsterRunStatus
) -> None:
    pipeline.snapshotted()
    request = sensors.request("windows")
    sensors.start(request, status)
    pipeline.scn = 3000
    data = sensors.tick("windows")
    assert data.run_requests == []
    assert f"is {status.value.lower()}" in str(data.skip_message)
    assert len(pipeline.pending_windows()) == 2, "no window is planned meanwhile"


def test_a_failed_run_is_asked_for_again_after_a_pause(
    pipeline: StandIn, sensors: Sensors, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.snapshotted()
    first = sensors.request("windows")
    sensors.start(first, dg.DagsterRunStatus.FAILURE)
    assert "next attempt in" in str(sensors.tick("windows").skip_message)
    late = time.time() + 1000
    monkeypatch.setattr("assets.runs.time.time", lambda: late)
    second = sensors.request("windows")
    assert second.tags[RANGE_START_TAG] == first.tags[RANGE_START_TAG]
    assert second.run_key != first.run_key, "the same key would never start a run again"


def test_a_database_that_is_down_is_skipped_and_a_loss_is_an_error(
    pipeline: StandIn, sensors: Sensors, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.snapshotted()
    raising(monkeypatch, pipeline, OracleUnavailableError("cannot connect"))
    assert "cannot connect" in str(sensors.tick("windows").skip_message)
    raising(monkeypatch, pipeline, RedoUnavailableError("redo is gone"))
    with pytest.raises(RedoUnavailableError, match="redo is gone"):
        sensors.tick("windows")


@pytest.mark.parametrize("name", ["windows", "snapshots"])
def test_a_database_that_stays_down_fails_ticks_until_it_is_back(
    pipeline: StandIn, sensors: Sensors, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A grey tick says that nothing is wrong. One that fails keeps the cursor of the one before."""
    pipeline.snapshotted().scn = 1000
    with monkeypatch.context() as down:
        raising(down, pipeline, OracleUnavailableError("cannot connect"))
        first = sensors.tick(name).cursor
        second = sensors.tick(name, cursor=first).cursor
        assert second == first, "the first one counts"
        since = datetime.now(UTC) - WAITED_AT_MOST
        with pytest.raises(OracleUnavailableError, match="cannot connect"):
            sensors.tick(name, cursor=json.dumps({"failing_since": since.isoformat()}))
        raising(down, pipeline, LeaseHeldError("another process works"))
        assert sensors.tick(name, cursor=first).cursor == "{}", "it lives, and so does the database"
    assert sensors.tick(name, cursor=first).cursor == "{}"


@pytest.mark.parametrize("name", ["windows", "snapshots"])
def test_a_metadata_store_that_is_away_is_waited_for_from_the_first_question_on(
    pipeline: StandIn, sensors: Sensors, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """PostgreSQL starts again, and no tick is red for it."""
    pipeline.snapshotted()

    def away(*_: object) -> None:
        raise StoreUnavailableError("the metadata store failed")

    with monkeypatch.context() as down:
        down.setattr("assets.waiting.release_dead_runs", away)
        tick = sensors.tick(name)
    assert "the metadata store failed" in str(tick.skip_message)
    assert "failing_since" in str(tick.cursor)
    assert "failing_since" not in str(sensors.tick(name, cursor=tick.cursor).cursor)


def test_what_does_not_go_away_by_itself_is_an_error_at_once(
    pipeline: StandIn, sensors: Sensors, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.snapshotted()
    raising(monkeypatch, pipeline, ConfigError("the password has expired"))
    with pytest.raises(ConfigError, match="has expired"):
        sensors.tick("windows")


def raising(monkeypatch: pytest.MonkeyPatch, pipeline: StandIn, error: Exception) -> None:
    def stop(**_: object) -> None:
        raise error

    monkeypatch.setattr(pipeline, "plan_windows", stop)
    monkeypatch.setattr(pipeline, "take_signals", stop)


def test_a_signal_becomes_one_run_of_its_chunks(
    pipeline: StandIn, sensors: Sensors, instance: dg.DagsterInstance
) -> None:
    pipeline.snapshotted()
    signal = Signal(
        id="x1", source="hr", type="execute-snapshot", data={"data-collections": ["HR.JOBS"]}
    )
    pipeline.add_signal(signal)
    request = sensors.request("snapshots")
    assert request.asset_selection == [NAMES.key("snapshot", JOBS)]
    assert request.tags[RANGE_START_TAG] == "s2000_1-of-3"
    assert request.tags[RANGE_END_TAG] == "s2000_3-of-3"
    assert "s2000_2-of-3" in instance.get_dynamic_partitions("hr_hr_jobs_chunks")
    pipeline.add_signal(signal)
    again = sensors.request("snapshots")
    assert again.run_key == request.run_key, "asked for again under the same key: still one run"
    assert len(pipeline.pending_chunks()) == 3


def test_without_signals_and_chunks_nothing_is_requested(
    pipeline: StandIn, sensors: Sensors
) -> None:
    pipeline.snapshotted()
    assert "no chunk is pending" in str(sensors.tick("snapshots").skip_message)


def test_what_the_command_line_did_is_shown_once(
    pipeline: StandIn, instance: dg.DagsterInstance
) -> None:
    pipeline.snapshotted().plan_windows()
    for window in pipeline.pending_windows():
        pipeline.capture_window(window)
        pipeline.apply_window(window)
    assert add_partitions(instance, pipeline.records, pipeline.config, NAMES) == 8
    lake, beside, chunks, checks = 2 * (2 * 2), 2 * 2, 6, 2
    reported = report_history(instance, pipeline.records, pipeline.config, NAMES)
    assert reported == 2 + lake + beside + chunks + checks
    check = dg.AssetCheckKey(NAMES.key("mirror", JOBS), CHECK_NAME)
    [shown] = instance.event_log_storage.get_latest_asset_check_execution_by_key([check]).values()
    assert shown.status.value == "SUCCEEDED"
    mirror = latest(instance, NAMES.key("mirror", JOBS), FIRST)
    assert mirror["cdc/rows_inserted"].value == 3
    assert mirror["cdc/mirror_write"].value == "copy-on-write without Spark: mirror of 3.0 MB"
    assert mirror["cdc/window_end"].value == ended(1500).timestamp()
    assert mirror["cdc/applied_at"].value
    redo = latest(instance, NAMES.redo_key, SECOND)
    assert redo["cdc/transactions_committed"].value == 1
    chunk = latest(instance, NAMES.key("snapshot", JOBS), "s1000_3-of-3")
    assert chunk["cdc/chunk"].value == "3 of 3"
    for key in (NAMES.key("mirror", JOBS), NAMES.side_table_key("transactions")):
        assert instance.get_materialized_partitions(key) == {FIRST, SECOND}
    assert add_partitions(instance, pipeline.records, pipeline.config, NAMES) == 0
    assert report_history(instance, pipeline.records, pipeline.config, NAMES) == 0


class TestJanitor:
    """Runs whose process is dead give back what they hold."""

    @pytest.fixture
    def run(
        self,
        pipeline: StandIn,
        sensors: Sensors,
        component: OracleCdc,
        instance: dg.DagsterInstance,
    ) -> dg.DagsterRun:
        pipeline.snapshotted()
        request = sensors.request("windows")
        return sensors.start(request, dg.DagsterRunStatus.STARTED)

    def released(self, pipeline: StandIn, instance: dg.DagsterInstance) -> list[str]:
        keys = window_keys(pipeline.config, NAMES)
        return release_dead_runs(instance, pipeline, pipeline.config, keys)

    def test_a_living_run_is_left_alone(
        self, pipeline: StandIn, run: dg.DagsterRun, instance: dg.DagsterInstance
    ) -> None:
        with pipeline.lease(f"run/{run.run_id}/77", of_process=True):
            assert self.released(pipeline, instance) == []

    def test_a_run_of_a_process_that_is_gone_fails_at_once(
        self, pipeline: StandIn, run: dg.DagsterRun, instance: dg.DagsterInstance
    ) -> None:
        with subprocess.Popen(["sleep", "60"]) as child:
            gone = Machine.here().holder(child.pid, 1)
            child.kill()
        pipeline.store.leases.acquire(f"hr/run/{run.run_id}/77", gone, 60)
        assert self.released(pipeline, instance) == [run.run_id]
        found = instance.get_run_by_id(run.run_id)
        assert found is not None
        assert found.status == dg.DagsterRunStatus.FAILURE
        assert pipeline.store.leases.all() == []
        assert self.released(pipeline, instance) == []

    def test_a_run_of_another_machine_fails_when_its_lease_is_old(
        self, pipeline: StandIn, run: dg.DagsterRun, instance: dg.DagsterInstance
    ) -> None:
        lease = pipeline.store.leases.acquire(f"hr/run/{run.run_id}/77", "elsewhere/1/1/1", 60)
        assert self.released(pipeline, instance) == []
        pipeline.store.leases.renew(replace(lease, seconds=-1))
        assert self.released(pipeline, instance) == [run.run_id]

    def test_a_silent_run_without_lease_fails_after_the_lease_time(
        self,
        pipeline: StandIn,
        run: dg.DagsterRun,
        instance: dg.DagsterInstance,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        instance.report_engine_event("started", run)
        assert self.released(pipeline, instance) == []
        late = time.time() + 61
        monkeypatch.setattr("assets.runs.time.time", lambda: late)
        assert self.released(pipeline, instance) == [run.run_id]


def test_ticks_of_a_code_location_ask_one_open_storage() -> None:
    """As Dagster calls sensors and schedules: with a reference to its storage, the same each time."""
    with dg.DagsterInstance.local_temp() as one, dg.DagsterInstance.local_temp() as another:
        contexts = (
            dg.build_sensor_context(instance_ref=one.get_ref()),
            dg.build_sensor_context(instance_ref=one.get_ref()),
            dg.build_schedule_context(instance_ref=one.get_ref()),
            dg.build_sensor_context(instance_ref=another.get_ref()),
        )
        first, second, schedule, other = (instance_of(one_context) for one_context in contexts)
        assert [context.instance for context in contexts] == [first, first, first, other]
        assert first is second is schedule
        assert first.root_directory == one.root_directory
        assert other.root_directory == another.root_directory
        assert instance_of(dg.build_sensor_context(instance=one)) is one
