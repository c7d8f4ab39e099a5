"""Rows that repeat values of the row before, through the driver: the server leaves these out, as Oracle does, and the client puts them back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import oracledb
import pyarrow as pa
import pytest

from oracle_embedded.database import OWNER, open_database
from oracle_embedded.server import EmbeddedServer
from oracle_embedded.wire.session import WireSettings

ROWS = 300


@contextmanager
def connected(*, leaves_out: bool) -> Iterator[Any]:
    opened = open_database()
    try:
        with (
            EmbeddedServer(
                opened.engine, settings=WireSettings(leaves_out_repeats=leaves_out)
            ) as server,
            oracledb.connect(
                user=OWNER, password=opened.password(OWNER), dsn=server.dsn
            ) as connection,
        ):
            yield connection
    finally:
        opened.close()


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Any, Any]]:
    with connected(leaves_out=True) as one, connected(leaves_out=False) as other:
        for connection in (one, other):
            cursor = connection.cursor()
            cursor.execute(
                "CREATE TABLE r (id NUMBER, n NUMBER(12,2), f BINARY_DOUBLE, v VARCHAR2(300), nv NVARCHAR2(20), d DATE,"
                " t TIMESTAMP(6), z TIMESTAMP(6) WITH TIME ZONE, i INTERVAL DAY TO SECOND, w RAW(9), c CLOB, b BLOB, u ROWID)"
            )
            cursor.execute(
                "INSERT INTO r SELECT LEVEL, MOD(TRUNC(LEVEL / 3), 4) / 4, MOD(LEVEL, 2), CASE WHEN MOD(LEVEL, 7) < 5 THEN"
                " RPAD('v', 270, MOD(TRUNC(LEVEL / 5), 3)) END, CASE MOD(LEVEL, 5) WHEN 0 THEN NULL ELSE 'é' END,"
                " DATE '2024-01-01' + MOD(TRUNC(LEVEL / 2), 3), TIMESTAMP '2024-01-01 00:00:00' + NUMTODSINTERVAL(TRUNC(LEVEL / 9), 'SECOND'),"
                " TIMESTAMP '2024-01-01 00:00:00 +02:00', NUMTODSINTERVAL(TRUNC(LEVEL / 4), 'SECOND'), HEXTORAW('0A0B'),"
                f" CASE MOD(LEVEL, 3) WHEN 0 THEN NULL ELSE TO_CLOB('same') END, NULL, NULL FROM DUAL CONNECT BY LEVEL <= {ROWS}"
            )
            connection.commit()
        yield one, other


@pytest.mark.parametrize("size", [1, 2, 3, 50, 1000])
@pytest.mark.parametrize("order", ["id", "n, id", "v, id"])
def test_tuples_are_equal(both: tuple[Any, Any], size: int, order: str) -> None:
    def rows(connection: Any) -> list[Any]:
        cursor = connection.cursor()
        cursor.arraysize, cursor.prefetchrows = size, size
        cursor.outputtypehandler = lambda cursor, meta: (
            cursor.var(oracledb.DB_TYPE_LONG, arraysize=cursor.arraysize)
            if meta.type_code is oracledb.DB_TYPE_CLOB
            else None
        )
        cursor.execute(f"SELECT * FROM r ORDER BY {order}")
        return cursor.fetchall()

    one, other = both
    found = rows(one)
    assert len(found) == ROWS
    assert found == rows(other)


@pytest.mark.parametrize("size", [1, 3, 100, 1000])
def test_data_frames_are_equal(both: tuple[Any, Any], size: int) -> None:
    sql = "SELECT id, n, f, v, nv, d, t, w, c FROM r ORDER BY n, v, id"

    def table(connection: Any) -> pa.Table:
        frames = connection.fetch_df_batches(sql, size=size, fetch_decimals=True)
        return pa.concat_tables([pa.table(frame) for frame in frames])

    one, other = both
    assert table(one).equals(table(other))
    assert table(one).num_rows == ROWS


def test_an_execution_begins_anew(both: tuple[Any, Any]) -> None:
    cursor = both[0].cursor()
    for _ in range(3):
        assert cursor.execute("SELECT 'same' FROM dual").fetchall() == [("same",)]


def test_scrolling_sends_whole_rows(both: tuple[Any, Any]) -> None:
    cursor = both[0].cursor(scrollable=True)
    cursor.arraysize = cursor.prefetchrows = 3
    cursor.execute("SELECT w, id FROM r ORDER BY id")
    for at in (1, 200, 5, 299, 7):
        cursor.scroll(at, mode="absolute")
        assert cursor.fetchone()[1] == at
