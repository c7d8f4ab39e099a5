"""A database of which some belief is not true: what its views show is turned, and everything in front of them is as always.

The driver, the statements, capture and decoding are the real ones; so a probe that asks for the wrong thing is noticed, not only
one that judges wrongly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from oracle_embedded.api import ColumnMeta, EngineSession, OraType, Value, VirtualTable
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.values import (
    date_from_datetime,
    datetime_from_date,
    decimal_from_number,
    number_from_decimal,
)
from tests.oracle.embedded import Oracle

Row = dict[str, Any]
Turn = Callable[[list[Row]], list[Row]]
"""What a view shows in place of its rows. Texts are str, NUMBERs int, DATEs datetime, RAWs bytes."""


def with_values(**values: Any) -> Turn:
    """Each row with other values; ``_H`` at the end of a name stands for ``#``."""
    changed = {
        name.removesuffix("_H") + "#" * name.endswith("_H"): one for name, one in values.items()
    }
    return lambda rows: [{**row, **changed} for row in rows]


_NAMES = ("OWNER", "TABLE_NAME", "OBJECT_NAME")
"""Columns that no turn changes: a query's filters on them hold before and after."""


class Turned:
    """The views of a running database, each of which can be turned; and columns of them."""

    def __init__(self, oracle: Oracle, patch: pytest.MonkeyPatch) -> None:
        self.turns: dict[str, Turn] = {}
        self.of_now: set[str] = set()
        """Dictionary views that show the present to who asks for the past."""
        self._engine = oracle.database.engine
        for name, table in list(self._engine.virtual_tables.items()):
            rows = self._rows_of(table)
            self._engine.virtual_tables[name] = replace(table, rows=rows)
        self._dictionary_rows = self._engine.dictionary.rows
        patch.setattr(self._engine.dictionary, "rows", self._rows_of_dictionary)

    def retype(self, view: str, patch: pytest.MonkeyPatch) -> None:
        """The view's columns have a type that nobody expects of them."""
        for views in (self._engine.virtual_tables, self._engine.dictionary.views):
            if view in views:
                columns = [replace(one, type=OraType.BINARY_DOUBLE) for one in views[view].columns]
                patch.setitem(views, view, replace(views[view], columns=tuple(columns)))

    def _rows_of(self, table: VirtualTable) -> Callable[..., Iterator[Sequence[Value]]]:
        def rows(
            session: EngineSession,
            constraints: Sequence[tuple[str, str, Value]],
            read: frozenset[str] | None,
        ) -> Iterator[Sequence[Value]]:
            turn = self.turns.get(table.name)
            if turn is None:
                return table.rows(session, constraints, read)
            return _turned(table.columns, table.rows(session, (), None), turn)

        return rows

    def _rows_of_dictionary(
        self,
        name: str,
        session: SessionState,
        scn: int | None,
        filters: Sequence[tuple[str, str, Value]],
        read: Sequence[int],
    ) -> Iterator[Sequence[Value]]:
        if name in self.of_now:
            scn = None
        turn = self.turns.get(name)
        if turn is None:
            yield from self._dictionary_rows(name, session, scn, filters, read)
            return
        columns = self._engine.dictionary.views[name].columns
        kept = [one for one in filters if one[0] in _NAMES]
        rows = self._dictionary_rows(name, session, scn, kept, range(len(columns)))
        for row in _turned(columns, rows, turn):
            yield [row[at] for at in read] if len(read) > 1 else (row[read[0]],)


def _turned(
    columns: Sequence[ColumnMeta], rows: Iterator[Sequence[Value]], turn: Turn
) -> Iterator[Sequence[Value]]:
    found = [
        {column.name: _plain(column, cell) for column, cell in zip(columns, row, strict=True)}
        for row in rows
    ]
    return iter([[_cell(column, row[column.name]) for column in columns] for row in turn(found)])


def _plain(column: ColumnMeta, cell: Value) -> Any:
    if cell is None:
        return None
    raw = cell.encode() if isinstance(cell, str) else cell
    assert isinstance(raw, bytes)
    match column.type:
        case OraType.NUMBER:
            number = decimal_from_number(raw)
            return int(number) if number == number.to_integral_value() else number
        case OraType.DATE:
            return datetime_from_date(raw)
        case OraType.RAW | OraType.TIMESTAMP:
            return raw
        case _:
            return raw.decode()


def _cell(column: ColumnMeta, value: Any) -> Value:
    match value:
        case str():
            return value.encode()
        case int() | Decimal():
            return number_from_decimal(value)
        case datetime():
            return date_from_datetime(value)
        case _:
            assert value is None or isinstance(value, bytes)
            return value
