"""One row per key: against tables that really change."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from cdc_core.delta.file_names import PLAIN_NAMES
from cdc_core.errors import DecodeError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column, TableSchema
from cdc_core.stage import changes as stage_changes
from cdc_core.stage import reduction as reducing
from cdc_core.stage.changes import AddedColumn, LoggedChanges, of_window
from cdc_core.stage.layout import change_schema
from cdc_core.stage.reduction import merge_sources

Key = tuple[int, str]
Row = dict[str, Any]
WINDOW = 10_000

SCHEMA = TableSchema(
    TableId("SHOP", "T"),
    Scn(1),
    (
        Column("CASE", "NUMBER", 22, 0, 9, 0, nullable=False),
        Column("ID", "VARCHAR2", 9, 9, None, None, nullable=False),
        Column("NAME", "VARCHAR2", 9, 9, None, None, nullable=True),
        Column("NOTE", "CLOB", 4000, 0, None, None, nullable=True),
    ),
    ("CASE", "ID"),
)


@dataclass
class Table:
    """Rows by ROW_ID, and the changes that made them what they are. ``key_is_deferred``: two rows may share a key until the end of
    a transaction, in any order of statements; otherwise until the end of a statement."""

    case: int
    rng: random.Random
    key_is_deferred: bool
    known: bool = True
    rows: dict[str, Row] = field(default_factory=dict)
    changes: list[Row] = field(default_factory=list)
    scn: int = 0
    ordinal: int = 0
    free: list[str] = field(default_factory=lambda: [f"R{n}" for n in range(9)])

    def log(
        self, op: str, rid: str, before: Row | None, after: Row | None, absent: list[str]
    ) -> None:
        self.ordinal += 1

        def carried(image: Row | None) -> Row | None:
            return image and {c: None if c in absent else v for c, v in image.items()}

        old = before and {**before, "NOTE": None}
        self.changes.append(
            {
                "_cdc_op": op, "_cdc_commit_scn": self.scn, "_cdc_ordinal": self.ordinal, "_cdc_xid": f"x{self.scn}",
                "_cdc_row_id": rid if self.known else None, "_cdc_window": WINDOW, "_cdc_columns": 4,
                "_cdc_absent": [] if op == "d" else absent, "before": old, "after": carried(after),
            }
        )  # fmt: skip

    def insert(self, key: str) -> None:
        rid = self.free.pop(self.rng.randrange(len(self.free)))
        row = {"CASE": self.case, "ID": key, "NAME": f"n{self.ordinal}", "NOTE": f"l{self.ordinal}"}
        listed = ["NOTE"] if self.rng.random() < 0.2 else []
        if listed:
            row["NOTE"] = None
        self.rows[rid] = row
        self.log("c", rid, None, row, listed)

    def update(self, rid: str, **values: Any) -> None:
        before = self.rows[rid]
        after = {**before, **values}
        # LogMiner leaves a LOB out of the old image: what SET does not name is not known.
        absent = [] if "NOTE" in values else ["NOTE"]
        self.rows[rid] = after
        self.log("u", rid, before, after, absent)

    def delete(self, rid: str) -> None:
        self.log("d", rid, self.rows.pop(rid), None, [])
        self.free.append(rid)

    def transaction(self) -> None:
        """A few statements; at the end every key has one row."""
        self.scn += 1
        for _ in range(self.rng.randint(1, 5)):
            rids = sorted(self.rows)
            taken = {row["ID"] for row in self.rows.values()}
            new = [key for key in "abcd" if key not in taken]
            match self.rng.randrange(6):
                case 0 if new:
                    self.insert(self.rng.choice(new))
                case 1 if rids:
                    self.delete(self.rng.choice(rids))
                case 2 if rids and self.known:
                    # A change of key carries every column, or else the mirror's row of the old key would be asked.
                    rid = self.rng.choice(rids)
                    target = self.rng.choice("abcd")
                    other = [r for r in rids if self.rows[r]["ID"] == target and r != rid]
                    old = self.rows[rid]["ID"]
                    self.update(rid, ID=target, NOTE=f"m{self.ordinal}")
                    if other:  # the same statement moves the row that had the key
                        self.update(other[0], ID=old, NOTE=f"m{self.ordinal}")
                case 3 if rids and self.key_is_deferred and self.known and len(self.free) > 1:
                    self.insert(self.rows[self.rng.choice(rids)]["ID"])
                case 4 if rids and self.key_is_deferred and self.known:
                    rid = self.rng.choice(rids)
                    self.update(rid, ID=self.rng.choice("abcd"), NOTE=f"m{self.ordinal}")
                case _ if rids:
                    values = {"NAME": f"u{self.ordinal}"}
                    if self.rng.random() < 0.4:
                        values["NOTE"] = f"v{self.ordinal}"
                    self.update(self.rng.choice(rids), **values)
        self.settle()

    def settle(self) -> None:
        """Of the rows that share a key at the end, all but one go, or take another key."""
        while len(self.image()) < len(self.rows):
            keys = [row["ID"] for row in self.rows.values()]
            shared = sorted(rid for rid, row in self.rows.items() if keys.count(row["ID"]) > 1)
            free = [key for key in "abcdefgh" if key not in keys]
            rid = self.rng.choice(shared)
            if self.rng.random() < 0.5:
                self.delete(rid)
            else:
                self.update(rid, ID=self.rng.choice(free), NOTE=f"m{self.ordinal}")

    def image(self) -> dict[Key, Row]:
        return {(row["CASE"], row["ID"]): row for row in self.rows.values()}


def played(case: int) -> tuple[dict[Key, Row], Table]:
    """A mirror as it was, and a table after a window of transactions."""
    rng = random.Random(case)
    table = Table(case, rng, key_is_deferred=rng.random() < 0.5, known=rng.random() < 0.8)
    for _ in range(rng.randint(0, 3)):
        table.transaction()
    before = table.image()
    table.changes.clear()
    while not table.changes:
        for _ in range(rng.randint(1, 6)):
            table.transaction()
    return before, table


def landed(folder: Path, changes: list[Row]) -> LoggedChanges:
    """The changes in two files of a change log, some in small row groups, beside rows that are not this window's."""
    others: list[Row] = [
        {**changes[0], "_cdc_window": WINDOW - 1}, {**changes[0], "_cdc_snapshot": "s1/1"}
    ]  # fmt: skip
    half = len(changes) // 2
    paths = []
    for number, rows in enumerate((others + changes[:half], changes[half:] + others)):
        paths.append(str(folder / f"{number}.parquet"))
        table = pa.Table.from_pylist(rows, change_schema(SCHEMA))
        pq.write_table(table, paths[-1], row_group_size=7 if len(rows) < 100 else 500)
    return LoggedChanges(pafs.LocalFileSystem(), paths, SCHEMA, of_window(WINDOW))


def source_of(folder: Path, changes: list[Row], schema: TableSchema = SCHEMA) -> list[Row]:
    found = landed(folder, changes)
    facts = found.facts()
    assert facts.changes == len(changes)
    return [row for rows in merge_sources(found, schema, facts.absent) for row in rows.to_pylist()]


def merged(before: dict[Key, Row], source: list[Row]) -> dict[Key, Row]:
    """What MERGE makes of it."""
    after = dict(before)
    for row in source:
        key = row["CASE"], row["ID"]
        old = after.pop(key, None)
        if row["_cdc_kind"] == "row":
            assert not (row["_cdc_new"] and old), "a row was inserted that was there"
            assert not (row["_cdc_missing"] and (row["_cdc_lost"] or old is None))
            after[key] = {
                c: (old or {})[c] if c in row["_cdc_missing"] else row[c]
                for c in SCHEMA.column_names
            }
    return after


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_a_window_leaves_what_the_table_holds(tmp_path: Path, first: int) -> None:
    """Keys that rows share for a moment, keys that come and go, LOBs that changes do not carry."""
    for case in range(first, first + 50):
        before, table = played(case)
        assert merged(before, source_of(tmp_path, table.changes)) == table.image(), case


def test_bounds_are_those_of_whole_numbers(tmp_path: Path) -> None:
    """Of texts a mirror's log has shortened ones, and of decimals none that are exact."""
    changes = [change for case in range(3, 30) for change in played(case)[1].changes]
    assert landed(tmp_path, changes).facts().bounds == {"CASE": (3, 29)}


def test_each_key_once_over_many_tables(tmp_path: Path) -> None:
    games = [played(case) for case in range(300)]
    changes = [change for _, table in games for change in table.changes]
    random.Random(1).shuffle(changes)
    source = source_of(tmp_path, changes)
    assert len({(row["CASE"], row["ID"]) for row in source}) == len(source)
    before = {key: row for one, _ in games for key, row in one.items()}
    after = {key: row for _, table in games for key, row in table.image().items()}
    assert merged(before, source) == after


def test_parts_of_a_window_are_the_whole_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change of key may begin in one part and end in another."""
    changes = [change for case in range(100) for change in played(case)[1].changes]
    whole = source_of(tmp_path, changes)
    monkeypatch.setattr(stage_changes, "PART_CHANGES_MAX", 150)
    found = landed(tmp_path, changes)
    tables = list(merge_sources(found, SCHEMA, found.facts().absent))
    assert len(tables) > 3
    assert min(len(table) for table in tables) * 2 > max(len(table) for table in tables)
    parts = [row for table in tables for row in table.to_pylist()]
    assert sorted(parts, key=repr) == sorted(whole, key=repr)


def test_parts_are_smaller_where_changes_may_lack_many_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part holds a name for each column that a row lacks."""
    changes = [change for case in range(100) for change in played(case)[1].changes]
    whole = source_of(tmp_path, changes)
    found = landed(tmp_path, changes)
    absent = ("NAME", "NOTE")
    monkeypatch.setattr(stage_changes, "PART_CHANGES_MAX", len(changes) + 4)
    assert (found.parts, len(list(merge_sources(found, SCHEMA, absent)))) == (1, 1)
    monkeypatch.setattr(stage_changes, "PART_NAMES_MAX", 1)
    tables = list(merge_sources(found, SCHEMA, absent))
    assert (found.parts, len(tables)) == (1, 2)
    rows = [row for table in tables for row in table.to_pylist()]
    assert sorted(rows, key=repr) == sorted(whole, key=repr)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(pa.array([1, -1, 2**62, 0]), id="int"),
        pytest.param(pa.array(["", "a", "b", "ab", "ba", "aa", "ä" * 300]), id="text"),
        pytest.param(pa.array([Decimal("1.10"), Decimal("-1.10"), Decimal("0.00")]), id="decimal"),
        pytest.param(pa.array([0.5, 1.5, -1.5]), id="double"),
        pytest.param(pa.array([datetime(1, 1, 1), datetime(2026, 1, 1)]), id="date"),
        pytest.param(pa.array([b"", b"\0", b"\0\0", b"\1"]), id="raw"),
    ],
)
def test_equal_keys_are_in_one_part(values: pa.Array) -> None:
    rows = len(values)
    twice = pa.concat_arrays([values, values[::-1]])
    other = pa.array(range(rows))
    for key in ([twice], [twice, pa.concat_arrays([other, other[::-1]])]):
        parts = stage_changes.part_of(key, 1 << 40)
        assert parts[:rows].tolist() == parts[: rows - 1 : -1].tolist()
        assert len(set(parts.tolist())) == rows
        sliced = [column[1:] for column in key]
        assert stage_changes.part_of(sliced, 1 << 40).tolist() == parts[1:].tolist()


def test_zero_has_no_sign_as_a_key() -> None:
    assert len(set(stage_changes.part_of([pa.array([0.0, -0.0])], 1 << 40).tolist())) == 1


def change(op: str, ordinal: int, rid: str | None, before: str | None, after: str | None) -> Row:
    def image(key: str | None) -> Row | None:
        return key and {"CASE": 1, "ID": key, "NAME": "n", "NOTE": None}  # type: ignore[return-value]

    return {
        "_cdc_op": op, "_cdc_commit_scn": 5, "_cdc_ordinal": ordinal, "_cdc_xid": "x", "_cdc_row_id": rid,
        "_cdc_window": WINDOW, "_cdc_absent": [], "before": image(before), "after": image(after),
    }  # fmt: skip


DEFERRED = replace(SCHEMA, key_is_deferred=True)
REFUSED = pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param(
            [
                change("u", 1, None, "a", "b"),
                change("d", 2, "R2", "b", None),
                change("u", 3, None, "c", "b"),
            ],
            reducing.AMBIGUOUS,
            id="moved-and-deleted-by-nobody-knows-which-row",
        ),
        pytest.param(
            [change("u", 1, None, "a", "b"), change("u", 2, None, "b", "c")],
            reducing.AMBIGUOUS,
            id="moved-on-by-nobody-knows-which-row",
        ),
        pytest.param(
            [change("c", 1, None, None, "a"), change("u", 2, "R1", "a", "a"), change("d", 3, "R2", "a", None)],
            reducing.UNKNOWN_ROW,
            id="a-new-row-of-unknown-address-before-a-delete",
        ),
        pytest.param(
            [change("c", 1, "R1", None, "a"), change("c", 2, "R2", None, "a")],
            reducing.TWICE,
            id="two-rows-at-the-end",
        ),
        pytest.param(
            [change("d", 1, "R1", "a", None), {**change("u", 2, "R1", "a", "a"), "_cdc_commit_scn": 6}],
            reducing.AFTER_DELETE,
            id="an-update-of-what-is-gone",
        ),
    ],
)  # fmt: skip


@REFUSED
def test_what_cannot_be_is_refused(tmp_path: Path, changes: list[Row], message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        source_of(tmp_path, changes, DEFERRED)


def test_a_row_that_came_and_went_leaves_nothing_where_oracle_checks_its_key_at_once(
    tmp_path: Path,
) -> None:
    """LogMiner does not know the address of a row that is inserted into a table with LOBs."""
    gone = [change("c", 1, None, None, "a"), change("d", 2, "R1", "a", None)]
    assert source_of(tmp_path, gone) == []
    with pytest.raises(DecodeError, match=reducing.UNKNOWN_ROW):
        source_of(tmp_path, gone, DEFERRED)
    there = [change("d", 1, "R1", "a", None), change("c", 2, None, None, "a")]
    assert source_of(tmp_path, there, DEFERRED) == source_of(tmp_path, there) != []


def test_an_update_of_what_is_gone_counts_beside_a_gap_if_it_carries_the_whole_row(
    tmp_path: Path,
) -> None:
    """The insert between them is in quarantine, and with it the values that the update lacks."""
    whole = {**change("u", 2, "R1", "a", "a"), "_cdc_commit_scn": 6}
    for update in (whole, {**whole, "_cdc_absent": ["NOTE"]}):
        found = landed(tmp_path, [change("d", 1, "R1", "a", None), update])
        reduced = merge_sources(found, SCHEMA, found.facts().absent, has_gaps=True)
        if update is whole:
            assert [row["_cdc_kind"] for rows in reduced for row in rows.to_pylist()] == ["row"]
        else:
            with pytest.raises(DecodeError, match=reducing.AFTER_DELETE):
                list(reduced)


def test_a_row_has_the_default_of_a_column_that_was_added_after_it(tmp_path: Path) -> None:
    """By the change that a row comes from alone: one that was written with the column, and does not list it, has NULL."""
    older = {**change("c", 1, "R1", None, "a"), "_cdc_columns": 3, "_cdc_absent": ["NOTE"]}
    newer = {**change("c", 2, "R2", None, "b"), "_cdc_columns": 4, "_cdc_absent": ["NOTE"]}
    updated = {**change("u", 3, "R3", "c", "c"), "_cdc_columns": 3, "_cdc_absent": ["NOTE"]}
    from_before = {**change("c", 4, "R4", None, "d"), "_cdc_columns": 3}
    changes = [older, newer, updated, from_before]
    added = {"NOTE": AddedColumn(3, pa.scalar("given"))}
    landed(tmp_path, changes).close()
    paths = [str(tmp_path / f"{number}.parquet") for number in (0, 1)]
    found = LoggedChanges(
        pafs.LocalFileSystem(), paths, SCHEMA, of_window(WINDOW), PLAIN_NAMES, added
    )
    [rows] = merge_sources(found, SCHEMA, found.facts().absent)
    assert {row["ID"]: (row["NOTE"], row["_cdc_missing"]) for row in rows.to_pylist()} == {
        "a": ("given", []),
        "b": (None, []),
        "c": (None, ["NOTE"]),
        "d": ("given", []),
    }
