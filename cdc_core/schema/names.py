"""Which names can a table's columns have in the lake? One rule, asked before a table joins and when
a definition changes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from cdc_core.errors import SchemaMismatchError
from cdc_core.schema.table import TableSchema

_NEED_MAPPING = re.compile(r"[ ,;{}()\n\t=.]")
"""What a Delta table without column mapping refuses (Delta's protocol), and the dot, which divides
the parts of a nested column."""


def need_mapping(names: Iterable[str]) -> bool:
    """Does a Delta table hold columns of these names by column mapping only?"""
    return any(map(_NEED_MAPPING.search, names))


def check_names(schema: TableSchema) -> None:
    """Refuse column names that no Delta table of ours can hold.

    Raises:
        SchemaMismatchError: Names all such columns.
    """
    names = schema.as_in_rows().column_names
    folded = Counter(column.casefold() for column in names)
    refused = [
        column
        for column in names
        if column.casefold().startswith("_cdc_") or folded[column.casefold()] > 1
    ]
    if refused:
        raise SchemaMismatchError(
            "columns have names that a Delta table cannot have",
            hint=(
                "Name them under columns_exclude: names that begin with _cdc_ and names that differ only in case are refused."
            ),
            table=schema.table,
            columns=", ".join(map(repr, refused)),
        )
