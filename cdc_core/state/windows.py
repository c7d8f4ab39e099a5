"""Which windows are there, and how are they planned, captured and applied?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import and_, bindparam, case, func, insert, select, true, update

from cdc_core.errors import LandingDamagedError, NotYetError
from cdc_core.landing.manifest import WindowManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import WindowRecord, WindowState
from cdc_core.model.reports import TableApplied
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.transactions import OpenTransaction
from cdc_core.state.captured_tables import end_stream
from cdc_core.state.database import StorePart, cached
from cdc_core.state.open_transactions import replace_ledger, same_ledger
from cdc_core.state.schemas import keep_segments, put_schema
from cdc_core.state.signals import settle_signals
from cdc_core.state.source import source_row
from cdc_core.state.sql_tables import WINDOW_TABLES, WINDOWS, of
from cdc_core.state.table_rows import move_tables
from cdc_core.state.totals import add_totals, counts_of_unfit, counts_of_window
from cdc_core.state.window_progress import (
    mark_inexact,
    refuse_earlier,
    refuse_gap,
    table_moves,
    tables_by_name,
)
from cdc_core.state.window_rows import (
    applied_from_row,
    find_window,
    keep_counts,
    known_window,
    last_window,
    set_window,
    window_from_row,
    window_values,
)

_BOUNDS = {
    "states": WINDOWS.c.state.in_(bindparam("states", expanding=True)),
    "first": WINDOWS.c.ordinal >= bindparam("first"),
    "last": WINDOWS.c.ordinal <= bindparam("last"),
    "ended_from": WINDOWS.c.ended >= bindparam("ended_from"),
    "ended_to": WINDOWS.c.ended <= bindparam("ended_to"),
    "above": WINDOWS.c.scn_high > bindparam("above"),
    "until": WINDOWS.c.scn_low < bindparam("until"),
}
"""Conditions of windows, by the names of their parameters."""


@cache
def _select(names: frozenset[str], *, newest_first: bool) -> Any:
    """The windows of a source that meet conditions. It takes longer to build a query than to run
    it."""
    query = select(WINDOWS).where(WINDOWS.c.source == bindparam("of"))
    query = query.where(*(condition for name, condition in _BOUNDS.items() if name in names))
    query = query.order_by(WINDOWS.c.ordinal.desc() if newest_first else WINDOWS.c.ordinal)
    return query.limit(bindparam("limit")) if "limit" in names else query


_IDLE = select(
    func.max(case((WINDOWS.c.is_idle.is_not(true()), WINDOWS.c.ordinal))),
    func.min(WINDOWS.c.ordinal),
).where(WINDOWS.c.source == bindparam("of"), WINDOWS.c.ordinal < bindparam("before"))
_BROUGHT = (
    select(WINDOWS.c.ordinal)
    .join(
        WINDOW_TABLES,
        and_(
            WINDOW_TABLES.c.source == WINDOWS.c.source,
            WINDOW_TABLES.c.ordinal == WINDOWS.c.ordinal,
        ),
    )
    .where(
        WINDOWS.c.source == bindparam("of"),
        WINDOWS.c.scn_low >= bindparam("above"),
        WINDOWS.c.scn_high <= bindparam("up_to"),
        WINDOW_TABLES.c.owner == bindparam("of_owner"),
        WINDOW_TABLES.c.name == bindparam("of_name"),
        WINDOW_TABLES.c.changes > 0,
    )
    .limit(1)
)


class Windows(StorePart):
    """The windows of every source: planned, captured and applied in order, each step once."""

    @cached
    def find(
        self,
        *,
        states: Iterable[WindowState] | None = None,
        limit: int | None = None,
        newest_first: bool = False,
        ordinals: range | None = None,
        ended_from: datetime | None = None,
        ended_to: datetime | None = None,
    ) -> list[WindowRecord]:
        """The source's windows in SCN order (or the other way round), at most ``limit``; of some
        states or ordinals only, or those that end in a range of times."""
        return self._found(
            newest_first=newest_first,
            states=None if states is None else list(states),
            limit=limit,
            first=None if ordinals is None else ordinals.start,
            last=None if ordinals is None else ordinals.stop - 1,
            ended_from=ended_from,
            ended_to=ended_to,
        )

    @cached
    def after(self, scn: Scn, *, until: Scn | None = None) -> list[WindowRecord]:
        """Windows that end above ``scn`` and begin below ``until`` (None: all), in SCN order."""
        return self._found(above=scn, until=until)

    def _found(self, *, newest_first: bool = False, **bounds: Any) -> list[WindowRecord]:
        given = {name: value for name, value in bounds.items() if value is not None}
        query = _select(frozenset(given), newest_first=newest_first)
        with self._database.reading() as connection:
            rows = connection.execute(query, {"of": self._source, **given}).mappings()
            return [window_from_row(row) for row in rows]

    @cached
    def counts(self) -> dict[str, int]:
        """How many windows there are in each state."""
        query = select(WINDOWS.c.state, func.count()).where(WINDOWS.c.source == self._source)
        with self._database.reading() as connection:
            rows = connection.execute(query.group_by(WINDOWS.c.state))
            return {str(state): int(count) for state, count in rows}

    @cached
    def inexact_count(self) -> int:
        """How many windows lacked commits that came to light later."""
        query = select(func.count()).where(
            WINDOWS.c.source == self._source, WINDOWS.c.inexact.is_not(None)
        )
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    @cached
    def idle_from(self, ordinal: int) -> int:
        """The first ordinal from which on every captured window before ``ordinal`` is idle, those
        that were retired too.

        Windows with changes are only ever forgotten together with everything before them. So all of
        them from the first window on that is there still are there too, and the newest of them
        bounds the idle ones.
        """
        bounds = {"of": self._source, "before": ordinal}
        with self._database.reading() as connection:
            busy, first = connection.execute(_IDLE, bounds).one()
        if busy is not None:
            return int(busy) + 1
        return ordinal if first is None else int(first)

    def ending_at(self, scns: Iterable[int]) -> dict[int, WindowRecord]:
        """The windows whose upper ends are among the SCNs, by that end."""
        query = select(WINDOWS).where(
            WINDOWS.c.source == self._source, WINDOWS.c.scn_high.in_(sorted(set(scns)))
        )
        with self._database.reading() as connection:
            found = [window_from_row(row) for row in connection.execute(query).mappings()]
        return {record.window.scn_high: record for record in found}

    @cached
    def get(self, window: ScnWindow) -> WindowRecord | None:
        """One window; None if there is none with exactly these bounds."""
        with self._database.reading() as connection:
            return find_window(connection, self._source, window)

    @cached
    def brought_changes(self, table: TableId, *, above: Scn, up_to: Scn) -> bool:
        """Did a window that begins at or above one SCN, and ends at or below the other, bring
        changes to the table?"""
        bounds = {"above": above, "up_to": up_to}
        place = {"of": self._source, "of_owner": table.owner, "of_name": table.name}
        with self._database.reading() as connection:
            return connection.execute(_BROUGHT, place | bounds).first() is not None

    def table_counts(self, ordinals: range) -> dict[int, list[TableApplied]]:
        """What windows of some ordinals brought to the tables that they touched, by ordinal."""
        query = select(WINDOW_TABLES).where(
            WINDOW_TABLES.c.source == self._source,
            WINDOW_TABLES.c.ordinal.between(ordinals.start, ordinals.stop - 1),
        )
        found: dict[int, list[TableApplied]] = {}
        with self._database.reading() as connection:
            for row in connection.execute(query).mappings():
                found.setdefault(row["ordinal"], []).append(applied_from_row(row))
        return found

    def plan(
        self, bounds: Sequence[ScnWindow], *, ends: Sequence[datetime] | None = None
    ) -> list[WindowRecord]:
        """Append windows; the source's record says how far back its first window reads. Those that
        are there already are left as they are, so this may be repeated.

        Args:
            bounds: Windows in order, each joining the one before it; the first joins the last
                planned one.
            ends: The time of each window's upper end in Oracle; by default the present.

        Raises:
            NotYetError: The source has no snapshot.
            WindowConflictError: The windows do not join.
        """
        with self._database.writing() as connection:
            record = source_row(connection, self._source)
            if record is None:
                raise NotYetError(
                    "the source has no snapshot yet, so its windows have no beginning",
                    hint="Take the snapshot first: `redolake snapshot`.",
                    source=self._source,
                )
            last = last_window(connection, self._source)
            end, ordinal = (
                (last.window.scn_high, last.ordinal + 1) if last else (record.snapshot_scn, 0)
            )
            planned = []
            previous = last.key if last else None
            now = self._database.moment()
            for window, ended in zip(bounds, ends or [now] * len(bounds), strict=True):
                found = find_window(connection, self._source, window)
                if found is None:
                    refuse_gap(self._source, window, end)
                    reach = record.mining_low if ordinal == 0 else window.scn_low
                    low = min(window.scn_low, reach)
                    key = window.partition_key(ended, after=previous)
                    found = WindowRecord(
                        source=self._source,
                        ordinal=ordinal,
                        window=window,
                        mining_low=Scn(low),
                        created=now,
                        key=key,
                        ended=ended,
                    )
                    connection.execute(insert(WINDOWS).values(window_values(found)))
                    end, ordinal = window.scn_high, ordinal + 1
                previous = found.key
                planned.append(found)
            return planned

    def record_captured(
        self, manifest: WindowManifest, manifest_sha256: str, ledger: Sequence[OpenTransaction]
    ) -> None:
        """Note that a window has landed: its state, the ledger after it, the schema versions that
        it saw, the tables that left with it, and the earlier windows that lack commits which came
        to light with it. Repeatable.

        It is idle if captured tables have neither rows nor DDL in it and the ledger stays as it is.

        Raises:
            ConfigError: The window is not planned.
            NotYetError: The one before it is not captured.
            LandingDamagedError: It was recorded with another manifest.
        """
        with self._database.writing() as connection:
            record = known_window(connection, self._source, manifest.window)
            if record.state != "planned":
                if record.manifest_sha256 != manifest_sha256:
                    raise LandingDamagedError(
                        "the window was recorded with another manifest",
                        hint="Restore the landing folder that was recorded.",
                        source=self._source,
                        window=manifest.window.key,
                    )
                return
            refuse_earlier(connection, record, not_in=("captured", "applied"))
            is_empty = not (
                any(manifest.rows_by_table.values())
                or manifest.tables_committed
                or manifest.schema_changes
                or manifest.left
            )
            files = (*manifest.redo_files, manifest.transactions_file)
            rows = sum(manifest.rows_by_table.values())
            size = sum(file.bytes for file in files)
            counts = counts_of_window(
                manifest.facts, rows=rows, size=size, seconds=manifest.seconds
            )
            add_totals(connection, self._source, counts | counts_of_unfit(manifest.unfit_values))
            is_idle = (
                is_empty and not manifest.is_gap and same_ledger(connection, self._source, ledger)
            )
            set_window(
                connection,
                record,
                state="captured",
                rows=rows,
                seconds=manifest.seconds,
                manifest_sha256=manifest_sha256,
                positions=manifest.positions,
                captured=self._database.now(),
                last_error=None,
                bytes=size,
                facts=manifest.facts,
                is_idle=is_idle,
            )
            if manifest.late_scn is not None:
                mark_inexact(connection, record, manifest, manifest.late_scn)
            if not is_idle:
                replace_ledger(connection, self._source, ledger)
            for change in manifest.schema_changes:
                if not change.empties:
                    put_schema(connection, self._source, change.schema, change.ddl)
            settle_signals(connection, self._source, manifest.signals)
            for schema in manifest.schemas:
                keep_segments(connection, self._source, schema)
            for end in manifest.left:
                end_stream(connection, self._source, manifest.ordinal, end, self._database.moment())

    def record_applied(self, window: ScnWindow, seconds: float) -> None:
        """Note that every table that goes on by itself has taken a window. Repeatable.

        Raises:
            NotYetError: The window is not captured, or the one before it is not applied.
        """
        with self._database.writing() as connection:
            record = known_window(connection, self._source, window)
            if record.state == "planned":
                raise NotYetError(
                    "the window is not captured yet",
                    hint="Capture it first: `redolake capture`.",
                    source=self._source,
                    window=window.key,
                )
            if record.state == "applied":
                return
            refuse_earlier(connection, record, not_in=("applied",))
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
        window: ScnWindow,
        positions: Mapping[TableId, Scn],
        applied: TableApplied | None = None,
    ) -> None:
        """Move positions forward inside one window, to its end or to where a table's stream ends;
        all or none.

        A table that is there already, or further, is left alone, and so is one that has begun
        another stream since. ``applied`` is what the window brought to a table; what is known of it
        already stays.

        Raises:
            NotYetError: A table has not taken the window before this one.
            WindowConflictError: A position is outside the window.
        """
        if not positions and applied is None:
            return
        with self._database.writing() as connection:
            record = known_window(connection, self._source, window)
            tables = tables_by_name(connection, self._source, positions)
            moved = {
                table: scn
                for table, scn in positions.items()
                if table_moves(record, table, tables.get(table), scn)
            }
            move_tables(connection, self._source, moved)
            if applied is not None and (applied.changes or applied.quarantined):
                keep_counts(connection, record, applied, self._database.now())

    def record_error(self, window: ScnWindow, text: str, *, while_pending: bool = False) -> None:
        """Keep an error's text with the window that it stopped; with ``while_pending`` unless the
        window is applied by now."""
        bounds = of(WINDOWS, self._source, scn_low=window.scn_low, scn_high=window.scn_high)
        if while_pending:
            bounds = and_(bounds, WINDOWS.c.state != "applied")
        with self._database.writing() as connection:
            connection.execute(update(WINDOWS).where(bounds).values(last_error=text))
            add_totals(connection, self._source, {("redolake_window_failures_total", ()): 1})
