"""Which chunks are read and applied side by side, and in which order. No database, no Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from cdc_core.errors import (
    LakeError,
    SnapshotPausedError,
    TableStoppedError,
    TransientError,
    WindowFirstError,
)
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import StepReport
from cdc_core.steps.snapshots.carrying import carry_chunks
from tests.steps.recorder import SECONDS, Recorder, failing, must, until


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def carry(
    recorder: Recorder, keys: Sequence[ChunkKey], sessions: int = 1, at_once: int = 1, **more: Any
) -> Iterator[StepReport]:
    return carry_chunks(
        keys,
        recorder.step("read"),
        recorder.step("apply"),
        sessions=sessions,
        tables_at_once=at_once,
        **more,
    )


def chunk(table: str, number: int) -> ChunkKey:
    return ChunkKey(TableId("DEMO", table), "s1", number)


def chunks(table: str, count: int) -> list[ChunkKey]:
    return [chunk(table, number) for number in range(count)]


def named(step: str, table: str, number: int) -> str:
    return f"{step} {table} {chunk(table, number).key}"


def of(step: str, names: Sequence[str]) -> list[str]:
    return [name for name in names if name.startswith(step)]


def test_nothing_to_carry(recorder: Recorder) -> None:
    assert list(carry(recorder, [], 2, 2)) == []


def test_chunks_of_one_table_are_read_by_several_sessions(recorder: Recorder) -> None:
    meeting = threading.Barrier(4)
    for number in range(4):
        recorder.hooks[named("read", "A", number)] = lambda: _meet(meeting)
    assert len(list(carry(recorder, chunks("A", 9), 4))) == 18


def test_chunks_are_applied_in_order_of_arrival_and_one_at_a_time(recorder: Recorder) -> None:
    others = threading.Event()
    recorder.hooks[named("read", "A", 0)] = lambda: must(others.wait(SECONDS))
    busy = threading.Lock()

    def alone() -> None:
        must(busy.acquire(blocking=False))
        others.wait(0.001)
        busy.release()

    def last() -> None:
        others.set()
        alone()

    for number in range(5):
        recorder.hooks[named("apply", "A", number)] = last if number == 2 else alone
    steps = [report.key for report in carry(recorder, chunks("A", 5), 2, at_once=2)]
    applied = of("apply", steps)
    assert sorted(applied) == [named("apply", "A", number) for number in range(5)]
    assert applied.index(named("apply", "A", 2)) < applied.index(named("apply", "A", 0))
    for number in range(5):
        assert steps.index(named("read", "A", number)) < steps.index(named("apply", "A", number))


def test_a_session_waits_while_as_many_chunks_have_landed(recorder: Recorder) -> None:
    """While one is applied, each of two sessions reads one ahead, and one more at most."""
    gate = threading.Event()
    for number in range(12):
        recorder.hooks[named("apply", "A", number)] = lambda: must(gate.wait(SECONDS))
    steps = carry(recorder, chunks("A", 12), 2)
    seen = [next(steps).key for _ in range(3)]
    gate.wait(0.2)
    assert 3 <= len(of("read", recorder.started)) <= 4
    gate.set()
    seen += [report.key for report in steps]
    assert len(of("apply", seen)) == 12


def test_tables_are_applied_side_by_side(recorder: Recorder) -> None:
    meeting = threading.Barrier(2)
    for table in "AB":
        recorder.hooks[named("apply", table, 0)] = lambda: _meet(meeting)
    keys = [*chunks("A", 3), *chunks("B", 1), *chunks("C", 1)]
    assert len(list(carry(recorder, keys, 2, at_once=2))) == 2 * len(keys)
    assert set(of("apply A", recorder.done)) == {named("apply", "A", number) for number in range(3)}
    assert {named("apply", "B", 0), named("apply", "C", 0)} < set(recorder.done)


def test_sessions_are_shared_by_the_tables_that_are_carried_at_once(recorder: Recorder) -> None:
    other = threading.Event()
    recorder.hooks[named("apply", "A", 0)] = lambda: must(other.wait(SECONDS))
    recorder.hooks[named("read", "B", 0)] = other.set
    keys = [*chunks("A", 4), *chunks("B", 4), *chunks("C", 1)]
    assert len(list(carry(recorder, keys, 1, at_once=2))) == 2 * len(keys)
    tables = [name.split()[1] for name in of("read", recorder.started)]
    assert tables.index("C") > 4


@pytest.mark.parametrize("sessions", [1, 2, 4])
def test_what_landed_is_applied_before_the_error_of_a_session(
    recorder: Recorder, sessions: int
) -> None:
    recorder.hooks[named("read", "A", 1)] = failing(LakeError("no space"))
    seen = until(LakeError, carry(recorder, [*chunks("A", 30), *chunks("B", 20)], sessions))
    assert {name.replace("read", "apply") for name in of("read", seen)} == set(of("apply", seen))
    assert len(of("read", recorder.started)) < 50


def test_after_an_error_of_applying_nothing_more_is_begun(recorder: Recorder) -> None:
    fail_at_second(recorder, LakeError("no space"))
    seen = until(LakeError, carry(recorder, chunks("A", 30), 2))
    assert len(of("apply", seen)) == 1
    assert len(of("read", recorder.started)) < 8


def fail_at_second(recorder: Recorder, error: Exception) -> None:
    """Of the table's chunks, which two sessions read, whichever is applied second."""
    begun: list[int] = []

    def second_fails(number: int) -> None:
        begun.append(number)
        if len(begun) == 2:
            raise error

    for number in range(30):
        recorder.hooks[named("apply", "A", number)] = partial(second_fails, number)


@pytest.mark.parametrize("step", ["read", "apply"])
@pytest.mark.parametrize(
    "error",
    [IndexError("out of bounds"), pa.ArrowIndexError("index 7"), KeyError("x"), StopIteration()],
    ids=lambda error: type(error).__name__,
)
def test_no_error_of_a_step_is_taken_for_the_end_of_the_work(
    recorder: Recorder, step: str, error: Exception
) -> None:
    """Least of all those that Python's own collections raise when they are empty."""
    recorder.hooks[named(step, "A", 1)] = failing(error)
    found: list[BaseException] = []
    try:
        list(carry(recorder, [*chunks("A", 3), *chunks("B", 3)], 2, at_once=2))
    except Exception as raised:
        found.append(raised)
    assert found, "chunks were left unread, and nobody said so"
    assert error in (found[0], found[0].__cause__)


def test_who_stops_listening_stops_the_work(recorder: Recorder) -> None:
    keys = [one for table in "ABCDEF" for one in chunks(table, 3)]
    gate = threading.Event()
    recorder.hooks[named("apply", "A", 0)] = lambda: must(gate.wait(SECONDS))
    steps = carry(recorder, keys)
    next(steps)
    steps.close()  # type: ignore[attr-defined]
    gate.set()
    assert named("read", "B", 0) not in recorder.started


@pytest.mark.parametrize(
    "error", [WindowFirstError("a DDL"), SnapshotPausedError("paused")], ids=["window", "pause"]
)
def test_a_table_that_waits_reads_no_more_and_applies_what_landed(
    recorder: Recorder, error: Exception
) -> None:
    recorder.hooks[named("read", "A", 2)] = failing(error)
    seen = [report.key for report in carry(recorder, [*chunks("A", 9), *chunks("B", 2)])]
    assert of("apply A", seen) == [named("apply", "A", number) for number in range(2)]
    assert len(of("apply B", seen)) == 2


@pytest.mark.parametrize("sessions", [1, 4])
def test_a_table_that_stops_is_told_once_and_keeps_nobody_from_going_on(
    recorder: Recorder, sessions: int
) -> None:
    for number in range(2, 9):
        error = TableStoppedError("undecodable", hint="Mend it.")
        recorder.hooks[named("read", "A", number)] = failing(error)
    reports = list(carry(recorder, [*chunks("A", 9), *chunks("B", 8)], sessions, at_once=2))
    [stopped] = [report for report in reports if report.kind == "table-stopped"]
    assert (stopped.table, stopped.stopped[0].reason) == (TableId("DEMO", "A"), "undecodable")
    keys = [report.key for report in reports]
    assert len(of("apply B", keys)) == 8
    assert set(of("apply A", keys)) == {named("apply", "A", 0), named("apply", "A", 1)}


def test_of_a_table_that_applying_stopped_nothing_more_is_applied(recorder: Recorder) -> None:
    fail_at_second(recorder, TableStoppedError("double keys"))
    keys = [report.key for report in carry(recorder, [*chunks("A", 9), *chunks("B", 2)], 2)]
    assert len(of("apply A", keys)) == 1
    assert len(of("apply B", keys)) == 2


@pytest.mark.parametrize("error", [TableStoppedError("stopped"), WindowFirstError("a DDL")])
def test_where_no_table_may_be_left_its_trouble_is_the_error(
    recorder: Recorder, error: Exception
) -> None:
    recorder.hooks[named("read", "A", 1)] = failing(error)
    seen = until(type(error), carry(recorder, chunks("A", 5), leaves_tables=False))
    assert seen == [named("read", "A", 0), named("apply", "A", 0)]


@pytest.mark.parametrize("seed", range(20))
def test_each_chunk_is_carried_once_whatever_the_steps_take(recorder: Recorder, seed: int) -> None:
    rng = Random(seed)
    keys = [one for table in "ABCD" for one in chunks(table, rng.randint(1, 9))]
    for key in keys:
        for step in ("read", "apply"):
            seconds = rng.choice((0.0, 0.0, 0.002))
            recorder.hooks[named(step, key.table.name, key.number)] = partial(time.sleep, seconds)
    steps = carry(recorder, keys, rng.randint(1, 5), at_once=rng.randint(1, 3))
    seen = [report.key for report in steps]
    assert len(seen) == len(set(seen)) == 2 * len(keys)


def _meet(barrier: threading.Barrier) -> None:
    barrier.wait(SECONDS)


def test_a_table_whose_query_is_ended_for_now_waits_alone(recorder: Recorder) -> None:
    """By a limit of a profile, which smaller tables do not meet."""
    limit = TransientError("a limit of the database for one call was reached")
    recorder.hooks[named("read", "A", 1)] = failing(limit)
    until(TransientError, carry(recorder, [*chunks("A", 4), *chunks("B", 3)]))
    assert of("apply B", recorder.done) == [named("apply", "B", number) for number in range(3)]
    assert of("apply A", recorder.done) == [named("apply", "A", 0)]
