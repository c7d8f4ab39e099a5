"""Tables whose rows the redo does not have under their name: refused where they are named, left out of a pattern, and in nobody's way."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_core.errors import PreflightError
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import source_of

KINDS = {
    "FILES": (
        "CREATE TABLE FILES (ID NUMBER(9)) ORGANIZATION EXTERNAL (DEFAULT DIRECTORY DATA_PUMP_DIR LOCATION ('a.csv'))",
        "an external table",
    ),
    "T_TAGS": (
        "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, TAGS TAGS_T) NESTED TABLE TAGS STORE AS T_TAGS",
        "a nested table of another table",
    ),
    "SYS_IOT": (
        "CREATE TABLE I (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(4000)) ORGANIZATION INDEX INCLUDING ID OVERFLOW",
        "the overflow or the mapping",
    ),
    "SCRATCH": (
        "CREATE GLOBAL TEMPORARY TABLE SCRATCH (ID NUMBER(9) PRIMARY KEY) ON COMMIT PRESERVE ROWS",
        "a temporary table",
    ),
    "PEOPLE": ("CREATE TABLE PEOPLE OF PERSON_T (PRIMARY KEY (ID))", "an object table"),
    "DOCS": ("CREATE TABLE DOCS OF XMLTYPE", "an XMLTYPE table"),
}

oracle = oracle_with(
    "CREATE TYPE TAGS_T AS TABLE OF VARCHAR2(20)",
    "CREATE TYPE PERSON_T AS OBJECT (ID NUMBER(9), NAME VARCHAR2(20))",
    "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    "INSERT INTO ONE VALUES (1, 'a')",
)


def _name_of(oracle: Oracle, beginning: str) -> str:
    with oracle.owner() as connection:
        found = connection.cursor().execute(
            "SELECT TABLE_NAME FROM USER_ALL_TABLES WHERE SUBSTR(TABLE_NAME, 1, :1) = :2",
            [len(beginning), beginning],
        )
        [(name,)] = found.fetchall()
    return str(name)


@pytest.mark.parametrize("name", list(KINDS))
def test_one_that_is_named_is_refused_for_what_it_is(
    oracle: Oracle, tmp_path: Path, name: str
) -> None:
    statement, reason = KINDS[name]
    oracle.run(statement)
    with source_of(oracle, tmp_path) as source:
        source.configure("ONE", _name_of(oracle, name))
        with pytest.raises(PreflightError, match=reason):
            source.run()
        source.configure("ONE")
        source.run()
        source.check_exact("ONE")


def test_a_pattern_leaves_them_out_when_they_come(oracle: Oracle, tmp_path: Path) -> None:
    """Their DDL and their statements are in the redo of windows that are captured, and stop nothing."""
    with source_of(oracle, tmp_path) as source:
        source.configure({"name": "*", "columns_exclude": ["TAGS"]})
        source.begin()
        oracle.run(*(statement for statement, _ in KINDS.values()))
        oracle.run(
            "INSERT INTO T VALUES (1, TAGS_T('x', 'y'))",
            f"INSERT INTO I VALUES (1, '{'long ' * 500}')",
            "INSERT INTO SCRATCH VALUES (1)",
            "INSERT INTO PEOPLE VALUES (1, 'a')",
            "INSERT INTO DOCS VALUES (XMLTYPE('<a/>'))",
            "UPDATE ONE SET V = 'b'",
        )
        source.run()
        reasons = {one.table.name: one.left_out for one in source.pipeline.find_tables()}
        for name, (_, reason) in KINDS.items():
            assert reason in reasons[_name_of(oracle, name)]
        oracle.run("UPDATE T SET TAGS = TAGS_T('z')", "UPDATE I SET V = 'short'")
        oracle.run("ALTER TABLE FILES ADD (V VARCHAR2(9))", "DROP TABLE FILES")
        source.run()
        assert {one.table.name: one.state for one in source.pipeline.records.tables()} == {
            "ONE": "ready",
            "T": "failed",
            "I": "ready",
        }, "no row of a table with a nested table is translated"
        source.check_current("ONE", "I")


def test_a_pattern_takes_in_partitioned_tables(oracle: Oracle, tmp_path: Path) -> None:
    """ALL_TABLES.DROPPED is NULL for them, as the Reference says."""
    oracle.run(
        "CREATE TABLE P (ID NUMBER(9) PRIMARY KEY) PARTITION BY HASH (ID) PARTITIONS 2",
        "INSERT INTO P VALUES (1)",
    )
    with oracle.owner() as connection:
        shown = (
            connection.cursor().execute("SELECT TABLE_NAME, DROPPED FROM USER_TABLES").fetchall()
        )
    assert ("P", None) in shown
    with source_of(oracle, tmp_path, policies={"on_drop": "resnapshot"}) as source:
        source.configure("*")
        source.run()
        source.check_exact("ONE", "P")
        oracle.run(
            "DROP TABLE P PURGE",
            "CREATE TABLE P (ID NUMBER(9) PRIMARY KEY) PARTITION BY HASH (ID) PARTITIONS 2",
            "INSERT INTO P VALUES (2)",
        )
        source.run()
        source.run()
        source.check_current("ONE", "P")


def test_what_is_in_the_recycle_bin_is_in_nobody_s_way(oracle: Oracle, tmp_path: Path) -> None:
    oracle.run(
        "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO T VALUES (1)", "DROP TABLE T"
    )
    with source_of(oracle, tmp_path) as source:
        source.configure("*")
        source.run()
        oracle.run("FLASHBACK TABLE T TO BEFORE DROP", "INSERT INTO T VALUES (2)")
        source.run()
        oracle.run("INSERT INTO T VALUES (3)", "UPDATE ONE SET V = 'c'")
        source.run()
        source.check_current("ONE", "T")
        oracle.run("INSERT INTO T VALUES (4)", "DROP TABLE T")
        source.run()
        assert {one.table.name: one.state for one in source.pipeline.records.tables()} == {
            "ONE": "ready",
            "T": "removed",
        }
