"""How do packets travel over the socket, and how does a break reach a statement that is running?

One thread per connection reads packets, so that a break is seen while the worker is busy; the
worker takes packets from a queue and is the only one that writes.
"""

from __future__ import annotations

import logging
import queue
import socket
import struct
import threading
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from oracle_embedded.wire.ttc import ProtocolError

logger = logging.getLogger(__name__)

_HEADER = 8
_PACKET_MAX = 4 * 1024 * 1024
_DATA_FLAG_EOF = 0x0040


class PacketType(IntEnum):
    """Packet types of the transport layer."""

    CONNECT = 1
    ACCEPT = 2
    REFUSE = 4
    DATA = 6
    MARKER = 12


class Marker(IntEnum):
    """Kinds of marker packets."""

    BREAK = 1
    RESET = 2
    INTERRUPT = 3


class Packet(NamedTuple):
    """A packet without its header."""

    type: int
    body: bytes


class ConnectionLostError(Exception):
    """The client is gone, or has said that it goes."""


class BreakReceivedError(Exception):
    """A marker came where a request was expected."""


class Link:
    """One client's socket as packets.

    ``break_seen`` is set from the moment that a break or interrupt marker arrives until
    :meth:`answer_break`.

    Args:
        on_break: Called in the reading thread at a break, and when the connection is lost; again
            while it returns True.
    """

    def __init__(self, sock: socket.socket, on_break: Callable[[], bool]) -> None:
        self._socket = sock
        self._on_break = on_break
        self._input = sock.makefile("rb", buffering=65536)
        self._wide = False
        self._payload_max = 8192 - _HEADER - 2
        self._packets: queue.SimpleQueue[Packet | None] = queue.SimpleQueue()
        self._reader: threading.Thread | None = None
        self.break_seen = False
        self.lost = False

    def start_reader(self, name: str) -> None:
        """Let a thread read from now on. Until then :meth:`next_packet` reads by itself."""
        self._reader = threading.Thread(target=self._read_forever, name=name, daemon=True)
        self._reader.start()

    def switch_to_wide(self, sdu: int) -> None:
        """Use 32-bit lengths and the agreed packet size, as both sides do after ACCEPT."""
        self._wide = True
        self._payload_max = sdu - _HEADER - 2

    def _read_forever(self) -> None:
        try:
            while True:
                packet = self._read_packet()
                is_break = packet.type == PacketType.MARKER and packet.body[2] != Marker.RESET
                self.break_seen = self.break_seen or is_break
                self._packets.put(packet)
                while is_break and self._on_break():
                    pass
        except (ConnectionLostError, OSError, ValueError):
            logger.debug("connection ended by the client")
        except ProtocolError as error:
            logger.warning("connection closed: %s", error)
        finally:
            self.lost = True
            self._input.close()
            self._packets.put(None)
            while self._on_break():
                pass

    def _read_packet(self) -> Packet:
        header = self._input.read(_HEADER)
        if len(header) < _HEADER:
            raise ConnectionLostError
        size = int.from_bytes(header[: 4 if self._wide else 2], "big")
        if not _HEADER <= size <= _PACKET_MAX:
            raise ProtocolError(f"packet length {size} is not possible")
        body = self._input.read(size - _HEADER)
        if len(body) < size - _HEADER:
            raise ConnectionLostError
        if header[4] == PacketType.MARKER and len(body) < 3:
            raise ProtocolError("marker packet is too short")
        return Packet(header[4], body)

    def next_packet(self) -> Packet:
        """The next packet.

        Raises:
            ConnectionLostError: There will be none.
        """
        if self._reader is None:
            return self._read_packet()
        packet = self._packets.get()
        if packet is None:
            self._packets.put(None)
            raise ConnectionLostError
        return packet

    def next_data(self) -> bytes:
        """The payload of the next DATA packet.

        Raises:
            BreakReceivedError: A marker came instead; :meth:`answer_break` is due.
            ConnectionLostError: The client ends the connection.
            ProtocolError: The packet has another type.
        """
        packet = self.next_packet()
        if packet.type == PacketType.MARKER:
            self.break_seen = True
            if packet.body[2] == Marker.RESET:
                self._packets.put(packet)
            raise BreakReceivedError
        if packet.type != PacketType.DATA or len(packet.body) < 2:
            raise ProtocolError(f"packet of type {packet.type} where data was expected")
        if int.from_bytes(packet.body[:2], "big") & _DATA_FLAG_EOF:
            raise ConnectionLostError
        return packet.body[2:]

    def answer_break(self) -> None:
        """Do the server's part of break and reset; an error reply is due after it."""
        self._send_marker(Marker.BREAK)
        while True:
            packet = self.next_packet()
            if packet.type == PacketType.MARKER and packet.body[2] == Marker.RESET:
                break
        self.break_seen = False
        self._send_marker(Marker.RESET)

    def _send_marker(self, kind: Marker) -> None:
        self.send_packet(PacketType.MARKER, bytes((1, 0, kind)))

    def send_packet(self, packet_type: PacketType, body: bytes) -> None:
        """Send one packet as it is."""
        size = _HEADER + len(body)
        length = struct.pack(">I", size) if self._wide else struct.pack(">HH", size, 0)
        self._send(length + bytes((packet_type, 0, 0, 0)) + body)

    def send_data(self, payload: bytes | bytearray) -> None:
        """Send a payload in as many DATA packets as it needs."""
        size_max = self._payload_max
        if len(payload) <= size_max:
            self.send_packet(PacketType.DATA, b"\x00\x00" + payload)
            return
        view = memoryview(payload)
        full_header = struct.pack(">IBBHH", _HEADER + 2 + size_max, PacketType.DATA, 0, 0, 0)
        parts: list[bytes | memoryview] = []
        for at in range(0, len(view), size_max):
            part = view[at : at + size_max]
            size = _HEADER + 2 + len(part)
            parts.append(
                full_header
                if len(part) == size_max
                else struct.pack(">IBBHH", size, PacketType.DATA, 0, 0, 0)
            )
            parts.append(part)
        self._send(b"".join(parts))

    def _send(self, raw: bytes) -> None:
        try:
            self._socket.sendall(raw)
        except OSError as error:
            raise ConnectionLostError from error

    def close(self) -> None:
        """Close the socket; the reading thread ends. May be called twice, from any thread."""
        self.lost = True
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            logger.debug("socket was already closed by the other side")
        self._socket.close()
        if self._reader is None:
            self._input.close()
