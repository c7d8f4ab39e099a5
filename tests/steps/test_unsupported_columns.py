"""Columns of types that are not captured: refused, or left out by `unsupported_columns`, and who says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from cdc_core.config import TableConfig
from cdc_core.errors import PreflightError
from cdc_core.steps.source_checks import oracle_findings
from tests.oracle.embedded import OWNER, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id

T = table_id("T")

oracle = oracle_with(
    "CREATE TYPE PART_T AS OBJECT (N NUMBER, S VARCHAR2(10))",
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, BODY LONG, P PART_T, U UROWID, V VARCHAR2(9))",
    "INSERT INTO T VALUES (1, 'long', PART_T(1, 'a'), NULL, 'x')",
    "CREATE TABLE KEYED (U UROWID, ID NUMBER(9) PRIMARY KEY)",
)


def omitted(source: Source) -> tuple[str, ...]:
    return source.status("T").columns_omitted


@pytest.mark.parametrize(
    ("of_source", "of_table"),
    [
        pytest.param("omit", None, id="of-the-source"),
        pytest.param("refuse", "omit", id="of-the-table"),
        pytest.param({"LONG": "omit", "UROWID": "omit", "OBJECT": "omit"}, None, id="by-kind"),
    ],
)
def test_they_are_left_out_and_named(
    oracle: Oracle, tmp_path: Path, of_source: Any, of_table: Any
) -> None:
    """Also one that is added later; doctor and status say so, and the table is captured around them."""
    own = {"name": "T", "unsupported_columns": of_table}  # None, too: as the source's
    with source_of(oracle, tmp_path, unsupported_columns=of_source) as source:
        source.configure(own)
        findings, _ = oracle_findings(source.written())
        [found] = [one for one in findings if "is captured without" in one.problem]
        assert "BODY LONG, P PART_T, U UROWID" in found.problem
        assert (found.table, found.is_problem) == (T, False)
        source.run()
        assert omitted(source) == ("BODY LONG", "P PART_T", "U UROWID")
        oracle.run(
            "INSERT INTO T VALUES (2, 'more', PART_T(2, 'b'), NULL, 'y')",
            "UPDATE T SET BODY = 'other', V = 'z' WHERE ID = 1",
        )
        source.run()
        assert source.lake.image(T) == [(1, "z"), (2, "y")]
        oracle.run("ALTER TABLE T ADD (U2 UROWID, W NUMBER(3))", "UPDATE T SET W = 7 WHERE ID = 2")
        windows = source.windows()
        assert source.lake.image(T) == [(1, "z", None), (2, "y", 7)]
        assert omitted(source)[-1] == "U2 UROWID"
        source.check_replayed("T", windows)
        source.close()
        source.run()
        assert source.record("T").reason is None, "nothing is asked for again"


def test_they_are_refused_by_default_and_by_kind(oracle: Oracle, tmp_path: Path) -> None:
    listed = r"P PART_T .*U UROWID"
    with (
        source_of(oracle, tmp_path, "T") as source,
        pytest.raises(PreflightError, match=rf"BODY LONG .*{listed}"),
    ):
        source.run()
    by_kind = {"LONG": "omit"}
    with (
        source_of(oracle, tmp_path, "T", unsupported_columns=by_kind) as source,
        pytest.raises(PreflightError, match=listed) as refused,
    ):
        source.run()
    assert "BODY" not in str(refused.value)


def test_a_form_comes_before_it(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path, unsupported_columns="omit") as source:
        source.configure({"name": "T", "types_as": {"LONG": "snapshot"}})
        source.begin()
        assert source.lake.image(T) == [(1, "long", "x")]
        assert omitted(source) == ("P PART_T", "U UROWID")


def test_a_pattern_names_them_too(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path) as source:
        source.configure({"name": "T*"})
        source.begin()
        assert omitted(source) == ("BODY LONG", "P PART_T", "U UROWID")
        source.close()
        source.run()
        assert source.record("T").reason is None


def test_one_of_the_key_is_refused(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path, unsupported_columns="omit") as source:
        source.configure({"name": "KEYED", "key": ["U"]})
        with pytest.raises(PreflightError):
            source.run()


def test_a_kind_or_an_answer_that_is_not_known_is_refused() -> None:
    for wrong in ("ignore", {"CLOB": "omit"}, {"LONG": "skip"}):
        with pytest.raises(ValidationError):
            TableConfig(name=f"{OWNER}.T", unsupported_columns=wrong)
