"""Which windows are there, and which of them are captured and applied?"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import and_, func, select, true

from cdc_core.model.identifiers import TableId
from cdc_core.model.records import WindowRecord, WindowState
from cdc_core.model.reports import TableApplied
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.state.database import Database
from cdc_core.state.tables import WINDOW_TABLES, WINDOWS
from cdc_core.state.window_rows import applied_from_row, find_window, window_from_row


class WindowQueries:
    """What is known of windows; nothing here changes them."""

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
            return [window_from_row(row) for row in connection.execute(query).mappings()]

    def windows_after(
        self, source: str, scn: Scn, *, until: Scn | None = None
    ) -> list[WindowRecord]:
        """Windows that end above ``scn`` and begin below ``until`` (None: all), in SCN order."""
        query = select(WINDOWS).where(WINDOWS.c.source == source, WINDOWS.c.scn_high > scn)
        if until is not None:
            query = query.where(WINDOWS.c.scn_low < until)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(WINDOWS.c.ordinal)).mappings()
            return [window_from_row(row) for row in rows]

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
            found = [window_from_row(row) for row in connection.execute(query).mappings()]
        return {record.window.scn_high: record for record in found}

    def window(self, source: str, window: ScnWindow) -> WindowRecord | None:
        """One window; None if there is none with exactly these bounds."""
        with self._database.reading() as connection:
            return find_window(connection, source, window)

    def brought_changes(self, source: str, table: TableId, *, above: Scn, up_to: Scn) -> bool:
        """Did a window that begins at or above one SCN, and ends at or below the other, bring changes to the table?"""
        query = (
            select(WINDOWS.c.ordinal)
            .join(
                WINDOW_TABLES,
                and_(
                    WINDOW_TABLES.c.source == WINDOWS.c.source,
                    WINDOW_TABLES.c.ordinal == WINDOWS.c.ordinal,
                ),
            )
            .where(
                WINDOWS.c.source == source,
                WINDOWS.c.scn_low >= above,
                WINDOWS.c.scn_high <= up_to,
                WINDOW_TABLES.c.owner == table.owner,
                WINDOW_TABLES.c.name == table.name,
                WINDOW_TABLES.c.changes > 0,
            )
        )
        with self._database.reading() as connection:
            return connection.execute(query.limit(1)).first() is not None

    def window_tables(self, source: str, ordinals: range) -> dict[int, list[TableApplied]]:
        """What windows of some ordinals brought to the tables that they touched, by ordinal."""
        query = select(WINDOW_TABLES).where(
            WINDOW_TABLES.c.source == source,
            WINDOW_TABLES.c.ordinal.between(ordinals.start, ordinals.stop - 1),
        )
        found: dict[int, list[TableApplied]] = {}
        with self._database.reading() as connection:
            for row in connection.execute(query).mappings():
                found.setdefault(row["ordinal"], []).append(applied_from_row(row))
        return found
