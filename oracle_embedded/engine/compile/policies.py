"""How do row-level security and redaction get into a statement?

A predicate is a condition of the table itself: whatever reads the table does so behind it. A
redacted value is read, compared, joined and sorted as it is; the result of the whole statement has
another in its place.

Source: Oracle Database Security Guide 19c, "Using Oracle Virtual Private Database to Control Data
Access"; Oracle Database Data Redaction Guide 23ai, "Oracle Data Redaction and Nested Functions,
Inline Views, and the WHERE Clause" (an expression over a redacted column is redacted whole, inline
views at the outermost, conditions never) and "Oracle Data Redaction and DML and DDL Operations".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from oracle_embedded.api import OracleError
from oracle_embedded.engine.compile.compilation import Compilation, Predicate
from oracle_embedded.engine.compile.plan import (
    REDACT_FULL,
    REDACT_NONE,
    REDACT_NULLIFY,
    Mask,
    Sql,
    blob,
    quoted,
)
from oracle_embedded.engine.compile.scopes import Scope, SourceColumn
from oracle_embedded.engine.datatypes import numbers
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql.expressions import read_condition
from oracle_embedded.engine.sql.queries import parse_condition, query_stream
from oracle_embedded.engine.storage.catalog import TableDef
from oracle_embedded.values import binary_float_from_float, double_from_float

_NEW_MILLENNIUM = bytes((120, 101, 1, 1, 1, 1, 1))
"""2001-01-01 as a DATE."""
_IN_PLACE = "[redacted]"
_WHOLE = {
    "number": blob(numbers.encode(0)),
    "float": blob(binary_float_from_float(0.0)),
    "double": blob(double_from_float(0.0)),
    "text": quoted(" "),
    "clob": quoted(_IN_PLACE),
    "blob": blob(_IN_PLACE.encode()),
    "date": blob(_NEW_MILLENNIUM),
    "timestamp": blob(_NEW_MILLENNIUM + bytes(4)),
    "tz": blob(_NEW_MILLENNIUM + bytes(4) + bytes((20, 60))),
}
"""What full redaction shows, by families of types.

Source: Oracle Database Data Redaction Guide, "Full Data Redaction to Redact All Data"."""


# --- row-level security ---------------------------------------------------------------------------


def parsed_predicate(predicate: Predicate) -> ast.Expr:
    """The condition that a policy function returned.

    Raises:
        OracleError: ORA-28113 for what is no condition.
    """
    stream = query_stream(predicate.text)
    try:
        found = read_condition(stream)
        stream.expect_end()
    except OracleError as error:
        raise _in_error() from error
    if stream.bind_names:
        raise _in_error()
    return found


def conditions_of(
    state: Compilation, table: TableDef, predicates: Sequence[Predicate], scope: Scope
) -> list[str]:
    """Predicates as SQLite conditions over a table.

    Raises:
        OracleError: ORA-28113 where one does not fit the table, ORA-28108 where one reads the table
            itself.
    """
    if table.object_id in state.enforcing:
        raise OracleError(28108, "circular security policies detected")
    state.enforcing.add(table.object_id)
    try:
        found = []
        for one in predicates:
            with as_policy(state, one.owner):
                found.append(state.condition(parsed_predicate(one), scope))
        return found
    finally:
        state.enforcing.discard(table.object_id)


@contextmanager
def as_policy(state: Compilation, owner: str) -> Iterator[None]:
    """Compile with the names and rights of a policy function's owner.

    Raises:
        OracleError: ORA-28113 for what does not compile.
    """
    environment = state.environment
    state.environment = replace(environment, schema=owner)
    state.view_depth += 1
    try:
        yield
    except OracleError as error:
        if error.code in (28108, 28110, 28112, 28113):
            raise
        raise _in_error() from error
    finally:
        state.environment = environment
        state.view_depth -= 1


def _in_error() -> OracleError:
    return OracleError(28113, "policy predicate has error")


# --- redaction ------------------------------------------------------------------------------------


def masked_columns(
    state: Compilation, table: TableDef, columns: Mapping[str, SourceColumn]
) -> dict[str, SourceColumn]:
    """The redacted ones of a table's columns."""
    redaction = state.environment.redaction(table)
    if redaction is None:
        return {}
    condition = state.condition(parse_condition(redaction.expression), Scope())
    found = {}
    for one in redaction.columns:
        column = table.by_id.get(one.internal_id)
        if column is not None and one.kind != REDACT_NONE:
            mask = Mask(one.kind, one.parameters, condition)
            found[column.name] = replace(columns[column.name], mask=mask)
    return found


def with_mask(value: Sql, masks: Sequence[Mask]) -> Sql:
    """An item of a select list: a redacted column as its policy has it, an expression over redacted
    columns whole."""
    if value.mask is not None or not masks:
        return value
    conditions = dict.fromkeys(one.condition for one in masks)
    return replace(
        value, mask=Mask(REDACT_FULL, None, " OR ".join(f"({one})" for one in conditions))
    )


def as_shown(value: Sql) -> Sql:
    """A value as a result has it."""
    if value.mask is None:
        return value
    return replace(value, text=_redacted(value, value.mask), mask=None)


def _redacted(value: Sql, mask: Mask) -> str:
    """SQLite text. NULL stays NULL."""
    if mask.kind == REDACT_NULLIFY:
        there = "NULL"
    elif mask.kind == REDACT_FULL:
        whole = _WHOLE.get(value.family, "NULL")
        there = f"CASE WHEN {value.text} IS NULL THEN NULL ELSE {whole} END"
    else:
        there = (
            f"o_redact_part({value.text}, {quoted(value.family)}, {quoted(mask.parameters or '')})"
        )
    return f"CASE WHEN {mask.condition} THEN {there} ELSE {value.text} END"


def refuse_redacted(masks: Iterable[Mask | None]) -> None:
    """Refuse a change that a redacted column gives values to.

    Raises:
        OracleError: ORA-28081.
    """
    if any(mask is not None for mask in masks):
        raise OracleError(
            28081, "Insufficient privileges - the command references a redacted object."
        )
