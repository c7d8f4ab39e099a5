r"""What does a redo row say that writes a part of a LOB?

A block as 23ai prints it, whole in each row, or in two: the locator's row, and rows with the calls
alone, as older releases do::

    DECLARE … BEGIN
     select "COL" into loc_c from "S"."T" where "ID" = '7' … for update;
     buf_c := 'data';
      dbms_lob.write(loc_c, 4, 1, buf_c);
    END;

Other calls are ``dbms_lob.trim(loc_c, length)`` and
``e_len := n; dbms_lob.erase(loc_c, e_len, offset)``. Offsets begin at 1; text counts characters.

An extended string (a VARCHAR2, NVARCHAR2 or RAW that Oracle stores as a LOB) has a frame of three
kinds of rows: the UPDATE to which it will be bound, what is appended to a temporary LOB, and the
end, which makes it whole::

    DECLARE … BEGIN … Stmt := 'update "S"."T" set "COL" = :DATA where "ID" = ''7'';';
     buf_c := 'data'; DBMS_LOB.WriteAppend(TempLob, …);
     … END;

A document of an XMLTYPE has such a frame too, in one of two forms: by its storage it is binary, or
text that the rows are themselves::

    XML DOC BEGIN:  select "COL" from "S"."T" where "ID" = '7'
    XML_REDO := HEXTORAW('3c612f3e'):4

    update "S"."T" a set a."COL" = XMLType(:1)  where a."ID" = '7';
    <a/>

Rows from before a DDL have ``COL n`` for the columns' names there, as statements have.

The first one also counts in a line of its own, as ``XML_REDO := '<a/>'`` and ``amount: 4``. The row
that ends a document has no text.

Source: blocks were measured on 23ai, the older form and the frame of extended strings are
Debezium's. What is appended is read as the literal that it is in PL/SQL, quotes doubled. ``amount``
and the empty end are in rows of a 19.3 LogMiner that users of other readers published; of an
updated binary document Oracle logs the changed portion alone (Oracle GoldenGate 23, "XML"), as an
XMLDIFF.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TypeAlias

from cdc_core.decode.literals import Literal, LiteralRefusedError, Value, value_of
from cdc_core.decode.plain import STRING, XML_BIND, Statement
from cdc_core.decode.plan import Kind, TablePlan
from cdc_core.errors import RESNAPSHOT_HINT, DecodeError
from cdc_core.model.operations import Operation

SELECT = re.compile(r'[^"\']*\bBEGIN\s+select "([^"]+)" into loc_n?[bc] from ')
_BUFFER = re.compile(r"\s*buf_n?[bc] := ")
_WRITE = re.compile(
    r";\s*dbms_lob\.write\(loc_n?[bc], (\d+), (\d+), buf_n?[bc]\);\s*(?:END;\s*)?", re.ASCII
)
_TRIM = re.compile(r"\s*dbms_lob\.trim\(loc_n?[bc], (\d+)\);\s*(?:END;\s*)?", re.ASCII)
_ERASE = re.compile(
    r"\s*(?:e_len := (\d+);\s*)?dbms_lob\.erase\(loc_n?[bc], (?:e_len|(\d+)), (\d+)\);\s*(?:END;\s*)?",
    re.ASCII,
)
STATEMENT = re.compile(r"[^\"']*\bStmt\s*:=\s*(?=')")
_END_OF_STATEMENT = re.compile(r"\s*;\s*")
_EXTENDED_BUFFER = re.compile(r"\s*buf_n?[bcr]\s*:=\s*")
_APPEND = re.compile(r";\s*dbms_lob\.\w*append\([^']*\);\s*", re.IGNORECASE)
XML_BEGIN = re.compile(r'XML DOC BEGIN:\s+select "([^"]+)" from ')
_XML_SIZE = r"(?::|\s+amount: ?)(\d+)"
_XML_REDO = re.compile(
    rf"\s*XML_REDO := (?:NULL|HEXTORAW\('((?:[0-9A-Fa-f]{{2}})*)'?\)(?:{_XML_SIZE})?|'(.*)'{_XML_SIZE})\s*;?\s*",
    re.ASCII | re.DOTALL,
)
_XML_DIFFERENCE = re.compile(
    rb"<[^>]*xdiff\b[^>]*http://xmlns\.oracle\.com/xdb/xdiff\.xsd", re.ASCII
)
_XML_HEAD_BYTES = 1000
_HINT = f"Look at this redo row in V$LOGMNR_CONTENTS, and report the form of the statement. {RESNAPSHOT_HINT}"


@dataclass(frozen=True, slots=True)
class LobPlace:
    """Which LOB is written: its column, the values of its row's key, and the predicates that name
    them, as redo has them. ``is_captured``: False for a column that is left out; ``is_text``: what
    is written are the rows themselves."""

    column: str
    key: tuple[Value, ...]
    predicates: tuple[str, ...]
    is_captured: bool
    is_text: bool = False

    @property
    def where(self) -> str:
        """The condition that finds the row."""
        return " and ".join(self.predicates)


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


@dataclass(frozen=True, slots=True)
class LobAppend:
    """Data that follows what was appended before, of a value that is written as a whole."""

    data: str | bytes


@dataclass(frozen=True, slots=True)
class LobEnd:
    """What was appended is the whole value."""


@dataclass(frozen=True, slots=True)
class LobUnclear:
    """Something of a form that is not understood, or with ``is_ambiguous`` that can be read in two
    ways."""

    is_ambiguous: bool = False


class TwoReadingsError(DecodeError):
    """A row can be read in two ways, with different values."""


LobCall: TypeAlias = LobWrite | LobTrim | LobErase | LobAppend | LobEnd | LobUnclear

BEGINS = frozenset({Operation.EXTENDED_BEGIN, Operation.XML_DOC_BEGIN})
"""Rows behind which a value is written as a whole, whatever was written before."""
FOLLOWS = frozenset(
    {
        Operation.EXTENDED_WRITE,
        Operation.EXTENDED_END,
        Operation.XML_DOC_WRITE,
        Operation.XML_DOC_END,
    }
)
"""Rows of such a value, which name nothing: all of them may be data."""
ENDS = frozenset({Operation.EXTENDED_END, Operation.XML_DOC_END})
"""Those of them that make it whole, with a text or without."""


def read_lob_row(
    sql: str,
    operation: int,
    plan: TablePlan,
    key: tuple[str, ...],
    before: LobPlace | None,
) -> tuple[LobPlace, LobCall | None]:
    """Which LOB the row is about, and what it does to it; None for a locator's row, and
    :class:`LobUnclear` where only the LOB is clear.

    Args:
        sql: SQL_REDO, not empty.
        operation: The row's operation code.
        plan: The table as it was when the row was written.
        key: The columns of the table's key.
        before: What the transaction's row before this one was about: a row without a locator goes
            on with it.

    Raises:
        DecodeError: It is not clear which LOB of which row it is about.
        SchemaMismatchError: It names a column that the table does not have.
    """
    cursor = _LobRow(sql, plan, key)
    if operation == Operation.EXTENDED_BEGIN:
        return cursor.extended_place(), None
    if operation == Operation.XML_DOC_BEGIN:
        return cursor.xml_place(), None
    place = before if operation in FOLLOWS else cursor.place() or before
    if place is None:
        raise cursor.refused("a row writes to a LOB that no earlier row names", _HINT)
    if operation == Operation.SELECT_LOB_LOCATOR or not place.is_captured:
        return place, None
    try:
        return place, cursor.call_of(operation, place)
    except DecodeError as error:
        return place, LobUnclear(isinstance(error, TwoReadingsError))


def is_difference(value: str | bytes) -> bool:
    """Is the document one of XMLDIFF, which says how another document changed?"""
    head = value[:_XML_HEAD_BYTES]
    return _XML_DIFFERENCE.search(head if isinstance(head, bytes) else head.encode()) is not None


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

    def call_of(self, operation: int, place: LobPlace) -> LobCall:
        """What the row does to the LOB that it is about."""
        match operation:
            case Operation.EXTENDED_WRITE:
                return LobAppend(self.data(place.column, _EXTENDED_BUFFER, _APPEND)[0])
            case Operation.XML_DOC_WRITE:
                return LobAppend(self.sql if place.is_text else self.document(place.column))
            case Operation.EXTENDED_END | Operation.XML_DOC_END:
                return LobEnd()
            case Operation.LOB_WRITE:
                return self.write(place.column)
            case Operation.LOB_TRIM:
                return LobTrim(int(self.call(_TRIM)[1]))
            case _:
                found = self.call(_ERASE)
                return LobErase(int(found[3]), int(found[1] or found[2] or 0))

    def place(self) -> LobPlace | None:
        found = self.match(SELECT)
        if found is None:
            return None
        self.table()
        place = self.located(found[1])
        self.need(" for update;")
        return place

    def extended_place(self) -> LobPlace:
        """The place of an extended string, from the UPDATE to which it is bound."""
        if not self.match(STATEMENT) or not (found := self.match(STRING)):
            raise self.refused("a row that writes a long text has no statement", _HINT)
        if not self.match(_END_OF_STATEMENT) or self.at != len(self.sql):
            raise self.refused(
                "a row that writes a long text has a form that is not understood", _HINT
            )
        return _LobRow(found[1].replace("''", "'"), self.plan, self.key).bound_place(":DATA")

    def xml_place(self) -> LobPlace:
        """The place of a document, from what begins it."""
        if not (found := self.match(XML_BEGIN)):
            return replace(self.bound_place(XML_BIND), is_text=True)
        self.table()
        place = self.located(found[1])
        if self.sql[self.at :].strip(" \n;"):
            raise self.refused(
                "a row that begins a document has a form that is not understood", _HINT
            )
        return place

    def document(self, column: str) -> str | bytes:
        """A piece of a document. What is quoted has as many characters, or bytes, as the row says:
        doubled quotes are one or two by that, unless both fit."""
        found = _XML_REDO.fullmatch(self.sql)
        if not found:
            raise self.refused(
                "a row that writes a document has a form that is not understood", _HINT
            )
        digits, size, text, length = found.groups()
        if text is not None:
            readings = {text, text.replace("''", "'")}
            fitting = [one for one in readings if int(length) in (len(one), len(one.encode()))]
            if len(fitting) > 1:
                raise TwoReadingsError("a piece of a document can be read in two ways", hint=_HINT)
            if fitting:
                return fitting[0]
        if text is None and (size is None or int(size) in (len(digits) // 2, len(digits))):
            return bytes.fromhex(digits or "")
        raise self.refused(
            "a row that writes a document has other data than its length says", _HINT, column=column
        )

    def bound_place(self, bind: str) -> LobPlace:
        """The place that an UPDATE with a bind names."""
        self.need("update ")
        self.table()
        self.read_alias()
        self.need(" set ")
        self.take(self.alias)
        column = self.name()
        self.need(" = ")
        if not self.take_bind(bind):
            raise self.refused("a row that writes a long text or a document binds none", _HINT)
        place = self.located(column)
        self.take(";")
        if self.at != len(self.sql):
            raise self.refused(
                "a row that writes a long text has a form that is not understood", _HINT
            )
        return place

    def located(self, column: str) -> LobPlace:
        """The place of a column's value, in the row that the predicates from here on name."""
        column = self.known_name(column)
        values = self.where()
        if any(values.get(name) is None for name in self.key):
            raise self.refused("a row that writes a LOB does not name its row by the key", _HINT)
        return LobPlace(
            column=column,
            key=tuple(values[name] for name in self.key),
            predicates=tuple(self.predicates[name] for name in self.key),
            is_captured=column in self.columns,
        )

    def put(self, values: dict[str, Value], name: str, literal: Literal | None = None) -> None:
        start = self.at
        super().put(values, name, literal)
        if name in self.key:
            shown = f"COL {self.plan.stored.index(name) + 1}" if name in self.unnamed else name
            self.predicates[name] = f'"{shown}" = {self.sql[start : self.at]}'

    def write(self, column: str) -> LobWrite:
        data, found = self.data(column, _BUFFER, _WRITE)
        if len(data) != int(found[1]):
            raise self.refused(
                "a row that writes a LOB has other data than its length says", _HINT, column=column
            )
        return LobWrite(int(found[2]), data)

    def data(
        self, column: str, buffer: re.Pattern[str], call: re.Pattern[str]
    ) -> tuple[str | bytes, re.Match[str]]:
        """The value of the literal between the name of a buffer and a call, which ends the row."""
        if not self.match(buffer):
            raise self.refused("a row that writes a LOB has no data", _HINT, column=column)
        literal = self.literal(column)
        found = self.call(call)
        plan = self.columns[column]
        try:
            value = value_of(literal, plan)
        except LiteralRefusedError as error:
            raise self.refused(error.what, error.hint, column=column) from None
        if isinstance(value, str | bytes):
            return value, found
        return b"" if plan.kind in (Kind.BLOB, Kind.RAW) else "", found

    def call(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = self.match(pattern)
        if found is None or self.at != len(self.sql):
            raise self.refused("a row that writes a LOB has a form that is not understood", _HINT)
        return found
