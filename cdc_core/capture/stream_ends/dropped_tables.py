"""Which captured tables were dropped, or have another name, without a DDL of their own in the redo?

DROP USER … CASCADE takes a user's tables along, and the redo names the user alone. Such a table
would stand still for ever, and look as if nothing happened to it. Tables that the dictionary does
not show as of a window's end, by the numbers of their objects, leave with that window: all of their
redo is in it or below. Only the view of all objects tells; a table that one may not see is there
still.

DBMS_REDEFINITION lets a table and its interim table change names: no statement says so, and the
rows under the captured name are another object's from then on. A table whose object has another
name as of a window's end leaves at its lower end, up to which the name was its own. Where the past
cannot be asked, the name that it has now counts once its last DDL lies before the window's end: the
row of a later DDL stands in a window that waits. A name of the recycle bin is a drop.

Source: Oracle Database SQL Language Reference 19c, DROP USER; Database Reference 19c, DBA_OBJECTS;
PL/SQL Packages and Types Reference 19c, DBMS_REDEFINITION.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from cdc_core.errors import SnapshotTooOldError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.streams import StreamEnd
from cdc_core.schema.ddl_times import ddl_times
from cdc_core.schema.dictionary_queries import Queries, in_lists
from cdc_core.schema.segments import PAST_ERRORS, ask_objects
from cdc_core.schema.table import TableSchema

_LOG = logging.getLogger(__name__)

_THERE = """
SELECT OBJECT_ID, OWNER, OBJECT_NAME FROM {{objects}}{as_of}
 WHERE OBJECT_TYPE = 'TABLE' AND OBJECT_ID IN ({numbers})"""
_SETTLED = """
   AND LAST_DDL_TIME <= :before"""
_RECYCLED = "BIN$"


def dropped_table_ends(
    session: Queries, tables: Sequence[TableSchema], window: ScnWindow
) -> list[StreamEnd]:
    """Tables that were there no more at the window's end, and leave there, and those that had
    another name."""
    known = [one for one in tables if one.object_id]
    if not known:
        return []
    high = window.scn_high
    try:
        names, is_whole = _names(session, known, _THERE, " AS OF SCN :scn", {"scn": high})
    except PAST_ERRORS as error:
        _LOG.info("whether tables are there still is not known as of scn=%d: %s", high, error)
        names, is_whole = _present_names(session, known, high), False
    other = [one for one in known if names.get(one.object_id, one.table) != one.table]
    recycled = [one for one in other if names[one.object_id].name.startswith(_RECYCLED)]
    renamed = [one for one in other if one not in recycled]
    gone = [one for one in known if is_whole and one.object_id not in names]
    return [
        *(_renamed(one, window) for one in renamed),
        *(_gone(one, window) for one in (*recycled, *gone)),
    ]


def _present_names(
    session: Queries, tables: Sequence[TableSchema], high: Scn
) -> dict[int, TableId]:
    """The names now of objects whose last DDL lies before an SCN."""
    try:
        binds = {"before": ddl_times(session, high).before}
        return _names(session, tables, _THERE + _SETTLED, "", binds)[0]
    except SnapshotTooOldError:  # Oracle maps the SCN to no time any more: a later window asks
        return {}


def _names(
    session: Queries,
    tables: Sequence[TableSchema],
    sql: str,
    as_of: str,
    binds: Mapping[str, Any],
) -> tuple[dict[int, TableId], bool]:
    """The names of the tables' objects, by their numbers, and whether these are all that are
    there."""
    names: dict[int, TableId] = {}
    is_whole = True
    for listed in in_lists(one.object_id for one in tables):
        rows, is_all = ask_objects(session, sql.format(as_of=as_of, numbers=listed), binds)
        is_whole &= is_all
        names |= {int(number): TableId(owner, name) for number, owner, name in rows}
    return names, is_whole


def _renamed(one: TableSchema, window: ScnWindow) -> StreamEnd:
    return StreamEnd(
        one.table,
        window.scn_low,
        "the table's object has another name, and the redo has no DDL of it: the table was "
        f"redefined online, and its name now belongs to another object (table={one.table})",
        f"`redolake table resnapshot {one.table.argument}` reads the table that has the name now.",
        "unsupported_ddl",
    )


def _gone(one: TableSchema, window: ScnWindow) -> StreamEnd:
    return StreamEnd(
        one.table,
        window.scn_high,
        "the table no longer exists, and the redo has no DDL of it: its owner or its cluster "
        f"was dropped with it (table={one.table})",
        f"Remove it from the configuration, or `redolake table resnapshot {one.table.argument}` once there is a table of that name again.",
        "drop",
    )
