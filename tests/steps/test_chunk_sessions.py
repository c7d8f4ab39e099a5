"""Chunks that several sessions read at once, of one table too, give the tables that one session gives, whatever happens on the way."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cdc_core.errors import StoreUnavailableError
from cdc_core.landing.fenced import FencedLanding
from cdc_core.model.chunks import ChunkKey
from cdc_core.snapshot.read import read_chunk
from cdc_core.state.captured_tables import CapturedTables
from cdc_core.state.chunks import Chunks
from cdc_core.steps.pipeline import Pipeline
from cdc_core.steps.snapshots import shared as chunk_read
from oracle_embedded.faults import Fault, FaultKind
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id
from tests.steps.memory_lake import MemoryLake

NAMES = ("BIG", "SMALL")
SECONDS = 60.0

oracle = oracle_with(
    *(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))" for name in NAMES),
    "INSERT INTO BIG SELECT LEVEL, 'first' FROM DUAL CONNECT BY LEVEL <= 950",
    "INSERT INTO SMALL SELECT LEVEL, 'first' FROM DUAL CONNECT BY LEVEL <= 150",
)


@contextmanager
def reading(oracle: Oracle, path: Path, sessions: int, *names: str) -> Iterator[Source]:
    snapshot = {"chunk_rows": 100, "sessions": sessions}
    with source_of(oracle, path, *(names or NAMES), snapshot=snapshot) as source:
        yield source


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch, sessions: int) -> list[int]:
    """How many chunks were being read whenever one was begun. The first ones wait for each other."""
    seen: list[int] = []
    busy: list[object] = []
    all_read = threading.Event()
    really = read_chunk

    def counted(*args: Any, **named: Any) -> Any:
        busy.append(args)
        seen.append(len(busy))
        if len(busy) == sessions:
            all_read.set()
        assert all_read.wait(SECONDS)
        try:
            return really(*args, **named)
        finally:
            busy.pop()

    monkeypatch.setattr(chunk_read, "read_chunk", counted)
    return seen


@pytest.mark.parametrize("sessions", [1, 2, 4])
def test_tables_are_equal_under_load_whatever_the_number_of_sessions(
    oracle: Oracle, tmp_path: Path, at_once: list[int], sessions: int
) -> None:
    with reading(oracle, tmp_path, sessions) as source:
        for number, report in enumerate(source.pipeline.run_snapshot()):
            if report.kind == "chunk-landed":
                oracle.run(
                    f"INSERT INTO BIG VALUES ({2000 + number}, 'new')",
                    f"UPDATE BIG SET V = 'v{number}' WHERE MOD(ID, 13) = {number % 13}",
                    f"UPDATE BIG SET ID = {3000 + number} WHERE ID = {1 + 40 * number}",
                    f"DELETE FROM SMALL WHERE ID = {1 + number}",
                )
        assert max(at_once) == sessions
        source.windows()
        source.check_current(*NAMES)


@pytest.mark.parametrize("moment", ["snapshot_chunk", "apply_chunk"])
def test_chunks_give_way_to_those_of_a_newer_snapshot(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The table leaves and comes back while its chunks are under way, as behind a gap."""
    really, begun = getattr(Pipeline, moment), Counter[str]()

    def replanned_first(pipeline: Pipeline, key: ChunkKey, *rest: Any) -> Any:
        begun[key.snapshot_id] += 1
        if len(begun) == 1 and begun[key.snapshot_id] == 2:
            pipeline.resnapshot_tables([key.table])
        return really(pipeline, key, *rest)

    with reading(oracle, tmp_path, 2, "SMALL") as source:
        monkeypatch.setattr(Pipeline, moment, replanned_first)
        source.run()
        assert len(begun) == 2
        assert not source.pipeline.pending_chunks()
        source.check_current("SMALL")


def test_a_session_that_is_lost_is_followed_by_another_one(oracle: Oracle, tmp_path: Path) -> None:
    """ORA-03113 in the middle of two chunks; the others are read meanwhile."""
    with reading(oracle, tmp_path, 4) as source:
        source.pipeline.start_snapshot()
        fault = Fault(FaultKind.LOST_CONNECTION, sql_contains='"BIG" AS OF SCN', nth=2, times=2)
        oracle.server.faults.arm(fault)
        source.run()
        assert fault.seen > fault.times
        source.check_current(*NAMES)


def test_the_error_of_one_session_is_the_run_s_and_what_landed_stays(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = read_chunk

    def fails(*args: Any, **named: Any) -> Any:
        if args[1].number == 4:
            raise StoreUnavailableError("landing is full", hint="Make room.")
        return really(*args, **named)

    with reading(oracle, tmp_path, 3) as source:
        monkeypatch.setattr(chunk_read, "read_chunk", fails)
        with pytest.raises(StoreUnavailableError, match="landing is full"):
            source.run()
        states = [one.state for one in source.pipeline.store.chunks.find(table_id("BIG"))]
        assert states[4] == "planned"
        assert states.count("applied") >= 3
        assert "landed" not in states
        landed = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("rows-*.parquet")}
        source.close()
        monkeypatch.undo()
        source.run()
        source.check_current(*NAMES)
        assert landed == {path: path.stat().st_mtime_ns for path in landed}


@pytest.mark.parametrize("sessions", [3], ids=["three-of-four"])
def test_two_runs_read_chunks_of_one_table_at_once(
    oracle: Oracle, tmp_path: Path, at_once: list[int]
) -> None:
    """As two runs of Dagster do, over partitions of which both have some."""
    with (
        reading(oracle, tmp_path, 2, "BIG") as one,
        reading(oracle, tmp_path, 2, "BIG") as other,
    ):
        other.lake = one.lake
        keys = one.pipeline.start_snapshot()
        with ThreadPoolExecutor(2) as pool:
            mine = pool.submit(lambda: list(one.pipeline.carry_chunks(keys[:6])))
            theirs = pool.submit(lambda: list(other.pipeline.carry_chunks(keys[4:])))
        for found, wanted in ((mine.result(), keys[:6]), (theirs.result(), keys[4:])):
            applied = [report.key for report in found if report.kind == "chunk-applied"]
            assert sorted(applied) == [key.key for key in wanted]
        assert max(at_once) > 2
        one.windows()
        one.check_current("BIG")


class ProcessEndedError(BaseException):
    """The end of the process, so to speak."""


class Kill:
    """Ends a process of several threads at one of its effects: from there on, none of them has
    another one."""

    def __init__(self, at: int) -> None:
        self._at, self._lock = at, threading.Lock()
        self.seen, self.is_dead = 0, False

    def effect(self) -> None:
        """Before or after an effect."""
        with self._lock:
            self.seen += 1
            self.is_dead |= self.seen == self._at
            if self.is_dead:
                raise ProcessEndedError

    def around(self, effect: Callable[..., Any]) -> Callable[..., Any]:
        def killed(*args: Any, **named: Any) -> Any:
            self.effect()
            found = effect(*args, **named)
            self.effect()
            return found

        return killed


_EFFECTS: tuple[tuple[type, str], ...] = (
    (FencedLanding, "write_manifest"),
    (Chunks, "record_landed"),
    (Chunks, "record_applied"),
    (CapturedTables, "finish_snapshot"),
    (MemoryLake, "apply_chunk"),
    (MemoryLake, "delete_missing_keys"),
)


@pytest.mark.parametrize("first", range(8))
def test_a_kill_between_any_two_effects_loses_and_doubles_nothing(
    oracle: Oracle, tmp_path: Path, first: int
) -> None:
    """The run that follows reads and applies what is left. Each case takes every eighth effect,
    the first the last two as well."""
    oracle.run("DELETE FROM BIG WHERE ID > 350")
    with pytest.MonkeyPatch.context() as patch:
        counting = Kill(0)
        killed_snapshot(oracle, tmp_path / "whole", counting, patch)
    assert counting.seen > 30
    ends = range(counting.seen - 1, counting.seen + 1)
    for at in {*range(1 + first, counting.seen, 8), *(ends if first == 0 else ())}:
        with pytest.MonkeyPatch.context() as patch:
            assert killed_snapshot(oracle, tmp_path / str(at), Kill(at), patch)


def killed_snapshot(oracle: Oracle, path: Path, kill: Kill, patch: pytest.MonkeyPatch) -> bool:
    """Read a table in three sessions, until the process ends and another one goes on; has it?"""
    path.mkdir()
    with reading(oracle, path, 3, "BIG") as source:
        source.pipeline.start_snapshot()
        for place, name in _EFFECTS:
            patch.setattr(place, name, kill.around(getattr(place, name)))
        try:
            list(source.pipeline.run_snapshot())
        except ProcessEndedError:
            assert kill.is_dead
        patch.undo()
        source.close()
        oracle.run("INSERT INTO BIG SELECT MAX(ID) + 1, 'later' FROM BIG")
        source.run()
        source.check_current("BIG")
    return kill.is_dead


def test_each_table_is_cut_as_its_entry_says(oracle: Oracle, tmp_path: Path) -> None:
    """In several sessions, while rows move between partitions and ranges."""
    oracle.run(
        "CREATE TABLE PARTED (ID NUMBER(9) PRIMARY KEY, N NUMBER(9)) PARTITION BY RANGE (N)"
        " (PARTITION A VALUES LESS THAN (40), PARTITION B VALUES LESS THAN (MAXVALUE)) ENABLE ROW MOVEMENT",
        "INSERT INTO PARTED SELECT LEVEL, MOD(LEVEL, 80) FROM DUAL CONNECT BY LEVEL <= 600",
    )
    with source_of(oracle, tmp_path, snapshot={"chunk_rows": 100, "sessions": 3}) as source:
        source.configure(
            {"name": "PARTED", "cut": "partition"}, {"name": "BIG", "surrogate_key": "V"}, "SMALL"
        )
        for number, report in enumerate(source.pipeline.run_snapshot()):
            if report.kind == "chunk-landed":
                oracle.run(
                    f"UPDATE PARTED SET N = MOD(N + 37, 80) WHERE MOD(ID, 9) = {number % 9}",
                    f"UPDATE BIG SET V = 'v{number}' WHERE MOD(ID, 7) = {number % 7}",
                )
        source.windows()
        source.check_current("PARTED", "BIG", "SMALL")
        chunks = source.pipeline.store.chunks.find()
        ranges = {name: [one.range for one in chunks if one.table == table_id(name)] for name in ("PARTED", "BIG", "SMALL")}  # fmt: skip
    assert [one["kind"] for one in ranges["PARTED"]] == ["rowid"] * 2
    assert {one["column"] for one in ranges["BIG"]} == {"V"}
    assert all(one.get("column") is None for one in ranges["SMALL"])
