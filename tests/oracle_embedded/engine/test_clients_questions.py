"""What programs that nobody here wrote send: long and deep statements, binds of one type in the place
of another, views of what this database does not have."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import oracledb
import pytest

from oracle_embedded.api import Logon, OracleError
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


def test_return_is_returning(driver: oracledb.Connection) -> None:
    """python-oracledb takes RETURN for no RETURNING, and sends a value in its place."""
    cursor = driver.cursor()
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
        ("select xmlagg(xmltype('<a/>')) from dual", "XMLAGG"),
        ("select json_arrayagg(1) from dual", "JSON_ARRAYAGG"),
        ("select percentile_cont(0.5) within group (order by 1) from dual", "PERCENTILE_CONT"),
        ("select * from table(dbms_xplan.display)", "DBMS_XPLAN.DISPLAY"),
    ],
)
def test_what_is_missing_is_refused_by_its_name(sql: Client, statement: str, name: str) -> None:
    with pytest.raises(OracleError, match=f"ORA-03001: unimplemented feature: {name}"):
        sql(statement)


@pytest.mark.parametrize(
    ("literal", "code"),
    [
        pytest.param("interval '123' day", 1873, id="two-digits-unless-said"),
        pytest.param("interval '12345678' day(7)", 1873, id="eight-digits-of-seven"),
        pytest.param("interval '100' month", 1873, id="months"),
        pytest.param("interval '1 25:00:00' day to second", 1850, id="hours"),
        pytest.param("interval '1:70' hour to minute", 1851, id="minutes"),
        pytest.param("interval '1:60' minute to second", 1852, id="seconds"),
        pytest.param("interval '1-12' year to month", 1843, id="months-of-a-year"),
        pytest.param("interval '1' day(10)", 30088, id="no-such-precision"),
        pytest.param("to_dsinterval('1 24:00:00')", 1850, id="from-text"),
        pytest.param("cast(interval '123' day(3) as interval day to second)", 1873, id="cast"),
    ],
)
def test_fields_of_an_interval_are_in_their_range(sql: Client, literal: str, code: int) -> None:
    with pytest.raises(OracleError) as caught:
        sql.one(f"select to_char({literal}) from dual")
    assert caught.value.code == code


def test_literals_of_intervals_have_the_digits_they_say(sql: Client) -> None:
    days, minutes, rounded = sql(
        "select to_char(interval '-123 4' day(3) to hour), to_char(interval '70' minute),"
        " to_char(interval '30.12345' second(2,4)) from dual"
    )[0]
    assert days == "-000000123 04:00:00.000000000"
    assert (minutes, rounded) == ("+000000000 01:10:00.000000000", "+000000000 00:00:30.123500000")


def test_a_column_keeps_the_precision_of_its_intervals(driver: oracledb.Connection) -> None:
    cursor = driver.cursor()
    cursor.execute("create table t (d interval day(2) to second(3), y interval year to month)")
    cursor.execute("insert into t (d) values (:1)", [timedelta(days=-99, microseconds=-1500)])
    cursor.execute("select d from t")
    assert cursor.fetchall() == [(timedelta(days=-99, milliseconds=-2),)]
    for column, value in (
        ("d", "to_dsinterval('99 23:59:59.9999')"),
        ("d", "numtodsinterval(100, 'day')"),
        ("y", "numtoyminterval(1200, 'month')"),
    ):
        with pytest.raises(oracledb.DatabaseError, match="ORA-01873"):
            cursor.execute(f"insert into t ({column}) values ({value})")
    with pytest.raises(oracledb.DatabaseError, match="ORA-01873"):
        cursor.execute("insert into t (d) values (:1)", [timedelta(days=100)])
    with pytest.raises(oracledb.DatabaseError, match="ORA-01873"):
        cursor.execute("declare d interval day to second; begin d := :1; end;", [timedelta(days=100)])  # fmt: skip


def test_a_parameter_without_a_length_is_as_long_as_what_is_passed(
    driver: oracledb.Connection,
) -> None:
    cursor = driver.cursor()
    cursor.execute("create table t (c char(1000), n nchar(5), v varchar2(20))")
    cursor.execute(
        "create procedure p (c char, n nchar) is"
        " begin insert into t values (c, n, '[' || c || n || ']' || length(c)); end;"
    )
    cursor.callproc("p", ["abc", "é"])
    cursor.execute("create function f (c char) return char is begin return c || '!'; end;")
    cursor.execute("select length(c), n, v, '[' || f('x ') || ']' from t")
    assert cursor.fetchall() == [(1000, "é    ", "[abcé]3", "[x !]")]


def test_a_statement_of_execute_immediate_is_as_long_as_a_text_of_a_program(sql: Client) -> None:
    sql("create table t (id number)")
    sql(f"begin execute immediate ('insert into t values (1) /*{'x' * 4000}*/'); end;")
    sql(f"begin execute immediate 'insert into t values (2) /*{'x' * 3990}' || '*/'; end;")
    assert sql("select id from t order by id") == [("1",), ("2",)]


@pytest.mark.parametrize(
    ("document", "lax", "value"),
    [
        pytest.param("{a:1}", 1, "1", id="name-without-quotes"),
        pytest.param("{'a':'it\\'s \"b\"'}", 1, 'it\'s "b"', id="single-quotes"),
        pytest.param('{"a":TRUE,}', 1, "true", id="case-and-a-comma"),
        pytest.param("{a:.50}", 1, "0.50", id="no-digit-before-the-point"),
        pytest.param("{a:-05.}", 1, "-5", id="leading-zero"),
        pytest.param("{a:+5e3}", 1, "5E3", id="plus"),
        pytest.param("{$a_1:[1,2,], a:'x'}", 1, "x", id="comma-behind-the-last"),
        pytest.param("{a:b}", 0, None, id="value-without-quotes"),
        pytest.param("{a:0x1}", 0, None, id="no-such-number"),
        pytest.param("{a:1", 0, None, id="no-end"),
        pytest.param("[1,,2]", 0, None, id="two-commas"),
        pytest.param('{"a":NaN}', 0, None, id="not-a-number"),
        pytest.param("1", 0, None, id="a-scalar"),
    ],
)
def test_json_is_lax_unless_it_says_strict(
    sql: Client, document: str, lax: int, value: str | None
) -> None:
    text = document.replace("'", "''")
    tests = ", ".join(
        f"case when '{text}' is json {rules} then 1 else 0 end" for rules in ("", "(lax)", "strict")
    )
    found = sql(f"select {tests}, json_value('{text}', '$.a') from dual")
    assert found == [(str(lax), str(lax), "0", value)]


def test_names_may_have_to_be_unique(sql: Client) -> None:
    sql("create table t (d varchar2(20) check (d is json strict with unique keys))")
    sql("""insert into t values ('{"a":1,"b":{"a":2}}')""")
    for refused in ('{"a":1,"a":2}', "{a:1}"):
        with pytest.raises(OracleError, match="ORA-02290"):
            sql(f"insert into t values ('{refused}')")
    assert sql.one("select count(*) from dual where '{a:1,a:2}' is json without unique keys") == "1"
    assert sql.one("select count(*) from dual where '{a:1,a:2}' is json with unique keys") == "0"


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("grant sysdba to demo", id="sysdba"),
        pytest.param("grant create session, sysoper to demo", id="sysoper-among-others"),
        pytest.param("revoke sysdba from demo", id="revoke"),
        pytest.param("alter user sys identified by secret", id="password-of-sys"),
        pytest.param("alter user system account lock", id="system"),
    ],
)
def test_what_takes_sysdba_is_refused_to_others(connect: Connect, statement: str) -> None:
    with pytest.raises(OracleError, match="ORA-01031"):
        connect(ADMIN)(statement)


def test_users_of_the_dictionary_are_there(connect: Connect) -> None:
    with pytest.raises(OracleError, match="ORA-01920"):
        connect(ADMIN)("create user system identified by secret")


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        pytest.param("blob", "00ff", id="text-for-a-blob"),
        pytest.param("number", b"\x01", id="raw-for-a-number"),
        pytest.param("date", b"\x01", id="raw-for-a-date"),
        pytest.param("clob", b"\x01", id="raw-for-a-clob"),
        pytest.param("date", 1, id="number-for-a-date"),
        pytest.param("boolean", 1, id="number-for-a-boolean"),
    ],
)
@pytest.mark.parametrize("mode", ["in", "in out"])
def test_a_bind_of_a_type_that_no_parameter_takes_is_refused(
    driver: oracledb.Connection, parameter: str, value: object, mode: str
) -> None:
    cursor = driver.cursor()
    cursor.execute(f"create procedure p (v {mode} {parameter}) as begin null; end;")
    given = cursor.var(type(value), arraysize=1)
    given.setvalue(0, value)
    with pytest.raises(oracledb.DatabaseError, match=r"(?s)ORA-06550.*PLS-00306"):
        cursor.execute("begin p(:1); end;", [given])


@pytest.mark.parametrize(
    ("parameter", "value"), [("blob", b"\x01"), ("varchar2", b"\x01"), ("raw", "01"), ("clob", "x")]
)
def test_a_bind_that_becomes_the_type_of_a_parameter_is_taken(
    driver: oracledb.Connection, parameter: str, value: object
) -> None:
    cursor = driver.cursor()
    cursor.execute(f"create procedure p (v in {parameter}) as begin null; end;")
    cursor.execute("begin p(:1); end;", [value])


def test_an_out_bind_holds_what_the_client_has_room_for(driver: oracledb.Connection) -> None:
    cursor = driver.cursor()
    room = cursor.var(oracledb.DB_TYPE_RAW, 2)
    cursor.execute("begin :1 := hextoraw('0102'); end;", [room])
    assert room.getvalue() == b"\x01\x02"
    with pytest.raises(oracledb.DatabaseError, match="ORA-06502"):
        cursor.execute("begin :1 := hextoraw('010203'); end;", [room])


def test_a_time_that_is_a_parameter_has_all_digits(sql: Client) -> None:
    sql("alter session set nls_timestamp_format = 'SS.FF'")
    sql("create function f(t in timestamp) return varchar2 as begin return t; end;")
    assert sql.one("select f(timestamp '2020-01-01 00:00:01.5') from dual") == "01.500000000"


def test_an_array_has_the_type_of_its_collection(driver: oracledb.Connection) -> None:
    cursor = driver.cursor()
    cursor.execute(
        "create package p as type numbers is table of number index by binary_integer;"
        " procedure take(n in numbers); end;"
    )
    cursor.execute(
        "create package body p as procedure take(n in numbers) is begin"
        " forall i in indices of n insert into t values (n(i)); end; end;"
    )
    cursor.execute("create table t (n number)")
    cursor.callproc("p.take", [cursor.arrayvar(int, [1, 2, 3])])
    cursor.execute("select sum(n) from t")
    assert cursor.fetchall() == [(6,)]
    with pytest.raises(oracledb.DatabaseError, match="PLS-00418"):
        cursor.callproc("p.take", [cursor.arrayvar(str, ["1"])])


def test_an_administrator_changes_the_password_of_another_user(
    database: OpenDatabase, server: EmbeddedServer
) -> None:
    """Without the old one; whoever has no right to needs it for itself alone."""
    engine = database.engine
    admin = engine.open_session(Logon(ADMIN))
    admin.set_password("another1", "DEMO")
    owner = oracledb.connect(user="DEMO", password="another1", dsn=server.dsn)
    owner.changepassword("another1", "third1")
    owner.close()
    with pytest.raises(oracledb.DatabaseError, match="ORA-01017"):
        oracledb.connect(user="DEMO", password="another1", dsn=server.dsn)
    plain = engine.open_session(Logon("DEMO"))
    with pytest.raises(OracleError, match="ORA-01031"):
        plain.set_password("fourth1", ADMIN)


@pytest.mark.parametrize(
    ("method", "size"), [("", 20), (", 'MD5'", 16), (", 'SHA256'", 32), (", 'SHA512'", 64)]
)
def test_a_hash_is_as_long_as_its_method_says(sql: Client, method: str, size: int) -> None:
    sql(f"create table h as select standard_hash('x'{method}) h from dual")
    assert sql.one("select data_length from user_tab_columns where table_name = 'H'") == str(size)
    assert len(sql.one("select h from h")) == 2 * size


def test_dual_has_a_rowid(sql: Client) -> None:
    assert sql.one("select rowid from dual") == "AAAAB0AABAAAAOhAAA"
