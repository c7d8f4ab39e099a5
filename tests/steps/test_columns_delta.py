"""Tables whose columns are replaced and swap their names, from the driver to Delta tables: with a
LONG that snapshots read, and without it. By Spark: tests/steps/test_odd_names_delta.py."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.model.identifiers import TableId
from cdc_core.steps import Pipeline
from tests.invariants.compare import Verdict, compare
from tests.lake.who_merges import no_spark
from tests.oracle.embedded import running_oracle

T = TableId("DEMO", "T")


def test_replaced_and_swapped_columns_reach_delta(tmp_path: Path) -> None:
    """A chunk behind the captured swap is applied before its window, and everything once more from the change log."""
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, A VARCHAR2(20), B VARCHAR2(20), D CLOB, BODY LONG)",
            *(f"INSERT INTO T VALUES ({n}, 'a{n}', 'b{n}', 'd{n}', 'l{n}')" for n in range(1, 9)),
        )
        config = oracle.config(
            tmp_path, tables=[{"name": "DEMO.T", "columns_as": {"BODY": "snapshot"}}]
        )
        with Pipeline(config, open_lake=partial(DeltaLake, spark=no_spark)) as pipeline:
            list(pipeline.run_once())
            oracle.run(
                "UPDATE T SET B = 'before' WHERE ID = 1", "UPDATE T SET ID = 20 WHERE ID = 2"
            )
            oracle.run("ALTER TABLE T RENAME COLUMN A TO X", "UPDATE T SET X = 'x' WHERE ID = 3")
            oracle.run("ALTER TABLE T RENAME COLUMN B TO A", "UPDATE T SET A = 'y' WHERE ID = 3")
            oracle.run("ALTER TABLE T RENAME COLUMN X TO B", "UPDATE T SET B = 'z' WHERE ID = 3")
            for window in pipeline.plan_windows():
                pipeline.capture_window(window)
            pipeline.start_snapshot([T])
            for key in pipeline.pending_chunks():
                pipeline.snapshot_chunk(key)
                pipeline.apply_chunk(key)
            list(pipeline.run_once())
            oracle.run("ALTER TABLE T ADD (D_NEW VARCHAR2(10))", "UPDATE T SET D_NEW = TO_CHAR(ID)")
            oracle.run("ALTER TABLE T DROP COLUMN D")
            oracle.run("ALTER TABLE T RENAME COLUMN D_NEW TO D")
            oracle.run("UPDATE T SET D = 'new' WHERE ID = 4", "UPDATE T SET ID = 50 WHERE ID = 5")
            list(pipeline.run_once())
            found = pipeline.reconcile()
            assert [one.differences for one in found.tables] == [0]
            pipeline.rebuild_mirror(T)
        with oracle.owner() as connection:
            mirror = tmp_path / "lake" / "src" / "mirror" / "demo.t"
            verdict = compare(connection, "T", ("ID",), mirror, found.scn)
        assert verdict == Verdict(8, 8, 0, 0, 0, 0)


STORY = (
    (
        "ALTER TABLE T RENAME COLUMN A TO X",
        "UPDATE T SET X = 'renamed' WHERE ID = 3",
        "DELETE FROM T WHERE ID = 4",
        "INSERT INTO T (ID, X) VALUES (0, 'new')",
    ),
    (
        "ALTER TABLE T RENAME COLUMN B TO A",
        "ALTER TABLE T RENAME COLUMN X TO B",
        "ALTER TABLE T ADD (X NUMBER(9, 2) DEFAULT 1.5)",
        "UPDATE T SET A = 'was B', X = ID WHERE ID IN (2, 5)",
        "UPDATE T SET ID = 20 WHERE ID = 1",
    ),
    ("ALTER TABLE T DROP COLUMN A", "UPDATE T SET B = 'last' WHERE ID > 5"),
    ("INSERT INTO T (ID, B) SELECT 100 + LEVEL, 'appended' FROM DUAL CONNECT BY LEVEL < 4",),
)
"""Statements of one window each. Names go from column to column, one comes with a default, and one
is dropped."""


@pytest.mark.parametrize("vectors", ["never", "always"])
def test_windows_behind_renames_need_no_spark(tmp_path: Path, vectors: str) -> None:
    """The mirror is Oracle's table as of each window's end, and the reports say how it was written."""
    way = "copy-on-write" if vectors == "never" else "deletion vectors"
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, A VARCHAR2(20), B VARCHAR2(20), D CLOB)",
            *(f"INSERT INTO T VALUES ({n}, 'a{n}', 'b{n}', 'd{n}')" for n in range(1, 9)),
        )
        config = oracle.config(tmp_path, "T", maintenance={"deletion_vectors": vectors})
        written = []
        with Pipeline(config, open_lake=partial(DeltaLake, spark=no_spark)) as pipeline:
            list(pipeline.run_once())
            for statements in STORY:
                oracle.run(*statements)
                reports = list(pipeline.run_once())
                applied = [one for one in reports if one.kind == "window-applied" and one.tables]
                written += [
                    one.write.way for report in applied for one in report.tables if one.write
                ]
                with oracle.owner() as connection:
                    mirror = tmp_path / "lake" / "src" / "mirror" / "demo.t"
                    verdict = compare(connection, "T", ("ID",), mirror, applied[-1].scn_high or 0)
                assert verdict.is_equal, (statements, verdict)
            assert [one.differences for one in pipeline.reconcile().tables] == [0]
    assert written == [way] * 3 + ["append" if vectors == "never" else way]
