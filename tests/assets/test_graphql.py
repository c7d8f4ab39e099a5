"""What the UI asks and does, through its own GraphQL and a real code server and run process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import PythonFileTarget
from starlette.testclient import TestClient

from assets.history import add_partitions
from assets.translator import Translator
from tests.assets.standin import StandIn, partition

ROOT = Path(__file__).resolve().parents[2]
NAMES = Translator("hr")
FIRST, SECOND = partition(1000, 1500), partition(1500, 2000)
RUN_SECONDS = 400


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """Launches at once: there is no daemon here to take runs from the queue."""
    direct = {"module": "dagster.core.run_coordinator", "class": "DefaultRunCoordinator"}
    with dg.instance_for_test(overrides={"run_coordinator": direct}) as made:
        yield made


@pytest.fixture
def ask(
    pipeline: StandIn, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Ask]:
    from dagster_webserver.webserver import DagsterWebserver  # a second of imports, for one process

    monkeypatch.setenv("REDOLAKE_TEST_FOLDER", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    target = PythonFileTarget(
        python_file=str(Path(__file__).with_name("standin_location.py")),
        attribute="defs",
        working_directory=str(ROOT),
        location_name="redolake",
    )
    with WorkspaceProcessContext(instance, target) as workspace:
        client = TestClient(DagsterWebserver(workspace).create_asgi_app())

        def asked(query: str, **variables: Any) -> dict[str, Any]:
            answer = client.post("/graphql", json={"query": query, "variables": variables}).json()
            assert "errors" not in answer, answer["errors"]
            return answer["data"]

        yield asked


Ask = Callable[..., dict[str, Any]]

ASSETS = """{ assetNodes { assetKey { path } groupName kinds isPartitioned
    dependencyKeys { path } hasMaterializePermission isMaterializable } }"""
LAUNCH = """mutation ($params: ExecutionParams!) { launchPipelineExecution(executionParams: $params) {
    __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
    ... on RunConfigValidationInvalid { errors { message } } } }"""
PARTITIONS = """query ($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
    partitionStats { numMaterialized numPartitions numFailed }
    assetMaterializations(limit: 10) { partition metadataEntries { label
      ... on IntMetadataEntry { intValue } } } } } }"""


def check_graph(ask: Ask) -> None:
    """It leads from Oracle to the mirrors."""
    nodes = {"/".join(node["assetKey"]["path"]): node for node in ask(ASSETS)["assetNodes"]}
    mirror = nodes["hr/mirror/hr/jobs"]
    assert mirror["isPartitioned"]
    assert mirror["groupName"] == "hr_mirror"
    assert set(mirror["kinds"]) == {"spark", "deltalake"}
    assert [key["path"] for key in mirror["dependencyKeys"]] == [["hr", "changelog", "hr", "jobs"]]
    assert not nodes["hr/oracle/hr/jobs"]["isMaterializable"]


def test_the_graph_is_shown_and_a_range_that_is_launched_is_a_run_in_a_process_of_its_own(
    ask: Ask, pipeline: StandIn, instance: dg.DagsterInstance
) -> None:
    """One code server for both: to start it takes five seconds."""
    check_graph(ask)
    pipeline.snapshotted().plan_windows()
    add_partitions(instance, pipeline.records, pipeline.config, NAMES)
    selector = {
        "repositoryLocationName": "redolake",
        "repositoryName": "__repository__",
        "pipelineName": "hr_windows",
    }
    tags = [
        {"key": "dagster/asset_partition_range_start", "value": FIRST},
        {"key": "dagster/asset_partition_range_end", "value": SECOND},
    ]
    launched = ask(
        LAUNCH,
        params={
            "selector": selector,
            "mode": "default",
            "runConfigData": {},
            "executionMetadata": {"tags": tags},
        },
    )["launchPipelineExecution"]
    assert launched["__typename"] == "LaunchRunSuccess", launched
    run_id = launched["run"]["runId"]
    assert finished(instance, run_id) == dg.DagsterRunStatus.SUCCESS
    mirror = {"path": ["hr", "mirror", "hr", "jobs"]}
    node = ask(PARTITIONS, key=mirror)["assetNodeOrError"]
    assert node["partitionStats"] == {"numMaterialized": 2, "numPartitions": 2, "numFailed": 0}
    values = {
        entry["label"]: entry.get("intValue")
        for entry in node["assetMaterializations"][0]["metadataEntries"]
    }
    assert values["cdc/rows_inserted"] == 3
    assert pipeline.store.leases.all() == [], "the run gave its lease back"


def finished(instance: dg.DagsterInstance, run_id: str) -> dg.DagsterRunStatus:
    deadline = time.monotonic() + RUN_SECONDS
    while time.monotonic() < deadline:
        run = instance.get_run_by_id(run_id)
        assert run is not None
        if run.is_finished:
            return run.status
        time.sleep(0.2)
    raise AssertionError("the run did not end")
