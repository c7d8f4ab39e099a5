"""`redolake plan` says what a snapshot would read, and has no effect on anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cdc_core.model.alerts import LogHeadroom
from cdc_core.model.estimates import SnapshotEstimate, TableEstimate
from cdc_core.model.plans import WindowsPlan, WorkPlan
from cdc_core.model.starts import Decision, RunPlan
from pipelines.cli import app
from pipelines.commands import plan
from tests.oracle.embedded import ADMIN, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id

oracle = oracle_with(
    "CREATE TABLE BIG (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    "INSERT INTO BIG SELECT LEVEL, 'first' FROM DUAL CONNECT BY LEVEL <= 950",
    "CREATE TABLE PARTED (ID NUMBER(9) PRIMARY KEY) PARTITION BY RANGE (ID)"
    " (PARTITION A VALUES LESS THAN (40), PARTITION B VALUES LESS THAN (MAXVALUE))",
    "INSERT INTO PARTED SELECT LEVEL FROM DUAL CONNECT BY LEVEL <= 60",
    "CREATE TABLE LOOSE (A NUMBER(9))",
    "INSERT INTO LOOSE SELECT MOD(LEVEL, 9) FROM DUAL CONNECT BY LEVEL <= 150",
)


@pytest.fixture
def source(oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    snapshot = {"chunk_rows": 100, "sessions": 2}
    with source_of(oracle, tmp_path, snapshot=snapshot) as opened:
        opened.configure(
            "BIG", {"name": "PARTED", "cut": "partition"},
            {"name": "LOOSE", "identity": "rowid"},
        )  # fmt: skip
        monkeypatch.setattr(plan, "opened", lambda *_, **__: nullcontext(opened.pipeline))
        yield opened


def planned(*words: str) -> str:
    said: Result = CliRunner().invoke(app, ["plan", *words])
    assert said.exit_code == 0, said.output
    return said.stdout


def rows(text: str) -> dict[str, list[str]]:
    """The cells of each table."""
    lines = [line.split() for line in text.splitlines() if line.startswith("DEMO.")]
    return {line[0].removeprefix("DEMO."): line[1:] for line in lines if len(line) > 5}


def test_a_plan_says_chunks_and_rows_and_does_nothing(source: Source, tmp_path: Path) -> None:
    said = planned()
    found = rows(said)
    assert {name: cells[:3] for name, cells in found.items()} == {
        "BIG": ["key", "10", "950"],
        "LOOSE": ["rowid", "2", "150"],
        "PARTED": ["rowid", "2", "60"],
    }
    assert "no rate measured yet" in said
    assert "2 sessions" in said
    assert "undo is kept for 900 seconds" in said
    store = source.pipeline.store
    assert store.tables.all() == []
    assert store.chunks.find() == []
    assert store.source.get() is None
    assert not (tmp_path / "landing").exists()
    assert source.lake.calls == []


def test_what_is_left_is_planned_at_the_rate_that_was_measured(
    source: Source, oracle: Oracle
) -> None:
    keys = source.pipeline.start_snapshot()
    for key in [key for key in keys if key.table == table_id("BIG")][:4]:
        source.pipeline.snapshot_chunk(key)
    before = [(one.number, one.state) for one in source.pipeline.store.chunks.find()]
    said = planned()
    found = rows(said)
    assert found["BIG"][:3] == ["key", "6", "570"]
    assert "rows/s a session measured" in said
    assert "one SCN" not in said
    found_by_hand = source.pipeline.estimate_snapshot()
    assert found_by_hand.rows_per_second
    minutes = 570 / found_by_hand.rows_per_second / 60 / 2
    assert found_by_hand.tables[0].minutes == pytest.approx(minutes)
    assert [(one.number, one.state) for one in source.pipeline.store.chunks.find()] == before


def test_tables_that_outlast_the_undo_are_named(
    source: Source, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.pipeline.start_snapshot()
    monkeypatch.setattr(
        "cdc_core.state.chunks.Chunks.reading", lambda *_: {table_id("BIG"): (100, 50.0)}
    )
    oracle.run("ALTER SYSTEM SET UNDO_RETENTION = 240", user=ADMIN)
    said = planned()
    assert "reading takes 290" in said
    assert "DEMO.BIG does not make it" not in said
    assert "DEMO.PARTED does not make it at one SCN: chunks whose undo is gone" in said
    source.close()
    source.more["snapshot"] = {**source.more["snapshot"], "read": "watermarks"}
    source.configure("BIG", "PARTED")
    assert "make it" not in planned(), "a chunk takes less"
    oracle.run("ALTER SYSTEM SET UNDO_RETENTION = 30", user=ADMIN)
    assert "DEMO.BIG is read between watermarks, and a chunk takes longer" in planned()


def test_a_complete_snapshot_leaves_nothing_to_plan_but_named_tables(source: Source) -> None:
    source.run()
    said = planned()
    assert rows(said) == {}
    assert "What breaks first: nothing at this pace" in said
    assert rows(planned("--table", "DEMO.PARTED"))["PARTED"][:3] == ["rowid", "2", "60"]


def test_a_table_that_cannot_be_read_says_why(source: Source) -> None:
    source.configure("BIG", "NOWHERE")
    said = planned()
    assert "DEMO.NOWHERE cannot be read" in said
    assert rows(said)["BIG"][1] == "10"


def test_windows_that_wait_are_planned_with_their_redo_and_tables(
    source: Source, oracle: Oracle, tmp_path: Path
) -> None:
    source.run()
    for number in (960, 961):
        oracle.run(f"INSERT INTO BIG VALUES ({number}, 'new')")
        source.run()
    oracle.run("UPDATE BIG SET V = 'other' WHERE ID < 100")
    found = source.pipeline.plan_work()
    before = source.pipeline.records.windows()
    assert found.windows.to_capture == found.windows.to_apply >= 1
    assert [(one.table, one.changes) for one in found.windows.tables] == [("DEMO.BIG", 2)]
    assert found.headroom is not None
    assert found.headroom.logs >= 1
    assert found.risks == ()
    said = planned()
    assert f"windows: {found.windows.to_capture} to capture" in said
    assert "archived logs: Oracle has deleted none so far" in said
    assert "DEMO.BIG: 2 changes in the last windows" in said
    assert source.pipeline.records.windows() == before


def test_what_breaks_first_is_what_the_numbers_say() -> None:
    work = WindowsPlan(
        to_capture=9, to_apply=9, redo_seconds=36_000, capture_minutes=300, apply_minutes=60,
        pace=0.8, tables=(),
    )  # fmt: skip
    read = SnapshotEstimate(
        tables=(TableEstimate(table="DEMO.BIG", rows=9, minutes=20, ends=20),),
        sessions=1, rows_per_second=1.0, undo_seconds=900,
    )  # fmt: skip
    start = Decision(work="continue", rows=True, streams=True, reason="it was begun")
    plan = WorkPlan(
        run=RunPlan(decision=start, tables=(), windows_waiting=0),
        snapshot=read, windows=work, headroom=LogHeadroom(hours=2.0, logs=4, bytes=1),
    )  # fmt: skip
    first, second, third = plan.risks
    assert first.startswith("archived logs: Oracle deletes the next one in about 2.0 h")
    assert "reading up to the present takes 5.0 h" in first
    assert second.startswith("the lag: the last windows carried 0.80 s")
    assert third.startswith("the undo: DEMO.BIG is read for 1,200 s")
    gone = replace(plan, headroom=LogHeadroom(hours=0.0, logs=4, bytes=1))
    assert "has deleted one" in gone.risks[0]
    enough = replace(plan.windows, pace=50.0, capture_minutes=1.0)
    assert replace(plan, windows=enough, snapshot=replace(read, tables=())).risks == ()
