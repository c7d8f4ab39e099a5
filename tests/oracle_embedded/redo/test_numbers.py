"""The quick NUMBER functions agree with the plain ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cdc_core.oracle_embedded import values
from cdc_core.oracle_embedded.redo import numbers


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**120), max_value=10**120))
def test_digits_are_those_of_to_char(value: object) -> None:
    stored = values.number_from_text(str(value))
    assert numbers.digits_from_number(stored).decode() == values.text_from_number(stored)


@given(st.integers(min_value=-(10**38), max_value=10**38))
def test_integers_are_encoded_alike(value: int) -> None:
    assert numbers.number_from_int(value) == values.number_from_decimal(value)
