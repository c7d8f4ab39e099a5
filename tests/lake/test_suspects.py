"""Which buckets of a comparison are looked into? Pure sums, no Spark."""

from __future__ import annotations

import pytest

from cdc_core.lake.comparison.sides import Side, Sums, Suspects, added, suspects, total


@pytest.mark.parametrize(
    ("oracle", "delta", "wanted"),
    [
        pytest.param({1: Sums(3, 9)}, {1: Sums(3, 9)}, (), id="equal"),
        pytest.param({1: Sums(3, 9)}, {1: Sums(3, 8)}, (1,), id="another-value"),
        pytest.param({1: Sums(3, 9)}, {}, (1,), id="missing-in-delta"),
        pytest.param({}, {7: Sums(3, 9)}, (7,), id="missing-in-oracle"),
        pytest.param({1: Sums(2, 8)}, {1: Sums(2, 8, 1)}, (1,), id="double-in-delta"),
        pytest.param({1: Sums(2, 8, 1)}, {1: Sums(2, 8, 1)}, (1,), id="double-on-both-sides"),
    ],
)
def test_buckets_that_differ_or_have_double_keys_are_looked_into(
    oracle: Side, delta: Side, wanted: tuple[int, ...]
) -> None:
    assert suspects(oracle, delta, rows_max=1000) == Suspects(wanted, 0)


def test_no_more_rows_than_the_limit_are_looked_into() -> None:
    oracle = {bucket: Sums(10, bucket) for bucket in range(5)}
    delta = {**{bucket: Sums(10, 99) for bucket in range(4)}, 4: Sums(3, 99)}
    assert suspects(oracle, delta, rows_max=45) == Suspects((0, 1), 1 + 1 + 7)
    assert suspects(oracle, delta, rows_max=1) == Suspects((0,), 1 + 1 + 1 + 7)


def test_parts_of_a_side_add_up() -> None:
    parts: list[Side] = [{1: Sums(2, 5), 2: Sums(1, 1)}, {1: Sums(3, 6, 1)}]
    assert added(parts) == {1: Sums(5, 11, 1), 2: Sums(1, 1)}
    assert total(added(parts)) == Sums(6, 12, 1)
