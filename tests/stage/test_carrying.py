"""What changes of key carry along: cases of one key each, and what cannot be said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from cdc_core.errors import DecodeError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column, TableSchema
from cdc_core.stage import carried_columns as carrying
from cdc_core.stage.carried_columns import CarriedValues, carry_columns
from cdc_core.stage.changes import LoggedChanges, of_window
from cdc_core.stage.layout import change_schema, mirror_schema

SCHEMA = TableSchema(
    TableId("SHOP", "T"),
    Scn(1),
    (
        Column("ID", "NUMBER", 22, 0, 9, 0, nullable=False),
        Column("NOTE", "CLOB", 4000, 0, None, None, nullable=True),
    ),
    ("ID",),
)
COMMIT = ""
Change = tuple[str, str | None, int | None, int | None, str | None] | str


def insert(key: int, note: str | None = None, rid: str | None = None) -> Change:
    return "c", rid, None, key, note


def move(rid: str | None, old: int, new: int, note: str | None = None) -> Change:
    return "u", rid, old, new, note


def write(key: int, note: str, rid: str | None = None) -> Change:
    return "u", rid, key, key, note


def touch(key: int, rid: str) -> Change:
    return "u", rid, key, key, None


def delete(rid: str | None, key: int) -> Change:
    return "d", rid, key, None, None


def logged(folder: Path, changes: Sequence[Change], schema: TableSchema = SCHEMA) -> LoggedChanges:
    """The changes, in transactions that commit at SCN 11, 12, …; a NOTE of None is one that the change lacks."""
    scn, rows = 11, list[dict[str, Any]]()
    for ordinal, one in enumerate(changes):
        if isinstance(one, str):
            scn += 1
            continue
        op, rid, old, new, note = one
        rows.append(
            {
                "_cdc_op": op,
                "_cdc_commit_scn": scn,
                "_cdc_ordinal": ordinal,
                "_cdc_xid": f"x{scn}",
                "_cdc_row_id": rid,
                "_cdc_window": 99,
                "_cdc_columns": 2,
                "_cdc_absent": ["NOTE"] if note is None and op != "d" else [],
                "before": None if old is None else {"ID": old, "NOTE": None},
                "after": None if new is None else {"ID": new, "NOTE": note},
            }
        )
    path = folder / "changes.parquet"
    table = pa.Table.from_pylist(rows, change_schema(schema))
    pq.write_table(table, path, row_group_size=3)
    return LoggedChanges(pafs.LocalFileSystem(), [str(path)], schema, of_window(99))


def carried(
    changes: LoggedChanges, mirror: dict[int, tuple[str, int]], *, has_gaps: bool = False
) -> CarriedValues:
    rows: list[dict[str, Any]] = [
        {"ID": key, "NOTE": note, "_cdc_commit_scn": scn, "_cdc_ordinal": 0}
        for key, (note, scn) in mirror.items()
    ]
    found = carry_columns(changes, SCHEMA, ("NOTE",), has_gaps=has_gaps)
    asked = {key for [column] in [found.asked] for key in column.to_pylist()}
    own = pa.Table.from_pylist(rows, mirror_schema(SCHEMA))
    return found.values(
        own.filter(pa.array([row["ID"] in asked for row in rows], pa.bool_())), SCHEMA
    )


def of_moves(
    folder: Path,
    changes: Sequence[Change],
    mirror: dict[int, tuple[str, int]],
    *,
    has_gaps: bool = False,
    schema: TableSchema = SCHEMA,
) -> list[str | None]:
    """What each move that lacks its NOTE carries along, "?" where nobody knows."""
    log = logged(folder, changes, schema)
    values = carried(log, mirror, has_gaps=has_gaps)
    light = log.light()
    numbers = light.table["row"].to_numpy()[light.moved() & light.lacking("NOTE")]
    sources = values.sources("NOTE", numbers)
    notes = values.take(log, "after", "NOTE", sources).to_pylist()
    return ["?" if source < 0 else note for source, note in zip(sources, notes, strict=True)]


@pytest.mark.parametrize(
    ("changes", "mirror", "notes"),
    [
        pytest.param([move("A", 1, 2)], {1: ("old", 5)}, ["old"], id="from-the-mirror"),
        pytest.param(
            [move("A", 1, 2), move("A", 2, 3), COMMIT, move("A", 3, 1)],
            {1: ("old", 5), 2: ("other", 5)},
            ["old"] * 3,
            id="over-a-chain-of-keys",
        ),
        pytest.param([move("A", 1, 2)], {1: ("later", 11)}, ["?"], id="a-chunk-read-the-key-later"),
        pytest.param(
            [move("A", 1, 2), move("A", 2, 1)],
            {1: ("later", 11)},
            ["?", "?"],
            id="a-chunk-read-the-row-when-it-was-back",
        ),
        pytest.param(
            [touch(1, "A"), COMMIT, move("A", 1, 2)],
            {1: ("between", 11)},
            ["between"],
            id="a-chunk-read-the-row-before-it-left",
        ),
        pytest.param([move("A", 1, 2)], {}, ["?"], id="the-mirror-has-no-row"),
        pytest.param(
            [move("A", 1, 2), COMMIT, write(2, "new"), COMMIT, move("A", 2, 3)],
            {1: ("old", 5)},
            ["old", "new"],
            id="written-by-key-between-two-moves",
        ),
        pytest.param(
            [move("A", 1, 2), write(2, "new"), move("A", 2, 3)],
            {1: ("old", 5)},
            ["old", "new"],
            id="written-by-key-in-one-transaction",
        ),
        pytest.param(
            [touch(1, "A"), COMMIT, write(1, "new"), COMMIT, move("A", 1, 2)],
            {1: ("old", 5)},
            ["new"],
            id="written-by-key-behind-an-update",
        ),
        pytest.param(
            [insert(1, "own"), COMMIT, write(1, "new"), COMMIT, move("A", 1, 2)],
            {},
            ["new"],
            id="written-by-key-behind-an-insert",
        ),
        pytest.param(
            [delete("B", 1), insert(1, "own"), COMMIT, move("A", 1, 2)],
            {1: ("old", 5)},
            ["own"],
            id="inserted-where-a-row-was-deleted",
        ),
        pytest.param(
            [insert(1, "own"), move("A", 1, 2)],
            {},
            ["own"],
            id="inserted-and-moved-where-nobody-was",
        ),
        pytest.param(
            [insert(1, "own"), move("A", 1, 2)],
            {1: ("old", 5)},
            ["?"],
            id="one-of-two-rows-leaves",
        ),
        pytest.param(
            [insert(1, "own"), touch(1, "A"), move("A", 1, 2)],
            {1: ("old", 5)},
            ["own"],
            id="the-one-that-stays-at-first-is-the-one-that-came",
        ),
        pytest.param(
            [move("A", 1, 2), move("B", 2, 1), COMMIT, write(2, "of A"), COMMIT, move("A", 2, 3)],
            {1: ("a", 5), 2: ("b", 5)},
            ["a", "b", "of A"],
            id="rows-that-swap",
        ),
        pytest.param(
            [move("A", 1, 2), write(2, "whose"), move("B", 2, 3), COMMIT, move("A", 2, 4), move("B", 3, 5)],
            {1: ("a", 5), 2: ("b", 5)},
            ["a", "?", "?", "?"],
            id="written-by-key-while-two-rows-share-it",
        ),
        pytest.param(
            [insert(1), COMMIT, touch(1, "A"), COMMIT, move("A", 1, 2)],
            {},
            [None],
            id="inserted-without-a-value",
        ),
        pytest.param(
            [touch(1, "A"), COMMIT, move("A", 7, 2)],
            {1: ("old", 5), 7: ("other", 5)},
            ["?"],
            id="changes-of-one-row-that-do-not-join",
        ),
        pytest.param(
            [insert(1, "own"), COMMIT, delete("B", 1), COMMIT, move("A", 1, 2)],
            {},
            ["?"],
            id="a-row-that-nobody-brought",
        ),
        pytest.param(
            [insert(1, "own"), move(None, 1, 2), COMMIT, move("A", 2, 3)],
            {},
            ["own", "own"],
            id="moved-by-key-alone",
        ),
        pytest.param(
            [insert(1, "own"), insert(1, "another"), move("A", 1, 2)],
            {},
            ["?"],
            id="one-of-two-that-came",
        ),
    ],
)  # fmt: skip
def test_a_move_carries_what_its_row_held(
    tmp_path: Path,
    changes: list[Change],
    mirror: dict[int, tuple[str, int]],
    notes: list[str | None],
) -> None:
    assert of_moves(tmp_path, changes, mirror) == notes


@pytest.mark.parametrize(
    ("changes", "mirror", "note"),
    [
        pytest.param([write(1, "new"), COMMIT, move("A", 1, 2)], {1: ("old", 5)}, "?", id="by-key"),
        pytest.param([insert(1, "own"), move("A", 1, 2)], {}, "?", id="in-one-transaction"),
        pytest.param([move("A", 1, 2)], {1: ("old", 5)}, "old", id="nothing-before"),
        pytest.param([insert(1, "own"), COMMIT, move("A", 1, 2)], {}, "own", id="insert-before"),
        pytest.param(
            [insert(1), write(1, "own"), COMMIT, move("A", 1, 2)], {}, "own", id="insert-in-pieces"
        ),
    ],
)
def test_where_changes_are_in_quarantine_less_is_known(
    tmp_path: Path, changes: list[Change], mirror: dict[int, tuple[str, int]], note: str
) -> None:
    """What went, or came, in between may be among them."""
    assert of_moves(tmp_path, changes, mirror, has_gaps=True) == [note]


def test_a_key_that_oracle_does_not_check_at_once_is_two_rows_longer(tmp_path: Path) -> None:
    """Until the transaction ends, whatever the statement."""
    changes = [insert(1, "own"), touch(1, "A"), move("A", 1, 2)]
    log = logged(tmp_path, changes)
    deferred = replace(SCHEMA, key_is_deferred=True)
    found = carry_columns(log, deferred, ("NOTE",), has_gaps=False)
    assert found.unless.tolist() == [1]
    assert [column.to_pylist() for column in found.asked] == [[1]]


def test_a_change_without_a_row_id_gets_the_one_of_its_row(tmp_path: Path) -> None:
    """As far as it is certain: not where the mirror says that another row may be meant."""
    log = logged(
        tmp_path,
        [move("A", 1, 2), write(2, "new"), move("A", 2, 3), COMMIT, insert(5), move("B", 5, 6)],
    )
    for mirror, known in (({}, ["A", "A", "A", "B", "B"]), ({5: ("x", 5)}, ["A", "A", "A", None, "B"])):  # fmt: skip
        found = carried(log, {1: ("old", 5), **mirror}).with_row_ids(log.light())
        assert found.to_pylist() == known


def test_moves_of_rows_that_nothing_else_touches_are_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bulk change of keys asks for no more than its columns; more than can be followed stop the table."""
    monkeypatch.setattr(carrying, "FOLLOWED_MAX", 2)
    mirror = {key: (f"note {key}", 5) for key in range(50)}
    bulk = [move(f"R{key}", key, key + 100) for key in range(50)]
    assert of_moves(tmp_path, bulk, mirror) == [f"note {key}" for key in range(50)]
    with pytest.raises(DecodeError, match=r"to be followed.*table resnapshot"):
        of_moves(tmp_path, [*bulk, move("R1", 101, 201), move("R1", 201, 301)], mirror)
