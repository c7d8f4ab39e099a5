"""What do the parts of the compiler share while they compile one statement?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from oracle_embedded.api import VirtualTable
from oracle_embedded.charsets import CharacterSets
from oracle_embedded.engine.compile.plan import (
    FIRST_SLOT,
    IN_CODE_POINTS,
    Flashback,
    Mask,
    OutputColumn,
    Plan,
    Slot,
    Sql,
    TextOrder,
)
from oracle_embedded.engine.compile.scopes import Scope
from oracle_embedded.engine.datatypes.types import (
    SqlType,
)
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.storage.catalog import Definition, TableDef
from oracle_embedded.engine.storage.policies import Redaction


@dataclass(slots=True)
class Environment:
    """What compiling may ask of the session and the database."""

    schema: str
    user: str
    find: Callable[[str, str], Definition | None]
    definition: Callable[[int], Definition | None]
    virtual: Callable[[str, str | None], tuple[VirtualTable, bool] | None]
    may_select: Callable[[Definition], bool]
    may_flashback: Callable[[Definition], bool]
    constants: Mapping[tuple[str, str], int]
    may_change: Callable[[TableDef, str], bool]
    parse_view: Callable[[str], ast.Query]
    filling: int
    shows_archived: bool
    routine: Callable[[ast.Name], StoredFunction | None]
    user_type: Callable[[ast.Name], SqlType | None]
    character_sets: CharacterSets
    is_23ai: bool
    """The release knows BOOLEAN, JSON and VECTOR in SQL."""
    orders: Mapping[int, TextOrder]
    """By the form of a character set, by what its texts are ordered where it is not their code
    points."""
    predicates: Callable[[TableDef, str, bool], Sequence[Predicate]]
    redaction: Callable[[TableDef], Redaction | None]


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition that row-level security adds to a statement; its names are those of the policy
    function's ``owner``."""

    owner: str
    text: str


@dataclass(frozen=True, slots=True)
class StoredFunction:
    """A stored function as SQL calls it: its name, its parameters' names, and their types and its
    own."""

    name: ast.Name
    parameters: tuple[str, ...]
    required: int
    types: tuple[SqlType, ...]
    returns: SqlType


CompiledQuery = tuple[str, list[OutputColumn], bool]


@dataclass(frozen=True, slots=True)
class Rules:
    """How the three things that contain each other are compiled, and what a name may mean that is
    no column."""

    value: Callable[[Compilation, ast.Expr, Scope], Sql]
    condition: Callable[[Compilation, ast.Expr, Scope], str]
    query: Callable[[Compilation, ast.Query, Scope | None], CompiledQuery]
    variable: Callable[[Compilation, ast.Name], Sql | None]
    routine: Callable[[Compilation, ast.Call, Scope], Sql | None]


class Compilation:
    """The state of one compilation. ``bind_types`` are None while the statement is only described.

    ``view_depth`` counts the views around the query at hand, ``flashback`` is the AS OF clause that
    they inherit.
    """

    def __init__(
        self, environment: Environment, bind_types: Sequence[SqlType] | None, rules: Rules
    ) -> None:
        self.environment = environment
        self.bind_types = bind_types
        self.plan = Plan()
        self.told_places: ast.Select | None = None
        """The block whose rows come with the addresses of their LOBs' rows."""
        self.view_depth = 0
        self.flashback: Flashback | None = None
        self.enforcing: set[int] = set()
        """Tables whose predicates are compiled just now."""
        self.masks: list[Mask] = []
        """Redactions of the columns that the expression at hand reads."""
        self.source_masks: list[Mask] = []
        """Redactions of what subqueries give to the statement."""
        self._rules = rules
        self._aliases = 0

    def new_alias(self, prefix: str = "q") -> str:
        """A name that no one else uses."""
        self._aliases += 1
        return f"{prefix}{self._aliases}"

    def parameter(self, position: int, kind: SqlType, unit: int = 0) -> str:
        """The SQLite parameter of a bind position."""
        self.plan.slots.append(Slot(position, kind, unit))
        return f"?{FIRST_SLOT + len(self.plan.slots) - 1}"

    def value(self, node: ast.Expr, scope: Scope) -> Sql:
        """Compile an expression."""
        value = self._rules.value(self, node, scope)
        if self.environment.orders and value.family == "text":
            value.order = self.order_of(value.type)
        return value

    def order_of(self, kind: SqlType) -> TextOrder:
        """By what values of a type are ordered."""
        if kind.family != "text":
            return IN_CODE_POINTS
        return self.environment.orders.get(kind.form or 1, IN_CODE_POINTS)

    def condition(self, node: ast.Expr, scope: Scope) -> str:
        """Compile a condition to a SQLite truth value."""
        return self._rules.condition(self, node, scope)

    def query(self, node: ast.Query, parent: Scope | None) -> CompiledQuery:
        """Compile a query: text with columns c1…, their types, and whether it gives one row at
        most."""
        outer, self.masks = self.masks, []
        try:
            return self._rules.query(self, node, parent)
        finally:
            self.masks = outer

    def subquery(self, node: ast.Query, scope: Scope) -> tuple[str, list[Sql], bool]:
        """A query inside an expression: text, column expressions, and whether it gives one row at
        most."""
        text, columns, single = self.query(node, scope)
        given = [column.mask for column in columns if column.mask is not None]
        self.masks += given
        self.source_masks += given
        return (
            text,
            [Sql(f"c{number}", column.type) for number, column in enumerate(columns, 1)],
            single,
        )

    def variable(self, name: ast.Name) -> Sql | None:
        """What a name means that is no column: a PL/SQL variable, or None."""
        return self._rules.variable(self, name)

    def routine(self, node: ast.Call, scope: Scope) -> Sql | None:
        """A call of a function that is not SQL's own; None if there is none."""
        return self._rules.routine(self, node, scope)
