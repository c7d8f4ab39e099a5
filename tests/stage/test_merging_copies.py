"""What a window makes of rows of a mirror whose equal rows are counted, held against piles that grow and shrink."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cdc_core.errors import LakeError
from cdc_core.schema.table import ROW_DIGEST
from cdc_core.stage.layout import mirror_schema
from cdc_core.stage.multiset.copies import copies_source, count_copies
from cdc_core.stage.multiset.merge import CopiesMerge
from tests.stage.test_copies import READ_SCN, SCHEMA, counts_of, image, landed, piled, played

Row = dict[str, Any]
Piles = dict[bytes, list[tuple[int, int]]]


def rows_of(piles: Piles, case: int) -> list[Row]:
    """The mirror's rows, and one of somebody else's without a digest."""
    values = {image(case, value)[ROW_DIGEST]: image(case, value) for value in ("a", "b", None)}
    rows = [
        {**values[digest], "_cdc_copy": at, "_cdc_commit_scn": scn, "_cdc_ordinal": ordinal}
        for digest, pile in piles.items()
        for at, (scn, ordinal) in enumerate(pile, 1)
    ]
    return [*rows, dict.fromkeys(mirror_schema(SCHEMA).names)]


def merged(rows: list[Row], source: pa.Table) -> tuple[list[Row], tuple[int, int, int]]:
    """The mirror after the window, from files of a few rows each, and what was inserted, updated and deleted."""
    columns, merge = mirror_schema(SCHEMA), CopiesMerge(source, SCHEMA)
    files = [pa.Table.from_pylist(rows[at : at + 4], columns) for at in range(0, len(rows), 4)]
    effects = [merge.effects(file) for file in files]
    counts = merge.rows_inserted, merge.rows_updated, merge.rows_deleted
    parts = [
        merge.merged(file.slice(at, 3), effect.of(at, min(3, file.num_rows - at)))
        for file, effect in zip(files, effects, strict=True)
        for at in range(0, file.num_rows, 3)
    ]
    return pa.concat_tables([*parts, merge.inserted()]).to_pylist(), counts


def window_of(folder: Path, case: int) -> tuple[list[Row], pa.Table, list[Row]]:
    """A mirror in no order, what a window sends it, and the mirror after it."""
    table = played(case)
    cut = READ_SCN + table.rng.randint(0, table.scn - READ_SCN)
    before = piled([one for one in table.changes if one["_cdc_commit_scn"] <= cut])
    own = landed(folder, [one for one in table.changes if cut < one["_cdc_commit_scn"]])
    source = copies_source(own, count_copies(own.light(), SCHEMA, counts_of(before)), SCHEMA)
    rows = rows_of(before, case)
    table.rng.shuffle(rows)
    return rows, source, rows_of(piled(table.changes), case)


def in_order(rows: list[Row]) -> list[str]:
    names = mirror_schema(SCHEMA).names
    return sorted(repr([row[name] for name in names]) for row in rows)


def test_rows_become_what_the_changes_make(tmp_path: Path) -> None:
    done = [0, 0, 0]
    for case in range(60):
        rows, source, wanted = window_of(tmp_path, case)
        found, counts = merged(rows, source)
        assert in_order(found) == in_order(wanted), case
        assert len(found) == len(rows) + counts[0] - counts[2]
        assert sum(counts) == source.num_rows
        done = [sum(both) for both in zip(done, counts, strict=True)]
    assert all(done), "every kind of change took place"


@pytest.mark.parametrize("kind", ["a-copy-comes-that-is-there", "a-copy-goes-that-is-not", "a-copy-moves-that-is-not"])  # fmt: skip
def test_a_mirror_that_is_another_one_is_not_written(tmp_path: Path, kind: str) -> None:
    seen = 0
    for case in range(30):
        rows, source, _ = window_of(tmp_path, case)
        wanted = {
            "a-copy-comes-that-is-there": [one for one in source.to_pylist() if one["_cdc_new"]],
            "a-copy-goes-that-is-not": [one for one in source.to_pylist() if one["_cdc_kind"] == "del"],
            "a-copy-moves-that-is-not": [one for one in source.to_pylist() if one["_cdc_kind"] == "row" and not one["_cdc_new"]],
        }[kind]  # fmt: skip
        if not wanted:
            continue
        seen += 1
        key = ROW_DIGEST, "_cdc_copy"
        if wanted[0]["_cdc_new"]:
            wrong = [*rows, {name: wanted[0][name] for name in mirror_schema(SCHEMA).names}]
        else:
            wrong = [row for row in rows if any(row[name] != wanted[0][name] for name in key)]
        with pytest.raises(LakeError, match="has changed since it was read"):
            merged(wrong, source)
    assert seen > 5
