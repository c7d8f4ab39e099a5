"""A chunk's two files are written side by side, and committed one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc_core.config import LakeConfig
from cdc_core.errors import FencedError, LakeError
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.lake.mirror.files import MirrorFiles
from cdc_core.lake.rows import multiset
from cdc_core.lake.table_context import TableWork
from cdc_core.schema.table import ROW_DIGEST, ROW_DIGEST_COLUMN
from tests.stage.landed import Chunk, Source, order, orders_schema


def _files(folder: Path) -> int:
    return len(list(folder.glob("*.parquet")))


@pytest.mark.parametrize("refused", [3, 4], ids=["the-change-log-s-commit", "the-mirror-s-commit"])
def test_a_commit_that_is_refused_leaves_a_chunk_to_be_repeated(
    tmp_path: Path, refused: int
) -> None:
    """The change log is committed first; what no commit will name goes. The first two commits create the tables."""
    lake = DeltaLake.open(LakeConfig(path=str(tmp_path / "lake")), "shop")
    source = Source(tmp_path / "landing", orders_schema())
    tx = source.begin()
    for number in range(5):
        tx.insert(order(number))
    tx.commit()
    chunk = source.chunk()
    asked: list[int] = []

    def fence() -> None:
        asked.append(len(asked) + 1)
        if asked[-1] == refused:
            raise FencedError("the lease is gone", hint="Try again.")

    layers = {
        name: tmp_path / "lake" / "shop" / name / source.schema.table.path
        for name in ("changelog", "mirror")
    }
    with pytest.raises(FencedError):
        chunk.apply(lake, fence=fence)
    assert _rows(layers["changelog"]) == (5 if refused == 4 else 0)
    assert _rows(layers["mirror"]) == 0
    if refused == 3:
        assert _files(layers["mirror"]) == 0
    assert chunk.apply(lake).rows_inserted == 5
    assert [_rows(folder) for folder in layers.values()] == [5, 5]
    assert chunk.apply(lake).skipped


def _counted(source: Source, scn: int, snapshot: str, number: int) -> Chunk:
    """A chunk of a table whose equal rows are counted: its files hold what Oracle has."""
    chunk = source.chunk(scn=scn, snapshot=snapshot, number=number)
    columns = (ROW_DIGEST_COLUMN, *chunk.manifest.schema.columns)
    schema = replace(chunk.manifest.schema, columns=columns, key=(ROW_DIGEST,))
    return replace(chunk, manifest=replace(chunk.manifest, schema=schema))


def test_a_chunk_numbers_its_equal_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the batches in which it is read."""
    monkeypatch.setattr("cdc_core.stage.snapshot.BATCH_ROWS", 3)
    lake = DeltaLake.open(LakeConfig(path=str(tmp_path / "lake")), "shop")
    source = Source(tmp_path / "landing", orders_schema())
    tx = source.begin()
    for number in range(10):
        tx.insert(order(number % 3))
    tx.commit()
    assert _counted(source, source.tick(), "s1", 1).apply(lake).rows_inserted == 10
    folder = tmp_path / "lake" / "shop" / "mirror" / source.schema.table.path
    rows = DeltaTable(str(folder)).to_pyarrow_table().to_pylist()
    numbers = Counter((row["ID"], row["_cdc_copy"]) for row in rows)
    assert numbers == Counter([(0, 1), (0, 2), (0, 3), (0, 4), *((i, n) for i in (1, 2) for n in (1, 2, 3))])  # fmt: skip
    assert len({row["_cdc_row_digest"] for row in rows}) == 3


@pytest.mark.parametrize("gone", ["_cdc_copy = 2", "_cdc_copy = 1", None])
def test_equal_rows_that_are_not_numbered_from_one_on_are_not_counted(
    tmp_path: Path, gone: str | None
) -> None:
    """Somebody has deleted one, or put the same rows there again."""
    lake = DeltaLake.open(LakeConfig(path=str(tmp_path / "lake")), "shop")
    source = Source(tmp_path / "landing", orders_schema())
    tx = source.begin()
    for _ in range(3):
        tx.insert(order(1))
    tx.commit()
    _counted(source, source.tick(), "s1", 1).apply(lake)
    work = lake.table(source.schema.table, 1).work
    mirror = DeltaTable(work.mirror)
    rows = mirror.to_pyarrow_table()
    digests = rows["_cdc_row_digest"].combine_chunks()
    for found in both_ways(work, digests):
        assert found()["copies"].to_pylist() == [3]
    if gone is None:
        write_deltalake(mirror, rows, mode="append")
    else:
        mirror.delete(gone)
    for found in both_ways(work, digests):
        with pytest.raises(LakeError, match="not numbered from 1 without"):
            found()


def both_ways(work: TableWork, digests: pa.Array) -> list[Callable[[], pa.Table]]:
    """Count copies as before a MERGE, and as before files are written anew."""
    return [
        partial(multiset._present, work, None, digests),
        partial(multiset._present_in, MirrorFiles.read(work), digests),
    ]


def test_a_chunk_of_equal_rows_meets_no_others(tmp_path: Path) -> None:
    """Another snapshot has read some of them again, and nothing tells which."""
    lake = DeltaLake.open(LakeConfig(path=str(tmp_path / "lake")), "shop")
    source = Source(tmp_path / "landing", orders_schema())
    tx = source.begin()
    tx.insert(order(1))
    tx.commit()
    scn = source.tick()
    first = _counted(source, scn, "s1", 1)
    first.apply(lake)
    for other in (_counted(source, scn, "s2", 1), _counted(source, source.tick(), "s1", 2)):
        with pytest.raises(LakeError, match="other rows than those of this snapshot") as raised:
            other.apply(lake)
        assert "--fresh" in str(raised.value)
    for name in ("changelog", "mirror"):
        assert _rows(tmp_path / "lake" / "shop" / name / source.schema.table.path) == 1
    assert first.apply(lake).skipped


def _rows(folder: Path) -> Any:
    return DeltaTable(str(folder)).to_pyarrow_table().num_rows
