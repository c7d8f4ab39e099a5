"""How do expressions and SQL inside PL/SQL blocks see variables?"""

from __future__ import annotations

from functools import partial

from oracle_embedded.api import OracleError, Value
from oracle_embedded.engine.compile.compilation import Compilation, Rules
from oracle_embedded.engine.compile.conditions import compile_condition
from oracle_embedded.engine.compile.expressions import compile_value, text_literal
from oracle_embedded.engine.compile.plan import Sql
from oracle_embedded.engine.compile.queries import compile_query
from oracle_embedded.engine.compile.scopes import Scope
from oracle_embedded.engine.datatypes import numbers, types
from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.plsql.state import BlockState
from oracle_embedded.engine.run.environment import compilation
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.storage.catalog import ColumnDef, TableDef
from oracle_embedded.engine.storage.fitting import fitter

_CONDITIONS = (
    ast.Logical,
    ast.Compare,
    ast.Not,
    ast.IsNull,
    ast.Like,
    ast.Between,
    ast.In,
    ast.Quantified,
)
_NOWHERE = TableDef(0, 0, 0, "", "", ())


def block_compilation(block: BlockState) -> Compilation:
    """A compilation inside a block: names that are no columns may be variables."""

    def value(state: Compilation, node: ast.Expr, scope: Scope) -> Sql:
        if isinstance(node, ast.Bind):
            block.read_binds.add(node.index)
        return compile_value(state, node, scope)

    return compilation(
        block.session,
        block.types,
        Rules(value, _condition, compile_query, partial(_variable, block)),
    )


def _condition(state: Compilation, node: ast.Expr, scope: Scope) -> str:
    """Conditions may be BOOLEAN variables as well."""
    if isinstance(node, ast.Column | ast.Bind):
        value = state.value(node, scope)
        if value.family == "bool":
            return f"({value.text} = x'01')"
    return compile_condition(state, node, scope)


def _variable(block: BlockState, state: Compilation, name: str) -> Sql | None:
    """A PL/SQL variable, or one of those that every block has."""
    match name:
        case "TRUE":
            return Sql("x'01'", types.BOOLEAN, nullable=False, constant=True)
        case "FALSE":
            return Sql("x'00'", types.BOOLEAN, nullable=False, constant=True)
        case "SQL%ROWCOUNT":
            return Sql(f"x'{numbers.encode(block.row_count).hex()}'", types.NUMBER, constant=True)
        case "SQL%FOUND":
            return Sql("x'01'" if block.row_count else "x'00'", types.BOOLEAN, constant=True)
        case "SQL%NOTFOUND":
            return Sql("x'00'" if block.row_count else "x'01'", types.BOOLEAN, constant=True)
        case "SQLCODE" if block.handling is not None:
            return Sql(
                f"x'{numbers.encode(-block.handling.code).hex()}'", types.NUMBER, constant=True
            )
        case "SQLERRM" if block.handling is not None:
            return text_literal(str(block.handling))
    position = block.names.get(name)
    if position is None:
        return None
    kind = block.types[position]
    return Sql(state.parameter(position, kind), kind, constant=True)


def boolean_value(state: Compilation, node: ast.Expr) -> Sql:
    """An expression, or a condition as BOOLEAN."""
    scope = Scope()
    is_test = isinstance(node, _CONDITIONS) or (
        isinstance(node, ast.Call) and node.name == ("REGEXP_LIKE",)
    )
    if is_test:
        test = state.condition(node, scope)
        text = (
            f"(CASE WHEN {test} THEN x'01' WHEN NOT {state.condition(node, scope)} THEN x'00' END)"
        )
        return Sql(text, types.BOOLEAN)
    return state.value(node, scope)


def type_errors(kind: SqlType, value: bytes) -> Value:
    """A value as a variable of a type holds it.

    Raises:
        OracleError: ORA-06502 when it does not fit.
    """
    try:
        return fitter(_NOWHERE, ColumnDef(0, "", kind))(value)
    except OracleError as error:
        detail = (
            "number precision too large"
            if error.code == 1438
            else "character string buffer too small"
        )
        raise OracleError(6502, f"PL/SQL: numeric or value error: {detail}") from error
