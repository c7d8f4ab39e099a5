"""Redo of open transactions that reaches the log late, through the driver: each row once, each transaction whole."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from cdc_core.errors import RedoUnavailableError
from cdc_core.landing.manifest import WindowManifest
from oracle_embedded.database import ADMIN
from oracle_embedded.faults import Fault, FaultKind
from oracle_embedded.redo import Wart
from tests.capture.source import Source
from tests.oracle.embedded import Oracle, running_oracle
from tests.oracle.fixtures import oracle_with
from tests.stage.plain_rollback import RedoRow, surviving

COMPLETED = {"capture": {"close_at": "completed_logs"}}

oracle = oracle_with(
    "CREATE TABLE EMP (ID NUMBER(10) PRIMARY KEY, NAME VARCHAR2(40))",
    warts=[Wart.LATE_REDO],
    strand_records=500,
)


def ids(source: Source, manifest: WindowManifest) -> list[str]:
    """The first value of each landed INSERT."""
    return [row["sql_redo"].split("'")[1] for row in source.rows(manifest)]


def test_rows_that_come_late_are_read_with_the_next_window_and_once(
    oracle: Oracle, tmp_path: Path
) -> None:
    source = Source.begin(oracle, tmp_path)
    slow = oracle.owner()
    slow.cursor().execute("INSERT INTO EMP VALUES (1, 'waits in its strand')")
    oracle.run("INSERT INTO EMP VALUES (2, 'quick')")
    first = source.window()
    assert ids(source, first) == ["2"]

    slow.cursor().execute("INSERT INTO EMP VALUES (3, 'above the first window')")
    slow.commit()
    oracle.run("INSERT INTO EMP VALUES (4, 'quick')")
    second = source.window()
    assert ids(source, second) == ["1", "3", "4"]
    late = source.rows(second)[0]
    assert late["scn"] <= second.window.scn_low
    assert second.mining_low < second.window.scn_low
    assert [(one["state"], one["rows"]) for one in source.transactions(second)] == [
        ("commit", 2),
        ("commit", 1),
    ]
    assert ids(source, source.window()) == []


def test_a_hole_in_redo_that_is_looked_at_again_stops_the_window(
    oracle: Oracle, tmp_path: Path
) -> None:
    """Rows that came late may be in it."""
    source = Source.begin(oracle, tmp_path)
    oracle.run("INSERT INTO EMP VALUES (1, 'read')")
    assert ids(source, source.window()) == ["1"]
    oracle.run("INSERT INTO EMP VALUES (2, 'new')")
    oracle.server.faults.arm(Fault(FaultKind.MISSING_SCN, times=0))
    with pytest.raises(RedoUnavailableError, match="MISSING_SCN"):
        source.window()


def test_a_strand_that_a_switch_binds_is_read_with_the_next_window(
    oracle: Oracle, tmp_path: Path
) -> None:
    source = Source.begin(oracle, tmp_path)
    slow = oracle.owner()
    slow.cursor().execute("INSERT INTO EMP VALUES (1, 'waits in its strand')")
    assert ids(source, source.window()) == []
    for _ in range(5):
        oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
    second = source.window()
    assert ids(source, second) == ["1"]
    assert [one["state"] for one in source.transactions(second)] == ["open"]
    slow.commit()
    assert source.window().tables_committed == ("DEMO.EMP",)


def test_windows_that_end_with_switched_logs_are_complete_and_look_nowhere_twice(
    oracle: Oracle, tmp_path: Path
) -> None:
    source = Source.begin(oracle, tmp_path, **COMPLETED)
    slow = oracle.owner()
    slow.cursor().execute("INSERT INTO EMP VALUES (1, 'waits in its strand')")
    oracle.run("INSERT INTO EMP VALUES (2, 'quick')")
    first = source.window()
    assert sorted(ids(source, first)) == ["1", "2"]
    assert all(log.next_change > first.window.scn_high for log in first.logs[-1:])
    slow.cursor().execute("INSERT INTO EMP VALUES (3, 'x')")
    slow.commit()
    second = source.window()
    assert ids(source, second) == ["3"]
    assert second.mining_low == second.window.scn_low


def test_with_every_oddity_at_once_each_transaction_is_whole(tmp_path: Path) -> None:
    """Several sessions, savepoints, rollbacks and switches, in windows that end anywhere."""
    dice = Random(7)
    warts = [wart for wart in Wart if wart is not Wart.UNNAMED_COLUMNS]
    with running_oracle(warts=warts, strand_records=500) as oracle:
        oracle.run("CREATE TABLE EMP (ID NUMBER(10) PRIMARY KEY, NAME VARCHAR2(40))")
        source = Source.begin(oracle, tmp_path)
        sessions = [Session(oracle.owner()) for _ in range(4)]
        manifests = []
        for number in range(120):
            dice.choice(sessions).act(dice, number)
            if dice.random() < 0.05:
                oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
            if dice.random() < 0.1:
                manifests.append(source.window())
        for one in sessions:
            one.end(commits=True)
        manifests += [source.window(), source.window()]
        rows = [row for manifest in manifests for row in source.rows(manifest)]
        ended = [one for manifest in manifests for one in source.transactions(manifest)]
        assert len({(row["rs_id"], row["sql_redo"], row["row_id"]) for row in rows}) == len(rows)
        committed = [survivors(rows, one) for one in ended if one["state"] == "commit"]
        left = [ids for ids in committed if ids]
        assert sorted(left) == sorted(ids for one in sessions for ids in one.committed)
        assert source.store.ledger.open_transactions() == []
        assert sum(manifest.transactions_evicted for manifest in manifests) == 0


class Session:
    """A connection with what its transactions must have left behind."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.ids: list[str] = []
        self.committed: list[list[str]] = []

    def act(self, dice: Random, number: int) -> None:
        cursor = self.connection.cursor()
        what = dice.choices(("insert", "undo", "commit", "rollback"), (8, 2, 2, 1))[0]
        if what == "insert":
            cursor.execute(f"INSERT INTO EMP VALUES ({number}, 'x')")
            self.ids.append(str(number))
        elif what == "undo":
            cursor.execute("SAVEPOINT S")
            cursor.execute(f"INSERT INTO EMP VALUES ({number}, 'undone')")
            cursor.execute(f"INSERT INTO EMP VALUES ({number + 1000}, 'undone')")
            cursor.execute("ROLLBACK TO SAVEPOINT S")
        else:
            self.end(commits=what == "commit")

    def end(self, *, commits: bool) -> None:
        if commits:
            self.connection.commit()
            self.committed += [self.ids] if self.ids else []
        else:
            self.connection.rollback()
        self.ids = []


def survivors(rows: list[dict[str, Any]], ended: dict[str, Any]) -> list[str]:
    """IDs that a committed transaction inserted and did not take back itself."""
    own = [
        row
        for row in rows
        if row["xid"] == ended["xid"]
        and ended["first_ordinal"] <= row["ordinal"] < ended["commit_ordinal"]
    ]
    assert len(own) == ended["rows"]
    kept: list[str] = []
    alive = surviving_rows(own)
    for row in own:
        if id(row) in alive:
            kept.append(row["sql_redo"].split("'")[1])
    return kept


def surviving_rows(own: list[dict[str, Any]]) -> set[int]:
    facts = [RedoRow(row["operation_code"], row["row_id"], row["rollback"]) for row in own]
    return {id(own[place]) for place in surviving(facts)}
