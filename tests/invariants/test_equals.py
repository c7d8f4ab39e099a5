"""The judges of a table with equal rows see it as a multiset."""

from __future__ import annotations

from typing import Any

import pytest

from tests.invariants.changelog import Stream, check_table
from tests.invariants.compare import side
from tests.invariants.equals import COLUMNS, TABLE

A, B = (1, "a", None), (2, None, "0.5")
Values = tuple[Any, ...]


def logged(
    op: str, scn: int, ordinal: int, before: Values | None = None, after: Values | None = None
) -> dict[str, Any]:
    images = {
        name: None if values is None else dict(zip(COLUMNS, values, strict=True))
        for name, values in (("before", before), ("after", after))
    }
    snapshot = "s10/0" if op == "r" else None
    return {"_cdc_op": op, "_cdc_commit_scn": scn, "_cdc_ordinal": ordinal, "_cdc_snapshot": snapshot, **images}  # fmt: skip


READ = [logged("r", 10, 99, after=A), logged("r", 10, 99, after=A), logged("r", 10, 99, after=B)]
BELOW = logged("d", 10, 1, before=A)
CHANGES = [
    logged("d", 11, 2, before=A),
    logged("u", 12, 3, before=B, after=A),
    logged("c", 13, 4, after=B),
]


def judged(log: list[dict[str, Any]], *mirror: Values) -> list[str]:
    rows = [dict(zip(COLUMNS, values, strict=True)) for values in mirror]
    found = check_table(TABLE, log, rows, [], [Stream(10)], 20)
    return [one for one in found if "did not commit" not in one]


def test_copies_lead_to_the_mirror() -> None:
    assert judged([*READ, BELOW, *CHANGES], A, B, A) == []


@pytest.mark.parametrize(
    ("log", "mirror"),
    [
        pytest.param([*READ, *CHANGES], (A, B), id="a-copy-too-few"),
        pytest.param([*READ, *CHANGES], (A, A, B, B), id="a-copy-too-many"),
        pytest.param([*READ, *[logged("d", 11, at, before=B) for at in (2, 3)]], (A, A), id="goes-twice"),
        pytest.param([READ[0], {**READ[1], "_cdc_commit_scn": 12}], (A, A), id="chunks-of-two-SCNs"),
    ],
)  # fmt: skip
def test_a_wrong_count_is_seen(log: list[dict[str, Any]], mirror: tuple[Values, ...]) -> None:
    assert judged(log, *mirror)


def test_rows_of_a_table_without_a_key_may_be_equal() -> None:
    kinds = ("number", "text", "number")
    found = side([A, A, B], kinds, ())
    assert (len(found.rows), found.double_keys) == (3, 0)
    assert side([A, A, B], kinds, (0,)).double_keys == 1
