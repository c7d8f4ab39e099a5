"""Columns that come under the names of others, in Delta: what was there has another name, by column mapping, before the new one has its own."""

from __future__ import annotations

import dataclasses
import shutil
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from cdc_core.errors import SchemaMismatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cdc_core.lake.lake import Lake
    from cdc_core.schema.table import TableSchema
    from tests.lake.conftest import Columns
    from tests.stage.landed import Row, Source

pytestmark = pytest.mark.spark


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
    """A CLOB that changes do not carry is dropped, a text renamed, and both names are given to new columns, one with a default: a crash before
    each commit, changes of key, rows of all versions in one window, a chunk from before, replays, a lost mirror; then the policy drops
    columns, and the name comes once more."""
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
    title, note = dataclasses.replace(name, name="TITLE"), columns.varchar("NOTE", default="'none'")
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
    kept = newest.dropped[0]
    assert kept == f"NOTE__dropped_{changes[2].schema.scn_from}"
    assert newest.displaced[1].kept == f"NAME__renamed_{newest.scn_from}"
    commits = 0
    for change in changes:
        while True:
            calls = iter(range(100))

            def fence(calls: Iterator[int] = calls) -> None:
                if next(calls) == 1:
                    raise KeyboardInterrupt

            try:
                lake.prepare_schema(change, fence=fence)
                break
            except KeyboardInterrupt:
                commits += 1
    assert commits >= 10
    late.apply(lake)
    versions = [first, *(change.schema for change in changes)]
    window.apply(lake, earlier=versions)
    assert mirror(newest) == source.state(window.scn_high)
    held = newest.keeping(first.under_names_of(newest))
    assert held.column_names == ("ID", "TITLE", "AMOUNT", kept, "NOTE", "NAME")
    assert {one["ID"]: one[kept] for one in mirror(held)} == {
        10: "note 1", 20: "note 2", 3: "its last note", 40: None, 5: None, 60: None, 7: "note 7", 11: None
    }  # fmt: skip

    assert [one.replay(lake).skipped for one in (earliest, window)] == [True, True]
    before = mirror(held, hidden=True)
    shutil.rmtree(path)
    lake.rebuild_mirror(held.table, newest)
    assert mirror(held, hidden=True) == before
    logged = {one["after"]["NAME"] for one in changelog(held) if one["after"]}
    assert logged == {None, 66, 11}, "the change log has the new column under the name"

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
        lake.prepare_schema(one, drops_columns=True)
    last.apply(lake, earlier=[*versions, change.schema], drops_columns=True)
    assert mirror(again.schema) == source.state(last.scn_high)
    names = [field.name for field in DeltaTable(str(path)).schema().fields]
    assert sorted(names) == sorted(
        ["ID", "TITLE", "AMOUNT", "NAME", "NOTE", "_cdc_commit_scn", "_cdc_ordinal"]
    )
    assert [one.replay(lake).skipped for one in (earliest, window, last)] == [True] * 3


def test_a_chunk_that_was_read_ahead_stops_the_table(
    open_lake: Callable[..., Lake],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
) -> None:
    """A chunk that was read behind a new column and taken for rows of the old one: the Delta tables do not follow, and stay as they are."""
    lake, first = open_lake(), source.schema
    tx = source.begin()
    tx.insert(row(1, note="of the new column"))
    tx.commit()
    source.chunk().apply(lake)
    before = mirror(first)
    *others, note = first.columns
    dropped = source.ddl(tuple(others))
    lake.prepare_schema(dropped)
    taken = source.ddl((*others, note))
    with pytest.raises(SchemaMismatchError, match="took the name of another one"):
        lake.prepare_schema(taken, read_scn=taken.scn)
    assert mirror(first) == before
    lake.prepare_schema(taken, read_scn=taken.scn - 1)
    lake.prepare_schema(taken, read_scn=taken.scn)
