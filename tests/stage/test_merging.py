"""What a window makes of rows of its mirror, held against the rule of MERGE in plain Python, row by row."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cdc_core.errors import CdcError, DecodeError, DuplicateKeyError, LakeError
from cdc_core.stage.layout import mirror_schema
from cdc_core.stage.merge import (
    Effects,
    KeyValues,
    ReplaceMerge,
    TruncationMerge,
    WindowMerge,
    places_of,
)
from cdc_core.stage.reduction import source_schema
from cdc_core.stage.snapshot import replacing
from tests.stage.merges import ABSENT, COVERED, KINDS, READ, Case, keyed, random_case

Row = dict[str, Any]


def merged(case: Case, *, is_truth: bool = False) -> tuple[list[Row], tuple[int, int, int]]:
    """The mirror after the window, from files of a few rows each, and what was inserted, updated and deleted."""
    merge = WindowMerge(
        pa.Table.from_pylist(case.source, source_schema(case.schema)), case.schema, case.absent,
        covered_scn=COVERED, read_scn=case.read_scn, is_truth=is_truth,
    )  # fmt: skip
    columns = mirror_schema(case.schema)
    files = [
        pa.Table.from_pylist(case.mirror[at : at + 7], columns)
        for at in range(0, len(case.mirror), 7)
    ]
    effects = [merge.effects(file) for file in files]
    counts = merge.rows_inserted, merge.rows_updated, merge.rows_deleted
    parts = []
    for file, effect in zip(files, effects, strict=True):
        for at in range(0, file.num_rows, 3):
            there, own = file.slice(at, 3), effect.of(at, min(3, file.num_rows - at))
            parts.append(merge.merged(there, own))
            if not own.deletes.any():
                check_columns(merge, there, own, parts[-1])
    return pa.concat_tables([*parts, merge.inserted()]).to_pylist(), counts


def check_columns(merge: WindowMerge, there: pa.Table, own: Effects, after: pa.Table) -> None:
    """Column by column rows become the same, and a column is there exactly if a value changes."""
    for name in there.column_names:
        before = there[name].combine_chunks()
        found = merge.changed(name, own, lambda values=before: values)  # type: ignore[misc]
        wanted = repr(after[name].to_pylist())
        assert repr((before if found is None else found).to_pylist()) == wanted
        assert (found is None) == (repr(before.to_pylist()) == wanted)


def expected(case: Case, *, is_truth: bool = False) -> tuple[list[Row], tuple[int, int, int]]:
    """The same by the words of the rule."""
    left, found = [], [0, 0, 0]
    names = mirror_schema(case.schema).names
    met = set()
    for row in case.mirror:
        own = [
            (at, one) for at, one in enumerate(case.source) if _is_equal(one, row, case.schema.key)
        ]
        met |= {at for at, _ in own}
        position = row["_cdc_commit_scn"], row["_cdc_ordinal"]
        newer = [
            one
            for _, one in own
            if is_truth
            or (None not in position and (one["_cdc_commit_scn"], one["_cdc_ordinal"]) > position)
        ]
        if not newer:
            left.append(row)
            continue
        [one] = newer
        if one["_cdc_kind"] == "del":
            found[2] += 1
            continue
        distance = 2**63 - 2 - (position[1] or 0)
        is_seen = distance <= 2**32 and one["_cdc_new_scn"] <= (position[0] or 0) + distance
        if one["_cdc_new"] and not (is_seen or is_truth):
            raise DuplicateKeyError("double", hint="-")
        if one["_cdc_lost"] and one["_cdc_missing"] and not is_truth:
            raise DecodeError("lost", hint="-")
        kept = {*case.schema.key, *one["_cdc_missing"]}
        left.append({name: (row if name in kept else one)[name] for name in names})
        found[1] += 1
    for at, one in enumerate(case.source):
        scn, lacks = one["_cdc_commit_scn"], bool(one["_cdc_missing"])
        if at in met or one["_cdc_kind"] == "del" or scn <= COVERED:
            continue
        if lacks and case.read_scn is not None and not one["_cdc_lost"] and scn <= case.read_scn:
            continue
        if lacks:
            raise LakeError("lacking", hint="-")
        left.append({name: one[name] for name in names})
        found[0] += 1
    return _as_held(case, left), (found[0], found[1], found[2])


def _as_held(case: Case, rows: list[Row]) -> list[Row]:
    return pa.Table.from_pylist(rows, mirror_schema(case.schema)).to_pylist()


def _is_equal(one: Row, other: Row, key: tuple[str, ...]) -> bool:
    pairs = [(one[name], other[name]) for name in key]
    return all(
        a is not None
        and b is not None
        and (a == b or (isinstance(a, float) and math.isnan(a) and math.isnan(b)))
        for a, b in pairs
    )


def in_order(rows: list[Row]) -> list[str]:
    return sorted(repr(list(row.items())) for row in rows)


@pytest.mark.parametrize("is_truth", [False, True], ids=["newer", "the-truth"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_rows_become_what_merge_makes_of_them(kind: str, *, is_truth: bool) -> None:
    """Keys of every kind, NULL among them; positions before, at and behind the row's own, which
    make no difference to the truth; columns that are missing."""
    done = np.zeros(3, dtype=int)
    for seed in range(12):
        case = random_case(Random(seed), kind)
        rows, counts = merged(case, is_truth=is_truth)
        wanted, wanted_counts = expected(case, is_truth=is_truth)
        assert (in_order(rows), counts) == (in_order(wanted), wanted_counts), seed
        done += counts
    assert done.all(), "every kind of change took place"


@pytest.mark.parametrize("scn", [None, 20], ids=["all", "up-to-an-SCN"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_rows_come_in_the_place_of_all_of_their_keys(kind: str, scn: int | None) -> None:
    """Of a mirror that has each row twice. Up to an SCN, keys go and none comes."""
    case = random_case(Random(3), kind)
    columns, key = mirror_schema(case.schema), list(case.schema.key)
    come = [one for one in case.source if one["_cdc_kind"] == "row" and scn is None]
    gone = [one for one in case.source if one not in come]
    rows = pa.Table.from_pylist(come, columns)
    keys = pa.Table.from_pylist(gone, columns).select(key)
    merge = ReplaceMerge(replacing(rows, keys, case.schema), case.schema, scn)
    there = pa.Table.from_pylist(case.mirror * 2, columns)
    effects = merge.effects(there)
    found = [*merge.merged(there, effects).to_pylist(), *merge.inserted().to_pylist()]
    stay = [
        row
        for row in there.to_pylist()
        if (scn is not None and row["_cdc_commit_scn"] > scn)
        or not any(_is_equal(one, row, case.schema.key) for one in case.source)
    ]
    assert in_order(found) == in_order([*stay, *rows.to_pylist()])
    counts = merge.rows_inserted, merge.rows_updated, merge.rows_deleted
    assert counts == (len(come), 0, len(there) - len(stay))
    assert 0 < len(stay) < len(there)
    near = merge.near(there.select(key))
    assert set(np.flatnonzero(effects.deletes)) <= set(near.tolist())


@pytest.mark.parametrize(
    ("error", "wrong", "is_there"),
    [
        pytest.param(DuplicateKeyError, {"_cdc_new": True}, True, id="an-insert-meets-a-row"),
        pytest.param(DecodeError, {"_cdc_lost": True, "_cdc_missing": ["V"]}, True, id="moved-to-a-row"),
        pytest.param(LakeError, {"_cdc_missing": ["V"]}, False, id="no-row-to-take-it-from"),
        pytest.param(LakeError, {"_cdc_lost": True, "_cdc_missing": ["V"]}, False, id="moved-from-nowhere"),
    ],
)  # fmt: skip
def test_what_cannot_be_merged_stops_before_a_row_is_made(
    error: type[CdcError], wrong: Row, is_there: bool
) -> None:
    for seed in range(3):
        case = random_case(Random(seed), "number").with_one(wrong, is_there=is_there)
        with pytest.raises(error):
            expected(case)
        with pytest.raises(error) as caught:
            merged(case)
        assert type(caught.value) is error


def test_a_part_of_a_row_that_a_chunk_saw_gone_is_no_row() -> None:
    """Up to the SCN as of which chunks were read, and not behind it."""
    case = random_case(Random(1), "number").with_one(
        {"_cdc_missing": ["V"], "_cdc_commit_scn": READ}, is_there=False, read_scn=READ
    )
    assert merged(case) == merged(case.without_last())
    behind = random_case(Random(1), "number").with_one(
        {"_cdc_missing": ["V"], "_cdc_commit_scn": READ + 1}, is_there=False, read_scn=READ
    )
    with pytest.raises(LakeError):
        merged(behind)


def test_a_window_that_leaves_no_key_leaves_the_mirror() -> None:
    case = random_case(Random(3), "number")
    rows, counts = merged(Case(case.schema, case.mirror, [], case.absent, None))
    assert (in_order(rows), counts) == (in_order(_as_held(case, case.mirror)), (0, 0, 0))


def test_zero_has_one_key_and_nan_is_equal_to_itself() -> None:
    schema = keyed("double")
    columns = {"V": "v", "W": "w", "_cdc_commit_scn": 1, "_cdc_ordinal": 1}
    marks = {"_cdc_kind": "row", "_cdc_missing": [], "_cdc_lost": False, "_cdc_new": False}
    there = [{"K": -0.0, **columns}, {"K": math.nan, **columns}, {"K": None, **columns}]
    sent = [{**row, "V": "new", "_cdc_commit_scn": 50, **marks} for row in there]
    sent[0]["K"] = 0.0
    rows, counts = merged(Case(schema, there, sent, ABSENT, None))
    assert counts == (1, 2, 0), "NULL is equal to nothing"
    assert [math.copysign(1, row["K"]) for row in rows if row["K"] == 0] == [-1.0], (
        "MERGE leaves keys as they are"
    )


def test_two_rows_of_one_key_in_a_mirror_are_both_counted() -> None:
    """So that the counts do not fit what was sent."""
    case = random_case(Random(5), "number")
    one = case.source[-1]
    row = {name: one[name] for name in mirror_schema(case.schema).names} | {"_cdc_commit_scn": 1}
    changes = {**one, "_cdc_kind": "row", "_cdc_new": False, "_cdc_lost": False, "_cdc_missing": []}
    merge = WindowMerge(
        pa.Table.from_pylist([changes], source_schema(case.schema)), case.schema, (), covered_scn=0, read_scn=None
    )  # fmt: skip
    merge.effects(pa.Table.from_pylist([row, row], mirror_schema(case.schema)))
    assert (merge.rows_updated, merge.rows_inserted) == (2, 0)


def test_a_truncate_takes_what_is_older() -> None:
    """Not what a chunk read at its SCN, nor a row of which nobody says when it came."""
    schema = keyed("number")
    scns = [10, 20, 21, None, 5]
    rows = [
        {"K": at, "V": f"v{at}", "W": None, "_cdc_commit_scn": scn, "_cdc_ordinal": 0}
        for at, scn in enumerate(scns)
    ]
    there = pa.Table.from_pylist(rows, mirror_schema(schema))
    merge = TruncationMerge(20, schema)
    assert merge.near(there).tolist() == [0, 4]
    assert merge.near(there.select(["K"])).tolist() == [0, 1, 2, 3, 4]
    left = merge.merged(there, merge.effects(there))
    assert left.to_pylist() == rows[1:4]
    counts = merge.rows_inserted, merge.rows_updated, merge.rows_deleted
    assert (counts, merge.inserted().num_rows) == ((0, 0, 2), 0)


def test_whole_numbers_are_looked_up_as_a_join_finds_them() -> None:
    """Out of order, beyond both ends, twice in the mirror, none at all; of what it does not know it says nothing."""
    keys = pa.table({"k0": pa.array([7, -3, 2**62, 0, 41], pa.int64())})
    there = pa.table({"k0": pa.array([41, 8, -3, -3, 2**62 + 1, -(2**62), 0], pa.int64())})
    found = KeyValues(keys["k0"]).numbers_of(there["k0"])
    assert found is not None
    assert found.tolist() == places_of(there, keys).tolist() == [4, -1, 1, 1, -1, -1, 3]
    assert KeyValues(keys["k0"]).numbers_of(there["k0"].slice(0, 0)).tolist() == []  # type: ignore[union-attr]
    unknown = pa.chunked_array([pa.array([1, None], pa.int64())])
    assert KeyValues(keys["k0"]).numbers_of(unknown) is None
    assert KeyValues(unknown).numbers_of(there["k0"]) is None
    assert KeyValues(keys["k0"].slice(0, 0)).numbers_of(there["k0"]) is None
    assert KeyValues(keys["k0"]).numbers_of(there["k0"].cast(pa.string())) is None
