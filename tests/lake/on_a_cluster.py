"""Carry a table's life on a Spark cluster, in a process whose Spark is no other's: ``MASTER FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from cdc_core.lake.rows import executors
from cdc_core.spark.session import stop_spark
from cdc_core.spark.tasks import run_tasks
from cdc_core.steps import Pipeline
from tests.invariants.compare import read_delta, version_at
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import table_id

MANY = 30_000
"""More than go to Spark as they are, and more than the driver stages: the executors do."""


def main() -> None:
    """Snapshot, windows, a replay and a comparison, each held against Oracle by the driver and delta-rs alone."""
    master, folder = sys.argv[1], Path(sys.argv[2])
    tasks = counted_tasks()
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))",
            "INSERT INTO ONE SELECT LEVEL, 'first' FROM DUAL CONNECT BY LEVEL <= 1000",
        )
        lake = {
            "path": str(folder / "lake"),
            "spark_master": master,
            "driver_memory": "1g",
            "stage_on_executors_from_rows": MANY // 2,
        }
        memory = {"spark.executor.memory": "768m", "spark.eventLog.enabled": "false"}
        config = oracle.config(folder, "ONE", lake={**lake, "spark_config": memory})
        with Pipeline(config) as pipeline:
            list(pipeline.run_once())
            check(oracle, pipeline, folder)
            oracle.run(
                f"INSERT INTO ONE SELECT 1000 + LEVEL, 'many' FROM DUAL CONNECT BY LEVEL <= {MANY}",
                "UPDATE ONE SET V = 'changed' WHERE ID <= 10",
            )
            oracle.run(
                "DELETE FROM ONE WHERE ID = 5", "UPDATE ONE SET ID = 7 + 100000 WHERE ID = 7"
            )
            list(pipeline.run_once())
            check(oracle, pipeline, folder)
            assert sum(tasks) > 8, "executors staged and reduced the window"
            first = pipeline.records.windows(newest_first=True, limit=1)[0].window
            oracle.run("UPDATE ONE SET V = 'later' WHERE ID IN (6, 2000)")
            list(pipeline.run_once())
            pipeline.replay_window(first)
            check(oracle, pipeline, folder)
            [found] = pipeline.reconcile().tables
            assert (found.differences, found.double_keys_delta) == (0, 0)
            pipeline.rebuild_mirror(table_id("ONE"))
            check(oracle, pipeline, folder)
    stop_spark()
    print("equal")


def counted_tasks() -> list[int]:
    """In how many tasks executors are asked to do something, each time."""
    found: list[int] = []
    original = run_tasks

    def counted(session: Any, count: int, *given: Any, **more: Any) -> list[dict[str, Any]]:
        found.append(count)
        return original(session, count, *given, **more)

    setattr(executors, "run_tasks", counted)  # noqa: B010
    return found


def check(oracle: Oracle, pipeline: Pipeline, folder: Path) -> None:
    """The mirror's version of its position equals Oracle there."""
    record = pipeline.store.tables.get(table_id("ONE"))
    assert record is not None
    assert record.mirror_scn is not None
    mirror = folder / "lake" / "src" / "mirror" / "demo.one"
    found: list[tuple[Any, ...]] = read_delta(
        mirror, ["ID", "V"], version_at(mirror, record.mirror_scn)
    )
    with oracle.owner() as connection:
        query = "SELECT ID, V FROM ONE AS OF SCN :scn"
        rows = connection.cursor().execute(query, scn=record.mirror_scn).fetchall()
    assert sorted((int(key), value) for key, value in found) == sorted(rows)


if __name__ == "__main__":
    main()
