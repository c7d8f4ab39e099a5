"""Rows are paired in the order of the redo, whatever windows end in between; what nothing decides is named."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from random import Random

import pyarrow as pa
import pytest

from cdc_core.landing.layout import ORDINAL_SHIFT
from cdc_core.model.operations import Operation
from cdc_core.stage.redo_order import DISORDERED, RedoOrder
from cdc_core.stage.rollback import RolledBackRows, find_undone
from cdc_core.stage.undone_statements import UNMATCHED

INSERT, UPDATE, DELETE = Operation.INSERT, Operation.UPDATE, Operation.DELETE
UNSUPPORTED = Operation.UNSUPPORTED
COMMIT = 100


@dataclass(frozen=True)
class Redo:
    """A row where it lies in the redo: ``at`` is its place, which its address tells."""

    at: int
    scn: int
    operation: int
    row_id: str
    is_undo: bool = False

    @property
    def rs_id(self) -> str:
        return f" 0x{7:06x}.{self.at:08x}.0010 "


def unsupported_undo(at: int, row_id: str) -> Redo:
    """As LogMiner showed undo rows on 19c: no operation, and the SCN of the COMMIT."""
    return Redo(at, COMMIT, UNSUPPORTED, row_id, is_undo=True)


def landed(rows: list[Redo], ends: list[int]) -> pa.Table:
    """The rows as windows with these upper ends land them: each window in the order of the redo."""
    bounds = [*ends, COMMIT]
    windows = [[one for one in rows if low < one.scn <= high] for low, high in zip([0, *bounds], bounds, strict=False)]  # fmt: skip
    placed = [
        ((window << ORDINAL_SHIFT) + number, one)
        for window, own in enumerate(windows)
        for number, one in enumerate(own)
    ]
    return table(placed)


def table(placed: list[tuple[int, Redo]]) -> pa.Table:
    return pa.table(
        {
            "ordinal": pa.array([ordinal for ordinal, _ in placed], pa.int64()),
            "scn": pa.array([one.scn for _, one in placed], pa.int64()),
            "xid": pa.array(["0a00010000000001"] * len(placed), pa.string()),
            "operation_code": pa.array([int(one.operation) for _, one in placed], pa.int32()),
            "row_id": pa.array([one.row_id for _, one in placed], pa.string()),
            "rollback": pa.array([one.is_undo for _, one in placed], pa.bool_()),
            "rs_id": pa.array([one.rs_id for _, one in placed], pa.string()),
            "has_rollback": pa.array([True] * len(placed), pa.bool_()),
            "commit_scn": pa.array([COMMIT] * len(placed), pa.int64()),
        }
    )


def undone(rows: pa.Table) -> RolledBackRows:
    order = RedoOrder.of(rows)
    return order.undone(find_undone(order.rows))


def left(rows: pa.Table, found: RolledBackRows) -> list[int]:
    """The addresses of the rows that are applied."""
    kept = found.left_of(rows)
    return sorted(int(text.strip().split(".")[1], 16) for text in kept["rs_id"].to_pylist())


TWO_CHANGES = [
    Redo(1, 10, UPDATE, "R1"),
    Redo(2, 12, INSERT, "R2"),
    unsupported_undo(3, "R1"),
    Redo(4, 14, UPDATE, "R1"),
    unsupported_undo(5, "R2"),
    Redo(6, 16, UPDATE, "R1"),
    Redo(7, 18, INSERT, "R2"),
    unsupported_undo(8, "R1"),
    Redo(9, 20, UPDATE, "R1"),
]


@pytest.mark.parametrize("end", range(9, 22))
def test_an_undo_row_with_the_scn_of_its_commit_takes_back_its_own_row(end: int) -> None:
    """Wherever a window ends between them."""
    rows = landed(TWO_CHANGES, [end])
    found = undone(rows)
    assert (left(rows, found), found.problems) == ([4, 7, 9], {})


def test_several_windows_that_end_anywhere_change_nothing() -> None:
    for first in range(9, 22):
        for second in range(first + 1, 23):
            rows = landed(TWO_CHANGES, [first, second])
            assert left(rows, undone(rows)) == [4, 7, 9], (first, second)


@pytest.mark.parametrize("seed", range(40))
def test_generated_transactions_keep_the_same_rows_wherever_windows_end(seed: int) -> None:
    dice = Random(seed)
    rows: list[Redo] = []
    open_rows: dict[str, list[int]] = {}
    for at in range(1, dice.randint(6, 25)):
        row_id = dice.choice(("R1", "R2", "R3"))
        if open_rows.get(row_id) and dice.random() < 0.4:
            open_rows[row_id].pop()
            rows.append(
                unsupported_undo(at, row_id)
                if dice.random() < 0.7
                else Redo(at, 10 + 2 * at, UPDATE, row_id, is_undo=True)
            )
        else:
            open_rows.setdefault(row_id, []).append(at)
            rows.append(Redo(at, 10 + 2 * at, UPDATE, row_id))
    expected = sorted(at for own in open_rows.values() for at in own)
    for end in range(9, 64):
        found = undone(placed := landed(rows, [end]))
        assert (left(placed, found), found.problems) == (expected, {}), end


def test_an_undo_row_without_its_row_is_named_by_its_own_ordinal() -> None:
    rows = landed([Redo(1, 10, UPDATE, "R1"), unsupported_undo(2, "R2")], [11])
    assert undone(rows).problems == {1 << ORDINAL_SHIFT: UNMATCHED}


def test_changes_of_one_row_against_the_order_of_their_scns_are_named() -> None:
    """In every order but that of the SCNs; an undo row stays behind its row."""
    first, second = Redo(1, 10, UPDATE, "R1"), Redo(2, 11, UPDATE, "R1")
    undo, other = Redo(3, 12, UPDATE, "R1", is_undo=True), Redo(4, 9, UPDATE, "R2")
    for order in permutations((first, second, undo, other)):
        if order.index(undo) < order.index(second):
            continue
        rows = table(list(enumerate(order)))
        found = undone(rows)
        if order.index(first) < order.index(second):
            assert (left(rows, found), found.problems) == ([1, 4], {}), order
        else:
            assert set(found.problems.values()) == {DISORDERED}, order


def test_a_row_that_is_shown_late_says_nothing_of_other_rows() -> None:
    rows = table([(0, Redo(2, 11, UPDATE, "R2")), (1, Redo(1, 10, UPDATE, "R1"))])
    assert undone(rows).problems == {}


def test_rows_without_an_address_keep_their_order() -> None:
    """An export of the view may lack RS_ID."""
    rows = landed(TWO_CHANGES, [])
    bare = rows.set_column(rows.schema.get_field_index("rs_id"), "rs_id", pa.array(["0x000001.00000001.0001"] * rows.num_rows))  # fmt: skip
    assert left(rows, undone(bare)) == [4, 7, 9]
