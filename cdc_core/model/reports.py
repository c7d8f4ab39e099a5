"""What do the steps report, and what is the status of a source?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from cdc_core.model.identifiers import TableId
from cdc_core.model.records import Lease, TableRecord
from cdc_core.model.streams import StreamEnd
from cdc_core.model.transactions import LedgerState, OpenTransaction

StepKind = Literal[
    "snapshot-planned", "chunk-landed", "chunk-applied", "windows-planned", "window-captured", "window-applied",
    "window-replayed", "signal-taken", "signal-rejected", "table-joined", "table-stopped", "table-resumed",
    "mirror-rebuilt", "table-rebuilt", "repair-planned", "snapshot-skipped",
]  # fmt: skip

QueryEngine = Literal["spark", "duckdb"]
CutEngine = Literal["spark", "duckdb", "trino"]
"""For which engine a query is written."""


WriteWay = Literal["append", "copy-on-write", "deletion vectors", "merge"]


@dataclass(frozen=True, slots=True)
class MirrorWrite:
    """How a mirror took a change, and why: ``merge`` is Spark's, the other ways need no Spark.
    ``expected_seconds`` is what this way was estimated to take; None where nobody asked, or where
    that is not known any more."""

    way: WriteWay
    reason: str
    expected_seconds: float | None = field(default=None, compare=False)

    @property
    def who(self) -> str:
        """``merged by Spark``, or ``copy-on-write without Spark``."""
        return "merged by Spark" if self.way == "merge" else f"{self.way} without Spark"

    def __str__(self) -> str:
        """``merged by Spark: the window is large``; the reason behind :attr:`who`."""
        return f"{self.who}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableApplied:
    """What applying a window or chunk did to one table.

    ``changes`` are rows of the change log. ``skipped``: it had been applied before, nothing was
    committed. ``quarantined`` redo rows of the window could not be decoded and are in quarantine,
    as are ``in_quarantine`` rows of the table altogether that no later snapshot has settled; None
    where nobody asked. ``write`` is how the mirror took it; None where it took nothing, or where
    that is not known any more. ``operations`` counts the changes by operation, ``events_skipped``
    those that are no events by reason; ``stage_seconds`` went into the change log, and
    ``merge_seconds`` into the mirror.
    """

    table: TableId
    changes: int = 0
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    quarantined: int = 0
    unfit_values: int = 0
    in_quarantine: int | None = None
    seconds: float = 0.0
    skipped: bool = False
    write: MirrorWrite | None = field(default=None, compare=False)
    operations: Mapping[str, int] = field(default_factory=dict, compare=False)
    events_skipped: Mapping[str, int] = field(default_factory=dict, compare=False)
    stage_seconds: float = field(default=0.0, compare=False)
    merge_seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """One finished step. ``key`` is the window's or chunk's key; ``rows`` are redo rows or table
    rows; ``bytes`` landed; ``stopped`` names tables that the step had to stop while the others went
    on, ``left_out`` those that cannot take the step."""

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
    stopped: tuple[StreamEnd, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def is_quiet(self) -> bool:
        """Does it bring no news? Windows are cut as long as Oracle works, and most of an idle
        source's are empty."""
        is_empty = self.kind in ("window-captured", "window-applied") and not self.rows
        is_news = bool(self.stopped or self.left_out or self.facts.get("is_gap"))
        return self.kind == "windows-planned" or (is_empty and not is_news)


Reporter = Callable[[StepReport], None]


@dataclass(frozen=True, slots=True)
class PolicyAnswer:
    """The last time that ``policy`` (its option's name) had a table read again: when (ISO 8601),
    and what had stopped the table."""

    policy: str
    at: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRebuilt:
    """A metadata store that was made anew: how many ``rows`` its tables have, and had before (None
    where it held nothing of the source); the captured tables as it has them now; ``remarks`` are
    for the operator. ``is_written`` is False after a dry run."""

    rows: dict[str, int]
    rows_before: dict[str, int] | None
    tables: tuple[TableRecord, ...]
    remarks: tuple[str, ...]
    is_written: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotProgress:
    """A snapshot whose chunks are not all applied, or several together: ``rows`` are applied, of
    about ``rows_expected``, which is None before a chunk is. ``rows_per_second`` is the rate of the
    newest chunks, None while nobody reads; ``seconds_left`` what the rest takes at that rate."""

    snapshot_id: str
    chunks_applied: int
    chunks_planned: int
    rows: int = 0
    rows_expected: int | None = None
    rows_per_second: float | None = None
    seconds_left: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """Status of one table. ``position`` is the SCN of which the mirror is an exact image, None
    before the snapshot is done, ``position_time`` its time in UTC (ISO 8601) where that is known;
    ``consistent_from`` the SCN that the position must reach after an ad hoc snapshot before that is
    true again. ``reason``, ``way_out`` and ``since`` (ISO 8601) say why and since when it does not
    go on by itself; ``stopped_scn`` is where its stream ended; ``asked_by`` who asked for that
    (``command``, ``configuration``, ``policy``), None where nobody did; ``read_again`` what
    policies had it read again for; ``rest_waits`` why a table that has left does not take what
    belongs to it still; ``in_quarantine`` counts redo rows that could not be decoded, so that as
    many rows of the mirror may be missing, stale or left over; ``progress`` is that of the
    snapshot that it joins with, None once that is applied; ``snapshots`` are ad hoc ones (and
    repairs) that have chunks to apply; ``rows_where`` is the condition of the rows that its
    snapshots read, None for all. A table ``is_partial`` when it takes windows and no snapshot
    has read all its rows. ``columns_omitted`` are left out for their types, each with its
    type; ``columns_left_out`` by the configuration. ``columns_reselected`` are those for which
    the table's rows are read from Oracle (``unsupported_columns: reselect``), likewise.
    ``history_scn`` is the last window that its history has, None without one."""

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
    reason: str | None = None
    way_out: str | None = None
    since: str | None = None
    stopped_scn: int | None = None
    position_time: str | None = None
    asked_by: str | None = None
    read_again: tuple[PolicyAnswer, ...] = ()
    rows_where: str | None = None
    rest_waits: str | None = None
    in_quarantine: int = 0
    progress: SnapshotProgress | None = None
    snapshots: tuple[SnapshotProgress, ...] = ()
    is_partial: bool = False
    history_scn: int | None = None
    columns_omitted: tuple[str, ...] = ()
    columns_left_out: tuple[str, ...] = ()
    columns_reselected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """Status of a source, per table. ``oracle_error`` says why Oracle could not be reached, if it
    was asked; ``last_error`` is that of its first window that is not applied, which all tables wait
    for; ``windows_inexact`` counts windows that lacked commits which came to light with a later
    one. ``transactions_released`` are those that were given up: Oracle no longer knows them, and no
    end of them was mined; of ``transactions_evicted`` another one took the undo slot, and no end of
    them was mined. ``oldest_open`` are the first of the open ones, oldest first.
    ``progress`` is that of all snapshots together that have chunks to apply, None without one;
    ``snapshots_paused`` says since when no chunks are read (ISO 8601), None where they are;
    ``snapshot_decision`` what a start would do by ``snapshot.mode``, and why. ``carriers`` are the
    living processes that carry windows now: more than one take work from each other."""

    source: str
    scn_oracle: int | None
    windows_planned: int
    windows_captured: int
    windows_applied: int
    open_transactions: int
    oldest_open_scn: int | None
    signals_pending: int
    tables: tuple[TableStatus, ...]
    oracle_error: str | None = None
    last_error: str | None = None
    windows_inexact: int = 0
    transactions_released: tuple[OpenTransaction, ...] = ()
    transactions_evicted: tuple[OpenTransaction, ...] = ()
    oldest_open: tuple[TransactionStatus, ...] = ()
    snapshots_paused: str | None = None
    progress: SnapshotProgress | None = None
    snapshot_decision: str = ""
    carriers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionStatus:
    """An open transaction, and what it holds back; no values of its rows.

    ``started`` is the time of the database's host at its START row, ISO 8601 without a zone; None
    where no START row was seen. ``seen`` is the end, by Oracle's clock, of the first window that
    holds redo of it, ISO 8601 in UTC, and ``open_seconds`` the time since: it is at least as old.
    Both are None while that window's end has no known time. ``tables`` and ``rows`` are the
    captured ones. ``keeps_windows_from`` is the key of the first window that retention must keep
    for it.
    """

    xid: str
    state: LedgerState
    username: str | None
    client_id: str | None
    session_id: int | None
    serial: int | None
    start_scn: int | None
    started: str | None
    seen: str | None
    open_seconds: float | None
    tables: tuple[str, ...]
    rows: int
    keeps_windows_from: str | None


ComparisonEngine = Literal["arrow", "spark"]
"""Who compared a table with Oracle: Redolake's own process, or Spark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableComparison:
    """One table compared with Oracle as of an SCN.

    Rows, digests and keys that more than one row has are those of each side by itself.
    ``differences`` counts keys that are not the same on both sides; it is a lower bound where
    ``is_lower_bound``. ``rows_where`` is the condition of the rows that the table's snapshots read,
    None for all: other rows of Oracle are compared where the mirror has them. ``keys`` are the
    first differing ones as text, columns joined by a comma, where the caller asked for them; never
    other values.
    """

    table: str
    rows_oracle: int
    rows_delta: int
    double_keys_oracle: int
    double_keys_delta: int
    differences: int
    is_lower_bound: bool = False
    keys: tuple[str, ...] = ()
    digest_oracle: str
    digest_delta: str
    seconds: float
    engine: ComparisonEngine
    rows_where: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPublished:
    """What publishing sent to a topic: so many ``events``, without tombstones. All commits of the
    ``table``'s change log up to ``version`` are out; both are None for a topic beside those of the
    tables. ``lost`` names older change logs that are gone, by how often the table's Delta tables
    had been begun: their last events may not be out."""

    topic: str
    events: int
    table: TableId | None = None
    version: int | None = None
    lost: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHistory:
    """What became of a table's history: so many states were ``added``, and so many ``removed``
    (of a state that ends, the open one goes and the ended one comes). It ``is_whole`` where all
    states were derived again. ``failed`` says why the history stays behind, None where it does
    not."""

    table: TableId
    added: int = 0
    removed: int = 0
    is_whole: bool = False
    seconds: float = 0.0
    failed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRegistered:
    """What became of a table in a catalog: the ``names`` that it has there, or why it has
    not (``failed``)."""

    table: TableId
    names: tuple[str, ...] = ()
    failed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDifference:
    """A change that one of two readers has alone (``only here``, ``only there``), or that
    ``differs`` in some ``fields``. ``line`` is that of Debezium's file, None where only Redolake
    has the change. No values of rows."""

    what: str
    table: str
    op: str
    xid: str
    commit_scn: int
    fields: tuple[str, ...] = ()
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsCompared:
    """Debezium's changes beside those of the change logs whose commit SCN is in
    ``(scn_low, scn_high]``: how many are ``equal``, and the others in commit order.
    ``of_other_tables`` are Debezium's changes of tables that were not compared."""

    scn_low: int
    scn_high: int
    equal: int
    differences: tuple[EventDifference, ...]
    of_other_tables: int = 0


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A table that a command over several tables could not take: why, and what the operator
    types."""

    table: str
    reason: str
    way_out: str


@dataclass(frozen=True, slots=True)
class MirrorVersion:
    """The version of a mirror's Delta table that is the table as of a cut's SCN."""

    table: str
    version: int
    path: str


@dataclass(frozen=True, slots=True)
class Cut:
    """The versions of mirrors that together show Oracle ``AS OF SCN``; ``left_out`` have no such
    version."""

    scn: int
    tables: tuple[MirrorVersion, ...]
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Tables compared at one SCN, and those that cannot be compared at it: nothing is proved of
    these."""

    scn: int
    tables: tuple[TableComparison, ...]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def differences(self) -> int:
        """Keys that differ, over all tables."""
        return sum(table.differences for table in self.tables)


DeltaLayer = Literal["changelog", "mirror"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMaintained:
    """What maintenance made of one Delta table. Files and bytes are those of the newest version;
    ``files_removed`` are files of older ones that VACUUM removed, ``commits_removed`` commits that
    left the log; ``had_vectors`` and ``has_vectors``: whether MERGE writes deletion vectors."""

    table: TableId
    layer: DeltaLayer
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    files_removed: int
    commits_removed: int = 0
    had_vectors: bool
    has_vectors: bool
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """What became of one captured table: its Delta tables, or why it was left alone."""

    table: TableId
    done: tuple[TableMaintained, ...] = ()
    left_alone: str | None = None
    is_failed: bool = False


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table that a pattern names. ``left_out`` says why it cannot be captured, empty if it can;
    ``columns_exclude`` are columns of types that are not captured; ``rows`` are those of Oracle's
    statistics, None where there are none."""

    table: TableId
    rows: int | None = None
    key: tuple[str, ...] = ()
    columns_exclude: tuple[str, ...] = ()
    left_out: str = ""
    columns: tuple[str, ...] = ()
    """Columns that can be captured, where the dictionary was asked for them just now."""
    numbers: tuple[str, ...] = ()
    """Those of them that are a NUMBER without precision, which the lake holds as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnReport:
    """A column of a table as people know it; ``type`` as one writes it in Oracle, for example
    ``NUMBER(10,2)``."""

    name: str
    type: str
    in_key: bool
    nullable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionReport:
    """A version of a table: from which SCN on, what had changed since the one before in words, and
    by which DDL; None where the table was read by a snapshot, or the configuration changed."""

    scn: int
    changes: tuple[str, ...]
    ddl: str | None


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a piece of work. ``death`` says why the holder counts as dead, None while it
    lives."""

    lease: Lease
    death: str | None
