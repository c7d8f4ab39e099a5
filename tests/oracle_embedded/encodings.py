"""Python's values as Oracle's bytes, where only tests need them."""

from __future__ import annotations

from datetime import datetime, timedelta

from oracle_embedded import values


def int_from_number(number: bytes) -> int:
    """Decode a NUMBER, cut towards zero."""
    return int(values.decimal_from_number(number))


def timestamp_tz_from_datetime(
    utc: datetime, offset_minutes: int, nanos: int | None = None
) -> bytes:
    """Encode a TIMESTAMP WITH TIME ZONE from its time in UTC and its zone's offset; 13 bytes."""
    sign = -1 if offset_minutes < 0 else 1
    hours, minutes = divmod(abs(offset_minutes), 60)
    zone = bytes((20 + sign * hours, 60 + sign * minutes))
    return values.timestamp_from_datetime(utc, nanos) + zone


def interval_ds_from_timedelta(value: timedelta) -> bytes:
    """Encode INTERVAL DAY TO SECOND."""
    return values.interval_ds_from_nanos((value // timedelta(microseconds=1)) * 1000)


def timedelta_from_interval_ds(value: bytes) -> timedelta:
    """Decode INTERVAL DAY TO SECOND; fractions below a microsecond are cut towards zero."""
    nanos = values.nanos_from_interval_ds(value)
    micros = abs(nanos) // 1000
    return timedelta(microseconds=-micros if nanos < 0 else micros)
