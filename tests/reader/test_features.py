"""Mirrors with deletion vectors and with column mapping, as the lake writes them, are read like plain ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cdc_core.lake.lake import Lake
from redolake.reader import open as open_lake
from tests.delta.vectors import with_vectors
from tests.lake.test_rewriting import _lake, _path
from tests.stage.landed import Source, order, orders_schema

TABLE = "SHOP.ORDERS"


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """An empty SHOP.ORDERS."""
    return Source(tmp_path / "landing", orders_schema())


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake in which only what needs no Spark works."""
    return _lake(tmp_path)


def _taken(source: Source, lake: Lake) -> int:
    window = source.cut()
    window.apply(lake)
    return int(window.scn_high)


def _names(tmp_path: Path, scn: int) -> list[Any]:
    rows = open_lake(tmp_path / "lake").table(TABLE).at(scn)
    found: list[Any] = rows.select("NAME").ordered('"ID"').to_arrow()["NAME"].to_pylist()
    return found


def test_a_mirror_with_deletion_vectors(source: Source, lake: Lake, tmp_path: Path) -> None:
    tx = source.begin()
    ids = [tx.insert(order(i, f"name {i}")) for i in range(60)]
    tx.commit()
    first = _taken(source, lake)
    with_vectors(_path(tmp_path))
    tx = source.begin()
    tx.delete(ids[0])
    tx.update(ids[1], {"NAME": "again"})
    tx.commit()
    second = _taken(source, lake)
    assert list(Path(_path(tmp_path)).glob("deletion_vector_*.bin")), "the writer made vectors"
    assert _names(tmp_path, first)[:2] == ["name 0", "name 1"]
    assert _names(tmp_path, second)[:2] == ["again", "name 2"]
    assert len(_names(tmp_path, second)) == 59
