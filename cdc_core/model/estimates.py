"""How large would a snapshot be, and how long would it take? Values for steps and for people."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEstimate:
    """What a snapshot would read of one table.

    ``rows`` are those of the statistics where the table has some and is read whole, else counted;
    ``bytes`` are those of its blocks, None without statistics. ``minutes`` is how long its chunks
    take, ``ends`` how long after the start the last of them is read; None as long as no rate was
    measured; ``chunk_minutes`` is how long one of them takes. Where chunks are read between
    watermarks (``is_between``), Oracle must keep undo no longer than that. ``trouble`` says why the
    table cannot be read.
    """

    table: str
    by: str = ""
    chunks: int = 0
    rows: int = 0
    bytes: int | None = None
    minutes: float | None = None
    ends: float | None = None
    chunk_minutes: float | None = None
    is_between: bool = False
    trouble: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotEstimate:
    """What a snapshot would read, in the order in which tables end; ``rows_per_second`` is what one
    session was measured to read, ``undo_seconds`` what Oracle's UNDO_RETENTION says; None where
    that is not known."""

    tables: tuple[TableEstimate, ...]
    sessions: int
    rows_per_second: float | None
    undo_seconds: int | None

    @property
    def minutes(self) -> float | None:
        """How long reading all of them takes."""
        return max((one.ends for one in self.tables if one.ends is not None), default=None)

    @property
    def beyond_undo(self) -> tuple[TableEstimate, ...]:
        """The tables that would not be read to the end as of the SCN at which the snapshot begins,
        or whose single chunks would not."""
        if self.undo_seconds is None:
            return ()
        return tuple(
            one
            for one in self.tables
            if 60 * ((one.chunk_minutes if one.is_between else one.ends) or 0) > self.undo_seconds
        )
