"""How are the primitive fields of the protocol read and written?

``ub`` is an unsigned number with its length in front, ``sb`` the same with a sign bit in the
length; ``clr`` are bytes with a length (in chunks when they are long), ``dlc`` are bytes whose
length stands there twice.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NoReturn

from oracle_embedded.charsets import text_from_bytes

SHORT_MAX = 252
_LONG_MARK = 254
_NULL_MARK = 255
_CHUNK_MAX = 32767


class ProtocolError(Exception):
    """The client sent something that is not the protocol; its connection is closed, no other."""


class TtcReader:
    """Reads one client's requests as a stream, across packet borders.

    Args:
        more: Returns the payload of the next DATA packet. It blocks, and raises what ends the
            stream.
    """

    __slots__ = ("_at", "_data", "_more")

    def __init__(self, more: Callable[[], bytes]) -> None:
        self._more = more
        self._data = b""
        self._at = 0

    def discard(self) -> None:
        """Forget what is left of the current packet: an unreadable request, or one that a break has
        ended."""
        self._data = b""
        self._at = 0

    def wait(self) -> None:
        """Block until at least one byte can be read."""
        while self._at >= len(self._data):
            self._data = self._more()
            self._at = 0

    def u8(self) -> int:
        """Read one byte."""
        if self._at >= len(self._data):
            self.wait()
        value = self._data[self._at]
        self._at += 1
        return value

    def raw(self, size: int) -> bytes:
        """Read exactly ``size`` bytes."""
        end = self._at + size
        if end <= len(self._data):
            value = self._data[self._at : end]
            self._at = end
            return value
        parts = []
        while size:
            self.wait()
            part = self._data[self._at : self._at + size]
            self._at += len(part)
            size -= len(part)
            parts.append(part)
        return b"".join(parts)

    def u16(self) -> int:
        """Read two bytes, big endian."""
        return int.from_bytes(self.raw(2), "big")

    def u16le(self) -> int:
        """Read two bytes, little endian."""
        return int.from_bytes(self.raw(2), "little")

    def ub(self) -> int:
        """Read an unsigned number.

        Raises:
            ProtocolError: Its length is not 0 to 8.
        """
        size = self.u8()
        if size == 0:
            return 0
        if size == 1:
            return self.u8()
        if size > 8:
            _fail_length("number", size)
        return int.from_bytes(self.raw(size), "big")

    def sb(self) -> int:
        """Read a signed number."""
        size = self.u8()
        negative = bool(size & 0x80)
        size &= 0x7F
        if size > 8:
            _fail_length("number", size)
        value = int.from_bytes(self.raw(size), "big")
        return -value if negative else value

    def skip_ub(self, count: int) -> None:
        """Pass over unsigned numbers."""
        for _ in range(count):
            self.ub()

    def skip_data_types(self, national: int) -> None:
        """Pass over a list of data types, some hundred: two bytes each, two more, and four more
        where those are not 0. It ends with 0. Some clients name the national character set before
        it."""
        first = self.raw(2)
        if first != national.to_bytes(2, "little"):
            if first == b"\0\0":
                return
            if self.u16():
                self.raw(4)
        data, at = self._data, self._at
        while at + 8 <= len(data):
            if not (data[at] or data[at + 1]):
                self._at = at + 2
                return
            at += 8 if data[at + 2] or data[at + 3] else 4
        self._at = at
        while self.u16():
            if self.u16():
                self.raw(4)

    def clr(self) -> bytes:
        """Read bytes with a length; NULL is empty."""
        size = self.u8()
        if size <= SHORT_MAX:
            return self.raw(size)
        if size == _NULL_MARK:
            return b""
        if size != _LONG_MARK:
            _fail_length("bytes", size)
        parts = []
        while chunk := self.ub():
            parts.append(self.raw(chunk))
        return b"".join(parts)

    def text(self) -> str:
        """Read text with a length.

        Raises:
            ProtocolError: It is cut off.
        """
        return text_from_bytes(self.clr())

    def announced_text(self, size: int, *, length_again: bool) -> str:
        """Read text whose length was announced some fields before, and stands in front of it again
        if the client does so.

        Raises:
            ProtocolError: It is cut off.
        """
        return self.text() if length_again else text_from_bytes(self.raw(size))

    def text_twice(self) -> str:
        """Read text whose length stands there twice.

        Raises:
            ProtocolError: It is cut off.
        """
        return text_from_bytes(self.dlc())

    def clr_row(self, count: int) -> list[bytes | None]:
        """Read ``count`` such byte strings, NULL and empty as None."""
        data = self._data
        at = self._at
        size_all = len(data)
        row: list[bytes | None] = []
        for _ in range(count):
            if at >= size_all:
                break
            size = data[at]
            end = at + 1 + size
            if end > size_all or size > SHORT_MAX:
                break
            row.append(data[at + 1 : end] if size else None)
            at = end
        self._at = at
        while len(row) < count:
            row.append(self.clr() or None)
        return row

    def dlc(self) -> bytes:
        """Read bytes whose length stands there twice."""
        return self.clr() if self.ub() else b""


def _fail_length(what: str, size: int) -> NoReturn:
    raise ProtocolError(f"length byte {size} of a {what} field is not possible")


def ub_bytes(value: int) -> bytes:
    """Encode an unsigned number."""
    if value == 0:
        return b"\x00"
    size = (value.bit_length() + 7) // 8
    return bytes((size,)) + value.to_bytes(size, "big")


def sb_bytes(value: int) -> bytes:
    """Encode a signed number."""
    if value >= 0:
        return ub_bytes(value)
    magnitude = ub_bytes(-value)
    return bytes((magnitude[0] | 0x80,)) + magnitude[1:]


def sb1_bytes(value: int) -> bytes:
    """Encode a signed number of one byte."""
    return struct.pack(">b", value)


def clr_bytes(value: bytes) -> bytes:
    """Encode bytes with a length; empty is NULL."""
    if len(value) <= SHORT_MAX:
        return bytes((len(value),)) + value
    parts = [b"\xfe"]
    for at in range(0, len(value), _CHUNK_MAX):
        chunk = value[at : at + _CHUNK_MAX]
        parts += (ub_bytes(len(chunk)), chunk)
    parts.append(b"\x00")
    return b"".join(parts)


def dlc_bytes(value: bytes) -> bytes:
    """Encode bytes whose length stands there twice."""
    return ub_bytes(len(value)) + clr_bytes(value) if value else b"\x00"
