"""deploy/kubernetes: what manifests and values say fits the image and the tree. No cluster is asked here."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from dagster._cli import create_dagster_cli
from typer.main import get_command

from assets.config_file import load_config
from pipelines.cli import app

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
DOCKERFILE = (ROOT / "deploy" / "container" / "Dockerfile").read_text()
PAGE = (ROOT / "docs" / "how-to" / "kubernetes.md").read_text()
VALUES = yaml.safe_load((FOLDER / "values.yaml").read_text())
[CODE] = VALUES["dagster-user-deployments"]["deployments"]
LAUNCHER = VALUES["runLauncher"]["config"]["k8sRunLauncher"]
SOURCE = yaml.safe_load((FOLDER / "source.yaml").read_text())
DAGSTER = yaml.safe_load((ROOT / "pipelines" / "dagster.yaml").read_text())


def pods() -> dict[str, dict[str, Any]]:
    """Specs of pods, by the names of what makes them."""
    found = {}
    for file in ("loop.yaml", "cron.yaml"):
        for one in yaml.safe_load_all((FOLDER / file).read_text()):
            spec = one["spec"].get("jobTemplate", one)["spec"]
            found[one["metadata"]["name"]] = spec["template"]["spec"]
    return found


PODS = pods()
BY_POD = pytest.mark.parametrize("pod", PODS.values(), ids=PODS)


def gibibytes(text: str) -> int:
    assert re.fullmatch(r"\d+(Gi|g)", text)
    return int(text.rstrip("Gig"))


def environment(secret: str) -> dict[str, str]:
    """What the page puts into a secret."""
    command = re.search(rf"create secret generic {secret} (.*?)\n```", PAGE, re.DOTALL)
    assert command is not None
    names = re.findall(r"--from-literal=([\w-]+)=", command[1])
    assert names
    return dict.fromkeys(names, "secret")


def test_there_are_a_loop_and_three_jobs() -> None:
    assert set(PODS) == {"redolake-loop", "redolake-run", "redolake-maintain", "redolake-reconcile"}


@BY_POD
def test_a_pod_runs_a_command_of_the_image_of_this_version(pod: dict[str, Any]) -> None:
    [container] = pod["containers"]
    assert container["image"].endswith(f"/redolake:{VERSION}")
    program, name, *rest = container["args"]
    assert program == "redolake"
    command = get_command(app)
    found = command.commands[name]  # type: ignore[attr-defined]
    found.make_context(name, rest)


@BY_POD
def test_a_pod_is_the_image_s_user_and_has_no_rights_of_the_cluster(pod: dict[str, Any]) -> None:
    [uid] = re.findall(r"^USER (\d+):\1$", DOCKERFILE, re.M)
    runs = LAUNCHER["runK8sConfig"]
    for security in (
        pod["securityContext"],
        CODE["podSecurityContext"],
        runs["podSpecConfig"]["securityContext"],
    ):
        assert security["runAsNonRoot"] is True
        assert {security[key] for key in ("runAsUser", "runAsGroup", "fsGroup")} == {int(uid)}
    for container in (*pod["containers"], CODE, runs["containerConfig"]):
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
    assert pod["automountServiceAccountToken"] is False


@BY_POD
def test_a_pod_finds_its_configuration_and_a_folder_to_write_to(pod: dict[str, Any]) -> None:
    [container] = pod["containers"]
    mounted = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    volumes = {one["name"]: one for one in pod["volumes"]}
    assert volumes["source"]["configMap"] == {"name": SOURCE["metadata"]["name"]}
    [file] = SOURCE["data"]
    assert f"REDOLAKE_CONFIG={mounted['source']}/{file}\n" in DOCKERFILE
    assert f"WORKDIR {mounted['data']}\n" in DOCKERFILE
    assert (container["volumeMounts"], pod["volumes"]) == (CODE["volumeMounts"], CODE["volumes"])


@BY_POD
def test_memory_is_that_of_spark_and_as_much_again(pod: dict[str, Any]) -> None:
    [container] = pod["containers"]
    driver = gibibytes(
        yaml.safe_load(SOURCE["data"]["defs.yaml"])["attributes"]["lake"]["driver_memory"]
    )
    for resources in (container["resources"], CODE["resources"]):
        assert gibibytes(resources["limits"]["memory"]) >= 2 * driver
        assert resources["requests"]["memory"] == resources["limits"]["memory"]


def test_the_source_is_a_configuration_whose_passwords_are_in_the_secret(tmp_path: Path) -> None:
    file = tmp_path / "defs.yaml"
    file.write_text(SOURCE["data"]["defs.yaml"])
    config = load_config(file, environ=environment("redolake-environment"))
    assert config.oracle.password is not None
    assert config.landing.type == "s3"
    assert config.landing.cache.startswith("/data/")
    assert config.state.url.startswith("postgresql")
    assert config.metrics.port == 9464


@BY_POD
def test_passwords_come_from_the_secret_of_the_page(pod: dict[str, Any]) -> None:
    [container] = pod["containers"]
    assert container["envFrom"] == [{"secretRef": {"name": "redolake-environment"}}]
    assert CODE["envSecrets"] == [{"name": "redolake-environment"}]
    assert "env" not in container


def test_dagster_s_own_password_is_in_a_secret_too() -> None:
    assert VALUES["generatePostgresqlPasswordSecret"] is False
    assert "postgresqlPassword" not in VALUES["postgresql"]
    assert set(environment(VALUES["global"]["postgresqlSecretName"])) == {"postgresql-password"}


def test_the_chart_has_the_version_of_dagster_that_the_image_has() -> None:
    lock = (ROOT / "deploy" / "container" / "requirements.lock").read_text()
    [version] = re.findall(r"^dagster==(\S+)", lock, re.M)
    for text in ((FOLDER / "values.yaml").read_text(), PAGE):
        assert set(re.findall(r"--version (\S+)", text)) == {version}


def test_the_code_location_is_ours() -> None:
    assert CODE["image"]["tag"] == VERSION
    grpc = create_dagster_cli().commands["api"].commands["grpc"]
    arguments = ["-h", "0.0.0.0", "-p", str(CODE["port"]), *CODE["dagsterApiGrpcArgs"]]
    assert grpc.make_context("grpc", arguments).params["module_name"] == "pipelines.definitions"
    assert CODE["includeConfigInLaunchedRuns"] == {"enabled": True}


def test_runs_take_turns_as_in_redolake_s_own_settings() -> None:
    daemon = VALUES["dagsterDaemon"]
    queue = daemon["runCoordinator"]["config"]["queuedRunCoordinator"]
    ours = DAGSTER["concurrency"]["runs"]
    assert queue["tagConcurrencyLimits"] == ours["tag_concurrency_limits"]
    retries = DAGSTER["run_retries"]
    assert daemon["runRetries"] == {
        "enabled": retries["enabled"],
        "maxRetries": retries["max_retries"],
        "retryOnAssetOrOpFailure": retries["retry_on_asset_or_op_failure"],
    }
    assert VALUES["runLauncher"]["type"] == "K8sRunLauncher"


def test_one_pod_at_a_time_follows_a_source() -> None:
    loop = yaml.safe_load((FOLDER / "loop.yaml").read_text())["spec"]
    assert (loop["replicas"], loop["strategy"]["type"]) == (1, "Recreate")
    for one in yaml.safe_load_all((FOLDER / "cron.yaml").read_text()):
        assert one["spec"]["concurrencyPolicy"] == "Forbid"
