"""Sources of many tables: what a run costs grows with their number, and no faster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cdc_core.errors import PreflightError
from cdc_core.landing.kept import kept_applied, kept_revisions
from cdc_core.model.identifiers import TableId
from cdc_core.steps.windows.interleaving import CHUNKS_PER_ROUND, WindowInterleaving
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import Source, source_of, table_id

OF_A_CHUNK = 30
"""Queries that each table may cost in its first run: its definition now and as of the chunk's SCN, its rights, its chunks and their rows."""


@contextmanager
def _of_many(path: Path, count: int) -> Iterator[tuple[Oracle, Source, list[str]]]:
    """A source of so many tables, of which the statements that it sends are listed."""
    with running_oracle() as oracle:
        oracle.run(
            *(f"CREATE TABLE T{n} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))" for n in range(count))
        )
        with source_of(oracle, path) as source:
            source.configure({"name": "*"})
            sent = source.asked()
            yield oracle, source, sent


def test_a_table_more_costs_the_queries_of_its_own_chunk(tmp_path: Path) -> None:
    """Definitions, segments, keys, rights and settings are asked for all tables at once, and windows do not come behind each chunk."""
    counts = []
    for tables in (3, 15):
        with _of_many(tmp_path / str(tables), tables) as (_, source, sent):
            planned = source.pipeline.start_snapshot()
            assert len(planned) == tables
            before = len(sent)
            source.run()
            counts.append((before, len(sent)))
            source.check_current(*(f"T{n}" for n in range(tables)))
    (planned_few, few), (planned_many, many) = counts
    assert planned_many - planned_few <= 12 * 5, (
        "planning asks of each table what it may ask of all"
    )
    assert many - few <= 12 * OF_A_CHUNK


def test_a_step_of_a_chunk_keeps_its_own_table_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Landing gets what a lost store is made of behind each step; of a chunk's, nothing is asked that grows with the number of tables."""
    with _of_many(tmp_path, 3) as (_, source, _sent):
        pipeline = source.pipeline
        chunk, *_ = pipeline.start_snapshot()
        store, landing = pipeline.store, pipeline.landing
        before = kept_revisions(landing, "src")
        asked: list[TableId | None] = []
        snapshots = store.chunks.snapshots

        def asked_of(table: TableId | None = None) -> dict[tuple[TableId, str], bool]:
            asked.append(table)
            return snapshots(table)

        with monkeypatch.context() as patched:
            patched.setattr(store.chunks, "snapshots", asked_of)
            patched.setattr(store.tables, "revisions", None)
            pipeline.snapshot_chunk(chunk)
            pipeline.apply_chunk(chunk)
        assert set(asked) == {chunk.table}
        kept = kept_revisions(landing, "src")
        record = source.record(chunk.table.name)
        assert record.state == "ready"
        assert kept[chunk.table.path] == record.revision > before[chunk.table.path]
        assert {name for name in kept if kept[name] != before[name]} == {chunk.table.path}
        applied = kept_applied(landing, "src")
        assert applied == {(chunk.table.path, chunk.snapshot_id)}
        source.run()
        source.check_current("T0", "T1", "T2")


def test_one_table_that_cannot_join_keeps_no_other_from_it(tmp_path: Path) -> None:
    """What is read for all of them at once tells which one is refused, and why."""
    with _of_many(tmp_path, 3) as (oracle, source, _):
        source.run()
        oracle.run(
            "CREATE TABLE NEW1 (ID NUMBER(9) PRIMARY KEY)",
            "CREATE TABLE NEW2 (ID NUMBER(9))",
            "CREATE TABLE NEW3 (ID NUMBER(9) PRIMARY KEY)",
        )
        source.configure("T0", "T1", "T2", "NEW1", "NEW2", "NEW3")
        source.run()
        source.check_current("T0", "NEW1", "NEW3")
        refused = source.record("NEW2")
        assert refused.state == "failed"
        assert "key" in (refused.reason or "")
        with pytest.raises(PreflightError, match="NEW2"):
            source.pipeline.check()


def test_rounds_take_their_share_of_the_time() -> None:
    """The first is due at once; the next when chunks took long enough beside it."""
    now = 100.0
    rounds = WindowInterleaving(lambda: now)
    assert rounds.is_due
    with rounds.taking_one():
        now += 2
    assert not rounds.is_due
    now += 2 * CHUNKS_PER_ROUND - 1
    assert not rounds.is_due
    now += 1
    assert rounds.is_due
    with rounds.taking_one():
        pass
    assert rounds.is_due


@pytest.mark.slow
def test_more_tables_than_one_list_holds(tmp_path: Path) -> None:
    """1,001 tables join, take one window with changes in three of them, and go on after a restart."""
    with _of_many(tmp_path, 1001) as (oracle, source, _):
        source.run()
        assert {one.state for one in source.pipeline.records.tables()} == {"ready"}
        names = ["T0", "T500", "T1000"]
        oracle.run(*(f"INSERT INTO {name} VALUES (1, 'new')" for name in names))
        source.run()
        source.check_current(*names, "T7")
        assert len(source.lake.image(table_id("T1000"))) == 1
        source.close()
        oracle.run("UPDATE T500 SET V = 'newer'")
        source.run()
        source.check_current(*names)
