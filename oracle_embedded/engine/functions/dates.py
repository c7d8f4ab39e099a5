"""Which date, timestamp and interval functions are registered?"""

from __future__ import annotations

from decimal import Decimal

from oracle_embedded.api import OracleError
from oracle_embedded.days import (
    day_of_number,
    iso_week,
    iso_year_start,
    month_days,
    number_of_day,
    weekday,
)
from oracle_embedded.engine.datatypes import numbers, temporal
from oracle_embedded.engine.formats.dates import DAYS, print_date
from oracle_embedded.engine.formats.numbers import number_settings, print_number
from oracle_embedded.engine.functions.context import CallContext
from oracle_embedded.engine.functions.registry import Entries, register
from oracle_embedded.values import (
    date_from_fields,
    fields_from_date,
    interval_ds_from_nanos,
    interval_ym_from_months,
    months_from_interval_ym,
    nanos_from_interval_ds,
    nanos_from_timestamp,
    offset_minutes_from_timestamp_tz,
)

_UNITS = {
    "DAY": temporal.DAY,
    "HOUR": 3600 * temporal.SECOND,
    "MINUTE": 60 * temporal.SECOND,
    "SECOND": temporal.SECOND,
}
_BAD_MODEL = (1898, "too many precision specifiers")
_DAY_SECONDS = 86400
_MICROSECOND = 1000
"""In nanoseconds."""


def _date_difference(left: bytes, right: bytes) -> bytes:
    seconds = (temporal.instant(left) - temporal.instant(right)) // temporal.SECOND
    return numbers.divide(numbers.encode(seconds), numbers.encode(_DAY_SECONDS))


def _plus_days(value: bytes, days: bytes, sign: int) -> bytes:
    exact = numbers.WIDE
    seconds = exact.multiply(numbers.decode(days), Decimal(_DAY_SECONDS)).to_integral_value()
    return temporal.date_of(temporal.instant(value) + sign * int(seconds) * temporal.SECOND)


def _timestamp_difference(left: bytes, right: bytes) -> bytes:
    return interval_ds_from_nanos(temporal.instant(left) - temporal.instant(right))


def _scale(interval: bytes, factor: bytes, inverse: int) -> bytes:
    ratio = numbers.decode(factor).as_integer_ratio()
    numerator, denominator = (ratio[1], ratio[0]) if inverse else ratio
    if not denominator:
        raise OracleError(1476, "divisor is equal to zero")
    return temporal.scale_interval(interval, numerator, denominator)


def _months_between(left: bytes, right: bytes) -> bytes:
    a, b = fields_from_date(left), fields_from_date(right)
    months = (a[0] - b[0]) * 12 + a[1] - b[1]
    if a[2] == b[2] or (_is_last(a) and _is_last(b)):
        return numbers.encode(months)
    seconds = ((a[2] - b[2]) * 24 + a[3] - b[3]) * 3600 + (a[4] - b[4]) * 60 + a[5] - b[5]
    part = numbers.QUOTIENT.divide(Decimal(seconds), Decimal(31 * _DAY_SECONDS))
    return numbers.encode(numbers.QUOTIENT.add(Decimal(months), part))


def _is_last(fields: tuple[int, int, int, int, int, int]) -> bool:
    return fields[2] == month_days(fields[0], fields[1])


def _last_day(value: bytes) -> bytes:
    year, month, _, hour, minute, second = fields_from_date(value)
    return date_from_fields(year, month, month_days(year, month), hour, minute, second)


def _next_day(value: bytes, name: str) -> bytes:
    prefix = name.strip().upper()
    found = [
        at
        for at, day in enumerate(DAYS)
        if len(prefix) >= 3 and (day.startswith(prefix) or prefix.startswith(day[:3]))
    ]
    if not found:
        raise OracleError(1846, "not a valid day of the week")
    days = (found[0] - weekday(number_of_day(*fields_from_date(value)[:3])) - 1) % 7 + 1
    return temporal.date_of(temporal.instant(value) + days * temporal.DAY)


def truncate_date(value: bytes, model: str) -> bytes:
    """TRUNC of a date."""
    year, month, day, hour, minute, _ = fields_from_date(value)
    today = number_of_day(year, month, day)
    match model.upper():
        case "DDD" | "DD" | "J":
            return date_from_fields(year, month, day)
        case "SYYYY" | "YYYY" | "YEAR" | "SYEAR" | "YYY" | "YY" | "Y":
            return date_from_fields(year)
        case "MONTH" | "MON" | "MM" | "RM":
            return date_from_fields(year, month)
        case "Q":
            return date_from_fields(year, (month - 1) // 3 * 3 + 1)
        case "HH" | "HH12" | "HH24":
            return date_from_fields(year, month, day, hour)
        case "MI":
            return date_from_fields(year, month, day, hour, minute)
        case "IW":
            start = today - weekday(today)
        case "DAY" | "DY" | "D":
            start = today - (weekday(today) + 1) % 7
        case "WW":
            start = today - (today - number_of_day(year, 1, 1)) % 7
        case "W":
            start = today - (day - 1) % 7
        case "CC" | "SCC":
            return date_from_fields((year - 1) // 100 * 100 + 1)
        case "IYYY" | "IYY" | "IY" | "I":
            start = iso_year_start(iso_week(today)[0])
        case _:
            raise OracleError(*_BAD_MODEL)
    return date_from_fields(*day_of_number(start))


def _round_date(value: bytes, model: str) -> bytes:
    low = truncate_date(value, model)
    _, month, day, *_ = fields_from_date(value)
    match model.upper():
        case "SYYYY" | "YYYY" | "YEAR" | "SYEAR" | "YYY" | "YY" | "Y":
            return temporal.add_months(low, 12) if month >= 7 else low
        case "MONTH" | "MON" | "MM" | "RM":
            return temporal.add_months(low, 1) if day >= 16 else low
        case "Q":
            late = (month - 1) % 3 == 2 or ((month - 1) % 3 == 1 and day >= 16)
            return temporal.add_months(low, 3) if late else low
        case "CC" | "SCC" | "IYYY" | "IYY" | "IY" | "I":
            raise OracleError(3001, f"unimplemented feature: ROUND of a date to {model}")
    units = {"HH": 3600, "HH12": 3600, "HH24": 3600, "MI": 60}
    step = units.get(
        model.upper(), _DAY_SECONDS if model.upper() in ("DDD", "DD", "J") else 7 * _DAY_SECONDS
    )
    start = temporal.instant(low)
    late = 2 * (temporal.instant(value) - start) >= step * temporal.SECOND
    return temporal.date_of(start + step * temporal.SECOND) if late else low


def _extract(field: str, value: bytes, family: str) -> bytes:
    if family == "iym":
        months = months_from_interval_ym(value)
        sign = -1 if months < 0 else 1
        parts = {"YEAR": sign * (abs(months) // 12), "MONTH": sign * (abs(months) % 12)}
        return _part(parts, field)
    if family == "ids":
        nanos = nanos_from_interval_ds(value)
        sign = -1 if nanos < 0 else 1
        seconds, fraction = divmod(abs(nanos), temporal.SECOND)
        if field == "SECOND":
            return numbers.encode(sign * (Decimal(seconds % 60) + Decimal(fraction).scaleb(-9)))
        parts = {
            "DAY": sign * (seconds // 86400),
            "HOUR": sign * (seconds // 3600 % 24),
            "MINUTE": sign * (seconds // 60 % 60),
        }
        return _part(parts, field)
    year, month, day, hour, minute, second = fields_from_date(value)
    parts = {"YEAR": year, "MONTH": month, "DAY": day}
    if family == "date":
        return _part(parts, field)
    if field == "SECOND":
        return numbers.encode(Decimal(second) + Decimal(nanos_from_timestamp(value)).scaleb(-9))
    parts |= {"HOUR": hour, "MINUTE": minute}
    if family == "tz":
        offset = offset_minutes_from_timestamp_tz(value)
        sign = -1 if offset < 0 else 1
        parts |= {
            "TIMEZONE_HOUR": sign * (abs(offset) // 60),
            "TIMEZONE_MINUTE": sign * (abs(offset) % 60),
        }
    return _part(parts, field)


def _part(parts: dict[str, int], field: str) -> bytes:
    if field not in parts:
        raise OracleError(30076, "invalid extract field for extract source")
    return numbers.encode(parts[field])


def _number_to_ds(value: bytes, unit: str) -> bytes:
    step = _UNITS.get(unit.strip().upper())
    if step is None:
        raise OracleError(1760, "illegal argument for function")
    return interval_ds_from_nanos(int((numbers.decode(value) * step).to_integral_value()))


def _number_to_ym(value: bytes, unit: str) -> bytes:
    months = {"YEAR": 12, "MONTH": 1}.get(unit.strip().upper())
    if months is None:
        raise OracleError(1760, "illegal argument for function")
    return interval_ym_from_months(int((numbers.decode(value) * months).to_integral_value()))


def _format_date(context: CallContext, value: bytes, model: str, scale: int, *_: str) -> str | None:
    return print_date(value, model, session_zone=context.time_zone, scale=scale) or None


def _format_number(
    context: CallContext, value: bytes, model: str, settings: str = ""
) -> str | None:
    nls = {**context.nls, **number_settings(settings)}
    return print_number(value, model, nls["NLS_NUMERIC_CHARACTERS"], nls["NLS_CURRENCY"]) or None


def _round_fraction(nanos: int, digits: bytes) -> int:
    step: int = 10 ** (9 - numbers.whole(digits))
    return nanos // step * step


def _current_timestamp(context: CallContext, digits: bytes = numbers.encode(6)) -> bytes:
    now = _round_fraction(context.now_utc, digits)
    return temporal.zoned_of(now, temporal.zone_offset(context.time_zone, now))


def _local_timestamp(context: CallContext, digits: bytes = numbers.encode(6)) -> bytes:
    return temporal.timestamp_of(_round_fraction(context.local_now(), digits))


def _timestamp_from_scn(context: CallContext, scn: bytes) -> bytes:
    moment = context.scn_time(numbers.whole(scn))
    if moment is None:
        raise OracleError(8181, "specified number is not a valid system change number")
    return temporal.timestamp_of(temporal.nanos_from_epoch(moment))


def _scn_from_timestamp(context: CallContext, value: bytes) -> bytes:
    moment = temporal.epoch_from_nanos(temporal.instant(value))
    scn = context.time_scn(moment)
    if scn is None:
        raise OracleError(8180, "no snapshot found based on specified time")
    return numbers.encode(scn)


def _tz_offset(context: CallContext, zone: str) -> str:
    offset = temporal.zone_offset(zone, context.now_utc)
    return f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02d}:{abs(offset) % 60:02d}"


_FIRST_ENTRIES: Entries = (
    ("o_date_diff", _date_difference, 2),
    ("o_ts_diff", _timestamp_difference, 2),
    ("o_plus_days", _plus_days, 3),
    ("o_plus_interval", temporal.add_interval, 3),
    ("o_range_time", lambda value: temporal.instant(value) // _MICROSECOND, 1),
    ("o_interval_add", temporal.combine_intervals, 3),
    ("o_interval_scale", _scale, 3),
    ("o_interval_key", lambda value: numbers.encode(nanos_from_interval_ds(value)), 1),
    ("o_add_months", lambda value, months: temporal.add_months(value, numbers.whole(months)), 2),
    ("o_months_between", _months_between, 2),
    ("o_last_day", _last_day, 1),
    ("o_next_day", _next_day, 2),
    ("o_trunc_date", truncate_date, 2),
    ("o_round_date", _round_date, 2),
    ("o_extract", _extract, 3),
    ("o_numtods", _number_to_ds, 2),
    ("o_numtoym", _number_to_ym, 2),
    ("o_fit_timestamp", temporal.fit_timestamp, 2),
    ("o_fit_interval", temporal.fit_interval, 3),
    ("o_from_tz", temporal.zoned_from_local, 2),
    ("o_at_zone", temporal.at_zone, 2),
    ("o_extract_utc", lambda value: value[:11], 1),
)
for _name, _run, _arguments in _FIRST_ENTRIES:
    register(_name, _run, _arguments)
_SECOND_ENTRIES: Entries = (
    ("o_format_date", _format_date, 3),
    ("o_format_date", _format_date, 4),
    ("o_format_number", _format_number, 2),
    ("o_format_number", _format_number, 3),
    ("o_at_local", lambda context, value: temporal.at_zone(value, context.time_zone), 1),
    ("o_sysdate", lambda context: temporal.date_of(context.now_utc), 0),
    ("o_systimestamp", lambda context: temporal.zoned_of(context.now_utc, 0), 0),
    ("o_current_date", lambda context: temporal.date_of(context.local_now()), 0),
    ("o_current_timestamp", _current_timestamp, 0),
    ("o_current_timestamp", _current_timestamp, 1),
    ("o_localtimestamp", _local_timestamp, 0),
    ("o_localtimestamp", _local_timestamp, 1),
    ("o_session_zone", lambda context: context.time_zone, 0),
    ("o_database_zone", lambda context: context.database_zone, 0),
    ("o_scn_to_timestamp", _timestamp_from_scn, 1),
    ("o_timestamp_to_scn", _scn_from_timestamp, 1),
    ("o_tz_offset", _tz_offset, 1),
)
for _name, _run, _arguments in _SECOND_ENTRIES:
    register(_name, _run, _arguments, with_context=True)
