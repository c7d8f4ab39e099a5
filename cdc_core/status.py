"""What do the steps report of what they did, and how does a source stand?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from cdc_core.errors import PartitionKeyError
from cdc_core.identifiers import TableId

StepKind = Literal[
    "snapshot-planned", "chunk-landed", "chunk-applied", "windows-planned", "window-captured", "window-applied",
    "window-replayed", "signal-taken", "signal-rejected",
]  # fmt: skip


@dataclass(frozen=True, slots=True, order=True)
class ChunkKey:
    """One chunk of one table's snapshot: a Dagster partition of that table."""

    table: TableId
    snapshot_id: str
    number: int

    @property
    def key(self) -> str:
        """The partition key, ``<snapshot id>:<number>``."""
        return f"{self.snapshot_id}:{self.number:06d}"

    @classmethod
    def parse(cls, table: TableId, text: str) -> ChunkKey:
        """Read what :attr:`key` printed.

        Raises:
            PartitionKeyError: The text is not a chunk.
        """
        snapshot_id, colon, number = text.rpartition(":")
        if not (colon and snapshot_id and number.isascii() and number.isdigit()):
            raise PartitionKeyError(
                "this is not a chunk key",
                hint="Write <snapshot id>:<number>, for example s12345:000003.",
                key=text[:80],
                table=table,
            )
        return cls(table, snapshot_id, int(number))


@dataclass(frozen=True, slots=True)
class TableApplied:
    """What applying a window or chunk did to one table. ``changes`` are rows of the change log."""

    table: TableId
    changes: int
    rows_inserted: int
    rows_updated: int
    rows_deleted: int
    seconds: float
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class StepReport:
    """One finished step. ``key`` is the window's or chunk's key; ``rows`` are redo rows or table rows; ``bytes`` landed."""

    kind: StepKind
    key: str
    seconds: float
    rows: int = 0
    bytes: int = 0
    table: TableId | None = None
    tables: tuple[TableApplied, ...] = ()
    scn_low: int | None = None
    scn_high: int | None = None
    facts: dict[str, int] = field(default_factory=dict)
    repeated: bool = False


Reporter = Callable[[StepReport], None]


@dataclass(frozen=True, slots=True)
class TableStatus:
    """How one table stands. ``position`` is the SCN of which the mirror is an exact image, None before the snapshot is done;
    ``consistent_from`` the SCN that the position must reach after an ad hoc snapshot before that is true again."""

    table: str
    state: str
    position: int | None
    consistent_from: int | None
    lag_scns: int | None
    lag_seconds: float | None
    snapshot_id: str | None
    chunks_applied: int
    chunks_planned: int
    last_window: str | None
    last_error: str | None


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """How a source stands, per table."""

    source: str
    scn_oracle: int | None
    windows_planned: int
    windows_captured: int
    windows_applied: int
    open_transactions: int
    oldest_open_scn: int | None
    signals_pending: int
    tables: tuple[TableStatus, ...]


@dataclass(frozen=True, slots=True)
class TableComparison:
    """One table compared with Oracle as of an SCN; ``keys`` are up to a few differing keys, never other values."""

    table: str
    rows_oracle: int
    rows_delta: int
    differences: int
    keys: tuple[str, ...]
    digest_oracle: str
    digest_delta: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """All tables compared at one SCN."""

    scn: int
    tables: tuple[TableComparison, ...]

    @property
    def differences(self) -> int:
        """Rows that differ, over all tables."""
        return sum(table.differences for table in self.tables)
