"""How do the JSON rows of OpenLogReplicator become Arrow columns, in the types of the type table?

Rows of one version of a table are read by a class made for it: numbers become integers or exact
decimals from their own digits, never a float, and a key that is absent stays apart from ``null``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.change_stream.images import ABSENT, UNTOLD, RefusedValueError
from cdc_core.config import OpenLogReplicatorConfig
from cdc_core.decode.batch import Operations, ScannedBatch, scan_records
from cdc_core.decode.kernels import records
from cdc_core.decode.literals import canonical_number_text
from cdc_core.decode.plan import Kind, TablePlan, plan_column
from cdc_core.decode.printed import day_to_second_text, year_to_month_text
from cdc_core.decode.records import KeptRows
from cdc_core.errors import DecodeError
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import (
    NUMBER_TYPES,
    Printed,
    arrow_type,
    as_read,
    is_moment,
    printed_as,
)

_MICROSECONDS_TEXT = 26
_ROW_ID = re.compile(r"[A-Za-z0-9+/]{18}")
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z?)")
_DAYS = re.compile(r"([+-]?\d{1,9})[ ,](\d\d:\d\d:\d\d(?:\.\d{0,9})?)")
_MONTHS = re.compile(r"([+-]?\d{1,9})-(\d{1,2})")
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_EPOCH = datetime(1970, 1, 1)
_LINES = {
    "numeric": '"timestamp": 8',
    "zone": '"timestamp-tz": 0',
    "days": '"interval-dts": 9',
    "months": '"interval-ytm": 4',
}

_SCANNED = frozenset(
    {
        Kind.INT64, Kind.DECIMAL, Kind.NUMBER, Kind.TIMESTAMP, Kind.TIMESTAMP_TEXT, Kind.DATE,
        Kind.RAW, Kind.BLOB,
    }
)  # fmt: skip

Unit = Literal["ns", "us", "ms", "s"]
_Convert = Callable[[list[Any]], pa.Array]


class RowReader:
    """A :class:`~cdc_core.change_stream.form.RunForm`: rows of one version of a table in JSON.

    Args:
        schema: The version.
        columns: The columns that it has here.
        how: In which units times come, and what becomes of binary floats.
    """

    def __init__(
        self, schema: TableSchema, columns: Sequence[Column], how: OpenLogReplicatorConfig
    ) -> None:
        names = [f"c{at}" for at in range(len(columns))]
        read = [_reading(one, how) for one in columns]
        self._plan = _plan(schema, columns, how)
        is_short = how.binary_floats == "reselect"
        self._short = [at for at, one in enumerate(columns) if is_short and _is_binary_float(one)]
        self.asks = bool(self._short)
        self._tokens = {
            at: msgspec.json.Decoder(list[read[at][0] | None])  # type: ignore[misc]
            for at, one in enumerate(self._plan.columns)
            if one.kind is Kind.TOKEN
        }
        fields = [
            (name, kind | None | msgspec.UnsetType, ABSENT)
            for name, (kind, _) in zip(names, read, strict=True)
        ]
        try:
            row = msgspec.defstruct(
                "Row",
                fields,
                rename={name: column.name for name, column in zip(names, columns, strict=True)},
                gc=False,
            )
        except ValueError as error:
            raise DecodeError(
                "a column's name has characters that its JSON form is not read with",
                hint="Name the column under columns_exclude of the table.",
                table=schema.table,
            ) from error
        self._decoder = msgspec.json.Decoder(list[row | None])  # type: ignore[valid-type]
        self._nothing: Any = row()
        self._values = attrgetter(*names) if len(names) > 1 else None
        self._converters = [convert for _, convert in read]

    def by_column(self, images: Sequence[bytes | None]) -> list[list[Any]]:
        """See :meth:`RowForm.by_column`."""
        rows = self._decoder.decode(b"[" + b",".join([one or b"null" for one in images]) + b"]")
        whole: list[Any] = [self._nothing if row is None else row for row in rows]
        if self._values is None:
            found = [[row.c0 for row in whole]]
        else:
            found = [list(column) for column in zip(*map(self._values, whole), strict=True)]
        for at in self._short:
            found[at] = [one if one is None or one is ABSENT else UNTOLD for one in found[at]]
        return found

    def convert(self, at: int, values: list[Any]) -> pa.Array:
        """See :meth:`RowForm.convert`."""
        return self._converters[at](values)

    def scan(self, rows: KeptRows, operations: Operations) -> ScannedBatch:
        """See :meth:`RunForm.scan`."""
        if self.asks:
            raise RefusedValueError("Oracle is asked for values of such rows")
        found = scan_records(rows.words, operations, self._plan)
        for arrays in (found.before, found.after):
            if arrays is None:
                continue
            for array in arrays:
                array.validate(full=pa.types.is_string(array.type))
            for at, decoder in self._tokens.items():
                tokens = arrays[at].fill_null("null").to_pylist()
                arrays[at] = self.convert(at, decoder.decode(f"[{','.join(tokens)}]"))
        return found

    def image(self, rows: KeptRows, row: int, *, is_old: bool) -> bytes | None:
        """See :meth:`RunForm.image`."""
        return rows.image(row, records.BEFORE_AT if is_old else records.AFTER_AT)


def _plan(
    schema: TableSchema, columns: Sequence[Column], how: OpenLogReplicatorConfig
) -> TablePlan:
    """How compiled loops read the columns: those that they do not know as JSON has them."""
    plans = []
    for column in columns:
        plan, (kind, _) = plan_column(column), _reading(column, how)
        is_text = (
            plan.kind in (Kind.TEXT, Kind.CLOB) and kind is str and column.data_type != "ROWID"
        )
        if not is_text and plan.kind not in _SCANNED:
            plan = replace(plan, kind=Kind.TOKEN, type=pa.string())
        plans.append(plan)
    return TablePlan(schema.table.sql, tuple(plans), ())


def _reading(column: Column, how: OpenLogReplicatorConfig) -> tuple[Any, _Convert]:
    """As what a column's JSON values are read, and how they become Arrow."""
    kind, read = arrow_type(as_read(column)), as_read(column)
    if column.data_type in NUMBER_TYPES:
        return _number(kind)
    if _is_binary_float(column):
        return float, _binary_floats(kind, is_taken=how.binary_floats == "take")
    if column.data_type in ("RAW", "BLOB"):
        return str, lambda values: pa.array([_bytes(one) for one in values], pa.binary())
    if is_moment(column):
        return int | str, _moments(kind, how.numeric_times)
    match printed_as(read):
        case Printed.ZONED if column.is_local_time:
            return int | str, lambda values: _texts(
                values, lambda one: _local(one, how.numeric_times)
            )
        case Printed.ZONED:
            return str, lambda values: _texts(values, lambda one: _zoned(one, how.numeric_times))
        case Printed.YEAR_TO_MONTH:
            return int | str, lambda values: _texts(values, _year_to_month)
        case Printed.DAY_TO_SECOND:
            return int | str, lambda values: _texts(values, _day_to_second)
    if column.data_type == "ROWID":
        return str, lambda values: _texts(values, _row_id)
    return str, lambda values: pa.array(values, pa.string())


def _is_binary_float(column: Column) -> bool:
    return column.data_type in ("BINARY_FLOAT", "BINARY_DOUBLE")


def _number(kind: pa.DataType) -> tuple[Any, _Convert]:
    if pa.types.is_int64(kind):
        return int, lambda values: pa.array(values, pa.int64())
    if pa.types.is_decimal(kind):
        return Decimal, lambda values: pa.array(values, kind)
    if pa.types.is_floating(kind):
        return Decimal, lambda values: pa.array(
            [None if one is None else float(one) for one in values], kind
        )
    return Decimal, lambda values: _texts(values, lambda one: canonical_number_text(str(one)))


def _binary_floats(kind: pa.DataType, *, is_taken: bool) -> _Convert:
    def convert(values: list[Any]) -> pa.Array:
        if not is_taken and any(one is not None for one in values):
            raise RefusedValueError(
                "OpenLogReplicator writes six digits of a binary float; with `capture.binary_floats` Redolake reads it from "
                "Oracle, or takes these"
            )
        return pa.array(values, kind)

    return convert


def _texts(values: list[Any], text: Callable[[Any], str]) -> pa.Array:
    return pa.array([None if one is None else text(one) for one in values], pa.string())


def _bytes(value: str | None) -> bytes | None:
    if value is None:
        return None
    try:
        return bytes.fromhex(value)
    except ValueError:
        raise RefusedValueError("bytes are not in hexadecimal digits") from None


def _row_id(value: str) -> str:
    if not _ROW_ID.fullmatch(value):
        raise RefusedValueError("OpenLogReplicator does not show values of ROWID columns")
    return value


def _moments(kind: pa.DataType, unit: Unit) -> _Convert:
    """Dates and timestamps without a zone: text where nine digits are held."""

    def convert(values: list[Any]) -> pa.Array:
        if pa.types.is_string(kind):
            return _texts(values, lambda one: _moment_text(one, unit))
        if int in set(map(type, values)):
            per = _PER_SECOND[unit]
            micros = [None if one is None else _micros(one, per) for one in values]
            return pa.array(micros, pa.int64()).cast(kind)
        texts = pa.array(values, pa.string())
        # Digits behind the sixth are zeros where the column's type has six.
        cut = pc.utf8_slice_codeunits(pc.utf8_rtrim(texts, "Z"), 0, _MICROSECONDS_TEXT)
        return cut.cast(kind)

    return convert


def _micros(value: Any, per_second: int) -> int:
    if not isinstance(value, int):
        raise RefusedValueError("some times are numbers, others are text")
    return value * 10**6 // per_second


def _moment_text(value: int | str, unit: Unit) -> str:
    if isinstance(value, int):
        return _of_number(value, unit)
    found = _ISO.fullmatch(value)
    if found is None:
        raise RefusedValueError(f"a time is not in ISO 8601; set {_LINES['numeric']}")
    return f"{found[1]} {found[2]}.{(found[3] or '').ljust(9, '0')}"


def _of_number(value: int, unit: Unit, offset: timedelta = timedelta()) -> str:
    seconds, rest = divmod(value, _PER_SECOND[unit])
    nanos = rest * (10**9 // _PER_SECOND[unit])
    try:
        there = _EPOCH + timedelta(seconds=seconds) + offset
    except OverflowError:
        raise RefusedValueError("a time is not of the years 1 to 9999") from None
    return f"{there.isoformat(sep=' ', timespec='seconds')}.{nanos:09d}"


def _local(value: int | str, unit: Unit) -> str:
    """WITH LOCAL TIME ZONE: in UTC."""
    if isinstance(value, str) and not value.endswith("Z"):
        raise RefusedValueError(
            f"a local time does not say that it is in UTC; set {_LINES['numeric']}"
        )
    return f"{_moment_text(value, unit)} +00:00"


def _zoned(value: str, unit: Unit) -> str:
    """``number,zone`` or ``ISO 8601 with Z, blank, zone``."""
    number, comma, zone = value.partition(",")
    if comma and number.lstrip("-").isdigit():
        moment = int(number)
    else:
        text, _, zone = value.partition(" ")
        found = _ISO.fullmatch(text)
        if found is None or not found[4]:
            raise RefusedValueError(
                f"a time with zone does not say its UTC time; set {_LINES['zone']}"
            )
        try:
            whole = datetime.fromisoformat(f"{found[1]} {found[2]}") - _EPOCH
        except ValueError:
            raise RefusedValueError("a time is not in the calendar") from None
        nanos = int((found[3] or "").ljust(9, "0"))
        moment = (whole // timedelta(seconds=1)) * 10**9 + nanos
        unit = "ns"
    at = _EPOCH + timedelta(seconds=moment // _PER_SECOND[unit])
    offset = _offset(zone.strip(), at)
    minutes = int(offset.total_seconds()) // 60
    sign = "-" if minutes < 0 else "+"
    printed = f"{sign}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
    return f"{_of_number(moment, unit, offset)} {printed}"


def _offset(zone: str, at: datetime) -> timedelta:
    if found := re.fullmatch(r"([+-])(\d\d):(\d\d)", zone):
        offset = timedelta(hours=int(found[2]), minutes=int(found[3]))
        return -offset if found[1] == "-" else offset
    try:
        named = UTC if zone in ("Z", "UTC", "GMT") else ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise RefusedValueError("the name of a time zone is not known") from None
    found_offset = at.replace(tzinfo=UTC).astimezone(named).utcoffset()
    assert found_offset is not None
    return found_offset


def _day_to_second(value: int | str) -> str:
    found = _DAYS.fullmatch(str(value))
    text = found and day_to_second_text(f"{found[1]} {found[2]}")
    if not text:
        raise RefusedValueError(f"an interval is not days and time; set {_LINES['days']}")
    return text


def _year_to_month(value: int | str) -> str:
    found = _MONTHS.fullmatch(str(value))
    text = found and year_to_month_text(f"{found[1]}-{int(found[2]):02d}")
    if not text:
        raise RefusedValueError(f"an interval is not years and months; set {_LINES['months']}")
    return text
