"""Transactions of sessions that were killed: given up by the strict rule, and by nothing less."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdc_core.capture.transactions.orphans import LivingTransactions, judged, read_living
from cdc_core.errors import PreflightError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.model.transactions import OpenTransaction
from cdc_core.state.open_transactions import first_open_ordinal
from oracle_embedded.database import ADMIN
from tests.capture.source import Source
from tests.oracle.embedded import Oracle, running_oracle
from tests.oracle.fake_session import FakeSession
from tests.oracle.fixtures import oracle_with

XID = "0100020003000000"
ONE = OpenTransaction(xid=XID, start_scn=90, first_ordinal=0, tables=("HR.EMP",), table_rows=(1,), rows=1, session_id=7, serial=8)  # fmt: skip
ABSENT = replace(ONE, absent_scn=150)
GONE = LivingTransactions(frozenset(), frozenset(), Scn(300))


@pytest.mark.parametrize(
    ("one", "living", "expected"),
    [
        pytest.param(ONE, GONE, replace(ONE, absent_scn=300), id="absent-for-the-first-time"),
        pytest.param(ABSENT, GONE, replace(ABSENT, state="released"), id="absent-twice-and-mined-past"),
        pytest.param(replace(ABSENT, state="undone"), GONE, None, id="undone-before"),
        pytest.param(replace(ABSENT, state="undone", absent_scn=201), GONE, replace(ABSENT, state="undone", absent_scn=201), id="undone-and-not-mined-past-it"),
        pytest.param(replace(ABSENT, state="undone"), replace(GONE, sessions=None), None, id="undone-and-the-session-lives-on"),
        pytest.param(replace(ABSENT, state="ending"), replace(GONE, sessions=None), replace(ABSENT, state="rolled_back"), id="ending-and-the-session-lives-on"),
        pytest.param(replace(ABSENT, state="ending", absent_scn=201), GONE, replace(ABSENT, state="ending", absent_scn=201), id="ending-and-not-mined-past-it"),
        pytest.param(replace(ONE, state="ending"), GONE, replace(ONE, state="ending", absent_scn=300), id="ending-and-absent-for-the-first-time"),
        pytest.param(replace(ABSENT, state="ending"), replace(GONE, transactions=frozenset({XID})), replace(ONE, state="ending"), id="ending-and-there-again"),
        pytest.param(replace(ABSENT, state="rolled_back"), replace(GONE, transactions=frozenset({XID})), replace(ABSENT, state="rolled_back"), id="once-rolled-back"),
        pytest.param(replace(ABSENT, absent_scn=200), GONE, replace(ABSENT, absent_scn=200, state="released"), id="mined-up-to-the-first-absence"),
        pytest.param(replace(ABSENT, absent_scn=201), GONE, replace(ABSENT, absent_scn=201), id="not-mined-past-it"),
        pytest.param(ABSENT, replace(GONE, transactions=frozenset({XID})), ONE, id="there-again"),
        pytest.param(ABSENT, replace(GONE, sessions=frozenset({(7, 8)})), ABSENT, id="session-still-there"),
        pytest.param(ABSENT, replace(GONE, sessions=frozenset({(7, 9)})), replace(ABSENT, state="released"), id="another-session-of-that-number"),
        pytest.param(ABSENT, replace(GONE, sessions=None), ABSENT, id="sessions-cannot-be-seen"),
        pytest.param(replace(ABSENT, session_id=None), GONE, replace(ABSENT, session_id=None), id="session-never-seen"),
        pytest.param(replace(ABSENT, serial=None), GONE, replace(ABSENT, serial=None), id="serial-never-seen"),
        pytest.param(replace(ABSENT, xid="01000200ffffffff"), GONE, replace(ABSENT, xid="01000200ffffffff"), id="nameless"),
        pytest.param(replace(ABSENT, state="released"), replace(GONE, transactions=frozenset({XID})), replace(ABSENT, state="released"), id="once-released"),
    ],
)  # fmt: skip
def test_the_rule(
    one: OpenTransaction, living: LivingTransactions, expected: OpenTransaction | None
) -> None:
    found = judged([one], living, before={one.xid}, scn_low=Scn(200))
    assert found == ([] if expected is None else [expected])


def test_a_transaction_that_is_new_with_the_window_has_time() -> None:
    assert judged([ONE], GONE, before=set(), scn_low=Scn(200)) == [ONE]


@pytest.mark.parametrize(("instances", "view"), [(1, " V$TRANSACTION"), (2, "GV$TRANSACTION")])
@pytest.mark.parametrize(
    ("sessions", "known"),
    [
        pytest.param([(7, 8, 5)], frozenset({(7, 8)}), id="with-the-sessions"),
        pytest.param([], frozenset(), id="of-which-none-is-shown"),
        pytest.param(PreflightError("no", ora="ORA-00942"), None, id="that-one-may-not-see"),
    ],
)
def test_the_scn_is_read_after_the_transactions(
    instances: int, view: str, sessions: Any, known: frozenset[tuple[int, int]] | None
) -> None:
    session: Any = FakeSession(
        {"V$TRANSACTION": [(XID.upper(),)], "GV$SESSION": sessions, "CURRENT_SCN": [(5,)]}
    )
    found = read_living(session, instances)
    assert found == LivingTransactions(frozenset({XID}), known, Scn(5))
    asked = [sql for sql, _ in session.sent]
    assert view in asked[0]
    assert "CURRENT_SCN" in asked[-1]


# --- through the driver -------------------------------------------------------------------------------------------------

oracle = oracle_with("CREATE TABLE EMP (ID NUMBER(10) PRIMARY KEY)")


def killed(oracle: Oracle) -> None:
    """A transaction whose session is killed and whose ROLLBACK record is lost."""
    doomed = oracle.owner()
    doomed.cursor().execute("INSERT INTO EMP VALUES (1)")
    sid, serial = doomed.session_id, doomed.serial_num
    oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
    oracle.run(
        f"BEGIN DBMS_REDOLAKE_FAULTS.LOSE_END({sid}); END;",
        f"ALTER SYSTEM KILL SESSION '{sid},{serial}' IMMEDIATE",
        user=ADMIN,
    )


def states(source: Source) -> list[tuple[str, bool]]:
    return [
        (one.state, one.absent_scn is not None) for one in source.store.ledger.open_transactions()
    ]


def test_a_killed_session_s_transaction_is_given_up_and_told(
    oracle: Oracle, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = Source.begin(oracle, tmp_path)
    living = oracle.owner()
    living.cursor().execute("INSERT INTO EMP VALUES (2)")
    killed(oracle)
    first = source.window()
    assert (first.transactions_open, first.transactions_released) == (2, 0)
    assert states(source) == [("open", False)] * 2
    with caplog.at_level(logging.WARNING):
        source.window()
        assert sorted(states(source)) == [("open", False), ("open", True)]
        released = [source.window() for _ in range(2)]
    assert sum(one.transactions_released for one in released) == 1
    assert released[-1].transactions_open == 1
    assert sorted(states(source)) == [("open", False), ("released", True)]
    assert caplog.text.count("a transaction is given up") == 1
    assert "tables=DEMO.EMP" in caplog.text
    living.commit()
    assert source.window().tables_committed == ("DEMO.EMP",), "the living one is whole"


def test_a_transaction_that_took_all_back_ends_with_its_rollback_and_nobody_is_warned(
    oracle: Oracle, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its ROLLBACK row is one that may close a savepoint only, in every second transaction; Oracle then knows none of them."""
    source = Source.begin(oracle, tmp_path)
    for key in range(4):
        with oracle.owner() as connection:
            cursor = connection.cursor()
            cursor.execute("SAVEPOINT HERE")
            cursor.execute("INSERT INTO EMP VALUES (:1)", [key])
            cursor.execute("ROLLBACK TO SAVEPOINT HERE")
            connection.rollback()
    source.window()
    assert "undone" in {state for state, _ in states(source)}, "no ROLLBACK row was in doubt"
    with caplog.at_level(logging.WARNING):
        released = [source.window().transactions_released for _ in range(3)]
    assert states(source) == []
    assert not any(released)
    assert "given up" not in caplog.text


def test_one_that_goes_on_although_its_rollback_was_taken_for_its_end_loses_nothing(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if Oracle had lied twice: what it took back is out of the way, and what it does then is read."""
    source = Source.begin(oracle, tmp_path)
    slow = oracle.owner()
    slow.cursor().execute("SAVEPOINT HERE")
    slow.cursor().execute("INSERT INTO EMP VALUES (1)")
    slow.cursor().execute("ROLLBACK TO SAVEPOINT HERE")
    source.window()
    assert states(source) == [("undone", False)]

    def blind(*asked: Any) -> LivingTransactions:
        return replace(read_living(*asked), transactions=frozenset(), sessions=frozenset())

    monkeypatch.setattr("cdc_core.capture.logminer.read_living", blind)
    for _ in range(3):
        source.window()
    assert states(source) == []
    slow.cursor().execute("INSERT INTO EMP VALUES (2)")
    slow.commit()
    found = source.window()
    assert (found.tables_committed, found.left) == (("DEMO.EMP",), ())


def test_a_transaction_that_was_given_up_and_commits_stops_its_tables(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if Oracle had lied twice."""
    source = Source.begin(oracle, tmp_path)
    slow = oracle.owner()
    slow.cursor().execute("INSERT INTO EMP VALUES (1)")
    oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
    source.window()

    def blind(*asked: Any) -> LivingTransactions:
        return replace(read_living(*asked), transactions=frozenset(), sessions=frozenset())

    monkeypatch.setattr("cdc_core.capture.logminer.read_living", blind)
    for _ in range(3):
        source.window()
    assert states(source) == [("released", True)]
    slow.commit()
    [end] = source.window().left
    assert end.table == TableId("DEMO", "EMP")
    assert "given up before" in end.reason


def test_a_rolled_back_lob_transaction_ends_when_oracle_no_longer_knows_it(
    oracle: Oracle, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One undo row stands for a statement of several redo rows, so the count of rows does not tell that all was taken back. The
    sessions live on, as those of a pool do."""
    oracle.run("CREATE TABLE DOCS (ID NUMBER(10) PRIMARY KEY, T CLOB)")
    source = Source.begin(oracle, tmp_path, "DOCS", "EMP")
    sessions = [oracle.owner() for _ in range(4)]
    for key, connection in enumerate(sessions):
        connection.cursor().execute("INSERT INTO DOCS VALUES (:1, :2)", [key, "long " * 2000])
        connection.rollback()
    with caplog.at_level(logging.WARNING):
        windows = [source.window()]
        assert "ending" in {state for state, _ in states(source)}, "no ROLLBACK row was in doubt"
        windows += [source.window() for _ in range(3)]
        assert {state for state, _ in states(source)} == {"rolled_back"}
        with source.store._database.reading() as connection:
            assert first_open_ordinal(connection, "src") is None, "landing files wait for it"
    assert sum(one.transactions_released + one.transactions_evicted for one in windows) == 0
    assert not [one for one in windows if one.left]
    assert caplog.text == ""


@pytest.fixture
def closed() -> Iterator[tuple[Oracle, Any]]:
    """A database that writes redo at once, so that an online log shows where a savepoint was closed, and a session."""
    with running_oracle(strand_records=1) as oracle:
        oracle.run("CREATE TABLE DOCS (ID NUMBER(10) PRIMARY KEY, T CLOB)")
        yield oracle, oracle.owner()


def closes_a_savepoint(connection: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("INSERT INTO DOCS VALUES (1, 'kept')")
    cursor.execute("SAVEPOINT HERE")
    cursor.execute("INSERT INTO DOCS VALUES (2, :1)", ["long " * 2000])
    cursor.execute("ROLLBACK TO SAVEPOINT HERE")


def test_one_that_was_taken_for_rolled_back_and_commits_stops_its_tables(
    closed: tuple[Oracle, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if Oracle had lied twice of a transaction that closed a savepoint only."""
    oracle, slow = closed
    source = Source.begin(oracle, tmp_path, "DOCS")
    closes_a_savepoint(slow)
    source.window()
    assert ("ending", False) in states(source)

    def blind(*asked: Any) -> LivingTransactions:
        return replace(read_living(*asked), transactions=frozenset())

    monkeypatch.setattr("cdc_core.capture.logminer.read_living", blind)
    for _ in range(3):
        source.window()
    assert ("rolled_back", True) in states(source)
    slow.commit()
    [end] = source.window().left
    assert end.table == TableId("DEMO", "DOCS")
    assert "taken for rolled back" in end.reason


def test_a_lob_transaction_that_closed_a_savepoint_and_commits_is_whole(
    closed: tuple[Oracle, Any], tmp_path: Path
) -> None:
    oracle, slow = closed
    source = Source.begin(oracle, tmp_path, "DOCS")
    closes_a_savepoint(slow)
    for _ in range(4):
        source.window()
    assert ("ending", False) in states(source), "Oracle knows it"
    slow.cursor().execute("INSERT INTO DOCS VALUES (20, 'later')")
    source.window()
    source.window()
    assert states(source) == [("open", False)], "a ROLLBACK row that is read again says nothing new"
    slow.commit()
    found = source.window()
    assert (found.transactions_committed, found.left) == (1, ())
    assert states(source) == []
