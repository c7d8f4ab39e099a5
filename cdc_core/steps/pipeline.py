"""The one door to a source: what can be done with it, step by step or all at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from functools import partial
from types import TracebackType
from typing import Any, Self

from cdc_core.capture.source import LogMinerSource
from cdc_core.config import SourceConfig
from cdc_core.errors import (
    CdcError,
    ConfigError,
    OracleUnavailableError,
    OvertakenError,
    PreflightError,
)
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord, WindowRecord
from cdc_core.model.reports import (
    Cut,
    FoundTable,
    Holder,
    Maintenance,
    Reconciliation,
    Reporter,
    SourceStatus,
    StateRebuilt,
    StepReport,
)
from cdc_core.model.scn import ScnWindow
from cdc_core.model.signals import Signal
from cdc_core.model.streams import StreamEnd
from cdc_core.source import EarlyRedo, OpenSource
from cdc_core.spark.session import SparkSource
from cdc_core.steps import exact, maintaining, policies, rebuilding, reconciling, signals
from cdc_core.steps import holders as work_holders
from cdc_core.steps import status as source_status
from cdc_core.steps import tables as table_fates
from cdc_core.steps.context import Context, OpenLake, seconds_since
from cdc_core.steps.lookahead import carry_chunks, carry_windows
from cdc_core.steps.overtaken import look_again, looking_again, overtaken_where_forgotten
from cdc_core.steps.records import Records
from cdc_core.steps.snapshots import apply as chunk_apply
from cdc_core.steps.snapshots import plan as snapshot_plan
from cdc_core.steps.snapshots import read as chunk_read
from cdc_core.steps.snapshots.files import ChunkFiles
from cdc_core.steps.snapshots.joining import FirstStart, read_first_start
from cdc_core.steps.state.behind import refuse_older_store
from cdc_core.steps.state.keeping import Keeper
from cdc_core.steps.state.rebuild import rebuild_state
from cdc_core.steps.windows import apply as window_apply
from cdc_core.steps.windows import capture as window_capture
from cdc_core.steps.windows import plan as window_plan
from cdc_core.steps.windows import prefetch as window_early
from cdc_core.steps.windows import recapture as window_recapture
from cdc_core.steps.windows import replay as window_replay
from cdc_core.steps.windows import retire as window_retire
from cdc_core.steps.windows import sharing as window_sharing
from cdc_core.steps.windows.prefetch import EarlyReads
from cdc_core.steps.windows.recapture import Recapture
from cdc_core.steps.windows.rounds import WindowRounds

_LOG = logging.getLogger(__name__)


class Pipeline:
    """A source and what can be done with it.

    Metadata store, landing store, Oracle and Spark are opened when a step first needs them, and closed by :meth:`close` or
    at the end of a ``with`` block. Every step may be repeated, by this or another process, at any time.

    Args:
        config: The source.
        report: Called with every finished step.
        on_statement: Called with the text of each statement before it is sent to Oracle.
        spark: Gives a Spark session to work in, in place of one that the lake starts.
        open_lake: Opens the Delta tables.
        open_source: What reads the redo: LogMiner.
    """

    def __init__(
        self,
        config: SourceConfig,
        *,
        report: Reporter | None = None,
        on_statement: Callable[[str], None] | None = None,
        spark: SparkSource | None = None,
        open_lake: OpenLake | None = None,
        open_source: OpenSource = LogMinerSource,
    ) -> None:
        self._ctx = Context(
            config,
            report=report,
            on_statement=on_statement,
            open_lake=open_lake or partial(DeltaLake.open, spark=spark),
            open_source=open_source,
        )
        self._keeper = Keeper(self._ctx)
        self._early: EarlyReads | None = None
        self._shared: dict[ScnWindow, EarlyRedo] = {}
        self._carried: Sequence[ScnWindow] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close what was opened. May be called twice."""
        self._ctx.close()

    def rest(self) -> None:
        """Let go of what is only needed while there is something to do: sessions of the database. May be called at any time."""
        self._ctx.database.close()

    @property
    def config(self) -> SourceConfig:
        """The configuration, with the tables that were found in the place of patterns."""
        return self._ctx.config

    @property
    def records(self) -> Records:
        """What was done so far, for those who show it."""
        return Records(self._ctx.store, self.config)

    def start_spark(self) -> None:
        """Start Spark ahead of its first use."""
        self._ctx.lake.start()

    def lease(self, work: str, *, wait_seconds: float = 0) -> AbstractContextManager[object]:
        """Hold ``<source>/<work>`` for the block (:meth:`Context.lease`)."""
        return self._ctx.lease(work, wait_seconds=wait_seconds, of_process=True)

    def holders(self, work: str) -> list[Holder]:
        """Who holds ``<source>/<work>`` and what is below it, and who of them is dead (:func:`holders.holders`)."""
        return work_holders.holders(self._ctx.store, self.config.name, work)

    def release(self, holder: Holder) -> None:
        """Give back what a dead holder held."""
        self._ctx.store.leases.release(holder.lease)

    @contextmanager
    def _kept(self, table: TableId | None = None) -> Iterator[None]:
        """A step that may change the metadata store, perhaps for one table alone: landing follows before and after it, unless the store is
        the older one."""
        if not self._keeper.is_loaded:
            refuse_older_store(self._ctx)
        self._keeper.keep(table)
        try:
            yield
        finally:
            self._keeper.keep(table)

    # -- snapshot path ---------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Preflight (:func:`snapshot_plan.check`)."""
        self._ctx.look_up_patterns()
        snapshot_plan.check(self._ctx)

    def read_first_start(self) -> FirstStart:
        """Fix where this source may begin, for :meth:`start_snapshot` (:func:`joining.read_first_start`)."""
        with self._kept(), self._ctx.database.session() as session:
            table_fates.follow_configuration(self._ctx)
            return read_first_start(self._ctx, session)

    def start_snapshot(
        self,
        tables: list[TableId] | None = None,
        *,
        condition: str | None = None,
        signal_id: str | None = None,
        first: FirstStart | None = None,
    ) -> list[ChunkKey]:
        """Plan the first snapshot, or an ad hoc one (:func:`snapshot_plan.start_snapshot`); one condition for all tables."""

        def planned() -> list[ChunkKey]:
            with self._kept():
                table_fates.follow_configuration(self._ctx)
                policies.follow_policies(self._ctx)
                limited = [] if condition is None else self._ctx.configured(tables)
                return snapshot_plan.start_snapshot(
                    self._ctx,
                    tables,
                    conditions=dict.fromkeys(limited, condition or ""),
                    signal_id=signal_id,
                    first=first,
                )

        return look_again(planned)

    def pending_chunks(self, tables: list[TableId] | None = None) -> list[ChunkKey]:
        """Chunks that are not applied yet, in order."""
        return snapshot_plan.pending_chunks(self._ctx, tables)

    def snapshot_chunk(self, key: ChunkKey) -> StepReport:
        """Oracle → landing (:func:`chunk_read.snapshot_chunk`)."""
        return self._read_chunk(key)

    def apply_chunk(self, key: ChunkKey) -> StepReport:
        """Landing → change log and mirror (:func:`chunk_apply.apply_chunk`)."""
        return self._apply_chunk(key)

    def _read_chunk(self, key: ChunkKey, files: ChunkFiles | None = None) -> StepReport:
        with self._kept(key.table):
            return chunk_read.snapshot_chunk(self._ctx, key, files)

    def _apply_chunk(self, key: ChunkKey, files: ChunkFiles | None = None) -> StepReport:
        with self._kept(key.table):
            return chunk_apply.apply_chunk(self._ctx, key, files)

    # -- log path --------------------------------------------------------------------------------------------------

    def plan_windows(self, *, until: int | None = None) -> list[ScnWindow]:
        """Cut windows up to the present (:func:`window_plan.plan_windows`)."""
        with self._kept():
            table_fates.follow_configuration(self._ctx)
            policies.follow_policies(self._ctx)
            return window_plan.plan_windows(self._ctx, until=until)

    def window_named(self, text: str) -> ScnWindow:
        """The window that a partition key of Dagster, or `<scn_low>-<scn_high>`, names.

        Raises:
            PartitionKeyError: The text names no window.
            ConfigError: The source has no such window.
        """
        record = self.records.window_named(text)
        if record is None:
            raise ConfigError(
                "this source has no such window",
                hint="`redolake windows` lists them; plan new ones with `redolake capture`.",
                window=text,
                source=self.config.name,
            )
        return record.window

    def pending_windows(self) -> list[ScnWindow]:
        """Windows that are not applied yet, in order."""
        return window_plan.pending_windows(self._ctx)

    @contextmanager
    def reading_shared(
        self, window: ScnWindow, beside: Sequence[Pipeline]
    ) -> Iterator[Sequence[bool]]:
        """For a block in which this window is captured for this source and for those beside it: its redo, read once for those of them
        for which that can be done (:func:`window_sharing.read_shared`); for which that is so."""
        sharing = (self, *beside)
        found = window_sharing.read_shared(self._ctx, window, [one._ctx for one in beside])
        with ExitStack() as opened:
            for one, redo in zip(sharing, found, strict=True):
                if redo is not None:
                    opened.callback(redo.close)
                    opened.callback(one._shared.pop, window)
                    one._shared[window] = redo
            yield [redo is not None for redo in found]

    def capture_window(self, window: ScnWindow) -> StepReport:
        """Redo → landing (:func:`window_capture.capture_window`); with what was read of it already."""
        with self._kept():
            if (redo := self._shared.get(window)) is not None:
                return window_capture.capture_window(self._ctx, window, lambda _: nullcontext(redo))
            if (early := self._early) is None:
                return window_capture.capture_window(self._ctx, window)
            try:
                return window_capture.capture_window(self._ctx, window, early.turn)
            except (OracleUnavailableError, PreflightError) as error:
                if early.is_closed:
                    raise
                # The database may allow fewer sessions than are open.
                _LOG.warning(
                    "no window is read early any more, since a session was refused: %s", error
                )
                early.close()
                return window_capture.capture_window(self._ctx, window, early.turn)

    @contextmanager
    def reading_early(self, windows: Sequence[ScnWindow]) -> Iterator[None]:
        """For a block in which these windows are captured in order: read the redo of the next ones meanwhile, in
        ``capture.sessions`` sessions (:func:`window_early.reading_early`)."""
        with window_early.reading_early(self._ctx, windows) as early:
            self._early = early
            try:
                yield
            finally:
                self._early = None

    def apply_window(self, window: ScnWindow, tables: list[TableId] | None = None) -> StepReport:
        """Landing → change logs and mirrors (:func:`window_apply.apply_window`)."""
        with self._kept():
            return window_apply.apply_window(self._ctx, window, tables)

    def changed_tables(self, windows: Sequence[ScnWindow]) -> set[TableId]:
        """The tables that captured windows change (:func:`window_apply.changed_tables`)."""
        return window_apply.changed_tables(self._ctx, windows)

    def replay_window(self, window: ScnWindow, tables: list[TableId] | None = None) -> StepReport:
        """An old window once more (:func:`window_replay.replay_window`)."""
        return window_replay.replay_window(self._ctx, window, tables)

    def pass_idle_windows(
        self, capture: Callable[[ScnWindow], StepReport] | None = None
    ) -> WindowRecord | None:
        """Move over windows without anything for the captured tables (:func:`window_retire.pass_idle_windows`). ``capture`` captures each
        that is not captured yet: :meth:`capture_window` by default."""
        with self._kept():
            return window_retire.pass_idle_windows(self._ctx, capture or self.capture_window)

    def plan_recapture(
        self, *, needed_only: bool = True, first: ScnWindow | None = None
    ) -> Recapture:
        """Windows that landing has lost, and those to read again (:func:`window_recapture.plan_recapture`); with ``first``, from this
        one on, which is there (:func:`window_recapture.plan_recapture_from`)."""
        if first is not None:
            return window_recapture.plan_recapture_from(self._ctx, first)
        return window_recapture.plan_recapture(self._ctx, needed_only=needed_only)

    def recapture(
        self, *, needed_only: bool = True, first: ScnWindow | None = None
    ) -> Iterator[StepReport]:
        """Read windows again that landing has lost, or all from ``first`` on, yielding each (:func:`window_recapture.begin_recapture`)."""
        with self._kept():
            again = self.plan_recapture(needed_only=needed_only, first=first).again
            if again:
                window_recapture.begin_recapture(self._ctx, again)
        with self.reading_early([record.window for record in again]):
            for record in again:
                yield self.capture_window(record.window)

    def skip_gap(self) -> tuple[WindowRecord, list[TableRecord]] | None:
        """Let windows go on behind redo that is gone (:func:`window_capture.skip_gap`)."""
        with self._kept():
            return window_capture.skip_gap(self._ctx)

    def retire_windows(self) -> list[WindowRecord]:
        """Forget windows that are not needed any more (:func:`window_retire.retire_windows`)."""
        with self._kept():
            return window_retire.retire_windows(self._ctx)

    # -- the fates of tables ---------------------------------------------------------------------------------------

    def find_tables(self) -> list[FoundTable]:
        """Look the patterns of the configuration up in Oracle (:meth:`Context.look_up_patterns`)."""
        return self._ctx.look_up_patterns()

    def follow_policies(self) -> list[TableId]:
        """Let stopped tables join again whose policies say so (:func:`policies.follow_policies`)."""
        with self._kept():
            return policies.follow_policies(self._ctx)

    def take_policies(self) -> list[ChunkKey]:
        """The same, and plan the chunks of tables that have joined (:func:`policies.take_policies`)."""
        with self._kept():
            return policies.take_policies(self._ctx)

    def add_tables(self, tables: list[TableId]) -> list[ChunkKey]:
        """Take tables in (:func:`tables.add_tables`)."""
        with self._kept():
            return table_fates.add_tables(self._ctx, tables)

    def remove_tables(self, tables: list[TableId]) -> list[StreamEnd]:
        """End tables' streams; their Delta tables stay (:func:`tables.remove_tables`)."""
        with self._kept():
            return table_fates.remove_tables(self._ctx, tables)

    def pause_tables(self, tables: list[TableId]) -> list[TableRecord]:
        """Leave mirrors as they are (:func:`tables.pause_tables`)."""
        with self._kept():
            return table_fates.pause_tables(self._ctx, tables)

    def resume_tables(self, tables: list[TableId]) -> list[TableRecord]:
        """Go on where tables stand (:func:`tables.resume_tables`)."""
        with self._kept():
            return table_fates.resume_tables(self._ctx, tables)

    def resnapshot_tables(self, tables: list[TableId], *, fresh: bool = False) -> list[ChunkKey]:
        """Read tables anew (:func:`tables.resnapshot_tables`)."""
        with self._kept():
            return table_fates.resnapshot_tables(self._ctx, tables, fresh=fresh)

    def rebuild_mirror(self, table: TableId) -> StepReport:
        """Write a mirror anew from its change log (:func:`rebuilding.rebuild_mirror`)."""
        return rebuilding.rebuild_mirror(self._ctx, table)

    def rebuild_from_landing(self, table: TableId) -> StepReport:
        """Write change log and mirror anew from landing (:func:`rebuilding.rebuild_from_landing`)."""
        return rebuilding.rebuild_from_landing(self._ctx, table)

    def purge_column(self, table: TableId, column: str) -> table_fates.Purged:
        """Remove the values of an excluded column from the lake (:func:`tables.purge_column`)."""
        with self._kept():
            return table_fates.purge_column(self._ctx, table, column)

    def quarantine(self, table: TableId) -> dict[tuple[str, str], int]:
        """How many rows are in quarantine, by operation and reason (:func:`tables.quarantine`)."""
        return table_fates.quarantine(self._ctx, table)

    def purge_quarantine(self, table: TableId) -> list[str]:
        """Remove the redo text from a quarantine (:func:`tables.purge_quarantine`)."""
        with self._kept():
            return table_fates.purge_quarantine(self._ctx, table)

    def maintain(self, tables: list[TableId] | None = None) -> Iterator[Maintenance]:
        """Keep Delta tables quick, yielding each captured table (:func:`maintaining.maintain`)."""
        return maintaining.maintain(self._ctx, tables)

    # -- the metadata store ----------------------------------------------------------------------------------------

    def rebuild_state(self, *, replace: bool = False, dry_run: bool = False) -> StateRebuilt:
        """Make the metadata store anew from landing and lake (:func:`rebuild_state`)."""
        return rebuild_state(self._ctx, replace_store=replace, dry_run=dry_run)

    # -- signals, proof, status ------------------------------------------------------------------------------------

    def add_signal(self, signal: Signal) -> None:
        """Ask for something (:func:`signals.add_signal`)."""
        signals.add_signal(self._ctx, signal)

    def take_signals(self) -> list[tuple[Signal, list[ChunkKey]]]:
        """Plan what waiting signals ask for (:func:`signals.take_signals`)."""
        with self._kept():
            return signals.take_signals(self._ctx)

    def reconcile(
        self, tables: list[TableId] | None = None, *, scn: int | None = None, keys_max: int = 0
    ) -> Reconciliation:
        """Compare with Oracle at one SCN (:func:`reconciling.reconcile`)."""
        return reconciling.reconcile(self._ctx, tables, scn=scn, keys_max=keys_max)

    def repair(self, tables: list[TableId] | None = None) -> Iterator[StepReport]:
        """Compare, read again what differs, and put it right (:func:`reconciling.start_repair`), yielding each finished step.

        Where tables could not be compared, the first report names them.
        """
        started = time.monotonic()
        with self._kept():
            planned, left_out = reconciling.start_repair(self._ctx, tables)
        if left_out:
            yield StepReport(
                kind="repair-planned",
                key=self._ctx.source,
                seconds=seconds_since(started),
                left_out=tuple(left_out),
            )
        yield from looking_again(
            lambda: self._carry_chunks([one for one in self.pending_chunks() if one in planned])
        )

    def cut_at(self, scn: int | None = None) -> Cut:
        """The version of every mirror for one SCN (:func:`exact.cut_at`)."""
        return exact.cut_at(self._ctx, scn)

    def status(self, *, ask_oracle: bool = True) -> SourceStatus:
        """How the source stands (:func:`source_status.status`)."""
        return source_status.status(self._ctx, ask_oracle=ask_oracle)

    # -- all at once -----------------------------------------------------------------------------------------------

    def run_snapshot(
        self, tables: list[TableId] | None = None, **plan: Any
    ) -> Iterator[StepReport]:
        """Plan what is missing, then read and apply every pending chunk, yielding each finished step.

        Some tables are carried side by side (``lake.tables_at_once``), each read one chunk ahead.
        """
        self.start_snapshot(tables, **plan)
        yield from looking_again(lambda: self._carry_chunks(self.pending_chunks(tables)))

    def _carry_chunks(self, keys: list[ChunkKey]) -> Iterator[StepReport]:
        with closing(ChunkFiles(self._ctx)) as files:
            yield from carry_chunks(
                keys,
                lambda key: self._read_chunk(key, files),
                lambda key: self._apply_chunk(key, files),
                tables_at_once=self.config.lake.tables_at_once,
            )

    def run_windows(self, *, until: int | None = None) -> Iterator[StepReport]:
        """Finish pending windows, then cut, capture and apply up to the present, yielding each finished step.

        One window is captured ahead while the one before it is applied, and the redo of the next ones is read early where several
        wait.
        """
        for planned in (False, True):
            if planned:
                self.plan_windows(until=until)
            pending = self._carried = self.pending_windows()
            with (
                overtaken_where_forgotten(self.records.window, pending),
                self.reading_early(pending),
            ):
                yield from carry_windows(pending, self.capture_window, self.apply_window)
        self.retire_windows()

    def left_behind(
        self, tables: list[TableId] | None = None
    ) -> tuple[list[ChunkKey], list[ScnWindow]]:
        """What a run that ended without an error has not finished: chunks, and windows that
        :meth:`run_windows` carried last and that a table still wants."""
        pending = set(self.pending_windows()) if self._carried else set()
        return self.pending_chunks(tables), [one for one in self._carried if one in pending]

    def run_capture(self, *, until: int | None = None) -> Iterator[StepReport]:
        """Cut windows up to the present, and capture those that wait, yielding each; what another process does meanwhile
        is not done again."""
        return looking_again(partial(self._capture, until))

    def _capture(self, until: int | None) -> Iterator[StepReport]:
        self.plan_windows(until=until)
        windows = [one.window for one in self.records.windows(states=("planned",))]
        with overtaken_where_forgotten(self.records.window, windows), self.reading_early(windows):
            yield from map(self.capture_window, windows)

    def run_apply(self) -> Iterator[StepReport]:
        """Apply the captured windows, yielding each; what another process does meanwhile is not done again."""
        return looking_again(self._apply)

    def _apply(self) -> Iterator[StepReport]:
        planned = {one.window for one in self.records.windows(states=("planned",))}
        windows = [window for window in self.pending_windows() if window not in planned]
        with overtaken_where_forgotten(self.records.window, windows):
            yield from map(self.apply_window, windows)

    def run_once(self, *, until: int | None = None) -> Iterator[StepReport]:
        """Everything that there is to do now: the first snapshot, waiting signals, windows to the present (or to ``until``); then
        the tables that policies let join again, rows that came into tables without redo, and chunks that waited for a window. Where
        another process was first, it is looked at again what is left."""
        return looking_again(partial(self._everything, until))

    def _everything(self, until: int | None) -> Iterator[StepReport]:
        yield from self._with_windows(self.run_snapshot(), until)
        self.take_signals()
        yield from self._with_windows(self.run_snapshot(), until)
        yield from self.run_windows(until=until)
        self.follow_policies()
        while (before := self.pending_chunks()) or any(
            record.state == "snapshotting" or (record.state == "ready" and record.awaits_rows)
            for record in self.records.tables()
        ):
            yield from self._with_windows(self.run_snapshot(), until)
            yield from self.run_windows(until=until)
            if self.pending_chunks() == before:
                return

    def _with_windows(
        self, chunks: Iterator[StepReport], until: int | None
    ) -> Iterator[StepReport]:
        """Carry chunks, and between them the windows of the tables that are behind their own snapshot: a long snapshot delays
        nobody else, and windows do not delay the snapshot of many small tables (:class:`WindowRounds`). What stops a window stops no
        snapshot: it is told when the chunks are done and windows are tried again."""
        is_stopped, rounds = False, WindowRounds()
        for report in chunks:
            yield report
            if report.kind != "chunk-applied" or is_stopped or not rounds.is_due:
                continue
            if all(record.state != "ready" for record in self.records.tables()):
                continue
            try:
                with rounds.taking_one():
                    yield from self.run_windows(until=until)
            except OvertakenError:
                raise
            except CdcError as error:
                is_stopped = True
                _LOG.warning("windows wait for the snapshot to end: %s", error)
