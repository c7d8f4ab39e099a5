"""The digest's rule."""

from __future__ import annotations

import random
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.lake.plain_digest import table_digest, value_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(None, "N", id="null"),
        pytest.param("N", "VN", id="text-that-looks-like-null"),
        pytest.param("a\\b\x1f", "Va\\\\b\\u", id="separator-in-text"),
        pytest.param(Decimal("1E-10"), "V0.0000000001", id="decimal-is-plain"),
        pytest.param(Decimal("1.50"), "V1.50", id="decimal-keeps-its-scale"),
        pytest.param(b"\x00\xff", "V00FF", id="binary"),
        pytest.param(datetime(1969, 12, 31, 23, 59, 59, 999999), "V-1", id="before-1970"),
        pytest.param(float("nan"), "VNaN", id="nan"),
        pytest.param(-0.0, "V0.0", id="minus-zero"),
        pytest.param(1e7, "V1.0E7", id="large-float"),
        pytest.param(9999999.0, "V9999999.0", id="largest-plain-float"),
        pytest.param(0.001, "V0.001", id="smallest-plain-float"),
        pytest.param(1e-5, "V1.0E-5", id="small-float"),
        pytest.param(-1234.5, "V-1234.5", id="negative-float"),
        pytest.param(1.5e300, "V1.5E300", id="exponent"),
    ],
)
def test_values_have_one_text(value: Any, text: str) -> None:
    assert value_text(value) == text


def test_a_digest_ignores_order_and_nothing_else() -> None:
    rows = [(i, f"n{i}", None) for i in range(50)]
    shuffled = random.Random(1).sample(rows, 50)
    assert table_digest(shuffled) == table_digest(rows)
    assert table_digest([*rows[:-1], (49, None, "n49")]) != table_digest(rows)
    assert table_digest(rows[:-1]) != table_digest(rows)
    assert table_digest([*rows, rows[0]]) != table_digest(rows)
