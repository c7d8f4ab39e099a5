"""Canonical number text: one text per number, whether redo printed it or Oracle's own bytes say it."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdc_core.decode.literals import canonical_number_text
from cdc_core.decode.values import number_text
from cdc_core.errors import DecodeError
from oracle_embedded.values import decimal_from_number, number_from_decimal


@pytest.mark.parametrize(
    ("printed", "canonical"),
    [
        pytest.param("42", "42", id="canonical-already"),
        pytest.param(".5", "0.5", id="no-leading-zero"),
        pytest.param("-.00012", "-0.00012", id="negative-without-leading-zero"),
        pytest.param("-0", "0", id="minus-zero"),
        pytest.param("-.000", "0", id="minus-zero-with-a-fraction"),
        pytest.param("00012.3400", "12.34", id="zeros-at-both-ends"),
        pytest.param("10", "10", id="zeros-of-a-whole-number-stay"),
        pytest.param("10.0", "10", id="fraction-of-zeros"),
        pytest.param("1E+10", "10000000000", id="exponent"),
        pytest.param("1.50E+1", "15", id="exponent-that-the-fraction-fills"),
        pytest.param("1.2E-05", "0.000012", id="negative-exponent"),
        pytest.param("9" * 40, "9" * 40, id="forty-digits"),
        pytest.param("1E-130", "0." + "0" * 129 + "1", id="smallest-number"),
        pytest.param("-9.9E125", "-99" + "0" * 124, id="largest-negative-number"),
        pytest.param("+1.10", "1.1", id="plus-sign"),
        pytest.param("7.", "7", id="empty-fraction"),
    ],
)
def test_a_number_has_one_text_as_printed_and_as_stored(printed: str, canonical: str) -> None:
    stored = number_from_decimal(Decimal(printed))
    array = pa.array([None, stored, b"\xc1\x02"], pa.large_binary())
    assert number_text(array).to_pylist() == [None, canonical, "1"]
    assert number_text(array[1:2]).to_pylist() == [canonical]
    assert canonical_number_text(printed) == canonical


_NUMBERS = st.builds(
    lambda sign, digits, exponent: Decimal((sign, tuple(map(int, str(digits))), exponent)),
    st.sampled_from([0, 1]),
    st.integers(min_value=0, max_value=10**40 - 1),
    st.integers(min_value=-130, max_value=85),
)


@given(st.lists(_NUMBERS | st.none()))
@example([Decimal("9." + "9" * 39 + "E125"), Decimal("-1E-130"), Decimal("-1" + "0" * 39)])
def test_stored_numbers_keep_every_digit(numbers: list[Decimal | None]) -> None:
    stored = [None if number is None else number_from_decimal(number) for number in numbers]
    texts = number_text(pa.array(stored, pa.large_binary()))
    texts.validate(full=True)
    assert texts.to_pylist() == [
        None if one is None else canonical_number_text(f"{decimal_from_number(one):f}")
        for one in stored
    ]


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x00", id="negative-infinity"),
        pytest.param(b"\xff\x65", id="infinity"),
        pytest.param(b"\xc1", id="exponent-alone"),
        pytest.param(b"\x3e\x66", id="no-digit"),
        pytest.param(b"\xc1\x00", id="digit-below-0"),
        pytest.param(b"\xc1\x66", id="digit-above-99"),
        pytest.param(b"\xc2\x01\x02", id="leading-zero"),
        pytest.param(b"\xc2\x02\x01", id="trailing-zero"),
        pytest.param(b"\xc1" + b"\x02" * 21, id="too-many-digits"),
    ],
)
def test_bytes_that_are_no_number_are_refused(stored: bytes) -> None:
    with pytest.raises(DecodeError) as raised:
        number_text(pa.array([b"\x80", stored, None], pa.large_binary()))
    assert raised.value.facts == {"row": 1}


def test_no_numbers_are_no_texts() -> None:
    assert number_text(pa.array([], pa.large_binary())).to_pylist() == []
    assert number_text(pa.array([None, None], pa.large_binary())).to_pylist() == [None, None]
