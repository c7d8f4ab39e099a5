"""In which order are chunks read and applied, and what goes on side by side?

Several sessions of Oracle read chunks, of one table too. A chunk is applied when it has landed, in
order of arrival; each table has one commit at a time, and some tables are applied at once. Nothing
depends on the order of a table's chunks: no two of them have a row of one SCN in common, a chunk
of a later SCN wins in either order, and what no chunk has is deleted with whichever is the last.

Memory and disk are bounded: a session begins no chunk while as many chunks as there are sessions
have landed and wait.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, islice
from queue import SimpleQueue

from cdc_core.errors import (
    SnapshotPausedError,
    TableStoppedError,
    TransientError,
    WindowFirstError,
)
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import StepReport
from cdc_core.model.streams import StreamEnd
from cdc_core.steps.lookahead import in_background

_LOG = logging.getLogger("cdc_core.steps")

ChunkStep = Callable[[ChunkKey], StepReport]


def carry_chunks(
    keys: Sequence[ChunkKey],
    read: ChunkStep,
    apply: ChunkStep,
    *,
    sessions: int,
    tables_at_once: int,
    leaves_tables: bool = True,
) -> Iterator[StepReport]:
    """Read chunks in ``sessions`` threads and apply them in ``tables_at_once`` others; yields each
    finished step.

    A table that is stopped by its own trouble yields that, and one whose chunk needs a window
    first, or is paused, waits, as does one whose query Oracle ends for now; the others go on.
    Without ``leaves_tables``, that is an error too.

    Raises:
        CdcError: A step failed: the first error, after the steps that were going on have ended. If
            reading failed, what had landed is applied first.
    """
    board = _Board(keys, sessions, tables_at_once)
    finished: SimpleQueue[StepReport | None] = SimpleQueue()

    def work(next_key: Callable[[], ChunkKey | None], step: ChunkStep, *, reads: bool) -> None:
        try:
            while (key := next_key()) is not None:
                has_landed = False
                try:
                    finished.put(step(key))
                    has_landed = reads
                except (TableStoppedError, WindowFirstError, SnapshotPausedError) as error:
                    if not leaves_tables:
                        board.fail(error, ends_applying=not reads)
                    elif board.leave(key.table, and_landed=_is_over(error) and not reads):
                        _say(key.table, error, finished)
                except BaseException as error:
                    if leaves_tables and type(error) is TransientError:
                        board.postpone(key.table, error)
                    else:
                        is_of_all = not (reads and isinstance(error, Exception))
                        board.fail(error, ends_applying=is_of_all)
                finally:
                    board.ended(key, has_landed=has_landed)
        finally:
            finished.put(None)

    readers = min(sessions, len(keys))
    appliers = min(tables_at_once, len({key.table for key in keys}))
    for _ in range(readers):
        in_background(lambda: work(board.next_unread, read, reads=True))
    for _ in range(appliers):
        in_background(lambda: work(board.next_landed, apply, reads=False))
    try:
        for _ in range(readers + appliers):
            while (report := finished.get()) is not None:
                yield report
    finally:
        board.stop()
    if (error := board.error or board.postponed) is not None:
        raise error


def _is_over(error: Exception) -> bool:
    return isinstance(error, TableStoppedError)


def _say(table: TableId, error: Exception, finished: SimpleQueue[StepReport | None]) -> None:
    if not isinstance(error, TableStoppedError):
        _LOG.warning("the chunks of a table wait: %s", error)
        return
    end = StreamEnd(table, 0, error.message, error.hint)
    finished.put(
        StepReport(kind="table-stopped", key=str(table), seconds=0.0, table=table, stopped=(end,))
    )


class _Board:
    """Which chunk is next? One board for all threads; each waits here while nothing is to do."""

    def __init__(self, keys: Sequence[ChunkKey], sessions: int, tables_at_once: int) -> None:
        tables = [deque(same) for _, same in groupby(sorted(keys), key=lambda key: key.table)]
        tables.sort(key=len, reverse=True)
        self._unread = {same[0].table: same for same in tables}
        self._landed: list[ChunkKey] = []
        self._in_flight: Counter[TableId] = Counter()
        self._reading: set[ChunkKey] = set()
        self._applying: set[TableId] = set()
        self._left: set[TableId] = set()
        self._stopped: set[TableId] = set()
        self._sessions, self._tables_at_once = sessions, tables_at_once
        self._changed = threading.Condition()
        self._is_stopped = False
        self.error: BaseException | None = None
        self.postponed: Exception | None = None

    def next_unread(self) -> ChunkKey | None:
        """The next chunk to read, of the table with the fewest under way among those that are
        carried at once; None if no more are read."""
        with self._changed:
            while self._unread and not self._is_stopped:
                if len(self._landed) < self._sessions:
                    at_once = islice(self._unread, self._tables_at_once)
                    table = min(at_once, key=self._in_flight.__getitem__)
                    key = self._unread[table].popleft()
                    if not self._unread[table]:
                        del self._unread[table]
                    self._in_flight[table] += 1
                    self._reading.add(key)
                    return key
                self._changed.wait()
            return None

    def next_landed(self) -> ChunkKey | None:
        """The chunk that landed first among those of tables without one being applied; None if no
        more come."""
        with self._changed:
            while not self._is_stopped:
                for key in self._landed:
                    if key.table not in self._applying:
                        self._landed.remove(key)
                        self._applying.add(key.table)
                        self._changed.notify_all()
                        return key
                if not (self._landed or self._unread or self._reading):
                    return None
                self._changed.wait()
            return None

    def ended(self, key: ChunkKey, *, has_landed: bool) -> None:
        """A step on a chunk has ended; one that ``has_landed`` is to be applied."""
        with self._changed:
            if key in self._reading:
                self._reading.remove(key)
            else:
                self._applying.remove(key.table)
            if has_landed and key.table not in self._stopped:
                self._landed.append(key)
            else:
                self._in_flight[key.table] -= 1
            self._changed.notify_all()

    def leave(self, table: TableId, *, and_landed: bool) -> bool:
        """Read no more chunks of a table, and perhaps apply none; is that new?"""
        with self._changed:
            self._unread.pop(table, None)
            if and_landed:
                self._stopped.add(table)
                self._landed = [key for key in self._landed if key.table != table]
            is_new = table not in self._left
            self._left.add(table)
            return is_new

    def postpone(self, table: TableId, error: Exception) -> None:
        """Read no more chunks of a table for now; the error is told when the others are done."""
        self.leave(table, and_landed=False)
        with self._changed:
            self.postponed = self.postponed or error

    def fail(self, error: BaseException, *, ends_applying: bool) -> None:
        """Begin no more reading, and perhaps no more applying."""
        with self._changed:
            self.error = self.error or error
            self._unread.clear()
            self._is_stopped |= ends_applying
            self._changed.notify_all()

    def stop(self) -> None:
        """Begin nothing more."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
