"""Spark reads one cut by views, and a change log as a stream: each row once, whatever happened between its triggers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from cdc_core.model.identifiers import TableId
from cdc_core.steps import Pipeline
from oracle_embedded.database import ADMIN
from oracle_embedded.faults import Fault, FaultKind
from tests.jvm import small_session
from tests.oracle.embedded import OWNER, Oracle, running_oracle
from tests.steps.test_late_commits import second_instance

pytestmark = pytest.mark.spark
ONE = f"{OWNER}.ONE"


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    """A table of one row, and a second instance."""
    with running_oracle(threads=2) as running:
        running.run(
            "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
            "INSERT INTO ONE VALUES (1, 'first')",
        )
        yield running


def _window(oracle: Oracle, pipeline: Pipeline, *statements: str) -> int:
    oracle.run(*statements)
    oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
    list(pipeline.run_once())
    return pipeline.records.windows(newest_first=True, limit=1)[0].window.scn_high


def test_a_stream_of_a_change_log_gets_each_row_once_and_views_show_one_moment(
    oracle: Oracle, tmp_path: Path, spark_process: None
) -> None:
    """Windows, a late commit, a replay, a snapshot and compaction come between the triggers."""
    config = oracle.config(tmp_path, "ONE")
    with Pipeline(config) as pipeline:
        list(pipeline.run_once())
        spark = small_session(config.lake)
        changelog = tmp_path / "lake" / "src" / "changelog" / "demo.one"
        target = tmp_path / "target"

        def trigger() -> list[str]:
            before = _rows(target) if target.exists() else []
            stream = spark.readStream.format("delta").load(str(changelog))
            written = (
                stream.writeStream.format("delta")
                .option("checkpointLocation", str(tmp_path / "checkpoint"))
                .trigger(availableNow=True)
                .start(str(target))
            )
            written.awaitTermination()
            after = _rows(target)
            assert len(set(after)) == len(after), "no row twice"
            return sorted(text for *_, text in set(after) - set(before))

        first = _window(oracle, pipeline, "UPDATE ONE SET V = 'second'")
        assert trigger() == ["r first", "u second"]
        late = second_instance(oracle)
        late.cursor().execute("INSERT INTO ONE VALUES (2, 'late')")
        late.commit()
        oracle.server.faults.arm(Fault(FaultKind.SHORT_READ))
        _window(oracle, pipeline, "UPDATE ONE SET V = 'third' WHERE ID = 1")
        got = trigger()
        _window(oracle, pipeline, "UPDATE ONE SET V = 'fourth' WHERE ID = 1")
        [replayed] = [one for one in pipeline.records.windows() if one.window.scn_high == first]
        pipeline.replay_window(replayed.window)
        for scn, values in ((first, ["second"]), (None, ["fourth", "late"])):
            for sql in pipeline.cut_sql(pipeline.cut_at(scn), "spark"):
                spark.sql(sql)
            found = spark.sql("SELECT V FROM demo_one ORDER BY V").collect()
            assert [row.V for row in found] == values
        for key in pipeline.start_snapshot([TableId.parse(ONE)]):
            pipeline.snapshot_chunk(key)
            pipeline.apply_chunk(key)
        list(pipeline.maintain())
        got += trigger()
        assert sorted(got) == ["c late", "r fourth", "r late", "u fourth", "u third"]
        assert sorted(_rows(changelog)) == sorted(_rows(target))


def _rows(path: Path) -> list[tuple[Any, ...]]:
    """Of a change log or a copy of it, by delta-rs."""
    return [
        (
            row["_cdc_commit_scn"],
            row["_cdc_ordinal"],
            row["_cdc_snapshot"] or "",
            f"{row['_cdc_op']} {row['after']['V']}",
        )
        for row in DeltaTable(str(path)).to_pyarrow_table().to_pylist()
    ]
