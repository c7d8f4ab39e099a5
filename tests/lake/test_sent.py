"""What a MERGE says that it did is held against what it was sent; no Spark is needed for that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from cdc_core.config import LakeConfig
from cdc_core.delta.appending import NewFile, write_file
from cdc_core.errors import RowCountError
from cdc_core.lake.apply.windows import _check_appended
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.lake.mirror.merge import ReplaceRule, run_merge
from cdc_core.lake.mirror.merge_audit import SentReplacement, SentRows
from cdc_core.lake.rows.executors import StagedWindow
from cdc_core.lake.rows.staging import StagedRows
from cdc_core.lake.table_context import TableWork, no_fence
from tests.stage.landed import Source, order, orders_schema

READ = 100


def part(*rows: tuple[int, str, int]) -> pa.Table:
    """A part of what is merged: (ID, kind, commit SCN) of each key."""
    ids, kinds, scns = zip(*rows, strict=True)
    return pa.table({"ID": ids, "_cdc_kind": kinds, "_cdc_commit_scn": scns})


def sent(*parts: pa.Table) -> SentRows:
    found = SentRows(orders_schema(), READ, {"table": "SHOP.ORDERS"})
    assert list(found.counting(iter(parts))) == list(parts)
    return found


def counts(inserted: int, updated: int, deleted: int) -> list[dict[str, Any]]:
    names = ("num_inserted_rows", "num_updated_rows", "num_deleted_rows")
    return [dict(zip(names, (inserted, updated, deleted), strict=True))]


@pytest.mark.parametrize(
    ("found", "fits"),
    [
        pytest.param(counts(1, 2, 1), True, id="all-of-them"),
        pytest.param(counts(0, 3, 0), True, id="a-key-came-and-went"),
        pytest.param(counts(1, 1, 1), True, id="one-was-read-by-a-chunk-later"),
        pytest.param(counts(0, 1, 1), False, id="a-row-is-lost"),
        pytest.param(counts(2, 2, 1), False, id="a-row-is-there-twice"),
        pytest.param(counts(1, 2, 2), False, id="a-row-went-that-nobody-deleted"),
        pytest.param([], True, id="delta-skipped-what-it-has"),
    ],
)
def test_merge_takes_what_it_was_sent(found: list[Any], *, fits: bool) -> None:
    """Two keys are newer than all that a chunk can have read, one is not, one is gone."""
    source = sent(part((1, "row", 101), (2, "row", 100)), part((3, "row", 150), (4, "del", 150)))
    if fits:
        source.check(found)
        return
    with pytest.raises(RowCountError, match="MERGE reported other row counts"):
        source.check(found)


def test_nothing_is_surely_newer_where_nobody_knows_what_chunks_have_read() -> None:
    source = SentRows(orders_schema(), None, {})
    list(source.counting(iter([part((1, "row", 101))])))
    source.check(counts(0, 0, 0))


def test_two_rows_of_one_key_are_never_sent() -> None:
    with pytest.raises(RowCountError, match="more than one row of a key"):
        sent(part((1, "row", 101), (1, "del", 102)))


COUNTED = {"rows_sent": 3, "keys_gone": 1, "rows_newer": 2, "keys": 4}
"""What Spark counts of a source that it derived: three rows, one of which a chunk may have read newer, and a key that is gone."""


@pytest.mark.parametrize(
    ("are_different", "found", "fits"),
    [
        pytest.param(False, counts(1, 1, 0), True, id="one-was-read-by-a-chunk-later"),
        pytest.param(False, counts(1, 0, 0), False, id="a-row-is-lost"),
        pytest.param(False, counts(2, 2, 0), False, id="a-row-is-there-twice"),
        pytest.param(True, counts(1, 2, 1), True, id="different: all-of-them"),
        pytest.param(True, counts(1, 1, 1), False, id="different: a-row-is-lost"),
        pytest.param(True, counts(1, 2, 0), False, id="different: a-row-stays"),
    ],
)
def test_a_source_that_spark_derived_is_counted_too(
    found: list[Any], *, are_different: bool, fits: bool
) -> None:
    source = SentRows(orders_schema(), READ, {})
    source.take(COUNTED)
    if are_different:
        source.as_truth()
    if fits:
        source.check(found)
        return
    with pytest.raises(RowCountError, match="MERGE reported other row counts"):
        source.check(found)


def test_a_source_in_hand_is_counted_too() -> None:
    rows = part((1, "row", 101), (2, "row", 99), (3, "del", 102))
    source = SentRows.of_table(rows, orders_schema(), {})
    source.check(counts(1, 1, 1))
    for wrong in (counts(1, 0, 1), counts(1, 1, 0)):
        with pytest.raises(RowCountError, match="MERGE reported other row counts"):
            source.check(wrong)
    with pytest.raises(RowCountError, match="more than one row of a key"):
        SentRows.of_table(part((1, "row", 101), (1, "del", 102)), orders_schema(), {})


def test_two_rows_of_one_key_are_not_sent_by_spark_either() -> None:
    with pytest.raises(RowCountError, match="more than one row of a key"):
        SentRows(orders_schema(), READ, {}).take({**COUNTED, "keys": 3})


@pytest.mark.parametrize("appended", [2, 4])
def test_the_change_log_gives_back_what_was_written(appended: int) -> None:
    def written(rows: int) -> StagedWindow:
        return StagedWindow((NewFile("a", rows, 1, "{}"),))

    _check_appended({}, 3, written(3))
    _check_appended({}, 3, None)
    with pytest.raises(RowCountError, match="does not give back"):
        _check_appended({}, 3, written(appended))


def replacing_part(rows: tuple[int, ...], keys: tuple[int, ...]) -> pa.Table:
    """Rows of a chunk, and the keys that they, or nothing, come in the place of."""
    return part(*((one, "row", READ) for one in rows), *((one, "del", READ) for one in keys))


CHUNK = replacing_part((1, 2, 3), (1, 2, 3, 4))
"""Three rows of a chunk, and a key that was asked for and that Oracle does not have."""


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(replacing_part((1, 2, 3, 5), (1, 2, 3, 4, 5)), id="a-row-too-many"),
        pytest.param(replacing_part((1, 2, 3), (1, 2, 3, 3)), id="a-key-twice"),
        pytest.param(replacing_part((1, 2, 5), (1, 2, 3, 4)), id="a-row-whose-key-stays"),
        pytest.param(replacing_part((1, 1, 2), (1, 2)), id="a-row-that-is-double"),
    ],
)
def test_a_chunk_is_merged_as_it_landed_or_not_at_all(wrong: pa.Table) -> None:
    for landed in (3, 9):  # windows have changed the other six since
        sent = SentReplacement(orders_schema(), {}, landed=landed)
        assert list(sent.counting([CHUNK])) == [CHUNK]
        assert sent.rows == 3
    sent = SentReplacement(orders_schema(), {}, landed=3)
    with pytest.raises(RowCountError, match="not those that landed"):
        list(sent.counting([wrong]))
    parts = [replacing_part((1, 2), (1, 2)), replacing_part((3, 4), (3, 4))]
    with pytest.raises(RowCountError, match="not those that landed"):
        list(SentReplacement(orders_schema(), {}, landed=3).counting(parts))


class Scripted:
    """A session, a DataFrame and a result of Spark in one: what it is asked for, it has been told."""

    def __init__(self, merged: list[Any], sent: dict[str, int] | None = None) -> None:
        self.merged, self.sent, self.statements = merged, sent, list[str]()

    def __getattr__(self, _name: str) -> Any:
        return self

    def __call__(self, *_given: Any) -> Any:
        return self

    def sql(self, text: str) -> Any:
        self.statements.append(text)
        return SimpleNamespace(collect=lambda: self.merged, repartition=lambda _by: self)

    def selectExpr(self, *_columns: str) -> Any:
        rows = [SimpleNamespace(asDict=lambda: self.sent)]
        return SimpleNamespace(collect=lambda: rows)


def work() -> TableWork:
    return TableWork("/nowhere", "shop", orders_schema().table, 1, no_fence, lambda: None)


def replaced(spark: Any) -> list[Any]:
    """Three rows of a chunk that landed replace what the mirror has of their keys."""
    sent = SentReplacement(orders_schema(), {}, landed=3)
    list(sent.counting([CHUNK]))
    info = work().info("replacing", "{}", ("app", 1))
    return run_merge(work(), StagedRows(spark, sent), ReplaceRule(orders_schema()), info)


@pytest.mark.parametrize(
    ("found", "fits"),
    [
        pytest.param(counts(3, 0, 4), True, id="all-of-them"),
        pytest.param(counts(3, 0, 0), True, id="none-was-there-before"),
        pytest.param(counts(3, 0, 9), True, id="rows-that-were-double-go"),
        pytest.param([], True, id="delta-skipped-what-it-has"),
        pytest.param(counts(2, 0, 4), False, id="a-row-is-lost"),
        pytest.param(counts(4, 0, 4), False, id="a-row-is-there-twice"),
        pytest.param(counts(3, 1, 4), False, id="a-row-was-changed"),
    ],
)
def test_a_mirror_takes_a_chunk_as_it_was_sent(found: list[Any], *, fits: bool) -> None:
    spark = Scripted(found)
    if fits:
        assert replaced(spark) == found
        return
    with pytest.raises(RowCountError, match="MERGE reported other row counts"):
        replaced(spark)


@pytest.mark.parametrize(
    ("found", "keys", "fits"),
    [
        pytest.param(counts(0, 0, 2), 2, True, id="all-of-them"),
        pytest.param(counts(0, 0, 3), 2, True, id="rows-that-were-double-go"),
        pytest.param(counts(0, 0, 0), None, True, id="windows-took-them-meanwhile"),
        pytest.param([], 2, True, id="delta-skipped-what-it-has"),
        pytest.param(counts(0, 0, 1), 2, False, id="a-row-stays"),
        pytest.param(counts(0, 1, 2), 2, False, id="a-row-was-changed"),
        pytest.param(counts(1, 0, 0), None, False, id="a-row-came"),
    ],
)
def test_what_is_gone_goes(found: list[Any], keys: int | None, *, fits: bool) -> None:
    sent = SentReplacement(orders_schema(), {}, there=keys or 0)
    if fits:
        sent.check(found)
        return
    with pytest.raises(RowCountError, match="MERGE reported other row counts"):
        sent.check(found)


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_a_file_with_other_rows_than_landed_is_not_committed(tmp_path: Path, rows: int) -> None:
    """Whichever of a chunk's two Delta tables it is for; nothing has been asked of the table yet."""
    kinds = pa.schema([("ID", pa.int64())])
    batch = pa.RecordBatch.from_pydict({"ID": list(range(rows))}, kinds)
    file = write_file(str(tmp_path), kinds, [batch], [])
    files = () if file is None else (file,)
    fenced: list[None] = []
    one = replace(work(), root=str(tmp_path), fence=lambda: fenced.append(None))
    info = one.info("appending", "{}", ("a", 1))
    with pytest.raises(RowCountError, match="other rows were written than landed"):
        one.commit_written(str(tmp_path), files, info, rows=2)
    assert not fenced


SENT = {"rows_sent": 1, "keys_gone": 1, "rows_newer": 1, "keys": 2}


@pytest.mark.parametrize("way", ["staged", "carried", "late"])
def test_each_way_of_a_window_into_the_mirror_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """From files, by tasks where a change of key lacks a LOB, and derived from the whole change log: MERGE says that it did nothing."""
    spark = Scripted(counts(0, 0, 0), SENT)
    monkeypatch.setattr("cdc_core.lake.delta_lake.start_session", lambda *_given, **_options: spark)
    source, lake = Source(tmp_path / "landing", orders_schema()), DeltaLake(LakeConfig(path=str(tmp_path / "lake"), rewrite_mirrors_up_to_mb=0), "shop")  # fmt: skip
    tx = source.begin()
    row_id = tx.insert(order(1))
    tx.commit()
    source.chunk().apply(lake)
    read_scn = source.low = source.scn
    source.pending, source.ended = [], []
    tx = source.begin()
    if way == "carried":
        tx.update(row_id, {"ID": 2})
    elif way == "staged":
        tx.update(row_id, {"NAME": "changed"})
    else:
        tx.insert(order(2))
    tx.commit()
    more: dict[str, Any] = {"read_scn": read_scn}
    if way == "late":
        hidden = source.hide(tx)
        source.low = source.scn  # it belongs to the window before
        source.show(hidden)
        more = {"late_above": read_scn}
    with pytest.raises(RowCountError, match="MERGE reported other row counts"):
        source.cut().apply(lake, **more)
    assert len(spark.statements) == (2 if way == "carried" else 1)
