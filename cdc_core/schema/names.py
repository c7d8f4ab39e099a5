"""Which names can a table's columns have in the lake? One rule, asked before a table joins and when a definition changes."""

from __future__ import annotations

import re
from collections import Counter

from cdc_core.errors import SchemaMismatchError
from cdc_core.schema.table import TableSchema

_REFUSED = re.compile(r"[ ,;{}()\n\t=.]")
"""What a plain Delta table, without column mapping, refuses (Delta's protocol), and the dot, which divides nested columns."""


def check_names(schema: TableSchema) -> None:
    """Refuse column names that a plain Delta table cannot hold.

    Raises:
        SchemaMismatchError: Names all such columns.
    """
    names = schema.as_in_rows().column_names
    folded = Counter(column.casefold() for column in names)
    refused = [
        column
        for column in names
        if _REFUSED.search(column)
        or column.casefold().startswith("_cdc_")
        or folded[column.casefold()] > 1
    ]
    if refused:
        raise SchemaMismatchError(
            "columns have names that a Delta table cannot hold",
            hint=(
                "Name them under columns_exclude: blanks, dots and the characters ,;{}()= are refused, so are names that "
                "begin with _cdc_ and names that differ only in case."
            ),
            table=schema.table,
            columns=", ".join(map(repr, refused)),
        )
