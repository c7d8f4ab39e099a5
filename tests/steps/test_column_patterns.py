"""Columns that patterns leave out, or do not name: on both paths, and those that DDL brings, from the first row on that names them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from cdc_core.config import TableConfig
from cdc_core.errors import ConfigError
from cdc_core.model.patterns import ColumnRule
from tests.oracle.embedded import OWNER, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id

T = table_id("T")
BY_EXPRESSION = {"columns_exclude": ["re:(.+_)?SSN", "TMP*"]}
BY_INCLUSION = {"columns_include": ["ID", "NOTE*"]}

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, SSN VARCHAR2(40), NOTE VARCHAR2(40), TMP1 NUMBER(9), A_SSN VARCHAR2(40))",
    "INSERT INTO T VALUES (1, 'hush 1', 'a', 1, 'hush 2')",
)


def opened(oracle: Oracle, folder: Path, rule: dict[str, Any], name: str = "T") -> Iterator[Source]:
    with source_of(oracle, folder, "T") as source:
        source.configure({"name": name, **rule})
        source.begin()
        yield source


@pytest.fixture(params=[BY_EXPRESSION, BY_INCLUSION], ids=["expression", "inclusion"])
def source(oracle: Oracle, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Source]:
    yield from opened(oracle, tmp_path, request.param)


def has_landed(source: Source, text: str) -> bool:
    return any(
        text.encode() in path.read_bytes()
        for path in (source.path / "landing").rglob("*")
        if path.is_file()
    )


def test_both_paths_leave_them_out(oracle: Oracle, source: Source) -> None:
    oracle.run(
        "INSERT INTO T VALUES (2, 'hush 3', 'b', 2, 'hush 4')",
        "UPDATE T SET SSN = 'hush 5', NOTE = 'c' WHERE ID = 1",
        "UPDATE T SET A_SSN = 'hush 6' WHERE ID = 2",
    )
    source.windows()
    assert source.lake.image(T) == [(1, "c"), (2, "b")]
    assert not has_landed(source, "hush")
    assert has_landed(source, "'c'"), "uncompressed or not, this would be seen"
    source.check_current("T")


def test_columns_that_come_later_follow_the_rule(oracle: Oracle, source: Source) -> None:
    """In one window: rows before the DDL, the DDL, rows behind it."""
    oracle.run("INSERT INTO T (ID, NOTE) VALUES (2, 'b')")
    oracle.run("ALTER TABLE T ADD NEW_SSN VARCHAR2(40)", "ALTER TABLE T ADD NOTE2 VARCHAR2(40)")
    oracle.run("ALTER TABLE T ADD TMP_X VARCHAR2(40)")
    oracle.run("INSERT INTO T VALUES (3, 'hush', 'c', 3, 'hush', 'hush new', 'note', 'hush tmp')")
    oracle.run("UPDATE T SET NEW_SSN = 'hush again', NOTE2 = 'two', TMP_X = 'hush' WHERE ID = 2")
    source.windows()
    assert source.record("T").state == "ready", source.record("T").reason
    assert source.lake.image(T) == [(1, "a", None), (2, "b", "two"), (3, "c", "note")]
    assert not has_landed(source, "hush")
    source.check_current("T")
    oracle.run("UPDATE T SET NEW_SSN = 'hush later' WHERE ID = 3")
    source.windows()
    source.check_current("T")
    assert not has_landed(source, "hush")


def test_a_lob_that_comes_later_follows_the_rule(oracle: Oracle, source: Source) -> None:
    oracle.run("ALTER TABLE T ADD BIG_SSN CLOB")
    oracle.run(f"INSERT INTO T (ID, NOTE, BIG_SSN) VALUES (2, 'b', '{'hush' * 500}')")
    oracle.run("UPDATE T SET BIG_SSN = 'hush hush', NOTE = 'bb' WHERE ID = 2")
    source.windows()
    assert not has_landed(source, "hush")
    assert source.record("T").state == "ready", source.record("T").reason
    assert source.lake.image(T) == [(1, "a"), (2, "bb")]


def test_a_captured_column_that_gets_such_a_name_ends_the_stream(
    oracle: Oracle, source: Source
) -> None:
    oracle.run("ALTER TABLE T RENAME COLUMN NOTE TO THEIR_SSN")
    oracle.run("INSERT INTO T (ID, THEIR_SSN) VALUES (2, 'hush')")
    source.windows()
    assert source.record("T").state == "failed"
    assert not has_landed(source, "hush")


def test_a_rule_that_comes_later_holds_from_then_on(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path, "T") as source:
        source.begin()
        assert has_landed(source, "hush 1")
        source.configure({"name": "T", **BY_INCLUSION})
        oracle.run("INSERT INTO T VALUES (2, 'top secret', 'b', 2, 'top secret')")
        source.run()
        assert not has_landed(source, "top secret")
        assert [(row[0], row[2]) for row in source.lake.image(T)] == [(1, "a"), (2, "b")]
        assert "SSN" in (source.record("T").reason or "")
        source.pipeline.purge_column(T, "SSN")
        with pytest.raises(ConfigError, match="would return"):
            source.pipeline.purge_column(T, "NOTE")


def test_a_pattern_of_tables_hands_its_rule_on(oracle: Oracle, tmp_path: Path) -> None:
    for source in opened(oracle, tmp_path, BY_EXPRESSION, "*"):
        oracle.run("CREATE TABLE U (ID NUMBER(9) PRIMARY KEY, B_SSN VARCHAR2(40), C VARCHAR2(9))")
        oracle.run("INSERT INTO U VALUES (1, 'hush', 'c')")
        source.run()
        assert source.lake.image(table_id("U")) == [(1, "c")]
        assert not has_landed(source, "hush")


def test_masks_by_pattern_hold_on_both_paths_and_for_later_columns(
    oracle: Oracle, tmp_path: Path
) -> None:
    """A column's own mask counts before the pattern's; a column that the DDL of a window brings is masked in its rows."""
    masks = {"re:(.+_)?SSN": "stars(4)", "A_SSN": "truncate(1)"}
    for source in opened(oracle, tmp_path, {"columns_mask": masks}):
        assert source.lake.image(T) == [(1, "****", "a", 1, "h")]
        oracle.run("UPDATE T SET SSN = 'hush 5', NOTE = 'c' WHERE ID = 1")
        oracle.run("ALTER TABLE T ADD NEW_SSN VARCHAR2(40)")
        oracle.run("INSERT INTO T VALUES (2, 'hush 3', 'b', 2, 'hush 4', 'hush 6')")
        source.windows()
        assert source.record("T").state == "ready", source.record("T").reason
        assert source.lake.image(T) == [
            (1, "****", "c", 1, "h", None),
            (2, "****", "b", 2, "h", "****"),
        ]
        assert not has_landed(source, "ush ")


def test_a_mask_by_pattern_on_a_key_or_a_number_is_refused(oracle: Oracle, tmp_path: Path) -> None:
    for pattern, said in (
        ("I*", "columns of the key otherwise than by a hash .*: ID"),
        ("TMP*", "not TMP1 NUMBER"),
    ):
        with source_of(oracle, tmp_path / pattern[0], "T") as source:
            source.configure({"name": "T", "columns_mask": {pattern: "stars(1)"}})
            with pytest.raises(Exception, match=said):
                source.run()


def test_forms_by_pattern_hold_on_both_paths_and_for_later_columns(
    oracle: Oracle, tmp_path: Path
) -> None:
    """The key, which the pattern fits too, keeps its type; a column's own form counts first."""
    forms = {"*D": "text", "TMP*": "text", "TMP2": "double"}
    for source in opened(oracle, tmp_path, {"columns_as": forms}):
        oracle.run("ALTER TABLE T ADD TMP2 NUMBER(9)", "ALTER TABLE T ADD TMP3 NUMBER(9,2)")
        oracle.run("INSERT INTO T (ID, TMP1, TMP2, TMP3) VALUES (2, 7, 8, 9.5)")
        source.windows()
        assert source.record("T").state == "ready", source.record("T").reason
        [first, second] = source.lake.image(T)
        assert first == (1, "hush 1", "a", "1", "hush 2", None, None)
        assert second == (2, None, None, "7", None, 8.0, "9.5")


def test_the_key_must_be_named(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path, "T") as source:
        source.configure({"name": "T", "columns_include": ["NOTE"]})
        with pytest.raises(Exception, match="columns_include lacks a column of the primary key"):
            source.run()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param({"columns_exclude": ["re:("]}, "regular expression", id="no expression"),
        pytest.param({"columns_include": ["A"], "columns_mask": {"B": "stars(1)"}}, "both excluded and masked", id="masked"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        TableConfig(name=f"{OWNER}.T", **given)


@pytest.mark.parametrize(
    ("rule", "column", "is_left_out"),
    [
        pytest.param(ColumnRule(exclude=("A*",)), "AB", True, id="pattern"),
        pytest.param(ColumnRule(exclude=("A*",)), "aB", False, id="case counts"),
        pytest.param(ColumnRule(exclude=("re:A",)), "AB", False, id="fits as a whole"),
        pytest.param(ColumnRule(include=("A?",)), "AB", False, id="included"),
        pytest.param(ColumnRule(include=("A?",)), "ABC", True, id="not included"),
        pytest.param(ColumnRule(include=("A",)), "_cdc_row_id", False, id="of our own"),
        pytest.param(ColumnRule(include=("A*",), exclude=("AB",)), "AB", True, id="both"),
        pytest.param(
            ColumnRule(include=("A*",), exclude=("AB",)), "AC", False, id="both, included"
        ),
        pytest.param(ColumnRule(), "A", False, id="no rule"),
    ],
)
def test_a_rule_decides_by_name(rule: ColumnRule, column: str, is_left_out: bool) -> None:
    assert rule.excludes(column) is is_left_out
