"""Which rows does a filter from outside mean: a condition, or a whole SELECT over the table?

A blocking snapshot and ``snapshot.select_overrides`` may have a statement. What stands behind its
WHERE is the condition; Redolake reads the captured columns of the rows that meet it ``AS OF SCN``.
"""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from cdc_core.schema.table import TableSchema
from cdc_core.snapshot.conditions import LENGTH_MAX, checked_condition

_STATEMENT = re.compile(r"(?i)\s*select\b")
_PARTS = frozenset({"expressions", "from", "from_", "where", "kind"})


def checked_filter(
    text: str, schema: TableSchema, *, is_statement: bool, is_kept: bool = False
) -> str | None:
    """The condition that a filter means, if it may be put between parentheses behind WHERE; None
    for all rows.

    Args:
        text: A condition, or a SELECT.
        schema: The table.
        is_statement: May it be a SELECT?
        is_kept: As for :func:`checked_condition`.

    Raises:
        ConfigError: It is no condition (:func:`checked_condition`), or no SELECT of the captured
            columns of this one table with nothing but a WHERE.
    """
    if is_statement and _STATEMENT.match(text):
        condition = _condition_of(text, schema)
        return None if condition is None else checked_condition(condition, schema, is_kept=is_kept)
    return checked_condition(text, schema, is_kept=is_kept)


def _condition_of(text: str, schema: TableSchema) -> str | None:
    """What stands behind the WHERE of a SELECT, as it is written."""
    if len(text) > LENGTH_MAX:
        raise _refused(f"it is longer than {LENGTH_MAX} characters", schema)
    statement = text.strip().removesuffix(";")
    try:
        trees = sqlglot.parse(statement, dialect="oracle")
        tokens = sqlglot.tokenize(statement, dialect="oracle")
    except SqlglotError as error:
        raise _refused("it cannot be parsed", schema) from error
    select = trees[0] if trees else None
    if len(trees) != 1 or not isinstance(select, exp.Select):
        raise _refused("it is not one SELECT", schema)
    if extra := [name for name, value in select.args.items() if value and name not in _PARTS]:
        raise _refused(f"it has more than a WHERE ({', '.join(sorted(extra))})", schema)
    _check_table(select, schema)
    _check_columns(select, schema)
    where = _where(tokens)
    return None if where is None else statement[where.end + 1 :]


def _check_table(select: exp.Select, schema: TableSchema) -> None:
    source = select.args.get("from") or select.args.get("from_")
    named = source.this if source is not None else None
    if not isinstance(named, exp.Table) or named.args.get("joins") or named.catalog:
        raise _refused("it does not read this one table", schema)
    owner = _folded(named.args.get("db")) or schema.table.owner
    if TableId(owner, _folded(named.this) or "?") != schema.table:
        raise _refused("it reads another table", schema)
    if extra := [
        name for name, value in named.args.items() if value and name not in ("this", "db")
    ]:
        raise _refused(f"its table has more than a name ({', '.join(sorted(extra))})", schema)


def _check_columns(select: exp.Select, schema: TableSchema) -> None:
    if len(select.expressions) == 1 and isinstance(select.expressions[0], exp.Star):
        return
    named = {
        _folded(one.this)
        for one in select.expressions
        if isinstance(one, exp.Column) and len(one.parts) == 1
    }
    if len(named) < len(select.expressions):
        raise _refused("it selects something else than columns", schema)
    if lacking := [one for one in schema.names_in_oracle if one not in named]:
        raise _refused(f"it lacks captured columns: {', '.join(lacking)[:200]}", schema)


def _folded(name: exp.Expression | None) -> str | None:
    if not isinstance(name, exp.Identifier):
        return None
    return str(name.this) if name.args.get("quoted") else str(name.this).upper()


def _where(tokens: list[Token]) -> Token | None:
    """The statement's own WHERE: the first, since nothing before it may be a sub-query."""
    return next((one for one in tokens if one.token_type is TokenType.WHERE), None)


def _refused(what: str, schema: TableSchema) -> ConfigError:
    return ConfigError(
        f"the statement cannot be used: {what}",
        hint=f"Write SELECT * FROM {schema.table} WHERE and one condition over its columns.",
        table=schema.table,
    )
