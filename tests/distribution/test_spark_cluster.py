"""deploy/spark-cluster describes a cluster on which Redolake runs: no container is started here, what the files say is checked."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from cdc_core.config import LakeConfig
from pipelines.cli import app

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "spark-cluster"
SCRIPT = FOLDER / "spark.sh"


@pytest.fixture
def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
    return found


def after(command: list[str], option: str) -> str:
    return command[command.index(option) + 1]


def test_there_are_a_master_two_workers_and_redolake_of_one_image(services: dict[str, Any]) -> None:
    assert list(services) == ["spark-master", "spark-worker-1", "spark-worker-2", "redolake"]
    assert len({one["image"] for one in services.values()}) == 1
    for one in services.values():
        context = (FOLDER / one["build"]["context"]).resolve()
        assert (context / one["build"]["dockerfile"]).is_file()
        assert context == ROOT


def test_every_container_sees_landing_and_lake_under_one_path(services: dict[str, Any]) -> None:
    assert {tuple(one["volumes"]) for one in services.values()} == {("shared:/shared",)}
    assert after(services["redolake"]["command"], "--folder").startswith("/shared/")


def test_all_call_the_master_by_the_name_that_it_listens_on(services: dict[str, Any]) -> None:
    master = services["spark-master"]
    host, port = after(master["command"], "--host"), after(master["command"], "--port")
    url = f"spark://{host}:{port}"
    assert master["hostname"] == host
    workers = [one for name, one in services.items() if "worker" in name]
    assert [one["command"][-1] for one in workers] == [url, url]
    assert after(services["redolake"]["command"], "--spark") == url
    assert not LakeConfig(path="/shared/lake", spark_master=url).is_local
    for one in workers:
        assert after(one["command"], "--host") == one["hostname"]
    for name in (*(name for name in services if "worker" in name), "redolake"):
        assert services[name]["depends_on"] == {"spark-master": {"condition": "service_healthy"}}


def test_redolake_s_command_is_one_that_the_command_line_takes(services: dict[str, Any]) -> None:
    program, *arguments = services["redolake"]["command"]
    assert program == "redolake"
    command = typer.main.get_command(app)
    context = command.make_context(program, list(arguments), resilient_parsing=True)
    name, found, rest = command.resolve_command(context, arguments)  # type: ignore[attr-defined]
    assert name == "demo"
    parsed = found.make_context(name, rest)
    assert parsed.params["spark"] == "spark://spark-master:7077"


def test_the_image_copies_and_runs_what_is_there() -> None:
    lines = (FOLDER / "Dockerfile").read_text()
    assert "redolake setup" in lines
    for path in ("requirements.lock", "oracle_embedded", "deploy/spark-cluster/spark.sh"):
        assert f"/src/{path}" in lines
        assert (ROOT / path).exists()
    assert os.access(SCRIPT, os.X_OK)


def test_the_script_says_how_it_is_used() -> None:
    done = subprocess.run([SCRIPT, "driver"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "master|worker" in done.stderr
