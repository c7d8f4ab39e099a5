"""Which rows of a table have given values in some columns, in SQLite's SQL?"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from oracle_embedded.api import Value
from oracle_embedded.engine.storage.catalog import TableDef


def text_columns(table: TableDef) -> frozenset[int]:
    """Internal ids of the columns that SQLite holds as TEXT."""
    return frozenset(
        column.internal_id for column in table.columns if column.type.family in ("text", "clob")
    )


def matching(
    columns: Sequence[int], values: Sequence[Value], texts: Collection[int]
) -> tuple[str, list[object]]:
    """A condition with its parameters; NULL matches NULL. ``texts`` as :func:`text_columns` gives
    them."""
    tests: list[str] = []
    params: list[object] = []
    for internal_id, value in zip(columns, values, strict=True):
        if value is None:
            tests.append(f"c{internal_id} IS NULL")
        else:
            tests.append(f"c{internal_id} = ?")
            params.append(value.decode() if internal_id in texts else value)
    return " AND ".join(tests), params
