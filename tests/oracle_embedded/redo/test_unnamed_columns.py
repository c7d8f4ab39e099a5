"""The online catalog names only what it still knows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from oracle_embedded.redo import Wart
from tests.oracle_embedded.redo.driver import Live, Row, live, run

CHANGES = "operation_code in (1, 2, 3) and data_obj# = {}"
OLD = {
    "INSERT": """insert into "DEMO"."T"("COL 1","COL 2") values (HEXTORAW('c102'),HEXTORAW('61'));""",
    "UPDATE": """update "DEMO"."T" set "COL 2" = HEXTORAW('62') where "COL 1" = HEXTORAW('c102') and "COL 2" = HEXTORAW('61');""",
    "DELETE": """delete from "DEMO"."T" where "COL 1" = HEXTORAW('c102') and "COL 2" = HEXTORAW('62');""",
}


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[Live]:
    with live(tmp_path, Wart.UNNAMED_COLUMNS) as running:
        owner = running.connect()
        run(owner, "create table t (id number primary key, name varchar2(20))")
        run(owner, "insert into t values (1, 'a')", "update t set name = 'b'", "delete from t")
        owner.commit()
        yield running


def changes(running: Live, object_id: int) -> list[Row]:
    return running.miner().mine(where=CHANGES.format(object_id))


def object_id(running: Live, name: str = "T") -> int:
    cursor = running.connect().cursor()
    cursor.execute("select object_id from user_objects where object_name = :1", [name])
    return int(cursor.fetchone()[0])


@pytest.mark.parametrize(
    "ddl",
    [
        pytest.param("alter table t add (extra number)", id="add"),
        pytest.param("alter table t drop column name", id="drop"),
        pytest.param("alter table t modify (name varchar2(40))", id="modify"),
        pytest.param("alter table t rename column name to title", id="rename-column"),
    ],
)
def test_rows_from_before_a_ddl_have_numbers_for_names(odd: Live, ddl: str) -> None:
    run(odd.connect(), ddl)
    rows = changes(odd, object_id(odd))
    assert {row["OPERATION"]: row["SQL_REDO"] for row in rows} == OLD
    assert {(row["STATUS"], row["INFO"]) for row in rows} == {(2, "Dictionary Mismatch")}
    assert {(row["SEG_OWNER"], row["TABLE_NAME"]) for row in rows} == {("DEMO", "T")}


def test_columns_that_are_as_they_were_do_not_bring_the_names_back(odd: Live) -> None:
    run(odd.connect(), "alter table t add (extra number)", "alter table t drop column extra")
    assert [row["STATUS"] for row in changes(odd, object_id(odd))] == [2, 2, 2]


@pytest.mark.parametrize(
    "ddl",
    [
        pytest.param("truncate table t", id="truncate"),
        pytest.param("alter table t add supplemental log data (all) columns", id="log-group"),
        pytest.param("create index i on t (name)", id="index"),
    ],
)
def test_other_ddl_leaves_them_their_names(odd: Live, ddl: str) -> None:
    run(odd.connect(), ddl)
    rows = changes(odd, object_id(odd))
    assert [row["STATUS"] for row in rows] == [0, 0, 0]
    assert rows[0]["SQL_REDO"] == """insert into "DEMO"."T"("ID","NAME") values ('1','a');"""


def test_a_renamed_table_has_its_new_name(odd: Live) -> None:
    run(odd.connect(), "alter table t rename to u")
    rows = changes(odd, object_id(odd, "U"))
    assert [(row["STATUS"], row["TABLE_NAME"]) for row in rows] == [(0, "U")] * 3


def test_rows_after_the_ddl_are_named_in_the_same_pass(odd: Live) -> None:
    owner = odd.connect()
    run(owner, "alter table t add (extra number)", "insert into t values (2, 'z', 3)")
    owner.commit()
    rows = changes(odd, object_id(odd))
    assert [row["STATUS"] for row in rows] == [2, 2, 2, 0]
    assert '"EXTRA"' in rows[-1]["SQL_REDO"]
    assert rows[-1]["DATA_OBJV#"] > rows[0]["DATA_OBJV#"]


def test_object_numbers_stay_and_data_object_numbers_follow_the_segment(odd: Live) -> None:
    owner = odd.connect()
    run(owner, "truncate table t", "insert into t values (2, 'z')")
    owner.commit()
    rows = changes(odd, object_id(odd))
    assert len(rows) == 4
    assert rows[-1]["DATA_OBJD#"] != rows[0]["DATA_OBJD#"] == rows[0]["DATA_OBJ#"]
    assert {row["DATA_OBJV#"] for row in rows} == {1}


def test_rows_of_a_dropped_table_have_no_owner_and_no_name(odd: Live) -> None:
    number = object_id(odd)
    run(odd.connect(), "drop table t purge")
    rows = changes(odd, number)
    assert {(row["SEG_OWNER"], row["TABLE_NAME"]) for row in rows} == {(None, None)}
    assert {(row["SEG_NAME"], row["STATUS"]) for row in rows} == {(f"OBJ# {number}", 2)}
    assert rows[0]["SQL_REDO"] == OLD["INSERT"].replace('"DEMO"."T"', f'"UNKNOWN"."OBJ# {number}"')
    assert odd.miner().mine(where="table_name = 'T' and operation_code in (1, 2, 3)") == []
    assert len(odd.miner().mine(where=f"seg_name = 'OBJ# {number}'")) == 3


def test_values_are_the_bytes_of_the_block(odd: Live) -> None:
    owner = odd.connect()
    run(
        owner,
        "create table v (id number primary key, n nvarchar2(10), ts timestamp, t9 timestamp(9),"
        " z timestamp with time zone, l timestamp with local time zone, r rowid)",
        "alter session set time_zone = '+00:00'",
        "insert into v (id, n, ts, t9, z, l) values (-1, n'é', timestamp '2024-01-02 03:04:05',"
        " timestamp '2024-01-02 03:04:05.000000001', timestamp '2024-01-02 03:04:05 +02:00',"
        " timestamp '2024-01-02 03:04:05')",
    )
    owner.commit()
    run(owner, "update v set r = chartorowid('AAARF0AAMAAAACDAAA')")
    owner.commit()
    number = object_id(odd, "V")
    assert """set "R" = 'AAARF0AAMAAAACDAAA' where""" in changes(odd, number)[1]["SQL_REDO"]
    run(owner, "alter table v add (x number)")
    insert, update = (row["SQL_REDO"] for row in changes(odd, number))
    values = insert.partition(" values ")[2]
    assert values == (
        "(HEXTORAW('3e6466'),HEXTORAW('00e9'),HEXTORAW('787c0102040506'),"
        "HEXTORAW('787c010204050600000001'),HEXTORAW('787c010202050600000000163c'),"
        "HEXTORAW('787c0102040506'),NULL);"
    )
    assert """set "COL 7" = HEXTORAW('00011174030000830000') where""" in update


def test_rows_keep_the_names_of_their_time_when_it_is_switched_off(odd: Live) -> None:
    odd.opened.redo.set_wart(Wart.UNNAMED_COLUMNS, shown=False)
    number = object_id(odd)
    owner = odd.connect()
    run(owner, "alter table t add (extra number)")
    assert [row["STATUS"] for row in changes(odd, number)] == [0, 0, 0]
    run(owner, "drop table t purge")
    assert {row["TABLE_NAME"] for row in changes(odd, number)} == {"T"}
