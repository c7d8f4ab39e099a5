"""In which form does the lake hold a column's values, where ``columns_as`` or ``types_as`` asks for
another one than the type table's?

The one place for both paths: redo text and the rows of chunks are read in the types of the type
table (:func:`cdc_core.schema.types.as_read`), and become the other form here, by whole columns.
What a form does not hold is refused, never cut or rounded.

The forms are Debezium's: ``iso8601`` of an interval names all its parts, each with its sign; a
month has 30.4375 days in ``microseconds``; moments count from 1970-01-01 as if they were in UTC.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.decode.character_sets import stored_text
from cdc_core.decode.literals import LiteralRefusedError
from cdc_core.errors import ANY_TABLE, DecodeError
from cdc_core.schema.converters import converted
from cdc_core.schema.table import OFFSET, WITH_OFFSET, Column
from cdc_core.schema.types import (
    INSTANT,
    Printed,
    arrow_type,
    character_set_of,
    is_converted,
    is_decimal,
    is_moment,
    printed_as,
)

_BYTES_MAX = 2**31 - 1
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_MONTH_MICROSECONDS = 2_629_800_000_000
_MONTHS_MAX = (2**63 - 1) // _MONTH_MICROSECONDS
_DAY_MICROSECONDS = 86_400_000_000
_DAYS_MAX = (2**63 - 1) // _DAY_MICROSECONDS - 1
_MIDNIGHT = " 00:00:00.000000000"
_FIRST_MICROSECOND, _LAST_MICROSECOND = -62_135_596_800_000_000, 253_402_300_799_999_999
"""Of the years 1 and 9999."""
_YEARS = r"^(?P<sign>-?)(?P<years>\d+)-(?P<months>\d\d)$"
_DAYS = r"^(?P<sign>-?)(?P<days>\d+) (?P<hours>\d\d):(?P<minutes>\d\d):(?P<seconds>\d\d)\.(?P<fraction>\d{9})$"


def in_form(values: pa.Array, column: Column) -> pa.Array:
    """A column's values in the form that the lake holds.

    Args:
        values: In the Arrow type in which the column is read; nulls stay.
        column: As the table's definition has it.

    Raises:
        ConverterError: A class of the user's own fails.
        DecodeError: The form does not hold a value; the facts name its row and the column, never
            the value.
    """
    return in_form_or_null(values, column)[0]


def in_form_or_null(values: pa.Array, column: Column) -> tuple[pa.Array, int]:
    """The same, and how many values became NULL because the form does not hold them, where the
    column says that they do."""
    if not column.nulls_unfit:
        return _formed(values, column), 0
    try:
        return _formed(values, column), 0
    except DecodeError as error:
        if "row" not in error.facts:  # it is not about a value
            raise
    fits = pa.array(_fitting(values, column), pa.bool_())
    values = pc.if_else(fits, values, pa.scalar(None, values.type))
    return _formed(values, column), len(fits) - fits.true_count


def _fitting(values: pa.Array, column: Column) -> list[bool]:
    """Which values the form holds: the halves are looked at of what it does not hold as a whole."""
    try:
        _formed(values, column)
    except DecodeError:
        if len(values) == 1:
            return [False]
        half = len(values) // 2
        return _fitting(values.slice(0, half), column) + _fitting(values.slice(half), column)
    return [True] * len(values)


def _formed(values: pa.Array, column: Column) -> pa.Array:
    if is_converted(column):
        return converted(values, column)
    if not column.form:
        return (_timestamps if is_moment(column) else _decimals)(values, column)
    if is_decimal(column.form):
        return _decimals(values, column)
    form = _decoded if character_set_of(column.form) else _FORMS[column.form]
    return form(values, column)


def _booleans(numbers: pa.Array, column: Column) -> pa.Array:
    neither = pc.and_(pc.not_equal(numbers, 0), pc.not_equal(numbers, 1))
    _refuse(neither, column, "neither 0 nor 1")
    return pc.equal(numbers, 1)


def _decimals(texts: pa.Array, column: Column) -> pa.Array:
    kind = arrow_type(column)
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        row = next(at for at in range(len(texts)) if not _is_parsed(texts.slice(at, 1), kind))
        raise _refused(row, column, "a number that does not fit") from None


def _positive(numbers: pa.Array, _column: Column) -> pa.Array:
    """True above 0, as Debezium's NumberOneToBooleanConverter has it."""
    return pc.greater(numbers, 0)


# Bytes --------------------------------------------------------------------------------------------


def _utf8(values: pa.Array, column: Column) -> pa.Array:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        wrong = [value is not None and not _is_utf8(value) for value in values.to_pylist()]
        raise _refused(wrong.index(True), column, "no text in UTF-8") from None


def _decoded(values: pa.Array, column: Column) -> pa.Array:
    """Text of bytes in the character set that the form names; each distinct value once."""
    charset = character_set_of(column.form)
    encoded = values.dictionary_encode()
    texts: list[str | None] = []
    for at, stored in enumerate(encoded.dictionary.to_pylist()):
        try:
            texts.append(stored_text(stored, charset))
        except LiteralRefusedError:
            row = pc.index(encoded.indices, pa.scalar(at, encoded.indices.type)).as_py()
            raise _refused(row, column, f"no text in {charset}") from None
    return pa.array(texts, pa.string()).take(encoded.indices)


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _hex(values: pa.Array, column: Column) -> pa.Array:
    starts, data = _bytes_of(values)
    text = np.empty((len(data), 2), np.uint8)
    text[:, 0], text[:, 1] = _HEX[data >> 4], _HEX[data & 15]
    return _texts(values, 2 * starts, text.ravel(), column)


def _base64(values: pa.Array, column: Column) -> pa.Array:
    """Three bytes become four letters; what a value lacks of its last three becomes ``=``."""
    starts, data = _bytes_of(values)
    lengths = np.diff(starts)
    groups = -(-lengths // 3)
    group_starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(groups)))
    padded = np.zeros(3 * int(group_starts[-1]), np.uint8)
    padded[np.arange(len(data)) + np.repeat(3 * group_starts[:-1] - starts[:-1], lengths)] = data
    first, second, third = padded.reshape(-1, 3).astype(np.int32).T
    bits = first << 16 | second << 8 | third
    last = b"-_" if column.form == "base64url" else b"+/"
    letters = np.frombuffer(_BASE64 + last, np.uint8)
    text = letters[np.stack([bits >> shift & 63 for shift in (18, 12, 6, 0)], axis=1)]
    ends = group_starts[1:] - 1
    text[ends[lengths % 3 == 1], 2] = text[ends[lengths % 3 != 0], 3] = ord("=")
    return _texts(values, 4 * group_starts, text.ravel(), column)


def _bytes_of(values: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Where each value begins, one place more than values, and the bytes of them all."""
    _validity, offsets, data = values.buffers()
    if not len(values):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    at = np.frombuffer(offsets, np.int32, len(values) + 1, values.offset * 4).astype(np.int64)
    size = int(at[-1] - at[0])
    return at - at[0], np.frombuffer(data, np.uint8, size, int(at[0])) if size else np.zeros(
        0, np.uint8
    )


def _texts(
    values: pa.Array, starts: npt.NDArray[np.int64], text: npt.NDArray[np.uint8], column: Column
) -> pa.Array:
    """Text in place of bytes, NULL where they are."""
    if starts[-1] > _BYTES_MAX:
        raise DecodeError(
            "a column's text in one batch is larger than 2 GiB",
            hint="Take the column out of columns_as or types_as, or read fewer rows at once (oracle.fetch_rows).",
            column=column.name,
        )
    is_valid = values.is_valid().to_numpy(zero_copy_only=False)
    bitmap = pa.py_buffer(np.packbits(is_valid, bitorder="little"))
    buffers = [bitmap, pa.py_buffer(starts.astype(np.int32)), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


# Moments ------------------------------------------------------------------------------------------


def _iso_moments(texts: pa.Array) -> pa.Array:
    """``2018-03-27T01:34:56.5Z`` of ``2018-03-27 01:34:56.500000000``."""
    iso = pc.replace_substring(texts, " ", "T", max_replacements=1)
    return pc.binary_join_element_wise(_without_zeros(iso), "Z", "")


def _iso_zoned(texts: pa.Array) -> pa.Array:
    """``2018-03-27T01:34:56.5-11:00`` of ``2018-03-27 01:34:56.500000000 -11:00``; ``Z`` for no
    offset."""
    iso = pc.replace_substring(texts, " ", "T", max_replacements=1)
    zone = pc.utf8_slice_codeunits(iso, -6)
    zone = pc.if_else(pc.equal(zone, "+00:00"), "Z", zone)
    return pc.binary_join_element_wise(
        _without_zeros(pc.utf8_slice_codeunits(iso, 0, -7)), zone, ""
    )


def _without_zeros(texts: pa.Array) -> pa.Array:
    """Without the zeros that end a fraction, and the point of a fraction that is nothing else."""
    return pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")


def _timestamps(texts: pa.Array, column: Column) -> pa.Array:
    _refuse_nanoseconds(texts, column)
    return _parsed(pc.utf8_slice_codeunits(texts, 0, -3), column, pa.timestamp("us"))


def _days(texts: pa.Array, column: Column) -> pa.Array:
    """A day, of a moment that is its midnight."""
    later = pc.invert(pc.match_substring(texts, _MIDNIGHT))
    _refuse(later, column, "a time of day other than midnight")
    days = pc.replace_substring(texts, _MIDNIGHT, "")
    return _parsed(days, column, pa.timestamp("s")).cast(pa.date32())


def _instants(texts: pa.Array, column: Column) -> pa.Array:
    """The moment in UTC of ``2018-03-27 01:34:56.500000000 -11:00``."""
    moments = pc.utf8_slice_codeunits(texts, 0, -7)
    _refuse_nanoseconds(moments, column)
    there = pc.utf8_slice_codeunits(moments, 0, -3).cast(pa.timestamp("us")).cast(pa.int64())
    hours, minutes = (
        pc.utf8_slice_codeunits(texts, start, stop).cast(pa.int64())
        for start, stop in ((-5, -3), (-2, None))
    )
    offset = pc.add(pc.multiply(hours, 60), minutes)
    is_west = pc.equal(pc.utf8_slice_codeunits(texts, -6, -5), "-")
    offset = pc.if_else(is_west, pc.negate(offset), offset)
    found = pc.subtract(there, pc.multiply(offset, 60_000_000))
    outside = pc.or_(pc.less(found, _FIRST_MICROSECOND), pc.greater(found, _LAST_MICROSECOND))
    _refuse(outside, column, "outside the years 1 to 9999 in UTC")
    return found.cast(INSTANT)


def _offsets(texts: pa.Array, _column: Column) -> pa.Array:
    """``-11:00`` of ``2018-03-27 01:34:56.500000000 -11:00``."""
    return pc.utf8_slice_codeunits(texts, -6)


def _epoch_microseconds(texts: pa.Array, column: Column) -> pa.Array:
    return _timestamps(texts, column).cast(pa.int64())


def _epoch_nanoseconds(texts: pa.Array, column: Column) -> pa.Array:
    return _parsed(texts, column, pa.timestamp("ns")).cast(pa.int64())


def _parsed(texts: pa.Array, column: Column, kind: pa.DataType) -> pa.Array:
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        row = next(at for at in range(len(texts)) if not _is_parsed(texts.slice(at, 1), kind))
        raise _refused(row, column, "a day that the form does not hold") from None


def _is_parsed(texts: pa.Array, kind: pa.DataType) -> bool:
    try:
        texts.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _refuse_nanoseconds(texts: pa.Array, column: Column) -> None:
    finer = pc.not_equal(pc.utf8_slice_codeunits(texts, -3), "000")
    _refuse(finer, column, "a part of a second that is finer than microseconds")


# Intervals ----------------------------------------------------------------------------------------


def _iso_intervals(texts: pa.Array, column: Column) -> pa.Array:
    """``P-1Y-2M0DT0H0M0S`` of ``-1-02``, ``P0Y0M-5DT-4H-3M-2.5S`` of ``-5 04:03:02.500000000``."""
    if printed_as(column) is Printed.YEAR_TO_MONTH:
        years, months = _signed(pc.extract_regex(texts, _YEARS), "years", "months")
        return pc.binary_join_element_wise("P", years, "Y", months, "M0DT0H0M0S", "")
    found = pc.extract_regex(texts, _DAYS)
    days, hours, minutes = _signed(found, "days", "hours", "minutes")
    seconds = pc.binary_join_element_wise(
        pc.struct_field(found, "seconds"), ".", pc.struct_field(found, "fraction"), ""
    )
    seconds = pc.replace_substring_regex(_without_zeros(seconds), r"^0(\d)", r"\1")
    is_minus = pc.and_(pc.equal(pc.struct_field(found, "sign"), "-"), pc.not_equal(seconds, "0"))
    sign = pc.if_else(is_minus, "-", "")
    return pc.binary_join_element_wise(
        "P0Y0M", days, "DT", hours, "H", minutes, "M", sign, seconds, "S", ""
    )


def _interval_microseconds(texts: pa.Array, column: Column) -> pa.Array:
    if printed_as(column) is Printed.YEAR_TO_MONTH:
        years, months = _numbers(pc.extract_regex(texts, _YEARS), "years", "months")
        total = pc.add(pc.multiply(years, 12), months)
        _refuse(pc.greater(pc.abs(total), _MONTHS_MAX), column, "too long")
        return pc.multiply(total, _MONTH_MICROSECONDS)
    _refuse_nanoseconds(texts, column)
    found = pc.extract_regex(texts, _DAYS)
    days, hours, minutes, seconds, nanos = _numbers(
        found, "days", "hours", "minutes", "seconds", "fraction"
    )
    _refuse(pc.greater(pc.abs(days), _DAYS_MAX), column, "too long")
    total = pc.multiply(days, _DAY_MICROSECONDS)
    for part, size in ((hours, 3_600_000_000), (minutes, 60_000_000), (seconds, 1_000_000)):
        total = pc.add(total, pc.multiply(part, size))
    return pc.add(total, pc.divide(nanos, 1000))


def _numbers(found: pa.Array, *names: str) -> list[pa.Array]:
    """Parts of intervals as numbers, each with the interval's sign."""
    is_minus = pc.equal(pc.struct_field(found, "sign"), "-")
    sign = pc.if_else(is_minus, pa.scalar(-1, pa.int64()), pa.scalar(1, pa.int64()))
    return [pc.multiply(pc.struct_field(found, name).cast(pa.int64()), sign) for name in names]


def _signed(found: pa.Array, *names: str) -> list[pa.Array]:
    """The same as text."""
    return [number.cast(pa.string()) for number in _numbers(found, *names)]


def _refuse(wrong: pa.Array, column: Column, what: str) -> None:
    row = pc.index(wrong, True).as_py()
    if row >= 0:
        raise _refused(row, column, what)


def _refused(row: int, column: Column, what: str) -> DecodeError:
    return DecodeError(
        f"a value cannot be stored as {column.form or arrow_type(column)}, the form that columns_as or types_as sets: {what}",
        hint=f"Take the column out there, or name another form, then run `redolake table resnapshot --fresh {ANY_TABLE}`.",
        row=row,
        column=column.name,
    )


def _iso8601(texts: pa.Array, column: Column) -> pa.Array:
    match printed_as(column):
        case Printed.ZONED:
            return _iso_zoned(texts)
        case Printed.YEAR_TO_MONTH | Printed.DAY_TO_SECOND:
            return _iso_intervals(texts, column)
    return _iso_moments(texts)


def _microseconds(texts: pa.Array, column: Column) -> pa.Array:
    form = _interval_microseconds if printed_as(column) else _epoch_microseconds
    return form(texts, column)


_FORMS: dict[str, Callable[[pa.Array, Column], pa.Array]] = {
    "boolean": _booleans,
    "boolean(>0)": _positive,
    "text": _utf8,
    "hex": _hex,
    "base64": _base64,
    "base64url": _base64,
    "timestamp": _timestamps,
    "date": _days,
    "instant": _instants,
    WITH_OFFSET: _instants,
    OFFSET: _offsets,
    "iso8601": _iso8601,
    "microseconds": _microseconds,
    "nanoseconds": _epoch_nanoseconds,
}
