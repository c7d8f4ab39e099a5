"""How are the values of excluded and masked columns taken out of redo text, before it lands?

The decoder's own grammar finds them: a statement is read to its end, each value of a column that is
left out becomes NULL, and that of a masked column the literal of what stands in its place. A
statement that the grammar does not read to its end is given up whole. Columns that the definition
does not know yet (one that was added a moment ago) are passed over. ``COL n`` is the n-th stored
column; one behind the last that is known was added later, and is passed over where each of those
left out is known.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.decode.literals import Literal, Value
from cdc_core.decode.lob import FOLLOWS, SELECT, STATEMENT, XML_BEGIN, lob_literal
from cdc_core.decode.masking import Masks
from cdc_core.decode.plain import STRING, XML_BIND, Statement
from cdc_core.decode.plan import ColumnPlan, Kind, TablePlan, is_dictionary_name, plan_table
from cdc_core.errors import DecodeError
from cdc_core.model.operations import Operation
from cdc_core.schema.table import TableSchema

NO_MASKS: Masks = {}
_NULL = "NULL"
HIDDEN = "a masked LOB is written;"
"""In place of what a row writes to a masked LOB: no call that is understood."""


def redact_column(
    sql: pa.Array, schema: TableSchema, excluded: Collection[str], masks: Masks = NO_MASKS
) -> pa.Array:
    """Redo statements of one table without the values of some of its columns.

    Args:
        sql: string or large_string: SQL_REDO of INSERT, UPDATE and DELETE rows; NULL stays NULL.
        schema: The table.
        excluded: Names of columns, captured ones too.
        masks: Columns of which something else stands in place of the value.

    Returns:
        Texts of the same type and length; NULL where a statement was given up.
    """
    named = pc.fill_null(pc.match_substring(sql, '"COL '), False)
    for name in (*excluded, *masks):
        named = pc.or_(named, pc.fill_null(pc.match_substring(sql, f'"{name}"'), False))
    if not pc.any(named).as_py():
        return sql
    plan = plan_table(schema)
    secret = frozenset(excluded)
    later_columns = secret | masks.keys() <= set(plan.stored)
    texts = [
        redact_statement(text, plan, secret, masks, later_columns=later_columns) if hit else text
        for text, hit in zip(sql.to_pylist(), named.to_pylist(), strict=True)
    ]
    return pa.array(texts, sql.type)


def redact_statement(
    sql: str,
    plan: TablePlan,
    excluded: frozenset[str],
    masks: Masks = NO_MASKS,
    *,
    later_columns: bool = False,
) -> str | None:
    """One statement with NULL for the values of excluded columns, and masks for those of masked
    ones; None if it cannot be read to its end, or the value of a masked column is not a text."""
    statement = _Redacting(sql, plan, excluded, masks, later_columns=later_columns)
    try:
        statement.read()
    except DecodeError:
        return None
    return statement.redacted()


def redact_lob_row(
    sql: str,
    operation: int,
    schema: TableSchema,
    excluded: frozenset[str],
    masks: Masks,
    *,
    is_hidden: bool = False,
) -> str | None:
    """A row that writes a LOB, with NULL for excluded values and masks for masked ones where it
    names its table's row by all columns; None if it cannot be read. A row that names none is as it
    was. Of a LOB that ``is_hidden``, because it is masked, it says which it is, and nothing else:
    :func:`cdc_core.decode.lob.read_lob_row` finds a call that is not understood, so its value is
    read from Oracle, or refused."""
    plan = plan_table(schema)
    later_columns = excluded | masks.keys() <= set(plan.stored)
    try:
        if operation in FOLLOWS:
            return sql
        if operation == Operation.EXTENDED_BEGIN:
            return _redacted_statement(sql, plan, excluded, masks, later_columns=later_columns)
        statement = _RedactingPlace(sql, plan, excluded, masks, later_columns=later_columns)
        if operation == Operation.XML_DOC_BEGIN:
            statement.document()
        elif not statement.is_located():
            if operation == Operation.SELECT_LOB_LOCATOR:
                return None
            return HIDDEN if is_hidden else sql
    except DecodeError:
        return None
    if is_hidden and operation != Operation.SELECT_LOB_LOCATOR:
        return f"{statement.redacted(statement.at)} {HIDDEN}"
    return statement.redacted()


def _redacted_statement(
    sql: str, plan: TablePlan, excluded: frozenset[str], masks: Masks, *, later_columns: bool
) -> str | None:
    """The same for the statement to which an extended string is bound, which is a text in
    PL/SQL."""
    found = STATEMENT.match(sql)
    literal = found and STRING.match(sql, found.end())
    if literal is None:
        return None
    inner = literal[1].replace("''", "'")
    statement = _RedactingPlace(inner, plan, excluded, masks, later_columns=later_columns)
    statement.bound(":DATA")
    doubled = statement.redacted().replace("'", "''")
    return f"{sql[: literal.start(1)]}{doubled}{sql[literal.end(1) :]}"


def names_known_columns(sql: str, schema: TableSchema, more: Collection[str] = ()) -> bool:
    """Can the statement be read to its end, and does it name columns of the definition alone, or
    ``more``?"""
    plan = plan_table(schema)
    statement = _Redacting(sql, plan, frozenset(), NO_MASKS, later_columns=False)
    try:
        statement.read()
    except DecodeError:
        return False
    return statement.names <= {*statement.columns, *plan.skipped, *more}


def _text_column(name: str) -> ColumnPlan:
    """A masked column that the definition does not know yet: whatever is no text is refused, here
    or where its DDL is followed."""
    return ColumnPlan(name, Kind.CLOB, pa.string(), 0, 0)


class _Redacting(Statement):
    """Reads a statement without taking values, and remembers the places of those of excluded and
    masked columns."""

    def __init__(
        self,
        sql: str,
        plan: TablePlan,
        excluded: frozenset[str],
        masks: Masks,
        *,
        later_columns: bool,
    ) -> None:
        super().__init__(sql, plan, 0)
        later = (name for name in masks if name not in {*self.columns, *plan.skipped, *plan.stored})
        self.columns = {**{name: _text_column(name) for name in later}, **self.columns}
        self.excluded = excluded
        self.masks = masks
        self.later_columns = later_columns
        self.spans: list[tuple[int, int, str]] = []
        self.names: set[str] = set()

    def name(self) -> str:
        name = self.known_name(self.quoted_name())
        if is_dictionary_name(name) and name not in self.columns and not self._is_later(name):
            raise self.refused("a redo row's column is not in LogMiner's dictionary")
        self.names.add(name)
        return name

    def _is_later(self, name: str) -> bool:
        return self.later_columns and name.startswith("COL ")

    def put(self, values: dict[str, Value], name: str, literal: Literal | None = None) -> None:
        del values
        start = self.at
        if literal is not None:
            return  # IS NULL
        if name in self.excluded:
            self.skip_value()
            self.spans.append((start, self.at, _NULL))
        elif name in self.masks:
            text = self.masked(name)
            self.spans.append((start, self.at, text))
        else:
            self.skip_value()

    def masked(self, name: str) -> str:
        """The literal in place of the value that is read here."""
        column = self.columns.get(name)
        if column is None or column.kind not in (Kind.TEXT, Kind.CLOB):
            raise self.refused("a masked column is not a text that the table's definition has")
        value = self.value(self.named(self.literal(name), column), column)
        if value is None:
            return _NULL
        if not value:
            return lob_literal(str(value))
        doubled = self.masks[name](str(value)).replace("'", "''")
        return f"'{doubled}'"

    def redacted(self, upto: int | None = None) -> str:
        """The statement's text, up to a place in it, with replacements in the places that were
        remembered."""
        parts, end = [], 0
        for start, stop, text in self.spans:
            parts += [self.sql[end:start], text]
            end = stop
        return "".join([*parts, self.sql[end:upto]])


class _RedactingPlace(_Redacting):
    """Reads only what names the row whose LOB is written."""

    def is_located(self) -> bool:
        """Does the row begin with a locator's query? It is read then."""
        if not self.match(SELECT):
            return False
        self.table()
        self.where()
        self.need(" for update;")
        return True

    def document(self) -> None:
        """Read what begins a document."""
        if not self.match(XML_BEGIN):
            self.bound(XML_BIND)
            return
        self.table()
        self.where()

    def bound(self, bind: str) -> None:
        """Read an UPDATE with a bind."""
        self.need("update ")
        self.table()
        self.read_alias()
        self.need(" set ")
        self.take(self.alias)
        self.name()
        self.need(" = ")
        if not self.take_bind(bind):
            raise self.refused("a row that writes a long text or a document binds none")
        self.where()
