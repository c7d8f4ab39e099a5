"""A source without Oracle and Spark, for tests of the assets: the metadata store is the real one, the data is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cdc_core.config import SourceConfig
from cdc_core.errors import CdcError, ConfigError, NotYetError
from cdc_core.landing.manifest import ChunkManifest, LandedFile, WindowManifest
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import ChunkRecord, SourceRecord, TableRecord, WindowRecord
from cdc_core.model.reports import (
    Cut,
    Maintenance,
    MirrorVersion,
    MirrorWrite,
    Reconciliation,
    SourceStatus,
    StepReport,
    TableApplied,
    TableComparison,
    TableHistory,
    TableMaintained,
    TopicPublished,
)
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.signals import Signal
from cdc_core.schema.table import Column, TableSchema
from cdc_core.spark.session import SparkSource
from cdc_core.state.schemas import SchemaVersion
from cdc_core.steps import Pipeline
from cdc_core.steps.snapshots.joining import FirstStart
from tests.landing.facts import LANDED, PLANNED
from tests.state.writing import save_table

EMPLOYEES = TableId("HR", "EMPLOYEES")
JOBS = TableId("HR", "JOBS")
SNAPSHOT_SCN = Scn(1000)
CHUNKS_PER_TABLE = 3


def ended(scn: int) -> datetime:
    """When the stand-in's Oracle was at an SCN: one a second."""
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=scn)


def partition(low: int, high: int) -> str:
    """A window's partition key, for example ``2026-01-01T00:25:00Z_1000-1500``."""
    return ScnWindow(Scn(low), Scn(high)).partition_key(ended(high))


def schema_of(table: TableId, scn: Scn = SNAPSHOT_SCN) -> TableSchema:
    return TableSchema(
        table,
        scn,
        (
            Column("ID", "NUMBER", 22, 0, 10, 0, nullable=False),
            Column("NAME", "VARCHAR2", 40, 40, None, None, nullable=True),
        ),
        ("ID",),
    )


def config_in(folder: Path) -> SourceConfig:
    return SourceConfig.model_validate(
        {
            "name": "hr",
            "oracle": {"dsn": "localhost:1521/FREEPDB1", "user": "cdc", "password": "secret"},
            "tables": [{"name": "HR.EMPLOYEES"}, {"name": "HR.JOBS"}],
            "capture": {"windows_per_run_max": 4},
            "landing": {"type": "local", "path": str(folder / "landing")},
            "lake": {"path": str(folder / "lake"), "transactions": True},
            "state": {"url": f"sqlite:///{folder}/state.db", "lease_seconds": 60},
        }
    )


class StandIn(Pipeline):
    """A :class:`~cdc_core.steps.Pipeline`. ``scn`` is Oracle's; ``fail_at`` makes a window fail; ``calls`` is what was
    done to the data, in order."""

    def __init__(self, config: SourceConfig) -> None:
        super().__init__(config)
        self.scn = 2000
        self.window_scns = 500
        self.fail_at: dict[str, CdcError] = {}
        self.calls: list[tuple[str, str]] = []
        self.read_early: list[list[str]] = []
        self.differences: dict[str, int] = {}
        self.views_fail = False
        self.history_fails: dict[TableId, str] = {}
        self.idle_below = 0
        self.unchanged: set[TableId] = set()
        self.spark: SparkSource | None = None

    @classmethod
    def open(cls, folder: Path) -> StandIn:
        return cls(config_in(folder))

    def configure(self, config: SourceConfig) -> None:
        """Follow another configuration of the same source from here on."""
        self._written, self._config = config, None

    @contextmanager
    def opened(self, *, spark: SparkSource | None = None) -> Iterator[StandIn]:
        self.spark = spark
        yield self

    @property
    def tables(self) -> list[TableId]:
        return [table.table for table in self.config.tables]

    def release_sessions(self) -> None:
        self.calls.append(("release_sessions", ""))

    def snapshotted(self) -> StandIn:
        """The first snapshot is done."""
        for key in self.start_snapshot():
            self.snapshot_chunk(key)
            self.apply_chunk(key)
        self.calls.clear()
        return self

    def start_snapshot(
        self,
        tables: list[TableId] | None = None,
        *,
        condition: str | None = None,
        signal_id: str | None = None,
        first: FirstStart | None = None,
    ) -> list[ChunkKey]:
        is_first = self.store.source.get() is None
        if is_first:
            self.store.source.save(
                SourceRecord(
                    name=self.source,
                    snapshot_scn=SNAPSHOT_SCN,
                    mining_low=Scn(900),
                    resetlogs_change=1,
                )
            )
        scn = SNAPSHOT_SCN if is_first else Scn(self.scn)
        planned = [
            ChunkRecord(
                source=self.source,
                table=table,
                snapshot_id=f"s{scn}",
                number=number,
                scn=scn,
                range={"kind": "key", "low": ["100"], "high": ["200"]},
                condition=condition,
                signal_id=signal_id,
            )
            for table in (tables or (self.tables if is_first else []))
            for number in range(CHUNKS_PER_TABLE)
        ]
        for table in self.tables if is_first else []:
            self.store.schemas.save(SchemaVersion(self.source, schema_of(table)))
            save_table(
                self.store,
                TableRecord(
                    source=self.source,
                    table=table,
                    state="snapshotting",
                    snapshot_id=f"s{scn}",
                    snapshot_scn=scn,
                    consistent_scn=scn,
                ),
            )
        self.store.chunks.plan(planned)
        return [ChunkKey(chunk.table, chunk.snapshot_id, chunk.number) for chunk in planned]

    def left_behind(
        self, tables: list[TableId] | None = None
    ) -> tuple[list[ChunkKey], list[ScnWindow]]:
        return self.pending_chunks(tables), []

    def pending_chunks(self, tables: list[TableId] | None = None) -> list[ChunkKey]:
        return [
            ChunkKey(chunk.table, chunk.snapshot_id, chunk.number)
            for chunk in self.store.chunks.find(states=("planned", "landed"))
            if tables is None or chunk.table in tables
        ]

    def run_snapshot(
        self, tables: list[TableId] | None = None, **plan: Any
    ) -> Iterator[StepReport]:
        self.start_snapshot(tables, **plan)
        for key in self.pending_chunks(tables):
            yield self.snapshot_chunk(key)
            yield self.apply_chunk(key)

    def snapshot_chunk(self, key: ChunkKey) -> StepReport:
        self._begin("snapshot", f"{key.table} {key.key}")
        record = self.store.chunks.get(key)
        if record is None:
            raise ConfigError("no such chunk was planned", hint="Plan it.", chunk=key.key)
        if record.state == "planned":
            manifest = ChunkManifest(
                source=self.source,
                schema=schema_of(key.table),
                snapshot_id=key.snapshot_id,
                number=key.number,
                scn=record.scn,
                files=(),
                rows=10,
                condition=record.condition,
                seconds=0.5,
                landed=LANDED,
            )
            self.store.chunks.record_landed(manifest, "0" * 64)
        return StepReport(
            kind="chunk-landed",
            key=key.key,
            seconds=0.5,
            rows=10,
            table=key.table,
            scn_high=record.scn,
        )

    def apply_chunk(self, key: ChunkKey) -> StepReport:
        self.store.chunks.record_applied(key, seconds=0.1)
        self.store.tables.finish_snapshot(key.table)
        record = self.store.chunks.get(key)
        assert record is not None
        return StepReport(
            kind="chunk-applied",
            key=key.key,
            seconds=0.1,
            rows=10,
            table=key.table,
            scn_high=record.scn,
        )

    def take_policies(self) -> list[ChunkKey]:
        return []

    def plan_windows(self, *, until: int | None = None) -> list[ScnWindow]:
        if self.store.source.get() is None:
            raise NotYetError("this source has no snapshot yet", hint="Run `redolake snapshot`.")
        last = self.store.windows.find(newest_first=True, limit=1)
        low = last[0].window.scn_high if last else SNAPSHOT_SCN
        bounds = []
        while low < self.scn:
            high = Scn(min(low + self.window_scns, self.scn))
            bounds.append(ScnWindow(low, high))
            low = high
        if bounds:
            ends = [ended(window.scn_high) for window in bounds]
            self.store.windows.plan(bounds, ends=ends)
        return bounds

    def pass_idle_windows(
        self, capture: Callable[[ScnWindow], StepReport] | None = None
    ) -> WindowRecord | None:
        """Windows that end at ``idle_below`` or before have nothing."""
        for record in self.store.windows.find(states=("planned", "captured")):
            if record.window.scn_high > self.idle_below:
                return record
            (capture or self.capture_window)(record.window)
            self.apply_window(record.window)
        return None

    def retire_windows(self) -> list[WindowRecord]:
        return self.store.history.retire(before=None)

    def window_named(self, text: str) -> ScnWindow:
        found = self.records.window_named(text)
        if found is None:
            raise ConfigError("this source has no such window", hint="List them.", window=text)
        return found.window

    def pending_windows(self) -> list[ScnWindow]:
        records = self.store.windows.find(states=("planned", "captured"))
        return [record.window for record in records]

    @contextmanager
    def prefetching(self, windows: Sequence[ScnWindow]) -> Iterator[None]:
        self.read_early.append([window.key for window in windows])
        yield

    def capture_window(self, window: ScnWindow) -> StepReport:
        self._begin("capture", window.key)
        record = self.store.windows.get(window)
        if record is None:
            raise ConfigError("this source has no such window", hint="Plan it.", window=window.key)
        idle = window.scn_high <= self.idle_below
        manifest = WindowManifest(
            source=self.source,
            window=window,
            ordinal=record.ordinal,
            mining_low=record.mining_low,
            redo_files=(),
            files_by_table={},
            transactions_file=LandedFile("transactions.parquet", 0, 0, ""),
            rows_by_table={} if idle else {str(table): 7 for table in self.tables},
            tables_committed=() if idle else tuple(map(str, self.tables)),
            transactions_committed=1,
            transactions_rolled_back=0,
            transactions_open=0,
            logs=(),
            schemas=(),
            schema_changes=(),
            resetlogs_change=1,
            seconds=0.2,
            positions=(),
            planned=PLANNED,
            landed=LANDED,
        )
        repeated = record.state != "planned"
        self.store.windows.record_captured(manifest, "0" * 64, [])
        return StepReport(
            kind="window-captured",
            key=window.key,
            seconds=0.2,
            rows=14,
            bytes=1000,
            scn_low=window.scn_low,
            scn_high=window.scn_high,
            facts={"transactions_open": 0},
            repeated=repeated,
        )

    def apply_window(self, window: ScnWindow, tables: list[TableId] | None = None) -> StepReport:
        self._begin("apply", window.key)
        done = []
        for table in tables or self.tables:
            state = self.store.tables.get(table)
            assert state is not None
            assert state.mirror_scn is not None
            if state.mirror_scn >= window.scn_high:
                continue
            if state.mirror_scn < window.scn_low:
                raise NotYetError(
                    "the mirror has not applied the previous window",
                    hint="Apply in order.",
                    window=window.key,
                )
            applied = TableApplied(
                table=table,
                changes=0 if table in self.unchanged else 7,
                rows_inserted=3,
                rows_updated=2,
                rows_deleted=2,
                seconds=0.3,
                write=MirrorWrite("copy-on-write", "mirror of 3.0 MB"),
            )
            self.store.windows.advance_tables(window, {table: window.scn_high}, applied)
            done.append(applied)
        states = [self.store.tables.get(table) for table in self.tables]
        if all(state and (state.mirror_scn or 0) >= window.scn_high for state in states):
            self.store.windows.record_applied(window, 0.4)
        return self._window_report("window-applied", window, done)

    def run_capture(self, *, until: int | None = None) -> Iterator[StepReport]:
        self.plan_windows(until=until)
        for record in self.store.windows.find(states=("planned",)):
            yield self.capture_window(record.window)

    def run_apply(self) -> Iterator[StepReport]:
        for record in self.store.windows.find(states=("captured",)):
            yield self.apply_window(record.window)

    def changed_tables(self, windows: Sequence[ScnWindow]) -> set[TableId]:
        return {
            table for table in self.tables if any(w.scn_high > self.idle_below for w in windows)
        }

    def replay_window(self, window: ScnWindow, tables: list[TableId] | None = None) -> StepReport:
        self._begin("replay", window.key)
        done = [
            TableApplied(table=table, seconds=0.1, skipped=True) for table in tables or self.tables
        ]
        return self._window_report("window-replayed", window, done)

    def add_signal(self, signal: Signal) -> bool:
        return self.store.signals.add(signal)

    def skip_gap(
        self, *, is_replaced: bool = False
    ) -> tuple[WindowRecord | None, list[TableRecord]] | None:
        return None

    def take_signals(self) -> list[tuple[Signal, list[ChunkKey]]]:
        taken = []
        for signal in self.store.signals.pending():
            if self.store.signals.take(signal.id) is None:
                continue
            tables = [TableId.parse(name) for name in signal.data["data-collections"]]
            keys = self.start_snapshot(tables, signal_id=signal.id)
            self.store.signals.finish(signal.id, state="done")
            taken.append((signal, keys))
        return taken

    def repair(self, tables: list[TableId] | None = None) -> Iterator[StepReport]:
        for table in tables or self.tables:
            if self.differences.pop(str(table), 0):
                self.calls.append(("repair", str(table)))
                yield StepReport(
                    kind="chunk-applied", key="r2000:000000", seconds=0.1, rows=1, table=table
                )

    def maintain(self, tables: list[TableId] | None = None) -> Iterator[Maintenance]:
        """A mirror whose files became one; it is left alone, and that is a failure, where ``differences`` names it."""
        for table in tables or self.tables:
            self.calls.append(("maintain", str(table)))
            if self.differences.get(str(table)):
                yield Maintenance(table=table, left_alone="Delta refused", is_failed=True)
                continue
            done = TableMaintained(
                table=table,
                layer="mirror",
                files_before=12,
                files_after=1,
                bytes_before=3 * 1024 * 1024,
                bytes_after=1024 * 1024,
                files_removed=7,
                had_vectors=False,
                has_vectors=True,
                seconds=0.5,
            )
            yield Maintenance(table=table, done=(done,))

    def keep_history(
        self, tables: list[TableId] | None = None, *, anew: bool = False
    ) -> Iterator[TableHistory]:
        for table in self.configured(tables):
            if not self.config.has_history(table):
                continue
            self.calls.append(("history", str(table)))
            yield TableHistory(table=table, is_whole=anew, failed=self.history_fails.get(table))

    def keep_current_views(self) -> Cut | None:
        if not self.config.lake.current_views.is_any:
            return None
        self.calls.append(("views", ""))
        if self.views_fail:
            raise NotYetError("no mirror is exact as of this SCN")
        scn = min(int(one.mirror_scn or 0) for one in self.store.tables.all())
        return Cut(scn, tuple(MirrorVersion(str(one), 7, "/lake") for one in self.tables))

    def publish(self) -> Iterator[TopicPublished]:
        for table in self.tables:
            self._begin("publish", str(table))
            yield TopicPublished(topic=str(table), table=table, events=3, version=7)

    def reconcile(
        self, tables: list[TableId] | None = None, *, scn: int | None = None, keys_max: int = 0
    ) -> Reconciliation:
        for table in tables or self.tables:
            differences = self.differences.get(str(table), 0)
            self.store.comparisons.keep(
                table, scn=Scn(scn or self.scn), rows=10, differences=differences
            )
        return Reconciliation(
            scn or self.scn,
            tuple(
                TableComparison(
                    table=str(table),
                    rows_oracle=10,
                    rows_delta=10,
                    double_keys_oracle=0,
                    double_keys_delta=0,
                    differences=self.differences.get(str(table), 0),
                    keys=("ID=1",)[:keys_max] if self.differences.get(str(table)) else (),
                    digest_oracle="aa",
                    digest_delta="aa",
                    engine="arrow",
                    seconds=0.1,
                )
                for table in tables or self.tables
            ),
        )

    def status(self, *, ask_oracle: bool = True) -> SourceStatus:
        return SourceStatus(
            source=self.source,
            scn_oracle=self.scn,
            windows_planned=0,
            windows_captured=0,
            windows_applied=0,
            open_transactions=0,
            oldest_open_scn=None,
            signals_pending=0,
            tables=(),
        )

    def _begin(self, step: str, key: str) -> None:
        self.calls.append((step, key))
        if error := self.fail_at.get(f"{step} {key}"):
            raise error

    def _window_report(self, kind: Any, window: ScnWindow, done: list[TableApplied]) -> StepReport:
        return StepReport(
            kind=kind,
            key=window.key,
            seconds=0.4,
            rows=sum(one.changes for one in done),
            tables=tuple(done),
            scn_low=window.scn_low,
            scn_high=window.scn_high,
            repeated=not done,
        )
