"""In which order are chunks and windows carried, and what goes on side by side?

Oracle is read ahead while Spark applies what was read before: the two seldom wait for the same
thing. Windows stay in order; so do the chunks of a table, while some tables are carried side by
side.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from functools import partial
from itertools import groupby
from queue import Empty, SimpleQueue
from typing import TypeVar

from cdc_core.errors import SnapshotPausedError, TableStoppedError, WindowFirstError
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import StepReport
from cdc_core.model.scn import ScnWindow
from cdc_core.model.streams import StreamEnd

_LOG = logging.getLogger("cdc_core.steps")
T = TypeVar("T")
Key = TypeVar("Key", ChunkKey, ScnWindow)
Step = Callable[[Key], StepReport]


def carry_windows(
    windows: Sequence[ScnWindow], capture: Step[ScnWindow], apply: Step[ScnWindow]
) -> Iterator[StepReport]:
    """Capture and apply windows in order, capturing one ahead; yields each finished step.

    Raises:
        CdcError: A step failed. What was captured before it is applied first.
    """
    yield from _one_ahead(windows, capture, apply, threading.Event())


def carry_chunks(
    keys: Sequence[ChunkKey],
    read: Step[ChunkKey],
    apply: Step[ChunkKey],
    *,
    tables_at_once: int,
) -> Iterator[StepReport]:
    """Read and apply chunks, some tables side by side, reading one chunk of each ahead; yields each
    finished step.

    A table that is stopped by its own trouble yields that, and one whose chunk needs a window
    first, or is paused, waits; the others go on.

    Raises:
        CdcError: A step failed: the first error, after the steps that were going on have ended.
    """
    ordered = sorted(keys)
    tables = [list(same) for _, same in groupby(ordered, key=lambda key: key.table)]
    waiting: SimpleQueue[list[ChunkKey]] = SimpleQueue()
    for same in sorted(tables, key=len, reverse=True):
        waiting.put(same)
    finished: SimpleQueue[StepReport | None] = SimpleQueue()
    stop = threading.Event()

    def lane() -> None:
        try:
            while (keys := _next_of(waiting)) is not None and not stop.is_set():
                try:
                    for report in _one_ahead(keys, read, apply, stop):
                        finished.put(report)
                except TableStoppedError as error:
                    finished.put(_stopped(keys[0].table, error))
                except (WindowFirstError, SnapshotPausedError) as error:
                    _LOG.warning("the chunks of a table wait: %s", error)
        except BaseException:
            stop.set()
            raise
        finally:
            finished.put(None)

    lanes = [_in_background(lane) for _ in range(min(tables_at_once, len(tables)))]
    try:
        for _ in lanes:
            while (report := finished.get()) is not None:
                yield report
    finally:
        stop.set()
    for ended in lanes:
        ended.result()


def _next_of(waiting: SimpleQueue[list[ChunkKey]]) -> list[ChunkKey] | None:
    """The next table's chunks; None where another lane took the last ones."""
    try:
        return waiting.get_nowait()
    except Empty:
        return None


def _stopped(table: TableId, error: TableStoppedError) -> StepReport:
    end = StreamEnd(table, 0, error.message, error.hint)
    return StepReport(
        kind="table-stopped", key=str(table), seconds=0.0, table=table, stopped=(end,)
    )


def _one_ahead(
    keys: Sequence[Key], read: Step[Key], apply: Step[Key], stop: threading.Event
) -> Iterator[StepReport]:
    ahead = _in_background(partial(read, keys[0])) if keys else None
    for place, key in enumerate(keys):
        assert ahead is not None
        yield ahead.result()
        if stop.is_set():
            return
        if place + 1 < len(keys):
            ahead = _in_background(partial(read, keys[place + 1]))
        try:
            report = apply(key)
        except Exception:
            wait([ahead])
            raise
        yield report


def _in_background(work: Callable[[], T]) -> Future[T]:
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
