"""May this condition, which came from outside, stand in our SQL?

It must be one boolean expression over the table's own columns, with literals, SYSDATE, and
functions of Oracle that depend on nothing but their arguments. It is parsed; nothing is trusted by
its looks.
"""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from cdc_core.errors import ConfigError
from cdc_core.schema.table import TableSchema

LENGTH_MAX = 4000

_LITERAL = re.compile(r"'(?:[^']|'')*'")
_NAME = re.compile(r'"[^"]*"')
_REFUSED = re.compile(r"--|/\*|\*/|[;:?@`{}\[\]\\]|'|\"")
_PREFIXED = re.compile(r"(?i)\b(?:n?q|n|u)'")

_NODES: tuple[type[exp.Expression], ...] = (
    exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Like,
    exp.Escape, exp.Is, exp.Null, exp.Literal, exp.Column, exp.Identifier, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div,
    exp.DPipe, exp.Concat, exp.Mod, exp.Case, exp.If, exp.Interval, exp.Cast, exp.DataType, exp.DataTypeParam,
)  # fmt: skip
_FUNCTIONS = frozenset({
    "ABS", "ADD_MONTHS", "CEIL", "COALESCE", "DECODE", "EXTRACT", "FLOOR", "GREATEST", "INSTR", "LAST_DAY", "LEAST",
    "LENGTH", "LOWER", "LPAD", "LTRIM", "MOD", "MONTHS_BETWEEN", "NULLIF", "NUMTODSINTERVAL", "NUMTOYMINTERVAL", "NVL",
    "NVL2", "POWER", "REGEXP_INSTR", "REGEXP_LIKE", "REGEXP_REPLACE", "REGEXP_SUBSTR", "REPLACE", "ROUND", "RPAD",
    "RTRIM", "SIGN", "SUBSTR", "TO_CHAR", "TO_DATE", "TO_DSINTERVAL", "TO_NUMBER", "TO_TIMESTAMP", "TO_YMINTERVAL",
    "TRANSLATE", "TRIM", "TRUNC", "UPPER",
})  # fmt: skip
_BOOLEAN = (
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Like, exp.Is,
    exp.Escape, exp.RegexpLike,
)  # fmt: skip
_STATEMENT = re.compile(r"(?i)[\s(]*(?:select|where|with)\b")
_WORD = re.compile(r"[^\W\d][\w$#]*")
_CALL = re.compile(r"([^\W\d][\w$#]*)\s*\(")
_KEYWORDS = frozenset({
    "AND", "BETWEEN", "CASE", "DATE", "DAY", "ELSE", "END", "ESCAPE", "FROM", "HOUR", "IN", "INTERVAL", "IS", "LIKE",
    "MINUTE", "MONTH", "NOT", "NULL", "OR", "SECOND", "SYSDATE", "THEN", "TIMESTAMP", "WHEN", "YEAR",
})  # fmt: skip
"""``SYSDATE`` is the time at which a chunk is read; of an ad hoc snapshot nobody needs more."""


def checked_condition(text: str, schema: TableSchema, *, is_kept: bool = False) -> str:
    """Return the condition, trimmed, if it may be put between parentheses behind WHERE.

    Unquoted column names fold to upper case as in Oracle. Columns that the configuration leaves out
    may be named: Oracle judges by them, and their values stay there.

    Args:
        text: The condition.
        schema: The table.
        is_kept: Is the condition asked again later, so that it must say the same of a row each
            time?

    Raises:
        ConfigError: It is not one boolean expression over the table's columns; says what is wrong
            with it.
    """
    condition = text.strip()
    if not condition or len(condition) > LENGTH_MAX:
        raise _refused(f"it is empty or longer than {LENGTH_MAX} characters", schema)
    bare = _NAME.sub("0", _LITERAL.sub("0", condition))
    if _STATEMENT.match(bare):
        raise _refused(
            "it is more than a condition", schema, hint="Write only what stands behind WHERE. "
        )
    if _PREFIXED.search(condition) or _REFUSED.search(bare):
        raise _refused("it has a comment, a bind, a special literal or an open quote", schema)
    strange = {
        word
        for word in _WORD.findall(bare)
        if word.upper() not in _FUNCTIONS | _KEYWORDS and word.upper() not in _columns(schema)
    }
    if is_kept:
        strange |= {word for word in _WORD.findall(bare) if word.upper() == "SYSDATE"}
    strange |= {word for word in _CALL.findall(bare) if word.upper() not in _FUNCTIONS | _KEYWORDS}
    if strange:
        raise _refused(
            f"neither columns of the table nor allowed words: {', '.join(sorted(strange))[:200]}",
            schema,
        )
    tree = _parsed(condition, schema)
    inner = tree
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if not isinstance(inner, _BOOLEAN):
        raise _refused("it is not a comparison", schema)
    for node in tree.walk():
        _check(node, schema)
    return condition


def _columns(schema: TableSchema) -> frozenset[str]:
    return frozenset((*schema.names_in_oracle, *schema.excluded))


def _parsed(condition: str, schema: TableSchema) -> exp.Expression:
    try:
        statements = sqlglot.parse(f"SELECT 1 FROM T WHERE ({condition})", dialect="oracle")
    except SqlglotError as error:
        raise _refused("it cannot be parsed", schema) from error
    select = statements[0]
    where = select.args.get("where") if isinstance(select, exp.Select) else None
    if (
        len(statements) != 1
        or select is None
        or where is None
        or not isinstance(where.this, exp.Paren)
    ):
        raise _refused("it is more than one expression", schema)
    extra = [name for name, value in select.args.items() if value and name not in _SELECT_PARTS]
    if extra:
        raise _refused("text follows the expression", schema)
    found: exp.Expression = where.this.this
    return found


_SELECT_PARTS = frozenset({"expressions", "from", "from_", "where", "kind"})


def _check(node: exp.Expression, schema: TableSchema) -> None:
    if isinstance(node, exp.Column):
        if len(node.parts) != 1 or not isinstance(node.this, exp.Identifier):
            raise _refused("columns must be named without a table", schema)
        name = node.this.name if node.this.quoted else node.this.name.upper()
        if name not in _columns(schema):
            raise _refused(f"the table has no column {name[:128]}", schema)
    elif isinstance(node, (exp.Query, exp.Subquery)):
        raise _refused("it has a subquery", schema)
    elif not isinstance(node, _NODES) and not _is_part_of_function(node):
        raise _refused(f"{type(node).__name__} is not allowed in it", schema)


def _is_part_of_function(node: exp.Expression) -> bool:
    """Functions were judged by their names; sqlglot turns some into nodes of other kinds, which are
    functions as well."""
    return isinstance(node, (exp.Func, exp.Var)) and not isinstance(node, exp.AggFunc)


def _refused(what: str, schema: TableSchema, *, hint: str = "") -> ConfigError:
    return ConfigError(
        f"the condition cannot be used: {what}",
        hint=f"{hint}Write one comparison over the table's columns, such as ID >= 1000 AND STATE = 'open'. "
        f"Allowed functions: {', '.join(sorted(_FUNCTIONS))}.",
        table=schema.table,
    )
