"""Equal rows are counted: against piles that really grow and shrink."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from cdc_core.errors import LakeError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import ROW_DIGEST, ROW_DIGEST_COLUMN, Column, TableSchema
from cdc_core.stage import changes as stage_changes
from cdc_core.stage.changes import LoggedChanges
from cdc_core.stage.layout import CHUNK_ORDINAL, change_schema
from cdc_core.stage.multiset.copies import Copies, copies_source, count_copies, different_copies

Place = tuple[int, int]
Piles = dict[str, list[Place]]
READ_SCN = 100

SCHEMA = TableSchema(
    TableId("SHOP", "T"),
    Scn(1),
    (
        ROW_DIGEST_COLUMN,
        Column("CASE", "NUMBER", 22, 0, 9, 0, nullable=True),
        Column("V", "VARCHAR2", 9, 9, None, None, nullable=True),
    ),
    (ROW_DIGEST,),
)


def image(case: int, value: str | None) -> dict[str, Any]:
    digest = sha256(f"{case} {value}".encode()).digest()
    return {ROW_DIGEST: digest, "CASE": case, "V": value}


class Table:
    """Rows of three values, few of which differ, and its change log: a snapshot, and what transactions do, which commit in another order than
    they begin."""

    def __init__(self, case: int) -> None:
        self.case, self.rng = case, random.Random(case)
        self.changes: list[dict[str, Any]] = []
        self.rows: list[str | None] = [self.value() for _ in range(self.rng.randint(0, 6))]
        self.scn = READ_SCN
        self.ordinal = 0
        for value in self.rows:
            self.log("r", None, value, ordinal=CHUNK_ORDINAL)

    def value(self) -> str | None:
        return self.rng.choice(["a", "b", None])

    def transaction(self) -> None:
        self.scn += self.rng.randint(1, 2)
        for _ in range(self.rng.randint(1, 4)):
            at = self.rng.randrange(len(self.rows)) if self.rows else None
            if at is None or self.rng.random() < 0.4:
                self.rows.append(self.value())
                self.log("c", None, self.rows[-1])
            elif self.rng.random() < 0.5:
                self.log("d", self.rows.pop(at), None)
            else:
                old, self.rows[at] = self.rows[at], self.value()
                self.log("u", old, self.rows[at])

    def log(self, op: str, old: str | None, new: str | None, ordinal: int | None = None) -> None:
        self.ordinal += 1
        self.changes.append(
            {
                "_cdc_op": op, "_cdc_commit_scn": self.scn, "_cdc_ordinal": ordinal or self.ordinal, "_cdc_absent": [],
                "_cdc_window": self.scn, "_cdc_xid": "x", "_cdc_snapshot": "s/1" if op == "r" else None,
                "before": image(self.case, old) if op in "ud" else None,
                "after": image(self.case, new) if op in "cur" else None,
            }
        )  # fmt: skip


def played(case: int) -> Table:
    table = Table(case)
    for _ in range(table.rng.randint(1, 8)):
        table.transaction()
    return table


def piled(changes: Sequence[dict[str, Any]]) -> dict[bytes, list[Place]]:
    """The rule in its own words: what comes lies on top, what goes is the top."""
    piles: dict[bytes, list[Place]] = defaultdict(list)
    for one in sorted(changes, key=lambda one: (one["_cdc_commit_scn"], one["_cdc_ordinal"])):
        if one["before"] == one["after"]:
            continue
        if one["before"]:
            piles[one["before"][ROW_DIGEST]].pop()
        if one["after"]:
            piles[one["after"][ROW_DIGEST]].append((one["_cdc_commit_scn"], one["_cdc_ordinal"]))
    return {digest: pile for digest, pile in piles.items() if pile}


def landed(folder: Path, changes: Sequence[dict[str, Any]]) -> LoggedChanges:
    path = str(folder / "changes.parquet")
    table = pa.Table.from_pylist(list(changes), change_schema(SCHEMA))
    pq.write_table(table, path, row_group_size=50)
    everything = [path], SCHEMA, lambda rows: pa.repeat(True, rows.num_rows)
    return LoggedChanges(pafs.LocalFileSystem(), *everything)


def merged(piles: dict[bytes, list[Place]], source: pa.Table) -> dict[bytes, list[Place]]:
    """What MERGE makes of a mirror: every row of the source fits to what is there."""
    rows = {(digest, at): place for digest, pile in piles.items() for at, place in enumerate(pile, 1)}  # fmt: skip
    for row in source.to_pylist():
        name = row["_cdc_row_digest"], row["_cdc_copy"]
        assert (name in rows) is not row["_cdc_new"]
        if row["_cdc_kind"] == "del":
            del rows[name]
            continue
        assert row[ROW_DIGEST] == image(row["CASE"], row["V"])[ROW_DIGEST]
        rows[name] = row["_cdc_commit_scn"], row["_cdc_ordinal"]
    after: dict[bytes, list[Place]] = defaultdict(list)
    for digest, number in sorted(rows):
        after[digest].append(rows[digest, number])
        assert len(after[digest]) == number, "numbers have no holes"
    return dict(after)


def counts_of(piles: dict[bytes, list[Place]]) -> pa.Table:
    kinds = pa.schema([(ROW_DIGEST, pa.binary()), ("copies", pa.int64())])
    return pa.table([list(piles), list(map(len, piles.values()))], schema=kinds)


@pytest.mark.parametrize("first", range(0, 100, 50))
def test_windows_leave_the_piles_that_the_changes_make(tmp_path: Path, first: int) -> None:
    """Wherever windows are cut."""
    for case in range(first, first + 50):
        table = played(case)
        snapshot = [one for one in table.changes if one["_cdc_op"] == "r"]
        piles, borders = piled(snapshot), sorted({one["_cdc_commit_scn"] for one in table.changes})
        low = READ_SCN
        for high in [scn for scn in borders if table.rng.random() < 0.4] + borders[-1:]:
            own = [one for one in table.changes if low < one["_cdc_commit_scn"] <= high]
            changes, low = landed(tmp_path, own), max(low, high)
            copies = count_copies(changes.light(), SCHEMA, counts_of(piles), read_scn=READ_SCN)
            piles = merged(piles, copies_source(changes, copies, SCHEMA))
            assert piles == piled(snapshot + [one for one in table.changes if READ_SCN < one["_cdc_commit_scn"] <= low])  # fmt: skip


def test_whatever_a_mirror_has_it_gets_what_its_change_log_says(tmp_path: Path) -> None:
    for case in range(60):
        table = played(case)
        changes = landed(tmp_path, table.changes)
        wanted = count_copies(changes.light(), SCHEMA, read_scn=READ_SCN)
        mirror = {digest: [place for place in pile if table.rng.random() < 0.7] for digest, pile in piled(table.changes).items()}  # fmt: skip
        mirror[image(case, "gone")[ROW_DIGEST]] = [(1, 1)]
        rows = [
            {ROW_DIGEST: digest, "_cdc_copy": at, "_cdc_commit_scn": scn, "_cdc_ordinal": ordinal}
            for digest, pile in mirror.items()
            for at, (scn, ordinal) in enumerate(pile, 1)
        ]
        kinds = [(ROW_DIGEST, pa.binary()), *((name, pa.int64()) for name in ("_cdc_copy", "_cdc_commit_scn", "_cdc_ordinal"))]  # fmt: skip
        there = pa.Table.from_pylist(rows, pa.schema(kinds))
        different = different_copies(wanted, there)
        assert different is not None
        assert merged(mirror, copies_source(changes, different, SCHEMA)) == piled(table.changes)
        assert different_copies(wanted, pa.concat_tables([there, there])) is None


def test_nothing_differs_from_what_is_right(tmp_path: Path) -> None:
    table = played(7)
    changes = landed(tmp_path, table.changes)
    wanted = count_copies(changes.light(), SCHEMA, read_scn=READ_SCN)
    there = copies_source(changes, wanted, SCHEMA)
    different = different_copies(wanted, there)
    assert different is not None
    assert len(different.numbers) == 0


def count(folder: Path, *changes: dict[str, Any], present: int, **options: Any) -> Copies:
    light = landed(folder, changes).light()
    there = counts_of({image(0, "a")[ROW_DIGEST]: [(1, 1)] * present})
    return count_copies(light, SCHEMA, there, **options)


def change(op: str, scn: int, old: str | None, new: str | None) -> dict[str, Any]:
    table = Table(0)
    table.scn, table.changes = scn, []
    table.log(op, old, new)
    return table.changes[0]


DELETED = [change("d", 201, "a", None), change("d", 202, "a", None)]


def test_more_rows_than_there_are_never_go(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="does not have"):
        count(tmp_path, *DELETED, present=1)
    with pytest.raises(LakeError, match="does not have"):
        count(tmp_path, *DELETED, change("c", 203, None, "a"), present=1)


def test_what_is_missing_before_a_late_commit_is_left_to_its_window(tmp_path: Path) -> None:
    copies = count(tmp_path, *DELETED, change("c", 203, None, "a"), present=1, has_gaps=True)
    assert copies.numbers.tolist() == [1]
    assert copies.commit_scn.tolist() == [203]
    assert not copies.is_gone.any()


def test_what_the_snapshot_has_seen_counts_once(tmp_path: Path) -> None:
    seen = change("c", READ_SCN, None, "a")
    assert len(count(tmp_path, seen, present=1, read_scn=READ_SCN).numbers) == 0
    assert len(count(tmp_path, seen, present=1, read_scn=READ_SCN - 1).numbers) == 1


def test_an_update_that_changes_nothing_does_nothing(tmp_path: Path) -> None:
    assert len(count(tmp_path, change("u", 201, "a", "a"), present=0).numbers) == 0


def test_parts_of_a_window_have_whole_piles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_changes, "PART_CHANGES_MAX", 40)
    every = [one for case in range(30) for one in played(case).changes]
    changes, piles = landed(tmp_path, every), dict[bytes, list[Place]]()
    assert changes.parts > 5
    for part in range(changes.parts):
        light = changes.light(part, changes.parts)
        copies = count_copies(light, SCHEMA, read_scn=READ_SCN)
        piles = merged(piles, copies_source(changes, copies, SCHEMA))
    assert piles == piled(every)
