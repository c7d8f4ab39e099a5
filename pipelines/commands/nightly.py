"""When does ``redolake run --loop`` maintain the Delta tables?

Once a day, at ``maintenance.daily_at_hour``, by ``redolake maintain`` in a process of its own: its
Spark takes memory only as long as it works, and windows continue meanwhile. Where a lake has one
writer, that is the loop, which maintains the tables itself between two rounds.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from cdc_core.config import MaintenanceConfig


class Nightly:
    """The maintenance of a loop, to be looked after between two rounds. Used as a context manager:
    what still runs at the end is ended.

    Args:
        options: When, or never.
        arguments: What follows ``redolake`` on the command line.
        own: Maintains the tables in this process, in place of another one.
        now: The time, in UTC.
    """

    def __init__(
        self,
        options: MaintenanceConfig,
        arguments: Sequence[str],
        *,
        own: Callable[[], None] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._hour, self._own, self._now = options.daily_at_hour, own, now
        self.command = [sys.executable, "-m", "pipelines.cli", *arguments]
        self._child: subprocess.Popen[bytes] | None = None
        self._due = self._next()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_working and self._child is not None:
            self._child.terminate()
            self._child.wait()

    @property
    def is_working(self) -> bool:
        """Does it run now?"""
        return self._child is not None and self._child.poll() is None

    def look(self) -> str:
        """Start it where it is due; what became of the last one, if that has ended."""
        said = ""
        if self._child is not None and (code := self._child.poll()) is not None:
            self._child = None
            said = f"Maintenance ended with exit code {code}: see its lines above." if code else ""
        if self._child is None and self._due is not None and self._now() >= self._due:
            self._due = self._next()
            if self._own is not None:
                self._own()
                return said
            try:
                self._child = subprocess.Popen(self.command)
            except OSError as error:
                said = f"Maintenance did not start: {error.strerror}."
        return said

    def _next(self) -> datetime | None:
        if self._hour is None:
            return None
        now = self._now()
        today = now.replace(hour=self._hour, minute=0, second=0, microsecond=0)
        return today if today > now else today + timedelta(days=1)
