"""Columns that Oracle makes for itself: in the dictionary of all columns and in rows, and in nothing else."""

from __future__ import annotations

from typing import Any

import oracledb
import pytest

from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with

ALL = "SELECT COLUMN_NAME, DATA_TYPE, HIDDEN_COLUMN, USER_GENERATED, SEGMENT_COLUMN_ID, COLUMN_ID FROM USER_TAB_COLS WHERE TABLE_NAME = 'T' ORDER BY INTERNAL_COLUMN_ID"  # fmt: skip

oracle = oracle_with("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO T VALUES (1)")


def rows(oracle: Oracle, query: str) -> list[tuple[Any, ...]]:
    with oracle.owner() as connection:
        return list(connection.cursor().execute(query).fetchall())


def test_a_nullable_column_with_a_default_brings_a_hidden_one_once(oracle: Oracle) -> None:
    oracle.run(
        "ALTER TABLE T ADD (C VARCHAR2(9) DEFAULT 'x')",
        "ALTER TABLE T ADD (D NUMBER(9) DEFAULT 7)",
        "INSERT INTO T VALUES (2, NULL, 8)",
        "INSERT INTO T (ID) VALUES (3)",
    )
    assert rows(oracle, ALL) == [
        ("ID", "NUMBER", "NO", "YES", 1, 1),
        ("SYS_NC00002$", "RAW", "YES", "NO", 2, None),
        ("C", "VARCHAR2", "NO", "YES", 3, 2),
        ("D", "NUMBER", "NO", "YES", 4, 3),
    ]
    shown = "SELECT COLUMN_NAME FROM USER_TAB_COLUMNS WHERE TABLE_NAME = 'T' ORDER BY COLUMN_ID"
    assert rows(oracle, shown) == [("ID",), ("C",), ("D",)]
    assert rows(oracle, "SELECT * FROM T ORDER BY ID") == [(1, "x", 7), (2, None, 8), (3, "x", 7)]
    assert rows(oracle, 'SELECT "SYS_NC00002$" FROM T ORDER BY ID') == [(None,), (b"\x01",), (b"\x01",)]  # fmt: skip


@pytest.mark.parametrize(
    "added",
    ["C VARCHAR2(9) DEFAULT 'x' NOT NULL", "C VARCHAR2(9)", "C VARCHAR2(9) DEFAULT NULL", "C CLOB DEFAULT 'x'"],
)  # fmt: skip
def test_other_columns_bring_none(oracle: Oracle, added: str) -> None:
    oracle.run(f"ALTER TABLE T ADD ({added})")
    assert [row[0] for row in rows(oracle, ALL)] == ["ID", "C"]


INDEXED = "SELECT INDEX_NAME, COLUMN_NAME, DESCEND FROM USER_IND_COLUMNS WHERE TABLE_NAME = 'P' ORDER BY INDEX_NAME, COLUMN_POSITION"
DERIVED = "SELECT COLUMN_NAME, DATA_TYPE, DATA_DEFAULT, VIRTUAL_COLUMN, SEGMENT_COLUMN_ID, INTERNAL_COLUMN_ID FROM USER_TAB_COLS WHERE TABLE_NAME = 'P' AND HIDDEN_COLUMN = 'YES' AND USER_GENERATED = 'NO' ORDER BY INTERNAL_COLUMN_ID"  # fmt: skip


def test_indexes_on_expressions_and_in_descending_order_are_on_hidden_columns(
    oracle: Oracle,
) -> None:
    oracle.run(
        "CREATE TABLE P (A NUMBER(9) NOT NULL, B VARCHAR2(20))",
        "CREATE UNIQUE INDEX P_A ON P (A DESC)",
        "CREATE INDEX P_B ON P (upper( b ), A)",
        "CREATE INDEX P_C ON P (A DESC, B)",
        "ALTER TABLE P ADD (C NUMBER(9))",
    )
    down, up = "SYS_NC00003$", "SYS_NC00004$"
    assert rows(oracle, DERIVED) == [
        (down, "RAW", '"A"', "YES", None, 3), (up, "VARCHAR2", 'UPPER("B")', "YES", None, 4)
    ]  # fmt: skip
    assert rows(oracle, INDEXED) == [
        ("P_A", down, "DESC"), ("P_B", up, "ASC"), ("P_B", "A", "ASC"), ("P_C", down, "DESC"), ("P_C", "B", "ASC")
    ]  # fmt: skip
    texts = "SELECT INDEX_NAME, COLUMN_EXPRESSION, COLUMN_POSITION FROM USER_IND_EXPRESSIONS WHERE TABLE_NAME = 'P' ORDER BY 1"
    assert rows(oracle, texts) == [("P_A", '"A"', 1), ("P_B", 'UPPER("B")', 1), ("P_C", '"A"', 1)]
    kinds = "SELECT DISTINCT INDEX_TYPE FROM USER_INDEXES WHERE TABLE_NAME = 'P'"
    assert rows(oracle, kinds) == [("FUNCTION-BASED NORMAL",)]
    places = "SELECT COLUMN_NAME, SEGMENT_COLUMN_ID FROM USER_TAB_COLS WHERE TABLE_NAME = 'P' AND COLUMN_ID > 0 ORDER BY 2"
    assert rows(oracle, places) == [("A", 1), ("B", 2), ("C", 3)]
    oracle.run("ALTER TABLE P RENAME COLUMN B TO Z", "DROP INDEX P_A")
    assert [row[2] for row in rows(oracle, DERIVED)] == ['"A"', 'UPPER("Z")'], "P_C is on it too"
    oracle.run("DROP INDEX P_C", "ALTER TABLE P DROP COLUMN Z")
    assert rows(oracle, DERIVED) == rows(oracle, INDEXED) == []


def test_unique_indexes_on_expressions_refuse_double_values(oracle: Oracle) -> None:
    oracle.run(
        "CREATE TABLE P (A NUMBER(9), B VARCHAR2(20))",
        "CREATE UNIQUE INDEX P_B ON P (UPPER(B))",
        "INSERT INTO P VALUES (1, 'x')",
        "INSERT INTO P SELECT LEVEL + 1, NULL FROM DUAL CONNECT BY LEVEL < 3",
        "INSERT INTO P VALUES (4, 'y')",
    )
    for statement in ("INSERT INTO P VALUES (9, 'X')", "UPDATE P SET B = 'X' WHERE A = 4"):
        with pytest.raises(oracledb.IntegrityError, match="ORA-00001"):
            oracle.run(statement)
    oracle.run("UPDATE P SET B = CASE A WHEN 1 THEN 'Y' ELSE 'X' END WHERE A IN (1, 4)")
    assert rows(oracle, "SELECT B FROM P WHERE B IS NOT NULL ORDER BY A") == [("Y",), ("X",)]
    with pytest.raises(oracledb.DatabaseError, match="ORA-01452"):
        oracle.run("CREATE UNIQUE INDEX P_N ON P (NVL(A, 0) * 0)")


def test_extended_statistics_are_on_a_hidden_column_that_the_redo_tells_of(oracle: Oracle) -> None:
    oracle.run(
        "CREATE TABLE P (A NUMBER(9), B VARCHAR2(20))",
        "BEGIN DBMS_STATS.GATHER_TABLE_STATS(USER, 'P', METHOD_OPT => 'FOR ALL COLUMNS SIZE 1 FOR COLUMNS (a, b) SIZE AUTO'); END;",
        "BEGIN DBMS_STATS.GATHER_TABLE_STATS(USER, 'P', METHOD_OPT => 'FOR COLUMNS (A,B)'); END;",
        "INSERT INTO P VALUES (1, 'b')",
    )
    [(name, *facts)] = rows(oracle, DERIVED)
    assert (len(name), name[:7]) == (30, "SYS_STU")
    assert facts == ["NUMBER", 'SYS_OP_COMBINED_HASH("A","B")', "YES", None, 3]
    assert rows(oracle, "SELECT * FROM P") == [(1, "b")]
    oracle.run("BEGIN DBMS_STATS.DROP_EXTENDED_STATS(USER, 'P', '(A,B)'); END;")
    assert rows(oracle, DERIVED) == []
    for extension in ("(A,B)", "(A,X)"):
        with pytest.raises(oracledb.DatabaseError, match=r"ORA-(20000|00904)"):
            oracle.run(f"BEGIN DBMS_STATS.DROP_EXTENDED_STATS(USER, 'P', '{extension}'); END;")
