"""Which UPDATEs do not close the statement whose rows stand before them?

In a table with LOBs an UPDATE with the ROWID may be the last row of a statement that wrote a large
LOB, or the next statement (:mod:`cdc_core.stage.undone_statements`). What closes a statement
changes LOBs alone, of the statement's own row. So an UPDATE that changes a captured column which is
no LOB, or names another key, is the next one. Anything else, and what cannot be read, may be
either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.decode.literals import Value
from cdc_core.decode.lob import read_lob_row
from cdc_core.decode.plain import Statement
from cdc_core.decode.plan import TablePlan, plan_table
from cdc_core.errors import CdcError
from cdc_core.model.operations import LOB_OPERATIONS
from cdc_core.schema.table import TableSchema

COLUMNS = ("ordinal", "scn", "operation_code", "sql_redo")
"""What :func:`updates_apart` reads of a redo row."""

_Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Facts:
    """Which row a redo row is about before and after it, where it says so, and whether it changes a
    column that is no LOB."""

    before: _Key | None = None
    after: _Key | None = None
    changes_others: bool = False


def updates_apart(
    pieces: Iterable[pa.Table],
    candidates: Mapping[int, Sequence[int]],
    version_at: Callable[[int], TableSchema],
) -> set[int]:
    """The candidates that close nothing. Holds the keys of the rows that are asked.

    Args:
        pieces: Redo rows of the table, columns :data:`COLUMNS`.
        candidates: Ordinals of UPDATEs, each with those of rows of the statement before it.
        version_at: The table as it was at a row's SCN.
    """
    wanted = pa.array(
        sorted({*candidates, *(one for rows in candidates.values() for one in rows)}), pa.int64()
    )
    facts: dict[int, _Facts] = {}
    for piece in pieces:
        for row in piece.filter(pc.is_in(piece["ordinal"], value_set=wanted)).to_pylist():
            facts[row["ordinal"]] = _facts_of(row, version_at(row["scn"]))
    return {
        update
        for update, rows in candidates.items()
        if _is_apart(facts[update], [facts[one] for one in rows if one in facts])
    }


def _is_apart(update: _Facts, rows: Sequence[_Facts]) -> bool:
    if update.changes_others:
        return True
    named = [row.after for row in rows if row.after]
    return bool(update.before) and any(key != update.before for key in named)


def _facts_of(row: dict[str, Any], version: TableSchema) -> _Facts:
    """What a row says; nothing where it cannot be read."""
    plan, key = plan_table(version.as_in_rows()), version.as_in_rows().key
    sql = row["sql_redo"]
    if not sql:
        return _Facts()
    try:
        if row["operation_code"] in LOB_OPERATIONS:
            place, _ = read_lob_row(sql, row["operation_code"], plan, key, None)
            return _Facts(after=place.key)
        statement = _Setting(sql, plan, row=0)
        change = statement.read()
    except CdcError:
        return _Facts()
    plain = {column.name for column in version.columns if not column.is_lob}
    before, after = (
        None if image is None else tuple(map(image.get, key))
        for image in (change.before, change.after)
    )
    return _Facts(before, after, any(name in plain for name in statement.set))


class _Setting(Statement):
    """A statement that is read, with the names of the columns that it sets."""

    def __init__(self, sql: str, plan: TablePlan, row: int) -> None:
        super().__init__(sql, plan, row)
        self.set: list[str] = []

    def assignment(self, values: dict[str, Value]) -> None:
        start = self.at
        self.take(self.alias)
        self.set.append(self.name())
        self.at = start
        super().assignment(values)
