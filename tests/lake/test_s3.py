"""The lake and landing on S3 (moto's server): one table's life, with a process that is killed between its two commits."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from deltalake import DeltaTable, QueryBuilder
from pydantic import ValidationError

from cdc_core.config import LakeConfig
from cdc_core.delta.appending import create_table
from cdc_core.delta.history import filesystem_of, read_log
from cdc_core.delta.log_files import newest_names
from cdc_core.errors import CommitConflictError, PreflightError, StoreUnavailableError
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.objects.s3 import S3Objects
from cdc_core.runtime.folders import default_runtime_folder, jars_folder, shim_folder
from cdc_core.runtime.jars import EXCLUDED, JARS
from cdc_core.runtime.java import find_java
from cdc_core.runtime.s3_jars import S3_JARS
from cdc_core.spark.session import spark_settings
from pipelines.setup import set_up
from tests.delta.test_appending import SCHEMA, append, ids, rows
from tests.lake.test_foreign_writer import append_foreign
from tests.lake.who_merges import no_spark
from tests.landing.s3_process import S3Process, kinds, running_s3_process
from tests.oracle.embedded import running_oracle
from tests.stage.landed import Source, order, orders_schema

ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 600
START_SECONDS = 60
BUCKET = "redolake-lake"
COMMIT_REQUESTS = 16
"""So often an append asks S3."""


@pytest.fixture(scope="module")
def server() -> Iterator[S3Process]:
    with running_s3_process() as running:
        yield running


@pytest.fixture
def s3(server: S3Process, monkeypatch: pytest.MonkeyPatch) -> S3Process:
    """With one empty bucket."""
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _seconds: None)
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    server.begin_anew()
    boto3.client("s3", endpoint_url=server.endpoint).create_bucket(Bucket=BUCKET)
    return server


@pytest.fixture
def endpoint(s3: S3Process) -> str:
    return s3.endpoint


@pytest.mark.usefixtures("endpoint")
def test_a_commit_of_the_change_log_is_put_only_if_its_version_is_not_there() -> None:
    """Two schedulers that both believe to hold the lease: the second one's commit fails, and the first one's stays."""
    table = f"s3a://{BUCKET}/t"
    create_table(table, SCHEMA, {"redolake.role": "changelog"}, doing="creating", facts={})
    append(table, rows(1), 100)
    with pytest.raises(CommitConflictError):
        append(table, rows(3), 200, fence=lambda: append(table, rows(2), 150))
    log = read_log(table)
    assert log is not None
    assert (log.version, log.transactions) == (2, {"app": 150})
    assert ids(table) == [1, 2]
    append(table, rows(3), 200)
    assert ids(table) == [1, 2, 3]


def puts(s3: S3Process, version: int) -> list[str]:
    """How S3 answered to those who put a version."""
    ending = f"/_delta_log/{version:020d}.json"
    asked = (line.split(" ") for line in s3.requests()[-20:])
    return [status for method, key, status in asked if method == "PUT" and key.endswith(ending)]


def appended_to(s3: S3Process, *scns: int) -> str:
    table = f"s3a://{BUCKET}/t"
    create_table(table, SCHEMA, {}, doing="creating", facts={})
    for scn in scns:
        append(table, rows(scn), scn)
    return table


def test_a_commit_whose_answer_was_lost_is_known_as_our_own(s3: S3Process) -> None:
    """boto3 tries again by itself, and finds the version taken: by the first try."""
    table = appended_to(s3, 100)
    s3.refuse_puts(f"{2:020d}.json")
    append(table, rows(200), 200)
    assert puts(s3, 2) == ["500", "412"]
    assert ids(table) == [100, 200]


def test_a_commit_that_nobody_answers_for_is_found_by_the_next_attempt(s3: S3Process) -> None:
    table = appended_to(s3, 100)
    s3.refuse_puts(f"{2:020d}.json", 99)
    with pytest.raises(StoreUnavailableError, match="cannot be put into S3"):
        append(table, rows(200), 200)
    s3.refuse_puts("", 0)
    with pytest.raises(CommitConflictError):  # its transaction is there
        append(table, rows(200), 200)
    assert ids(table) == [100, 200]


def test_who_wins_is_asked_again_while_s3_has_not_decided(s3: S3Process) -> None:
    table = appended_to(s3, 100)
    busy, version = "409 ConditionalRequestConflict", f"{2:020d}.json"
    s3.refuse_puts(version, 2, answer=busy, done=False)
    append(table, rows(200), 200)
    assert (puts(s3, 2), ids(table)) == (["409", "409", "200"], [100, 200])
    s3.refuse_puts(f"{3:020d}.json", 99, answer=busy, done=False)
    with pytest.raises(StoreUnavailableError, match="does not decide"):
        append(table, rows(300), 300)
    assert ids(table) == [100, 200]


@pytest.mark.parametrize("how", ["overwrites", "refuses-conditions", "is-another"])
def test_a_store_that_could_lose_commits_gets_none(s3: S3Process, how: str) -> None:
    """Nor does anything stay of the trial."""
    arrow_s: Any
    arrow_s, root = filesystem_of(f"s3a://{BUCKET}/t")
    if how == "overwrites":
        s3.ignore_conditions()
    elif how == "refuses-conditions":
        s3.refuse_puts("", 99, answer="501 NotImplemented", done=False)
    else:
        elsewhere = pafs.SubTreeFileSystem(f"{BUCKET}/elsewhere", arrow_s)
        arrow_s = SimpleNamespace(region=arrow_s.region, get_file_info=elsewhere.get_file_info)
    says = "different stores" if how == "is-another" else "not support conditional writes"
    objects = S3Objects(filesystem=arrow_s)
    for _ in range(2):
        with pytest.raises(PreflightError, match=says):
            objects.put_new(f"{root}/{0:020d}.json", b"{}")
    assert boto3.client("s3").list_objects_v2(Bucket=BUCKET)["KeyCount"] == 0


def test_a_commit_on_s3_asks_as_often_behind_many_others(s3: S3Process) -> None:
    """And lists nothing."""
    table, asked = appended_to(s3, 1, 2), []
    for scn in range(3, 30):
        before = len(s3.requests())
        append(table, rows(scn), scn)
        asked.append(kinds(s3.requests()[before:]))
    assert asked[-1] == asked[1]
    assert "LIST" not in asked[-1]
    assert asked[-1].total() <= COMMIT_REQUESTS


def stays(_log: Callable[[str], str], _store: Any) -> None:
    """Nothing happens."""


def says_more_than_there_is(log: Callable[[str], str], store: Any) -> None:
    """As what is left of a table that stood here before."""
    store.put_object(Bucket=BUCKET, Key=log("_last_checkpoint"), Body=b'{"version":500,"size":9}')


def is_no_json(log: Callable[[str], str], store: Any) -> None:
    store.put_object(Bucket=BUCKET, Key=log("_last_checkpoint"), Body=b"[")


def has_lost_its_checkpoint(log: Callable[[str], str], store: Any) -> None:
    store.delete_object(Bucket=BUCKET, Key=log(f"{2:020d}.checkpoint.parquet"))


@pytest.mark.parametrize(
    ("happens", "whole"),
    [(stays, False), (says_more_than_there_is, True), (is_no_json, True), (has_lost_its_checkpoint, True)],
)  # fmt: skip
def test_a_log_on_s3_is_listed_from_its_newest_checkpoint_on(
    s3: S3Process, happens: Callable[..., None], whole: bool
) -> None:
    """And whole where that is not what it is said to be."""
    table = appended_to(s3, 100, 200)
    DeltaTable(table).create_checkpoint()
    append(table, rows(300), 300)
    happens("t/_delta_log/{}".format, boto3.client("s3"))
    names = newest_names(*filesystem_of(table))
    assert (names[0] == f"{0:020d}.json") is whole
    assert f"{3:020d}.json" in names
    log = read_log(table)
    assert log is not None
    assert (log.version, log.transactions) == (3, {"app": 300})


@pytest.mark.usefixtures("endpoint")
def test_a_known_log_on_s3_counts_as_long_as_its_newest_commit_is_the_same_object() -> None:
    """A table of as many commits of the same sizes takes its place within the second that S3 gives as their time."""
    table, store = (
        f"s3a://{BUCKET}/t",
        boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"]),
    )
    create_table(table, SCHEMA, {}, doing="creating", facts={})
    append(table, rows(1), 100)
    for scn in (100, 100):
        assert read_log(table).transactions == {"app": scn}  # type: ignore[union-attr]
    append(table, rows(2), 200)
    assert read_log(table).transactions == {"app": 200}  # type: ignore[union-attr]
    newest = {"Bucket": BUCKET, "Key": f"t/_delta_log/{2:020d}.json"}
    first = store.get_object(**newest)["Body"].read()
    times: list[object] = []
    for scn in range(300, 400):
        other = first.replace(b'"version":200', f'"version":{scn}'.encode())
        store.put_object(**newest, Body=other)
        assert read_log(table).transactions == {"app": scn}  # type: ignore[union-attr]
        times.append(store.head_object(**newest)["LastModified"])
        if times[-2:-1] == times[-1:]:  # read before and after, within one second
            return
    raise AssertionError("no two objects have the time of one second")


@pytest.mark.usefixtures("endpoint")
def test_a_window_is_merged_on_s3_without_spark(tmp_path: Path) -> None:
    merge_without_spark(f"s3a://{BUCKET}/lake", tmp_path)


def merge_without_spark(path: str, folder: Path) -> None:
    """And never behind another writer's commit, which is put between our look at the mirror and our own."""
    lake, source = DeltaLake(LakeConfig(path=path), "shop", spark=no_spark), Source(folder, orders_schema())  # fmt: skip
    tx = source.begin()
    first = [tx.insert(order(key)) for key in range(1, 4)]
    tx.commit()
    source.chunk().apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []
    tx = source.begin()
    tx.update(first[0], {"NAME": "changed"})
    tx.delete(first[1])
    tx.insert(order(9))
    tx.commit()
    window, mirror = source.cut(), f"{path}/shop/mirror/shop.orders"
    asked = count()  # before the commit of the change log, and before that of the mirror
    with pytest.raises(CommitConflictError):
        window.apply(lake, fence=lambda: append_foreign(mirror, 500) if next(asked) else None)
    done = window.apply(lake)
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (1, 1, 1)
    found = QueryBuilder().register("t", DeltaTable(mirror)).execute('SELECT "ID", "NAME" FROM t')
    rows = sorted((int(row["ID"]), row["NAME"]) for row in pa.table(found.read_all()).to_pylist())
    assert rows == [(1, "changed"), (3, "n"), (9, "n"), (500, "foreign")]


@pytest.mark.usefixtures("endpoint")
def test_a_landed_chunk_is_copied_to_s3(tmp_path: Path) -> None:
    path = f"s3a://{BUCKET}/lake"
    lake, source = DeltaLake(LakeConfig(path=path), "shop", spark=no_spark), Source(tmp_path, orders_schema())  # fmt: skip
    tx = source.begin()
    tx.insert(order(1))
    tx.commit()
    chunk = source.chunk()
    chunk.apply(lake)
    s3 = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
    listed = s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])
    files = [one["Key"] for one in listed if one["Key"].endswith(".parquet")]
    assert [name.split("/")[2] for name in files] == ["changelog", "mirror"]
    content = s3.get_object(Bucket=BUCKET, Key=files[1])["Body"].read()
    assert content == Path(chunk.paths[0]).read_bytes()
    for layer, column in (("changelog", "after"), ("mirror", None)):
        rows = pa.table(DeltaTable(f"{path}/shop/{layer}/shop.orders").to_pyarrow_table()).to_pylist()  # fmt: skip
        assert [(row[column] if column else row)["ID"] for row in rows] == [1]


@pytest.mark.spark
@pytest.mark.slow
def test_snapshot_windows_a_kill_replay_and_comparison_on_s3(tmp_path: Path, endpoint: str) -> None:
    set_up(s3=True, say=lambda _line: None)
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))",
            "INSERT INTO ONE SELECT LEVEL, 'first' FROM DUAL CONNECT BY LEVEL <= 1000",
        )
        config = oracle.config(
            tmp_path,
            "ONE",
            landing={
                "type": "s3",
                "bucket": BUCKET,
                "endpoint_url": endpoint,
                "cache": str(tmp_path / "cache"),
            },
            lake={
                "path": f"s3a://{BUCKET}/lake",
                "driver_memory": "1g",
                "spark_config": {
                    "spark.hadoop.fs.s3a.endpoint": endpoint,
                    "spark.hadoop.fs.s3a.path.style.access": "true",
                },
            },
            state={"url": f"sqlite:///{tmp_path / 'state.db'}", "lease_seconds": 5},
        )
        written = tmp_path / "config"
        written.write_bytes(pickle.dumps(config))
        assert run("carry", written).returncode == 0
        oracle.run("UPDATE ONE SET V = 'changed' WHERE ID <= 10", "DELETE FROM ONE WHERE ID = 5")
        oracle.run(
            "INSERT INTO ONE SELECT 1000 + LEVEL, 'many' FROM DUAL CONNECT BY LEVEL <= 30000"
        )
        assert run("carry", written).returncode == 0
        oracle.run("UPDATE ONE SET ID = 100007 WHERE ID = 7", "UPDATE ONE SET V = 'l' WHERE ID = 6")
        changes, commits = rows_of("changelog"), versions("mirror")
        assert run("killed", written).returncode == -9
        assert (len(rows_of("changelog")), versions("mirror")) == (len(changes) + 2, commits)
        done = run("replay", written)
        assert done.returncode == 0, done.stderr[-4000:]
        assert len(rows_of("changelog")) == len(changes) + 2, "the window's changes are there once"
        with oracle.owner() as connection:
            rows = connection.cursor().execute("SELECT ID, V FROM ONE").fetchall()
        assert sorted((int(row["ID"]), row["V"]) for row in rows_of("mirror")) == sorted(rows)


def run(part: str, config: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.lake.on_s3", part, str(config)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )


def table_of(kind: str) -> DeltaTable:
    return DeltaTable(f"s3://{BUCKET}/lake/src/{kind}/demo.one")


def rows_of(kind: str) -> list[dict[str, Any]]:
    builder = QueryBuilder().register("t", table_of(kind))
    rows: list[dict[str, Any]] = pa.table(builder.execute("SELECT * FROM t").read_all()).to_pylist()
    return rows


def versions(kind: str) -> int:
    return int(table_of(kind).version())


def settings_of(tmp_path: Path, **more: object) -> dict[str, str]:
    lake = LakeConfig(path="s3a://bucket/lake", **more)
    java = find_java(shim_folder(default_runtime_folder()))
    return spark_settings(lake, tmp_path, java)


def test_a_lake_on_s3_needs_jars_that_one_command_fetches(tmp_path: Path) -> None:
    folder = jars_folder(tmp_path)
    folder.mkdir()
    for jar in JARS:
        (folder / jar.file_name).symlink_to(jars_folder(default_runtime_folder()) / jar.file_name)
    with pytest.raises(PreflightError, match="redolake setup --s3"):
        settings_of(tmp_path)


def test_spark_gets_the_jars_for_s3_only_where_the_lake_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "cdc_core.spark.session.require_jars",
        lambda folder, jars=JARS, **_more: [folder / jar.file_name for jar in jars],
    )
    settings = settings_of(tmp_path, spark_master="spark://host:7077")
    assert "hadoop-aws" in settings["spark.driver.extraClassPath"]
    assert "hadoop-aws" in settings["spark.jars"]
    assert settings["spark.sql.warehouse.dir"] == "s3a://bucket/lake/.warehouse"
    java = find_java(shim_folder(default_runtime_folder()))
    elsewhere = spark_settings(LakeConfig(path=str(tmp_path)), tmp_path, java)
    assert "hadoop-aws" not in str(elsewhere)


def test_the_jars_for_s3_bring_nothing_that_spark_or_the_bundle_has() -> None:
    named = {f"{jar.group}:{jar.artifact}" for jar in S3_JARS}
    assert not named & set(EXCLUDED)
    assert not {jar.artifact for jar in S3_JARS} & {"slf4j-api", "httpclient", "hadoop-common"}
    assert len({jar.file_name for jar in (*JARS, *S3_JARS)}) == len(JARS) + len(S3_JARS)


@pytest.mark.parametrize(
    ("path", "setting", "store"),
    [
        ("s3a://b/lake", "spark.delta.logStore.s3a.impl", "io.delta.storage.HDFSLogStore"),
        ("s3://b/lake", "spark.delta.logStore.s3.impl", "io.delta.storage.LocalLogStore"),
        ("s3a://b/lake", "spark.delta.logStore.class", "io.delta.storage.AzureLogStore"),
        ("s3a://b/lake", "spark.delta.logStore.s3a.impl", "io.delta.storage.S3DynamoDBLogStore"),
    ],
)
def test_log_stores_that_lose_commits_to_s3_are_refused(
    path: str, setting: str, store: str
) -> None:
    with pytest.raises(ValidationError, match="overwrite each other without an error") as caught:
        LakeConfig(path=path, spark_config={setting: store})
    assert ("DynamoDB, so" in str(caught.value)) == ("DynamoDB" in store), "each with its reason"
    LakeConfig(path="/data/lake", spark_config={setting: store})
