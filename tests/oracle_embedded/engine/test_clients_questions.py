"""What programs that nobody here wrote send: long and deep statements, binds of one type in the place
of another, views of what this database does not have."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import oracledb
import pytest

from oracle_embedded.api import OracleError
from oracle_embedded.database import ADMIN

if TYPE_CHECKING:
    from oracle_embedded.database import OpenDatabase
    from oracle_embedded.server import EmbeddedServer
    from tests.oracle_embedded.engine.conftest import Client, Connect


@pytest.mark.parametrize(
    ("query", "value"),
    [
        pytest.param("select " + "(" * 900 + "1" + ")" * 900 + " from dual", "1", id="parentheses"),
        pytest.param("select " + "+".join(["1.5"] * 300) + " from dual", "450", id="sum"),
        pytest.param("select " + "-".join(["1.5"] * 300) + " from dual", "-447", id="difference"),
        pytest.param("select 8-2+3-4 from dual", "5", id="signs-in-turn"),
        pytest.param("select length(" + "||".join(["'ab'"] * 1300) + ") from dual", "2600", id="text"),
        pytest.param("select null||'a'||null||'b' from dual", "ab", id="null-is-nothing"),
        pytest.param("select null||null||'' from dual", None, id="nothing-is-null"),
        pytest.param("select count(*) from (" + " union all ".join(["select 1 a from dual"] * 1500) + ")", "1500", id="union-all"),
        pytest.param("select count(*) from (" + " union ".join(f"select {n} a from dual" for n in range(900)) + ")", "900", id="union"),
        pytest.param("select 93as n from dual", "93", id="number-and-word"),
        pytest.param(r"select u'a\00e9\\b' from dual", r"aé\b", id="unicode-literal"),
    ],
)  # fmt: skip
def test_long_and_deep_statements_run(sql: Client, query: str, value: str | None) -> None:
    assert sql.one(query) == value


@pytest.mark.parametrize(
    "condition",
    [
        pytest.param("d - :1 > 3", id="days-between"),
        pytest.param("(d - :1) * 24 > 72", id="hours-between"),
        pytest.param("to_number(d - :1) > 3", id="as-a-number"),
        pytest.param("d > :1 + 3", id="date-plus-days"),
        pytest.param("case when id = 1 then :1 else d end <> d", id="case"),
    ],
)
def test_a_bind_has_the_type_that_the_client_says(sql: Client, condition: str) -> None:
    sql("create table t (id number, d date)")
    sql("insert into t values (1, date '2020-01-10')")
    assert sql(f"select id from t where {condition}", datetime(2020, 1, 1)) == [("1",)]
    assert sql(f"update t set id = 2 where {condition}", datetime(2020, 1, 1)) == 1


def test_return_is_returning(database: OpenDatabase, server: EmbeddedServer) -> None:
    """python-oracledb takes RETURN for no RETURNING, and sends a value in its place."""
    dsn = f"127.0.0.1:{server.port}/ORCLPDB1"
    with oracledb.connect(user="DEMO", password=database.password("DEMO"), dsn=dsn) as connection:
        cursor = connection.cursor()
        cursor.execute("create table t (id number)")
        cursor.execute("insert into t values (7) return id into :1", [cursor.var(int)])
        cursor.execute("select id from t")
        assert cursor.fetchall() == [(7,)]


def test_materialized_views_and_temporary_tables_are_named_as_such(sql: Client) -> None:
    sql("create table t (id number primary key)")
    sql("create materialized view m as select id from t")
    sql("create global temporary table g (id number)")
    kinds = sql("select object_name, object_type, temporary from user_objects where object_type <> 'INDEX' order by 1, 2")  # fmt: skip
    assert kinds == [
        ("G", "TABLE", "Y"),
        ("M", "MATERIALIZED VIEW", "N"),
        ("M", "TABLE", "N"),
        ("T", "TABLE", "N"),
    ]
    own = sql.session.username
    assert sql.one("select comments from user_mview_comments") == f"snapshot table for snapshot {own}.M"  # fmt: skip
    sql("comment on materialized view m is 'sums'")
    assert sql("select comments from user_mview_comments") == [("sums",)]
    assert sql("select table_name from user_tab_comments order by 1") == [("G",), ("T",)]
    assert sql("select tname, tabtype from tab order by 1") == [("G", "TABLE"), ("M", "TABLE"), ("T", "TABLE")]  # fmt: skip


def test_views_of_what_is_not_there_are_empty(connect: Connect) -> None:
    admin = connect(ADMIN)
    for name in ("all_queue_tables", "user_mview_logs", "dba_context", "v$restore_point"):
        assert admin(f"select * from {name}") == []


def test_short_names_are_the_users_views(sql: Client) -> None:
    sql("create table t (a number, b date)")
    assert sql("select column_name, num_buckets from cols order by column_id") == [("A", None), ("B", None)]  # fmt: skip
    assert sql("select table_name from tabs") == [("T",)]
    assert sql.one("select count(*) from dict where table_name = 'ALL_TABLES'") == "1"
    sql("create table tabs (own number)")
    assert sql("select own from tabs") == []


def test_db_version_tells_release_and_compatibility(sql: Client) -> None:
    sql("create table seen (a varchar2(20), b varchar2(20))")
    sql("declare a varchar2(20); b varchar2(20); begin dbms_utility.db_version(a, b); insert into seen values (a, b); end;")  # fmt: skip
    assert sql("select * from seen") == [("19.3.0.0.0", "19.0.0")]
    with pytest.raises(OracleError, match="PLS-00306"):
        sql("begin dbms_utility.db_version(1); end;")


def test_dependencies_and_arguments_are_listed(sql: Client) -> None:
    sql("create table t (id number)")
    sql("create view v as select id from t where exists (select 1 from t)")
    sql("create function f (a in number, b in out varchar2) return date as begin return sysdate; end;")  # fmt: skip
    sql("create package p as procedure q (c sys_refcursor default null); end;")
    sql("create package body p as procedure q (c sys_refcursor default null) as begin null; end; end;")  # fmt: skip
    assert sql("select name, type, referenced_name, referenced_type from user_dependencies order by 1") == [
        ("P", "PACKAGE BODY", "P", "PACKAGE"),
        ("V", "VIEW", "T", "TABLE"),
    ]  # fmt: skip
    listed = "select package_name, object_name, argument_name, position, data_type, in_out, defaulted from user_arguments order by 2, 4"  # fmt: skip
    assert sql(listed) == [
        (None, "F", None, "0", "DATE", "OUT", "N"),
        (None, "F", "A", "1", "NUMBER", "IN", "N"),
        (None, "F", "B", "2", "VARCHAR2", "IN/OUT", "N"),
        ("P", "Q", "C", "1", "REF CURSOR", "IN", "Y"),
    ]


def test_a_sort_key_that_two_tables_have_is_the_selected_column(sql: Client) -> None:
    sql("create table a (id number, k number)")
    sql("create table b (id number, k number)")
    sql("insert into a values (1, 2)")
    sql("insert into b values (1, 1)")
    assert sql("select a.id, b.k from a, b where a.id = b.id order by k") == [("1", "1")]
    with pytest.raises(OracleError, match="ORA-00918"):
        sql("select a.id from a, b order by k")


def test_the_table_of_a_materialized_view_may_stay(sql: Client) -> None:
    sql("create table t (id number)")
    sql("create materialized view m as select id from t")
    sql("drop materialized view m preserve table")
    assert sql("select * from user_mviews") == []
    sql("insert into m values (1)")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        pytest.param("round(sin(1), 30)", ".84147098480789650665250232163", id="sin"),
        pytest.param("cos(0)", "1", id="cos"),
        pytest.param("round(tan(1), 30)", "1.557407724654902230506974807458", id="tan"),
        pytest.param("round(4 * atan(1), 30)", "3.14159265358979323846264338328", id="atan"),
        pytest.param("round(atan2(1, -1), 20)", "2.35619449019234492885", id="atan2"),
        pytest.param("round(acos(-1) + asin(0), 20)", "3.14159265358979323846", id="acos"),
        pytest.param("round(sinh(1) + cosh(1) - exp(1), 30) + tanh(0)", "0", id="hyperbolic"),
        pytest.param("case when dbms_random.value between 0 and 1 then 1 end", "1", id="random"),
        pytest.param("trunc(dbms_random.value(5, 6))", "5", id="random-between"),
        pytest.param("rawtohex(utl_i18n.string_to_raw('é', 'AL32UTF8'))", "C3A9", id="to-raw"),
        pytest.param("utl_i18n.raw_to_char('C3A9', 'AL32UTF8')", "é", id="of-raw"),
        pytest.param("translate('a' using nchar_cs)", "a", id="translate-using"),
        pytest.param("json_array(1, 'a\"', null)", '[1,"a\\""]', id="json-array"),
        pytest.param("json_object('a' value .5, key 'b' value null, 'c' value json_array(1) returning varchar2(90))", '{"a":0.5,"b":null,"c":[1]}', id="json-object"),
        pytest.param("json_object('d' value date '2020-01-02', 'n' value null absent on null)", '{"d":"2020-01-02T00:00:00"}', id="json-absent"),
        pytest.param("json_value(json_object('v' value '[1,2]' format json), '$.v[1]')", "2", id="json-nested"),
        pytest.param("case when json_equal('{\"a\":1,\"b\":[]}', '{\"b\":[],\"a\":1.0}' error on error) then 1 end", "1", id="json-equal"),
    ],
)  # fmt: skip
def test_functions_that_clients_call(sql: Client, expression: str, value: str) -> None:
    assert sql.one(f"select {expression} from dual") == value


def test_a_subquery_may_count_levels_and_group_by_the_row_around_it(sql: Client) -> None:
    sql("create table t (v varchar2(10))")
    sql.many("insert into t values (:1)", [("abc",), ("xy",)])
    levels = "select level n, substr(t.v, level, 1) s from dual connect by level <= length(t.v)"
    reverse = f"(select listagg(s) within group (order by n desc) from ({levels}) group by t.v)"
    assert sql(f"select {reverse} from t order by 1") == [("cba",), ("yx",)]
    assert sql("select v from t where v likec 'a%' and v not like4 'x%'") == [("abc",)]


@pytest.mark.parametrize(
    ("limits", "ids"),
    [
        ("order by v fetch first 2 rows with ties", "1 2 3"),
        ("order by v desc fetch first 1 row with ties", "4 5"),
        ("order by v, id offset 1 rows fetch next 2 rows with ties", "2 3"),
        ("order by v offset 1 rows fetch next 1 rows with ties", "2 3"),
        ("order by id fetch first 30 percent rows only", "1 2"),
        ("order by v fetch first 40 percent rows with ties", "1 2 3"),
        ("order by id offset 3 rows fetch first 40 percent rows only", "4 5"),
        ("fetch first 0 percent rows only", ""),
    ],
)
def test_rows_are_limited_with_ties_and_by_share(sql: Client, limits: str, ids: str) -> None:
    sql("create table t (id number, v number)")
    sql.many("insert into t values (:1, :2)", [(1, 10), (2, 20), (3, 20), (4, 30), (5, 30)])
    assert " ".join(sorted(row[0] for row in sql(f"select id from t {limits}"))) == ids


def test_ties_of_groups_and_of_set_operations(sql: Client) -> None:
    sql("create table t (id number, v number)")
    sql.many("insert into t values (:1, :2)", [(1, 10), (2, 20), (3, 20), (4, 30), (5, 30)])
    groups = "select v, count(*) n from t group by v order by count(*) desc fetch first 1 rows with ties"  # fmt: skip
    assert sorted(sql(groups)) == [("20", "2"), ("30", "2")]
    both = "select v from t union all select v from t order by 1 fetch first 3 rows with ties"
    assert [row[0] for row in sql(both)] == ["10", "10", "20", "20", "20", "20"]


def test_a_materialized_view_has_the_key_of_its_table(sql: Client) -> None:
    sql("create table t (id number primary key, v number)")
    sql("create materialized view whole as select id x, v from t where v > 0")
    sql("create materialized view part as select v from t")
    keys = "select c.table_name, k.column_name from user_constraints c join user_cons_columns k on k.constraint_name = c.constraint_name where c.constraint_type = 'P' order by 1"  # fmt: skip
    assert sql(keys) == [("T", "ID"), ("WHOLE", "X")]


def test_a_transaction_has_a_name(sql: Client) -> None:
    sql("create table seen (a varchar2(30), b varchar2(30))")
    sql("declare a varchar2(30); b varchar2(30); begin a := dbms_transaction.local_transaction_id; b := dbms_transaction.local_transaction_id(true); insert into seen values (a, b); end;")  # fmt: skip
    ((before, after),) = sql("select a, b from seen")
    assert before is None
    assert [part.isdigit() for part in after.split(".")] == [True, True, True]


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("create profile p limit sessions_per_user 1", "CREATE PROFILE"),
        ("create database link l using 'x'", "CREATE DATABASE LINK"),
        ("create table t (id number) compress for oltp", "COMPRESS FOR"),
        ("select json_arrayagg(1) from dual", "JSON_ARRAYAGG"),
        ("select percentile_cont(0.5) within group (order by 1) from dual", "PERCENTILE_CONT"),
        ("select * from table(dbms_xplan.display)", "DBMS_XPLAN.DISPLAY"),
    ],
)
def test_what_is_missing_is_refused_by_its_name(sql: Client, statement: str, name: str) -> None:
    with pytest.raises(OracleError, match=f"ORA-03001: unimplemented feature: {name}"):
        sql(statement)
