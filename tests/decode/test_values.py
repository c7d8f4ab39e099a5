"""Canonical number text: one text per number, whichever way Oracle printed it."""

from __future__ import annotations

import time
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_core.decode.literals import canonical_number_text
from cdc_core.decode.values import canonical_number
from cdc_core.errors import DecodeError


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
def test_canonical_number_gives_one_text(printed: str, canonical: str) -> None:
    texts = pa.array([None, printed, "1"])
    assert canonical_number(texts).to_pylist() == [None, canonical, "1"]
    assert canonical_number(texts.cast(pa.large_string())[1:2]).to_pylist() == [canonical]
    assert canonical_number_text(printed) == canonical


@pytest.mark.parametrize(
    "text", ["", " 1", "1 ", ".", "-", "1e", "0x1", "NaN", "1,5", "1.2.3", "١"]
)
def test_canonical_number_refuses_what_is_no_number(text: str) -> None:
    with pytest.raises(DecodeError) as raised:
        canonical_number(pa.array(["1", text, None]))
    assert raised.value.facts == {"row": 1}


@settings(deadline=None, derandomize=True)
@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=12) | st.none()))
def test_canonical_number_keeps_the_number(numbers: list[Decimal | None]) -> None:
    printed = [None if number is None else f"{number:f}" for number in numbers]
    canonical = canonical_number(pa.array(printed, pa.string()))
    canonical.validate(full=True)
    read = [None if text is None else Decimal(text) for text in canonical.to_pylist()]
    assert read == numbers
    assert canonical_number(canonical).equals(canonical)


def test_canonical_number_of_nothing_is_nothing() -> None:
    assert canonical_number(pa.array([], pa.string())).to_pylist() == []
    assert canonical_number(pa.chunked_array([], pa.string())).to_pylist() == []


def test_canonical_number_is_no_loop_in_python() -> None:
    texts = pa.array(["12345.6700", ".5", "-3"] * 100_000)
    canonical_number(texts[:10])
    started = time.perf_counter()
    canonical_number(texts)
    assert time.perf_counter() - started < 1
