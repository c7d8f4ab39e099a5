"""What does PL/SQL hold while it runs?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from oracle_embedded.api import OracleError
from oracle_embedded.engine.plsql.composites import PlType, PlValue, RecordType, TableType
from oracle_embedded.engine.run.contracts import OpenCursor, SessionState
from oracle_embedded.engine.sql import plsql_nodes as nodes
from oracle_embedded.engine.sql.ast import Call, Expr
from oracle_embedded.engine.sql.blocks import compile_error

CALLS_MAX = 120
"""Calls inside of each other; Oracle ends such recursion with ORA-00036 or a lack of memory."""


class KeptLob(bytes):
    """The value of a row's LOB, with the handle through which a block writes it."""

    handle: bytes

    def __new__(cls, content: bytes, handle: bytes) -> KeptLob:
        made = super().__new__(cls, content)
        made.handle = handle
        return made


@dataclass(slots=True)
class Cell:
    """A variable: its type, its value in Oracle's encodings, and whether it may change."""

    type: PlType
    value: PlValue = None
    constant: bool = False


@dataclass(slots=True)
class DeclaredException:
    """An exception that a program declares; with a code it is that error, too."""

    name: str
    code: int = 0


class RaisedError(OracleError):
    """A declared exception that has no code of its own."""

    def __init__(self, declared: DeclaredException) -> None:
        super().__init__(6510, "PL/SQL: unhandled user-defined exception")
        self.declared = declared


@dataclass(slots=True)
class Closure:
    """A routine with the names that it sees, and where its text is.

    ``owner`` is whose rights it has; None: those of its caller.
    """

    routine: nodes.Routine
    names: dict[str, Named]
    text: str
    owner: str | None
    schema: str
    place: str


@dataclass(slots=True)
class Overloads:
    """Routines of one name."""

    routines: list[Closure] = field(default_factory=list)


@dataclass(slots=True)
class CursorPlan:
    """A declared cursor, with the names that its query sees."""

    spec: nodes.CursorSpec
    names: dict[str, Named]


Named = Cell | DeclaredException | Overloads | CursorPlan | RecordType | TableType | PlType


@dataclass(frozen=True, slots=True)
class Services:
    """What evaluating asks of the parts above it: stored programs by name, calls of routines, open
    cursors."""

    find: Callable[[Frame, tuple[str, ...]], Named | None]
    call: Callable[[Frame, Call, Overloads], tuple[PlValue, PlType]]
    open_cursor: Callable[[Frame, Expr], OpenCursor | None]
    execute: Callable[[Frame, Closure], tuple[PlValue, PlType] | None]
    """Runs a routine whose arguments are in its frame; gives what a function returns."""
    special: Mapping[tuple[str, ...], Callable[[Frame, Call], tuple[PlValue, PlType]]]
    """Packaged functions that assign to their arguments."""


@dataclass(slots=True)
class Frame:
    """One block or routine that runs: the names that it sees, and what its statements did last.

    ``in_query`` says that a query has called, so that no data may change.
    """

    session: SessionState
    text: str
    binds: list[Cell]
    services: Services
    names: dict[str, Named] = field(default_factory=dict)
    read_binds: set[int] = field(default_factory=set)
    assigned_binds: set[int] = field(default_factory=set)
    row_count: int | None = None
    handling: OracleError | None = None
    """The error whose handler is at work."""
    depth: int = 0
    in_query: bool = False
    updated: frozenset[str] = frozenset()
    """In a trigger: the columns that the change assigns."""
    piped: tuple[PlType, list[PlValue]] | None = None
    """In a pipelined function: the type of its rows, and those that it has given so far."""

    def error(self, pos: int, code: int, text: str) -> OracleError:
        """ORA-06550 at a place of the text."""
        return compile_error(self.text, pos, code, text)

    def undeclared(self, pos: int, name: tuple[str, ...]) -> OracleError:
        """PLS-00201."""
        return self.error(pos, 201, f"identifier '{'.'.join(name)}' must be declared")

    def inner(self, text: str, names: dict[str, Named]) -> Frame:
        """The frame of a routine that this one calls."""
        if self.depth >= CALLS_MAX:
            raise OracleError(36, f"maximum number of recursive SQL levels ({CALLS_MAX}) exceeded")
        return Frame(
            self.session, text, [], self.services, names, depth=self.depth + 1, in_query=self.in_query
        )  # fmt: skip
