"""What can the steps ask of whatever reads a database's changes?

The steps know this contract only; :mod:`cdc_core.readers` puts a reader behind it, by the
configuration's ``capture.type``. A reader lands windows in one of two forms: redo files, rows of
redo text that are rolled back and decoded later, or change files, committed changes with typed
values (:mod:`cdc_core.landing.layout`). What one reader alone can do is a protocol of its own
(:class:`ReadsLogs`, :class:`Prefetcher`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from cdc_core.config import SourceConfig, TableConfig
from cdc_core.landing.manifest import PlannedWindow, WindowManifest
from cdc_core.landing.store import LandingStore
from cdc_core.model.alerts import LogHeadroom
from cdc_core.model.data_objects import DataObjects
from cdc_core.model.findings import Finding
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import SourceRecord, WindowRecord
from cdc_core.model.redo_address import ThreadPosition
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.transactions import OpenTransaction
from cdc_core.oracle.database import OracleDatabase
from cdc_core.schema.signalled_definitions import GivenTable
from cdc_core.schema.table import TableSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where tables join: they are read as of ``snapshot_scn``, their first window reads redo above
    ``mining_low``, and ``resetlogs_change`` names the incarnation in which both were read, ``dbid``
    and ``container_dbid`` the database and the pluggable one."""

    snapshot_scn: Scn
    mining_low: Scn
    resetlogs_change: int
    database_name: str
    dbid: int
    container_dbid: int


@dataclass(frozen=True, slots=True)
class NextWindow:
    """A window that can be closed now, and the time of its upper end in Oracle."""

    window: ScnWindow
    ended: datetime


Complete = Callable[[WindowManifest], WindowManifest]
"""Given what a window's manifest is to be, writes further files into its folder, and gives the
manifest that names them too."""


PLACE = "cdc place"
"""The column of the number of a row among those that were asked for."""

ValuesAsOf = Callable[[TableSchema, Sequence[str], Sequence[tuple[Scn, str]]], pa.Table]
"""Given a version of a table, names of its columns, and rows by the SCN of a commit and a ROWID:
these columns as of the commits, as they land, and :data:`PLACE`; no row where Oracle has none.
Raises DecodeError where Oracle does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowWork:
    """A planned window, and all that its redo is read with.

    Args:
        source: Where the first snapshot was read, and in which incarnation.
        record: The planned window.
        tables: Definitions of the tables whose changes land, valid at the window's lower end.
        ledger: Transactions that were open at the end of the window before.
        positions: How far each redo thread was read when the window before was captured; None where
            that is not known, empty for the first window.
        joins: Tables that join with the window, each with the SCN above which its redo is read
            again.
        read_at: The SCN as of which each table's newest snapshot was read: what happened up to
            there is in it.
        data_objects: What is known of the tables' data objects: as of the window's lower end, or as
            of the snapshot with which a table joins. None where a window is read again and the one
            before it is gone.
        planned: What lands with the window so that a lost metadata store can be made anew.
        complete: Lands what the redo does not carry, once all redo of the window has; None where
            nothing is to be added.
        given: Definitions that signals brought, each as of an SCN inside the window.
        reader: Where the reader said that it goes on (``reader`` of the manifest of the window
            before); empty where that is not known, or none was captured.
        values_as_of: Asks Oracle for what the reader does not bring.
    """

    source: SourceRecord
    record: WindowRecord
    tables: Sequence[TableSchema]
    ledger: Sequence[OpenTransaction]
    positions: Sequence[ThreadPosition] | None
    joins: Mapping[TableId, Scn]
    planned: PlannedWindow
    read_at: Mapping[TableId, Scn] = field(default_factory=dict)
    data_objects: Mapping[TableId, DataObjects] | None = field(default_factory=dict)
    complete: Complete | None = None
    given: Sequence[GivenTable] = ()
    reader: Mapping[str, Any] = field(default_factory=dict)
    values_as_of: ValuesAsOf | None = None


class ChangeReader(Protocol):
    """Reads the committed changes of one database, window by window.

    It keeps no state of its own between calls: what a window needs of the one before comes with the
    work, and what the next one needs lands with it. So every call may be repeated, by this process
    or another one.
    """

    def check(self, tables: Sequence[TableConfig]) -> list[Finding]:
        """What is missing before changes of the tables can be read, and what an operator should
        know; nothing about how the tables themselves are read. All at once, each with its remedy.

        Raises:
            CdcError: One cannot look: the database cannot be reached.
        """

    def read_start(self, tables: Sequence[TableId], *, is_first: bool = False) -> Start:
        """Fix where tables join now: every transaction that commits above ``snapshot_scn`` has all
        its changes above ``mining_low``, and Oracle can be read as of ``snapshot_scn``. A source
        that ``is_first`` begun may begin at an earlier SCN by its configuration.

        Raises:
            ConfigError: The configured SCN lies ahead.
            RedoUnavailableError: Redo behind the configured SCN is gone.
            TransientError: That cannot be said at the moment; the message names what is in the way.
        """

    def next_windows(
        self,
        low: Scn,
        *,
        read_from: Scn,
        until: Scn | None,
        applied: Callable[[], Scn] | None = None,
    ) -> list[NextWindow]:
        """Windows in order, the first from ``low`` on, each joining the one before it, up to the
        present or to ``until``.

        None if nothing can be closed above ``low`` yet. An idle database gives a window too, so
        that the position never ages out.

        Args:
            low: Upper end of the last planned window.
            read_from: Redo above this SCN is needed for the first of the windows.
            until: Close no window above this SCN.
            applied: Tells up to which SCN all windows are applied: who keeps for this reader what
                only they needed may forget it.

        Raises:
            RedoUnavailableError: Redo above ``read_from`` is gone.
            LogsNotReadyError: Redo is not there yet.
        """

    def capture_window(self, work: WindowWork, landing: LandingStore) -> None:
        """Read a window's changes into landing, and finish with its manifest. Nothing has landed
        before the manifest.

        All changes of a transaction that commits in the window have landed with it or with earlier
        windows. A table whose changes cannot be followed leaves at the SCN where that begins
        (``left`` of the manifest), and the window holds the others whole.

        Raises:
            LogsNotReadyError: A part of the redo is not there yet, after some waiting.
            RedoUnavailableError: Redo is gone, or belongs to another incarnation of the database.
            OracleUnavailableError: The database was lost at every attempt.
        """


class PrefetchedRedo(Protocol):
    """A window's redo that was read before the window's turn. Only the source that read it knows
    what it holds."""

    def capture_window(self, work: WindowWork, landing: LandingStore) -> None:
        """As :meth:`ChangeReader.capture_window`, with what was read where it is what the window
        needs in its turn; what lands is the same. May be called once."""

    def close(self) -> None:
        """Give it up. May be called twice."""


@dataclass(frozen=True, slots=True)
class FleetWindow:
    """The next window of one of several sources that read one database's redo."""

    source: ChangeReader
    work: WindowWork
    landing: LandingStore


@runtime_checkable
class ReadsLogs(Protocol):
    """What a source may offer that reads Oracle's own redo logs."""

    def log_headroom(self, scn: Scn) -> LogHeadroom:
        """How long the logs stay that are still to be read, once the redo up to ``scn`` is.

        Raises:
            CdcError: The views of logs cannot be read.
        """


@runtime_checkable
class Prefetcher(Protocol):
    """What a source may offer besides: to read redo before a window's turn. It lands nothing,
    leaves nothing behind, and may be called from several threads."""

    def prefetch(
        self, work: WindowWork, landing: LandingStore, stop: threading.Event
    ) -> PrefetchedRedo | None:
        """Read a window's redo while the windows before it are still being captured; None where
        that cannot be done, or once ``stop`` is set.

        Args:
            work: The planned window, without anything of the one before it.

        Raises:
            CdcError: The redo cannot be read now; :meth:`ChangeReader.capture_window` will say
                whether that lasts.
        """

    def prefetch_shared(self, windows: Sequence[FleetWindow]) -> list[PrefetchedRedo | None]:
        """Read the redo of windows with the same bounds in one pass: of sources of several
        pluggable databases in one container database, under the same ``capture``. The windows'
        turns come next.

        Returns:
            What was read for each; None where that cannot be done.

        Raises:
            CdcError: The pass failed.
        """


@runtime_checkable
class Recorder(Protocol):
    """What a source may offer besides: to write what it reads into files, for others to read."""

    def record(self, folder: str, *, low: Scn | None) -> int:
        """Record into a new file of a folder, which may be an object store's, what has committed
        until now: above an SCN, or from where the newest file ends, or above the present. Nothing
        is released. How many records.

        Raises:
            CdcError: The other side cannot be reached.
        """


OpenReader = Callable[[SourceConfig, OracleDatabase], ChangeReader]
"""How a source's changes are reached; called once, and connects to nothing before the first
question."""
