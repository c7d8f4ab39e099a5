"""Absent columns of rows that were written before names were taken by others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_core.model.scn import Scn
from cdc_core.schema.evolution import knowing_taken_names
from cdc_core.stage.absent_names import absent_now
from tests.stage.landed import number, orders_schema

OLD = replace(
    orders_schema(), columns=(number("ID", 9, 0), number("A", 9, 0)), dropped=("B",), scn_from=Scn(5)
)  # fmt: skip
NEW = knowing_taken_names(OLD, replace(OLD, columns=(*OLD.columns, number("B", 9, 0)), scn_from=Scn(9)))  # fmt: skip
HELD = replace(NEW, columns=(*OLD.columns, number("B__dropped_9", 9, 0), number("B", 9, 0)))


@pytest.mark.parametrize(
    ("names", "width", "is_change", "wanted"),
    [
        pytest.param(["B"], 3, True, ["B__dropped_9", "B"], id="before-it-came"),
        pytest.param(["B"], 4, True, ["B"], id="since"),
        pytest.param([], 3, True, ["B"], id="before-lacking-nothing-else"),
        pytest.param([], 3, False, [], id="of-a-chunk"),
        pytest.param(["A", "B__dropped_9"], 4, True, ["A", "B__dropped_9"], id="others"),
    ],
)
def test_names_are_those_that_columns_have_now(
    names: list[str], width: int, is_change: bool, wanted: list[str]
) -> None:
    assert absent_now([names], [width], [is_change], HELD).to_pylist() == [wanted]
