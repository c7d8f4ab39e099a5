"""Which windows are forgotten, and how are they written down again?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

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

from cdc_core.landing.layout import ORDINAL_SHIFT
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import WindowRecord
from cdc_core.model.reports import TableApplied
from cdc_core.model.scn import SCN_MAX, Scn
from cdc_core.model.streams import StreamEnd
from cdc_core.model.transactions import OpenTransaction
from cdc_core.state.captured_tables import cut_stream
from cdc_core.state.database import StorePart
from cdc_core.state.open_transactions import first_open_ordinal, replace_ledger
from cdc_core.state.sql_tables import WINDOW_TABLES, WINDOWS, of
from cdc_core.state.table_rows import put_table, table_row, table_rows
from cdc_core.state.window_rows import keep_counts, window_from_row, window_values


class WindowHistory(StorePart):
    """What retires windows, opens them again, and restores them into a store that is made anew."""

    def retire(
        self, *, before: datetime | None, wanted_from: int | None = None
    ) -> list[WindowRecord]:
        """Forget windows that every table has taken: idle ones, and all up to the first that ended
        at a moment or later, or that somebody still wants (``wanted_from``); return them.

        A table that is paused, in its snapshot, or failed in the lake will take its windows later:
        they stay. The newest applied window stays, and so does every one from the first in which an
        open transaction has rows. While a window is captured and not applied, only idle ones go: it
        may hold the commit of rows that landed long before.
        """
        with self._database.writing() as connection:
            newest = connection.execute(
                select(func.max(WINDOWS.c.ordinal)).where(
                    of(WINDOWS, self._source, state="applied")
                )
            ).scalar()
            if newest is None:
                return []
            oldest_row = first_open_ordinal(connection, self._source)
            end = newest if oldest_row is None else min(newest, oldest_row >> ORDINAL_SHIFT)
            half_way = select(WINDOWS.c.ordinal).where(of(WINDOWS, self._source, state="captured"))
            if before is None or connection.execute(half_way.limit(1)).first() is not None:
                old: ColumnElement[bool] = false()
            else:
                young = select(func.min(WINDOWS.c.ordinal)).where(
                    WINDOWS.c.source == self._source,
                    or_(WINDOWS.c.ended.is_(None), WINDOWS.c.ended >= before),
                )
                end_of_old = connection.execute(young).scalar()
                ends = [one for one in (end_of_old, wanted_from) if one is not None]
                old = WINDOWS.c.ordinal < min(ends) if ends else true()
            retired = and_(
                of(WINDOWS, self._source, state="applied"),
                WINDOWS.c.ordinal < end,
                WINDOWS.c.scn_high <= _needed_above(connection, self._source),
                or_(WINDOWS.c.is_idle, old),
            )
            query = select(WINDOWS).where(retired).order_by(WINDOWS.c.ordinal)
            found = [window_from_row(row) for row in connection.execute(query).mappings()]
            connection.execute(delete(WINDOWS).where(retired))
            return found

    def pass_retired(self, table: TableId, scn: Scn) -> None:
        """Move a table's position up to ``scn``, if every window in between was retired."""
        with self._database.writing() as connection:
            record = table_row(connection, self._source, table)
            if record is None or record.mirror_scn is None or record.mirror_scn >= scn:
                return
            between = select(WINDOWS.c.ordinal).where(
                WINDOWS.c.source == self._source,
                WINDOWS.c.scn_high > record.mirror_scn,
                WINDOWS.c.scn_low < scn,
            )
            if connection.execute(between.limit(1)).first() is None:
                put_table(connection, replace(record, mirror_scn=scn))

    def forget_counts(self, ordinals: Sequence[int]) -> None:
        """Forget what windows that were retired brought to tables."""
        with self._database.writing() as connection:
            for ordinal in ordinals:
                named = of(WINDOW_TABLES, self._source, ordinal=ordinal)
                connection.execute(delete(WINDOW_TABLES).where(named))

    def unrecord_captured(
        self, ordinal: int, before: Sequence[OpenTransaction], ends: Sequence[StreamEnd] = ()
    ) -> None:
        """Let the windows from ``ordinal`` on be planned ones that are not captured. ``before`` are
        the transactions that were open at the beginning of the first of them. What tables have
        taken stays as it is; the streams of those that cannot go on from there have ``ends``."""
        with self._database.writing() as connection:
            again = and_(WINDOWS.c.source == self._source, WINDOWS.c.ordinal >= ordinal)
            values = {"state": "planned", "manifest_sha256": None, "is_idle": False}
            connection.execute(update(WINDOWS).where(again).values(values))
            replace_ledger(connection, self._source, before)
            for end in ends:
                cut_stream(connection, self._source, end, self._database.moment())

    def restore_window(self, record: WindowRecord) -> None:
        """Write a planned window with its own number into a store that is made anew."""
        with self._database.writing() as connection:
            connection.execute(insert(WINDOWS).values(window_values(record)))

    def restore_applied(self, ordinal: int) -> None:
        """Note of a window in a store that is made anew that the lake has it; how long that took is
        not known."""
        with self._database.writing() as connection:
            named = of(WINDOWS, self._source, ordinal=ordinal)
            values = {"state": "applied", "applied": self._database.now()}
            connection.execute(update(WINDOWS).where(named).values(values))

    def restore_counts(self, ordinal: int, applied: TableApplied) -> None:
        """Write what a window brought to a table into a store that is made anew."""
        query = select(WINDOWS).where(of(WINDOWS, self._source, ordinal=ordinal))
        with self._database.writing() as connection:
            row = connection.execute(query).mappings().one()
            keep_counts(connection, window_from_row(row), applied, self._database.now())


def _needed_above(connection: Connection, source: str) -> int:
    """The SCN above which some table still wants the windows."""
    return min((one.needs_above for one in table_rows(connection, source)), default=SCN_MAX)
