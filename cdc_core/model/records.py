"""What is known of a source, its tables, windows and chunks, and of who works on them?"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.redo_address import ThreadPosition
from cdc_core.model.scn import SCN_MAX, Scn, ScnWindow
from cdc_core.model.streams import ReadAgain, Trouble

TableState = Literal["new", "snapshotting", "ready", "paused", "failed", "removed"]
AskedBy = Literal["command", "configuration", "policy"]
WindowState = Literal["planned", "captured", "applied"]
ChunkState = Literal["planned", "landed", "applied", "dropped"]
"""``dropped`` is a chunk that was not read, and is not to be: its snapshot was stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """One source. ``snapshot_scn`` is the SCN of its first snapshot, where windows begin;
    ``mining_low`` how far back the first window reads; ``resetlogs_change`` the incarnation of the
    database, ``dbid`` the database, and ``container_dbid`` the pluggable one. ``revision`` counts
    how often these were exchanged."""

    name: str
    snapshot_scn: Scn
    mining_low: Scn
    resetlogs_change: int
    database_name: str | None = None
    dbid: int | None = None
    container_dbid: int | None = None
    revision: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRecord:
    """One captured table and its fate.

    Its stream: ``first_ordinal`` is the first window that holds its redo; that window reads the
    table's redo again from above ``mining_low`` where this is not None. ``stopped_scn`` is where
    the stream ended: later changes are not taken until the table comes back. ``reason``,
    ``way_out`` and ``since`` say why and when it was stopped; ``asked_by`` who asked for that, None
    where nobody did; of a failed table, ``policy`` says that a policy brings it back. ``trouble``
    is what it met, as long as a policy may answer that; ``read_again`` the last time that a policy
    answered, for each trouble. ``rest_waits`` says why a table whose stream has ended does not take
    the rest that belongs to it.

    Its rows: ``snapshot_scn`` is the SCN of its snapshot ``snapshot_id``, ``consistent_scn`` the
    highest SCN as of which a chunk may have been read, ``mirror_scn`` the SCN of which its mirror
    is an image (None until the snapshot is complete). ``generation`` counts how often its Delta
    tables were begun. ``row_filter`` is the condition on the rows that its snapshots read, in the
    names of the definition as of ``snapshot_scn``; None for all rows. ``in_quarantine`` redo rows
    could not be decoded and no later snapshot has settled them:
    the mirror is an image but for their rows.

    It ``awaits_rows`` while rows that came into it without redo, such as those of an exchanged
    partition, are read: its mirror stands right before they came. The store finds that by the
    table's chunks.

    ``revision`` counts how often the store changed anything of this but the position, or the
    table's definitions.
    """

    source: str
    table: TableId
    state: TableState = "new"
    snapshot_id: str | None = None
    snapshot_scn: Scn | None = None
    consistent_scn: Scn | None = None
    mirror_scn: Scn | None = None
    generation: int = 1
    row_filter: str | None = None
    first_ordinal: int = 0
    mining_low: Scn | None = None
    stopped_scn: Scn | None = None
    reason: str | None = None
    way_out: str | None = None
    since: datetime | None = None
    asked_by: AskedBy | None = None
    trouble: Trouble | None = None
    read_again: tuple[ReadAgain, ...] = ()
    rest_waits: str | None = None
    in_quarantine: int = 0
    revision: int = field(default=0, compare=False)
    awaits_rows: bool = field(default=False, compare=False)

    @property
    def is_captured(self) -> bool:
        """Does the table's redo land? Also that of a paused table, or of one that failed in the
        lake alone."""
        return self.state not in {"new", "removed"} and self.stopped_scn is None

    @property
    def takes_windows(self) -> bool:
        """Are windows applied to the table automatically: while it is ready, or until the end of
        its stream?"""
        if self.awaits_rows:
            return False
        if self.stopped_scn is not None:
            return (
                self.rest_waits is None and (self.mirror_scn or self.stopped_scn) < self.stopped_scn
            )
        return self.state == "ready"

    @property
    def needs_above(self) -> int:
        """The SCN above which the table still wants windows that have landed."""
        position = self.mirror_scn if self.mirror_scn is not None else self.snapshot_scn
        if self.is_captured:
            return position or 0
        if self.stopped_scn is not None and self.mirror_scn is not None:
            return self.mirror_scn if self.mirror_scn < self.stopped_scn else SCN_MAX
        return SCN_MAX


@dataclass(frozen=True, slots=True)
class InexactImage:
    """Why the image of a window is not exact: commits of ``tables``, the first at ``scn``, came to
    light with a later window, the last of them with the one that is named ``window``."""

    scn: int
    tables: tuple[str, ...]
    window: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRecord:
    """One window of a source. Its own redo is ``(mining_low, window.scn_high]``; ``seconds`` are
    those of capture.

    ``positions`` say how far each redo thread was read when it was captured, where the next window
    begins; None before
    that. ``key`` is
    its partition in Dagster and never changes; ``ended`` the time of ``scn_high`` in Oracle;
    ``bytes`` and ``facts`` what capture reported. It ``is_idle`` when captured tables have nothing
    in it, not even an open transaction. ``inexact`` says what its image lacked until a later window
    was applied; None if nothing.
    """

    source: str
    ordinal: int
    window: ScnWindow
    mining_low: Scn
    created: datetime
    key: str
    state: WindowState = "planned"
    rows: int | None = None
    seconds: float | None = None
    apply_seconds: float | None = None
    manifest_sha256: str | None = None
    captured: datetime | None = None
    applied: datetime | None = None
    last_error: str | None = None
    positions: tuple[ThreadPosition, ...] | None = None
    ended: datetime | None = None
    bytes: int | None = None
    facts: dict[str, int] = field(default_factory=dict)
    is_idle: bool = False
    inexact: InexactImage | None = None

    @property
    def is_gap(self) -> bool:
        """Was nothing read of it, since no table takes part in it?"""
        return bool(self.facts.get("is_gap"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkRecord:
    """One chunk of one table's snapshot, as of ``scn``; as of an SCN from that up to ``scn_high``
    where it was read between watermarks. ``range`` is the JSON form of its part of the table,
    ``applied`` when it was applied, as far as that is known."""

    source: str
    table: TableId
    snapshot_id: str
    number: int
    scn: Scn
    range: dict[str, Any]
    condition: str | None = None
    signal_id: str | None = None
    state: ChunkState = "planned"
    rows: int | None = None
    seconds: float | None = None
    apply_seconds: float | None = None
    applied: datetime | None = None
    manifest_sha256: str | None = None
    scn_high: Scn | None = None

    @property
    def chunk_key(self) -> ChunkKey:
        """Which chunk it is."""
        return ChunkKey(self.table, self.snapshot_id, self.number)

    @property
    def what(self) -> str:
        """Its part of the table for people, without the bounds or keys, which are row values."""
        if self.range["kind"] == "keys":
            return f"{len(self.range['keys']):,} listed keys"
        if self.range["low"] is None and self.range["high"] is None:
            return "the whole table"
        return "a key range" if self.range["kind"] == "key" else "a ROWID range"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A table's last comparison with Oracle: all ``rows``, all columns, as of ``scn``; when, and
    how many rows differed."""

    scn: Scn
    compared: datetime
    rows: int
    differences: int


@dataclass(frozen=True, slots=True)
class Lease:
    """A piece of work held by a process until ``expires``. A later holder always has a higher
    ``token``. ``is_expired`` is by the clock that all holders share, when the lease was read."""

    name: str
    holder: str
    token: int
    seconds: float
    heartbeat: datetime
    expires: datetime
    is_expired: bool = False
