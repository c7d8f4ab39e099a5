"""Rows that the driver loads by direct path: values, pieces of long ones, how a load ends, and what its redo shows."""

from __future__ import annotations

import datetime

import oracledb
import pytest

from oracle_embedded.wire.direct_path import rows_of
from oracle_embedded.wire.ttc import ProtocolError

_COLUMNS = ["ID", "NAME", "AT", "TEXT", "RAW_TEXT"]


@pytest.fixture
def cursor(driver: oracledb.Connection) -> oracledb.Cursor:
    cursor = driver.cursor()
    cursor.execute(
        "create table t (id number(9) primary key, name varchar2(20) not null, at timestamp, text clob, raw_text blob)"
    )
    return cursor


def test_a_load_inserts_and_commits_what_it_was_given(
    cursor: oracledb.Cursor, driver: oracledb.Connection
) -> None:
    long_text = "é0123456789" * 20_000  # several pieces
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, 600)
    rows = [(1, "one", at, long_text, b"\x00\x01"), (2, "two", None, None, None)]
    driver.direct_path_load("demo", "t", _COLUMNS, rows, batch_size=1)
    driver.rollback()
    cursor.execute("select id, name, at, text, raw_text from t order by id")
    found = [
        tuple(value.read() if isinstance(value, oracledb.LOB) else value for value in row)
        for row in cursor
    ]
    assert found == rows


def test_a_load_that_fails_leaves_nothing(
    cursor: oracledb.Cursor, driver: oracledb.Connection
) -> None:
    rows = [(at, "x") for at in (1, 2, 3, 1)]
    with pytest.raises(oracledb.IntegrityError, match="ORA-00001"):
        driver.direct_path_load("demo", "t", ["id", "name"], rows, batch_size=2)
    assert cursor.execute("select count(*) from t").fetchone() == (0,)
    with pytest.raises(oracledb.DatabaseError, match="ORA-00942"):
        driver.direct_path_load("demo", "nowhere", ["id"], [(1,)])


def test_pieces_that_are_cut_off_are_refused() -> None:
    whole = b"\x3c\x00\x09\x02\x01\x07\x02ab"
    assert list(rows_of(whole, 2)) == [[b"\x07", b"ab"]]
    split = b"\x09\x01\xfe\x00\x02ab" + b"\x06\x01\xfe\x00\x01c"
    assert list(rows_of(split, 1)) == [[b"abc"]]
    for broken in (whole[:-1], split[:7], whole):
        with pytest.raises(ProtocolError):
            list(rows_of(broken, 1 if broken is whole else 2))
