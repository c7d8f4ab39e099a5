"""What does parsed PL/SQL look like: blocks, their declarations, and stored units?"""

from __future__ import annotations

from dataclasses import dataclass, field

from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.sql.ast import Bind, Call, Column, Element, Expr, Member, Name, Query

Target = Bind | Column | Call | Element | Member
"""What can be assigned to: a bind, a variable, an element of a collection, a field of a record."""


@dataclass(frozen=True, slots=True)
class Node:
    """A statement; ``pos`` is its offset in the text."""

    pos: int = field(default=0, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Assign(Node):
    """``target := value``."""

    target: Target
    value: Expr


@dataclass(frozen=True, slots=True)
class If(Node):
    """IF with its branches, or CASE as a statement; the last condition may be None (ELSE)."""

    branches: tuple[tuple[Expr | None, tuple[Node, ...]], ...]
    is_case: bool = False


@dataclass(frozen=True, slots=True)
class ForRange(Node):
    """``FOR name IN [REVERSE] low..high LOOP``."""

    name: str
    low: Expr
    high: Expr
    reverse: bool
    body: tuple[Node, ...]
    label: str = ""


@dataclass(frozen=True, slots=True)
class ForRows(Node):
    """``FOR name IN (query) LOOP``, or over a cursor with arguments."""

    name: str
    query: Query | None
    cursor: Name
    args: tuple[Expr, ...]
    body: tuple[Node, ...]
    label: str = ""


@dataclass(frozen=True, slots=True)
class ForAll(Node):
    """``FORALL name IN low..high`` over one data change, or ``IN INDICES OF low``."""

    name: str
    low: Expr
    high: Expr
    statement: Sql
    is_of_indices: bool = False


@dataclass(frozen=True, slots=True)
class Loop(Node):
    """LOOP or WHILE."""

    condition: Expr | None
    body: tuple[Node, ...]
    label: str = ""


@dataclass(frozen=True, slots=True)
class Exit(Node):
    """EXIT or CONTINUE, perhaps of a loop with a label, perhaps WHEN a condition holds."""

    again: bool
    condition: Expr | None
    label: str = ""


@dataclass(frozen=True, slots=True)
class Sql(Node):
    """A SQL statement; ``into`` receives the columns of the one row of a query, or of all its rows
    where it is ``bulk``."""

    text: str
    node: object
    kind: str
    into: tuple[Target, ...] = ()
    bulk: bool = False


@dataclass(frozen=True, slots=True)
class OpenCursor(Node):
    """``OPEN cursor``, for a declared one with arguments."""

    cursor: Target
    args: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenFor(Node):
    """``OPEN cursor FOR query``, or a query's text with USING."""

    cursor: Target
    query: Query | Expr
    using: tuple[Using, ...]


@dataclass(frozen=True, slots=True)
class Fetch(Node):
    """``FETCH cursor INTO targets``, or BULK COLLECT of them, up to a limit."""

    cursor: Target
    into: tuple[Target, ...]
    bulk: bool
    limit: Expr | None


@dataclass(frozen=True, slots=True)
class Close(Node):
    """``CLOSE cursor``."""

    cursor: Target


@dataclass(frozen=True, slots=True)
class Using:
    """One argument of USING; an OUT one is a target."""

    value: Expr
    is_in: bool = True
    is_out: bool = False


@dataclass(frozen=True, slots=True)
class ExecuteImmediate(Node):
    """EXECUTE IMMEDIATE with INTO, USING and RETURNING INTO."""

    text: Expr
    into: tuple[Target, ...]
    using: tuple[Using, ...]
    bulk: bool = False


@dataclass(frozen=True, slots=True)
class CallProcedure(Node):
    """A procedure call, or a method of a collection."""

    call: Call | Column | Member | Element


@dataclass(frozen=True, slots=True)
class Raise(Node):
    """RAISE, without a name in a handler."""

    name: Name = ()


@dataclass(frozen=True, slots=True)
class Return(Node):
    """RETURN, in a function with a value."""

    value: Expr | None = None


@dataclass(frozen=True, slots=True)
class PipeRow(Node):
    """PIPE ROW: one more row of a pipelined function."""

    value: Expr


# --- declarations ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type by its name, the type of something (``%TYPE``) or of a row (``%ROWTYPE``)."""

    name: Name
    attribute: str = ""
    pos: int = field(default=0, compare=False)


TypeSpec = SqlType | TypeName


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, a constant, or a field of a record."""

    name: str
    type: TypeSpec
    value: Expr | None
    constant: bool = False


@dataclass(frozen=True, slots=True)
class RecordSpec:
    """``TYPE name IS RECORD (…)``."""

    name: str
    fields: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class TableSpec:
    """``TYPE name IS TABLE OF …`` or ``VARRAY(limit) OF …``; ``index`` is NUMBER or TEXT for
    associative arrays."""

    name: str
    element: TypeSpec
    index: str = ""
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class SubtypeSpec:
    """``SUBTYPE name IS type``, or ``TYPE name IS REF CURSOR``."""

    name: str
    type: TypeSpec


@dataclass(frozen=True, slots=True)
class CursorSpec:
    """``CURSOR name (parameters) IS query``."""

    name: str
    parameters: tuple[Parameter, ...]
    query: Query | None


@dataclass(frozen=True, slots=True)
class ExceptionSpec:
    """``name EXCEPTION``."""

    name: str


@dataclass(frozen=True, slots=True)
class ExceptionInit:
    """``PRAGMA EXCEPTION_INIT(name, code)``."""

    name: str
    code: int


@dataclass(frozen=True, slots=True)
class Autonomous:
    """``PRAGMA AUTONOMOUS_TRANSACTION``."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A formal parameter."""

    name: str
    type: TypeSpec
    is_in: bool = True
    is_out: bool = False
    default: Expr | None = None


@dataclass(frozen=True, slots=True)
class Routine:
    """A procedure or function; without ``block`` it is announced only."""

    name: str
    parameters: tuple[Parameter, ...]
    returns: TypeSpec | None
    block: Block | None
    runs_as_caller: bool = False
    is_pipelined: bool = False
    pos: int = field(default=0, compare=False)


Declaration = (
    Variable
    | RecordSpec
    | TableSpec
    | SubtypeSpec
    | CursorSpec
    | ExceptionSpec
    | ExceptionInit
    | Autonomous
    | Routine
)


@dataclass(frozen=True, slots=True)
class Block(Node):
    """DECLARE … BEGIN … EXCEPTION … END; a handler has names, OTHERS among them."""

    declarations: tuple[Declaration, ...]
    body: tuple[Node, ...]
    handlers: tuple[tuple[tuple[str, ...], tuple[Node, ...]], ...] = ()
    bind_names: tuple[str, ...] = ()
    label: str = ""


# --- stored units ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Package:
    """A package or its body: declarations, and what a body does first."""

    declarations: tuple[Declaration, ...]
    body: Block | None = None
    runs_as_caller: bool = False


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger on a table; ``events`` are INSERT, UPDATE and DELETE, ``columns`` those of UPDATE
    OF."""

    timing: str
    events: tuple[str, ...]
    columns: tuple[str, ...]
    table: Name
    for_each_row: bool
    old: str
    new: str
    condition: Expr | None
    block: Block | Node
    enabled: bool = True


Unit = Routine | Package | Trigger
