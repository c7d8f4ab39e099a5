"""Tables by pattern: taken in and left out at the start of each run, by the embedded Oracle's dictionary."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from cdc_core.errors import ConfigError
from cdc_core.steps import Pipeline
from cdc_core.steps.source_checks import oracle_findings
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, source_of, table_id

PATTERN: dict[str, Any] = {"name": "*", "exclude": ["DEMO.TMP_*"], "columns_exclude": ["SECRET"]}


oracle = oracle_with(
    "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    "CREATE TABLE TWO (ID NUMBER(9) PRIMARY KEY, SCAN LONG, SECRET VARCHAR2(20))",
    "CREATE TABLE KEYLESS (ID NUMBER(9))",
    "CREATE TABLE TMP_1 (ID NUMBER(9) PRIMARY KEY)",
    "CREATE TABLE A_NAME_THAT_LOGMINER_DOES_NOT_SUPPORT (ID NUMBER(9) PRIMARY KEY)",
    "INSERT INTO ONE VALUES (1, 'a')",
    "INSERT INTO TWO VALUES (1, NULL, 'hidden')",
)


source = capturing(PATTERN)


def captured(source: Source) -> set[str]:
    return {one.table.name for one in source.pipeline.records.tables() if one.is_captured}


def test_a_pattern_takes_in_what_can_be_captured(source: Source) -> None:
    assert captured(source) == {"ONE", "TWO"}
    source.check_exact("ONE", "TWO")
    assert source.lake.image(table_id("TWO")) == [(1,)], "neither the LONG nor what is excluded"


def test_what_is_left_out_has_a_reason(source: Source, caplog: pytest.LogCaptureFixture) -> None:
    found = {one.table.name: one for one in source.pipeline.find_tables()}
    assert found["KEYLESS"].left_out.startswith("the table has no primary key")
    assert "longer than 30 bytes" in found["A_NAME_THAT_LOGMINER_DOES_NOT_SUPPORT"].left_out
    assert found["TWO"].columns_exclude == ("SCAN",)
    assert "TMP_1" not in found
    with caplog.at_level(logging.INFO, "cdc_core.steps.pattern_matching"):
        source.pipeline.find_tables()
    assert not caplog.records, "said once"


def test_no_more_tables_join_than_are_allowed(
    oracle: Oracle, source: Source, tmp_path: Path
) -> None:
    """What is captured stays so; nothing of the tables that would be too many lands."""
    oracle.run("CREATE TABLE THREE (ID NUMBER(9) PRIMARY KEY)")
    source.more = {**source.more, "tables_max": 2}
    source.configure(PATTERN)
    with pytest.raises(ConfigError, match="tables_max") as refused:
        source.run()
    assert (refused.value.facts["tables"], refused.value.facts["tables_max"]) == (3, 2)
    assert captured(source) == {"ONE", "TWO"}
    source.configure({**PATTERN, "exclude": ["DEMO.T*_*", "DEMO.THREE"]})
    source.run()
    assert captured(source) == {"ONE", "TWO"}
    with pytest.raises(ValueError, match="tables_max allows 1"):
        oracle.config(tmp_path / "more", "ONE", "TWO", tables_max=1)


def test_a_table_that_is_created_later_joins_at_the_next_run(
    oracle: Oracle, source: Source
) -> None:
    oracle.run("CREATE TABLE LATE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))")
    oracle.run("INSERT INTO LATE VALUES (1, 'before')", "INSERT INTO ONE VALUES (2, 'b')")
    source.run()
    oracle.run("INSERT INTO LATE VALUES (2, 'after')")
    source.run()
    assert captured(source) == {"ONE", "TWO", "LATE"}
    source.check_current("ONE", "TWO", "LATE")


def test_a_column_of_a_type_that_is_not_captured_may_come_later(
    oracle: Oracle, source: Source
) -> None:
    """It is left out as those that were there, from its DDL on; an entry of the table's own would stop."""
    oracle.run("ALTER TABLE ONE ADD (SCAN LONG, W NUMBER(5))")
    oracle.run("INSERT INTO ONE VALUES (2, 'b', 'unread', 7)", "UPDATE ONE SET W = 1 WHERE ID = 1")
    oracle.clock.ahead += 60
    oracle.run("INSERT INTO TWO (ID) VALUES (2)")
    source.windows()
    assert source.record("ONE").state == "ready", source.record("ONE").reason
    assert source.lake.image(table_id("ONE")) == [(1, "a", 1), (2, "b", 7)]
    oracle.run("UPDATE ONE SET W = 2, SCAN = NULL")
    source.run()
    source.check_current("ONE", "TWO")
    assert source.record("ONE").generation == 1


def test_a_table_that_gets_a_key_joins(oracle: Oracle, source: Source) -> None:
    oracle.run("ALTER TABLE KEYLESS ADD PRIMARY KEY (ID)")
    source.run()
    source.check_exact("KEYLESS")


def test_a_table_that_was_taken_in_and_loses_its_key_stays(oracle: Oracle, source: Source) -> None:
    """It is failed, with its way out, and not removed as if somebody had asked for it."""
    oracle.run("ALTER TABLE ONE DROP PRIMARY KEY")
    source.run()
    assert source.record("ONE").state == "failed"
    source.run()
    assert "ONE" in {one.table.name for one in source.pipeline.config.tables}


def test_a_table_that_the_configuration_excludes_is_removed(source: Source) -> None:
    source.configure({**PATTERN, "exclude": ["DEMO.TMP_*", "DEMO.TWO"]})
    source.run()
    assert source.record("TWO").state == "removed"
    assert source.record("TWO").asked_by == "configuration"
    assert source.record("ONE").state == "ready"


def test_an_excluded_column_that_is_added_later_never_lands(oracle: Oracle, source: Source) -> None:
    oracle.run("ALTER TABLE ONE ADD SECRET VARCHAR2(20)")
    oracle.run("INSERT INTO ONE VALUES (2, 'b', 'hush')")
    source.run()
    source.check_current("ONE")
    assert source.lake.image(table_id("ONE")) == [(1, "a"), (2, "b")]
    landed = b"".join(path.read_bytes() for path in source.path.rglob("*.parquet"))
    assert b"hush" not in landed


def test_an_entry_of_its_own_wins(oracle: Oracle, source: Source) -> None:
    source.configure({"name": "TWO", "columns_exclude": ["SCAN", "SECRET"]}, PATTERN)
    source.run()
    assert source.record("TWO").state == "ready"
    assert captured(source) == {"ONE", "TWO"}


@pytest.mark.parametrize(
    ("own", "shown"),
    [
        pytest.param({"columns_exclude": ["SCAN"]}, True, id="captured-as-it-is"),
        pytest.param({"columns_exclude": ["SCAN", "SECRET"]}, False, id="left-out-too"),
        pytest.param(
            {"columns_exclude": ["SCAN"], "columns_mask": {"SECRET": "stars(3)"}},
            False,
            id="masked",
        ),
    ],
)
def test_doctor_names_what_an_entry_captures_and_its_pattern_leaves_out(
    oracle: Oracle, tmp_path: Path, own: dict[str, Any], shown: bool
) -> None:
    """Nothing of a pattern holds for a table with an entry of its own: easily forgotten where a secret is concerned."""
    with source_of(oracle, tmp_path) as opened:
        opened.configure({"name": "TWO", **own}, PATTERN)
        findings, _ = oracle_findings(opened.written())
    found = [one for one in findings if "inherits nothing from patterns" in one.problem]
    assert [one.table for one in found] == ([table_id("TWO")] if shown else [])
    assert all("SECRET" in one.problem and not one.is_problem for one in found)


@pytest.mark.parametrize("query_filter", ["in", "regex"])
def test_a_regular_expression_names_tables(
    oracle: Oracle, tmp_path: Path, query_filter: str
) -> None:
    with source_of(oracle, tmp_path, capture={"query_filter": query_filter}) as opened:
        opened.tables = [{"name": r"re:DEMO\.(ONE|T[A-Z]{2})", "exclude": [r"re:.*\.TMP_\d+"]}]
        opened.run()
        oracle.run("CREATE TABLE TEN (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO TEN VALUES (1)")
        oracle.run(
            "INSERT INTO ONE VALUES (2, 'b')", "CREATE TABLE ONES (ID NUMBER(9) PRIMARY KEY)"
        )
        opened.run()
        oracle.run("INSERT INTO TEN VALUES (2)", "DELETE FROM ONE WHERE ID = 1")
        opened.run()
        assert captured(opened) == {"ONE", "TWO", "TEN"}
        opened.check_current("ONE", "TWO", "TEN")


def test_patterns_that_name_nothing_say_what_they_left_out(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path) as opened:
        opened.configure("KEY*")
        with pytest.raises(ConfigError, match="no captured table matches") as raised:
            opened.run()
    assert "DEMO.KEYLESS: the table has no primary key" in str(raised.value)


def test_a_plain_name_asks_oracle_for_no_tables(oracle: Oracle, tmp_path: Path) -> None:
    sent: list[str] = []
    config = oracle.config(tmp_path, "ONE")
    with Pipeline(config, on_statement=sent.append) as pipeline:
        assert pipeline.find_tables() == []
        assert pipeline.config is config
    assert sent == []
