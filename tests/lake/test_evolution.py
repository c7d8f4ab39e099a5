"""Columns that are added while changes go on."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from cdc_core.delta.history import read_log
from cdc_core.errors import ConfigError, SchemaMismatchError
from cdc_core.landing.manifest import SchemaChange
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column
from tests.stage.landed import prepare_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cdc_core.lake.lake import Lake
    from cdc_core.schema.table import TableSchema
    from tests.lake.conftest import Columns
    from tests.stage.landed import Row, Source, Window


def _with(schema: Any, *columns: Any) -> Any:
    return dataclasses.replace(schema, columns=(*schema.columns, *columns), scn_from=Scn(500))


def test_added_columns_are_followed(
    open_lake: Callable[..., Lake],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    columns: type[Columns],
    delta_version: Callable[[TableSchema], int],
) -> None:
    """One column with a default and one without; rows from before, changes around the DDL, a crash in the middle."""
    lake = open_lake()
    tx = source.begin()
    ids = {i: tx.insert(row(i, f"name {i}")) for i in range(1, 6)}
    tx.commit()
    old_schema = source.schema
    source.chunk(keep=lambda r: r["ID"] < 4).apply(lake)
    late = source.chunk(keep=lambda r: r["ID"] >= 4, number=2, scn=source.scn)
    source.low, source.pending, source.ended = source.scn, [], []

    tx = source.begin()
    tx.update(ids[1], {"NAME": "before the DDL"})
    before_ddl = tx.insert(row(10))
    tx.commit()
    added = (
        columns.varchar("STATE", default="'it''s new'"),
        columns.number("WEIGHT", 8, 3),
        columns.number("COUNT", 9, 0, default="0"),
        # The first column of its kind: Delta wants the feature named before it.
        Column("SEEN", "DATE", 7, 0, None, None, nullable=True),
    )
    ddl_scn, ddl_ordinal = source.tick(), source.next_ordinal()
    source.schema = dataclasses.replace(_with(source.schema, *added), scn_from=ddl_scn)
    for rid in source.rows:
        source.rows[rid] |= {"STATE": "it's new", "WEIGHT": None, "COUNT": 0, "SEEN": None}
    for state in source.states.values():
        for known in state.values():
            known |= {"STATE": "it's new", "WEIGHT": None, "COUNT": 0, "SEEN": None}
    tx = source.begin()
    tx.update(ids[2], {"STATE": "changed", "WEIGHT": Decimal("1.250")})
    tx.update(before_ddl, {"COUNT": 7})
    tx.insert({**row(11), "STATE": None, "WEIGHT": None, "COUNT": 1})
    # The row holds no STATE, and the column was there: NULL, not its default.
    tx.insert(
        {**row(12), "STATE": None, "WEIGHT": None, "COUNT": 0}, columns=["ID", "NAME", "COUNT"]
    )
    source.rows[max(source.rows)] |= {"AMOUNT": None, "NOTE": None}
    tx.commit()
    change = SchemaChange(ddl_scn, ddl_ordinal, "alter table …", source.schema)
    window = source.cut(change)

    calls = iter(range(1, 100))

    def fence() -> None:
        if next(calls) == 4:  # both tables are altered, the first default is not filled in yet
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare_schema(lake, change, fence=fence)
    table, altered = source.schema.table, delta_version(source.schema)
    assert lake.table(table).mirror_version_at(ddl_scn) == altered, "no window need come behind it"
    assert lake.table(table).mirror_version_at(ddl_scn - 1) < altered
    prepare_schema(lake, change)
    version = delta_version(source.schema)
    prepare_schema(lake, change)
    prepare_schema(lake, old_schema)
    assert delta_version(source.schema) == version
    late.apply(lake)  # read before the columns were there
    window.apply(lake, earlier=[old_schema])
    assert mirror(source.schema) == source.state(window.scn_high)
    before = mirror(source.schema, hidden=True)
    lake.table(source.schema.table).rebuild_mirror(source.schema)
    assert mirror(source.schema, hidden=True) == before

    tx = source.begin()
    tx.delete(ids[4])
    tx.commit()
    renamed = dataclasses.replace(
        old_schema, columns=(*old_schema.columns[:3], columns.varchar("OTHER"))
    )
    for wrong in (
        renamed,
        dataclasses.replace(source.schema, key=("NAME",), scn_from=Scn(500)),
        _with(source.schema, columns.varchar("state")),
    ):
        with pytest.raises(SchemaMismatchError) as caught:
            prepare_schema(lake, wrong)
        assert caught.value.hint


@pytest.mark.spark
@pytest.mark.slow  # its rule is the one of a column that is left out later
def test_a_dropped_column_stays_and_is_null_in_what_is_written_from_then_on(
    open_lake: Callable[..., Lake],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    columns: type[Columns],
    changelog: Callable[[TableSchema], list[Row]],
) -> None:
    """Rows of three layouts in one window: before a column with a default came, with it, and after another one went."""
    lake = open_lake()
    tx = source.begin()
    ids = {i: tx.insert(row(i, f"name {i}")) for i in range(1, 6)}
    tx.commit()
    first = source.schema
    source.chunk().apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []

    tx = source.begin()
    tx.update(ids[1], {"NAME": "its last name"})
    old = tx.insert(row(10))
    tx.commit()
    added = dataclasses.replace(
        _with(first, columns.number("COUNT", 9, 0, default="7")), scn_from=Scn(source.tick())
    )
    changes = [SchemaChange(added.scn_from, source.next_ordinal(), "alter table …", added)]
    without = tuple(column for column in added.columns if column.name != "NAME")
    dropped = dataclasses.replace(added, columns=without, scn_from=source.tick(), dropped=("NAME",))
    changes += [SchemaChange(dropped.scn_from, source.next_ordinal(), "alter table …", dropped)]
    source.schema = dropped
    for image in (*source.rows.values(), *(i for s in source.states.values() for i in s.values())):
        image.pop("NAME", None)
        image["COUNT"] = 7
    tx = source.begin()
    tx.update(ids[2], {"AMOUNT": Decimal("2.00")})
    tx.update(old, {"COUNT": 8})
    tx.update(ids[3], {"ID": 30})
    tx.delete(ids[4])
    tx.insert({"ID": 11, "AMOUNT": None, "NOTE": None, "COUNT": 1}, columns=["ID", "COUNT"])
    tx.commit()
    window = source.cut(*changes)
    for change in changes:
        prepare_schema(lake, change)
    window.apply(lake, earlier=[first, added, dropped])

    held = dropped.keeping(added)
    assert mirror(dropped) == source.state(window.scn_high)
    names = {one["ID"]: one["NAME"] for one in mirror(held)}
    assert names == {1: "its last name", 2: None, 5: "name 5", 10: None, 11: None, 30: None}
    written = {one["_cdc_columns"] for one in changelog(held)}
    assert written == {len(first.columns), len(held.columns)}
    assert window.replay(lake).skipped
    before = mirror(held, hidden=True)
    lake.table(dropped.table).rebuild_mirror(dropped)
    assert mirror(held, hidden=True) == before
    source.chunk(snapshot="s2").apply(lake)
    assert {one["NAME"] for one in mirror(held)} == {None}


def rename_two(
    source: Source, row: Callable[..., Row], ids: dict[int, str]
) -> tuple[list[SchemaChange], Window]:
    """A window in which the key, a text, and a CLOB, which changes do not carry, are renamed."""
    tx = source.begin()
    tx.update(ids[2], {"AMOUNT": Decimal("2.00")})
    tx.update(ids[3], {"ID": 30})
    old = tx.insert(row(10))
    tx.commit()
    changes = []
    for old_name, name in (("NAME", "TITLE"), ("ID", "NUM"), ("NOTE", "BODY")):
        columns = tuple(
            dataclasses.replace(column, name=name) if column.name == old_name else column
            for column in source.schema.columns
        )
        changes.append(source.ddl(columns, ((old_name, name),)))
    tx = source.begin()
    tx.update(ids[4], {"TITLE": "its new name"})
    tx.update(old, {"AMOUNT": Decimal("3.00")})
    tx.update(ids[2], {"NUM": 20})
    tx.delete(ids[1])
    tx.insert({"NUM": 11, "TITLE": "new", "AMOUNT": None, "BODY": "text"})
    tx.commit()
    return changes, source.cut(*changes)


def filled(source: Source, row: Callable[..., Row], lake: Lake) -> dict[int, str]:
    """ROW_IDs of orders 1 to 5, which a chunk brought; the next window begins behind it."""
    tx = source.begin()
    ids = {i: tx.insert(row(i, f"name {i}")) for i in range(1, 6)}
    tx.commit()
    source.chunk().apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []
    return ids


def test_a_renamed_column_keeps_its_values_in_the_mirror(
    open_lake: Callable[..., Lake],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    delta_version: Callable[[TableSchema], int],
    tmp_path: Path,
) -> None:
    """Both names in the window's redo, and each in the versions of its SCNs; readers that do not know column mapping refuse the mirror."""
    lake, first = open_lake(), source.schema
    ids = filled(source, row, lake)
    changes, window = rename_two(source, row, ids)
    for change in (changes[0], changes[-1]):  # a name alone, then one of the key among others
        prepare_schema(lake, change)
        altered, scn = delta_version(source.schema), change.schema.scn_from
        assert lake.table(first.table).mirror_version_at(scn) == altered, (
            "no window need come behind it"
        )
    scn = changes[0].schema.scn_from
    named = {
        name
        for one in mirror(first, lake.table(first.table).mirror_version_at(scn - 1))
        for name in one
    }
    assert {"ID", "NAME"} <= named, "before it, nothing has its new name"
    window.apply(lake, earlier=[first, *(change.schema for change in changes)])
    assert mirror(source.schema) == source.state(window.scn_high)
    assert window.replay(lake).skipped
    log = read_log(str(tmp_path / "lake" / "shop" / "mirror" / source.schema.table.path))
    assert log is not None
    assert log.properties["redolake.key"] == '["NUM"]'
    plain = DeltaTable(str(tmp_path / "lake" / "shop" / "mirror" / source.schema.table.path))
    assert plain.protocol().min_reader_version == 3
    with pytest.raises(DeltaError):
        plain.to_pyarrow_table()


@pytest.mark.spark
@pytest.mark.slow
def test_a_rename_that_is_cut_short_goes_on_and_the_past_stays_as_it_was(
    open_lake: Callable[..., Lake],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    changelog: Callable[[TableSchema], list[Row]],
) -> None:
    """Redo and a chunk from before, a crash between all commits, replays, rebuild, time travel, values that are purged."""
    lake, first = open_lake(), source.schema
    ids = filled(source, row, lake)
    tx = source.begin()
    tx.update(ids[1], {"NAME": "in its own window"})
    tx.commit()
    earliest = source.cut()
    earliest.apply(lake)
    landed = source.chunk(snapshot="s2", keep=lambda r: r["ID"] == 5)
    changes, window = rename_two(source, row, ids)
    schema = source.schema

    # One commit each: the mirror's columns, the change log's properties and six comments, the
    # mirror's features, the first name.
    for _ in range(10):
        calls = iter(range(100))

        def fence(calls: Iterator[int] = calls) -> None:
            if next(calls) == 1:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            prepare_schema(lake, changes[-1], fence=fence)
    prepare_schema(lake, changes[-1])
    at_first = lake.table(first.table).mirror_version_at(earliest.scn_high)
    assert {one["NAME"] for one in mirror(first, at_first)} >= {"in its own window", "name 2"}
    landed.apply(lake)
    window.apply(lake, earlier=[first, *(change.schema for change in changes)])
    assert mirror(schema) == source.state(window.scn_high)

    assert earliest.replay(lake).skipped
    assert window.replay(lake).skipped
    before = mirror(schema, hidden=True)
    lake.table(schema.table).rebuild_mirror(schema)
    assert mirror(schema, hidden=True) == before
    source.low, source.pending, source.ended = source.scn, [], []
    source.chunk(snapshot="s3").apply(lake)
    assert mirror(schema) == source.state(source.scn)
    tx = source.begin()
    tx.update(ids[5], {"TITLE": "and on"})
    tx.commit()
    last = source.cut()
    last.apply(lake)
    assert mirror(schema) == source.state(last.scn_high)

    rows = changelog(schema)
    names = {one["after"]["NAME"] for one in rows if one["after"]}
    assert names >= {"in its own window", "its new name", "and on"}, "one field for life"
    assert set(lake.table(schema.table).purge_column("TITLE", ("NUM",)))
    images = [one[image] for one in changelog(schema) for image in ("before", "after")]
    assert {image["NAME"] for image in images if image is not None} == {None}


def test_nothing_is_prepared_before_the_first_snapshot(
    open_lake: Callable[..., Lake], source: Source
) -> None:
    lake = open_lake()
    prepare_schema(lake, source.schema)
    assert lake.table(source.schema.table).position().mirror_scn is None


@pytest.mark.spark(merges=False)
def test_a_column_that_is_left_out_later_is_null_from_then_on(
    open_lake: Callable[..., Lake],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    columns: type[Columns],
    changelog: Callable[[TableSchema], list[Row]],
    tmp_path: Path,
) -> None:
    """It stays in both tables; redo that landed with it, chunks that landed with it, and later columns go on."""
    lake = open_lake()
    tx = source.begin()
    ids = {i: tx.insert(row(i, f"secret {i}")) for i in range(1, 5)}
    tx.commit()
    source.chunk().apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []

    tx = source.begin()
    tx.update(ids[1], {"AMOUNT": Decimal("1.00")})
    tx.insert(row(10, "top secret"))
    tx.delete(ids[2])
    tx.commit()
    reduced = source.schema.without(["NAME"])
    window = dataclasses.replace(source.cut(), schema=reduced)
    window.apply(lake)
    names = {one["ID"]: one["NAME"] for one in mirror(source.schema)}
    assert names == {1: None, 3: "secret 3", 4: "secret 4", 10: None}

    grown = _with(reduced, columns.varchar("MORE", default="'m'"))
    prepare_schema(lake, grown)
    assert {one["MORE"] for one in mirror(grown)} == {"m"}
    whole = source.chunk(snapshot="s2")
    dataclasses.replace(whole, manifest=dataclasses.replace(whole.manifest, schema=reduced)).apply(
        lake
    )
    assert {one["NAME"] for one in mirror(source.schema)} == {None}

    statement = {"_cdc_redo_sql": "'a value that the column of the lake does not hold'"}
    DeltaTable(str(tmp_path / "lake/shop/changelog" / source.schema.table.path)).update(statement)
    folders = lake.table(source.schema.table).purge_column("NAME", ("ID",))
    assert [folder.rsplit("/", 2)[1] for folder in folders] == ["mirror", "changelog"]
    images = [one[image] for one in changelog(source.schema) for image in ("before", "after")]
    assert {image["NAME"] for image in images if image is not None} == {None}
    assert {one["_cdc_redo_sql"] for one in changelog(source.schema)} == {None}
    assert lake.table(source.schema.table).purge_column("NOWHERE", ("ID",)) == []
    with pytest.raises(ConfigError, match="key"):
        lake.table(source.schema.table).purge_column("ID", ("ID",))


def test_a_newer_generation_moves_the_older_tables_aside(
    open_lake: Callable[..., Lake],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    tmp_path: Any,
) -> None:
    """A crash between the two leaves one table of each; the next attempt goes on."""
    lake = open_lake()
    tx = source.begin()
    tx.insert(row(1))
    tx.commit()
    source.chunk().apply(lake, generation=1)
    source.schema = dataclasses.replace(source.schema, key=("NAME",), scn_from=Scn(900))
    chunk = source.chunk(snapshot="s2")
    calls = iter(range(1, 100))

    def fence() -> None:
        if next(calls) == 3:  # the change log is of the new generation, the mirror of the old one
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        chunk.apply(lake, generation=2, fence=fence)
    chunk.apply(lake, generation=2)
    folders = sorted(path.parent.name + "/" + path.name for path in tmp_path.glob("lake/shop/*/*"))
    assert folders == [
        "changelog/shop.orders", "changelog/shop.orders.g1", "mirror/shop.orders", "mirror/shop.orders.g1",
    ]  # fmt: skip
    assert len(mirror(source.schema)) == 1
