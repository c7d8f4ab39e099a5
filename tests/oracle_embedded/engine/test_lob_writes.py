"""LOBs of rows written through their locators, by the driver: only while the row is locked."""

from __future__ import annotations

from typing import Any

import oracledb
import pytest

_NOT_LOCKED = "ORA-22920"


@pytest.fixture
def cursor(driver: oracledb.Connection) -> oracledb.Cursor:
    cursor = driver.cursor()
    cursor.execute("create table t (id number(9) primary key, c clob, n nclob, b blob)")
    cursor.execute("insert into t values (1, 'some text', n'n\u00e9', hextoraw('00010203'))")
    driver.commit()
    return cursor


def contents(cursor: Any) -> Any:
    cursor.execute("select c, n, b from t order by id")
    return [tuple(lob and lob.read() for lob in row) for row in cursor.fetchall()]


def test_a_locked_rows_lobs_are_written_and_trimmed(
    cursor: oracledb.Cursor, driver: oracledb.Connection
) -> None:
    cursor.execute("select c, n, b from t where id = 1 for update")
    clob, nclob, blob = cursor.fetchone()
    clob.write("SOME", 1)
    clob.trim(6)
    nclob.write("\U0001f525", 3)
    blob.write(b"\xff\xfe", 3)
    assert clob.read() == "SOME t"
    assert contents(cursor) == [("SOME t", "n\u00e9\U0001f525", b"\x00\x01\xff\xfe")]
    driver.rollback()
    assert contents(cursor) == [("some text", "n\u00e9", b"\x00\x01\x02\x03")]


def test_a_new_rows_lob_is_written_through_its_returned_locator(
    cursor: oracledb.Cursor, driver: oracledb.Connection
) -> None:
    clob, blob = cursor.var(oracledb.DB_TYPE_CLOB), cursor.var(oracledb.DB_TYPE_BLOB)
    cursor.execute(
        "insert into t values (2, empty_clob(), null, empty_blob()) returning c, b into :1, :2",
        [clob, blob],
    )
    clob.getvalue()[0].write("written later")
    blob.getvalue()[0].write(b"\x09")
    driver.commit()
    assert contents(cursor)[1] == ("written later", None, b"\x09")


def test_a_row_that_the_transaction_has_changed_is_locked(
    cursor: oracledb.Cursor, driver: oracledb.Connection
) -> None:
    cursor.execute("insert into t values (2, 'more', null, null)")
    cursor.execute("select c, id from t order by id")
    (kept, _), (new, _) = cursor.fetchall()
    new.write("MO", 1)
    with pytest.raises(oracledb.DatabaseError, match=_NOT_LOCKED):
        kept.write("X", 1)
    assert contents(cursor)[1] == ("MOre", None, None)
    driver.commit()
    with pytest.raises(oracledb.DatabaseError, match=_NOT_LOCKED):
        new.write("X", 1)


def test_a_row_that_is_not_locked_refuses(
    cursor: oracledb.Cursor, driver: oracledb.Connection
) -> None:
    cursor.execute("select c from t where id = 1")
    (clob,) = cursor.fetchone()
    with pytest.raises(oracledb.DatabaseError, match=_NOT_LOCKED):
        clob.write("X", 1)
    cursor.execute("select c from t where id = 1 for update")
    (clob,) = cursor.fetchone()
    driver.commit()
    with pytest.raises(oracledb.DatabaseError, match=_NOT_LOCKED):
        clob.write("X", 1)
    assert contents(cursor)[0][0] == "some text"
