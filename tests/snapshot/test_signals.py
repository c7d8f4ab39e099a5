"""Signals in Debezium's JSON."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from cdc_core.snapshot.signals import ExecuteSnapshot, parse_signal, table_from_collection

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
    assert request.tables == (EMP, DEPT)
    assert request.condition_of(EMP) == "ID > 5"
    assert request.condition_of(DEPT) is None


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
        pytest.param("stop-snapshot", {}, "unknown type of signal", id="unknown-type"),
        pytest.param("execute-snapshot", {}, "data-collections: Field required", id="no-tables"),
        pytest.param("execute-snapshot", {"data-collections": []}, "at least 1", id="empty-tables"),
        pytest.param("execute-snapshot", {"data-collections": [5]}, "string", id="not-text"),
        pytest.param(
            "execute-snapshot", {"data-collections": ["a.b"], "type": "x"}, "type", id="unknown-kind"
        ),
        pytest.param(
            "execute-snapshot", {"data-collections": ["a.b"], "surrogate-key": "k"},
            "surrogate-key", id="unknown-field",
        ),
        pytest.param(
            "execute-snapshot",
            {"data-collections": ["a.b"], "additional-conditions": [{"data-collection": "a.b"}]},
            "filter", id="condition-without-filter",
        ),
        pytest.param(
            "execute-snapshot",
            {
                "data-collections": ["a.b"],
                "additional-conditions": [{"data-collection": "a.c", "filter": "X = 1"}],
            },
            "not among data-collections", id="condition-of-another-table",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_understood_is_refused(
    kind: str, data: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_signal(kind, data)


def test_a_table_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="only in quotes"):
        _ = parse_signal("execute-snapshot", {"data-collections": ["a.*"]}).tables
