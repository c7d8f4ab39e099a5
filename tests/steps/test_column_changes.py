"""Columns that go, or get other names, while changes are captured, through the driver: rows of several layouts, before, inside and
after a window."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest

from cdc_core.errors import WindowFirstError
from oracle_embedded.redo import Wart
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, source_of, table_id

T = table_id("T")
DROP = "ALTER TABLE T DROP COLUMN B"
RENAME = "ALTER TABLE T RENAME COLUMN B TO B2"
UNUSED = "ALTER TABLE T SET UNUSED COLUMN B"

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, A VARCHAR2(20), B VARCHAR2(20), C NUMBER(9,1), D DATE)",
    *(
        f"INSERT INTO T VALUES ({key}, 'a{key}', 'b{key}', {key}.5, DATE '2026-01-0{key}')"
        for key in range(1, 6)
    ),
    warts=[Wart.UNNAMED_COLUMNS],
)
"""T has columns in front of, between and behind those that go; rows from before a DDL have no names."""
source = capturing("T")


def before(oracle: Oracle) -> None:
    oracle.run(
        "INSERT INTO T VALUES (6, 'a6', 'b6', 6.5, NULL)",
        "UPDATE T SET A = 'changed', B = 'last' WHERE ID = 1",
        "UPDATE T SET ID = 20 WHERE ID = 2",
        "DELETE FROM T WHERE ID = 3",
    )


def after(oracle: Oracle) -> None:
    oracle.run(
        "INSERT INTO T (ID, A, D) VALUES (7, 'a7', DATE '2026-02-07')",
        "UPDATE T SET A = 'after' WHERE ID = 4",
        "UPDATE T SET ID = 60, D = DATE '2026-02-06' WHERE ID = 6",
        "DELETE FROM T WHERE ID = 5",
    )


def kept(source: Source, column: str) -> dict[int, object]:
    """The mirror's values of a column by key."""
    return {row["ID"]: row.get(column) for row in source.lake.rows_by_name(T)}


def test_transactions_that_are_open_over_the_ddl_of_another_table_and_late_redo(
    oracle: Oracle, source: Source
) -> None:
    """Redo from before the DDL comes with a window behind it: its transaction held rows in a strand while another committed."""
    oracle.run("CREATE TABLE OTHER (ID NUMBER(9) PRIMARY KEY)")
    with oracle.owner() as slow:
        slow.cursor().execute("INSERT INTO T VALUES (8, 'a8', 'b8', 8, NULL)")
        oracle.run("INSERT INTO OTHER VALUES (1)")
        source.windows()
        slow.commit()
    oracle.run("ALTER TABLE T DROP COLUMN B")
    after(oracle)
    source.windows()
    source.check_current("T")
    assert kept(source, "B")[8] == "b8"


def test_a_new_snapshot_reads_rows_as_they_are(oracle: Oracle, source: Source) -> None:
    """Into the same Delta tables, also where the column went while nobody read the table."""
    oracle.run("ALTER TABLE T DROP COLUMN B")
    after(oracle)
    source.windows()
    oracle.run("TRUNCATE TABLE T")
    oracle.run("ALTER TABLE T DROP COLUMN C")
    oracle.run("INSERT INTO T (ID) VALUES (1)")
    source.windows()
    assert source.record("T").trouble == "truncate"
    source.pipeline.resnapshot_tables([T])
    source.run()
    oracle.run("INSERT INTO T (ID) VALUES (2)")
    source.windows()
    assert source.record("T").generation == 1
    source.check_current("T")
    schema = source.lake.tables[T].schema
    assert schema is not None
    assert schema.dropped == ("B", "C")
    versions = source.pipeline.store.schemas.versions(T)
    assert versions[-1].schema.dropped == ("B", "C")


def test_a_column_of_the_key_that_goes_stops_the_table(oracle: Oracle, tmp_path: Path) -> None:
    oracle.run("CREATE TABLE K (ID NUMBER(9) PRIMARY KEY, X NUMBER(9) NOT NULL)")
    oracle.run("CREATE UNIQUE INDEX KX ON K (X)")
    with source_of(oracle, tmp_path, "K") as source:
        source.run()
        oracle.run("ALTER TABLE K DROP COLUMN ID")
        source.windows()
        record = source.record("K")
        assert (record.state, record.trouble) == ("failed", "unsupported_ddl")
        assert "the key changed" in (record.reason or "")


def test_the_key_stays_where_another_one_comes_beside_it(oracle: Oracle, tmp_path: Path) -> None:
    """A primary key or a shorter unique index comes before the key so far only where a table begins; rows are known by the old one as long as
    it identifies them, in windows and chunks."""
    oracle.run(
        "CREATE TABLE K (A NUMBER(9) NOT NULL, B NUMBER(9) NOT NULL, C NUMBER(9), V VARCHAR2(9))",
        "CREATE UNIQUE INDEX KAB ON K (A, B)",
        "INSERT INTO K VALUES (1, 1, 11, 'one')",
        "INSERT INTO K VALUES (1, 2, 12, 'two')",
    )
    with source_of(oracle, tmp_path, "K") as source:
        source.run()
        oracle.run("ALTER TABLE K MODIFY C NOT NULL", "CREATE UNIQUE INDEX KC ON K (C)")
        oracle.run("UPDATE K SET V = 'new', C = 21 WHERE B = 1", "DELETE FROM K WHERE B = 2")
        source.windows()
        oracle.run("ALTER TABLE K ADD PRIMARY KEY (B)", "INSERT INTO K VALUES (3, 3, 13, 'three')")
        source.windows()
        assert source.record("K").state == "ready", source.record("K").reason
        source.check_current("K")
        source.pipeline.start_snapshot([table_id("K")])
        oracle.run("UPDATE K SET V = 'last'", "UPDATE K SET A = 4, B = 4 WHERE B = 3")
        source.run()
        source.check_current("K")
        record, schema = source.record("K"), source.lake.tables[table_id("K")].schema
        assert (record.state, record.generation) == ("ready", 1), record.reason
        assert schema is not None
        assert schema.key == ("A", "B")
        oracle.clock.ahead += 60
        oracle.run("UPDATE K SET V = 'later'")
        source.windows()
        assert source.record("K").state == "ready", source.record("K").reason
        oracle.run("DROP INDEX KAB")
        oracle.clock.ahead += 60
        oracle.run("UPDATE K SET V = 'latest'")
        source.windows()
        assert source.record("K").trouble == "unsupported_ddl"
        assert "the key changed from (A, B) to (B)" in (source.record("K").reason or "")


def after_rename(oracle: Oracle, name: str) -> None:
    oracle.run(
        f"INSERT INTO T (ID, A, {name}) VALUES (7, 'a7', 'b7')",
        f"UPDATE T SET {name} = 'after' WHERE ID = 4",
        "UPDATE T SET ID = 60, D = DATE '2026-02-06' WHERE ID = 6",
        "DELETE FROM T WHERE ID = 5",
    )


def test_a_new_snapshot_knows_columns_that_swapped_their_names(
    oracle: Oracle, source: Source
) -> None:
    oracle.run(RENAME, "ALTER TABLE T RENAME COLUMN A TO B", "ALTER TABLE T RENAME COLUMN B2 TO A")
    source.windows()
    source.pipeline.resnapshot_tables([T])
    source.run()
    oracle.run("ALTER TABLE T RENAME COLUMN A TO B2", "UPDATE T SET B2 = 'later'")
    source.windows()
    assert source.record("T").generation == 1
    source.check_current("T")


def test_a_new_snapshot_knows_the_names_still(oracle: Oracle, source: Source) -> None:
    """Into the same Delta tables, whose change log has the old names."""
    before(oracle)
    oracle.run(RENAME)
    oracle.run("TRUNCATE TABLE T")
    source.windows()
    source.pipeline.resnapshot_tables([T])
    source.run()
    after_rename(oracle, "B2")
    source.windows()
    assert source.record("T").generation == 1
    source.check_current("T")
    versions = source.pipeline.store.schemas.versions(T)
    assert versions[-1].schema.stored_names["B2"] == "B"


def test_a_chunk_that_landed_before_is_applied_under_the_new_names(
    oracle: Oracle, source: Source
) -> None:
    source.read_chunk(T)
    oracle.run(RENAME, "ALTER TABLE T DROP COLUMN C")
    after_rename(oracle, "B2")
    source.windows()
    source.run()
    source.check_current("T")
    assert kept(source, "B2")[1] == "b1"


@pytest.mark.parametrize("statement", [DROP, RENAME])
def test_a_chunk_that_is_read_ahead_of_the_windows(
    oracle: Oracle, source: Source, statement: str
) -> None:
    """It has the columns of its own SCN. A rename is known with its window only: before that nothing tells it from two columns."""
    before(oracle)
    oracle.run(statement)
    key = source.read_chunk(T)
    if statement == DROP:
        source.pipeline.apply_chunk(key)
    else:
        with pytest.raises(WindowFirstError, match="nothing says which is which"):
            source.pipeline.apply_chunk(key)
    source.run()
    source.check_current("T")
    assert source.record("T").generation == 1


@pytest.mark.parametrize("comes", ["with-the-window", "after-a-wait"])
def test_a_chunk_that_is_read_behind_a_rename_is_known_by_the_window_that_was_captured(
    oracle: Oracle, source: Source, comes: str
) -> None:
    """The Delta tables have the old name still, since no window with the rename was applied; a new snapshot lets those windows go."""
    before(oracle)
    oracle.run(RENAME)
    key = source.read_chunk(T)
    if comes == "after-a-wait":
        with pytest.raises(WindowFirstError, match="nothing says which is which"):
            source.pipeline.apply_chunk(key)
    source.capture()
    if comes == "after-a-wait":
        source.pipeline.resnapshot_tables([T])
        *_, key = source.pipeline.pending_chunks()  # the one that waited is still there
        source.pipeline.snapshot_chunk(key)
    source.pipeline.apply_chunk(key)
    after_rename(oracle, "B2")
    source.run()
    source.check_current("T")
    assert kept(source, "B2")[1] == "last"
    assert source.record("T").generation == 1


def test_columns_that_get_wider_are_followed_where_delta_holds_them_already(
    oracle: Oracle, tmp_path: Path
) -> None:
    """A NUMBER of which more digits are to come is held wider from the beginning (``columns_as``); one of another kind stops its table."""
    oracle.run(
        "CREATE TABLE W (ID NUMBER(5) PRIMARY KEY, N NUMBER(5), A VARCHAR2(5), S TIMESTAMP(3), D NUMBER(10,2), E NUMBER(10,2))",
        "INSERT INTO W VALUES (1, 11111, 'short', TIMESTAMP '2026-01-01 00:00:00.123', 1.25, 1)",
    )
    with source_of(oracle, tmp_path) as source:
        source.configure({"name": "W", "columns_as": {"D": "decimal(38,6)"}})
        source.run()
        oracle.run("UPDATE W SET D = 2.50 WHERE ID = 1")
        for column in (
            "ID NUMBER(10)", "N NUMBER(18)", "A VARCHAR2(40)", "S TIMESTAMP(6)", "D NUMBER(30,6)",
        ):  # fmt: skip
            oracle.run(f"ALTER TABLE W MODIFY {column}")
        oracle.run(
            "INSERT INTO W VALUES (1234567890, 123456789012345678, 'longer than it was', TIMESTAMP '2026-01-01 00:00:00.123456',"
            " 123456789012345678901234.123456, 2)"
        )
        source.windows()
        assert source.record("W").state == "ready", source.record("W").reason
        assert source.lake.image(table_id("W")) == [
            (1, 11111, "short", datetime(2026, 1, 1, microsecond=123000), Decimal("2.5"), 1),
            (
                1234567890,
                123456789012345678,
                "longer than it was",
                datetime(2026, 1, 1, microsecond=123456),
                Decimal("123456789012345678901234.123456"),
                2,
            ),
        ]
        oracle.run("UPDATE W SET E = NULL", "ALTER TABLE W MODIFY E DATE")
        source.windows()
        record = source.record("W")
        assert (record.state, record.trouble) == ("failed", "unsupported_ddl")
        assert "changed their type: E" in (record.reason or "")
