"""Windows whose keys cannot be in the mirror: appended without Spark, and only then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, TableFeatures

from cdc_core.config import LakeConfig
from cdc_core.delta.appending import write_file
from cdc_core.errors import CommitConflictError
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.lake.lake import Lake
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column, TableSchema
from tests.lake.who_merges import SparkAskedError, no_spark
from tests.stage.landed import Row, Source, Window, number, varchar


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake in which only what needs no Spark works."""
    return DeltaLake(
        LakeConfig(path=str(tmp_path / "lake"), rewrite_mirrors_up_to_mb=0), "shop", spark=no_spark
    )


def _plain(*key: Column) -> TableSchema:
    names = tuple(column.name for column in key)
    return TableSchema(TableId("SHOP", "PLAIN"), Scn(1), (*key, varchar("NAME")), names)


BY_NUMBER = _plain(number("ID", 9, 0))


def _with_chunk(folder: Path, lake: Lake, schema: TableSchema, *rows: Row) -> Source:
    """A table whose mirror holds these rows, by one chunk; windows follow."""
    source = Source(folder / "landing", schema)
    tx = source.begin()
    for row in rows:
        tx.insert(row)
    tx.commit()
    source.chunk().apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []
    return source


def _window(source: Source, *rows: Row) -> Window:
    tx = source.begin()
    for row in rows:
        tx.insert(row)
    tx.commit()
    return source.cut()


def _named(*ids: int) -> list[Row]:
    return [{"ID": at, "NAME": f"name {at}"} for at in ids]


def test_rows_with_new_keys_are_appended_as_they_are_left_by_the_window(
    tmp_path: Path, lake: Lake, mirror: Callable[..., list[Row]]
) -> None:
    """Inserted, changed, deleted, moved to another new key; above all files, and later between two of them."""
    source = _with_chunk(tmp_path, lake, BY_NUMBER, *_named(1, 2, 3))
    tx = source.begin()
    kept, gone, moved = (tx.insert(row) for row in _named(20, 21, 22))
    tx.update(kept, {"NAME": "changed"})
    tx.delete(gone)
    tx.update(moved, {"ID": 23})
    tx.commit()
    first = source.cut()
    done = first.apply(lake, read_scn=source.low - 10**6)
    assert (done.changes, done.rows_inserted, done.rows_updated, done.rows_deleted) == (6, 2, 0, 0)
    assert mirror(BY_NUMBER, hidden=True)[-1]["_cdc_commit_scn"] > first.manifest.window.scn_low
    second = _window(source, *_named(10, 11))
    assert second.apply(lake, position=first.scn_high).rows_inserted == 2
    assert mirror(BY_NUMBER) == source.state(second.scn_high)
    assert lake.table(BY_NUMBER.table).position().mirror_scn == second.scn_high
    assert first.apply(lake).skipped
    assert second.apply(lake).skipped
    taken = lake.table(BY_NUMBER.table).applied().windows
    assert [taken[one.scn_high].rows_inserted for one in (first, second)] == [2, 2]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda tx, old: tx.update(old, {"NAME": "changed"}), id="a-row-changes"),
        pytest.param(lambda tx, old: tx.delete(old), id="a-row-goes"),
        pytest.param(lambda tx, old: tx.update(old, {"ID": 30}), id="a-row-gets-a-new-key"),
        pytest.param(lambda tx, _old: tx.insert(_named(2)[0]), id="a-key-lies-between"),
    ],
)
def test_a_key_that_may_be_there_is_merged(
    tmp_path: Path, lake: Lake, change: Callable[..., object]
) -> None:
    source = _with_chunk(tmp_path, lake, BY_NUMBER, *_named(1, 3))
    tx = source.begin()
    tx.insert(_named(20)[0])
    change(tx, next(iter(source.rows)))
    tx.commit()
    with pytest.raises(SparkAskedError):
        source.cut().apply(lake)


@pytest.mark.parametrize(
    ("schema", "there", "new"),
    [
        pytest.param(_plain(varchar("ID")), {"ID": "a"}, {"ID": "b"}, id="texts"),
        pytest.param(_plain(number("ID", 30, 0)), {"ID": 1}, {"ID": 2}, id="decimals"),
    ],
)
def test_bounds_of_other_keys_are_not_trusted(
    tmp_path: Path, lake: Lake, schema: TableSchema, there: Row, new: Row
) -> None:
    source = _with_chunk(tmp_path, lake, schema, {**there, "NAME": "n"})
    with pytest.raises(SparkAskedError):
        _window(source, {**new, "NAME": "n"}).apply(lake)


def test_one_key_column_is_enough(
    tmp_path: Path, lake: Lake, mirror: Callable[..., list[Row]]
) -> None:
    schema = _plain(varchar("SHOP"), number("ID", 9, 0))
    source = _with_chunk(tmp_path, lake, schema, {"SHOP": "a", "ID": 1, "NAME": "n"})
    window = _window(source, {"SHOP": "a", "ID": 2, "NAME": "n"})
    window.apply(lake)
    assert mirror(schema) == source.state(window.scn_high)


def test_what_was_gone_when_the_table_was_read_stays_gone(
    tmp_path: Path, lake: Lake, mirror: Callable[..., list[Row]]
) -> None:
    """Changes up to the SCN that a whole snapshot covers bring no key back."""
    source = _with_chunk(tmp_path, lake, BY_NUMBER, *_named(1))
    tx = source.begin()
    tx.insert(_named(10)[0])
    covered = tx.commit()
    tx = source.begin()
    tx.insert(_named(11)[0])
    tx.commit()
    source.cut().apply(lake, covered_scn=covered)
    assert [row["ID"] for row in mirror(BY_NUMBER)] == [1, 11]


def test_a_window_that_leaves_nothing_is_merged(tmp_path: Path, lake: Lake) -> None:
    """MERGE's commit says that the mirror took it; a commit of no file would not."""
    source = _with_chunk(tmp_path, lake, BY_NUMBER, *_named(1))
    tx = source.begin()
    tx.delete(tx.insert(_named(10)[0]))
    tx.commit()
    with pytest.raises(SparkAskedError):
        source.cut().apply(lake)


def test_a_mirror_with_features_that_delta_rs_may_not_know_is_merged(
    tmp_path: Path, lake: Lake
) -> None:
    source = _with_chunk(tmp_path, lake, BY_NUMBER, *_named(1))
    path = tmp_path / "lake" / "shop" / "mirror" / BY_NUMBER.table.path
    DeltaTable(str(path)).alter.add_feature(
        [TableFeatures.DeletionVectors], allow_protocol_versions_increase=True
    )
    with pytest.raises(SparkAskedError):
        _window(source, *_named(10)).apply(lake)


def test_a_key_that_another_writer_brings_meanwhile_stops_the_append(
    tmp_path: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = _with_chunk(tmp_path, lake, BY_NUMBER, *_named(1))
    path = str(tmp_path / "lake" / "shop" / "mirror" / BY_NUMBER.table.path)

    def slow(*arguments: Any) -> Any:
        file = write_file(*arguments)
        DeltaTable(path).alter.set_table_properties({"delta.checkpointInterval": "20"})
        return file

    monkeypatch.setattr("cdc_core.lake.mirror.append_only.write_file", slow)
    with pytest.raises(CommitConflictError):
        _window(source, *_named(10)).apply(lake)
