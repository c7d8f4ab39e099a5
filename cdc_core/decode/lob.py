r"""What does a redo row say that writes a part of a LOB?

A block as 23ai prints it, whole in each row, or in two: the locator's row, and rows with the calls alone, as older releases do::

    DECLARE … BEGIN
     select "COL" into loc_c from "S"."T" where "ID" = '7' … for update;
     buf_c := 'data';
      dbms_lob.write(loc_c, 4, 1, buf_c);
    END;

Other calls are ``dbms_lob.trim(loc_c, length)`` and ``e_len := n; dbms_lob.erase(loc_c, e_len, offset)``. Offsets begin at 1; text
counts characters.

Source: blocks were measured on 23ai, the older form is Debezium's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from cdc_core.decode.literals import Literal, LiteralRefusedError, Value, value_of
from cdc_core.decode.plain import Statement
from cdc_core.decode.plan import Kind, TablePlan
from cdc_core.model.operations import Operation

_SELECT = re.compile(r'[^"\']*\bBEGIN\s+select "([^"]+)" into loc_n?[bc] from ')
_BUFFER = re.compile(r"\s*buf_n?[bc] := ")
_WRITE = re.compile(
    r";\s*dbms_lob\.write\(loc_n?[bc], (\d+), (\d+), buf_n?[bc]\);\s*(?:END;\s*)?", re.ASCII
)
_TRIM = re.compile(r"\s*dbms_lob\.trim\(loc_n?[bc], (\d+)\);\s*(?:END;\s*)?", re.ASCII)
_ERASE = re.compile(
    r"\s*(?:e_len := (\d+);\s*)?dbms_lob\.erase\(loc_n?[bc], (?:e_len|(\d+)), (\d+)\);\s*(?:END;\s*)?",
    re.ASCII,
)
_HINT = "Look at this redo row in V$LOGMNR_CONTENTS; take a new snapshot of the table, and report the form of the statement."


@dataclass(frozen=True, slots=True)
class LobPlace:
    """Which LOB is written: its column, the values of its row's key, and the predicates that name them, as redo has them.
    ``is_captured``: False for a column that is left out."""

    column: str
    key: tuple[Value, ...]
    where: str
    is_captured: bool


@dataclass(frozen=True, slots=True)
class LobWrite:
    """Data from an offset on."""

    offset: int
    data: str | bytes


@dataclass(frozen=True, slots=True)
class LobTrim:
    """The LOB ends at this length."""

    length: int


@dataclass(frozen=True, slots=True)
class LobErase:
    """So much, from an offset on, becomes blanks or zeros."""

    offset: int
    amount: int


LobCall: TypeAlias = LobWrite | LobTrim | LobErase


def read_lob_row(
    sql: str,
    operation: int,
    plan: TablePlan,
    key: tuple[str, ...],
    before: LobPlace | None,
) -> tuple[LobPlace, LobCall | None]:
    """Which LOB the row is about, and what it does to it; None for a locator's row.

    Args:
        sql: SQL_REDO, not empty.
        operation: The row's operation code.
        plan: The table as it was when the row was written.
        key: The columns of the table's key.
        before: What the transaction's row before this one was about: a row without a locator goes on with it.

    Raises:
        DecodeError: The row has another form, or names no row by its key.
        SchemaMismatchError: It names a column that the table does not have.
    """
    cursor = _LobRow(sql, plan, key)
    place = cursor.place() or before
    if place is None:
        raise cursor.refused("a row writes into a LOB that no row before it names", _HINT)
    if operation == Operation.SELECT_LOB_LOCATOR or not place.is_captured:
        return place, None
    call: LobCall
    match operation:
        case Operation.LOB_WRITE:
            call = cursor.write(place.column)
        case Operation.LOB_TRIM:
            call = LobTrim(int(cursor.call(_TRIM)[1]))
        case _:
            found = cursor.call(_ERASE)
            call = LobErase(int(found[3]), int(found[1] or found[2] or 0))
    return place, call


def lob_literal(value: str | bytes) -> str:
    """The literal that redo has for a LOB that lies in its row."""
    if isinstance(value, bytes):
        return f"HEXTORAW('{value.hex()}')" if value else "EMPTY_BLOB()"
    doubled = value.replace("'", "''")
    return f"'{doubled}'" if value else "EMPTY_CLOB()"


class _LobRow(Statement):
    """A cursor over one such row, which notes the predicates of the key."""

    def __init__(self, sql: str, plan: TablePlan, key: tuple[str, ...]) -> None:
        super().__init__(sql, plan, row=0)
        self.key = key
        self.predicates: dict[str, str] = {}

    def place(self) -> LobPlace | None:
        found = self.match(_SELECT)
        if found is None:
            return None
        self.table()
        values = self.where()
        self.need(" for update;")
        if self.unnamed or any(values.get(name) is None for name in self.key):
            raise self.refused("a row that writes a LOB does not name its row by the key", _HINT)
        return LobPlace(
            column=found[1],
            key=tuple(values[name] for name in self.key),
            where=" and ".join(self.predicates[name] for name in self.key),
            is_captured=found[1] in self.columns,
        )

    def put(self, values: dict[str, Value], name: str, literal: Literal | None = None) -> None:
        start = self.at
        super().put(values, name, literal)
        if name in self.key:
            self.predicates[name] = f'"{name}" = {self.sql[start : self.at]}'

    def write(self, column: str) -> LobWrite:
        if not self.match(_BUFFER):
            raise self.refused("a row that writes a LOB has no data", _HINT, column=column)
        literal = self.literal(column)
        found = self.call(_WRITE)
        plan = self.columns[column]
        try:
            value = value_of(literal, plan)
        except LiteralRefusedError as error:
            raise self.refused(error.what, error.hint, column=column) from None
        data = value if isinstance(value, str | bytes) else b"" if plan.kind is Kind.BLOB else ""
        if len(data) != int(found[1]):
            raise self.refused(
                "a row that writes a LOB has other data than it says", _HINT, column=column
            )
        return LobWrite(int(found[2]), data)

    def call(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = self.match(pattern)
        if found is None or self.at != len(self.sql):
            raise self.refused("a row that writes a LOB has a form that is not understood", _HINT)
        return found
