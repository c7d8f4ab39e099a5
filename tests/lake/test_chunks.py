"""Chunks beside windows: the apply rule in every order."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_core.lake.chunks import KeyRange

pytestmark = pytest.mark.spark


def test_chunks_and_windows_join_in_any_order(
    open_lake: Any, source: Any, row: Any, mirror: Any, delta_version: Any, changelog: Any
) -> None:
    lake = open_lake()
    tx = source.begin()
    ids = {i: tx.insert(row(i, f"name {i}", note=None)) for i in range(1, 9)}
    tx.commit()
    start = source.tick()
    low = source.chunk(scn=start, keep=lambda r: r["ID"] <= 4, number=1)
    high = source.chunk(scn=start, keep=lambda r: r["ID"] > 4, number=2)
    source.low, source.pending, source.ended = start, [], []
    assert low.apply(lake).rows_inserted == 4
    assert low.apply(lake).skipped
    high.apply(lake)
    assert mirror(source.schema) == source.state(start)
    assert lake.mirror_version_at(source.schema.table, start) == delta_version(source.schema)

    tx = source.begin()
    tx.update(ids[1], {"NAME": "first"})
    tx.insert(row(30, "comes and goes", note=None))
    tx.commit()
    one = source.cut()
    middle = source.scn
    tx = source.begin()
    tx.update(ids[2], {"NAME": "second"})
    tx.delete(ids[3])
    tx.update(ids[4], {"ID": 40})
    tx.delete(next(rid for rid, r in source.rows.items() if r["ID"] == 30))
    tx.commit()
    two = source.cut()
    one.apply(lake)
    two.apply(lake)

    # A chunk that was read before window two must not undo it: not the update, the delete, the change of key.
    old = source.chunk(scn=middle, snapshot="s2")
    done = old.apply(lake, first=False)
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (0, 5, 0)
    assert mirror(source.schema) == source.state(two.scn_high)

    # A chunk that was read ahead of window three: what it has seen is not applied again.
    tx = source.begin()
    tx.update(ids[5], {"NAME": "fifth"})
    tx.delete(ids[6])
    tx.commit()
    ahead = source.chunk(snapshot="s3", keep=lambda r: r["ID"] <= 6)
    three = source.cut()
    done = ahead.apply(lake, first=False, deletes_in=KeyRange(None, (6,)))
    assert done.rows_deleted == 1
    assert mirror(source.schema) == source.state(three.scn_high)
    done = three.apply(lake)
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (0, 0, 0)
    assert mirror(source.schema) == source.state(three.scn_high)

    # An ad hoc chunk with a condition never deletes.
    some = source.chunk(snapshot="s4", keep=lambda r: r["ID"] == 7, condition="ID = 7")
    assert some.apply(lake, first=False, deletes_in=KeyRange()).rows_deleted == 0
    assert mirror(source.schema) == source.state(three.scn_high)

    # The change log alone gives the same mirror, deletions by chunks included.
    before = mirror(source.schema, hidden=True)
    assert lake.rebuild_mirror(source.schema.table, source.schema) == len(before)
    assert mirror(source.schema, hidden=True) == before
    assert {c["_cdc_snapshot"] for c in changelog(source.schema) if c["_cdc_op"] == "r"} == {
        "s1/1",
        "s1/2",
        "s2/1",
        "s3/1",
        "s4/1",
    }
