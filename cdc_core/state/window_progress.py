"""How do windows come to be, get captured and applied, and how do tables move on by them?"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime

from sqlalchemy import Connection, insert, select

from cdc_core.errors import LandingDamagedError, NotYetError, TerminalError, WindowConflictError
from cdc_core.landing.manifest import WindowManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import Inexact, TableRecord, WindowRecord
from cdc_core.model.reports import TableApplied
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.transactions import OpenTransaction
from cdc_core.state.database import Database, moment
from cdc_core.state.json_text import text_from_json
from cdc_core.state.ledger import replace_ledger, same_ledger
from cdc_core.state.schemas import keep_segments, put_schema
from cdc_core.state.signals import settle_signals
from cdc_core.state.sources import move_tables, source_row, table_row, table_rows
from cdc_core.state.streams import end_stream
from cdc_core.state.tables import WINDOWS
from cdc_core.state.window_rows import (
    find_window,
    keep_counts,
    known_window,
    last_window,
    set_window,
    text_from_positions,
    window_from_row,
    window_values,
)


class WindowProgressQueries:
    """What plans windows and moves them and their tables forward: each step once, in order."""

    _database: Database

    def plan_windows(
        self, source: str, bounds: Sequence[ScnWindow], *, ends: Sequence[datetime] | None = None
    ) -> list[WindowRecord]:
        """Append windows. Those that are there already are left as they are, so this may be repeated.

        Args:
            source: Name of a saved source, whose record says how far back its first window reads.
            bounds: Windows in order, each joining the one before it; the first joins the last planned one.
            ends: The time of each window's upper end in Oracle; by default the present.

        Raises:
            NotYetError: The source has no snapshot.
            WindowConflictError: The windows do not join.
        """
        with self._database.writing() as connection:
            record = source_row(connection, source)
            if record is None:
                raise NotYetError(
                    "the source has no snapshot yet, so its windows have no beginning",
                    hint="Take the snapshot first: `redolake snapshot`.",
                    source=source,
                )
            last = last_window(connection, source)
            end, ordinal = (
                (last.window.scn_high, last.ordinal + 1) if last else (record.snapshot_scn, 0)
            )
            planned = []
            previous = last.key if last else None
            now = self._moment_now()
            for window, ended in zip(bounds, ends or [now] * len(bounds), strict=True):
                found = find_window(connection, source, window)
                if found is None:
                    _refuse_gap(source, window, end)
                    reach = record.mining_low if ordinal == 0 else window.scn_low
                    low = min(window.scn_low, reach)
                    key = window.partition_key(ended, after=previous)
                    found = WindowRecord(
                        source=source,
                        ordinal=ordinal,
                        window=window,
                        mining_low=Scn(low),
                        state="planned",
                        rows=None,
                        seconds=None,
                        apply_seconds=None,
                        manifest_sha256=None,
                        created=now,
                        captured=None,
                        applied=None,
                        last_error=None,
                        key=key,
                        ended=ended,
                    )
                    connection.execute(insert(WINDOWS).values(window_values(found)))
                    end, ordinal = window.scn_high, ordinal + 1
                previous = found.key
                planned.append(found)
            return planned

    def record_captured(
        self,
        source: str,
        manifest: WindowManifest,
        manifest_sha256: str,
        ledger: Sequence[OpenTransaction],
    ) -> None:
        """Note that a window has landed: its state, the ledger after it, the schema versions that it saw, the tables that
        left with it, and the earlier windows that lack commits which came to light with it. Repeatable.

        It is idle if captured tables have neither rows nor DDL in it and the ledger stays as it is.

        Raises:
            ConfigError: The window is not planned.
            NotYetError: The one before it is not captured.
            LandingDamagedError: It was recorded with another manifest.
        """
        with self._database.writing() as connection:
            record = known_window(connection, source, manifest.window)
            if record.state != "planned":
                if record.manifest_sha256 != manifest_sha256:
                    raise LandingDamagedError(
                        "the window was recorded with another manifest",
                        hint="Restore the landing folder that was recorded.",
                        source=source,
                        window=manifest.window.key,
                    )
                return
            _refuse_earlier(connection, record, not_in=("captured", "applied"))
            is_empty = not (
                any(manifest.rows_by_table.values())
                or manifest.tables_committed
                or manifest.schema_changes
                or manifest.left
            )
            files = (*manifest.redo_files, manifest.transactions_file)
            set_window(
                connection,
                record,
                state="captured",
                rows=sum(manifest.rows_by_table.values()),
                seconds=manifest.seconds,
                manifest_sha256=manifest_sha256,
                positions=text_from_positions(manifest.positions),
                captured=self._database.now(),
                last_error=None,
                bytes=sum(file.bytes for file in files),
                facts=text_from_json(manifest.facts),
                is_idle=is_empty
                and not manifest.is_gap
                and same_ledger(connection, source, ledger),
            )
            if manifest.late_scn is not None:
                _mark_inexact(connection, record, manifest, manifest.late_scn)
            replace_ledger(connection, source, ledger)
            for change in manifest.schema_changes:
                if not change.empties:
                    put_schema(connection, source, change.schema, change.ddl)
            settle_signals(connection, source, manifest.signals)
            for schema in manifest.schemas:
                keep_segments(connection, source, schema)
            for end in manifest.left:
                end_stream(connection, source, manifest.ordinal, end, self._database.now())

    def record_applied(self, source: str, window: ScnWindow, seconds: float) -> None:
        """Note that every table that goes on by itself has taken a window. Repeatable.

        Raises:
            NotYetError: The window is not captured, or the one before it is not applied.
        """
        with self._database.writing() as connection:
            record = known_window(connection, source, window)
            if record.state == "planned":
                raise NotYetError(
                    "the window is not captured yet",
                    hint="Capture it first: `redolake capture`.",
                    source=source,
                    window=window.key,
                )
            if record.state == "applied":
                return
            _refuse_earlier(connection, record, not_in=("applied",))
            set_window(
                connection,
                record,
                state="applied",
                apply_seconds=seconds,
                applied=self._database.now(),
                last_error=None,
            )

    def advance_tables(
        self,
        source: str,
        window: ScnWindow,
        positions: Mapping[TableId, Scn],
        applied: TableApplied | None = None,
    ) -> None:
        """Move positions forward inside one window, to its end or to where a table's stream ends; all or none.

        A table that is there already, or further, is left alone, and so is one that has begun another stream since. ``applied`` is what the window brought to a table;
        what is known of it already stays.

        Raises:
            NotYetError: A table has not taken the window before this one.
            WindowConflictError: A position is outside the window.
        """
        with self._database.writing() as connection:
            record = known_window(connection, source, window)
            tables = _states(connection, source, positions)
            moved = {
                table: scn
                for table, scn in positions.items()
                if _moves(record, table, tables.get(table), scn)
            }
            move_tables(connection, source, moved)
            if applied is not None and (applied.changes or applied.quarantined):
                keep_counts(connection, record, applied, self._database.now())

    def _moment_now(self) -> datetime:
        now = moment(self._database.now())
        assert now is not None
        return now


def _refuse_gap(source: str, window: ScnWindow, end: Scn) -> None:
    if window.scn_low != end:
        raise WindowConflictError(
            "the window does not begin where the last one ended",
            hint="Windows are planned without gaps, and never twice with other bounds. Check that all processes of this source "
            "use one metadata store, in one version of Redolake.",
            source=source,
            window=window.key,
            expected_low=end,
        )


def _refuse_earlier(
    connection: Connection, record: WindowRecord, *, not_in: tuple[str, ...]
) -> None:
    query = select(WINDOWS).where(
        WINDOWS.c.source == record.source,
        WINDOWS.c.ordinal < record.ordinal,
        WINDOWS.c.state.not_in(not_in),
    )
    row = connection.execute(query.order_by(WINDOWS.c.ordinal).limit(1)).mappings().first()
    if row:
        earlier = window_from_row(row)
        raise NotYetError(
            f"an earlier window is still {earlier.state}",
            hint="Finish the earlier window first: `redolake run` takes windows in order.",
            source=record.source,
            window=record.window.key,
            earlier=earlier.window.key,
        )


def _mark_inexact(
    connection: Connection, record: WindowRecord, manifest: WindowManifest, late_scn: int
) -> None:
    """Mark the windows whose images lack the commits that came to light with this one."""
    query = select(WINDOWS).where(
        WINDOWS.c.source == record.source,
        WINDOWS.c.ordinal < record.ordinal,
        WINDOWS.c.scn_high >= late_scn,
    )
    for row in connection.execute(query).mappings().all():
        earlier = window_from_row(row)
        known = earlier.inexact or Inexact(late_scn, (), "")
        found = Inexact(
            scn=min(known.scn, late_scn),
            tables=tuple(sorted({*known.tables, *manifest.tables_late})),
            window=record.window.key,
        )
        set_window(connection, earlier, inexact=text_from_json(asdict(found)))


def _states(
    connection: Connection, source: str, tables: Collection[TableId]
) -> dict[TableId, TableRecord]:
    """What is known of tables; of many by one query."""
    if len(tables) > 1:
        return {one.table: one for one in table_rows(connection, source)}
    found = (table_row(connection, source, table) for table in tables)
    return {one.table: one for one in found if one is not None}


def _moves(window: WindowRecord, table: TableId, record: TableRecord | None, scn: Scn) -> bool:
    """Does a table move to a position in a window, or is it there already? The errors of ``advance_tables``."""
    if record is None:
        raise TerminalError(
            "this table is not in the metadata store",
            hint="Check that all processes of this source use one metadata store, in one version of Redolake.",
            source=window.source,
            table=table,
        )
    if record.mirror_scn is not None and record.mirror_scn >= scn:
        return False
    if record.state == "snapshotting" or record.first_ordinal > window.ordinal:
        return False  # it has begun anew since, and its snapshot will say where it stands
    bounds = window.window
    if not bounds.scn_low < scn <= bounds.scn_high:
        raise WindowConflictError(
            "the position that the table is to move to is not in the window",
            hint="Check that all processes of this source use one metadata store, in one version of Redolake.",
            source=window.source,
            table=table,
            position=scn,
            window=bounds.key,
        )
    if record.mirror_scn is not None and record.mirror_scn < bounds.scn_low:
        raise NotYetError(
            "the table has not taken the window before this one",
            hint="`redolake run` applies windows in order.",
            source=window.source,
            table=table,
            position=record.mirror_scn,
            window=bounds.key,
        )
    return True
