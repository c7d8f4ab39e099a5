"""Commits that come to light after their windows: their changes get where they belong, whatever newer ones did meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from cdc_core.errors import CdcError, RowsGoneError
from cdc_core.lake.apply.truncation import Truncation
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.lake.side_tables.quarantine import QuarantineTable
from cdc_core.model.partition_rows import PartitionRows
from cdc_core.stage.quarantine import QUARANTINE_SCHEMA
from tests.delta.vectors import with_vectors
from tests.lake.who_merges import BY_BOTH
from tests.stage.landed import Row, Source, Window

READ_AT = 100


@pytest.fixture
def landed(
    open_lake: Callable[..., DeltaLake],
    source: Source,
    row: Callable[..., Row],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> tuple[Window, Window]:
    """A lake that took two windows, and the third, which brings a transaction of the second; by parameter, in a mirror of which rows are marked as deleted."""
    lake, is_marked = open_lake(), getattr(request, "param", False)
    others = range(100, 160) if is_marked else ()
    tx = source.begin()
    rid = {key: tx.insert(row(key, "first")) for key in (1, 2, 3, 4, 7, *others)}
    tx.commit()
    source.cut().apply(lake, position=None)
    if is_marked:
        with_vectors(str(_mirror(tmp_path / "lake", source.schema)))

    late = source.begin()
    late.insert(row(9, "came late"))
    late.insert(row(6, "came late, and is gone"))
    late.update(rid[1], {"NAME": "came late"})
    late.delete(rid[2])
    late.update(rid[3], {"NOTE": "a LOB that came late"})
    late.update(rid[4], {"ID": 40})
    late.commit()
    hidden = source.hide(late)
    newer = source.begin()
    newer.update(rid[1], {"NAME": "newer"})
    newer.delete(next(at for at, one in source.rows.items() if one["ID"] == 6))
    newer.update(rid[3], {"ID": 30})
    newer.update(rid[7], {"NAME": "newer"})
    newer.commit()
    second = source.cut()
    second.apply(lake)

    source.show(hidden)
    last = source.begin()
    last.update(rid[7], {"NAME": "last"})
    last.commit()
    return second, source.cut()


def _mirror(folder: Path, schema: Any) -> Path:
    return folder / "shop" / "mirror" / str(schema.table.path)


def rows(folder: Path, schema: Any) -> list[dict[str, Any]]:
    """The mirror's rows in key order, read by delta-rs."""
    table = DeltaTable(str(_mirror(folder, schema)))
    listed = ", ".join(f'"{name}"' for name in schema.column_names)
    found = QueryBuilder().register("t", table).execute(f"select {listed} from t").read_all()
    return sorted(pa.table(found).to_pylist(), key=lambda one: str(one["ID"]).zfill(30))


@pytest.mark.parametrize("open_lake", BY_BOTH, indirect=True)
@pytest.mark.parametrize("landed", [False, True], ids=["plain", "marked"], indirect=True)
def test_a_commit_that_comes_late_is_applied_where_it_belongs(
    landed: tuple[Window, Window],
    open_lake: Callable[..., DeltaLake],
    source: Source,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    second, third = landed
    folder = tmp_path / "lake"
    assert rows(folder, source.schema) != source.state(second.scn_high), "nothing hidden"
    lake = open_lake()
    third.apply(lake, late_above=READ_AT)
    assert rows(folder, source.schema) == source.state(third.scn_high)
    assert third.apply(lake, late_above=READ_AT).skipped
    assert lake.table(third.schema.table).replay_window(third.manifest, third.schema).skipped
    vectors = [*_mirror(folder, source.schema).glob("deletion_vector_*.bin")]
    assert len(vectors) == (2 if "marked" in request.node.callspec.id else 0)


@pytest.mark.parametrize("open_lake", BY_BOTH, indirect=True)
def test_what_meets_rows_of_a_late_commit_waits_for_it(
    open_lake: Callable[..., DeltaLake], source: Source, row: Callable[..., Row], tmp_path: Path
) -> None:
    """A key that came again before its late delete; a change of a late row that lacks the LOB. The window stops until it is known
    which later one has what it lacks."""
    lake = open_lake()
    tx = source.begin()
    rid = {key: tx.insert(row(key, "first")) for key in (1, 2)}
    tx.commit()
    source.cut().apply(lake, position=None)
    late = source.begin()
    late.delete(rid[2])
    nine = late.insert(row(9, "came late"))
    late.commit()
    hidden = source.hide(late)
    newer = source.begin()
    newer.insert(row(2, "again"))
    newer.update(nine, {"NAME": "newer"})
    newer.update(rid[1], {"NAME": "newer"})
    newer.commit()
    second = source.cut()
    with pytest.raises(CdcError, match=r"an insert finds a row|does not carry all columns"):
        second.apply(lake)
    source.show(hidden)
    third = source.cut()
    second.apply(lake, is_inexact=True)
    third.apply(lake, late_above=READ_AT)
    assert rows(tmp_path / "lake", source.schema) == source.state(third.scn_high)


@pytest.mark.spark(merges=False)
def test_a_late_commit_from_before_rows_went_with_a_partition_is_refused(
    landed: tuple[Window, Window],
    open_lake: Callable[..., DeltaLake],
    source: Source,
    tmp_path: Path,
) -> None:
    """It may have rows of the partition that the mirror did not have, and nothing would delete them. Of the rows within the bounds, one ends right at
    the upper bound, and a chunk read one behind the DDL: both stay. While a row is in quarantine, nothing goes."""
    second, third = landed
    lake, table = open_lake(), third.schema.table
    emptied = Truncation(
        scn=second.scn_high + 1,
        ordinal=0,
        partitions=(PartitionRows(partition="P", column="ID", low="4", high="30"),),
    )
    source.chunk(scn=emptied.scn, keep=lambda row: row["ID"] == 7).apply(
        lake, position=second.scn_high
    )
    quarantine = QuarantineTable(lake.table(table, 0).work)
    stale = {"_cdc_window": emptied.scn - 1, "_cdc_commit_scn": emptied.scn - 1}
    quarantine.put(pa.Table.from_pylist([stale], QUARANTINE_SCHEMA), emptied.scn - 1)
    with pytest.raises(RowsGoneError, match="in quarantine"):
        lake.table(table).truncate(emptied, third.transactions_paths)
    quarantine.resolve(emptied.scn)
    done = lake.table(table).truncate(emptied, third.transactions_paths)
    assert (done.rows_deleted, done.changes) == (1, 1)
    found, changes = rows(tmp_path / "lake", source.schema), logged(tmp_path / "lake", source)
    assert {one["ID"] for one in found} == {1, 2, 7, 30}
    late = replace(third, manifest=replace(third.manifest, late_scn=emptied.scn - 1))
    with pytest.raises(RowsGoneError, match="a late commit is from before"):
        late.apply(lake, late_above=READ_AT)
    assert rows(tmp_path / "lake", source.schema) == found
    assert logged(tmp_path / "lake", source) == changes


def logged(folder: Path, source: Source) -> int:
    """How many changes the change log has."""
    table = DeltaTable(str(folder / "shop" / "changelog" / source.schema.table.path))
    return int(table.to_pyarrow_table(columns=["_cdc_op"]).num_rows)
