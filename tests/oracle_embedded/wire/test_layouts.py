"""Layouts that python-oracledb and JDBC ask for differently, byte for byte: what was agreed on decides."""

from __future__ import annotations

import socket

import pytest

from oracle_embedded.api import BANNER, OracleError, OraType, Outcome, StatementKind
from oracle_embedded.charsets import character_sets
from oracle_embedded.server import EmbeddedServer
from oracle_embedded.values import number_from_decimal
from oracle_embedded.wire import connect
from oracle_embedded.wire.binds import BindRows, WireBind, engine_rows, read_metadata
from oracle_embedded.wire.connect import Agreement
from oracle_embedded.wire.lobs import LobStore, read_lob_request, split_locators
from oracle_embedded.wire.login import AuthRequest, Login, read_auth
from oracle_embedded.wire.packets import Link, PacketType
from oracle_embedded.wire.piggybacks import PiggybackActions, read_piggyback
from oracle_embedded.wire.replies import CallEnd, end_message
from oracle_embedded.wire.requests import Cursor, Option, read_execute
from oracle_embedded.wire.rows import RowEncoder, describe
from oracle_embedded.wire.session import WireSettings
from oracle_embedded.wire.table_description import table_description
from oracle_embedded.wire.ttc import ProtocolError, TtcReader, sb_bytes, ub_bytes
from tests.oracle_embedded.wire.fake_engine import FakeEngine, FakeSession, column
from tests.oracle_embedded.wire.recorder import serve

_JDBC = Agreement(lengths_converted=False, scales_counted=True)


class _Packets(Link):
    """A link that keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, bytes]] = []

    def send_packet(self, packet_type: PacketType, body: bytes) -> None:
        self.sent.append((packet_type, body))

    def send_data(self, payload: bytes | bytearray) -> None:
        self.sent.append((PacketType.DATA, bytes(payload)))

    def switch_to_wide(self, sdu: int) -> None:
        self.sdu = sdu


def _reader(text: str) -> TtcReader:
    return TtcReader(iter([bytes.fromhex(text)]).__next__)


# --- connect -------------------------------------------------------------------------------------------------------------------


def test_accept_says_that_there_is_no_native_encryption() -> None:
    link = _Packets()
    connect.send_accept(link, 65535)
    [(_, body)] = link.sent
    assert body[14:16] == b"\x0c\x0c"
    assert int.from_bytes(body[12:14], "big") == 8 + len(body)


def _negotiate(
    flags: int,
    field_version: int,
    character_set: str = "AL32UTF8",
    client: str = "6903",
    told: str = "00",
) -> tuple[Agreement, bytes]:
    caps = bytes(7) + bytes((field_version,))
    text = f"0106004a00 02 {client} {client} {flags:02x} 08{caps.hex()} {told} 0001 0001 0001 0000 0002 0000 0000"
    link = _Packets()
    agreement = connect.negotiate(link, _reader(text), character_sets(character_set, "AL16UTF16"))
    return agreement, link.sent[0][1]


@pytest.mark.parametrize(("flags", "converted"), [(1, False), (3, True)], ids=["jdbc", "thin"])
def test_the_client_says_whether_texts_have_a_length_of_their_own(
    flags: int, converted: bool
) -> None:
    assert _negotiate(flags, 12)[0] == Agreement(
        lengths_converted=converted, scales_counted=not converted
    )


def test_a_client_may_name_its_own_higher_field_version() -> None:
    assert _negotiate(1, 24)[0] == _JDBC


def test_an_older_field_version_is_agreed_on_and_one_before_12_1_refused() -> None:
    assert _negotiate(3, 7)[0] == Agreement(field_version=7)
    with pytest.raises(ProtocolError, match="older than 12"):
        _negotiate(3, 6)


def test_a_client_of_18c_may_tell_its_time_zone_and_its_national_set() -> None:
    """As go-ora does."""
    zone = "80000000 3c3c3c 80000000"
    agreed = _negotiate(3, 11, told=f"020201 {zone} d007")[0]
    assert agreed == Agreement(field_version=11)


def test_a_client_that_sends_the_bytes_of_the_database_is_refused() -> None:
    """As JDBC does where the set is WE8MSWIN1252 (178)."""
    assert b"\xb2\x00" in _negotiate(1, 24, "WE8MSWIN1252")[1]
    with pytest.raises(ProtocolError, match="UTF-8"):
        _negotiate(1, 24, "WE8MSWIN1252", "b200")


def test_capabilities_are_offered_that_jdbc_cannot_do_without() -> None:
    reply = _negotiate(1, 24)[1]
    caps = reply[reply.index(b"\x35") + 1 :]
    assert {at: caps[at] for at in (4, 7, 15, 16, 23, 27, 37)} == {
        4: 0x6A, 7: 12, 15: 1, 16: 0x11, 23: 0xCF, 27: 1, 37: 0x20,
    }  # fmt: skip


def test_a_client_that_never_logs_in_is_disconnected() -> None:
    settings = WireSettings(login_seconds=0.01)
    with (
        EmbeddedServer(FakeEngine(), settings=settings) as server,
        socket.create_connection(("127.0.0.1", server.port)) as client,
    ):
        assert client.recv(1) == b""


# --- login ---------------------------------------------------------------------------------------------------------------------


def test_a_user_name_may_come_without_a_length() -> None:
    text = "02 01 0104 0101 01 0101 01 01 {} 010d0d415554485f5445524d494e414c 010101 58 00"
    jdbc = read_auth(_reader(text.format("44454d4f")), lengths_converted=False)
    thin = read_auth(_reader(text.format("0444454d4f")), lengths_converted=True)
    assert jdbc == thin
    assert jdbc == AuthRequest(2, "DEMO", 1, {"AUTH_TERMINAL": "X"})


def test_iterations_are_as_many_as_jdbc_does_at_least() -> None:
    """JDBC raises lower counts without a word, and the right password fails."""
    pairs = {key: value for key, value, _ in Login("tiger").challenge()}
    assert int(pairs["AUTH_PBKDF2_VGEN_COUNT"]) >= 4096
    assert int(pairs["AUTH_PBKDF2_SDER_COUNT"]) >= 3


# --- execute -------------------------------------------------------------------------------------------------------------------

_INSERT = (
    "0280290001011e01010d00000000047fffffff010102000000000000000000010000000000010101010000000000"
    "0000696e7365727420696e746f20712076616c75657320283a31202c3a322029010101010000000000000002c000"
    "0000000203000001160000000002036901000001030000010400011000000203690100000702c1020161"
)
_INSERT_AGAIN = (
    "0280200102000001010d00000000047fffffff000000000000000000000001000000000001010101000000000000"
    "000001010000000000000002c0000000000702c1030162"
)
"""As ojdbc11 23 sends them for ``insert into q values (?, ?)``: twice the same statement, the second time without metadata."""


def test_sql_comes_without_a_length_and_scales_as_numbers() -> None:
    request = read_execute(_reader(_INSERT), lambda _id: None, _JDBC)
    assert request.sql == "insert into q values (:1 ,:2 )"
    assert request.binds is not None
    assert [bind.type for bind in request.binds] == [OraType.NUMBER, OraType.VARCHAR]
    assert request.bind_rows == [[number_from_decimal(1), b"a"]]
    assert request.row_counts_wanted


def test_an_execute_without_metadata_has_values_for_the_binds_declared_before() -> None:
    cursor = Cursor(2, binds=[WireBind(2, False, 22, 0), WireBind(1, False, 4, 1)])
    request = read_execute(_reader(_INSERT_AGAIN), {2: cursor}.get, _JDBC)
    assert request.options == Option.EXECUTE | Option.NOT_PLSQL
    assert request.bind_rows == [[number_from_decimal(2), b"b"]]


def test_such_an_execute_sends_pure_out_binds_too() -> None:
    again = _INSERT_AGAIN.replace("0702c1030162", "07000162")
    cursor = Cursor(
        2,
        binds=[WireBind(2, False, 22, 0), WireBind(1, False, 4, 1)],
        out_only=frozenset((0,)),
        is_plsql=True,
    )
    request = read_execute(_reader(again), {2: cursor}.get, _JDBC)
    assert request.bind_rows == [[None, b"b"]]


@pytest.mark.parametrize("ora_type", [OraType.NUMBER, OraType.TIMESTAMP, OraType.INTERVAL_DS])
def test_a_scale_is_a_number_or_one_byte_as_agreed(ora_type: OraType) -> None:
    rest = "0116 00 00 00 00 00 00 00 00"
    number = f"{ora_type:02x} 03 00 817f {rest}"
    byte = f"{ora_type:02x} 03 00 81 {rest}"
    counted = read_metadata(_reader(number), 1, _JDBC)
    assert counted == read_metadata(_reader(byte), 1, Agreement())
    described = describe([column("N", ora_type, scale=-127)], scale_bytes=sb_bytes)
    assert bytes.fromhex(f"{ora_type:02x}0000817f") in described
    assert bytes.fromhex(f"{ora_type:02x}000081") in describe([column("N", ora_type, scale=-127)])


def test_the_end_of_a_call_carries_its_number() -> None:
    """JDBC takes an answer with another number for that of an older call."""
    fetch_of_an_unknown_cursor = bytes.fromhex("0305 2a 0163 010a")
    [reply] = serve([fetch_of_an_unknown_cursor], agreement=_JDBC)
    assert reply == end_message(CallEnd(0, 0x2A, error=OracleError(1001, "invalid cursor")))
    assert b"\x2a" in reply


def test_row_counts_are_sent_where_they_are_wanted_even_for_ddl() -> None:
    engine = FakeEngine()
    engine.on_statement("create", lambda _call: Outcome(StatementKind.DDL), kind=StatementKind.DDL)
    sql = b"create table t (a number)"
    request = b"".join(
        (
            bytes.fromhex("035e 03 028021 00 01"),
            ub_bytes(len(sql)),
            bytes.fromhex(
                "01 010d 0000 00 00 047fffffff 00 00 0000000000 00 00 00 000100 00 00 00 00"
            ),
            bytes.fromhex("01 0101 01 0000000000 0000"),
            sql,
            bytes.fromhex("0101 0101 00 00 00 00 00 00 00 02c000 00 00 00"),
        )
    )
    [reply] = serve([request], engine, _JDBC)
    assert reply.startswith(bytes.fromhex("08 0103 0000 0101 000000 0101 00 04"))


def test_a_define_step_with_fetch_sends_the_rows() -> None:
    """JDBC asks for LOBs this way; the number of rows is that of executions elsewhere."""
    cursor = Cursor(1)
    text = (
        "028050 0101 00 00 01 010d 0000 00 00 047fffffff 00 00 0000000000 01 0101 00 000100 00 00 00"
        "00 000000 00 0000 00000000 00 010a 00 00 00 00 00 0101 00 00 00 00 00"
        "70 03 00 00 020fa0 00 0402000000 00 00 020369 01 020fa0 00"
    )
    request = read_execute(_reader(text), {1: cursor}.get, _JDBC)
    assert request.options == Option.DEFINE | Option.FETCH | Option.NOT_PLSQL
    assert request.rows_wanted == 10
    assert request.defines == [WireBind(OraType.CLOB, False, 4000, 1, lob_prefetch=4000)]


def test_the_version_is_told() -> None:
    request = bytes.fromhex("033b03 01 020100 01 01 0101")
    text = BANNER.encode()
    size = bytes((1, len(text)))
    assert serve([request], agreement=_JDBC)[0] == (
        b"\x08" + size + text + bytes.fromhex("0413030000 090000")
    )
    assert serve([request])[0] == (
        b"\x08" + size + size[1:] + text + bytes.fromhex("0413030000 090000")
    )


# --- piggybacks ----------------------------------------------------------------------------------------------------------------


def test_a_cancelled_cursor_loses_its_rows_and_can_be_executed_again() -> None:
    engine = FakeEngine()
    engine.on_query("select", [column("N", OraType.NUMBER)], [(None,)] * 3)
    sql = b"select n from t"
    select = b"".join(
        (
            bytes.fromhex(
                "035e 02 028021 00 01 010f 01 010d 0000 00 00 047fffffff 00 00 0000000000"
            ),
            bytes.fromhex("00 00 00 000100 00 00 00 00 000000 00 0000 00000000"),
            sql,
            bytes.fromhex("0101 00 00 00 00 00 00 0101 00 028000 00 00 00"),
        )
    )
    cancel = bytes.fromhex("117803 01 0101 0101")
    fetch = bytes.fromhex("030504 0101 010a")
    replies = serve([select, cancel + fetch], engine, _JDBC)
    assert b"ORA-01403" in replies[1]


def test_client_attributes_may_come_without_lengths() -> None:
    piggyback = "87280000 0159 01 0102 01 0103 01 0103 00 00 00 00 00 00 00 00 00 00 00 00 6d65 6d6f64 616374"
    attributes: dict[str, str | None] = {}

    def refuse(*arguments: object) -> None:
        pytest.fail(f"not asked for: {arguments}")

    actions = PiggybackActions(
        close_cursor=refuse,
        cancel_cursor=refuse,
        free_lob=refuse,
        set_attribute=attributes.__setitem__,
        set_context=refuse,
    )
    read_piggyback(_reader(piggyback), actions, lengths_converted=False)
    assert attributes == {"CLIENT_IDENTIFIER": "me", "MODULE": "mod", "ACTION": "act"}


# --- LOBs ----------------------------------------------------------------------------------------------------------------------


def _lob_row(prefetch: int | None, text: str) -> bytes:
    engine = FakeEngine()
    session = FakeSession(engine, 1, "SCOTT", "test")
    engine.lobs[b"L1"] = (OraType.CLOB, text.encode())
    clob = column("C", OraType.CLOB)
    define = WireBind(OraType.CLOB, False, 4000, 1, prefetch)
    return RowEncoder([clob], [define], LobStore(session), lambda _handle: b"").encode([(b"L1",)])


def test_a_locator_comes_alone_with_its_length_or_with_data() -> None:
    head, locator = _lob_row(None, "héllo")[:4], _lob_row(None, "héllo")[4:]
    assert head == b"\x07\x01\x28\x28"
    assert len(locator) == 40
    length_and_chunk = bytes.fromhex("0105 021f7c")
    assert _lob_row(0, "héllo")[3:].startswith(length_and_chunk + b"\x28")
    assert _lob_row(3, "héllo")[3:].startswith(length_and_chunk + b"\x00\x01\x04h\xc3\xa9l\x28")


def test_prefetched_text_ends_with_a_whole_character() -> None:
    assert b"\x00\x01\x01a\x28" in _lob_row(2, "a\U0001f600b")


def test_a_locator_is_as_long_as_the_clients_buffer_and_says_so() -> None:
    buffer = bytes.fromhex("006a") + bytes(106)
    create = (
        bytes.fromhex(
            "036001 01 016c 00 010a 00 00 01 00 01 020110 01 0101 0101 0170 01 000000000000"
        )
        + buffer
        + bytes.fromhex("020369 0101 010a")
    )
    [reply] = serve([create], agreement=_JDBC)
    locator = reply[1:109]
    assert locator[:2] == b"\x00\x6a"
    assert reply[109:] == bytes.fromhex("020369 010a 00 090000")
    assert split_locators(locator + locator) == [locator, locator]
    with pytest.raises(ProtocolError, match="cut off"):
        split_locators(locator[:50])


def test_the_amount_of_a_lob_write_stands_before_its_data() -> None:
    text = "01 0102 00 00 00 00 00 00 00 0140 00 00 0101 00 01 000000000000 aabb 0103 0e 03 616263"
    request = read_lob_request(_reader(text))
    assert (request.locator, request.amount, request.data) == (b"\xaa\xbb", 3, b"abc")


def test_a_table_is_described_as_jdbc_reads_it() -> None:
    """Before it returns generated keys by name: a list of columns inside a table, with scales as numbers that have a length."""
    columns = [
        column("ID", OraType.NUMBER),
        column("V", OraType.VARCHAR, size=10, char_size=10),
    ]
    described = table_description(columns)
    assert described.startswith(
        bytes.fromhex("08 00 0101 0001 0000000000 0000 00 0101 000000 0101 00")
    )
    assert bytes.fromhex("00 0116 0102 0102 02 4944 00 817f 01") in described
    assert len(described) == 195


def test_a_rowid_is_bound_as_characters_or_in_its_parts() -> None:
    """JDBC sends the parts, with 14 where a length would stand, when it changes a row of a result."""
    rows = BindRows([WireBind(11, False, 20, 1)], frozenset(), is_plsql=False)
    parts = _reader("07 0e 03 011174 01 0c 00 01 83 00")
    assert rows.read(parts, 1) == [[b"AAARF0AAMAAAACDAAA"]]
    characters = _reader("07 12" + b"AAARF0AAMAAAACDAAA".hex())
    assert rows.read(characters, 1) == [[b"AAARF0AAMAAAACDAAA"]]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        pytest.param("787c0102040506 00000000 143c", "787c0102040506 00000000 143c", id="utc"),
        pytest.param("787c0102040506 00000000 d004", "787c0102040506 00000000 143c", id="region-utc"),
        pytest.param("787c0102040506 00000000 565a", "787c0102012306 00000000 165a", id="local"),
    ],
)  # fmt: skip
def test_times_with_zones_are_kept_in_utc(sent: str, kept: str) -> None:
    bind = WireBind(OraType.TIMESTAMP_TZ, False, 13, 0)
    [[value]] = engine_rows(
        [[bytes.fromhex(sent)]], [bind], LobStore(FakeSession(FakeEngine(), 1, "SCOTT", "test"))
    )
    assert value == bytes.fromhex(kept)


def test_another_zone_by_number_is_refused() -> None:
    bind = WireBind(OraType.TIMESTAMP_TZ, False, 13, 0)
    with pytest.raises(OracleError, match="named"):
        engine_rows(
            [[bytes.fromhex("787c0102040506 00000000 a004")]],
            [bind],
            LobStore(FakeSession(FakeEngine(), 1, "SCOTT", "test")),
        )
