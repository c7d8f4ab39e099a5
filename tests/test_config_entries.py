"""A table's entry in the configuration is found at once, however many there are."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from cdc_core.config import SourceConfig
from cdc_core.model.identifiers import TableId

EMP, DEPT = TableId("HR", "EMP"), TableId("HR", "Dept")


def config(*tables: dict[str, Any]) -> SourceConfig:
    return SourceConfig.model_validate(
        {
            "name": "src",
            "oracle": {"dsn": "host/service", "user": "u", "password": "p"},
            "tables": list(tables),
            "landing": {"type": "local", "path": "landing"},
            "lake": {"path": "lake"},
            "state": {"url": "sqlite:///state.db"},
        }
    )


def test_a_table_is_found_by_its_name_in_the_dictionary() -> None:
    found = config({"name": "hr.emp"}, {"name": 'HR."Dept"', "key": ["ID"]}, {"name": "SHOP.*"})
    assert set(found.entries) == {EMP, DEPT}
    assert found.table(DEPT).key == ("ID",)
    with pytest.raises(KeyError, match="OTHER"):
        found.table(TableId("HR", "OTHER"))


def test_a_copy_with_other_tables_knows_these_alone() -> None:
    first = config({"name": "HR.EMP"})
    assert set(first.entries) == {EMP}
    other = first.model_copy(update={"tables": config({"name": 'HR."Dept"'}).tables})
    assert set(other.entries) == {DEPT}
    assert set(first.entries) == {EMP}
    assert pickle.loads(pickle.dumps(first)) == first
