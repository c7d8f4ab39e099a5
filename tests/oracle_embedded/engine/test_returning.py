"""RETURNING INTO through the driver: the bind's type decides what arrives."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import oracledb
import pytest

_TABLE = (
    "create table t (id number(9) primary key, v varchar2(20), n number, d date, ts timestamp(6), r raw(8),"
    " f binary_double, nv nvarchar2(10), c clob)"
)
_VALUES = (
    "insert into t values (1, '12', 3.5, date '2024-02-29', timestamp '2024-02-29 10:11:12.5',"
    " hextoraw('00FF'), 0.5, n'9', 'long')"
)


@pytest.fixture
def cursor(driver: oracledb.Connection) -> oracledb.Cursor:
    cursor = driver.cursor()
    cursor.execute(_TABLE)
    cursor.execute("alter session set nls_date_format = 'YYYY-MM-DD'")
    return cursor


@pytest.mark.parametrize(
    ("column", "kind", "value"),
    [
        pytest.param("v", Decimal, Decimal(12), id="text-into-number"),
        pytest.param("v", int, 12, id="text-into-int"),
        pytest.param("nv", int, 9, id="national-text-into-int"),
        pytest.param("n", str, "3.5", id="number-into-text"),
        pytest.param("n", oracledb.DB_TYPE_NVARCHAR, "3.5", id="number-into-national-text"),
        pytest.param("n", oracledb.DB_TYPE_BINARY_DOUBLE, 3.5, id="number-into-double"),
        pytest.param("f", Decimal, Decimal("0.5"), id="double-into-number"),
        pytest.param("d", str, "2024-02-29", id="date-into-text"),
        pytest.param("d", oracledb.DB_TYPE_TIMESTAMP, datetime(2024, 2, 29), id="date-into-timestamp"),
        pytest.param("ts", oracledb.DB_TYPE_DATE, datetime(2024, 2, 29, 10, 11, 12), id="timestamp-into-date"),
        pytest.param("'2024-02-28'", oracledb.DB_TYPE_DATE, datetime(2024, 2, 28), id="text-into-date"),
        pytest.param("r", str, "00FF", id="raw-into-text"),
        pytest.param("'0A'", bytes, b"\x0a", id="text-into-raw"),
        pytest.param("id", int, 1, id="as-it-is"),
        pytest.param("c", str, "long", id="clob-into-text"),
    ],
)  # fmt: skip
def test_a_returned_value_becomes_the_binds_type(
    cursor: oracledb.Cursor, column: str, kind: Any, value: Any
) -> None:
    out = cursor.var(kind)
    cursor.execute(f"{_VALUES} returning {column} into :out", out=out)
    assert out.getvalue() == [value]
    cursor.execute(f"update t set id = id where id = 1 returning {column} into :out", out=out)
    assert out.getvalue() == [value]


def test_a_rowid_comes_as_text_in_any_bind(cursor: oracledb.Cursor) -> None:
    row, text = cursor.var(oracledb.DB_TYPE_ROWID), cursor.var(str)
    cursor.execute(f"{_VALUES} returning rowid, rowid into :1, :2", [row, text])
    assert row.getvalue() == text.getvalue() == [cursor.lastrowid]


@pytest.mark.parametrize(
    ("column", "kind", "code"),
    [
        pytest.param("'twelve'", int, "ORA-01722", id="text-that-is-no-number"),
        pytest.param("d", int, "ORA-00932", id="date-into-number"),
        pytest.param("'x'", bytes, "ORA-01465", id="text-that-is-no-hex"),
    ],
)
def test_what_cannot_become_the_binds_type_fails_the_statement(
    cursor: oracledb.Cursor, column: str, kind: Any, code: str
) -> None:
    with pytest.raises(oracledb.DatabaseError, match=code):
        cursor.execute(f"{_VALUES} returning {column} into :out", out=cursor.var(kind))
    cursor.execute("select count(*) from t")
    assert cursor.fetchone() == (0,)


def test_the_driver_tells_of_a_bind_that_is_too_short(cursor: oracledb.Cursor) -> None:
    with pytest.raises(oracledb.DatabaseError, match="DPY-4002"):
        cursor.execute(f"{_VALUES} returning rpad(v, 20, 'x') into :out", out=cursor.var(str, 2))


def test_a_block_returns_in_its_binds_types(cursor: oracledb.Cursor) -> None:
    key, number = cursor.var(str), cursor.var(int)
    cursor.execute(f"begin {_VALUES} returning id, v into :1, :2; end;", [key, number])
    assert (key.getvalue(), number.getvalue()) == ("1", 12)
