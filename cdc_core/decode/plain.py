"""Which change does one redo statement mean? The plain form: one statement at a time, by the letter
of the grammar.

The kernels decode what is common and must agree with this; what they do not understand comes here,
and what this does not understand is refused. Grammar of a statement as LogMiner prints it::

    insert   = 'insert into ' table [' '] '(' name {',' name} ')'
               ' values (' value {',' value} ')' [';']
    update   = 'update ' table [' ' alias] ' set ' name ' = ' value {', ' …} [where] [';']
    delete   = 'delete from ' table [' ' alias] [where] [';']
    where    = ' where ' predicate {' and ' predicate}
    predicate= name ' = ' value | name ' IS NULL' | 'ROWID = ' string
    value    = 'NULL' | 'XMLType(:1)' | 'LM_EMPTY_STRING' | 'Unsupported Type' | number
               | part {'||' part}
    part     = string | NAME '(' arguments ')'

A name in a predicate may have the alias in front.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cdc_core.decode.literals import (
    Bare,
    Call,
    Concat,
    Literal,
    LiteralRefusedError,
    Null,
    Quoted,
    Unsupported,
    Value,
    value_of,
)
from cdc_core.decode.plan import ColumnPlan, TablePlan, is_dictionary_name
from cdc_core.decode.unnamed import named_literal
from cdc_core.errors import RESNAPSHOT_HINT, DecodeError, SchemaMismatchError
from cdc_core.model.operations import Operation

INSERT, DELETE, UPDATE = Operation.INSERT, Operation.DELETE, Operation.UPDATE
"""LogMiner's own operation codes."""

_HINT_STATEMENT = (
    "Look at this redo row in V$LOGMNR_CONTENTS; if LogMiner printed it so, report the form of the statement. "
    + RESNAPSHOT_HINT
)
_HINT_DICTIONARY = f"LogMiner's dictionary does not fit the redo. {RESNAPSHOT_HINT}"


@dataclass(frozen=True, slots=True)
class PlainChange:
    """One change. ``before`` and ``after`` hold only carried columns; None for the side that the
    operation lacks."""

    op: int
    before: dict[str, Value] | None
    after: dict[str, Value] | None
    absent: tuple[str, ...]


def decode_statement(sql: str | None, plan: TablePlan, *, row: int) -> PlainChange:
    """Decode one statement.

    Args:
        sql: SQL_REDO, continuation rows already joined.
        plan: The table's plan.
        row: Index of the row in its batch, for errors.

    Raises:
        DecodeError: The statement or a value is not understood, or a value does not fit its column.
        SchemaMismatchError: The statement names a column that the table does not have.
    """
    if not sql:
        raise DecodeError(
            "a redo row has no SQL_REDO",
            hint="Leave rows without SQL_REDO out before decoding; LogMiner has them for internal changes.",
            row=row,
            table=plan.name_sql,
        )
    return Statement(sql, plan, row).read()


STRING = re.compile(r"'((?:[^']++|'')*+)'")
_BARE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"(?:/\* JSON \*/ )?([A-Za-z_][A-Za-z0-9_$#]*)\(")
_ALIAS = re.compile(r" (?!set |where )([A-Za-z][A-Za-z0-9_$#]*)")
_NAME = re.compile(r'"([^"]+)"')
_TABLE = re.compile(r'"[^"]+"\."[^"]+"')
_COMMA = re.compile(r", ?")
_JOIN = re.compile(r" ?\|\| ?")
XML_BIND = "XMLType(:1)"
_WORDS = ("NULL", "LM_EMPTY_STRING", "Unsupported Type")
_UNNAMED = re.compile(r"COL (\d{1,4})", re.ASCII)
_UNQUOTED = re.compile(r"[^'()]+")


class Statement:
    """A cursor over one statement, read from its beginning to its end by the grammar."""

    def __init__(self, sql: str, plan: TablePlan, row: int) -> None:
        self.sql, self.plan, self.row = sql, plan, row
        self.at = 0
        self.alias = ""
        self.unnamed: set[str] = set()
        self.columns = {column.name: column for column in plan.columns}

    def read(self) -> PlainChange:
        if self.take("insert into "):
            change = self.insert()
        elif self.take("update "):
            change = self.update()
        elif self.take("delete from "):
            change = self.delete()
        else:
            raise self.refused("a redo row is neither INSERT, UPDATE nor DELETE")
        self.take(";")
        if self.at != len(self.sql):
            if self.sql.startswith(" or ", self.at):
                raise self.refused("a redo row's WHERE has alternatives (or)")
            raise self.refused("a redo row continues after the end of its statement")
        return change

    def insert(self) -> PlainChange:
        self.table()
        self.take(" ")
        self.need("(")
        names = [self.name()]
        while self.take(","):
            names.append(self.name())
        self.need(") values (")
        after: dict[str, Value] = {}
        for number, name in enumerate(names):
            if number:
                self.need(",")
            self.put(after, name)
        self.need(")")
        return PlainChange(INSERT, None, after, self.absent(after))

    def update(self) -> PlainChange:
        self.table()
        self.read_alias()
        self.need(" set ")
        values: dict[str, Value] = {}
        self.assignment(values)
        while self.take(", "):
            self.assignment(values)
        before = self.where()
        after = before | values
        return PlainChange(UPDATE, before, after, self.absent(after))

    def delete(self) -> PlainChange:
        self.table()
        self.read_alias()
        before = self.where()
        return PlainChange(DELETE, before, None, self.absent(before))

    def absent(self, carried: dict[str, Value]) -> tuple[str, ...]:
        return tuple(name for name in self.columns if name not in carried)

    def table(self) -> None:
        found = self.match(_TABLE)
        if not found:
            raise self.refused("a redo row does not name its table")
        if found[0] not in (self.plan.name_sql, self.plan.object_sql):
            if '"OBJ# ' in found[0] or '"BIN$' in found[0]:
                raise self.refused(
                    "a redo row's table is not in LogMiner's dictionary", _HINT_DICTIONARY
                )
            raise self.refused("a redo row is of another table")

    def read_alias(self) -> None:
        found = self.match(_ALIAS)
        self.alias = f"{found[1]}." if found else ""

    def quoted_name(self) -> str:
        found = self.match(_NAME)
        if not found:
            raise self.refused("a redo row lacks a column's name where one is required")
        return found[1]

    def name(self) -> str:
        name = self.known_name(self.quoted_name())
        if name not in self.columns and name not in self.plan.skipped:
            if is_dictionary_name(name):
                raise self.refused(
                    "a redo row's column is not in LogMiner's dictionary", _HINT_DICTIONARY
                )
            raise SchemaMismatchError(
                "a redo row names a column that the table's definition does not have",
                hint=f"The table's definition may have changed. {RESNAPSHOT_HINT}",
                row=self.row,
                table=self.plan.name_sql,
                column=name,
            )
        return name

    def known_name(self, name: str) -> str:
        """The name of the table's n-th stored column for ``COL n``; any other name as it is."""
        found = _UNNAMED.fullmatch(name)
        if not found or not 1 <= int(found[1]) <= len(self.plan.stored):
            return name
        known = self.plan.stored[int(found[1]) - 1]
        self.unnamed.add(known)
        return known

    def assignment(self, values: dict[str, Value]) -> None:
        self.take(self.alias)
        name = self.name()
        self.need(" = ")
        self.put(values, name)

    def where(self) -> dict[str, Value]:
        values: dict[str, Value] = {}
        if not self.take(" where "):
            return values
        while True:
            self.take(self.alias)
            if self.take("ROWID = "):
                if not self.match(STRING):
                    raise self.refused("a redo row's ROWID is not a string")
                return values
            name = self.name()
            if self.take(" IS NULL"):
                self.put(values, name, Null())
            else:
                self.need(" = ")
                self.put(values, name)
            if not self.take(" and "):
                return values

    def put(self, values: dict[str, Value], name: str, literal: Literal | None = None) -> None:
        """Read a value (unless given) and file it under the name; values of names to pass over are
        only passed."""
        column = self.columns.get(name)
        is_document = column is None or column.is_xml
        if literal is None and is_document and self.take_bind(XML_BIND):
            return  # the document follows in rows of its own
        if column is None:
            if literal is None:
                self.skip_value()
            return
        if name in values:
            raise self.refused("a redo row names a column twice", column=name)
        values[name] = self.value(self.named(literal or self.literal(name), column), column)

    def named(self, literal: Literal, column: ColumnPlan) -> Literal:
        """The literal as the right dictionary would have made LogMiner print it."""
        if (
            column.name not in self.unnamed
            or not isinstance(literal, Call)
            or literal.name != "HEXTORAW"
        ):
            return literal
        try:
            return named_literal(bytes.fromhex("".join(literal.arguments)), column)
        except ValueError:
            raise self.refused(
                "HEXTORAW contains something other than hex digits", column=column.name
            ) from None
        except LiteralRefusedError as error:
            raise self.refused(error.what, error.hint, column=column.name) from None

    def value(self, literal: Literal, column: ColumnPlan) -> Value:
        try:
            return value_of(literal, column)
        except LiteralRefusedError as error:
            raise self.refused(error.what, error.hint, column=column.name) from None

    def literal(self, name: str) -> Literal:
        if self.take("NULL"):
            return Null()
        if self.columns[name].is_extended and self.take("LM_EMPTY_STRING"):
            return (
                Null()
            )  # of an extended string, which knows no empty text; what is written follows
        if self.take("Unsupported Type"):
            return Unsupported()
        if found := self.match(_BARE):
            return Bare(found[0])
        parts = tuple(self.parts(name))
        return parts[0] if len(parts) == 1 else Concat(parts)

    def parts(self, name: str) -> Iterator[Quoted | Call]:
        yield self.part(name)
        while self.match(_JOIN):
            yield self.part(name)

    def part(self, name: str) -> Quoted | Call:
        if found := self.match(STRING):
            return Quoted(found[1].replace("''", "'"))
        found = self.match(_WORD)
        if not found:
            raise self.refused("a redo row has a literal that is not understood", column=name)
        arguments: list[str] = []
        while argument := self.match(STRING):
            arguments.append(argument[1].replace("''", "'"))
            if not self.match(_COMMA):
                break
        if not self.take(")"):
            raise self.refused("a redo row has a function call that is not understood", column=name)
        return Call(found[1], tuple(arguments))

    def skip_value(self) -> None:
        """Pass over any value of the grammar, whatever its function's arguments are."""
        if self.take_bind(XML_BIND) or any(map(self.take, _WORDS)) or self.match(_BARE):
            return
        self.skip_part()
        while self.match(_JOIN):
            self.skip_part()

    def skip_part(self) -> None:
        if self.match(STRING):
            return
        if not self.match(_WORD):
            raise self.refused("a redo row has a literal that is not understood")
        depth = 1
        while depth:
            if self.match(STRING) or self.match(_UNQUOTED):
                continue
            if self.take("("):
                depth += 1
            elif self.take(")"):
                depth -= 1
            else:
                raise self.refused("a redo row ends within a value")

    def take(self, text: str) -> bool:
        """Step over the text if it stands here."""
        if self.sql.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def take_bind(self, bind: str) -> bool:
        """Step over a bind if it stands here. LogMiner puts two blanks between one and WHERE."""
        found = self.take(bind)
        if found and self.sql.startswith("  where ", self.at):
            self.at += 1
        return found

    def need(self, text: str) -> None:
        if not self.take(text):
            raise self.refused(f"a redo row lacks {text.strip()!r} where it is required")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.sql, self.at)
        if found:
            self.at = found.end()
        return found

    def refused(
        self, what: str, hint: str = _HINT_STATEMENT, *, column: str | None = None
    ) -> DecodeError:
        facts: dict[str, object] = {"row": self.row, "table": self.plan.name_sql}
        if column is not None:
            facts["column"] = column
        return DecodeError(what, hint=hint, **facts)
