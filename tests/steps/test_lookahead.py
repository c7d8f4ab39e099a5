"""What goes on side by side, and in which order. No database, no Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from cdc_core.errors import LakeError, LogsNotReadyError
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import StepReport
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.steps.lookahead import carry_chunks, carry_windows

WINDOWS = [ScnWindow(Scn(low), Scn(low + 10)) for low in (0, 10, 20)]
SECONDS = 60.0


class Recorder:
    """Steps that are recorded; one may be told to wait or to fail."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.started: list[str] = []
        self.hooks: dict[str, Callable[[], None]] = {}
        self.lock = threading.Lock()

    def step(self, kind: str) -> Callable[[ScnWindow | ChunkKey], StepReport]:
        def work(key: ScnWindow | ChunkKey) -> StepReport:
            table = f"{key.table.name} " if isinstance(key, ChunkKey) else ""
            name = f"{kind} {table}{key.key}"
            with self.lock:
                self.started.append(name)
            self.hooks.get(name, lambda: None)()
            with self.lock:
                self.done.append(name)
            return StepReport(kind="chunk-applied", key=name, seconds=0.0)

        return work


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def test_a_window_is_captured_while_the_one_before_is_applied(recorder: Recorder) -> None:
    captured = threading.Event()
    recorder.hooks["capture 10-20"] = captured.set
    recorder.hooks["apply 0-10"] = lambda: _must(captured.wait(SECONDS))
    steps = carry_windows(WINDOWS, recorder.step("capture"), recorder.step("apply"))
    names = [step.key for step in steps]
    assert names == [f"{kind} {window.key}" for window in WINDOWS for kind in ("capture", "apply")]
    assert recorder.done.index("capture 10-20") < recorder.done.index("apply 0-10")


def test_what_was_captured_is_applied_before_the_next_window_s_error(recorder: Recorder) -> None:
    recorder.hooks["capture 10-20"] = _failing(LogsNotReadyError("not archived yet"))
    steps = carry_windows(WINDOWS, recorder.step("capture"), recorder.step("apply"))
    seen = _until(LogsNotReadyError, steps)
    assert seen == ["capture 0-10", "apply 0-10"]
    assert "capture 20-30" not in recorder.started


def test_a_failed_apply_ends_after_the_capture_that_was_going_on(recorder: Recorder) -> None:
    failed = threading.Event()

    def fails() -> None:
        failed.set()
        raise LakeError("no space")

    recorder.hooks["apply 0-10"] = fails
    recorder.hooks["capture 10-20"] = lambda: _must(failed.wait(SECONDS))
    with pytest.raises(LakeError):
        list(carry_windows(WINDOWS, recorder.step("capture"), recorder.step("apply")))
    assert recorder.done == ["capture 0-10", "capture 10-20"]


def test_nothing_to_carry(recorder: Recorder) -> None:
    steps = (recorder.step("read"), recorder.step("apply"))
    assert list(carry_windows([], *steps)) == []
    assert list(carry_chunks([], *steps, tables_at_once=2)) == []


def test_tables_go_side_by_side_and_their_chunks_in_order(recorder: Recorder) -> None:
    meeting = threading.Barrier(2)
    recorder.hooks["apply A s1:000000"] = recorder.hooks["apply B s1:000000"] = lambda: _meet(
        meeting
    )
    keys = [_chunk("B", 0), _chunk("A", 1), _chunk("A", 0), _chunk("C", 0), _chunk("A", 2)]
    steps = carry_chunks(keys, recorder.step("read"), recorder.step("apply"), tables_at_once=2)
    assert len(list(steps)) == 2 * len(keys)
    assert [name for name in recorder.done if name.startswith("apply A")] == [
        f"apply A s1:00000{number}" for number in range(3)
    ]
    assert {"apply B s1:000000", "apply C s1:000000"} < set(recorder.done)


def test_the_first_error_ends_all_lanes(recorder: Recorder) -> None:
    recorder.hooks["read A s1:000001"] = _failing(LakeError("no space"))
    keys = [_chunk("A", number) for number in range(3)]
    keys += [_chunk("B", 0), _chunk("C", 0)]
    steps = carry_chunks(keys, recorder.step("read"), recorder.step("apply"), tables_at_once=1)
    seen = _until(LakeError, steps)
    assert seen == ["read A s1:000000", "apply A s1:000000"]
    assert "read B s1:000000" not in recorder.started


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
    recorder.hooks[f"{step} A s1:000001"] = _failing(error)
    keys = [_chunk(table, number) for table in "AB" for number in range(3)]
    steps = carry_chunks(keys, recorder.step("read"), recorder.step("apply"), tables_at_once=2)
    found: list[BaseException] = []
    try:
        list(steps)
    except Exception as raised:
        found.append(raised)
    assert found, "chunks were left unread, and nobody said so"
    assert error in (found[0], found[0].__cause__)


def test_who_stops_listening_stops_the_work(recorder: Recorder) -> None:
    keys = [_chunk(table, number) for table in "ABCDEF" for number in range(3)]
    steps = carry_chunks(keys, recorder.step("read"), recorder.step("apply"), tables_at_once=1)
    gate = threading.Event()
    recorder.hooks["apply A s1:000000"] = lambda: _must(gate.wait(SECONDS))
    next(steps)
    steps.close()  # type: ignore[attr-defined]
    gate.set()
    assert "read B s1:000000" not in recorder.started


def _chunk(table: str, number: int) -> ChunkKey:
    return ChunkKey(TableId("DEMO", table), "s1", number)


def _until(error: type[Exception], steps: Iterator[StepReport]) -> list[str]:
    """The keys of the steps that were yielded before the error."""
    seen: list[str] = []

    def listen() -> None:
        seen.extend(step.key for step in steps)

    with pytest.raises(error):
        listen()
    return seen


def _failing(error: Exception) -> Callable[[], None]:
    def fails() -> None:
        raise error

    return fails


def _must(happened: bool) -> None:
    assert happened, "the other step did not go on meanwhile"


def _meet(barrier: threading.Barrier) -> None:
    barrier.wait(SECONDS)
