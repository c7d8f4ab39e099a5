"""Columns that Oracle dropped, and that go from the mirror by policy: ``dropped_columns: drop``."""

from __future__ import annotations

import dataclasses
import shutil
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from cdc_core.landing.manifest import SchemaChange
from cdc_core.model.scn import Scn
from tests.stage.landed import prepare_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cdc_core.lake.lake import Lake
    from cdc_core.schema.table import TableSchema
    from tests.lake.conftest import Columns
    from tests.stage.landed import Row, Source

pytestmark = pytest.mark.spark


def _dropping(source: Source, name: str) -> SchemaChange:
    """A DDL that drops a column, behind everything so far."""
    old = source.schema
    kept = tuple(column for column in old.columns if column.name != name)
    source.schema = dataclasses.replace(
        old, columns=kept, scn_from=Scn(source.tick()), dropped=(*old.dropped, name)
    )
    for image in (*source.rows.values(), *(i for s in source.states.values() for i in s.values())):
        image.pop(name, None)
    return SchemaChange(
        source.schema.scn_from, source.next_ordinal(), "alter table …", source.schema
    )


@pytest.mark.slow
def test_a_dropped_column_goes_from_the_mirror_and_stays_in_the_change_log(
    open_lake: Callable[..., Lake],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    columns: type[Columns],
    changelog: Callable[[TableSchema], list[Row]],
    tmp_path: Path,
) -> None:
    """A CLOB, which changes do not carry, and a column that came with a default: a crash before each commit, changes of key, chunks and
    windows from before, replays, a lost mirror, and a later column."""
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
    tx.commit()
    earliest = source.cut()
    earliest.apply(lake)

    tx = source.begin()
    tx.update(ids[2], {"ID": 20})
    tx.update(ids[3], {"NOTE": "its last note"})
    tx.commit()
    added = dataclasses.replace(
        first, columns=(*first.columns, columns.number("COUNT", 9, 0, default="7")), scn_from=Scn(source.tick())
    )  # fmt: skip
    source.schema = added
    for image in (*source.rows.values(), *(i for s in source.states.values() for i in s.values())):
        image["COUNT"] = 7
    changes = [SchemaChange(added.scn_from, source.next_ordinal(), "alter table …", added)]
    changes += [_dropping(source, "NOTE"), _dropping(source, "COUNT")]
    tx = source.begin()
    tx.update(ids[4], {"ID": 40})
    tx.update(ids[5], {"AMOUNT": Decimal("2.00")})
    tx.insert({"ID": 11, "NAME": "new", "AMOUNT": None})
    tx.commit()
    window, dropped = source.cut(*changes), source.schema
    prepare_schema(lake, changes[0])
    assert {one["COUNT"] for one in mirror(added)} == {7}
    for change in changes[1:]:
        # One commit each: the change log's properties, column mapping (of the first), the column.
        for _ in range(2 if change is changes[1] else 1):
            calls = iter(range(100))

            def fence(calls: Iterator[int] = calls) -> None:
                if next(calls) == 1:
                    raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                prepare_schema(lake, change, drops_columns=True, fence=fence)
        prepare_schema(lake, change, drops_columns=True)
    late.apply(lake)  # read before the columns went
    window.apply(lake, earlier=[first, added, *(change.schema for change in changes)])
    assert mirror(dropped) == source.state(window.scn_high)
    names = [field.name for field in DeltaTable(str(path)).schema().fields]
    assert names == ["ID", "NAME", "AMOUNT", "_cdc_commit_scn", "_cdc_ordinal"]

    assert [one.replay(lake).skipped for one in (earliest, window)] == [True, True]
    before = mirror(dropped, hidden=True)
    shutil.rmtree(path)  # a mirror that is lost comes back without them
    lake.table(dropped.table).rebuild_mirror(dropped)
    assert mirror(dropped, hidden=True) == before
    assert [field.name for field in DeltaTable(str(path)).schema().fields] == names
    grown = dataclasses.replace(
        dropped, columns=(*dropped.columns, columns.varchar("MORE", default="'m'")), scn_from=Scn(source.tick())
    )  # fmt: skip
    prepare_schema(lake, grown)  # whatever the policy is now: what went does not come back
    assert {one["MORE"] for one in mirror(grown)} == {"m"}
    assert [field.name for field in DeltaTable(str(path)).schema().fields] == [*names, "MORE"]

    notes = {one["after"]["NOTE"] for one in changelog(dropped) if one["after"]}
    assert notes >= {"note 1", "its last note"}
    folders = lake.table(dropped.table).purge_column("NOTE", ("ID",))
    assert [folder.rsplit("/", 2)[1] for folder in folders] == ["mirror", "changelog"]
    images = [one[image] for one in changelog(dropped) for image in ("before", "after")]
    assert {image["NOTE"] for image in images if image is not None} == {None}


def test_a_policy_that_is_chosen_later_takes_what_was_dropped_before(
    open_lake: Callable[..., Lake],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    tmp_path: Path,
) -> None:
    """With the table's next changes; a purge of the column then leaves no file of the mirror that holds its values."""
    lake, first = open_lake(), source.schema
    path = tmp_path / "lake" / "shop" / "mirror" / first.table.path
    tx = source.begin()
    ids = {i: tx.insert(row(i, f"name {i}")) for i in range(1, 4)}
    tx.commit()
    source.chunk().apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []
    change = _dropping(source, "NAME")
    tx = source.begin()
    tx.update(ids[1], {"AMOUNT": Decimal("2.00")})
    tx.commit()
    kept = source.cut(change)
    prepare_schema(lake, change)
    kept.apply(lake, earlier=[first])
    held = source.schema.keeping(first)
    assert {one["ID"]: one["NAME"] for one in mirror(held)} == {1: None, 2: "name 2", 3: "name 3"}

    tx = source.begin()
    tx.delete(ids[2])
    tx.commit()
    window = source.cut()
    window.apply(lake, drops_columns=True)
    assert mirror(source.schema) == source.state(window.scn_high)
    assert "NAME" not in [field.name for field in DeltaTable(str(path)).schema().fields]
    assert lake.table(source.schema.table).purge_column("NAME", ("ID",))
    for name in DeltaTable(str(path)).file_uris():
        assert "NAME" not in pq.read_schema(name).names
    assert mirror(source.schema) == source.state(window.scn_high)
