"""Where the configuration says where Kafka is, runs that bring events are followed by one that publishes them."""

from __future__ import annotations

import dagster as dg
import pytest

from assets.components import OracleCdc
from assets.runs import SNAPSHOT_TAG, SOURCE_TAG
from assets.settings import ComponentConfig
from assets.translator import Translator
from tests.assets.standin import EMPLOYEES, StandIn

NAMES = Translator("hr")


@pytest.fixture
def publishing(pipeline: StandIn) -> dg.RepositoryDefinition:
    given = {**dict(pipeline.config), "publish": {"bootstrap_servers": "kafka:9092"}}
    config = ComponentConfig.model_validate(given)
    return OracleCdc(config, pipeline.opened).build_defs().get_repository_def()


def test_without_kafka_there_is_no_job(repository: dg.RepositoryDefinition) -> None:
    assert not repository.has_job("hr_publish")
    assert not repository.has_sensor_def("hr_publishes")


def test_the_job_shows_at_each_change_log_what_it_sent(
    pipeline: StandIn, publishing: dg.RepositoryDefinition, instance: dg.DagsterInstance
) -> None:
    assert publishing.get_job("hr_publish").execute_in_process(instance=instance).success
    assert ("publish", str(EMPLOYEES)) in pipeline.calls
    [seen] = instance.fetch_observations(NAMES.key("changelog", EMPLOYEES), limit=5).records
    assert seen.asset_observation is not None
    assert seen.asset_observation.metadata["cdc/published"].value == 3


@pytest.mark.parametrize(
    ("tags", "is_followed"),
    [
        pytest.param({SOURCE_TAG: "hr"}, True, id="windows"),
        pytest.param({SNAPSHOT_TAG: "hr"}, True, id="chunks"),
        pytest.param({SOURCE_TAG: "other"}, False, id="another source"),
        pytest.param({}, False, id="publishing itself"),
    ],
)
def test_it_follows_runs_that_bring_events(
    publishing: dg.RepositoryDefinition,
    instance: dg.DagsterInstance,
    tags: dict[str, str],
    is_followed: bool,
) -> None:
    run = publishing.get_job("hr_publish").execute_in_process(instance=instance, tags=tags)
    sensor = publishing.get_sensor_def("hr_publishes")
    context = dg.build_run_status_sensor_context(
        sensor_name="hr_publishes",
        dagster_instance=instance,
        dagster_run=run.dagster_run,
        dagster_event=run.get_run_success_event(),
    )
    assert isinstance(sensor, dg.RunStatusSensorDefinition)
    found = sensor(context)
    assert isinstance(found, dg.RunRequest) is is_followed
