"""deploy/container: what image, compose file and Dagster's settings say fits the tree. No container is started here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import boto3
import click
import dagster as dg
import pytest
import typer
import yaml
from dagster._cli import create_dagster_cli
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster._daemon.cli import create_dagster_daemon_cli
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from sqlalchemy import make_url

from assets.config_file import load_config
from cdc_core.model.metrics import Sample
from pipelines.cli import app
from pipelines.metrics_server import served
from tests.free_port import free_port
from tests.landing.s3_server import running_s3

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "container"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSION = PYPROJECT["project"]["version"]


def _webserver() -> click.Command:
    from dagster_webserver.cli import create_dagster_webserver_cli  # a second of imports

    return create_dagster_webserver_cli()


PROGRAMS = {
    "redolake": lambda: typer.main.get_command(app),
    "dagster": create_dagster_cli,
    "dagster-daemon": create_dagster_daemon_cli,
    "dagster-webserver": _webserver,
}


def read(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text())


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions: name and arguments, continued lines joined."""
    lines = [
        line
        for line in (FOLDER / "Dockerfile").read_text().splitlines()
        if line[:1] not in ("#", "")
    ]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in joined)]


def stages() -> dict[str, list[tuple[str, str]]]:
    """Instructions of each stage, those of the stage that it begins from first."""
    found: dict[str, list[tuple[str, str]]] = {}
    stage = ""
    for name, rest in instructions():
        if name == "FROM":
            base, _, stage = rest.partition(" AS ")
            found[stage] = list(found.get(base, []))
        elif stage:
            found[stage].append((name, rest))
    return found


def locked(path: Path) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==([^ \\;]+)", path.read_text(), re.MULTILINE))


LOCKED = locked(FOLDER / "requirements.lock")


def assert_parses(command: list[str]) -> None:
    """The program's own parser takes the command."""
    program, *arguments = command
    parser: click.Command = PROGRAMS[program]()
    words: list[str] = []
    while isinstance(parser, click.Group):
        assert arguments[0] in parser.commands, command
        parser = parser.commands[arguments[0]]
        words, arguments = [*words, arguments[0]], arguments[1:]
    parser.make_context(" ".join([program, *words]), arguments, resilient_parsing=False)


# The image


def test_each_stage_begins_from_the_pinned_python_or_another_stage() -> None:
    [pinned] = [rest for name, rest in instructions() if name == "ARG"]
    assert re.fullmatch(r"PYTHON_IMAGE=python:3\.\d+\.\d+-slim-[a-z]+", pinned)
    minor = re.search(r"3\.\d+", pinned)
    assert minor is not None
    assert f"Programming Language :: Python :: {minor[0]}" in PYPROJECT["project"]["classifiers"]
    known = {"${PYTHON_IMAGE}"}
    for name, rest in instructions():
        if name == "FROM":
            base, _, stage = rest.partition(" AS ")
            assert base in known
            known.add(stage)
    assert list(stages())[-2:] == ["slim", "spark"]


def test_what_is_copied_is_there_and_reaches_the_builder() -> None:
    admitted = [
        line[1:]
        for line in (FOLDER / "Dockerfile.dockerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    copied = 0
    for name, rest in instructions():
        words = [word for word in rest.split() if not word.startswith("--")]
        if name != "COPY":
            continue
        if "--from=" in rest:
            assert re.search(r"--from=(\S+)", rest)[1] in stages()  # type: ignore[index]
            continue
        for source in words[:-1]:
            copied += 1
            assert (ROOT / source).exists(), source
            assert any(source == one or source.startswith(f"{one}/") for one in admitted), source
    assert copied > 8
    assert all((ROOT / one).exists() for one in admitted)


def test_the_wheel_stage_has_every_package_and_file_of_the_wheel() -> None:
    copied = " ".join(rest for name, rest in stages()["wheel"] if name == "COPY").split()
    wheel = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert {*wheel, PYPROJECT["project"]["readme"], *PYPROJECT["project"]["license-files"]} <= {
        *copied
    }


@pytest.mark.parametrize("target", ["slim", "spark"])
def test_an_image_ends_as_a_user_by_number_that_is_not_root(target: str) -> None:
    users = [rest for name, rest in stages()[target] if name == "USER"]
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", users[-1])
    uid = users[-1].split(":")[0]
    made = " ".join(rest for name, rest in stages()[target] if name == "RUN")
    assert f"--uid {uid}" in made
    [health] = [rest for name, rest in stages()[target] if name == "HEALTHCHECK"]
    assert "redolake-health" in health


def test_the_command_of_the_image_is_one() -> None:
    [command] = [rest for name, rest in stages()["spark"] if name == "CMD"]
    assert_parses(yaml.safe_load(command))
    [setup] = [rest for name, rest in stages()["packages-spark"][-1:] if name == "RUN"]
    assert_parses(["redolake", *setup.split("bin/redolake ")[1].split("&&")[0].split()])


@pytest.mark.parametrize("target", ["slim", "spark"])
def test_compiled_code_belongs_to_the_user_of_the_image(target: str) -> None:
    """Nobody else's is run (`cdc_core/decode/kernels/cache.py`)."""
    [user] = {rest for name, rest in stages()[target] if name == "USER"}
    commands = [rest for name, rest in stages()[f"packages-{target}"] if name == "RUN"]
    assert re.search(rf"&& +chown -R {user} \S+/cdc_core/decode/kernels/__pycache__$", commands[-1])
    assert (ROOT / "cdc_core" / "decode" / "kernels" / "cache.py").is_file()


def test_the_image_has_the_versions_that_the_tests_have() -> None:
    tested = locked(ROOT / "requirements.lock")
    assert {name: tested[name] for name in LOCKED if name in tested} == {
        name: version for name, version in LOCKED.items() if name in tested
    }
    assert len(LOCKED.keys() & tested.keys()) > 80


def test_the_image_has_each_dependency_in_its_range() -> None:
    """Redolake's own, those of its extras without a demo, and what Dagster needs beside PostgreSQL and in Kubernetes."""
    project = PYPROJECT["project"]
    extras = project["optional-dependencies"]
    more = [
        line
        for line in (FOLDER / "requirements.in").read_text().splitlines()
        if not line.startswith("#")
    ]
    declared = [
        *project["dependencies"],
        *extras["kafka"],
        *extras["openlogreplicator"],
        *more,
    ]
    for line in declared:
        requirement = Requirement(line)
        assert LOCKED[canonicalize_name(requirement.name)] in requirement.specifier
    [hatchling] = [Requirement(line) for line in PYPROJECT["build-system"]["requires"]]
    assert locked(FOLDER / "build.lock")["hatchling"] in hatchling.specifier


@pytest.mark.parametrize("name", ["requirements.lock", "build.lock"])
def test_every_package_of_the_image_has_hashes(name: str) -> None:
    entries = re.findall(
        r"^[\w.-]+==[^\n]*\n((?:    [^\n]*\n)*)", (FOLDER / name).read_text(), re.M
    )
    assert entries
    assert all("--hash=sha256:" in entry for entry in entries)


# Compose


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    found: dict[str, Any] = read("compose.yaml")["services"]
    return found


def test_services_of_ours_are_one_image_of_this_version(services: dict[str, Any]) -> None:
    ours = {name: one for name, one in services.items() if "build" in one}
    assert set(ours) == {"buckets", "code", "webserver", "daemon", "metrics"}
    for one in ours.values():
        assert one["image"] == f"redolake:{VERSION}"
        assert (FOLDER / one["build"]["context"]).resolve() == ROOT
        assert (ROOT / one["build"]["dockerfile"]).is_file()
        assert one["build"]["target"] in stages()


def test_other_images_are_pinned(services: dict[str, Any]) -> None:
    others = [one["image"] for one in services.values() if "build" not in one]
    assert len(others) == 2
    assert all(re.search(r":.*\d{2}", image) for image in others)


def test_every_file_service_and_volume_that_is_named_is_there(services: dict[str, Any]) -> None:
    volumes = read("compose.yaml")["volumes"]
    for one in services.values():
        assert set(one.get("depends_on", {})) <= set(services)
        for mount in one.get("volumes", []):
            source = mount.split(":")[0]
            assert (FOLDER / source).is_file() if source.startswith(".") else source in volumes


@pytest.mark.parametrize("name", ["code", "webserver", "daemon", "metrics"])
def test_a_command_is_one_that_its_program_takes(services: dict[str, Any], name: str) -> None:
    service = services[name]
    command = [
        str(FOLDER / "workspace.yaml") if word.startswith("/etc/dagster/") else word
        for word in service["command"]
    ]
    assert_parses(command)
    test = service.get("healthcheck", {}).get("test", ["CMD", "redolake-health", "loop"])
    if test[1] in PROGRAMS:
        assert_parses(test[1:])
    else:
        assert test[1] == "redolake-health"


def test_every_password_comes_from_the_environment_file(services: dict[str, Any]) -> None:
    text = (FOLDER / "compose.yaml").read_text()
    asked = set(re.findall(r"\$\{(\w+):\?", text))
    given = set(re.findall(r"^(\w+)=", (FOLDER / "env.example").read_text(), re.M))
    assert asked == given
    for one in services.values():
        for name, value in one.get("environment", {}).items():
            if re.search("PASSWORD|KEY", name):
                assert value.startswith("${"), name


def test_the_source_names_the_services_of_the_compose_file(services: dict[str, Any]) -> None:
    environment = services["code"]["environment"]
    config = load_config(FOLDER / "defs.yaml", environ=dict.fromkeys(environment, "secret"))
    assert config.landing.type == "s3"
    assert config.landing.endpoint_url == environment["AWS_ENDPOINT_URL"]
    assert config.lake.spark_config["spark.hadoop.fs.s3a.endpoint"] == config.landing.endpoint_url
    buckets = services["buckets"]["command"][2:]
    assert [config.landing.bucket, config.lake.path.split("/")[2]] == buckets
    postgres = services["postgres"]["environment"]
    assert config.state.url == (
        f"postgresql+psycopg2://{postgres['POSTGRES_USER']}@postgres/{postgres['POSTGRES_DB']}"
    )
    assert services["metrics"]["ports"] == [
        f"127.0.0.1:{config.metrics.port}:{config.metrics.port}"
    ]
    assert config.metrics.address == "0.0.0.0"


# Dagster


def test_dagster_has_a_database_of_its_own_in_postgresql(services: dict[str, Any]) -> None:
    database = read("dagster.yaml")["storage"]["postgres"]["postgres_db"]
    postgres = services["postgres"]["environment"]
    assert database["hostname"] in services
    assert database["username"] == postgres["POSTGRES_USER"]
    assert database["db_name"] != postgres["POSTGRES_DB"]
    assert f"CREATE DATABASE {database['db_name']};" in (FOLDER / "databases.sql").read_text()
    assert database["password"]["env"] in services["code"]["environment"]


def test_dagster_s_driver_for_postgresql_is_in_the_image() -> None:
    """Without its name SQLAlchemy takes its default, which is not among Redolake's dependencies."""
    kubernetes = yaml.safe_load((ROOT / "deploy" / "kubernetes" / "values.yaml").read_text())
    for scheme in (
        read("dagster.yaml")["storage"]["postgres"]["postgres_db"]["scheme"],
        kubernetes["postgresql"]["postgresqlScheme"],
    ):
        driver = make_url(f"{scheme}://host/database").get_driver_name()
        assert f"{driver}-binary" in LOCKED


def test_the_rest_of_dagster_s_settings_are_redolake_s_own() -> None:
    ours = yaml.safe_load((ROOT / "pipelines" / "dagster.yaml").read_text())
    found = read("dagster.yaml")
    for name in ("storage", "compute_logs", "run_launcher"):
        del found[name]
    del ours["storage"]
    assert found["concurrency"]["runs"].pop("max_concurrent_runs") == 1
    assert ours["concurrency"]["runs"].pop("max_concurrent_runs") > 1
    assert found == ours


def test_dagster_loads_its_settings(tmp_path: Path) -> None:
    """All but the storage: dagster-postgres is in the image, not beside the tests."""
    settings = read("dagster.yaml")
    del settings["storage"]
    settings["compute_logs"]["config"]["base_dir"] = str(tmp_path / "logs")
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(settings))
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert type(instance.run_launcher).__name__ == "DefaultRunLauncher"
        assert type(instance.run_coordinator).__name__ == "QueuedRunCoordinator"
        assert instance.get_concurrency_config().run_queue_config is not None
        assert instance.run_monitoring_enabled


def test_dagster_finds_the_code_location(services: dict[str, Any]) -> None:
    [origin] = WorkspaceFileTarget([str(FOLDER / "workspace.yaml")]).create_origins()
    assert isinstance(origin, GrpcServerCodeLocationOrigin)
    assert origin.host in services
    command = services[origin.host]["command"]
    assert command[command.index("--port") + 1] == str(origin.port)
    assert command[command.index("--module-name") + 1] == "pipelines.definitions"


# What the image and the compose file run


def health(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FOLDER / "health.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_loop_is_healthy_while_it_serves_and_no_source_is_measured_for_it() -> None:
    measured: list[int] = []
    port = free_port()

    def measure() -> Sequence[Sample]:
        measured.append(1)
        return []

    with served({"orders": measure}, address="127.0.0.1", port=port):
        assert health("loop", str(port)).returncode == 0
    assert measured == []
    ended = health("loop", str(port))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert str(port) in ended.stderr


def test_the_health_check_says_how_it_is_used() -> None:
    ended = health("dagster")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "loop|webserver" in ended.stderr


def test_the_parsers_refuse_what_is_wrong() -> None:
    with pytest.raises(click.UsageError):
        assert_parses(["dagster", "api", "grpc", "--portt", "4000"])


def test_buckets_are_made_once() -> None:
    command = [sys.executable, str(FOLDER / "buckets.py"), "landing", "lake"]
    with running_s3() as endpoint:
        for _ in range(2):
            subprocess.run(command, env={**os.environ, "AWS_ENDPOINT_URL": endpoint}, check=True)
        listed = boto3.client("s3", endpoint_url=endpoint).list_buckets()["Buckets"]
    assert {one["Name"] for one in listed} == {"landing", "lake"}
