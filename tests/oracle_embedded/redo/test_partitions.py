"""Redo of partitioned and index-organized tables: rows have the number of their segment, and no name once it is gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oracle_embedded.redo import Wart
from tests.oracle_embedded.redo.driver import Live, Row, live, run

CHANGES = "operation_code in (1, 2, 3) and (seg_owner = 'DEMO' or seg_owner is null)"
PARTITIONED = (
    "create table t (id number primary key, v varchar2(10)) partition by range (id)"
    " (partition p1 values less than (10), partition p2 values less than (20)) enable row movement"
)


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[Live]:
    with live(tmp_path, Wart.UNNAMED_COLUMNS) as running:
        run(running.connect(), PARTITIONED)
        yield running


def changes(running: Live) -> list[Row]:
    return running.miner().mine(where=CHANGES)


def numbers(running: Live) -> dict[str, int]:
    cursor = running.connect().cursor()
    cursor.execute("select nvl(subobject_name, object_name), object_id from user_objects")
    return {name: int(number) for name, number in cursor}


def write(running: Live, *statements: str) -> Any:
    owner = running.connect()
    run(owner, *statements)
    owner.commit()


def test_rows_have_the_object_number_of_their_partition(odd: Live) -> None:
    write(odd, "insert into t values (1, 'a')", "insert into t values (15, 'b')")
    known = numbers(odd)
    assert [
        (row["DATA_OBJ#"], row["DATA_OBJD#"], row["TABLE_NAME"], row["SEG_NAME"], row["SEG_TYPE"])
        for row in changes(odd)
    ] == [
        (known["P1"], known["P1"], "T", "T,P1", 19),
        (known["P2"], known["P2"], "T", "T,P2", 19),
    ]


@pytest.mark.parametrize(
    "ddl",
    [
        pytest.param("drop partition p1", id="drop"),
        pytest.param("split partition p1 at (5) into (partition p1, partition b)", id="split"),
        pytest.param("merge partitions p1, p2 into partition p1", id="merge"),
        pytest.param("exchange partition p1 with table s without validation", id="exchange"),
    ],
)
def test_rows_of_a_partition_that_is_gone_have_no_name(odd: Live, ddl: str) -> None:
    write(odd, "create table s (id number primary key, v varchar2(10))")
    write(odd, "insert into t values (1, 'a')")
    number = numbers(odd)["P1"]
    write(odd, f"alter table t {ddl}")
    [row] = changes(odd)
    assert (row["SEG_OWNER"], row["TABLE_NAME"], row["SEG_NAME"]) == (None, None, f"OBJ# {number}")
    assert (row["DATA_OBJ#"], row["STATUS"]) == (number, 2)
    assert row["SQL_REDO"].startswith(f'insert into "UNKNOWN"."OBJ# {number}"("COL 1"')


def test_an_exchange_is_one_ddl_row_of_the_partitioned_table(odd: Live) -> None:
    """No row says which rows each table has from then on: data objects change places, and the partition is another object."""
    write(odd, "create table s (id number primary key, v varchar2(10))")
    write(odd, "insert into t values (1, 'a')", "insert into s values (2, 'b')")
    before, [(placed,)] = numbers(odd), _placed(odd, "object_name = 'S'")
    write(odd, "alter table t exchange partition p1 with table s")
    rows = odd.miner().mine(where="operation_code in (1, 2, 3, 5) and seg_owner = 'DEMO'")
    assert [row["TABLE_NAME"] for row in rows if row["OPERATION"] == "DDL"] == ["T", "S", "T"]
    assert len([row for row in changes(odd) if row["TABLE_NAME"] == "S"]) == 1
    assert numbers(odd)["P1"] != before["P1"]
    assert _placed(odd, "subobject_name = 'P1'") == [(placed,)]


def _placed(running: Live, which: str) -> list[tuple[int]]:
    cursor = running.connect().cursor()
    cursor.execute(f"select data_object_id from user_objects where {which}")
    return list(cursor.fetchall())


@pytest.mark.parametrize(
    "ddl",
    ["move partition p1", "truncate partition p1", "rename partition p1 to q", "add partition values less than (30)"],
)  # fmt: skip
def test_rows_keep_their_name_where_the_segment_stays(odd: Live, ddl: str) -> None:
    write(odd, "insert into t values (1, 'a')")
    write(odd, f"alter table t {ddl}")
    assert [(row["TABLE_NAME"], row["STATUS"]) for row in changes(odd)] == [("T", 0)]


def test_a_row_that_moves_is_deleted_and_inserted(odd: Live) -> None:
    write(odd, "insert into t values (1, 'a')", "update t set id = 15")
    rows = changes(odd)
    known = numbers(odd)
    assert [(row["OPERATION"], row["DATA_OBJ#"]) for row in rows] == [
        ("INSERT", known["P1"]),
        ("DELETE", known["P1"]),
        ("INSERT", known["P2"]),
    ]
    assert rows[0]["ROW_ID"] == rows[1]["ROW_ID"] != rows[2]["ROW_ID"]


def test_taking_back_a_move_is_in_the_redo_of_both_partitions(odd: Live) -> None:
    write(odd, "insert into t values (1, 'a')")
    owner = odd.connect()
    run(owner, "update t set id = 15")
    owner.rollback()
    known = numbers(odd)
    assert [(row["OPERATION"], row["ROLLBACK"], row["DATA_OBJ#"]) for row in changes(odd)[1:]] == [
        ("DELETE", 0, known["P1"]),
        ("INSERT", 0, known["P2"]),
        ("DELETE", 1, known["P2"]),
        ("INSERT", 1, known["P1"]),
    ]


def test_the_ddl_row_has_the_name_of_the_table(odd: Live) -> None:
    write(odd, "alter table t drop partition p2")
    [row] = odd.miner().mine(where="operation_code = 5 and sql_redo like 'alter table t drop%'")
    assert (row["SEG_OWNER"], row["TABLE_NAME"]) == ("DEMO", "T")


def test_rows_of_an_index_have_its_number_and_no_address(odd: Live) -> None:
    write(odd, "create table i (id number primary key, v varchar2(10)) organization index")
    write(odd, "insert into i values (1, 'a')", "insert into i values (2, 'b')", "update i set id = id + 1", "update i set v = 'c'")  # fmt: skip
    known = numbers(odd)
    rows = changes(odd)
    assert {row["DATA_OBJ#"] for row in rows} == {known[f"SYS_IOT_TOP_{known['I']}"]}
    assert {row["ROW_ID"] for row in rows} == {"A" * 18}
    assert {row["TABLE_NAME"] for row in rows} == {"I"}
    kinds = [row["OPERATION"] for row in rows]
    assert kinds == ["INSERT"] * 2 + ["DELETE"] * 2 + ["INSERT"] * 2 + ["UPDATE"] * 2
    write(odd, "drop table i purge")
    assert {row["TABLE_NAME"] for row in changes(odd)} == {None}
