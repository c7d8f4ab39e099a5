"""Level *mine*: the newest redo of captured tables, decoded and counted, and nothing of it kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdc_core.model.operations import Operation
from diagnosis.certify import Outcome, certify
from diagnosis.certify.mine import MINE_PROBES, MineProbe
from diagnosis.certify.mined import MinedPass
from diagnosis.certify.probes import Level
from oracle_embedded.database import ADMIN
from oracle_embedded.redo import Wart
from tests.oracle.embedded import Oracle, running_oracle

TOLD = ("ZEBRA_LEDGER", "SALARY", "PLATYPUS", "1029384756")


def load(oracle: Oracle) -> None:
    table, column, text, number = TOLD
    oracle.run(
        f"CREATE TABLE {table} ({column} NUMBER(12) PRIMARY KEY, V VARCHAR2(4000), C CLOB)",
        "CREATE TABLE PLAIN (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(4000))",
    )
    oracle.run(
        f"INSERT INTO {table} VALUES ({number}, RPAD('{text}', 4000, '{text}'), '{text}')",
        f"UPDATE {table} SET V = '{text}'",
        "INSERT INTO PLAIN VALUES (1, RPAD('x', 4000, 'y'))",
        "SAVEPOINT S",
        "INSERT INTO PLAIN VALUES (2, 'gone')",
        "ROLLBACK TO S",
        "UPDATE PLAIN SET V = 'a'",
    )
    for at in range(5):
        oracle.run(f"INSERT INTO PLAIN VALUES ({at + 10}, 'b')", "DELETE FROM PLAIN WHERE ID > 9")


def found_in(oracle: Oracle, path: Path) -> Mapping[str, Any]:
    report = certify(oracle.config(path, TOLD[0], "PLAIN"), [Level.MINE])
    for told in (*TOLD, "DEMO", "PLAIN", "xyyy"):
        assert told not in report.text(), told
    return {one.probe.id: one for one in report.found}


def test_the_redo_of_captured_tables_is_decoded_and_counted(tmp_path: Path) -> None:
    with running_oracle(strand_records=100) as oracle:
        load(oracle)
        found = found_in(oracle, tmp_path)
    assert {name: one.verdict.seen for name, one in found.items() if one.is_wrong} == {}
    assert found["mine.decodable"].verdict.facts["statements_decoded"] == 16
    assert found["mine.decodable"].verdict.facts["statements_undecodable"] == 0
    assert found["mine.shown"].verdict.outcome is Outcome.HOLDS
    assert found["mine.placeholders"].verdict.outcome is Outcome.HOLDS


def test_what_cannot_be_decoded_is_told_by_its_kind(tmp_path: Path) -> None:
    with running_oracle(warts=[Wart.GATHERED_WRITES]) as oracle:
        load(oracle)
        oracle.run("ALTER TABLE PLAIN ADD (W NUMBER(3))")
        oracle.run("BEGIN DBMS_REDOLAKE_FAULTS.LEAVE_UNTRANSLATED('SALARY'); END;", user=ADMIN)
        found = found_in(oracle, tmp_path)
    status = found["mine.status"].verdict
    assert status.outcome is Outcome.OTHERWISE
    assert "with STATUS 2" in status.seen


def test_redo_without_a_change_of_a_captured_table_tells_nothing_of_them(tmp_path: Path) -> None:
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE PLAIN (ID NUMBER(9) PRIMARY KEY)")
        report = certify(oracle.config(tmp_path, "PLAIN"), [Level.MINE])
    found = {one.probe.id: one.verdict for one in report.found}
    assert found["mine.decodable"].outcome is Outcome.CANNOT_TELL
    assert found["mine.whole"].outcome is Outcome.HOLDS
    assert report.is_certified


def mined(**facts: int) -> MinedPass:
    """A pass over a healthy table, with these counts besides."""
    named = {name.replace("_", "-"): count for name, count in facts.items()}
    return MinedPass(
        seconds=1,
        redo_bytes=10 * 1024**2,
        operations=Counter({Operation.INSERT: 10}),
        statuses=Counter({0: 10}),
        decoded=10,
        facts=Counter({"rows": 30, "starts": 5, "commits": 5} | named),
    )


SEEN_OR_NOT = {
    "mine.partial-xids": mined(partial_xid=1),
    "mine.empty-transactions": mined(commit_of_no_thread=1),
    "mine.order-of-scns": mined(scn_falls=1),
    "mine.placeholders": mined(placeholder=1),
}
"""That something was not met in one pass says nothing."""
BY_ID = {one.id: one for one in MINE_PROBES}


def test_slow_redo_is_seen() -> None:
    assert BY_ID["mine.speed"].judged(replace(mined(), seconds=100)).outcome is Outcome.OTHERWISE


@pytest.mark.parametrize("name", SEEN_OR_NOT)
def test_what_was_not_met_is_no_verdict(name: str) -> None:
    probe: MineProbe = BY_ID[name]
    assert probe.judged(SEEN_OR_NOT[name]).outcome is Outcome.HOLDS
    assert probe.judged(mined()).outcome is Outcome.CANNOT_TELL
