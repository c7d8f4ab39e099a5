"""The rule for partial rollbacks, against tables that are really rolled back."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_core.model.operations import Operation
from cdc_core.stage.rollback import COLUMNS, find_undone
from cdc_core.stage.statements import UNKNOWN_ROW_ID
from cdc_core.stage.undone_statements import NotUnderstoodError
from tests.stage.plain_rollback import RedoRow, surviving

INSERT, DELETE, UPDATE = Operation.INSERT, Operation.DELETE, Operation.UPDATE
LOB_WRITE, LOCATOR = Operation.LOB_WRITE, Operation.SELECT_LOB_LOCATOR
UNSUPPORTED = Operation.UNSUPPORTED
UNDO_OF = {INSERT: DELETE, DELETE: INSERT, UPDATE: UPDATE}


@dataclass
class Transaction:
    """A transaction on one table, its redo as LogMiner shows it, and the places of the rows that are in effect.

    ``lobs``: the table has LOBs, so that inserts, and updates of a LOB, are statements of several rows with a placeholder.
    """

    lobs: bool
    rows: list[RedoRow] = field(default_factory=list)
    statements: list[tuple[Operation, str, list[int]]] = field(default_factory=list)

    def run(self, operation: Operation, row_id: str, *, lob: bool = False) -> None:
        """One statement on one row."""
        shown = None if self.lobs and (operation is INSERT or lob) else row_id
        redo = [RedoRow(operation, shown, False)]
        if lob and operation is INSERT:
            redo += [RedoRow(LOB_WRITE, None, False), RedoRow(UPDATE, row_id, False)]
        elif lob:
            redo = [RedoRow(LOB_WRITE, None, False), RedoRow(LOB_WRITE, None, False)]
        places = list(range(len(self.rows), len(self.rows) + len(redo)))
        self.rows += redo
        self.statements.append((operation, row_id, places))

    def rollback_to(self, savepoint: int) -> None:
        while len(self.statements) > savepoint:
            operation, row_id, _ = self.statements.pop()
            self.rows.append(RedoRow(UNDO_OF[operation], row_id, True))

    @property
    def effective(self) -> list[int]:
        return sorted(place for *_, places in self.statements for place in places)


def transaction(seed: int) -> Transaction:
    """Legal statements on a few rows, savepoints and rollbacks to them; addresses are used again."""
    rng = random.Random(seed)
    made = Transaction(lobs=rng.random() < 0.7)
    lob_updates = rng.random() < 0.3
    free, there = ["R1", "R2", "R3"], ["R8", "R9"]
    savepoints: list[tuple[int, list[str], list[str]]] = []
    for _ in range(rng.randint(3, 25)):
        match rng.randrange(6):
            case 0 if free:
                row_id = free.pop(rng.randrange(len(free)))
                there.append(row_id)
                made.run(INSERT, row_id, lob=made.lobs and rng.random() < 0.6)
            case 1 if there:
                row_id = there.pop(rng.randrange(len(there)))
                free.append(row_id)
                made.run(DELETE, row_id)
            case 2 | 3 if there:
                lob = made.lobs and lob_updates and rng.random() < 0.5
                made.run(UPDATE, rng.choice(there), lob=lob)
            case 4:
                savepoints.append((len(made.statements), free[:], there[:]))
            case 5 if savepoints:
                keep, free, there = savepoints.pop(rng.randrange(len(savepoints)))
                savepoints = [one for one in savepoints if one[0] <= keep]
                free, there = free[:], there[:]
                made.rollback_to(keep)
    return made


@given(st.integers(0, 10**9))
def test_what_survives_is_what_savepoints_left(seed: int) -> None:
    """Or it is refused, which happens only where a statement other than an INSERT wrote LOBs by a placeholder."""
    made = transaction(seed)
    try:
        found = surviving(made.rows)
    except NotUnderstoodError:
        assert any(row.operation == LOB_WRITE for row in made.rows)
        return
    assert found == made.effective


@given(st.integers(0, 10**9))
def test_rows_without_any_address_are_taken_back_by_their_order(seed: int) -> None:
    made = transaction(seed)
    if made.lobs:
        return
    bare = [RedoRow(row.operation, None, row.is_undo) for row in made.rows]
    assert surviving(bare) == made.effective


def test_a_transaction_without_lob_updates_is_never_refused() -> None:
    refused = 0
    for seed in range(2000):
        made = transaction(seed)
        inserts = [
            place
            for place, row in enumerate(made.rows)
            if row.operation == INSERT and not row.is_undo
        ]
        pieces = {place for place, row in enumerate(made.rows) if row.operation == LOB_WRITE}
        if pieces <= {place + 1 for place in inserts}:
            assert surviving(made.rows) == made.effective
        else:
            try:
                surviving(made.rows)
            except NotUnderstoodError:
                refused += 1
    assert refused > 20


def row(text: str) -> RedoRow:
    """``i1`` inserts R1, ``u?`` updates by a placeholder, ``l?`` begins a LOB, ``w?`` is a piece of it, ``x1`` is not supported, ``-d1`` is an undo row that deletes R1."""
    operation = {
        "i": INSERT,
        "d": DELETE,
        "u": UPDATE,
        "w": LOB_WRITE,
        "l": LOCATOR,
        "x": UNSUPPORTED,
    }[text[-2]]
    return RedoRow(operation, None if text[-1] == "?" else f"R{text[-1]}", text[0] == "-")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        pytest.param("i1 u1 -u1 -d1", "", id="plain-table"),
        pytest.param("i1 u1 -u1", "i1", id="plain-update-alone"),
        pytest.param("u1 -d1", None, id="plain-not-the-inverse"),
        pytest.param("i1 w1 -d1", None, id="a-lob-piece-with-its-address"),
        pytest.param("i1 x1 -u1", "i1", id="plain-not-supported"),
        pytest.param("i? u1 -d1", "", id="insert-with-a-value-in-the-block"),
        pytest.param("i? w? w? u1 -d1", "", id="insert-with-pieces"),
        pytest.param("i? u1 i? u2 -d2", "i? u1", id="the-newest-insert-goes"),
        pytest.param("i? u1 u1 -u1", "i? u1", id="an-update-after-the-insert"),
        pytest.param("u9 i? w? -d1 -u9", "", id="both-statements"),
        pytest.param("u1 d1 i? u1 -d1 -i1 -u1", "", id="an-address-used-again"),
        pytest.param("i? u1 -d2", None, id="another-rows-address"),
        pytest.param("i? u2 w? -d1", None, id="rows-of-two-statements"),
        pytest.param("u1 w? -u1", None, id="a-lob-update-or-the-update-before"),
        pytest.param("w? -u1", "", id="a-lob-update"),
        pytest.param("u1 i? -u1", None, id="not-the-newest-first"),
        pytest.param("i? d1 -u1", None, id="not-the-inverse"),
        pytest.param("i? -u1", None, id="undo-of-nothing"),
        pytest.param("-d1", None, id="undo-without-beginning"),
        pytest.param("i1 -d?", None, id="undo-without-address"),
        pytest.param(
            "u? i? i? i? u3 -d3 -d2 -d1", "u?", id="three-inserts-and-what-closes-the-newest"
        ),
        pytest.param(
            "u? i? i? i? u1 -d3 -d2 -d1", "u?", id="three-inserts-and-what-closes-an-older-one"
        ),
        pytest.param("i? i? i? -d3 -d2 -d1", "", id="three-inserts-that-nothing-closes"),
        pytest.param(
            "i? i? i? u1 u2 u3 -d3 -d2 -d1", "", id="what-closes-three-inserts-behind-them"
        ),
        pytest.param(
            "i? i? i? u1 u2 u3 -d1 -d2 -d3", "", id="three-inserts-undone-the-oldest-first"
        ),
        pytest.param(
            "i? u1 i? u2 i? u3 -d1 -d2 -d3",
            "",
            id="inserts-and-their-updates-undone-the-oldest-first",
        ),
        pytest.param("i? u1 i? u2 -d2 -d1", "", id="inserts-and-their-updates"),
        pytest.param("i? i? w? u1 l? w? u2 -d2 -d1", "", id="two-inserts-and-then-what-each-wrote"),
        pytest.param("i? u1 i? i? u3 u2 -d3 -d2", "i? u1", id="an-insert-before-the-two-that-go"),
        pytest.param("i? i? u1 u2 u1 -u1", "i? i? u1 u2", id="an-update-behind-inserts"),
        pytest.param("u? w? u1 -u1", None, id="what-may-close-a-lob-update"),
        pytest.param("u? w? u1 -u1 -u1", None, id="a-lob-update-of-two-lengths"),
        pytest.param("u? u1 u1 -u1 -u1", None, id="an-update-that-may-be-closed-or-not"),
        pytest.param("u? w? u2 i? u3 -d3", "u? w? u2", id="an-insert-behind-a-lob-update"),
        pytest.param("u? w? d2 -i2", "u? w?", id="a-delete-behind-a-lob-update"),
        pytest.param("w? i? -d1", None, id="a-piece-before-an-insert"),
        pytest.param("u1 u2 i? -d3 -u2", "u1", id="different-statements-newest-first"),
        pytest.param("u2 i? -u2 -d3", None, id="different-statements-oldest-first"),
        pytest.param("i? u? d? -i? -u?", "i?", id="rows-without-addresses-by-order"),
        pytest.param("i? i? -d? u? -u? -d?", "", id="rows-without-addresses-taken-back-twice"),
        pytest.param("i? u? -d?", None, id="rows-without-addresses-of-another-order"),
        pytest.param("i? -d? -d?", None, id="rows-without-addresses-one-too-many"),
    ],
)
def test_undo_by_statement(text: str, left: str | None) -> None:
    rows = [row(one) for one in text.split()]
    if left is None:
        with pytest.raises(NotUnderstoodError):
            surviving(rows)
    else:
        assert [text.split()[place] for place in surviving(rows)] == left.split()


def test_the_form_by_columns_is_the_same_rule() -> None:
    """Legal transactions and rows thrown together, each as a transaction of its own, all in one table."""
    cases = [transaction(seed).rows for seed in range(1500)]
    rng = random.Random(5)
    words = [
        "i1",
        "u1",
        "d1",
        "-d1",
        "-u1",
        "-i1",
        "i?",
        "w?",
        "w1",
        "x1",
        "u?",
        "u2",
        "-u2",
        "-d2",
        "-d?",
    ]
    cases += [[row(rng.choice(words)) for _ in range(rng.randint(1, 8))] for _ in range(6000)]
    shuffled = list(enumerate(cases))
    rng.shuffle(shuffled)
    redo, expected, refused = [], set(), set()
    for number, case in shuffled:
        at = number << 8
        redo += [
            (
                at + place,
                f"x{number}",
                int(one.operation),
                one.row_id or UNKNOWN_ROW_ID,
                one.is_undo,
                True,
            )
            for place, one in enumerate(case)
        ]
        try:
            expected |= {at + place for place in surviving(case)}
        except NotUnderstoodError:
            refused.add(number)
    table = pa.table(dict(zip(COLUMNS, map(list, zip(*redo, strict=True)), strict=True)))
    undone = find_undone(table)
    assert {ordinal >> 8 for ordinal in undone.problems} == refused
    left = undone.left_of(table)["ordinal"].to_pylist()
    assert {ordinal for ordinal in left if ordinal >> 8 not in refused} == expected
    assert set(undone.problems) <= set(left), "a row with a problem reaches whoever stops the table"
    assert len(refused) > 1000
    assert len(expected) > 1000
