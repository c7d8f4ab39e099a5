"""Which columns does a row of the change log not carry, under the names that columns have now?

A row's lists of absent columns have the names of when it was written. A name that another column has taken since is told apart by the number
of columns that the table had had by the row's version: it is that of the newest column that the row may know. So a row of a version from before
such a column never lists it (:func:`unlisted`), and lacks it.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from cdc_core.schema.table import TableSchema


def holders(schema: TableSchema) -> dict[str, list[tuple[int, str]]]:
    """All names that columns have or had, each with the columns and their places (from 1 on), in order."""
    found: dict[str, list[tuple[int, str]]] = {}
    for place, column in enumerate(schema.logged_columns, 1):
        for name in dict.fromkeys((column, *schema.earlier_names(column))):
            found.setdefault(name, []).append((place, column))
    return found


def unlisted(schema: TableSchema) -> list[tuple[int, str]]:
    """The columns, with their places, that rows of a version from before them do not list although they lack them."""
    taken = {one.name for one in schema.displaced}
    return [(place, name) for place, name in enumerate(schema.logged_columns, 1) if name in taken]


def absent_now(
    lists: Sequence[Sequence[str]],
    widths: Sequence[int | None],
    are_changes: Sequence[bool],
    schema: TableSchema,
) -> pa.Array:
    """Lists of absent columns as rows have them, under the names of ``schema``.

    Args:
        lists: The names, by row.
        widths: ``_cdc_columns`` of the rows; as none where nobody knows.
        are_changes: Does the row say something of an image, and did no chunk bring it?
        schema: The newest version.
    """
    by_name, later = holders(schema), unlisted(schema)

    def now(name: str, width: int) -> str:
        known = by_name.get(name, [(0, name)])
        return next((column for place, column in reversed(known) if place <= width), known[0][1])

    found = [
        [now(name, width) for name in names]
        + [column for place, column in later if is_change and place > width]
        for names, width, is_change in zip(
            lists, (width or 0 for width in widths), are_changes, strict=True
        )
    ]
    return pa.array(found, pa.list_(pa.string()))
