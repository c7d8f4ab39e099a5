"""Columns that are renamed to names of others, in Delta: each keeps its values, and rows that do not carry one say which."""

from __future__ import annotations

import shutil
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from cdc_core.schema.table import Column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cdc_core.lake.lake import Lake
    from cdc_core.landing.manifest import SchemaChange
    from cdc_core.schema.table import TableSchema
    from tests.lake.conftest import Columns
    from tests.stage.landed import Row, Source

pytestmark = pytest.mark.spark


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
            lake.prepare_schema(change, fence=fence)
        except KeyboardInterrupt:
            continue
        return crashes
    raise AssertionError("the tables never follow")


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
    scns = {one.name: one.scn for one in two.schema.displaced}
    right_, left_ = f"R__since_{scns['R']}", f"L__since_{scns['L']}"
    lists = [one["_cdc_absent"] for one in changelog(two.schema)][-2:]
    assert lists == [[left_], [right_, left_]]

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
        lake.prepare_schema(one)
    assert _follow(lake, replaced[-1]) >= 5
    windows[-1].apply(lake, earlier=versions[:-1])
    assert mirror(two.schema) == two.state(windows[-1].scn_high)
    held = two.schema.keeping(versions[-3])
    kept = f"L__dropped_{two.schema.scn_from}"
    assert held.column_names == ("ID", "R", "AMOUNT", kept, "L")
    assert {one[kept] for one in mirror(held)} >= {"r2", "r3", "text 3"}

    assert all(one.replay(lake).skipped for one in windows)
    before = mirror(held, hidden=True)
    shutil.rmtree(path)
    lake.rebuild_mirror(held.table, two.schema)
    assert mirror(held, hidden=True) == before


def test_a_chunk_may_be_several_renames_ahead(
    open_lake: Callable[..., Lake],
    two: Source,
    mirror: Callable[..., list[Row]],
    changelog: Callable[[TableSchema], list[Row]],
    tmp_path: Path,
) -> None:
    """The mirror's names are the same before a swap and behind it: the tables follow each rename alone, whatever a crash leaves."""
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
    scns = {one.name: one.scn for one in two.schema.displaced}
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
    left_, right_ = (f"{name}__since_{scns[name]}" for name in "RL")
    lists = [one["_cdc_absent"] for one in changelog(two.schema)][-2:]
    assert lists == [[left_, right_], [right_]]
    assert mirror(two.schema) == two.state(window.scn_high)
    shutil.rmtree(tmp_path / "lake" / "shop" / "mirror" / first.table.path)
    lake.rebuild_mirror(first.table, two.schema)
    assert [(row["ID"], row["R"], row["L"]) for row in mirror(last.schema)] == [
        (1, "l1", "r"), (2, "l2", "r2")
    ]  # fmt: skip
    assert sorted(name.rstrip("0123456789") for name in changelog(two.schema)[0]["after"]) == [
        "AMOUNT", "ID", "L", "L__renamed_", "R", "R__renamed_", "X"
    ]  # fmt: skip
    gone = two.ddl((key, replace(left, name="R"), amount))
    replaced = two.ddl((key, left, amount), (("R", "L"),))
    for one_ddl in (gone, replaced):
        lake.prepare_schema(one_ddl)
    kept, held = f"L__dropped_{replaced.scn}", two.schema.keeping(last.schema)
    assert [(row["L"], row[kept]) for row in mirror(held)] == [("l1", "r"), ("l2", "r2")]
