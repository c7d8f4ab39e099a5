"""Which windows' redo is prefetched, and in how many sessions at once?

To read redo takes long and depends on nothing; to land it is quick and goes in order, since the
transactions that are open at the end of one window are the next one's beginning. So the redo of the
next windows is read in sessions of their own while one window is captured, as long as its redo does
not change any more. What cannot be prefetched is read when its turn comes: only then is it an
error.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext

from cdc_core.change_reader import PrefetchedRedo
from cdc_core.errors import CdcError
from cdc_core.model.scn import ScnWindow

_LOG = logging.getLogger(__name__)

Read = Callable[[ScnWindow, threading.Event], PrefetchedRedo | None]


class Prefetches:
    """Reads windows in the given order, ahead of who captures them in that order. Safe for several
    threads.

    At most ``sessions`` read or capture at once, and at most as many windows wait to be captured.

    Args:
        read: Reads a window's redo, until the event is set; None where that cannot be done now.
    """

    def __init__(self, windows: Sequence[ScnWindow], read: Read, *, sessions: int) -> None:
        self._read, self._sessions = read, sessions
        self._windows = deque(windows)
        self._reads: dict[ScnWindow, Future[PrefetchedRedo | None]] = {}
        self._passed: list[Future[PrefetchedRedo | None]] = []
        self._busy = self._claims = 0
        self._changed = threading.Condition()
        self._stop = threading.Event()

    @contextmanager
    def turn(self, window: ScnWindow) -> Iterator[PrefetchedRedo | None]:
        """Hold one of the sessions, to capture this window: with its redo, if that was prefetched.
        Later windows are read meanwhile."""
        with self._changed:
            while self._windows and self._windows[0] <= window:
                self._windows.popleft()
            for passed in [one for one in self._reads if one < window]:
                self._passed.append(self._reads.pop(passed))
                self._passed[-1].add_done_callback(_give_up)
            mine = self._reads.get(window)
        redo = None
        try:
            redo = mine.result() if mine else None
            self._claim(window)
            try:
                yield redo
            finally:
                with self._changed:
                    self._busy -= 1
                    self._begin()
        finally:
            if redo is not None:
                redo.close()

    @property
    def is_closed(self) -> bool:
        """Is no window prefetched any more?"""
        return self._stop.is_set()

    def close(self) -> None:
        """Read no further window, wait until those that are being read have stopped, and give up
        what waits."""
        self._stop.set()
        with self._changed:
            self._windows.clear()
            left, self._reads = self._reads, {}
        wait([*left.values(), *self._passed])
        for one in left.values():
            _give_up(one)

    def _claim(self, window: ScnWindow) -> None:
        """Take a session before any further window is begun: who captures is never kept waiting by
        those that are ahead of it."""
        with self._changed:
            self._claims += 1
            self._changed.wait_for(lambda: self._busy < self._sessions)
            self._claims -= 1
            self._busy += 1
            self._reads.pop(window, None)
            self._begin()

    def _begin(self) -> None:
        """Begin what may be begun; the lock is held."""
        while (
            self._windows
            and not self._claims
            and self._busy < self._sessions
            and len(self._reads) < self._sessions
        ):
            window = self._windows.popleft()
            read = self._reads[window] = Future()
            self._busy += 1
            threading.Thread(
                target=self._run, args=(window, read), name=f"read {window.key}", daemon=True
            ).start()
        self._changed.notify_all()

    def _run(self, window: ScnWindow, read: Future[PrefetchedRedo | None]) -> None:
        redo: PrefetchedRedo | None = None
        error: BaseException | None = None
        try:
            redo = self._read(window, self._stop)
        except (CdcError, OSError) as caught:
            # Whether it lasts is found out in the window's turn; until then nobody is asked for
            # more.
            _LOG.info(
                "a window is read in its turn, not prefetched window=%s: %s", window.key, caught
            )
            with self._changed:
                self._windows.clear()
        except BaseException as caught:
            error = caught
        with self._changed:
            self._busy -= 1
            if error is None:
                read.set_result(redo)
            else:
                read.set_exception(error)
            self._begin()


def _give_up(read: Future[PrefetchedRedo | None]) -> None:
    if read.exception() is None and (redo := read.result()) is not None:
        redo.close()


class RedoTurns:
    """What was read of a source's windows before their turn to be captured, by whichever pass."""

    def __init__(self) -> None:
        self.shared: dict[ScnWindow, PrefetchedRedo] = {}
        """Read in one pass for several sources; who read it closes it."""
        self.prefetches: Prefetches | None = None

    def turn(self, window: ScnWindow) -> AbstractContextManager[PrefetchedRedo | None]:
        """Hold what was read of this window while it is captured; None where nothing was."""
        if (redo := self.shared.get(window)) is not None:
            return nullcontext(redo)
        return nullcontext() if self.prefetches is None else self.prefetches.turn(window)

    def read_no_further(self, window: ScnWindow, error: CdcError) -> bool:
        """Prefetch no window any more, since a session was refused: the database may allow fewer
        than are open. False where that was not why this window failed."""
        if window in self.shared or self.prefetches is None or self.prefetches.is_closed:
            return False
        _LOG.warning("no window is prefetched any more, since a session was refused: %s", error)
        self.prefetches.close()
        return True
