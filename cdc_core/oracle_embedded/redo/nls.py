"""How does an NLS date format print the fields of a DATE or TIMESTAMP?"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from cdc_core.oracle_embedded.api import OracleError

_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_ELEMENT = re.compile(
    r'"(?P<text>[^"]*)"'
    r"|(?P<name>SYYYY|YYYY|RRRR|YYY|YY|RR|Y|MONTH|MON|MM|DDD|DD|HH24|HH12|HH|MI|SSSSS|SS"
    r"|FF[1-9]?|TZH|TZM|TZR|[AP]\.?M\.?|[XJ])"
    r"|(?P<mark>[-/,.;: ])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Moment:
    """Calendar fields; ``offset_minutes`` is the zone's offset from UTC."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    nanos: int = 0
    offset_minutes: int = 0


Element = Callable[[Moment], str]


@lru_cache(maxsize=256)
def compile_format(text: str, scale: int) -> Callable[[Moment], str]:
    """A function that prints a moment by a format model.

    Args:
        text: The format model, such as ``DD-MON-RR HH.MI.SSXFF AM``. Month and day names are English.
        scale: Digits that ``FF`` without a digit prints: the column's own.

    Raises:
        OracleError: ORA-01821 for an element that is not supported.
    """
    elements: list[Element] = []
    at = 0
    while at < len(text):
        match = _ELEMENT.match(text, at)
        if match is None:
            raise OracleError(1821, "date format not recognized")
        elements.append(_element(match, scale))
        at = match.end()

    def render(moment: Moment) -> str:
        return "".join([element(moment) for element in elements])

    return render


def _element(match: re.Match[str], scale: int) -> Element:
    name = match["name"]
    if name is None:
        constant = match["text"] if match["text"] is not None else match["mark"]
        return lambda _moment: constant
    upper = name.upper()
    if upper in ("MON", "MONTH"):
        return lambda moment: _month_name(moment.month, name)
    if upper.replace(".", "") in ("AM", "PM"):
        dots = "." in upper
        return lambda moment: _half_day(moment.hour, dots, name[0].islower())
    if upper.startswith("FF"):
        digits = int(upper[2:] or scale)
        return lambda moment: f"{moment.nanos:09d}"[:digits]
    if upper not in _FIELDS:
        raise OracleError(1821, "date format not recognized")
    return _FIELDS[upper]


def _month_name(month: int, name: str) -> str:
    word = _MONTHS[month - 1]
    word = word[:3] if len(name) == 3 else word.ljust(9)
    if name[1].islower():
        return word if name[0].isupper() else word.lower()
    return word.upper()


def _half_day(hour: int, dots: bool, lower: bool) -> str:
    text = ("A.M." if hour < 12 else "P.M.") if dots else ("AM" if hour < 12 else "PM")
    return text.lower() if lower else text


def _offset(moment: Moment) -> tuple[str, int, int]:
    hours, minutes = divmod(abs(moment.offset_minutes), 60)
    return "-" if moment.offset_minutes < 0 else "+", hours, minutes


def _offset_hours(moment: Moment) -> str:
    sign, hours, _minutes = _offset(moment)
    return f"{sign}{hours:02d}"


def _region(moment: Moment) -> str:
    sign, hours, minutes = _offset(moment)
    return f"{sign}{hours:02d}:{minutes:02d}"


_FIELDS: dict[str, Element] = {
    "SYYYY": lambda m: f"{'-' if m.year < 0 else ' '}{abs(m.year):04d}",
    "YYYY": lambda m: f"{abs(m.year):04d}",
    "RRRR": lambda m: f"{abs(m.year):04d}",
    "YYY": lambda m: f"{abs(m.year) % 1000:03d}",
    "YY": lambda m: f"{abs(m.year) % 100:02d}",
    "RR": lambda m: f"{abs(m.year) % 100:02d}",
    "Y": lambda m: str(abs(m.year) % 10),
    "MM": lambda m: f"{m.month:02d}",
    "DD": lambda m: f"{m.day:02d}",
    "HH24": lambda m: f"{m.hour:02d}",
    "HH12": lambda m: f"{(m.hour + 11) % 12 + 1:02d}",
    "HH": lambda m: f"{(m.hour + 11) % 12 + 1:02d}",
    "MI": lambda m: f"{m.minute:02d}",
    "SS": lambda m: f"{m.second:02d}",
    "SSSSS": lambda m: f"{m.hour * 3600 + m.minute * 60 + m.second:05d}",
    "X": lambda _m: ".",
    "TZH": _offset_hours,
    "TZM": lambda m: f"{_offset(m)[2]:02d}",
    "TZR": _region,
}
