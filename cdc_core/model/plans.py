"""What would be done next, how long does it take, and what breaks first? Values for steps and for
people; the verdict is made of them alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cdc_core.model.alerts import LogHeadroom
from cdc_core.model.estimates import SnapshotEstimate
from cdc_core.model.starts import RunPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchedTable:
    """A table that recent windows changed: how many changes they brought, and how many files, of
    how many bytes, its mirror has; None where that cannot be seen."""

    table: str
    changes: int
    files: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowsPlan:
    """The windows up to the present: how many are to be captured and to be applied, for how many
    seconds of the database, and the minutes that both take at the pace of the last windows; None
    where these say nothing. ``pace`` is how many seconds of redo are carried in one second."""

    to_capture: int
    to_apply: int
    redo_seconds: float | None
    capture_minutes: float | None
    apply_minutes: float | None
    pace: float | None
    tables: tuple[TouchedTable, ...]

    @property
    def minutes(self) -> float | None:
        """Both together."""
        known = [one for one in (self.capture_minutes, self.apply_minutes) if one is not None]
        return sum(known) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkPlan:
    """Everything that the next run would do. ``run`` is what the configuration makes of the start
    and of tables, ``snapshot`` what would be read. ``headroom`` is None where no logs of Oracle's
    are read, or nothing is begun."""

    run: RunPlan
    snapshot: SnapshotEstimate
    windows: WindowsPlan
    headroom: LogHeadroom | None

    @property
    def risks(self) -> tuple[str, ...]:
        """What would break, the first first; empty where nothing does at this pace."""
        return tuple(self._risks())

    def _risks(self) -> Iterator[str]:
        hours = None if self.headroom is None else self.headroom.hours
        minutes = self.windows.capture_minutes
        if hours == 0:
            yield "archived logs: Oracle has deleted one that is still to be read"
        elif hours is not None and minutes is not None and minutes > 60 * hours:
            yield (
                f"archived logs: Oracle deletes the next one in about {hours:.1f} h, and reading "
                f"up to the present takes {minutes / 60:.1f} h"
            )
        if self.windows.pace is not None and self.windows.pace < 1:
            yield (
                f"the lag: the last windows carried {self.windows.pace:.2f} s of redo in a second, "
                "so that it grows"
            )
        for one in self.snapshot.beyond_undo:
            yield (
                f"the undo: {one.table} is read for {(one.ends or 0) * 60:,.0f} s, and Oracle keeps"
                f" undo for {self.snapshot.undo_seconds} s"
            )
        read = self.snapshot.minutes
        if hours and read is not None and read > 60 * hours:
            yield (
                f"archived logs: the snapshot is read for {read / 60:.1f} h, and the redo of that "
                f"time has to last; the next log goes in about {hours:.1f} h"
            )
