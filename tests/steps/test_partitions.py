"""Rows of partitioned and index-organized tables are a table's, whatever became of their segment before its redo was read."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_core.capture.passes.unnamed_rows import KnownSegments
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, source_of, table_id

CREATE = (
    "CREATE TABLE {} (ID NUMBER(9) PRIMARY KEY, K NUMBER(9) NOT NULL, V VARCHAR2(40)) PARTITION BY RANGE (K)"
    " (PARTITION P1 VALUES LESS THAN (10), PARTITION P2 VALUES LESS THAN (20), PARTITION P3 VALUES LESS THAN (MAXVALUE)) ENABLE ROW MOVEMENT"
)
SPLIT = "ALTER TABLE ONE SPLIT PARTITION P1 AT (5) INTO (PARTITION P1, PARTITION P1B)"

oracle = oracle_with(
    CREATE.format("ONE"),
    "CREATE TABLE TWO (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))",
    "CREATE TABLE OTHER (ID NUMBER(9) PRIMARY KEY, K NUMBER(9) NOT NULL, V VARCHAR2(40))",
    "CREATE TABLE IOT (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40)) ORGANIZATION INDEX",
    *(f"INSERT INTO ONE VALUES ({number}, {number}, 'first')" for number in (1, 11, 21)),
    "INSERT INTO IOT VALUES (1, 'first')",
)
source = capturing("ONE", "TWO")
"""ONE and TWO, snapshotted, with one window."""


@pytest.mark.parametrize(
    "ddl",
    [
        pytest.param([SPLIT], id="split"),
        pytest.param(["ALTER TABLE ONE MERGE PARTITIONS P1, P2 INTO PARTITION M"], id="merge"),
        pytest.param(["ALTER TABLE ONE MOVE PARTITION P1"], id="move"),
        pytest.param(["ALTER TABLE ONE RENAME PARTITION P1 TO Q"], id="rename"),
        pytest.param([SPLIT, "ALTER TABLE ONE MERGE PARTITIONS P1, P1B, P2 INTO PARTITION P"], id="split-and-merge"),
    ],
)  # fmt: skip
def test_ddl_that_leaves_the_rows_is_followed(
    oracle: Oracle, source: Source, ddl: list[str]
) -> None:
    oracle.run("INSERT INTO ONE VALUES (2, 2, 'before')", "UPDATE ONE SET V = 'b' WHERE ID = 1")
    oracle.run(*ddl)
    oracle.run("INSERT INTO ONE VALUES (3, 3, 'after')", "UPDATE ONE SET K = 15 WHERE ID = 2")
    oracle.run("INSERT INTO TWO VALUES (1, 'x')")
    source.windows()
    assert source.record("ONE").state == "ready"
    source.check_current("ONE", "TWO")


def test_a_segment_that_came_and_went_between_two_passes_is_the_tables(
    oracle: Oracle, source: Source
) -> None:
    """No pass ever saw partition N: Oracle shows it as of the SCN of its rows."""
    oracle.run("ALTER TABLE ONE SPLIT PARTITION P2 AT (15) INTO (PARTITION P2, PARTITION N)")
    oracle.run("INSERT INTO ONE VALUES (16, 16, 'in N')")
    oracle.run("ALTER TABLE ONE MERGE PARTITIONS P2, N INTO PARTITION P2")
    source.windows()
    assert source.record("ONE").state == "ready"
    assert (16, 16, "in N") in source.lake.image(table_id("ONE"))
    source.check_current("ONE")


def test_a_segment_that_was_seen_once_is_known_for_ever(
    oracle: Oracle, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The partition goes before its redo is read, and Oracle no longer shows the past."""
    monkeypatch.setattr(KnownSegments, "resolve", lambda _self, _session, seen: (False, dict(seen)))
    oracle.run("ALTER TABLE ONE SPLIT PARTITION P2 AT (15) INTO (PARTITION P2, PARTITION N)")
    source.windows()
    oracle.run("INSERT INTO ONE VALUES (16, 16, 'in N')")
    oracle.run("ALTER TABLE ONE MERGE PARTITIONS P2, N INTO PARTITION P2")
    source.windows()
    source.check_current("ONE")
    assert len(source.pipeline.store.schemas.versions(table_id("ONE"))) == 1


@pytest.mark.parametrize(
    ("ddl", "kept"),
    [
        pytest.param("ALTER TABLE ONE DROP PARTITION P1", [1, 2, 11, 21], id="drop"),
        pytest.param("ALTER TABLE ONE TRUNCATE PARTITION P1", [1, 2, 11, 21], id="truncate"),
        pytest.param("ALTER TABLE ONE EXCHANGE PARTITION P1 WITH TABLE OTHER", [1, 2, 11, 21], id="exchange"),
    ],
)  # fmt: skip
def test_a_table_whose_rows_go_without_redo_stops_with_all_rows_before(
    oracle: Oracle, source: Source, ddl: str, kept: list[int]
) -> None:
    oracle.run("INSERT INTO ONE VALUES (2, 2, 'before')", "INSERT INTO TWO VALUES (1, 'x')")
    oracle.run(ddl)
    oracle.run("INSERT INTO ONE VALUES (12, 12, 'after')")
    source.windows()
    one = source.record("ONE")
    assert (one.state, one.mirror_scn, one.trouble) == ("failed", one.stopped_scn, "truncate")
    assert sorted(row[0] for row in source.lake.image(table_id("ONE"))) == kept
    source.check_current("TWO")


def test_rows_of_other_tables_that_were_dropped_are_nobodys(oracle: Oracle, source: Source) -> None:
    oracle.run("INSERT INTO OTHER VALUES (1, 1, 'x')", "INSERT INTO ONE VALUES (2, 2, 'x')")
    oracle.run("DROP TABLE OTHER PURGE")
    oracle.run(SPLIT)
    source.windows()
    assert source.record("ONE").state == "ready"
    source.check_current("ONE")


def test_index_organized_tables_are_captured(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path, "IOT") as source:
        source.begin()
        oracle.run("INSERT INTO IOT VALUES (2, 'b')", "INSERT INTO IOT VALUES (3, 'c')")
        oracle.run("UPDATE IOT SET ID = ID + 1, V = V || 'x'")
        oracle.run("DELETE FROM IOT WHERE ID = 2")
        source.windows()
        source.check_current("IOT")
        oracle.run("INSERT INTO IOT VALUES (9, 'last')")
        oracle.run("DROP TABLE IOT PURGE")
        source.windows()
        assert source.record("IOT").state == "failed"
        assert source.lake.image(table_id("IOT")) == [(3, "bx"), (4, "cx"), (9, "last")]


def test_an_index_organized_table_that_gets_a_lob_stops_alone(
    oracle: Oracle, source: Source
) -> None:
    """One that has a LOB from the beginning does not join."""
    oracle.run("CREATE TABLE L (ID NUMBER(9) PRIMARY KEY, C CLOB) ORGANIZATION INDEX")
    oracle.run("INSERT INTO L VALUES (1, 'text')")
    source.configure("ONE", "TWO", "IOT", "L")
    source.run()
    assert (source.record("L").state, source.record("IOT").state) == ("failed", "ready")
    oracle.run("INSERT INTO IOT VALUES (2, 'before')", "ALTER TABLE IOT ADD (C CLOB)")
    oracle.run("INSERT INTO IOT VALUES (3, 'after', 'text')", "INSERT INTO TWO VALUES (1, 'x')")
    source.windows()
    stopped = source.record("IOT")
    assert (stopped.state, stopped.trouble) == ("failed", "unsupported_ddl")
    assert "index-organized table with LOBs" in (stopped.reason or "")
    assert source.lake.image(table_id("IOT")) == [(1, "first"), (2, "before")]
    source.check_current("ONE", "TWO")
