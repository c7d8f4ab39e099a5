"""Oracle's value encodings against known bytes and printed forms."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle_embedded.api import OracleError
from oracle_embedded.values import (
    NEGATIVE_INFINITY,
    POSITIVE_INFINITY,
    binary_float_from_float,
    date_from_datetime,
    date_from_fields,
    datetime_from_date,
    decimal_from_number,
    double_from_float,
    fields_from_date,
    float_from_double,
    interval_ds_from_nanos,
    interval_ym_from_months,
    months_from_interval_ym,
    nanos_from_interval_ds,
    nanos_from_timestamp,
    number_from_decimal,
    number_from_text,
    offset_minutes_from_timestamp_tz,
    parts_from_rowid,
    rowid_from_parts,
    text_from_number,
    timestamp_from_datetime,
)
from tests.oracle_embedded.encodings import int_from_number, timestamp_tz_from_datetime

_NUMBERS = st.builds(
    lambda digits, exponent: Decimal(f"{digits}E{exponent}"),
    st.integers(-(10**38) + 1, 10**38 - 1),
    st.integers(-130, 87),
).filter(lambda value: value == 0 or value.adjusted() >= -130)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        ("0", "80"),
        ("1", "c102"),
        ("100", "c202"),
        ("-25", "3e4c66"),
        ("0.01", "c002"),
        ("3.14159", "c1040f105b"),
        ("1E-130", "8002"),
        ("-1E-130", "7f6466"),
        ("9.99E125", "ff645b"),
        ("-99999999999999999999999999999999999999", "2c" + "02" * 19 + "66"),
        ("9999999999999999999999999999999999999999", "d4" + "64" * 20),
        ("-9999999999999999999999999999999999999999", "2b" + "02" * 20),
    ],
)
def test_numbers_have_oracles_bytes(value: str, encoded: str) -> None:
    assert number_from_decimal(Decimal(value)).hex() == encoded
    assert number_from_text(value).hex() == encoded
    assert decimal_from_number(bytes.fromhex(encoded)) == Decimal(value)


@given(value=_NUMBERS)
def test_numbers_are_exact(value: Decimal) -> None:
    encoded = number_from_decimal(value)
    assert decimal_from_number(encoded) == value
    assert number_from_text(str(value)) == encoded
    assert 1 <= len(encoded) <= 21


@given(value=st.integers(-(10**40) + 1, 10**40 - 1))
def test_integers_are_exact(value: int) -> None:
    encoded = number_from_decimal(value)
    assert int_from_number(encoded) == value
    assert text_from_number(encoded) == str(value)


@given(one=_NUMBERS, other=_NUMBERS)
def test_numbers_sort_as_bytes(one: Decimal, other: Decimal) -> None:
    with localcontext() as context:
        context.prec = 300
        assert (number_from_decimal(one) < number_from_decimal(other)) == (one < other)


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        pytest.param("1" * 42, "1" * 40 + "00", id="cut"),
        pytest.param("1" * 40 + "5", "1" * 39 + "15", id="odd-number-of-digits-has-39-places"),
        pytest.param("9" * 45, "1" + "0" * 45, id="carry"),
        pytest.param("1E-140", "0", id="underflow"),
    ],
)
def test_numbers_are_rounded_to_what_oracle_keeps(value: str, rounded: str) -> None:
    got = decimal_from_number(number_from_decimal(Decimal(value)))
    assert abs(got - Decimal(rounded)) <= abs(Decimal(rounded)) * Decimal("1e-38")


@pytest.mark.parametrize("text", ["1E126", "-1E126", "9" * 127])
def test_numbers_that_are_too_large_are_refused(text: str) -> None:
    with pytest.raises(OracleError, match="ORA-01426"):
        number_from_text(text)


@pytest.mark.parametrize(
    "text", ["", " ", ".", "1.2.3", "abc", "1e", "1,5", "--1", "0x10", "1 2", "٣"]
)
def test_texts_that_are_no_numbers_are_refused(text: str) -> None:
    with pytest.raises(OracleError, match="ORA-01722"):
        number_from_text(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" 12 ", "12"),
        ("+.5", "0.5"),
        ("5.", "5"),
        ("1.2E-05", "0.000012"),
        ("-0", "0"),
        ("1e+2", "100"),
    ],
)
def test_texts_that_are_numbers(text: str, value: str) -> None:
    assert number_from_text(text) == number_from_decimal(Decimal(value))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("0", "0"),
        ("0.5", ".5"),
        ("-0.5", "-.5"),
        ("12.50", "12.5"),
        ("0.000001", ".000001"),
        ("1E39", "1" + "0" * 39),
        ("1E40", "1." + "0" * 34 + "E+40"),
        ("1E125", "1." + "0" * 33 + "E+125"),
        ("-1E-130", "-1." + "0" * 33 + "E-130"),
        ("0." + "3" * 40, "." + "3" * 40),
        ("0.00" + "3" * 40, ".00" + "3" * 38),
        ("3." + "3" * 37 + "E-7", "3." + "3" * 34 + "E-07"),
        ("9." + "9" * 37 + "E-10", "1." + "0" * 34 + "E-09"),
    ],
)
def test_numbers_print_as_to_char_does(value: str, text: str) -> None:
    assert text_from_number(number_from_decimal(Decimal(value))) == text


def test_infinities_have_a_value_and_a_text() -> None:
    assert number_from_decimal(Decimal("Infinity")) == POSITIVE_INFINITY
    assert decimal_from_number(NEGATIVE_INFINITY) == Decimal("-Infinity")
    assert [text_from_number(n) for n in (POSITIVE_INFINITY, NEGATIVE_INFINITY)] == ["~", "-~"]
    with pytest.raises(OracleError, match="ORA-01722"):
        number_from_decimal(Decimal("NaN"))


def test_dates_before_christ_stay_bytes() -> None:
    encoded = date_from_fields(-4712, 1, 1)
    assert encoded.hex() == "355801" + "01010101"
    assert fields_from_date(encoded) == (-4712, 1, 1, 0, 0, 0)
    assert encoded < date_from_fields(-1, 12, 31) < date_from_fields(1, 1, 1)
    with pytest.raises(OracleError, match="ORA-01841"):
        datetime_from_date(encoded)


@given(value=st.datetimes())
def test_timestamps_are_exact_and_sort(value: dt.datetime) -> None:
    encoded = timestamp_from_datetime(value)
    assert datetime_from_date(encoded) == value
    assert encoded[:7] == date_from_datetime(value)
    assert nanos_from_timestamp(encoded) == value.microsecond * 1000
    assert encoded <= timestamp_from_datetime(dt.datetime.max)


@pytest.mark.parametrize("offset", [0, 60, -330, 840, -720, 345])
def test_time_zones_keep_their_offset(offset: int) -> None:
    encoded = timestamp_tz_from_datetime(dt.datetime(2024, 1, 1), offset)
    assert len(encoded) == 13
    assert offset_minutes_from_timestamp_tz(encoded) == offset


@given(nanos=st.integers(-(10**9) * 86400 * 10**9 + 1, 10**9 * 86400 * 10**9 - 1))
def test_day_intervals_are_exact(nanos: int) -> None:
    assert nanos_from_interval_ds(interval_ds_from_nanos(nanos)) == nanos


@given(months=st.integers(-(10**9) * 12, 10**9 * 12))
def test_year_intervals_are_exact(months: int) -> None:
    assert months_from_interval_ym(interval_ym_from_months(months)) == months


@given(one=st.floats(allow_nan=False), other=st.floats(allow_nan=False))
def test_doubles_sort_as_bytes(one: float, other: float) -> None:
    assert (double_from_float(one) < double_from_float(other)) == (one < other)


def test_special_floats_are_as_oracle_stores_them() -> None:
    assert double_from_float(-0.0) == double_from_float(0.0)
    not_a_number = double_from_float(float("nan"))
    assert not_a_number > double_from_float(float("inf"))
    assert float_from_double(not_a_number) != float_from_double(not_a_number)
    with pytest.raises(OracleError, match="ORA-01426"):
        binary_float_from_float(1e300)


@given(
    parts=st.tuples(
        st.integers(0, 2**32 - 1),
        st.integers(0, 1023),
        st.integers(0, 2**32 - 1),
        st.integers(0, 65535),
    )
)
def test_rowids_print_and_parse(parts: tuple[int, int, int, int]) -> None:
    text = rowid_from_parts(*parts)
    assert len(text) == 18
    assert parts_from_rowid(text) == parts


@pytest.mark.parametrize("text", ["", "AAAAAA", "A" * 17 + "!", "A" * 19])
def test_texts_that_are_no_rowids_are_refused(text: str) -> None:
    with pytest.raises(OracleError, match="ORA-01410"):
        parts_from_rowid(text)
