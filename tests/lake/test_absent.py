"""Columns that a change does not carry, and changes of key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdc_core.errors import DecodeError, FencedError, LakeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdc_core.lake.lake import Lake
    from tests.stage.landed import Row, Source


@pytest.fixture
def filled(open_lake: Callable[..., Lake], source: Source, row: Callable[..., Row]) -> Lake:
    """Orders 1 to 9 by a first snapshot; the next window begins behind it."""
    tx = source.begin()
    source.ids = {i: tx.insert(row(i, f"name {i}", note=f"note {i}")) for i in range(1, 10)}
    tx.commit()
    lake = open_lake()
    source.chunk().apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []
    return lake


@pytest.mark.spark
def test_lobs_follow_their_row_through_changes_of_key(
    filled: Lake, source: Source, row: Callable[..., Row], mirror: Callable[..., list[Row]]
) -> None:
    """A chain of keys, a LOB set before, between and after, keys that rows share until the statement ends, swaps."""
    ids = source.ids
    tx = source.begin()
    tx.update(ids[1], {"ID": 101})  # the LOB comes from the mirror, over a chain
    tx.update(ids[1], {"ID": 102, "NAME": "moved twice"})
    tx.update(ids[2], {"NOTE": "set before"})
    tx.update(ids[2], {"ID": 201})
    tx.update(ids[3], {"ID": 301})
    tx.update(ids[3], {"NOTE": "set after"})
    tx.commit()
    tx = source.begin()
    tx.update(ids[1], {"ID": 103})  # another transaction goes on with the chain
    for i in (4, 5, 6):  # update orders set id = id + 1 where id between 4 and 6; 7 was deleted
        if i == 4:
            tx.delete(ids[7])
        tx.update(ids[i], {"ID": i + 1})
    fresh = tx.insert(row(50, note=None), shown="A" * 18)
    tx.update(fresh, {"NOTE": "inline lob"})
    gone = tx.insert(row(51), shown="A" * 18)
    tx.delete(gone)
    tx.commit()
    tx = source.begin()
    tx.update(ids[8], {"ID": -1})
    tx.update(ids[9], {"ID": 8})
    tx.update(ids[8], {"ID": 9})
    tx.delete(fresh)
    tx.insert(row(50, "again"))
    tx.commit()
    window = source.cut()
    window.apply(filled)
    assert mirror(source.schema) == source.state(window.scn_high)
    version = filled.table(source.schema.table).mirror_version_at(window.scn_high)
    assert window.replay(filled).skipped
    assert filled.table(source.schema.table).mirror_version_at(window.scn_high) == version


def test_lobs_of_rows_that_come_in_the_window_follow_their_keys(
    filled: Lake, source: Source, row: Callable[..., Row], mirror: Callable[..., list[Row]]
) -> None:
    """An insert into a table with LOBs shows no ROW_ID: the next change of its key says whose row it was.

    With a value, without one, with one that was set meanwhile, after another row had left the key, and back to it; and in the insert's
    own transaction, of a key that nobody had before, or that another row had.
    """
    ids = source.ids
    tx = source.begin()
    tx.delete(ids[1])
    tx.update(ids[2], {"ID": 202})
    tx.delete(ids[3])
    fresh = {
        i: tx.insert(row(i, note=note), shown="A" * 18)
        for i, note in (
            (1, "inline"),
            (2, None),
            (3, "where another row was"),
            (60, "inline too"),
            (61, None),
            (70, "own"),
            (71, "own too"),
        )
    }
    for i in (3, 70, 71):  # the statement that LogMiner shows behind such an insert
        tx.update(fresh[i], {"NAME": "shown with its address"})
    for i in (3, 70):
        tx.update(fresh[i], {"ID": 10 * i})
    for i, note in ((80, "moved at once"), (81, None)):
        tx.update(tx.insert(row(i, note=note), shown="A" * 18), {"ID": 800 + i})
    tx.commit()
    tx = source.begin()
    tx.update(fresh[60], {"NAME": "of the row"})
    tx.update(fresh[61], {"NOTE": "set meanwhile"})
    tx.update(ids[2], {"ID": 203})
    tx.commit()
    tx = source.begin()
    for i in (1, 2, 60, 61, 71):
        tx.update(fresh[i], {"ID": 100 + i})
    tx.commit()
    tx = source.begin()
    tx.update(fresh[60], {"ID": 60})
    tx.update(fresh[61], {"ID": 62, "NAME": "and on"})
    tx.commit()
    window = source.cut()
    window.apply(filled)
    assert mirror(source.schema) == source.state(window.scn_high)
    version = filled.table(source.schema.table).mirror_version_at(window.scn_high)
    assert window.replay(filled).skipped
    assert filled.table(source.schema.table).mirror_version_at(window.scn_high) == version


def test_lobs_that_are_written_in_pieces_reach_delta(
    filled: Lake, source: Source, row: Callable[..., Row], mirror: Callable[..., list[Row]]
) -> None:
    """Of a row in the mirror, of a new one, and of one whose key changes; other columns keep their values."""
    ids = source.ids
    tx = source.begin()
    tx.write_lob(ids[1], "NOTE", "it's long " * 500)
    tx.update(ids[2], {"ID": 22, "NAME": "moved"})
    tx.write_lob(ids[2], "NOTE", "ü€" * 2000)
    fresh = tx.insert(row(60, note=None), shown="A" * 18)
    tx.write_lob(fresh, "NOTE", "new " * 900)
    tx.update(ids[1], {"NAME": "after the LOB"})
    tx.commit()
    window = source.cut()
    window.apply(filled)
    assert mirror(source.schema) == source.state(window.scn_high)


@pytest.mark.spark
def test_what_cannot_be_proved_is_refused_and_nothing_is_merged(
    filled: Lake,
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    make_source: Callable[..., Source],
) -> None:
    """An update without its LOB needs the row in the mirror; a change of key without it needs the old row there."""
    before = mirror(source.schema, hidden=True)
    ghost = source.new_row_id()
    source.rows[ghost] = row(70)
    tx = source.begin()
    tx.update(ghost, {"NAME": "nobody knows me"})
    tx.commit()
    one = source.cut()
    with pytest.raises(LakeError, match=r"the mirror does not have its row.*table resnapshot"):
        one.apply(filled)
    assert mirror(source.schema, hidden=True) == before
    # A chunk that was read later may have seen the row gone; a later window deletes it then.
    done = one.apply(filled, read_scn=one.scn_high)
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (0, 0, 0)
    assert mirror(source.schema, hidden=True) == before

    again = make_source(source.schema)
    again.scn, again.low, again.folder = source.scn, source.scn, source.folder
    again.rows[ghost] = row(71)
    again.rows["AAABother"] = row(1)
    tx = again.begin()
    tx.delete("AAABother")
    tx.update(ghost, {"ID": 1})  # key 1 is in the mirror, but its note is another row's
    tx.commit()
    two = again.cut()
    with pytest.raises((DecodeError, LakeError), match="does not carry all columns"):
        two.apply(filled)
    assert mirror(source.schema, hidden=True) == before


def _left_again(source: Source, row: Callable[..., Row]) -> None:
    """The row that an insert brought to the key has left it: whose is it now?"""
    tx = source.begin()
    fresh = tx.insert(row(90, note="another row's"), shown="A" * 18)
    tx.commit()
    tx = source.begin()
    tx.delete(fresh)
    tx.commit()
    tx = source.begin()
    tx.update("AAABghost", {"ID": 91})
    tx.commit()


def _moved_away(source: Source, row: Callable[..., Row]) -> None:
    """One MERGE moves a row of the mirror away and inserts another under its key."""
    tx = source.begin()
    tx.insert(row(9, note="another row's"), shown="A" * 18)
    tx.update("AAABghost", {"ID": 81})
    tx.commit()


def _one_of_two(source: Source, row: Callable[..., Row]) -> None:
    """Of two rows that came to the key, one has left it."""
    tx = source.begin()
    for note in ("its own", "another row's"):
        tx.insert(row(80, note=note), shown="A" * 18)
    tx.update("AAABghost", {"ID": 81})
    tx.commit()


@pytest.mark.parametrize(
    ("key", "change"), [(90, _left_again), (9, _moved_away), (80, _one_of_two)]
)
def test_a_lob_of_another_row_under_the_key_is_not_taken(
    filled: Lake,
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    key: int,
    change: Callable[..., None],
) -> None:
    before = mirror(source.schema, hidden=True)
    source.rows["AAABghost"] = row(key)
    change(source, row)
    with pytest.raises((DecodeError, LakeError), match="does not carry all columns"):
        source.cut().apply(filled)
    assert mirror(source.schema, hidden=True) == before


@pytest.mark.parametrize(
    "has_appended",
    [
        pytest.param(True, id="in-the-change-log"),
        pytest.param(False, id="not-yet-read", marks=pytest.mark.slow),
    ],
)
def test_a_row_that_moves_between_two_chunks_is_not_lost(
    filled: Lake, source: Source, mirror: Callable[..., list[Row]], has_appended: bool
) -> None:
    """One chunk was read again at a newer SCN (ORA-01555), and no chunk has the row: its old key's was read late, its new key's early.

    What the change log has of it already keeps its old row in the mirror, and with that the LOB that the change lacks. Where the
    change comes later, the LOB is nowhere, and the table stops rather than lack the row.
    """
    early = source.chunk(snapshot="s9", keep=lambda r: r["ID"] > 50, number=2)
    tx = source.begin()
    tx.update(source.ids[1], {"ID": 101})
    tx.commit()
    late = source.chunk(snapshot="s9", keep=lambda r: r["ID"] <= 50, number=1)
    window = source.cut()
    asked: list[None] = []

    def fence() -> None:
        asked.append(None)
        if len(asked) == 2:
            raise FencedError("the process ends between the two tables", hint="-")

    if has_appended:
        with pytest.raises(FencedError):
            window.apply(filled, fence=fence)
    for chunk in (early, late):
        chunk.apply(filled)
    lowest = early.manifest.scn
    gone = filled.table(source.schema.table).delete_missing_keys("s9", lowest)
    scns = {"covered_scn": lowest, "read_scn": late.manifest.scn}
    if has_appended:
        assert gone.rows_deleted == 0
        window.apply(filled, **scns)
        assert mirror(source.schema) == source.state(window.scn_high)
        return
    assert gone.rows_deleted == 1
    before = mirror(source.schema, hidden=True)
    with pytest.raises(LakeError, match=r"the mirror does not have its row.*table resnapshot"):
        window.apply(filled, **scns)
    assert mirror(source.schema, hidden=True) == before
