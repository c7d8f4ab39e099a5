"""Which windows are read before their turn, and when. No database."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from cdc_core.change_reader import WindowWork
from cdc_core.errors import LogsNotReadyError
from cdc_core.landing.store import LandingStore
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.steps.windows.prefetch import Prefetches

WINDOWS = [ScnWindow(Scn(low), Scn(low + 10)) for low in range(0, 100, 10)]
SECONDS = 60.0


class Redo:
    """What was read of a window."""

    def __init__(self, window: ScnWindow) -> None:
        self.window, self.is_closed = window, False

    def capture_window(self, work: WindowWork, landing: LandingStore) -> None:
        raise AssertionError(f"{work} is captured by nobody here: {landing}")

    def close(self) -> None:
        self.is_closed = True


class Reader:
    """Reads when it is told to; knows how many read at once."""

    def __init__(self) -> None:
        self.given: list[Redo] = []
        self.begun: list[ScnWindow] = []
        self.gate = threading.Event()
        self.gate.set()
        self.failing: set[ScnWindow] = set()
        self.unable: set[ScnWindow] = set()
        self.at_once = self.most = 0
        self._lock = threading.Lock()

    def read(self, window: ScnWindow, stop: threading.Event) -> Redo | None:
        with self._lock:
            self.begun.append(window)
        with self.busy():
            while not self.gate.wait(0.01):
                if stop.is_set():
                    return None
            if window in self.failing:
                raise LogsNotReadyError("not archived yet")
            if window in self.unable:
                return None
            redo = Redo(window)
            with self._lock:
                self.given.append(redo)
            return redo

    @contextmanager
    def busy(self) -> Iterator[None]:
        with self._lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        try:
            yield
        finally:
            with self._lock:
                self.at_once -= 1


def carry(reads: Prefetches, reader: Reader, windows: list[ScnWindow]) -> list[ScnWindow | None]:
    """Capture windows in order; what was there of each."""
    found: list[ScnWindow | None] = []
    for window in windows:
        with reads.turn(window) as redo, reader.busy():
            assert redo is None or isinstance(redo, Redo)
            found.append(redo.window if redo else None)
    return found


@pytest.mark.parametrize("sessions", [2, 3, 4])
def test_windows_get_their_own_redo_in_order_and_sessions_are_never_more(sessions: int) -> None:
    reader = Reader()
    reads = Prefetches(WINDOWS, reader.read, sessions=sessions)
    assert carry(reads, reader, WINDOWS) == [None, *WINDOWS[1:]]
    reads.close()
    assert sorted(reader.begun) == WINDOWS[1:]
    assert reader.most <= sessions
    assert all(one.is_closed for one in reader.given)


def test_the_session_that_captures_is_one_of_them() -> None:
    reader = Reader()
    reader.gate.clear()
    reads = Prefetches(WINDOWS, reader.read, sessions=3)
    with reads.turn(WINDOWS[0]):
        assert reads._busy == 3
        _until(lambda: len(reader.begun) == 2)
    _until(lambda: len(reader.begun) == 3)
    reads.close()


def test_no_more_windows_wait_than_there_are_sessions() -> None:
    reader = Reader()
    reads = Prefetches(WINDOWS, reader.read, sessions=3)
    with reads.turn(WINDOWS[0]):
        _until(lambda: len(reader.given) == 3)
    assert sorted(reader.begun) == WINDOWS[1:4]
    reads.close()
    assert all(one.is_closed for one in reader.given)


def test_who_captures_is_not_kept_waiting_by_windows_further_ahead() -> None:
    """As soon as one session is free it captures, and begins no other window before that."""
    reader = Reader()
    reads = Prefetches(WINDOWS, reader.read, sessions=2)
    carry(reads, reader, WINDOWS[:1])
    _until(lambda: len(reader.given) == 2)
    reader.gate.clear()
    with reads.turn(WINDOWS[1]):
        _until(lambda: len(reader.begun) == 3)
        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(carry, reads, reader, WINDOWS[2:3])
            _until(lambda: reads._claims == 1)
            assert len(reader.begun) == 3
            reader.gate.set()
            assert other.result(SECONDS) == [WINDOWS[2]]
    reads.close()


def test_a_window_that_cannot_be_read_early_is_read_in_its_turn_and_nothing_behind_it_early() -> (
    None
):
    reader = Reader()
    reader.failing = {WINDOWS[2]}
    reads = Prefetches(WINDOWS, reader.read, sessions=2)
    found = carry(reads, reader, WINDOWS)
    reads.close()
    assert found[:3] == [None, WINDOWS[1], None]
    assert found[-4:] == [None] * 4


def test_a_source_that_cannot_read_some_windows_early_reads_others() -> None:
    reader = Reader()
    reader.unable = {WINDOWS[1], WINDOWS[3]}
    reads = Prefetches(WINDOWS, reader.read, sessions=2)
    found = carry(reads, reader, WINDOWS[:5])
    reads.close()
    assert found == [None, None, WINDOWS[2], None, WINDOWS[4]]


def test_what_nobody_captures_is_given_up() -> None:
    """A window that another process has captured is passed over."""
    reader = Reader()
    reads = Prefetches(WINDOWS, reader.read, sessions=2)
    carry(reads, reader, WINDOWS[:1])
    _until(lambda: len(reader.given) == 2)
    found = carry(reads, reader, WINDOWS[3:5])
    reads.close()
    assert found == [None, WINDOWS[4]]
    assert all(one.is_closed for one in reader.given)


def test_the_end_waits_for_those_that_read() -> None:
    reader = Reader()
    reader.gate.clear()
    reads = Prefetches(WINDOWS, reader.read, sessions=4)
    carry(reads, reader, WINDOWS[:1])
    reads.close()
    assert reader.at_once == 0


def test_an_error_of_the_program_is_raised_in_the_window_s_turn() -> None:
    def read(_window: ScnWindow, _stop: threading.Event) -> Redo | None:
        raise ZeroDivisionError

    reads = Prefetches(WINDOWS, read, sessions=2)
    with reads.turn(WINDOWS[0]):
        pass
    with pytest.raises(ZeroDivisionError), reads.turn(WINDOWS[1]):
        pass
    reads.close()


def _until(happened: object) -> None:
    assert callable(happened)
    waited = threading.Event()
    while not happened():
        waited.wait(0.01)
