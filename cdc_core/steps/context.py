"""What does every step need, and when is it opened?"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

from cdc_core.change_reader import ChangeReader, OpenReader
from cdc_core.config import LakeConfig, SourceConfig, refuse_several
from cdc_core.decode.masking import Masks, masks_by_table, with_marked_salts
from cdc_core.errors import (
    RESNAPSHOT,
    ConfigError,
    FencedError,
    LandingDamagedError,
    LeaseHeldError,
    NotYetError,
    OtherDatabaseError,
    SecondWriterError,
    StoreUnavailableError,
    TerminalError,
    TransientError,
)
from cdc_core.lake.lake import Lake, TableLake
from cdc_core.lake.side_tables.moved_tables import refuse_moved
from cdc_core.lake.table_context import Fence, no_fence
from cdc_core.landing.definitions import KeptDefinitions
from cdc_core.landing.fenced import FencedLanding
from cdc_core.landing.layout import window_folder
from cdc_core.landing.manifest import (
    MANIFEST_NAME,
    WindowManifest,
    digest_of,
    read_window_manifest,
)
from cdc_core.landing.open import open_landing
from cdc_core.landing.store import LandingStore
from cdc_core.leases import HeldLease, given_up, held
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import SourceRecord, TableRecord, WindowRecord
from cdc_core.model.reports import FoundTable, Reporter, StepKind, StepReport
from cdc_core.model.scn import SCN_MAX, Scn, ScnWindow
from cdc_core.oracle.database import OracleDatabase
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.converters import check_converters
from cdc_core.schema.table import TableSchema
from cdc_core.state.store import Store
from cdc_core.state.window_rows import no_such_window
from cdc_core.steps.lineage import Lineage
from cdc_core.steps.pattern_matching import look_up, with_matches
from cdc_core.steps.telemetry import Telemetry
from cdc_core.steps.windows.prefetch import RedoTurns

OpenLake = Callable[[LakeConfig, str], Lake]
"""How a source's lake is opened."""

LOG = logging.getLogger("cdc_core.steps")
_MANIFESTS_MAX = 4
"""So many manifests are kept: a step reads that of its window more than once."""


class Context:
    """A source's configuration and what was opened for it so far. Safe for use from several
    threads.

    ``database`` is where snapshots are read from, ``change_reader`` what reads the redo.
    """

    def __init__(
        self,
        config: SourceConfig,
        *,
        report: Reporter | None,
        on_statement: Callable[[str], None] | None,
        open_lake: OpenLake,
        open_reader: OpenReader,
    ) -> None:
        refuse_several(config)
        # A salt that lacks, or a wrong converter, stops everything, before anything is read.
        masks_by_table(config)
        check_converters(config)
        self._written = config
        self._config: SourceConfig | None = None
        self._matched: list[FoundTable] | None = None
        self.database = OracleDatabase(
            config.oracle,
            on_statement=on_statement,
            check=self._refuse_another_database,
            refusals=lambda: self.store.refused_logins,
        )
        self._open_reader = open_reader
        self._open_lake = open_lake
        self._report = report
        has_collector = config.telemetry.endpoint is not None
        self.telemetry = Telemetry(config.name, config.telemetry) if has_collector else None
        self.lineage = Lineage(config, self._newest_schema) if config.openlineage.enabled else None
        self._lock = threading.RLock()
        self._store: Store | None = None
        self._landing: LandingStore | None = None
        self._sets: KeptDefinitions | None = None
        self._manifests: dict[str, WindowManifest] = {}
        self._lake: Lake | None = None
        self._writer: HeldLease | None = None
        self._leases = ExitStack()
        self._held: set[HeldLease] = set()
        self._is_given_up = False
        self.turns = RedoTurns()

    @property
    def source(self) -> str:
        """The source's name."""
        return self._written.name

    @property
    def config(self) -> SourceConfig:
        """The configuration, with the tables that were found in the place of patterns."""
        with self._lock:
            if self._config is None:
                written = self._written
                found = self.store.matches.get() if written.has_patterns else []
                self._config = with_marked_salts(with_matches(written, found))
            return self._config

    @property
    def change_reader(self) -> ChangeReader:
        """What reads the database's redo, by the configuration as it is now. It keeps no state, so
        each use may have its own."""
        return self._open_reader(self.config, self.database)

    def change_reader_now(self) -> ChangeReader:
        """The same of the database that is there now, whichever it is."""
        return self._open_reader(self.config, self.database.unchecked())

    def _refuse_another_database(self, session: OracleSession) -> None:
        """Rows, definitions and SCNs of another database say nothing of this source.

        Raises:
            OtherDatabaseError: It is not the one that the source began with.
        """
        known = self.store.source.get()
        for what, expected, current in (
            ("oracle.dsn leads to another database than the one that the source began with",
             known and known.dbid, session.dbid),
            ("the pluggable database is another one than the one that the source began with",
             known and known.container_dbid, session.container_dbid),
        ):  # fmt: skip
            if expected is not None and expected != current:
                raise OtherDatabaseError(
                    what,
                    hint="Set oracle.dsn to that database again. Where this one is in its place for"
                    " good, `redolake source skip-gap --replaced` ends all streams, and"
                    f" {RESNAPSHOT} brings each table back from this one.",
                    expected=expected,
                    current=current,
                )

    def find_tables(self, *, is_kept: bool = True) -> list[FoundTable]:
        """Ask Oracle which tables the patterns name now, and follow the answer from here on.

        Args:
            is_kept: Keep the answer for other processes, and for the next time.

        Returns:
            All tables that the patterns name, those that are left out among them; none without
            patterns.

        Raises:
            ConfigError: There is no table to capture.
        """
        if not self._written.has_patterns:
            return []
        known = self.store.matches.get()
        with self.database.session() as session:
            found = look_up(session, self._written, known, self._left_by_policy())
        kept = [replace(one, rows=None, key=()) for one in found]
        if kept != known and is_kept:
            self.store.matches.save(kept)
        with self._lock:
            if self._config is None or self._matched != kept:
                matched = with_matches(self._written, kept)
                self._config, self._matched = with_marked_salts(matched), kept
        if not self._config.tables:
            raise ConfigError(
                "no captured table matches the patterns",
                hint="Check owner and case of the patterns, and what the capture user may SELECT; "
                "`redolake table find` shows what they name.",
                source=self.source,
            ).listing([f"{one.table}: {one.left_out}" for one in found])
        return found

    def _left_by_policy(self) -> set[TableId]:
        """The tables that a policy has removed, and that have taken what belongs to them."""
        if self.store.source.get() is None:
            return set()
        return {
            one.table
            for one in self.store.tables.all()
            if one.state == "removed" and one.asked_by == "policy" and not one.takes_windows
        }

    @property
    def store(self) -> Store:
        """The metadata store, migrated.

        Raises:
            FencedError: The source was closed, and a step in the background goes on.
        """
        with self._lock:
            if self._is_given_up:
                raise given_up(self.source)
            if self._store is None:
                self._store = Store.open(self._written.state.url_with_password, self.source)
            return self._store

    @property
    def landing(self) -> LandingStore:
        """The landing store."""
        with self._lock:
            if self._landing is None:
                landing = open_landing(self._written.landing)
                self._landing = FencedLanding(landing, lambda: self.store.leases.fence())
            return self._landing

    @property
    def lake(self) -> Lake:
        """The lake; starts Spark at its first use.

        Raises:
            ConfigError: The templates of paths have changed since its Delta tables were made.
        """
        with self._lock:
            if self._lake is None:
                self.check_paths()
                self._lake = self._open_lake(self._written.lake_beside_landing, self.source)
            return self._lake

    def table_lake(self, record: TableRecord, fence: Fence = no_fence) -> TableLake:
        """The Delta tables of a captured table; ``fence`` is called right before each commit."""
        return self.lake.table(record.table, record.generation, fence)

    def check_paths(self) -> None:
        """Refuse templates of paths that lead elsewhere than to the Delta tables that there are.

        Raises:
            ConfigError: They do.
        """
        refuse_moved(self._written.lake, self.source)

    def close(self) -> None:
        """Close what was opened. May be called twice."""
        if self.telemetry is not None:  # it may measure once more
            self.telemetry.close()
        if self.lineage is not None:
            self.lineage.close()
        with self._lock:
            self._writer = None
            self._leases.close()
            for lease in list(self._held):  # of steps in the background, which nobody waits for
                self._is_given_up = True
                lease.give_up()
            self.database.close()
            if self._store is not None:
                self._store.close()
            self._lake = self._store = None

    @contextmanager
    def lease(
        self, work: str, *, wait_seconds: float = 0, of_process: bool = False
    ) -> Iterator[HeldLease]:
        """Hold ``<source>/<work>`` for the block, so that two processes never do the same work at
        once.

        Raises:
            LeaseHeldError: A living process does this work.
        """
        name = f"{self.source}/{work}"
        with held(
            self.store,
            name,
            seconds=self._written.state.lease_seconds,
            wait_seconds=wait_seconds,
            of_process=of_process,
        ) as lease:
            self._held.add(lease)
            try:
                yield lease
            finally:
                self._held.discard(lease)

    @contextmanager
    def writing(self, table: TableId) -> Iterator[HeldLease]:
        """Hold a table for the block, to write to it. Where the lake's commits are not atomic, this
        process is the only one that writes to any table, from its first write until it closes the
        source.

        Raises:
            SecondWriterError: Another process writes to such a lake.
            LeaseHeldError: Another process writes to the table.
        """
        with self._writing(f"table/{table}") as lease:
            yield lease

    @contextmanager
    def writing_side_table(self, name: str) -> Iterator[HeldLease]:
        """The same for a Delta table of the source beside change logs and mirrors."""
        with self._writing(f"beside/{name}") as lease:
            yield lease

    @contextmanager
    def _writing(self, work: str) -> Iterator[HeldLease]:
        if not self._written.lake.has_atomic_commits:
            self._be_the_only_writer()
        with self.lease(work, wait_seconds=120) as lease:
            yield lease

    def _be_the_only_writer(self) -> None:
        with self._lock:
            if self._writer is not None:
                try:
                    self._writer.check()
                    return
                except FencedError:  # the next write asks for it anew
                    self._writer = None
                    self._leases.close()
                    raise
            with ExitStack() as taking:
                try:
                    self._writer = taking.enter_context(self.lease("lake-writer", of_process=True))
                except LeaseHeldError as error:
                    raise SecondWriterError(
                        "another process writes to this lake, whose store has no atomic commits",
                        hint="Stop the other process, or wait until it has ended. Several processes may write to a lake in a folder, or on "
                        "HDFS, ABFS or GCS.",
                        **error.facts,
                    ) from error
                self._leases = taking.pop_all()

    def _newest_schema(self, table: TableId) -> TableSchema | None:
        return self.store.schemas.at(table, Scn(SCN_MAX))

    def reported(self, report: StepReport) -> StepReport:
        """Log a finished step (an idle source's at DEBUG), tell the caller's reporter, and return
        it."""
        LOG.log(
            logging.DEBUG if report.is_quiet else logging.INFO,
            "%s %s%s rows=%d seconds=%.2f%s",
            report.kind,
            f"{report.table} " if report.table and str(report.table) != report.key else "",
            report.key,
            report.rows,
            report.seconds,
            " (done before)" if report.repeated else "",
        )
        if self._report is not None:
            self._report(report)
        if self.telemetry is not None:
            self.telemetry.report(report)
        if self.lineage is not None:
            self.lineage.report(report)
        return report

    def tell(self, kind: StepKind, table: TableId, **facts: Any) -> StepReport:
        """Report what became of one table at once; ``facts`` as :class:`StepReport` has them."""
        return self.reported(
            StepReport(kind=kind, key=str(table), seconds=0.0, table=table, **facts)
        )

    # -- what the store knows, or an error that says what to do ------------------------------------

    def captured_windows(self, limit: int = 1) -> list[WindowRecord]:
        """The windows whose redo was captured last, the newest first."""
        return self.store.windows.find(
            states=("captured", "applied"), newest_first=True, limit=limit
        )

    def captured_up_to(self) -> Scn | None:
        """The end of the newest captured window; where windows begin, before there is one; None
        before the first snapshot has an SCN."""
        if newest := self.captured_windows():
            return newest[0].window.scn_high
        record = self.store.source.get()
        return record.snapshot_scn if record else None

    def source_record(self) -> SourceRecord:
        """The source as it was first snapshotted.

        Raises:
            NotYetError: No snapshot was begun.
        """
        record = self.store.source.get()
        if record is None:
            raise NotYetError(
                "this source has no snapshot yet",
                hint="Run `redolake snapshot` first; windows start where the snapshot was read.",
                source=self.source,
            )
        return record

    def table_record(self, table: TableId) -> TableRecord:
        """A captured table's record.

        Raises:
            ConfigError: The table is not captured.
        """
        record = self.store.tables.get(table)
        if record is None:
            captured = ", ".join(str(config.table) for config in self.config.tables)
            raise ConfigError(
                "this table is not captured, or has no snapshot yet",
                hint=f"Captured tables are: {captured}.",
                table=table,
                source=self.source,
            )
        return record

    def window_record(self, window: ScnWindow) -> WindowRecord:
        """A planned window's record.

        Raises:
            ConfigError: No such window was planned.
        """
        record = self.store.windows.get(window)
        if record is None:
            raise no_such_window(self.source, window.key)
        return record

    def captured_window(self, window: ScnWindow) -> WindowRecord:
        """A captured window's record.

        Raises:
            ConfigError: No such window was planned.
            NotYetError: It is not captured.
        """
        record = self.window_record(window)
        if record.state == "planned":
            raise NotYetError(
                "this window is not captured yet",
                hint="Capture it first (`redolake capture`).",
                window=window.key,
            )
        return record

    def _definitions(self, digest: str) -> tuple[TableSchema, ...]:
        with self._lock:
            self._sets = self._sets or KeptDefinitions(self.landing, self.source)
        return self._sets(digest)

    def window_manifest(self, window: ScnWindow) -> tuple[WindowManifest, str]:
        """The manifest of a landed window and its SHA-256.

        Raises:
            LandingDamagedError: It is missing or damaged, or is another window's.
        """
        folder = window_folder(self.source, window)
        content = self.landing.read(folder, MANIFEST_NAME)
        digest = digest_of(content)
        with self._lock:
            manifest = self._manifests.pop(digest, None)
        if manifest is None:
            where = f"{folder}/{MANIFEST_NAME}"
            manifest = read_window_manifest(content, where=where, definitions=self._definitions)
        if manifest.window != window or manifest.source != self.source:
            raise LandingDamagedError(
                "the manifest belongs to another window or source",
                hint="Restore the landing folder that was recorded.",
                manifest=folder,
            )
        with self._lock:
            self._manifests[digest] = manifest
            while len(self._manifests) > _MANIFESTS_MAX:
                del self._manifests[next(iter(self._manifests))]
        return manifest, digest

    def visible(self, schema: TableSchema) -> TableSchema:
        """A version of a table without what the configuration leaves out now, whatever it did when
        the version was read."""
        config = self.config.entries.get(schema.table)
        if config is None:
            return schema
        return schema.without(config.column_rule.left_out(schema.names_in_oracle))

    def masks(self, table: TableId) -> Masks:
        """What stands in place of the values of a table's columns."""
        return masks_by_table(self.config).get(table, {})

    def configured(self, tables: list[TableId] | None) -> list[TableId]:
        """The tables to work on: all captured ones, or those named.

        Raises:
            ConfigError: A named table is not captured.
        """
        captured = [config.table for config in self.config.tables]
        unknown = [table for table in tables or [] if table not in captured]
        if unknown:
            raise ConfigError(
                "these tables are not captured",
                hint=f"Captured tables are: {', '.join(map(str, captured))}.",
                tables=", ".join(map(str, unknown)),
            )
        return captured if tables is None else tables

    @contextmanager
    def recorded(self, window: ScnWindow) -> Iterator[None]:
        """Keep the error that stops a block as the window's last error, and let it go on.

        One that may pass is kept until the window gets on, so that `redolake status` says what it
        waits for; that an earlier step is not done, or that another process works, stops
        nothing."""
        try:
            yield
        except (NotYetError, LeaseHeldError):
            raise
        except TransientError as error:
            with suppress(StoreUnavailableError):
                self.store.windows.record_error(window, str(error), while_pending=True)
            raise
        except TerminalError as error:
            self.store.windows.record_error(window, str(error))
            raise


def seconds_since(started: float) -> float:
    """Seconds since ``time.monotonic()`` gave ``started``."""
    return time.monotonic() - started
