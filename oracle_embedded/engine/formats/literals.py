"""What do datetime and interval literals mean?"""

from __future__ import annotations

import re

from oracle_embedded.api import OracleError, OraType
from oracle_embedded.engine.datatypes import temporal, types
from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.formats.dates_read import read_date
from oracle_embedded.values import interval_ds_from_nanos, interval_ym_from_months

_TIMESTAMP = re.compile(
    r"\s*([+-]?\d{4})-(\d{1,2})-(\d{1,2})[ T]+(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?\s*(\S.*)?\Z"
)
_DAY_UNITS = ("DAY", "HOUR", "MINUTE", "SECOND")
_UNIT_NANOS = {
    "DAY": temporal.DAY,
    "HOUR": 3600 * temporal.SECOND,
    "MINUTE": 60 * temporal.SECOND,
    "SECOND": temporal.SECOND,
}


_RANGES = {
    "HOUR": (23, 1850, "hour must be between 0 and 23"),
    "MINUTE": (59, 1851, "minutes must be between 0 and 59"),
    "SECOND": (59, 1852, "seconds must be between 0 and 59"),
}


def temporal_literal(kind: str, text: str, pos: int) -> tuple[bytes, SqlType]:
    """Value and type of ``DATE '…'`` or ``TIMESTAMP '…'``, the latter with zone if it is
    written."""
    try:
        if kind == "DATE":
            packed, _ = read_date(text, "SYYYY-MM-DD", (1, 1))
            return packed[:7], types.DATE
        match = _TIMESTAMP.match(text)
        if match is None:
            raise OracleError(1861, "literal does not match format string")
        *_, fraction, zone = match.groups()
        model = (
            "SYYYY-MM-DD HH24:MI" + (":SS" if match.group(6) else "") + (".FF" if fraction else "")
        )
        head = text[: match.start(8)] if zone else text
        packed, _ = read_date(head.replace("T", " ").strip(), model, (1, 1))
        scale = 9
        if zone:
            zoned = temporal.zoned_from_local(packed, zone.strip())
            return zoned, SqlType(OraType.TIMESTAMP_TZ, scale=scale)
        return packed, SqlType(OraType.TIMESTAMP, scale=scale)
    except OracleError as error:
        error.offset = pos
        raise


def interval_literal(
    text: str, first: str, last: str, precision: int, digits: int
) -> tuple[bytes, SqlType]:
    """Value and type of ``INTERVAL 'text' first(precision) [TO last(digits)]``.

    Raises:
        OracleError: ORA-01867 when the text does not have the fields, ORA-01873 when the first has
            more digits than its precision, ORA-01843 and ORA-01850 to ORA-01852 when another is out
            of range.
    """
    if first in ("YEAR", "MONTH"):
        months = interval_months(text, first, last, precision)
        return interval_ym_from_months(months), types.INTERVAL_YM
    nanos = interval_nanos(text, first, last, precision)
    packed = temporal.fit_interval(interval_ds_from_nanos(nanos), 9, digits)
    return packed, types.INTERVAL_DS


def interval_months(text: str, first: str, last: str, precision: int = 9) -> int:
    """Months of a year-month interval's text, whose first field has ``precision`` digits at most.

    Raises:
        OracleError: See :func:`interval_literal`.
    """
    match = re.fullmatch(r"\s*([+-]?)(\d+)(?:-(\d+))?\s*", text)
    if match is None or (match[3] is not None) != (first != last):
        raise OracleError(1867, "the interval is invalid")
    temporal.check_leading(int(match[2]), precision)
    months = int(match[3] or 0)
    if months > 11:
        raise OracleError(1843, "not a valid month")
    value = int(match[2]) * (12 if first == "YEAR" else 1) + months
    return -value if match[1] == "-" else value


def interval_nanos(text: str, first: str, last: str, precision: int = 9) -> int:
    """Nanoseconds of a day-time interval's text, whose first field has ``precision`` digits at
    most.

    Raises:
        OracleError: See :func:`interval_literal`.
    """
    units = _DAY_UNITS[_DAY_UNITS.index(first) : _DAY_UNITS.index(last) + 1]
    match = re.fullmatch(r"\s*([+-]?)(\d+(?:[ :]+\d+)*)(?:\.(\d{1,9}))?\s*", text)
    if match is None:
        raise OracleError(1867, "the interval is invalid")
    values = [int(part) for part in re.split(r"[ :]+", match[2])]
    if len(values) != len(units) or (match[3] and last != "SECOND"):
        raise OracleError(1867, "the interval is invalid")
    temporal.check_leading(values[0], precision)
    for value, unit in zip(values[1:], units[1:], strict=True):
        most, code, words = _RANGES[unit]
        if value > most:
            raise OracleError(code, words)
    nanos = sum(value * _UNIT_NANOS[unit] for value, unit in zip(values, units, strict=True))
    nanos += int((match[3] or "0").ljust(9, "0"))
    return -nanos if match[1] == "-" else nanos


def unistr(text: str) -> str:
    """UNISTR and ``U'…'``: ``\\XXXX`` is a UTF-16 code unit, ``\\\\`` a backslash."""
    units = bytearray()
    at = 0
    while at < len(text):
        if text[at] != "\\":
            units += text[at].encode("utf-16-be")
            at += 1
        elif text[at + 1 : at + 2] == "\\":
            units += "\\".encode("utf-16-be")
            at += 2
        elif re.fullmatch(r"[0-9A-Fa-f]{4}", text[at + 1 : at + 5]):
            units += bytes.fromhex(text[at + 1 : at + 5])
            at += 5
        else:
            raise OracleError(
                30186, "'\\' must be followed by four hexadecimal characters or another '\\'"
            )
    return units.decode("utf-16-be", "replace")
