"""Definitions that the Delta tables follow without Spark, where they are small and plain; and where Spark is asked."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from cdc_core.delta.history import read_log
from cdc_core.landing.manifest import SchemaChange
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column
from tests.lake.who_merges import SparkAskedError, plain_lake
from tests.stage.landed import prepare_schema

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cdc_core.lake.lake import Lake
    from cdc_core.schema.table import TableSchema
    from tests.lake.conftest import Columns
    from tests.stage.landed import Row, Source


def _filled(source: Source, lake: Lake, row: Callable[..., Row]) -> dict[int, Any]:
    tx = source.begin()
    ids = {i: tx.insert(row(i, f"name {i}")) for i in range(1, 21)}
    tx.commit()
    source.chunk(keep=lambda one: one["ID"] < 11).apply(lake)
    source.chunk(keep=lambda one: one["ID"] >= 11, number=2, scn=source.scn).apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []
    return ids


def _added(source: Source, *columns: Column, **values: object) -> SchemaChange:
    """A DDL that adds columns, with what all rows have there then."""
    scn, ordinal = source.tick(), source.next_ordinal()
    source.schema = dataclasses.replace(
        source.schema, columns=(*source.schema.columns, *columns), scn_from=Scn(scn)
    )
    for image in (*source.rows.values(), *(i for s in source.states.values() for i in s.values())):
        image |= values
    return SchemaChange(scn, ordinal, "alter table …", source.schema)


def test_a_key_change_carries_a_column_that_its_file_is_older_than(
    source: Source, row: Callable[..., Row], mirror: Callable[..., list[Row]], tmp_path: Path
) -> None:
    """The update shows neither LOB; the one that was added since is NULL."""
    lake, first = plain_lake(tmp_path), source.schema
    ids = _filled(source, lake, row)
    body = Column("BODY", "CLOB", 4000, 0, None, None, nullable=True)
    change = _added(source, body, BODY=None)
    tx = source.begin()
    tx.update(ids[3], {"ID": 300})
    tx.commit()
    prepare_schema(lake, change)
    window = source.cut(change)
    window.apply(lake, earlier=[first])
    assert mirror(source.schema) == source.state(window.scn_high)


@pytest.mark.parametrize("has_vectors", [False, True], ids=["plain", "with-vectors"])
def test_added_columns_need_no_spark(
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    columns: type[Columns],
    tmp_path: Path,
    *,
    has_vectors: bool,
) -> None:
    """One with a default, one without, and one of a kind that the table had none of; rows from before, some of them marked as deleted."""
    lake, first = plain_lake(tmp_path), source.schema
    ids = _filled(source, lake, row)
    path = str(tmp_path / "lake" / "shop" / "mirror" / first.table.path)
    if has_vectors:
        from tests.delta.vectors import with_vectors

        with_vectors(path)
        tx = source.begin()
        tx.delete(ids[15])
        tx.update(ids[1], {"NAME": "marked"})
        tx.commit()
        source.cut().apply(lake)
        assert '"deletionVector"' in _commits(path)
    change = _added(
        source,
        columns.varchar("STATE", default="'new'"),
        columns.number("WEIGHT", 8, 3),
        Column("SEEN", "DATE", 7, 0, None, None, nullable=True),
        STATE="new",
        WEIGHT=None,
        SEEN=None,
    )
    tx = source.begin()
    tx.update(ids[2], {"STATE": "changed", "WEIGHT": Decimal("1.250")})
    tx.insert({**row(31), "STATE": None, "WEIGHT": None, "SEEN": None})
    tx.commit()
    prepare_schema(lake, change)
    window = source.cut(change)
    window.apply(lake, earlier=[first])
    assert mirror(source.schema) == source.state(window.scn_high)
    log = read_log(path)
    assert log is not None
    assert "timestampNtz" in log.writer_features
    fields = {one.name: one.metadata for one in DeltaTable(path).schema().fields}
    assert fields["WEIGHT"] == {"comment": "NUMBER(8,3)"}


def _commits(path: str) -> str:
    from pathlib import Path

    return "".join(one.read_text() for one in sorted(Path(path, "_delta_log").glob("*.json")))


def test_a_renamed_column_needs_no_spark(
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    columns: type[Columns],
    tmp_path: Path,
) -> None:
    """It brings column mapping; another column takes the name that became free."""
    lake, old = plain_lake(tmp_path), source.schema
    _filled(source, lake, row)
    before = mirror(old)
    kept = tuple(
        dataclasses.replace(one, name="TITLE", stored_as="NAME") if one.name == "NAME" else one
        for one in old.columns
    )
    new = dataclasses.replace(columns.varchar("NAME"), stored_as="NAME__2")
    schema = dataclasses.replace(old, columns=(*kept, new), scn_from=Scn(source.tick()))
    prepare_schema(lake, schema)
    wanted = [{**one, "TITLE": one["NAME"], "NAME": None} for one in before]
    assert mirror(schema) == wanted
    log = read_log(str(tmp_path / "lake" / "shop" / "mirror" / old.table.path))
    assert log is not None
    assert log.is_mapped


@pytest.mark.parametrize("options", [{"rewrite_mirrors_up_to_mb": 0}, {"merge": "spark"}])
def test_spark_fills_a_default_into_what_this_process_may_not_rewrite(
    source: Source,
    row: Callable[..., Row],
    columns: type[Columns],
    tmp_path: Path,
    options: dict[str, object],
) -> None:
    _filled(source, plain_lake(tmp_path), row)
    change = _added(source, columns.varchar("STATE", default="'new'"), STATE="new")
    with pytest.raises(SparkAskedError):
        prepare_schema(plain_lake(tmp_path, **options), change)


def test_spark_alters_a_table_that_asks_for_more(
    source: Source,
    row: Callable[..., Row],
    columns: type[Columns],
    tmp_path: Path,
    delta_version: Callable[[TableSchema], int],
) -> None:
    lake = plain_lake(tmp_path)
    _filled(source, lake, row)
    path = str(tmp_path / "lake" / "shop" / "mirror" / source.schema.table.path)
    DeltaTable(path).alter.add_constraint({"kept": "_cdc_commit_scn > 0"})
    version = delta_version(source.schema)
    with pytest.raises(SparkAskedError):
        prepare_schema(lake, _added(source, columns.varchar("STATE"), STATE=None))
    assert delta_version(source.schema) == version
