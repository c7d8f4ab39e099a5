"""What does a parsed PL/SQL block look like?"""

from __future__ import annotations

from dataclasses import dataclass, field

from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.sql.ast import Bind, Expr, Name, Query


@dataclass(frozen=True, slots=True)
class Node:
    """A statement; ``pos`` is its offset in the block."""

    pos: int = field(default=0, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Assign(Node):
    """``target := value``; a target is a variable's name or a bind."""

    target: str | Bind
    value: Expr


@dataclass(frozen=True, slots=True)
class If(Node):
    """IF with its branches; the last condition may be None (ELSE)."""

    branches: tuple[tuple[Expr | None, tuple[Node, ...]], ...]


@dataclass(frozen=True, slots=True)
class ForRange(Node):
    """``FOR name IN [REVERSE] low..high LOOP``."""

    name: str
    low: Expr
    high: Expr
    reverse: bool
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Loop(Node):
    """LOOP or WHILE."""

    condition: Expr | None
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Exit(Node):
    """EXIT or CONTINUE, perhaps WHEN a condition holds."""

    again: bool
    condition: Expr | None


@dataclass(frozen=True, slots=True)
class Sql(Node):
    """A SQL statement; ``into`` receives the columns of the one row of a query."""

    text: str
    node: object
    kind: str
    into: tuple[str | Bind, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenFor(Node):
    """``OPEN cursor FOR query``, or a query's text with USING."""

    cursor: str | Bind
    query: Query | Expr
    using: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class ExecuteImmediate(Node):
    """EXECUTE IMMEDIATE with INTO and USING."""

    text: Expr
    into: tuple[str | Bind, ...]
    using: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class CallProcedure(Node):
    """A procedure call, positional arguments first."""

    name: Name
    args: tuple[Expr, ...]
    named: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class Raise(Node):
    """RAISE without a name, in a handler."""


@dataclass(frozen=True, slots=True)
class Return(Node):
    """RETURN."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A declaration."""

    name: str
    type: SqlType
    value: Expr | None
    constant: bool


@dataclass(frozen=True, slots=True)
class Block(Node):
    """DECLARE … BEGIN … EXCEPTION … END; a handler has names, OTHERS among them."""

    variables: tuple[Variable, ...]
    body: tuple[Node, ...]
    handlers: tuple[tuple[tuple[str, ...], tuple[Node, ...]], ...] = ()
    bind_names: tuple[str, ...] = ()
