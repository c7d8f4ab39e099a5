"""How is redo captured ahead of what is applied?

Oracle is read while Spark applies what was read before: the two seldom wait for the same thing.
Windows stay in order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import TypeVar

from cdc_core.model.reports import StepReport
from cdc_core.model.scn import ScnWindow

T = TypeVar("T")
WindowStep = Callable[[ScnWindow], StepReport]


def carry_windows(
    windows: Sequence[ScnWindow], capture: WindowStep, apply: WindowStep
) -> Iterator[StepReport]:
    """Capture and apply windows in order, capturing one ahead; yields each finished step.

    Raises:
        CdcError: A step failed. What was captured before it is applied first.
    """
    ahead = in_background(partial(capture, windows[0])) if windows else None
    for place, window in enumerate(windows):
        assert ahead is not None
        yield ahead.result()
        if place + 1 < len(windows):
            ahead = in_background(partial(capture, windows[place + 1]))
        try:
            report = apply(window)
        except Exception:
            wait([ahead])
            raise
        yield report


def in_background(work: Callable[[], T]) -> Future[T]:
    """Start work in a thread that the end of the process does not wait for: any step may be cut
    short at any moment."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
