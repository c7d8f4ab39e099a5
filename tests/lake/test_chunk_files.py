"""A chunk's two files are written side by side, and committed one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from cdc_core.config import LakeConfig
from cdc_core.errors import FencedError
from cdc_core.lake.delta_lake import DeltaLake
from tests.stage.landed import Source, order, orders_schema


def _files(folder: Path) -> int:
    return len(list(folder.glob("*.parquet")))


@pytest.mark.parametrize("refused", [3, 4], ids=["the-change-log-s-commit", "the-mirror-s-commit"])
def test_a_commit_that_is_refused_leaves_a_chunk_to_be_repeated(
    tmp_path: Path, refused: int
) -> None:
    """The change log is committed first; what no commit will name goes. The first two commits create the tables."""
    lake = DeltaLake(LakeConfig(path=str(tmp_path / "lake")), "shop")
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


def _rows(folder: Path) -> Any:
    return DeltaTable(str(folder)).to_pyarrow_table().num_rows
