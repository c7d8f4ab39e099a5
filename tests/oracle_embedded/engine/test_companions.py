"""External tables, and tables that store a part of another one: there for the dictionary, and named by no other statement."""

from __future__ import annotations

from typing import Any

import oracledb
import pytest

from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with

KINDS = "SELECT TABLE_NAME, NESTED, IOT_TYPE, IOT_NAME, EXTERNAL, DROPPED FROM USER_TABLES ORDER BY TABLE_NAME"
EXTERNAL = (
    "CREATE TABLE FILES (ID NUMBER(9), V VARCHAR2(9)) ORGANIZATION EXTERNAL (TYPE ORACLE_LOADER DEFAULT DIRECTORY DATA_PUMP_DIR"
    " ACCESS PARAMETERS (RECORDS DELIMITED BY NEWLINE FIELDS TERMINATED BY ',') LOCATION ('one.csv', 'two.csv')) REJECT LIMIT UNLIMITED"
)

oracle = oracle_with(
    "CREATE TYPE TAGS_T AS TABLE OF VARCHAR2(20)",
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, TAGS TAGS_T) NESTED TABLE TAGS STORE AS T_TAGS RETURN AS VALUE",
    "CREATE TABLE I (ID NUMBER(9) PRIMARY KEY, LONG_TEXT VARCHAR2(4000)) ORGANIZATION INDEX MAPPING TABLE INCLUDING ID OVERFLOW",
    EXTERNAL,
)


def rows(oracle: Oracle, query: str) -> list[tuple[Any, ...]]:
    with oracle.owner() as connection:
        return list(connection.cursor().execute(query).fetchall())


def test_the_dictionary_tells_what_each_of_them_is(oracle: Oracle) -> None:
    found = {str(name): tuple(kind) for name, *kind in rows(oracle, KINDS)}
    [(number,)] = rows(
        oracle,
        "SELECT OBJECT_ID FROM USER_OBJECTS WHERE OBJECT_NAME = 'I' AND OBJECT_TYPE = 'TABLE'",
    )
    assert found == {
        "FILES": ("NO", None, None, "YES", "NO"),
        "I": ("NO", "IOT", None, "NO", "NO"),
        f"SYS_IOT_MAP_{number}": ("NO", "IOT_MAPPING", "I", "NO", "NO"),
        f"SYS_IOT_OVER_{number}": ("NO", "IOT_OVERFLOW", "I", "NO", "NO"),
        "T": ("NO", None, None, "NO", "NO"),
        "T_TAGS": ("YES", None, None, "NO", "NO"),
    }
    nested = "SELECT TABLE_NAME, TABLE_TYPE_NAME, PARENT_TABLE_NAME, PARENT_TABLE_COLUMN FROM USER_NESTED_TABLES"
    assert rows(oracle, nested) == [("T_TAGS", "TAGS_T", "T", "TAGS")]
    columns = "SELECT COLUMN_NAME, HIDDEN_COLUMN FROM USER_TAB_COLS WHERE TABLE_NAME = 'T_TAGS' ORDER BY 1"
    assert rows(oracle, columns) == [("COLUMN_VALUE", "NO"), ("NESTED_TABLE_ID", "YES")]
    external = "SELECT TABLE_NAME, TYPE_NAME, DEFAULT_DIRECTORY_NAME, REJECT_LIMIT, ACCESS_PARAMETERS FROM USER_EXTERNAL_TABLES"
    parameters = "RECORDS DELIMITED BY NEWLINE FIELDS TERMINATED BY ','"
    assert rows(oracle, external) == [
        ("FILES", "ORACLE_LOADER", "DATA_PUMP_DIR", "UNLIMITED", parameters)
    ]
    places = "SELECT LOCATION FROM USER_EXTERNAL_LOCATIONS ORDER BY 1"
    assert rows(oracle, places) == [("one.csv",), ("two.csv",)]


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("SELECT * FROM T_TAGS", "ORA-22812"),
        ("INSERT INTO T_TAGS VALUES ('x')", "ORA-22812"),
        ("DROP TABLE T_TAGS", "ORA-22914"),
        ("SELECT * FROM SYS_IOT_OVER_{0}", "ORA-25191"),
        ("DROP TABLE SYS_IOT_OVER_{0}", "ORA-25191"),
        ("SELECT * FROM SYS_IOT_MAP_{0}", "ORA-28668"),
        ("SELECT * FROM FILES", "KUP-04040: file one.csv in DATA_PUMP_DIR not found"),
        ("INSERT INTO FILES VALUES (1, 'x')", "ORA-30657"),
        ("TRUNCATE TABLE FILES", "ORA-30657"),
        ("CREATE TABLE U (TAGS TAGS_T)", "ORA-22913"),
        ("CREATE TABLE U (ID NUMBER) NESTED TABLE ID STORE AS U_ID", "ORA-22912"),
        ("CREATE TABLE U (TAGS TAGS_T) NESTED TABLE TAGS STORE AS T", "ORA-00955"),
        (f"{EXTERNAL.replace('FILES', 'U').replace('NUMBER(9)', 'NUMBER(9) PRIMARY KEY')}", "ORA-30657"),
        (f"{EXTERNAL.replace('FILES', 'U').replace('NUMBER(9)', 'TAGS_T')}", "ORA-30656"),
    ],
)  # fmt: skip
def test_what_statements_may_not_do_with_them(oracle: Oracle, statement: str, error: str) -> None:
    number = "SELECT OBJECT_ID FROM USER_OBJECTS WHERE OBJECT_NAME = 'I' AND OBJECT_TYPE = 'TABLE'"
    [(iot,)] = rows(oracle, number)
    before = rows(oracle, KINDS)
    with pytest.raises(oracledb.DatabaseError, match=error):
        oracle.run(statement.replace("{0}", str(iot)))
    assert rows(oracle, KINDS) == before


def test_a_nested_table_comes_and_goes_with_its_column(oracle: Oracle) -> None:
    before = rows(oracle, KINDS)
    oracle.run("ALTER TABLE T ADD (MORE TAGS_T) NESTED TABLE MORE STORE AS T_MORE")
    [(added, *_)] = set(rows(oracle, KINDS)) - set(before)
    assert added == "T_MORE"
    with pytest.raises(oracledb.DatabaseError, match="ORA-22913"):
        oracle.run("ALTER TABLE T ADD (MORE2 TAGS_T)")
    oracle.run("ALTER TABLE T DROP COLUMN MORE")
    assert rows(oracle, KINDS) == before


def test_they_come_and_go_with_their_table(oracle: Oracle) -> None:
    before = rows(oracle, KINDS)
    oracle.run("DROP TABLE T", "DROP TABLE I")
    assert [name for name, *_ in rows(oracle, KINDS)] == ["FILES"], (
        "no view of tables lists BIN$ names"
    )
    binned = rows(oracle, "SELECT OBJECT_NAME, ORIGINAL_NAME FROM RECYCLEBIN WHERE TYPE = 'TABLE'")
    assert {"T", "I"} <= {original for _, original in binned}
    assert all(str(name).startswith("BIN$") for name, _ in binned)
    oracle.run("FLASHBACK TABLE T TO BEFORE DROP", "FLASHBACK TABLE I TO BEFORE DROP")
    assert rows(oracle, KINDS) == before
    oracle.run("DROP TABLE T", "DROP TABLE I PURGE", "PURGE RECYCLEBIN", "DROP TABLE FILES")
    assert rows(oracle, KINDS) == []
    assert rows(oracle, "SELECT OBJECT_NAME FROM USER_OBJECTS WHERE OBJECT_TYPE = 'TABLE'") == []
