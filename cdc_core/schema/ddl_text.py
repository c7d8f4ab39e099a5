"""Which version has a DDL made of a table, by what ``schema.ddl_reading`` reads in its text? Asked where Oracle shows the definition as of the DDL no more.

After a long pause the undo for the dictionary is gone, and the present definition is that of the last DDL. Nothing is guessed: the text
must say all that the DDL did, and each column that it added must be in the present definition as the text has it.
"""

from __future__ import annotations

from dataclasses import replace

from cdc_core.schema.create_table import DescribedColumn
from cdc_core.schema.ddl_reading import read_ddl
from cdc_core.schema.table import Column, TableSchema


def version_after(
    old: TableSchema, ddl: str, present: TableSchema, excluded: tuple[str, ...]
) -> TableSchema | None:
    """The version that a DDL made of ``old``, with the SCN of ``old``; None where the text does not suffice.

    Args:
        old: The version before.
        ddl: The statement, as LogMiner shows it.
        present: The definition now.
        excluded: Columns that the configuration leaves out.
    """
    added = read_ddl(ddl).added
    if added == ():
        return old
    if added is None or (present.object_id, present.key) != (old.object_id, old.key):
        return None
    columns = list(old.columns)
    for one in added:
        if one.name in excluded:
            continue
        known = next((column for column in present.columns if column.name == one.name), None)
        if known is None or one.name in (*old.column_names, *old.excluded) or not _is(known, one):
            return None
        columns.append(known)
    names = tuple(one.name for one in added)
    return replace(
        old,
        columns=tuple(columns),
        excluded=(
            *old.excluded,
            *(name for name in names if name in excluded and name not in old.excluded),
        ),
        stored=(*old.stored, *names) if old.stored else (),
        masked=(*old.masked, *(one for one in present.masked if one[0] in names)),
    )


def _is(column: Column, described: DescribedColumn) -> bool:
    """Is it the column that the text describes? A text may have become longer since."""
    return (column.data_type, column.precision, column.scale, column.default) == (
        described.data_type,
        described.precision,
        described.scale,
        None if (described.default or "NULL").upper() == "NULL" else described.default,
    )
