"""How do PL/SQL blocks run?"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oracle_embedded.api import (
    BindMeta,
    OracleError,
    OraType,
    OutBind,
    Outcome,
    StatementKind,
    Value,
)
from oracle_embedded.engine.compile.conversions import convert
from oracle_embedded.engine.compile.dml import DmlPlan, compile_change
from oracle_embedded.engine.compile.plan import Plan
from oracle_embedded.engine.compile.queries import compile_select
from oracle_embedded.engine.datatypes import numbers
from oracle_embedded.engine.datatypes.types import NUMBER, SqlType, bind_type
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.plsql.compile import block_compilation, boolean_value, type_errors
from oracle_embedded.engine.plsql.packages import call_procedure
from oracle_embedded.engine.run.dml_run import ChangeRunner
from oracle_embedded.engine.run.query_run import (
    highest_parameter,
    open_query,
    parameters,
    translated,
)
from oracle_embedded.engine.run.statement import metas, with_outputs
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql import plsql_nodes as nodes
from oracle_embedded.engine.sql.blocks import compile_error

if TYPE_CHECKING:
    from oracle_embedded.engine.run.session import Session

_ITERATIONS_MAX = 100_000_000
_HANDLED = {
    "NO_DATA_FOUND": 1403,
    "TOO_MANY_ROWS": 1422,
    "DUP_VAL_ON_INDEX": 1,
    "ZERO_DIVIDE": 1476,
    "INVALID_NUMBER": 1722,
    "VALUE_ERROR": 6502,
    "TIMEOUT_ON_RESOURCE": 51,
    "LOGIN_DENIED": 1017,
    "STORAGE_ERROR": 6500,
    "PROGRAM_ERROR": 6501,
    "ROWTYPE_MISMATCH": 6504,
    "INVALID_CURSOR": 1001,
}


@dataclass(slots=True)
class _Leave(Exception):  # noqa: N818 - control flow of EXIT, CONTINUE and RETURN
    how: str


def run_block(
    session: Session,
    sql: str,
    block: nodes.Block,
    binds: Sequence[Sequence[Value]],
    bind_metas: Sequence[BindMeta],
) -> Outcome:
    """Run a block once per row of binds; assigned binds come back as OUT values."""
    outcome = Outcome(StatementKind.PLSQL)
    count = len(block.bind_names)
    declared = list(bind_metas) or [BindMeta(OraType.VARCHAR, 32767, 1) for _ in range(count)]
    if len(declared) < count:
        raise ora(1008)
    outs: dict[int, OutBind] = {}
    for row in binds or [()]:
        if len(row) < count:
            raise ora(1008)
        runner = BlockRunner(session, sql, block, list(row), declared)
        runner.run()
        for position in runner.assigned_binds():
            out = outs.setdefault(
                position,
                OutBind(position, declared[position], also_in=position in runner.read_binds),
            )
            out.values.append([runner.values[position]])
    outcome.out_binds = [outs[position] for position in sorted(outs)]
    return outcome


class BlockRunner:
    """State of one run: values of binds first, then of variables, all in Oracle's encodings."""

    def __init__(
        self,
        session: Session,
        sql: str,
        block: nodes.Block,
        binds: list[Value],
        metas: Sequence[BindMeta],
    ) -> None:
        self.session = session
        self.sql = sql
        self.block = block
        self.values: list[Value] = binds
        self.types: list[SqlType] = [bind_type(meta) for meta in metas[: len(binds)]]
        self.names: dict[str, int] = {}
        self.constants: set[str] = set()
        self.read_binds: set[int] = set()
        self.row_count = 0
        self._bind_count = len(binds)
        self.handling: OracleError | None = None

    def run(self) -> None:
        """Run the block; an error leaves what earlier statements did as it is, as the client rolls back."""
        start = self._savepoint()
        try:
            self._run_block(self.block)
        except _Leave:
            return
        except OracleError as error:
            self._back_to(start)
            if error.code != 6550 and "ORA-06512" not in error.text:
                error.text += "\nORA-06512: at line 1"
                error.args = (error.code, error.text, error.offset)
            raise

    def _savepoint(self) -> tuple[object, int]:
        with self.session.database.store.lock:
            return self.session.transaction, self.session.database.transactions.seq

    def _back_to(self, start: tuple[object, int]) -> None:
        """A block is one statement: undo what it did in the transaction that was open when it began."""
        transaction, seq = start
        with self.session.database.store.lock:
            current = self.session.transaction
            if current is None or (transaction is not None and current is not transaction):
                return
            self.session.database.transactions.undo_to(current, seq)

    def assigned_binds(self) -> list[int]:
        """Positions of binds that the block may assign."""
        found: set[int] = set()
        _collect_targets(self.block.body, found)
        for _, body in self.block.handlers:
            _collect_targets(body, found)
        return sorted(found)

    # --- blocks and control flow -------------------------------------------------------------------------------------

    def _run_block(self, block: nodes.Block) -> None:
        outer_names = dict(self.names)
        try:
            for variable in block.variables:
                self._declare(variable)
            self._run_all(block.body)
        except OracleError as error:
            handler = self._handler(block, error)
            if handler is None:
                raise
            outer, self.handling = self.handling, error
            try:
                self._run_all(handler)
            finally:
                self.handling = outer
        finally:
            self.names = outer_names

    def _handler(self, block: nodes.Block, error: OracleError) -> tuple[nodes.Node, ...] | None:
        for names, body in block.handlers:
            if any(name == "OTHERS" or _HANDLED.get(name) == error.code for name in names):
                return body
        return None

    def _declare(self, variable: nodes.Variable) -> None:
        self.names[variable.name] = self._new_value(variable.type)
        if variable.value is not None:
            self._store(self.names[variable.name], variable.value)
        if variable.constant:
            self.constants.add(variable.name)

    def _new_value(self, kind: SqlType) -> int:
        self.values.append(None)
        self.types.append(kind)
        return len(self.values) - 1

    def _run_all(self, body: Sequence[nodes.Node]) -> None:
        for node in body:
            if self.session.is_interrupted():
                raise ora(1013)
            self._run_one(node)

    def _run_one(self, node: nodes.Node) -> None:
        match node:
            case nodes.Assign():
                self._store(self._target(node.target, node.pos), node.value)
            case nodes.If():
                for condition, body in node.branches:
                    if condition is None or self._test(condition):
                        self._run_all(body)
                        break
            case nodes.ForRange():
                self._for(node)
            case nodes.Loop():
                self._loop(node)
            case nodes.Exit():
                if node.condition is None or self._test(node.condition):
                    raise _Leave("CONTINUE" if node.again else "EXIT")
            case nodes.Sql():
                self._sql(node)
            case nodes.ExecuteImmediate():
                self._execute_immediate(node)
            case nodes.CallProcedure():
                call_procedure(self, node)
            case nodes.Block():
                self._run_block(node)
            case nodes.Raise():
                if self.handling is None:
                    raise self.error(
                        node.pos,
                        367,
                        "a RAISE statement with no exception name must be inside an exception handler",
                    )
                raise self.handling
            case nodes.Return():
                raise _Leave("RETURN")

    def error(self, pos: int, code: int, text: str) -> OracleError:
        """ORA-06550 at a place of the block."""
        return compile_error(self.sql, pos, code, text)

    def _for(self, node: nodes.ForRange) -> None:
        low, high = self._integer(node.low), self._integer(node.high)
        span = range(low, high + 1)
        outer = dict(self.names)
        position = self._new_value(NUMBER)
        self.names[node.name] = position
        self.constants.add(node.name)
        try:
            for value in reversed(span) if node.reverse else span:
                self.values[position] = numbers.encode(value)
                if not self._iterate(node.body):
                    break
        finally:
            self.names = outer
            self.constants.discard(node.name)

    def _integer(self, node: ast.Expr) -> int:
        value, _ = self.evaluate(node, "number")
        if value is None:
            raise OracleError(6502, "PL/SQL: numeric or value error")
        return int(numbers.decode(value).to_integral_value())

    def _loop(self, node: nodes.Loop) -> None:
        for _ in range(_ITERATIONS_MAX):
            if node.condition is not None and not self._test(node.condition):
                return
            if not self._iterate(node.body):
                return

    def _iterate(self, body: Sequence[nodes.Node]) -> bool:
        try:
            self._run_all(body)
        except _Leave as leave:
            if leave.how == "RETURN":
                raise
            return leave.how == "CONTINUE"
        return True

    # --- values ------------------------------------------------------------------------------------------------------

    def _target(self, target: str | ast.Bind, pos: int) -> int:
        if isinstance(target, ast.Bind):
            return target.index
        if target not in self.names:
            raise self.error(pos, 201, f"identifier '{target}' must be declared")
        if target in self.constants:
            raise self.error(
                pos, 363, f"expression '{target}' cannot be used as an assignment target"
            )
        return self.names[target]

    def _store(self, position: int, node: ast.Expr) -> None:
        kind = self.types[position]
        value, _ = self.evaluate(node, kind.family)
        self.put(position, value)

    def put(self, position: int, value: Value) -> None:
        """Give a variable or bind a value of its family; too long ones are ORA-06502."""
        kind = self.types[position]
        if value is not None and position >= self._bind_count:
            value = type_errors(kind, value)
        self.values[position] = value

    def evaluate(self, node: ast.Expr, family: str | None = None) -> tuple[Any, SqlType]:
        """Evaluate an expression, converted to a family if one is given."""
        state = block_compilation(self)
        sql = boolean_value(state, node)
        if family is not None:
            sql = convert(sql, family, node.pos)
        text = f"SELECT {sql.text}"
        with self.session.database.store.lock:
            connection = self.session.database.store.writer
            self.session.enter(connection.context)
            params = parameters(state.plan.slots, self.values, 0, 0, self.session.time_zone)
            if state.plan.tables or state.plan.virtuals:
                raise OracleError(
                    6550, "line 1, column 1:\nPLS-00405: subquery not allowed in this context"
                )
            try:
                row = connection.sqlite.execute(text, params[: highest_parameter(text)]).fetchone()
            except sqlite3.Error as error:
                raise translated(error, connection) from error
        return row[0], sql.type

    def _test(self, node: ast.Expr) -> bool:
        value, _ = self.evaluate(node, "bool")
        return bool(value == b"\x01")

    # --- SQL ---------------------------------------------------------------------------------------------------------

    def _sql(self, node: nodes.Sql) -> None:
        session = self.session
        if node.kind == "OTHER":
            from oracle_embedded.engine.run.statement_run import run_other

            run_other(session, node.node)
            return
        state = block_compilation(self)
        if isinstance(node.node, ast.Query):
            self._into(
                with_outputs(compile_select(state, node.node)), self.values, node.into, node.pos
            )
            return
        plan = compile_change(state, node.node)
        self._change(plan, self.values)

    def _change(self, plan: DmlPlan, values: Sequence[Value]) -> None:
        session = self.session
        with session.database.store.lock:
            session.enter(session.database.store.writer.context)
            change = ChangeRunner(session, plan).run(values)
        self.row_count = change.count
        if plan.returning is not None:
            if len(change.returned) > 1:
                raise ora(1422)
            for at, position in enumerate(plan.return_positions):
                if change.returned:
                    self.put(position, change.returned[0][at])

    def _into(
        self, plan: Plan, values: Sequence[Value], into: Sequence[str | ast.Bind], pos: int
    ) -> None:
        if len(into) != len(plan.columns):
            raise ora(913 if len(into) < len(plan.columns) else 947)
        rows = open_query(self.session, plan, values, metas(plan.columns))
        rows.keep_contents()
        try:
            found = rows.fetch(2)
        finally:
            rows.close()
        self.row_count = len(found)
        if not found:
            raise ora(1403)
        if len(found) > 1:
            raise ora(1422)
        for target, value, column in zip(into, found[0], plan.columns, strict=True):
            position = self._target(target, pos)
            self.put(position, self._converted(value, column.type, self.types[position]))

    def _converted(self, value: Value, source: SqlType, target: SqlType) -> Value:
        if value is None or source.family == target.family:
            return value
        position = self._new_value(source)
        self.values[position] = value
        self.names["$value"] = position
        converted, _ = self.evaluate(ast.Column(("$value",)), target.family)
        del self.names["$value"]
        result: Value = converted
        return result

    def _execute_immediate(self, node: nodes.ExecuteImmediate) -> None:
        text, _ = self.evaluate(node.text, "text")
        if text is None:
            raise OracleError(6535, "statement string in EXECUTE IMMEDIATE is NULL or 0 length")
        values, metas = [], []
        for expr in node.using:
            value, kind = self.evaluate(expr)
            values.append(value)
            meta = kind.meta("")
            metas.append(BindMeta(meta.type, max(meta.size, 1), meta.charset_form))
        statement = self.session.parse(text.decode())
        outcome = self.session.execute(statement, [values] if values else (), bind_metas=metas)
        self.row_count = outcome.row_count
        if outcome.rows is None:
            return
        try:
            found = outcome.rows.fetch(2)
        finally:
            outcome.rows.close()
        if not node.into:
            return
        if len(found) != 1:
            raise ora(1403 if not found else 1422)
        for target, value, column in zip(node.into, found[0], outcome.rows.columns, strict=True):
            position = self._target(target, node.pos)
            content = (
                self.session.read_lob(value)[1]
                if value and column.type in (OraType.CLOB, OraType.BLOB)
                else value
            )
            self.put(position, self._converted(content, SqlType(column.type), self.types[position]))


def _collect_targets(body: Sequence[nodes.Node], found: set[int]) -> None:
    for node in body:
        targets: Sequence[object] = ()
        match node:
            case nodes.Assign():
                targets = (node.target,)
            case nodes.Sql():
                targets = node.into
                returning = getattr(node.node, "returning", None)
                if returning is not None:
                    targets = (*targets, *returning.binds)
            case nodes.ExecuteImmediate():
                targets = node.into
            case nodes.If():
                for _, branch in node.branches:
                    _collect_targets(branch, found)
            case nodes.ForRange() | nodes.Loop():
                _collect_targets(node.body, found)
            case nodes.Block():
                _collect_targets(node.body, found)
                for _, branch in node.handlers:
                    _collect_targets(branch, found)
        found.update(target.index for target in targets if isinstance(target, ast.Bind))
