"""How does one talk to OpenLogReplicator's network writer?

Plain TCP. A frame is its length, four bytes in little-endian order, and a body. Requests and
control answers are Protocol Buffers messages of some numbers and a name; behind an answer
``REPLICATE`` every frame is one message in JSON, until the client asks for something else. The
server serves one client at a time.

Numbers of codes and fields were observed on OpenLogReplicator 1.9.0.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from cdc_core.errors import LogsNotReadyError, PreflightError

FRAME_BYTES_MAX = 2**32 - 2
_LENGTH = struct.Struct("<I")
_RECEIVE_BYTES = 256 * 1024
_CONNECT_SECONDS = 10
NOTHING_CONFIRMED = 2**64 - 1


class Request(IntEnum):
    """What a client asks for."""

    INFO = 0
    START = 1
    CONTINUE = 2
    CONFIRM = 3


class Answer(IntEnum):
    """What a server answers."""

    READY = 0
    FAILED_START = 1
    STARTING = 2
    ALREADY_STARTED = 3
    REPLICATE = 4
    PAYLOAD = 5
    INVALID_DATABASE = 6
    INVALID_COMMAND = 7


@dataclass(frozen=True, slots=True)
class Reply:
    """A control answer; ``scn`` is where the server's data begins."""

    code: Answer
    scn: int | None = None
    c_scn: int | None = None


def request_bytes(
    code: Request, name: str, *, scn: int | None = None, c_scn: int | None = None
) -> bytes:
    """The body of a request; a position goes with index 0."""
    body = b"" if code == 0 else b"\x08" + _varint(code)
    encoded = name.encode()
    body += b"\x12" + _varint(len(encoded)) + encoded
    if scn is not None:
        body += b"\x18" + _varint(scn)
    if c_scn is not None:
        body += b"\x40" + _varint(c_scn) + b"\x48\x00"
    return body


def fields_of(body: bytes) -> dict[int, int | bytes]:
    """The fields of a Protocol Buffers message that are numbers or bytes; the last of each.

    Raises:
        ValueError: It is none.
    """
    found: dict[int, int | bytes] = {}
    at = 0
    while at < len(body):
        key, at = _read_varint(body, at)
        if key & 7 == 0:
            found[key >> 3], at = _read_varint(body, at)
        elif key & 7 == 2:
            length, at = _read_varint(body, at)
            if at + length > len(body):
                raise ValueError("a field is longer than its message")
            found[key >> 3] = body[at : at + length]
            at += length
        else:
            raise ValueError("a field has a type that is not expected")
    return found


class Connection:
    """One connection to a server, for a ``with`` block.

    Args:
        host: Where it listens.
        port: Its port.
        name: The ``name`` of its source.

    Raises:
        LogsNotReadyError: It cannot be reached, or ended the connection.
    """

    def __init__(self, host: str, port: int, name: str) -> None:
        self._where, self._name = f"{host}:{port}", name
        self._data = bytearray()
        try:
            self._socket = socket.create_connection((host, port), timeout=_CONNECT_SECONDS)
        except OSError as error:
            raise self._lost(error) from error

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def info(self) -> Reply:
        """What the server does. It stops sending until :meth:`resume`.

        Raises:
            PreflightError: It has no source of that name.
        """
        return self._ask(request_bytes(Request.INFO, self._name))

    def start(self, scn: int) -> Reply:
        """Let a server that is ready begin at an SCN."""
        return self._ask(request_bytes(Request.START, self._name, scn=scn))

    def resume(self) -> Reply:
        """Let the server send all that it holds, and what comes.

        Position 1 switches its own filter off: by that it would withhold transactions that began
        before another one which was seen.
        """
        return self._ask(request_bytes(Request.CONTINUE, self._name, c_scn=1))

    def confirm(self, scn: int) -> None:
        """Let the server forget messages of transactions that began below an SCN; it answers
        nothing. Asking :meth:`info` behind it waits until it has."""
        self._send(request_bytes(Request.CONFIRM, self._name, c_scn=scn))

    def messages(self, idle_seconds: float) -> Iterator[bytes]:
        """Messages, until the server has sent nothing for so long, or ends the connection with the
        end of its data."""
        waiting = time.monotonic() + idle_seconds
        while True:
            body = self._taken()
            if body is not None:
                waiting = time.monotonic() + idle_seconds
                yield body
                continue
            left = waiting - time.monotonic()
            if left <= 0 or not select.select([self._socket], [], [], left)[0]:
                return
            if not self._receive():
                if self._data:
                    raise self._lost(None)
                return

    def _ask(self, body: bytes) -> Reply:
        self._send(body)
        while True:
            answer = self._taken()
            if answer is None:
                if not self._receive():
                    raise self._lost(None)
            elif not answer.startswith(b"{"):  # a message was on its way
                return self._reply(answer)

    def _reply(self, body: bytes) -> Reply:
        try:
            found = fields_of(body)
            code = Answer(int(found.get(1, 0)))
            scn, c_scn = found.get(2), found.get(10)
        except ValueError as error:
            raise PreflightError(
                "the server is not OpenLogReplicator's network writer",
                hint="Correct capture.host and capture.port.",
                server=self._where,
            ) from error
        if code is Answer.INVALID_DATABASE:
            raise PreflightError(
                "OpenLogReplicator has no source of that name",
                hint='Set capture.source to the "name" of its source.',
                server=self._where,
                source=self._name,
            )
        return Reply(
            code,
            scn if isinstance(scn, int) else None,
            c_scn if isinstance(c_scn, int) else None,
        )

    def _taken(self) -> bytes | None:
        """The next frame, if it is here whole."""
        if len(self._data) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._data)
        if length > FRAME_BYTES_MAX:
            raise PreflightError(
                "OpenLogReplicator announces a message of 4 GiB or more, which it does not send right",
                hint="Leave the table with such LOBs out, or read through LogMiner.",
                server=self._where,
            )
        end = _LENGTH.size + length
        if len(self._data) < end:
            return None
        body = bytes(self._data[_LENGTH.size : end])
        del self._data[:end]
        return body

    def _send(self, body: bytes) -> None:
        try:
            self._socket.sendall(_LENGTH.pack(len(body)) + body)
        except OSError as error:
            raise self._lost(error) from error

    def _receive(self) -> bool:
        try:
            received = self._socket.recv(_RECEIVE_BYTES)
        except OSError as error:
            raise self._lost(error) from error
        self._data += received
        return bool(received)

    def _lost(self, error: OSError | None) -> LogsNotReadyError:
        reason = "the server ended the connection" if error is None else type(error).__name__
        return LogsNotReadyError(
            "OpenLogReplicator cannot be reached",
            hint="Start it, or correct capture.host and capture.port. It serves one client at a time: end a Debezium connector that "
            "reads from it.",
            server=self._where,
            reason=reason,
        )


def _varint(number: int) -> bytes:
    made = bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def _read_varint(body: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(body) or shift > 63:
            raise ValueError("a number does not end")
        byte = body[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
