"""Rows of V$LOGMNR_CONTENTS to landing rows and the ledger, without a database."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from cdc_core.capture.logs.shown_names import shown_names
from cdc_core.capture.passes.mining import MINED_SCHEMA
from cdc_core.capture.passes.reading_position import Reading
from cdc_core.capture.passes.rows import RowReader, landing_rows
from cdc_core.errors import DecodeError, RedoUnavailableError
from cdc_core.landing.layout import REDO_SCHEMA
from cdc_core.model.identifiers import TableId
from cdc_core.model.operations import Operation
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.schema.table import Column, TableSchema

EMP = TableSchema(
    TableId("HR", "EMP"),
    Scn(1),
    (Column("ID", "NUMBER", 22, 0, 10, 0, False),),
    ("ID",),
    501,
    stored=("ID",),
)
DEPT = TableSchema(
    TableId("HR", "Dept"), Scn(1), (Column("ID", "NUMBER", 22, 0, 10, 0, False),), ("ID",), 502
)
X1, X2 = "0A00010000000001", "0B00020000000002"
WINDOW = ScnWindow(Scn(100), Scn(200))


def row(operation: int, xid: str = X1, scn: int = 150, **more: Any) -> dict[str, Any]:
    data: dict[str, Any] = {
        "scn": scn, "operation_code": operation, "rollback": 0, "csf": 0, "status": 0, "thread": 1,
        "timestamp": datetime(2026, 1, 2), "xid": xid, "username": "SCOTT",
        "rs_id": " 0x000005.00000010.0010 ",
    }  # fmt: skip
    if operation not in (Operation.START, Operation.COMMIT, Operation.ROLLBACK):
        data |= {"seg_owner": "HR", "table_name": "EMP", "data_obj": 501, "sql_redo": "…"}
    return {**data, **more}


def batch(*rows: dict[str, Any]) -> pa.RecordBatch:
    names = [field.name for field in MINED_SCHEMA]
    return pa.RecordBatch.from_pylist(
        [{name: one.get(name) for name in names} for one in rows], schema=MINED_SCHEMA
    )


def landed(*batches: pa.RecordBatch, ordinal: int = 0) -> list[dict[str, Any]]:
    reader = RowReader(ordinal, [EMP, DEPT], Reading(0, (), {}))
    found: list[dict[str, Any]] = []
    for one in reader.read(iter(batches)):
        rows = landing_rows(one, [EMP, DEPT])
        if rows is not None:
            assert rows.schema.equals(REDO_SCHEMA)
            found += rows.to_pylist()
    return found


# --- rows ---------------------------------------------------------------------------------------


def test_rows_of_captured_tables_land_with_ordinals_that_count_all_rows() -> None:
    found = landed(
        batch(row(Operation.START), row(1, sql_redo="a"), row(Operation.COMMIT)),
        batch(row(2, X2, table_name="Dept", rollback=1)),
        ordinal=3,
    )
    base = 3 << 40
    assert [(one["ordinal"], one["table_name"], one["rollback"]) for one in found] == [
        (base + 1, "EMP", False),
        (base + 3, "Dept", True),
    ]
    assert found[0]["xid"] == X1.lower()
    assert found[0]["sql_redo"] == "a"
    assert found[0]["timestamp"] == datetime(2026, 1, 2)


def test_rows_of_other_tables_and_without_a_table_do_not_land() -> None:
    other = row(1, table_name="OTHER", data_obj=9)
    nameless = row(255, seg_owner=None, table_name=None, data_obj=0)
    assert landed(batch(other, nameless, row(1, seg_owner="XX", data_obj=None))) == []


def test_a_row_that_logminer_cannot_name_is_known_by_its_object_number() -> None:
    [found] = landed(
        batch(row(1, seg_owner="UNKNOWN", table_name="OBJ# 502", data_obj=502, status=2))
    )
    assert (found["seg_owner"], found["table_name"], found["status"]) == ("HR", "Dept", 2)


@pytest.mark.parametrize("cut", range(1, 7))
def test_split_statements_are_joined_wherever_a_batch_ends(cut: int) -> None:
    rows = [
        row(1, sql_redo="one"),
        row(3, sql_redo="a", csf=1, row_id="first"),
        row(3, sql_redo="b", csf=1, row_id="later"),
        row(3, sql_redo="c", row_id="later"),
        row(1, sql_redo=None),
        row(2, sql_redo="d", csf=1),
        row(2, sql_redo="e"),
    ]
    found = landed(batch(*rows[:cut]), batch(*rows[cut:]))
    assert [one["sql_redo"] for one in found] == ["one", "abc", None, "de"]
    assert [one["ordinal"] for one in found] == [0, 1, 2, 3]
    assert found[1]["row_id"] == "first"


def test_a_statement_over_many_batches_is_one_row() -> None:
    pieces = [batch(row(1, sql_redo=letter, csf=1)) for letter in "abc"]
    assert [one["sql_redo"] for one in landed(*pieces, batch(row(1, sql_redo="d")))] == ["abcd"]


def test_a_statement_without_end_is_refused() -> None:
    with pytest.raises(DecodeError, match="no end"):
        landed(batch(row(1), row(1, csf=1)))


def test_a_hole_in_the_redo_is_refused() -> None:
    with pytest.raises(RedoUnavailableError, match=r"MISSING_SCN.*scn=170"):
        landed(batch(row(1), row(Operation.MISSING_SCN, scn=170, seg_owner=None, table_name=None)))


def test_internal_ddl_is_left_out_and_user_ddl_is_kept() -> None:
    reader = RowReader(0, [EMP], Reading(0, (), {}))
    rows = batch(
        row(Operation.DDL, info="INTERNAL DDL (PlSql=0 RecDep=1)"),
        row(Operation.DDL, info="USER DDL (PlSql=0 RecDep=0)", sql_redo="alter"),
        row(1),
    )
    [found] = reader.read(iter([rows]))
    assert found.ddl.tolist() == [1]
    assert found.is_change.tolist() == [False, False, True]
    kept = landing_rows(found, [EMP, DEPT])
    assert kept is not None
    assert kept.column("operation_code").to_pylist() == [Operation.DDL, 1]


def test_an_empty_batch_gives_nothing() -> None:
    assert landed(batch(), batch(row(1)))[0]["ordinal"] == 0


ANOTHER = 900


@pytest.mark.parametrize(
    ("objects", "shown"),
    [
        pytest.param({"EMP": 501}, "EMP", id="as-it-was"),
        pytest.param({"EMP_OLD": 501}, "EMP_OLD", id="renamed"),
        pytest.param({"EMP_OLD": 501, "EMP": ANOTHER}, "EMP_OLD", id="swapped"),
        pytest.param({"EMP": ANOTHER}, None, id="dropped-and-created-again"),
        pytest.param({}, "EMP", id="dropped-or-not-visible"),
    ],
)
def test_a_table_is_shown_under_its_objects_present_name(
    objects: dict[str, int], shown: str | None
) -> None:
    there = {TableId("HR", name): number for name, number in objects.items()}
    assert shown_names([EMP], there) == {EMP.table: TableId("HR", shown) if shown else None}


def test_partitions_of_a_renamed_table_are_taken_by_its_new_name() -> None:
    """Their rows have the partition's number; another table's rows have the captured name, and a DDL the name of its time."""
    shown = shown_names([EMP], {TableId("HR", "EMP_OLD"): 501, EMP.table: ANOTHER})
    reader = RowReader(0, [EMP], Reading(0, (), {}), shown)
    rows = [
        row(Operation.INSERT, table_name="EMP_OLD", data_obj=777, sql_redo='insert into "HR"."EMP_OLD"("ID") values (\'1\');'),
        row(Operation.INSERT, data_obj=ANOTHER, sql_redo='insert into "HR"."EMP"("ID") values (\'2\');'),
        row(Operation.DDL, data_obj=0, sql_redo="alter table emp rename to emp_old"),
    ]  # fmt: skip
    [taken] = reader.read(iter([batch(*rows)]))
    assert taken.tables.tolist() == [0, -1, 0]
    assert [one["sql_redo"] for one in landing_rows(taken, [EMP]).to_pylist()] == [  # type: ignore[union-attr]
        'insert into "HR"."EMP"("ID") values (\'1\');',
        "alter table emp rename to emp_old",
    ]
