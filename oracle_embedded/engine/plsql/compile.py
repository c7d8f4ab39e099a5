"""How do expressions and SQL inside PL/SQL blocks see variables?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oracle_embedded.api import OracleError, Value
from oracle_embedded.engine.compile.base import Scope
from oracle_embedded.engine.compile.dml import DmlPlan
from oracle_embedded.engine.compile.plan import Sql
from oracle_embedded.engine.datatypes import numbers, types
from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.run.statement import SessionCompiler
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.storage.catalog import ColumnDef, TableDef
from oracle_embedded.engine.storage.fitting import fitter

if TYPE_CHECKING:
    from oracle_embedded.engine.plsql.run import BlockRunner
    from oracle_embedded.engine.run.session import Session

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


class BlockCompiler(SessionCompiler):
    """The compiler inside a block: names that are no columns may be variables."""

    def __init__(self, session: Session, runner: BlockRunner) -> None:
        super().__init__(session, runner.types)
        self.runner = runner

    def variable(self, _name: str) -> Sql | None:
        """A PL/SQL variable."""
        match _name:
            case "TRUE":
                return Sql("x'01'", types.BOOLEAN, nullable=False, constant=True)
            case "FALSE":
                return Sql("x'00'", types.BOOLEAN, nullable=False, constant=True)
            case "SQL%ROWCOUNT":
                return Sql(
                    f"x'{numbers.encode(self.runner.row_count).hex()}'", types.NUMBER, constant=True
                )
            case "SQL%FOUND":
                return Sql(
                    "x'01'" if self.runner.row_count else "x'00'", types.BOOLEAN, constant=True
                )
            case "SQL%NOTFOUND":
                return Sql(
                    "x'00'" if self.runner.row_count else "x'01'", types.BOOLEAN, constant=True
                )
            case "SQLCODE" if self.runner.handling is not None:
                return Sql(
                    f"x'{numbers.encode(-self.runner.handling.code).hex()}'",
                    types.NUMBER,
                    constant=True,
                )
            case "SQLERRM" if self.runner.handling is not None:
                return self.value(ast.String(str(self.runner.handling)), Scope())
        position = self.runner.names.get(_name)
        if position is None:
            return None
        kind = self.runner.types[position]
        return Sql(self.parameter(position, kind), kind, constant=True)

    def _bind(self, node: ast.Bind) -> Sql:
        self.runner.read_binds.add(node.index)
        return super()._bind(node)

    def condition(self, node: ast.Expr, scope: Scope) -> str:
        """Conditions may be BOOLEAN variables as well."""
        if isinstance(node, ast.Column | ast.Bind):
            value = self.value(node, scope)
            if value.family == "bool":
                return f"({value.text} = x'01')"
        return super().condition(node, scope)

    def boolean_value(self, node: ast.Expr, scope: Scope) -> Sql:
        """An expression, or a condition as BOOLEAN."""
        is_test = isinstance(node, _CONDITIONS) or (
            isinstance(node, ast.Call) and node.name == ("REGEXP_LIKE",)
        )
        if is_test:
            text = f"(CASE WHEN {self.condition(node, scope)} THEN x'01' WHEN NOT {self.condition(node, scope)} THEN x'00' END)"
            return Sql(text, types.BOOLEAN)
        return self.value(node, scope)

    def change(self, node: object) -> DmlPlan:
        """Compile a data change."""
        match node:
            case ast.Insert():
                return self.insert(node)
            case ast.Update():
                return self.update(node)
            case ast.Delete():
                return self.delete(node)
            case ast.Merge():
                return self.merge(node)
        raise AssertionError(f"no plan for {type(node)}")


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
