"""DROP and TRUNCATE PARTITION that are followed, through Spark and Delta."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

from cdc_core.errors import TableStoppedError
from cdc_core.steps import Pipeline
from tests.delta.vectors import with_vectors
from tests.lake.test_truncating import rows_of
from tests.oracle.embedded import running_oracle
from tests.steps.harness import table_id
from tests.steps.test_schema_features_delta import check

T = table_id("T")


@pytest.mark.spark
def test_the_rows_of_partitions_leave_delta(tmp_path: Path, spark_process: None) -> None:
    """Ranges of days, the default of a list and a subpartition of it, with rows before and behind in one window; old windows again, a mirror that is lost, and a chunk
    from before. One of the mirrors has deletion vectors, in which its rows go."""
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, A VARCHAR2(20), D DATE) PARTITION BY RANGE (D)"
            " (PARTITION D1 VALUES LESS THAN (DATE '2026-03-02'), PARTITION D2 VALUES LESS THAN (DATE '2026-03-03'),"
            " PARTITION D3 VALUES LESS THAN (MAXVALUE))",
            "CREATE TABLE L (ID NUMBER(9) PRIMARY KEY, A VARCHAR2(20)) PARTITION BY LIST (A) SUBPARTITION BY RANGE (ID)"
            " SUBPARTITION TEMPLATE (SUBPARTITION LOW VALUES LESS THAN (9), SUBPARTITION HIGH VALUES LESS THAN (MAXVALUE))"
            " (PARTITION P1 VALUES ('it''s', NULL), PARTITION P2 VALUES (DEFAULT))",
            *(f"INSERT INTO T VALUES ({key}, 'a', DATE '2026-03-0{key}')" for key in range(1, 5)),
            "INSERT INTO T VALUES (5, 'a', NULL)",
            *(f"INSERT INTO T VALUES ({key}, 'a', DATE '2026-03-01')" for key in range(100, 140)),
            *(f"INSERT INTO L VALUES ({key}, {a})" for key, a in enumerate(("'it''s'", "NULL", "'x'"))),
        )  # fmt: skip
        config = oracle.config(
            tmp_path,
            "T",
            "L",
            policies={"on_truncate": "follow"},
        )
        with Pipeline(config) as pipeline:
            list(pipeline.run_once())
            mirror = tmp_path / "lake" / "src" / "mirror" / "demo.t"
            with_vectors(str(mirror))
            oracle.run(
                "INSERT INTO T VALUES (6, 'a6', TO_DATE('2026-03-02 23:59:59', 'YYYY-MM-DD HH24:MI:SS'))",
                "UPDATE T SET A = 'changed' WHERE ID = 2",
                "ALTER TABLE T TRUNCATE PARTITION D2",
                "INSERT INTO T VALUES (2, 'again', DATE '2026-03-02')",
                "ALTER TABLE T DROP PARTITION D3",
                "ALTER TABLE L TRUNCATE PARTITION P2",
                "ALTER TABLE L TRUNCATE PARTITION P2",
                "INSERT INTO L VALUES (9, 'y')",
                "INSERT INTO L VALUES (8, 'y')",
                "ALTER TABLE L TRUNCATE SUBPARTITION FOR ('y', 8)",
            )
            windows = [one for one in pipeline.run_windows() if one.kind == "window-applied"]
            assert sum(one.rows_deleted for one in windows[-1].tables) == 7
            assert [row[0] for row in rows_of(mirror)] == [1, 2, *range(100, 140)]
            assert [*mirror.glob("deletion_vector_*.bin")]
            check(oracle, pipeline, tmp_path, "T", ["ID", "A", "D"])
            check(oracle, pipeline, tmp_path, "L", ["ID", "A"])
            events = [
                (one["_cdc_commit_scn"], one["before"], bool(one["_cdc_xid"]))
                for one in DeltaTable(str(mirror.parent.parent / "changelog" / "demo.t"))
                .to_pyarrow_table(columns=["_cdc_op", "_cdc_commit_scn", "before", "_cdc_xid"])
                .to_pylist()
                if one["_cdc_op"] == "d"
            ]
            first = min(one[0] for one in events)
            assert sorted((one[0] > first, one[1]["ID"]) for one in events) == [
                (False, 2), (False, 6), (True, 3), (True, 4), (True, 5),
            ]  # fmt: skip
            assert all(one[1]["A"] is None and one[2] for one in events)
            found, version = rows_of(mirror), DeltaTable(str(mirror)).version()
            applied = pipeline.store.windows.find(states=("applied",))
            for record in reversed(applied):
                pipeline.replay_window(record.window)
            assert DeltaTable(str(mirror)).version() == version
            shutil.rmtree(mirror)
            pipeline.rebuild_mirror(T)
            assert rows_of(mirror) == found
            [early] = pipeline.start_snapshot([T])
            pipeline.snapshot_chunk(early)
            oracle.run("ALTER TABLE T TRUNCATE PARTITION D2")
            list(pipeline.run_windows())
            with pytest.raises(TableStoppedError, match="were removed with a partition"):
                pipeline.apply_chunk(early)
