"""A table's life with lake and landing in Azure (Azurite) and Google's store (see ``clouds.py``), without Spark and with it."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pydantic import ValidationError

from cdc_core.config import LakeConfig, ObjectLandingConfig, SourceConfig
from cdc_core.errors import PreflightError
from cdc_core.landing.open import open_landing
from cdc_core.runtime.folders import default_runtime_folder, shim_folder
from cdc_core.runtime.jars import Jar, install_jars
from cdc_core.runtime.java import find_java
from pipelines.doctor import source as doctor_of
from redolake.reader import open as open_lake
from tests.lake.test_s3 import merge_without_spark
from tests.landing.google_door import google_door
from tests.landing.google_json import is_of_json_api
from tests.landing.s3_process import S3Process
from tests.landing.test_store import FOLDER, land
from tests.oracle.embedded import Oracle, running_oracle

ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 300
JARS = ROOT / ".redolake" / "peers" / "java"
HADOOP_GCP = Jar(
    "org.apache.hadoop",
    "hadoop-gcp",
    "3.5.0",
    "25686b2e711f5d8a5b08bef3489e62ccd046310dd4adf65b9ea216d9f53ddc3f",
)

clouds = pytest.mark.parametrize("cloud", ["azure", "google"])


@pytest.fixture
def url(request: pytest.FixtureRequest, cloud: str) -> str:
    """An empty container or bucket."""
    made: Callable[[str], str] = request.getfixturevalue(cloud)
    return made(f"b{uuid.uuid4().hex[:20]}")


@clouds
def test_a_window_is_merged_without_spark(url: str, tmp_path: Path) -> None:
    merge_without_spark(f"{url}/lake", tmp_path)


@clouds
def test_snapshot_windows_a_kill_a_replay_and_comparison_as_of_scn(
    cloud: str, url: str, tmp_path: Path
) -> None:
    del cloud
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))",
            "INSERT INTO ONE SELECT LEVEL, 'first' FROM DUAL CONNECT BY LEVEL <= 1000",
        )
        config = oracle.config(
            tmp_path,
            "ONE",
            landing={
                "type": "object_store",
                "url": f"{url}/landing",
                "cache": str(tmp_path / "cache"),
            },
            lake={"path": f"{url}/lake", "rewrite_mirrors_up_to_mb": 128},
            state={"url": f"sqlite:///{tmp_path / 'state.db'}", "lease_seconds": 5},
        )
        written = tmp_path / "config"
        written.write_bytes(pickle.dumps(config))
        carry("carry", written)
        oracle.run("UPDATE ONE SET V = 'changed' WHERE ID <= 10", "DELETE FROM ONE WHERE ID = 5")
        carry("carry", written)
        same_as_oracle(oracle, config)
        oracle.run("UPDATE ONE SET ID = 100007 WHERE ID = 7", "UPDATE ONE SET V = 'l' WHERE ID = 6")
        before = versions(config)
        carry("killed", written, code=-9)
        assert versions(config) == (before[0] + 1, before[1])
        carry("replay_all", written)
        assert versions(config)[0] == before[0] + 1, "the window's changes are there once"
        same_as_oracle(oracle, config)
        found = {one.name: one for one in doctor_of(config)}
        assert found["Landing"].ok, found["Landing"]


@pytest.mark.spark
@pytest.mark.slow
def test_spark_and_redolake_commit_in_turn_on_azure(
    azurite: str, azure: Callable[[str], str]
) -> None:
    """Hadoop's connector and Delta's own log store beside our commits."""
    url = f"{azure(f'b{uuid.uuid4().hex[:20]}')}/lake"
    done = subprocess.run(
        [sys.executable, "-m", "tests.objects.spark_on_azure", url, azurite],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert done.stdout.endswith("[1, 3, 77]\n"), done.stderr[-4000:]
    table = DeltaTable(f"{url}/t")
    assert [one["operation"] for one in table.history()][:3] == ["WRITE", "MERGE", "WRITE"]
    assert sorted(table.to_pyarrow_table(columns=["ID"])["ID"].to_pylist()) == [1, 3, 77]


@pytest.mark.spark
@pytest.mark.slow
def test_spark_and_redolake_commit_in_turn_on_google(
    bucket_server: S3Process, google: Callable[[str], str], tmp_path: Path
) -> None:
    """Hadoop's connector, which knows Google's own address alone, and Delta's log store for it beside our commits."""
    url = f"{google(f'b{uuid.uuid4().hex[:20]}')}/lake"
    try:
        java = find_java(shim_folder(default_runtime_folder()))
        [jar] = install_jars(JARS, java.path, jars=(HADOOP_GCP,))
    except PreflightError as error:
        pytest.skip(f"Hadoop's connector cannot be installed: {error}")
    asked = bucket_server.count()
    with google_door(bucket_server.endpoint, tmp_path) as options:
        done = subprocess.run(
            [sys.executable, "-m", "tests.objects.spark_on_google", url, str(jar), *options],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
    assert done.stdout.endswith("[1, 3, 77]\n"), done.stderr[-4000:]
    of_spark = [one for one in bucket_server.requests()[asked:] if is_of_json_api(one)]
    assert any(one.startswith("PUT /upload/") for one in of_spark), "Spark wrote through the door"
    table = DeltaTable(f"{url}/t")
    assert [one["operation"] for one in table.history()][:3] == ["WRITE", "MERGE", "WRITE"]
    assert sorted(table.to_pyarrow_table(columns=["ID"])["ID"].to_pylist()) == [1, 3, 77]


def carry(part: str, config: Path, code: int = 0) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.lake.on_s3", part, str(config)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert done.returncode == code, done.stderr[-4000:]


def versions(config: SourceConfig) -> tuple[int, int]:
    """Of change log and mirror."""
    log, mirror = (
        int(DeltaTable(f"{config.lake.path}/src/{layer}/demo.one").version())
        for layer in ("changelog", "mirror")
    )
    return log, mirror


def same_as_oracle(oracle: Oracle, config: SourceConfig) -> None:
    """The newest cut, as the package for readers finds it, has Oracle's rows as of its SCN."""
    cut = open_lake(config.lake.path).at()
    rows = cut.table("DEMO.ONE").select("ID", "V").to_arrow().to_pylist()
    with oracle.owner() as connection:
        wanted = (
            connection.cursor().execute(f"SELECT ID, V FROM ONE AS OF SCN {cut.scn}").fetchall()
        )
    assert sorted((int(row["ID"]), row["V"]) for row in rows) == sorted(wanted)


@clouds
def test_the_cache_keeps_what_was_used_of_late(cloud: str, url: str, tmp_path: Path) -> None:
    """Files that nobody asked for within ``cache_hours`` go when a process opens landing, and come back when they are asked for."""
    del cloud
    config = ObjectLandingConfig(url=url, cache=str(tmp_path / "cache"), cache_hours=2)
    store = open_landing(config)
    landed = land(store, count=5)
    [path] = map(Path, store.local_paths(FOLDER, [landed]))
    for hours, is_kept in ((1, True), (3, False)):
        for one in (path, path.parent, path.parent.parent):
            age(one, hours)
        store = open_landing(config)
        assert path.exists() is is_kept
    assert store.local_paths(FOLDER, [landed]) == [str(path)]
    age(path, 3)
    assert store.local_paths(FOLDER, [landed]) == [str(path)]
    open_landing(config)
    assert path.exists(), "it was used a moment ago"


def age(path: Path, hours: int) -> None:
    """As if it had been used and changed so long ago."""
    then = path.stat().st_ctime_ns - hours * 3_600_000_000_000
    os.utime(path, ns=(then, then))


@pytest.mark.parametrize(
    "path",
    ["az://lake/x", "abfss://lake/x", "abfs://lake@account.dfs.core.windows.net/x",
     "abfss://lake@account.dfs.core.windows.net/x?sig=secret", "gs://key:secret@lake/x", "gcs://lake"],
)  # fmt: skip
def test_a_url_that_not_all_clients_know_is_refused(path: str) -> None:
    with pytest.raises(ValidationError, match="neither abfss://container@account") as caught:
        LakeConfig(path=path)
    assert "secret" not in str(caught.value)
    with pytest.raises(ValidationError, match="credentials come from the environment"):
        ObjectLandingConfig(url=path, cache="c")


@pytest.mark.parametrize("path", ["hdfs://namenode/lake", "file:///lake", "http://host/lake"])
def test_a_lake_where_nothing_commits_is_refused(path: str) -> None:
    with pytest.raises(ValidationError, match="name a folder, or a place in"):
        LakeConfig(path=path)


def test_a_lake_in_a_cloud_has_atomic_commits_and_deltas_own_log_store() -> None:
    """Unlike one in S3, where Delta's way of writing overwrites: so several processes may write there."""
    google = LakeConfig(path="gs://lake/x")
    azure = LakeConfig(path="abfss://lake@account.dfs.core.windows.net/x")
    assert google.has_atomic_commits
    assert azure.has_atomic_commits
    assert google.log_store == {"spark.delta.logStore.gs.impl": "io.delta.storage.GCSLogStore"}
    with pytest.raises(ValidationError, match="overwrite each other without an error"):
        LakeConfig(
            path="gs://lake/x",
            spark_config={"spark.delta.logStore.gs.impl": "io.delta.storage.HDFSLogStore"},
        )
