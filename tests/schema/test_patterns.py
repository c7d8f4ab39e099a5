"""Patterns of tables: what they match, and what configurations with them mean."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from cdc_core.config import SourceConfig
from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId, split_container
from cdc_core.model.patterns import TablePattern
from cdc_core.model.reports import FoundTable
from cdc_core.schema.catalog import find_tables
from cdc_core.steps.pattern_matching import pattern_of, with_matches
from tests.oracle.fake_session import Answer, FakeSession


@pytest.mark.parametrize(
    ("pattern", "table", "matches"),
    [
        pytest.param("SHOP.*", "SHOP.ORDERS", True, id="all-tables-of-an-owner"),
        pytest.param("shop.order*", "SHOP.ORDERS", True, id="plain-parts-fold-to-upper-case"),
        pytest.param("SHOP.ORDER?", "SHOP.ORDERS", True, id="one-character"),
        pytest.param("SHOP.ORDER?", "SHOP.ORDER", False, id="exactly-one"),
        pytest.param("SHOP.*S", "SHOP.ORDERS_OLD", False, id="the-whole-name"),
        pytest.param("*.ORDERS", "SHOP2.ORDERS", True, id="any-owner"),
        pytest.param("SH*.ORDERS", 'SHOP."X.ORDERS"', False, id="never-across-the-dot"),
        pytest.param('SHOP."Order*"', 'SHOP."Order Lines"', True, id="quoted-keeps-its-case"),
        pytest.param("SHOP.ORDER*", 'SHOP."Order Lines"', False, id="case-counts"),
        pytest.param("SHOP.A$*", "SHOP.A$B", True, id="dollar-is-a-character"),
        pytest.param("SHOP.A_*", "SHOP.AXB", False, id="underscore-is-a-character"),
        pytest.param(r"re:SHOP\.ORDERS_\d{4}", "SHOP.ORDERS_2024", True, id="expression"),
        pytest.param(
            r"re:SHOP\.ORDERS", "SHOP.ORDERS_2024", False, id="expression-fits-as-a-whole"
        ),
        pytest.param(r"re:shop\.orders", "SHOP.ORDERS", False, id="expression-and-case"),
        pytest.param(r"re:(?i)shop\.orders", "SHOP.ORDERS", True, id="expression-without-case"),
        pytest.param(
            r"re:SHOP\.Order Lines", 'SHOP."Order Lines"', True, id="expression-quoted-name"
        ),
        pytest.param(r"re:(SHOP|HR)\.(A|B)", "HR.B", True, id="expression-of-two-owners"),
    ],
)
def test_patterns_match_as_in_a_shell(pattern: str, table: str, matches: bool) -> None:
    assert TablePattern.parse(pattern).matches(TableId.parse(table)) is matches


@pytest.mark.parametrize("text", ["*", "SHOP", "SHOP.A B*", "SHOP.ORD%", "", "SHOP.[A]"])
def test_what_is_no_pattern_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="not a table name or a pattern"):
        TablePattern.parse(text)


@pytest.mark.parametrize("text", ["re:", "re:SHOP.(", "re:*"])
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="not a regular expression"):
        TablePattern.parse(text)


def test_an_expression_has_no_container_however_many_dots_it_has() -> None:
    assert split_container(r"re:(?i)SHOP\.A.*") == (None, r"re:(?i)SHOP\.A.*")


def test_a_pattern_has_no_container() -> None:
    with pytest.raises(ConfigError, match="no container"):
        TablePattern.parse("PDB.SHOP.*")


def source(*tables: dict[str, Any]) -> SourceConfig:
    return SourceConfig.model_validate(
        {
            "name": "shop",
            "oracle": {"dsn": "localhost/X", "user": "cdc", "password": "x"},
            "tables": tables,
            "landing": {"type": "local", "path": "landing"},
            "lake": {"path": "lake"},
            "state": {"url": "sqlite:///state.db"},
        }
    )


def table(name: str) -> TableId:
    return TableId("SHOP", name)


def test_tables_that_were_found_take_the_place_of_patterns() -> None:
    config = source(
        {"name": "SHOP.ORDERS", "key": ["ID"]},
        {"name": "SHOP.*", "exclude": ["SHOP.TMP_*", "SHOP.OLD"], "columns_exclude": ["SSN"]},
    )
    assert config.has_patterns
    found = [
        FoundTable(table("ORDERS")),
        FoundTable(table("PEOPLE"), columns_exclude=("PHOTO",)),
        FoundTable(table("TMP_1")),
        FoundTable(table("NO_KEY"), left_out="the table has no key"),
    ]
    resolved = with_matches(config, found)
    assert {str(one.table): one.columns_exclude for one in resolved.tables} == {
        "SHOP.ORDERS": (),
        "SHOP.PEOPLE": ("SSN",),
    }
    assert resolved.table(table("PEOPLE")).omits("LONG"), "what PHOTO is"
    assert not resolved.table(table("ORDERS")).omits("LONG")
    assert resolved.table(table("ORDERS")).key == ("ID",)
    assert not resolved.has_patterns
    assert with_matches(resolved, found) is resolved


def test_the_first_pattern_that_takes_a_table_has_it() -> None:
    config = source(
        {"name": "SHOP.ORD*", "columns_exclude": ["A"]},
        {"name": "SHOP.*", "columns_exclude": ["B"]},
    )
    first, second = (pattern_of(config, table(name)) for name in ("ORDERS", "PEOPLE"))
    assert first is not None
    assert second is not None
    assert (first.columns_exclude, second.columns_exclude) == (("A",), ("B",))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        pytest.param({"name": "SHOP.*", "key": ["ID"]}, "a pattern has no key", id="key"),
        pytest.param({"name": "SHOP.T", "exclude": ["SHOP.*"]}, "only a pattern", id="exclude"),
        pytest.param({"name": "SHOP.*", "exclude": ["TMP*"]}, "not a table name", id="bad-exclude"),
        pytest.param({"name": "SH OP.*"}, "not a table name or a pattern", id="bad-pattern"),
    ],
)
def test_entries_that_mean_nothing_are_refused(entry: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        source(entry)


def test_kinds_of_tables_without_redo_of_their_own_are_left_out_with_the_reason() -> None:
    """The embedded Oracle has none of these kinds."""
    plain = ("N", "NO", "N", None)
    answers: dict[str, Answer] = {
        "ALL_ALL_TABLES": [],
        "ALL_QUEUE_TABLES": [],
        "ALL_XML_TABLES": [],
        "ALL_EXTERNAL_TABLES": [("SHOP", "LOADED")],
        "ORACLE_MAINTAINED": [("SYS",), ("XDB",)],
        "ALL_TABLES": [
            ("SHOP", "HEAP_MAP", 1, "N", "NO", "N", "IOT_OVERFLOW"),
            ("SHOP", "LOADED", None, *plain),
            ("SHOP", "NESTED", 2, "N", "YES", "N", None),
            ("SHOP", "SESSION_T", 0, "Y", "NO", "N", None),
            ("SHOP", "TEXT$I", 0, "N", "NO", "Y", None),
            ("XDB", "INNER", 0, *plain),
        ],
    }
    found = find_tables(FakeSession(answers), lambda _: True)
    assert {one.table.name: one.left_out for one in found} == {
        "HEAP_MAP": "it holds the overflow or the mapping of an index-organized table",
        "LOADED": "it is an external table: its rows are not in the redo",
        "NESTED": "it holds a nested table of another table",
        "SESSION_T": "it is a temporary table: its rows are not in the redo",
        "TEXT$I": "it belongs to an index",
    }
