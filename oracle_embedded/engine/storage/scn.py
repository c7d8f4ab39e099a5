"""How do SCNs grow, and which SCN was current at which time?"""

from __future__ import annotations

import bisect
import sqlite3
import time
from collections.abc import Callable

_SCN_FIRST = 1_500_000
_RESERVE = 100_000
_ENTRY_SECONDS = 3.0
_MAP_ENTRIES_MAX = 200_000
_MAPPED_SECONDS = 5 * 86_400.0
"""Oracle remembers which SCN was current when "for a limited period of time", some five days (SQL
Language Reference 19c, SCN_TO_TIMESTAMP)."""


class ScnClock:
    """The counter. Every call happens under the writer's lock, but for reading ``value``.

    SCNs above the persisted ceiling are never given out, so that a killed process cannot give one
    out twice.
    """

    def __init__(
        self, connection: sqlite3.Connection, now: Callable[[], float] = time.time
    ) -> None:
        self._connection = connection
        self._now = now
        connection.execute("CREATE TABLE IF NOT EXISTS scn_ceiling (value INTEGER NOT NULL)")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS scn_time (scn INTEGER PRIMARY KEY, at REAL NOT NULL)"
        )
        row = connection.execute("SELECT value FROM scn_ceiling").fetchone()
        self.value: int = row[0] if row else _SCN_FIRST
        if row is None:
            connection.execute("INSERT INTO scn_ceiling VALUES (?)", (self.value,))
        self._ceiling = self.value
        self._scns: list[int] = []
        self._times: list[float] = []
        for scn, at in connection.execute("SELECT scn, at FROM scn_time ORDER BY scn"):
            self._scns.append(scn)
            self._times.append(at)
        self._ticked = now()
        self._saved = len(self._scns)
        self.next()

    def next(self) -> int:
        """Take the next SCN."""
        self.value += 1
        at = self._now()
        if not self._times or at - self._times[-1] >= _ENTRY_SECONDS:
            self._scns.append(self.value)
            self._times.append(at)
        return self.value

    def tick(self) -> int:
        """Move on by one, and by one more per idle second; tell the new SCN."""
        at = self._now()
        self.value += max(int(at - self._ticked), 0)
        self._ticked = at
        return self.next()

    def needs_saving(self) -> bool:
        """Has the counter passed what is persisted?"""
        return self.value >= self._ceiling

    def save(self, *, exact: bool = False) -> None:
        """Persist the ceiling and the map within the caller's SQLite transaction."""
        if exact or self.value >= self._ceiling:
            self._ceiling = self.value if exact else self.value + _RESERVE
            self._connection.execute("UPDATE scn_ceiling SET value = ?", (self._ceiling,))
        if self._saved < len(self._scns):
            rows = zip(self._scns[self._saved :], self._times[self._saved :], strict=True)
            self._connection.executemany(
                "INSERT OR REPLACE INTO scn_time VALUES (?, ?)", list(rows)
            )
            self._saved = len(self._scns)
        if len(self._scns) > _MAP_ENTRIES_MAX:
            half = len(self._scns) // 2
            self._connection.execute("DELETE FROM scn_time WHERE scn < ?", (self._scns[half],))
            del self._scns[:half], self._times[:half]
            self._saved = len(self._scns)

    def time_of(self, scn: int) -> float | None:
        """When an SCN was current, to about three seconds; None if it is too old or not yet."""
        at = bisect.bisect_right(self._scns, scn) - 1
        if at < 0 or scn > self.value:
            return None
        is_now = at + 1 == len(self._times)
        return self._times[at] if is_now or self._is_mapped(self._times[at]) else None

    def at_time(self, moment: float) -> int | None:
        """The last SCN of a time, to about three seconds; None if that is too old.

        An entry of the map stands for the first SCN of some seconds; all SCNs up to the next entry
        belong to them.
        """
        at = bisect.bisect_right(self._times, moment) - 1
        if at < 0 or not self._is_mapped(moment):
            return None
        if moment < self._times[at] + _ENTRY_SECONDS:
            return self._scns[at]
        return self._scns[at + 1] - 1 if at + 1 < len(self._scns) else self.value

    def _is_mapped(self, moment: float) -> bool:
        return moment >= self._now() - _MAPPED_SECONDS
