"""Which windows are there, and which of them are captured and applied?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    delete,
    false,
    func,
    insert,
    or_,
    select,
    true,
    update,
)

from cdc_core.errors import (
    ConfigError,
    LandingDamagedError,
    NotYetError,
    TerminalError,
    WindowConflictError,
)
from cdc_core.landing.layout import ORDINAL_SHIFT
from cdc_core.landing.manifest import WindowManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import Inexact, WindowRecord, WindowState
from cdc_core.model.redo_address import ThreadPosition
from cdc_core.model.reports import TableApplied
from cdc_core.model.scn import SCN_MAX, Scn, ScnWindow
from cdc_core.model.transactions import OpenTransaction
from cdc_core.state.database import Database, moment
from cdc_core.state.json_text import json_from_text, text_from_json
from cdc_core.state.ledger import first_open_ordinal, replace_ledger, same_ledger
from cdc_core.state.schemas import keep_segments, put_schema
from cdc_core.state.sources import is_table, put_table, source_row, table_row
from cdc_core.state.streams import end_stream
from cdc_core.state.tables import TABLES, WINDOW_TABLES, WINDOWS

_COUNTS = ("changes", "rows_inserted", "rows_updated", "rows_deleted", "quarantined")


class WindowQueries:
    """Windows, and the positions that tables reach by them."""

    _database: Database

    def windows(
        self,
        source: str,
        *,
        states: Iterable[WindowState] | None = None,
        limit: int | None = None,
        newest_first: bool = False,
        ordinals: range | None = None,
        ended_from: datetime | None = None,
        ended_to: datetime | None = None,
    ) -> list[WindowRecord]:
        """The source's windows in SCN order (or the other way round), at most ``limit``; of some states or ordinals only, or
        those that end in a range of times."""
        order = WINDOWS.c.ordinal.desc() if newest_first else WINDOWS.c.ordinal
        query = select(WINDOWS).where(WINDOWS.c.source == source).order_by(order).limit(limit)
        if states is not None:
            query = query.where(WINDOWS.c.state.in_(list(states)))
        if ordinals is not None:
            query = query.where(WINDOWS.c.ordinal.between(ordinals.start, ordinals.stop - 1))
        if ended_from is not None:
            query = query.where(WINDOWS.c.ended >= ended_from.timestamp())
        if ended_to is not None:
            query = query.where(WINDOWS.c.ended <= ended_to.timestamp())
        with self._database.reading() as connection:
            return [_window_from_row(row) for row in connection.execute(query).mappings()]

    def windows_after(
        self, source: str, scn: Scn, *, until: Scn | None = None
    ) -> list[WindowRecord]:
        """Windows that end above ``scn`` and begin below ``until`` (None: all), in SCN order."""
        query = select(WINDOWS).where(WINDOWS.c.source == source, WINDOWS.c.scn_high > scn)
        if until is not None:
            query = query.where(WINDOWS.c.scn_low < until)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(WINDOWS.c.ordinal)).mappings()
            return [_window_from_row(row) for row in rows]

    def window_counts(self, source: str) -> dict[str, int]:
        """How many windows there are in each state."""
        query = select(WINDOWS.c.state, func.count()).where(WINDOWS.c.source == source)
        with self._database.reading() as connection:
            rows = connection.execute(query.group_by(WINDOWS.c.state))
            return {str(state): int(count) for state, count in rows}

    def inexact_windows(self, source: str) -> int:
        """How many windows lacked commits that came to light later."""
        query = select(func.count()).where(
            WINDOWS.c.source == source, WINDOWS.c.inexact.is_not(None)
        )
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def idle_from(self, source: str, ordinal: int) -> int:
        """The first ordinal from which on every captured window before ``ordinal`` is idle, those that were retired too.

        Windows with changes are only ever forgotten together with everything before them. So all of them from the first
        window on that is there still are there too, and the newest of them bounds the idle ones.
        """
        earlier = and_(WINDOWS.c.source == source, WINDOWS.c.ordinal < ordinal)
        with self._database.reading() as connection:
            busy = connection.execute(
                select(func.max(WINDOWS.c.ordinal)).where(earlier, WINDOWS.c.is_idle.is_not(true()))
            ).scalar()
            first = connection.execute(select(func.min(WINDOWS.c.ordinal)).where(earlier)).scalar()
        if busy is not None:
            return int(busy) + 1
        return ordinal if first is None else int(first)

    def windows_ending_at(self, source: str, scns: Iterable[int]) -> dict[int, WindowRecord]:
        """The windows whose upper ends are among the SCNs, by that end."""
        query = select(WINDOWS).where(
            WINDOWS.c.source == source, WINDOWS.c.scn_high.in_(sorted(set(scns)))
        )
        with self._database.reading() as connection:
            found = [_window_from_row(row) for row in connection.execute(query).mappings()]
        return {record.window.scn_high: record for record in found}

    def window(self, source: str, window: ScnWindow) -> WindowRecord | None:
        """One window; None if there is none with exactly these bounds."""
        with self._database.reading() as connection:
            return _window(connection, source, window)

    def window_tables(self, source: str, ordinals: range) -> dict[int, list[TableApplied]]:
        """What windows of some ordinals brought to the tables that they touched, by ordinal."""
        query = select(WINDOW_TABLES).where(
            WINDOW_TABLES.c.source == source,
            WINDOW_TABLES.c.ordinal.between(ordinals.start, ordinals.stop - 1),
        )
        found: dict[int, list[TableApplied]] = {}
        with self._database.reading() as connection:
            for row in connection.execute(query).mappings():
                found.setdefault(row["ordinal"], []).append(_applied_from_row(row))
        return found

    def plan_windows(
        self,
        source: str,
        bounds: Sequence[ScnWindow],
        *,
        ends: Sequence[datetime] | None = None,
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
            last = _last_window(connection, source)
            end, ordinal = (
                (last.window.scn_high, last.ordinal + 1) if last else (record.snapshot_scn, 0)
            )
            planned = []
            previous = last.key if last else None
            now = self._moment_now()
            for window, ended in zip(bounds, ends or [now] * len(bounds), strict=True):
                found = _window(connection, source, window)
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
                    connection.execute(insert(WINDOWS).values(_window_values(found)))
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
            record = _known_window(connection, source, manifest.window)
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
            _set_window(
                connection,
                record,
                state="captured",
                rows=sum(manifest.rows_by_table.values()),
                seconds=manifest.seconds,
                manifest_sha256=manifest_sha256,
                positions=_text_from_positions(manifest.positions),
                captured=self._database.now(),
                last_error=None,
                bytes=sum(file.bytes for file in files),
                facts=text_from_json(manifest.facts),
                is_idle=is_empty and same_ledger(connection, source, ledger),
            )
            if manifest.late_scn is not None:
                _mark_inexact(connection, record, manifest, manifest.late_scn)
            replace_ledger(connection, source, ledger)
            for change in manifest.schema_changes:
                put_schema(connection, source, change.schema, change.ddl)
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
            record = _known_window(connection, source, window)
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
            _set_window(
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

        A table that is there already, or further, is left alone. ``applied`` is what the window brought to a table;
        what is known of it already stays.

        Raises:
            NotYetError: A table has not taken the window before this one.
            WindowConflictError: A position is outside the window.
        """
        with self._database.writing() as connection:
            record = _known_window(connection, source, window)
            for table, scn in positions.items():
                _advance(connection, record, table, scn)
            if applied is not None and (applied.changes or applied.quarantined):
                _keep_counts(connection, record, applied, self._database.now())

    def pass_retired(self, source: str, table: TableId, scn: Scn) -> None:
        """Move a table's position up to ``scn``, if every window in between was retired."""
        with self._database.writing() as connection:
            record = table_row(connection, source, table)
            if record is None or record.mirror_scn is None or record.mirror_scn >= scn:
                return
            between = select(WINDOWS.c.ordinal).where(
                WINDOWS.c.source == source,
                WINDOWS.c.scn_high > record.mirror_scn,
                WINDOWS.c.scn_low < scn,
            )
            if connection.execute(between.limit(1)).first() is None:
                put_table(connection, replace(record, mirror_scn=scn))

    def retire_windows(self, source: str, *, before: datetime | None) -> list[WindowRecord]:
        """Forget windows that every table has taken: idle ones, and all up to the first that ended at a moment or later;
        return them.

        A table that is paused, in its snapshot, or failed in the lake will take its windows later: they stay. The newest applied window stays, and so does every one from the first in which an open transaction has rows. While
        a window is captured and not applied, only idle ones go: it may hold the commit of rows that landed long before.
        """
        with self._database.writing() as connection:
            newest = connection.execute(
                select(func.max(WINDOWS.c.ordinal)).where(
                    WINDOWS.c.source == source, WINDOWS.c.state == "applied"
                )
            ).scalar()
            if newest is None:
                return []
            oldest_row = first_open_ordinal(connection, source)
            end = newest if oldest_row is None else min(newest, oldest_row >> ORDINAL_SHIFT)
            half_way = select(WINDOWS.c.ordinal).where(
                WINDOWS.c.source == source, WINDOWS.c.state == "captured"
            )
            if before is None or connection.execute(half_way.limit(1)).first() is not None:
                old: ColumnElement[bool] = false()
            else:
                young = select(func.min(WINDOWS.c.ordinal)).where(
                    WINDOWS.c.source == source,
                    or_(WINDOWS.c.ended.is_(None), WINDOWS.c.ended >= before.timestamp()),
                )
                end_of_old = connection.execute(young).scalar()
                old = true() if end_of_old is None else WINDOWS.c.ordinal < end_of_old
            retired = and_(
                WINDOWS.c.source == source,
                WINDOWS.c.state == "applied",
                WINDOWS.c.ordinal < end,
                WINDOWS.c.scn_high <= _needed_above(connection, source),
                or_(WINDOWS.c.is_idle, old),
            )
            query = select(WINDOWS).where(retired).order_by(WINDOWS.c.ordinal)
            found = [_window_from_row(row) for row in connection.execute(query).mappings()]
            connection.execute(delete(WINDOWS).where(retired))
            return found

    def unrecord_captured(
        self, source: str, ordinal: int, before: Sequence[OpenTransaction]
    ) -> None:
        """Let the windows from ``ordinal`` on be planned ones that are not captured. ``before`` are the transactions that were open
        at the beginning of the first of them. What tables have taken stays as it is."""
        with self._database.writing() as connection:
            again = and_(WINDOWS.c.source == source, WINDOWS.c.ordinal >= ordinal)
            values = {"state": "planned", "manifest_sha256": None, "is_idle": False}
            connection.execute(update(WINDOWS).where(again).values(values))
            replace_ledger(connection, source, before)

    def restore_window(self, record: WindowRecord) -> None:
        """Write a planned window with its own number into a store that is made anew."""
        with self._database.writing() as connection:
            connection.execute(insert(WINDOWS).values(_window_values(record)))

    def restore_applied(self, source: str, ordinal: int) -> None:
        """Note of a window in a store that is made anew that the lake has it; how long that took is not known."""
        with self._database.writing() as connection:
            named = and_(WINDOWS.c.source == source, WINDOWS.c.ordinal == ordinal)
            values = {"state": "applied", "applied": self._database.now()}
            connection.execute(update(WINDOWS).where(named).values(values))

    def restore_counts(self, source: str, ordinal: int, applied: TableApplied) -> None:
        """Write what a window brought to a table into a store that is made anew."""
        query = select(WINDOWS).where(WINDOWS.c.source == source, WINDOWS.c.ordinal == ordinal)
        with self._database.writing() as connection:
            row = connection.execute(query).mappings().one()
            _keep_counts(connection, _window_from_row(row), applied, self._database.now())

    def forget_counts(self, source: str, ordinals: Sequence[int]) -> None:
        """Forget what windows that were retired brought to tables."""
        with self._database.writing() as connection:
            for ordinal in ordinals:
                named = and_(WINDOW_TABLES.c.source == source, WINDOW_TABLES.c.ordinal == ordinal)
                connection.execute(delete(WINDOW_TABLES).where(named))

    def _moment_now(self) -> datetime:
        now = moment(self._database.now())
        assert now is not None
        return now


def _window(connection: Connection, source: str, window: ScnWindow) -> WindowRecord | None:
    query = select(WINDOWS).where(
        WINDOWS.c.source == source,
        WINDOWS.c.scn_low == window.scn_low,
        WINDOWS.c.scn_high == window.scn_high,
    )
    row = connection.execute(query).mappings().first()
    return _window_from_row(row) if row else None


def _known_window(connection: Connection, source: str, window: ScnWindow) -> WindowRecord:
    record = _window(connection, source, window)
    if record is None:
        raise ConfigError(
            "this source has no such window",
            hint="`redolake windows` lists them; plan new ones with `redolake capture`.",
            source=source,
            window=window.key,
        )
    return record


def _last_window(connection: Connection, source: str) -> WindowRecord | None:
    query = select(WINDOWS).where(WINDOWS.c.source == source).order_by(WINDOWS.c.ordinal.desc())
    row = connection.execute(query.limit(1)).mappings().first()
    return _window_from_row(row) if row else None


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
        earlier = _window_from_row(row)
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
        earlier = _window_from_row(row)
        known = earlier.inexact or Inexact(late_scn, (), "")
        found = Inexact(
            scn=min(known.scn, late_scn),
            tables=tuple(sorted({*known.tables, *manifest.tables_late})),
            window=record.window.key,
        )
        _set_window(connection, earlier, inexact=text_from_json(asdict(found)))


def _needed_above(connection: Connection, source: str) -> int:
    """The SCN above which some table still wants the windows."""
    query = select(TABLES.c.owner, TABLES.c.name).where(TABLES.c.source == source)
    rows = connection.execute(query).all()
    records = [table_row(connection, source, TableId(owner, name)) for owner, name in rows]
    return min((one.needs_above for one in records if one is not None), default=SCN_MAX)


def _advance(connection: Connection, window: WindowRecord, table: TableId, scn: Scn) -> None:
    record = table_row(connection, window.source, table)
    if record is None:
        raise TerminalError(
            "this table is not in the metadata store",
            hint="Check that all processes of this source use one metadata store, in one version of Redolake.",
            source=window.source,
            table=table,
        )
    if record.mirror_scn is not None and record.mirror_scn >= scn:
        return
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
    connection.execute(update(TABLES).where(is_table(window.source, table)).values(mirror_scn=scn))


def _window_from_row(row: Any) -> WindowRecord:
    values = dict(row)
    bounds = ScnWindow(values.pop("scn_low"), values.pop("scn_high"))
    for name in ("created", "captured", "applied", "ended"):
        values[name] = moment(values[name])
    values["positions"] = _positions_from_text(values["positions"])
    values["key"] = values["key"] or bounds.key  # planned before windows had times
    values["facts"] = json_from_text(values["facts"] or "{}")
    values["is_idle"] = bool(values["is_idle"])
    values["inexact"] = _inexact_from_text(values["inexact"])
    return WindowRecord(window=bounds, **values)


def _text_from_positions(positions: Sequence[ThreadPosition] | None) -> str | None:
    return None if positions is None else text_from_json([one.as_json() for one in positions])


def _positions_from_text(text: str | None) -> tuple[ThreadPosition, ...] | None:
    return None if text is None else tuple(map(ThreadPosition.from_json, json_from_text(text)))


def _inexact_from_text(text: str | None) -> Inexact | None:
    if text is None:
        return None
    found = json_from_text(text)
    return Inexact(**{**found, "tables": tuple(found["tables"])})


def _applied_from_row(row: Any) -> TableApplied:
    return TableApplied(
        table=TableId(row["owner"], row["name"]),
        **{name: row[name] for name in _COUNTS},
        seconds=row["seconds"],
    )


def _keep_counts(
    connection: Connection, record: WindowRecord, applied: TableApplied, now: float
) -> None:
    named = {
        "source": record.source,
        "ordinal": record.ordinal,
        "owner": applied.table.owner,
        "name": applied.table.name,
    }
    known = select(WINDOW_TABLES).filter_by(**named)
    if connection.execute(known).first() is None:
        counts = {name: getattr(applied, name) for name in _COUNTS}
        values = {**named, **counts, "seconds": applied.seconds, "applied": now}
        connection.execute(insert(WINDOW_TABLES).values(**values))


def _window_values(record: WindowRecord) -> dict[str, Any]:
    return {
        "source": record.source,
        "ordinal": record.ordinal,
        "scn_low": record.window.scn_low,
        "scn_high": record.window.scn_high,
        "mining_low": record.mining_low,
        "state": record.state,
        "created": record.created.timestamp(),
        "key": record.key,
        "ended": record.ended.timestamp() if record.ended else None,
        "is_idle": False,
    }


def _set_window(connection: Connection, record: WindowRecord, **values: Any) -> None:
    named = and_(WINDOWS.c.source == record.source, WINDOWS.c.ordinal == record.ordinal)
    connection.execute(update(WINDOWS).where(named).values(**values))
