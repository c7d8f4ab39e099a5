"""What stands behind a LOB locator, and how is it read and written piece by piece?

A locator carries the engine's handle in itself, so rows that were fetched cost the server nothing. Temporary LOBs live
here until the client frees them. Positions count bytes in BLOBs and UTF-16 code units in CLOBs, as Oracle counts them.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from oracle_embedded.api import EngineSession, OracleError, OraType, Value
from oracle_embedded.wire.ttc import TtcReader, clr_bytes, ub_bytes

CHUNK_SIZE = 8060
LOCATOR_SIZE = 40
_PREFIX = 16
_HANDLE_MAX = 200
_TEMPORARY_FLAG = 0x01
_NATIONAL = 2
_CACHE_BYTES_MAX = 16 * 1024 * 1024
_READ, _LENGTH, _WRITE, _TRIM, _CHUNK = 0x0002, 0x0001, 0x0040, 0x0020, 0x4000
_CREATE, _OPEN, _CLOSE, _IS_OPEN = 0x0110, 0x8000, 0x10000, 0x11000
_LOB_DATA = 14


@dataclass(frozen=True, slots=True)
class LobRequest:
    """One call of function 96."""

    operation: int
    locator: bytes
    source_offset: int
    destination_offset: int
    amount: int | None
    data: bytes


def read_lob_request(reader: TtcReader) -> LobRequest:
    """Read the body of function 96."""
    has_locator = reader.u8()
    locator_size = reader.ub()
    reader.u8()
    reader.skip_ub(3)
    reader.raw(3)
    operation = reader.ub()
    reader.raw(2)
    source_offset = reader.ub()
    destination_offset = reader.ub()
    has_amount = reader.u8()
    reader.raw(6)
    locator = reader.raw(locator_size) if has_locator else b""
    data = b""
    if operation == _CREATE:
        reader.ub()
    elif operation == _WRITE and reader.u8() == _LOB_DATA:
        data = reader.clr()
    amount = reader.ub() if has_amount else None
    return LobRequest(operation, locator, source_offset, destination_offset, amount, data)


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
        self._temporaries: dict[int, _Temporary] = {}
        self._next_temporary = 1
        self._cache: OrderedDict[bytes, tuple[OraType, bytes]] = OrderedDict()
        self._cache_bytes = 0

    # --- locators ---

    def column_value(self, handle: bytes, ora_type: OraType, charset_form: int) -> bytes:
        """A locator of a fetched row, framed with length and chunk size."""
        _, content = self._content(handle)
        return _framed(_locator(handle, ora_type, charset_form, 0), len(content), ora_type)

    def text_of(self, handle: bytes) -> bytes:
        """The whole content: UTF-8 for a CLOB. For clients that fetch LOBs as LONG."""
        return self._session.read_lob(handle)[1]

    def temporary_from(self, value: bytes, ora_type: OraType, charset_form: int) -> bytes:
        """A framed locator of a new temporary LOB with this content, as an OUT bind returns it."""
        content = value if ora_type == OraType.BLOB else value.decode().encode("utf-16-be")
        locator = self._create(ora_type, charset_form, content)
        return _framed(locator, len(content), ora_type)

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

    def _create(self, ora_type: OraType, charset_form: int, content: bytes) -> bytes:
        number = self._next_temporary
        self._next_temporary += 1
        self._temporaries[number] = _Temporary(ora_type, charset_form, bytearray(content))
        return _locator(number.to_bytes(8, "big"), ora_type, charset_form, _TEMPORARY_FLAG)

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
        content = value if ora_type == OraType.BLOB else value.decode().encode("utf-16-be")
        self._cache[handle] = (ora_type, content)
        self._cache_bytes += len(content)
        while self._cache_bytes > _CACHE_BYTES_MAX and len(self._cache) > 1:
            _, (_, oldest) = self._cache.popitem(last=False)
            self._cache_bytes -= len(oldest)
        return ora_type, content

    def forget_contents(self) -> None:
        """Drop cached contents, at the end of a transaction."""
        self._cache.clear()
        self._cache_bytes = 0

    # --- operations ---

    def perform(self, request: LobRequest) -> bytes:
        """Carry out an operation; returns the reply's messages before the closing status.

        Raises:
            OracleError: The locator is not valid, may not be written, or the operation is not supported.
        """
        if request.operation == _CREATE:
            ora_type = OraType(request.destination_offset)
            locator = self._create(ora_type, request.source_offset, b"")
            return b"\x08" + locator + b"\x00\x00"
        if request.operation in (_OPEN, _CLOSE):
            return b"\x08" + request.locator + _amount(request.amount)
        if request.operation == _IS_OPEN:
            return b"\x08" + request.locator + _amount(request.amount) + b"\x00"
        if request.operation in (_WRITE, _TRIM):
            return self._change(request)
        if request.operation == _CHUNK:
            return b"\x08" + request.locator + ub_bytes(CHUNK_SIZE)
        if request.operation == _LENGTH:
            ora_type, content = self._resolve(request.locator)
            return b"\x08" + request.locator + ub_bytes(len(content) // _unit(ora_type))
        if request.operation == _READ:
            return self._read(request)
        raise OracleError(3001, "unimplemented feature")

    def _read(self, request: LobRequest) -> bytes:
        ora_type, content = self._resolve(request.locator)
        unit = _unit(ora_type)
        start = (max(request.source_offset, 1) - 1) * unit
        piece = content[start : start + (request.amount or 0) * unit]
        amount = len(piece) // unit
        if ora_type == OraType.CLOB and not _is_utf16(request.locator):
            piece = piece.decode("utf-16-be", "replace").encode()
        data = b"\x0e" + clr_bytes(piece) if piece else b""
        return data + b"\x08" + request.locator + _amount(amount)

    def _change(self, request: LobRequest) -> bytes:
        if len(request.locator) < LOCATOR_SIZE:
            raise OracleError(22275, "invalid LOB locator specified")
        if request.locator[7] & _TEMPORARY_FLAG:
            lob = self._temporary(request.locator)
            _edit(lob.content, lob.type, request)
        else:
            self._change_kept(request)
        return b"\x08" + request.locator + _amount(request.amount)

    def _change_kept(self, request: LobRequest) -> None:
        """Change a LOB of a row."""
        handle = request.locator[_PREFIX : _PREFIX + request.locator[10]]
        ora_type, content = self._content(handle)
        changed = bytearray(content)
        _edit(changed, ora_type, request)
        value = bytes(changed)
        self._session.write_lob(
            handle, value if ora_type == OraType.BLOB else value.decode("utf-16-be").encode()
        )
        self._cache_bytes += len(value) - len(content)
        self._cache[handle] = (ora_type, value)


def _edit(content: bytearray, ora_type: OraType, request: LobRequest) -> None:
    """Write or trim as the request says."""
    unit = _unit(ora_type)
    if request.operation == _TRIM:
        del content[(request.amount or 0) * unit :]
        return
    data = request.data
    if ora_type == OraType.CLOB and not _is_utf16(request.locator):
        data = data.decode().encode("utf-16-be")
    start = (max(request.source_offset, 1) - 1) * unit
    if start > len(content):
        filler = b"\x00" if unit == 1 else b"\x00 "
        content += filler * ((start - len(content)) // unit)
    content[start : start + len(data)] = data


def _unit(ora_type: OraType) -> int:
    return 1 if ora_type == OraType.BLOB else 2


def _amount(amount: int | None) -> bytes:
    return b"" if amount is None else ub_bytes(amount)


def _is_utf16(locator: bytes) -> bool:
    return locator[9] == _NATIONAL


def _locator(handle: bytes, ora_type: OraType, charset_form: int, flags: int) -> bytes:
    if len(handle) > _HANDLE_MAX:
        raise OracleError(600, "internal error code, arguments: [LOB handle too long]")
    prefix = bytes((0, 0, 0, 1, 0, 0, 0, flags, ora_type, charset_form, len(handle))).ljust(
        _PREFIX, b"\x00"
    )
    return (prefix + handle).ljust(LOCATOR_SIZE, b"\x00")


def _framed(locator: bytes, size: int, ora_type: OraType) -> bytes:
    return b"".join(
        (
            ub_bytes(len(locator)),
            ub_bytes(size // _unit(ora_type)),
            ub_bytes(CHUNK_SIZE),
            clr_bytes(locator),
        )
    )
