"""Chunks beside windows: the apply rule in every order."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from cdc_core.config import LakeConfig
from cdc_core.errors import DuplicateKeyError, FencedError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import TableSchema
from tests.jvm import small_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdc_core.lake.lake import Lake
    from tests.lake.conftest import Columns
    from tests.stage.landed import Row, Source


KEYS_BY_SPARK = pytest.mark.spark(merges=False)
"""Spark looks for keys that are gone, and merges nothing."""


@pytest.mark.parametrize(
    "open_lake",
    ["auto", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.slow])],
    indirect=True,
)
def test_chunks_and_windows_join_in_any_order(
    open_lake: Callable[..., Lake],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
    delta_version: Callable[[TableSchema], int],
    changelog: Callable[[TableSchema], list[Row]],
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
    assert lake.table(source.schema.table).mirror_version_at(start) == delta_version(source.schema)

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

    # A snapshot that was read before window two must not undo it: not the update, the delete, the change of key.
    old = source.chunk(scn=middle, snapshot="s2")
    done = old.apply(lake, position=two.scn_high)
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (0, 5, 0)
    assert lake.table(source.schema.table).delete_missing_keys("s2", middle).rows_deleted == 0
    assert mirror(source.schema) == source.state(two.scn_high)

    # A snapshot that was read ahead of window three: what it has seen is not applied again.
    tx = source.begin()
    tx.update(ids[5], {"NAME": "fifth"})
    tx.delete(ids[6])
    tx.commit()
    ahead = source.chunk(snapshot="s3", keep=lambda r: r["ID"] <= 6)
    rest = source.chunk(scn=ahead.manifest.scn, snapshot="s3", keep=lambda r: r["ID"] > 6, number=2)
    three = source.cut()
    for chunk in (ahead, rest):
        chunk.apply(lake, position=two.scn_high)
    done = lake.table(source.schema.table).delete_missing_keys("s3", ahead.manifest.scn)
    assert (done.rows_deleted, done.changes) == (1, 1)
    assert lake.table(source.schema.table).delete_missing_keys("s3", ahead.manifest.scn).skipped
    assert mirror(source.schema) == source.state(three.scn_high)
    done = three.apply(lake, read_scn=ahead.manifest.scn)
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (0, 0, 0)
    assert mirror(source.schema) == source.state(three.scn_high)

    # The change log alone gives the same mirror, deletions by snapshots included.
    before = mirror(source.schema, hidden=True)
    assert lake.table(source.schema.table).rebuild_mirror(source.schema) == len(before)
    assert mirror(source.schema, hidden=True) == before
    read = {c["_cdc_snapshot"] for c in changelog(source.schema) if c["_cdc_op"] == "r"}
    assert read == {"s1/1", "s1/2", "s2/1", "s3/1", "s3/2"}


@pytest.fixture
def filled(open_lake: Callable[..., Lake], source: Source, row: Callable[..., Row]) -> Lake:
    """A first snapshot of orders 1 to 6; the next window begins behind it."""
    lake = open_lake()
    tx = source.begin()
    source.ids = {i: tx.insert(row(i, f"name {i}", note=None)) for i in range(1, 7)}
    tx.commit()
    source.chunk().apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []
    return lake


@pytest.mark.slow  # the whole pipeline lives through it in tests/steps/test_snapshots_again.py
def test_a_second_first_snapshot_doubles_nothing(
    filled: Lake, source: Source, mirror: Callable[..., list[Row]]
) -> None:
    """The metadata store was lost before the first window: a new first snapshot meets the mirror of the old one."""
    tx = source.begin()
    tx.delete(source.ids[2])
    tx.update(source.ids[3], {"NAME": "changed"})
    tx.commit()
    again = source.chunk(snapshot="s9", keep=lambda r: r["ID"] <= 3)
    at = again.manifest.scn
    rest = source.chunk(scn=at, snapshot="s9", keep=lambda r: r["ID"] > 3, number=2)
    again.apply(filled)
    rest.apply(filled)
    assert filled.table(source.schema.table).delete_missing_keys("s9", at).rows_deleted == 1
    assert mirror(source.schema) == source.state(at)


@pytest.mark.slow
def test_chunks_of_two_snapshots_may_be_mixed(
    open_lake: Callable[..., Lake],
    source: Source,
    row: Callable[..., Row],
    mirror: Callable[..., list[Row]],
) -> None:
    """An ad hoc chunk that is applied while the first snapshot is under way doubles nothing."""
    lake = open_lake()
    tx = source.begin()
    for i in range(1, 7):
        tx.insert(row(i, note=None))
    tx.commit()
    at, later = source.tick(), source.tick()
    parts = [
        source.chunk(scn=scn, snapshot=f"s{scn}", keep=keep, number=number)
        for scn in (later, at)
        for number, keep in ((1, lambda r: r["ID"] <= 3), (2, lambda r: r["ID"] > 3))
    ]
    for chunk in (parts[0], parts[2], parts[3], parts[1]):
        chunk.apply(lake)
    for scn in (later, at):
        assert lake.table(source.schema.table).delete_missing_keys(f"s{scn}", scn).rows_deleted == 0
    assert mirror(source.schema) == source.state(later)


def test_a_snapshot_heals_rows_that_are_double(
    filled: Lake, source: Source, mirror: Callable[..., list[Row]], tmp_path: Path
) -> None:
    damaged = DeltaTable(str(tmp_path / "lake" / "shop" / "mirror" / source.schema.table.path))
    twice = QueryBuilder().register("t", damaged).execute("select * from t").read_all()
    write_deltalake(damaged, pa.table(twice), mode="append")
    assert len(mirror(source.schema)) == 12
    chunk = source.chunk(snapshot="s9")
    done = chunk.apply(filled)
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (0, 6, 6)
    assert mirror(source.schema) == source.state(chunk.manifest.scn)


@pytest.mark.parametrize(
    ("precision", "scale", "in_hand"),
    [
        pytest.param(None, None, 1_000, id="NUMBER"),
        pytest.param(38, 10, 1_000, id="38-10"),
        pytest.param(None, None, 1, id="NUMBER-by-Spark", marks=KEYS_BY_SPARK),
        pytest.param(38, 10, 1, id="38-10-by-Spark", marks=[KEYS_BY_SPARK, pytest.mark.slow]),
    ],
)
def test_rows_that_are_gone_go_whatever_the_keys_type_is(
    open_lake: Callable[..., Lake],
    make_source: Callable[..., Source],
    columns: type[Columns],
    mirror: Callable[..., list[Row]],
    monkeypatch: pytest.MonkeyPatch,
    precision: Any,
    scale: Any,
    in_hand: int,
) -> None:
    """Three chunks, read as of different SCNs; a row that changes between them belongs to the windows."""
    monkeypatch.setattr("cdc_core.lake.apply.missing_keys.KEYS_IN_HAND_MAX", in_hand)
    kind = columns.number("ID", precision, scale)
    source = make_source(
        TableSchema(TableId("SHOP", "PLAIN"), Scn(1), (kind, columns.varchar("NAME")), ("ID",))
    )
    value: Any = str if precision is None else Decimal
    lake = open_lake()
    tx = source.begin()
    ids = {i: tx.insert({"ID": value(i), "NAME": "n"}) for i in range(1, 31)}
    tx.commit()
    source.chunk().apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []
    for gone in (2, 15, 30):  # behind the log's back: these have no redo
        del source.rows[ids[gone]]
        source.states[max(source.states)].pop(ids[gone])
    chunks = []
    for number, (low, high) in enumerate(((1, 10), (11, 20), (21, 30))):
        keep = lambda r, low=low, high=high: low <= int(r["ID"]) <= high  # noqa: E731
        chunks.append(source.chunk(snapshot="s9", number=number, keep=keep))
        tx = source.begin()
        tx.delete(ids[3 + number])
        tx.insert({"ID": value(100 + number), "NAME": "new"})
        tx.commit()
    window = source.cut()
    for chunk in chunks:
        chunk.apply(lake)
    lowest = min(chunk.manifest.scn for chunk in chunks)
    done = lake.table(source.schema.table).delete_missing_keys("s9", lowest)
    # Row 4 and 5 were still there when their chunk was read, and so was row 3; the window takes them.
    assert done.rows_deleted == 3
    window.apply(lake, covered_scn=lowest)
    assert mirror(source.schema) == source.state(window.scn_high)


@pytest.mark.spark
def test_a_fence_that_refuses_stops_a_merge(
    filled: Lake,
    source: Source,
    mirror: Callable[..., list[Row]],
    changelog: Callable[[TableSchema], list[Row]],
) -> None:
    """The lease is lost between the two Delta tables; who has it now brings the chunk into the mirror."""
    tx = source.begin()
    tx.update(source.ids[1], {"NAME": "read again"})
    tx.commit()
    chunk = source.chunk(snapshot="s9")
    before = mirror(source.schema, hidden=True)

    def fence() -> None:
        if any(c["_cdc_snapshot"] == "s9/1" for c in changelog(source.schema)):
            raise FencedError("this process lost its lease", hint="Nothing was damaged.")

    with pytest.raises(FencedError):
        chunk.apply(filled, fence=fence)
    assert mirror(source.schema, hidden=True) == before
    chunk.apply(filled)
    assert mirror(source.schema) == source.state(chunk.manifest.scn)


def test_keys_that_were_asked_for_and_are_gone_go(
    filled: Lake, source: Source, mirror: Callable[..., list[Row]]
) -> None:
    tx = source.begin()
    tx.update(source.ids[5], {"NAME": "later"})
    tx.commit()
    window = source.cut()
    window.apply(filled)
    at = window.scn_high
    for gone in (1, 2):
        source.states[max(source.states)].pop(source.ids[gone])
    asked = [(1,), (3,), (77,)]
    keep = lambda r: (r["ID"],) in asked  # noqa: E731
    ahead = source.chunk(snapshot="r1", keep=keep)
    assert ahead.apply(filled, position=at, asked=asked).rows_deleted == 0
    exact = source.chunk(scn=at, snapshot="r2", keep=keep)
    done = exact.apply(filled, position=at, asked=asked)
    assert (done.rows_updated, done.rows_deleted, done.changes) == (0, 1, 1)
    assert [r["ID"] for r in mirror(source.schema)] == [2, 3, 4, 5, 6]


@pytest.mark.spark(merges=False)
def test_a_mirror_whose_types_may_become_wider_loses_its_rows_by_spark(
    filled: Lake, source: Source, tmp_path: Path
) -> None:
    """delta-rs does not read such a table."""
    path = tmp_path / "lake" / "shop" / "mirror" / source.schema.table.path
    spark = small_session(LakeConfig(path=str(tmp_path / "lake")))
    switch = "('delta.enableTypeWidening' = 'true')"
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES {switch}")
    tx = source.begin()
    tx.delete(source.ids[2])
    tx.update(source.ids[3], {"NAME": "changed"})
    tx.commit()
    again = source.chunk(snapshot="s9")
    at = again.manifest.scn
    again.apply(filled)
    assert filled.table(source.schema.table).delete_missing_keys("s9", at).rows_deleted == 1
    left = spark.sql(f"SELECT ID, NAME FROM delta.`{path}` ORDER BY ID").collect()
    assert [tuple(one) for one in left] == [
        (1, "name 1"), (3, "changed"), (4, "name 4"), (5, "name 5"), (6, "name 6"),
    ]  # fmt: skip


def test_two_rows_with_one_key_stop_the_chunk(
    open_lake: Callable[..., Lake],
    make_source: Callable[..., Source],
    columns: type[Columns],
    changelog: Callable[[TableSchema], list[Row]],
) -> None:
    schema = TableSchema(
        TableId("SHOP", "PLAIN"), Scn(1), (columns.number("G", 9, 0), columns.varchar("N")), ("G",)
    )
    source = make_source(schema)
    tx = source.begin()
    tx.insert({"G": 1, "N": "secret one"})
    tx.insert({"G": 1, "N": "secret two"})
    tx.commit()
    with pytest.raises(DuplicateKeyError) as error:
        source.chunk().apply(open_lake())
    assert error.value.facts["key"] == "G"
    assert "SHOP.PLAIN" in str(error.value)
    assert "secret" not in str(error.value)
    assert changelog(schema) == []


@pytest.mark.parametrize(
    "in_hand",
    [
        pytest.param(100, id="without Spark"),
        pytest.param(1, id="with Spark", marks=KEYS_BY_SPARK),
    ],
)
def test_two_chunks_with_one_key_stop_the_snapshot_at_its_end(
    open_lake: Callable[..., Lake],
    make_source: Callable[..., Source],
    columns: type[Columns],
    monkeypatch: pytest.MonkeyPatch,
    in_hand: int,
) -> None:
    monkeypatch.setattr("cdc_core.lake.apply.missing_keys.KEYS_IN_HAND_MAX", in_hand)
    schema = TableSchema(
        TableId("SHOP", "PLAIN"), Scn(1), (columns.number("G", 9, 0), columns.varchar("N")), ("G",)
    )
    source, lake = make_source(schema), open_lake()
    tx = source.begin()
    for number, name in ((1, "a"), (2, "b"), (2, "c")):
        tx.insert({"G": number, "N": name})
    tx.commit()
    scn = source.tick()
    first = source.chunk(scn=scn, keep=lambda r: r["N"] != "c", number=0)
    first.apply(lake)
    assert (
        lake.table(schema.table).delete_missing_keys(first.manifest.snapshot_id, scn).rows_deleted
        == 0
    )
    source.chunk(scn=scn, keep=lambda r: r["N"] == "c", number=1).apply(lake)
    with pytest.raises(DuplicateKeyError) as error:
        lake.table(schema.table).delete_missing_keys(first.manifest.snapshot_id, scn)
    assert error.value.facts["rows"] == "the mirror"


def test_the_version_of_an_scn_is_right_after_a_late_chunk(
    filled: Lake, source: Source, mirror: Callable[..., list[Row]]
) -> None:
    """A chunk from before two windows is applied after them: it does not make its version an old one."""
    late = source.chunk(snapshot="s9")
    windows = []
    for i in (1, 2):
        tx = source.begin()
        tx.update(source.ids[i], {"NAME": f"window {i}"})
        tx.commit()
        windows.append(source.cut())
        windows[-1].apply(filled)
    late.apply(filled, position=windows[-1].scn_high)
    for window in windows:
        version = filled.table(source.schema.table).mirror_version_at(window.scn_high)
        assert mirror(source.schema, version) == source.state(window.scn_high)
    ahead = source.chunk(snapshot="s10")
    ahead.apply(filled, position=windows[-1].scn_high)
    before = filled.table(source.schema.table).mirror_version_at(windows[-1].scn_high)
    assert before < filled.table(source.schema.table).mirror_version_at(ahead.manifest.scn)


def test_a_row_of_the_lowest_scn_is_gone_and_one_above_is_the_windows(
    filled: Lake,
    source: Source,
    mirror: Callable[..., list[Row]],
    changelog: Callable[[TableSchema], list[Row]],
) -> None:
    """The border to the SCN: of two rows that no chunk has, one changed last at the lowest SCN of the chunks, one right above."""
    at, above = source.begin(), source.begin()
    at.update(source.ids[1], {"NAME": "at the SCN"})
    above.update(source.ids[2], {"NAME": "above it"})
    lowest = at.commit()
    assert above.commit() == lowest + 1
    source.cut().apply(filled)
    chunk = source.chunk(scn=lowest, snapshot="s2", keep=lambda r: r["ID"] > 2)
    chunk.apply(filled)
    assert filled.table(source.schema.table).delete_missing_keys("s2", lowest).rows_deleted == 1
    gone = [c["before"]["ID"] for c in changelog(source.schema) if c["_cdc_snapshot"] == "s2/gone"]
    assert gone == [1]
    assert [r["ID"] for r in mirror(source.schema)] == [2, 3, 4, 5, 6]
