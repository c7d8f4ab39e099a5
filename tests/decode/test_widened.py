"""Values in the wider type that a column has since a MODIFY are those that it would have had from the beginning."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from cdc_core.decode.widened import widened

TENTHS = pa.decimal128(30, 10)


@pytest.mark.parametrize(
    ("values", "kind", "wide", "expected"),
    [
        pytest.param([5, None, -100], pa.int64(), pa.decimal128(12, 2), ["5.00", None, "-100.00"], id="a-fraction"),
        pytest.param([7], pa.int64(), pa.decimal128(38, 37), [f"7.{'0' * 37}"], id="a-long-fraction"),
        pytest.param([0, None, -120], pa.int64(), pa.string(), ["0", None, "-120"], id="whole-as-text"),
        pytest.param(["1.50", "0", "-100", "1E-10"], TENTHS, pa.string(), ["1.5", "0", "-100", "0.0000000001"], id="as-text"),
        pytest.param(["1.50", None], pa.decimal128(10, 2), pa.decimal128(14, 4), ["1.5000", None], id="more-digits"),
        pytest.param([datetime(1, 1, 1), datetime(2026, 1, 2, 3, 4, 5, 120000), None], pa.timestamp("us"), pa.string(),
            ["0001-01-01 00:00:00.000000000", "2026-01-02 03:04:05.120000000", None], id="nine-digits"),
        pytest.param([0.5, None], pa.float32(), pa.float64(), [0.5, None], id="double"),
    ],
)  # fmt: skip
def test_a_value_stays_what_it_was(
    values: list[Any], kind: pa.DataType, wide: pa.DataType, expected: list[Any]
) -> None:
    given = [Decimal(one) if pa.types.is_decimal(kind) and one else one for one in values]
    found = widened(pa.array(given, kind), wide)
    is_decimal = pa.types.is_decimal(wide)
    assert found.type == wide
    assert found.to_pylist() == [Decimal(one) if is_decimal and one else one for one in expected]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid, match="does not fit"):
        widened(pa.array([123]), pa.decimal128(4, 2))
