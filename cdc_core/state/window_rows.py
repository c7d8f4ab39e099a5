"""How does a window lie in the metadata store?"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import WindowRecord
from cdc_core.model.reports import MirrorWrite, TableApplied
from cdc_core.model.scn import ScnWindow
from cdc_core.state.sql_tables import WINDOW_TABLES, WINDOWS, values_of
from cdc_core.state.totals import add_totals, counts_of_table

_COUNTS = ("changes", "rows_inserted", "rows_updated", "rows_deleted", "quarantined")
_OF_SOURCE = WINDOWS.c.source == bindparam("of")
_WINDOW = select(WINDOWS).where(
    _OF_SOURCE,
    WINDOWS.c.scn_low == bindparam("of_low"),
    WINDOWS.c.scn_high == bindparam("of_high"),
)
_LAST = select(WINDOWS).where(_OF_SOURCE).order_by(WINDOWS.c.ordinal.desc()).limit(1)
_SET = update(WINDOWS).where(_OF_SOURCE, WINDOWS.c.ordinal == bindparam("of_ordinal"))
_COUNTED = select(WINDOW_TABLES.c.changes).where(
    WINDOW_TABLES.c.source == bindparam("source"),
    WINDOW_TABLES.c.ordinal == bindparam("ordinal"),
    WINDOW_TABLES.c.owner == bindparam("owner"),
    WINDOW_TABLES.c.name == bindparam("name"),
)


def window_from_row(row: Any) -> WindowRecord:
    """A row of ``windows`` as a record."""
    values = dict(row)
    bounds = ScnWindow(values.pop("scn_low"), values.pop("scn_high"))
    values |= {"facts": values["facts"] or {}, "is_idle": bool(values["is_idle"])}
    return WindowRecord(window=bounds, **values)


def window_values(record: WindowRecord) -> dict[str, Any]:
    """What a planned window is inserted with."""
    bounds = {"scn_low": record.window.scn_low, "scn_high": record.window.scn_high}
    return values_of(WINDOWS, record, **bounds)


def find_window(connection: Connection, source: str, window: ScnWindow) -> WindowRecord | None:
    """The window with exactly these bounds, if there is one."""
    bounds = {"of": source, "of_low": window.scn_low, "of_high": window.scn_high}
    row = connection.execute(_WINDOW, bounds).mappings().first()
    return window_from_row(row) if row else None


def known_window(connection: Connection, source: str, window: ScnWindow) -> WindowRecord:
    """The window with exactly these bounds.

    Raises:
        ConfigError: There is none.
    """
    record = find_window(connection, source, window)
    if record is None:
        raise no_such_window(source, window.key)
    return record


def no_such_window(source: str, name: str) -> ConfigError:
    """The error where nobody has planned a window."""
    return ConfigError(
        "this source has no such window",
        hint="`redolake windows` lists them; plan new ones with `redolake capture`.",
        source=source,
        window=name,
    )


def last_window(connection: Connection, source: str) -> WindowRecord | None:
    """The window that was planned last."""
    row = connection.execute(_LAST, {"of": source}).mappings().first()
    return window_from_row(row) if row else None


def set_window(connection: Connection, record: WindowRecord, **values: Any) -> None:
    """Change columns of one window."""
    place = {"of": record.source, "of_ordinal": record.ordinal}
    connection.execute(_SET, place | values)


def applied_from_row(row: Any) -> TableApplied:
    """A row of ``window_tables``: what a window brought to a table."""
    return TableApplied(
        table=TableId(row["owner"], row["name"]),
        **{name: row[name] for name in _COUNTS},
        seconds=row["seconds"],
        write=MirrorWrite(row["write_way"], row["write_reason"]) if row["write_way"] else None,
    )


def keep_counts(
    connection: Connection, record: WindowRecord, applied: TableApplied, now: float
) -> None:
    """Note what a window brought to a table, unless that is known already."""
    table = applied.table
    named = {
        "source": record.source,
        "ordinal": record.ordinal,
        "owner": table.owner,
        "name": table.name,
    }
    if connection.execute(_COUNTED, named).first() is None:
        counts = {name: getattr(applied, name) for name in _COUNTS}
        how = applied.write
        write = {"write_way": how and how.way, "write_reason": how and how.reason}
        values = {**named, **counts, **write, "seconds": applied.seconds, "applied": now}
        connection.execute(insert(WINDOW_TABLES), values)
        add_totals(connection, record.source, counts_of_table(applied, now))
