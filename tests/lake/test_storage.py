"""What the lake's storage refuses is one error that may pass, whoever wrote: Python, delta-rs or Spark."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from cdc_core.delta.appending import CommitInfo, FileChanges, commit_files, create_table, write_file
from cdc_core.delta.history import read_log
from cdc_core.delta.storage import refused_by_storage
from cdc_core.errors import StoreUnavailableError, TransientError
from cdc_core.lake.side_tables.source_tables import DeltaSideTable
from tests.lake.full_disk import room_for
from tests.stage.landed import Window

if TYPE_CHECKING:
    from cdc_core.lake.lake import Lake
    from tests.stage.landed import Row, Source

SCHEMA = pa.schema([("ID", pa.int64())])
BATCH = pa.RecordBatch.from_pydict({"ID": [1]}, SCHEMA)
METADATA = json.dumps({"said": "9" * 500})
TOO_LARGE = os.strerror(errno.EFBIG)


def create(path: str) -> None:
    create_table(path, SCHEMA, {}, doing="creating", facts={})


def append(path: str) -> None:
    file = write_file(path, SCHEMA, [BATCH], ["ID"])
    assert file is not None
    info = CommitInfo(doing="appending", metadata=METADATA, txn=("app", 1))
    commit_files(path, FileChanges(added=[file]), info, fence=lambda: None)


def test_a_lake_whose_disk_is_not_mounted_may_pass(tmp_path: Path) -> None:
    """No table stops for it: ``lake.path`` is a link to a folder that is away."""
    (tmp_path / "lake").symlink_to(tmp_path / "away" / "lake")
    path = str(tmp_path / "lake" / "t")
    with pytest.raises(StoreUnavailableError, match="the lake's storage refuses: File exists"):
        create(path)
    (tmp_path / "away" / "lake").mkdir(parents=True)
    create(path)
    assert read_log(path) is not None


def put_beside(path: str, *windows: int) -> None:
    beside = DeltaSideTable(str(Path(path).parent), "src", "transactions", fence=lambda: None)
    for window in windows or (5,):
        rows = [dict.fromkeys(beside.schema.names) | {"scn_high": window}]
        beside.put(pa.Table.from_pylist(rows, beside.schema), window)


@pytest.mark.parametrize(
    ("write", "bytes_max"),
    [
        pytest.param(create, 50, id="a-new-table"),
        pytest.param(append, 50, id="a-file-of-rows"),
        pytest.param(append, 500, id="a-commit"),
        pytest.param(put_beside, 50, id="a-table-beside"),
    ],
)
def test_a_disk_that_takes_no_more_may_pass(
    tmp_path: Path, write: Callable[[str], None], bytes_max: int
) -> None:
    path = str(tmp_path / "t")
    if write is append:
        create(path)
    if write is put_beside:
        put_beside(path, 1)
    with room_for(bytes_max), pytest.raises(StoreUnavailableError, match=TOO_LARGE) as caught:
        write(path)
    assert isinstance(caught.value, TransientError), "no table stops for it"
    assert "lake.path" in caught.value.hint
    assert "\x1b" not in str(caught.value)
    write(path)
    log = read_log(path)
    assert write is put_beside or log is not None


def test_a_log_that_the_disk_does_not_give_back_may_pass(tmp_path: Path) -> None:
    """The process's own memory stands for a bad block: the system refuses to read it from its start on (EIO)."""
    path = str(tmp_path / "t")
    create(path)
    append(path)
    last = Path(path) / "_delta_log" / f"{1:020d}.json"
    last.rename(tmp_path / "aside")
    last.symlink_to("/proc/self/mem")
    with pytest.raises(StoreUnavailableError, match=os.strerror(errno.EIO)):
        read_log(path)
    (tmp_path / "aside").rename(last)
    assert read_log(path) is not None


class Throwable:
    """A Java exception as Py4J hands it over."""

    def __init__(self, name: str, message: str | None, cause: Throwable | None = None) -> None:
        self._name, self._message, self._cause = name, message, cause

    def getClass(self) -> Throwable:
        return self

    def getName(self) -> str:
        return self._name

    def getMessage(self) -> str | None:
        return self._message

    def getCause(self) -> Throwable | None:
        return self._cause


class OfSpark(Exception):
    """An error of PySpark's with its exception in Java."""

    def __init__(self, *chain: tuple[str, str | None]) -> None:
        super().__init__("; ".join(message or "" for _, message in chain))
        self._origin: Throwable | None = None
        for name, message in reversed(chain):
            self._origin = Throwable(name, message, self._origin)


FAILED_JOB = ("org.apache.spark.SparkException", "Job aborted due to stage failure")
NO_ROOM = os.strerror(errno.ENOSPC)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        pytest.param(OfSpark(FAILED_JOB, ("java.io.IOException", NO_ROOM)), NO_ROOM, id="no-room"),
        pytest.param(
            OfSpark(("org.apache.hadoop.fs.FSError", f"java.io.IOException: {NO_ROOM}")), NO_ROOM, id="hadoop's-own",
        ),
        pytest.param(
            OfSpark(("java.nio.file.FileSystemException", f"/lake/x: {os.strerror(errno.EROFS)}")),
            os.strerror(errno.EROFS),
            id="read-only",
        ),
        pytest.param(
            OfSpark(("java.io.FileNotFoundException", f"/lake/x ({os.strerror(errno.EACCES)})")),
            os.strerror(errno.EACCES),
            id="no-rights",
        ),
        pytest.param(
            OfSpark(FAILED_JOB, ("java.nio.file.AccessDeniedException", "s3a://b/k: 403 ExpiredToken")),
            os.strerror(errno.EACCES),
            id="credentials-that-expired",
        ),
        pytest.param(
            OfSpark(FAILED_JOB, ("org.apache.hadoop.fs.s3a.AWSStatus503Exception", "SlowDown")),
            "AWSStatus503Exception",
            id="a-bucket-that-is-busy",
        ),
        pytest.param(OfSpark(("java.io.FileNotFoundException", "/lake/x")), None, id="a-file-is-gone"),
        pytest.param(
            OfSpark(("org.apache.spark.SparkNumberFormatException", f"cannot be cast: java.io.IOException: {NO_ROOM}")),
            None,
            id="a-value-that-says-so",
        ),
        pytest.param(OfSpark(FAILED_JOB, ("java.io.IOException", None)), None, id="no-words"),
        pytest.param(ValueError("no Java at all"), None, id="no-java"),
    ],
)  # fmt: skip
def test_what_java_says_of_storage_is_known_by_its_class_and_its_last_words(
    error: Exception, reason: str | None
) -> None:
    assert refused_by_storage(error) == reason


@pytest.fixture
def merging(
    open_lake: Callable[..., Lake], source: Source, row: Callable[..., Row]
) -> tuple[Lake, Window]:
    """A lake with order 1, and a window that changes it and brings order 2."""
    lake = open_lake()
    tx = source.begin()
    first = tx.insert(row(1))
    tx.commit()
    source.chunk().apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []
    tx = source.begin()
    tx.insert(row(2))
    tx.update(first, {"NAME": "changed"})
    tx.commit()
    return lake, source.cut()


@pytest.mark.spark
@pytest.mark.parametrize("bytes_max", [300, 2000], ids=["in-the-rows", "in-the-commit"])
def test_a_disk_that_is_full_in_a_merge_may_pass_and_loses_nothing(
    merging: tuple[Lake, Window],
    source: Source,
    mirror: Callable[..., list[Row]],
    bytes_max: int,
) -> None:
    from pyspark import SparkContext

    lake, window = merging
    lake.start()
    with (
        room_for(bytes_max, SparkContext._gateway.proc.pid),
        pytest.raises(StoreUnavailableError, match=TOO_LARGE) as caught,
    ):
        window.apply(lake)
    assert isinstance(caught.value, TransientError), "no table stops for it"
    assert caught.value.facts["table"] == source.schema.table
    assert [one["ID"] for one in mirror(source.schema)] == [1]
    assert window.apply(lake).rows_inserted == 1
    assert [one["ID"] for one in mirror(source.schema)] == [1, 2]
