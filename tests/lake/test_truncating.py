"""TRUNCATE that is followed, through Spark and Delta."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

from cdc_core.steps import Pipeline
from tests.delta.vectors import with_vectors
from tests.invariants.compare import read_delta
from tests.lake.test_envelope import events_by_duckdb
from tests.oracle.embedded import running_oracle
from tests.steps.harness import table_id
from tests.steps.test_schema_features_delta import check

T = table_id("T")


@pytest.mark.spark
def test_a_truncate_reaches_delta_and_events(tmp_path: Path, spark_process: None) -> None:
    """Rows before and behind it in one window, chunks from before and behind it that are applied in its place; old windows again, a lost
    mirror, and what the events say; a mirror with deletion vectors; Spark's MERGE."""
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, A VARCHAR2(20))",
            *(f"INSERT INTO T VALUES ({key}, 'a{key}')" for key in range(1, 6)),
        )
        config = oracle.config(
            tmp_path,
            tables=[{"name": "DEMO.T"}],
            policies={"on_truncate": "follow"},
        )
        with Pipeline(config) as pipeline:
            list(pipeline.run_once())
            oracle.run("UPDATE T SET A = 'in its own window' WHERE ID = 2")
            list(pipeline.run_windows())
            [early] = pipeline.start_snapshot([T])
            pipeline.snapshot_chunk(early)
            oracle.run(
                "INSERT INTO T VALUES (6, 'a6')",
                "UPDATE T SET ID = 10 WHERE ID = 1",
                "TRUNCATE TABLE T",
                "INSERT INTO T VALUES (1, 'again')",
                "INSERT INTO T VALUES (7, 'a7')",
                "UPDATE T SET A = 'changed' WHERE ID = 7",
            )
            reports = [one for one in pipeline.run_windows() if one.kind == "window-applied"]
            [applied] = reports[-1].tables
            assert (applied.rows_inserted, applied.rows_deleted) == (4, 7)
            for record in pipeline.store.windows.find(states=("applied",)):
                assert not sum(
                    one.changes
                    for one in pipeline.replay_window(record.window).tables
                    if not one.skipped
                )
            pipeline.apply_chunk(early)
            check(oracle, pipeline, tmp_path, "T", ["ID", "A"])
            assert pipeline.reconcile([T]).differences == 0

            mirror = tmp_path / "lake" / "src" / "mirror" / "demo.t"
            windows = [one.window for one in pipeline.store.windows.find(states=("applied",))]
            version = DeltaTable(str(mirror)).version()
            for window in windows:
                pipeline.replay_window(window)
            assert DeltaTable(str(mirror)).version() == version
            found = rows_of(mirror)
            shutil.rmtree(mirror)
            pipeline.rebuild_mirror(T)
            assert rows_of(mirror) == found
            for window in windows:
                pipeline.replay_window(window)
            assert rows_of(mirror) == found
            check(oracle, pipeline, tmp_path, "T", ["ID", "A"])

            sql = pipeline.records.events_sql(T, "duckdb", "UTC")
            events = events_by_duckdb(sql)
            assert [one["op"] for one in events if one["source"]["snapshot"] == "false"] == list(
                "ucdctccu"
            )
            [event] = [one for one in events if one["op"] == "t"]
            assert (event["before"], event["after"]) == (None, None)
            assert event["source"]["txId"]
            assert event["source"]["ts_ms"]

            with_vectors(str(mirror))
            oracle.run(*(f"INSERT INTO T VALUES ({key}, 'a')" for key in range(20, 40)))
            list(pipeline.run_windows())
            oracle.run("UPDATE T SET A = 'in a vector' WHERE ID = 25")
            list(pipeline.run_windows())
            assert len([*mirror.glob("deletion_vector_*.bin")]) == 1

        by_spark = {"path": str(tmp_path / "lake"), "driver_memory": "1g", "merge": "spark"}
        config = oracle.config(
            tmp_path, tables=[{"name": "DEMO.T"}], policies={"on_truncate": "follow"}, lake=by_spark
        )
        with Pipeline(config) as pipeline:
            oracle.run("TRUNCATE TABLE T", "INSERT INTO T VALUES (8, 'a8')")
            [late] = pipeline.start_snapshot([T])
            pipeline.snapshot_chunk(late)
            pipeline.apply_chunk(late)
            list(pipeline.run_windows())
            check(oracle, pipeline, tmp_path, "T", ["ID", "A"])
            assert [row[0] for row in rows_of(mirror)] == [8]


def rows_of(mirror: Path) -> list[tuple[object, ...]]:
    """Rows of a mirror with their positions, by delta-rs alone."""
    columns = ["ID", "A", "_cdc_commit_scn", "_cdc_ordinal"]
    return sorted(map(tuple, read_delta(mirror, columns, DeltaTable(str(mirror)).version())))
