"""Transactions that are told from whole columns come out as if they were followed row by row."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

from cdc_core.capture.passes.batches import MinedBatch
from cdc_core.capture.passes.reading_position import Reading
from cdc_core.capture.passes.rows import RowReader, landing_rows
from cdc_core.capture.transactions import ledger as ledger_module
from cdc_core.capture.transactions import single_batch as whole
from cdc_core.capture.transactions.ledger import TransactionLedger
from cdc_core.model.operations import Operation
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.transactions import OpenTransaction
from tests.capture.test_ledger import ZERO
from tests.capture.test_rows import DEPT, EMP, batch, row

START, COMMIT, ROLLBACK = Operation.START, Operation.COMMIT, Operation.ROLLBACK
SEEDS = range(30)
NAMES = ["HR.EMP", "HR.Dept"]
REAL = whole.whole_transactions


def stream(dice: Random) -> list[dict[str, Any]]:
    """Rows of interleaved transactions in sixteen slots: most are whole, some lack an end or a beginning, are rolled back, lose
    their names, hold a DDL, come late or meet another one in their slot."""
    rows: list[dict[str, Any]] = []
    waiting: list[list[dict[str, Any]]] = []
    for number in range(60):
        slot = f"{dice.randrange(16):04X}0001"
        again = dice.random() < 0.15 and rows  # an XID that was seen to end, or not yet
        xid = dice.choice(rows)["xid"] if again else f"{slot}{number:08X}"
        partial = f"{xid[:8]}FFFFFFFF"
        user = dice.choice(("APP", "UNKNOWN"))
        own = [row(START, xid, username=user, session_id=dice.choice((0, 7)), serial=3)]
        for _ in range(dice.randrange(4)):
            table = dice.choice(("EMP", "Dept", "OTHER"))
            undo = dice.random() < 0.2
            own.append(row(Operation.DELETE if undo else Operation.INSERT, xid, table_name=table, rollback=int(undo)))  # fmt: skip
        own.append(row(COMMIT, xid))
        what = dice.random()
        if what < 0.08:
            own[-1] = row(ROLLBACK, xid)
        elif what < 0.11:
            own[-1] = row(COMMIT, partial)
        elif what < 0.14:
            own[-1:-1] = [row(ROLLBACK, partial, rs_id=ZERO)]
        elif what < 0.18:
            own.pop(dice.choice((0, -1)))
        elif what < 0.22:
            own[-1:-1] = [row(Operation.DDL, xid, table_name="EMP", sql_redo="alter table emp add x number")]  # fmt: skip
        elif what < 0.25:
            own.append(row(Operation.INSERT, xid, table_name="EMP"))
        elif what < 0.28:
            own.append(row(COMMIT, xid))
        waiting.append(own)
        while len(waiting) > dice.choice((0, 0, 1, 2)):
            chosen = dice.choice(waiting)
            rows.append(chosen.pop(0))
            waiting = [one for one in waiting if one]
    rows += [one for own in waiting for one in own]
    for place, one in enumerate(rows):
        one["scn"] = (95 if dice.random() < 0.02 else 101) + place
    return rows


def followed(seed: int) -> Any:
    """Everything that a ledger knows and gives of a stream in batches of any size."""
    dice = Random(seed)
    rows = stream(dice)
    opened = [
        OpenTransaction(
            xid=f"000{at}0001000000f{at}",
            start_scn=60,
            first_ordinal=at,
            has_rollback=False,
            tables=("HR.EMP",),
            table_rows=(1,),
            rows=1,
        )
        for at in range(dice.randrange(3))
    ]
    window = ScnWindow(Scn(dice.choice((100, 110))), Scn(10_000))
    ledger = TransactionLedger(opened, window, NAMES, snapshot_scn=100, mined_from=50)
    reader = RowReader(1, [EMP, DEPT], Reading(0, (), {}))
    size = dice.randint(10, 80)
    parts = [batch(*rows[at : at + size]) for at in range(0, len(rows), size)]
    landed: list[dict[str, Any]] = []
    for part in reader.read(iter(parts)):
        landing = landing_rows(ledger.take(part), [EMP, DEPT])
        landed += landing.to_pylist() if landing is not None else []
    ledger.finish()
    ended = sorted(ledger.drain().to_pylist(), key=lambda one: one["commit_ordinal"])
    facts = (
        ledger.committed, ledger.rolled_back, ledger.evicted, ledger.late, ledger.tables_committed, ledger.tables_late,
        ledger.incomplete, ledger.open_transactions(), ledger._ddl_commits,
    )  # fmt: skip
    return landed, ended, facts


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    logger = logging.getLogger("cdc_core")
    level = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(level)


@pytest.fixture(scope="module")
def expected() -> list[Any]:
    """What following row by row gives of every stream."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger_module, "whole_transactions", lambda *_given, **_more: None)
        return [followed(seed) for seed in SEEDS]


def test_both_ways_give_the_same(expected: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    def counted(*given: Any, **more: Any) -> Any:
        found = REAL(*given, **more)
        taken.append(0 if found is None else found.ended.num_rows)
        return found

    monkeypatch.setattr(ledger_module, "whole_transactions", counted)
    for seed in SEEDS:
        assert followed(seed) == expected[seed], f"stream {seed}"
    ended = sum(len(one[1]) for one in expected)
    assert ended / 6 < sum(taken) < ended, "a good part goes each way"


def _all_of(mask: Any) -> Callable[..., Any]:
    return lambda _slots, _shape, fine: fine if mask is None else mask


def _plain_with(*left_out: str) -> Any:
    """A shape that does not look at some of what makes a transaction plain."""

    class Careless(whole._Shape):
        def __init__(self, given: MinedBatch, codes: Any, count: int) -> None:
            operations = given.operations
            if "ddl" in left_out:
                given = MinedBatch(given.rows, given.ordinals, np.where(operations == Operation.DDL, 1, operations).astype(np.int32), given.tables)  # fmt: skip
            super().__init__(given, codes, count)
            if "end" in left_out:
                self.is_plain = operations[self.first] == START
            if "begin" in left_out:
                self.is_plain = operations[self.last] == COMMIT

    return Careless


BROKEN: dict[str, tuple[str, Any]] = {
    "slots not looked at": ("_alone", _all_of(None)),
    "DDL not looked at": ("_Shape", _plain_with("ddl")),
    "ends not looked at": ("_Shape", _plain_with("end")),
    "beginnings not looked at": ("_Shape", _plain_with("begin")),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_seen(
    name: str, expected: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, *BROKEN[name])
    assert any(followed(seed) != expected[seed] for seed in SEEDS), "nobody saw it"


@pytest.mark.parametrize(
    "careless",
    [
        pytest.param({"is_known": lambda _xid: False}, id="what-the-ledger-knows-not-asked"),
        pytest.param({"above": 0}, id="late-commits-not-left-to-it"),
    ],
)
def test_a_broken_question_to_the_ledger_is_seen(
    careless: dict[str, Any], expected: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:

    def asked(*given: Any, **more: Any) -> Any:
        return REAL(*given, **{**more, **careless})

    monkeypatch.setattr(ledger_module, "whole_transactions", asked)
    assert any(followed(seed) != expected[seed] for seed in SEEDS), "nobody saw it"
