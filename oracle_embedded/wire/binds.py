"""How are bind variables read from a request, and how do OUT values go back?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

from oracle_embedded.api import BindMeta, ObjectShape, OracleError, OraType, Value
from oracle_embedded.charsets import bytes_from_text, has_stand_ins, utf8_from_client
from oracle_embedded.values import (
    date_from_datetime,
    datetime_from_date,
    interval_ds_from_nanos,
    nanos_from_interval_ds,
    parts_from_rowid,
    rowid_from_parts,
)
from oracle_embedded.wire.connect import FIELDS_OF_12_2, STRING_SIZE_MAX, Agreement
from oracle_embedded.wire.lobs import LobStore
from oracle_embedded.wire.objects import engine_image, object_value, read_object
from oracle_embedded.wire.ttc import TtcReader, clr_bytes, ub_bytes

_ARRAY_FLAG = 0x40
_PREFETCH_FLAG = 0x02000000
_ROW_DATA = 7
_NATIONAL = 2
_ROWID_PARTS = 14
"""What stands before a ROWID in its parts, where a length would stand before its characters."""
_TEXT_TYPES = frozenset((OraType.VARCHAR, OraType.CHAR, OraType.LONG))
_SIZED_TYPES = frozenset((OraType.VARCHAR, OraType.CHAR, OraType.RAW))
_LOB_TYPES = frozenset((OraType.CLOB, OraType.BLOB))
_TIMESTAMP_TYPES = frozenset((OraType.TIMESTAMP, OraType.TIMESTAMP_LTZ))
_SAME_TYPES = {
    94: OraType.LONG,
    95: OraType.LONG_RAW,
    187: OraType.TIMESTAMP,
    188: OraType.TIMESTAMP_TZ,
    189: OraType.INTERVAL_YM,
    190: OraType.INTERVAL_DS,
    232: OraType.TIMESTAMP_LTZ,
}
"""Types of host variables whose values are sent as those of columns, as go-ora does."""
_IS_REGION, _IS_LOCAL = 0x80, 0x40
_UTC = bytes((20, 60))
_UTC_REGIONS = frozenset((28, 5121))
SCALED_TYPES = frozenset(
    (
        OraType.NUMBER,
        OraType.TIMESTAMP,
        OraType.TIMESTAMP_TZ,
        OraType.TIMESTAMP_LTZ,
        OraType.INTERVAL_DS,
    )
)
"""Types whose scale is one byte or a number with a length, as was agreed on."""
_TYPES = frozenset(int(ora_type) for ora_type in OraType) - {OraType.JSON, OraType.VECTOR}


class UnreadableRequestError(Exception):
    """A request has values of a type whose layout is not known here; the rest of it cannot be
    read."""


@dataclass(frozen=True, slots=True)
class WireBind:
    """One bind or define as the client declared it.

    ``lob_prefetch`` says how many bytes or characters of a LOB shall come with its locator, its
    length and its chunk size; None asks for the locator alone. ``oid`` is the number of an object's
    type, whose ``shape`` is looked up before the bind is used.
    """

    type: int
    is_array: bool
    size: int
    charset_form: int
    lob_prefetch: int | None = None
    oid: bytes = b""
    shape: ObjectShape | None = None

    @property
    def meta(self) -> BindMeta:
        """The same for the engine."""
        return BindMeta(OraType(self.type), self.size, self.charset_form, self.is_array, self.shape)


def read_metadata(reader: TtcReader, count: int, agreement: Agreement) -> list[WireBind]:
    """Read the metadata of binds or defines."""
    binds = []
    for _ in range(count):
        told = reader.u8()
        bind_type = _SAME_TYPES.get(told, told)
        flags = reader.u8()
        reader.u8()
        if bind_type in SCALED_TYPES and not agreement.lengths_converted:
            reader.sb()
        else:
            reader.u8()
        size = reader.ub()
        reader.ub()
        has_prefetch = reader.ub() & _PREFETCH_FLAG
        oid = reader.dlc()
        reader.skip_ub(2)
        charset_form = reader.u8()
        prefetch = reader.ub()
        if agreement.field_version >= FIELDS_OF_12_2:
            reader.ub()
        binds.append(
            WireBind(
                bind_type,
                bool(flags & _ARRAY_FLAG),
                size,
                charset_form,
                prefetch if has_prefetch else None,
                oid,
            )
        )
    return binds


class BindRows:
    """Reads the bind rows of one statement.

    Args:
        binds: All binds of the statement.
        absent: Positions whose values are not sent: RETURNING binds, pure OUT binds of a
            re-execution.
        is_plsql: Over-long values keep their place in PL/SQL; in SQL they follow all others of the
            row.
    """

    def __init__(
        self, binds: Sequence[WireBind], absent: frozenset[int], *, is_plsql: bool
    ) -> None:
        sent = [position for position in range(len(binds)) if position not in absent]
        if not is_plsql:
            sent.sort(key=lambda position: binds[position].size > STRING_SIZE_MAX)
        self._binds = binds
        self._order = sent
        self._in_order = sent == list(range(len(binds)))
        self._plain = all(_is_plain(binds[position]) for position in sent)

    def read(self, reader: TtcReader, count: int) -> list[list[Value]]:
        """Read the values of ``count`` executions as they were sent.

        Raises:
            UnreadableRequestError: There is a type with an unknown layout.
        """
        if not self._order:
            return [[None] * len(self._binds) for _ in range(count)]
        rows = []
        for _ in range(count):
            if reader.u8() != _ROW_DATA:
                raise UnreadableRequestError
            rows.append(self._read_row(reader))
        return rows

    def _read_row(self, reader: TtcReader) -> list[Value]:
        if self._plain:
            values = reader.clr_row(len(self._order))
            if self._in_order:
                return values
        else:
            values = [_read_value(reader, self._binds[position]) for position in self._order]
        row: list[Value] = [None] * len(self._binds)
        for position, value in zip(self._order, values, strict=True):
            row[position] = value
        return row


def _is_plain(bind: WireBind) -> bool:
    return (
        bind.type in _TYPES
        and not bind.is_array
        and bind.type not in _LOB_TYPES
        and bind.type not in (OraType.BOOLEAN, OraType.CURSOR, OraType.OBJECT, OraType.ROWID)
    )


def _read_value(reader: TtcReader, bind: WireBind) -> Value:
    if bind.type not in _TYPES:
        raise UnreadableRequestError
    if not bind.is_array:
        return _read_scalar(reader, bind)
    return cast("Value", [_read_scalar(reader, bind) for _ in range(reader.ub())])


def _read_scalar(reader: TtcReader, bind: WireBind) -> Value:
    if bind.type in _LOB_TYPES:
        return reader.dlc() or None
    if bind.type == OraType.OBJECT:
        return read_object(reader)
    if bind.type == OraType.ROWID:
        return _read_rowid(reader)
    if bind.type == OraType.CURSOR:
        return reader.ub().to_bytes(4, "big") if reader.ub() == 1 else None
    if bind.type == OraType.BOOLEAN:
        return _read_boolean(reader)
    return reader.clr() or None


def _read_rowid(reader: TtcReader) -> Value:
    """Its characters, as python-oracledb sends them, or its parts, as JDBC does."""
    size = reader.u8()
    if size != _ROWID_PARTS:
        return reader.raw(size) or None
    data_object, file = reader.ub(), reader.ub()
    reader.u8()
    return rowid_from_parts(data_object, file, reader.ub(), reader.ub()).encode()


def _read_boolean(reader: TtcReader) -> Value:
    """Drivers before 4.0 put one more length in front; the last byte decides in both forms."""
    size = reader.u8()
    if size == 0xFD:
        reader.u8()
        return None
    return b"\x01" if reader.raw(size)[-1:] == b"\x01" else b"\x00"


def engine_rows(
    rows: list[list[Value]], binds: Sequence[WireBind], lobs: LobStore
) -> list[list[Value]]:
    """Bring values into the engine's form: UTF-8 text, 11-byte timestamps, contents instead of
    locators.

    Raises:
        OracleError: A bind has a type that is not supported, or a locator is not valid.
    """
    for position, bind in enumerate(binds):
        if bind.type not in _TYPES:
            raise OracleError(3001, "unimplemented feature")
        if bind.is_array:
            one = WireBind(bind.type, False, bind.size, bind.charset_form, bind.lob_prefetch)
            for row in cast("list[list[Any]]", rows):
                cells = [[value] for value in row[position] or ()]
                row[position] = [value for (value,) in engine_rows(cells, [one], lobs)]
        elif bind.type == OraType.OBJECT:
            if bind.shape is None:
                raise OracleError(21700, "object does not exist or is marked for delete")
            for row in rows:
                row[position] = engine_image(row[position], bind.shape, lobs)
        elif bind.type in _LOB_TYPES:
            for row in rows:
                row[position] = lobs.bind_content(row[position])
        elif bind.type in _TIMESTAMP_TYPES:
            for row in rows:
                row[position] = _pad_timestamp(row[position])
        elif bind.type == OraType.TIMESTAMP_TZ:
            for row in rows:
                row[position] = _in_utc(row[position])
        elif bind.type == OraType.INTERVAL_DS:
            for row in rows:
                row[position] = _normal_interval(row[position])
        elif bind.charset_form == _NATIONAL and bind.type in _TEXT_TYPES:
            for row in rows:
                row[position] = utf8_from_national(row[position], lobs)
        elif bind.type in _TEXT_TYPES:
            _keep_bytes(rows, position)
    return rows


def _keep_bytes(rows: list[list[Value]], position: int) -> None:
    """Give the bytes of a column of texts that are no UTF-8 their stand-ins. Most columns have
    none, which one look tells: a character of one byte between two texts is in no other
    character."""
    together = b"\0".join([row[position] or b"" for row in rows])
    if together.isascii():
        return
    try:
        together.decode()
    except UnicodeDecodeError:
        is_utf8 = False
    else:
        is_utf8 = not has_stand_ins(together)
    if is_utf8:
        return
    for row in rows:
        value = row[position]
        row[position] = None if value is None else utf8_from_client(value)


def _pad_timestamp(value: Value) -> Value:
    return value if value is None else value.ljust(11, b"\x00")


def _in_utc(value: Value) -> Value:
    """A time with its zone as columns have it: in UTC, and the offset. Some clients send UTC by
    its number, or the local time.

    Raises:
        OracleError: ORA-03001 for another zone that goes by a number.
    """
    if value is None or len(value) < 13 or value[11] < _IS_LOCAL:
        return value
    hours, minutes = value[11], value[12]
    if hours & _IS_REGION:
        if ((hours & 0x7F) << 6 | minutes >> 2) not in _UTC_REGIONS:
            raise OracleError(3001, "unimplemented feature: values in zones that are named")
        return value[:11] + _UTC
    hours &= ~_IS_LOCAL
    ahead = timedelta(hours=hours - _UTC[0], minutes=minutes - _UTC[1])
    return (
        date_from_datetime(datetime_from_date(value) - ahead)
        + value[7:11]
        + bytes((hours, minutes))
    )


def _normal_interval(value: Value) -> Value:
    """Drivers send ``-1 day +3 seconds`` with mixed signs; Oracle keeps one sign for all fields."""
    return None if value is None else interval_ds_from_nanos(nanos_from_interval_ds(value))


def utf8_from_national(value: Value, lobs: LobStore) -> Value:
    """Recode national text as the engine keeps it."""
    return None if value is None else lobs.character_sets.national.decode(value).encode()


def out_value(value: Value, bind: WireBind, lobs: LobStore, *, has_handles: bool) -> bytes:
    """Encode one OUT or RETURNING value with the field that follows it: 0, or the length of what
    was cut to the bind's size.

    A cursor's value is what :func:`~oracle_embedded.wire.rows.cursor_value` gives.
    """
    if bind.shape is not None:
        return object_value(value, bind.shape, lobs) + b"\x00"
    if value is None:
        return b"\x00\x00"
    meta = bind.meta
    if has_handles:
        return lobs.column_value(value, meta.type, meta.charset_form, bind.lob_prefetch) + b"\x00"
    if meta.type in _LOB_TYPES:
        locator = lobs.temporary_from(value, meta.type, meta.charset_form, bind.lob_prefetch)
        return locator + b"\x00"
    if meta.type == OraType.CURSOR:
        return value + b"\x00"
    if meta.type == OraType.ROWID:
        return rowid_value(value) + b"\x00"
    if meta.type == OraType.BOOLEAN:
        return b"\x02\x01\x01\x00" if value == b"\x01" else b"\x01\x00\x00"
    if meta.charset_form == _NATIONAL:
        value = lobs.character_sets.national.encode(value.decode())
    elif meta.type in _TEXT_TYPES:
        value = bytes_from_text(value)
    if meta.type in _SIZED_TYPES and len(value) > meta.size:
        return clr_bytes(value[: meta.size]) + ub_bytes(len(value))
    return clr_bytes(value) + b"\x00"


def rowid_value(value: Value) -> bytes:
    """Encode a ROWID that the client reads as such, in its parts."""
    if not value:
        return b"\x00"
    data_object, file, block, slot = parts_from_rowid(value.decode())
    return b"".join(
        (
            b"\x0e",
            ub_bytes(data_object),
            ub_bytes(file),
            b"\x00",
            ub_bytes(block),
            ub_bytes(slot),
        )
    )


def out_row(
    values: Sequence[Sequence[Value]],
    kinds: Sequence[tuple[WireBind, bool]],
    lobs: LobStore,
    *,
    counted: bool,
) -> bytes:
    """Encode message 7 with the OUT values of one execution; behind RETURNING each bind has a row
    count.

    Args:
        kinds: Each bind, and whether its values are handles of LOBs.
    """
    parts = [b"\x07"]
    for bind_values, (bind, has_handles) in zip(values, kinds, strict=True):
        if bind.is_array and not counted:
            bind_values = cast("Sequence[Value]", bind_values[0] or ())
            parts.append(ub_bytes(len(bind_values)))
        if counted:
            parts.append(ub_bytes(len(bind_values)))
        parts += [out_value(value, bind, lobs, has_handles=has_handles) for value in bind_values]
    return b"".join(parts)
