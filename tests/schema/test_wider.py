"""Which column holds the values of two definitions, and when do Delta tables need another type for it?"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.evolution import RedefineColumn, WidenColumn, held_by, holding, judge
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import arrow_type
from cdc_core.schema.widening import is_wider, wider


def number(precision: int | None, scale: int | None = 0, held_as: str = "") -> Column:
    return Column("C", "NUMBER", 22, 0, precision, scale, True, held_as=held_as)


def text(kind: str) -> Column:
    return Column("C", kind, 20, 20, None, None, True)


def moment(kind: str) -> Column:
    return Column("C", kind, 11, 0, None, None, True)


ANY = number(None, None)
TEXT, INT = pa.string(), pa.int64()


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        pytest.param(number(5), number(12), INT, id="both-are-int64"),
        pytest.param(number(5), number(20), pa.decimal128(20, 0), id="more-than-int64"),
        pytest.param(number(5), number(7, 2), pa.decimal128(7, 2), id="a-fraction-comes"),
        pytest.param(number(10, 2), number(14, 4), pa.decimal128(14, 4), id="both-sides"),
        pytest.param(number(10, 2), number(10, 4), pa.decimal128(12, 4), id="of-an-empty-column"),
        pytest.param(number(30, 0), number(30, 20), TEXT, id="more-than-38-digits"),
        pytest.param(number(2, 5), number(3, 1), pa.decimal128(7, 5), id="nothing-before-the-point"),
        pytest.param(number(3, -2), number(4, 1), pa.decimal128(6, 1), id="negative-scale"),
        pytest.param(number(None), number(12), pa.decimal128(38, 0), id="stays-wide"),
        pytest.param(number(20), number(5), pa.decimal128(20, 0), id="narrower"),
        pytest.param(number(12, 2), ANY, TEXT, id="any-number"),
        pytest.param(ANY, number(12, 2), TEXT, id="no-more-any-number"),
        pytest.param(number(5), replace(ANY, data_type="FLOAT", precision=63), TEXT, id="float"),
        pytest.param(moment("DATE"), moment("TIMESTAMP(9)"), TEXT, id="nine-digits"),
        pytest.param(moment("TIMESTAMP(9)"), moment("TIMESTAMP(3)"), TEXT, id="three-digits"),
        pytest.param(moment("DATE"), moment("TIMESTAMP(6)"), pa.timestamp("us"), id="microseconds"),
        pytest.param(moment("BINARY_FLOAT"), moment("BINARY_DOUBLE"), pa.float64(), id="double"),
        pytest.param(number(5, 2, "decimal(9,2)"), number(7, 2, "decimal(9,2)"), pa.decimal128(9, 2), id="held-wide"),
    ],
)  # fmt: skip
def test_one_type_holds_the_values_of_both(old: Column, new: Column, kind: pa.DataType) -> None:
    held = wider(old, new)
    assert held is not None
    assert arrow_type(held) == kind
    assert is_wider(old, new) == (arrow_type(old) != kind)
    assert wider(held, new) == held, "once more changes nothing"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(number(5), moment("DATE"), id="a-number-becomes-a-date"),
        pytest.param(moment("TIMESTAMP(6)"), moment("TIMESTAMP(6) WITH TIME ZONE"), id="a-zone-comes"),
        pytest.param(number(1, 0, "boolean"), number(3), id="a-boolean-becomes-a-number"),
        pytest.param(number(None, None, "double"), number(5), id="a-form-goes"),
        pytest.param(ANY, text("VARCHAR2"), id="texts-of-numbers-and-others"),
        pytest.param(text("VARCHAR2"), moment("ROWID"), id="texts-and-addresses"),
        pytest.param(moment("TIMESTAMP(9)"), text("NVARCHAR2"), id="texts-of-moments-and-others"),
        pytest.param(moment("TIMESTAMP(9)"), moment("TIMESTAMP(9) WITH LOCAL TIME ZONE"), id="a-local-zone-comes"),
        pytest.param(
            replace(moment("DATE"), held_as="iso8601"),
            replace(moment("TIMESTAMP(6) WITH LOCAL TIME ZONE"), held_as="iso8601"), id="a-local-zone-in-one-form",
        ),
        pytest.param(moment("INTERVAL DAY(2) TO SECOND(6)"), moment("INTERVAL YEAR(2) TO MONTH"), id="days-and-months"),
    ],
)  # fmt: skip
def test_no_type_holds_what_has_nothing_in_common(old: Column, new: Column) -> None:
    assert wider(old, new) is None


def version(scn: int, column: Column) -> TableSchema:
    return TableSchema(TableId("HR", "EMP"), Scn(scn), (column,), ("C",), 7)


def test_delta_tables_keep_the_widest_definition_that_a_column_has_had() -> None:
    """The change log has values of all times, so that what is held does not follow a definition that got narrower."""
    first, narrow, wide = version(1, number(12)), version(2, number(5)), version(3, number(7, 2))
    assert judge(first, narrow).steps == (RedefineColumn(number(12), number(5)),)
    assert holding(narrow, first).columns == first.columns
    assert judge(narrow, wide).steps == (WidenColumn(number(5), number(7, 2)),)
    assert judge(narrow, wide).widened == ("C",)
    held = held_by([first, narrow, wide])
    assert held is not None
    assert held.columns == (number(14, 2),)
    assert judge(held, holding(narrow, held)).steps == ()
