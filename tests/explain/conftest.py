"""One export for the tests of `redolake explain`, and a description of its tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from oracle_embedded.redo.settings import Wart
from tests.explain.exports import SCRIPT, TABLES, Rows, exported
from tests.oracle.embedded import running_oracle


@pytest.fixture(scope="module")
def redo() -> Rows:
    """Committed, rolled back and open transactions, partial rollback, split statements, and a LOB in pieces."""
    with running_oracle(warts=[Wart.LOB_STATEMENTS]) as oracle:
        oracle.run(
            "CREATE TABLE NOTES (ID NUMBER(9) PRIMARY KEY, NAME VARCHAR2(30), BODY CLOB)",
            "CREATE TABLE ORDERS (ID NUMBER(9), LINE NUMBER(3), AMOUNT NUMBER(9,2), AT DATE, NOTE VARCHAR2(4000), PRIMARY KEY (ID, LINE))",
            "CREATE TABLE OTHERS (ID NUMBER(9) PRIMARY KEY)",
        )
        long = "RPAD('q', 3990, 'w')"
        oracle.run(
            f"INSERT INTO ORDERS VALUES (1, 1, 10.5, DATE '2026-01-02', {long})",
            "SAVEPOINT A",
            "UPDATE ORDERS SET AMOUNT = 2",
            "ROLLBACK TO A",
            "UPDATE ORDERS SET AMOUNT = 3",
            "INSERT INTO OTHERS VALUES (1)",
        )
        oracle.run(
            "INSERT INTO NOTES VALUES (1, 'a', RPAD(TO_CLOB('x'), 3000, 'y') || RPAD('z', 3000, 'z'))",
            "DELETE FROM NOTES",
        )
        with oracle.owner() as other, oracle.owner() as left:
            other.cursor().execute("INSERT INTO ORDERS VALUES (2, 1, 1, NULL, NULL)")
            other.rollback()
            left.cursor().execute("INSERT INTO ORDERS VALUES (3, 1, 1, NULL, NULL)")
            left.cursor().execute("UPDATE ORDERS SET AMOUNT = 7 WHERE ID = 3")
            left.cursor().execute("UPDATE ORDERS SET AMOUNT = 8 WHERE ID = 3")
            return exported(oracle, TABLES)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "tables.sql"
    path.write_text(SCRIPT)
    return path
