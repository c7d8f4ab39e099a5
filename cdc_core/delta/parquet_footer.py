"""How is the footer of a Parquet file read and written, with all that it says?

The footer is one struct in Thrift's compact protocol. Fields stand here under their numbers, so
that what this code does not know goes through unchanged. Source: ``parquet.thrift`` of Apache
Parquet, and "Thrift Compact protocol encoding" of Apache Thrift.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, BinaryIO, TypeAlias

MAGIC = b"PAR1"
_ENDING_BYTES = 8
"""The length of the footer, and the magic word."""


class Kind(IntEnum):
    """Types of values in the compact protocol; a truth value of a struct is its type."""

    TRUE = 1
    FALSE = 2
    BYTE = 3
    I16 = 4
    I32 = 5
    I64 = 6
    DOUBLE = 7
    BINARY = 8
    LIST = 9
    SET = 10
    STRUCT = 12


Struct: TypeAlias = dict[int, tuple[int, Any]]
"""A value with its type by each field's number. A list is the type of its items and these; a truth
value is None."""

_INTEGERS = frozenset({Kind.I16, Kind.I32, Kind.I64})
_LISTS = frozenset({Kind.LIST, Kind.SET})
_SHORT_MAX = 14
"""So many items of a list are counted in the byte of its type."""
_STEP_MAX = 15
"""So far from the field before, a field's number stands in the byte of its type."""


def read_footer(file: BinaryIO) -> tuple[Struct, int]:
    """The footer of a Parquet file, and where it begins.

    Raises:
        ValueError: The file is not a whole Parquet file.
    """
    size = file.seek(0, 2)
    file.seek(max(0, size - _ENDING_BYTES))
    ending = file.read(_ENDING_BYTES)
    length = int.from_bytes(ending[:4], "little")
    start = size - _ENDING_BYTES - length
    if ending[4:] != MAGIC or start < len(MAGIC):
        raise ValueError("the file has no Parquet footer")
    file.seek(start)
    return _Reader(file.read(length)).struct(), start


def footer_bytes(footer: Struct) -> bytes:
    """The footer as it ends a file, with its length and the magic word."""
    data = bytearray()
    _put_struct(data, footer)
    return bytes(data) + len(data).to_bytes(4, "little") + MAGIC


class _Reader:
    """Reads values one behind the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while head := self._byte():
            step, kind = head >> 4, head & 0x0F
            number = number + step if step else _unfolded(self._varint())
            fields[number] = (kind, self._value(kind))
        return fields

    def _value(self, kind: int) -> Any:
        if kind in _INTEGERS:
            return _unfolded(self._varint())
        if kind == Kind.BINARY:
            return self._bytes(self._varint())
        if kind == Kind.STRUCT:
            return self.struct()
        if kind in _LISTS:
            head = self._byte()
            count, items = head >> 4, head & 0x0F
            if count > _SHORT_MAX:
                count = self._varint()
            return items, [self._item(items) for _ in range(count)]
        if kind in (Kind.TRUE, Kind.FALSE):
            return None
        if kind in (Kind.BYTE, Kind.DOUBLE):
            return self._bytes(1 if kind == Kind.BYTE else 8)
        raise ValueError(f"the Parquet footer has a value of type {kind}")

    def _item(self, kind: int) -> Any:
        return self._byte() if kind in (Kind.TRUE, Kind.FALSE) else self._value(kind)

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]

    def _varint(self) -> int:
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
            shift += 7


def _put_struct(data: bytearray, fields: Struct) -> None:
    before = 0
    for number, (kind, value) in sorted(fields.items()):
        step = number - before
        if step <= _STEP_MAX:
            data.append(step << 4 | kind)
        else:
            data.append(kind)
            _put_varint(data, _folded(number))
        before = number
        _put_value(data, kind, value)
    data.append(0)


def _put_value(data: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        _put_varint(data, _folded(value))
    elif kind == Kind.BINARY:
        _put_varint(data, len(value))
        data += value
    elif kind == Kind.STRUCT:
        _put_struct(data, value)
    elif kind in _LISTS:
        items, found = value
        if len(found) > _SHORT_MAX:
            data.append(0xF0 | items)
            _put_varint(data, len(found))
        else:
            data.append(len(found) << 4 | items)
        for one in found:
            if items in (Kind.TRUE, Kind.FALSE):
                data.append(one)
            else:
                _put_value(data, items, one)
    elif value is not None:
        data += value


def _put_varint(data: bytearray, value: int) -> None:
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)


def _folded(value: int) -> int:
    """Small numbers of either sign as small ones."""
    return value << 1 if value >= 0 else (-value << 1) - 1


def _unfolded(value: int) -> int:
    return value >> 1 if not value & 1 else -(value + 1 >> 1)
