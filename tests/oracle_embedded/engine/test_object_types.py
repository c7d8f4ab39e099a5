"""Object types and collections: made, stored, changed in blocks, sent and fetched by the driver, and what is refused."""

from __future__ import annotations

from typing import Any

import oracledb
import pytest

from tests.oracle_embedded.engine.conftest import Client


@pytest.fixture
def cursor(driver: oracledb.Connection) -> oracledb.Cursor:
    cursor = driver.cursor()
    cursor.execute("create type part_t as object (n number, s varchar2(10));")
    cursor.execute("create type parts_t as varray(3) of part_t")
    cursor.execute("create type numbers_t as table of number")
    cursor.execute(
        "create type whole_t as object (a number(9), b char(3), c clob, d nvarchar2(9), one part_t, many parts_t, numbers numbers_t)"
    )
    cursor.execute(
        "create table t (id number(9) primary key, w whole_t, n numbers_t) nested table n store as n_t"
    )
    return cursor


def plain(value: Any) -> Any:
    """A value with objects as tuples and collections as lists."""
    if isinstance(value, oracledb.LOB):
        return value.read()
    if not isinstance(value, oracledb.DbObject):
        return value
    if value.type.iscollection:
        return [plain(item) for item in value.aslist()]
    return tuple(plain(getattr(value, item.name)) for item in value.type.attributes)


_FULL = "whole_t(1, 'x', to_clob('text'), n'é', part_t(2, 'two'), parts_t(part_t(3, 'a'), null), numbers_t(4, null))"
_ROW = (1, "x  ", "text", "é", (2, "two"), [(3, "a"), None], [4, None])


def test_values_are_the_same_from_sql_and_from_the_driver(
    cursor: oracledb.Cursor, driver: oracledb.Connection
) -> None:
    cursor.execute(f"insert into t values (1, {_FULL}, numbers_t(7, 8))")
    cursor.execute("select w, n from t")
    row = cursor.fetchone()
    assert row is not None
    fetched, numbers = row
    assert (plain(fetched), plain(numbers)) == (_ROW, [7, 8])
    cursor.execute("insert into t (id, w) values (2, :1)", [fetched])
    made = driver.gettype("WHOLE_T").newobject()
    made.B = "y"
    part = driver.gettype("PART_T").newobject()
    part.N, part.S = 2, "two"
    made.MANY = driver.gettype("PARTS_T").newobject([part])
    cursor.execute("insert into t (id, w) values (3, :1)", [made])
    cursor.execute("select w, n from t where id > 1 order by id")
    assert [tuple(map(plain, row)) for row in cursor] == [
        (_ROW, None),
        ((None, "y  ", None, None, None, [(2, "two")], None), None),
    ]
    cursor.execute("select x.id, x.w.one.s, e.column_value from t x, table(x.n) e")
    assert cursor.fetchall() == [(1, "two", 7), (1, "two", 8)]
    cursor.execute("select x.id, e.n from t x, table(x.w.many) e where x.w.one is null")
    assert cursor.fetchall() == [(3, 2)]


def test_blocks_change_parts_of_them(cursor: oracledb.Cursor, driver: oracledb.Connection) -> None:
    cursor.execute(f"insert into t (id, w) values (1, {_FULL})")
    out = cursor.var(driver.gettype("WHOLE_T"))
    cursor.execute(
        """
        declare
            v whole_t; r t%rowtype; empty part_t;
        begin
            if empty is not null then raise value_error; end if;
            select w into v from t;
            v.one.n := v.one.n + 1; v.numbers.extend; v.numbers(3) := 5;
            update t set w = v;
            select * into r from t;
            r.id := 2; r.w.many := parts_t();
            insert into t values r;
            :1 := r.w;
        end;""",
        [out],
    )
    changed: tuple[Any, ...] = (1, "x  ", "text", "é", (3, "two"), [], [4, None, 5])
    assert plain(out.getvalue()) == changed
    cursor.execute("select w from t order by id")
    assert plain(cursor.fetchall()[1][0]) == changed
    with pytest.raises(oracledb.DatabaseError, match="ORA-06530"):
        cursor.execute("declare v part_t; begin v.n := 1; end;")


def test_types_of_packages_are_binds(cursor: oracledb.Cursor, driver: oracledb.Connection) -> None:
    cursor.execute(
        "create package p as type rec is record (n number, flag boolean, i pls_integer);"
        " type list is table of rec index by binary_integer; procedure turn (l in out list); end;"
    )
    cursor.execute(
        "create package body p as procedure turn (l in out list) is begin"
        " for i in 1 .. l.count loop l(i).flag := not l(i).flag; l(i).i := l(i).i + 1; end loop; l(-5) := l(1); end; end;"
    )
    kind = driver.gettype("P.LIST")
    given, record = kind.newobject(), driver.gettype("P.REC").newobject()
    record.N, record.FLAG, record.I = 1, True, 3
    given.setelement(1, record)
    turned = cursor.callproc("p.turn", [given])[0]
    found = {key: plain(value) for key, value in turned.asdict().items()}
    assert found == {-5: (1, False, 4), 1: (1, False, 4)}
    assert [one.name for one in driver.gettype("T%ROWTYPE").attributes] == ["ID", "W", "N"]


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        pytest.param("select parts_t(null, null, null, null) from dual", 22909, id="too-many-elements"),
        pytest.param("select part_t(1) from dual", 2315, id="too-few-attributes"),
        pytest.param("select part_t(1, 'longer than ten') from dual", 22814, id="too-long-an-attribute"),
        pytest.param("insert into t (id, w) values (1, part_t(1, 'x'))", 932, id="another-type"),
        pytest.param("select * from table(part_t(1, 'x'))", 22905, id="no-collection"),
        pytest.param("drop type part_t", 2303, id="type-in-use"),
        pytest.param("create or replace type numbers_t as table of date", 2303, id="replaced-in-use"),
        pytest.param("drop type nowhere_t", 4043, id="no-such-type"),
        pytest.param("create table u (a nowhere_t)", 902, id="column-of-no-type"),
        pytest.param("create type m_t as object (n number, member function f return number)", 3001, id="methods"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_its_code(
    cursor: oracledb.Cursor, statement: str, code: int
) -> None:
    with pytest.raises(oracledb.DatabaseError) as raised:
        cursor.execute(statement).fetchall()
    assert raised.value.args[0].code == code


def test_the_dictionary_knows_them(cursor: oracledb.Cursor, sql: Client) -> None:
    cursor.execute("create type bad_t as object (n nowhere_t)")
    assert cursor.warning is not None
    kinds = sql("select type_name, typecode, attributes, incomplete from user_types order by 1")
    assert kinds[0] == ("BAD_T", "OBJECT", "0", "YES")
    assert kinds[-1] == ("WHOLE_T", "OBJECT", "7", "NO")
    assert sql("select attr_type_owner, attr_type_name, length from user_type_attrs where type_name = 'PART_T' order by attr_no") == [(None, "NUMBER", None), (None, "VARCHAR2", "10")]  # fmt: skip
    assert sql("select coll_type, upper_bound, elem_type_name from user_coll_types where type_name = 'PARTS_T'") == [("VARYING ARRAY", "3", "PART_T")]  # fmt: skip
    assert sql("select data_type, data_type_owner from user_tab_columns where table_name = 'T' and column_name = 'W'") == [("WHOLE_T", "DEMO")]  # fmt: skip
    cursor.execute("drop type bad_t")
    cursor.execute("drop table t purge")
    cursor.execute("drop type whole_t")
    assert sql.one("select count(*) from user_types") == "3"


def test_lists_of_sys_are_binds_without_a_type_of_ones_own(
    driver: oracledb.Connection,
) -> None:
    kind = driver.gettype("SYS.ODCIVARCHAR2LIST")
    cursor = driver.cursor()
    cursor.execute(
        "select column_value, rownum from table(:1) order by 1", [kind.newobject(["b", "a"])]
    )
    assert [value for value, _ in cursor] == ["a", "b"]
    numbers = driver.gettype("SYS.ODCINUMBERLIST").newobject([3, 4])
    assert cursor.execute("select sum(column_value) from table(:1)", [numbers]).fetchone() == (7,)


def test_tables_of_objects_and_of_documents_are_in_views_of_their_own(cursor: Any) -> None:
    """Source: Oracle Database Reference 19c, ALL_TABLES ("relational tables"), ALL_OBJECT_TABLES, ALL_XML_TABLES."""
    cursor.execute("CREATE TYPE row_t AS OBJECT (id NUMBER(9), name VARCHAR2(20))")
    cursor.execute("CREATE TABLE of_rows OF row_t (PRIMARY KEY (id))")
    cursor.execute("CREATE TABLE of_documents OF XMLTYPE")
    cursor.execute("INSERT INTO of_rows VALUES (1, 'a')")
    cursor.execute("INSERT INTO of_documents VALUES (XMLTYPE('<a/>'))")
    assert cursor.execute("SELECT * FROM of_rows").fetchall() == [(1, "a")]
    names = "table_name IN ('OF_ROWS', 'OF_DOCUMENTS')"
    assert cursor.execute(f"SELECT 1 FROM user_tables WHERE {names}").fetchall() == []
    cursor.execute(f"SELECT table_name, table_type FROM user_object_tables WHERE {names}")
    assert dict(cursor.fetchall()) == {"OF_ROWS": "ROW_T", "OF_DOCUMENTS": "XMLTYPE"}
    assert cursor.execute("SELECT table_name FROM user_xml_tables").fetchall() == [
        ("OF_DOCUMENTS",)
    ]
    with pytest.raises(Exception, match="ORA-00902"):
        cursor.execute("CREATE TABLE of_nothing OF no_such_type")
