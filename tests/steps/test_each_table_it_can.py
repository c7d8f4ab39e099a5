"""A command over several tables does those that it can, and names the others with a way out that works."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from cdc_core.errors import NotYetError
from cdc_core.model.identifiers import TableId
from cdc_core.steps import Pipeline
from oracle_embedded.database import ADMIN
from tests.oracle.embedded import OWNER, Oracle, running_oracle

ONE, TWO = TableId(OWNER, "ONE"), TableId(OWNER, "TWO")


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    with running_oracle() as running:
        for name in ("ONE", "TWO"):
            running.run(
                f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
                f"INSERT INTO {name} VALUES (1, 'first')",
            )
        yield running


def _window(oracle: Oracle, pipeline: Pipeline, value: str) -> None:
    for name in ("ONE", "TWO"):
        oracle.run(f"UPDATE {name} SET V = '{value}'")
    oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
    list(pipeline.run_once())


def test_a_paused_table_takes_neither_proof_nor_replay_from_the_others(
    oracle: Oracle, tmp_path: Path
) -> None:
    config = oracle.config(tmp_path, "ONE", "TWO")
    with Pipeline(config) as pipeline:
        list(pipeline.run_once())
        _window(oracle, pipeline, "both")
        pipeline.pause_tables([TWO])
        _window(oracle, pipeline, "one")
        found = pipeline.reconcile()
        assert [(one.table, one.differences) for one in found.tables] == [(str(ONE), 0)]
        [left] = found.left_out
        assert (left.table, "paused" in left.reason) == (str(TWO), True)
        assert "redolake table resume" in left.way_out
        newest = pipeline.records.windows(newest_first=True, limit=1)[0].window
        assert [one.table for one in pipeline.replay_window(newest).left_out] == [str(TWO)]
        with pytest.raises(NotYetError, match="can be replayed"):
            pipeline.replay_window(newest, [TWO])
        alone = pipeline.reconcile([TWO])
        assert (alone.scn < found.scn, alone.differences, alone.left_out) == (True, 0, ())
        assert next(iter(pipeline.repair())).left_out == (left,)
        pipeline.resume_tables([TWO])
        list(pipeline.run_once())
        again = pipeline.reconcile()
        assert (len(again.tables), again.differences, again.left_out) == (2, 0, ())
        assert pipeline.replay_window(newest).left_out == ()


def test_a_cut_names_versions_that_show_oracle_as_of_one_scn(
    oracle: Oracle, tmp_path: Path
) -> None:
    """An ad hoc snapshot that is ahead of the windows takes no older version away; no Spark reads anything."""
    config = oracle.config(tmp_path, "ONE", "TWO", lake={"path": str(tmp_path / "lake")})
    with Pipeline(config) as pipeline:
        list(pipeline.run_once())
        _window(oracle, pipeline, "then")
        then = pipeline.cut_at()
        _window(oracle, pipeline, "now")
        now = pipeline.cut_at()
        for found, value in ((then, "then"), (pipeline.cut_at(then.scn), "then"), (now, "now")):
            assert found.left_out == ()
            for one in found.tables:
                rows = DeltaTable(one.path, version=one.version).to_pyarrow_table()
                assert rows.column("V").to_pylist() == [value], one.table
        oracle.run("UPDATE ONE SET V = 'ahead'", "UPDATE TWO SET V = 'ahead'")
        for key in pipeline.start_snapshot([ONE]):
            pipeline.snapshot_chunk(key)
            pipeline.apply_chunk(key)
        assert pipeline.cut_at() == now, "the version before the chunk"
        assert pipeline.cut_at(then.scn) == then
        [first, _] = pipeline.status(ask_oracle=False).tables
        assert first.consistent_from is not None
        oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
        list(pipeline.run_once())
        assert pipeline.cut_at().left_out == ()
