"""What landed of a chunk is what both Delta tables have; where they have other columns, its rows are encoded."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc_core.config import LakeConfig
from cdc_core.delta import history
from cdc_core.delta.history import read_commits
from cdc_core.delta.log_files import Action, actions_of
from cdc_core.errors import DuplicateKeyError
from cdc_core.lake.apply import chunks
from cdc_core.lake.apply.missing_keys import holds_alone
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.stage.snapshot import ChunkRows
from tests.lake.who_merges import no_spark
from tests.stage.landed import Chunk, Source, order, orders_schema, varchar

LANDED = datetime(2026, 1, 2, 3, 4, 5)
LAYERS = ("changelog", "mirror")


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return DeltaLake(LakeConfig(path=str(tmp_path / "lake")), "shop", spark=no_spark)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    source = Source(tmp_path / "landing", orders_schema())
    tx = source.begin()
    for number in range(5):
        tx.insert(order(number, note=None if number else "long"))
    tx.commit()
    return source


def _chunk(source: Source, **more: Any) -> Chunk:
    chunk = source.chunk(**more)
    return Chunk(replace(chunk.manifest, landed=LANDED.isoformat()), chunk.paths)


def _folders(tmp_path: Path) -> list[Path]:
    return [tmp_path / "lake" / "shop" / layer / "shop.orders" for layer in LAYERS]


def _files(tmp_path: Path) -> list[int]:
    return [len(list(folder.glob("*.parquet"))) for folder in _folders(tmp_path)]


def _tables(tmp_path: Path) -> list[pa.Table]:
    return [DeltaTable(str(folder)).to_pyarrow_table() for folder in _folders(tmp_path)]


def _facts(folder: Path) -> Any:
    """What the newest commit says, and the statistics of its file."""
    actions = pa.table(DeltaTable(str(folder)).get_add_actions(flatten=True)).drop_columns(
        ["path", "size_bytes", "modification_time"]
    )
    return read_commits(str(folder))[-1].metadata, actions.to_pylist()


def _encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which rows are encoded from here on."""
    used: list[str] = []

    def noting(name: str) -> None:
        real = getattr(ChunkRows, name)

        def noted(*args: Any, **named: Any) -> Any:
            used.append(name)
            return real(*args, **named)

        monkeypatch.setattr(ChunkRows, name, noted)

    noting("as_changes")
    noting("as_mirror")
    return used


def test_the_tables_have_what_landed_and_what_encoding_its_rows_would_give(
    lake: DeltaLake, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows, statistics and metadata; the mirror's file is the landed one itself."""
    chunk = _chunk(source)
    with monkeypatch.context() as encoding:
        for name in ("mirror_files", "changelog_files"):
            encoding.setattr(chunks, name, lambda *_: None)
        chunk.apply(lake)
    expected = _tables(tmp_path)
    facts = [_facts(folder) for folder in _folders(tmp_path)]
    shutil.rmtree(tmp_path / "lake")
    used = _encoded(monkeypatch)
    assert chunk.apply(lake).rows_inserted == 5
    assert used == []
    assert _files(tmp_path) == [1, 1]
    assert _tables(tmp_path) == expected
    assert [_facts(folder) for folder in _folders(tmp_path)] == facts
    [file] = _folders(tmp_path)[1].glob("*.parquet")
    assert file.samefile(chunk.paths[0])
    assert chunk.apply(lake).skipped


def test_a_chunk_that_landed_long_ago_survives_somebodys_vacuum_before_its_commit(
    lake: DeltaLake, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """VACUUM removes files that no commit names and that are a week old; the file that the mirror takes is as new as its name there."""
    chunk = _chunk(source)
    long_ago = time.time() - 30 * 86_400
    for path in chunk.paths:
        os.utime(path, (long_ago, long_ago))
    append = chunks._log

    def vacuumed(*args: Any) -> None:
        append(*args)
        for folder in _folders(tmp_path):
            DeltaTable(str(folder)).vacuum(168, dry_run=False, full=True)

    monkeypatch.setattr(chunks, "_log", vacuumed)
    chunk.apply(lake)
    assert [len(table) for table in _tables(tmp_path)] == [5, 5]


def test_a_chunk_without_rows_adds_no_file(lake: DeltaLake, source: Source, tmp_path: Path) -> None:
    assert _chunk(source, keep=lambda _row: False).apply(lake).rows_inserted == 0
    assert _files(tmp_path) == [0, 0]


def test_rows_of_a_chunk_that_lacks_a_column_of_the_tables_are_encoded(
    lake: DeltaLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The column came between two chunks of one snapshot."""
    schema = orders_schema()
    more = replace(schema, columns=(*schema.columns, varchar("MORE")))
    source = Source(tmp_path / "landing", more)
    tx = source.begin()
    for number in range(5):
        tx.insert({**order(number), "MORE": "new"})
    tx.commit()
    scn = source.tick()
    _chunk(source, scn=scn, schema=schema, keep=lambda row: row["ID"] == 0).apply(lake)
    wide = _chunk(source, scn=scn, number=2, keep=lambda row: row["ID"] == 1)
    used = _encoded(monkeypatch)
    wide.apply(lake)
    assert used == []
    _chunk(source, scn=scn, number=3, schema=schema, keep=lambda row: row["ID"] > 1).apply(lake)
    assert sorted(used) == ["as_changes", "as_mirror"]
    mirror = {row["ID"]: row["MORE"] for row in _tables(tmp_path)[1].to_pylist()}
    assert mirror == {0: None, 1: "new", 2: None, 3: None, 4: None}


def test_the_change_log_has_the_landed_rows_where_the_mirror_merges_them(
    lake: DeltaLake, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chunk of a second snapshot: what is encoded comes in the place of the mirror's rows."""
    _chunk(source).apply(lake)
    used = _encoded(monkeypatch)
    _chunk(source, snapshot="s2").apply(lake)
    assert used == ["as_mirror"]
    assert [table.num_rows for table in _tables(tmp_path)] == [10, 5]


def test_a_chunk_with_two_rows_of_one_key_leaves_no_file(
    lake: DeltaLake, source: Source, tmp_path: Path
) -> None:
    double = _chunk(source, keep=lambda row: row["ID"] == 1)
    row = pq.read_table(double.paths[0])
    pq.write_table(pa.concat_tables([row, row]), double.paths[0])
    with pytest.raises(DuplicateKeyError):
        Chunk(replace(double.manifest, rows=2), double.paths).apply(lake)
    assert _files(tmp_path) == [0, 0]


def test_landing_and_mirror_lose_a_file_apart(
    lake: DeltaLake, source: Source, tmp_path: Path
) -> None:
    """They share it by two names: whoever removes one leaves the other."""
    chunk = _chunk(source)
    chunk.apply(lake)
    Path(chunk.paths[0]).unlink()
    assert _tables(tmp_path)[1].num_rows == 5


def _chunks(source: Source, count: int) -> Iterator[Chunk]:
    """Chunks of one row each, as of one SCN."""
    scn = source.tick()
    with_rows = source.state(scn)
    assert len(with_rows) >= count
    for number in range(count):
        yield _chunk(
            source, scn=scn, number=number, keep=lambda row, number=number: row["ID"] == number
        )


def test_the_commits_that_a_chunk_reads_are_as_many_behind_many_others(
    lake: DeltaLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Source(tmp_path / "landing", orders_schema())
    tx = source.begin()
    for number in range(30):
        tx.insert(order(number))
    tx.commit()
    chunks = list(_chunks(source, 30))
    read: list[str] = []

    def noted(files: pafs.FileSystem, path: str) -> list[Action]:
        read.append(path)
        return actions_of(files, path)

    monkeypatch.setattr(history, "actions_of", noted)
    counts = []
    for chunk in chunks:
        read.clear()
        assert chunk.apply(lake).rows_inserted == 1
        assert holds_alone(
            lake.table(chunk.manifest.schema.table, 0).work, "s1", chunk.manifest.scn
        )
        counts.append(len(read))
    assert counts[2:] == [counts[2]] * 28
    assert _files(tmp_path) == [30, 30]


def test_rows_of_others_among_chunks_are_seen_wherever_they_stand(
    lake: DeltaLake, source: Source, tmp_path: Path
) -> None:
    """Also where they came between a chunk's look at the mirror and its commit."""
    first, second, third, other = (*_chunks(source, 3), _chunk(source, number=9))
    scn = first.manifest.scn
    work = lake.table(first.manifest.schema.table, 0).work
    first.apply(lake)
    assert holds_alone(work, "s1", scn)
    assert not holds_alone(work, "s2", scn)
    assert not holds_alone(work, "s1", other.manifest.scn)
    mirror = DeltaTable(work.mirror)
    foreign = mirror.to_pyarrow_table()
    came = 0

    def fence() -> None:
        nonlocal came
        came += 1
        if came == 1:  # right before the change log's commit
            write_deltalake(work.mirror, foreign, mode="append")

    second.apply(lake, fence=fence)
    assert came >= 2
    newest = [one.metadata.get("kind") for one in read_commits(work.mirror)][-2:]
    assert newest == [None, "chunk"]
    assert not holds_alone(work, "s1", scn)
    done = third.apply(lake).write
    assert done is not None
    assert done.way == "copy-on-write", "its rows come in the place of whatever is there"
