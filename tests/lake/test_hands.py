"""What people do to the Delta tables by hand; no Spark is needed to notice."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from cdc_core.config import LakeConfig
from cdc_core.delta.appending import write_file
from cdc_core.errors import LakeError
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.lake.lake import Lake
from cdc_core.stage.layout import change_schema
from tests.stage.landed import Source, orders_schema


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return DeltaLake(LakeConfig(path=str(tmp_path / "lake")), "shop")


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A table of three rows, and a window that changes one."""
    made = Source(tmp_path / "landing", orders_schema())
    first = made.begin()
    for key in range(3):
        first.insert({"ID": key, "NAME": "n", "AMOUNT": None, "NOTE": None})
    first.commit()
    return made


def ids(path: str) -> list[Any]:
    found = QueryBuilder().register("t", DeltaTable(path)).execute('select "ID" from t').read_all()
    return sorted(map(int, pa.table(found)["ID"].to_pylist()))


def folder(tmp_path: Path, role: str) -> str:
    return str(tmp_path / "lake" / "shop" / role / "shop.orders")


def test_a_mirror_that_somebody_dropped_stops_its_table(
    lake: Lake, source: Source, tmp_path: Path
) -> None:
    """The change log is right, and the error says which command writes the mirror anew."""
    source.chunk().apply(lake)
    shutil.rmtree(folder(tmp_path, "mirror"))
    change = source.begin()
    change.insert({"ID": 9, "NAME": "n", "AMOUNT": None, "NOTE": None})
    change.commit()
    with pytest.raises(LakeError, match="mirror") as caught:
        source.cut().apply(lake, position=source.scn - 2)
    assert "redolake table rebuild" in caught.value.hint


@pytest.mark.parametrize("role", ["changelog", "mirror"])
def test_a_delta_table_that_somebody_dropped_is_not_begun_again_without_its_rows(
    lake: Lake, source: Source, tmp_path: Path, role: str
) -> None:
    """Neither by a window nor by a chunk of a later snapshot; the first chunk of a first snapshot makes both."""
    source.chunk().apply(lake)
    position = source.scn
    dropped = Path(folder(tmp_path, role))
    shutil.rmtree(dropped)
    change = source.begin()
    change.insert({"ID": 9, "NAME": "n", "AMOUNT": None, "NOTE": None})
    change.commit()
    again, window = source.chunk(snapshot="s2", keep=lambda row: row["ID"] < 2), source.cut()
    for step in (window, again):
        with pytest.raises(LakeError, match="does not exist") as caught:
            step.apply(lake, position=position)
        assert "`redolake table re" in caught.value.hint
        assert not dropped.exists()


def test_an_older_generation_changes_nothing_of_a_newer_one(
    lake: Lake, source: Source, tmp_path: Path
) -> None:
    """A process that serves the source from an older metadata store meets tables that were read anew since: chunks and windows alike."""
    source.chunk().apply(lake, generation=2)
    change = source.begin()
    change.insert({"ID": 9, "NAME": "n", "AMOUNT": None, "NOTE": None})
    change.commit()
    again, window = source.chunk(snapshot="s0"), source.cut()
    tables = [DeltaTable(folder(tmp_path, role)) for role in ("changelog", "mirror")]
    versions = [table.version() for table in tables]
    with pytest.raises(LakeError, match="a later snapshot has replaced") as caught:
        again.apply(lake, generation=1)
    assert (caught.value.facts["generation"], caught.value.facts["found"]) == (1, 2)
    for position in (None, window.manifest.window.scn_low):
        with pytest.raises(LakeError, match="a later snapshot has replaced"):
            window.apply(lake, generation=1, position=position)
    for table, version in zip(tables, versions, strict=True):
        table.update_incremental()
        assert table.version() == version


def test_vacuum_in_between_takes_nothing_that_counts(
    lake: Lake, source: Source, tmp_path: Path
) -> None:
    """It removes what a crash left behind before its commit, and files that no version needs."""
    source.chunk(number=1, keep=lambda row: row["ID"] < 2).apply(lake)
    changelog = folder(tmp_path, "changelog")
    left = write_file(
        changelog, change_schema(source.schema), DeltaTable(changelog).to_pyarrow_table().to_batches(), ["_cdc_window"]
    )  # fmt: skip
    assert left is not None
    for role in ("changelog", "mirror"):
        table = DeltaTable(folder(tmp_path, role))
        table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert not (Path(changelog) / left.name).exists()
    assert ids(folder(tmp_path, "mirror")) == [0, 1]
    source.chunk(number=2, scn=source.scn, keep=lambda row: row["ID"] == 2).apply(lake)
    assert ids(folder(tmp_path, "mirror")) == [0, 1, 2]
