"""Spark as a cluster of processes: a master and two workers, which share a folder with the driver and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from cdc_core.config import LakeConfig
from cdc_core.errors import PreflightError
from cdc_core.runtime.folders import default_runtime_folder, shim_folder
from cdc_core.runtime.java import find_java
from cdc_core.spark.session import spark_settings, start_session
from tests.lake.cluster import cluster

ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 800


@pytest.mark.spark
@pytest.mark.slow
def test_snapshot_windows_replay_and_comparison_on_a_cluster(tmp_path: Path) -> None:
    with cluster(tmp_path / "cluster") as running:
        done = subprocess.run(
            [sys.executable, "-m", "tests.lake.on_a_cluster", running.url, str(tmp_path)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        assert done.stdout.endswith("equal\n"), done.stderr[-4000:]
        assert all(count > 0 for count in running.executors()), "both workers had work to do"


@pytest.mark.spark
@pytest.mark.slow
def test_the_demo_proves_its_tables_on_a_cluster(tmp_path: Path) -> None:
    """As a user runs it: `redolake demo --spark`, with executors of both workers."""
    with cluster(tmp_path / "cluster") as running:
        demo = ["demo", "--spark", running.url, "--folder", str(tmp_path / "demo")]
        done = subprocess.run(
            [sys.executable, "-m", "pipelines.cli", *demo],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        assert "Every table equals Oracle" in done.stdout
        assert all(count > 0 for count in running.executors()), "both workers had work to do"


def settings_of(**more: object) -> dict[str, str]:
    runtime = default_runtime_folder()
    lake = LakeConfig(path="/lake", **more)
    return spark_settings(lake, runtime, find_java(shim_folder(runtime)))


def test_executors_of_a_cluster_get_the_jars_and_call_the_driver_by_its_own_address() -> None:
    found = settings_of(spark_master="spark://host:7077")
    assert [Path(jar).suffix for jar in found["spark.jars"].split(",")] == [".jar"] * 2
    assert not {"spark.driver.host", "spark.driver.bindAddress"} & set(found)
    assert "127.0.0.1" not in str(found)


def test_nobody_else_can_call_a_driver_whose_executors_are_in_its_process() -> None:
    for master in ("local", "local[2]", "local[*]"):
        found = settings_of(spark_master=master)
        assert found["spark.driver.bindAddress"] == found["spark.driver.host"] == "127.0.0.1"
        assert "spark.jars" not in found


def test_an_address_of_the_driver_that_is_configured_wins() -> None:
    found = settings_of(
        spark_master="spark://host:7077", spark_config={"spark.driver.host": "driver.example"}
    )
    assert found["spark.driver.host"] == "driver.example"


def test_spark_connect_is_refused_with_the_reason() -> None:
    with pytest.raises(ValidationError, match="separate session"):
        LakeConfig(path="/lake", spark_master="sc://host:15002")


def test_a_session_of_spark_connect_is_refused_with_the_reason() -> None:
    kind = type("SparkSession", (SimpleNamespace,), {"__module__": "pyspark.sql.connect.session"})
    with pytest.raises(PreflightError, match="Spark Connect"):
        start_session(LakeConfig(path="/lake"), spark=lambda _: kind())
