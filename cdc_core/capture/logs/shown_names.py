"""Under which names does LogMiner show the rows of the captured tables?

With the online catalog a row has the name that its object has *now*, whatever it was called when
the row was written. So rows of a table that was renamed have another name than the captured one,
and rows under a captured name can be those of a table that was put in its place (a swap by two
renames). The number of an object is its own for ever.

Source: Oracle Database Utilities 19c, "LogMiner Dictionary Options"; rows of dropped segments
measured on 23ai by others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cdc_core.model.identifiers import TableId
from cdc_core.schema.dictionary_queries import Queries, in_lists, tables_condition
from cdc_core.schema.table import TableSchema

ShownNames = Mapping[TableId, TableId | None]
"""Per captured table the name that its rows have; None if no row under a name is its own."""

_OBJECTS = """
SELECT OWNER, OBJECT_NAME, OBJECT_ID FROM ALL_OBJECTS
 WHERE OBJECT_TYPE = 'TABLE' AND ({tables}{numbers})"""


def read_shown_names(session: Queries, tables: Sequence[TableSchema]) -> ShownNames:
    """Ask the dictionary for the present names of the tables' objects."""
    if not tables:
        return {}
    condition, binds = tables_condition([one.table for one in tables], "OWNER", "OBJECT_NAME")
    ids = sorted({one.object_id for one in tables if one.object_id})
    numbers = "".join(f" OR OBJECT_ID IN ({listed})" for listed in in_lists(ids))
    rows = session.fetch_all(_OBJECTS.format(tables=condition, numbers=numbers), binds)
    return shown_names(tables, {TableId(owner, name): int(number) for owner, name, number in rows})


def shown_names(tables: Sequence[TableSchema], objects: Mapping[TableId, int]) -> ShownNames:
    """The names, from the numbers of the objects that have a captured name or a captured number.
    Pure.

    A table of which the dictionary shows nothing keeps its name: it was dropped, and then no row
    has that name, or the capture user may not see it any more.
    """
    names = {number: name for name, number in objects.items()}
    found: dict[TableId, TableId | None] = {}
    for one in tables:
        is_taken = objects.get(one.table, one.object_id) != one.object_id
        kept = None if is_taken else one.table
        found[one.table] = names.get(one.object_id, kept) if one.object_id else one.table
    return found
