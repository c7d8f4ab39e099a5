"""What do the bytes mean that LogMiner shows for a column which its dictionary does not know?

Rows from before a DDL come, with the online catalog, as ``COL n`` with ``HEXTORAW`` of the value as
the block holds it. Each such value becomes the literal that LogMiner would have printed with the
right dictionary, and goes its way.

Source: Oracle Call Interface Programmer's Guide 19c, "Oracle Data Types" (NUMBER, DATE); real rows
were measured on 23ai.
"""

from __future__ import annotations

import re
import struct
from datetime import datetime, timedelta

import numpy as np

from cdc_core.decode.character_sets import stored_text
from cdc_core.decode.literals import Bare, Call, Literal, LiteralRefusedError, Quoted
from cdc_core.decode.plan import ColumnPlan, Kind
from cdc_core.decode.printed import UTC_OFFSET
from cdc_core.errors import RESNAPSHOT_HINT

_OFFSET = re.compile(r"([+-]?)(\d\d?):(\d\d)", re.ASCII)
_UTC_NAMES = frozenset({"UTC", "GMT", "Z"})
_DATE_MASK = "SYYYY-MM-DD HH24:MI:SS"
_TIMESTAMP_MASK = f"{_DATE_MASK}.FF9"
_HINT_REPORT = f"Report the column's type and the number of hexadecimal digits. {RESNAPSHOT_HINT}"


def named_literal(stored: bytes, column: ColumnPlan) -> Literal:
    """The literal of a column's stored bytes.

    Raises:
        LiteralRefusedError: The bytes are not a value of the column's type, or its character set or
            time zone is not known.
    """
    if column.is_number:
        return Bare(number_text(stored))
    match column.kind:
        case Kind.TEXT | Kind.CLOB:
            return Quoted(stored_text(stored, column.charset))
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMP_TEXT:
            return _moment(stored, column.kind)
        case Kind.FLOAT64:
            return Bare(_float_text(struct.unpack(">d", _ieee(stored, 8))[0]))
        case Kind.FLOAT32:
            return Bare(_float_text(np.frombuffer(_ieee(stored, 4), ">f4")[0]))
        case Kind.RAW | Kind.BLOB:
            return Call("HEXTORAW", (stored.hex(),))
        case Kind.ZONED:
            return _zoned(stored) if column.time_zone is None else _local(stored, column.time_zone)
        case Kind.INTERVAL_YM:
            return _year_to_month(stored)
        case Kind.INTERVAL_DS:
            return _day_to_second(stored)
        case _:
            raise AssertionError(column.kind)


def number_text(stored: bytes) -> str:
    """The decimal text of a NUMBER in Oracle's own form: an exponent of 100 with the sign, then
    digits to the base of 100.

    Raises:
        LiteralRefusedError: The bytes are no NUMBER, or plus or minus infinity.
    """
    if stored == b"\x80":
        return "0"
    if not 2 <= len(stored) <= 22:
        raise LiteralRefusedError("the bytes of a number have a wrong length", _HINT_REPORT)
    positive = stored[0] >= 0x80
    if positive:
        digits, exponent = [byte - 1 for byte in stored[1:]], stored[0] - 0xC1
    else:
        body = stored[1:-1] if stored[-1] == 0x66 else stored[1:]
        digits, exponent = [101 - byte for byte in body], 0x3E - stored[0]
    if not digits or not all(0 <= digit <= 99 for digit in digits):
        raise LiteralRefusedError("the bytes of a number are damaged", _HINT_REPORT)
    whole = "".join(f"{digit:02d}" for digit in digits)
    shift = 2 * (exponent + 1 - len(digits))
    return f"{'' if positive else '-'}{whole}E{shift}"


def _moment(stored: bytes, kind: Kind) -> Call:
    """Century and year with 100 added, month, day, then hour, minute and second with 1 added;
    nanoseconds if any."""
    if len(stored) not in ((7,) if kind is Kind.DATE else (7, 11)):
        raise LiteralRefusedError("the bytes of a date have a wrong length", _HINT_REPORT)
    century, year, month, day, hour, minute, second = stored[:7]
    full = (century - 100) * 100 + (year - 100)
    sign = "-" if full < 0 else " "
    text = f"{sign}{abs(full):04d}-{month:02d}-{day:02d} {hour - 1:02d}:{minute - 1:02d}:{second - 1:02d}"
    if kind is Kind.DATE:
        return Call("TO_DATE", (text, _DATE_MASK))
    nanos = int.from_bytes(stored[7:11], "big")
    return Call("TO_TIMESTAMP", (f"{text}.{nanos:09d}", _TIMESTAMP_MASK))


def _zoned(stored: bytes) -> Call:
    """WITH TIME ZONE: the moment in UTC, then hour and minute of the offset with 20 and 60
    added."""
    if len(stored) != 13:
        raise LiteralRefusedError("the bytes of a time with zone have a wrong length", _HINT_REPORT)
    if stored[11] & 0x80:
        raise LiteralRefusedError(
            "the time zone of a value from before a DDL is a region number",
            RESNAPSHOT_HINT,
        )
    hours, minutes = stored[11] - 20, stored[12] - 60
    offset = timedelta(hours=hours, minutes=minutes)
    sign = "-" if offset < timedelta() else "+"
    return _shifted(stored[:11], offset, f"{sign}{abs(hours):02d}:{abs(minutes):02d}")


def _local(stored: bytes, database_zone: str) -> Call:
    """WITH LOCAL TIME ZONE: a wall clock in the time zone of the database, which keeps its zone
    while it has such a column.

    In a region's zone an hour of autumn comes twice, and Oracle's rules of regions may be others
    than the machine's: it is refused.

    Source: Oracle Database Globalization Support Guide 19c, "TIMESTAMP WITH LOCAL TIME ZONE Data
    Type".
    """
    found = _OFFSET.fullmatch(database_zone)
    if found is None and database_zone.upper() not in _UTC_NAMES:
        raise LiteralRefusedError(
            "a value WITH LOCAL TIME ZONE from before a DDL is in the time zone of the database, "
            + ("which is a region" if database_zone else "which is not known"),
            RESNAPSHOT_HINT,
        )
    offset = timedelta()
    if found is not None:
        offset = timedelta(hours=int(found[2]), minutes=int(found[3]))
        offset = -offset if found[1] == "-" else offset
    return _shifted(stored, -offset, UTC_OFFSET)


def _shifted(stored: bytes, by: timedelta, zone: str) -> Call:
    """The literal of a moment that is so much later in the zone that it names."""
    moment = _moment(stored, Kind.TIMESTAMP).arguments[0]
    if moment.startswith("-"):
        return Call("TO_TIMESTAMP_TZ", (moment,))  # which no type of the lake holds
    try:
        there = datetime.fromisoformat(moment[1:20]) + by
    except (ValueError, OverflowError):
        raise LiteralRefusedError(
            "the bytes of a time with zone are no day of the years 1 to 9999", _HINT_REPORT
        ) from None
    return Call("TO_TIMESTAMP_TZ", (f" {there.isoformat(sep=' ')}{moment[20:]} {zone}",))


def _year_to_month(stored: bytes) -> Call:
    """Years with 2^31 added in four bytes, months with 60 added."""
    if len(stored) != 5:
        raise LiteralRefusedError("the bytes of an interval have a wrong length", _HINT_REPORT)
    years, months = int.from_bytes(stored[:4], "big") - 2**31, stored[4] - 60
    sign = "-" if years < 0 or months < 0 else "+"
    return Call("TO_YMINTERVAL", (f"{sign}{abs(years):02d}-{abs(months):02d}",))


def _day_to_second(stored: bytes) -> Call:
    """Days with 2^31 added in four bytes; hours, minutes and seconds with 60 added; nanoseconds
    with 2^31 added."""
    if len(stored) != 11:
        raise LiteralRefusedError("the bytes of an interval have a wrong length", _HINT_REPORT)
    days = int.from_bytes(stored[:4], "big") - 2**31
    hours, minutes, seconds = (byte - 60 for byte in stored[4:7])
    nanos = int.from_bytes(stored[7:], "big") - 2**31
    sign = "-" if min(days, hours, minutes, seconds, nanos) < 0 else "+"
    clock = f"{abs(hours):02d}:{abs(minutes):02d}:{abs(seconds):02d}.{abs(nanos):09d}"
    return Call("TO_DSINTERVAL", (f"{sign}{abs(days):02d} {clock}",))


def _ieee(stored: bytes, size: int) -> bytes:
    """IEEE 754 bytes, big endian: a positive number has its sign bit set, a negative one all bits
    flipped."""
    if len(stored) != size:
        raise LiteralRefusedError("the bytes of a binary float have a wrong length", _HINT_REPORT)
    if stored[0] & 0x80:
        return bytes([stored[0] & 0x7F]) + stored[1:]
    return bytes(byte ^ 0xFF for byte in stored)


def _float_text(value: float | np.float32) -> str:
    """The shortest text that reads back as the same number."""
    if value != value:
        return "nan"
    return str(value)
