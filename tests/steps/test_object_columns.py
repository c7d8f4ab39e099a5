"""Columns of object types: refused by name, and captured around where they are excluded."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_core.errors import PreflightError
from cdc_core.steps.source_checks import oracle_findings
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, source_of, table_id

T = table_id("T")

oracle = oracle_with(
    "CREATE TYPE PART_T AS OBJECT (N NUMBER, S VARCHAR2(10))",
    "CREATE TYPE PARTS_T AS VARRAY(9) OF PART_T",
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, P PART_T, PS PARTS_T, V VARCHAR2(9))",
    "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    "INSERT INTO ONE VALUES (1, 'a')",
    "INSERT INTO T VALUES (1, PART_T(1, 'a'), PARTS_T(), 'x')",
)
source = capturing("T", runs=False)


def test_a_table_is_captured_without_its_objects(oracle: Oracle, source: Source) -> None:
    with pytest.raises(PreflightError, match=r"P PART_T .*PS PARTS_T"):
        source.run()
    source.configure({"name": "T", "columns_exclude": ["P", "PS"]})
    source.run()
    oracle.run(
        "INSERT INTO T VALUES (2, PART_T(2, 'b'), PARTS_T(PART_T(3, 'c')), 'y')",
        "UPDATE T SET P = PART_T(4, 'd') WHERE ID = 1",
        "UPDATE T SET P = NULL, V = 'z' WHERE ID = 2",
    )
    source.run()
    assert source.lake.image(T) == [(1, "x"), (2, "z")]


def test_a_table_with_a_nested_table_stops_with_its_first_change(
    oracle: Oracle, tmp_path: Path
) -> None:
    """Leaving the column out does not help: LogMiner translates no row of such a table, and doctor says so before."""
    oracle.run(
        "CREATE TYPE TAGS_T AS TABLE OF VARCHAR2(9)",
        "CREATE TABLE N (ID NUMBER(9) PRIMARY KEY, TAGS TAGS_T) NESTED TABLE TAGS STORE AS N_TAGS",
        "INSERT INTO N VALUES (1, TAGS_T('a'))",
    )
    with source_of(oracle, tmp_path) as source:
        source.configure({"name": "N", "columns_exclude": ["TAGS"]}, "ONE")
        findings, _ = oracle_findings(source.written())
        [found] = [one for one in findings if "does not translate rows" in one.problem]
        assert (found.table, "TAGS of type TAGS_T" in found.problem) == (table_id("N"), True)
        source.run()
        oracle.run("UPDATE N SET ID = 2", "UPDATE ONE SET V = 'b'")
        source.run()
        assert source.record("N").state == "failed"
        assert source.lake.image(table_id("N")) == [(1,)]
        source.check_current("ONE")
