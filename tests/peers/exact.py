"""Which exact value is a field of a Debezium event, and which is a value of our lake? One form for both.

Numbers are Decimal without trailing zeros, moments whole nanoseconds since 1970 (with the offset in minutes beside them where the type has
one), intervals microseconds as Debezium counts them. Where Redolake holds the form that Debezium's option asks for, values stay as they
are, but for the zeros with which Debezium pads numbers to their scale and times with zone to their precision.

Source: Debezium 3, documentation of the Oracle connector, "Data type mappings".
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Context, Decimal
from typing import Any

from tests.peers.debezium import UNAVAILABLE

_PLACEHOLDER = b"__debezium_unavailable_value"
_PLACEHOLDERS = {
    _PLACEHOLDER.decode(),
    _PLACEHOLDER.hex(),
    base64.b64encode(_PLACEHOLDER).decode(),
    base64.urlsafe_b64encode(_PLACEHOLDER).decode(),
}
_DIGITS = Context(prec=300)
_MONTH_MICROS = 2_629_800_000_000
"""Debezium's month: a twelfth of 365.25 days."""
_INT64_MAX = 2**63 - 1
_INT64_MIN = -(2**63)
_MILLISECOND, _MICROSECOND, _SECOND = 10**6, 10**3, 10**9
_CLOCK = re.compile(
    r"(-?\d{4,})-(\d\d)-(\d\d)[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)? ?(Z|([+-])(\d\d):(\d\d))?"
)
_PADDING = re.compile(r"(\.0+|(?<=[1-9])0+)(?=(Z|[+-]\d\d:\d\d)$)")
_DAYS = re.compile(r"(-?)(\d+) (\d+):(\d+):(\d+)\.(\d{9})")
_MONTHS = re.compile(r"(-?)(\d+)-(\d+)")


@dataclass(frozen=True, slots=True)
class Options:
    """Debezium's options, and ``types_as`` that says the same of Redolake; without it Redolake holds values by its type table."""

    debezium: Mapping[str, str] = field(default_factory=dict)
    types_as: Mapping[str, str] = field(default_factory=dict)

    def form(self, declaration: str) -> str | None:
        """The form in which Redolake is to hold a column; None for that of its type table."""
        family = family_of(declaration)
        found = self.types_as.get("NUMBER(1)") if declaration == "NUMBER(1)" else None
        return found or self.types_as.get(family)


def family_of(declaration: str) -> str:
    """The declaration without digits, as ``types_as`` names it."""
    return re.sub(r"\([^)]*\)", "", declaration).replace("INTEGER", "NUMBER")


def our_value(value: Any, declaration: str, options: Options) -> Any:
    """A value of the lake."""
    if value is None or value == UNAVAILABLE:
        return value
    if form := options.form(declaration):
        return _number(value) if form == "text" and not declaration.startswith("RAW") else value
    family = family_of(declaration)
    match family:
        case "NUMBER" | "FLOAT":
            return _number(value)
        case "BINARY_FLOAT":
            return _single(value)
        case "DATE" | "TIMESTAMP":
            moment = value.isoformat(" ", "microseconds") if isinstance(value, datetime) else value
            return _moment(moment)[0]
        case "TIMESTAMP WITH TIME ZONE" | "TIMESTAMP WITH LOCAL TIME ZONE":
            return _moment(value)
        case "INTERVAL YEAR TO MONTH" | "INTERVAL DAY TO SECOND":
            return _micros(*_interval(value))
    return value


def their_value(value: Any, declaration: str, options: Options) -> Any:
    """A field of Debezium's event."""
    if value is None or (isinstance(value, str) and value in _PLACEHOLDERS):
        return None if value is None else UNAVAILABLE
    family = family_of(declaration)
    if form := options.form(declaration):
        if form == "double":
            return float(value)
        if family.endswith("TIME ZONE"):
            return _PADDING.sub("", value)
        return _number(value) if form == "text" and family != "RAW" else value
    match family:
        case "NUMBER" | "FLOAT":
            return _their_number(value, declaration)
        case "BINARY_FLOAT":
            return _single(float(value))
        case "BINARY_DOUBLE":
            return float(value)
        case "DATE" | "TIMESTAMP":
            return _their_moment(value, declaration, options)
        case "TIMESTAMP WITH TIME ZONE" | "TIMESTAMP WITH LOCAL TIME ZONE":
            return _moment(value)
        case "RAW" | "BLOB":
            return base64.b64decode(value)
    return value


def _number(value: Any) -> Decimal:
    return _DIGITS.normalize(Decimal(value))


def _single(value: float) -> float:
    """As a number of 32 bits holds it."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def _their_number(value: Any, declaration: str) -> Decimal:
    """Precise: an integer, or an unscaled number in bytes with the scale of the column, or with its own."""
    if isinstance(value, int):
        return _number(value)
    scale, unscaled = _scale(declaration), value
    if isinstance(value, dict):
        scale, unscaled = value["scale"], value["value"]
    number = int.from_bytes(base64.b64decode(unscaled), "big", signed=True)
    return _DIGITS.normalize(_DIGITS.scaleb(Decimal(number), -scale))


def _scale(declaration: str) -> int:
    found = re.search(r",\s*(-?\d+)\)", declaration)
    return int(found[1]) if found else 0


def _their_moment(value: Any, declaration: str, options: Options) -> int:
    if options.debezium.get("time.precision.mode") == "connect":
        return int(value) * _MILLISECOND
    found = re.search(r"\((\d)\)", declaration)
    digits = 0 if declaration == "DATE" else int(found[1]) if found else 6
    return int(value) * (_MILLISECOND if digits <= 3 else _MICROSECOND if digits <= 6 else 1)


def _moment(text: str) -> tuple[int, int | None]:
    """Nanoseconds since 1970 of a date's label and clock, and the offset in minutes."""
    found = _CLOCK.fullmatch(text.strip())
    assert found, text
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    fraction = int((found[7] or "").ljust(9, "0"))
    offset = None
    if found[8]:
        offset = int(found[10] or 0) * 60 + int(found[11] or 0)
        offset = -offset if found[9] == "-" else offset
    return _nanoseconds(year, month, day, hour, minute, second, fraction), offset


def _nanoseconds(
    year: int, month: int, day: int, hour: int, minute: int, second: int, fraction: int
) -> int:
    """Days are counted by the rules of the Gregorian calendar, whatever the year."""
    shifted = year - (month <= 2)
    era = shifted // 400
    of_era = shifted - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    days = era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    return ((days * 24 + hour) * 3600 + minute * 60 + second) * _SECOND + fraction


def _interval(text: str) -> tuple[int, int]:
    """Months and nanoseconds."""
    if found := _MONTHS.fullmatch(text):
        months = int(found[2]) * 12 + int(found[3])
        return (-months if found[1] else months), 0
    found = _DAYS.fullmatch(text)
    assert found, text
    days, hours, minutes, seconds, fraction = (int(part) for part in found.groups()[1:])
    nanos = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * _SECOND + fraction
    return 0, -nanos if found[1] else nanos


def _micros(months: int, nanos: int) -> int:
    """What a number of 64 bits holds: Debezium ends at its largest and smallest."""
    whole = abs(nanos) // 1000
    micros = months * _MONTH_MICROS + (-whole if nanos < 0 else whole)
    return min(max(micros, _INT64_MIN), _INT64_MAX)
