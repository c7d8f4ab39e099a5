"""An UPDATE that changes other columns than LOBs, or names another row, closes no statement."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cdc_core.model.operations import Operation
from cdc_core.stage.closing_updates import updates_apart
from tests.decode.golden_table import GOLDEN

LOCATE, WRITE, UPDATE = Operation.SELECT_LOB_LOCATOR, Operation.LOB_WRITE, Operation.UPDATE
CLOSE = """update "S"."T" set "L" = 'x' where "ID" = '1' and "V" = 'v';"""
HEAD = """update "S"."T" set "V" = 'w', "L" = EMPTY_CLOB() where "ID" = '1' and "V" = 'v';"""
BLOCK = (
    'DECLARE \n loc_c CLOB; \nBEGIN\n select "L" into loc_c from "S"."T" where "ID" = \'1\' for update;\n'
    " buf_c := 'x'; \n  dbms_lob.write(loc_c, 1, 1, buf_c);\nEND;\n\n"
)


@pytest.mark.parametrize(
    ("before", "update", "is_apart"),
    [
        pytest.param([(UPDATE, HEAD)], CLOSE, False, id="its-own"),
        pytest.param([(LOCATE, None), (WRITE, BLOCK)], CLOSE, False, id="its-own-by-what-is-written"),
        pytest.param([(UPDATE, HEAD)], CLOSE.replace("'1'", "'2'"), True, id="of-another-row"),
        pytest.param([(LOCATE, None), (WRITE, BLOCK)], CLOSE.replace("'1'", "'2'"), True, id="of-another-row-than-is-written"),
        pytest.param([(LOCATE, None)], CLOSE.replace("'1'", "'2'"), False, id="where-nothing-names-the-row"),
        pytest.param([(UPDATE, HEAD)], CLOSE.replace('"L" =', """"V" = 'w', "L" ="""), True, id="of-another-column"),
        pytest.param([(UPDATE, HEAD)], CLOSE.replace('"L"', '"BL"'), False, id="of-a-column-that-is-not-captured"),
        pytest.param([(UPDATE, HEAD)], "update of another form", False, id="that-is-not-understood"),
        pytest.param([(UPDATE, HEAD.replace("set ", "set \"ID\" = '3', "))], CLOSE.replace("'1'", "'3'"), False, id="of-the-key-that-the-row-got"),
    ],
)  # fmt: skip
def test_an_update_that_cannot_close_a_statement_is_apart(
    before: list[tuple[Operation, str | None]], update: str, is_apart: bool
) -> None:
    rows = [*before, (UPDATE, update)]
    table = pa.table(
        {
            "ordinal": list(range(len(rows))),
            "scn": [10] * len(rows),
            "operation_code": pa.array([int(code) for code, _ in rows], pa.int32()),
            "sql_redo": pa.array([sql for _, sql in rows], pa.large_string()),
        }
    )
    last = len(rows) - 1
    found = updates_apart([table], {last: list(range(last))}, lambda _: GOLDEN)
    assert found == ({last} if is_apart else set())
