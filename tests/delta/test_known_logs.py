"""What is known of a Delta table's log counts only for as long as the log proves it. Another implementation writes the tables."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from cdc_core.delta import log_cache as known_logs
from cdc_core.delta import log_files
from cdc_core.delta import row_counts as counting
from cdc_core.delta.history import newest_metadata, read_log
from cdc_core.delta.log_cache import KnownLogs
from cdc_core.delta.row_counts import count_rows
from cdc_core.errors import StoreUnavailableError

APP = "redolake/shop/t/0"


def commit(path: Path, scn: int, rows: int = 1) -> None:
    """Append rows, under our identifier with this version."""
    write_deltalake(
        str(path),
        pa.table({"ID": pa.array([scn] * rows, pa.int64())}),
        mode="append",
        commit_properties=CommitProperties(
            custom_metadata={"userMetadata": json.dumps({"said": scn})},
            app_transactions=[Transaction(APP, scn)],
        ),
    )


def scn_of(path: Path) -> int | None:
    log = read_log(str(path))
    return None if log is None else log.transactions[APP]


def table(path: Path, *scns: int) -> Path:
    for scn in scns:
        commit(path, scn)
    return path


def test_a_known_log_is_neither_listed_nor_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = table(tmp_path / "t", 100, 200)
    assert (scn_of(path), count_rows(str(path))) == (200, 2)
    read: list[str] = []

    def noted(filesystem: pafs.FileSystem, name: str) -> list[log_files.Action]:
        read.append(name.rpartition("/")[2])
        return log_files.actions_of(filesystem, name)

    def refused(*_: object) -> list[str]:
        raise AssertionError("the log was listed")

    monkeypatch.setattr(known_logs, "actions_of", noted)
    monkeypatch.setattr(known_logs, "newest_names", refused)
    assert (scn_of(path), count_rows(str(path)), read) == (200, 2, [])
    commit(path, 300)
    commit(path, 400)
    for _ in range(2):
        assert scn_of(path) == 400
    assert [int(name.split(".")[0]) for name in read] == [2, 3]


def another_writer_commits(path: Path) -> None:
    commit(path, 500)


def is_begun_anew(path: Path) -> None:
    """As many commits of the same sizes, with other contents."""
    path.rename(path.with_name("aside"))
    table(path, 400, 500)


def is_restored(path: Path) -> None:
    """An older copy takes its place, which then gets as many commits."""
    log = path / "_delta_log"
    (log / f"{1:020d}.json").unlink()
    commit(path, 500)


def is_exchanged_in_place(path: Path) -> None:
    """The newest commit is another one of the same size and time, as copies of a folder have."""
    newest = path / "_delta_log" / f"{1:020d}.json"
    other = newest.with_suffix(".new")
    other.write_text(newest.read_text().replace('"version":200', '"version":500'))
    os.utime(other, ns=(newest.stat().st_atime_ns, newest.stat().st_mtime_ns))
    assert other.stat().st_size == newest.stat().st_size
    other.rename(newest)


def is_cleaned_up(path: Path) -> None:
    """All commits up to the checkpoint go, the newest that was known among them."""
    DeltaTable(str(path)).create_checkpoint()
    commit(path, 500)
    for version in (0, 1):
        (path / "_delta_log" / f"{version:020d}.json").unlink()


def is_vacuumed(path: Path) -> None:
    DeltaTable(str(path)).delete("ID = 100")
    commit(path, 500)
    DeltaTable(str(path)).vacuum(0, dry_run=False, enforce_retention_duration=False)


@pytest.mark.parametrize(
    "change",
    [
        another_writer_commits,
        is_begun_anew,
        is_restored,
        is_exchanged_in_place,
        is_cleaned_up,
        is_vacuumed,
    ],
)
def test_a_log_that_has_changed_is_seen_as_it_is(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    path = table(tmp_path / "t", 100, 200)
    assert (scn_of(path), count_rows(str(path))) == (200, 2)
    change(path)
    assert scn_of(path) == 500
    assert count_rows(str(path)) == DeltaTable(str(path)).count()


def test_a_table_that_is_gone_is_not_known(tmp_path: Path) -> None:
    path = table(tmp_path / "t", 100)
    assert scn_of(path) == 100
    shutil.rmtree(path)
    assert (scn_of(path), count_rows(str(path))) == (None, None)


@dataclass(frozen=True, slots=True)
class _Scns:
    version: int
    scns: tuple[int, ...]


def _scns_of(actions: list[log_files.Action]) -> tuple[int, ...]:
    return tuple(one["txn"]["version"] for one in actions if "txn" in one)


class _Exchanged:
    """Logs whose table is exchanged for another one while they are read, or followed, for the first time."""

    def __init__(self, path: Path, *, while_following: bool) -> None:
        self.path, self.while_following = path, while_following
        self.logs: KnownLogs[_Scns] = KnownLogs(self.read, self.follow, lambda _: 1)

    def exchange(self) -> None:
        aside = self.path.with_name("aside")
        if not aside.exists():
            self.path.rename(aside)
            table(self.path, 1_000, 2_000, 3_000, 4_000)

    def read(self, fs: pafs.FileSystem, root: str, names: list[str]) -> _Scns:
        found = [
            log_files.actions_of(fs, f"{root}/_delta_log/{name}")
            for name in names
            if name.endswith(".json")
        ]
        if not self.while_following:
            self.exchange()
        return _Scns(len(found) - 1, tuple(scn for one in found for scn in _scns_of(one)))

    def follow(self, known: _Scns, version: int, actions: list[log_files.Action]) -> _Scns:
        if self.while_following:
            self.exchange()
        return _Scns(version, known.scns + _scns_of(actions))

    def newest(self) -> tuple[int, ...]:
        found = self.logs.newest(str(self.path), pafs.LocalFileSystem(), str(self.path))
        assert found is not None
        return found.scns


@pytest.mark.parametrize("while_following", [False, True], ids=["while-read", "while-followed"])
def test_a_table_that_is_exchanged_meanwhile_leaves_nothing_of_the_old_one(
    tmp_path: Path, *, while_following: bool
) -> None:
    path = table(tmp_path / "t", 100, 200)
    exchanged = _Exchanged(path, while_following=while_following)
    assert exchanged.newest() == (100, 200)
    if while_following:
        commit(path, 300)
        commit(path, 400)
        exchanged.newest()
    assert exchanged.newest() == (1_000, 2_000, 3_000, 4_000)


@pytest.mark.parametrize("times", [1, 99], ids=["once", "always"])
def test_a_log_that_is_cleaned_up_while_it_is_read_is_read_again(
    tmp_path: Path, times: int
) -> None:
    """Its newest checkpoint and the commits behind that go between the listing and the reading, since a newer checkpoint is there."""
    path, left = table(tmp_path / "t", 100, 200), [times]

    def read(fs: pafs.FileSystem, root: str, names: list[str]) -> _Scns:
        if left[0]:
            left[0] -= 1
            raise FileNotFoundError(names[0])
        return _Exchanged(path, while_following=True).read(fs, root, names)

    logs: KnownLogs[_Scns] = KnownLogs(read, lambda known, *_: known, lambda _: 1)
    newest = partial(logs.newest, str(path), pafs.LocalFileSystem(), str(path))
    if times == 1:
        assert newest() == _Scns(1, (100, 200))
        return
    with pytest.raises(StoreUnavailableError, match="disappear while they are read"):
        newest()


def test_no_more_is_kept_than_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def whole(fs: pafs.FileSystem, root: str, names: list[str]) -> _Scns:
        read.append(root.rpartition("/")[2])
        return _Scns(len(names) - 1, ())

    logs: KnownLogs[_Scns] = KnownLogs(whole, lambda known, *_: known, lambda _: 2)
    monkeypatch.setattr(known_logs, "WEIGHT_MAX", 5)
    for name in ("a", "b", "a", "c", "a", "c", "b"):
        path = tmp_path / name
        if not path.exists():
            table(path, 1)
        logs.newest(str(path), pafs.LocalFileSystem(), str(path))
    assert read == ["a", "b", "c", "b"]


def test_rows_of_many_files_are_counted_by_what_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "FILES_KNOWN_MAX", 1)
    path = table(tmp_path / "t", 1, 2, 3)
    assert count_rows(str(path)) == 3
    commit(path, 4, rows=10)
    assert count_rows(str(path)) == 13
    DeltaTable(str(path)).delete("ID = 2")
    assert count_rows(str(path)) == 12
    _name_again(path)
    assert count_rows(str(path)) == 12
    DeltaTable(str(path)).optimize.compact()
    assert count_rows(str(path)) == 12


def _name_again(path: Path) -> None:
    """A commit that names a file again, as new statistics do."""
    log = path / "_delta_log"
    commits = sorted(log.glob("*.json"))
    added: list[dict[str, Any]] = [
        action
        for line in commits[-2].read_text().splitlines()
        if "add" in (action := json.loads(line))
    ]
    added[0]["add"]["dataChange"] = False
    (log / f"{len(commits):020d}.json").write_text(json.dumps(added[0]) + "\n")


def test_the_newest_metadata_of_a_name_is_found_without_a_listing(tmp_path: Path) -> None:
    path = table(tmp_path / "t", 100, 200)
    DeltaTable(str(path)).optimize.compact()
    assert newest_metadata(str(path), "said") == 200
    assert newest_metadata(str(path), "other") is None
    DeltaTable(str(path)).create_checkpoint()
    for version in (0, 1):
        (path / "_delta_log" / f"{version:020d}.json").unlink()
    assert newest_metadata(str(path), "said") is None
