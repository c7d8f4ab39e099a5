"""One contract for the places of a lake and of landing: a folder, S3 (moto's server), Azure (Azurite), Google (see ``clouds.py``)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from deltalake import DeltaTable, QueryBuilder
from pydantic import TypeAdapter

from cdc_core.config import (
    LakeConfig,
    LandingConfig,
    LocalLandingConfig,
    ObjectLandingConfig,
    S3LandingConfig,
)
from cdc_core.delta import appending
from cdc_core.delta.appending import create_table
from cdc_core.delta.cloud_files import cloud_filesystem
from cdc_core.delta.commits import put_commit
from cdc_core.delta.history import filesystem_of, folder_exists, read_log
from cdc_core.delta.log_files import Action, log_folder, newest_names, objects_of
from cdc_core.delta.row_counts import count_rows
from cdc_core.errors import CommitConflictError, LakeError, PreflightError, StoreUnavailableError
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.lake.table_context import no_fence
from cdc_core.landing.manifest import MANIFEST_NAME
from cdc_core.landing.open import open_landing
from cdc_core.objects.clouds import CloudObjects, cloud_objects
from cdc_core.objects.store import ObjectStore
from redolake.reader import open as open_lake
from tests.delta.test_appending import SCHEMA, append, rows
from tests.lake.test_ways import _filled as fill
from tests.lake.test_ways import _renames as renames
from tests.lake.who_merges import no_spark
from tests.landing.clouds import (
    azure_environment,
    azure_url,
    google_environment,
    make_bucket,
    make_container,
)
from tests.landing.fault_proxy import FaultProcess
from tests.landing.s3_process import S3Process
from tests.landing.test_store import land
from tests.stage.landed import Source, orders_schema

ROOT = Path(__file__).parents[2]
REMOTE = ["s3", "azure", "google"]
WAIT_SECONDS = 60


@dataclass(frozen=True)
class Place:
    """Where a lake is, and the door that its clients go through."""

    path: str
    landing: LandingConfig
    door: FaultProcess | None = None

    @property
    def objects(self) -> ObjectStore:
        """Its objects, which has a place that is no folder."""
        found = objects_of(filesystem_of(self.path)[0])
        assert found is not None
        return found

    def in_objects(self, name: str) -> str:
        """The path of an object of the lake."""
        return f"{filesystem_of(self.path)[1]}/{name}"


@pytest.fixture
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    kind: str = request.param
    if kind == "folder":
        landing = LocalLandingConfig(path=str(tmp_path / "landing"))
        yield Place(str(tmp_path / "lake"), landing)
        return
    name, cache = f"b{uuid.uuid4().hex[:20]}", str(tmp_path / "cache")
    server = request.getfixturevalue("azurite" if kind == "azure" else "bucket_server")
    endpoint = server.endpoint if isinstance(server, S3Process) else server
    with FaultProcess(endpoint) as door:
        if isinstance(server, S3Process):
            make_bucket(server, name)
        else:
            make_container(endpoint, name)
        environment = {
            "s3": lambda: {**server.environment(), "AWS_ENDPOINT_URL": door.endpoint},
            "azure": lambda: azure_environment(door.endpoint),
            "google": lambda: google_environment(door.endpoint, tmp_path),
        }[kind]()
        for variable, value in environment.items():
            monkeypatch.setenv(variable, value)
        if kind == "s3":
            yield Place(f"s3a://{name}/lake", S3LandingConfig(bucket=name, cache=cache), door)
        else:
            url = azure_url(name) if kind == "azure" else f"gs://{name}"
            in_cloud = ObjectLandingConfig(url=f"{url}/landing", cache=cache)
            yield Place(f"{url}/lake", in_cloud, door)
    cloud_objects.cache_clear()
    cloud_filesystem.cache_clear()


everywhere = pytest.mark.parametrize("place", ["folder", *REMOTE], indirect=True)
remote = pytest.mark.parametrize("place", REMOTE, indirect=True)


def ids(table: str) -> list[int]:
    return sorted(DeltaTable(table).to_pyarrow_table(columns=["ID"])["ID"].to_pylist())


@everywhere
def test_a_commit_is_put_only_if_its_version_is_not_there(place: Place) -> None:
    """Two schedulers that both believe to hold the lease: the second one's commit fails, and the first one's stays."""
    table = f"{place.path}/t"
    assert not folder_exists(table)
    create_table(table, SCHEMA, {"redolake.role": "changelog"}, doing="creating", facts={})
    append(table, rows(1), 100)
    with pytest.raises(CommitConflictError):
        append(table, rows(3), 200, fence=lambda: append(table, rows(2), 150))
    log = read_log(table)
    assert log is not None
    assert (log.version, log.transactions) == (2, {"app": 150})
    append(table, rows(3), 200)
    assert ids(table) == [1, 2, 3]
    assert folder_exists(table)


@everywhere
def test_of_two_writers_with_the_same_to_say_one_wins(place: Place) -> None:
    """Each commit has something that no other has."""
    create_table(f"{place.path}/t", SCHEMA, {}, doing="creating", facts={})
    filesystem, root = filesystem_of(f"{place.path}/t")
    same: list[Action] = [
        {"commitInfo": {"operation": "WRITE"}},
        {"txn": {"appId": "app", "version": 100}},
    ]
    put_commit(filesystem, root, 1, same)
    with pytest.raises(FileExistsError):
        put_commit(filesystem, root, 1, same)


@everywhere
def test_a_window_marks_rows_of_a_mirror(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind another writer's commit not; behind a crash once; and a vector that is gone is named."""
    lake = DeltaLake(LakeConfig(path=place.path), "shop", spark=no_spark)
    source = Source(tmp_path, orders_schema())
    fill(source, lake)
    table = f"{place.path}/shop/mirror/shop.orders"
    filesystem, root = filesystem_of(table)
    first = renames(source, 1, 40)
    first.apply(lake, vectors="always")
    second = renames(source, 5, 41)
    log = read_log(table)
    assert log is not None
    asked = count()  # before the commit of the change log, and before that of the mirror

    def another_commits() -> None:
        if next(asked):
            put_commit(filesystem, root, log.version + 1, [{"commitInfo": {"operation": "OTHER"}}])

    with pytest.raises(CommitConflictError):
        second.apply(lake, position=first.scn_high, fence=another_commits)
    with monkeypatch.context() as patched:
        patched.setattr(appending, "put_commit", crash)
        with pytest.raises(KeyboardInterrupt):
            second.apply(lake, position=first.scn_high)
    assert names_in(table) == names_in(table, log.version), "no commit says what the crash left"
    if place.door is not None:
        door, asked = place.door, count()
        fence = lambda: door.fail(answer=1, cuts=1) if not next(asked) else None  # noqa: E731
    else:
        fence = no_fence
    assert second.apply(lake, position=first.scn_high, fence=fence).write.way == "deletion vectors"
    assert second.apply(lake, position=second.scn_high).skipped
    assert names_in(table, log.version) == names_of(source, first.scn_high)
    for window in (first, second):
        cut = open_lake(place.path).at(window.scn_high)
        found = cut.table("SHOP.ORDERS").select("ID", "NAME").to_arrow().to_pylist()
        assert {int(row["ID"]): row["NAME"] for row in found} == names_of(source, window.scn_high)
    assert names_in(table) == names_of(source, second.scn_high)
    assert count_rows(table) == len(names_in(table))
    files = filesystem.get_file_info(pafs.FileSelector(root))
    gone = [one.path for one in files if one.base_name.startswith("deletion_vector_")]
    assert len(gone) == 4, "of the first window, of two that failed, and of the second window"
    for path in gone:
        filesystem.delete_file(path)
    with pytest.raises(LakeError, match="deletion vector"):
        renames(source, 7, 42).apply(lake, position=second.scn_high)


def crash(*_given: object) -> None:
    raise KeyboardInterrupt


def names_in(table: str, version: int | None = None) -> dict[int, str]:
    """Of each order, as a reader of deletion vectors sees the table."""
    query = QueryBuilder().register("t", DeltaTable(table, version=version))
    found = pa.table(query.execute('SELECT "ID", "NAME" FROM t').read_all()).to_pylist()
    return {int(row["ID"]): row["NAME"] for row in found}


def names_of(source: Source, scn: int) -> dict[int, str]:
    return {int(row["ID"]): row["NAME"] for row in source.state(scn)}


@everywhere
def test_a_log_is_listed_whole_beside_what_a_crash_left(place: Place) -> None:
    """From the newest checkpoint on where listings are long; what no commit names is nobody's."""
    table = f"{place.path}/t"
    create_table(table, SCHEMA, {}, doing="creating", facts={})
    append(table, rows(1), 100)
    DeltaTable(table).create_checkpoint()
    append(table, rows(2), 200)
    filesystem, root = filesystem_of(table)
    for name in ("_commit_0b6c.json.tmp", "_trial_0b6c.tmp", f"{3:020d}.json.tmp"):
        with filesystem.open_output_stream(f"{log_folder(root)}/{name}") as left:
            left.write(b"{")
    with filesystem.open_output_stream(f"{root}/part-of-nobody.parquet") as left:
        left.write(b"PAR1")
    assert f"{2:020d}.json" in newest_names(filesystem, root)
    append(table, rows(3), 300)
    log = read_log(table)
    assert log is not None
    assert (log.version, ids(table)) == (3, [1, 2, 3])


@remote
def test_a_commit_whose_answer_was_lost_is_known_as_our_own(place: Place) -> None:
    """The store has put it, and the connection is cut before the answer."""
    assert place.door is not None
    table = f"{place.path}/t"
    create_table(table, SCHEMA, {}, doing="creating", facts={})
    append(table, rows(1), 100)
    objects, door = place.objects, place.door

    def cut_the_next_answer() -> None:
        door.fail(answer=1, cuts=1)

    path = place.in_objects("t/_delta_log/one")
    cut_the_next_answer()
    objects.put_new(path, b"ours")
    assert objects.read(path) == b"ours"
    with pytest.raises(FileExistsError):
        objects.put_new(path, b"theirs")
    append(table, rows(2), 200, fence=cut_the_next_answer)
    append(table, rows(3), 300)
    assert ids(table) == [1, 2, 3]


@remote
def test_a_commit_that_nobody_answers_for_is_an_error_that_may_be_tried_again(
    place: Place,
) -> None:
    assert place.door is not None
    table = f"{place.path}/t"
    create_table(table, SCHEMA, {}, doing="creating", facts={})
    append(table, rows(1), 100)
    door = place.door
    with pytest.raises(StoreUnavailableError):
        append(table, rows(2), 200, fence=lambda: door.fail(error=(403, "AccessDenied")))
    door.heal()
    append(table, rows(2), 200)
    assert ids(table) == [1, 2]


@everywhere
def test_an_upload_whose_process_is_killed_leaves_nothing_that_counts(
    place: Place, tmp_path: Path
) -> None:
    """The file of a window, of several parts; the next process lands it again."""
    mark = tmp_path / "uploading"
    code = (
        "import sys; from tests.objects.test_stores import upload; upload(sys.argv[1], sys.argv[2])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, place.landing.model_dump_json(), str(mark)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        end = time.monotonic() + WAIT_SECONDS
        while not mark.exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        assert mark.exists()
        if place.door is not None:
            place.door.fail(silent=True)
            time.sleep(0.3)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    if place.door is not None:
        place.door.heal()
    store = open_landing(place.landing)
    assert store.list_folders("src") == []
    assert not store.exists("src/windows/a-b", MANIFEST_NAME)
    landed = land(store, count=5)
    store.write_manifest("src/windows/a-b", b"{}")
    assert store.list_folders("src") == ["src/windows/a-b"]
    [path] = store.local_paths("src/windows/a-b", [landed])
    assert pa.parquet.read_table(path).num_rows == 5
    store.remove("src/windows/a-b")
    assert store.list_folders("src") == []


def upload(landing: str, mark: str) -> None:
    """Land files without an end, in a process that is to be killed."""
    config: LandingConfig = TypeAdapter(LandingConfig).validate_json(landing)
    store = open_landing(config)
    schema = pa.schema([("b", pa.binary())])
    noise = pa.table({"b": [os.urandom(24_000_000)]}, schema=schema)
    while True:
        with store.writer("src/windows/a-b", "rows.parquet", schema) as writer:
            writer.write(noise)
            writer.end_group()
            Path(mark).touch()


@pytest.mark.parametrize("place", ["google"], indirect=True)
def test_a_store_that_overwrites_gets_no_commit(place: Place, bucket_server: S3Process) -> None:
    """Nor does anything stay of the trial."""
    bucket_server.ignore_conditions()
    try:
        with pytest.raises(PreflightError, match="not support conditional writes"):
            place.objects.put_new(place.in_objects("t/one"), b"{}")
    finally:
        bucket_server.heed_conditions()
    assert place.objects.paths_below(place.in_objects("t")) == []


@remote
def test_objects_are_listed_found_and_removed(place: Place, tmp_path: Path) -> None:
    objects = place.objects
    names = ["a/1", "a/2", "a/b/3", "ab/4"]
    for name in names:
        objects.put_new(place.in_objects(name), name.encode())
    below = [place.in_objects(name) for name in names]
    assert objects.names_behind(place.in_objects("a"), "1") == ["2"]
    assert objects.paths_below(place.in_objects("a")) == below[:3]
    assert objects.paths_below(place.in_objects("a"), after=below[0]) == below[1:3]
    first = objects.mark(below[0])
    assert first is not None
    assert first == objects.mark(below[0])
    assert objects.exists(below[0])
    objects.delete([below[0], below[0], place.in_objects("never")])
    assert objects.mark(below[0]) is None
    assert not objects.exists(below[0])
    assert objects.read(below[0]) is None
    assert not objects.download(below[0], tmp_path / "file")
    assert objects.download(below[1], tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"a/2"


@remote
def test_arrow_reads_and_writes_the_same_files(place: Place) -> None:
    """Ranges of a file, of several parts; and folders."""
    filesystem, root = filesystem_of(place.path)
    content = os.urandom(12_000_000)
    with filesystem.open_output_stream(f"{root}/data/big") as out:
        out.write(content)
    with filesystem.open_input_file(f"{root}/data/big") as file:
        file.seek(11_000_000)
        assert file.read(10) == content[11_000_000:11_000_010]
    assert place.objects.read(f"{root}/data/big") == content
    found = filesystem.get_file_info(pafs.FileSelector(root, recursive=True))
    assert f"{root}/data/big" in [one.path for one in found]
    filesystem.delete_file(f"{root}/data/big")
    assert not place.objects.exists(f"{root}/data/big")


def test_a_cloud_without_its_client_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(PreflightError, match=r"redolake\[gcs\]"):
        CloudObjects("gs://bucket")


def test_an_account_that_is_not_set_up_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", "/nowhere.json")
    with pytest.raises(PreflightError, match="cannot be set up"):
        CloudObjects("gs://bucket")
