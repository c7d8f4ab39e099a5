"""The columns that Oracle makes for itself beside an index: one for each expression, and for each
column in descending order.

They are virtual: no row holds them, no row of redo names them, and they have no place in the
segment. ALL_TAB_COLS alone shows them (SYS_NC0000n$, n being their place among all columns), and
ALL_IND_COLUMNS names them in the place of what an index is on. Two indexes on one expression share
one; the last of them takes it along.

Source: Oracle Database Reference 19c, ALL_TAB_COLS (HIDDEN_COLUMN, USER_GENERATED),
ALL_IND_COLUMNS, ALL_IND_EXPRESSIONS; SQL Language Reference 19c, CREATE INDEX ("Oracle Database
treats descending indexes as if they were function-based indexes"); rows of real dictionaries in
public reports.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from oracle_embedded.api import OraType
from oracle_embedded.engine.datatypes.types import SqlType, varchar
from oracle_embedded.engine.ddl.ddl_run import DdlRun
from oracle_embedded.engine.ddl.tables import virtual_value
from oracle_embedded.engine.storage.catalog import ColumnDef, IndexDef, TableDef, data_length

_TEXT_MAX = 4000
_RAW_MAX = 2000
_TOKEN = re.compile(r"""('(?:[^']|'')*')|("[^"]*")|([^\W\d][\w$#]*)|(\s+)""")


def with_hidden(
    run: DdlRun, table: TableDef, on: Sequence[tuple[str, bool]]
) -> tuple[TableDef, tuple[int, ...], tuple[str, ...]]:
    """What an index needs.

    Args:
        on: Columns or expressions, each with whether the order descends.

    Returns:
        The table with the hidden columns, the internal ids of what the index is on (none where
        these are columns in ascending order), and the expressions compiled.
    """
    keys: list[int] = []
    values: list[str] = []
    made = table
    for text, descends in on:
        column = table.by_name.get(text)
        value = virtual_value(run, table, text if column is None else f'"{text}"')
        values.append(f"({value.text})")
        if column is not None and not descends:
            keys.append(column.internal_id)
            continue
        kind = value.type if column is None else column.type
        if value.family == "text" and column is None:
            kind = varchar(min(data_length(value.type) or _TEXT_MAX, _TEXT_MAX))
        if descends:  # the bytes of the value, turned round: 3 for 2, and one
            length = min(data_length(kind) * 3 // 2 + 1, _RAW_MAX)
            kind = SqlType(OraType.RAW, length=length)
        made, key = _with_one(made, _as_stored(table, text, column), kind, descends)
        keys.append(key)
    if all(key in table.by_id for key in keys):
        return table, (), tuple(values)
    return made, tuple(keys), tuple(values)


def _with_one(
    table: TableDef, expression: str, kind: SqlType, descends: bool
) -> tuple[TableDef, int]:
    is_raw = kind.ora is OraType.RAW and descends
    for one in table.hidden:
        if (one.expression, one.type.ora is OraType.RAW) == (expression, is_raw):
            return table, one.internal_id
    number = table.next_internal_id
    column = ColumnDef(
        internal_id=number,
        name=f"SYS_NC{table.next_place:05d}$",
        type=kind,
        expression=expression,
        is_invisible=True,
        is_guard=True,
    )
    hidden = (*table.hidden, column)
    return replace(table, hidden=hidden, next_internal_id=number + 1), number


def _as_stored(table: TableDef, text: str, column: ColumnDef | None) -> str:
    """An expression as the dictionary has it: names of columns in quotes, other words in capitals,
    no blanks that need not be."""
    if column is not None:
        return f'"{column.name}"'

    def token(found: re.Match[str]) -> str:
        constant, quoted, word, blanks = found.groups()
        if blanks:
            return " " if _is_between_words(text, found) else ""
        if word and word.upper() in table.by_name:
            return f'"{word.upper()}"'
        return constant or quoted or word.upper()

    return _TOKEN.sub(token, text.strip())


def _is_between_words(text: str, blanks: re.Match[str]) -> bool:
    around = text[: blanks.start()].strip()[-1:], text[blanks.end() :].strip()[:1]
    return all(one.isalnum() or one in "_$#\"'" for one in around)


def is_on(table: TableDef, index: IndexDef, column: ColumnDef) -> bool:
    """Is an index on a column, or on an expression that names it?"""
    hidden = table.hidden_by_id
    texts = [hidden[one].expression or "" for one in index.keys if one in hidden]
    named = any(f'"{column.name}"' in text for text in texts)
    return named or column.internal_id in (*index.columns, *index.keys)


def without_indexes(table: TableDef, going: Collection[IndexDef]) -> TableDef:
    """The table without some indexes, and without the hidden columns that only these were on."""
    left = tuple(one for one in table.indexes if one not in going)
    used = {key for one in left for key in one.keys}
    gone = {key for one in going for key in one.keys} - used
    hidden = tuple(one for one in table.hidden if one.internal_id not in gone)
    return replace(table, indexes=left, hidden=hidden)


def with_new_name(table: TableDef, old: str, new: str) -> TableDef:
    """The table with another name of a column in the expressions of hidden ones, which stay what
    they are."""
    hidden = tuple(
        replace(one, expression=(one.expression or "").replace(f'"{old}"', f'"{new}"'))
        for one in table.hidden
    )
    return replace(table, hidden=hidden)
