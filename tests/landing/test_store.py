"""One contract for every landing store: a folder of this machine, S3 (moto's server), Azure (Azurite) and Google (see ``clouds.py``)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from botocore.config import Config

from cdc_core.config import LocalLandingConfig, ObjectLandingConfig, S3LandingConfig
from cdc_core.errors import (
    ConfigError,
    LandingDamagedError,
    OvertakenError,
    StoreUnavailableError,
)
from cdc_core.landing import store_parquet
from cdc_core.landing.kept import (
    KeptTable,
    keep_plan,
    keep_table,
    kept_plan_names,
    kept_plans,
    kept_revisions,
    kept_tables,
)
from cdc_core.landing.manifest import MANIFEST_NAME, LandedFile
from cdc_core.landing.open import open_landing
from cdc_core.landing.store import LandingStore
from cdc_core.landing.store_local import LocalLandingStore
from cdc_core.landing.store_objects import ObjectLandingStore
from cdc_core.landing.store_parquet import FileVerifier
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import ChunkRecord, TableRecord
from cdc_core.model.scn import Scn
from cdc_core.objects import s3
from tests.landing.fault_proxy import FaultProxy
from tests.landing.s3_server import running_s3

SCHEMA = pa.schema([pa.field("n", pa.int64()), pa.field("t", pa.string())])
FOLDER = "src/windows/a-b"


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    with running_s3() as endpoint:
        yield endpoint


@pytest.fixture(params=["local", "s3", "azure", "google"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], LandingStore]:
    """Opens the same store again and again, as other processes would: object stores with an empty cache each time."""
    if request.param == "local":
        return lambda: open_landing(LocalLandingConfig(path=str(tmp_path / "landing")))
    bucket = f"b{hashlib.sha256(str(tmp_path).encode()).hexdigest()[:20]}"
    if request.param != "s3":
        url: str = request.getfixturevalue(request.param)(bucket)
        counts = iter(range(100))
        return lambda: open_landing(
            ObjectLandingConfig(url=f"{url}/landing", cache=str(tmp_path / f"cache{next(counts)}"))
        )
    endpoint = request.getfixturevalue("s3_endpoint")
    boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket=bucket)
    count = iter(range(100))
    return lambda: open_landing(
        S3LandingConfig(
            bucket=bucket, endpoint_url=endpoint, cache=str(tmp_path / f"cache{next(count)}")
        )
    )


@pytest.fixture
def store(make: Callable[[], LandingStore]) -> LandingStore:
    return make()


def rows(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch(
        [pa.array(numbers, pa.int64()), pa.array([f"t{n}" for n in numbers])], schema=SCHEMA
    )


def land(store: LandingStore, name: str = "rows.parquet", count: int = 3) -> LandedFile:
    with store.writer(FOLDER, name, SCHEMA) as writer:
        writer.write(rows(*range(count)))
    return writer.close()


def test_a_written_file_reads_back_with_its_size_and_digest(
    store: LandingStore, make: Callable[[], LandingStore]
) -> None:
    landed = land(store)
    [path] = make().local_paths(FOLDER, [landed])
    assert pq.read_table(path).column("n").to_pylist() == [0, 1, 2]
    content = Path(path).read_bytes()
    assert (landed.rows, landed.bytes) == (3, len(content))
    assert landed.sha256 == hashlib.sha256(content).hexdigest()


def test_nobody_sees_a_file_before_it_is_closed(store: LandingStore) -> None:
    writer = store.writer(FOLDER, "rows.parquet", SCHEMA)
    writer.write(rows(1))
    assert not store.exists(FOLDER, "rows.parquet")
    writer.close()
    assert store.exists(FOLDER, "rows.parquet")


def write_and_fail(store: LandingStore) -> None:
    with store.writer(FOLDER, "rows.parquet", SCHEMA) as writer:
        writer.write(rows(1))
        raise ZeroDivisionError


def test_an_exception_gives_the_file_up(store: LandingStore) -> None:
    with pytest.raises(ZeroDivisionError):
        write_and_fail(store)
    assert not store.exists(FOLDER, "rows.parquet")


def test_rows_are_written_in_groups_of_the_wanted_size(
    store: LandingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_parquet, "ROW_GROUP_ROWS", 10)
    with store.writer(FOLDER, "rows.parquet", SCHEMA) as writer:
        for start in range(0, 25, 5):
            writer.write(rows(*range(start, start + 5)))
    [path] = store.local_paths(FOLDER, [writer.close()])
    file = pq.ParquetFile(path)
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [10, 10, 5]
    assert file.metadata.row_group(1).column(0).statistics.min == 10


def test_an_empty_file_has_the_schema(store: LandingStore) -> None:
    with store.writer(FOLDER, "rows.parquet", SCHEMA) as writer:
        pass
    [path] = store.local_paths(FOLDER, [writer.close()])
    assert pq.read_schema(path).equals(SCHEMA)


def test_a_crashed_attempt_is_overwritten(store: LandingStore) -> None:
    land(store, count=5)
    landed = land(store, count=2)
    [path] = store.local_paths(FOLDER, [landed])
    assert pq.read_table(path).num_rows == 2


def test_a_landed_folder_is_immutable(store: LandingStore) -> None:
    late = store.writer(FOLDER, "late.parquet", SCHEMA)
    land(store)
    store.write_manifest(FOLDER, b"one")
    with pytest.raises(OvertakenError, match="immutable"):
        store.writer(FOLDER, "rows.parquet", SCHEMA)
    with pytest.raises(OvertakenError, match="immutable"):
        late.close()
    assert not store.exists(FOLDER, "late.parquet")


def test_the_same_manifest_twice_is_fine_and_another_one_is_refused(store: LandingStore) -> None:
    store.write_manifest(FOLDER, b"one")
    store.write_manifest(FOLDER, b"one")
    with pytest.raises(OvertakenError, match="landed already"):
        store.write_manifest(FOLDER, b"two")
    assert store.read(FOLDER, MANIFEST_NAME) == b"one"


def test_a_missing_file_is_named(store: LandingStore) -> None:
    with pytest.raises(LandingDamagedError, match=r"missing.*gone\.json"):
        store.read(FOLDER, "gone.json")
    with pytest.raises(LandingDamagedError, match=r"missing.*gone\.parquet"):
        store.local_paths(FOLDER, [LandedFile("gone.parquet", 1, 1, "0" * 64)])


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_damaged_file_is_refused_every_time(
    store: LandingStore, make: Callable[[], LandingStore], damage: str, tmp_path: Path
) -> None:
    landed = land(store)
    wrong = {
        "cut": LandedFile(landed.name, landed.rows, landed.bytes + 1, landed.sha256),
        "changed": LandedFile(landed.name, landed.rows, landed.bytes, "0" * 64),
    }[damage]
    for reader in (store, store, make()):
        with pytest.raises(LandingDamagedError, match="does not match its manifest"):
            reader.local_paths(FOLDER, [wrong])


def test_a_file_that_grew_under_its_old_time_is_refused(tmp_path: Path) -> None:
    """The digest is computed once as long as the file looks the same; its size is looked at each time."""
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"rows")
    file = LandedFile(path.name, 1, 4, hashlib.sha256(b"rows").hexdigest())
    verifier = FileVerifier()
    verifier.verify(path, file)
    times = path.stat()
    path.write_bytes(b"rows and more")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(LandingDamagedError, match="size"):
        verifier.verify(path, file)


def test_rows_leave_memory_with_their_row_group(
    store: LandingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    original = pq.ParquetWriter.write_table

    def write_table(self: pq.ParquetWriter, table: pa.Table, *rest: Any, **more: Any) -> None:
        written.append(table.num_rows)
        original(self, table, *rest, **more)

    monkeypatch.setattr(pq.ParquetWriter, "write_table", write_table)
    monkeypatch.setattr(store_parquet, "ROW_GROUP_ROWS", 10)
    with store.writer(FOLDER, "rows.parquet", SCHEMA) as writer:
        for start in range(0, 25, 5):
            writer.write(rows(*range(start, start + 5)))
        assert written == [10, 10]


def test_a_table_lands_with_the_rows_of_all_its_batches(store: LandingStore) -> None:
    with store.writer(FOLDER, "rows.parquet", SCHEMA) as writer:
        writer.write(pa.Table.from_batches([rows(1, 2), rows(3)]))
    assert writer.close().rows == 3


def test_a_file_changed_after_it_was_verified_is_refused(store: LandingStore) -> None:
    """And loaded again where it is a copy of what is in S3."""
    landed = land(store)
    [path] = store.local_paths(FOLDER, [landed])
    content = bytearray(Path(path).read_bytes())
    content[20] ^= 1
    Path(path).write_bytes(content)
    os.utime(path, ns=(1, 1))
    if isinstance(
        store, ObjectLandingStore
    ):  # it was a copy, perhaps from before a window was captured again
        [again] = store.local_paths(FOLDER, [landed])
        assert hashlib.sha256(Path(again).read_bytes()).hexdigest() == landed.sha256
        return
    with pytest.raises(LandingDamagedError, match="SHA-256"):
        store.local_paths(FOLDER, [landed])


def test_a_file_that_this_process_wrote_is_not_read_again_to_check_it(
    store: LandingStore, make: Callable[[], LandingStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its digest was computed on the way; other processes compute it."""
    landed, read = land(store), list[Path]()

    def noted(path: Path) -> str:
        read.append(path)
        return landed.sha256

    monkeypatch.setattr(store_parquet, "_digest", noted)
    store.local_paths(FOLDER, [landed])
    assert read == []
    make().local_paths(FOLDER, [landed])
    assert len(read) >= 1


def test_only_landed_folders_are_listed(store: LandingStore) -> None:
    land(store)
    store.write_manifest("src/windows/2", b"x")
    store.write_manifest("src/windows/1", b"x")
    store.write_manifest("src/chunks/a.b/s1/000001", b"x")
    store.write_manifest("src2/windows/3", b"x")
    assert store.list_folders("src/windows") == ["src/windows/1", "src/windows/2"]
    assert store.list_folders("src") == [
        "src/chunks/a.b/s1/000001",
        "src/windows/1",
        "src/windows/2",
    ]
    assert store.list_folders("nothing") == []
    assert store.list_folders("src/windows", after="src/windows/1") == ["src/windows/2"]
    assert store.list_folders("src/windows", after="src/windows/10") == ["src/windows/2"]
    assert store.list_folders("src", after="src/chunks/a.b/s1/000000")[0].startswith("src/chunks")
    assert store.list_folders("src/windows", after="src/windows/2") == []


def test_a_part_of_landing_may_be_a_link_to_another_disk(tmp_path: Path) -> None:
    store, elsewhere = LocalLandingStore(str(tmp_path / "landing")), tmp_path / "other disk"
    (elsewhere / "1").mkdir(parents=True)
    (tmp_path / "landing" / "src").mkdir(parents=True)
    (tmp_path / "landing" / "src" / "windows").symlink_to(elsewhere)
    store.write_manifest("src/windows/1", b"{}")
    assert store.list_folders("src") == ["src/windows/1"]
    assert store.list_folders("src/windows") == ["src/windows/1"]


def test_unlanded_leftovers_are_removed_and_landed_files_are_kept(store: LandingStore) -> None:
    land(store)
    store.remove_unlanded(FOLDER)
    assert not store.exists(FOLDER, "rows.parquet")
    land(store)
    store.write_manifest(FOLDER, b"x")
    store.remove_unlanded(FOLDER)
    store.remove_unlanded("never/was")
    assert store.exists(FOLDER, "rows.parquet")


def test_a_landed_folder_that_is_not_needed_any_more_is_removed_whole(store: LandingStore) -> None:
    land(store)
    store.write_manifest(FOLDER, b"x")
    store.remove(FOLDER)
    assert store.list_folders(FOLDER.partition("/")[0]) == []
    assert not store.exists(FOLDER, "rows.parquet")
    store.remove(FOLDER)


def test_a_landing_folder_that_cannot_be_made_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"landing\.path"):
        open_landing(LocalLandingConfig(path=str(tmp_path / "file" / "sub")))


def test_an_absent_bucket_is_unavailable(s3_endpoint: str, tmp_path: Path) -> None:
    store = open_landing(
        S3LandingConfig(bucket="nobody", endpoint_url=s3_endpoint, cache=str(tmp_path))
    )
    with pytest.raises(StoreUnavailableError, match="bucket's name"):
        store.read(FOLDER, "x")


FAULTS: list[Any] = [
    pytest.param({"refuse": True}, id="refused"),
    pytest.param({"request": 10}, id="the-request-is-cut"),
    pytest.param({"answer": 5}, id="the-answer-is-cut"),
    pytest.param({"answer": 1500}, id="the-content-is-cut"),
    pytest.param({"silent": True}, id="no-answer-in-time"),
]


@pytest.mark.parametrize("fault", FAULTS)
def test_s3_that_fails_in_the_middle_is_told_and_loses_nothing(
    s3_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: dict[str, Any]
) -> None:
    """At each border: whatever was not finished has not landed, no half file is kept, and the same call succeeds later."""
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _seconds: None)
    if "silent" in fault:
        patience = s3._CONFIG.merge(Config(read_timeout=3))
        monkeypatch.setattr(s3, "_CONFIG", patience)
    boto3.client("s3", endpoint_url=s3_endpoint).create_bucket(Bucket="faulty")
    manifest = b"one" * 2000
    with FaultProxy(s3_endpoint) as proxy:
        caches = iter(range(9))

        def opened() -> LandingStore:
            cache = str(tmp_path / f"faulty{next(caches)}")
            return open_landing(
                S3LandingConfig(bucket="faulty", endpoint_url=proxy.endpoint, cache=cache)
            )

        def failing(act: Callable[[], Any]) -> Any:
            """The call fails, or asks for so little that it does not; then it is healed, and made again."""
            proxy.fail(**fault)
            with suppress(StoreUnavailableError):
                act()
                assert fault.get("answer", 0) > 20, "it was not noticed"
            proxy.heal()
            return act

        store = opened()
        failing(lambda: land(store, count=20_000))
        assert not store.exists(FOLDER, MANIFEST_NAME)
        landed = land(store, count=20_000)
        failing(lambda: store.write_manifest(FOLDER, manifest))()
        other = opened()
        proxy.fail(**fault)
        with pytest.raises(StoreUnavailableError):
            other.local_paths(FOLDER, [landed])
        with pytest.raises(StoreUnavailableError):
            other.read(FOLDER, MANIFEST_NAME)
        proxy.heal()
        assert [one for one in tmp_path.glob("faulty1/**/*") if one.is_file()] == []
        assert other.read(FOLDER, MANIFEST_NAME) == manifest
        [path] = other.local_paths(FOLDER, [landed])
        assert pq.read_table(path).num_rows == 20_000
        assert failing(lambda: other.list_folders("src/windows"))() == [FOLDER]
        failing(lambda: other.remove(FOLDER))()
        assert other.list_folders("src/windows") == []
        boto3.client("s3", endpoint_url=s3_endpoint).delete_bucket(Bucket="faulty")


def test_the_highest_revision_of_a_table_counts_and_the_others_go(store: LandingStore) -> None:
    first = TableRecord(source="src", table=TableId("HR", "EMP"), revision=9, reason="one")
    keep_table(store, KeptTable(first, ()))
    keep_table(store, KeptTable(replace(first, revision=10, reason="two"), ()))
    keep_table(store, KeptTable(replace(first, revision=10, reason="three"), ()))
    assert kept_revisions(store, "src") == {"hr.emp": 10}
    [found] = kept_tables(store, "src")
    assert (found.record.revision, found.record.reason) == (10, "two")
    assert store.list_folders("src") == ["src/kept/tables/hr.emp/000000000010"]


def test_a_plan_is_kept_once_with_its_values_in_parquet_alone(store: LandingStore) -> None:
    chunk = ChunkRecord(
        source="src", table=TableId("HR", "EMP"), snapshot_id="s5", number=0, scn=Scn(5),
        range={"kind": "key", "low": ["secret value"], "high": None},
    )  # fmt: skip
    keep_plan(store, "s5", [chunk])
    keep_plan(store, "s5", [replace(chunk, scn=Scn(6))])
    [plan] = kept_plans(store, "src", kept_plan_names(store, "src"))
    assert plan.chunks == (chunk,)
    assert b"secret value" not in store.read("src/kept/plans/hr.emp/s5", MANIFEST_NAME)


def test_a_plan_that_another_process_keeps_at_the_same_moment_is_kept(
    store: LandingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers bring landing up to the same store; the second one finds the first one's files when it writes its own."""
    chunk = ChunkRecord(
        source="src", table=TableId("HR", "EMP"), snapshot_id="s5", number=0, scn=Scn(5),
        range={"kind": "key", "low": ["1"], "high": None},
    )  # fmt: skip
    answers = iter([False])
    exists = type(store).exists

    def not_yet(self: LandingStore, folder: str, name: str) -> bool:
        there = next(answers, None)
        if there is False:
            keep_plan(store, "s5", [chunk])
            return False
        return exists(store, folder, name)

    monkeypatch.setattr(type(store), "exists", not_yet)
    keep_plan(store, "s5", [chunk])
    [plan] = kept_plans(store, "src", kept_plan_names(store, "src"))
    assert plan.chunks == (chunk,)


def test_a_file_is_given_up_on_a_full_disk_without_a_further_error() -> None:
    """Its buffer finds no room when the file is closed; what stopped the step is told, not that."""
    file = store_parquet._HashedFile(Path("/dev/full"))
    file.write(b"rows")
    file.discard()
    file.write(b"the footer of a writer that is collected later")
