"""Requests of a client that breaks the rules, byte for byte."""

from __future__ import annotations

import logging
import struct
from functools import partial

import oracledb
import pytest

from oracle_embedded.api import OraType
from oracle_embedded.charsets import bytes_from_text
from oracle_embedded.server import EmbeddedServer
from oracle_embedded.values import number_from_decimal
from oracle_embedded.wire.packets import (
    Packet,
    PacketType,
)
from oracle_embedded.wire.ttc import (
    ProtocolError,
    TtcReader,
    clr_bytes,
    dlc_bytes,
    sb_bytes,
    ub_bytes,
)
from tests.oracle_embedded.wire.fake_engine import (
    PATIENCE_SECONDS,
    FakeEngine,
    FakeSession,
    column,
)
from tests.oracle_embedded.wire.recorder import Recorder, calls_of, serve


def test_commit_is_answered_as_captured() -> None:
    assert serve([bytes.fromhex("030e06")]) == [b"\x09\x00\x00"]


def test_requests_may_be_cut_at_every_byte() -> None:
    request = bytes.fromhex("1169040101010101030e06")
    assert serve([request[at : at + 1] for at in range(len(request))]) == [b"\x09\x00\x00"]


_DESCRIBE = (
    "1000 0120 0102 00"
    "02000500 0116 00000000 00 00 00 00 01 02 010202 4944 0000 0101 00"
    "01000000 010a 00000000 020369 01 010a 00 01 01 010101 53 0000 0102 00"
    "000000000000"
)
_EXECUTED = "08 0103 0000 0101 000000"
"""Message 8: an SCN's two parts and the cursor, as JDBC reads them; python-oracledb passes over it."""
_FIRST_ROW = "060001020000000000 07 02c102 0161"


def test_query_is_answered_as_captured() -> None:
    engine = FakeEngine()
    columns = [
        column("ID", OraType.NUMBER, precision=5, scale=0),
        column("S", OraType.VARCHAR, size=10, char_size=10),
    ]
    engine.on_query("select", columns, [(number_from_decimal(1), b"a"), (None, None)])
    sql = b"select * from v"
    request = b"".join(
        (
            bytes.fromhex("035e05028061000101"),
            bytes((len(sql),)),
            bytes.fromhex("01010d0000000101047fffffff0000"),
            bytes.fromhex("00000000000000000001000000000000000000000000000000"),
            clr_bytes(sql),
            bytes.fromhex("0101000000000000010100028000000000"),
        )
    )
    [reply] = serve([request], engine)
    assert reply.startswith(
        bytes.fromhex(_DESCRIBE + _FIRST_ROW + _EXECUTED + "04000001010000000101")
    )


@pytest.mark.parametrize("function", [103, 121, 125, 162, 200], ids=lambda code: f"function-{code}")
def test_unknown_functions_are_refused_and_dropped(function: int) -> None:
    replies = serve([bytes((3, function, 1, 9, 9, 9)), bytes.fromhex("030e06")])
    assert b"ORA-03001" in replies[0]
    assert replies[1] == b"\x09\x00\x00"


def test_unknown_cursors_are_refused_and_the_request_is_read() -> None:
    replies = serve(
        [
            bytes.fromhex("0305080163010a"),
            bytes.fromhex("034e0901630101012000"),
            bytes.fromhex("030e06"),
        ]
    )
    assert b"ORA-01001" in replies[0]
    assert b"ORA-03001" in replies[1]
    assert replies[2] == b"\x09\x00\x00"


@pytest.mark.parametrize(
    "request_bytes",
    [
        pytest.param(b"\x63", id="message"),
        pytest.param(bytes.fromhex("11c704"), id="piggyback-that-was-not-offered"),
        pytest.param(bytes.fromhex("035e0509"), id="number-too-long"),
        pytest.param(bytes.fromhex("1a a3 01"), id="one-way-function"),
    ],
)
def test_requests_that_are_no_protocol_end_the_connection(request_bytes: bytes) -> None:
    link = Recorder([request_bytes])
    session = FakeSession(FakeEngine(), 1, "SCOTT", "test")
    calls = calls_of(session, link)
    with pytest.raises(ProtocolError):
        calls.serve()


def test_garbage_after_login_closes_only_its_connection(
    server: EmbeddedServer, engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    """The packet comes in as if the second client had sent it."""
    engine.on_query("select n", [column("N", OraType.NUMBER)], [(number_from_decimal(1),)])
    good = oracledb.connect(user="scott", password="tiger", dsn=server.dsn)
    bad = oracledb.connect(user="scott", password="tiger", dsn=server.dsn)
    with caplog.at_level(logging.WARNING):
        last = max(server._open, key=lambda session: session._number)
        last._link._packets.put(Packet(PacketType.DATA, b"\x00\x00" + b"U" * 100))
        assert engine.sessions[1].closed.wait(PATIENCE_SECONDS)
    with pytest.raises(oracledb.DatabaseError, match="DPY-4011"):
        bad.ping()
    assert good.cursor().execute("select n from t").fetchone() == (1,)
    assert "connection 2 closed: message 85" in caplog.text
    assert "UU" not in caplog.text
    good.close()


@pytest.mark.parametrize("value", [0, 1, 127, 128, 255, 256, 65535, 2**31, 2**32 - 1, 2**63])
def test_numbers_are_read_as_they_are_written(value: int) -> None:
    for number in (value, -value):
        assert TtcReader(partial(sb_bytes, number)).sb() == number
    assert TtcReader(lambda: ub_bytes(value)).ub() == value


@pytest.mark.parametrize("size", [0, 1, 252, 253, 254, 255, 32767, 32768, 100000])
def test_bytes_are_read_as_they_are_written(size: int) -> None:
    value = bytes(size)
    for encode, method in ((clr_bytes, "clr"), (dlc_bytes, "dlc")):
        raw = encode(value)
        pieces = iter([raw[at : at + 7] for at in range(0, len(raw), 7)])
        assert getattr(TtcReader(partial(next, pieces)), method)() == value


def test_impossible_lengths_are_refused() -> None:
    with pytest.raises(ProtocolError):
        TtcReader(lambda: b"\xfd").clr()
    with pytest.raises(ProtocolError):
        TtcReader(lambda: b"\x09").ub()
    with pytest.raises(ProtocolError):
        TtcReader(lambda: struct.pack("B", 0x89)).sb()


def test_text_that_is_not_utf8_keeps_its_bytes() -> None:
    text = TtcReader(lambda: clr_bytes(b"\xff\xfe")).text()
    assert bytes_from_text(text.encode()) == b"\xff\xfe"


def test_absurd_numbers_of_executions_are_refused() -> None:
    link = Recorder([bytes.fromhex("030409010104ffffffff0000")])
    session = FakeSession(FakeEngine(), 1, "SCOTT", "test")
    calls = calls_of(session, link)
    with pytest.raises(ProtocolError, match="executions"):
        calls.serve()
