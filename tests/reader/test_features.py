"""Mirrors with deletion vectors, as the lake writes them, and lakes on S3 are read like plain ones on a disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pytest

from cdc_core.config import LakeConfig
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.lake.lake import Lake
from cdc_core.lake.side_tables.positions import Positions, TablePosition
from cdc_core.model.templates import DEFAULT_PATHS
from redolake.reader import NotYetError
from redolake.reader import open as open_lake
from tests.delta.vectors import with_vectors
from tests.lake.test_rewriting import _path
from tests.lake.who_merges import no_spark, plain_lake
from tests.landing.s3_process import running_s3_process
from tests.stage.landed import Source, order, orders_schema

TABLE = "SHOP.ORDERS"


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """An empty SHOP.ORDERS."""
    return Source(tmp_path / "landing", orders_schema())


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake in which only what needs no Spark works."""
    return plain_lake(tmp_path)


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


def test_a_mirror_of_which_no_snapshot_read_all_rows_is_refused(
    source: Source, lake: Lake, tmp_path: Path
) -> None:
    """Its log alone looks like that of a whole one."""
    tx = source.begin()
    tx.insert(order(1, "the only row that came by the log"))
    tx.commit()
    scn = _taken(source, lake)
    assert _names(tmp_path, scn) == ["the only row that came by the log"]
    lake.publish(Positions("shop", {TABLE: _position(high=None, is_partial=True)}))
    with pytest.raises(NotYetError, match="no snapshot has read all of its rows"):
        _names(tmp_path, scn)


def _position(*, high: int | None, is_partial: bool = False) -> TablePosition:
    table = orders_schema().table
    return TablePosition(
        state="ready",
        generation=1,
        low=None if high is None else 0,
        high=high,
        mirror=DEFAULT_PATHS.below("mirror", "shop", table),
        changelog=DEFAULT_PATHS.below("changelog", "shop", table),
        history=DEFAULT_PATHS.below("history", "shop", table),
        is_partial=is_partial,
    )


def test_a_lake_on_s3_by_options_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The environment has no credentials, as where an analyst works."""
    with running_s3_process() as server:
        with monkeypatch.context() as writer:
            for name, value in server.environment().items():
                writer.setenv(name, value)
            boto3.client("s3", endpoint_url=server.endpoint).create_bucket(Bucket="lake")
            source = Source(tmp_path / "landing", orders_schema())
            lake = DeltaLake(LakeConfig(path="s3a://lake/of/it"), "shop", spark=no_spark)
            scns = []
            for key in range(3):
                tx = source.begin()
                tx.insert(order(key, f"name {key}"))
                tx.commit()
                scns.append(_taken(source, lake))
            lake.publish(Positions("shop", {TABLE: _position(high=scns[2])}))
        options = server.environment() | {
            "AWS_ENDPOINT_URL": server.endpoint,
            "AWS_ALLOW_HTTP": "true",
        }
        cut = open_lake("s3://lake/of/it", storage_options=options).at()
        assert (cut.scn, [one.version for one in cut.tables()]) == (scns[2], [3])
        table = open_lake("s3://lake/of/it", storage_options=options).table(TABLE)
        names = table.at(scns[1]).select("NAME").ordered('"ID"').to_arrow()["NAME"]
        assert names.to_pylist() == ["name 0", "name 1"]
        assert table.changes(since=scns[1]).to_arrow().num_rows == 1
