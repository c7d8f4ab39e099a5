"""Which implicit conversions are registered? ``cv_<from>_<to>`` turns one family of types into
another."""

from __future__ import annotations

from oracle_embedded.api import OracleError
from oracle_embedded.engine.datatypes import numbers, rowids, temporal
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.formats.dates import DIGITS_MAX, print_date
from oracle_embedded.engine.formats.dates_read import read_date
from oracle_embedded.engine.formats.literals import interval_months, interval_nanos
from oracle_embedded.engine.formats.numbers import read_number
from oracle_embedded.engine.functions.context import CallContext
from oracle_embedded.engine.functions.registry import Implementation, register
from oracle_embedded.values import (
    binary_float_from_float,
    double_from_float,
    fields_from_date,
    float_from_binary_float,
    float_from_double,
    interval_ds_from_nanos,
    interval_ym_from_months,
    months_from_interval_ym,
    nanos_from_interval_ds,
    number_from_text,
    text_from_number,
)


def text_to_number(context: CallContext, text: str) -> bytes:
    """TO_NUMBER without a format."""
    separator = context.nls["NLS_NUMERIC_CHARACTERS"][0]
    return number_from_text(text if separator == "." else text.replace(separator, "."))


def number_to_text(context: CallContext, number: bytes) -> str:
    """TO_CHAR of a number without a format."""
    text = text_from_number(number, in_sql=not context.is_program)
    separator = context.nls["NLS_NUMERIC_CHARACTERS"][0]
    return text if separator == "." else text.replace(".", separator)


def _text_to_double(text: str) -> bytes:
    stripped = text.strip().lower()
    try:
        return double_from_float(
            float({"nan": "nan", "inf": "inf", "-inf": "-inf"}.get(stripped, stripped))
        )
    except ValueError as error:
        raise ora(1722) from error


def _real_text(real: float) -> str:
    if real != real:
        return "Nan"
    if real in (float("inf"), float("-inf")):
        return "Inf" if real > 0 else "-Inf"
    mantissa, exponent = f"{real:.16E}".split("E")
    return f"{mantissa}E{int(exponent):+04d}"


def _today(context: CallContext) -> tuple[int, int]:
    year, month, *_ = fields_from_date(temporal.date_of(context.local_now()))
    return year, month


def to_date(context: CallContext, text: str, model: str) -> bytes:
    """TO_DATE."""
    return read_date(text, model, _today(context))[0][:7]


def to_timestamp(context: CallContext, text: str, model: str) -> bytes:
    """TO_TIMESTAMP."""
    return read_date(text, model, _today(context))[0]


def to_zoned(context: CallContext, text: str, model: str) -> bytes:
    """TO_TIMESTAMP_TZ; without a zone the session's counts."""
    packed, zone = read_date(text, model, _today(context))
    return temporal.zoned_from_local(packed, zone or context.time_zone)


def to_number(context: CallContext, text: str, model: str) -> bytes:
    """TO_NUMBER with a format."""
    return read_number(
        text, model, context.nls["NLS_NUMERIC_CHARACTERS"], context.nls["NLS_CURRENCY"]
    )


def _print(setting: str) -> Implementation:
    def run(context: CallContext, value: bytes, scale: int = DIGITS_MAX) -> str:
        zone = context.time_zone
        return print_date(value, context.nls[setting], session_zone=zone, scale=scale)

    return run


def _local(context: CallContext, utc: bytes) -> bytes:
    """Wall-clock time of the session for a TIMESTAMP WITH LOCAL TIME ZONE, which is kept in UTC."""
    nanos = temporal.instant(utc)
    return temporal.timestamp_of(
        nanos + temporal.zone_offset(context.time_zone, nanos) * 60 * temporal.SECOND
    )


def _from_local(context: CallContext, value: bytes) -> bytes:
    return temporal.timestamp_of(
        temporal.utc_from_local(temporal.instant(value), context.time_zone)
    )


def _zoned(context: CallContext, value: bytes) -> bytes:
    return temporal.zoned_from_local(value, context.time_zone)


def _print_local(context: CallContext, value: bytes, scale: int) -> str:
    local = temporal.at_zone(value, context.time_zone)
    return print_date(local, context.nls["NLS_TIMESTAMP_FORMAT"], scale=scale)


def _text_to_raw(text: str) -> bytes:
    try:
        return bytes.fromhex(text if len(text) % 2 == 0 else "0" + text)
    except ValueError as error:
        raise OracleError(1465, "invalid hex number") from error


def _text_to_ids(text: str) -> bytes:
    return interval_ds_from_nanos(interval_nanos(text, "DAY", "SECOND"))


def _text_to_iym(text: str) -> bytes:
    return interval_ym_from_months(interval_months(text, "YEAR", "MONTH"))


def interval_ds_text(value: bytes) -> str:
    """Print INTERVAL DAY TO SECOND."""
    nanos = nanos_from_interval_ds(value)
    seconds, fraction = divmod(abs(nanos), temporal.SECOND)
    clock = f"{seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{'-' if nanos < 0 else '+'}{seconds // 86400:09d} {clock}.{fraction:09d}"


def interval_ym_text(value: bytes) -> str:
    """Print INTERVAL YEAR TO MONTH."""
    months = months_from_interval_ym(value)
    return f"{'-' if months < 0 else '+'}{abs(months) // 12:02d}-{abs(months) % 12:02d}"


def _clob_number(context: CallContext, text: str) -> bytes:
    return text_to_number(context, text)


_PLAIN: tuple[tuple[str, Implementation], ...] = (
    ("cv_text_double", _text_to_double),
    (
        "cv_text_float",
        lambda text: binary_float_from_float(float_from_double(_text_to_double(text))),
    ),
    ("cv_double_text", lambda value: _real_text(float_from_double(value))),
    ("cv_float_text", lambda value: _real_text(float_from_binary_float(value))),
    ("cv_date_timestamp", lambda value: value + b"\0\0\0\0"),
    ("cv_timestamp_date", lambda value: value[:7]),
    ("cv_tz_date", lambda value: temporal.date_of(temporal.local_nanos(value))),
    ("cv_tz_timestamp", lambda value: temporal.timestamp_of(temporal.local_nanos(value))),
    ("cv_tz_ltz", lambda value: value[:11]),
    ("cv_text_raw", _text_to_raw),
    ("cv_text_blob", _text_to_raw),
    ("cv_raw_text", lambda value: value.hex().upper()),
    ("cv_text_rowid", rowids.packed_from_text),
    ("cv_rowid_text", rowids.text_from_packed),
    ("cv_text_ids", _text_to_ids),
    ("cv_text_iym", _text_to_iym),
    ("cv_ids_text", interval_ds_text),
    ("cv_iym_text", interval_ym_text),
    ("cv_bool_number", lambda value: numbers.encode(value[-1])),
    ("cv_number_bool", lambda value: bytes((int(value != b"\x80"),))),
)
_WITH_CONTEXT: tuple[tuple[str, Implementation], ...] = (
    ("cv_text_number", text_to_number),
    ("cv_clob_number", _clob_number),
    ("cv_number_text", number_to_text),
    ("cv_number_clob", number_to_text),
    ("cv_text_date", lambda context, text: to_date(context, text, context.nls["NLS_DATE_FORMAT"])),
    (
        "cv_text_timestamp",
        lambda context, text: to_timestamp(context, text, context.nls["NLS_TIMESTAMP_FORMAT"]),
    ),
    (
        "cv_text_tz",
        lambda context, text: to_zoned(context, text, context.nls["NLS_TIMESTAMP_TZ_FORMAT"]),
    ),
    (
        "cv_text_ltz",
        lambda context, text: _from_local(
            context, to_timestamp(context, text, context.nls["NLS_TIMESTAMP_FORMAT"])
        ),
    ),
    ("cv_date_text", _print("NLS_DATE_FORMAT")),
    ("cv_date_clob", _print("NLS_DATE_FORMAT")),
    ("cv_date_tz", _zoned),
    ("cv_timestamp_tz", _zoned),
    ("cv_date_ltz", _from_local),
    ("cv_timestamp_ltz", _from_local),
    ("cv_ltz_timestamp", _local),
    ("cv_ltz_date", lambda context, value: _local(context, value)[:7]),
    ("cv_ltz_tz", lambda context, value: temporal.at_zone(value, context.time_zone)),
)

_WITH_DIGITS: tuple[tuple[str, Implementation], ...] = (
    ("cv_timestamp_text", _print("NLS_TIMESTAMP_FORMAT")),
    ("cv_timestamp_clob", _print("NLS_TIMESTAMP_FORMAT")),
    ("cv_tz_text", _print("NLS_TIMESTAMP_TZ_FORMAT")),
    ("cv_tz_clob", _print("NLS_TIMESTAMP_TZ_FORMAT")),
    ("cv_ltz_text", _print_local),
)

for _name, _run in _PLAIN:
    register(_name, _run, 1)
for _name, _run in _WITH_CONTEXT:
    register(_name, _run, 1, with_context=True)
for _name, _run in _WITH_DIGITS:
    register(_name, _run, 2, with_context=True)
register("o_to_date", to_date, 2, with_context=True)
register("o_to_timestamp", to_timestamp, 2, with_context=True)
register("o_to_tz", to_zoned, 2, with_context=True)
register("o_to_number", to_number, 2, with_context=True)
