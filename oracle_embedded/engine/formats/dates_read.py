"""How do texts turn into dates under Oracle's format models?"""

from __future__ import annotations

import re
from dataclasses import dataclass

from oracle_embedded.api import OracleError
from oracle_embedded.days import (
    FIRST_NUMBER,
    FIRST_YEAR,
    JULIAN_OFFSET,
    LAST_NUMBER,
    LAST_YEAR,
    day_of_number,
    month_days,
    number_of_day,
)
from oracle_embedded.engine.formats.dates import DAYS, MONTHS, elements_of
from oracle_embedded.values import (
    date_from_fields,
)


@dataclass
class _Read:
    """What was read so far."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    hour: int = 0
    minute: int = 0
    second: int = 0
    nanos: int = 0
    half: str | None = None
    zone: str | None = None
    zone_hour: int | None = None
    zone_minute: int = 0
    zone_sign: int = 1
    year_day: int | None = None
    seconds: int | None = None
    julian: int | None = None
    bc: bool = False


_LIMITS = {
    "MM": (1, 12, 1843, "not a valid month"),
    "DD": (1, 31, 1847, "day of month must be between 1 and last day of month"),
    "HH24": (0, 23, 1850, "hour must be between 0 and 23"),
    "HH12": (1, 12, 1849, "hour must be between 1 and 12"),
    "HH": (1, 12, 1849, "hour must be between 1 and 12"),
    "MI": (0, 59, 1851, "minutes must be between 0 and 59"),
    "SS": (0, 59, 1852, "seconds must be between 0 and 59"),
    "SSSSS": (0, 86399, 1853, "seconds in day must be between 0 and 86399"),
    "DDD": (1, 366, 1848, "day of year must be between 1 and 365 (366 for leap year)"),
}
_WIDTHS = {
    "SYYYY": 4,
    "YYYY": 4,
    "RRRR": 4,
    "YYY": 3,
    "YY": 2,
    "RR": 2,
    "Y": 1,
    "J": 7,
    "SSSSS": 5,
    "DDD": 3,
}
_ATTRIBUTES = {
    "MM": "month", "DD": "day", "HH24": "hour", "HH12": "hour", "HH": "hour", "MI": "minute",
    "SS": "second", "SSSSS": "seconds", "DDD": "year_day", "J": "julian",
}  # fmt: skip
_UNMATCHED = (1861, "literal does not match format string")


def read_date(text: str, model: str, today: tuple[int, int]) -> tuple[bytes, str | None]:
    """Read a text: the wall-clock TIMESTAMP (11 bytes) and the zone if one was written.

    Args:
        text: What to read.
        model: The format model.
        today: Year and month that stand in where the text has none.

    Raises:
        OracleError: As TO_DATE does: ORA-01830, ORA-01840, ORA-01843, ORA-01861 …
    """
    read = _Read()
    at = 0
    stripped = text.strip() if text != text.strip() else text
    elements = [element for element in elements_of(model) if element.upper() not in ("FM", "FX")]
    for index, element in enumerate(elements):
        upper = element.upper()
        following = elements[index + 1].upper() if index + 1 < len(elements) else ""
        if at >= len(stripped):
            if upper[0].isalpha() and upper not in ("X",) and not _optional(elements[index:]):
                raise OracleError(1840, "input value not long enough for date format")
            break
        at = _read_element(stripped, at, upper, following, read, today[0])
    if at < len(stripped):
        raise OracleError(1830, "date format picture ends before converting entire input string")
    return _assemble(read, today)


def _optional(rest: list[str]) -> bool:
    """May these elements be missing at the end of the text? Times may, dates may not."""
    return all(
        not element[0].isalpha()
        or element.upper() in ("HH24", "HH12", "HH", "MI", "SS", "AM", "PM", "X", "SSSSS")
        or element.upper().startswith(("FF", "TZ"))
        for element in rest
    )


def _read_element(
    text: str, at: int, upper: str, following: str, read: _Read, this_year: int
) -> int:
    first = upper[0]
    if first == '"':
        literal = upper[1:-1]
        if text[at : at + len(literal)].upper() != literal:
            raise OracleError(*_UNMATCHED)
        return at + len(literal)
    if not first.isalpha():
        return _read_punctuation(text, at, first)
    if upper == "X":
        return at + 1 if text[at] == "." else at
    if upper in ("MON", "MONTH"):
        return _read_month(text, at, upper, read)
    if upper in ("DAY", "DY"):
        return _read_name(
            text, at, DAYS, 3 if upper == "DY" else 0, (1846, "not a valid day of the week")
        )[0]
    if upper in ("AM", "PM", "A.M.", "P.M."):
        marks = ["A.M.", "P.M."] if "." in upper else ["AM", "PM"]
        at, index = _read_name(text, at, marks, 0, (1855, "AM/A.M. or PM/P.M. required"))
        read.half = "AP"[index]
        return at
    if upper in ("AD", "BC", "A.D.", "B.C."):
        marks = ["A.D.", "B.C."] if "." in upper else ["AD", "BC"]
        at, index = _read_name(text, at, marks, 0, (1856, "BC/B.C. or AD/A.D. required"))
        read.bc = index == 1
        return at
    if upper.startswith("FF"):
        match = re.compile(r"\d{1,9}").match(text, at)
        if match is None:
            raise OracleError(1880, "the fractional seconds must be between 0 and 999999999")
        read.nanos = int(match.group().ljust(9, "0"))
        return match.end()
    if upper.startswith("TZ"):
        return _read_zone(text, at, upper, read)
    if upper in _WIDTHS or upper in _ATTRIBUTES:
        return _read_number(text, at, upper, following, read, this_year)
    raise OracleError(1820, "format code cannot appear in date input format")


def _read_punctuation(text: str, at: int, expected: str) -> int:
    if expected == " ":
        match = re.compile(r"\s*").match(text, at)
        if match and match.end() > at:
            return match.end()
    return at if text[at].isalnum() else at + 1


def _read_name(
    text: str, at: int, names: list[str], size: int, error: tuple[int, str]
) -> tuple[int, int]:
    upper = text[at:].upper()
    for index, name in enumerate(names):
        if upper.startswith(name[:size] if size else name):
            return at + (size or len(name)), index
    raise OracleError(*error)


def _read_month(text: str, at: int, upper: str, read: _Read) -> int:
    error = (1843, "not a valid month")
    letters = re.compile(r"[^\W\d_]+").match(text, at)
    if letters is None:
        return _read_number(text, at, "MM", "", read, 0)
    word = letters.group().upper()
    for index, name in enumerate(MONTHS):
        if word == name or (
            len(word) >= 3 and word[:3] == name[:3] and (upper == "MON" or word == name[:3])
        ):
            read.month = index + 1
            return at + (3 if word != name else len(name))
    raise OracleError(*error)


def _read_zone(text: str, at: int, upper: str, read: _Read) -> int:
    if upper == "TZR":
        match = re.compile(r"[+-]\d{1,2}:\d{2}|[A-Za-z_]+(?:/[A-Za-z_+\-0-9]+)*").match(text, at)
        if match is None:
            raise OracleError(1882, "timezone region not found")
        read.zone = match.group()
        return match.end()
    if upper == "TZH":
        match = re.compile(r"([+-]?)(\d{1,2})").match(text, at)
        if match is None:
            raise OracleError(
                1862, "the numeric value does not match the length of the format item"
            )
        read.zone_sign = -1 if match.group(1) == "-" else 1
        read.zone_hour = int(match.group(2))
        return match.end()
    if upper == "TZM":
        match = re.compile(r"\d{1,2}").match(text, at)
        if match is None:
            raise OracleError(
                1862, "the numeric value does not match the length of the format item"
            )
        read.zone_minute = int(match.group())
        return match.end()
    raise OracleError(1820, "format code cannot appear in date input format")


def _read_number(
    text: str, at: int, upper: str, following: str, read: _Read, this_year: int
) -> int:
    width = _WIDTHS.get(upper, 2)
    if (
        upper in ("RR", "YY")
        and not following[:1].isdigit()
        and re.compile(r"\d{4}").match(text, at)
    ):
        width = 4
    negative = upper == "SYYYY" and text[at] == "-"
    if upper == "SYYYY" and text[at] in "+- ":
        at += 1
    match = re.compile(rf"\d{{1,{width}}}").match(text, at)
    if match is None:
        letters = upper == "MM" and re.compile(r"[^\W\d_]{3,}").match(text, at)
        if letters:
            return _read_month(text, at, "MON", read)
        raise OracleError(1858, "a non-numeric character was found where a numeric was expected")
    number = int(match.group())
    if upper in _LIMITS:
        low, high, code, message = _LIMITS[upper]
        if not low <= number <= high:
            raise OracleError(code, message)
    if upper in _ATTRIBUTES:
        setattr(read, _ATTRIBUTES[upper], number)
    else:
        read.year = _full_year(number, upper, len(match.group()), this_year)
        read.bc = read.bc or negative
    return match.end()


def _full_year(number: int, upper: str, digits: int, this_year: int) -> int:
    if digits > 2 or upper in ("YYYY", "SYYYY"):
        return number
    if upper in ("RR", "RRRR"):
        century = this_year // 100
        if number < 50 <= this_year % 100:
            century += 1
        elif number >= 50 > this_year % 100:
            century -= 1
        return century * 100 + number
    base = {"YYY": 1000, "YY": 100, "Y": 10}[upper]
    return this_year // base * base + number


def _assemble(read: _Read, today: tuple[int, int]) -> tuple[bytes, str | None]:
    if read.half is not None:
        read.hour = read.hour % 12 + (12 if read.half == "P" else 0)
    if read.seconds is not None:
        read.hour, rest = divmod(read.seconds, 3600)
        read.minute, read.second = divmod(rest, 60)
    year = today[0] if read.year is None else read.year
    if read.julian is not None:
        number = read.julian - JULIAN_OFFSET
        if not FIRST_NUMBER <= number <= LAST_NUMBER:
            raise OracleError(1854, "julian date must be between 1 and 5373484")
    else:
        number = _day(read, year, today[1])
    packed = date_from_fields(*day_of_number(number), read.hour, read.minute, read.second)
    zone = read.zone
    if read.zone_hour is not None:
        zone = f"{'-' if read.zone_sign < 0 else '+'}{read.zone_hour:02d}:{read.zone_minute:02d}"
    return packed + read.nanos.to_bytes(4, "big"), zone


def _day(read: _Read, year: int, this_month: int) -> int:
    """The number of the day; one of the ten missing days of 1582 becomes 15 October."""
    if read.bc:
        year = -year
    if not FIRST_YEAR <= year <= LAST_YEAR or year == 0:
        raise OracleError(1841, "(full) year must be between -4713 and +9999, and not be 0")
    if read.year_day is not None and read.month is None:
        number = number_of_day(year, 1, 1) + read.year_day - 1
        if day_of_number(number)[0] != year:
            raise OracleError(1848, "day of year must be between 1 and 365 (366 for leap year)")
        return number
    month, day = read.month or this_month, read.day or 1
    if day > month_days(year, month):
        raise OracleError(1839, "date not valid for month specified")
    return number_of_day(year, month, day)
