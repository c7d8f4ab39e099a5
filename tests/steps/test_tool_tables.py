"""Tables that Oracle's own tools make in a user's schema, and tables that come and go, under a pattern."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from cdc_core.model.patterns import whose_tool
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id

TOOLS = [
    "CMP1$70123", "CMP3$70123", "CMP4$70123", "DBMS_TABCOMP_TEMP_UNCMP", "SYS_JOURNAL_70200", "SYS_EXPORT_SCHEMA_01",
    "SYS_EXPORT_TABLE_03", "SYS_IMPORT_FULL_01", "SYS_SQL_FILE_FULL_02", "ET$00A4D3CF0001", "MLOG$_ORDERS", "RUPD$_ORDERS",
    "MVIEW$_ADVISOR", "BIN$yHkzq3n2TZbgUwEAAH9F1g==$0", "DR$IDX$I", "DR$ORDERS_TEXT$K", "DR#IDX0001$I", "SCHEDULER$_JOB_ARG",
    "AQ$_QT_H", "REDEF$_T70123", "SYS_RMTAB$$_H70123", "SYS_FBA_HIST_70123", "SYS_FBA_TCRV_70123", "SYS_FBA_DDL_COLMAP_70123",
    "SYS_IOT_OVER_70123", "SYS_NTyHkzq3n2TZbgUwEAAH9F1g==", "MDRT_11C5A$", "MDXT_11C5A$", "ORA_TEMP_1_DS_70123",
    "SYS_TEMP_0FD9D6601_1", "DEF$_CALL",
]  # fmt: skip

OWN = [
    "ORDERS", "CMP", "CMP_ORDERS", "CMP3$", "SYS_JOURNAL", "SYS_EXPORT_LOG", "MLOG", "MLOG$X", "BIN$", "DR$X", "DR_ORDERS", "SCHEDULER",
    "AQ_T", "LOG$_ORDERS", "SYSTEM_ORDERS", "DEFAULTS", "MDRT_NOTES", "SYS_NOTES",
]  # fmt: skip


@pytest.mark.parametrize("name", TOOLS)
def test_a_table_of_a_tool_is_known_by_its_name(name: str) -> None:
    assert whose_tool(name)


@pytest.mark.parametrize("name", OWN)
def test_a_table_of_the_user_s_is_none(name: str) -> None:
    assert not whose_tool(name)


oracle = oracle_with(
    "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    "INSERT INTO ONE VALUES (1, 'a')",
)


def states(source: Source) -> dict[str, str]:
    return {one.table.name: one.state for one in source.pipeline.records.tables()}


def test_no_pattern_takes_them_in_and_nobody_is_warned(
    oracle: Oracle, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    names = ["CMP4$70123", "SYS_JOURNAL_70200", "SYS_EXPORT_SCHEMA_01", "MLOG$_ONE"]
    oracle.run(*(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY)" for name in names))
    with source_of(oracle, tmp_path, "*") as source:
        source.run()
        assert states(source) == {"ONE": "ready"}
        found = {one.table.name: one.left_out for one in source.pipeline.find_tables()}
        assert "compression advisor" in found["CMP4$70123"]
        assert "Data Pump" in found["SYS_EXPORT_SCHEMA_01"]
        oracle.run(*(f"DROP TABLE {name} PURGE" for name in names))
        oracle.run("INSERT INTO ONE VALUES (2, 'b')")
        source.run()
        source.check_current("ONE")
        assert states(source) == {"ONE": "ready"}
    assert not [one for one in caplog.records if one.levelno >= logging.WARNING]


def test_an_entry_of_its_own_captures_one(oracle: Oracle, tmp_path: Path) -> None:
    oracle.run("CREATE TABLE MLOG$_ONE (ID NUMBER(9) PRIMARY KEY)")
    with source_of(oracle, tmp_path, "*", "MLOG$_ONE") as source:
        source.run()
        oracle.run("INSERT INTO MLOG$_ONE VALUES (1)")
        source.run()
        source.check_current("ONE", "MLOG$_ONE")


def test_one_that_was_taken_in_before_leaves(oracle: Oracle, tmp_path: Path) -> None:
    """Under a version that knew none of these names."""
    oracle.run("CREATE TABLE CMP4$70123 (ID NUMBER(9) PRIMARY KEY)")
    with source_of(oracle, tmp_path, "ONE", "CMP4$70123") as source:
        source.run()
        source.configure("*")
        source.run()
        assert states(source) == {"ONE": "ready", "CMP4$70123": "removed"}


def test_what_is_left_out_is_said_in_one_line(
    oracle: Oracle, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    oracle.run(*(f"CREATE TABLE KEYLESS{at} (ID NUMBER)" for at in range(12)))
    with source_of(oracle, tmp_path, "*") as source, caplog.at_level(logging.WARNING):
        source.run()
        [said] = [one.getMessage() for one in caplog.records]
        assert "tables=12" in said
        assert "DEMO.KEYLESS0, " in said
        assert "and 2 more" in said
        assert "redolake table find" in said
        caplog.clear()
        source.close()
        source.run()
        assert not caplog.records, "said once"


def test_a_table_of_a_pattern_that_is_dropped_leaves_and_may_come_back(
    oracle: Oracle, tmp_path: Path
) -> None:
    oracle.run("CREATE TABLE STAGE (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO STAGE VALUES (1)")
    with source_of(oracle, tmp_path, "*") as source:
        source.run()
        for night in range(3):
            oracle.run(f"INSERT INTO STAGE VALUES ({night + 10})", "DROP TABLE STAGE PURGE")
            source.run()
            assert states(source)["STAGE"] == "removed"
            assert (night + 10,) in source.lake.image(table_id("STAGE")), "what it had until then"
            source.run()
            source.check_current("ONE")
            oracle.run(
                "CREATE TABLE STAGE (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO STAGE VALUES (2)"
            )
            oracle.run(f"INSERT INTO ONE VALUES ({night + 10}, 'x')")
            source.run()
            oracle.run("INSERT INTO STAGE VALUES (3)")
            source.run()
            source.check_current("ONE", "STAGE")
            assert states(source) == {"ONE": "ready", "STAGE": "ready"}


def test_one_that_is_created_again_before_anybody_looks_joins_anew(
    oracle: Oracle, tmp_path: Path
) -> None:
    oracle.run("CREATE TABLE STAGE (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO STAGE VALUES (1)")
    with source_of(oracle, tmp_path, "*") as source:
        source.run()
        oracle.run(
            "DROP TABLE STAGE PURGE", "CREATE TABLE STAGE (ID NUMBER(9) PRIMARY KEY, W NUMBER(3))"
        )
        oracle.run("INSERT INTO STAGE VALUES (2, 2)")
        for _ in range(3):
            source.run()
        source.check_current("ONE", "STAGE")


@pytest.mark.parametrize("where", ["policies", "entry"])
def test_on_drop_of_the_operator_counts(oracle: Oracle, tmp_path: Path, where: str) -> None:
    oracle.run("CREATE TABLE STAGE (ID NUMBER(9) PRIMARY KEY)")
    more = {"policies": {"on_drop": "stop"}} if where == "policies" else {}
    with source_of(oracle, tmp_path, **more) as source:
        source.configure({"name": "*", **({"on_drop": "stop"} if where == "entry" else {})})
        source.run()
        oracle.run("DROP TABLE STAGE PURGE")
        source.run()
        assert states(source) == {"ONE": "ready", "STAGE": "failed"}


def test_a_table_with_an_entry_of_its_own_still_stops(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path, "ONE") as source:
        source.begin()
        oracle.run("DROP TABLE ONE PURGE")
        source.run()
        assert states(source) == {"ONE": "failed"}
