"""The one door to a source: what can be done with it, step by step or all at once.

A step is a function of a source (:class:`~cdc_core.steps.context.Context`), written once, in the
module that its name leads to. :class:`Pipeline` is such a source, and lists its steps.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial, wraps
from itertools import count
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from cdc_core.change_reader import OpenReader, Recorder
from cdc_core.config import SourceConfig
from cdc_core.errors import (
    CdcError,
    ConfigError,
    LandingDamagedError,
    LeaseHeldError,
    OvertakenError,
    TransientError,
)
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.leases import CARRIERS
from cdc_core.leases import holders as holders_of
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import WindowRecord
from cdc_core.model.reports import Holder, Reporter, StepReport
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.readers import open_reader
from cdc_core.spark.session import SparkSource
from cdc_core.state.window_rows import no_such_window
from cdc_core.steps import alerts as source_alerts
from cdc_core.steps import (
    catalog,
    consistent_cut,
    current_views,
    forecast,
    history,
    maintenance,
    metrics,
    policies,
    rebuild,
    reconciliation,
    signals,
    table_lifecycle,
)
from cdc_core.steps import lag as source_lag
from cdc_core.steps import preview as run_preview
from cdc_core.steps import redo_profile as source_redo
from cdc_core.steps import status as source_status
from cdc_core.steps.context import Context, OpenLake, seconds_since
from cdc_core.steps.lookahead import carry_windows
from cdc_core.steps.notifications import Notifier
from cdc_core.steps.overtaken import (
    look_again,
    looking_again,
    overtaken_where_forgotten,
    overtaken_where_replanned,
)
from cdc_core.steps.publishing import tables as published_tables
from cdc_core.steps.signal_rows import captured_signal_table
from cdc_core.steps.snapshots import apply as chunk_apply
from cdc_core.steps.snapshots import estimating, starting
from cdc_core.steps.snapshots import plan as snapshot_plan
from cdc_core.steps.snapshots import read as chunk_read
from cdc_core.steps.snapshots.carrying import carry_chunks
from cdc_core.steps.snapshots.joining import FirstStart, read_first_start
from cdc_core.steps.source_view import SourceView
from cdc_core.steps.state import rebuild as state_rebuild
from cdc_core.steps.state.keeping import Keeper
from cdc_core.steps.state.stale_store import refuse_stale_store
from cdc_core.steps.windows import apply as window_apply
from cdc_core.steps.windows import capture as window_capture
from cdc_core.steps.windows import plan as window_plan
from cdc_core.steps.windows import recapture as window_recapture
from cdc_core.steps.windows import replay as window_replay
from cdc_core.steps.windows import retire as window_retire
from cdc_core.steps.windows.interleaving import WindowInterleaving

_LOG = logging.getLogger(__name__)


P = ParamSpec("P")
T = TypeVar("T")


def _kept(
    step: Callable[Concatenate[Context, P], T],
) -> Callable[Concatenate[Pipeline, P], T]:
    """A step that may change the metadata store: landing follows before and after it."""

    @wraps(step)
    def kept(source: Pipeline, /, *args: P.args, **named: P.kwargs) -> T:
        with source.kept_in_landing():
            return step(source, *args, **named)

    return kept


def _kept_of_table(
    step: Callable[Concatenate[Context, ChunkKey, P], T],
) -> Callable[Concatenate[Pipeline, ChunkKey, P], T]:
    """The same for a step on a chunk, which changes what the store has of its table alone."""

    @wraps(step)
    def kept(source: Pipeline, key: ChunkKey, /, *args: P.args, **named: P.kwargs) -> T:
        with source.kept_in_landing(key.table):
            return step(source, key, *args, **named)

    return kept


class Pipeline(Context):
    """A source and what can be done with it.

    Metadata store, landing store, Oracle and Spark are opened when a step first needs them, and
    closed by :meth:`close` or at the end of a ``with`` block. Every step may be repeated, by this
    or another process, at any time.

    Args:
        config: The source.
        report: Called with every finished step.
        on_statement: Called with the text of each statement before it is sent to Oracle.
        spark: Gives a Spark session to work in, in place of one that the lake starts.
        open_lake: Opens the Delta tables.
        open_reader: What reads the redo, by ``capture.type``.
    """

    def __init__(
        self,
        config: SourceConfig,
        *,
        report: Reporter | None = None,
        on_statement: Callable[[str], None] | None = None,
        spark: SparkSource | None = None,
        open_lake: OpenLake | None = None,
        open_reader: OpenReader = open_reader,
    ) -> None:
        super().__init__(
            config,
            report=Notifier(lambda: self, report),
            on_statement=on_statement,
            open_lake=open_lake or partial(DeltaLake, spark=spark),
            open_reader=open_reader,
        )
        self._keeper = Keeper(self)
        self._carried: Sequence[ScnWindow] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def release_sessions(self) -> None:
        """Close the sessions of the database: between two rounds of work nothing is held there.
        May be called at any time."""
        self.database.close()

    @property
    def records(self) -> SourceView:
        """What was done so far, for those who show it."""
        return SourceView(self.store, self.config)

    def start_spark(self) -> None:
        """Start Spark ahead of its first use."""
        self.lake.start()

    def holders(self, work: str) -> list[Holder]:
        """Who holds ``<source>/<work>`` and what is below it, and who of them is dead
        (:func:`cdc_core.leases.holders`)."""
        return holders_of(self.store, self.source, work)

    @contextmanager
    def carrying_windows(self) -> Iterator[None]:
        """Say for the block that this process carries the source's windows, so that an alert tells
        of two that do. Nobody is kept out: each step has a lease of its own."""
        with ExitStack() as seats:
            for seat in count(1):
                with suppress(LeaseHeldError):
                    seats.enter_context(self.lease(f"{CARRIERS}/{seat}", of_process=True))
                    break
            yield

    def release(self, holder: Holder) -> None:
        """Give back what a dead holder held."""
        self.store.leases.release(holder.lease)

    @contextmanager
    def kept_in_landing(self, table: TableId | None = None) -> Iterator[None]:
        """For a block that may change the metadata store, perhaps for one table alone: landing
        follows before and after it, unless the store is the older one."""
        if not self._keeper.is_loaded:
            refuse_stale_store(self)
        self._keeper.keep(table)
        try:
            yield
        finally:
            self._keeper.keep(table)

    # -- snapshot path ---------------------------------------------------------------------------

    check = snapshot_plan.check
    begin = _kept(starting.begin)
    decision = starting.decision
    preview = run_preview.preview
    estimate_snapshot = estimating.estimate_snapshot
    pending_chunks = snapshot_plan.pending_chunks
    snapshot_chunk = _kept_of_table(chunk_read.snapshot_chunk)
    apply_chunk = _kept_of_table(chunk_apply.apply_chunk)

    def read_first_start(self) -> FirstStart:
        """Fix where this source may begin, for :meth:`start_snapshot`
        (:func:`joining.read_first_start`)."""
        with self.kept_in_landing(), self.database.session() as session:
            table_lifecycle.follow_configuration(self)
            return read_first_start(self, session)

    def start_snapshot(
        self,
        tables: list[TableId] | None = None,
        *,
        condition: str | None = None,
        signal_id: str | None = None,
        first: FirstStart | None = None,
    ) -> list[ChunkKey]:
        """Plan the first snapshot, or an ad hoc one (:func:`snapshot_plan.start_snapshot`); one
        condition for all tables."""

        def planned() -> list[ChunkKey]:
            with self.kept_in_landing():
                table_lifecycle.follow_configuration(self)
                policies.follow_policies(self)
                limited = [] if condition is None else self.configured(tables)
                return snapshot_plan.start_snapshot(
                    self,
                    tables,
                    conditions=dict.fromkeys(limited, condition or ""),
                    signal_id=signal_id,
                    first=first,
                )

        return look_again(planned)

    # -- log path --------------------------------------------------------------------------------

    pending_windows = window_plan.pending_windows
    capture_window = _kept(window_capture.capture_window)
    prefetching = window_capture.prefetching
    apply_window = _kept(window_apply.apply_window)
    changed_tables = window_apply.changed_tables
    replay_window = window_replay.replay_window
    retire_windows = _kept(window_retire.retire_windows)
    plan_recapture = window_recapture.plan_recapture
    skip_gap = _kept(window_capture.skip_gap)

    def plan_windows(self, *, until: int | None = None) -> list[ScnWindow]:
        """Cut windows up to the present (:func:`window_plan.plan_windows`)."""
        with self.kept_in_landing():
            table_lifecycle.follow_configuration(self)
            policies.follow_policies(self)
            return window_plan.plan_windows(self, until=until)

    def window_named(self, text: str) -> ScnWindow:
        """The window that a partition key of Dagster, or `<scn_low>-<scn_high>`, names.

        Raises:
            PartitionKeyError: The text names no window.
            ConfigError: The source has no such window.
        """
        record = self.records.window_named(text)
        if record is None:
            raise no_such_window(self.config.name, text)
        return record.window

    def pass_idle_windows(
        self, capture: Callable[[ScnWindow], StepReport] | None = None
    ) -> WindowRecord | None:
        """Move over windows without anything for the captured tables
        (:func:`window_retire.pass_idle_windows`). ``capture`` captures each that is not captured
        yet: :meth:`capture_window` by default."""
        with self.kept_in_landing():
            return window_retire.pass_idle_windows(self, capture or self.capture_window)

    def recapture(
        self, *, needed_only: bool = True, first: ScnWindow | None = None
    ) -> Iterator[StepReport]:
        """Read windows again that landing has lost, or all from ``first`` on, yielding each
        (:func:`window_recapture.begin_recapture`)."""
        with self.kept_in_landing():
            again = self.plan_recapture(needed_only=needed_only, first=first).again
            if again:
                window_recapture.begin_recapture(self, again)
        with self.prefetching([record.window for record in again]):
            for record in again:
                yield self.capture_window(record.window)

    # -- the fates of tables ---------------------------------------------------------------------

    follow_policies = _kept(policies.follow_policies)
    take_policies = _kept(policies.take_policies)
    add_tables = _kept(table_lifecycle.add_tables)
    remove_tables = _kept(table_lifecycle.remove_tables)
    pause_tables = _kept(table_lifecycle.pause_tables)
    resume_tables = _kept(table_lifecycle.resume_tables)
    resnapshot_tables = _kept(table_lifecycle.resnapshot_tables)
    rebuild_mirror = rebuild.rebuild_mirror
    rebuild_from_landing = rebuild.rebuild_from_landing
    purge_column = _kept(table_lifecycle.purge_column)
    quarantine = table_lifecycle.quarantine
    purge_quarantine = _kept(table_lifecycle.purge_quarantine)
    maintain = maintenance.maintain

    # -- signals, proof, status, the metadata store ----------------------------------------------

    add_signal = signals.add_signal
    take_signals = _kept(signals.take_signals)
    reconcile = reconciliation.reconcile
    cut_at = consistent_cut.cut_at
    cut_sql = consistent_cut.cut_sql
    create_duckdb_views = consistent_cut.create_duckdb_views
    keep_current_views = current_views.keep_current_views
    status = source_status.status
    measure = metrics.measure
    alerts = source_alerts.alerts
    log_headroom = source_alerts.log_headroom
    tell_changes = source_alerts.tell_changes
    lag = source_lag.lag
    plan_work = forecast.plan_work
    redo_profile = source_redo.redo_profile
    publish = published_tables.publish
    keep_history = history.keep_history
    register_tables = catalog.register_tables
    rebuild_state = state_rebuild.rebuild_state

    def send_metrics(self) -> None:
        """Give a collector of OpenTelemetry the metrics until the pipeline is closed, where
        ``telemetry.endpoint`` names one."""
        if self.telemetry is not None:
            ask = self.config.metrics.ask_oracle
            self.telemetry.measure(lambda: self.measure(ask_oracle=ask))

    def repair(self, tables: list[TableId] | None = None) -> Iterator[StepReport]:
        """Compare, read again what differs, and put it right (:func:`reconciliation.start_repair`),
        yielding each finished step.

        Where tables could not be compared, the first report names them.
        """
        started = time.monotonic()
        with self.kept_in_landing():
            planned, left_out = reconciliation.start_repair(self, tables)
        if left_out:
            yield StepReport(
                kind="repair-planned",
                key=self.source,
                seconds=seconds_since(started),
                left_out=tuple(left_out),
            )
        yield from looking_again(
            lambda: self._carry_pending([one for one in self.pending_chunks() if one in planned])
        )

    # -- all at once -----------------------------------------------------------------------------

    def run_snapshot(
        self, tables: list[TableId] | None = None, **plan: Any
    ) -> Iterator[StepReport]:
        """Plan what is missing, then read and apply every pending chunk, yielding each finished
        step.

        ``snapshot.sessions`` chunks are read at once, of ``lake.tables_at_once`` tables or of one,
        and applied as they land.
        """
        self.start_snapshot(tables, **plan)
        yield from looking_again(lambda: self._carry_pending(self.pending_chunks(tables)))

    def _carry_pending(self, keys: list[ChunkKey]) -> Iterator[StepReport]:
        watch = signals.SignalWatch(self, self.take_signals)
        return self._carry_chunks(keys, watch.look, are_asked_for=False)

    def carry_chunks(self, keys: Sequence[ChunkKey]) -> Iterator[StepReport]:
        """Read and apply these chunks, as :meth:`run_snapshot` does, yielding each finished step;
        those that are done too. Where another process was first, it is looked at again.

        Raises:
            TableStoppedError: A table failed, by something that is about it alone.
            SnapshotPausedError: Snapshots are paused.
            WindowFirstError: A chunk can be read or applied when windows up to its SCN are
                captured.
        """
        applied: set[ChunkKey] = set()

        def left() -> Iterator[StepReport]:
            waiting = [key for key in keys if key not in applied]
            for report in self._carry_chunks(waiting, lambda: None, are_asked_for=True):
                if report.kind == "chunk-applied" and report.table is not None:
                    applied.add(ChunkKey.parse(report.table, report.key))
                yield report

        return looking_again(left)

    def _carry_chunks(
        self, keys: Sequence[ChunkKey], before: Callable[[], None], *, are_asked_for: bool
    ) -> Iterator[StepReport]:
        """Chunks that are asked for must be there; pending ones may give way to newer ones."""

        def read(key: ChunkKey) -> StepReport:
            before()
            with nullcontext() if are_asked_for else overtaken_where_replanned(self, key):
                return self.snapshot_chunk(key)

        def apply(key: ChunkKey) -> StepReport:
            with nullcontext() if are_asked_for else overtaken_where_replanned(self, key):
                return self.apply_chunk(key)

        return carry_chunks(
            keys,
            read,
            apply,
            sessions=self.config.snapshot.sessions_at_once,
            tables_at_once=self.config.lake.tables_at_once,
            leaves_tables=not are_asked_for,
        )

    def record_redo(self, folder: str, *, low: int | None = None) -> int:
        """Write what the reader gives into a new file of a folder, or of an object store's, for a
        source elsewhere; how many records.

        Raises:
            ConfigError: The reader records nothing.
        """
        reader = self.change_reader
        if not isinstance(reader, Recorder):
            raise ConfigError(
                "this reader records nothing",
                hint="Recordings are made of an XStream outbound server: `type: xstream` under capture, with its name "
                "under server.",
                type=self.config.capture.type,
            )
        return reader.record(folder, low=None if low is None else Scn(low))

    def run_windows(self, *, until: int | None = None) -> Iterator[StepReport]:
        """Finish pending windows, then cut, capture and apply up to the present, yielding each
        finished step.

        One window is captured ahead while the one before it is applied, and the redo of the next
        ones is read early where several wait.
        """
        for planned in (False, True):
            if planned:
                self.plan_windows(until=until)
            pending = self._carried = self.pending_windows()
            with (
                overtaken_where_forgotten(self.records.window, pending),
                self.prefetching(pending),
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
        """Cut windows up to the present, and capture those that wait, yielding each; what another
        process does meanwhile is not done again."""
        return looking_again(partial(self._capture, until))

    def _capture(self, until: int | None) -> Iterator[StepReport]:
        self.plan_windows(until=until)
        windows = [one.window for one in self.records.windows(states=("planned",))]
        with overtaken_where_forgotten(self.records.window, windows), self.prefetching(windows):
            yield from map(self.capture_window, windows)

    def run_apply(self) -> Iterator[StepReport]:
        """Apply the captured windows, yielding each; what another process does meanwhile is not
        done again."""
        return looking_again(self._apply)

    def _apply(self) -> Iterator[StepReport]:
        planned = {one.window for one in self.records.windows(states=("planned",))}
        windows = [window for window in self.pending_windows() if window not in planned]
        with overtaken_where_forgotten(self.records.window, windows):
            yield from map(self.apply_window, windows)

    def run_once(self, *, until: int | None = None) -> Iterator[StepReport]:
        """Everything that there is to do now: the first snapshot, waiting signals, windows to the
        present (or to ``until``); then the tables that policies let join again, rows that came into
        tables without redo, and chunks that waited for a window. Where another process was first,
        it is looked at again what is left."""
        return looking_again(partial(self._everything, until))

    def _everything(self, until: int | None) -> Iterator[StepReport]:
        yield from self._chunks(until)
        self.take_signals()
        yield from self._chunks(until)
        yield from self.run_windows(until=until)
        if captured_signal_table(self) is not None:  # the windows may have brought some
            self.take_signals()
        self.follow_policies()
        while (before := self.pending_chunks()) or any(
            record.state == "snapshotting" or (record.state == "ready" and record.awaits_rows)
            for record in self.records.tables()
        ):
            yield from self._chunks(until)
            yield from self.run_windows(until=until)
            if self.pending_chunks() == before:
                return

    def _chunks(self, until: int | None) -> Iterator[StepReport]:
        """Carry the chunks that wait. What stops them, such as a limit of Oracle's for one query
        or a damaged file, keeps no window from the tables that have their rows: it is raised behind
        these."""
        try:
            yield from self._with_windows(self.run_snapshot(), until)
        except LeaseHeldError:
            raise
        except (TransientError, LandingDamagedError) as error:
            if all(record.state != "ready" for record in self.records.tables()):
                raise
            _LOG.warning("windows continue without the chunks: %s", error)
            yield from self.run_windows(until=until)
            raise

    def _with_windows(
        self, chunks: Iterator[StepReport], until: int | None
    ) -> Iterator[StepReport]:
        """Carry chunks, and between them the windows of the tables that are behind their own
        snapshot: a long snapshot delays nobody else, and windows do not delay the snapshot of many
        small tables (:class:`WindowInterleaving`). What stops a window stops no snapshot: it is
        told when the chunks are done and windows are tried again."""
        is_stopped, rounds = False, WindowInterleaving()
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
