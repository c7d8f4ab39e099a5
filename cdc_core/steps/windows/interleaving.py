"""While chunks are read, when are windows interleaved for the tables that are ready?

A round of windows costs something for each table of the source, whether anything changed or not.
After each chunk, rounds would cost the square of the number of tables.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

CHUNKS_PER_ROUND = 3
"""Chunks take at least so many times as long as the windows between them."""


class WindowInterleaving:
    """The rounds of windows of one snapshot.

    Args:
        clock: Seconds that pass.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = float("-inf")

    @property
    def is_due(self) -> bool:
        """Is it time for the next round? The first is due at once."""
        return self._clock() >= self._next

    @contextmanager
    def taking_one(self) -> Iterator[None]:
        """Measure a round."""
        began = self._clock()
        try:
            yield
        finally:
            ended = self._clock()
            self._next = ended + CHUNKS_PER_ROUND * (ended - began)
