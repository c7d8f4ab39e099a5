"""The wheel in a Spark job, as on a platform that brings its own Spark: ``spark-submit`` on a standalone cluster, without the clone."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from assets.config_file import load_config
from cdc_core.runtime.folders import (
    default_runtime_folder,
    find_spark_home,
    jars_folder,
    shim_folder,
)
from cdc_core.runtime.java import find_java
from cdc_core.spark.session import SPARK_WITH_DELTA
from cdc_core.steps import Pipeline
from tests.distribution.wheels import ROOT, build, install
from tests.lake.cluster import Cluster, cluster
from tests.lake.on_a_cluster import check
from tests.oracle.embedded import CAPTURE, MERGED_BY_SPARK, PASSWORDS, running_oracle

PAGE = ROOT / "docs" / "how-to" / "databricks-emr-dataproc.md"
PASSWORD = "SOURCE_ORACLE_PASSWORD"
LIMIT_SECONDS = 800


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(3 * LIMIT_SECONDS)
def test_a_job_and_a_run_of_dagster_inside_one_merge_in_the_session_of_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both as the page has them, word for word; the mirror equals Oracle."""
    monkeypatch.setenv(PASSWORD, PASSWORDS[CAPTURE])
    job, resources = (tmp_path / name for name in ("redolake_job.py", "resources.py"))
    for file, text in zip((job, resources), _python_blocks(), strict=True):
        file.write_text(text)
    programs = install(build(tmp_path / "dist", ["redolake"]).values(), tmp_path / "job")
    with running_oracle() as oracle, cluster(tmp_path / "cluster") as running:
        oracle.run(
            "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))",
            "INSERT INTO ONE SELECT LEVEL, 'first' FROM DUAL CONNECT BY LEVEL <= 1000",
        )
        file = _written(tmp_path, oracle.server.dsn)
        with Pipeline(load_config(file, environ=os.environ)) as pipeline:
            list(pipeline.run_once())
            for script, more in (
                (job, []),
                (ROOT / "tests/distribution/dagster_job.py", [resources]),
            ):
                oracle.run(
                    f"INSERT INTO ONE SELECT MAX(ID) + 1, '{script.stem}' FROM ONE",
                    "UPDATE ONE SET V = V || '.' WHERE ID <= 10",
                    f"DELETE FROM ONE WHERE V = 'first' AND ID > {400 if more else 800}",
                )
                said = _submitted(programs, running, script, file, *more)
                assert ("application app-" if more else "window-applied") in said
                check(oracle, pipeline, tmp_path)
        assert sum(running.executors()) >= 2, "each application had an executor"
    log = sorted((tmp_path / "lake" / "src" / "mirror" / "demo.one" / "_delta_log").glob("*.json"))
    writers = [re.search(r'"engineInfo":"([^"]+)"', one.read_text()) for one in log[-2:]]
    assert all(one is not None and "Spark" in one[1] for one in writers), "its MERGE wrote"


def _python_blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def _written(folder: Path, dsn: str) -> Path:
    """The source's file; what reads it finds the password in the environment."""
    attributes = {
        "name": "src",
        "oracle": {"dsn": dsn, "user": CAPTURE, "password_env": PASSWORD},
        "tables": [{"name": "DEMO.ONE"}],
        "capture": {"close_at": "online"},
        "landing": {"type": "local", "path": str(folder / "landing")},
        "lake": {"path": str(folder / "lake"), **MERGED_BY_SPARK},
        "state": {"url": f"sqlite:///{folder / 'state.db'}"},
        "dagster": {"own_resource": True},
    }
    file = folder / "source" / "defs.yaml"
    file.parent.mkdir()
    file.write_text(
        yaml.safe_dump({"type": "assets.components.OracleCdc", "attributes": attributes})
    )
    return file


def _submitted(programs: Path, running: Cluster, script: Path, *arguments: Path) -> str:
    """Submit a script to the cluster with the Python of an environment; what it printed."""
    runtime, home = default_runtime_folder(), find_spark_home()
    settings = {
        **SPARK_WITH_DELTA,
        "spark.pyspark.python": str(programs / "python"),
        "spark.executor.memory": "768m",
        "spark.ui.enabled": "false",
    }
    given = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [str(home / "bin" / "spark-submit"), "--master", running.url]
    jars = ",".join(map(str, sorted(jars_folder(runtime).glob("delta-*.jar"))))
    command += ["--jars", jars]
    environ = {
        **os.environ,
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(find_java(shim_folder(runtime)).path),
    }
    for name in ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        environ.pop(name, None)
    done = subprocess.run(
        [*command, *given, str(script), *map(str, arguments)],
        cwd=programs.parent,
        env=environ,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout
