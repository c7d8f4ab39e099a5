"""How do Oracle's own value encodings map to Python values and to text?

NUMBER, DATE, TIMESTAMP, INTERVAL, BINARY_DOUBLE and ROWID cross every border of the embedded Oracle
as bytes. All but INTERVAL's mixed-sign forms sort as bytes in the order of their values, so storage
may compare them without decoding.
"""

from __future__ import annotations

import binascii
import re
import struct
from base64 import b64decode
from collections.abc import Callable, Iterable
from datetime import datetime
from decimal import Decimal

from oracle_embedded.api import OracleError

ZERO = b"\x80"
POSITIVE_INFINITY = b"\xff\x65"
NEGATIVE_INFINITY = b"\x00"

_MANTISSA_MAX = 20
_EXPONENT_MAX = 63
_EXPONENT_MIN = -64
_TEXT_DIGITS_MAX = 40
_SHORTEST_TEXT_MAX = 64
_NUMBER_TEXT = re.compile(
    r"\s*([+-]?)(?=\.?[0-9])([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]{1,4}))?\s*\Z"
)
_SMALL_MAX = 10_000


def _translation(digit_byte: Callable[[int], int]) -> tuple[bytes, bytes]:
    """Tables from packed decimal (two digits as two hex digits) to base-100 bytes, and back."""
    pack, unpack = bytearray(256), bytearray(256)
    for value in range(100):
        packed = value // 10 << 4 | value % 10
        pack[packed] = digit_byte(value)
        unpack[digit_byte(value)] = packed
    return bytes(pack), bytes(unpack)


# Hex text of packed decimal is the digits themselves, so conversion is hex and one table, all in C.
_PACK_POSITIVE, _UNPACK_POSITIVE = _translation(lambda value: value + 1)
_PACK_NEGATIVE, _UNPACK_NEGATIVE = _translation(lambda value: 101 - value)


def number_from_decimal(value: Decimal | int) -> bytes:
    """Encode a NUMBER, rounded half away from zero to the 20 base-100 digits that NUMBER holds.

    Raises:
        OracleError: ORA-01426 from 1E126 on. Values below 1E-130 become 0, as in Oracle.
    """
    if isinstance(value, int):
        if 0 <= value < _SMALL_MAX:
            return _SMALL_NUMBERS[value]
        text = str(abs(value))
        return _number_from_digits(value < 0, text, len(text))
    if not value.is_finite():
        if value.is_nan():
            raise OracleError(1722, "invalid number")
        return NEGATIVE_INFINITY if value < 0 else POSITIVE_INFINITY
    digits, _, exponent = str(value).partition("E")
    negative = digits[0] == "-"
    whole, _, fraction = digits[negative:].partition(".")
    point = len(whole) + (int(exponent) if exponent else 0)
    return _number_from_digits(negative, whole + fraction, point)


def number_from_text(text: str) -> bytes:
    """Encode the NUMBER that a text such as ``-12.5``, ``.5`` or ``1.2E-05`` denotes; blanks around
    it are allowed.

    Raises:
        OracleError: ORA-01722 when it is not a number, ORA-01426 when it is too large.
    """
    match = _NUMBER_TEXT.match(text)
    if match is None:
        raise OracleError(1722, "invalid number")
    sign, whole, fraction, exponent = match.groups()
    return _number_from_digits(sign == "-", whole + fraction, len(whole) + int(exponent or 0))


def _number_from_digits(negative: bool, digits: str, point: int) -> bytes:
    """Encode ``0.digits * 10 ** point``."""
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    stripped = stripped.rstrip("0")
    if not stripped:
        return ZERO
    if point & 1:
        stripped = "0" + stripped
        point += 1
    if len(stripped) & 1:
        stripped += "0"
    if len(stripped) > 2 * _MANTISSA_MAX:
        kept = int(stripped[: 2 * _MANTISSA_MAX]) + (stripped[2 * _MANTISSA_MAX] >= "5")
        text = str(kept).zfill(2 * _MANTISSA_MAX)
        point += len(text) - 2 * _MANTISSA_MAX
        return _number_from_digits(negative, text, point)
    exponent = point // 2
    if exponent > _EXPONENT_MAX:
        raise OracleError(1426, "numeric overflow")
    if exponent < _EXPONENT_MIN:
        return ZERO
    packed = bytes.fromhex(stripped)
    if not negative:
        return bytes((192 + exponent,)) + packed.translate(_PACK_POSITIVE)
    encoded = bytes((63 - exponent,)) + packed.translate(_PACK_NEGATIVE)
    return encoded if len(packed) == _MANTISSA_MAX else encoded + b"\x66"


_SMALL_NUMBERS = [_number_from_digits(False, str(n), len(str(n))) for n in range(_SMALL_MAX)]


def _digits_from_number(number: bytes) -> tuple[bool, str, int]:
    """Sign, digits without outer zeros, and decimal point of ``0.digits * 10 ** point``; zero has
    no digits."""
    first = number[0]
    if first & 0x80:
        if len(number) == 1:
            return False, "", 0
        negative = False
        point = 2 * (first - 192)
        digits = number[1:].translate(_UNPACK_POSITIVE).hex()
    else:
        negative = True
        point = 2 * (63 - first)
        end = len(number) - 1 if number[-1] == 0x66 else len(number)
        digits = number[1:end].translate(_UNPACK_NEGATIVE).hex()
    if digits[0] == "0":
        digits = digits[1:]
        point -= 1
    return negative, digits.rstrip("0"), point


def decimal_from_number(number: bytes) -> Decimal:
    """Decode a NUMBER exactly. Integers have exponent 0, fractions no trailing zeros."""
    if number in (POSITIVE_INFINITY, NEGATIVE_INFINITY):
        return Decimal("-Infinity" if number == NEGATIVE_INFINITY else "Infinity")
    negative, digits, point = _digits_from_number(number)
    if not digits:
        return Decimal(0)
    sign = "-" if negative else ""
    if point >= len(digits):
        return Decimal(sign + digits.ljust(point, "0"))
    return Decimal(f"{sign}{digits}E{point - len(digits)}")


def text_from_number(number: bytes, *, in_sql: bool = False) -> str:
    """Print a NUMBER as ``TO_CHAR(n)`` without a format does.

    Plain digits (``.5`` without a leading zero) where 40 places hold it at least as precisely as
    the exponent form; that form is 40 characters wide, its mantissa filled with zeros
    (``1.000…E+125``). Oracle documents neither width: the rule is SQL*Plus's for a column of ten
    places, carried over to forty. It only concerns numbers that need more than 40 places;
    :func:`decimal_from_number` is exact for all.

    With ``in_sql`` the sign and the point are among the 40 places: SQL describes such a text as
    VARCHAR2(40), and node-oracledb's tests have 39 digits of TO_NUMBER of a fraction with 40, which
    goes by way of the text. PL/SQL prints 40 digits behind the point.
    """
    if number in (POSITIVE_INFINITY, NEGATIVE_INFINITY):
        return "-~" if number == NEGATIVE_INFINITY else "~"
    negative, digits, point = _digits_from_number(number)
    if not digits:
        return "0"
    sign = "-" if negative else ""
    places = _TEXT_DIGITS_MAX - len(sign) * in_sql
    room = places - in_sql
    kept = max(room, point)
    if in_sql and 0 < point <= kept < len(digits):
        digits = str(int(digits[:kept]) + (digits[kept] >= "5"))
        point += len(digits) - kept
        digits = digits.rstrip("0")
    exponent = point - 1
    mantissa_digits = places - 1 - len(f"E{exponent:+03d}")
    if point > places or min(len(digits), mantissa_digits) > room + min(point, 0):
        return sign + _exponent_text(digits, exponent, mantissa_digits)
    if point <= 0:
        return f"{sign}.{_round_fraction('0' * -point + digits, room)}"
    return sign + _plain_text(digits, point)


def shortest_text_from_number(number: bytes, *, scientific: bool = False) -> str:
    """Print a NUMBER as ``TO_CHAR(n, 'TM9')`` does, or ``'TME'``: all its digits in as few
    characters as possible.

    Plain digits up to 64 characters, the exponent form beyond.

    Source:
        Oracle SQL Language Reference 19c, Number Format Models, element TM.
    """
    if number in (POSITIVE_INFINITY, NEGATIVE_INFINITY):
        return "-~" if number == NEGATIVE_INFINITY else "~"
    negative, digits, point = _digits_from_number(number)
    sign = "-" if negative else ""
    plain = sign + _plain_text(digits, point)
    if len(plain) <= _SHORTEST_TEXT_MAX and not scientific:
        return plain
    mantissa = f"{digits[:1] or '0'}.{digits[1:]}".rstrip(".")
    return f"{sign}{mantissa}E{point - 1 if digits else 0:+03d}"


def _plain_text(digits: str, point: int) -> str:
    if not digits:
        return "0"
    if point <= 0:
        return "." + "0" * -point + digits
    if len(digits) <= point:
        return digits + "0" * (point - len(digits))
    return f"{digits[:point]}.{digits[point:]}"


def _round_fraction(fraction: str, room: int) -> str:
    if len(fraction) <= room:
        return fraction
    kept = int(fraction[:room]) + (fraction[room] >= "5")
    return str(kept).zfill(room).rstrip("0")


def _exponent_text(digits: str, exponent: int, size: int) -> str:
    if len(digits) > size:
        digits = str(int(digits[:size]) + (digits[size] >= "5"))
        if len(digits) > size:
            digits = digits[:size]
            exponent += 1
    digits = digits.ljust(size, "0")
    return f"{digits[0]}.{digits[1:]}E{exponent:+03d}"


# --- date and time --------------------------------------------------------------------------------


def date_from_fields(
    year: int, month: int = 1, day: int = 1, hour: int = 0, minute: int = 0, second: int = 0
) -> bytes:
    """Encode a DATE from calendar fields; years before Christ are negative. Fields are not
    checked."""
    century, rest = divmod(abs(year), 100)
    if year < 0:
        century, rest = -century, -rest
    return bytes((century + 100, rest + 100, month, day, hour + 1, minute + 1, second + 1))


def fields_from_date(value: bytes) -> tuple[int, int, int, int, int, int]:
    """Year (negative before Christ), month, day, hour, minute and second of a DATE or TIMESTAMP."""
    year = (value[0] - 100) * 100 + value[1] - 100
    return year, value[2], value[3], value[4] - 1, value[5] - 1, value[6] - 1


def date_from_datetime(value: datetime) -> bytes:
    """Encode a DATE; fractions of a second are cut off, the time zone is not looked at."""
    return bytes(
        (
            value.year // 100 + 100,
            value.year % 100 + 100,
            value.month,
            value.day,
            value.hour + 1,
            value.minute + 1,
            value.second + 1,
        )
    )


def datetime_from_date(value: bytes) -> datetime:
    """Decode a DATE, or a TIMESTAMP down to microseconds, as a naive datetime.

    Raises:
        OracleError: ORA-01841 for a year that Python cannot hold (before Christ).
    """
    year, month, day, hour, minute, second = fields_from_date(value)
    if year < 1:
        raise OracleError(1841, "(full) year must be between -4713 and +9999, and not be 0")
    return datetime(year, month, day, hour, minute, second, nanos_from_timestamp(value) // 1000)


def timestamp_from_datetime(value: datetime, nanos: int | None = None) -> bytes:
    """Encode a TIMESTAMP, always 11 bytes; ``nanos`` replaces the datetime's microseconds."""
    fraction = value.microsecond * 1000 if nanos is None else nanos
    return date_from_datetime(value) + fraction.to_bytes(4, "big")


def nanos_from_timestamp(value: bytes) -> int:
    """Nanoseconds within the second; 0 for a DATE."""
    return int.from_bytes(value[7:11], "big")


def offset_minutes_from_timestamp_tz(value: bytes) -> int:
    """The zone's offset from UTC in minutes."""
    return (value[11] - 20) * 60 + value[12] - 60


# --- intervals ------------------------------------------------------------------------------------

_INTERVAL_DS = struct.Struct(">I3BI")
_INTERVAL_YM = struct.Struct(">IB")
_MID = 1 << 31


def interval_ds_from_nanos(nanos: int) -> bytes:
    """Encode INTERVAL DAY TO SECOND from its length in nanoseconds."""
    sign = -1 if nanos < 0 else 1
    seconds, fraction = divmod(abs(nanos), 1_000_000_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return _INTERVAL_DS.pack(
        _MID + sign * days,
        60 + sign * hour,
        60 + sign * minute,
        60 + sign * second,
        _MID + sign * fraction,
    )


def nanos_from_interval_ds(value: bytes) -> int:
    """Length of an INTERVAL DAY TO SECOND in nanoseconds."""
    days, hour, minute, second, fraction = _INTERVAL_DS.unpack(value)
    seconds = (days - _MID) * 86400 + (hour - 60) * 3600 + (minute - 60) * 60 + second - 60
    return int(seconds * 1_000_000_000 + fraction - _MID)


def interval_ym_from_months(months: int) -> bytes:
    """Encode INTERVAL YEAR TO MONTH from its length in months."""
    sign = -1 if months < 0 else 1
    years, rest = divmod(abs(months), 12)
    return _INTERVAL_YM.pack(_MID + sign * years, 60 + sign * rest)


def months_from_interval_ym(value: bytes) -> int:
    """Length of an INTERVAL YEAR TO MONTH in months."""
    years, months = _INTERVAL_YM.unpack(value)
    return int((years - _MID) * 12 + months - 60)


# --- binary floating point ------------------------------------------------------------------------


def double_from_float(value: float) -> bytes:
    """Encode BINARY_DOUBLE in sortable form; -0.0 becomes 0 and every NaN the same, as Oracle
    stores them."""
    return _sortable(struct.pack(">d", _normal(value)))


def float_from_double(value: bytes) -> float:
    """Decode BINARY_DOUBLE."""
    return float(struct.unpack(">d", _unsortable(value))[0])


def binary_float_from_float(value: float) -> bytes:
    """Encode BINARY_FLOAT in sortable form.

    Raises:
        OracleError: ORA-01426 when the value is too large for four bytes.
    """
    try:
        return _sortable(struct.pack(">f", _normal(value)))
    except OverflowError as error:
        raise OracleError(1426, "numeric overflow") from error


def float_from_binary_float(value: bytes) -> float:
    """Decode BINARY_FLOAT."""
    return float(struct.unpack(">f", _unsortable(value))[0])


def _normal(value: float) -> float:
    return float("nan") if value != value else value + 0.0


def _sortable(raw: bytes) -> bytes:
    if raw[0] & 0x80:
        return bytes(255 - byte for byte in raw)
    return bytes((raw[0] | 0x80,)) + raw[1:]


def _unsortable(raw: bytes) -> bytes:
    if raw[0] & 0x80:
        return bytes((raw[0] & 0x7F,)) + raw[1:]
    return bytes(255 - byte for byte in raw)


# --- rowids ---------------------------------------------------------------------------------------

_ROWID_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_ROWID_VALUES = {letter: value for value, letter in enumerate(_ROWID_ALPHABET)}
_RESTRICTED = re.compile(r"([0-9A-Fa-f]{1,8})(?:\.([0-9A-Fa-f]{1,4})(?:\.([0-9A-Fa-f]{1,4}))?)?")
_ROWID_LENGTH = 18
_FILE_MAX, _BLOCK_MAX = (1 << 10) - 1, (1 << 22) - 1


def rowid_from_parts(data_object: int, file: int, block: int, slot: int) -> str:
    """Print an extended ROWID: 6 letters of data object, 3 of relative file, 6 of block, 3 of
    row."""
    return (
        _base64_text(data_object, 6)
        + _base64_text(file, 3)
        + _base64_text(block, 6)
        + _base64_text(slot, 3)
    )


def parts_from_rowid(rowid: str) -> tuple[int, int, int, int]:
    """Data object, relative file, block and row of a ROWID.

    A restricted one (block, row and file in hexadecimal digits, as many as are there) names no data
    object: that is 0.

    Raises:
        OracleError: ORA-01410 when it is neither that nor 18 letters of Oracle's alphabet.
    """
    is_short = len(rowid) < _ROWID_LENGTH or "." in rowid
    restricted = _RESTRICTED.fullmatch(rowid) if is_short else None
    if restricted is not None:
        block, slot, file = (int(part or "0", 16) for part in restricted.groups())
        if file <= _FILE_MAX and block <= _BLOCK_MAX:
            return 0, file, block, slot
    if len(rowid) != _ROWID_LENGTH or any(letter not in _ROWID_VALUES for letter in rowid):
        raise OracleError(1410, "invalid ROWID")
    return (
        _base64_value(rowid[:6]),
        _base64_value(rowid[6:9]),
        _base64_value(rowid[9:15]),
        _base64_value(rowid[15:]),
    )


def bytes_from_logical_rowid(rowid: str) -> bytes:
    """What a logical ROWID, an asterisk and base 64 without its padding, prints.

    Raises:
        OracleError: ORA-01410 when it is no base 64.
    """
    try:
        return b64decode(rowid[1:] + "=" * (-(len(rowid) - 1) % 4), validate=True)
    except binascii.Error as error:
        raise OracleError(1410, "invalid ROWID") from error


def _base64_text(value: int, size: int) -> str:
    return "".join(
        _ROWID_ALPHABET[(value >> shift) & 63] for shift in range(6 * (size - 1), -1, -6)
    )


def _base64_value(text: str) -> int:
    value = 0
    for letter in text:
        value = value << 6 | _ROWID_VALUES[letter]
    return value


# --- objects --------------------------------------------------------------------------------------

_IMAGE = b"\x01"
_NULL_SIZE = 0xFFFFFFFF


def packed(items: Iterable[bytes | None]) -> bytes:
    """The image of an object or collection: a mark, and each value behind its length in four
    bytes."""
    parts = [_IMAGE]
    for item in items:
        if item is None:
            parts.append(_NULL_SIZE.to_bytes(4, "big"))
        else:
            parts += (len(item).to_bytes(4, "big"), item)
    return b"".join(parts)


def unpacked(image: bytes) -> list[bytes | None]:
    """The values of an image."""
    items: list[bytes | None] = []
    at = 1
    while at < len(image):
        size = int.from_bytes(image[at : at + 4], "big")
        at += 4
        if size == _NULL_SIZE:
            items.append(None)
        else:
            items.append(image[at : at + size])
            at += size
    return items
