"""What a MERGE says that it did is held against what it was sent; no Spark is needed for that."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from cdc_core.errors import RowCountError
from cdc_core.lake.sent import Sent
from cdc_core.lake.windows import _check_appended
from tests.stage.landed import orders_schema

READ = 100


def part(*rows: tuple[int, str, int]) -> pa.Table:
    """A part of what is merged: (ID, kind, commit SCN) of each key."""
    ids, kinds, scns = zip(*rows, strict=True)
    return pa.table({"ID": ids, "_cdc_kind": kinds, "_cdc_commit_scn": scns})


def sent(*parts: pa.Table) -> Sent:
    found = Sent(orders_schema(), READ, {"table": "SHOP.ORDERS"})
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
    source = Sent(orders_schema(), None, {})
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
    source = Sent(orders_schema(), READ, {})
    source.take(COUNTED, are_different=are_different)
    if fits:
        source.check(found)
        return
    with pytest.raises(RowCountError, match="MERGE reported other row counts"):
        source.check(found)


def test_a_source_in_hand_is_counted_too() -> None:
    rows = part((1, "row", 101), (2, "row", 99), (3, "del", 102))
    source = Sent.of_table(rows, orders_schema(), {})
    source.check(counts(1, 1, 1))
    for wrong in (counts(1, 0, 1), counts(1, 1, 0)):
        with pytest.raises(RowCountError, match="MERGE reported other row counts"):
            source.check(wrong)
    with pytest.raises(RowCountError, match="more than one row of a key"):
        Sent.of_table(part((1, "row", 101), (1, "del", 102)), orders_schema(), {})


def test_two_rows_of_one_key_are_not_sent_by_spark_either() -> None:
    with pytest.raises(RowCountError, match="more than one row of a key"):
        Sent(orders_schema(), READ, {}).take({**COUNTED, "keys": 3}, are_different=False)


@pytest.mark.parametrize("appended", [2, 4])
def test_the_change_log_gives_back_what_was_written(appended: int) -> None:
    _check_appended({}, 3, 3)
    _check_appended({}, 3, None)
    with pytest.raises(RowCountError, match="does not give back"):
        _check_appended({}, 3, appended)
