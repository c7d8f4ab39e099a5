"""What happens to a table without a row in the redo is noticed with the next window, and stops that table alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cdc_core.capture.stream_ends.unlogged import Facts, judge
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import ROW_ID, ROW_ID_COLUMN, Column, TableSchema
from oracle_embedded.database import ADMIN
from tests.oracle.embedded import Oracle, minimal_logging
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, source_of, table_id

ID, NOTE = Column("ID", "NUMBER", 22, 0, 10, 0, False), Column("NOTE", "CLOB", 4000, 0, None, None, True)  # fmt: skip
TABLE = TableSchema(TableId("HR", "EMP"), Scn(1), (ID,), ("ID",), 501)
BY_ROW_ID = TableSchema(TABLE.table, Scn(1), (ROW_ID_COLUMN, ID), (ROW_ID,), 501)
LOBS = TableSchema(TABLE.table, Scn(1), (ID, NOTE), ("ID",), 501)


oracle = oracle_with(
    minimal_logging,
    *(
        statement.format(name)
        for name in ("ONE", "TWO")
        for statement in (
            "CREATE TABLE {} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))",
            "ALTER TABLE {} ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS",
            "INSERT INTO {} VALUES (1, 'first')",
        )
    ),
    logging=False,
)


source = capturing("ONE", "TWO")
"""ONE and TWO, snapshotted, with one window."""


def load_without_logging(oracle: Oracle, table: str, rows: int) -> None:
    oracle.database.redo.set_unlogged(f"DEMO.{table}")
    oracle.run(f"INSERT INTO {table} SELECT LEVEL + 100, 'loaded' FROM DUAL CONNECT BY LEVEL <= {rows}")  # fmt: skip
    oracle.database.redo.set_unlogged()


def test_a_table_whose_policy_says_so_goes_on(
    oracle: Oracle, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody loads into it without redo: it was another table's index."""
    policies = {"policies": {"on_unlogged": "ignore"}}
    oracle.run("CREATE TABLE OTHER (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))")
    with source_of(oracle, tmp_path, "ONE", "TWO", **policies) as source:
        source.run()
        load_without_logging(oracle, "OTHER", rows=1)
        oracle.run("INSERT INTO ONE VALUES (3, 'after')")
        with caplog.at_level("WARNING"):
            source.windows()
        source.check_current("ONE", "TWO")
        assert source.record("ONE").state == "ready"
        assert caplog.text.count("on_unlogged says ignore") == 2


def test_a_pluggable_database_that_was_taken_back_is_noticed(
    oracle: Oracle, source: Source
) -> None:
    """Its redo goes on as if nothing had been; a new snapshot of the tables is all that they need."""
    oracle.run("INSERT INTO ONE VALUES (2, 'taken back')", "INSERT INTO TWO VALUES (2, 'x')")
    source.windows()
    position = source.record("ONE").mirror_scn
    oracle.database.redo.set_unlogged("DEMO.ONE")
    oracle.run("DELETE FROM ONE WHERE ID = 2")
    oracle.database.redo.set_unlogged()
    reset = oracle.database.redo.open_pluggable_resetlogs()
    oracle.run("INSERT INTO ONE VALUES (3, 'after')", "INSERT INTO TWO VALUES (3, 'after')")
    source.windows()
    for name in ("ONE", "TWO"):
        record = source.record(name)
        assert (record.state, record.stopped_scn) == ("failed", position)
        assert "opened with RESETLOGS" in (record.reason or "")
        assert f"redolake table resnapshot DEMO.{name}" in (record.way_out or "")
    source.pipeline.resnapshot_tables([table_id("ONE"), table_id("TWO")])
    source.run()
    oracle.run("INSERT INTO ONE VALUES (4, 'goes on')")
    source.windows()
    source.check_current("ONE", "TWO")
    assert [key for key, _ in source.lake.image(table_id("ONE"))] == [1, 3, 4]
    assert (source.record("ONE").snapshot_scn or 0) > reset


def test_rows_that_were_loaded_without_redo_are_noticed(oracle: Oracle, source: Source) -> None:
    """Nobody knows into which table of the tablespace they went: each of them takes a new snapshot, and then goes on."""
    oracle.run("INSERT INTO ONE VALUES (2, 'logged')")
    source.windows()
    position = source.record("ONE").mirror_scn
    load_without_logging(oracle, "ONE", rows=5)
    oracle.run("INSERT INTO ONE VALUES (3, 'after')")
    source.windows()
    for name in ("ONE", "TWO"):
        record = source.record(name)
        assert (record.state, record.mirror_scn, record.stopped_scn) == ("failed", position, position)  # fmt: skip
        assert "NOLOGGING" in (record.reason or "")
        assert f"redolake table resnapshot DEMO.{name}" in (record.way_out or "")
    source.pipeline.resnapshot_tables([table_id("ONE"), table_id("TWO")])
    source.run()
    source.check_current("ONE", "TWO")
    assert len(source.lake.image(table_id("ONE"))) == 8
    oracle.run("INSERT INTO ONE VALUES (4, 'x')", "INSERT INTO TWO VALUES (4, 'x')")
    source.windows()
    source.check_current("ONE", "TWO")
    assert source.record("ONE").state == "ready", "the load is in the snapshot"


def test_supplemental_logging_that_was_dropped_stops_its_table(
    oracle: Oracle, source: Source
) -> None:
    oracle.run("ALTER TABLE ONE DROP SUPPLEMENTAL LOG DATA (ALL) COLUMNS")
    oracle.run("UPDATE ONE SET V = 'x' WHERE ID = 1", "UPDATE TWO SET V = 'x' WHERE ID = 1")
    source.windows()
    assert source.record("ONE").reason == "supplemental logging of the table was dropped"
    assert 'ALTER TABLE "DEMO"."ONE" ADD' in (source.record("ONE").way_out or "")
    source.check_current("TWO")
    assert source.record("TWO").state == "ready"


def test_supplemental_logging_that_the_database_lost_stops_all(
    oracle: Oracle, source: Source
) -> None:
    for name in ("ONE", "TWO"):
        oracle.run(f"ALTER TABLE {name} DROP SUPPLEMENTAL LOG DATA (ALL) COLUMNS")
    oracle.run("ALTER DATABASE DROP SUPPLEMENTAL LOG DATA", user=ADMIN)
    source.windows()
    for name in ("ONE", "TWO"):
        assert source.record(name).reason == "supplemental logging of the database was dropped"


def facts(**more: object) -> Facts:
    known: dict[str, object] = {
        "unrecoverable": {"USERS": 150, "LOBS": 180},
        "tablespaces": {TABLE.table: "USERS"},
        "is_supplemental": True,
        "logged": frozenset({TABLE.table}),
    }
    return Facts(**{**known, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("table", "known", "scn_low", "read_at", "leaves"),
    [
        pytest.param(TABLE, facts(), 100, 90, True, id="after-the-last-window"),
        pytest.param(TABLE, facts(), 150, 90, False, id="before-the-window"),
        pytest.param(TABLE, facts(), 100, 150, False, id="in-the-snapshot"),
        pytest.param(TABLE, facts(), 100, None, True, id="no-snapshot-known"),
        pytest.param(TABLE, facts(tablespaces={TABLE.table: "DATA"}), 100, 90, False, id="in-another-tablespace"),
        pytest.param(TABLE, facts(tablespaces={TABLE.table: None}), 160, 90, True, id="partitions-lie-anywhere"),
        pytest.param(LOBS, facts(), 160, 90, True, id="lobs-lie-anywhere"),
        pytest.param(TABLE, facts(tablespaces={}), 100, 90, False, id="dropped"),
        pytest.param(TABLE, facts(logged=frozenset()), 150, 90, True, id="no-logging-of-all-columns"),
        pytest.param(BY_ROW_ID, facts(logged=frozenset()), 150, 90, False, id="rows-known-by-rowid"),
        pytest.param(replace(BY_ROW_ID, has_lobs=True), facts(logged=frozenset()), 150, 90, True, id="rows-known-by-rowid-that-have-lobs"),
        pytest.param(BY_ROW_ID, facts(is_supplemental=False), 150, 90, True, id="rows-known-by-rowid-and-no-logging"),
        pytest.param(TABLE, facts(is_supplemental=False), 150, 90, True, id="no-supplemental-logging"),
    ],
)  # fmt: skip
def test_a_table_leaves_where_redo_does_not_tell_everything(
    table: TableSchema, known: Facts, scn_low: int, read_at: int | None, leaves: bool
) -> None:
    end = judge(table, known, Scn(scn_low), None if read_at is None else Scn(read_at))
    assert (end is not None) == leaves
    if end is not None:
        assert end.scn == scn_low
