"""Which of a transaction's changes have the LOB that Oracle shows as of the commit, and which have one that nobody knows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdc_core.landing.layout import REDO_SCHEMA
from cdc_core.model.identifiers import TableId
from cdc_core.model.operations import Operation
from cdc_core.stage import missing_lobs as rules
from cdc_core.stage.lobs import missing_lobs, with_whole_lobs
from cdc_core.stage.missing_lobs import LandedLobs
from tests.stage.test_lobs import (
    DECODER,
    INSERT,
    OTHER,
    TRIM,
    UPDATE,
    WRITE,
    XID,
    block,
    insert,
    redo,
    write,
)  # fmt: skip

Row = tuple[str, int, str | None]
PART = (XID, WRITE, block(1, "L", write("part", 5)))
OF_ANOTHER = (XID, WRITE, block(2, "L", write("part", 5)))
CLOSED = (XID, UPDATE, 'update "S"."T" set "V" = \'v\' where "ID" = \'1\';')
LITERAL = (XID, UPDATE, 'update "S"."T" set "L" = \'x\' where "ID" = \'1\';')
GONE = (XID, Operation.DELETE, 'delete from "S"."T" where "ID" = \'1\';')
MOVED = (XID, UPDATE, 'update "S"."T" set "ID" = \'7\' where "ID" = \'1\';')
ARRIVED = (XID, UPDATE, 'update "S"."T" set "ID" = \'1\' where "ID" = \'7\';')
WHOLE = (XID, WRITE, block(1, "L", write("whole", 1)))
CUT = (XID, TRIM, block(1, "L", "  dbms_lob.trim(loc_c, 5);\n"))
UNREAD = (XID, UPDATE, "update something else")
UNSUPPORTED = (XID, Operation.UNSUPPORTED, "Unsupported")


def found(*rows: Row) -> list[tuple[int, bool]]:
    """The changes that are found, by the ordinals of their last rows; and is each the last of its LOB?"""
    table = redo(*rows)
    ends = {(xid, 99): 1000 for xid in (XID, OTHER)}
    whole = [
        (one.row["ordinal"], one.is_last)
        for some in missing_lobs([table], ends, DECODER.version_at)
        for one in some
    ]
    cut = [
        (one.row["ordinal"], one.is_last)
        for some in missing_lobs(
            [table.slice(at, 1) for at in range(len(rows))], ends, DECODER.version_at
        )
        for one in some
    ]
    assert sorted(cut) == sorted(whole), "wherever the rows are cut"
    return whole


@pytest.mark.parametrize(
    ("rows", "changes"),
    [
        pytest.param([PART], [(0, True)], id="one-part"),
        pytest.param([PART, PART], [(1, True)], id="calls-behind-each-other-are-one-change"),
        pytest.param([PART, CLOSED, PART], [(0, False), (2, True)], id="the-last-of-two"),
        pytest.param([PART, OF_ANOTHER, PART], [(0, False), (1, True), (2, True)], id="of-two-rows"),
        pytest.param([PART, CLOSED], [(0, True)], id="another-column-changes"),
        pytest.param([PART, LITERAL], [(0, False)], id="a-literal-follows"),
        pytest.param([PART, CLOSED, WHOLE, CUT], [(0, False)], id="a-whole-value-follows"),
        pytest.param([PART, GONE], [(0, False)], id="its-row-is-deleted"),
        pytest.param([PART, GONE, (XID, INSERT, insert(1))], [(0, False)], id="and-comes-again"),
        pytest.param([PART, MOVED], [], id="its-row-gets-another-key"),
        pytest.param([PART, ARRIVED], [], id="another-row-gets-its-key"),
        pytest.param([PART, (XID, INSERT, insert(1))], [], id="another-row-is-inserted-under-it"),
        pytest.param([PART, UNREAD], [], id="a-statement-is-not-understood"),
        pytest.param([PART, UNSUPPORTED], [], id="a-row-is-not-supported"),
        pytest.param([MOVED, PART], [(1, True)], id="what-moved-before-is-over"),
        pytest.param([PART, (OTHER, UPDATE, MOVED[2])], [(0, True)], id="another-transaction"),
        pytest.param([WHOLE, CUT], [], id="the-redo-has-it"),
        pytest.param([(XID, INSERT, insert(1)), PART], [], id="the-transaction-wrote-it"),
    ],
)  # fmt: skip
def test_the_last_change_of_a_lob_has_the_value_of_the_commit(
    rows: list[Row], changes: list[tuple[int, bool]]
) -> None:
    assert found(*rows) == changes


def test_a_row_with_a_problem_puts_the_transaction_in_doubt() -> None:
    rows = redo(PART, CLOSED)
    problems = pa.array([None, "undo-unmatched"], pa.string())
    rows = rows.set_column(rows.schema.get_field_index("problem"), "problem", problems)
    assert list(missing_lobs([rows], {(XID, 99): 1000}, DECODER.version_at)) == []


def test_so_many_wait_and_no_more() -> None:
    rows = [(XID, WRITE, block(key, "L", write("part", 5))) for key in range(1, 5)]
    stage = rules.MissingLobs(limit=2)
    some = [
        one
        for found in missing_lobs([redo(*rows)], {(XID, 99): 1000}, DECODER.version_at)
        for one in found
    ]
    for one in some:
        stage.put((XID, 99), one)
    stage.end((XID, 99))
    assert len(some) == 4
    assert len(stage.take()) == 2


def test_what_landed_stands_for_its_change_and_nothing_else(tmp_path: Path) -> None:
    """It is found by the number of the redo row, in any row group of any file."""
    texts = {5: "later", 0: 'update "S"."T" set "L" = \'the value\' where "ID" = \'1\';'}
    plain = {"scn": 1, "xid": XID, "rollback": False, "seg_owner": "S", "table_name": "T"}
    paths = []
    for number, (ordinal, sql) in enumerate(texts.items()):
        code = int(Operation.RESELECTED)
        row = {**plain, "ordinal": ordinal, "operation_code": code, "sql_redo": sql}
        other = {**row, "ordinal": 8, "operation_code": 3}
        paths.append(str(tmp_path / f"{number}.parquet"))
        with pq.ParquetWriter(paths[-1], REDO_SCHEMA) as file:
            file.write_table(pa.Table.from_pylist([other], REDO_SCHEMA))
            file.write_table(pa.Table.from_pylist([row], REDO_SCHEMA))
    landed = LandedLobs(TableId("S", "T"), paths)
    assert [landed.sql_of(at) for at in (5, 0, 5, 1, 8)] == ["later", texts[0], "later", None, None]
    assert LandedLobs(TableId("S", "U"), paths).sql_of(0) is None
    rows = redo(PART, OF_ANOTHER)
    made = pa.concat_tables(
        with_whole_lobs([rows], {(XID, 99): 1000}, DECODER.version_at, landed.sql_of)
    )
    assert made["problem"].to_pylist() == [None, "lob-incomplete"]
    [change] = DECODER(made.slice(0, 1)).to_pylist()
    assert (change["after"]["ID"], change["after"]["L"]) == (1, "the value")
