"""Commits without Spark: each once, with all that they must say, and never behind another writer's."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from cdc_core.delta.appending import CommitInfo, FileChanges, commit_files, create_table, write_file
from cdc_core.delta.history import read_commits, read_log
from cdc_core.delta.row_counts import count_rows
from cdc_core.errors import (
    CommitConflictError,
    FencedError,
    LakeError,
    StoreUnavailableError,
    TransientError,
)

SCHEMA = pa.schema(
    [
        ("ID", pa.int64()),
        ("NAME", pa.string()),
        ("NOTES", pa.list_(pa.string())),
        ("IMAGE", pa.struct([("AT", pa.timestamp("us")), ("N", pa.decimal128(38, 10))])),
    ]
)
INDEXED = ["ID", "NAME", "NOTES"]


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A Delta table on a disk."""
    path = str(tmp_path / "t")
    create_table(path, SCHEMA, {"redolake.role": "changelog"}, doing="creating", facts={})
    return path


def rows(*ids: int, name: str | None = "n") -> list[pa.RecordBatch]:
    values = [{"ID": at, "NAME": name, "NOTES": ["x"], "IMAGE": None} for at in ids]
    return [pa.RecordBatch.from_pylist(values, SCHEMA)]


def append(
    table: str,
    batches: list[pa.RecordBatch],
    version: int,
    fence: Callable[[], None] = lambda: None,
) -> None:
    file = write_file(table, SCHEMA, batches, INDEXED)
    assert file is not None
    metadata = json.dumps({"scn_high": version})
    info = CommitInfo(
        doing="appending", metadata=metadata, txn=("app", version), facts={"table": "HR.EMP"}
    )
    commit_files(table, FileChanges(added=[file]), info, fence=fence)


def ids(table: str) -> list[int]:
    found = QueryBuilder().register("t", DeltaTable(table)).execute('select "ID" from t').read_all()
    return sorted(pa.table(found)["ID"].to_pylist())


def test_a_commit_says_who_what_and_how_much(table: str) -> None:
    append(table, rows(1, 2), 100)
    append(table, rows(3, name="a name longer than Delta's statistics keep"), 200)
    log = read_log(table)
    assert log is not None
    assert log.transactions == {"app": 200}
    assert log.properties["redolake.role"] == "changelog"
    assert [one.metadata.get("scn_high") for one in read_commits(table)] == [None, 100, 200]
    assert ids(table) == [1, 2, 3]
    assert count_rows(table) == 3
    actions = pa.table(DeltaTable(table).get_add_actions(flatten=True)).to_pylist()
    found = {one["max.ID"]: one for one in actions}
    assert (found[2]["min.ID"], found[2]["min.NAME"], found[2]["null_count.NAME"]) == (1, "n", 0)
    assert found[3]["max.NAME"] is None


def test_nothing_is_no_file(table: str) -> None:
    assert write_file(table, SCHEMA, rows(), INDEXED) is None
    assert not list(Path(table).glob("*.parquet"))


def test_a_file_that_fails_half_way_is_gone(table: str) -> None:
    def batches() -> Any:
        yield rows(*range(60_000))[0]
        raise LakeError("a row cannot be decoded", hint="-")

    with pytest.raises(LakeError):
        write_file(table, SCHEMA, batches(), INDEXED)
    assert not list(Path(table).glob("*.parquet"))


def no_room(*_given: Any, **_options: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        pytest.param(pq.ParquetWriter, "write_table", id="in-the-file"),
        pytest.param(os, "fsync", id="at-the-end-of-the-file"),
        pytest.param(os, "link", id="in-the-commit"),
    ],
)
def test_a_full_disk_may_pass_and_the_same_step_adds_each_row_once(
    table: str, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    append(table, rows(1), 100)
    with monkeypatch.context() as full:
        full.setattr(owner, name, no_room)
        if name == "link":
            full.setattr(DeltaTable, "create_write_transaction", no_room)
        with pytest.raises(StoreUnavailableError, match="No space left on device") as caught:
            append(table, rows(2), 200)
    assert isinstance(caught.value, TransientError), "no table stops for it"
    assert ids(table) == [1]
    append(table, rows(2), 200)
    assert ids(table) == [1, 2]


@pytest.mark.parametrize("stopped", ["before it read the table", "right before its commit"])
def test_a_writer_that_was_stopped_adds_nothing_that_another_added(
    table: str, stopped: str
) -> None:
    """It lost its lease and does not know: the fence let it pass a moment ago."""

    def other() -> None:
        append(table, rows(1, 2), 100)

    if stopped == "before it read the table":
        other()
    with pytest.raises(CommitConflictError) as caught:
        append(table, rows(1, 2), 100, fence=other)
    assert caught.value.facts["table"] == "HR.EMP"
    assert ids(table) == [1, 2]


def set_property(table: str) -> None:
    DeltaTable(table).alter.set_table_properties({"foreign": "1"}, raise_if_not_exists=False)


def append_something(table: str) -> None:
    write_deltalake(table, pa.Table.from_batches(rows(7)), mode="append")


@pytest.mark.parametrize("foreign", [set_property, append_something])
def test_another_commit_since_the_table_was_read_wins(
    table: str, foreign: Callable[[str], None]
) -> None:
    """Whatever it is: only a table that nobody else touched is as it was looked at."""
    with pytest.raises(CommitConflictError):
        append(table, rows(1), 100, fence=lambda: foreign(table))
    assert 1 not in ids(table)
    append(table, rows(1), 100)
    assert 1 in ids(table)


@pytest.mark.parametrize("damage", ["removed", "cut"])
def test_a_file_that_is_gone_before_its_commit_is_never_named(table: str, damage: str) -> None:
    """VACUUM without a retention runs between the file and the commit."""
    append(table, rows(1), 100)

    def meanwhile() -> None:
        if damage == "removed":
            DeltaTable(table).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
            return
        newest = max(Path(table).glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
        newest.write_bytes(newest.read_bytes()[:-1])

    with pytest.raises(StoreUnavailableError, match="is missing") as caught:
        append(table, rows(2), 200, fence=meanwhile)
    assert isinstance(caught.value, TransientError), "no table stops for it"
    assert ids(table) == [1]
    append(table, rows(2), 200)
    assert ids(table) == [1, 2]


def test_a_fence_that_refuses_is_the_last_word(table: str) -> None:
    def refuse() -> None:
        raise FencedError("the lease is another's", hint="-")

    with pytest.raises(FencedError):
        append(table, rows(1), 100, fence=refuse)
    assert ids(table) == []


def test_a_table_that_is_there_stays_as_it_is(table: str) -> None:
    append(table, rows(1), 100)
    create_table(table, SCHEMA, {"redolake.role": "mirror"}, doing="creating", facts={})
    assert ids(table) == [1]
    log = read_log(table)
    assert log is not None
    assert log.properties["redolake.role"] == "changelog"


def test_no_table_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    with pytest.raises(LakeError, match="a file of the Delta table is missing"):
        append(str(tmp_path / "t"), rows(1), 100)
