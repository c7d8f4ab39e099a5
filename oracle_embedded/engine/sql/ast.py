"""What does a parsed statement look like? Immutable trees; two equal trees mean the same
expression."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from oracle_embedded.engine.datatypes.types import SqlType

Name = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expr:
    """Any expression or condition; ``pos`` is its offset in the statement."""

    pos: int = field(default=0, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Null(Expr):
    """NULL."""


@dataclass(frozen=True, slots=True)
class Number(Expr):
    """A numeric literal as written; a suffix F or D makes it BINARY_FLOAT or BINARY_DOUBLE."""

    text: str


@dataclass(frozen=True, slots=True)
class String(Expr):
    """A text literal."""

    text: str
    national: bool = False


@dataclass(frozen=True, slots=True)
class Temporal(Expr):
    """``DATE '…'`` or ``TIMESTAMP '…'``."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Interval(Expr):
    """``INTERVAL 'text' first[(precision)] [TO last[(digits)]]``; ``digits`` are those of the
    second's fraction."""

    text: str
    first: str
    last: str
    precision: int
    digits: int


@dataclass(frozen=True, slots=True)
class Column(Expr):
    """A possibly qualified name: a column, pseudo-column, sequence value or function without
    arguments."""

    name: Name
    outer: bool = False


@dataclass(frozen=True, slots=True)
class Bind(Expr):
    """A placeholder; ``index`` counts occurrences in SQL, distinct names in PL/SQL."""

    index: int
    name: str


@dataclass(frozen=True, slots=True)
class Unary(Expr):
    """``-e``, ``+e`` or ``PRIOR e``."""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """``+ - * / ||``."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Compare(Expr):
    """``= <> < <= > >=``; either side may be a :class:`Row`."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Quantified(Expr):
    """``left op ANY|ALL (items or query)``."""

    op: str
    left: Expr
    every: bool
    items: tuple[Expr, ...]
    query: Query | None


@dataclass(frozen=True, slots=True)
class Logical(Expr):
    """``AND`` or ``OR`` over two or more conditions."""

    op: str
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Not(Expr):
    """``NOT condition``."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class IsNull(Expr):
    """``e IS [NOT] NULL``."""

    operand: Expr
    negated: bool


@dataclass(frozen=True, slots=True)
class Like(Expr):
    """``e [NOT] LIKE pattern [ESCAPE c]``."""

    operand: Expr
    pattern: Expr
    escape: Expr | None
    negated: bool


@dataclass(frozen=True, slots=True)
class Between(Expr):
    """``e [NOT] BETWEEN low AND high``."""

    operand: Expr
    low: Expr
    high: Expr
    negated: bool


@dataclass(frozen=True, slots=True)
class In(Expr):
    """``e [NOT] IN (items)`` or ``IN (query)``."""

    operand: Expr
    items: tuple[Expr, ...]
    query: Query | None
    negated: bool


@dataclass(frozen=True, slots=True)
class Exists(Expr):
    """``EXISTS (query)``."""

    query: Query


CONDITIONS = (Logical, Compare, Not, IsNull, Like, Between, In, Quantified)
"""What is true, false or unknown, in SQL and in PL/SQL; EXISTS is SQL's alone."""


@dataclass(frozen=True, slots=True)
class Row(Expr):
    """``(a, b, …)`` in a comparison."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Case(Expr):
    """Searched CASE; a simple one has ``operand``."""

    operand: Expr | None
    whens: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """``CAST(e AS type)``."""

    operand: Expr
    type: SqlType


@dataclass(frozen=True, slots=True)
class Scalar(Expr):
    """A query in parentheses used as a value."""

    query: Query


@dataclass(frozen=True, slots=True)
class CursorQuery(Expr):
    """``CURSOR(query)`` in a select list: its rows, for each row of the query around it."""

    query: Query


@dataclass(frozen=True, slots=True)
class AtZone(Expr):
    """``e AT TIME ZONE zone``; without zone: AT LOCAL."""

    operand: Expr
    zone: Expr | None


@dataclass(frozen=True, slots=True)
class OrderItem:
    """One sort key; ``nulls_first`` None is Oracle's default (last ascending, first descending)."""

    expr: Expr
    descending: bool = False
    nulls_first: bool | None = None

    @property
    def puts_nulls_first(self) -> bool:
        """Where NULLs really go."""
        return self.descending if self.nulls_first is None else self.nulls_first


@dataclass(frozen=True, slots=True)
class Window:
    """An OVER clause; ``frame`` is its text in SQL's own words, offsets as expressions."""

    partition: tuple[Expr, ...]
    order: tuple[OrderItem, ...]
    frame: tuple[str | Expr, ...]


@dataclass(frozen=True, slots=True)
class Truncation:
    """``LISTAGG … ON OVERFLOW TRUNCATE``: what stands for the values that do not fit, and whether
    their number is told."""

    indicator: Expr | None
    counts: bool


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A function call, packages included (``DBMS_LOB.GETLENGTH``)."""

    name: Name
    args: tuple[Expr, ...]
    star: bool = False
    distinct: bool = False
    window: Window | None = None
    within: tuple[OrderItem, ...] = ()
    named: tuple[tuple[str, Expr], ...] = ()
    truncation: Truncation | None = None


@dataclass(frozen=True, slots=True)
class Element(Expr):
    """``operand(args)`` in PL/SQL, where the operand is no plain name."""

    operand: Expr
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Member(Expr):
    """``operand.name`` in PL/SQL, where the operand is no plain name."""

    operand: Expr
    name: str


# --- queries --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AsOf:
    """``AS OF SCN e`` or ``AS OF TIMESTAMP e``."""

    kind: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Versions:
    """``VERSIONS BETWEEN SCN|TIMESTAMP low AND high``; None for MINVALUE and MAXVALUE."""

    kind: str
    low: Expr | None
    high: Expr | None


@dataclass(frozen=True, slots=True)
class Sample:
    """``SAMPLE [BLOCK] (percent) [SEED (n)]``: some of a table's rows, or the rows of some of its
    blocks."""

    percent: Decimal
    is_block: bool
    seed: int


@dataclass(frozen=True, slots=True)
class FromTable:
    """A table, view or CTE in FROM, or one partition or a sample of a table."""

    name: Name
    alias: str | None
    as_of: AsOf | None
    partition: str | None = None
    sample: Sample | None = None
    versions: Versions | None = None
    through: Query | None = None
    """The query in the place of a name, through which data is changed."""
    pos: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class FromQuery:
    """A query in FROM."""

    query: Query
    alias: str | None
    pos: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Join:
    """An ANSI join; ``kind`` is INNER, LEFT, RIGHT, FULL or CROSS."""

    kind: str
    left: FromItem
    right: FromItem
    on: Expr | None
    using: tuple[str, ...]
    natural: bool = False


@dataclass(frozen=True, slots=True)
class JsonColumn:
    """A column of JSON_TABLE; ``how`` is value, query, exists, number (FOR ORDINALITY) or nested,
    with columns of its own."""

    name: str
    how: str
    path: str
    type: SqlType | None
    columns: tuple[JsonColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class FromJson:
    """JSON_TABLE: a row per item that a path finds in a document of the items before it in FROM."""

    operand: Expr
    path: str
    columns: tuple[JsonColumn, ...]
    alias: str | None
    pos: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class FromCollection:
    """TABLE(collection): a row per element of a collection, which may be a column of the items
    before it in FROM."""

    operand: Expr
    alias: str | None
    pos: int = field(default=0, compare=False)


FromItem = FromTable | FromQuery | FromJson | FromCollection | Join


@dataclass(frozen=True, slots=True)
class SelectItem:
    """One item of a select list; ``star`` holds the qualifier of ``*`` (empty for a bare one), else
    None."""

    expr: Expr
    alias: str | None
    star: Name | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Select:
    """One query block."""

    items: tuple[SelectItem, ...]
    distinct: bool
    sources: tuple[FromItem, ...]
    where: Expr | None
    group: tuple[Expr, ...] | None
    having: Expr | None
    connect_by: Expr | None
    pos: int = field(default=0, compare=False)
    grouping_sets: tuple[tuple[Expr, ...], ...] | None = None
    """What ROLLUP, CUBE and GROUPING SETS come to: the sets by which rows are grouped; ``group``
    has all their expressions."""


@dataclass(frozen=True, slots=True)
class SetOperation:
    """UNION, UNION ALL, MINUS or INTERSECT of two."""

    op: str
    left: Body
    right: Body
    pos: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Cte:
    """One name of a WITH clause."""

    name: str
    columns: tuple[str, ...]
    query: Query


@dataclass(frozen=True, slots=True)
class ForUpdate:
    """FOR UPDATE: ``wait`` None waits for ever, 0 is NOWAIT, else seconds; ``skip_locked`` leaves
    locked rows out."""

    of: tuple[Name, ...]
    wait: float | None
    skip_locked: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A whole query with its WITH, ORDER BY and row limiting clauses."""

    body: Body
    ctes: tuple[Cte, ...] = ()
    order: tuple[OrderItem, ...] = ()
    offset: Expr | None = None
    fetch: Expr | None = None
    with_ties: bool = False
    for_update: ForUpdate | None = None
    is_percent: bool = False
    """``fetch`` is a share of the rows."""
    pos: int = field(default=0, compare=False)


Body = Select | SetOperation | Query


# --- data changes ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Default(Expr):
    """The keyword DEFAULT in VALUES or SET."""


@dataclass(frozen=True, slots=True)
class Returning:
    """``RETURNING exprs INTO binds``, in PL/SQL into targets."""

    exprs: tuple[Expr, ...]
    binds: tuple[Bind, ...]
    targets: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT with VALUES or with a query; in PL/SQL the value of VALUES may be one record."""

    table: FromTable
    columns: tuple[str, ...]
    values: tuple[Expr, ...]
    query: Query | None
    returning: Returning | None
    is_record: bool = False


@dataclass(frozen=True, slots=True)
class Branch:
    """One INTO of a multi-table INSERT; ``values`` are None where it takes the columns of the query
    as they are."""

    condition: Expr | None
    table: FromTable
    columns: tuple[str, ...]
    values: tuple[Expr, ...] | None
    first: int
    """The number of its WHEN, of which all but one may have to be false."""


@dataclass(frozen=True, slots=True)
class MultiInsert:
    """INSERT ALL, or INSERT FIRST, which takes the first WHEN that is true only."""

    is_first: bool
    branches: tuple[Branch, ...]
    query: Query


@dataclass(frozen=True, slots=True)
class Assignment:
    """``column = e`` or ``(columns) = (query)`` of SET."""

    columns: tuple[str, ...]
    value: Expr
    pos: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Update:
    """UPDATE."""

    table: FromTable
    assignments: tuple[Assignment, ...]
    where: Expr | None
    returning: Returning | None


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE."""

    table: FromTable
    where: Expr | None
    returning: Returning | None


@dataclass(frozen=True, slots=True)
class Merge:
    """MERGE with its branches; a missing branch is None."""

    table: FromTable
    source: FromItem
    on: Expr
    assignments: tuple[Assignment, ...] | None
    update_where: Expr | None
    delete_where: Expr | None
    insert_columns: tuple[str, ...]
    insert_values: tuple[Expr, ...] | None
    insert_where: Expr | None


# --- transactions and sessions --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Simple:
    """A statement of few words: COMMIT, ROLLBACK [TO name], SAVEPOINT name, SET TRANSACTION …"""

    action: str
    argument: str = ""


@dataclass(frozen=True, slots=True)
class SetConstraints:
    """SET CONSTRAINTS; no names stand for ALL."""

    names: tuple[Name, ...]
    deferred: bool


@dataclass(frozen=True, slots=True)
class LockTable:
    """LOCK TABLE."""

    tables: tuple[FromTable, ...]
    mode: str
    wait: float | None
