"""Which columns does a row of the change log not carry, under the names that columns have now?

A row's lists of absent columns have the names of when it was written. A name that an added column has taken since is told apart by the number
of columns that the table had had by the row's version: it is that of the newest column that the row may know. So a row of a version from before
such a column never lists it (:func:`unlisted`), and lacks it. That does not tell a column apart that was renamed to a name which another one had:
it is listed under a name that says since when it has that one (:func:`as_listed`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from cdc_core.schema.table import TableSchema

LISTS = ("_cdc_absent", "_cdc_before_absent")


def holders(schema: TableSchema) -> dict[str, list[tuple[int, str]]]:
    """All names under which rows list columns, each with the columns and their places (from 1 on), in order."""
    found: dict[str, list[tuple[int, str]]] = {}
    for place, column in enumerate(schema.logged_columns, 1):
        for name in schema.listed_names(column):
            found.setdefault(name, []).append((place, column))
    return found


def unlisted(schema: TableSchema) -> list[tuple[int, str]]:
    """The columns, with their places, that rows of a version from before them do not list although they lack them."""
    taken = {
        schema.present_name(one.name, behind=one.renames)
        for one in schema.displaced
        if not schema.was_renamed_to(one)
    }
    return [(place, name) for place, name in enumerate(schema.logged_columns, 1) if name in taken]


def as_listed(changes: Iterable[pa.RecordBatch], schema: TableSchema) -> Iterator[pa.RecordBatch]:
    """Rows of the change log with their lists under the names that these are written with. ``schema``: whose names they have."""
    written = zip(schema.column_names, listed(schema.column_names, schema), strict=True)
    names = {one: name for one, name in written if name != one}
    for batch in changes:
        yield _listed(batch, names) if names else batch


def listed(columns: Sequence[str], schema: TableSchema) -> list[str]:
    """The names under which rows that are written now list some columns."""
    return [schema.listed_names(one)[0] for one in columns]


def _listed(batch: pa.RecordBatch, names: Mapping[str, str]) -> pa.RecordBatch:
    for column in LISTS:
        lists = [
            one and [names.get(name, name) for name in one] for one in batch[column].to_pylist()
        ]
        place = batch.schema.get_field_index(column)
        batch = batch.set_column(place, column, pa.array(lists, pa.list_(pa.string())))
    return batch


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
