"""What does a compiled statement consist of?

SQLite text refers to tables as ``\\x01n\\x02``: at each execution the marker of a stored table
becomes the table itself when all its current rows are visible, or the union of current and past
rows that a snapshot sees. Parameters 1 and 2 are the snapshot's SCN and the mark of the session's
own transaction; the slots follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from oracle_embedded.api import ColumnMeta, VirtualTable
from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.storage.catalog import TableDef

FIRST_SLOT = 3


@dataclass(frozen=True, slots=True)
class Mask:
    """What a query's result has in place of a redacted value where ``condition``, a SQLite text, is
    true."""

    kind: int
    parameters: str | None
    condition: str


REDACT_NONE, REDACT_FULL, REDACT_PARTIAL, REDACT_NULLIFY = 0, 1, 2, 6
"""Kinds of redaction, as DBMS_REDACT numbers them."""


@dataclass(frozen=True, slots=True)
class TextOrder:
    """Collations of SQLite by which texts are sorted, compared, and equal; None where their code
    points say it."""

    sorting: str | None = None
    comparing: str | None = None
    equality: str | None = None


IN_CODE_POINTS = TextOrder()


@dataclass(slots=True)
class Sql:
    """A compiled expression: SQLite text and type. ``base`` is the table use it comes from, if a
    plain column; ``mask`` is what shows in place of its value in a result; ``order`` says by what a
    text is ordered. What one function or operator made of several operands has its name in
    ``chain``, and their texts in ``operands``."""

    text: str
    type: SqlType
    nullable: bool = True
    base: TableUse | None = None
    is_rowid: bool = False
    column: str | None = None
    constant: bool = False
    mask: Mask | None = None
    order: TextOrder = IN_CODE_POINTS
    chain: str = ""
    operands: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The type's family."""
        return self.type.family


@dataclass(slots=True)
class Slot:
    """One parameter: a bind position of the statement."""

    position: int
    type: SqlType
    unit: int = 0
    """SQLite wants a whole number: so many of these are 1."""


@dataclass(slots=True)
class Flashback:
    """An AS OF clause: its value as SQLite text over the same parameters, and the parameter that
    receives the SCN. The kind is SCN or TIMESTAMP, of an end of VERSIONS BETWEEN also MINVALUE or
    MAXVALUE.
    """

    kind: str
    text: str
    parameter: int


@dataclass(slots=True)
class TableUse:
    """One appearance of a stored table."""

    index: int
    table: TableDef
    flashback: Flashback | None = None
    versions: tuple[Flashback, Flashback] | None = None
    """The lower and the upper SCN between which all versions of rows are asked for."""

    @property
    def marker(self) -> str:
        """Stands for the table in SQLite text."""
        return f"\x01{self.index}\x02"


@dataclass(slots=True)
class VirtualUse:
    """One appearance of a view that is computed: filled into a temporary table before the statement
    runs.

    ``filters`` are (column, operator, SQLite text of the value), ``in`` with each value of a list.
    """

    name: str
    view: VirtualTable
    dictionary: bool
    flashback: Flashback | None = None
    columns: set[str] = field(default_factory=set)
    filters: list[tuple[str, str, str]] = field(default_factory=list)


@dataclass(slots=True)
class OutputColumn:
    """One column of a query's result."""

    name: str
    type: SqlType
    nullable: bool = True
    mask: Mask | None = None
    is_json: bool = False


@dataclass(slots=True)
class Plan:
    """A compiled statement of any kind; ``text`` is its query part."""

    text: str = ""
    columns: list[OutputColumn] = field(default_factory=list)
    shown: Sequence[ColumnMeta] = ()
    """The columns as describe shows them."""
    slots: list[Slot] = field(default_factory=list)
    tables: list[TableUse] = field(default_factory=list)
    virtuals: list[VirtualUse] = field(default_factory=list)
    variants: dict[tuple[bool, ...], tuple[str, int]] = field(default_factory=dict)
    locks: list[TableUse] = field(default_factory=list)
    """Tables whose rows FOR UPDATE locks: their addresses follow the visible columns."""
    places: list[TableUse] = field(default_factory=list)
    """Tables whose rows hold LOBs of the result, of a query that locks nothing: their addresses
    follow the visible columns."""
    locators: dict[int, tuple[int, str]] = field(default_factory=dict)
    """LOB columns of such rows: the position in the result, the number of the lock or place, and
    the column's name."""


def quoted(text: str) -> str:
    """A text as SQLite literal; control characters, which markers use, go through hex."""
    if any(character < " " for character in text):
        return f"CAST(x'{text.encode().hex()}' AS TEXT)"
    return "'" + text.replace("'", "''") + "'"


def blob(value: bytes) -> str:
    """Bytes as SQLite literal."""
    return f"x'{value.hex()}'"
