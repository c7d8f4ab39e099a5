"""Which of Oracle's stored bytes is a value that the client library hands out in a form of its own?

The library gives numbers with their length before them, dates and floats as C has them, timestamps,
intervals and ROWIDs behind a pointer that only it reads. Recordings have what the block has.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from ctypes import byref, c_int, c_int8, c_int16, c_uint8, c_uint16, c_uint32
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any

from cdc_core.errors import DecodeError
from cdc_core.xstream.values import DATE, DAYS, NUMBER, TIMESTAMP, YEARS, ZONED

_TEXT, _BINARY_FLOAT, _BINARY_DOUBLE = 1, 100, 101
_NUMBER_BYTES, _ROWID_BYTES = 22, 64


class Given(IntEnum):
    """Types in which the library alone gives values."""

    VARNUM = 6
    FLOAT = 21
    DOUBLE = 22
    ROWID = 104
    OCI_DATE = 156
    TIMESTAMP = 187
    ZONED = 188
    YEARS = 189
    DAYS = 190
    LOCAL = 232


def from_oci(
    oci: ctypes.CDLL, environment: Any, error: Any, kind: int, address: int, size: int
) -> tuple[int, bytes]:
    """The type that a value is stored as, and its stored bytes.

    Args:
        oci: The library; ``environment`` and ``error`` are its handles.
        kind: The number of the type in which the library gives the value.
        address: Where it is.
        size: So many bytes it has, where it is no pointer.

    Raises:
        DecodeError: The library does not read it.
    """

    def ask(name: str, *results: Any, last: bool = False) -> list[int]:
        handles = (environment, error)
        outs = [byref(one) for one in results]
        arguments = (*handles, *outs, address) if last else (*handles, address, *outs)
        if getattr(oci, name)(*arguments):
            raise DecodeError(
                "Oracle's client library does not read a value that it gave",
                hint="Name the column under columns_exclude of its table.",
                function=name,
            )
        return [one.value for one in results]

    def moment() -> tuple[list[int], list[int]]:
        date = ask("OCIDateTimeGetDate", c_int16(), c_uint8(), c_uint8())
        return date, ask("OCIDateTimeGetTime", c_uint8(), c_uint8(), c_uint8(), c_uint32())

    match kind:
        case Given.VARNUM:
            raw = ctypes.string_at(address, _NUMBER_BYTES)
            return NUMBER, raw[1 : 1 + raw[0]]
        case Given.OCI_DATE:
            raw = ctypes.string_at(address, 7)
            year = int.from_bytes(raw[:2], sys.byteorder, signed=True)
            return DATE, stored_date(year, *raw[2:7])
        case Given.FLOAT | Given.DOUBLE:
            native, width = ("f", 4) if kind == Given.FLOAT else ("d", 8)
            [value] = struct.unpack(f"={native}", ctypes.string_at(address, width))
            stored = stored_float(struct.pack(f">{native}", value))
            return (_BINARY_FLOAT if kind == Given.FLOAT else _BINARY_DOUBLE), stored
        case Given.TIMESTAMP:
            date, clock = moment()
            return TIMESTAMP, stored_date(*date, *clock[:3]) + clock[3].to_bytes(4, "big")
        case Given.ZONED | Given.LOCAL:  # a wall clock, and the zone in which it is
            date, clock = moment()
            hours, minutes = ask("OCIDateTimeGetTimeZoneOffset", c_int8(), c_int8())
            try:
                wall = datetime(*date, *clock[:3])  # type: ignore[arg-type]
                utc = wall - timedelta(hours=hours, minutes=minutes)
            except (ValueError, OverflowError) as reason:
                raise DecodeError(
                    "a time with time zone is outside of the years 1 to 9999 in UTC",
                    hint="Name the column under columns_exclude of its table.",
                ) from reason
            stored = stored_date(*utc.timetuple()[:6]) + clock[3].to_bytes(4, "big")
            zone = (0, 0) if kind == Given.LOCAL else (hours, minutes)
            return ZONED, stored + bytes([zone[0] + 20, zone[1] + 60])
        case Given.YEARS:
            years, months = ask("OCIIntervalGetYearMonth", c_int(), c_int(), last=True)
            return YEARS, (years + 2**31).to_bytes(4, "big") + bytes([months + 60])
        case Given.DAYS:
            days, *clock = ask("OCIIntervalGetDaySecond", *(c_int() for _ in range(5)), last=True)
            return DAYS, b"".join(
                (
                    (days + 2**31).to_bytes(4, "big"),
                    bytes(one + 60 for one in clock[:3]),
                    (clock[3] + 2**31).to_bytes(4, "big"),
                )
            )
        case Given.ROWID:
            text, length = ctypes.create_string_buffer(_ROWID_BYTES), c_uint16(_ROWID_BYTES)
            oci.OCIRowidToChar(address, text, byref(length), error)
            return _TEXT, text.raw[: length.value]
    return kind, ctypes.string_at(address, size)


def number_of(value: int) -> bytes:
    """A whole number that is not negative, as the library takes it: its length, then its bytes."""
    if not value:
        return b"\x01\x80"
    text = str(value)
    digits = text if len(text) % 2 == 0 else f"0{text}"
    pairs = [int(digits[at : at + 2]) for at in range(0, len(digits), 2)]
    exponent = len(pairs)
    while not pairs[-1]:
        pairs.pop()
    return bytes([len(pairs) + 1, 0xC0 + exponent, *(pair + 1 for pair in pairs)])


def stored_date(year: int, month: int, day: int, hour: int, minute: int, second: int) -> bytes:
    """Century and year with 100 added, month, day, then hour, minute and second with 1 added."""
    century, rest = (year // 100, year % 100) if year > 0 else (-(-year // 100), -(-year % 100))
    return bytes([century + 100, rest + 100, month, day, hour + 1, minute + 1, second + 1])


def stored_float(big_endian: bytes) -> bytes:
    """IEEE 754 bytes as they sort: a positive number has its sign bit set, a negative one all bits
    flipped."""
    if big_endian[0] & 0x80:
        return bytes(byte ^ 0xFF for byte in big_endian)
    return bytes([big_endian[0] | 0x80]) + big_endian[1:]
