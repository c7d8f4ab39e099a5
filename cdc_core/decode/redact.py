"""How are the values of excluded columns taken out of redo text, before it lands?

The decoder's own grammar finds them: a statement is read to its end, and each value of a column that is left out becomes NULL. A
statement that the grammar does not read to its end is given up whole. Columns that the definition does not know yet (one that
was added a moment ago) are passed over. ``COL n`` is the n-th stored column; one behind the last that is known was added later,
and is passed over where each of those left out is known.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.decode.literals import Literal, Value
from cdc_core.decode.plain import Statement
from cdc_core.decode.plan import TablePlan, is_dictionary_name, plan_table
from cdc_core.errors import DecodeError
from cdc_core.schema.table import TableSchema


def redact_column(sql: pa.Array, schema: TableSchema, excluded: Collection[str]) -> pa.Array:
    """Redo statements of one table without the values of some of its columns.

    Args:
        sql: string or large_string: SQL_REDO of INSERT, UPDATE and DELETE rows; NULL stays NULL.
        schema: The table.
        excluded: Names of columns, captured ones too.

    Returns:
        Texts of the same type and length; NULL where a statement was given up.
    """
    named = pc.fill_null(pc.match_substring(sql, '"COL '), False)
    for name in excluded:
        named = pc.or_(named, pc.fill_null(pc.match_substring(sql, f'"{name}"'), False))
    if not pc.any(named).as_py():
        return sql
    plan = plan_table(schema)
    secret = frozenset(excluded)
    later_columns = secret <= set(plan.stored)
    texts = [
        redact_statement(text, plan, secret, later_columns=later_columns) if hit else text
        for text, hit in zip(sql.to_pylist(), named.to_pylist(), strict=True)
    ]
    return pa.array(texts, sql.type)


def redact_statement(
    sql: str, plan: TablePlan, excluded: frozenset[str], *, later_columns: bool = False
) -> str | None:
    """One statement with NULL for the values of excluded columns; None if it cannot be read to its end."""
    statement = _Redacting(sql, plan, excluded, later_columns=later_columns)
    try:
        statement.read()
    except DecodeError:
        return None
    return statement.redacted()


class _Redacting(Statement):
    """Reads a statement without taking values, and remembers where those of excluded columns stand."""

    def __init__(
        self, sql: str, plan: TablePlan, excluded: frozenset[str], *, later_columns: bool
    ) -> None:
        super().__init__(sql, plan, 0)
        self.excluded = excluded
        self.later_columns = later_columns
        self.spans: list[tuple[int, int]] = []

    def name(self) -> str:
        name = self.known_name(self.quoted_name())
        if is_dictionary_name(name) and name not in self.columns and not self._is_later(name):
            raise self.refused("a redo row's column is not in LogMiner's dictionary")
        return name

    def _is_later(self, name: str) -> bool:
        return self.later_columns and name.startswith("COL ")

    def put(self, values: dict[str, Value], name: str, literal: Literal | None = None) -> None:
        del values
        start = self.at
        if literal is None:
            self.skip_value()
        if name in self.excluded and self.at > start:
            self.spans.append((start, self.at))

    def redacted(self) -> str:
        """The statement's text with NULL in the places of what was remembered."""
        parts, end = [], 0
        for start, stop in self.spans:
            parts += [self.sql[end:start], "NULL"]
            end = stop
        return "".join([*parts, self.sql[end:]])
