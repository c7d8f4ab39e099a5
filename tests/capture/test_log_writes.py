"""One log write, shown in any order: the same transactions with the same changes, or a table that stops with a name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from cdc_core.capture.passes import log_writes
from cdc_core.capture.passes.reading_position import Reading
from cdc_core.capture.passes.rows import RowReader, landing_rows
from cdc_core.capture.transactions.ledger import TransactionLedger
from cdc_core.landing.layout import REDO_SCHEMA
from cdc_core.model.operations import Operation
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.stage.redo_order import RedoOrder
from cdc_core.stage.rollback import find_undone
from tests.capture.test_rows import DEPT, EMP, batch, row

START, COMMIT, ROLLBACK = Operation.START, Operation.COMMIT, Operation.ROLLBACK
UPDATE = Operation.UPDATE
WINDOW = ScnWindow(Scn(100), Scn(100_000))
Rows = list[dict[str, Any]]


@dataclass
class Result:
    """What a window makes of its rows: per committed transaction where it committed and which statements are left of it."""

    committed: dict[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)
    opened: dict[str, int] = field(default_factory=dict)
    evicted: list[str] = field(default_factory=list)
    doubts: set[str] = field(default_factory=set)


def result_of(batches: Sequence[Rows]) -> Result:
    ledger = TransactionLedger((), WINDOW, ["HR.EMP", "HR.Dept"], snapshot_scn=100, mined_from=50)
    reader = RowReader(0, [EMP, DEPT], Reading(0, (), {}))
    landed = [
        rows
        for one in reader.read(iter([batch(*rows) for rows in batches]))
        if (rows := landing_rows(ledger.take(one), [EMP, DEPT])) is not None
    ]
    ledger.finish()
    redo = pa.Table.from_batches(landed, REDO_SCHEMA).to_pylist()
    found = Result(doubts={one.reason for one in ledger.incomplete})
    for one in ledger.drain().to_pylist():
        if one["state"] == "evicted":
            found.evicted.append(one["xid"])
        if one["state"] != "commit":
            continue
        own = [
            each
            for each in redo
            if each["xid"] == one["xid"]
            and one["first_ordinal"] <= each["ordinal"] < one["commit_ordinal"]
        ]
        assert len(own) == one["rows"], "the ledger counts what is taken"
        assert one["xid"] not in found.committed
        found.committed[one["xid"]] = (one["commit_scn"], _left(own, one, found.doubts))
    found.opened = {one.xid: one.rows for one in ledger.open_transactions()}
    return found


def _left(own: Rows, ended: dict[str, Any], doubts: set[str]) -> tuple[str, ...]:
    if not ended["has_rollback"]:
        return tuple(each["sql_redo"] for each in own)
    rows = pa.Table.from_pylist(own, REDO_SCHEMA)
    size = rows.num_rows
    rows = rows.append_column("has_rollback", pa.array([True] * size))
    rows = rows.append_column("commit_scn", pa.array([ended["commit_scn"]] * size))
    order = RedoOrder.of(rows)
    undone = order.undone(find_undone(order.rows))
    doubts |= set(undone.problems.values())
    return tuple(undone.left_of(rows)["sql_redo"].to_pylist())


@dataclass
class History:
    """Transactions as they came about, one log write of them: ``behind`` names of each row those that it must follow."""

    rows: Rows = field(default_factory=list)
    behind: dict[int, list[int]] = field(default_factory=dict)

    def add(self, values: dict[str, Any], *behind: int) -> int:
        self.rows.append(values)
        self.behind[len(self.rows) - 1] = list(behind)
        return len(self.rows) - 1

    def shuffled(self, dice: Random, *, keeps_changes: bool) -> Rows:
        """The rows in another order, in which an undo row stands behind its row; maybe all changes of a transaction behind each other."""
        behind = {at: list(those) for at, those in self.behind.items()}
        if keeps_changes:
            last: dict[str, int] = {}
            for at, one in enumerate(self.rows):
                if one["operation_code"] == UPDATE:
                    owner = one["owner"]
                    behind[at] += [last[owner]] if owner in last else []
                    last[owner] = at
        order: list[int] = []
        waiting = list(behind)
        while waiting:
            free = [at for at in waiting if all(one in order for one in behind[at])]
            order.append(dice.choice(free))
            waiting.remove(order[-1])
        return [
            {**self.rows[at], "rs_id": f" 0x000007.{place + 1:08x}.0010 "}
            for place, at in enumerate(order)
        ]


def history(dice: Random, *, partial: bool) -> History:
    """Transactions of two undo slots, each slot used again and again, with savepoints, rollbacks, and some left open."""
    made, scn = History(), 150
    open_ones: dict[int, dict[str, Any]] = {}
    sequence = 0

    def tick() -> int:
        nonlocal scn
        scn += dice.randint(1, 3)
        return scn

    def xid(slot: int, *, hides: bool) -> str:
        full = open_ones[slot]["xid"]
        return f"{full[:8]}ffffffff" if partial and hides and dice.random() < 0.5 else full

    def add(slot: int, operation: int, *behind: int, hides: bool = False, **values: Any) -> int:
        named = xid(slot, hides=hides)
        text = f"{open_ones[slot]['xid']}:{len(made.rows)}"
        values = {"scn": tick(), "sql_redo": text, "owner": open_ones[slot]["xid"], **values}
        return made.add(row(operation, named, **values), *behind)

    def end(slot: int, operation: int) -> None:
        hides = operation == COMMIT
        add(slot, operation, hides=hides)
        del open_ones[slot]

    for _ in range(dice.randint(8, 30)):
        slot = dice.randrange(2)
        if slot not in open_ones:
            sequence += 1
            open_ones[slot] = {"xid": f"0a00{slot:02x}00{sequence:08x}", "living": []}
            add(slot, START)
            continue
        living = open_ones[slot]["living"]
        what = dice.random()
        if what < 0.5:
            row_id = f"{open_ones[slot]['xid'][-6:]}{dice.randrange(3)}".rjust(18, "B")
            at = add(slot, UPDATE, row_id=row_id)
            living.append((at, row_id))
        elif what < 0.7 and living:
            at, row_id = living.pop()
            add(slot, UPDATE, at, hides=True, rollback=1, row_id=row_id)
        elif what < 0.92:
            end(slot, COMMIT)
        else:
            while living:
                at, row_id = living.pop()
                add(slot, UPDATE, at, rollback=1, row_id=row_id)
            end(slot, ROLLBACK)
    return made


def _cut(rows: Rows, dice: Random) -> list[Rows]:
    """In batches of any size."""
    bounds = sorted({0, len(rows), *(dice.randrange(len(rows) + 1) for _ in range(dice.randrange(6)))})  # fmt: skip
    return [rows[low:high] for low, high in pairwise(bounds)]


def _in_order(one: Result) -> Result:
    committed = {xid: (scn, tuple(sorted(left))) for xid, (scn, left) in one.committed.items()}
    return Result(committed, one.opened, sorted(one.evicted), one.doubts)


@pytest.mark.parametrize("partial", [False, True], ids=["full-xids", "partial-xids"])
@pytest.mark.parametrize("seed", range(60))
def test_rows_of_one_log_write_in_any_order_are_the_same_transactions(
    seed: int, partial: bool
) -> None:
    """Each transaction's changes stand in their order; what begins and ends it, and other transactions, stand anywhere."""
    dice = Random(seed)
    made = history(dice, partial=partial)
    expected = _in_order(result_of([made.rows]))
    assert (expected.doubts, expected.evicted) == (set(), [])
    for _ in range(12):
        rows = made.shuffled(dice, keeps_changes=True)
        assert _in_order(result_of(_cut(rows, dice))) == expected


@pytest.mark.parametrize("seed", range(60))
def test_changes_in_an_order_that_says_nothing_are_the_same_or_named(seed: int) -> None:
    """An undo row stands behind its row, and nothing else in its place."""
    dice = Random(seed)
    made = history(dice, partial=False)
    expected, named = _in_order(result_of([made.rows])), 0
    for _ in range(12):
        found = _in_order(result_of(_cut(made.shuffled(dice, keeps_changes=False), dice)))
        named += bool(found.doubts)
        assert found.doubts or found == expected
    assert named < 12 or len(made.rows) > 12


X = "0a00000000000001"
NEXT = "0a00000000000002"


def _case(*rows: dict[str, Any]) -> Result:
    return result_of([list(rows)])


def test_a_commit_behind_the_next_start_of_its_slot_is_believed() -> None:
    found = _case(
        row(START, X, scn=150), row(UPDATE, X, scn=151, sql_redo="a"),
        row(START, NEXT, scn=160),
        row(COMMIT, X, scn=155), row(UPDATE, NEXT, scn=161, sql_redo="b"), row(COMMIT, NEXT, scn=165),
    )  # fmt: skip
    assert found.committed == {X: (155, ("a",)), NEXT: (165, ("b",))}
    assert (found.evicted, found.doubts, found.opened) == ([], set(), {})


def test_a_row_behind_its_own_commit_belongs_to_it() -> None:
    found = _case(row(START, X, scn=150), row(COMMIT, X, scn=155), row(UPDATE, X, scn=151, sql_redo="a"))  # fmt: skip
    assert (found.committed, found.opened) == ({X: (155, ("a",))}, {})


def test_an_undo_row_behind_its_commit_takes_its_row_back() -> None:
    found = _case(
        row(START, X, scn=150), row(UPDATE, X, scn=151, row_id="B" * 18), row(COMMIT, X, scn=155),
        row(UPDATE, X, scn=152, row_id="B" * 18, rollback=1),
    )  # fmt: skip
    assert found.committed == {X: (155, ())}


def test_a_row_behind_its_rollback_is_no_open_transaction() -> None:
    found = _case(row(START, X, scn=150), row(ROLLBACK, X, scn=155), row(UPDATE, X, scn=151))
    assert (found.committed, found.opened, found.doubts) == ({}, {}, set())


def test_undo_rows_behind_a_doubtful_rollback_set_their_transaction_aside() -> None:
    """Nothing is left of it, so nobody waits for it."""
    rows = [
        row(START, X, scn=150), row(UPDATE, X, scn=151), row(ROLLBACK, f"{X[:8]}ffffffff", scn=155),
        row(UPDATE, X, scn=152, rollback=1),
    ]  # fmt: skip
    ledger = TransactionLedger((), WINDOW, ["HR.EMP", "HR.Dept"], snapshot_scn=100, mined_from=50)
    for one in RowReader(0, [EMP, DEPT], Reading(0, (), {})).read(iter([batch(*rows)])):
        ledger.take(one)
    ledger.finish()
    assert [one.state for one in ledger.open_transactions()] == ["undone"]


def test_a_start_still_evicts_what_nothing_in_the_pass_ends() -> None:
    found = _case(
        row(START, X, scn=150), row(UPDATE, X, scn=151), row(START, NEXT, scn=160), row(COMMIT, NEXT, scn=161)
    )  # fmt: skip
    assert (found.evicted, found.committed) == ([X], {})


@pytest.mark.parametrize("end", [COMMIT, ROLLBACK])
def test_what_stands_further_behind_than_a_log_write_is_long_is_named(
    end: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_writes, "ROWS_HELD", 2)
    others = [row(UPDATE, NEXT, scn=170 + at) for at in range(4)]
    rows = [
        row(START, X, scn=150),
        row(UPDATE, X, scn=150),
        row(end, X, scn=155),
        row(START, NEXT, scn=160),
        *others,
    ]
    found = result_of([[one] for one in [*rows, row(UPDATE, X, scn=151)]])
    assert found.doubts == {"rows of it stand far behind its COMMIT or ROLLBACK"}
