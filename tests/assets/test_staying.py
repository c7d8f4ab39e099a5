"""A run that stays takes windows as they come, and gives its place to whoever needs it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import (
    InProcessCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    SensorInstigatorData,
)
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from sqlalchemy.exc import OperationalError

from assets.components import OracleCdc
from assets.runs import (
    MAINTAIN_TAG,
    MINUTES_TAG,
    RANGE_END_TAG,
    SENSOR_TAG,
    SOURCE_TAG,
    needs_its_place,
)
from assets.settings import DagsterConfig, WindowsSensorConfig
from assets.staying import STORAGE_FAILURES_MAX
from assets.translator import Translator
from cdc_core.config import SourceConfig
from cdc_core.errors import (
    CdcError,
    LogsNotReadyError,
    RedoUnavailableError,
    StoreUnavailableError,
)
from pipelines.ui import prepare_home
from tests.assets.site import MemorySite
from tests.assets.standin import EMPLOYEES, StandIn, partition
from tests.assets.test_sensors import Sensors
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import source_of, table_id

QUICK = WindowsSensorConfig(interval_seconds=1, run_minutes=0.05)
NAMES = Translator("hr", DagsterConfig(windows=QUICK))
SENSOR = "hr_windows_sensor"
FOURTH, FIFTH, EIGHTH = partition(2500, 3000), partition(3000, 3500), partition(4500, 5000)

oracle = oracle_with(scope="module")


@pytest.fixture
def staying(pipeline: StandIn) -> dg.RepositoryDefinition:
    """Eight windows wait, of which a run is requested for four; it stays for three seconds."""
    pipeline.snapshotted().scn = 5000
    component = OracleCdc(pipeline.config, pipeline.opened, translator=NAMES)
    return component.build_defs().get_repository_def()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time passes by rests alone."""
    passed = [0.0]

    def sleep(seconds: float) -> None:
        passed[0] += seconds

    made = SimpleNamespace(monotonic=lambda: passed[0], sleep=sleep)
    monkeypatch.setattr("assets.staying.time", made)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    """With files and settings as `redolake ui` makes them."""
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    prepare_home(tmp_path / "dagster")
    with dg.DagsterInstance.from_config(str(tmp_path / "dagster")) as made:
        yield made


def run(
    repository: dg.RepositoryDefinition, instance: dg.DagsterInstance
) -> dg.ExecuteInProcessResult:
    request = Sensors(repository, instance).request("windows")
    assert request.tags[RANGE_END_TAG] == FOURTH
    return repository.get_job("hr_windows").execute_in_process(
        instance=instance, tags=request.tags, raise_on_error=False
    )


def test_windows_behind_the_range_are_reported_by_the_same_run(
    pipeline: StandIn, staying: dg.RepositoryDefinition, instance: dg.DagsterInstance, clock: None
) -> None:
    """As partitions of every layer, with their metadata; the sensor finds nothing left to do or to show."""
    found = run(staying, instance)
    assert found.success
    for key in (
        NAMES.redo_key,
        NAMES.key("mirror", EMPLOYEES),
        NAMES.side_table_key("transactions"),
    ):
        made = instance.get_materialized_partitions(key)
        assert len(made) == 8
        assert {FOURTH, EIGHTH} <= made
    [event] = instance.fetch_materializations(
        dg.AssetRecordsFilter(NAMES.key("mirror", EMPLOYEES), asset_partitions=[EIGHTH]), limit=9
    ).records
    assert event.run_id == found.run_id
    assert event.asset_materialization is not None
    assert event.asset_materialization.metadata["cdc/scn_high"].value == 5000
    again = Sensors(staying, instance).tick("windows")
    assert not again.run_requests
    assert not again.asset_events


@pytest.mark.parametrize(
    ("error", "looks_again"),
    [
        pytest.param(
            RedoUnavailableError("redo is gone", hint="Read the tables again."),
            False,
            id="what-stops-a-window-ends-the-stay",
        ),
        pytest.param(
            LogsNotReadyError("the log is not archived yet", hint="Wait."),
            True,
            id="what-must-wait-is-looked-at-again",
        ),
    ],
)
def test_a_window_that_fails_is_left_to_the_next_run(
    pipeline: StandIn,
    staying: dg.RepositoryDefinition,
    instance: dg.DagsterInstance,
    clock: None,
    error: CdcError,
    looks_again: bool,
) -> None:
    """The run succeeds with what it took; the next one is requested for the window, which is then the one that fails."""
    pipeline.fail_at["capture 3500-4000"] = error
    assert run(staying, instance).success
    assert len(instance.get_materialized_partitions(NAMES.key("mirror", EMPLOYEES))) == 5
    assert (pipeline.calls.count(("capture", "3500-4000")) > 1) == looks_again
    request = Sensors(staying, instance).request("windows")
    assert request.tags["dagster/asset_partition_range_start"] == partition(3500, 4000)


class Once(dict[str, CdcError]):
    """Each error meets one call."""

    def get(self, name: str, default: Any = None) -> Any:
        return self.pop(name, default)


def test_events_that_kafka_does_not_take_are_sent_at_the_next_look(
    pipeline: StandIn, instance: dg.DagsterInstance, clock: None
) -> None:
    """Though no window comes with it, and by the same run."""
    given = {**dict(pipeline.config), "publish": {"bootstrap_servers": "kafka:9092"}}
    pipeline.configure(SourceConfig.model_validate(given))
    pipeline.snapshotted().scn = 5000
    down = StoreUnavailableError("Kafka does not take the events", hint="Look at the brokers.")
    pipeline.fail_at = Once({f"publish {EMPLOYEES}": down})
    component = OracleCdc(pipeline.config, pipeline.opened, translator=NAMES)
    assert run(component.build_defs().get_repository_def(), instance).success
    sent = [table for step, table in pipeline.calls if step == "publish"]
    assert sent == [str(EMPLOYEES), *map(str, pipeline.tables)]
    last = max(place for place, (step, _) in enumerate(pipeline.calls) if step == "apply")
    assert all(step != "publish" for step, _ in pipeline.calls[:last]), "once for all windows"
    seen = instance.fetch_observations(NAMES.key("changelog", EMPLOYEES), limit=5).records
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("failures", "taken"),
    [
        pytest.param(1, 8, id="for-a-moment"),
        pytest.param(99, 5, id="for-good"),
    ],
)
def test_a_stay_outlives_a_storage_of_dagster_that_fails(
    pipeline: StandIn,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    clock: None,
    failures: int,
    taken: int,
) -> None:
    """The window is done and its event is not there: the next look reports it. Where that fails again and again, the run ends, and the
    sensor does."""
    pipeline.snapshotted().scn = 5000
    patient = Translator(
        "hr", DagsterConfig(windows=WindowsSensorConfig(interval_seconds=1, run_minutes=0.2))
    )
    names = NAMES if failures == 1 else patient
    component = OracleCdc(pipeline.config, pipeline.opened, translator=names)
    repository = component.build_defs().get_repository_def()
    mirror, storage = NAMES.key("mirror", EMPLOYEES), instance.event_log_storage
    failed, store_event = list[dg.EventLogEntry](), storage.store_event

    def locked(event: dg.EventLogEntry) -> None:
        made = event.dagster_event
        if (
            made is not None
            and made.is_step_materialization
            and (made.asset_key, made.partition) == (mirror, FIFTH)
            and len(failed) < failures
        ):
            failed.append(event)
            raise OperationalError("INSERT", None, sqlite3.OperationalError("locked"))
        store_event(event)

    monkeypatch.setattr(storage, "store_event", locked)
    assert run(repository, instance).success
    assert len(failed) == min(failures, STORAGE_FAILURES_MAX)
    applied = pipeline.records.windows(states=("applied",))
    assert len(applied) == taken
    monkeypatch.undo()
    sensors = Sensors(repository, instance)
    if taken < 8:
        assert FIFTH not in instance.get_materialized_partitions(mirror)
        assert sensors.request("windows").tags["dagster/asset_partition_range_start"] == partition(
            3500, 4000
        )
    assert len(instance.get_materialized_partitions(mirror)) == taken


def test_the_sensor_requests_nothing_while_a_run_stays(
    pipeline: StandIn, staying: dg.RepositoryDefinition, instance: dg.DagsterInstance
) -> None:
    """Though all tables have the windows of its range, which would be a replay of any other run."""
    sensors = Sensors(staying, instance)
    request = sensors.request("windows")
    for _ in range(4):
        window = pipeline.pending_windows()[0]
        pipeline.capture_window(window)
        pipeline.apply_window(window)
    sensors.start(request, dg.DagsterRunStatus.STARTED)
    found = sensors.tick("windows")
    assert not found.run_requests
    assert "is started" in (found.skip_message or "")


def test_windows_come_while_it_stays(
    oracle: Oracle, tmp_path: Path, home: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through Oracle: what is committed between two looks is a window of its own, until the sensor is switched off."""
    oracle.run("CREATE TABLE STAYS (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))")
    with source_of(oracle, tmp_path, "STAYS") as source:
        list(source.pipeline.run_snapshot())
        oracle.run("INSERT INTO STAYS VALUES (0, 'first')")
        options = DagsterConfig(windows=WindowsSensorConfig(interval_seconds=1))
        site = MemorySite(source, home, options, run_minutes=9)
        taken: list[int] = []

        def between_looks() -> None:
            taken.append(len(site.partitions("STAYS")))
            if taken[-1] == 4:
                home.add_instigator_state(_stopped("src_windows_sensor"))
            else:
                oracle.run(f"INSERT INTO STAYS VALUES ({len(taken)}, 'later')")

        monkeypatch.setattr(source.pipeline, "release_sessions", between_looks)
        [request] = site.tick()
        oracle.run("INSERT INTO STAYS VALUES (9, 'while it starts')")
        assert site.run(request).success
        assert taken[-1] == 4
        assert site.partitions("STAYS", "changelog") == site.partitions("STAYS")
        [newest] = home.fetch_materializations(site.names.redo_key, limit=1).records
        assert newest.asset_materialization is not None
        assert newest.asset_materialization.metadata["cdc/repeated"].value is False
        source.check_current("STAYS")
        assert site.tick() == []


def test_a_table_that_is_paused_while_it_stays_is_reported(
    oracle: Oracle, tmp_path: Path, home: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster is asked for its last evaluation at the first look, and where something has changed."""
    oracle.run("CREATE TABLE PAUSES (ID NUMBER(9) PRIMARY KEY)")
    with source_of(oracle, tmp_path, "PAUSES") as source:
        list(source.pipeline.run_snapshot())
        oracle.run("INSERT INTO PAUSES VALUES (0)")
        options = DagsterConfig(windows=WindowsSensorConfig(interval_seconds=1))
        site = MemorySite(source, home, options, run_minutes=9)
        asked, said = list[int](), list[bool]()
        storage = home.event_log_storage
        ask = storage.get_latest_asset_check_execution_by_key

        def counted(keys: Any) -> Any:
            asked.append(len(keys))
            return ask(keys)

        def between_looks() -> None:
            monkeypatch.setattr(storage, "get_latest_asset_check_execution_by_key", ask)
            said.append(site.check("PAUSES").passed)
            monkeypatch.setattr(storage, "get_latest_asset_check_execution_by_key", counted)
            if len(said) == 2:
                source.pipeline.pause_tables([table_id("PAUSES")])
            if len(said) == 4:
                home.add_instigator_state(_stopped("src_windows_sensor"))

        [request] = site.tick()
        monkeypatch.setattr(storage, "get_latest_asset_check_execution_by_key", counted)
        monkeypatch.setattr(source.pipeline, "release_sessions", between_looks)
        assert site.run(request).success
        assert said == [True, True, False, False]
        assert asked == [1, 1]


@pytest.mark.parametrize("first", ["captured", "planned"])
def test_runs_over_what_changes_stay_as_well(
    oracle: Oracle, tmp_path: Path, instance: dg.DagsterInstance, clock: None, first: str
) -> None:
    """With many tables a run is requested for those that change, or to capture alone; then it takes what others change."""
    names = one, two = f"ONE_{first}".upper(), f"TWO_{first}".upper()
    oracle.run(*(f"CREATE TABLE {one} (ID NUMBER(9) PRIMARY KEY)" for one in names))
    with source_of(oracle, tmp_path, *names) as source:
        list(source.pipeline.run_snapshot())
        options = DagsterConfig(windows=WindowsSensorConfig(assets="changed", interval_seconds=1))
        site = MemorySite(source, instance, options, run_minutes=0.05)
        oracle.run(f"INSERT INTO {one} VALUES (1)")
        if first == "planned":
            source.pipeline.plan_windows()
        [request] = site.tick()
        oracle.run(f"INSERT INTO {two} VALUES (1)")
        assert site.run(request).success
        assert len(site.partitions(one)) == len(site.partitions(two)) == 1
        assert site.partitions(one) != site.partitions(two)
        source.check_current(*names)
        assert site.tick() == []


def test_it_ends_where_others_need_its_place(
    staying: dg.RepositoryDefinition, home: dg.DagsterInstance
) -> None:
    """For a run of its own source always; for others where no slot is left, and then the one that has stayed longest."""
    job = staying.get_job("hr_windows")

    def add(status: dg.DagsterRunStatus, tags: dict[str, str]) -> dg.DagsterRun:
        made = home.create_run_for_job(
            job,
            tags=tags,
            status=status,
            remote_job_origin=RemoteJobOrigin(_origin(), job.name),
        )
        found = home.get_run_by_id(made.run_id)
        assert found is not None
        return found

    going, waiting = dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.QUEUED
    own = {SOURCE_TAG: "hr", MINUTES_TAG: "9", SENSOR_TAG: SENSOR}
    oldest, other = add(going, own), add(going, own)
    pools = (NAMES.capture_pool, NAMES.apply_pool)
    assert needs_its_place(home, oldest, pools) == ""
    queued = add(waiting, {})
    assert needs_its_place(home, oldest, pools) == "", "two of four slots are left"
    add(going, {})
    add(going, {})
    assert needs_its_place(home, oldest, pools) == "another run waits for a slot"
    assert needs_its_place(home, other, pools) == "", "one slot is enough"
    home.delete_run(queued.run_id)
    assert needs_its_place(home, oldest, pools) == ""
    storage = home.event_log_storage
    storage.initialize_concurrency_limit_to_default(NAMES.apply_pool)
    for taker, step in ((oldest, "a"), (other, "b"), (other, "c")):
        storage.claim_concurrency_slot(NAMES.apply_pool, taker.run_id, step)
    assert "a slot of the pool hr_windows" in needs_its_place(home, oldest, pools)
    storage.free_concurrency_slots_for_run(other.run_id)
    assert needs_its_place(home, oldest, pools) == ""
    maintain = add(going, {MAINTAIN_TAG: "hr"})
    assert needs_its_place(home, oldest, pools) == ""
    said = needs_its_place(home, oldest, pools, keeps_out=[NAMES.redo_key])
    assert "the lake has one writer" in said
    home.delete_run(maintain.run_id)
    assert needs_its_place(home, oldest, pools, keeps_out=[NAMES.redo_key]) == said, "the other"
    add(waiting, own)
    assert needs_its_place(home, oldest, pools) == "another run of the source waits"
    home.add_instigator_state(_stopped(SENSOR))
    assert needs_its_place(home, oldest, pools) == f"{SENSOR} was switched off"


def _origin() -> RemoteRepositoryOrigin:
    target = LoadableTargetOrigin(module_name="tests")
    return RemoteRepositoryOrigin(InProcessCodeLocationOrigin(target, "tests"), "source")


def _stopped(sensor: str) -> InstigatorState:
    """What the UI's switch leaves behind."""
    origin = RemoteInstigatorOrigin(_origin(), sensor)
    data = SensorInstigatorData(min_interval=60)
    return InstigatorState(origin, InstigatorType.SENSOR, InstigatorStatus.STOPPED, data)
