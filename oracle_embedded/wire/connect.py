"""What is agreed before anyone logs in: service, packet size, character sets and capabilities?"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from oracle_embedded.charsets import CharacterSets
from oracle_embedded.wire.packets import Link, PacketType
from oracle_embedded.wire.ttc import ProtocolError, TtcReader, clr_bytes

FIELD_VERSION = 12
"""Layout of 19c. Both sides take the lower of their versions, so newer drivers keep to it."""
_FIELD_VERSION_MIN = 7
"""That of 12.1. What later ones have besides, a reader asks for by the version agreed on."""
FIELDS_OF_12_2, FIELDS_OF_12_2_NEXT, FIELDS_OF_18_NEXT = 8, 9, 11

CHARSET_UTF8 = 873
CHARSET_UTF16 = 2000
_UNICODE = frozenset({871, CHARSET_UTF8})
STRING_SIZE_MAX = 32767
_LENGTHS_CONVERTED = 0x02
_SERVICES_OFF = 0x0C
"""Both flags of ACCEPT: no native encryption, no other network services; with 0 JDBC would begin to
agree on them."""
_FIELD_VERSION_AT = 7
_CAPABILITIES = {
    4: 0x6A,  # ways to log in: O5LOGON, its successors, long names
    15: 0x01,  # call status in the end of every call
    16: 0x11,  # sequence number in the end of every call
    23: 0xCF,  # LOBs with 8-byte lengths, with length and data sent in advance
    27: 0x01,  # data types as two-byte numbers
    37: 0x20,  # long values in chunks with lengths of up to four bytes
}
"""Compile-time capabilities that are offered: place and bits."""
_ACCEPT_SIZE = 41
"""Where the data of an ACCEPT would begin, which has none: behind its last byte."""
_ZONES_AT = 1
"""Place of the runtime capability to tell each other time zones in the data types messages."""
_ZONE_UTC = bytes((0x80, 0, 0, 0, 60, 60, 60, 0x80, 0, 0, 0))
_SDU_AT, _WIDE_SDU_AT = 6, 50
_BANNER = b"Redolake embedded Oracle 19.3"
_PROTOCOL_VERSION = 317
_PROTOCOL_VERSION_MIN = 315


@dataclass(frozen=True, slots=True)
class Agreement:
    """What later messages' layouts depend on.

    ``lengths_converted`` is what a client asks for with bit 0x02 of its data types message: user
    name, keys and SQL texts have a length byte of their own, and a described scale is one byte.
    python-oracledb asks for it, JDBC does not. ``takes_return``: python-oracledb sends values for
    the binds behind ``RETURN … INTO``, since it takes only ``RETURNING`` for the beginning of them.
    ``scales_counted``: go-ora reads a described scale as JDBC does, though its lengths are
    converted. ``field_version`` is the lower one of both sides.
    """

    lengths_converted: bool = True
    takes_return: bool = True
    scales_counted: bool = False
    field_version: int = FIELD_VERSION


@dataclass(frozen=True, slots=True)
class ConnectRequest:
    """What a client asks the listener for, in upper case and without the server type that may
    follow a service's name.

    ``service`` or ``sid`` is empty when it was not given. ``sdu`` is the size of the largest packet
    that the client takes, 0 where it does not say.
    """

    version: int
    service: str
    sid: str
    sdu: int = 0


def read_connect(link: Link) -> ConnectRequest:
    """Read the CONNECT packet, and the DATA packets after it when the connect text did not fit.

    Raises:
        ProtocolError: The first packet is something else.
    """
    packet = link.next_packet()
    body = packet.body
    if packet.type != PacketType.CONNECT or len(body) < 20:
        raise ProtocolError("the first packet is not CONNECT")
    version, size, offset = struct.unpack_from(">H14xHH", body)
    text = body[offset - 8 : offset - 8 + size]
    while len(text) < size:
        text += link.next_data()
    descriptor = text.decode("utf-8", "replace")
    service = _parameter(descriptor, "SERVICE_NAME").partition(":")[0]
    return ConnectRequest(
        version, service.upper(), _parameter(descriptor, "SID").upper(), _sdu(body, offset - 8)
    )


def _sdu(body: bytes, text_at: int) -> int:
    """The narrow size, or the wide one that newer clients send besides."""
    (narrow,) = struct.unpack_from(">H", body, _SDU_AT)
    if text_at < _WIDE_SDU_AT + 4:
        return int(narrow)
    (wide,) = struct.unpack_from(">I", body, _WIDE_SDU_AT)
    return int(wide or narrow)


def _parameter(descriptor: str, name: str) -> str:
    match = re.search(rf"\(\s*{name}\s*=\s*([^()]*?)\s*\)", descriptor, re.IGNORECASE)
    return match.group(1) if match else ""


def send_accept(link: Link, sdu: int) -> None:
    """Accept the connection; both sides use ``sdu`` and 32-bit packet lengths from here on."""
    narrow = min(sdu, 0xFFFF)
    body = struct.pack(
        ">HHHHHHHBB8xIIB",
        _PROTOCOL_VERSION, 1, narrow, narrow, 0x0100, 0, _ACCEPT_SIZE, _SERVICES_OFF, _SERVICES_OFF, sdu, sdu, 0,
    )  # fmt: skip
    link.send_packet(PacketType.ACCEPT, body)
    link.switch_to_wide(sdu)


def refusal_code(request: ConnectRequest, service_names: frozenset[str]) -> int | None:
    """The listener's error for a request, None when it can be served. Names are in upper case."""
    if request.version < _PROTOCOL_VERSION_MIN:
        return 12618
    if request.service:
        return None if request.service in service_names else 12514
    return None if request.sid in service_names else 12505


def send_refuse(link: Link, code: int) -> None:
    """Refuse the connection as a listener does."""
    text = (
        f"(DESCRIPTION=(TMP=)(VSNNUM=0)(ERR={code})(ERROR_STACK=(ERROR=(CODE={code})(EMFI=4))))"
    ).encode()
    link.send_packet(PacketType.REFUSE, struct.pack(">BBH", 0x22, 0, len(text)) + text)


def negotiate(
    link: Link, reader: TtcReader, sets: CharacterSets, field_version: int = FIELD_VERSION
) -> Agreement:
    """Answer the protocol and the data types request.

    Clients name their own highest field version or the lower of both; both sides go on with the
    lower one.

    Raises:
        ProtocolError: Other messages came, the client is older than 12.1, or wants to send text in
            the database's set.
    """
    if reader.u8() != 1:
        raise ProtocolError("protocol negotiation expected")
    while reader.u8():
        pass
    driver = _text_to_zero(reader)
    link.send_data(_protocol_reply(sets, field_version))
    if reader.u8() != 2:
        raise ProtocolError("data type negotiation expected")
    client_set = int.from_bytes(reader.raw(2), "little")
    if not sets.database.is_utf8 and client_set not in _UNICODE:
        raise ProtocolError("client does not send text in UTF-8")
    reader.raw(2)
    flags = reader.u8()
    compile_caps = reader.clr()
    tells_zone = bool(reader.clr()[_ZONES_AT : _ZONES_AT + 1] == b"\x01")
    if tells_zone:
        reader.raw(len(_ZONE_UTC))
    reader.skip_data_types(sets.national.number)
    if len(compile_caps) < 8 or compile_caps[_FIELD_VERSION_AT] < _FIELD_VERSION_MIN:
        raise ProtocolError("the client is older than 12.1")
    link.send_data(b"\x02" + (_ZONE_UTC if tells_zone else b"") + b"\x00\x00")
    lengths_converted = bool(flags & _LENGTHS_CONVERTED)
    return Agreement(
        lengths_converted=lengths_converted,
        scales_counted=not lengths_converted or driver == b"OracleClientGo",
        takes_return=not driver.startswith(b"python-oracledb"),
        field_version=min(field_version, compile_caps[_FIELD_VERSION_AT]),
    )


def _text_to_zero(reader: TtcReader) -> bytes:
    return bytes(iter(reader.u8, 0))


def _protocol_reply(sets: CharacterSets, field_version: int) -> bytes:
    compile_caps = bytearray(53)
    for place, capability in (_CAPABILITIES | {_FIELD_VERSION_AT: field_version}).items():
        compile_caps[place] = capability
    runtime_caps = bytearray(11)
    runtime_caps[_ZONES_AT] = 0x01
    runtime_caps[6] = 0x04
    national = bytes(9) + struct.pack(">H", sets.national.number)
    return b"".join(
        (
            b"\x01\x06\x00" + _BANNER + b"\x00",
            struct.pack("<HBH", sets.database.number, 1, 0),
            struct.pack(">H", len(national)) + national,
            clr_bytes(bytes(compile_caps)),
            clr_bytes(bytes(runtime_caps)),
        )
    )
