"""The statements of the catalogue (``tests/golden/ddl.txt``) in the redo, beside a load: no run stops, and no table that they leave as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import oracledb
import pytest

from oracle_embedded.api import Logon
from tests.oracle.embedded import Oracle, running_oracle
from tests.schema.ddl_catalog import CASES, Case
from tests.steps.harness import source_of

RUN_MIN = 80
"""The embedded Oracle runs at least as many of them."""

_NOT_RUN = (
    "drop user",
    "alter database open",
    "alter session set current_schema",
    "alter system kill",
)
"""What would end the load, or the database."""

_OTHER_NAMES = ("EMP", "STAFF", "EMP_BACK", '"BIN$abc/def==$0"')
_EMP = """CREATE TABLE EMP (ID NUMBER(9) CONSTRAINT EMP_KEY PRIMARY KEY, NAME VARCHAR2(40) UNIQUE, BORN DATE,
 SALARY NUMBER(9) CONSTRAINT EMP_C CHECK (SALARY > 0), DEPT NUMBER(4), SEX CHAR(1), NOTE VARCHAR2(200), RATING NUMBER(2),
 BONUS NUMBER(9))"""
_LEFT_AS_IT_IS = [
    case
    for case in CASES
    if "rows removed" not in case.effects and "rename column name" not in case.statement
]
"""All but those that rows are lost by, and one that the dictionary would contradict."""


def _fresh(cursor: Any) -> None:
    """EMP as it was, whatever the statements made of it."""
    for name in _OTHER_NAMES:
        _try(cursor, f"DROP TABLE {name} CASCADE CONSTRAINTS")
    cursor.execute(_EMP)


def _try(cursor: Any, statement: str) -> bool:
    try:
        cursor.execute(statement)
    except oracledb.Warning:  # a unit with compilation errors is there all the same
        return True
    except oracledb.DatabaseError:
        return False
    return True


@pytest.mark.slow
def test_statements_that_oracle_runs_stop_no_run_and_no_other_table(tmp_path: Path) -> None:
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE KEPT (ID NUMBER(9) PRIMARY KEY)",
            "CREATE TABLE DEPT (ID NUMBER(4) PRIMARY KEY)",
            _EMP,
        )
        with source_of(oracle, tmp_path, "KEPT", "EMP") as source, oracle.owner() as connection:
            source.run()
            cursor, run = connection.cursor(), 0
            for number, case in enumerate(CASES):
                statement = case.statement.replace("hr.", "demo.").replace('"HR".', '"DEMO".')
                if number % 8 == 0:
                    cursor.execute("INSERT INTO KEPT VALUES (:1)", [number])
                if statement.startswith(_NOT_RUN):
                    continue
                is_run = _try(cursor, statement)
                if not is_run and case.table == "EMP":
                    _fresh(cursor)
                    is_run = _try(cursor, statement)
                run += is_run
            connection.commit()
            assert run >= RUN_MIN
            oracle.clock.ahead += 5
            source.windows()
            source.check_current("KEPT")
            assert len(source.lake.image(source.record("KEPT").table)) == len(CASES[::8])
            emp = source.record("EMP")
            assert (emp.state, "a DDL of a captured table cannot be followed" in (emp.reason or "")) == ("failed", True)  # fmt: skip


def _in_redo(oracle: Oracle, owner: str, table: str, case: Case) -> None:
    """Put a statement into the redo as one of the table, without running it."""
    database = oracle.database.engine
    session = database.open_session(Logon(owner, program="pytest"))
    found = database.store.catalog.find(owner, table)
    assert found is not None
    with database.changing_catalog():
        transaction = session.need_transaction()
        sink, clock = database.store.sink, database.store.clock
        assert sink is not None
        sink.ddl(
            transaction.info, clock.next(), database.store.now(), case.statement, owner, table, found.object_id,
        )  # fmt: skip
        session.transaction = None
        database.transactions.abandon(transaction)


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(_LEFT_AS_IT_IS[::16], id="some"),
        pytest.param(_LEFT_AS_IT_IS, id="all", marks=pytest.mark.slow),
    ],
)
def test_statements_that_leave_the_table_as_it_is_stop_nothing(
    tmp_path: Path, cases: list[Case]
) -> None:
    """LogMiner says that each is about EMP, whatever it names; the dictionary shows EMP as it was."""
    with running_oracle() as oracle:
        oracle.run(_EMP)
        with source_of(oracle, tmp_path, "EMP") as source, oracle.owner() as connection:
            source.run()
            for number, case in enumerate(cases):
                connection.cursor().execute("INSERT INTO EMP (ID) VALUES (:1)", [number])
                connection.commit()
                _in_redo(oracle, "DEMO", "EMP", case)
            source.windows()
            assert source.record("EMP").state == "ready", source.record("EMP").reason
            source.check_current("EMP")
            assert len(source.lake.image(source.record("EMP").table)) == len(cases)
