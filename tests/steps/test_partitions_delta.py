"""A partitioned and an index-organized table, from chunks by ROWID to Delta tables, through DDL of partitions, an EXCHANGE among it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_core.model.identifiers import TableId
from cdc_core.steps import Pipeline
from tests.invariants.compare import Verdict, compare
from tests.oracle.embedded import running_oracle
from tests.steps.test_state_rebuild import comparable


@pytest.mark.spark
def test_partitioned_and_index_organized_tables_reach_delta(
    tmp_path: Path, spark_process: None
) -> None:
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE P (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(30)) PARTITION BY RANGE (ID) INTERVAL (50)"
            " (PARTITION P0 VALUES LESS THAN (50)) ENABLE ROW MOVEMENT",
            "CREATE TABLE I (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(30)) ORGANIZATION INDEX",
            *(f"INSERT INTO P VALUES ({number}, 'n')" for number in range(200)),
            *(f"INSERT INTO I VALUES ({number}, 'n')" for number in range(50)),
        )
        config = oracle.config(
            tmp_path, "P", "I", snapshot={"chunk_rows": 100, "cut": "rowid"}, policies={"on_truncate": "follow_or_resnapshot"},
        )  # fmt: skip
        with Pipeline(config) as pipeline:
            list(pipeline.run_once())
            oracle.run(
                "INSERT INTO P VALUES (20000, 'far')",
                "UPDATE P SET ID = ID + 1000, V = 'moved' WHERE ID < 10",
                "UPDATE I SET ID = ID + 1",
                "DELETE FROM I WHERE ID = 5",
            )
            oracle.run(
                "ALTER TABLE P SPLIT PARTITION P0 AT (30) INTO (PARTITION P0, PARTITION P0B)"
            )
            oracle.run("UPDATE P SET V = 'later' WHERE ID BETWEEN 20 AND 40")
            oracle.run("ALTER TABLE P MERGE PARTITIONS P0, P0B INTO PARTITION P0")
            oracle.run(
                "CREATE TABLE CAME (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(30))",
                *(f"INSERT INTO CAME VALUES ({number}, 'came')" for number in (5, 12, 45)),
            )
            oracle.run("ALTER TABLE P EXCHANGE PARTITION P0 WITH TABLE CAME")
            oracle.run(
                "UPDATE P SET V = 'behind' WHERE ID IN (12, 60)",
                "INSERT INTO P VALUES (13, 'behind')",
                "DELETE FROM P WHERE ID = 45",
            )
            list(pipeline.run_once())
            read = pipeline.store.chunks.find(TableId("DEMO", "P"))[-1]
            assert (read.snapshot_id[0], read.state, read.rows) == ("x", "applied", 3)
            found = pipeline.reconcile()
            assert [one.differences for one in found.tables] == [0, 0]
            kept = comparable(pipeline.store.images.get())
        with oracle.owner() as connection:
            mirrors = tmp_path / "lake" / "src" / "mirror"
            for name, rows in (("P", 164), ("I", 49)):
                verdict = compare(
                    connection, name, ("ID",), mirrors / f"demo.{name.lower()}", found.scn
                )
                assert verdict == Verdict(rows, rows, 0, 0, 0, 0)
        for file in tmp_path.glob("state.db*"):
            file.unlink()
        with Pipeline(config) as pipeline:
            assert pipeline.rebuild_state().remarks == ()
            assert comparable(pipeline.store.images.get()) == kept
