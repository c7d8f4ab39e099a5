"""How far back rows and times of SCNs are known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import oracledb
import pytest

from tests.oracle.embedded import Oracle, running_oracle

DAY = 86_400


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    with running_oracle() as found:
        found.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
            "INSERT INTO T SELECT LEVEL, 'first' FROM DUAL CONNECT BY LEVEL <= 300",
            "CREATE TABLE U (ID NUMBER(9))",
            "INSERT INTO U VALUES (1)",
        )
        found.database.engine.transactions.undo_rows_max = 100
        yield found


def test_undo_of_a_fixed_size_is_overwritten_however_young(oracle: Oracle) -> None:
    """It is gone in the middle of a fetch, of a query as of an SCN and of any other."""
    with oracle.owner() as reading:
        [scn] = reading.cursor().execute("SELECT DBMS_FLASHBACK.GET_SYSTEM_CHANGE_NUMBER FROM DUAL").fetchone()  # fmt: skip
        opened = []
        for sql in (f"SELECT V FROM T AS OF SCN {scn}", "SELECT V FROM T", "SELECT ID FROM U"):
            cursor = reading.cursor()
            cursor.prefetchrows = cursor.arraysize = 10
            cursor.execute(sql)
            assert cursor.fetchone() is not None
            opened.append(cursor)
        oracle.run("UPDATE T SET V = 'second' WHERE ID <= 90")
        assert reading.cursor().execute(f"SELECT COUNT(*) FROM T AS OF SCN {scn} WHERE V = 'first'").fetchone() == (300,)  # fmt: skip
        oracle.run("UPDATE T SET V = 'third' WHERE ID <= 20")
        for cursor in opened[:2]:
            with pytest.raises(oracledb.DatabaseError, match="ORA-01555"):
                cursor.fetchall()
        assert opened[2].fetchall() == []
        with pytest.raises(oracledb.DatabaseError, match="ORA-01555"):
            reading.cursor().execute(f"SELECT COUNT(*) FROM T AS OF SCN {scn}").fetchone()


def test_times_of_scns_are_known_for_some_days(oracle: Oracle) -> None:
    def asked(sql: str) -> Any:
        with oracle.owner() as connection:
            return connection.cursor().execute(sql).fetchone()[0]

    scn = asked("SELECT DBMS_FLASHBACK.GET_SYSTEM_CHANGE_NUMBER FROM DUAL")
    then = asked(f"SELECT TO_CHAR(SCN_TO_TIMESTAMP({scn}), 'YYYY-MM-DD HH24:MI:SS') FROM DUAL")
    oracle.clock.ahead += 4 * DAY
    oracle.run("UPDATE U SET ID = 2")
    assert asked(f"SELECT SCN_TO_TIMESTAMP({scn}) FROM DUAL") is not None
    oracle.clock.ahead += 4 * DAY
    for sql, code in (
        (f"SELECT SCN_TO_TIMESTAMP({scn}) FROM DUAL", "ORA-08181"),
        (f"SELECT TIMESTAMP_TO_SCN(TIMESTAMP '{then}') FROM DUAL", "ORA-08180"),
    ):
        with pytest.raises(oracledb.DatabaseError, match=code):
            asked(sql)
    now = "SELECT SCN_TO_TIMESTAMP(DBMS_FLASHBACK.GET_SYSTEM_CHANGE_NUMBER) FROM DUAL"
    assert asked(now) is not None
