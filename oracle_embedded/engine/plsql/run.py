"""How do blocks and routines of PL/SQL run?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import cast

from oracle_embedded.api import (
    BindMeta,
    OracleError,
    OraType,
    OutBind,
    Outcome,
    StatementKind,
    Value,
)
from oracle_embedded.engine.compile.dml import DmlPlan, compile_change
from oracle_embedded.engine.datatypes import numbers
from oracle_embedded.engine.datatypes.types import CURSOR, NUMBER, SqlType, bind_type
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.plsql import cursors, dynamic
from oracle_embedded.engine.plsql.calls import call
from oracle_embedded.engine.plsql.compile import Compiled
from oracle_embedded.engine.plsql.composites import (
    PlValue,
    RecordType,
    Table,
    TableType,
    copied,
    initial,
    listed,
)
from oracle_embedded.engine.plsql.declaring import declare
from oracle_embedded.engine.plsql.objects import image_of, pl_type, sql_type, value_of
from oracle_embedded.engine.plsql.packages import call_packaged
from oracle_embedded.engine.plsql.pickler import SPECIAL_FUNCTIONS
from oracle_embedded.engine.plsql.programs import find_stored
from oracle_embedded.engine.plsql.state import (
    Cell,
    Closure,
    DeclaredException,
    Frame,
    KeptLob,
    Overloads,
    RaisedError,
    Services,
)
from oracle_embedded.engine.plsql.values import (
    Found,
    assign,
    collection_of,
    evaluate,
    integer,
    key_of,
    look,
    named,
    test,
    type_of_target,
)
from oracle_embedded.engine.run.contracts import LobPlace, SessionState
from oracle_embedded.engine.run.control import run_control
from oracle_embedded.engine.run.dml_run import ChangeRunner
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql import plsql_nodes as nodes
from oracle_embedded.engine.storage.transactions import Transaction

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
    "CURSOR_ALREADY_OPEN": 6511,
    "CASE_NOT_FOUND": 6592,
    "COLLECTION_IS_NULL": 6531,
    "SUBSCRIPT_BEYOND_COUNT": 6533,
    "SUBSCRIPT_OUTSIDE_LIMIT": 6532,
    "NOT_LOGGED_ON": 1012,
    "SYS_INVALID_ROWID": 1410,
}


@dataclass(slots=True)
class _Leave(Exception):  # noqa: N818 - control flow of EXIT, CONTINUE and RETURN
    how: str
    label: str = ""
    value: Found | None = None


def new_frame(session: SessionState, text: str, binds: list[Cell]) -> Frame:
    """A frame in which nothing is declared yet."""
    return Frame(session, text, binds, SERVICES)


def run_block(
    session: SessionState,
    sql: str,
    block: nodes.Block,
    binds: Sequence[Sequence[Value]],
    bind_metas: Sequence[BindMeta],
) -> Outcome:
    """Run an anonymous block once per row of binds; assigned binds come back as OUT values."""
    outcome = Outcome(StatementKind.PLSQL)
    count = len(block.bind_names)
    declared = list(bind_metas) or [BindMeta(OraType.VARCHAR, 32767, 1) for _ in range(count)]
    if len(declared) < count:
        raise ora(1008)
    targets: set[int] = set()
    _collect_targets(block.body, targets)
    for _, handler in block.handlers:
        _collect_targets(handler, targets)
    outs: dict[int, OutBind] = {}
    for number, row in enumerate(binds or [()]):
        if len(row) < count:
            raise ora(1008)
        cells = [_bind_cell(value, meta) for value, meta in zip(row, declared, strict=False)]
        frame = new_frame(session, sql, cells)
        try:
            _run_as_statement(frame, block)
        except OracleError as error:
            error.row_count = number
            raise
        for position in sorted(targets | frame.assigned_binds):
            out = outs.setdefault(
                position,
                OutBind(position, declared[position], also_in=position in frame.read_binds),
            )
            out.values.append([_bind_value(cells[position])])
    outcome.out_binds = [outs[position] for position in sorted(outs)]
    outcome.results, session.results[:] = list(session.results), []
    return outcome


def _bind_cell(value: Value, meta: BindMeta) -> Cell:
    kind = pl_type(bind_type(meta))
    if not meta.is_array:
        return Cell(kind, value_of(value, kind))
    values = cast("Sequence[Value]", value or ())
    return Cell(TableType("", kind, "NUMBER"), listed(values))


def _bind_value(cell: Cell) -> Value:
    """What goes back to the client; the elements of an array in the order of their indexes."""
    if sql_type(cell.type) is not None:
        return image_of(cell.value, cell.type)
    if isinstance(cell.value, Table):
        return cast("Value", [cell.value.elements[key] for key in cell.value.keys])
    return cast("Value", cell.value)


def _run_as_statement(frame: Frame, block: nodes.Block) -> None:
    """A block is one statement: an error undoes what it did in the transaction that was open when
    it began."""
    session = frame.session
    database = session.database
    with database.store.lock:
        transaction, seq = session.transaction, database.transactions.seq
    before = session.rights, session.schema
    try:
        run_inner(frame, block)
    except _Leave:
        return
    except OracleError as error:
        with database.store.lock:
            current = session.transaction
            if current is not None and (transaction is None or current is transaction):
                database.transactions.undo_to(current, seq)
        _add_place(error, "line 1")
        raise
    finally:
        session.rights, session.schema = before


def _add_place(error: OracleError, place: str) -> None:
    """Note on which way an error came out."""
    if error.code != 6550 and "ORA-06512: at line" not in error.text:
        error.text += f"\nORA-06512: at {place}"
        error.args = (error.code, error.text, error.offset)


def run_routine(frame: Frame, closure: Closure) -> Found | None:
    """Run the body of a routine; gives what RETURN says."""
    block = closure.routine.block
    assert block is not None
    is_autonomous = any(isinstance(item, nodes.Autonomous) for item in block.declarations)
    try:
        if is_autonomous:
            with autonomous(frame.session):
                frame.in_query = False
                _run_body(frame, block)
        else:
            _run_body(frame, block)
    except _Leave as leave:
        return leave.value
    except OracleError as error:
        if closure.place:
            line = frame.text.count("\n", 0, closure.routine.pos) + 1
            _add_place(error, f'"{closure.place}", line {line}')
        raise
    return None


@contextmanager
def autonomous(session: SessionState) -> Iterator[None]:
    """Work in a transaction of its own, which has to be ended inside.

    Raises:
        OracleError: ORA-06519 if it is still open at the end; it is rolled back then.
    """
    outer, session.transaction = session.transaction, None
    read_only, session.read_only_scn = session.read_only_scn, None
    try:
        yield
        left = cast("Transaction | None", session.transaction)
        if left is not None and left.begun:
            raise OracleError(6519, "active autonomous transaction detected and rolled back")
    finally:
        session.rollback()
        session.transaction, session.read_only_scn = outer, read_only


def run_inner(frame: Frame, block: nodes.Block) -> None:
    """Run a block inside of what its frame sees."""
    outer = frame.names
    frame.names = dict(outer)
    try:
        _guarded(frame, block, declares=True)
    finally:
        frame.names = outer


def _run_body(frame: Frame, block: nodes.Block) -> None:
    _guarded(frame, block, declares=False)


def _guarded(frame: Frame, block: nodes.Block, *, declares: bool) -> None:
    """Declarations are not covered by the block's own handlers."""
    if declares:
        declare(frame, block.declarations)
        if any(isinstance(item, nodes.Autonomous) for item in block.declarations):
            with autonomous(frame.session):
                _handled(frame, block)
            return
    _handled(frame, block)


def _handled(frame: Frame, block: nodes.Block) -> None:
    try:
        _run_all(frame, block.body)
    except OracleError as error:
        handler = _handler(frame, block, error)
        if handler is None:
            raise
        outer, frame.handling = frame.handling, error
        try:
            _run_all(frame, handler)
        finally:
            frame.handling = outer


def _handler(frame: Frame, block: nodes.Block, error: OracleError) -> tuple[nodes.Node, ...] | None:
    if error.code == 1013:
        return None
    for names, body in block.handlers:
        if any(_catches(frame, name, error) for name in names):
            return body
    return None


def _catches(frame: Frame, name: str, error: OracleError) -> bool:
    if name == "OTHERS":
        return True
    declared = frame.names.get(name)
    if isinstance(declared, DeclaredException):
        if isinstance(error, RaisedError):
            return error.declared is declared
        return declared.code == error.code
    return _HANDLED.get(name) == error.code


# --- statements -----------------------------------------------------------------------------------


def _run_all(frame: Frame, body: Sequence[nodes.Node]) -> None:
    for node in body:
        if frame.session.is_interrupted():
            raise ora(1013)
        _run_one(frame, node)


def _run_one(frame: Frame, node: nodes.Node) -> None:
    match node:
        case nodes.Assign():
            _assign(frame, node)
        case nodes.If():
            _if(frame, node)
        case nodes.ForRange():
            _for(frame, node)
        case nodes.ForRows():
            _for_rows(frame, node)
        case nodes.ForAll():
            _for_all(frame, node)
        case nodes.Loop():
            _loop(frame, node)
        case nodes.Exit():
            if node.condition is None or test(frame, node.condition):
                raise _Leave("CONTINUE" if node.again else "EXIT", node.label)
        case nodes.Sql():
            _sql(frame, node)
        case nodes.OpenCursor():
            if cursors.open_cursor(frame, node.cursor) is not None:
                raise OracleError(6511, "PL/SQL: cursor already open")
            opened = cursors.open_declared(frame, node.cursor, node.args)
            cursors.keep(frame, node.cursor, opened)
        case nodes.OpenFor():
            cursors.cell_of(frame, node.cursor)
            if isinstance(node.query, ast.Query):
                opened = cursors.open_text(frame, node.query)
            else:
                opened = dynamic.open_query_text(frame, node.query, node.using)
            cursors.keep(frame, node.cursor, opened)
        case nodes.Fetch():
            _fetch(frame, node)
        case nodes.Close():
            cursors.close(frame, node.cursor)
        case nodes.ExecuteImmediate():
            dynamic.execute_immediate(frame, node)
        case nodes.CallProcedure():
            _call_procedure(frame, node)
        case nodes.Block():
            run_inner(frame, node)
        case nodes.Raise():
            _raise(frame, node)
        case nodes.Return():
            value = evaluate(frame, node.value) if node.value is not None else None
            raise _Leave("RETURN", value=value)
        case nodes.PipeRow():
            _pipe(frame, node)


def _pipe(frame: Frame, node: nodes.PipeRow) -> None:
    if frame.piped is None:
        raise frame.error(node.pos, 629, "PIPE statement cannot be used in non-pipelined functions")
    kind, rows = frame.piped
    rows.append(copied(evaluate(frame, node.value, kind)[0]))


def _assign(frame: Frame, node: nodes.Assign) -> None:
    kind = type_of_target(frame, node.target)
    scalar = isinstance(kind, SqlType) and kind != CURSOR
    if isinstance(node.target, ast.Bind) and isinstance(kind, SqlType):
        found = look(frame, node.value)
        if found is None:
            found = evaluate(frame, node.value, kind)
    else:
        found = evaluate(frame, node.value, kind if scalar else None)
    assign(frame, node.target, found)


def _if(frame: Frame, node: nodes.If) -> None:
    for condition, body in node.branches:
        if condition is None or test(frame, condition):
            _run_all(frame, body)
            return
    if node.is_case:
        raise OracleError(6592, "CASE not found while executing CASE statement")


def _for(frame: Frame, node: nodes.ForRange) -> None:
    low, high = integer(frame, node.low), integer(frame, node.high)
    span = range(low, high + 1)
    outer = frame.names
    frame.names = dict(outer)
    try:
        for value in reversed(span) if node.reverse else span:
            frame.names[node.name] = Cell(NUMBER, numbers.encode(value), constant=True)
            if not _iterate(frame, node.body, node.label):
                break
    finally:
        frame.names = outer


def _for_rows(frame: Frame, node: nodes.ForRows) -> None:
    if node.query is not None:
        opened = cursors.open_text(frame, node.query)
    else:
        opened = cursors.open_declared(frame, ast.Column(node.cursor, pos=node.pos), node.args)
    outer = frame.names
    frame.names = dict(outer)
    try:
        for row in cursors.all_rows(frame, opened):
            value, kind = cursors.record_of(opened, row)
            frame.names[node.name] = Cell(kind, value)
            if not _iterate(frame, node.body, node.label):
                break
    finally:
        opened.rows.close()
        frame.names = outer


def _for_all(frame: Frame, node: nodes.ForAll) -> None:
    if node.is_of_indices:
        held, _ = look(frame, node.low) or (None, None)
        keys = [int(key) for key in held.keys] if isinstance(held, Table) else []
    else:
        keys = list(range(integer(frame, node.low), integer(frame, node.high) + 1))
    total = 0
    outer = frame.names
    frame.names = dict(outer)
    try:
        for value in keys:
            frame.names[node.name] = Cell(NUMBER, numbers.encode(value), constant=True)
            _sql(frame, node.statement)
            total += frame.row_count or 0
    finally:
        frame.names = outer
    frame.row_count = total


def _loop(frame: Frame, node: nodes.Loop) -> None:
    for _ in range(_ITERATIONS_MAX):
        if node.condition is not None and not test(frame, node.condition):
            return
        if not _iterate(frame, node.body, node.label):
            return


def _iterate(frame: Frame, body: Sequence[nodes.Node], label: str) -> bool:
    try:
        _run_all(frame, body)
    except _Leave as leave:
        if leave.how == "RETURN" or (leave.label and leave.label != label):
            raise
        return leave.how == "CONTINUE"
    return True


def _raise(frame: Frame, node: nodes.Raise) -> None:
    if not node.name:
        if frame.handling is None:
            raise frame.error(
                node.pos,
                367,
                "a RAISE statement with no exception name must be inside an exception handler",
            )
        raise frame.handling
    held, rest = named(frame, node.name)
    if isinstance(held, DeclaredException) and not rest:
        if held.code:
            raise OracleError(held.code, "")
        raise RaisedError(held)
    code = _HANDLED.get(node.name[-1])
    if code is None:
        raise frame.undeclared(node.pos, node.name)
    raise ora(code) if code in (1403, 1422, 1476, 1722) else OracleError(code, "PL/SQL error")


def _fetch(frame: Frame, node: nodes.Fetch) -> None:
    opened = cursors.need_open(frame, node.cursor)
    if not node.bulk:
        rows = cursors.fetch_rows(frame, opened, 1)
        if rows:
            cursors.into_targets(frame, opened, node.into, rows[0])
        return
    if node.limit is None:
        rows = cursors.all_rows(frame, opened)
    else:
        limit = integer(frame, node.limit)
        rows = cursors.fetch_rows(frame, opened, limit)
        opened.found = len(rows) == limit
    cursors.into_collections(frame, opened, node.into, rows)


# --- calls ----------------------------------------------------------------------------------------


def _call_procedure(frame: Frame, node: nodes.CallProcedure) -> None:
    called = node.call
    if isinstance(called, ast.Column):
        called = ast.Call(called.name, (), pos=called.pos)
    if isinstance(called, ast.Call):
        held, rest = named(frame, called.name)
        if isinstance(held, Overloads) and not rest:
            call(frame, called, held, as_procedure=True)
            return
        if isinstance(held, Cell) and rest:
            operand = ast.Column(called.name[:-1], pos=called.pos)
            _change_collection(frame, operand, called.name[-1], called.args, called.pos)
            return
        call_packaged(frame, called)
        return
    if isinstance(called, ast.Member):
        _change_collection(frame, called.operand, called.name, (), called.pos)
        return
    if isinstance(called, ast.Element) and isinstance(called.operand, ast.Member):
        inner = called.operand
        _change_collection(frame, inner.operand, inner.name, called.args, called.pos)
        return
    raise frame.error(called.pos, 221, "not a procedure or is undefined")


def _change_collection(
    frame: Frame, operand: ast.Expr, method: str, args: Sequence[ast.Expr], pos: int
) -> None:
    """``EXTEND``, ``DELETE`` and ``TRIM``."""
    table, kind = collection_of(frame, operand)
    if table is None:
        raise OracleError(6531, "Reference to uninitialized collection")
    match method:
        case "DELETE":
            keys = [key_of(frame, kind, item) for item in args]
            if not keys:
                table.remove(table.keys)
            elif len(keys) == 1:
                table.remove(keys)
            else:
                table.remove([key for key in table.keys if keys[0] <= key <= keys[1]])  # type: ignore[operator]
        case "EXTEND" if not kind.index:
            value: PlValue = initial(kind.element)
            if len(args) == 2:
                value = table.elements[integer(frame, args[1])]
            for _ in range(integer(frame, args[0]) if args else 1):
                last = int(table.keys[-1]) if table.keys else 0
                if kind.limit is not None and last >= kind.limit:
                    raise OracleError(6532, "Subscript outside of limit")
                table.put(last + 1, value)
        case "TRIM" if not kind.index:
            count = integer(frame, args[0]) if args else 1
            if count > len(table.keys):
                raise OracleError(6533, "Subscript beyond count")
            table.remove(table.keys[len(table.keys) - count :])
        case _:
            raise frame.error(pos, 302, f"component '{method}' must be declared")


# --- SQL ------------------------------------------------------------------------------------------


def _sql(frame: Frame, node: nodes.Sql) -> None:
    session = frame.session
    if node.kind == "OTHER":
        run_control(session, node.node)
        return
    if isinstance(node.node, ast.Query):
        _select_into(frame, node, node.node)
        return
    if frame.in_query:
        raise OracleError(14551, "cannot perform a DML operation inside a query ")
    compiled = Compiled(frame, look, is_sql=True)
    change = _whole_row(frame, node.node)
    plan = compile_change(compiled.state, change)
    _change(frame, node, plan, compiled.values)


def _whole_row(frame: Frame, change: object) -> object:
    """``INSERT … VALUES record`` as one with a value per field; other changes as they are."""
    if not isinstance(change, ast.Insert) or not change.is_record:
        return change
    operand = change.values[0]
    found = look(frame, operand)
    if found is None or not isinstance(found[1], RecordType) or not isinstance(operand, ast.Column):
        raise frame.error(operand.pos, 382, "expression is of wrong type")
    fields = [name for name, _ in found[1].fields]
    values = tuple(ast.Column((*operand.name, name), pos=operand.pos) for name in fields)
    return replace(change, values=values)


def _change(frame: Frame, node: nodes.Sql, plan: DmlPlan, values: Sequence[Value]) -> None:
    session = frame.session
    with session.database.store.lock:
        session.enter(session.database.store.writer.context)
        change = ChangeRunner(session, plan).run(values)
    frame.row_count = change.count
    returning = getattr(node.node, "returning", None)
    if plan.returning is None or returning is None:
        return
    kinds = [column.type for column in plan.returning.columns]
    returned = [
        _with_lobs(session, plan, row, rid)
        for row, rid in zip(change.returned, change.addresses, strict=True)
    ]
    rows = [list(zip(row, kinds, strict=True)) for row in returned]
    if node.bulk:
        for at, target in enumerate(returning.targets):
            table = listed(row[at][0] for row in rows)
            assign(frame, target, (table, TableType("", kinds[at])))
        return
    if len(rows) > 1:
        raise ora(1422)
    for row in rows:
        for target, found in zip(returning.targets, row, strict=True):
            assign(frame, target, found)


def _with_lobs(
    session: SessionState, plan: DmlPlan, row: Sequence[Value], rid: int
) -> Sequence[Value]:
    """What RETURNING gives of a row, its LOBs so that they can be written."""
    assert plan.returning is not None
    cells = list(row)
    for at, column in plan.returning.locators.items():
        content, kind = cells[at], plan.returning.columns[at].type
        if content is not None:
            place = LobPlace(plan.table, column, rid)
            cells[at] = KeptLob(content, session.keep_lob(kind.ora, content, place))
    return cells


def _select_into(frame: Frame, node: nodes.Sql, query: ast.Query) -> None:
    opened = cursors.open_text(frame, query)
    try:
        rows = (
            cursors.all_rows(frame, opened) if node.bulk else cursors.fetch_rows(frame, opened, 2)
        )
    finally:
        opened.rows.close()
    frame.row_count = len(rows)
    if node.bulk:
        cursors.into_collections(frame, opened, node.into, rows)
        return
    targets = len(node.into)
    if targets > 1 and targets != len(opened.columns):
        raise ora(913 if targets < len(opened.columns) else 947)
    if not rows:
        raise ora(1403)
    if len(rows) > 1:
        frame.row_count = 1
        raise ora(1422)
    cursors.into_targets(frame, opened, node.into, rows[0])


def _collect_targets(body: Sequence[nodes.Node], found: set[int]) -> None:
    """Binds that a block may assign, as its text says."""
    for node in body:
        targets: Sequence[object] = ()
        match node:
            case nodes.Assign():
                targets = (node.target,)
            case nodes.OpenFor() | nodes.OpenCursor():
                targets = (node.cursor,)
            case nodes.Sql():
                targets = node.into
                returning = getattr(node.node, "returning", None)
                if returning is not None:
                    targets = (*targets, *returning.targets)
            case nodes.ExecuteImmediate():
                targets = (*node.into, *(item.value for item in node.using if item.is_out))
            case nodes.Fetch():
                targets = node.into
            case nodes.If():
                for _, branch in node.branches:
                    _collect_targets(branch, found)
            case nodes.ForRange() | nodes.Loop() | nodes.ForRows():
                _collect_targets(node.body, found)
            case nodes.Block():
                _collect_targets(node.body, found)
                for _, branch in node.handlers:
                    _collect_targets(branch, found)
        found.update(target.index for target in targets if isinstance(target, ast.Bind))


SERVICES = Services(find_stored, call, cursors.open_cursor, run_routine, SPECIAL_FUNCTIONS)
"""How the parts of PL/SQL reach each other."""
