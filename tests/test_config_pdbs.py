"""What a configuration of several pluggable databases stands for, and which ones are refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from cdc_core.config import SourceConfig, sources_of


def config(*tables: str | dict[str, Any], **oracle: Any) -> SourceConfig:
    return SourceConfig.model_validate(
        {
            "name": "erp",
            "oracle": {"dsn": "localhost/CDB", "user": "C##CDC", "password": "x", **oracle},
            "tables": [{"name": one} if isinstance(one, str) else one for one in tables],
            "policies": {"on_drop": "remove"},
            "landing": {"type": "local", "path": "/landing"},
            "lake": {"path": "/lake"},
            "state": {"url": "sqlite:////state.db"},
        }
    )


def test_each_pluggable_database_is_a_source_with_its_tables_and_what_is_shared() -> None:
    found = sources_of(config("HR.SHOP.A", "SHOP.B", "sales.SHOP.C", pdbs=["sales", "HR"]))
    assert {pdb: (one.name, one.oracle.pdb, one.oracle.pdbs) for pdb, one in found.items()} == {
        "SALES": ("erp_sales", "SALES", ()),
        "HR": ("erp_hr", "HR", ()),
    }
    names = {pdb: [str(entry.table) for entry in one.tables] for pdb, one in found.items()}
    assert names == {"SALES": ["SHOP.B", "SHOP.C"], "HR": ["SHOP.A", "SHOP.B"]}
    assert {one.policies.on_drop for one in found.values()} == {"remove"}


def test_a_name_in_quotes_keeps_its_case() -> None:
    found = sources_of(config('"sales".SHOP.A', "HR.SHOP.B", pdbs=['"sales"', "hr"]))
    assert {pdb: (one.name, one.oracle.pdb) for pdb, one in found.items()} == {
        "sales": ("erp_sales", "sales"),
        "HR": ("erp_hr", "HR"),
    }
    assert config("A.B", pdb='"sales"').oracle.pdb == "sales"
    assert config("A.B", pdb="sales").oracle.pdb == "SALES"


def test_an_entry_with_a_pluggable_database_counts_before_one_without() -> None:
    found = sources_of(
        config("SHOP.A", {"name": "HR.SHOP.A", "key": ["ID"]}, "SHOP.X*", pdbs=["SALES", "HR"])
    )
    assert [entry.key for entry in found["SALES"].tables] == [(), ()]
    assert [entry.key for entry in found["HR"].tables] == [("ID",), ()]


def test_a_configuration_without_them_stands_for_itself() -> None:
    assert sources_of(config("SHOP.A")) == {}
    assert sources_of(config("SHOP.A", pdb="SALES")) == {}


@pytest.mark.parametrize(
    ("tables", "oracle", "said"),
    [
        pytest.param(["SALES.SHOP.A"], {}, "does not list: SALES.SHOP.A", id="none-listed"),
        pytest.param(
            ["SALES.SHOP.A", "SHOP.B"],
            {"pdbs": ["HR"]},
            "does not list: SALES.SHOP.A",
            id="another",
        ),
        pytest.param(
            ["SALES.SHOP.A"], {"pdbs": ["SALES", "HR"]}, "without a table: HR", id="without-a-table"
        ),
        pytest.param(["A.B"], {"pdbs": ["HR", "hr"]}, "more than once: HR", id="twice"),
        pytest.param(["A.B"], {"pdb": "X", "pdbs": ["HR"]}, "leave one of them out", id="both"),
        pytest.param(["A.B"], {"pdbs": ["A.B"]}, "pattern", id="no-name"),
        pytest.param(["A.B"], {"pdbs": ["HR", '"hr"']}, "more than once: HR, hr", id="one-source"),
        pytest.param(["A.B"], {"pdb": '"hr'}, "pattern", id="half-in-quotes"),
        pytest.param(["A.B"], {"pdbs": ["P" * 40]}, "longer than 40", id="too-long"),
        pytest.param(
            ["HR.A.B", 'hr.A."B"'], {"pdbs": ["HR"]}, "more than once: HR.A.B", id="table-twice"
        ),
    ],
)
def test_what_cannot_be_is_refused(tables: list[str], oracle: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        config(*tables, **oracle)
