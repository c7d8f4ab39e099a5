"""How does landing get what a lost metadata store is made of, besides windows and chunks?

The store changes first, landing follows before the step ends: where the source begins, each table's
record and definitions, the plans of snapshots, and which of them are applied. A process that dies
in between leaves something out; the next one keeps it before it does anything. The plan of a chunk
is kept before the chunk lands.
"""

from __future__ import annotations

import threading

from cdc_core.landing.kept import (
    KeptTable,
    keep_applied,
    keep_plan,
    keep_source,
    keep_table,
    kept_applied,
    kept_plan_names,
    kept_revisions,
)
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord
from cdc_core.steps.context import Context


class Keeper:
    """Keeps what has changed since the last call. Safe for use from several threads."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._lock = threading.Lock()
        self._is_loaded = False
        self._changes = -1
        self._revisions: dict[str, int] = {}
        self._seen: dict[tuple[str, str], int] = {}
        self._settled: set[tuple[TableId, str]] = set()
        self._plans: set[tuple[str, str]] = set()
        self._applied: set[tuple[str, str]] = set()

    @property
    def is_loaded(self) -> bool:
        """Is it known what landing has kept?"""
        return self._is_loaded

    def keep(self, table: TableId | None = None) -> None:
        """Bring landing to what the metadata store has; costs nothing where this process has
        changed nothing since the last call.

        What another process changed and, since it died, did not keep comes with the next change of
        this one.

        Args:
            table: What a step changes is of this table alone, so only that is looked at, once
                landing is known. The next call without one looks at all tables again.
        """
        with self._lock:
            if table is not None and self._is_loaded:
                self._keep_record(self._ctx.store.tables.get(table))
                self._keep_snapshots(table)
                return
            changes = self._ctx.store.write_count
            if changes == self._changes:
                return
            if not self._is_loaded:
                source = self._ctx.store.source.get()
                if source is None:
                    return
                keep_source(self._ctx.landing, source)
                self._load()
            self._keep_tables()
            self._keep_snapshots()
            self._changes = changes

    def _keep_tables(self) -> None:
        """One short row per table tells which have changed: this is asked behind each step."""
        for (owner, name), revision in self._ctx.store.tables.revisions().items():
            if revision > self._seen.get((owner, name), 0):
                self._keep_record(self._ctx.store.tables.get(TableId(owner, name)))

    def _keep_record(self, record: TableRecord | None) -> None:
        if record is None:
            return
        if record.revision > self._revisions.get(record.table.path, 0):
            self._keep_table(record)
        self._seen[record.table.owner, record.table.name] = record.revision

    def _keep_snapshots(self, table: TableId | None = None) -> None:
        for place, is_applied in self._ctx.store.chunks.snapshots(table).items():
            if place in self._settled:
                continue
            table, snapshot_id = place
            kept = (table.path, snapshot_id)
            if kept not in self._plans:
                chunks = self._ctx.store.chunks.find(table, snapshot_id)
                record = self._ctx.store.tables.get(table)
                stream = None if record is None else record.snapshot_id
                keep_plan(self._ctx.landing, stream, chunks)
                self._plans.add(kept)
            if is_applied:
                if kept not in self._applied:
                    keep_applied(self._ctx.landing, self._ctx.source, table, snapshot_id)
                    self._applied.add(kept)
                self._settled.add(place)

    def _load(self) -> None:
        landing, source = self._ctx.landing, self._ctx.source
        self._revisions = kept_revisions(landing, source)
        self._plans = kept_plan_names(landing, source)
        self._applied = kept_applied(landing, source)
        self._is_loaded = True

    def _keep_table(self, record: TableRecord) -> None:
        versions = self._ctx.store.schemas.versions(record.table)
        keep_table(
            self._ctx.landing,
            KeptTable(record, tuple((version.schema, version.ddl) for version in versions)),
        )
        self._revisions[record.table.path] = record.revision
