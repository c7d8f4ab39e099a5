"""How does a client move freely in the rows of a query?"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from oracle_embedded.api import ColumnMeta, ResultRows, Value

_BATCH = 1000


class Orientation(IntEnum):
    """Where a fetch of a scrollable cursor begins."""

    CURRENT = 0x01
    NEXT = 0x02
    FIRST = 0x04
    LAST = 0x08
    PRIOR = 0x10
    ABSOLUTE = 0x20
    RELATIVE = 0x40


class ScrollRows:
    """The rows of a query, of which all that were read stay in memory. ``position`` is the number
    of the last row given out."""

    def __init__(self, rows: ResultRows) -> None:
        self.columns: Sequence[ColumnMeta] = rows.columns
        self.position = 0
        self._rows = rows
        self._kept: list[Sequence[Value]] = []
        self._is_whole = False

    def seek(self, orientation: int, number: int) -> None:
        """Let the next fetch begin at a row, from 1; at the last one for LAST."""
        if orientation == Orientation.LAST:
            while not self._is_whole:
                self._read_to(len(self._kept) + _BATCH)
            number = max(len(self._kept), 1)
        elif orientation == Orientation.FIRST:
            number = 1
        self.position = max(number - 1, 0)

    def _read_to(self, count: int) -> None:
        while len(self._kept) < count and not self._is_whole:
            wanted = count - len(self._kept)
            batch = self._rows.fetch(wanted)
            self._kept += batch
            self._is_whole = len(batch) < wanted

    def fetch(self, count: int) -> list[Sequence[Value]]:
        """Up to ``count`` further rows."""
        self._read_to(self.position + count)
        found = self._kept[self.position : self.position + count]
        self.position += len(found)
        return found

    def close(self) -> None:
        """Give up the rows."""
        self._rows.close()
        self._kept = []
        self._is_whole = True
