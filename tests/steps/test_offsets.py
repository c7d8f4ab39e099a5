"""The offset of a time with zone in a column beside its moment: on every way, and through every change of the definition."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, source_of, table_id

T = table_id("T")
BESIDE: dict[str, Any] = {"name": "T", "types_as": {"TIMESTAMP WITH TIME ZONE": "instant+offset"}}
AT = datetime(2018, 3, 27, 12, 34, 56, 500_000, UTC)
NEW = "TIMESTAMP '2018-03-27 01:34:56.5 -11:00'"
OTHER = "TIMESTAMP '2018-03-27 18:04:56.5 +05:30'"

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, SENT TIMESTAMP(6) WITH TIME ZONE, N NUMBER(3))",
    f"INSERT INTO T VALUES (1, {NEW}, 1)",
    "INSERT INTO T VALUES (2, NULL, 2)",
)
source = capturing(BESIDE)


def test_both_columns_are_the_same_on_every_way(oracle: Oracle, source: Source) -> None:
    assert source.lake.image(T) == [(1, AT, "-11:00", 1), (2, None, None, 2)]
    oracle.run(
        f"INSERT INTO T VALUES (3, {OTHER}, 3)",
        f"UPDATE T SET SENT = {OTHER} WHERE ID = 1",
        "UPDATE T SET N = 9 WHERE ID = 1",
        f"UPDATE T SET ID = 4, SENT = {NEW} WHERE ID = 2",
    )
    windows = source.windows()
    expected: list[tuple[Any, ...]] = [
        (1, AT, "+05:30", 9),
        (3, AT, "+05:30", 3),
        (4, AT, "-11:00", 2),
    ]
    assert source.lake.image(T) == expected
    source.check_replayed("T", windows)
    oracle.run("UPDATE T SET SENT = NULL WHERE ID = 3")
    source.windows()
    expected[1] = (3, None, None, 3)
    assert source.lake.image(T) == expected
    assert source.compared_rows("T") == expected


def test_the_offset_follows_its_column(oracle: Oracle, source: Source) -> None:
    """Renamed, added, dropped; rows of before the DDL in the same window."""
    oracle.run(
        f"UPDATE T SET SENT = {OTHER} WHERE ID = 1", "ALTER TABLE T RENAME COLUMN SENT TO SHIPPED"
    )
    oracle.run(f"INSERT INTO T VALUES (3, {NEW}, 3)")
    source.windows()
    assert source.record("T").state == "ready", source.record("T").reason
    assert source.lake.image(T) == [(1, AT, "+05:30", 1), (2, None, None, 2), (3, AT, "-11:00", 3)]
    schema = source.pipeline.store.schemas.newest().get(T)
    assert schema is not None
    assert schema.stored_names["SHIPPED_OFFSET"] == "SENT_OFFSET"
    oracle.run(
        "ALTER TABLE T ADD (DUE TIMESTAMP(6) WITH TIME ZONE)",
        f"INSERT INTO T (ID, DUE) VALUES (4, {OTHER})",
    )
    source.windows()
    assert source.record("T").state == "ready", source.record("T").reason
    due, no = (AT, "+05:30"), (None, None)
    assert source.lake.image(T) == [
        (1, AT, "+05:30", 1, *no), (2, *no, 2, *no), (3, AT, "-11:00", 3, *no), (4, *no, None, *due),
    ]  # fmt: skip
    oracle.run("ALTER TABLE T DROP COLUMN DUE", f"INSERT INTO T VALUES (5, {OTHER}, 5)")
    source.windows()
    assert source.record("T").state == "ready", source.record("T").reason
    assert source.lake.image(T)[-1][:4] == (5, AT, "+05:30", 5)
    told = {
        name
        for row in source.lake.side_tables["schema_changes"].rows
        for name in (one["name"] for one in row["columns"])
    }
    assert told == {"ID", "SENT", "SHIPPED", "N", "DUE"}, "Oracle's columns alone"


def test_rules_of_columns_are_about_those_of_oracle(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path) as source:
        source.configure({**BESIDE, "columns_include": ["ID", "SENT"]})
        source.begin()
        oracle.run(f"UPDATE T SET SENT = {OTHER}, N = 7 WHERE ID = 1")
        source.run()
        assert source.lake.image(T) == [(1, AT, "+05:30"), (2, None, None)]
        source.configure({**BESIDE, "columns_exclude": ["SENT"]})
        oracle.run(f"UPDATE T SET SENT = {NEW}, N = 8 WHERE ID = 1")
        source.run()
        assert source.record("T").state == "ready", source.record("T").reason
        schema = source.pipeline.store.schemas.newest().get(T)
        assert schema is not None
        assert schema.column_names == ("ID",)


def test_another_form_asks_for_new_delta_tables(oracle: Oracle, source: Source) -> None:
    source.configure({"name": "T", "types_as": {"TIMESTAMP WITH TIME ZONE": "instant"}})
    source.run()
    assert "SENT" in str(source.record("T").reason)
    source.pipeline.resnapshot_tables([T], fresh=True)
    source.run()
    assert source.lake.image(T) == [(1, AT, 1), (2, None, 2)]


def test_a_name_that_is_taken_is_refused(oracle: Oracle, tmp_path: Path) -> None:
    oracle.run("ALTER TABLE T ADD (SENT_OFFSET NUMBER(3))")
    with source_of(oracle, tmp_path) as source:
        source.configure(BESIDE)
        with pytest.raises(Exception, match="instant\\+offset gives to an offset"):
            source.run()


def test_a_name_that_is_taken_later_stops_its_table_alone(oracle: Oracle, tmp_path: Path) -> None:
    oracle.run("CREATE TABLE U (ID NUMBER(9) PRIMARY KEY)")
    with source_of(oracle, tmp_path, "U") as source:
        source.configure(BESIDE, {"name": "U"})
        source.run()
        oracle.run(
            "ALTER TABLE T ADD (SENT_OFFSET NUMBER(3))",
            f"INSERT INTO T VALUES (3, {NEW}, 3, 3)",
            "INSERT INTO U VALUES (1)",
        )
        source.run()
        assert source.lake.image(table_id("U")) == [(1,)]
        assert source.record("T").state == "failed"
        assert "instant+offset gives to an offset" in str(source.record("T").reason)
        oracle.run("ALTER TABLE T DROP COLUMN SENT_OFFSET", "INSERT INTO U VALUES (2)")
        source.run()
        assert source.lake.image(table_id("U")) == [(1,), (2,)]
