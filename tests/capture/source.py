"""A source that captures windows of a database one after the other, without Spark."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from cdc_core.capture.logminer import capture_window
from cdc_core.capture.logs.positions import read_start, upper_bound
from cdc_core.capture.passes.rules import CaptureRules
from cdc_core.change_reader import Start, WindowWork
from cdc_core.config import SourceConfig
from cdc_core.landing.layout import window_folder
from cdc_core.landing.manifest import WindowManifest, digest_of, window_manifest_bytes
from cdc_core.landing.open import open_landing
from cdc_core.landing.store import LandingStore
from cdc_core.model.records import SourceRecord, WindowRecord
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.state.schemas import SchemaVersion
from cdc_core.state.store import Store
from oracle_embedded.database import ADMIN
from tests.capture.landed import landed_window
from tests.landing.facts import PLANNED
from tests.oracle.backends import Database
from tests.oracle.embedded import wait_until


@dataclass(slots=True)
class Source:
    """A source with its store and landing, that captures windows one after the other."""

    oracle: Database
    config: SourceConfig
    session: OracleSession
    landing: LandingStore
    store: Store
    start: Start
    record: SourceRecord

    @classmethod
    def begin(cls, oracle: Database, path: Path, /, *tables: str, **more: Any) -> Source:
        config = oracle.config(path, *(tables or ("EMP",)), **more)
        session = oracle.capture_session(config)
        store = Store.open(config.state.url, "src")
        start = read_start(session)
        record = SourceRecord(
            name="src",
            snapshot_scn=start.snapshot_scn,
            mining_low=start.mining_low,
            resetlogs_change=start.resetlogs_change,
        )
        store.source.save(record)
        for table in config.tables:
            schema = read_table_schema(session, table, scn=start.snapshot_scn)
            store.schemas.save(SchemaVersion("src", schema))
        return cls(oracle, config, session, open_landing(config.landing), store, start, record)

    def window(self) -> WindowManifest:
        """Capture everything up to now as one window."""
        last = self.store.windows.find(newest_first=True, limit=1)
        low = last[0].window.scn_high if last else self.start.snapshot_scn
        high = self.bound()
        [record] = self.store.windows.plan([ScnWindow(low, Scn(high))])
        return self.capture(record)

    def bound(self) -> int:
        """An SCN up to which a window may be closed and that is not before now."""
        close_at = self.config.logminer.close_at
        now = current_scn(self.session)
        if close_at == "completed_logs":
            self.oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
        return wait_until(now, lambda: upper_bound(self.session, close_at))

    def capture(self, record: WindowRecord) -> WindowManifest:
        """Capture and record a planned window."""
        low = record.window.scn_low
        before = self.store.windows.find(ordinals=range(record.ordinal - 1, record.ordinal))
        tables = [self.store.schemas.at(config.table, low) for config in self.config.tables]
        work = WindowWork(
            source=self.record,
            record=record,
            tables=[schema for schema in tables if schema],
            ledger=self.store.ledger.open_transactions(),
            positions=before[0].positions if before else (),
            joins={},
            planned=PLANNED,
        )
        capture_window(
            self.session,
            work,
            replace(CaptureRules.of(self.config), rows=100),
            self.landing,
        )
        manifest, ledger = landed_window(self.landing, "src", record.window)
        sha256 = digest_of(window_manifest_bytes(manifest))
        self.store.windows.record_captured(manifest, sha256, ledger)
        return manifest

    def rows(self, manifest: WindowManifest) -> list[dict[str, Any]]:
        folder = window_folder("src", manifest.window)
        paths = self.landing.local_paths(folder, manifest.redo_files)
        return [row for path in paths for row in pq.read_table(path).to_pylist()]

    def transactions(self, manifest: WindowManifest) -> list[dict[str, Any]]:
        folder = window_folder("src", manifest.window)
        [path] = self.landing.local_paths(folder, [manifest.transactions_file])
        found: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        return found
