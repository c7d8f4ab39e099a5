"""Which changes are skipped, and why."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from cdc_core.stage.skipped_operations import NameFilter, SkipRules

ROW = pa.struct(
    [("ID", pa.int64()), ("V", pa.string()), ("F", pa.float64()), ("L", pa.list_(pa.int64()))]
)
OLD = {"ID": 1, "V": "a", "F": float("nan"), "L": [1]}


def change(
    op: str = "u",
    after: dict[str, Any] | None = None,
    *,
    absent: tuple[str, ...] = (),
    before_absent: tuple[str, ...] = (),
    user: str | None = "APP",
) -> pa.Table:
    before = None if op == "c" else OLD
    new = None if op == "d" else {**OLD, **(after or {})}
    return pa.table(
        {
            "_cdc_op": [op],
            "_cdc_username": pa.array([user], pa.string()),
            "_cdc_absent": pa.array([list(absent)], pa.list_(pa.string())),
            "_cdc_before_absent": pa.array([list(before_absent)], pa.list_(pa.string())),
            "before": pa.array([before], ROW),
            "after": pa.array([new], ROW),
        }
    )


def reason(skipping: SkipRules, changes: pa.Table, client: str | None = None) -> str | None:
    [found] = skipping.reasons(changes, pa.array([client], pa.string())).to_pylist()
    return found


@pytest.mark.parametrize(
    ("changes", "is_skipped"),
    [
        pytest.param(change(), True, id="nothing-changed"),
        pytest.param(change(after={"V": "b"}), False, id="a-text-changed"),
        pytest.param(change(after={"V": None}), False, id="a-value-became-null"),
        pytest.param(change(after={"L": [2]}), False, id="a-list-changed"),
        pytest.param(change(after={"V": None}, absent=("V",)), True, id="an-absent-column-did-not-change"),
        pytest.param(change(before_absent=("V",)), False, id="nobody-knows-what-it-was"),
        pytest.param(change(absent=("V",), before_absent=("V",)), True, id="a-lob-that-no-image-has"),
        pytest.param(change("c"), False, id="an-insert"),
        pytest.param(change("d"), False, id="a-delete"),
    ],
)  # fmt: skip
def test_an_update_that_changes_nothing_is_skipped(changes: pa.Table, is_skipped: bool) -> None:
    assert reason(SkipRules(unchanged=True), changes) == ("unchanged" if is_skipped else None)
    assert reason(SkipRules(), changes) is None


@pytest.mark.parametrize(
    ("names", "user", "is_skipped"),
    [
        pytest.param(NameFilter(include=frozenset({"APP"})), "APP", False, id="included"),
        pytest.param(NameFilter(include=frozenset({"APP"})), "app", True, id="another-case"),
        pytest.param(NameFilter(include=frozenset({"APP"})), None, False, id="not-known"),
        pytest.param(NameFilter(exclude=frozenset({"BATCH"})), "BATCH", True, id="excluded"),
        pytest.param(NameFilter(exclude=frozenset({"BATCH"})), None, False, id="not-known-to-exclude"),
        pytest.param(NameFilter(exclude=frozenset({"BATCH_*"})), "BATCH_7", True, id="pattern"),
        pytest.param(NameFilter(exclude=frozenset({"BATCH_*"})), "A_BATCH_7", False, id="pattern-as-a-whole"),
        pytest.param(NameFilter(include=frozenset({"re:APP_[0-9]+", "B?"})), "APP_12", False, id="expression"),
        pytest.param(NameFilter(include=frozenset({"re:APP_[0-9]+", "B?"})), "APP_X", True, id="no-expression"),
    ],
)  # fmt: skip
def test_names_decide_for_whole_transactions(
    names: NameFilter, user: str | None, is_skipped: bool
) -> None:
    found = reason(SkipRules(users=names), change(user=user))
    assert found == ("user" if is_skipped else None)
    assert reason(SkipRules(clients=names), change(), user) == ("client" if is_skipped else None)


def test_the_first_reason_is_told() -> None:
    everything = SkipRules(frozenset("u"), True, NameFilter(exclude=frozenset({"APP"})))
    assert reason(everything, change()) == "user"
    assert reason(everything, change(user="OTHER")) == "operation"
