"""Columns that are dropped, renamed, swapped and added again, in Delta: each has one field of the
change log for life, and its present name in the mirror."""

from __future__ import annotations

import shutil
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from cdc_core.delta.history import read_log
from cdc_core.schema.table import Column
from tests.stage.landed import prepare_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cdc_core.lake.lake import Lake
    from cdc_core.landing.manifest import SchemaChange
    from cdc_core.schema.table import TableSchema
    from tests.lake.conftest import Columns
    from tests.stage.landed import Row, Source


def _clob(name: str) -> Column:
    return Column(name, "CLOB", 4000, 0, None, None, nullable=True)


@pytest.fixture
def two(make_source: Callable[..., Source], columns: type[Columns], source: Source) -> Source:
    """A table with two CLOBs, which other changes do not carry."""
    made = (columns.number("ID", 10, 0), _clob("L"), columns.number("AMOUNT", 12, 2), _clob("R"))
    return make_source(replace(source.schema, columns=made))


def _follow(lake: Lake, change: SchemaChange) -> int:
    """Let the tables follow a DDL, with a crash before each of their commits; how many that were."""
    for crashes in range(100):
        calls = iter(range(100))

        def fence(calls: Iterator[int] = calls) -> None:
            if next(calls) == 1:
                raise KeyboardInterrupt

        try:
            prepare_schema(lake, change, fence=fence)
        except KeyboardInterrupt:
            continue
        return crashes
    raise AssertionError("the tables never follow")


def _fields(folder: Path, schema: TableSchema) -> dict[str, str]:
    """The fields of the change log's images, with their comments: a plain table, which delta-rs
    reads whole."""
    path = str(folder / "lake" / "shop" / "changelog" / schema.table.path)
    table, log = DeltaTable(path), read_log(path)
    names = table.to_pyarrow_table().schema.field("after").type
    assert log is not None
    assert [one.name for one in names] == list(log.fields["before"])
    return {one.name: log.comments["after"].get(one.name, "") for one in names}


@pytest.mark.spark
@pytest.mark.slow
def test_dropped_and_renamed_columns_give_their_names_away(
    open_lake: Callable[..., Lake],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    columns: type[Columns],
    changelog: Callable[[TableSchema], list[Row]],
    tmp_path: Path,
) -> None:
    """A CLOB that changes do not carry is dropped, a text renamed, and both names are given to new
    columns, one with a default: a crash before each commit, changes of key, rows of all versions in
    one window, a chunk from before, replays, a lost mirror; then the policy drops columns, and the
    name comes once more."""
    lake, first = open_lake(), source.schema
    path = tmp_path / "lake" / "shop" / "mirror" / first.table.path
    tx = source.begin()
    ids = {i: tx.insert(row(i, f"name {i}", note=f"note {i}")) for i in range(1, 8)}
    tx.commit()
    source.chunk(keep=lambda r: r["ID"] < 7).apply(lake)
    late = source.chunk(keep=lambda r: r["ID"] == 7, number=2, scn=source.scn)
    source.low, source.pending, source.ended = source.scn, [], []
    tx = source.begin()
    tx.update(ids[1], {"ID": 10})
    tx.update(ids[2], {"AMOUNT": Decimal("22.00")})
    tx.commit()
    earliest = source.cut()
    earliest.apply(lake)

    tx = source.begin()
    tx.update(ids[2], {"ID": 20})
    tx.update(ids[3], {"NOTE": "its last note"})
    tx.commit()
    key, name, amount, _ = first.columns
    title, note = replace(name, name="TITLE"), columns.varchar("NOTE", default="'none'")
    changes = [source.ddl((key, name, amount))]
    tx = source.begin()
    tx.update(ids[4], {"ID": 40})
    tx.commit()
    changes.append(source.ddl((key, title, amount), (("NAME", "TITLE"),)))
    changes.append(source.ddl((key, title, amount, note)))
    tx = source.begin()
    tx.update(ids[5], {"NOTE": "its new note", "TITLE": "its title"})
    tx.commit()
    changes.append(source.ddl((key, title, amount, note, columns.number("NAME", 9, 0))))
    tx = source.begin()
    tx.update(ids[6], {"NAME": 66, "ID": 60})
    tx.insert({"ID": 11, "TITLE": "new", "AMOUNT": None, "NOTE": "own", "NAME": 11})
    tx.commit()
    window, newest = source.cut(*changes), source.schema
    kept = "NOTE__dropped"
    assert sum(_follow(lake, change) for change in changes) >= 10
    late.apply(lake)
    versions = [first, *(change.schema for change in changes)]
    window.apply(lake, earlier=versions)
    assert mirror(newest) == source.state(window.scn_high)
    held = newest.keeping(first)
    assert held.column_names == ("ID", "TITLE", "AMOUNT", kept, "NOTE", "NAME")
    assert {one["ID"]: one[kept] for one in mirror(held)} == {
        10: "note 1", 20: "note 2", 3: "its last note", 40: None, 5: None, 60: None, 7: "note 7", 11: None
    }  # fmt: skip

    assert [one.replay(lake).skipped for one in (earliest, window)] == [True, True]
    before = mirror(held, hidden=True)
    shutil.rmtree(path)
    lake.table(held.table).rebuild_mirror(newest)
    assert mirror(held, hidden=True) == before
    logged = {one["after"]["NAME__2"] for one in changelog(held) if one["after"]}
    assert logged == {None, 66, 11}, "the change log has the old column under the name"
    assert _fields(tmp_path, first) == {
        "ID": "", "NAME": "Oracle column TITLE", "AMOUNT": "", "NOTE": "dropped; NOTE__dropped in the mirror",
        "NOTE__2": "Oracle column NOTE", "NAME__2": "Oracle column NAME",
    }  # fmt: skip

    change = source.ddl((key, title, amount, newest.column("NAME")))
    tx = source.begin()
    tx.update(ids[5], {"ID": 50})
    tx.commit()
    again = source.ddl((*change.schema.columns, columns.varchar("NOTE", default="'as now'")))
    tx = source.begin()
    tx.update(ids[7], {"NOTE": "the third"})
    tx.commit()
    last = source.cut(change, again)
    for one in (change, again):
        prepare_schema(lake, one)
    last.apply(lake, earlier=[*versions, change.schema])
    assert mirror(again.schema) == source.state(last.scn_high)
    names = [field.name for field in DeltaTable(str(path)).schema().fields]
    assert {"TITLE", "NAME", "NOTE", "NOTE__dropped", "NOTE__2__dropped"} <= {*names}
    assert [one.replay(lake).skipped for one in (earliest, window, last)] == [True] * 3


@pytest.mark.spark
@pytest.mark.slow
def test_two_columns_swap_their_names_and_one_is_replaced(
    open_lake: Callable[..., Lake],
    two: Source,
    columns: type[Columns],
    mirror: Callable[..., list[Row]],
    changelog: Callable[[TableSchema], list[Row]],
    tmp_path: Path,
) -> None:
    """Swapped through a third name with rows of all versions in one window, then one dropped and another renamed onto it: crashes before each
    commit, moved keys whose CLOBs no change carries, a chunk from before, a lost mirror."""
    lake, first = open_lake(), two.schema
    path = tmp_path / "lake" / "shop" / "mirror" / first.table.path
    key, left, amount, right = first.columns
    tx = two.begin()
    ids = {
        i: tx.insert({"ID": i, "L": f"l{i}", "AMOUNT": Decimal("1.00"), "R": f"r{i}"})
        for i in range(1, 10)
    }
    tx.commit()
    two.chunk(keep=lambda r: r["ID"] < 9).apply(lake)
    late = two.chunk(keep=lambda r: r["ID"] == 9, number=2, scn=two.scn)
    two.low, two.pending, two.ended = two.scn, [], []
    moved = iter(range(100, 200))

    def change(i: int, **values: object) -> None:
        tx = two.begin()
        tx.update(ids[i], {"AMOUNT": Decimal(next(moved)), **values})
        tx.update(ids[8], {"ID": next(moved)})
        tx.commit()

    change(1)
    change(2, L="of the first left")
    windows = [two.cut()]
    windows[0].apply(lake)

    third = replace(left, name="X")
    versions, changes = [first], []
    for layout, pair in (
        ((key, third, amount, right), ("L", "X")),
        ((key, third, amount, replace(right, name="L")), ("R", "L")),
        ((key, replace(left, name="R"), amount, replace(right, name="L")), ("X", "R")),
    ):
        changes.append(two.ddl(layout, (pair,)))
        versions.append(two.schema)
        change(3)
        change(4, **{layout[3].name: f"text {len(changes)}"})
    windows.append(two.cut(*changes))
    assert sum(_follow(lake, one) for one in changes) >= 9
    late.apply(lake)
    windows[-1].apply(lake, earlier=versions[:-1])
    assert mirror(two.schema) == two.state(windows[-1].scn_high)
    assert two.schema.column_names == ("ID", "R", "AMOUNT", "L")

    change(5, R="right")
    windows.append(two.cut())
    windows[-1].apply(lake, earlier=versions[:-1])
    assert mirror(two.schema) == two.state(windows[-1].scn_high)
    lists = [one["_cdc_absent"] for one in changelog(two.schema)][-2:]
    assert lists == [["R"], ["L", "R"]], "by what they are stored as"

    now = two.schema.columns
    new = columns.varchar("NEW")
    replaced = [two.ddl((*now, new))]
    change(6, NEW="new")
    replaced.append(two.ddl((*(one for one in now if one.name != "L"), new)))
    change(7, NEW="newer")
    renamed = (*(one for one in now if one.name != "L"), replace(new, name="L"))
    replaced.append(two.ddl(renamed, (("NEW", "L"),)))
    change(1, L="newest")
    versions += [one.schema for one in replaced]
    windows.append(two.cut(*replaced))
    for one in replaced[:-1]:
        prepare_schema(lake, one)
    assert _follow(lake, replaced[-1]) >= 3
    windows[-1].apply(lake, earlier=versions[:-1])
    assert mirror(two.schema) == two.state(windows[-1].scn_high)
    held = two.schema.keeping(versions[-3])
    kept = "R__dropped"
    assert held.column_names == ("ID", "R", "AMOUNT", kept, "L")
    assert {one[kept] for one in mirror(held)} >= {"r2", "r3", "text 3"}

    assert all(one.replay(lake).skipped for one in windows)
    before = mirror(held, hidden=True)
    shutil.rmtree(path)
    lake.table(held.table).rebuild_mirror(two.schema)
    assert mirror(held, hidden=True) == before


def test_a_chunk_may_be_several_renames_ahead(
    open_lake: Callable[..., Lake],
    two: Source,
    mirror: Callable[..., list[Row]],
    changelog: Callable[[TableSchema], list[Row]],
    tmp_path: Path,
) -> None:
    """The mirror's names are the same before a swap and behind it: each column is known by what
    files call it, whatever a crash leaves."""
    lake, first = open_lake(), two.schema
    key, left, amount, right = first.columns
    tx = two.begin()
    one = tx.insert({"ID": 1, "L": "l", "AMOUNT": None, "R": "r"})
    tx.commit()
    two.chunk().apply(lake)
    third = replace(left, name="X")
    two.ddl((key, third, amount, right), (("L", "X"),))
    two.ddl((key, third, amount, replace(right, name="L")), (("R", "L"),))
    last = two.ddl((key, replace(left, name="R"), amount, replace(right, name="L")), (("X", "R"),))
    assert _follow(lake, last) >= 9
    tx = two.begin()
    tx.insert({"ID": 2, "R": "l2", "AMOUNT": None, "L": "r2"})
    tx.commit()
    chunk = two.chunk(keep=lambda row: row["ID"] == 2, number=2, snapshot="s2", condition="ID = 2")
    chunk.apply(lake)
    two.low, two.pending, two.ended = two.scn, [], []
    for values in ({"AMOUNT": Decimal("5.00")}, {"R": "l1"}):
        tx = two.begin()
        tx.update(one, values)
        tx.commit()
    window = two.cut()
    window.apply(lake, earlier=[first])
    lists = [one["_cdc_absent"] for one in changelog(two.schema)][-2:]
    assert lists == [["L", "R"], ["R"]]
    assert mirror(two.schema) == two.state(window.scn_high)
    shutil.rmtree(tmp_path / "lake" / "shop" / "mirror" / first.table.path)
    lake.table(first.table).rebuild_mirror(two.schema)
    assert [(row["ID"], row["R"], row["L"]) for row in mirror(last.schema)] == [
        (1, "l1", "r"), (2, "l2", "r2")
    ]  # fmt: skip
    assert _fields(tmp_path, first) == {
        "ID": "", "L": "Oracle column R", "AMOUNT": "", "R": "Oracle column L"
    }  # fmt: skip
    gone = two.ddl((key, replace(left, name="R"), amount))
    replaced = two.ddl((key, left, amount), (("R", "L"),))
    for one_ddl in (gone, replaced):
        prepare_schema(lake, one_ddl)
    kept, held = "R__dropped", two.schema.keeping(last.schema)
    assert [(row["L"], row[kept]) for row in mirror(held)] == [("l1", "r"), ("l2", "r2")]
