"""Bytes that are no UTF-8 in a database in AL32UTF8, through the driver: they stay what they are.

Source: rows of that kind in public reports on python-oracledb (issues 209, 279 and 501) and cx_Oracle (343); a client whose character set is the
database's sends and gets bytes without conversion (Globalization Support Guide 19c, "Setting Up a Globalization Support Environment").
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import oracledb
import pytest

from oracle_embedded.api import OraType
from oracle_embedded.charsets import bytes_from_text, text_from_bytes
from oracle_embedded.wire.binds import WireBind, engine_rows
from tests.oracle_embedded.engine.test_character_sets import cursor_of

SPOILED = [
    pytest.param(b"\xff", id="never-in-utf-8"),
    pytest.param(b"A\x96B", id="a-dash-of-windows-1252"),
    pytest.param(b"\xed\xa0\x80", id="half-a-surrogate-pair"),
    pytest.param(b"\xd6\xd0\xce\xc4", id="gbk"),
    pytest.param(b"caf\xc3", id="cut-in-a-character"),
    pytest.param(b"\xc0\xaf\xf5\x80", id="overlong-and-beyond"),
    pytest.param("é\U0010fe80\U0010feff€".encode(), id="characters-that-look-like-stand-ins"),
    pytest.param(b"\xf4\x8f\xba\x80\xff\xf4\x8f", id="a-stand-in-beside-spoiled-bytes"),
]


@pytest.fixture(scope="module")
def cursor() -> Iterator[Any]:
    with cursor_of() as opened:
        opened.outputtypehandler = _as_bytes
        yield opened


def _as_bytes(cursor: Any, metadata: Any) -> Any:
    if metadata.type_code in (oracledb.DB_TYPE_VARCHAR, oracledb.DB_TYPE_CHAR):
        return cursor.var(
            metadata.type_code, size=4000, arraysize=cursor.arraysize,
            encoding_errors="surrogateescape",
            outconverter=lambda text: text.encode("utf-8", "surrogateescape"),
        )  # fmt: skip
    return None


def one(cursor: Any, sql: str, *binds: Any) -> Any:
    """The only value of the only row."""
    cursor.execute(sql, binds)
    ((value,),) = cursor.fetchall()
    return value


@pytest.mark.parametrize("stored", SPOILED)
def test_stand_ins_give_the_bytes_back(stored: bytes) -> None:
    text = text_from_bytes(stored)
    assert bytes_from_text(text.encode()) == stored
    assert text_from_bytes(bytes_from_text(text.encode())) == text


@pytest.mark.parametrize("stored", SPOILED)
def test_a_text_of_these_bytes_is_stored_and_read_back(cursor: Any, stored: bytes) -> None:
    cursor.execute("CREATE TABLE spoiled (id NUMBER, v VARCHAR2(10), c CHAR(10))")
    try:
        made = f"UTL_RAW.CAST_TO_VARCHAR2(HEXTORAW('{stored.hex()}'))"
        if len(stored) > 10:
            made = f"SUBSTRB({made}, 1, 10)"
            stored = (
                stored[:10].decode("utf-8", "surrogateescape").encode("utf-8", "surrogateescape")
            )
        cursor.execute(f"INSERT INTO spoiled VALUES (1, {made}, {made})")
        cursor.execute(
            "SELECT v, c, LENGTHB(v), VSIZE(c), RAWTOHEX(UTL_RAW.CAST_TO_RAW(v)) FROM spoiled"
        )
        [(text, padded, size, padded_size, raw)] = cursor.fetchall()
        assert bytes.fromhex(raw.decode()) == text
        assert (size, padded_size) == (len(text), 10)
        assert padded == text.ljust(10)
        assert one(cursor, f"SELECT COUNT(*) FROM spoiled WHERE v = {made}") == 1
        assert text == stored
    finally:
        cursor.execute("DROP TABLE spoiled PURGE")


def test_binds_keep_their_bytes() -> None:
    """The driver encodes texts itself; other clients send what they have."""
    bind = WireBind(int(OraType.VARCHAR), False, 10, 1)
    rows = engine_rows([[b"A\xff"], [None], ["é".encode()]], [bind], None)  # type: ignore[arg-type]
    assert [value and bytes_from_text(value) for (value,) in rows] == [b"A\xff", None, "é".encode()]
    assert [value and value.decode() for (value,) in rows][2] == "é"


def test_text_of_statements_keeps_its_bytes(cursor: Any) -> None:
    """A literal, a comment and a default with such a byte reach the dictionary as they are."""
    byte = "UTL_RAW.CAST_TO_VARCHAR2(HEXTORAW('FF'))"
    cursor.execute(
        f"BEGIN EXECUTE IMMEDIATE 'CREATE TABLE said (id NUMBER, d VARCHAR2(9) DEFAULT ''' || {byte} || ''')';"
        f" EXECUTE IMMEDIATE 'COMMENT ON TABLE said IS ''x' || {byte} || '''';"
        f" EXECUTE IMMEDIATE 'INSERT INTO said (id) VALUES (1)'; END;"
    )
    assert one(cursor, "SELECT d FROM said") == b"\xff"
    assert (
        one(cursor, "SELECT comments FROM user_tab_comments WHERE table_name = 'SAID'") == b"x\xff"
    )
    cursor.execute(f"BEGIN DBMS_SESSION.SET_IDENTIFIER({byte}); END;")
    assert one(cursor, "SELECT SYS_CONTEXT('USERENV', 'CLIENT_IDENTIFIER') FROM dual") == b"\xff"


def test_what_is_converted_has_the_replacement_character(cursor: Any) -> None:
    """CLOB and the national types are kept in AL16UTF16."""
    byte = "UTL_RAW.CAST_TO_VARCHAR2(HEXTORAW('41FF'))"
    cursor.execute("CREATE TABLE converted (c CLOB, n NVARCHAR2(10), nc NCLOB)")
    cursor.execute(f"INSERT INTO converted VALUES ({byte}, {byte}, {byte})")
    cursor.execute("SELECT * FROM converted")
    [(clob, national, nclob)] = cursor.fetchall()
    assert (clob.read(), national, nclob.read()) == ("A\ufffd", "A\ufffd", "A\ufffd")
