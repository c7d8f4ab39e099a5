"""The quick NUMBER functions agree with the plain ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from oracle_embedded import values
from oracle_embedded.redo import numbers


def test_a_fraction_that_to_char_rounds_keeps_its_digits() -> None:
    stored = values.number_from_text(".00" + "3" * 40)
    assert values.number_from_text(values.text_from_number(stored)) != stored
    assert numbers.digits_from_number(stored).decode() == "3." + "3" * 39 + "E-03"


def test_the_greatest_number_is_printed_where_to_char_rounds_it_out_of_range() -> None:
    greatest = values.number_from_text("9." + "9" * 39 + "E125")
    assert numbers.digits_from_number(greatest).decode() == "9." + "9" * 39 + "E+125"


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**120), max_value=10**120))
def test_digits_are_those_of_to_char_or_exact(value: object) -> None:
    stored = values.number_from_text(str(value))
    shown, to_char = numbers.digits_from_number(stored).decode(), values.text_from_number(stored)
    assert values.number_from_text(shown) == stored
    assert shown == to_char or values.number_from_text(to_char) != stored


@given(st.integers(min_value=-(10**38), max_value=10**38))
def test_integers_are_encoded_alike(value: int) -> None:
    assert numbers.number_from_int(value) == values.number_from_decimal(value)
