"""Every dictionary of LogMiner, once from Oracle to Delta: through MERGE, and read by delta-rs alone."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cdc_core.steps import Pipeline
from oracle_embedded.redo.settings import DEFAULT_WARTS
from tests.invariants.compare import compare
from tests.jvm import small_session
from tests.lake.test_envelope import events_by_duckdb
from tests.oracle.embedded import ADMIN, running_oracle
from tests.steps.harness import table_id
from tests.steps.ways import ARCHIVE, WAYS, build_in_file, build_in_redo

T = table_id("T")
FIRST = [
    "INSERT INTO T VALUES (3, 'a3', 'b3', TO_CLOB('first'), NULL)",
    "UPDATE T SET ID = ID + 10, A = 'moved' WHERE ID = 2",
    "UPDATE T SET D = SYSDATE WHERE ID = 3",
]
LATER = [
    "ALTER TABLE T ADD (N NUMBER(5))",
    "UPDATE T SET N = 7, A = 'later' WHERE ID < 10",
    "DELETE FROM T WHERE ID = 12",
    "ALTER TABLE T RENAME COLUMN B TO B2",
    "INSERT INTO T (ID, B2, N) VALUES (4, 'b4', 4)",
]
UNDONE = [
    "INSERT INTO T (ID, A) VALUES (5, 'kept')",
    "SAVEPOINT S",
    "UPDATE T SET A = 'undone' WHERE ID = 1",
    "DELETE FROM T WHERE ID = 3",
    "ROLLBACK TO SAVEPOINT S",
    "UPDATE T SET A = 'kept too' WHERE ID = 1",
    "COMMIT",
]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_every_way_reaches_delta_and_both_engines_show_the_same_events(
    tmp_path: Path, spark_process: None
) -> None:
    with running_oracle(warts=DEFAULT_WARTS) as oracle, ExitStack() as stack:
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, A VARCHAR2(20), B VARCHAR2(20), C CLOB, D DATE)",
            "INSERT INTO T VALUES (1, 'a1', 'b1', TO_CLOB('c1'), DATE '2026-01-01')",
            "INSERT INTO T VALUES (2, 'a2', 'b2', NULL, NULL)",
        )
        build_in_redo(oracle)
        build_in_file(oracle)
        opened = {}
        for name, capture in WAYS.items():
            folder = tmp_path / name
            more: dict[str, Any] = {
                "capture": {"close_at": "completed_logs", **capture},
                "lake": {"path": str(folder / "lake"), "driver_memory": "1g"},
            }
            opened[name] = stack.enter_context(Pipeline(oracle.config(folder, "T", **more)))
        for pipeline in opened.values():
            list(pipeline.run_once())
        for story in (FIRST, LATER):
            for statement in story:
                oracle.run(statement)
            with oracle.owner() as session, session.cursor() as cursor:
                for statement in UNDONE if story is FIRST else []:
                    cursor.execute(statement)
            oracle.run(ARCHIVE, user=ADMIN)
            for name, pipeline in opened.items():
                list(pipeline.run_windows())
                record = pipeline.records.table(T)
                assert record is not None
                assert (record.state, record.mirror_scn is None) == ("ready", False), (name, record)
                assert record.mirror_scn is not None
                mirror = tmp_path / name / "lake" / "src" / "mirror" / "demo.t"
                with oracle.owner() as connection:
                    found = compare(connection, "T", ["ID"], mirror, record.mirror_scn)
                assert found.is_equal, (name, found)
        spark = small_session(next(iter(opened.values())).config.lake)
        for name, pipeline in opened.items():
            shown = {
                engine: pipeline.records.events_sql(T, engine, "UTC", unavailable="it's away")
                for engine in ("spark", "duckdb")
            }
            ordered = spark.sql(shown["spark"]).orderBy(
                "_cdc_commit_scn", "_cdc_ordinal", "transaction.total_order"
            )
            by_spark = [one.asDict(recursive=True) for one in ordered.collect()]
            assert by_spark == events_by_duckdb(shown["duckdb"]), name
            assert "it's away" in {(one["after"] or {}).get("C") for one in by_spark}, name
