"""How does LogMiner print a value in SQL_REDO?

Everything is bytes in UTF-8: stored text is UTF-8 already, so rendering a row decodes nothing.
Literals are looked up in dictionaries that fill themselves; only values never seen cost a
conversion.

Source: Oracle Database Utilities, "Using LogMiner"; the statements that LogMiner prints on 19c and
23ai.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from oracle_embedded import values
from oracle_embedded.api import DatabaseView, EngineSession, OraType, StoredColumn, Value
from oracle_embedded.charsets import CharacterSets, bytes_from_text
from oracle_embedded.days import day_of_number, number_of_day
from oracle_embedded.redo.nls import compile_format
from oracle_embedded.redo.numbers import digits_from_number, literal_from_number

_MEMO_MAX = 4096
UNSUPPORTED = b"Unsupported Type"

Convert = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Nls:
    """Session settings that shape literals. ``offset_minutes`` is TIME_ZONE; ``strings`` leaves the
    functions around dates out (option STRING_LITERALS_IN_STMT)."""

    date_format: str
    timestamp_format: str
    timestamp_tz_format: str
    decimal_character: str
    offset_minutes: int
    strings: bool = False


def nls_of(session: EngineSession, *, strings: bool = False) -> Nls:
    """The settings of a session."""
    return Nls(
        session.parameter("NLS_DATE_FORMAT"),
        session.parameter("NLS_TIMESTAMP_FORMAT"),
        session.parameter("NLS_TIMESTAMP_TZ_FORMAT"),
        session.parameter("NLS_NUMERIC_CHARACTERS")[:1] or ".",
        _offset_minutes(session.parameter("TIME_ZONE")),
        strings,
    )


def _offset_minutes(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    hours, _, minutes = text.lstrip("+-").partition(":")
    if not (hours.isdigit() and minutes.isdigit()):
        return 0  # UTC, GMT, Z
    return sign * (int(hours) * 60 + int(minutes))


class Memo(dict[Value, bytes]):
    """Literals of one column by stored value, the first that come; None is ``NULL``."""

    def __init__(self, convert: Convert) -> None:
        super().__init__({None: b"NULL"})
        self._convert = convert

    def __missing__(self, value: bytes) -> bytes:
        literal = self._convert(value)
        if len(self) < _MEMO_MAX:
            self[value] = literal
        return literal


class LiteralCache:
    """Makes memos for one NLS setting, sharing converters between columns of one kind. ``database``
    knows its time zones."""

    def __init__(self, nls: Nls, sets: CharacterSets, database: DatabaseView) -> None:
        self._nls = nls
        self.character_sets = sets
        self._database = database
        self._converters: dict[tuple[object, ...], Convert] = {}

    def memo(self, column: StoredColumn, *, raw: bool, scn: int) -> Memo:
        """Literals of a column's values; ``raw`` when LogMiner knows neither name nor type of the
        column, which its table has as of ``scn``: the database keeps its time zone as long as there
        is a column WITH LOCAL TIME ZONE."""
        is_moved = raw and column.type is OraType.TIMESTAMP_LTZ
        zone = self._database.zone_at(scn) if is_moved else ""
        key = (column.type, column.charset_form, column.precision, column.scale, raw, zone)
        if key not in self._converters:
            self._converters[key] = (
                raw_converter(
                    column, self.character_sets, partial(self._database.zone_minutes, zone)
                )
                if raw
                else converter(column, self._nls)
            )
        return Memo(self._converters[key])


def quoted(value: bytes) -> bytes:
    """A text literal."""
    return b"'%b'" % (value.replace(b"'", b"''") if b"'" in value else value)


def unistr(value: bytes) -> bytes:
    r"""``UNISTR('…')`` of a national text: what is not ASCII, and the backslash, as ``\XXXX`` per
    UTF-16 unit."""
    parts = [
        "''" if char == "'" else char if " " <= char <= "~" and char != "\\" else _escaped(char)
        for char in value.decode()
    ]
    return f"UNISTR('{''.join(parts)}')".encode()


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be").hex().upper()
    return "".join([f"\\{units[at : at + 4]}" for at in range(0, len(units), 4)])


def hextoraw(value: bytes) -> bytes:
    """``HEXTORAW('…')`` in lower case."""
    return b"HEXTORAW('%b')" % value.hex().encode()


def is_text(column: StoredColumn) -> bool:
    """Is the literal simply the quoted text (then :func:`quoted` beats a memo)?"""
    return column.charset_form != 2 and column.type in _TEXT_TYPES


_TEXT_TYPES = frozenset({OraType.VARCHAR, OraType.CHAR, OraType.LONG})
_STORED_TEXTS = _TEXT_TYPES | {OraType.CLOB}
_TIMESTAMP_TYPES = frozenset({OraType.TIMESTAMP, OraType.TIMESTAMP_LTZ})
_ZONE = re.compile(r"\s*TZ(?:R|D|H(?::?TZM)?)\b", re.IGNORECASE)
"""What names a zone in a format, with the blank before it."""


def raw_converter(
    column: StoredColumn, sets: CharacterSets, zone_minutes: Callable[[bytes], int]
) -> Convert:
    """The function from a column's stored value to ``HEXTORAW`` of the bytes that Oracle keeps in
    the block.

    These are the stored ones but for text, which is in its character set there; for a TIMESTAMP
    without a fraction, which has the seven bytes of a DATE; and for one WITH LOCAL TIME ZONE, which
    is in the time zone of the database, of which ``zone_minutes`` tells the offset at a moment in
    UTC.

    Source: Oracle Call Interface Programmer's Guide, "Data Types", on internal data types; Oracle
    Database Globalization Support Guide 19c, "TIMESTAMP WITH LOCAL TIME ZONE Data Type".
    """
    own = sets.of(column.charset_form)
    if own.is_utf8 and column.type in _TEXT_TYPES:
        return lambda value: hextoraw(bytes_from_text(value))
    if not own.is_utf8 and column.type in _STORED_TEXTS:
        return lambda value: hextoraw(own.encode(value.decode()))
    if column.type in _TIMESTAMP_TYPES:
        is_local = column.type is OraType.TIMESTAMP_LTZ

        def stored(value: bytes) -> bytes:
            if is_local:
                value = _shifted(value, zone_minutes(value))
            return hextoraw(value.removesuffix(bytes(4)) if len(value) == 11 else value)

        return stored
    return hextoraw


def converter(column: StoredColumn, nls: Nls) -> Convert:
    """The function from a column's stored value to its literal."""
    kind = column.type
    if kind in (OraType.VARCHAR, OraType.CHAR, OraType.CLOB):
        return unistr if column.charset_form == 2 else quoted
    if kind in (OraType.NUMBER, OraType.BINARY_INTEGER):
        return _number(nls)
    if kind is OraType.DATE:
        return _date(nls)
    if kind is OraType.TIMESTAMP:
        return _timestamp(nls, _scale(column))
    if kind in (OraType.TIMESTAMP_TZ, OraType.TIMESTAMP_LTZ):
        return _timestamp_tz(nls, _scale(column), local=kind is OraType.TIMESTAMP_LTZ)
    if kind in (OraType.INTERVAL_DS, OraType.INTERVAL_YM):
        return _interval(column, nls)
    return _OTHERS.get(kind, lambda _value: UNSUPPORTED)


def _scale(column: StoredColumn) -> int:
    return 6 if column.scale is None else column.scale


def _number(nls: Nls) -> Convert:
    if nls.decimal_character == ".":
        return literal_from_number
    mark = nls.decimal_character.encode()
    return lambda value: quoted(digits_from_number(value).replace(b".", mark))


def _date(nls: Nls) -> Convert:
    render = compile_format(nls.date_format, 0)
    if nls.strings:
        return lambda value: b"'%b'" % render(value, 0)
    tail = quoted(nls.date_format.encode())
    return lambda value: b"TO_DATE('%b', %b)" % (render(value, 0), tail)


def _timestamp(nls: Nls, scale: int) -> Convert:
    render = compile_format(nls.timestamp_format, scale)
    if nls.strings:
        return lambda value: b"'%b'" % render(value, 0)
    return lambda value: b"TO_TIMESTAMP('%b')" % render(value, 0)


def _timestamp_tz(nls: Nls, scale: int, *, local: bool) -> Convert:
    """With local time zone the value is UTC and is shown in the session's zone, which is not named;
    else in its own.

    Source: measured on Oracle 23ai by others: no offset, although NLS_TIMESTAMP_TZ_FORMAT asks for
    one.
    """
    form = _ZONE.sub("", nls.timestamp_tz_format) if local else nls.timestamp_tz_format
    render = compile_format(form, scale)
    frame = b"'%b'" if nls.strings else b"TO_TIMESTAMP_TZ('%b')"

    def convert(value: bytes) -> bytes:
        zone = nls.offset_minutes if local else values.offset_minutes_from_timestamp_tz(value)
        return frame % render(_shifted(value, zone), zone)

    return convert


def _shifted(value: bytes, minutes: int) -> bytes:
    """A DATE or TIMESTAMP so many minutes later."""
    year, month, day, hour, minute, second = values.fields_from_date(value)
    days, rest = divmod(hour * 60 + minute + minutes, 1440)
    if days:
        year, month, day = day_of_number(number_of_day(year, month, day) + days)
    moved = values.date_from_fields(year, month, day, rest // 60, rest % 60, second)
    return moved + value[7:11]


def _interval(column: StoredColumn, nls: Nls) -> Convert:
    lead = 2 if column.precision is None else column.precision
    if column.type is OraType.INTERVAL_YM:

        def text_of(value: bytes) -> str:
            months = values.months_from_interval_ym(value)
            years, rest = divmod(abs(months), 12)
            return f"{'-' if months < 0 else '+'}{years:0{lead}d}-{rest:02d}"
    else:

        def text_of(value: bytes) -> str:
            return _day_to_second(values.nanos_from_interval_ds(value), lead, _scale(column))

    function = "TO_YMINTERVAL" if column.type is OraType.INTERVAL_YM else "TO_DSINTERVAL"
    if nls.strings:
        return lambda value: f"'{text_of(value)}'".encode()
    return lambda value: f"{function}('{text_of(value)}')".encode()


def _day_to_second(nanos: int, lead: int, scale: int) -> str:
    seconds, fraction = divmod(abs(nanos), 1_000_000_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    text = f"{'-' if nanos < 0 else '+'}{days:0{lead}d} {hour:02d}:{minute:02d}:{second:02d}"
    return f"{text}.{f'{fraction:09d}'[:scale]}" if scale else text


def text_from_double(value: float, digits: int) -> str:
    """As TO_CHAR prints BINARY_DOUBLE (17 digits) and BINARY_FLOAT (9):
    ``3.1400000000000001E+000``."""
    if value != value:
        return "Nan"
    if value in (float("inf"), float("-inf")):
        return "Inf" if value > 0 else "-Inf"
    if value == 0:
        return "0"
    mantissa, _, exponent = f"{value:.{digits - 1}E}".partition("E")
    whole, _, fraction = mantissa.partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}E{int(exponent):+04d}"


def _rowid(value: bytes) -> bytes:
    """The stored ten bytes: data object 32 bits, file 10, block 22, row 16."""
    file, block = divmod(int.from_bytes(value[4:8], "big"), 1 << 22)
    parts = int.from_bytes(value[:4], "big"), file, block, int.from_bytes(value[8:], "big")
    return quoted(values.rowid_from_parts(*parts).encode())


def _double(value: bytes) -> bytes:
    return f"'{text_from_double(values.float_from_double(value), 17)}'".encode()


def _float(value: bytes) -> bytes:
    return f"'{text_from_double(values.float_from_binary_float(value), 9)}'".encode()


_OTHERS: dict[OraType, Convert] = {
    OraType.LONG: quoted,
    OraType.ROWID: _rowid,
    OraType.RAW: hextoraw,
    OraType.LONG_RAW: hextoraw,
    OraType.BLOB: hextoraw,
    OraType.BINARY_FLOAT: _float,
    OraType.BINARY_DOUBLE: _double,
}
