"""What a window's keys hold by the whole change log, and what a mirror has otherwise: against tables that really change."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from cdc_core.stage.changes import LightChanges, LoggedChanges, OwnRows, of_window, up_to
from cdc_core.stage.difference import different_rows, rows_of_keys, touching
from cdc_core.stage.layout import CHUNK_ORDINAL, COMMIT_SCN, change_schema, mirror_schema
from cdc_core.stage.reduction import merge_source, reduce_changes
from tests.stage.test_reducing import SCHEMA, Key, Row, Table

WINDOWS = 4
KEY = list(SCHEMA.key)


class History:
    """A table that was read in chunks, at first and once more later, and its windows in between and after."""

    def __init__(self, case: int, folder: Path) -> None:
        self.rng = random.Random(case)
        deferred = self.rng.random() < 0.5
        self.table = Table(case, self.rng, deferred, known=self.rng.random() < 0.8)
        self.log: list[Row] = []
        self.images: dict[int, dict[Key, Row]] = {}
        self._take(0, transactions=3, logged=False)
        self._read("s1")
        for window in range(1, WINDOWS + 1):
            self._take(window * 100, transactions=self.rng.randint(1, 4))
            if window == 2:
                self._read("s2")
        self.path = str(folder / f"{case}.parquet")
        rows = pa.Table.from_pylist(self.log, change_schema(SCHEMA))
        pq.write_table(rows.take(self.rng.sample(range(len(rows)), len(rows))), self.path)

    def _take(self, window: int, transactions: int, *, logged: bool = True) -> None:
        self.table.changes.clear()
        for _ in range(transactions):
            self.table.transaction()
        if logged:
            self.log += [{**change, "_cdc_window": window} for change in self.table.changes]
            self.images[window] = self.table.image()

    def _read(self, snapshot: str) -> None:
        """A chunk has seen every change of its SCN."""
        for row in self.table.rows.values():
            self.log.append(
                {
                    "_cdc_op": "r", "_cdc_commit_scn": self.table.scn, "_cdc_ordinal": CHUNK_ORDINAL,
                    "_cdc_snapshot": f"{snapshot}/1", "_cdc_columns": 4, "_cdc_absent": [], "before": None, "after": row,
                }
            )  # fmt: skip

    def light(self, own: OwnRows) -> tuple[LoggedChanges, LightChanges]:
        changes = LoggedChanges(pafs.LocalFileSystem(), [self.path], SCHEMA, own)
        return changes, changes.light()

    def derived(self, window: int, position: int) -> pa.Table:
        """One row per key that the window touches."""
        history, light = self.light(up_to(position))
        near = touching(light, self.light(of_window(window))[1])
        absent = history.in_order(near.kinds(SCHEMA.column_names)[0])
        return merge_source(history, reduce_changes(near, SCHEMA, absent), SCHEMA)

    def mirror(self) -> pa.Table:
        """The rows that the whole history leaves, in the mirror's columns."""
        history, light = self.light(up_to(WINDOWS * 100))
        absent = history.in_order(light.kinds(SCHEMA.column_names)[0])
        whole = merge_source(history, reduce_changes(light, SCHEMA, absent), SCHEMA)
        rows = whole.to_pylist()
        assert {_key(row): _values(row) for row in rows if row["_cdc_kind"] == "row"} == self.images[WINDOWS * 100]  # fmt: skip
        return pa.Table.from_pylist(
            [row for row in rows if row["_cdc_kind"] == "row"], mirror_schema(SCHEMA)
        )


def _key(row: Row) -> Key:
    return row["CASE"], row["ID"]


def _values(row: Row) -> Row:
    return {name: row[name] for name in SCHEMA.column_names}


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_the_keys_of_a_window_are_what_they_were_at_any_later_position(
    tmp_path: Path, first: int
) -> None:
    for case in range(first, first + 40):
        history = History(case, tmp_path)
        for window in range(100, WINDOWS * 100 + 1, 100):
            own = [row for row in history.log if row.get("_cdc_window") == window]
            touched = {_key(row[i]) for row in own for i in ("before", "after") if row[i]}
            for position in range(window, WINDOWS * 100 + 1, 100):
                if position < 200:
                    continue  # the second snapshot has seen more than this position
                rows = history.derived(window, position).to_pylist()
                assert {_key(row) for row in rows} <= touched
                there = {_key(row): _values(row) for row in rows if row["_cdc_kind"] == "row"}
                image = history.images[position]
                assert there == {key: image[key] for key in touched & image.keys()}, (case, window)


def _spoiled(mirror: pa.Table, key: Key, **values: Any) -> pa.Table:
    rows = [{**row, **values} if _key(row) == key else row for row in mirror.to_pylist()]
    return pa.Table.from_pylist(rows, mirror.schema)


@pytest.mark.parametrize("case", range(20))
def test_what_the_mirror_has_otherwise_is_found_and_nothing_else(tmp_path: Path, case: int) -> None:
    history = History(case, tmp_path)
    derived, mirror = history.derived(400, 400), history.mirror()

    def different(rows: pa.Table, covered_scn: int = 0) -> list[tuple[Key, str]]:
        own = rows_of_keys([rows.slice(0, 1), rows.slice(1)], derived.select(KEY))
        found = different_rows(derived, own, SCHEMA, covered_scn=covered_scn)
        assert found is not None
        return [(_key(row), row["_cdc_kind"]) for row in found.to_pylist()]

    assert different(mirror) == []
    for row in derived.to_pylist():
        key, without = _key(row), [one for one in mirror.to_pylist() if _key(one) != _key(row)]
        if row["_cdc_kind"] == "del":
            again = {**row, "NAME": "it is back"}
            more = pa.Table.from_pylist([*mirror.to_pylist(), again], mirror.schema)
            assert different(more) == [(key, "del")]
            continue
        assert different(_spoiled(mirror, key, NAME="wrong")) == [(key, "row")]
        assert different(_spoiled(mirror, key, **{COMMIT_SCN: 1})) == [(key, "row")]
        note = different(_spoiled(mirror, key, NOTE="wrong" if row["NOTE"] is None else None))
        assert note == ([] if "NOTE" in row["_cdc_missing"] else [(key, "row")])
        lost = pa.Table.from_pylist(without, mirror.schema)
        assert different(lost) == [(key, "row")]
        assert different(lost, covered_scn=row[COMMIT_SCN]) == []
        assert different(lost, covered_scn=row[COMMIT_SCN] - 1) == [(key, "row")]
        twice = pa.concat_tables([mirror, mirror])
        assert (
            different_rows(derived, rows_of_keys([twice], derived.select(KEY)), SCHEMA, covered_scn=0)
            is None
        )  # fmt: skip


def _reduced(*changes: Row, folder: Path) -> list[tuple[str, str]]:
    """Keys and what became of them."""
    common = {"_cdc_window": 1, "_cdc_columns": 4, "_cdc_absent": []}
    path = str(folder / "changes.parquet")
    rows = pa.Table.from_pylist([{**common, **one} for one in changes], change_schema(SCHEMA))
    pq.write_table(rows, path)
    history = LoggedChanges(pafs.LocalFileSystem(), [path], SCHEMA, up_to(1))
    found = merge_source(history, reduce_changes(history.light(), SCHEMA, []), SCHEMA).to_pylist()
    return [(row["ID"], row["_cdc_kind"]) for row in found]


IMAGE = {"CASE": 1, "ID": "a", "NAME": "n", "NOTE": "l"}
READ = {"_cdc_window": None, "_cdc_snapshot": "s/1", "_cdc_ordinal": CHUNK_ORDINAL, "before": None, "after": None}  # fmt: skip
INSERT = {"_cdc_op": "c", "_cdc_commit_scn": 5, "_cdc_ordinal": 1, "_cdc_xid": "x", "_cdc_row_id": "R", "after": IMAGE}  # fmt: skip
DELETE = {**INSERT, "_cdc_op": "d", "before": IMAGE, "after": None}


def test_what_a_chunk_says_stands_behind_the_changes_of_its_scn(tmp_path: Path) -> None:
    """A row that a chunk did not see any more is gone, whatever inserted it at that SCN; one that it saw is there."""
    gone = {**READ, "_cdc_op": "d", "_cdc_commit_scn": 5, "before": IMAGE}
    there = {**READ, "_cdc_op": "r", "_cdc_commit_scn": 5, "after": IMAGE}
    assert _reduced(gone, INSERT, folder=tmp_path) == [("a", "del")]
    assert _reduced(there, DELETE, folder=tmp_path) == [("a", "row")]


def test_a_row_that_is_only_in_a_chunk_again_is_there(tmp_path: Path) -> None:
    again = {**READ, "_cdc_op": "r", "_cdc_commit_scn": 6, "after": IMAGE}
    assert _reduced(DELETE, again, folder=tmp_path) == [("a", "row")]


def test_a_column_that_no_change_carries_is_not_compared() -> None:
    place = {COMMIT_SCN: 5, "_cdc_ordinal": 1}
    mirror = pa.Table.from_pylist([{**IMAGE, **place}], mirror_schema(SCHEMA))
    added = {"_cdc_kind": "row", "_cdc_missing": ["NOTE"]}
    for name, different in (("NOTE", 0), ("NAME", 1)):
        derived = pa.Table.from_pylist([{**IMAGE, **place, name: None, **added}])
        derived = derived.set_column(0, "CASE", mirror["CASE"])
        for place_, field in enumerate(mirror.schema):
            derived = derived.set_column(place_, field, derived[field.name].cast(field.type))
        found = different_rows(derived, mirror, SCHEMA, covered_scn=0)
        assert found is not None
        assert len(found) == different, name


def test_not_a_number_equals_itself_and_null_is_a_value(tmp_path: Path) -> None:
    from cdc_core.stage.difference import are_same

    one = pa.array([1.0, float("nan"), None, None, float("nan"), -0.0])
    other = pa.array([1.0, float("nan"), None, 1.0, 1.0, 0.0])
    assert are_same(one, other).tolist() == [True, True, True, False, False, True]


def test_a_column_that_the_mirror_has_lost_is_not_missed() -> None:
    """A change of key that lacks it alone needs nothing from the row of the old key."""
    table = pa.table({"_cdc_op": ["u"], "_cdc_absent": [["NOTE"]]})
    flags = np.ones(1, dtype=np.bool_)
    light = LightChanges(table, (pa.array([1]),), (pa.array([2]),), flags, flags)
    assert light.kinds(["ID", "NOTE"]) == ({"NOTE"}, True)
    assert light.kinds(["ID"]) == (set(), False)
