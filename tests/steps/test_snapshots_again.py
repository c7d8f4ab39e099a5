"""Snapshots that meet a mirror with rows, and keys that are none; through the driver, judged by code of another kind."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdc_core.config import SourceConfig
from cdc_core.steps import Pipeline
from tests.invariants.compare import Verdict, compare
from tests.oracle.embedded import Oracle, running_oracle


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with running_oracle() as running:
        running.run(
            "CREATE TABLE T (ID NUMBER PRIMARY KEY, NOTE VARCHAR2(30))",
            *(f"INSERT INTO T VALUES ({i}, 'n{i}')" for i in range(250)),
            "CREATE TABLE G (ID NUMBER(9) PRIMARY KEY, KIND NUMBER(9) NOT NULL, NOTE VARCHAR2(30))",
            *(f"INSERT INTO G VALUES ({i}, {i % 2}, 'secret {i}')" for i in range(4)),
        )
        yield running


def config(oracle: Oracle, path: Path, table: str, **more: Any) -> SourceConfig:
    return oracle.config(path, table, snapshot={"chunk_rows": 100}, **more)


def test_the_metadata_store_is_lost_before_the_first_window(oracle: Oracle, tmp_path: Path) -> None:
    """A new first snapshot, in three chunks, meets the old one's mirror: nothing is doubled, and what is gone goes."""
    with Pipeline(config(oracle, tmp_path, "T")) as pipeline:
        list(pipeline.run_snapshot())
    for file in tmp_path.glob("state.db*"):
        file.unlink()
    shutil.rmtree(tmp_path / "landing")  # with landing, `redolake state rebuild` would be asked for
    oracle.run("DELETE FROM T WHERE ID IN (3, 200)", "UPDATE T SET NOTE = 'changed' WHERE ID < 5")
    with Pipeline(config(oracle, tmp_path, "T")) as pipeline:
        applied = [step for step in pipeline.run_snapshot() if step.kind == "chunk-applied"]
        assert len(applied) == 3
        assert sum(table.rows_deleted for step in applied for table in step.tables) == 2
        oracle.run("INSERT INTO T VALUES (3, 'again')", "DELETE FROM T WHERE ID = 100")
        list(pipeline.run_windows())
        found = pipeline.reconcile()
        assert [one.differences for one in found.tables] == [0]
        [mirror] = (tmp_path / "lake" / "src" / "mirror").iterdir()
        with oracle.owner() as connection:
            verdict = compare(connection, "T", ("ID",), mirror, found.scn)
        assert verdict == Verdict(248, 248, 0, 0, 0, 0)


def test_a_configured_key_that_is_not_unique_stops_the_table(
    oracle: Oracle, tmp_path: Path
) -> None:
    tables = [{"name": "DEMO.G", "key": ["KIND"]}]
    with Pipeline(config(oracle, tmp_path, "G", tables=tables)) as pipeline:
        list(pipeline.run_snapshot())
        [record] = pipeline.store.tables.all()
        assert record.state == "failed"
        assert "key=KIND" in (record.reason or "")
        assert "secret" not in f"{record.reason} {record.way_out}"
    assert not list((tmp_path / "lake" / "src" / "mirror").glob("*/*.parquet"))
