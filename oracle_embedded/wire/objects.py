"""How do objects and collections look on the wire?

A value is its type's number, some fields that say nothing here, and a pickled image: flags,
version, its length, for a collection one byte more, then the parts. Objects inside of objects stand
there without a frame of their own, in collections and as collections they have one. LOBs are
locators, national text is UTF-16.
"""

from __future__ import annotations

from oracle_embedded.api import ObjectShape, OracleError, OraType, ShapePart, Value
from oracle_embedded.values import number_from_decimal, packed, text_from_number, unpacked
from oracle_embedded.wire.lobs import LobStore
from oracle_embedded.wire.ttc import TtcReader, clr_bytes, dlc_bytes, ub_bytes

_VERSION_81, _COLLECTION, _NO_PREFIX = 0x80, 0x08, 0x04
_DEGENERATE = 0x10
_HAS_INDEXES = 0x10
_IMAGE_VERSION = 1
_PREFIX = b"\x01\x01"
_SHORT_MAX, _LONG_MARK = 245, 254
_NULL_MARK, _ATOMIC_NULL = 255, 253
_NUMBER_PREFIX = b"\x00\x22\x02\x08"
_EXTENT = bytes.fromhex("00000000000000000000000000010001")
_TOP_LEVEL = 1
_LOBS = (OraType.CLOB, OraType.BLOB)
_TEXTS = (OraType.VARCHAR, OraType.CHAR)
_TIMES = (OraType.TIMESTAMP, OraType.TIMESTAMP_LTZ)
_NATIONAL = 2
_XML_IS_TEXT, _XML_MORE = 0x04, 0x100000
_XML_TEXT = _XML_IS_TEXT.to_bytes(4, "big")
_NULL = bytes(5)


def object_value(value: Value, shape: ObjectShape, lobs: LobStore) -> bytes:
    """Encode an object or a collection of a row or of an OUT bind."""
    if value is None:
        return _NULL + ub_bytes(_TOP_LEVEL)
    image = _document(value) if shape.is_xml else _framed(value, shape, lobs)
    number = _NUMBER_PREFIX + shape.oid + _EXTENT
    return b"".join(
        (
            dlc_bytes(number),
            b"\x00\x00\x00",
            ub_bytes(len(image)),
            ub_bytes(_TOP_LEVEL),
            clr_bytes(image),
        )
    )


def read_object(reader: TtcReader) -> Value:
    """Read the pickled image of a bind."""
    reader.dlc()
    reader.dlc()
    reader.skip_ub(2)
    size = reader.ub()
    reader.ub()
    return reader.clr() if size else None


# --- to the client --------------------------------------------------------------------------------


def _framed(value: bytes, shape: ObjectShape, lobs: LobStore) -> bytes:
    flags = _VERSION_81 | (_COLLECTION if shape.is_collection else _NO_PREFIX)
    body = (_PREFIX if shape.is_collection else b"") + _body(value, shape, lobs)
    size = 7 + len(body)
    return bytes((flags, _IMAGE_VERSION, _LONG_MARK)) + size.to_bytes(4, "big") + body


def _document(text: bytes) -> bytes:
    head = bytes((_VERSION_81 | _NO_PREFIX, _IMAGE_VERSION, _LONG_MARK))
    return head + (12 + len(text)).to_bytes(4, "big") + b"\x01" + _XML_TEXT + text


def _body(value: bytes, shape: ObjectShape, lobs: LobStore) -> bytes:
    items = unpacked(value)
    if not shape.is_collection:
        pairs = zip(shape.parts, items, strict=True)
        return b"".join(_part(item, part, shape, lobs) for part, item in pairs)
    (element,) = shape.parts
    parts: list[bytes] = []
    if shape.has_index:
        for index, item in zip(items[::2], items[1::2], strict=True):
            parts += (index or b"", _part(item, element, shape, lobs))
    else:
        parts = [_part(item, element, shape, lobs) for item in items]
    count = len(items) // 2 if shape.has_index else len(items)
    return bytes((_HAS_INDEXES if shape.has_index else 0,)) + _size(count) + b"".join(parts)


def _part(item: Value, part: ShapePart, inside: ObjectShape, lobs: LobStore) -> bytes:
    if part.shape is not None:
        if item is None:
            return bytes((_NULL_MARK if part.shape.is_collection else _ATOMIC_NULL,))
        if inside.is_collection or part.shape.is_collection:
            return _sized(_framed(item, part.shape, lobs))
        return _body(item, part.shape, lobs)
    if item is None:
        return bytes((_NULL_MARK,))
    if part.is_xml:
        return _sized(_document(item))
    if part.type is OraType.BINARY_INTEGER:
        return _sized(int(text_from_number(item)).to_bytes(4, "big", signed=True))
    if part.type in _LOBS:
        return _sized(lobs.locator_of(item, part.type, part.charset_form))
    if part.type is OraType.BOOLEAN:
        return _sized(item.rjust(4, b"\x00"))
    if part.type in _TEXTS:
        return _sized(lobs.character_sets.of(part.charset_form).encode(item.decode()))
    return _sized(item)


def _sized(value: bytes) -> bytes:
    return _size(len(value)) + value


def _size(size: int) -> bytes:
    if size <= _SHORT_MAX:
        return bytes((size,))
    return bytes((_LONG_MARK,)) + size.to_bytes(4, "big")


# --- from the client ------------------------------------------------------------------------------


def engine_image(pickled: Value, shape: ObjectShape, lobs: LobStore) -> Value:
    """The image of a bind as the engine has it.

    Raises:
        OracleError: ORA-22337 for an image that is cut off, ORA-22275 for a locator that is not
            valid.
    """
    if pickled is None:
        return None
    try:
        reader = _Reader(pickled, lobs)
        return reader.document() if shape.is_xml else reader.framed(shape)
    except (IndexError, ValueError) as error:
        raise OracleError(22337, "the type of accessed object has been evolved") from error


class _Reader:
    """Reads one pickled image."""

    def __init__(self, pickled: bytes, lobs: LobStore) -> None:
        self._data = pickled
        self._at = 0
        self._lobs = lobs

    def framed(self, shape: ObjectShape) -> bytes:
        flags = self._u8()
        self._u8()
        self._size()
        if flags & _DEGENERATE:
            raise OracleError(3001, "unimplemented feature: objects in LOBs")
        if not flags & _NO_PREFIX:
            self._raw(self._size())
        return self._body(shape)

    def document(self) -> Value:
        """The text of a document, which is there itself or by a locator."""
        self._u8()
        self._u8()
        self._size()
        self._u8()
        kind = int.from_bytes(self._raw(4), "big")
        if kind & _XML_MORE:
            self._raw(4)
        rest = self._raw(len(self._data) - self._at)
        return rest if kind & _XML_IS_TEXT else self._lobs.bind_content(rest)

    def _body(self, shape: ObjectShape) -> bytes:
        if not shape.is_collection:
            return packed([self._part(part, shape) for part in shape.parts])
        (element,) = shape.parts
        self._u8()
        items: list[Value] = []
        for _ in range(self._size()):
            if shape.has_index:
                items.append(self._raw(4))
            items.append(self._part(element, shape))
        return packed(items)

    def _part(self, part: ShapePart, inside: ObjectShape) -> Value:
        if part.shape is not None:
            return self._inner(part.shape, inside)
        if self._data[self._at] == _NULL_MARK:
            self._at += 1
            return None
        value = self._raw(self._size())
        if part.is_xml:
            raise OracleError(3001, "unimplemented feature: XMLTYPE in objects of clients")
        if part.type is OraType.BINARY_INTEGER:
            return number_from_decimal(int.from_bytes(value, "big", signed=True))
        if part.type in _LOBS:
            return self._lobs.bind_content(value)
        if part.type is OraType.BOOLEAN:
            return value[-1:]
        if part.type in _TEXTS:
            own = self._lobs.character_sets.of(part.charset_form)
            return own.decode(value).encode() or None
        if part.type in _TIMES:
            return value.ljust(11, b"\x00")
        return value or None

    def _inner(self, shape: ObjectShape, inside: ObjectShape) -> Value:
        has_frame = shape.is_collection or inside.is_collection
        mark = self._data[self._at]
        if mark == _ATOMIC_NULL or (has_frame and mark == _NULL_MARK):
            self._at += 1
            return None
        if has_frame:
            return _Reader(self._raw(self._size()), self._lobs).framed(shape)
        return self._body(shape)

    def _u8(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _size(self) -> int:
        size = self._u8()
        return int.from_bytes(self._raw(4), "big") if size == _LONG_MARK else size

    def _raw(self, size: int) -> bytes:
        if self._at + size > len(self._data):
            raise IndexError
        self._at += size
        return self._data[self._at - size : self._at]
