"""How is the next batch fetched while the last one is being worked on?"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from queue import Empty, Full, Queue
from typing import TypeVar

T = TypeVar("T")

_WAIT_SECONDS = 0.1


class _End:
    """Behind the last item: the error that ended them, or None."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def prefetched(items: Iterator[T], *, depth: int = 2) -> Generator[T]:
    """Yield ``items`` in their order, prefetched by a thread that is at most ``depth`` items ahead.

    An error of ``items`` is raised where it occurred. Closing the generator ends the thread, after
    the item that it is waiting for: whoever shares a connection with ``items`` must close it
    (``contextlib.closing``) before using that.
    """
    queue: Queue[T | _End] = Queue(maxsize=depth)
    stop = threading.Event()

    def put(item: T | _End) -> None:
        while not stop.is_set():
            try:
                queue.put(item, timeout=_WAIT_SECONDS)
            except Full:
                continue
            return

    def fetch() -> None:
        error: BaseException | None = None
        try:
            for item in items:
                put(item)
                if stop.is_set():
                    return
        except BaseException as caught:
            error = caught
        put(_End(error))

    thread = threading.Thread(target=fetch, name="prefetch", daemon=True)
    thread.start()
    try:
        while True:
            item = queue.get()
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item
    finally:
        stop.set()
        _empty(queue)
        thread.join()


def _empty(queue: Queue[T]) -> None:
    while True:
        try:
            queue.get_nowait()
        except Empty:
            return
