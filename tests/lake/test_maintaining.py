"""Maintenance keeps Delta tables quick and changes no row: what MERGE, replay and rebuild do afterwards is as right as before."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark import SparkContext

from cdc_core.config import DeletionVectors, MaintenanceConfig
from cdc_core.delta.history import DeltaCommit, read_commits, read_log
from cdc_core.lake.maintenance.housekeeping import wants_vectors
from cdc_core.lake.mirror.files import MirrorFiles
from cdc_core.lake.mirror.ways import VECTORS_ROWS_MIN
from cdc_core.lake.table_context import TableWork, no_fence

if TYPE_CHECKING:
    from pathlib import Path

    from cdc_core.lake.lake import Lake
    from tests.stage.landed import Row, Source

LARGE, SMALL = VECTORS_ROWS_MIN, VECTORS_ROWS_MIN // 2 - 1


def merges(copied: int, changed: int, count: int = 3) -> list[DeltaCommit]:
    """Commits of windows, after one of another kind that copied everything."""
    numbers = {"numTargetRowsCopied": str(copied), "numTargetRowsUpdated": str(changed)}
    other = DeltaCommit(0, "MERGE", {"kind": "chunk"}, {"numTargetRowsCopied": str(10**9)})
    windows = [DeltaCommit(at, "MERGE", {"kind": "window"}, numbers) for at in range(1, count + 1)]
    return [other, *windows]


def rewritten(copied: int, changed: int) -> list[DeltaCommit]:
    """A commit of a window that was merged without Spark."""
    counts = {"copied": copied, "updated": changed, "inserted": 0, "deleted": 0}
    return [DeltaCommit(1, "WRITE", {"kind": "window", **counts})]


@pytest.mark.parametrize(
    ("setting", "rows", "commits", "has_them", "wanted"),
    [
        pytest.param("auto", LARGE, merges(400, 100), False, True, id="large-and-scattered"),
        pytest.param("auto", LARGE, merges(399, 100), False, False, id="large-at-its-end"),
        pytest.param("auto", LARGE, rewritten(400, 100), False, True, id="rewritten-and-scattered"),
        pytest.param("auto", LARGE, rewritten(399, 100), False, False, id="rewritten-at-its-end"),
        pytest.param("auto", LARGE - 1, merges(10**6, 1), False, False, id="small"),
        pytest.param("auto", LARGE, merges(0, 0, 0), False, False, id="no-windows-yet"),
        pytest.param("auto", LARGE, [], True, True, id="stays-on-without-copies"),
        pytest.param("auto", SMALL + 1, [], True, True, id="stays-on-a-while"),
        pytest.param("auto", SMALL, [], True, False, id="shrunk"),
        pytest.param("auto", None, [], True, True, id="unknown-size-stays-on"),
        pytest.param("auto", None, merges(10**6, 1), False, False, id="unknown-size-stays-off"),
        pytest.param("always", 1, [], False, True, id="always"),
        pytest.param("always", 1, [], True, True, id="always-again"),
        pytest.param("never", 10**9, merges(10**6, 1), True, False, id="never"),
    ],
)
def test_vectors_follow_size_and_work(
    setting: DeletionVectors,
    rows: int | None,
    commits: list[DeltaCommit],
    *,
    has_them: bool,
    wanted: bool,
) -> None:
    assert wants_vectors(setting, rows, commits, has_them=has_them) is wanted


def test_only_recent_windows_count() -> None:
    old, new = merges(10**6, 1), merges(0, 100, 20)[1:]
    assert not wants_vectors("auto", LARGE, [*old, *new], has_them=False)


def _codecs(path: str) -> set[str]:
    """How the columns of a Delta table's live files are compressed."""
    footers = [pq.read_metadata(name) for name in DeltaTable(path).file_uris()]
    groups = [one.row_group(at) for one in footers for at in range(one.num_row_groups)]
    return {one.column(at).compression for one in groups for at in range(one.num_columns)}


@pytest.mark.spark
def test_a_maintained_table_is_the_same_and_goes_on(
    open_lake: Callable[..., Lake],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    changelog: Callable[..., list[Row]],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Vectors on and clustered, windows over them, off again: delta-rs reads the same rows as before each time."""
    lake, table = open_lake(), source.schema.table
    tx = source.begin()
    ids = {i: tx.insert(row(i, f"name {i}")) for i in range(1, 9)}
    tx.commit()
    source.chunk(keep=lambda r: r["ID"] <= 4).apply(lake)
    source.chunk(keep=lambda r: r["ID"] > 4, number=2, scn=source.scn).apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []

    def window(*changes: Callable[[Any], None]) -> Any:
        tx = source.begin()
        for change in changes:
            change(tx)
        tx.commit()
        cut = source.cut()
        cut.apply(lake)
        assert mirror(source.schema) == source.state(cut.scn_high)
        return cut

    def maintain(**options: Any) -> tuple[Any, Any]:
        before = mirror(source.schema, hidden=True), sorted(changelog(source.schema), key=repr)
        position = lake.table(table).position()
        config = MaintenanceConfig(vacuum_hours=None, **options)
        first, second = lake.table(table).maintain(config, source.schema.key)
        after = mirror(source.schema, hidden=True), sorted(changelog(source.schema), key=repr)
        assert after == before
        assert lake.table(table).position() == position
        assert (first.layer, second.layer) == ("mirror", "changelog")
        assert not second.has_vectors
        return first, second

    one = window(lambda tx: tx.update(ids[1], {"NAME": "first"}))
    jvm = SparkContext._jvm
    assert jvm is not None
    assert not jvm.java.lang.System.out.equals(jvm.java.lang.System.err)
    jvm.java.lang.System.out.println("Deleted 0 files and directories in a total of 1 directories.")
    jvm.scala.Console.out().println("Deleted 0 files and directories in a total of 1 directories.")
    printed = capfd.readouterr()
    assert "Deleted" not in printed.out + printed.err, "VACUUM prints between Redolake's lines"
    first, second = maintain(deletion_vectors="always", cluster_by_key=True)
    assert (first.had_vectors, first.has_vectors) == (False, True)
    assert (first.files_after, second.files_after) == (1, 1)
    assert second.files_before == 3
    two = window(
        lambda tx: tx.update(ids[2], {"NAME": "second"}),
        lambda tx: tx.delete(ids[3]),
        lambda tx: tx.update(ids[4], {"ID": 40}),
        lambda tx: tx.insert(row(9, "new")),
    )
    log = (tmp_path / "lake" / "shop" / "mirror" / table.path / "_delta_log").glob("*.json")
    assert '"deletionVector":{' in max(log).read_text(), "MERGE wrote a file anew"
    files = MirrorFiles.read(
        TableWork(str(tmp_path / "lake"), "shop", table, 0, no_fence, lambda: None)
    )
    keys = [files.has_all(pa.table({"ID": pa.array([at], pa.int64())}), {}) for at in (2, 3, 4, 40)]
    assert keys == [True, False, False, True], "rows that a deletion vector names are not there"
    assert lake.table(table).mirror_version_at(one.scn_high) < lake.table(table).mirror_version_at(
        two.scn_high
    )
    assert two.replay(lake).skipped

    assert {*_codecs(files.work.mirror), *_codecs(files.work.changelog)} == {"ZSTD"}

    last, _ = maintain(deletion_vectors="never")
    assert (last.had_vectors, last.has_vectors) == (True, False)
    delta_log = read_log(str(tmp_path / "lake" / "shop" / "mirror" / table.path))
    assert delta_log is not None
    assert delta_log.properties["delta.enableDeletionVectors"] == "false"
    changelog_path, mirror_path = (
        tmp_path / "lake" / "shop" / layer / table.path for layer in ("changelog", "mirror")
    )
    DeltaTable(str(changelog_path)).create_checkpoint()
    for path in (changelog_path, mirror_path):
        for name in (path / "_delta_log").iterdir():
            os.utime(name, (0, 0))
    maintained = maintain(deletion_vectors="never", log_hours=1)
    for path, done in zip((mirror_path, changelog_path), maintained, strict=True):
        commits = read_commits(str(path))
        assert done.commits_removed == commits[0].version > 0
        assert (
            DeltaTable(str(path)).metadata().configuration["delta.logRetentionDuration"]
            == "interval 1 hours"
        )
    window(lambda tx: tx.update(ids[5], {"NAME": "fifth"}))
    before = mirror(source.schema, hidden=True)
    lake.table(table).rebuild_mirror(source.schema)
    assert mirror(source.schema, hidden=True) == before


def test_a_table_with_nothing_to_compact_or_remove_is_maintained_without_spark(
    open_lake: Callable[..., Lake],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    tmp_path: Path,
) -> None:
    """The first time how long its log reaches back is noted; the second time nothing happens."""
    lake, table = open_lake(), source.schema.table
    tx = source.begin()
    for key in range(1, 4):
        tx.insert(row(key))
    tx.commit()
    source.chunk().apply(lake)
    paths = [tmp_path / "lake" / "shop" / layer / table.path for layer in ("mirror", "changelog")]
    versions = []
    for _ in range(2):
        done = lake.table(table).maintain(MaintenanceConfig(log_hours=48), source.schema.key)
        assert [(one.files_before, one.files_after) for one in done] == [(1, 1), (1, 1)]
        assert all(one.bytes_before == one.bytes_after > 0 for one in done)
        versions.append([DeltaTable(str(path)).version() for path in paths])
    assert versions[0] == versions[1]
    for path in paths:
        said = DeltaTable(str(path)).metadata().configuration
        assert said["delta.logRetentionDuration"] == "interval 48 hours"
    assert mirror(source.schema) == source.state(source.scn)
