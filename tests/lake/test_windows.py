"""Windows, forward: what a window leaves in the mirror is Oracle AS OF its scn_high."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdc_core.errors import DuplicateKeyError, NotYetError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import TableSchema
from tests.lake.who_merges import BY_BOTH

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdc_core.lake.lake import Lake
    from tests.lake.conftest import Columns
    from tests.stage.landed import Row, Source

pytestmark = pytest.mark.parametrize("open_lake", BY_BOTH, indirect=True)


def test_windows_leave_the_mirror_as_the_table_was(
    open_lake: Callable[..., Lake],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    changelog: Callable[[TableSchema], list[Row]],
) -> None:
    """Inserts, updates, deletes, a delete with re-insert, a partial rollback, a transaction over three windows."""
    lake = open_lake()
    tx = source.begin()
    first = [tx.insert(row(i, f"name {i}")) for i in range(1, 6)]
    tx.commit()
    source.chunk().apply(lake)
    source.low = source.scn
    source.pending, source.ended = [], []

    long = source.begin()
    long.update(first[0], {"NAME": "from a long transaction"})
    tx = source.begin()
    tx.insert(row(10, "it's"))
    tx.update(first[1], {"AMOUNT": None})
    tx.delete(first[2])
    tx.insert(row(3, "again", note=None))
    point = tx.savepoint()
    undone = tx.insert(row(11))
    tx.update(undone, {"NAME": "never"})
    tx.update(first[3], {"NAME": "never either"})
    tx.rollback_to(point)
    tx.update(first[3], {"NAME": "kept"})
    tx.commit()
    lost = source.begin()
    lost.delete(first[4])
    lost.rollback()
    one = source.cut()
    long.insert(row(20, "long"))
    two = source.cut()
    long.update(first[0], {"NOTE": "new lob"})
    long.commit()
    three = source.cut()

    done = one.apply(lake, position=one.manifest.window.scn_low)
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (1, 3, 0)
    assert mirror(source.schema) == source.state(one.scn_high)
    assert two.apply(lake, position=one.scn_high).changes == 0
    assert three.apply(lake, position=two.scn_high).changes == 3
    assert mirror(source.schema) == source.state(three.scn_high)
    position = lake.table(source.schema.table).position()
    assert position.changelog_scn == position.mirror_scn == three.scn_high
    ops = [change["_cdc_op"] for change in changelog(source.schema)]
    assert sorted(ops) == sorted("r" * 5 + "cudcu" + "ucu")

    before = mirror(source.schema, hidden=True)
    assert one.apply(lake).skipped
    assert three.apply(lake).skipped
    assert mirror(source.schema, hidden=True) == before


def test_a_window_that_does_not_follow_the_last_is_refused(
    open_lake: Callable[..., Lake], source: Source, row: Callable[..., Row]
) -> None:
    lake = open_lake()
    tx = source.begin()
    tx.insert(row(1))
    tx.commit()
    one = source.cut()
    with pytest.raises(NotYetError, match="has not applied the previous window"):
        one.apply(lake, position=one.manifest.window.scn_low - 1)


def test_a_new_row_may_take_a_key_before_its_old_row_goes(
    open_lake: Callable[..., Lake],
    make_source: Callable[..., Source],
    columns: type[Columns],
    mirror: Callable[..., list[Row]],
) -> None:
    """With a DEFERRABLE key, or where a row moves, LogMiner shows the insert before the delete."""
    ids = (columns.number("ID", 9, 0), columns.varchar("NAME"))
    source = make_source(TableSchema(TableId("SHOP", "PLAIN"), Scn(1), ids, ("ID",)))
    lake = open_lake()
    tx = source.begin()
    old = tx.insert({"ID": 1, "NAME": "old"})
    tx.insert({"ID": 2, "NAME": "stays"})
    tx.commit()
    source.chunk().apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []
    tx = source.begin()
    tx.insert({"ID": 1, "NAME": "new"})
    tx.delete(old)
    tx.commit()
    window = source.cut()
    window.apply(lake)
    assert mirror(source.schema) == source.state(window.scn_high)
    assert mirror(source.schema) == [{"ID": 1, "NAME": "new"}, {"ID": 2, "NAME": "stays"}]


def test_an_insert_that_meets_a_row_of_its_key_stops_the_window(
    open_lake: Callable[..., Lake],
    make_source: Callable[..., Source],
    columns: type[Columns],
    mirror: Callable[..., list[Row]],
) -> None:
    """A key that was unique at the snapshot and is so no more; no row is overwritten, and no value told."""
    kinds = (columns.number("G", 9, 0), columns.varchar("N"))
    source = make_source(TableSchema(TableId("SHOP", "PLAIN"), Scn(1), kinds, ("G",)))
    lake = open_lake()
    tx = source.begin()
    tx.insert({"G": 1, "N": "secret one"})
    tx.commit()
    source.chunk().apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []
    tx = source.begin()
    tx.insert({"G": 1, "N": "secret two"})
    tx.commit()
    with pytest.raises(DuplicateKeyError) as error:
        source.cut().apply(lake)
    assert error.value.facts["key"] == "G"
    assert "secret" not in str(error.value)
    assert mirror(source.schema) == [{"G": 1, "N": "secret one"}]
