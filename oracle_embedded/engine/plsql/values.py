"""How do blocks evaluate expressions and assign their values?"""

from __future__ import annotations

import sqlite3
from typing import Any

from oracle_embedded.api import OracleError, Value
from oracle_embedded.engine.compile.conversions import convert
from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.plsql.compile import block_compilation, boolean_value, type_errors
from oracle_embedded.engine.plsql.state import BlockState
from oracle_embedded.engine.run.query_run import highest_parameter, parameters, translated
from oracle_embedded.engine.sql import ast


def evaluate(state: BlockState, node: ast.Expr, family: str | None = None) -> tuple[Any, SqlType]:
    """Evaluate an expression, converted to a family if one is given."""
    compiling = block_compilation(state)
    sql = boolean_value(compiling, node)
    if family is not None:
        sql = convert(sql, family, node.pos)
    text = f"SELECT {sql.text}"
    with state.session.database.store.lock:
        connection = state.session.database.store.writer
        state.session.enter(connection.context)
        params = parameters(compiling.plan.slots, state.values, 0, 0, state.session.time_zone)
        if compiling.plan.tables or compiling.plan.virtuals:
            raise OracleError(
                6550, "line 1, column 1:\nPLS-00405: subquery not allowed in this context"
            )
        try:
            row = connection.sqlite.execute(text, params[: highest_parameter(text)]).fetchone()
        except sqlite3.Error as error:
            raise translated(error, connection) from error
    return row[0], sql.type


def put(state: BlockState, position: int, value: Value) -> None:
    """Give a variable or bind a value of its family; too long ones are ORA-06502."""
    kind = state.types[position]
    if value is not None and position >= state.bind_count:
        value = type_errors(kind, value)
    state.values[position] = value
