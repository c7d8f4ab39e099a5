"""Tables that share the segment of a cluster."""

from __future__ import annotations

from typing import Any

import oracledb
import pytest

from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with

NUMBERS = (
    "SELECT OBJECT_NAME, DATA_OBJECT_ID FROM USER_OBJECTS WHERE OBJECT_NAME IN ('C', 'ONE', 'TWO')"
)

oracle = oracle_with(
    "CREATE CLUSTER C (DEPT NUMBER(4)) SIZE 512 TABLESPACE USERS",
    "CREATE INDEX C_INDEX ON CLUSTER C",
    "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, DEPT NUMBER(4)) CLUSTER C (DEPT)",
    "CREATE TABLE TWO (ID NUMBER(9) PRIMARY KEY, DEPT NUMBER(4), V VARCHAR2(9)) CLUSTER C (DEPT)",
    "INSERT INTO ONE VALUES (1, 10)",
    "INSERT INTO TWO VALUES (1, 10, 'a')",
)


def rows(oracle: Oracle, query: str) -> list[tuple[Any, ...]]:
    with oracle.owner() as connection:
        return list(connection.cursor().execute(query).fetchall())


def test_tables_of_a_cluster_lie_in_its_segment(oracle: Oracle) -> None:
    numbers = rows(oracle, NUMBERS)
    assert len(numbers) == 3
    assert len({number for _, number in numbers}) == 1
    objects = "SELECT COUNT(DISTINCT OBJECT_ID) FROM USER_OBJECTS WHERE OBJECT_NAME IN ('C', 'ONE', 'TWO')"
    assert rows(oracle, objects) == [(3,)]
    named = "SELECT TABLE_NAME, CLUSTER_NAME FROM USER_TABLES ORDER BY 1"
    assert rows(oracle, named) == [("ONE", "C"), ("TWO", "C")]
    assert rows(oracle, "SELECT CLUSTER_NAME, CLUSTER_TYPE FROM USER_CLUSTERS") == [("C", "INDEX")]
    addresses = rows(oracle, "SELECT ROWID FROM ONE UNION ALL SELECT ROWID FROM TWO")
    assert len({str(one)[:6] for (one,) in addresses}) == 1
    assert rows(oracle, "SELECT ID FROM TWO WHERE ROWID = (SELECT ROWID FROM TWO)") == [(1,)]


def test_truncate_cluster_empties_all_of_its_tables(oracle: Oracle) -> None:
    before = dict(rows(oracle, NUMBERS))
    altered = "SELECT OBJECT_NAME, LAST_DDL_TIME FROM USER_OBJECTS WHERE OBJECT_TYPE = 'TABLE'"
    times = rows(oracle, altered)
    oracle.clock.ahead += 60
    oracle.run("TRUNCATE CLUSTER C")
    assert rows(oracle, "SELECT ID FROM ONE UNION ALL SELECT ID FROM TWO") == []
    after = dict(rows(oracle, NUMBERS))
    assert set(after.values()).isdisjoint(before.values())
    assert len(set(after.values())) == 1
    assert rows(oracle, altered) == times
    oracle.run("INSERT INTO ONE VALUES (2, 20)")
    assert rows(oracle, "SELECT ID FROM ONE") == [(2,)]


def test_a_cluster_goes_when_it_is_empty_or_with_its_tables(oracle: Oracle) -> None:
    with pytest.raises(Exception, match="ORA-00951"):
        oracle.run("DROP CLUSTER C")
    oracle.run("DROP CLUSTER C INCLUDING TABLES CASCADE CONSTRAINTS")
    assert rows(oracle, NUMBERS) == []
    assert rows(oracle, "SELECT * FROM USER_CLUSTERS") == []
    oracle.run("CREATE CLUSTER C (N NUMBER) HASHKEYS 16", "DROP CLUSTER C")


def test_a_hash_cluster_has_no_index(oracle: Oracle) -> None:
    oracle.run(
        "CREATE CLUSTER H (N NUMBER(9)) SINGLE TABLE SIZE 64 HASHKEYS 100 HASH IS MOD(N, 97)",
        "CREATE TABLE HASHED (N NUMBER(9) PRIMARY KEY) CLUSTER H (N)",
        "INSERT INTO HASHED VALUES (1)",
    )
    assert rows(oracle, "SELECT CLUSTER_TYPE FROM USER_CLUSTERS WHERE CLUSTER_NAME = 'H'") == [
        ("HASH",)
    ]


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("TRUNCATE TABLE ONE", "ORA-03292"),
        ("TRUNCATE CLUSTER NONE", "ORA-00943"),
        ("CREATE TABLE X (ID NUMBER(9)) CLUSTER NONE (ID)", "ORA-00943"),
        ("CREATE TABLE X (ID NUMBER(9)) CLUSTER C (ID)", "ORA-01753"),
        ("CREATE TABLE X (ID NUMBER(4), DEPT NUMBER(4)) CLUSTER C (ID, DEPT)", "ORA-00944"),
        ("CREATE TABLE X (ID NUMBER(4)) CLUSTER C (DEPT)", "ORA-00904"),
        ("CREATE INDEX ANOTHER ON CLUSTER C", "ORA-02033"),
        ("CREATE CLUSTER ONE (N NUMBER)", "ORA-00955"),
    ],
)
def test_what_cannot_be_is_refused(oracle: Oracle, statement: str, error: str) -> None:
    with pytest.raises(Exception, match=error):
        oracle.run(statement)


def test_a_cluster_takes_rows_when_its_index_is_there(oracle: Oracle) -> None:
    oracle.run(
        "CREATE CLUSTER D (N NUMBER(4))", "CREATE TABLE X (N NUMBER(4) PRIMARY KEY) CLUSTER D (N)"
    )
    with pytest.raises(Exception, match="ORA-02032"):
        oracle.run("INSERT INTO X VALUES (1)")
    oracle.run("CREATE INDEX D_INDEX ON CLUSTER D", "INSERT INTO X VALUES (1)")


def test_truncate_cascade_empties_children_that_say_on_delete_cascade(oracle: Oracle) -> None:
    """A child's data object is another one then, and the time of its last DDL is not."""
    oracle.run(
        "CREATE TABLE P (ID NUMBER(9) PRIMARY KEY)",
        "CREATE TABLE K (ID NUMBER(9) PRIMARY KEY, P NUMBER(9) REFERENCES P ON DELETE CASCADE)",
        "INSERT INTO P VALUES (1)",
        "INSERT INTO K VALUES (1, 1)",
    )
    facts = "SELECT DATA_OBJECT_ID, LAST_DDL_TIME FROM USER_OBJECTS WHERE OBJECT_NAME = 'K'"
    [(number, time)] = rows(oracle, facts)
    oracle.clock.ahead += 60
    with pytest.raises(oracledb.DatabaseError, match="ORA-02266"):
        oracle.run("TRUNCATE TABLE P")
    oracle.run("TRUNCATE TABLE P DROP STORAGE CASCADE")
    assert rows(oracle, "SELECT ID FROM P UNION ALL SELECT ID FROM K") == []
    [(after, same)] = rows(oracle, facts)
    assert after != number
    assert same == time
    oracle.run("CREATE TABLE L (P NUMBER(9) REFERENCES P ON DELETE SET NULL)")
    with pytest.raises(oracledb.DatabaseError, match="ORA-14705"):
        oracle.run("TRUNCATE TABLE P CASCADE")
