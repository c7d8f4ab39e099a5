"""How do PL/SQL blocks run?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oracle_embedded.api import (
    BindMeta,
    OracleError,
    OraType,
    OutBind,
    Outcome,
    ResultRows,
    StatementKind,
    Value,
)
from oracle_embedded.engine.compile.dml import DmlPlan, compile_change
from oracle_embedded.engine.compile.plan import Plan
from oracle_embedded.engine.compile.queries import compile_select
from oracle_embedded.engine.datatypes import numbers
from oracle_embedded.engine.datatypes.types import CURSOR, NUMBER, SqlType, bind_type
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.plsql.compile import block_compilation
from oracle_embedded.engine.plsql.packages import call_procedure
from oracle_embedded.engine.plsql.state import BlockState
from oracle_embedded.engine.plsql.values import evaluate, put
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.run.control import run_control
from oracle_embedded.engine.run.dml_run import ChangeRunner
from oracle_embedded.engine.run.query_run import (
    open_query,
)
from oracle_embedded.engine.run.statement import metas, with_outputs
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql import plsql_nodes as nodes

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
    session: SessionState,
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
        state = BlockState(
            session, sql, list(row), [bind_type(meta) for meta in declared[: len(row)]], len(row)
        )
        runner = BlockRunner(state, block)
        runner.run()
        for position in runner.assigned_binds():
            out = outs.setdefault(
                position,
                OutBind(position, declared[position], also_in=position in state.read_binds),
            )
            out.values.append([state.values[position]])
    outcome.out_binds = [outs[position] for position in sorted(outs)]
    return outcome


class BlockRunner:
    """Runs the statements of one block."""

    def __init__(self, state: BlockState, block: nodes.Block) -> None:
        self.state = state
        self.block = block

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
        with self.state.session.database.store.lock:
            return self.state.session.transaction, self.state.session.database.transactions.seq

    def _back_to(self, start: tuple[object, int]) -> None:
        """A block is one statement: undo what it did in the transaction that was open when it began."""
        transaction, seq = start
        with self.state.session.database.store.lock:
            current = self.state.session.transaction
            if current is None or (transaction is not None and current is not transaction):
                return
            self.state.session.database.transactions.undo_to(current, seq)

    def assigned_binds(self) -> list[int]:
        """Positions of binds that the block may assign."""
        found: set[int] = set()
        _collect_targets(self.block.body, found)
        for _, body in self.block.handlers:
            _collect_targets(body, found)
        return sorted(found)

    # --- blocks and control flow -------------------------------------------------------------------------------------

    def _run_block(self, block: nodes.Block) -> None:
        outer_names = dict(self.state.names)
        try:
            for variable in block.variables:
                self._declare(variable)
            self._run_all(block.body)
        except OracleError as error:
            handler = self._handler(block, error)
            if handler is None:
                raise
            outer, self.state.handling = self.state.handling, error
            try:
                self._run_all(handler)
            finally:
                self.state.handling = outer
        finally:
            self.state.names = outer_names

    def _handler(self, block: nodes.Block, error: OracleError) -> tuple[nodes.Node, ...] | None:
        for names, body in block.handlers:
            if any(name == "OTHERS" or _HANDLED.get(name) == error.code for name in names):
                return body
        return None

    def _declare(self, variable: nodes.Variable) -> None:
        self.state.names[variable.name] = self.state.new_value(variable.type)
        if variable.value is not None:
            self._store(self.state.names[variable.name], variable.value)
        if variable.constant:
            self.state.constants.add(variable.name)

    def _run_all(self, body: Sequence[nodes.Node]) -> None:
        for node in body:
            if self.state.session.is_interrupted():
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
            case nodes.OpenFor():
                self._open_for(node)
            case nodes.ExecuteImmediate():
                self._execute_immediate(node)
            case nodes.CallProcedure():
                call_procedure(self.state, node)
            case nodes.Block():
                self._run_block(node)
            case nodes.Raise():
                if self.state.handling is None:
                    raise self.state.error(
                        node.pos,
                        367,
                        "a RAISE statement with no exception name must be inside an exception handler",
                    )
                raise self.state.handling
            case nodes.Return():
                raise _Leave("RETURN")

    def _for(self, node: nodes.ForRange) -> None:
        low, high = self._integer(node.low), self._integer(node.high)
        span = range(low, high + 1)
        outer = dict(self.state.names)
        position = self.state.new_value(NUMBER)
        self.state.names[node.name] = position
        self.state.constants.add(node.name)
        try:
            for value in reversed(span) if node.reverse else span:
                self.state.values[position] = numbers.encode(value)
                if not self._iterate(node.body):
                    break
        finally:
            self.state.names = outer
            self.state.constants.discard(node.name)

    def _integer(self, node: ast.Expr) -> int:
        value, _ = evaluate(self.state, node, "number")
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
        if target not in self.state.names:
            raise self.state.error(pos, 201, f"identifier '{target}' must be declared")
        if target in self.state.constants:
            raise self.state.error(
                pos, 363, f"expression '{target}' cannot be used as an assignment target"
            )
        return self.state.names[target]

    def _store(self, position: int, node: ast.Expr) -> None:
        kind = self.state.types[position]
        if kind is CURSOR:
            self.state.values[position] = self.state.values[self._cursor(node)]
            return
        value, _ = evaluate(self.state, node, kind.family)
        put(self.state, position, value)

    def _cursor(self, node: ast.Expr) -> int:
        """The variable or bind that an expression names, if it is a cursor's."""
        position = None
        if isinstance(node, ast.Bind):
            position = node.index
        elif isinstance(node, ast.Column) and len(node.name) == 1:
            position = self.state.names.get(node.name[0])
        if position is None or self.state.types[position] is not CURSOR:
            raise self.state.error(node.pos, 382, "expression is of wrong type")
        return position

    def _test(self, node: ast.Expr) -> bool:
        value, _ = evaluate(self.state, node, "bool")
        return bool(value == b"\x01")

    # --- SQL ---------------------------------------------------------------------------------------------------------

    def _sql(self, node: nodes.Sql) -> None:
        session = self.state.session
        if node.kind == "OTHER":
            run_control(session, node.node)
            return
        compiling = block_compilation(self.state)
        if isinstance(node.node, ast.Query):
            self._into(
                with_outputs(compile_select(compiling, node.node)),
                self.state.values,
                node.into,
                node.pos,
            )
            return
        plan = compile_change(compiling, node.node)
        self._change(plan, self.state.values)

    def _change(self, plan: DmlPlan, values: Sequence[Value]) -> None:
        session = self.state.session
        with session.database.store.lock:
            session.enter(session.database.store.writer.context)
            change = ChangeRunner(session, plan).run(values)
        self.state.row_count = change.count
        if plan.returning is not None:
            if len(change.returned) > 1:
                raise ora(1422)
            for at, position in enumerate(plan.return_positions):
                if change.returned:
                    put(self.state, position, change.returned[0][at])

    def _into(
        self, plan: Plan, values: Sequence[Value], into: Sequence[str | ast.Bind], pos: int
    ) -> None:
        if len(into) != len(plan.columns):
            raise ora(913 if len(into) < len(plan.columns) else 947)
        rows = open_query(self.state.session, plan, values, metas(plan.columns))
        rows.keep_contents()
        try:
            found = rows.fetch(2)
        finally:
            rows.close()
        self.state.row_count = len(found)
        if not found:
            raise ora(1403)
        if len(found) > 1:
            raise ora(1422)
        for target, value, column in zip(into, found[0], plan.columns, strict=True):
            position = self._target(target, pos)
            put(
                self.state,
                position,
                self._converted(value, column.type, self.state.types[position]),
            )

    def _converted(self, value: Value, source: SqlType, target: SqlType) -> Value:
        if value is None or source.family == target.family:
            return value
        position = self.state.new_value(source)
        self.state.values[position] = value
        self.state.names["$value"] = position
        converted, _ = evaluate(self.state, ast.Column(("$value",)), target.family)
        del self.state.names["$value"]
        result: Value = converted
        return result

    def _open_for(self, node: nodes.OpenFor) -> None:
        session = self.state.session
        position = self._target(node.cursor, node.pos)
        if self.state.types[position] is not CURSOR:
            raise self.state.error(node.pos, 382, "expression is of wrong type")
        if isinstance(node.query, ast.Query):
            plan = with_outputs(compile_select(block_compilation(self.state), node.query))
            rows: ResultRows = open_query(session, plan, self.state.values, metas(plan.columns))
        else:
            outcome = self._run_text(node.query, node.using)
            if outcome.rows is None:
                raise OracleError(6539, "target of OPEN must be a query")
            rows = outcome.rows
        self.state.values[position] = session.keep_cursor(rows)

    def _run_text(self, text: ast.Expr, using: Sequence[ast.Expr]) -> Outcome:
        """Run a statement that an expression gives, with values of others as its binds."""
        sql, _ = evaluate(self.state, text, "text")
        if sql is None:
            raise OracleError(6535, "statement string in EXECUTE IMMEDIATE is NULL or 0 length")
        values, bind_metas = [], []
        for expr in using:
            value, kind = evaluate(self.state, expr)
            values.append(value)
            meta = kind.meta("")
            bind_metas.append(BindMeta(meta.type, max(meta.size, 1), meta.charset_form))
        session = self.state.session
        statement = session.parse(sql.decode())
        return session.execute(statement, [values] if values else (), bind_metas=bind_metas)

    def _execute_immediate(self, node: nodes.ExecuteImmediate) -> None:
        outcome = self._run_text(node.text, node.using)
        self.state.row_count = outcome.row_count
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
                self.state.session.read_lob(value)[1]
                if value and column.type in (OraType.CLOB, OraType.BLOB)
                else value
            )
            put(
                self.state,
                position,
                self._converted(content, SqlType(column.type), self.state.types[position]),
            )


def _collect_targets(body: Sequence[nodes.Node], found: set[int]) -> None:
    for node in body:
        targets: Sequence[object] = ()
        match node:
            case nodes.Assign():
                targets = (node.target,)
            case nodes.OpenFor():
                targets = (node.cursor,)
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
