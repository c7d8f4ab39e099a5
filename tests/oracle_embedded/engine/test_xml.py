"""Documents are made by SQL, and clients get them as Oracle's XMLTYPE."""

from __future__ import annotations

from typing import TYPE_CHECKING

import oracledb
import pytest

from oracle_embedded.api import OracleError, OraType

if TYPE_CHECKING:
    from tests.oracle_embedded.engine.conftest import Client

_TEXT = "<a>" + "é" * 40_000 + "</a>"


def test_the_driver_reads_documents_of_any_size(driver: oracledb.Connection) -> None:
    cursor = driver.cursor()
    cursor.execute("create table t (id number primary key, d xmltype, c clob)")
    clob = driver.createlob(oracledb.DB_TYPE_CLOB)
    clob.write(_TEXT)
    cursor.execute("insert into t values (1, '<b/>', 'x')")
    cursor.execute("insert into t values (2, sys.xmltype(:1), null)", [clob])
    cursor.execute("insert into t values (3, null, 'z')")
    cursor.execute("select d, c, id from t order by id")
    described = [(name, kind) for name, kind, *_ in cursor.description]
    assert described == [
        ("D", oracledb.DB_TYPE_XMLTYPE),
        ("C", oracledb.DB_TYPE_CLOB),
        ("ID", oracledb.DB_TYPE_NUMBER),
    ]
    rows = [(d, c and c.read(), number) for d, c, number in cursor]
    assert rows == [("<b/>", "x", 1), (_TEXT, None, 2), (None, "z", 3)]
    cursor.execute("select d from t where id = 1 for update")
    assert cursor.fetchall() == [("<b/>",)]
    cursor.execute("select xmlserialize(content d as clob) from t where id = 1")
    assert cursor.description[0].type_code is oracledb.DB_TYPE_CLOB


def test_blocks_hold_documents(driver: oracledb.Connection) -> None:
    cursor = driver.cursor()
    cursor.execute("create table t (id number, d xmltype)")
    cursor.execute("declare d xmltype := xmltype('<a/>'); begin insert into t values (1, d); end;")
    cursor.execute(
        "declare d xmltype; c clob; begin select d into d from t; for r in (select d from t) loop"
        " insert into t values (2, r.d); end loop; end;"
    )
    cursor.execute("select id, d from t order by id")
    assert cursor.fetchall() == [(1, "<a/>"), (2, "<a/>")]


@pytest.mark.parametrize(
    ("expression", "document"),
    [
        ('xmlelement("name", n)', "<name>1.5</name>"),
        ("xmlelement(name, v)", "<NAME>a&lt;b &amp; &quot;c&quot; &apos;d&apos;</NAME>"),
        ('xmlelement(name "x", null)', "<x></x>"),
        ('xmlelement("x", xmlattributes(n as "n", d, null as "none"), v2, n)', '<x n="1.5" D="2020-02-29">tail1.5</x>'),
        ('xmlelement("x", xmlelement("y", t), xmltype(\'<z/>\'))', "<x><y>2020-02-29T01:02:03.500000</y><z/></x>"),
        ('xmlforest(n, v2 as "v", null as "no", xmlelement("e") as "w")', "<N>1.5</N><v>tail</v><w><e></e></w>"),
        ('xmlforest(null as "n")', None),
        ('xmlelement("s:x", 1)', "<s:x>1</s:x>"),
    ],
)  # fmt: skip
def test_elements_are_made_of_values(sql: Client, expression: str, document: str | None) -> None:
    sql("create table t (n number, v varchar2(30), v2 varchar2(9), d date, t timestamp)")
    sql("insert into t values (1.5, 'a<b & \"c\" ''d''', 'tail', date '2020-02-29', timestamp '2020-02-29 01:02:03.5')")  # fmt: skip
    outcome = sql.session.run(f"select {expression} from t")
    assert outcome.rows is not None
    assert outcome.rows.columns[0].type is OraType.OBJECT
    [[found]] = outcome.rows.fetch(9)
    assert (found and found.decode()) == document


def test_documents_are_given_as_text(sql: Client) -> None:
    sql("create table t (d xmltype, v varchar2(9))")
    sql("insert into t values ('<a/>', 'x')")
    texts = "t.d.getclobval(), t.d.getStringVal(), extract(d, '/').getclobval(), xmlelement(\"b\", d).getstringval()"
    assert sql(f"select {texts} from t") == [(b"L\0\0\0\0\0\0\0\x01", "<a/>", b"L\0\0\0\0\0\0\0\x02", "<b><a/></b>")]  # fmt: skip
    sql("declare d xmltype; s varchar2(9); begin select d into d from t; s := d.getstringval(); update t set v = s; end;")  # fmt: skip
    assert sql("select v from t") == [("<a/>",)]
    for refused, error in (
        ("d.getclobval()", "ORA-00904"),
        ("t.v.getclobval()", "ORA-00932"),
        ("extract(d, '/a/b')", "ORA-03001"),
        ("xmltype(to_clob(rpad('x', 4000, 'y')) || 'z').getstringval()", "ORA-19011"),
    ):
        with pytest.raises(OracleError, match=error):
            sql(f"select {refused} from t")


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("xmlforest(1)", "ORA-19208: parameter 1 of function XMLFOREST must be aliased"),
        ('xmlelement("x", xmlattributes(1 as "a", 2))', "ORA-19208: parameter 2 of function XMLATTRIBUTES"),
        ('xmlelement("two words", 1)', "ORA-03001"),
        ('xmlagg(xmlelement("x"))', "ORA-03001"),
        ('xmlelement("x", 1', "ORA-00907"),
    ],
)  # fmt: skip
def test_what_makes_no_document_is_refused(sql: Client, expression: str, error: str) -> None:
    with pytest.raises(OracleError, match=error):
        sql(f"select {expression} from dual")
