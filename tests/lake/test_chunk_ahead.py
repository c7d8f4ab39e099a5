"""The files of a chunk that are written while it is read hold what its landed files give, or are not used."""

from __future__ import annotations

import shutil
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
from cdc_core.errors import DuplicateKeyError, FencedError
from cdc_core.lake.apply.chunk_prewrite import ChunkPrewrite
from cdc_core.lake.apply.chunks import holds_alone
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.lake.table_context import TableWork, no_fence
from cdc_core.stage.snapshot import ChunkRows
from tests.stage.landed import Chunk, Source, order, orders_schema, varchar

LANDED = datetime(2026, 1, 2, 3, 4, 5)
LAYERS = ("changelog", "mirror")


def _no_spark(_config: LakeConfig) -> Any:
    raise AssertionError("Spark was asked for")


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return DeltaLake.open(LakeConfig(path=str(tmp_path / "lake")), "shop", spark=_no_spark)


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


def _batches(chunk: Chunk) -> Iterator[pa.RecordBatch]:
    for path in chunk.paths:
        yield from pq.ParquetFile(path).iter_batches(2)


def _read(lake: DeltaLake, chunk: Chunk, **other: Any) -> ChunkPrewrite:
    """The chunk as it was read, but for what ``other`` says of it."""
    unread = replace(chunk.manifest, files=(), rows=0, **other)
    ahead = lake.table(unread.schema.table).begin_chunk(unread)
    assert ahead is not None
    return ahead


def _files(tmp_path: Path) -> list[int]:
    folders = [tmp_path / "lake" / "shop" / layer / "shop.orders" for layer in LAYERS]
    return [len(list(folder.glob("*.parquet"))) for folder in folders]


def _tables(tmp_path: Path) -> list[pa.Table]:
    folders = [tmp_path / "lake" / "shop" / layer / "shop.orders" for layer in LAYERS]
    return [DeltaTable(str(folder)).to_pyarrow_table() for folder in folders]


def _reads_of_landing(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which rows are made of the landed files from here on."""
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


def test_the_files_hold_what_landing_gives(
    lake: DeltaLake, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows, statistics and widths; applying the chunk reads landing for its keys alone."""
    chunk = _chunk(source)
    chunk.apply(lake)
    expected = _tables(tmp_path)
    facts = [_facts(tmp_path, layer) for layer in LAYERS]
    shutil.rmtree(tmp_path / "lake")
    ahead = _read(lake, chunk)
    for batch in _batches(chunk):
        ahead.write(batch)
    ahead.end()
    used = _reads_of_landing(monkeypatch)
    assert chunk.apply(lake, ahead=ahead).rows_inserted == 5
    ahead.discard()
    assert not [name for name in used if name == "as_changes"]
    assert _files(tmp_path) == [1, 1]
    assert _tables(tmp_path) == expected
    assert [_facts(tmp_path, layer) for layer in LAYERS] == facts
    assert chunk.apply(lake).skipped


def _facts(tmp_path: Path, layer: str) -> Any:
    """What the newest commit says, and the statistics of its file."""
    path = str(tmp_path / "lake" / "shop" / layer / "shop.orders")
    actions = pa.table(DeltaTable(path).get_add_actions(flatten=True)).drop_columns(
        ["path", "size_bytes", "modification_time"]
    )
    return read_commits(path)[-1].metadata, actions.to_pylist()


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"scn": 1}, id="of-another-SCN"),
        pytest.param({"number": 2}, id="of-another-chunk"),
        pytest.param({"landed": "2026-01-01T00:00:00"}, id="of-an-earlier-attempt"),
        pytest.param({"rows": 4}, id="without-a-row"),
        pytest.param({"more": True}, id="with-another-column"),
        pytest.param({"fails": True}, id="that-could-not-be-written"),
    ],
)
def test_files_that_hold_something_else_go(
    lake: DeltaLake, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: dict[str, Any]
) -> None:  # fmt: skip
    chunk = _chunk(source)
    lacking = other.pop("rows", 5)
    if other.pop("more", False):
        schema = chunk.manifest.schema
        other["schema"] = replace(schema, columns=(*schema.columns[:-1], varchar("OTHER")))
    fails = other.pop("fails", False)
    ahead = _read(lake, chunk, **other)
    if fails:
        shutil.rmtree(tmp_path / "lake")
    for batch in list(_batches(chunk))[: 3 if lacking == 5 else 2]:
        names = [column.name for column in other["schema"].columns] if "schema" in other else batch.schema.names  # fmt: skip
        ahead.write(batch.rename_columns(names))
    ahead.end()
    used = _reads_of_landing(monkeypatch)
    assert chunk.apply(lake, ahead=ahead).rows_inserted == 5
    ahead.discard()
    assert sorted(used) == ["as_changes", "as_mirror"]
    assert _files(tmp_path) == [1, 1]
    assert [table.num_rows for table in _tables(tmp_path)] == [5, 5]


def test_a_chunk_that_is_given_up_leaves_no_file(
    lake: DeltaLake, source: Source, tmp_path: Path
) -> None:
    """In the middle of its rows, and whole but refused."""
    chunk = _chunk(source)
    ahead = _read(lake, chunk)
    ahead.write(next(_batches(chunk)))
    ahead.discard()
    ahead.write(next(_batches(chunk)))
    double = source.chunk(keep=lambda row: row["ID"] == 1)
    twice = pa.Table.from_batches([*_batches(double), *_batches(double)])
    pq.write_table(twice, double.paths[0])
    whole = Chunk(replace(double.manifest, landed=LANDED.isoformat(), rows=2), double.paths)
    ahead = _read(lake, whole)
    for batch in _batches(whole):
        ahead.write(batch)
    ahead.end()
    with pytest.raises(DuplicateKeyError):
        whole.apply(lake, ahead=ahead)
    ahead.discard()
    assert _files(tmp_path) == [0, 0]


def test_a_commit_that_is_refused_names_no_file(
    lake: DeltaLake, source: Source, tmp_path: Path
) -> None:
    """The chunk is applied from landing by the next attempt, once."""
    chunk = _chunk(source)
    ahead = _read(lake, chunk)
    for batch in _batches(chunk):
        ahead.write(batch)
    ahead.end()
    asked: list[int] = []

    def fence() -> None:
        asked.append(1)
        if len(asked) == 4:  # behind both tables and the change log
            raise FencedError("the lease is gone", hint="Try again.")

    with pytest.raises(FencedError):
        chunk.apply(lake, ahead=ahead, fence=fence)
    ahead.discard()
    assert [table.num_rows for table in _tables(tmp_path)] == [5, 0]
    assert chunk.apply(lake).rows_inserted == 5
    assert [table.num_rows for table in _tables(tmp_path)] == [5, 5]


def test_what_a_process_that_died_left_is_not_in_the_way_of_a_table_that_spark_creates(
    source: Source, tmp_path: Path
) -> None:
    """Where a name asks for column mapping. Files of others stay, and Spark refuses the folder."""
    folder = tmp_path / "t"
    (folder / "sub").mkdir(parents=True)
    left = ["part-5b0c1f0e-32a8-4d55-9c43-0d4c3ff3e1a1.zstd.parquet", "report.parquet"]
    for name in left:
        (folder / name).write_bytes(b"")
    seen: list[list[str]] = []

    class Session:
        def sql(self, _text: str) -> None:
            seen.append(sorted(path.name for path in folder.iterdir()))

    schema = replace(source.schema, columns=(*source.schema.columns, varchar("two words")))
    work = TableWork(str(tmp_path), "shop", schema.table, 1, no_fence, Session)
    work.create_table(str(folder), schema)
    assert seen == [["report.parquet", "sub"]]


def test_nothing_is_written_ahead_for_a_mirror_that_has_other_rows(
    lake: DeltaLake, source: Source
) -> None:
    """A chunk of another snapshot replaces keys there, which takes a MERGE."""
    _chunk(source).apply(lake)
    other = _chunk(source, snapshot="s2").manifest
    assert lake.table(other.schema.table).begin_chunk(other) is None


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
    with pytest.raises(AssertionError, match="Spark was asked for"):
        third.apply(lake)
