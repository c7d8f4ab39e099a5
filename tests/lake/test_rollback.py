"""The rule for partial rollbacks, against a table that is really rolled back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_core.lake.rollback import surviving, surviving_sql


@given(st.lists(st.sampled_from(["change", "save", "undo"]), max_size=60))
def test_what_survives_is_what_savepoints_left(actions: list[str]) -> None:
    """A transaction changes one row and goes back to savepoints; the survivors are the changes still in effect."""
    log: list[bool] = []  # ROLLBACK flags of the redo rows
    effective: list[int] = []  # positions of changes that are in effect
    savepoints: list[int] = []
    for action in actions:
        if action == "change":
            effective.append(len(log))
            log.append(False)
        elif action == "save":
            savepoints.append(len(effective))
        elif savepoints:
            keep = savepoints.pop()
            for _ in effective[keep:]:
                log.append(True)
            del effective[keep:]
    assert [i for i, kept in enumerate(surviving(log)) if kept] == effective


def test_an_undo_without_its_change_is_refused() -> None:
    with pytest.raises(ValueError, match="no forward row"):
        surviving([False, True, True])


@pytest.mark.spark
def test_the_sql_form_is_the_same_rule(open_lake: Any) -> None:
    """Every sequence of up to nine rows, each as a transaction of its own, in one query."""
    session = open_lake()._open_session()
    rows, expected = [], set()
    for length in range(1, 10):
        for bits in range(2**length):
            flags = [bool(bits >> i & 1) for i in range(length)]
            xid = f"{length}-{bits}"
            rows += [(xid, "r", ordinal, flag) for ordinal, flag in enumerate(flags)]
            try:
                expected |= {(xid, i) for i, kept in enumerate(surviving(flags)) if kept}
            except ValueError:
                expected.add((xid, "refused"))
    frame = session.createDataFrame(
        rows, "xid string, row_id string, ordinal bigint, rollback boolean"
    )
    frame.createOrReplaceTempView("redo_rows")
    found = session.sql(surviving_sql("redo_rows")).collect()
    refused = {row["xid"] for row in found if row["problem"]}
    kept = {(row["xid"], row["ordinal"]) for row in found if row["xid"] not in refused}
    assert kept | {(xid, "refused") for xid in refused} == expected
