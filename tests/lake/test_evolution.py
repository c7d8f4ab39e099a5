"""Columns that are added while changes go on."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from typing import Any

import pytest

from cdc_core.errors import SchemaMismatchError
from cdc_core.landing.manifest import SchemaChange

pytestmark = pytest.mark.spark


def _with(schema: Any, *columns: Any) -> Any:
    return dataclasses.replace(schema, columns=(*schema.columns, *columns), scn_from=500)


def test_added_columns_are_followed(
    open_lake: Any, source: Any, row: Any, mirror: Any, columns: Any, delta_version: Any
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
    )
    source.schema = _with(source.schema, *added)
    for rid in source.rows:
        source.rows[rid] |= {"STATE": "it's new", "WEIGHT": None, "COUNT": 0}
    for state in source.states.values():
        for known in state.values():
            known |= {"STATE": "it's new", "WEIGHT": None, "COUNT": 0}
    tx = source.begin()
    tx.update(ids[2], {"STATE": "changed", "WEIGHT": Decimal("1.250")})
    tx.update(before_ddl, {"COUNT": 7})
    tx.insert({**row(11), "STATE": None, "WEIGHT": None, "COUNT": 1})
    tx.commit()
    window = source.cut()
    change = SchemaChange(500, 1, "alter table …", source.schema)

    calls = iter(range(1, 100))

    def fence() -> None:
        if next(calls) == 4:  # both tables are altered, the first default is not filled in yet
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lake.prepare_schema(change, fence=fence)
    lake.prepare_schema(change)
    version = delta_version(source.schema)
    lake.prepare_schema(change)
    lake.prepare_schema(old_schema)
    assert delta_version(source.schema) == version
    late.apply(lake)  # read before the columns were there
    window.apply(lake)
    assert mirror(source.schema) == source.state(window.scn_high)
    assert window.replay(lake).skipped
    before = mirror(source.schema, hidden=True)
    lake.rebuild_mirror(source.schema.table, source.schema)
    assert mirror(source.schema, hidden=True) == before

    tx = source.begin()
    tx.delete(ids[4])
    tx.commit()
    renamed = dataclasses.replace(
        old_schema, columns=(*old_schema.columns[:3], columns.varchar("OTHER"))
    )
    for wrong in (
        renamed,
        dataclasses.replace(source.schema, key=("NAME",)),
        _with(source.schema, columns.varchar("BY_WHOM", default="USER")),
        _with(source.schema, columns.varchar("state")),
    ):
        with pytest.raises(SchemaMismatchError) as caught:
            lake.prepare_schema(wrong)
        assert caught.value.hint


def test_nothing_is_prepared_before_the_first_snapshot(open_lake: Any, source: Any) -> None:
    lake = open_lake()
    lake.prepare_schema(source.schema)
    assert lake.position(source.schema.table).mirror_scn is None
