"""What has been done so far? A read-only view of one source, for those who show it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version as installed_version

from cdc_core.config import SourceConfig
from cdc_core.delta.history import read_log
from cdc_core.errors import ConfigError
from cdc_core.lake.definitions.evolution import known_schema
from cdc_core.lake.table_context import moved_aside
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord, WindowRecord
from cdc_core.model.reports import (
    ColumnReport,
    DefinitionReport,
    QueryEngine,
    SnapshotProgress,
    TableApplied,
)
from cdc_core.model.scn import Scn, window_end
from cdc_core.schema.table import Column, TableSchema
from cdc_core.snapshot.progress import progress_in_all, progress_of
from cdc_core.state.store import Store
from cdc_core.steps.definition_changes import changes_between, type_text
from cdc_core.steps.delta_logs import delta_path
from cdc_core.steps.readable_scns import ScnSpan, readable_spans, within
from cdc_core.views.envelope import LoggedTable, Origin, events_sql

_ZONE = re.compile(r"[A-Za-z0-9_+\-/]{1,64}")

WINDOWS_LOOKED_AT = 1_000
"""In so many of the newest windows SCNs are looked for as of which all mirrors can be read."""


class SourceView:
    """Reads the metadata store, and changes nothing.

    Attributes:
        table: A table that is or was captured.
        comparisons: The last comparison with Oracle of each table that was compared.
        windows: Windows in SCN order (:meth:`~cdc_core.state.windows.Windows.find`).
        windows_after: Those that end above an SCN.
        window: One of them.
        chunks: Chunks (:meth:`~cdc_core.state.chunks.Chunks.find`).
        signal_progress: How many chunks of those that signals planned are applied, by signal.
        signals: Signals in the order in which they came, of all or of some states.
        found_tables: What patterns named when they were last looked up; none without patterns.
        notifications: The newest that the channel ``store`` kept, oldest of them first.
        notifications_behind: The first with a higher number, each with its own.
    """

    def __init__(self, store: Store, config: SourceConfig) -> None:
        self._store, self._config = store, config
        self.table, self.comparisons = store.tables.get, store.comparisons.newest
        self.windows, self.windows_after = store.windows.find, store.windows.after
        self.window = store.windows.get
        self.chunks, self.signal_progress = store.chunks.find, store.chunks.signal_progress
        self.signals, self.found_tables = store.signals.find, store.matches.get
        self.notifications = store.notifications.newest
        self.notifications_behind = store.notifications.behind

    @property
    def is_begun(self) -> bool:
        """Has the source's first snapshot begun?"""
        return self._store.source.get() is not None

    @property
    def begins_at(self) -> Scn | None:
        """The SCN of the source's first snapshot; None before that."""
        source = self._store.source.get()
        return None if source is None else source.snapshot_scn

    def readable(self) -> list[ScnSpan]:
        """The SCNs as of which all captured tables' mirrors can be read, as far as the newest
        windows tell; ranges in order."""
        tables = [one for one in self.tables() if one.is_captured]
        if (begins := self.begins_at) is None or any(one.mirror_scn is None for one in tables):
            return []
        newest = self.windows(states=("applied",), newest_first=True, limit=WINDOWS_LOOKED_AT)
        low = max((one.consistent_scn or 0 for one in tables), default=0)
        high = min((one.mirror_scn or 0 for one in tables), default=0)
        return within(readable_spans(begins, newest[::-1]), Scn(low), Scn(high))

    def tables(self) -> list[TableRecord]:
        """All tables that are or were captured, by name."""
        return self._store.tables.all()

    def window_named(self, text: str) -> WindowRecord | None:
        """The window that a partition key of Dagster, or `<scn_low>-<scn_high>`, names; None if the
        store has none.

        Raises:
            PartitionKeyError: The text names no window.
        """
        end = window_end(text)
        for found in self._store.windows.after(Scn(end - 1), until=end):
            if text in (found.key, found.window.key, found.window.folder):
                return found
        return None

    @property
    def taken_up_to(self) -> Scn:
        """Every table that takes windows by itself has those that end at or below it, and none of
        these waits to be captured."""
        ends = [one.mirror_scn for one in self.tables() if one.takes_windows and one.mirror_scn]
        waiting = self.windows(states=("planned", "captured"), limit=1)
        newest = waiting or self.windows(newest_first=True, limit=1)
        ends += [one.window.scn_low if waiting else one.window.scn_high for one in newest]
        return Scn(min(ends, default=0))

    def brought(self, windows: list[WindowRecord]) -> dict[int, list[TableApplied]]:
        """What windows, in SCN order, brought to the tables that they touched, by ordinal."""
        if not windows:
            return {}
        ordinals = range(windows[0].ordinal, windows[-1].ordinal + 1)
        return self._store.windows.table_counts(ordinals)

    def progress(self) -> SnapshotProgress | None:
        """How far all snapshots together are that have chunks to apply; None without one."""
        return progress_in_all(self._store.chunks.unfinished(), datetime.now(UTC))

    def progress_of(self, table: TableId, snapshot_id: str) -> SnapshotProgress:
        """How far one snapshot of a table is."""
        chunks = self.chunks(table, snapshot_id=snapshot_id)
        return progress_of(snapshot_id, chunks, datetime.now(UTC))

    def tables_behind(self, windows: Sequence[WindowRecord]) -> dict[int, list[TableId]]:
        """By ordinal of a window that was applied: the tables in their stream that have not taken
        it, such as paused ones."""
        states = [
            one
            for one in self._store.tables.all()
            if one.mirror_scn is not None and one.state in ("paused", "failed", "ready")
        ]
        return {
            window.ordinal: [
                one.table
                for one in states
                if one.first_ordinal <= window.ordinal
                and (one.stopped_scn is None or one.stopped_scn > window.window.scn_low)
                and (one.mirror_scn or 0)
                < min(window.window.scn_high, one.stopped_scn or window.window.scn_high)
            ]
            for window in windows
            if window.state == "applied"
        }

    def columns(self, table: TableId, scn: Scn) -> list[ColumnReport]:
        """The table's columns as of an SCN; none where its definition is not known."""
        schema = self._store.schemas.at(table, scn)
        return [] if schema is None else [_column_report(one, schema) for one in schema.columns]

    def events_sql(
        self,
        table: TableId,
        engine: QueryEngine,
        time_zone: str,
        database: str | None = None,
        *,
        unavailable: str | None = None,
    ) -> str:
        """A query that shows a table's change log as Debezium's events; ``time_zone`` is the one in
        which the database dates its redo, ``database`` what the events call it (by default the name
        of the database, not that of the pluggable one), ``unavailable`` what stands in texts and
        bytes that an event does not carry (by default nothing, NULL).

        Raises:
            ConfigError: The table has no change log yet, or nobody knows the time zone.
        """
        tables = logged_tables(self._config)
        if table not in [one.table for one in tables]:
            raise ConfigError(
                "this table has no change log yet, or is not captured",
                hint="`redolake table list` lists the tables; the first snapshot begins a change log.",
                table=table,
            )
        origin = origin_of(self._store, self._config, time_zone, database, unavailable=unavailable)
        return events_sql(table, tables, origin, engine)

    def definitions(self, table: TableId, scn: Scn | None = None) -> list[DefinitionReport]:
        """The table's versions, oldest first; those up to an SCN alone. None for a table that was
        never captured."""
        found: list[DefinitionReport] = []
        before: TableSchema | None = None
        for version in self._store.schemas.versions(table):
            if scn is not None and version.schema.scn_from > scn:
                break
            changes = changes_between(before, version.schema)
            found.append(
                DefinitionReport(scn=version.schema.scn_from, changes=changes, ddl=version.ddl)
            )
            before = version.schema
        return found


def logged_tables(config: SourceConfig) -> list[LoggedTable]:
    """The change logs that there are, of captured tables."""
    found = [_logged_table(config, one.table) for one in config.tables]
    return [one for one in found if one is not None]


def origin_of(
    store: Store,
    config: SourceConfig,
    time_zone: str,
    database: str | None = None,
    *,
    unavailable: str | None = None,
) -> Origin:
    """What all events of a source share; arguments as of :meth:`SourceView.events_sql`.

    Raises:
        ConfigError: Nobody knows the time zone.
    """
    if not _ZONE.fullmatch(time_zone):
        raise ConfigError(
            "this is not the name of a time zone",
            hint="Write it as Europe/Berlin or UTC: the zone of the database's host.",
            time_zone=time_zone,
        )
    record = store.source.get()
    known = record.database_name if record else None
    return Origin(
        name=config.name,
        database=database or known or "",
        version=installed_version("redolake"),
        time_zone=time_zone,
        unavailable=unavailable,
    )


def older_log(logged: LoggedTable, generation: int) -> LoggedTable | None:
    """An older change log of the table, which was moved aside; None where that is gone."""
    return _logged(moved_aside(logged.path, generation))


def _logged_table(config: SourceConfig, table: TableId) -> LoggedTable | None:
    """A table's change log as it is; None where there is none yet."""
    return _logged(delta_path(config, "changelog", table))


def _logged(path: str) -> LoggedTable | None:
    log = read_log(path)
    schema = known_schema(log)
    return None if log is None or schema is None else LoggedTable(schema, path, log)


def _column_report(column: Column, schema: TableSchema) -> ColumnReport:
    return ColumnReport(
        name=column.name,
        type=type_text(column),
        in_key=column.name in schema.key,
        nullable=column.nullable,
    )
