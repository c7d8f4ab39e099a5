"""Signals in Debezium's JSON."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column, TableSchema
from cdc_core.signals.data_collections import table_from_collection, tables_of_collections
from cdc_core.signals.signal_types import (
    CustomAction,
    DropTransaction,
    ExecuteSnapshot,
    LogMessage,
    PauseSnapshot,
    ResumeSnapshot,
    StopSnapshot,
    conditions_asked,
    parse_signal,
)
from cdc_core.snapshot.filters import checked_filter

EMP, DEPT = TableId("HR", "EMP"), TableId("HR", "Dept")


def test_tables_and_conditions_are_understood() -> None:
    request = parse_signal(
        "execute-snapshot",
        {
            "type": "INCREMENTAL",
            "data-collections": ["hr.emp", 'HR."Dept"', "HR.EMP"],
            "additional-conditions": [{"data-collection": "HR.EMP", "filter": "ID > 5"}],
        },
    )
    assert isinstance(request, ExecuteSnapshot)
    tables = tables_of_collections(request.data_collections, (EMP, DEPT), ())
    assert tables == (EMP, DEPT)
    assert conditions_asked(request, tables, tables, ()) == {EMP: "ID > 5"}


@pytest.mark.parametrize(
    "text", ["hr.emp", "HR.EMP", " hr.emp ", "ORCLPDB1.HR.EMP", r"ORCLPDB1\.HR\.EMP"]
)
def test_collections_are_written_as_debezium_does(text: str) -> None:
    assert table_from_collection(text) == EMP


@pytest.mark.parametrize(
    "text", ['HR."Dept"', '"HR"."Dept"', 'ORCLPDB1.hr."Dept"', '"ORCLPDB1"."HR"."Dept"']
)
def test_a_collection_in_double_quotes_keeps_its_case(text: str) -> None:
    assert table_from_collection(text) == DEPT


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        pytest.param("stop-it", {}, "unknown type of signal", id="unknown-type"),
        pytest.param("log", {}, "message: Field required", id="log-without-message"),
        pytest.param("drop-transaction", {}, "transaction-id", id="no-transaction"),
        pytest.param("stop-snapshot", {"data-collections": "A.B"}, "tuple", id="no-list"),
        pytest.param("execute-snapshot", {}, "data-collections: Field required", id="no-tables"),
        pytest.param("execute-snapshot", {"data-collections": []}, "at least 1", id="empty-tables"),
        pytest.param("execute-snapshot", {"data-collections": [5]}, "string", id="not-text"),
        pytest.param(
            "execute-snapshot", {"data-collections": ["a.b"], "type": "x"}, "type", id="unknown-kind"
        ),
        pytest.param(
            "execute-snapshot", {"data-collections": ["a.b"], "surrogate": "k"},
            "surrogate", id="unknown-field",
        ),
        pytest.param(
            "execute-snapshot",
            {"data-collections": ["a.b"], "additional-conditions": [{"data-collection": "a.b"}]},
            "filter", id="condition-without-filter",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_understood_is_refused(
    kind: str, data: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_signal(kind, data)


def test_a_condition_of_another_table_is_refused() -> None:
    request = parse_signal(
        "execute-snapshot",
        {
            "data-collections": ["HR.EMP"],
            "additional-conditions": [{"data-collection": "HR.PRICES", "filter": "X = 1"}],
        },
    )
    assert isinstance(request, ExecuteSnapshot)
    with pytest.raises(ConfigError, match="not among data-collections"):
        conditions_asked(request, (EMP,), CAPTURED, ())


PRICES = TableId("HR", "PRICES")
CAPTURED = (EMP, DEPT, PRICES, TableId("SHOP", "ORDERS"))


@pytest.mark.parametrize(
    ("entry", "tables"),
    [
        pytest.param("hr.emp", (EMP,), id="a-name-in-any-case"),
        pytest.param("orclpdb1.hr.emp", (EMP,), id="a-name-with-its-database"),
        pytest.param("HR.*", (EMP, DEPT, PRICES), id="our-pattern"),
        pytest.param(r"ORCLPDB1\.HR\.EMP", (EMP,), id="debezium-s-escaped-name"),
        pytest.param(r"ORCLPDB1\.HR\.(EMP|PRICES)", (EMP, PRICES), id="a-regular-expression"),
        pytest.param(r"hr\.(emp|prices)", (EMP, PRICES), id="an-expression-in-another-case"),
        pytest.param(r"HR\.(Dept|DEPT)", (DEPT,), id="the-case-that-is-written-comes-first"),
        pytest.param(".*ORDERS", (CAPTURED[3],), id="the-whole-name-must-match"),
    ],
)
def test_an_entry_names_captured_tables(entry: str, tables: tuple[TableId, ...]) -> None:
    assert tables_of_collections([entry, entry], CAPTURED, ["ORCLPDB1"]) == tables


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        pytest.param("HR.EM", "names no captured table", id="a-part-of-a-name"),
        pytest.param("NOPE.HR.EMP", "another database", id="another-database"),
        pytest.param("HR.(EMP", "not a regular expression", id="an-open-parenthesis"),
        pytest.param(" ", "empty or too long", id="nothing"),
        pytest.param("x" * 1001, "empty or too long", id="endless"),
    ],
)
def test_an_entry_that_names_nothing_says_which_tables_there_are(entry: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tables_of_collections([entry], CAPTURED, ["ORCLPDB1"])


def test_the_older_condition_is_for_all_tables_without_one_of_their_own() -> None:
    request = parse_signal(
        "execute-snapshot",
        {
            "data-collections": ["HR.*"],
            "additional-condition": "ID > 1",
            "additional-conditions": [{"data-collection": "HR.E.*", "filter": "ID > 5"}],
        },
    )
    assert isinstance(request, ExecuteSnapshot)
    found = conditions_asked(request, (EMP, DEPT), CAPTURED, ())
    assert found == {EMP: "ID > 5", DEPT: "ID > 1"}


@pytest.mark.parametrize(
    ("kind", "data", "request_type"),
    [
        ("stop-snapshot", {"type": "INCREMENTAL", "data-collections": ["HR.EMP"]}, StopSnapshot),
        ("stop-snapshot", {}, StopSnapshot),
        ("pause-snapshot", {"whatever": 1}, PauseSnapshot),
        ("resume-snapshot", {}, ResumeSnapshot),
        ("log", {"message": "at {}"}, LogMessage),
        ("drop-transaction", {"transaction-id": " 0A001F00C2030000 "}, DropTransaction),
        ("tell-shop", {"to": "them"}, CustomAction),
    ],
)
def test_every_action_of_debezium_and_custom_ones_are_understood(
    kind: str, data: dict[str, Any], request_type: type
) -> None:
    assert isinstance(parse_signal(kind, data, ["tell-shop"]), request_type)


FILTER = TableSchema(
    EMP,
    Scn(1),
    tuple(Column(name, "NUMBER", 22, 0, 10, 0, name == "PAY") for name in ("ID", "PAY")),
    ("ID",),
)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        pytest.param("SELECT * FROM HR.EMP WHERE PAY > 5", "PAY > 5", id="all-columns"),
        pytest.param("select id, pay from emp where (PAY>5);", "(PAY>5)", id="named-columns"),
        pytest.param('SELECT * FROM "HR"."EMP"', None, id="all-rows"),
        pytest.param(" PAY > 5 ", "PAY > 5", id="a-condition"),
    ],
)
def test_a_blocking_snapshot_may_have_a_whole_statement(text: str, condition: str | None) -> None:
    assert checked_filter(text, FILTER, is_statement=True) == condition


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("SELECT ID FROM HR.EMP", "lacks captured columns: PAY", id="too-few-columns"),
        pytest.param("SELECT * FROM HR.DEPT", "another table", id="another-table"),
        pytest.param("SELECT * FROM HR.EMP, HR.DEPT", "more than a WHERE", id="a-join"),
        pytest.param("SELECT * FROM HR.EMP E", "more than a name", id="an-alias"),
        pytest.param("SELECT * FROM HR.EMP ORDER BY 1", "more than a WHERE", id="an-order"),
        pytest.param("SELECT * FROM EMP UNION SELECT * FROM EMP", "not one SELECT", id="a-union"),
        pytest.param("SELECT * FROM EMP; DROP TABLE EMP", "not one SELECT", id="two"),
        pytest.param("SELECT * FROM EMP WHERE ID IN (SELECT 1 FROM EMP)", "neither", id="nested"),
        pytest.param("SELECT PAY*2, ID FROM EMP", "something else", id="an-expression"),
    ],
)
def test_a_statement_of_more_than_the_table_s_rows_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        checked_filter(text, FILTER, is_statement=True)


def test_an_incremental_snapshot_takes_no_statement() -> None:
    with pytest.raises(ConfigError, match="more than a condition"):
        checked_filter("SELECT * FROM HR.EMP WHERE PAY > 5", FILTER, is_statement=False)
