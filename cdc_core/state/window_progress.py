"""When may a window, and a table within it, move on?"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, bindparam, select

from cdc_core.errors import NotYetError, TerminalError, WindowConflictError
from cdc_core.landing.manifest import WindowManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import InexactImage, TableRecord, WindowRecord
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.state.sql_tables import WINDOWS
from cdc_core.state.table_rows import table_row, table_rows
from cdc_core.state.window_rows import set_window, window_from_row

_FIRST_EARLIER = (
    select(WINDOWS)
    .where(
        WINDOWS.c.source == bindparam("of"),
        WINDOWS.c.ordinal < bindparam("before"),
        WINDOWS.c.state.not_in(bindparam("states", expanding=True)),
    )
    .order_by(WINDOWS.c.ordinal)
    .limit(1)
)


def refuse_gap(source: str, window: ScnWindow, end: Scn) -> None:
    """Raise WindowConflictError for a planned window that does not begin where the last one
    ends."""
    if window.scn_low != end:
        raise WindowConflictError(
            "the window does not begin where the last one ended",
            hint="Windows are planned without gaps, and never twice with other bounds. Check that all processes of this source "
            "use one metadata store, in one version of Redolake.",
            source=source,
            window=window.key,
            expected_low=end,
        )


def refuse_earlier(
    connection: Connection, record: WindowRecord, *, not_in: tuple[str, ...]
) -> None:
    """Raise NotYetError where an earlier window has none of these states."""
    place = {"of": record.source, "before": record.ordinal, "states": list(not_in)}
    row = connection.execute(_FIRST_EARLIER, place).mappings().first()
    if row:
        earlier = window_from_row(row)
        raise NotYetError(
            f"an earlier window is still {earlier.state}",
            hint="Finish the earlier window first: `redolake run` applies windows in order.",
            source=record.source,
            window=record.window.key,
            earlier=earlier.window.key,
        )


def mark_inexact(
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
        known = earlier.inexact or InexactImage(late_scn, (), "")
        found = InexactImage(
            scn=min(known.scn, late_scn),
            tables=tuple(sorted({*known.tables, *manifest.tables_late})),
            window=record.window.key,
        )
        set_window(connection, earlier, inexact=found)


def tables_by_name(
    connection: Connection, source: str, tables: Collection[TableId]
) -> dict[TableId, TableRecord]:
    """What is known of tables; of many by one query."""
    if len(tables) > 1:
        return {one.table: one for one in table_rows(connection, source)}
    found = (table_row(connection, source, table) for table in tables)
    return {one.table: one for one in found if one is not None}


def table_moves(window: WindowRecord, table: TableId, record: TableRecord | None, scn: Scn) -> bool:
    """Does a table move to a position in a window, or is it there already? The errors of
    ``advance_tables``."""
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
            "the table has not applied the previous window",
            hint="`redolake run` applies windows in order.",
            source=window.source,
            table=table,
            position=record.mirror_scn,
            window=bounds.key,
        )
    return True
