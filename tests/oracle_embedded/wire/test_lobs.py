"""LOBs as locators, as text, as bind variables."""

from __future__ import annotations

import oracledb
import pytest

from oracle_embedded.api import BindMeta, OraType, OutBind, Outcome, StatementKind
from oracle_embedded.values import number_from_decimal
from tests.oracle_embedded.wire.fake_engine import FakeEngine, column

_TEXT = "Grüße 🔥 " * 20000
_BYTES = bytes(range(256)) * 400


@pytest.fixture(autouse=True)
def lobs(engine: FakeEngine) -> None:
    """A query over a CLOB, an NCLOB and a BLOB, with a row of NULLs and a row of empty LOBs."""
    engine.lobs = {
        b"c1": (OraType.CLOB, _TEXT.encode()),
        b"n1": (OraType.CLOB, "n♥🔥".encode()),
        b"b1": (OraType.BLOB, _BYTES),
        b"c0": (OraType.CLOB, b""),
        b"b0": (OraType.BLOB, b""),
    }
    columns = [
        column("ID", OraType.NUMBER),
        column("C", OraType.CLOB),
        column("N", OraType.CLOB, charset_form=2),
        column("B", OraType.BLOB),
    ]
    rows = [
        (number_from_decimal(1), b"c1", b"n1", b"b1"),
        (number_from_decimal(2), None, None, None),
        (number_from_decimal(3), b"c0", b"c0", b"b0"),
    ] * 40
    engine.on_query("select l", columns, rows)


def test_locators_are_read_whole_and_in_pieces(connection: oracledb.Connection) -> None:
    cursor = connection.cursor()
    for _ in range(2):
        cursor.execute("select l from t")
        rows = cursor.fetchall()
        assert len(rows) == 120
        _, clob, nclob, blob = rows[0]
        assert clob.read() == _TEXT
        assert (nclob.read(), blob.read()) == ("n♥🔥", _BYTES)
        assert clob.size() == len(_TEXT.encode("utf-16-le")) // 2
        assert blob.size() == len(_BYTES)
        assert clob.read(3, 4) == "üße "
        assert blob.read(255, 3) == b"\xfe\xff\x00"
        assert blob.read(len(_BYTES) + 1) == b""
        assert clob.getchunksize() == 8060
        assert rows[1][1:] == (None, None, None)
        assert rows[2][1].read() == ""


def test_lobs_are_fetched_as_text_and_bytes(connection: oracledb.Connection) -> None:
    cursor = connection.cursor()
    for _ in range(2):
        cursor.execute("select l from t", fetch_lobs=False)
        rows = cursor.fetchall()
        assert rows[0] == (1, _TEXT, "n♥🔥", _BYTES)
        assert rows[1] == (2, None, None, None)
        assert rows[2] == (3, None, None, None)
        assert len(rows) == 120


def test_lobs_are_fetched_through_type_handlers(connection: oracledb.Connection) -> None:
    def handler(cursor: oracledb.Cursor, info: oracledb.FetchInfo) -> object:
        if info.type_code is oracledb.DB_TYPE_CLOB:
            return cursor.var(oracledb.DB_TYPE_LONG, arraysize=cursor.arraysize)
        return None

    cursor = connection.cursor()
    cursor.outputtypehandler = handler
    cursor.execute("select l from t")
    row = cursor.fetchone()
    assert row[1] == _TEXT
    assert row[3].read() == _BYTES


def test_lobs_are_fetched_into_arrow(connection: oracledb.Connection) -> None:
    frame = connection.fetch_df_all("select l from t", arraysize=50)
    assert frame.num_rows() == 120
    import pyarrow

    table = pyarrow.table(frame)
    assert table.column("C")[0].as_py() == _TEXT
    assert table.column("B")[0].as_py() == _BYTES
    assert table.column("N")[1].as_py() is None


def test_temporary_lobs_are_written_and_bound(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    engine.on_statement("insert", lambda call: Outcome(StatementKind.DML, row_count=1), binds=4)
    clob = connection.createlob(oracledb.DB_TYPE_CLOB, "start ")
    nclob = connection.createlob(oracledb.DB_TYPE_NCLOB, "n🔥")
    blob = connection.createlob(oracledb.DB_TYPE_BLOB)
    clob.write(_TEXT, 7)
    blob.open()
    assert blob.isopen() is True
    blob.write(_BYTES)
    blob.write(b"end", 5)
    blob.trim(100)
    blob.close()
    assert clob.read() == "start " + _TEXT
    connection.cursor().execute("insert into t values (:1, :2, :3, :4)", [1, clob, nclob, blob])
    assert engine.calls[0].binds[0][1:] == [
        ("start " + _TEXT).encode(),
        "n🔥".encode(),
        (_BYTES[:4] + b"end" + _BYTES[7:])[:100],
    ]
    assert [meta.type for meta in engine.calls[0].metas[1:]] == [
        OraType.CLOB,
        OraType.CLOB,
        OraType.BLOB,
    ]


def test_fetched_locators_and_long_texts_are_bound(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    engine.on_statement("insert", lambda call: Outcome(StatementKind.DML, row_count=1), binds=2)
    cursor = connection.cursor()
    cursor.execute("select l from t")
    clob = cursor.fetchone()[1]
    other = connection.cursor()
    other.setinputsizes(None, oracledb.DB_TYPE_CLOB)
    other.execute("insert into t values (:1, :2)", [clob, _TEXT])
    assert engine.calls[-1].binds == [[_TEXT.encode(), _TEXT.encode()]]
    other.execute("insert into t values (:1, :2)", [None, None])
    assert engine.calls[-1].binds == [[None, None]]


def test_plsql_gives_temporary_lobs_out(
    connection: oracledb.Connection, engine: FakeEngine
) -> None:
    outs = [
        OutBind(0, BindMeta(OraType.CLOB, 112, 1), [[_TEXT.encode()]]),
        OutBind(1, BindMeta(OraType.BLOB, 112), [[_BYTES]]),
    ]
    engine.on_statement(
        "begin", lambda call: Outcome(StatementKind.PLSQL, out_binds=outs), 2, StatementKind.PLSQL
    )
    cursor = connection.cursor()
    clob, blob = cursor.var(oracledb.DB_TYPE_CLOB), cursor.var(oracledb.DB_TYPE_BLOB)
    cursor.execute("begin p(:1, :2); end;", [clob, blob])
    assert clob.getvalue().read() == _TEXT
    assert blob.getvalue().read() == _BYTES


def test_dropped_temporaries_are_freed_by_piggyback(connection: oracledb.Connection) -> None:
    for _ in range(30):
        connection.createlob(oracledb.DB_TYPE_CLOB, "text")
        connection.ping()


def test_rows_lobs_may_not_be_written_without_a_lock(connection: oracledb.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("select l from t")
    with pytest.raises(oracledb.DatabaseError, match="ORA-22920"):
        cursor.fetchone()[1].write("x")
    connection.ping()
