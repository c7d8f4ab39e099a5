"""Which captured tables are gone, or have another name, without a DDL of their own in the redo?

DROP USER … CASCADE takes a user's tables along, and the redo names the user alone. Such a table would stand still for ever, and look as if
nothing happened to it. Tables that the dictionary does not show as of a window's end, by the numbers of their objects, leave with that
window: all of their redo is in it or below. Only the view of all objects tells; a table that one may not see is there still.

DBMS_REDEFINITION lets a table and its interim table change names: no statement says so, and the rows under the captured name are another
object's from then on. A table whose object has another name as of a window's end leaves at its lower end, up to which the name was its own.
Where the past cannot be asked, another name now is enough: the table leaves with this window or a later one.

Source: Oracle Database SQL Language Reference 19c, DROP USER; Database Reference 19c, DBA_OBJECTS; PL/SQL Packages and Types Reference 19c,
DBMS_REDEFINITION.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import ScnWindow
from cdc_core.model.streams import StreamEnd
from cdc_core.schema.dictionary import in_lists
from cdc_core.schema.segments import PAST_ERRORS, Queries, ask_objects
from cdc_core.schema.table import TableSchema

_LOG = logging.getLogger(__name__)

_THERE = """
SELECT OBJECT_ID, OWNER, OBJECT_NAME FROM {{objects}}{as_of}
 WHERE OBJECT_TYPE = 'TABLE' AND OBJECT_ID IN ({numbers})"""


def gone_ends(
    session: Queries, tables: Sequence[TableSchema], window: ScnWindow
) -> list[StreamEnd]:
    """Tables that were there no more at the window's end, and leave there, and those that had another name."""
    known = [one for one in tables if one.object_id]
    if not known:
        return []
    binds = {"scn": window.scn_high}
    try:
        names, is_whole = _names(session, known, " AS OF SCN :scn", binds)
    except PAST_ERRORS as error:
        _LOG.info("whether tables are there still is not known as of scn=%d: %s", window.scn_high, error)  # fmt: skip
        names, is_whole = _names(session, known, "", None)[0], False
    renamed = [one for one in known if names.get(one.object_id, one.table) != one.table]
    gone = [one for one in known if is_whole and one.object_id not in names]
    return [*(_renamed(one, window) for one in renamed), *(_gone(one, window) for one in gone)]


def _names(
    session: Queries, tables: Sequence[TableSchema], as_of: str, binds: Mapping[str, Any] | None
) -> tuple[dict[int, TableId], bool]:
    """The names of the tables' objects, by their numbers, and whether these are all that are there."""
    names: dict[int, TableId] = {}
    is_whole = True
    for listed in in_lists(one.object_id for one in tables):
        rows, is_all = ask_objects(session, _THERE.format(as_of=as_of, numbers=listed), binds)
        is_whole &= is_all
        names |= {int(number): TableId(owner, name) for number, owner, name in rows}
    return names, is_whole


def _renamed(one: TableSchema, window: ScnWindow) -> StreamEnd:
    return StreamEnd(
        one.table,
        window.scn_low,
        "the table's object has another name, and no DDL row in the redo says so: the table was redefined online, and its name "
        f"stands for another object now (table={one.table})",
        f"`redolake table resnapshot {one.table.argument}` reads the table that has the name now.",
        "unsupported_ddl",
    )


def _gone(one: TableSchema, window: ScnWindow) -> StreamEnd:
    return StreamEnd(
        one.table,
        window.scn_high,
        f"the table is gone, and no DDL of it is in the redo: its owner was dropped with it (table={one.table})",
        f"Remove it from the configuration, or `redolake table resnapshot {one.table.argument}` once there is a table of that name again.",
        "drop",
    )
