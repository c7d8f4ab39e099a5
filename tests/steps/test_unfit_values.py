"""Values that their columns do not hold: NULL in their place, or their rows skipped, by policy and counted."""

from __future__ import annotations

import logging
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.converters_of_users import __name__ as converters
from tests.steps.harness import Source, capturing, source_of, table_id

T = table_id("T")
ENTRY: dict[str, Any] = {
    "name": "T",
    "columns_as": {
        "AMOUNT": "decimal(6,2)", "FLAG": "boolean", "DAY": "date", "RAWS": "text", "AT": "instant",
        "NANOS": "timestamp", "WORD_YN": f"{converters}:YesNo",
    },
}  # fmt: skip
GOOD = "1.25, 1, DATE '2001-02-03', HEXTORAW('41'), TIMESTAMP '2001-02-03 04:05:06 +01:00', TIMESTAMP '2001-02-03 04:05:06', 'Y', DATE '2001-02-03'"
HELD = (Decimal("1.25"), True, date(2001, 2, 3), "A", datetime(2001, 2, 3, 3, 5, 6, tzinfo=UTC), datetime(2001, 2, 3, 4, 5, 6), True, datetime(2001, 2, 3))  # fmt: skip
BAD = (
    "12345.678, 7, TO_DATE('2001-02-03 01', 'YYYY-MM-DD HH24'), HEXTORAW('FF'), TIMESTAMP '2001-02-03 04:05:06.000000001 +01:00',"
    " TIMESTAMP '2001-02-03 04:05:06.000000001', 'secret', DATE '-0044-03-15'"
)
COUNT = len(HELD)
"""So many values of a bad row no column holds."""

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, AMOUNT NUMBER, FLAG NUMBER(1), DAY DATE, RAWS RAW(9), AT TIMESTAMP(9) WITH TIME ZONE,"
    " NANOS TIMESTAMP(9), WORD_YN VARCHAR2(9), BORN DATE)",
    f"INSERT INTO T VALUES (1, {GOOD})",
    f"INSERT INTO T VALUES (2, {BAD})",
    "INSERT INTO T (ID) VALUES (3)",
)
NOTHING = (None,) * COUNT


source = capturing(ENTRY, policies={"on_unfit_value": "null"})


def test_they_are_null_on_every_way(
    oracle: Oracle, source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert source.lake.image(T) == [(1, *HELD), (2, *NOTHING), (3, *NOTHING)]
    oracle.run(
        f"INSERT INTO T VALUES (4, {BAD})",
        f"INSERT INTO T VALUES (5, {GOOD})",
        "UPDATE T SET AMOUNT = 99999.999, FLAG = 0 WHERE ID = 1",
        "UPDATE T SET BORN = DATE '2001-02-03' WHERE ID = 2",
    )
    windows = source.windows()
    expected = [
        (1, None, False, *HELD[2:]),
        (2, *NOTHING[:7], HELD[7]),
        (3, *NOTHING),
        (4, *NOTHING),
        (5, *HELD),
    ]
    assert source.lake.image(T) == expected
    assert source.record("T").state == "ready"
    assert source.record("T").in_quarantine == 0
    source.check_replayed("T", windows)
    assert "secret" not in caplog.text
    brought = [source.lake.tables[T].brought[one.scn_high] for one in windows if one.scn_high in source.lake.tables[T].brought]  # fmt: skip
    # The two rows that changed keep what they had: 7 bad ones of row 2, and the new one of row 1.
    of_changes = COUNT + (COUNT - 1) + 1
    assert sum(one.unfit_values for one in brought) == of_changes
    totals = source.pipeline.store.totals.all()
    of_snapshot = COUNT  # those of row 2
    assert totals["redolake_unfit_values_total", (str(T),)] == of_changes + of_snapshot
    assert "values that do not fit their columns are NULL table=DEMO.T" in caplog.text
    assert source.compared_rows("T") == expected


def test_the_policy_may_change_without_new_delta_tables(oracle: Oracle, source: Source) -> None:
    """Refused again, such a row is undecodable; NULL again, the table goes on with the next snapshot."""
    source.more["policies"] = {"on_unfit_value": "refuse", "on_undecodable": "quarantine"}
    source.configure(ENTRY)
    oracle.run("INSERT INTO T (ID, FLAG) VALUES (6, 7)", "INSERT INTO T (ID, FLAG) VALUES (7, 1)")
    source.run()
    assert source.record("T").state == "ready", source.record("T").reason
    assert [row[0] for row in source.lake.image(T)] == [1, 2, 3, 7]
    assert source.record("T").in_quarantine == 1
    source.more["policies"] = {}
    source.configure({**ENTRY, "on_unfit_value": "null"})
    oracle.run("INSERT INTO T (ID, FLAG) VALUES (8, 7)")
    source.run()
    assert [row[0] for row in source.lake.image(T)] == [1, 2, 3, 7, 8]


def test_rows_may_be_skipped_and_leave_no_text(oracle: Oracle, tmp_path: Path) -> None:
    """Any number of them; each counts, and says where it was and why."""
    policies = {"on_undecodable": "skip", "quarantine_rows_max": 1}
    oracle.run("DELETE FROM T WHERE ID = 2")
    with source_of(oracle, tmp_path, policies=policies) as source:
        source.configure(ENTRY)
        source.run()
        oracle.run(*(f"INSERT INTO T (ID, WORD_YN) VALUES ({number}, 'secret')" for number in range(4, 8)))  # fmt: skip
        oracle.run("INSERT INTO T (ID, WORD_YN) VALUES (9, 'N')", "UPDATE T SET FLAG = 0")
        source.windows()
        assert source.record("T").state == "ready", source.record("T").reason
        assert [row[0] for row in source.lake.image(T)] == [1, 3, 9]
        kept = source.lake.tables[T].in_quarantine.to_pylist()
        assert {one["sql_redo"] for one in kept} == {None}
        assert len(kept) == source.record("T").in_quarantine == 8
        assert all("(column=WORD_YN)" in one["reason"] for one in kept)
