"""Which tables, users and operations made the redo that landed?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RedoShare:
    """Redo rows of one table, operation and user, and the approximate bytes that they bring: those
    of their redo text, or of the file where a reader gives typed values. ``username`` is None where
    the start of the transaction was not seen; the operation ``ROLLBACK`` stands for rows that take
    others back."""

    table: str
    operation: str
    username: str | None
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RedoProfile:
    """The redo of ``windows`` from ``scn_low`` to ``scn_high`` (None without one): ``shares`` by
    bytes, the largest first. LogMiner gave ``rows_mined`` rows, ends of transactions among them;
    rows of tables that are not captured never land, so they have no share."""

    source: str
    windows: int
    scn_low: int | None
    scn_high: int | None
    rows_mined: int
    shares: tuple[RedoShare, ...]

    @property
    def rows(self) -> int:
        """All landed redo rows."""
        return sum(one.rows for one in self.shares)

    @property
    def bytes(self) -> int:
        """Their approximate bytes."""
        return sum(one.bytes for one in self.shares)

    def grouped(self, name: Callable[[RedoShare], str]) -> list[tuple[str, int, int]]:
        """Name, rows and bytes of the shares that have one name together; by bytes, the largest
        first."""
        found: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
        for one in self.shares:
            rows, size = found[name(one)]
            found[name(one)] = (rows + one.rows, size + one.bytes)
        ordered = ((key, rows, size) for key, (rows, size) in found.items())
        return sorted(ordered, key=lambda one: (-one[2], -one[1], one[0]))
