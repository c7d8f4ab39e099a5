"""What becomes of a block that does not end? It is interrupted, and the error says where everybody is.

A worker that hangs, a lock that nobody gives back, a pipe that nobody reads: without a bound each would look like a slow machine. The
bounds are far beyond what anything takes on a machine that has other things to do, and are no measure of speed.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from tests.invariants.points import LakeKind

EVENT_SECONDS_MAX: dict[LakeKind, float] = {"kept": 300, "delta": 600}
"""For one event of a life, its beginning, its end, and its comparison."""
ANSWER_SECONDS_MAX = 300
"""For one answer of a worker."""
SERVER_SECONDS_MAX = 120
"""For the embedded Oracle to start, and to answer what the harness tells it."""
LIFE_SECONDS_MAX = 3600
"""For one life in a process of its own."""


class HungError(AssertionError):
    """Something did not end within its bound."""


@contextmanager
def deadline(seconds: float, describe: Callable[[], str] = lambda: "") -> Iterator[None]:
    """Interrupt the block if it has not ended by then; in the main thread alone, whose blocking calls a signal interrupts.

    Args:
        seconds: The bound.
        describe: Says where everybody is; called when the block is interrupted.

    Raises:
        HungError: The block was interrupted.
    """
    main, over = threading.main_thread().ident, threading.Event()

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        if not over.is_set():
            over.set()
            raise HungError(f"no end within {seconds:.0f} seconds; {describe()}")

    def wait() -> None:
        if not over.wait(seconds) and main is not None:
            signal.pthread_kill(main, signal.SIGUSR2)

    before = signal.signal(signal.SIGUSR2, interrupt)
    watch = threading.Thread(target=wait, daemon=True, name="deadline")
    watch.start()
    try:
        yield
    finally:
        over.set()
        watch.join()
        signal.signal(signal.SIGUSR2, before)
