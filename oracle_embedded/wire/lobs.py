"""What stands behind a LOB locator, and how is it read and written piece by piece?

A locator carries the engine's handle in itself, so rows that were fetched cost the server nothing.
Temporary LOBs live here until the client frees them. Positions count bytes in BLOBs and UTF-16 code
units in CLOBs, as Oracle counts them.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from dataclasses import dataclass, field

from oracle_embedded.api import EngineSession, LobCall, OracleError, OraType, Value
from oracle_embedded.charsets import replaced, replaced_utf8
from oracle_embedded.wire.ttc import ProtocolError, TtcReader, clr_bytes, dlc_bytes, ub_bytes

CHUNK_SIZE = 8060
LOCATOR_SIZE = 40
_PREFIX = 16
_HANDLE_MAX = 200
_TEMPORARY_FLAG = 0x01
_UTF16_FLAG = 0x80
_INITIALIZED_FLAG = 0x08
_BLOB_FLAG, _CLOB_FLAG = 0x01, 0x02
_TYPE_AT, _FORM_AT = 8, 9
_NATIONAL = 2
_CACHE_BYTES_MAX = 16 * 1024 * 1024
_READ, _LENGTH, _WRITE, _TRIM, _CHUNK = 0x0002, 0x0001, 0x0040, 0x0020, 0x4000
_CREATE, _FREE, _OPEN, _CLOSE, _IS_OPEN = 0x0110, 0x0111, 0x8000, 0x10000, 0x11000
_LOB_DATA = 14


@dataclass(frozen=True, slots=True)
class LobRequest:
    """One call of function 96. ``charset`` and ``wants_flag`` say which fields its reply has
    beside locator and amount."""

    operation: int
    locator: bytes
    source_offset: int
    destination_offset: int
    amount: int | None
    data: bytes
    charset: int | None
    wants_flag: bool


def read_lob_request(reader: TtcReader) -> LobRequest:
    """Read the body of function 96."""
    has_locator = reader.u8()
    locator_size = reader.ub()
    reader.u8()
    reader.skip_ub(3)
    has_charset = bool(reader.u8())
    reader.u8()
    wants_flag = bool(reader.u8())
    operation = reader.ub()
    reader.u8()
    scn_parts = reader.ub()
    source_offset = reader.ub()
    destination_offset = reader.ub()
    has_amount = reader.u8()
    reader.raw(6)
    locator = reader.raw(locator_size) if has_locator else b""
    charset = reader.ub() if has_charset else None
    reader.skip_ub(scn_parts)
    amount = reader.ub() if has_amount else None
    data = reader.clr() if operation == _WRITE and reader.u8() == _LOB_DATA else b""
    return LobRequest(
        operation,
        locator,
        source_offset,
        destination_offset,
        amount,
        data,
        charset,
        wants_flag,
    )


@dataclass(slots=True)
class _Temporary:
    """A temporary LOB; the content of a CLOB is UTF-16BE, so that offsets are byte offsets."""

    type: OraType
    charset_form: int
    content: bytearray = field(default_factory=bytearray)


class LobStore:
    """The LOBs of one session."""

    def __init__(self, session: EngineSession) -> None:
        self._session = session
        self.character_sets = session.character_sets
        self._temporaries: dict[int, _Temporary] = {}
        self._next_temporary = 1
        self._cache: OrderedDict[bytes, tuple[OraType, bytes]] = OrderedDict()
        self._cache_bytes = 0
        self._opened: set[bytes] = set()

    # --- locators ---

    def column_value(
        self, handle: bytes, ora_type: OraType, charset_form: int, prefetch: int | None
    ) -> bytes:
        """A locator of a fetched row with what the client wants along with it (see
        :class:`WireBind`)."""
        _, content = self._content(handle)
        return _framed(_locator(handle, ora_type, charset_form, 0), content, prefetch)

    def text_of(self, handle: bytes) -> bytes:
        """The whole content: UTF-8 for a CLOB. For clients that fetch LOBs as LONG."""
        ora_type, value = self._session.read_lob(handle)
        return value if ora_type == OraType.BLOB else replaced_utf8(value)

    def temporary_from(
        self, value: bytes, ora_type: OraType, charset_form: int, prefetch: int | None
    ) -> bytes:
        """A framed locator of a new temporary LOB with this content, as an OUT bind returns it."""
        content = value if ora_type == OraType.BLOB else _utf16(value)
        locator = self._create(ora_type, charset_form, content)
        return _framed(locator, content, prefetch)

    def locator_of(self, value: bytes, ora_type: OraType, charset_form: int) -> bytes:
        """The locator of a new temporary LOB with this content, as an object holds it."""
        content = value if ora_type == OraType.BLOB else _utf16(value)
        return self._create(ora_type, charset_form, content)

    def bind_content(self, locator: Value) -> Value:
        """The content behind a bound locator, as the engine takes it.

        Raises:
            OracleError: ORA-22275 for a locator that is not valid (any more).
        """
        if locator is None:
            return None
        ora_type, content = self._resolve(locator)
        return content if ora_type == OraType.BLOB else content.decode("utf-16-be").encode()

    def free(self, locator: bytes) -> None:
        """Free a temporary LOB; unknown ones are ignored, as for cursors."""
        if len(locator) >= _PREFIX + 8:
            self._temporaries.pop(int.from_bytes(locator[_PREFIX : _PREFIX + 8], "big"), None)
            self._session.set_temporary_lobs(len(self._temporaries))

    def _create(
        self, ora_type: OraType, charset_form: int, content: bytes, size: int = LOCATOR_SIZE
    ) -> bytes:
        """A new temporary LOB; the locator is as long as the client's buffer for it."""
        number = self._next_temporary
        self._next_temporary += 1
        self._temporaries[number] = _Temporary(ora_type, charset_form, bytearray(content))
        self._session.set_temporary_lobs(len(self._temporaries))
        return _locator(number.to_bytes(8, "big"), ora_type, charset_form, _TEMPORARY_FLAG, size)

    def _temporary(self, locator: bytes) -> _Temporary:
        number = int.from_bytes(locator[_PREFIX : _PREFIX + 8], "big")
        lob = self._temporaries.get(number)
        if lob is None:
            raise OracleError(22275, "invalid LOB locator specified")
        return lob

    def _resolve(self, locator: bytes) -> tuple[OraType, bytes]:
        """Type and content, CLOBs as UTF-16BE."""
        if len(locator) < LOCATOR_SIZE:
            raise OracleError(22275, "invalid LOB locator specified")
        if locator[7] & _TEMPORARY_FLAG:
            lob = self._temporary(locator)
            return lob.type, bytes(lob.content)
        return self._content(locator[_PREFIX : _PREFIX + locator[10]])

    def _content(self, handle: bytes) -> tuple[OraType, bytes]:
        cached = self._cache.get(handle)
        if cached is not None:
            return cached
        ora_type, value = self._session.read_lob(handle)
        content = value if ora_type == OraType.BLOB else _utf16(value)
        self._cache[handle] = (ora_type, content)
        self._cache_bytes += len(content)
        while self._cache_bytes > _CACHE_BYTES_MAX and len(self._cache) > 1:
            _, (_, oldest) = self._cache.popitem(last=False)
            self._cache_bytes -= len(oldest)
        return ora_type, content

    def forget_contents(self) -> None:
        """Drop cached contents, and close LOBs, at the end of a transaction."""
        self._opened.clear()
        self._cache.clear()
        self._cache_bytes = 0

    # --- operations ---

    def perform(self, request: LobRequest) -> bytes:
        """Carry out an operation; returns the reply's messages before the closing status.

        Raises:
            OracleError: The locator is not valid, may not be written, or the operation is not
                supported.
        """
        if request.operation == _CREATE:
            ora_type = OraType(request.destination_offset)
            size = len(request.locator)
            locator = self._create(ora_type, request.source_offset, b"", size)
            return _answer(request, request.amount, locator)
        if request.operation in (_OPEN, _CLOSE, _IS_OPEN):
            return self._open_state(request)
        if request.operation == _FREE:
            self.free(request.locator)
            return _answer(request, request.amount)
        if request.operation in (_WRITE, _TRIM):
            return self._change(request)
        if request.operation == _CHUNK:
            return _answer(request, CHUNK_SIZE)
        if request.operation == _LENGTH:
            ora_type, content = self._resolve(request.locator)
            return _answer(request, len(content) // _unit(ora_type))
        if request.operation == _READ:
            return self._read(request)
        raise OracleError(3001, "unimplemented feature")

    def _open_state(self, request: LobRequest) -> bytes:
        """Open or close a LOB, or tell whether it is open; a transaction's end closes those of
        rows.

        Raises:
            OracleError: ORA-22293 for one that is open, ORA-22289 for one that is not.
        """
        self._resolve(request.locator)
        key = request.locator[_PREFIX : _PREFIX + request.locator[10]]
        if request.operation == _OPEN:
            if key in self._opened:
                raise OracleError(22293, "LOB already opened in the same transaction")
            self._opened.add(key)
        elif request.operation == _CLOSE:
            if key not in self._opened:
                raise OracleError(22289, "cannot perform operation on an unopened file or LOB")
            self._opened.discard(key)
        return _answer(request, request.amount, flag=key in self._opened)

    def _read(self, request: LobRequest) -> bytes:
        ora_type, content = self._resolve(request.locator)
        unit = _unit(ora_type)
        start = (max(request.source_offset, 1) - 1) * unit
        piece = content[start : start + (request.amount or 0) * unit]
        amount = len(piece) // unit
        if ora_type == OraType.CLOB and not _is_utf16(request.locator):
            piece = piece.decode("utf-16-be", "replace").encode()
        data = b"\x0e" + clr_bytes(piece) if piece else b""
        return data + _answer(request, amount)

    def _change(self, request: LobRequest) -> bytes:
        if len(request.locator) < LOCATOR_SIZE:
            raise OracleError(22275, "invalid LOB locator specified")
        if request.locator[7] & _TEMPORARY_FLAG:
            lob = self._temporary(request.locator)
            _edit(lob.content, lob.type, request)
        else:
            self._change_kept(request)
        return _answer(request, request.amount)

    def _change_kept(self, request: LobRequest) -> None:
        """Change a LOB of a row."""
        handle = request.locator[_PREFIX : _PREFIX + request.locator[10]]
        ora_type, content = self._content(handle)
        changed = bytearray(content)
        _edit(changed, ora_type, request)
        value = bytes(changed)
        is_blob = ora_type == OraType.BLOB
        self._session.write_lob(
            handle,
            value if is_blob else value.decode("utf-16-be").encode(),
            _call(value, ora_type, request),
        )
        self._cache_bytes += len(value) - len(content)
        self._cache[handle] = (ora_type, value)


def _call(value: bytes, ora_type: OraType, request: LobRequest) -> LobCall:
    """What the request says, in the redo's units: it counts characters where the wire counts halves
    of surrogate pairs."""

    def size(end: int) -> int:
        return end if ora_type == OraType.BLOB else len(value[:end].decode("utf-16-be", "replace"))

    if request.operation == _TRIM:
        return LobCall(None, size(len(value)))
    start = (max(request.source_offset, 1) - 1) * _unit(ora_type)
    data = request.data
    if ora_type == OraType.CLOB and not _is_utf16(request.locator):
        data = data.decode("utf-8", "replace").encode("utf-16-be")
    return LobCall(size(start), size(start + len(data)) - size(start))


def _edit(content: bytearray, ora_type: OraType, request: LobRequest) -> None:
    """Write or trim as the request says."""
    unit = _unit(ora_type)
    if request.operation == _TRIM:
        size = (request.amount or 0) * unit
        if size > len(content):
            text = "specified trim length is greater than current LOB value's length"
            raise OracleError(22926, text)
        del content[size:]
        return
    data = request.data
    if ora_type == OraType.CLOB and not _is_utf16(request.locator):
        data = data.decode("utf-8", "replace").encode("utf-16-be")
    start = (max(request.source_offset, 1) - 1) * unit
    if start > len(content):
        filler = b"\x00" if unit == 1 else b"\x00 "
        content += filler * ((start - len(content)) // unit)
    content[start : start + len(data)] = data


def _utf16(value: bytes) -> bytes:
    return replaced(value.decode()).encode("utf-16-be")


def _unit(ora_type: OraType) -> int:
    return 1 if ora_type == OraType.BLOB else 2


def _answer(
    request: LobRequest, amount: int | None, locator: bytes | None = None, *, flag: bool = False
) -> bytes:
    """Message 8 of a LOB operation: the fields that the request asked for."""
    parts = [b"\x08", request.locator if locator is None else locator]
    if request.charset is not None:
        parts.append(ub_bytes(request.charset))
    if request.amount is not None:
        parts.append(ub_bytes(amount or 0))
    if request.wants_flag:
        parts.append(b"\x01" if flag else b"\x00")
    return b"".join(parts)


def _is_utf16(locator: bytes) -> bool:
    return locator[_FORM_AT] == _NATIONAL


def _locator(
    handle: bytes, ora_type: OraType, charset_form: int, flags: int, size: int = LOCATOR_SIZE
) -> bytes:
    if len(handle) > _HANDLE_MAX:
        raise OracleError(600, "internal error code, arguments: [LOB handle too long]")
    kind = _BLOB_FLAG if ora_type == OraType.BLOB else _CLOB_FLAG
    width = _UTF16_FLAG if charset_form == _NATIONAL else 0
    size = max(size, _PREFIX + len(handle))
    prefix = struct.pack(
        ">HH6B", size - 2, 1, kind, _INITIALIZED_FLAG, width, flags, ora_type, charset_form
    ) + bytes((len(handle),))
    return (prefix.ljust(_PREFIX, b"\x00") + handle).ljust(size, b"\x00")


def split_locators(locators: bytes) -> list[bytes]:
    """Locators that stand one after another; each begins with its length, which does not count
    itself.

    Raises:
        ProtocolError: They do not fit.
    """
    found = []
    at = 0
    while at < len(locators):
        end = at + 2 + int.from_bytes(locators[at : at + 2], "big")
        if end > len(locators):
            raise ProtocolError("locators are cut off")
        found.append(locators[at:end])
        at = end
    return found


def _framed(locator: bytes, content: bytes, prefetch: int | None) -> bytes:
    """A locator alone, or with length and chunk size, or with its first data as well."""
    if prefetch is None:
        return dlc_bytes(locator)
    ora_type = OraType(locator[_TYPE_AT])
    unit = _unit(ora_type)
    parts = [ub_bytes(len(locator)), ub_bytes(len(content) // unit), ub_bytes(CHUNK_SIZE)]
    if prefetch:
        data = content[: prefetch * unit]
        if ora_type == OraType.CLOB:
            if data and 0xD8 <= data[-2] < 0xDC:
                data = data[:-2]  # no half characters: the client reads on where the data ends
            parts += (b"\x00", bytes((locator[_FORM_AT],)))
            if not _is_utf16(locator):
                data = data.decode("utf-16-be", "replace").encode()
        parts.append(clr_bytes(data))
    parts.append(clr_bytes(locator))
    return b"".join(parts)
