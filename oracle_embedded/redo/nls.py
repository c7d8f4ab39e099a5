"""How does an NLS date format print a DATE or TIMESTAMP?

A format model is compiled into one expression over the value's bytes: a look-up and a ``%`` where a
field is printed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import cast

from oracle_embedded.api import OracleError

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
    r"|(?P<name>SYYYY|YYYY|RRRR|YYY|YY|RR|Y|MONTH|MON|MM|DD|HH24|HH12|HH|MI|SSSSS|SS"
    r"|FF[1-9]?|TZH|TZM|TZR|[AP]\.M\.|[AP]M|X)"
    r"|(?P<mark>[-/,.;: ])",
    re.IGNORECASE,
)
Render = Callable[[bytes, int], bytes]


def _two(offset: int) -> list[bytes]:
    return [b"%02d" % (abs(byte - offset) % 100) for byte in range(256)]


def _half_days(forenoon: bytes, afternoon: bytes) -> list[bytes]:
    return [forenoon if byte - 1 < 12 else afternoon for byte in range(256)]


# Tables over the bytes of a DATE: century and year are kept + 100, hour, minute and second + 1.
_TABLES: dict[str, list[bytes]] = {
    "century": _two(100),
    "plain": _two(0),
    "clock": _two(1),
    "twelve": [b"%02d" % ((byte + 10) % 12 + 1) for byte in range(256)],
}
_SECONDS = "(v[4] - 1) * 3600 + (v[5] - 1) * 60 + v[6] - 1"
_FIELDS = {
    "SYYYY": "b'-' if min(v[0], v[1]) < 100 else b' ', century[v[0]], century[v[1]]",
    "YYYY": "century[v[0]], century[v[1]]",
    "RRRR": "century[v[0]], century[v[1]]",
    "YYY": "century[v[0]][1:], century[v[1]]",
    "YY": "century[v[1]]",
    "RR": "century[v[1]]",
    "Y": "century[v[1]][1:]",
    "MM": "plain[v[2]]",
    "DD": "plain[v[3]]",
    "HH24": "clock[v[4]]",
    "HH12": "twelve[v[4]]",
    "HH": "twelve[v[4]]",
    "MI": "clock[v[5]]",
    "SS": "clock[v[6]]",
    "SSSSS": f"b'%05d' % ({_SECONDS})",
    "X": "b'.'",
    "TZH": "b'%c%02d' % (43 if zone >= 0 else 45, abs(zone) // 60)",
    "TZM": "b'%02d' % (abs(zone) % 60)",
    "TZR": "b'%c%02d:%02d' % (43 if zone >= 0 else 45, abs(zone) // 60, abs(zone) % 60)",
}


@lru_cache(maxsize=256)
def compile_format(text: str, scale: int) -> Render:
    """A function that prints a value's bytes by a format model.

    Args:
        text: The format model, such as ``DD-MON-RR HH.MI.SSXFF AM``. Month names are English.
        scale: Digits that ``FF`` without a digit prints: the column's own.

    Returns:
        A function of the stored value (local time, 7 bytes or more) and of the zone's offset in
        minutes.

    Raises:
        OracleError: ORA-01821 for an element that is not supported.
    """
    names: dict[str, object] = dict(_TABLES)
    sources: list[str] = []
    at = 0
    while at < len(text):
        match = _ELEMENT.match(text, at)
        if match is None:
            raise OracleError(1821, "date format not recognized")
        sources.append(_source(match, scale, names))
        at = match.end()
    # The source is made of the fixed pieces of this module; texts of the format are bound by name.
    body = (
        f"lambda v, zone: b''.join(({', '.join(sources)},))" if sources else "lambda v, zone: b''"
    )
    return cast(Render, eval(body, names))  # noqa: S307


def _source(match: re.Match[str], scale: int, names: dict[str, object]) -> str:
    name = match["name"]
    if name is None:
        key = f"text{match.start()}"
        names[key] = (match["mark"] if match["text"] is None else match["text"]).encode()
        return key
    upper = name.upper()
    if upper in ("MON", "MONTH"):
        names[name] = [_month_name(month, name) for month in range(13)]
        return f"{name}[v[2]]"
    if upper[0] in "AP":
        names["half_days"] = _half_days(*_meridians("." in name, name[0].islower()))
        return "half_days[v[4]]"
    if upper.startswith("FF"):
        digits = int(upper[2:] or scale)
        return f"(b'%09d' % int.from_bytes(v[7:11], 'big'))[:{digits}]"
    return _FIELDS[upper]


def _month_name(month: int, name: str) -> bytes:
    word = _MONTHS[max(month, 1) - 1]
    word = word[:3] if len(name) == 3 else word.ljust(9)
    if name[1].islower():
        return (word if name[0].isupper() else word.lower()).encode()
    return word.upper().encode()


def _meridians(dots: bool, lower: bool) -> tuple[bytes, bytes]:
    pair = (b"A.M.", b"P.M.") if dots else (b"AM", b"PM")
    return (pair[0].lower(), pair[1].lower()) if lower else pair
