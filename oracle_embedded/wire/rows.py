"""How do query columns and rows look on the wire?

Rows are the benchmark path. The engine's values are already encoded, so a row is its values with a
length byte before each; whole batches are put together with list operations that run in C.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain
from operator import eq

from oracle_embedded.api import ColumnMeta, OraType, Value
from oracle_embedded.charsets import bytes_from_text, has_stand_ins
from oracle_embedded.values import bytes_from_logical_rowid, parts_from_rowid
from oracle_embedded.wire.binds import SCALED_TYPES, WireBind, rowid_value
from oracle_embedded.wire.connect import CHARSET_UTF8, CHARSET_UTF16
from oracle_embedded.wire.lobs import LobStore
from oracle_embedded.wire.objects import object_value
from oracle_embedded.wire.ttc import SHORT_MAX, clr_bytes, dlc_bytes, sb1_bytes, ub_bytes

Framer = Callable[[Value], bytes]

_ROW_DATA = b"\x07"
_LOGICAL = b"\x02"
"""What a universal ROWID that is no address begins with; an address begins with 1."""
_NATIONAL = 2
_LOB_TYPES = frozenset((OraType.CLOB, OraType.BLOB))
_TEXT_TYPES = frozenset((OraType.VARCHAR, OraType.CHAR, OraType.LONG))
_LONG_TYPES = frozenset((OraType.LONG, OraType.LONG_RAW))
_OF_ONE_ROW = _LOB_TYPES | _LONG_TYPES | {OraType.CURSOR, OraType.OBJECT}
_LONG_END = b"\x00\x00"
_IS_JSON = 0x100
_SAME = 1
_DIGITS = bytes.maketrans(b"\0\1", b"10")
"""What is sent, as binary digits."""
_LENGTHS = [bytes((size,)) for size in range(SHORT_MAX + 1)]
_ROW_LENGTHS = [_ROW_DATA + length for length in _LENGTHS]


def has_lobs(columns: Sequence[ColumnMeta]) -> bool:
    """Does the client define such a query before it fetches?"""
    return any(column.type in _LOB_TYPES for column in columns)


def row_header(columns: int) -> bytes:
    """Encode message 6, which rows follow; go-ora learns from it how many columns the rows of a
    block's cursor have."""
    high, low = divmod(columns, 256)
    return b"\x06\x00" + ub_bytes(low) + ub_bytes(high) + bytes(4)


def describe(
    columns: Sequence[ColumnMeta],
    *,
    scale_bytes: Callable[[int], bytes] = sb1_bytes,
    has_ids: bool = True,
) -> bytes:
    """Encode message 16; ``scale_bytes`` as the client reads the scale of numbers and times,
    ``has_ids`` from field version 8 on."""
    parts = [b"\x10\x00", ub_bytes(sum(column.size for column in columns)), ub_bytes(len(columns))]
    if columns:
        parts.append(b"\x00")
    for position, column in enumerate(columns, 1):
        describes = column_description if column.shape is not None else _plain_description
        parts.append(describes(column, position, scale_bytes=scale_bytes, has_ids=has_ids))
    parts.append(bytes(6))
    return b"".join(parts)


def column_description(
    column: ColumnMeta,
    position: int,
    *,
    scale_bytes: Callable[[int], bytes] = sb1_bytes,
    has_ids: bool = True,
) -> bytes:
    """Encode what is said of one column, at its place from 1."""
    name, shape = bytes_from_text(column.name.encode()), column.shape
    charset = (0, CHARSET_UTF8, CHARSET_UTF16)[column.charset_form]
    return b"".join(
        (
            struct.pack(">BBb", column.type, 0, column.precision),
            (scale_bytes if column.type in SCALED_TYPES else sb1_bytes)(column.scale),
            ub_bytes(max(column.size, 1)),
            b"\x00\x00",
            dlc_bytes(shape.oid) if shape is not None else b"\x00",
            b"\x00",
            ub_bytes(charset),
            bytes((column.charset_form,)),
            ub_bytes(column.char_size),
            b"\x00" if has_ids else b"",
            bytes((column.nullable, min(len(name), 255))),
            dlc_bytes(name),
            dlc_bytes(shape.owner.encode()) if shape is not None else b"\x00",
            dlc_bytes(shape.name.encode()) if shape is not None else b"\x00",
            ub_bytes(position),
            ub_bytes(_IS_JSON if column.is_json else 0),
        )
    )


_plain_description = lru_cache(maxsize=4096)(column_description)
"""Clients ask for the same columns again and again; a shape has what cannot be a key."""


def cursor_value(description: bytes, cursor_id: int) -> bytes:
    """Encode a REF CURSOR: a length, what message 16 says of its columns, its number."""
    return b"\x01" + description[2:] + ub_bytes(cursor_id)


class RowEncoder:
    """Encodes the rows of one query.

    Args:
        defines: How the client wants the columns, empty when it did not say.
        cursor_out: Makes a cursor of the client of an open query, and encodes it.
        leaves_out: Leave out what the row before has as well, and say so by message 21, as Oracle
            does; rows are sent one after the other.
    """

    def __init__(
        self,
        columns: Sequence[ColumnMeta],
        defines: Sequence[WireBind],
        lobs: LobStore,
        cursor_out: Framer,
        *,
        leaves_out: bool = False,
    ) -> None:
        wanted = defines if len(defines) == len(columns) else [None] * len(columns)
        framers = [
            cursor_out if column.type is OraType.CURSOR else _framer(column, define, lobs)
            for column, define in zip(columns, wanted, strict=True)
        ]
        self._width = len(columns)
        self._framers = [(at, framer) for at, framer in enumerate(framers) if framer is not None]

        # A locator, a cursor or an object is a thing of its own in each row.
        self._sent_always = [
            at for at, column in enumerate(columns) if column.type in _OF_ONE_ROW or column.shape
        ]
        self._leaves_out = leaves_out
        self._last: list[Value] | None = None
        self._is_partial = False
        self._texts = [
            at
            for at, column in enumerate(columns)
            if column.type in _TEXT_TYPES and column.charset_form != _NATIONAL
        ]

    def begin(self) -> None:
        """The next row is the first one of an execution."""
        self._last, self._is_partial = None, False

    def encode(self, rows: Sequence[Sequence[Value]]) -> bytes:
        """Encode a batch of rows as one message 7 each."""
        if not rows:
            return b""
        last = self._last
        encoded = self._encoded(rows)
        # Bytes that are no UTF-8 are rare: one look at the message tells that there are none.
        if has_stand_ins(encoded):
            self._last = last
            encoded = self._encoded(self._with_bytes(rows))
        return encoded

    def _with_bytes(self, rows: Sequence[Sequence[Value]]) -> list[list[Value]]:
        """The rows with the bytes for which their texts have stand-ins."""
        shown = [list(row) for row in rows]
        for row in shown:
            for at in self._texts:
                value = row[at]
                row[at] = None if value is None else bytes_from_text(value)
        return shown

    def _encoded(self, rows: Sequence[Sequence[Value]]) -> bytes:
        width = self._width
        values: list[Value] = list(chain.from_iterable(rows))
        for at, framer in self._framers:
            values[at::width] = map(framer, values[at::width])
        try:
            lengths = list(map(len, values))  # type: ignore[arg-type]
        except TypeError:
            values = [value or b"" for value in values]
            lengths = list(map(len, values))  # type: ignore[arg-type]
        for at, _ in self._framers:
            lengths[at::width] = [0] * len(rows)
        try:
            prefixes = list(map(_LENGTHS.__getitem__, lengths))
            prefixes[::width] = map(_ROW_LENGTHS.__getitem__, lengths[::width])
        except IndexError:
            prefixes = _long_prefixes(values, lengths, width)
        for at, _ in self._framers:
            prefixes[at::width] = [b"" if at else _ROW_DATA] * len(rows)
        if self._leaves_out:
            self._leave_out(values, prefixes)
        parts: list[Value] = [b""] * (2 * len(values))
        parts[::2] = prefixes
        parts[1::2] = values
        return b"".join(parts)  # type: ignore[arg-type]

    def _leave_out(self, values: list[Value], prefixes: list[bytes]) -> None:
        """Empty the places of what the row before has as well, and put message 21 before such a
        row, and before the next one that is whole: go-ora holds on to what the last one said."""
        width = self._width
        before = [*(self._last or [None] * width), *values[:-width]]
        self._last = values[-width:]
        flags = bytearray(map(eq, values, before))
        for at in self._sent_always:
            flags[at::width] = bytes(len(values) // width)
        if _SAME not in flags and not self._is_partial:
            return
        size = (width + 7) // 8
        for first in range(0, len(values), width):
            same = flags[first : first + width]
            was_partial, self._is_partial = self._is_partial, _SAME in same
            if not self._is_partial and not was_partial:
                continue
            sent = int(same[::-1].translate(_DIGITS), 2)
            message = b"\x15" + ub_bytes(sent.bit_count()) + sent.to_bytes(size, "little")
            prefixes[first] = message + (_ROW_DATA if same[0] else prefixes[first])
            for at in range(first, first + width):
                if flags[at]:
                    values[at] = b""
                    if at > first:
                        prefixes[at] = b""


def _long_prefixes(values: list[Value], lengths: list[int], width: int) -> list[bytes]:
    """Prefixes of a batch with values too long for a length byte; these values are cut into chunks
    in place."""
    prefixes = []
    for at, length in enumerate(lengths):
        if length > SHORT_MAX:
            framed = clr_bytes(values[at] or b"")
            values[at] = framed[1:]
            prefix = framed[:1]
        else:
            prefix = _LENGTHS[length]
        prefixes.append(prefix if at % width else _ROW_DATA + prefix)
    return prefixes


def _framer(column: ColumnMeta, define: WireBind | None, lobs: LobStore) -> Framer | None:
    """What encodes a column's values with all that goes around them; None for plain bytes with a
    length."""
    if column.type in _LOB_TYPES:
        return _lob_framer(column, define, lobs)
    if column.shape is not None:
        shape = column.shape
        return lambda value: object_value(value, shape, lobs)
    if column.type in _LONG_TYPES:
        return _frame_long
    if column.type == OraType.ROWID:
        return rowid_value
    if column.type == OraType.UROWID:
        return _frame_urowid
    if column.type == OraType.BOOLEAN:
        return _frame_boolean
    if column.charset_form == _NATIONAL:
        return lambda value: clr_bytes(national_bytes(value, lobs))
    return None


def _lob_framer(column: ColumnMeta, define: WireBind | None, lobs: LobStore) -> Framer:
    if define is None or define.type in _LOB_TYPES:
        prefetch = None if define is None else define.lob_prefetch
        return lambda handle: (
            lobs.column_value(handle, column.type, column.charset_form, prefetch)
            if handle
            else b"\x00"
        )
    end = _LONG_END if define.type in _LONG_TYPES else b""
    if (define.charset_form or column.charset_form) == _NATIONAL:
        return lambda handle: clr_bytes(national_bytes(handle and lobs.text_of(handle), lobs)) + end
    return lambda handle: clr_bytes(lobs.text_of(handle) if handle else b"") + end


def national_bytes(value: Value, lobs: LobStore) -> bytes:
    """National text as clients get it: in the national character set."""
    return lobs.character_sets.national.encode(value.decode()) if value else b""


def _frame_long(value: Value) -> bytes:
    return clr_bytes(value or b"") + _LONG_END


def _frame_urowid(value: Value) -> bytes:
    if not value:
        return b"\x00"
    text = value.decode()
    if text.startswith("*"):
        packed = _LOGICAL + bytes_from_logical_rowid(text)
    else:
        packed = struct.pack(">BIHIH", 1, *parts_from_rowid(text))
    return ub_bytes(len(packed)) + clr_bytes(packed)


def _frame_boolean(value: Value) -> bytes:
    if value is None:
        return b"\x00"
    return b"\x02\x01\x01" if value == b"\x01" else b"\x01\x00"


def changed_defines(before: Sequence[ColumnMeta], now: Sequence[ColumnMeta]) -> list[WireBind]:
    """How columns are sent that have changed under an open cursor: a LOB that was text or RAW as a
    long value; empty if there is none."""
    found = []
    is_any = False
    for old, new in zip(before, now, strict=True):
        kind, form = int(new.type), new.charset_form
        if new.type == OraType.CLOB and old.type in (OraType.VARCHAR, OraType.CHAR, OraType.LONG):
            # The client reads it in the character set of what it had before.
            kind, form, is_any = int(OraType.LONG), old.charset_form, True
        elif new.type == OraType.BLOB and old.type in (OraType.RAW, OraType.LONG_RAW):
            kind, is_any = int(OraType.LONG_RAW), True
        elif new.type in _LOB_TYPES:
            return []
        found.append(WireBind(kind, False, new.size, form))
    return found if is_any else []
