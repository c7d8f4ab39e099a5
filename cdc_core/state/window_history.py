"""Which windows are forgotten, and how are they written down again?"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, func, insert, or_, select, update

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

_OF_SOURCE = WINDOWS.c.source == bindparam("of")
_NEWEST_APPLIED = select(func.max(WINDOWS.c.ordinal)).where(
    _OF_SOURCE, WINDOWS.c.state == "applied"
)
_HALF_WAY = select(WINDOWS.c.ordinal).where(_OF_SOURCE, WINDOWS.c.state == "captured").limit(1)
_FIRST_YOUNG = select(func.min(WINDOWS.c.ordinal)).where(
    _OF_SOURCE, or_(WINDOWS.c.ended.is_(None), WINDOWS.c.ended >= bindparam("before"))
)
_IS_RETIRABLE = and_(
    _OF_SOURCE,
    WINDOWS.c.state == "applied",
    WINDOWS.c.ordinal < bindparam("needed_from"),
    WINDOWS.c.scn_high <= bindparam("needed_above"),
    or_(WINDOWS.c.is_idle, WINDOWS.c.ordinal < bindparam("young_from")),
)
_RETIRABLE = select(WINDOWS).where(_IS_RETIRABLE).order_by(WINDOWS.c.ordinal)


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
            bounds = _retirable(connection, self._source, before, wanted_from)
            if bounds is None:
                return []
            rows = connection.execute(_RETIRABLE, bounds).mappings()
            found = [window_from_row(row) for row in rows]
            connection.execute(delete(WINDOWS).where(_IS_RETIRABLE), bounds)
            return found

    def retirable(
        self, *, before: datetime | None, wanted_from: int | None = None
    ) -> list[WindowRecord]:
        """What :meth:`retire` would forget now."""
        with self._database.reading() as connection:
            bounds = _retirable(connection, self._source, before, wanted_from)
            if bounds is None:
                return []
            rows = connection.execute(_RETIRABLE, bounds).mappings()
            return [window_from_row(row) for row in rows]

    def pass_retired(self, table: TableId, scn: Scn) -> bool:
        """Move a table's position up to ``scn``, if every window in between was retired. Did
        it?"""
        with self._database.writing() as connection:
            record = table_row(connection, self._source, table)
            if record is None or record.mirror_scn is None or record.mirror_scn >= scn:
                return False
            between = select(WINDOWS.c.ordinal).where(
                WINDOWS.c.source == self._source,
                WINDOWS.c.scn_high > record.mirror_scn,
                WINDOWS.c.scn_low < scn,
            )
            if connection.execute(between.limit(1)).first() is not None:
                return False
            put_table(connection, replace(record, mirror_scn=scn))
            return True

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


def _retirable(
    connection: Connection, source: str, before: datetime | None, wanted_from: int | None
) -> Mapping[str, Any] | None:
    """The parameters of :data:`_IS_RETIRABLE`; None before the first window is applied."""
    own = {"of": source}
    newest = connection.execute(_NEWEST_APPLIED, own).scalar()
    if newest is None:
        return None
    oldest_row = first_open_ordinal(connection, source)
    if before is None or connection.execute(_HALF_WAY, own).first() is not None:
        young_from = 0
    else:
        young = connection.execute(_FIRST_YOUNG, {**own, "before": before}).scalar()
        firsts = [one for one in (young, wanted_from) if one is not None]
        young_from = min(firsts, default=sys.maxsize)
    return {
        **own,
        "needed_from": newest if oldest_row is None else min(newest, oldest_row >> ORDINAL_SHIFT),
        "needed_above": _needed_above(connection, source),
        "young_from": young_from,
    }


def _needed_above(connection: Connection, source: str) -> int:
    """The SCN above which some table still wants the windows."""
    return min((one.needs_above for one in table_rows(connection, source)), default=SCN_MAX)
