"""The ledger follows the stream row by row: partial XIDs, slots, savepoints, and what is not whole."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from cdc_core.capture.passes.reading_position import Reading
from cdc_core.capture.passes.rows import RowReader, landing_rows
from cdc_core.capture.transactions.ledger import TransactionLedger
from cdc_core.landing.ledger import ledger_batch, ledger_from_rows
from cdc_core.model.operations import Operation
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.transactions import OpenTransaction
from tests.capture.test_rows import DEPT, EMP, X1, X2, batch, row

START, COMMIT, ROLLBACK = Operation.START, Operation.COMMIT, Operation.ROLLBACK
INSERT, UPDATE, DDL = Operation.INSERT, Operation.UPDATE, Operation.DDL
WINDOW = ScnWindow(Scn(100), Scn(200))
SLOT1, SLOT2 = "0A000100", "0B000200"
P1, P2 = f"{SLOT1}FFFFFFFF", f"{SLOT2}FFFFFFFF"
NEXT1, LAST1 = f"{SLOT1}00000002", f"{SLOT1}00000003"
ZERO = " 0x000000.00000000.0000 "
NO_XID = "0" * 16
Rows = list[dict[str, Any]]


def undo(xid: str = X1, **more: Any) -> dict[str, Any]:
    return row(Operation.DELETE, xid, rollback=1, **more)


class Followed:
    """A ledger after some rows, and what landed of them."""

    def __init__(
        self,
        *batches: Rows,
        opened: tuple[OpenTransaction, ...] = (),
        ordinal: int = 0,
        snapshot_scn: int = 100,
        mined_from: int = 50,
        by_statement: tuple[str, ...] = (),
    ) -> None:
        self.ledger = TransactionLedger(
            opened,
            WINDOW,
            ["HR.EMP", "HR.Dept"],
            snapshot_scn=snapshot_scn,
            mined_from=mined_from,
            by_statement=by_statement,
        )
        reader = RowReader(ordinal, [EMP, DEPT], Reading(0, (), {}))
        self.landed: list[dict[str, Any]] = []
        for one in reader.read(iter([batch(*rows) for rows in batches])):
            landing = landing_rows(self.ledger.take(one), [EMP, DEPT])
            self.landed += landing.to_pylist() if landing is not None else []
        self.ledger.finish()
        self.ended: list[dict[str, Any]] = self.ledger.drain().to_pylist()

    @property
    def states(self) -> list[tuple[str, str, int]]:
        return [(one["xid"], one["state"], one["rows"]) for one in self.ended]

    @property
    def open(self) -> list[tuple[str, str]]:
        return [(one.xid, one.state) for one in self.ledger.open_transactions()]

    @property
    def xids(self) -> list[str]:
        return [one["xid"] for one in self.landed]


def followed(rows: Rows, **more: Any) -> Followed:
    """Follow rows in one batch; cut anywhere, or row by row, the result is the same."""
    whole = Followed(rows, **more)
    cuts = [(rows[:at], rows[at:]) for at in range(1, len(rows))]
    for other in (
        Followed(*([one] for one in rows), **more),
        *(Followed(*cut, **more) for cut in cuts),
    ):
        assert other.ended == whole.ended
        assert other.landed == whole.landed
        assert other.ledger.open_transactions() == whole.ledger.open_transactions()
        assert (other.ledger.incomplete, other.ledger.evicted) == (
            whole.ledger.incomplete,
            whole.ledger.evicted,
        )
    return whole


def x(xid: str) -> str:
    return xid.lower()


def waiting(**more: Any) -> OpenTransaction:
    """One that the window before left open, with a row of HR.EMP."""
    one: dict[str, Any] = {"tables": ("HR.EMP",), "table_rows": (1,), "rows": 1}
    begun = {"xid": x(X1), "start_scn": 90, "first_ordinal": 0, "has_rollback": False}
    return OpenTransaction(**{**begun, **one, **more})


# --- whole XIDs -----------------------------------------------------------------------------------


def test_a_committed_transaction_is_handed_out_once_with_what_is_known() -> None:
    found = followed(
        [
            row(START, scn=140, client_id="till 7"),
            row(INSERT),
            undo(table_name="Dept"),
            row(COMMIT, scn=180),
        ]
    )
    assert found.ended == [
        {
            "xid": x(X1), "state": "commit", "start_scn": 140, "commit_scn": 180,
            "commit_ordinal": 3, "commit_timestamp": datetime(2026, 1, 2), "username": "SCOTT",
            "first_ordinal": 0, "has_rollback": True, "tables": ["HR.Dept", "HR.EMP"],
            "table_rows": [1, 1], "rows": 2, "undone": 1, "late": False, "session_id": None, "serial": None, "absent_scn": None,
            "start_timestamp": datetime(2026, 1, 2), "client_id": "till 7", "windows": [0, 0],
        }
    ]  # fmt: skip
    assert found.ledger.drain().num_rows == 0
    assert (found.ledger.committed, found.ledger.rolled_back) == (1, 0)
    assert found.ledger.tables_committed == {"HR.EMP", "HR.Dept"}
    assert found.open == []


def test_transactions_without_captured_rows_leave_no_trace_when_they_end() -> None:
    found = followed([row(START), row(COMMIT), row(START, X2), row(ROLLBACK, X2)])
    assert (found.ended, found.open) == ([], [])
    assert (found.ledger.committed, found.ledger.rolled_back) == (0, 0)


def test_open_transactions_go_on_where_the_ledger_stood() -> None:
    first = followed(
        [
            row(START, scn=140, username="UNKNOWN", session_id=7, serial=9), row(INSERT),
            row(START, X2),
        ]
    )  # fmt: skip
    opened = first.ledger.open_transactions()
    assert opened == [
        waiting(
            start_scn=140,
            username=None,
            session_id=7,
            serial=9,
            start_timestamp=datetime(2026, 1, 2),
            windows=(0, 0),
        ),
        OpenTransaction(
            xid=x(X2),
            start_scn=150,
            first_ordinal=2,
            has_rollback=False,
            tables=(),
            rows=0,
            username="SCOTT",
            start_timestamp=datetime(2026, 1, 2),
            windows=(),
        ),
    ]
    assert ledger_from_rows(ledger_batch(opened).to_pylist()) == opened
    second = followed(
        [row(UPDATE), row(UPDATE, table_name="Dept"), row(COMMIT)], opened=tuple(opened), ordinal=1
    )
    [ended] = second.ended
    assert (ended["start_scn"], ended["first_ordinal"], ended["rows"]) == (140, 0, 3)
    assert (ended["tables"], ended["table_rows"]) == (["HR.Dept", "HR.EMP"], [1, 2])
    assert second.ledger.rows == 2
    assert second.open == [(x(X2), "open")]


def test_a_rollback_to_a_savepoint_is_remembered_over_a_windows_end() -> None:
    first = followed([row(START), row(INSERT), row(INSERT), undo()])
    [ended] = followed(
        [row(UPDATE), row(COMMIT)], opened=tuple(first.ledger.open_transactions()), ordinal=1
    ).ended
    assert (ended["has_rollback"], ended["rows"], ended["undone"]) == (True, 4, 1)


def test_a_ledger_comes_back_from_its_rows() -> None:
    bare = waiting(start_scn=None, first_ordinal=3, has_rollback=True, table_rows=(4,), rows=4)
    kept = replace(bare, table_rows=(4,), windows=(0, 2), start_scn=7, session_id=5)
    ledger = [bare, kept]
    assert ledger_from_rows(ledger_batch(ledger).to_pylist()) == ledger


def test_a_rolled_back_transaction_is_no_commit() -> None:
    found = followed([row(START), row(INSERT), undo(), row(ROLLBACK)])
    assert found.states == [(x(X1), "rollback", 2)]
    assert (found.ledger.committed, found.ledger.rolled_back) == (0, 1)
    assert found.ledger.tables_committed == set()


def test_the_commit_of_a_transaction_with_a_ddl_is_known() -> None:
    found = followed([row(START), row(DDL, info="USER DDL"), row(COMMIT, scn=177)])
    assert found.ledger.ddl_commit_scn(x(X1)) == 177
    assert found.ended == [], "a DDL alone changes no rows"
    assert followed([row(START), row(DDL)]).ledger.ddl_commit_scn(x(X1)) is None


# --- XIDs without their sequence ------------------------------------------------------------------


def test_undo_rows_without_a_sequence_belong_to_the_transaction_that_is_open_in_the_slot() -> None:
    found = followed([row(START), row(INSERT), undo(P1), row(INSERT), row(COMMIT)])
    assert found.xids == [x(X1)] * 3
    assert [(one["rows"], one["undone"], one["has_rollback"]) for one in found.ended] == [(3, 1, True)]  # fmt: skip


def test_a_slot_that_is_used_again_gives_its_rows_to_the_newer_transaction() -> None:
    found = followed(
        [
            row(START), row(INSERT), undo(P1), row(INSERT), row(COMMIT, P1, scn=160),
            row(START, NEXT1, scn=161), row(INSERT, NEXT1, scn=162), undo(P1, scn=163), row(INSERT, NEXT1, scn=164),
            row(COMMIT, P1, scn=170),
        ]
    )  # fmt: skip
    assert found.xids == [x(X1)] * 3 + [x(NEXT1)] * 3
    assert found.states == [(x(X1), "commit", 3), (x(NEXT1), "commit", 3)]


def test_rows_of_a_transaction_of_an_earlier_session_find_it_in_the_ledger() -> None:
    old = waiting(table_rows=(2,), rows=2)
    other = OpenTransaction(xid=f"{SLOT1.lower()}000000ff", start_scn=80, first_ordinal=0)
    found = followed(
        [row(UPDATE, P1), row(COMMIT, P1)], opened=(replace(old, first_ordinal=5), other)
    )
    assert found.states == [(x(X1), "commit", 3)]


@pytest.mark.parametrize("slot_sequence", ["000000FF", "00000100", "FF000000"])
def test_the_slots_transaction_is_the_one_seen_last_whatever_its_digits(slot_sequence: str) -> None:
    newer = f"{SLOT1}{slot_sequence}"
    found = followed([row(START), row(START, newer), row(INSERT, newer), undo(P1), row(INSERT, newer), row(COMMIT, P1)])  # fmt: skip
    assert found.states == [(x(newer), "commit", 3)]


def test_an_undo_row_in_an_empty_slot_takes_back_nothing() -> None:
    found = followed([undo(P1), row(START, NEXT1), row(INSERT, NEXT1), row(COMMIT, NEXT1)])
    assert found.xids == [x(NEXT1)]
    assert found.states == [(x(NEXT1), "commit", 1)]


def test_ends_in_an_empty_slot_end_nothing() -> None:
    found = followed([row(COMMIT, P1), row(ROLLBACK, P1), row(COMMIT), row(ROLLBACK, X2)])
    assert (found.ended, found.open) == ([], [])


def test_slots_are_told_apart() -> None:
    found = followed(
        [
            row(START), row(START, X2), row(INSERT), row(INSERT, X2), undo(P2), row(INSERT, X2),
            row(COMMIT, P1, scn=160), row(COMMIT, P2, scn=161),
        ]
    )  # fmt: skip
    assert found.states == [(x(X1), "commit", 1), (x(X2), "commit", 3)]


# --- ROLLBACK rows that may close a savepoint only -----------------------------------------------


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(row(ROLLBACK, P1), id="without-sequence"),
        pytest.param(row(ROLLBACK, rs_id=ZERO), id="without-address"),
    ],
)
def test_a_rollback_of_a_savepoint_does_not_end_the_transaction(end: dict[str, Any]) -> None:
    found = followed([row(START), row(INSERT), row(INSERT), undo(P1), end, row(COMMIT)])
    assert found.states == [(x(X1), "commit", 3)]


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(row(ROLLBACK, P1), id="without-sequence"),
        pytest.param(row(ROLLBACK, rs_id=ZERO), id="without-address"),
    ],
)
def test_a_transaction_that_took_back_everything_is_set_aside_and_comes_back(
    end: dict[str, Any],
) -> None:
    aside = followed([row(START), row(INSERT), undo(P1), end])
    assert (aside.ended, aside.open) == ([], [(x(X1), "undone")])
    opened = tuple(aside.ledger.open_transactions())
    for found in (
        followed([row(START), row(INSERT), undo(P1), end, row(INSERT), row(COMMIT)]),
        followed([row(INSERT), row(COMMIT)], opened=opened, ordinal=1),
    ):
        assert found.states == [(x(X1), "commit", 3)]
        assert found.ledger.incomplete == []
    assert followed([row(COMMIT)], opened=opened).states == [(x(X1), "commit", 2)]


def test_a_transaction_that_was_set_aside_leaves_without_a_word_when_its_slot_is_used(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = followed([row(START), row(INSERT), undo(P1), row(ROLLBACK, P1), row(START, NEXT1)])
    assert found.states == [(x(X1), "rollback", 2)]
    assert (found.ledger.rolled_back, found.ledger.evicted, found.open) == (1, 0, [(x(NEXT1), "open")])  # fmt: skip
    assert caplog.records == []


LOBS = {"by_statement": ("HR.EMP",)}
STATEMENT = [row(START), row(INSERT), row(Operation.UPDATE), undo(P1)]
"""One undo row takes back the two rows of a statement, as in a table with LOBs."""


def test_where_one_undo_row_stands_for_a_statement_the_next_start_says_that_the_rollback_was_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ending = followed([*STATEMENT, row(ROLLBACK, P1)], **LOBS)
    assert (ending.ended, ending.open) == ([], [(x(X1), "ending")])
    found = followed([*STATEMENT, row(ROLLBACK, P1), row(START, NEXT1)], **LOBS)
    assert found.states == [(x(X1), "rollback", 3)]
    assert (found.ledger.rolled_back, found.ledger.evicted, found.open) == (1, 0, [(x(NEXT1), "open")])  # fmt: skip
    opened = tuple(ending.ledger.open_transactions())
    assert followed([row(START, NEXT1)], opened=opened, **LOBS).states == found.states
    assert caplog.records == []


def test_where_one_undo_row_stands_for_a_statement_a_transaction_may_go_on() -> None:
    later = [*STATEMENT, row(ROLLBACK, P1), row(INSERT), row(COMMIT)]
    assert followed(later, **LOBS).states == [(x(X1), "commit", 4)]
    assert followed([*later[:-1], row(START, NEXT1)], **LOBS).states == [(x(X1), "evicted", 4)]
    assert followed([*STATEMENT, row(ROLLBACK, P1), row(COMMIT)], **LOBS).states == [(x(X1), "commit", 3)]  # fmt: skip


def test_of_transactions_that_lost_their_slot_the_newest_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And those that are open, however many; a killed session leaves one each time."""
    monkeypatch.setattr("cdc_core.capture.transactions.ledger.DISPLACED_KEPT", 1)
    found = followed(
        [row(START), row(INSERT), row(START, NEXT1), row(INSERT, NEXT1), row(START, LAST1)]
    )
    assert found.open == [(x(NEXT1), "displaced"), (x(LAST1), "open")]


def test_where_rows_can_be_counted_a_savepoint_that_leaves_changes_ends_nothing() -> None:
    assert followed([*STATEMENT, row(ROLLBACK, P1)]).open == [(x(X1), "open")]
    other = followed([*STATEMENT, row(ROLLBACK, P1)], by_statement=("HR.Dept",))
    assert other.open == [(x(X1), "open")]


def test_a_whole_rollback_row_is_believed() -> None:
    found = followed([row(START), row(INSERT), row(ROLLBACK)])
    assert (found.states, found.open) == ([(x(X1), "rollback", 1)], [])


# --- slots that are taken, ends that are seen again -----------------------------------------------


def test_a_start_takes_the_slot_of_a_transaction_without_an_end_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = Followed([row(START, scn=140), row(INSERT), row(START, NEXT1), row(COMMIT, P1)])
    assert found.states == [(x(X1), "evicted", 1)]
    assert (found.ledger.evicted, found.ledger.committed) == (1, 0)
    assert found.open == [(x(X1), "displaced")], "a COMMIT of it would stop its tables"
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert "HR.EMP" in record.getMessage()
    assert x(X1) in record.getMessage()


def test_what_was_taken_from_the_ledger_does_not_swallow_later_rows() -> None:
    stale = waiting(xid=f"{SLOT1.lower()}ffffff00")
    found = followed(
        [row(START), row(INSERT), undo(P1), row(INSERT), row(COMMIT, P1)], opened=(stale,)
    )
    assert found.states == [(stale.xid, "evicted", 1), (x(X1), "commit", 3)]


def test_an_end_without_an_address_that_is_seen_again_ends_nothing() -> None:
    again = [row(COMMIT, scn=160, rs_id=ZERO), row(COMMIT, P1, scn=160, rs_id=ZERO)]
    assert followed(again).states == []
    newer = waiting(xid=x(NEXT1), start_scn=170)
    found = followed(again, opened=(newer,), ordinal=1)
    assert (found.states, found.open) == ([], [(newer.xid, "open")])


def test_an_end_without_an_address_ends_what_is_still_open() -> None:
    found = followed(
        [row(COMMIT, P1, scn=160, rs_id=ZERO, thread=0)], opened=(waiting(),), ordinal=1
    )
    assert found.states == [(x(X1), "commit", 1)]


@pytest.mark.parametrize("operation", [START, COMMIT, ROLLBACK])
def test_rows_without_any_xid_open_and_end_nothing(operation: Operation) -> None:
    found = followed([row(operation, NO_XID), row(START), row(INSERT), row(COMMIT)])
    assert found.states == [(x(X1), "commit", 1)]
    assert found.open == []


def test_commits_of_thread_0_of_nothing_are_fine() -> None:
    assert followed([row(COMMIT, thread=0, rs_id=ZERO)]).ended == []


# --- is it whole? ---------------------------------------------------------------------------------


def reasons(found: Followed) -> list[tuple[tuple[str, ...], str]]:
    return [(one.tables, one.reason) for one in found.ledger.incomplete]


UNSEEN = "its beginning was never seen"


def test_a_commit_whose_beginning_was_never_seen_names_its_tables() -> None:
    found = followed([row(INSERT), row(COMMIT)])
    assert reasons(found) == [(("HR.EMP",), UNSEEN)]
    unseen = waiting(start_scn=None, tables=("HR.Dept",))
    assert reasons(followed([row(COMMIT)], opened=(unseen,))) == [(("HR.Dept",), UNSEEN)]


@pytest.mark.parametrize(
    ("start_scn", "expected"),
    [
        pytest.param(51, [], id="after-all-that-was-read-began"),
        pytest.param(50, ["it began before the redo that was read"], id="before"),
        pytest.param(None, [UNSEEN], id="oracle-does-not-say"),
        pytest.param(0, [UNSEEN], id="oracle-says-nothing"),
    ],
)
def test_where_oracle_says_it_began_shows_whether_it_is_whole(
    start_scn: int | None, expected: list[str]
) -> None:
    for rows in (
        [row(INSERT), row(COMMIT, start_scn=start_scn)],
        [row(INSERT, start_scn=start_scn), row(COMMIT)],
    ):
        assert [one.reason for one in followed(rows).ledger.incomplete] == expected


def test_a_commit_up_to_the_snapshot_needs_no_beginning_and_is_not_counted() -> None:
    found = followed([row(INSERT, scn=90), row(COMMIT, scn=100)])
    assert [(one["commit_scn"], one["late"]) for one in found.ended] == [(100, False)]
    assert (found.ledger.committed, found.ledger.tables_committed) == (0, set())
    assert found.ledger.incomplete == []


@pytest.mark.parametrize("end", [P1, X1])
def test_changes_without_a_sequence_in_an_empty_slot_are_of_one_unknown_transaction(
    end: str,
) -> None:
    rows = [row(UPDATE, P1, scn=90), row(UPDATE, P1, scn=91, table_name="Dept")]
    before = followed([*rows, row(COMMIT, end, scn=99)])
    assert before.ledger.incomplete == []
    after = followed([*rows, row(COMMIT, end, scn=150)])
    assert reasons(after) == [(("HR.Dept", "HR.EMP"), UNSEEN)]


def test_an_unknown_transaction_that_gets_its_name_stays_one_and_is_not_whole() -> None:
    rows = [row(UPDATE, P1, start_scn=60), row(UPDATE, start_scn=60, table_name="Dept"), undo(P1)]
    found = followed([*rows, row(COMMIT, scn=150, start_scn=60)])
    assert (reasons(found), found.open) == ([(("HR.Dept", "HR.EMP"), UNSEEN)], [])
    ended = followed([*rows, undo(P1), row(ROLLBACK, P1, scn=150), row(START, NEXT1)])
    assert (ended.ledger.evicted, ended.open) == (0, [(x(NEXT1), "open")])


def test_two_unknown_transactions_of_one_slot_are_not_mixed() -> None:
    found = followed(
        [
            row(UPDATE, P1, scn=90), row(COMMIT, P1, scn=95), row(START, NEXT1), row(COMMIT, NEXT1),
            row(UPDATE, P1, scn=160, table_name="Dept"), row(COMMIT, P1, scn=165),
        ]
    )  # fmt: skip
    assert [(one["tables"], one["commit_scn"]) for one in found.ended] == [(["HR.EMP"], 95), (["HR.Dept"], 165)]  # fmt: skip
    assert reasons(found) == [(("HR.Dept",), UNSEEN)]


def test_a_change_that_names_no_transaction_is_not_whole() -> None:
    assert reasons(followed([row(INSERT, NO_XID)])) == [
        (("HR.EMP",), "its changes name no transaction")
    ]


def test_a_transaction_that_was_given_up_must_not_commit() -> None:
    gone = waiting(state="released")
    found = followed([row(COMMIT, scn=150)], opened=(gone,))
    assert [one.reason for one in found.ledger.incomplete] == ["it was given up before, since Oracle no longer knew it"]  # fmt: skip


def test_a_transaction_that_was_seen_to_end_must_not_commit() -> None:
    found = followed(
        [row(START), row(INSERT), row(ROLLBACK), row(INSERT, start_scn=140), row(COMMIT)]
    )
    assert [one.reason for one in found.ledger.incomplete] == ["it was seen to end before"]


# --- late commits -----------------------------------------------------------------------------------


def test_a_commit_at_or_below_the_lower_end_is_late_and_recorded() -> None:
    found = followed(
        [row(COMMIT, scn=100), row(START, X2, scn=101), row(INSERT, X2), row(COMMIT, X2, scn=101)],
        opened=(waiting(start_scn=60),), ordinal=1, snapshot_scn=70,
    )  # fmt: skip
    assert [(one["commit_scn"], one["late"]) for one in found.ended] == [(100, True), (101, False)]
    assert (found.ledger.late, found.ledger.tables_late) == ([100], {"HR.EMP"})
    assert found.ledger.committed == 2
    assert found.ledger.tables_committed == {"HR.EMP"}
    assert reasons(found) == []


def test_a_late_commit_that_the_snapshot_holds_is_not_late() -> None:
    found = followed(
        [row(COMMIT, scn=70)], opened=(waiting(start_scn=60),), ordinal=1, snapshot_scn=70
    )
    assert (found.ledger.late, found.ledger.committed) == ([], 0)


def test_a_late_commit_of_which_rows_may_be_missing_stops_its_tables() -> None:
    found = followed(
        [row(COMMIT, scn=100)], opened=(waiting(start_scn=None),), ordinal=1, snapshot_scn=70
    )
    assert reasons(found) == [(("HR.EMP",), "its beginning was never seen")]


def test_a_start_without_its_full_xid_takes_the_slot_from_whoever_has_it() -> None:
    """The COMMIT of the one before comes later, if at all, and what follows in the slot is not its own."""
    found = followed([row(START), row(INSERT), row(START, P1)])
    assert found.open == [(x(X1), "displaced")]
    assert followed([row(START, P1)]).open == []


def test_a_batch_of_many_transactions_is_followed_like_its_rows() -> None:
    rows: Rows = []
    for number in range(40):
        xid = f"{number % 5:04X}0001{number:08X}"
        partial = f"{xid[:8]}FFFFFFFF"
        rows += [row(START, xid), row(INSERT, xid), undo(partial if number % 3 else xid)]
        rows += [row(ROLLBACK, partial, rs_id=ZERO)] if number % 4 == 0 else []
        rows += [row(INSERT, xid), row(COMMIT, partial if number % 2 else xid)]
    whole, single = Followed(rows), Followed(*([one] for one in rows))
    assert whole.ended == single.ended
    assert len(whole.ended) == 40
    assert {(one["state"], one["rows"]) for one in whole.ended} == {("commit", 3)}
    assert isinstance(whole.ledger.drain(), pa.RecordBatch)
