"""How are DATEs, TIMESTAMPs and INTERVALs computed with, in their own encodings?

Inside this module a point in time is a whole number of nanoseconds since the Gregorian 0001-01-01
00:00.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from oracle_embedded.api import OracleError
from oracle_embedded.days import (
    FIRST_NUMBER,
    FIRST_YEAR,
    LAST_NUMBER,
    LAST_YEAR,
    day_of_number,
    is_missing,
    month_days,
    number_of_day,
)
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

SECOND = 1_000_000_000
DAY = 86400 * SECOND
YEAR_ERROR = "(full) year must be between -4713 and +9999, and not be 0"


def instant(value: bytes) -> int:
    """The point in time of a DATE, TIMESTAMP or (in UTC) TIMESTAMP WITH TIME ZONE."""
    year, month, day, hour, minute, second = fields_from_date(value)
    if not FIRST_YEAR <= year <= LAST_YEAR:
        raise OracleError(1841, YEAR_ERROR)
    days = number_of_day(year, month, day) - 1
    return (days * 86400 + hour * 3600 + minute * 60 + second) * SECOND + nanos_from_timestamp(
        value
    )


def date_of(nanos: int) -> bytes:
    """The DATE of a point in time, fractions of a second cut off."""
    seconds, _ = divmod(nanos, SECOND)
    days, rest = divmod(seconds, 86400)
    if not FIRST_NUMBER <= days + 1 <= LAST_NUMBER:
        raise OracleError(1841, YEAR_ERROR)
    year, month, day = day_of_number(days + 1)
    return date_from_fields(year, month, day, rest // 3600, rest // 60 % 60, rest % 60)


def timestamp_of(nanos: int) -> bytes:
    """The TIMESTAMP of a point in time."""
    return date_of(nanos) + (nanos % SECOND).to_bytes(4, "big")


def zoned_of(nanos_utc: int, offset_minutes: int) -> bytes:
    """The TIMESTAMP WITH TIME ZONE of a point in time in UTC."""
    sign = -1 if offset_minutes < 0 else 1
    hours, minutes = divmod(abs(offset_minutes), 60)
    return timestamp_of(nanos_utc) + bytes((20 + sign * hours, 60 + sign * minutes))


def local_nanos(value: bytes) -> int:
    """Wall-clock time of a value: of a zoned one in its own zone, else as it stands."""
    if len(value) == 13:
        return instant(value) + offset_minutes_from_timestamp_tz(value) * 60 * SECOND
    return instant(value)


def now() -> int:
    """The present, in UTC, to the microsecond."""
    delta = datetime.now(UTC).replace(tzinfo=None) - datetime.min
    return delta // timedelta(microseconds=1) * 1000


def nanos_from_epoch(seconds: float) -> int:
    """The point in time, in UTC, of seconds since 1970."""
    delta = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None) - datetime.min
    return delta // timedelta(microseconds=1) * 1000


def epoch_from_nanos(nanos: int) -> float:
    """Seconds since 1970 of a point in time in UTC."""
    return (nanos - 719162 * DAY) / SECOND


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, IsADirectoryError) as error:
        raise OracleError(1882, "timezone region not found") from error


def zone_offset(name: str, nanos_utc: int) -> int:
    """Offset in minutes of a zone (``+02:00`` or a region's name) at a point in time.

    Raises:
        OracleError: ORA-01882 for an unknown region, ORA-01874/01875 for an offset out of range.
    """
    text = name.strip()
    if text[:1] in "+-" or text[:1].isdigit():
        sign = -1 if text.startswith("-") else 1
        hours, _, minutes = text.lstrip("+-").partition(":")
        if not hours.isdigit() or (minutes and not minutes.isdigit()):
            raise OracleError(1882, "timezone region not found")
        if int(hours) > 15:
            raise OracleError(1874, "time zone hour must be between -15 and 15")
        if int(minutes or 0) > 59:
            raise OracleError(1875, "time zone minute must be between -59 and 59")
        return sign * (int(hours) * 60 + int(minutes or 0))
    moment = datetime.min.replace(tzinfo=UTC) + timedelta(microseconds=max(nanos_utc, 0) // 1000)
    offset = moment.astimezone(_zone(_REGIONS.get(text.upper(), text))).utcoffset()
    return int((offset or timedelta()).total_seconds()) // 60


_REGIONS = {"UTC": "UTC", "GMT": "Etc/GMT"}


def utc_from_local(nanos_local: int, zone: str) -> int:
    """The point in time in UTC of a wall-clock time in a zone."""
    guess = nanos_local - zone_offset(zone, nanos_local) * 60 * SECOND
    return nanos_local - zone_offset(zone, guess) * 60 * SECOND


def zoned_from_local(value: bytes, zone: str) -> bytes:
    """A DATE or TIMESTAMP taken as wall-clock time of a zone."""
    local = instant(value)
    utc = utc_from_local(local, zone)
    return zoned_of(utc, (local - utc) // (60 * SECOND))


def at_zone(value: bytes, zone: str) -> bytes:
    """The same point in time in another zone."""
    utc = instant(value)
    return zoned_of(utc, zone_offset(zone, utc))


def add_months(value: bytes, months: int) -> bytes:
    """ADD_MONTHS: the last day of a month stays the last day; the time of day is kept."""
    year, month, day, hour, minute, second = fields_from_date(value)
    total = year * 12 + month - 1 + months
    new_year, new_month = divmod(total, 12)
    new_month += 1
    if not FIRST_YEAR <= new_year <= LAST_YEAR:
        raise OracleError(1841, YEAR_ERROR)
    last = month_days(new_year, new_month)
    if day == month_days(year, month) or day > last:
        day = last
    if is_missing(new_year, new_month, day):
        day = 15
    return date_from_fields(new_year, new_month, day, hour, minute, second) + value[7:]


def shift_months(value: bytes, months: int) -> bytes:
    """Add an INTERVAL YEAR TO MONTH, which refuses a day that the month does not have.

    Raises:
        OracleError: ORA-01839 for 31 January + 1 month and the like.
    """
    day = value[3]
    shifted = add_months(value, months)
    year, month = fields_from_date(shifted)[:2]
    if day > month_days(year, month):
        raise OracleError(1839, "date not valid for month specified")
    if is_missing(year, month, day):
        return shifted
    return shifted[:3] + bytes((day,)) + shifted[4:]


def add_interval(value: bytes, interval: bytes, sign: int) -> bytes:
    """A point in time plus or minus an interval; the value's type and zone are kept."""
    if len(interval) == 5:
        return shift_months(value, sign * months_from_interval_ym(interval))
    nanos = instant(value) + sign * nanos_from_interval_ds(interval)
    if len(value) == 7:
        return date_of(nanos)
    return timestamp_of(nanos) + value[11:]


def scale_interval(interval: bytes, numerator: int, denominator: int) -> bytes:
    """An interval times a fraction, cut towards zero."""
    length = (
        months_from_interval_ym(interval)
        if len(interval) == 5
        else nanos_from_interval_ds(interval)
    )
    product = abs(length * numerator) // abs(denominator)
    if (length < 0) != ((numerator < 0) != (denominator < 0)):
        product = -product
    return (
        interval_ym_from_months(product) if len(interval) == 5 else interval_ds_from_nanos(product)
    )


def combine_intervals(left: bytes, right: bytes, sign: int) -> bytes:
    """Sum or difference of two intervals of one kind."""
    if len(left) == 5:
        return interval_ym_from_months(
            months_from_interval_ym(left) + sign * months_from_interval_ym(right)
        )
    return interval_ds_from_nanos(
        nanos_from_interval_ds(left) + sign * nanos_from_interval_ds(right)
    )


def fit_timestamp(value: bytes, scale: int) -> bytes:
    """A timestamp rounded to so many fraction digits, as a column keeps it."""
    nanos = nanos_from_timestamp(value)
    step = 10 ** (9 - scale)
    if nanos % step == 0:
        return value
    rounded = (instant(value) + step // 2) // step * step
    return timestamp_of(rounded) + value[11:]


def check_leading(value: int, precision: int) -> None:
    """Does the first field of an interval have so many digits at most?

    Raises:
        OracleError: ORA-01873 when it does not.
    """
    if abs(value) >= 10**precision:
        raise OracleError(1873, "the leading precision of the interval is too small")


def fit_interval(value: bytes, precision: int, scale: int) -> bytes:
    """An interval as a column keeps it: of days, rounded to so many fraction digits.

    Raises:
        OracleError: ORA-01873 when its days or years have more digits than ``precision``.
    """
    if len(value) == 5:
        check_leading(abs(months_from_interval_ym(value)) // 12, precision)
        return value
    nanos = nanos_from_interval_ds(value)
    step = 10 ** (9 - scale)
    length = (abs(nanos) + step // 2) // step * step
    check_leading(length // DAY, precision)
    return (
        value if length == abs(nanos) else interval_ds_from_nanos(-length if nanos < 0 else length)
    )
