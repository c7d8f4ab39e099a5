"""Under which names does a flashback query find the columns of an earlier definition?

Under their present ones: a statement is compiled with the dictionary of the moment, whatever SCN
its rows are as of. A column that was renamed since is found under its new name, and one that came
under an old name since is another column: a query by the old names would fail (ORA-00904), or read
the values of the wrong column without an error. Columns are told apart by their place in the
segment (SEGMENT_COLUMN_ID), which neither RENAME nor ADD COLUMN changes. What does change it,
Oracle does not look back over (ORA-01466).

Source: SQL Language Reference 19c, FLASHBACK TABLE, "Restrictions": dropping and modifying columns
changes the structure, renaming does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from cdc_core.errors import AlteredMeanwhileError
from cdc_core.model.identifiers import TableId, quote
from cdc_core.schema.dictionary_queries import Queries
from cdc_core.schema.table import TableSchema

_PRESENT = """
SELECT COLUMN_NAME FROM ALL_TAB_COLS
 WHERE OWNER = :owner AND TABLE_NAME = :name AND SEGMENT_COLUMN_ID IS NOT NULL ORDER BY SEGMENT_COLUMN_ID"""

_TOKEN = re.compile(r"""'(?:[^']|'')*'|"[^"]*"|[^\W\d][\w$#]*(?![\w$#]|\s*\()""")
"""Of a checked condition: a literal, a quoted name, or a word that calls no function."""


def present_names(session: Queries, table: TableId) -> tuple[str, ...]:
    """The names that a table's stored columns have now, by their places in the segment; none if
    there is no such table."""
    rows = session.fetch_all(_PRESENT, {"owner": table.owner, "name": table.name})
    return tuple(name for (name,) in rows)


@contextmanager
def steady_names(
    session: Queries, table: TableId, *, what: str, hint: str
) -> Iterator[tuple[str, ...]]:
    """The names that a table's stored columns have now, for a block that reads ``what``.

    Raises:
        AlteredMeanwhileError: They have others behind the block, which may have read by either.
    """
    present = present_names(session, table)
    yield present
    if present_names(session, table)[: len(present)] != present:
        raise AlteredMeanwhileError(
            f"columns of the table got other names while {what} were read", hint=hint, table=table
        )


def renames(schema: TableSchema, present: Sequence[str]) -> dict[str, str]:
    """The columns of a definition that have other names now, with these."""
    if len(present) < len(schema.stored):  # some were dropped: Oracle does not look back over that
        return {}
    return {old: new for old, new in zip(schema.stored, present, strict=False) if old != new}


def under_names(schema: TableSchema, names: Mapping[str, str]) -> TableSchema:
    """The definition with other names of columns."""
    if not names:
        return schema
    columns = tuple(column.under(names) for column in schema.columns)
    return replace(schema, columns=columns, key=tuple(names.get(name, name) for name in schema.key))


def condition_under_names(condition: str, names: Mapping[str, str]) -> str:
    """A checked condition (:func:`cdc_core.snapshot.conditions.checked_condition`) about columns
    that have other names now."""

    def renamed(found: re.Match[str]) -> str:
        text = found.group()
        name = text[1:-1] if text.startswith('"') else text.upper()
        return quote(names[name]) if name in names and not text.startswith("'") else text

    return _TOKEN.sub(renamed, condition) if names else condition
