"""Temporary tables, materialized views, indexes on expressions, multi-table inserts, serializable transactions."""

from __future__ import annotations

from collections.abc import Iterator

import oracledb
import pytest

from oracle_embedded.database import CAPTURE, OpenDatabase
from oracle_embedded.server import EmbeddedServer


@pytest.fixture
def dsn(server: EmbeddedServer) -> str:
    return f"127.0.0.1:{server.port}/ORCLPDB1"


@pytest.fixture
def pair(
    database: OpenDatabase, dsn: str
) -> Iterator[tuple[oracledb.Connection, oracledb.Connection]]:
    password = database.password("DEMO")
    with (
        oracledb.connect(user="DEMO", password=password, dsn=dsn) as one,
        oracledb.connect(user="DEMO", password=password, dsn=dsn) as other,
    ):
        yield one, other


Pair = tuple[oracledb.Connection, oracledb.Connection]


def mined(database: OpenDatabase, server: EmbeddedServer) -> list[str]:
    """SQL_REDO of all row changes, from the log that is written to now."""
    password = database.password(CAPTURE)
    with oracledb.connect(user=CAPTURE, password=password, dsn=server.dsn) as connection:
        cursor = connection.cursor()
        cursor.execute("alter session set container = cdb$root")
        cursor.execute("select member from v$logfile f join v$log l on f.group# = l.group# where l.status = 'CURRENT'")  # fmt: skip
        [(member,)] = cursor.fetchall()
        cursor.callproc("dbms_logmnr.add_logfile", [member, 1])
        cursor.execute("begin dbms_logmnr.start_logmnr(options => dbms_logmnr.dict_from_online_catalog); end;")  # fmt: skip
        cursor.execute("select sql_redo from v$logmnr_contents where operation_code in (1, 2, 3) and seg_owner = 'DEMO'")  # fmt: skip
        return [text for (text,) in cursor]


def test_rows_of_temporary_tables_are_a_session_s_own_and_in_no_redo(
    pair: Pair, database: OpenDatabase, server: EmbeddedServer
) -> None:
    one, other = (connection.cursor() for connection in pair)
    one.execute("create global temporary table g (id number primary key) on commit delete rows")
    one.execute("create global temporary table p (id number) on commit preserve rows")
    one.execute("create table kept (id number)")
    one.execute("insert all into g values (1) into p values (2) into kept values (3) select * from dual")  # fmt: skip
    with pytest.raises(oracledb.IntegrityError, match="ORA-00001"):
        one.execute("insert into g values (1)")
    other.execute("insert into p values (20)")
    count = "select (select count(*) from g), (select sum(id) from p), (select count(*) from kept) from dual"
    assert one.execute(count).fetchone() == (1, 2, 1)
    assert other.execute(count).fetchone() == (0, 20, 0)
    pair[0].commit()
    assert one.execute(count).fetchone() == (0, 2, 1)
    one.execute("truncate table p")
    assert one.execute(count).fetchone() == (0, None, 1)
    assert other.execute(count).fetchone() == (0, 20, 1)
    one.execute("select table_name, temporary, duration from user_tables where temporary = 'Y' order by 1")  # fmt: skip
    assert one.fetchall() == [("G", "Y", "SYS$TRANSACTION"), ("P", "Y", "SYS$SESSION")]
    assert [text.split("(")[0] for text in mined(database, server)] == ['insert into "DEMO"."KEPT"']


def test_a_multi_table_insert_takes_all_or_the_first_that_is_true(pair: Pair) -> None:
    cursor = pair[0].cursor()
    for name in ("low", "high", "rest"):
        cursor.execute(f"create table {name} (n number, note varchar2(5) default 'new')")
    branches = "when n < 3 then into low (n) values (n) when n < 5 then into high (n) values (n * 10) else into rest values (n, null)"
    rows = "select level n from dual connect by level <= 5"
    cursor.execute(f"insert all {branches} {rows}")
    assert cursor.rowcount == 7
    cursor.execute(f"insert first {branches} {rows}")
    assert cursor.rowcount == 5
    assert sorted(cursor.execute("select n from high")) == [(10,), (20,), (30,), (30,), (40,), (40,)]  # fmt: skip
    assert cursor.execute("select * from rest").fetchall() == [(5, None)] * 2
    assert cursor.execute("select distinct note from low").fetchall() == [("new",)]


def test_a_materialized_view_is_a_table_that_is_filled_on_demand(pair: Pair) -> None:
    cursor = pair[0].cursor()
    cursor.execute("create table t (kind varchar2(2), n number)")
    cursor.executemany("insert into t values (:1, :2)", [("a", 1), ("a", 2), ("b", 5)])
    cursor.execute(
        "create materialized view sums build immediate refresh complete on demand"
        " as select kind, sum(n) total from t group by kind"
    )
    cursor.execute("insert into t values ('b', 1)")
    with pytest.raises(oracledb.DatabaseError, match="ORA-01732"):
        cursor.execute("delete sums")
    assert sorted(cursor.execute("select * from sums")) == [("a", 3), ("b", 5)]
    cursor.callproc("dbms_mview.refresh", ["SUMS", "C"])
    assert sorted(cursor.execute("select * from sums")) == [("a", 3), ("b", 6)]
    assert cursor.execute("select mview_name from user_mviews").fetchall() == [("SUMS",)]
    with pytest.raises(oracledb.DatabaseError, match="ORA-12083"):
        cursor.execute("drop table sums")
    cursor.execute("drop materialized view sums")


def test_indexes_are_on_expressions_and_bitmaps(pair: Pair) -> None:
    cursor = pair[0].cursor()
    cursor.execute("create table t (name varchar2(10), kind varchar2(2))")
    cursor.execute("create index t_upper on t (upper(name), kind desc)")
    cursor.execute("create bitmap index t_kind on t (kind)")
    cursor.execute("select index_name, index_type from user_indexes order by 1")
    assert cursor.fetchall() == [("T_KIND", "BITMAP"), ("T_UPPER", "FUNCTION-BASED NORMAL")]
    with pytest.raises(oracledb.DatabaseError, match="ORA-00904"):
        cursor.execute("create index t_odd on t (upper(nope))")
    cursor.execute("drop index t_upper")


def test_a_serializable_transaction_sees_one_moment_and_refuses_to_overwrite(pair: Pair) -> None:
    one, other = (connection.cursor() for connection in pair)
    one.execute("create table t (id number, n number)")
    one.executemany("insert into t values (:1, 0)", [(1,), (2,)])
    pair[0].commit()
    one.execute("set transaction isolation level serializable")
    other.execute("update t set n = 5 where id = 1")
    pair[1].commit()
    assert sorted(one.execute("select n from t")) == [(0,), (0,)]
    one.execute("update t set n = 1 where id = 2")
    with pytest.raises(oracledb.DatabaseError, match="ORA-08177"):
        one.execute("update t set n = 1 where id = 1")
    pair[0].commit()
    assert sorted(one.execute("select n from t")) == [(1,), (5,)]


def test_rows_are_grouped_by_several_sets(pair: Pair) -> None:
    cursor = pair[0].cursor()
    cursor.execute("create table t (r varchar2(2), p varchar2(2), n number)")
    rows = [("a", "x", 1), ("a", "y", 2), ("b", "x", 4)]
    cursor.executemany("insert into t values (:1, :2, :3)", rows)
    cursor.execute(
        "select r, p, sum(n), grouping(p), grouping_id(r, p) from t group by rollup(r, p)"
        " having sum(n) <> 4 order by r, 3"
    )
    assert cursor.fetchall() == [
        ("a", "x", 1, 0, 0), ("a", "y", 2, 0, 0), ("a", None, 3, 1, 1), (None, None, 7, 1, 3),
    ]  # fmt: skip
    cursor.execute("select r, p, count(*) from t group by cube(r, p)")
    assert len(cursor.fetchall()) == 8
    cursor.execute("select r, count(*) from t group by p, grouping sets ((r), ()) order by 1, 2")
    assert cursor.fetchall() == [("a", 1), ("a", 1), ("b", 1), (None, 1), (None, 2)]
