"""How do expressions and SQL inside PL/SQL see variables, elements of collections and routines?"""

from __future__ import annotations

from collections.abc import Callable

from oracle_embedded.api import Value
from oracle_embedded.engine.compile.calls import stored_call
from oracle_embedded.engine.compile.compilation import Compilation, Rules
from oracle_embedded.engine.compile.conditions import compile_condition
from oracle_embedded.engine.compile.expressions import compile_value, text_literal
from oracle_embedded.engine.compile.plan import Sql
from oracle_embedded.engine.compile.queries import compile_query
from oracle_embedded.engine.compile.scopes import Scope, resolve
from oracle_embedded.engine.datatypes import numbers, types
from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.plsql.composites import PlType, PlValue
from oracle_embedded.engine.plsql.objects import image_of, sql_type
from oracle_embedded.engine.plsql.state import Cell, Frame
from oracle_embedded.engine.run.environment import compilation
from oracle_embedded.engine.sql import ast

Look = Callable[[Frame, ast.Expr], tuple[PlValue, PlType] | None]
"""The value of an expression that PL/SQL itself knows: a variable, an element, the result of a
function."""


class Compiled:
    """One compilation inside of a block, and the values of its parameters: those of the binds
    first.

    Args:
        look: Values of what is no column.
        is_sql: A SQL statement is compiled, in which functions are called for each row.
    """

    def __init__(self, frame: Frame, look: Look, *, is_sql: bool) -> None:
        self.frame = frame
        self.values: list[Value] = []
        kinds: list[SqlType] = []
        for cell in frame.binds:
            kind = sql_type(cell.type)
            self.values.append(None if kind is None else image_of(cell.value, cell.type))
            kinds.append(kind or types.NULL)
        self._look = look
        self._is_sql = is_sql
        rules = Rules(self._value, self._condition, compile_query, self._variable, self._routine)
        self.state = compilation(frame.session, kinds, rules)

    def _given(self, state: Compilation, found: tuple[PlValue, PlType], node: ast.Expr) -> Sql:
        value, kind = found
        known = sql_type(kind)
        if known is None:
            raise self.frame.error(node.pos, 382, "expression is of wrong type")
        if kind is types.NULL:
            return Sql("NULL", types.NULL, constant=True)
        self.values.append(image_of(value, kind))
        return Sql(state.parameter(len(self.values) - 1, known), known, constant=True)

    def _value(self, state: Compilation, node: ast.Expr, scope: Scope) -> Sql:
        if isinstance(node, ast.Bind):
            self.frame.read_binds.add(node.index)
            if sql_type(self.frame.binds[node.index].type) is None:
                raise self.frame.error(node.pos, 382, "expression is of wrong type")
        if isinstance(node, ast.Element | ast.Member) or _is_call_of_ours(self, node, scope):
            found = self._look(self.frame, node)
            if found is not None:
                return self._given(state, found, node)
        return compile_value(state, node, scope)

    def _condition(self, state: Compilation, node: ast.Expr, scope: Scope) -> str:
        """Conditions may be BOOLEAN variables as well."""
        if isinstance(node, ast.Column | ast.Bind | ast.Call | ast.Element | ast.Member):
            is_plain = isinstance(node, ast.Call) and node.name == ("REGEXP_LIKE",)
            value = None if is_plain else state.value(node, scope)
            if value is not None and value.family in ("bool", "null"):
                return f"({value.text} = x'01')"
        return compile_condition(state, node, scope)

    def _variable(self, state: Compilation, name: ast.Name) -> Sql | None:
        if len(name) == 1:
            special = _special(self.frame, name[0])
            if special is not None:
                return special
        node = ast.Column(name)
        found = self._look(self.frame, node)
        return None if found is None else self._given(state, found, node)

    def _routine(self, state: Compilation, node: ast.Call, scope: Scope) -> Sql | None:
        if self._is_sql:
            return stored_call(state, node, scope)
        found = self._look(self.frame, node)
        return None if found is None else self._given(state, found, node)


def _is_call_of_ours(compiled: Compiled, node: ast.Expr, scope: Scope) -> bool:
    """Is a call an element of a collection, a method, or about a cursor: nothing that SQL itself
    could know?"""
    if not isinstance(node, ast.Call):
        return False
    if node.name[0].startswith("%"):
        return True
    held = compiled.frame.names.get(node.name[0])
    if isinstance(held, Cell):
        return not isinstance(held.type, SqlType) and resolve(ast.Column(node.name), scope) is None
    return False


def _special(frame: Frame, name: str) -> Sql | None:
    """What every block knows."""
    match name:
        case "TRUE":
            return Sql("x'01'", types.BOOLEAN, nullable=False, constant=True)
        case "FALSE":
            return Sql("x'00'", types.BOOLEAN, nullable=False, constant=True)
        case "SQL%ROWCOUNT":
            if frame.row_count is None:
                return Sql("NULL", types.NUMBER, constant=True)
            return Sql(f"x'{numbers.encode(frame.row_count).hex()}'", types.NUMBER, constant=True)
        case "SQL%FOUND":
            return Sql(_truth(frame, wanted=True), types.BOOLEAN, constant=True)
        case "SQL%NOTFOUND":
            return Sql(_truth(frame, wanted=False), types.BOOLEAN, constant=True)
        case "SQL%ISOPEN":
            return Sql("x'00'", types.BOOLEAN, constant=True)
        case "SQLCODE":
            code = -frame.handling.code if frame.handling is not None else 0
            code = 100 if code == -1403 else 1 if code == -6510 else code
            return Sql(f"x'{numbers.encode(code).hex()}'", types.NUMBER, constant=True)
        case "SQLERRM":
            own = frame.session.database.character_sets.database
            if frame.handling is None:
                return text_literal("ORA-0000: normal, successful completion", own)
            return text_literal(str(frame.handling).split("\nORA-06512")[0], own)
    return None


def _truth(frame: Frame, *, wanted: bool) -> str:
    if frame.row_count is None:
        return "NULL"
    return "x'01'" if bool(frame.row_count) is wanted else "x'00'"


def boolean_value(state: Compilation, node: ast.Expr) -> Sql:
    """An expression, or a condition as BOOLEAN."""
    scope = Scope()
    is_test = isinstance(node, ast.CONDITIONS) or (
        isinstance(node, ast.Call) and node.name == ("REGEXP_LIKE",)
    )
    if is_test:
        test = state.condition(node, scope)
        return Sql(f"(CASE ({test}) WHEN 1 THEN x'01' WHEN 0 THEN x'00' END)", types.BOOLEAN)
    return state.value(node, scope)
