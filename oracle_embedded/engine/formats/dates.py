"""How do dates turn into text under Oracle's format models?

Source: Oracle SQL Language Reference 19c, chapter 2, Datetime Format Models.
"""

from __future__ import annotations

import re
from functools import lru_cache

from oracle_embedded.api import OracleError
from oracle_embedded.days import JULIAN_OFFSET, iso_week, number_of_day, weekday
from oracle_embedded.engine.datatypes import temporal
from oracle_embedded.values import (
    fields_from_date,
    nanos_from_timestamp,
    offset_minutes_from_timestamp_tz,
)

MONTHS = [
    "JANUARY",
    "FEBRUARY",
    "MARCH",
    "APRIL",
    "MAY",
    "JUNE",
    "JULY",
    "AUGUST",
    "SEPTEMBER",
    "OCTOBER",
    "NOVEMBER",
    "DECEMBER",
]
DAYS = ["MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY"]
DIGITS_MAX = 9
"""Digits of a fraction of a second."""
_ROMAN = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"]
_ELEMENT = re.compile(
    r"SYYYY|YYYY|YYY|YY|RRRR|RR|IYYY|IYY|IY|Y,YYY|SCC|CC|MONTH|MON|MM|RM|MI|DDD|DD|DAY|DY|D(?!L|S)|HH24|HH12|HH"
    r'|SSSSS|SS|FF[1-9]|FF|A\.M\.|P\.M\.|B\.C\.|A\.D\.|AM|PM|AD|BC|TZH|TZM|TZR|TZD|IW|WW|FM|FX|[IWQJXY]|"[^"]*"'
    r"|[-/,.;: ]|[^\w\s]",
    re.IGNORECASE,
)


@lru_cache(maxsize=512)
def elements_of(model: str) -> tuple[str, ...]:
    """Cut a format model into its elements; ORA-01821 for what is none."""
    found = []
    at = 0
    while at < len(model):
        match = _ELEMENT.match(model, at)
        if match is None:
            raise OracleError(1821, "date format not recognized")
        found.append(match.group())
        at = match.end()
    return tuple(found)


def _cased(name: str, element: str) -> str:
    if element.isupper():
        return name
    return name.capitalize() if element[0].isupper() else name.lower()


def print_date(
    value: bytes, model: str, *, session_zone: str = "+00:00", scale: int = DIGITS_MAX
) -> str:
    """Text of a DATE, TIMESTAMP or TIMESTAMP WITH TIME ZONE (13 bytes, printed in its own zone).
    ``FF`` without a digit prints as many as the type has: its ``scale``.

    Raises:
        OracleError: ORA-01821 for an unknown element, ORA-01878 and the like for elements the type
            does not have.
    """
    nanos = nanos_from_timestamp(value)
    offset: int | None = None
    wall = value
    if len(value) == 13:
        offset = offset_minutes_from_timestamp_tz(value)
        wall = temporal.timestamp_of(temporal.local_nanos(value))
    parts = []
    fill = True
    fields = fields_from_date(wall)
    for element in elements_of(model):
        upper = element.upper()
        if upper == "FM":
            fill = not fill
        elif upper == "FX":
            continue
        elif upper[0] == '"':
            parts.append(element[1:-1])
        elif upper.startswith("TZ"):
            parts.append(_zone_element(upper, offset, session_zone))
        else:
            if upper == "FF":
                upper = f"FF{scale}"
            parts.append(_print_element(element, upper, fields, nanos, len(value), fill))
    return "".join(parts)


def _zone_element(upper: str, offset: int | None, session_zone: str) -> str:
    if offset is None:
        if upper == "TZR":
            return session_zone
        raise OracleError(1821, "date format not recognized")
    sign = "-" if offset < 0 else "+"
    hours, minutes = divmod(abs(offset), 60)
    if upper == "TZH":
        return f"{sign}{hours:02d}"
    if upper == "TZM":
        return f"{minutes:02d}"
    return f"{sign}{hours:02d}:{minutes:02d}" if upper == "TZR" else ""


def _print_element(
    element: str,
    upper: str,
    fields: tuple[int, int, int, int, int, int],
    nanos: int,
    size: int,
    fill: bool,
) -> str:
    year, month, day, hour, minute, second = fields
    numbers = {
        "MM": (month, 2), "DD": (day, 2), "HH24": (hour, 2), "HH12": ((hour + 11) % 12 + 1, 2),
        "HH": ((hour + 11) % 12 + 1, 2), "MI": (minute, 2), "SS": (second, 2),
        "SSSSS": (hour * 3600 + minute * 60 + second, 5), "Q": ((month + 2) // 3, 1),
        "W": ((day + 6) // 7, 1), "CC": ((abs(year) + 99) // 100, 2),
        "YYYY": (abs(year), 4), "RRRR": (abs(year), 4), "YYY": (abs(year) % 1000, 3),
        "YY": (abs(year) % 100, 2), "RR": (abs(year) % 100, 2), "Y": (abs(year) % 10, 1),
    }  # fmt: skip
    if upper in numbers:
        number, width = numbers[upper]
        return str(number).zfill(width) if fill else str(number)
    match upper:
        case "SYYYY" | "SCC":
            number, width = (abs(year), 4) if upper == "SYYYY" else ((abs(year) + 99) // 100, 2)
            sign = "-" if year < 0 else " " if fill else ""
            return sign + (str(number).zfill(width) if fill else str(number))
        case "Y,YYY":
            return f"{abs(year):,d}".rjust(5, "0")
        case "MONTH" | "DAY":
            name = MONTHS[month - 1] if upper == "MONTH" else _day_name(year, month, day)
            return _cased(name, element).ljust(9) if fill else _cased(name, element)
        case "MON":
            return _cased(MONTHS[month - 1][:3], element)
        case "DY":
            return _cased(_day_name(year, month, day)[:3], element)
        case "RM":
            return (
                _cased(_ROMAN[month - 1], element).ljust(4)
                if fill
                else _cased(_ROMAN[month - 1], element)
            )
        case "AM" | "PM" | "A.M." | "P.M.":
            name = "AM" if hour < 12 else "PM"
            return _cased(f"{name[0]}.M." if "." in upper else name, element)
        case "AD" | "BC" | "A.D." | "B.C.":
            name = "BC" if year < 0 else "AD"
            return _cased(f"{name[0]}.{name[1]}." if "." in upper else name, element)
        case "X":
            return "."
        case _ if upper.startswith("FF"):
            if size == 7:
                raise OracleError(1821, "date format not recognized")
            return f"{nanos:09d}"[: int(upper[2:])]
    return _print_calendar(upper, year, number_of_day(year, month, day), element, fill)


def _day_name(year: int, month: int, day: int) -> str:
    return DAYS[weekday(number_of_day(year, month, day))]


def _print_calendar(upper: str, year: int, day: int, element: str, fill: bool) -> str:
    iso_year, week = iso_week(day)
    year_day = day - number_of_day(year, 1, 1) + 1
    numbers = {
        "DDD": (year_day, 3), "D": ((weekday(day) + 1) % 7 + 1, 1), "WW": ((year_day + 6) // 7, 2),
        "IW": (week, 2), "IYYY": (iso_year, 4), "IYY": (iso_year % 1000, 3), "IY": (iso_year % 100, 2), "I": (iso_year % 10, 1),
        "J": (day + JULIAN_OFFSET, 7),
    }  # fmt: skip
    if upper in numbers:
        number, width = numbers[upper]
        return str(number).zfill(width) if fill else str(number)
    if re.match(r"\w", element):
        raise OracleError(1821, "date format not recognized")
    return element
