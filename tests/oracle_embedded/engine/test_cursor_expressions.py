"""CURSOR(query) in a select list: rows for each row, of queries inside of queries, with LOBs, through blocks, and what is refused."""

from __future__ import annotations

from typing import Any

import oracledb
import pytest


def rows(value: Any) -> Any:
    """Rows with cursors as lists of rows, and LOBs as their contents."""
    if isinstance(value, oracledb.Cursor):
        return [tuple(map(rows, row)) for row in value]
    return value.read() if isinstance(value, oracledb.LOB) else value


@pytest.fixture
def cursor(driver: oracledb.Connection) -> oracledb.Cursor:
    cursor = driver.cursor()
    cursor.execute("create table t (id number(9) primary key, parent number(9), c clob)")
    for row in ((1, None, "one"), (2, 1, "two"), (3, 1, None), (4, 3, "four")):
        cursor.execute("insert into t values (:1, :2, :3)", row)
    return cursor


def test_each_row_has_the_rows_of_its_query(cursor: oracledb.Cursor) -> None:
    cursor.execute(
        "select id, cursor(select u.id, u.c, cursor(select v.id from t v where v.parent = u.id) from t u"
        " where u.parent = t.id order by u.id desc) below from t where id <> 2 order by id"
    )
    assert [(one[0], one[1]) for one in cursor.description] == [
        ("ID", oracledb.DB_TYPE_NUMBER),
        ("BELOW", oracledb.DB_TYPE_CURSOR),
    ]
    assert rows(cursor) == [
        (1, [(3, None, [(4,)]), (2, "two", [])]),
        (3, [(4, "four", [])]),
        (4, []),
    ]


def test_a_block_fetches_from_it(cursor: oracledb.Cursor) -> None:
    found = cursor.var(int)
    cursor.execute(
        """
        declare c sys_refcursor; n number; total number := 0;
        begin
            select cursor(select id from t where parent = 1) into c from dual;
            loop fetch c into n; exit when c%notfound; total := total + n; end loop;
            close c; :1 := total;
        end;""",
        [found],
    )
    assert found.getvalue() == 5


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("select 1 from t where cursor(select 1 from dual) is null", id="in-a-condition"),
        pytest.param("select distinct cursor(select 1 from dual) from t", id="distinct"),
        pytest.param("select cursor(select 1 from dual) from t for update", id="for-update"),
    ],
)  # fmt: skip
def test_elsewhere_it_is_refused(cursor: oracledb.Cursor, statement: str) -> None:
    with pytest.raises(oracledb.DatabaseError, match="ORA-22902"):
        cursor.execute(statement)
