"""Tables without a key whose rows all columns identify: what doctor and preflight say of them, before anything is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc_core.errors import PreflightError
from cdc_core.steps.source_checks import oracle_findings
from oracle_embedded.faults import Fault, FaultKind
from tests.oracle.embedded import ADMIN, Oracle, running_oracle
from tests.steps.harness import source_of, table_id

LOGGED = "ALTER TABLE DEMO.LOG ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS"


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with running_oracle(logging=False) as running:
        running.run("ALTER DATABASE ADD SUPPLEMENTAL LOG DATA", user=ADMIN)
        running.run(
            "CREATE TABLE LOG (A NUMBER(9), B VARCHAR2(40), C NUMBER)",
            "CREATE TABLE IOT (ID NUMBER(9) PRIMARY KEY) ORGANIZATION INDEX",
            "CREATE TABLE NOTES (A NUMBER(9), N CLOB)",
        )
        yield running


def test_doctor_tells_what_the_identity_costs_and_which_sql_it_needs(
    oracle: Oracle, tmp_path: Path
) -> None:
    with source_of(oracle, tmp_path) as source:
        source.configure({"name": "LOG", "identity": "all_columns"})
        findings, _ = oracle_findings(source.written())
    own = [one for one in findings if one.table == table_id("LOG")]
    [means] = [one for one in own if "by the values of all columns" in one.problem]
    assert not means.is_problem
    for word in ("counts equal rows", "undo", "takes the table out of the stream"):
        assert word in means.problem
    assert "redolake table resnapshot DEMO.LOG" in means.remedy
    [logging] = [one for one in own if "no supplemental logging of all columns" in one.problem]
    assert logging.is_problem
    assert logging.remedy.replace('"', "") == LOGGED


def test_what_all_columns_cannot_identify_is_refused_by_name(
    oracle: Oracle, tmp_path: Path
) -> None:
    with source_of(oracle, tmp_path) as source:
        source.configure(
            {"name": "LOG", "identity": "all_columns", "columns_exclude": ["B"], "columns_as": {"C": "double"}},
            {"name": "IOT", "identity": "all_columns"},
            {"name": "NOTES", "identity": "all_columns"},
        )  # fmt: skip
        with pytest.raises(PreflightError) as raised:
            source.run()
    text = str(raised.value)
    assert "B (excluded), C (held as double, which rounds)" in text
    assert "not for an index-organized table, which has a primary key" in text
    assert "N (CLOB, stored as a LOB)" in text


def test_by_policy_a_table_stops_whose_chunks_cannot_be_read_as_of_one_scn(
    oracle: Oracle, tmp_path: Path
) -> None:
    oracle.run(LOGGED.replace("DEMO.", ""))
    with source_of(oracle, tmp_path) as source:
        source.configure({"name": "LOG", "identity": "all_columns", "on_snapshot_too_old": "stop"})
        source.pipeline.start_snapshot()
        oracle.server.faults.arm(
            Fault(FaultKind.ORA_ERROR, sql_contains='FROM "DEMO"."LOG" AS OF', code=1555)
        )
        source.run()
        one = source.record("LOG")
        assert (one.state, one.trouble) == ("failed", "snapshot_too_old")
        assert "UNDO_RETENTION" in (one.way_out or "")
