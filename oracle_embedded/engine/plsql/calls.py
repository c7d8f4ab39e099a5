"""How are routines called: which of several, with which arguments, and what comes back?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from oracle_embedded.api import OracleError
from oracle_embedded.engine.compile.conversions import IMPLICIT
from oracle_embedded.engine.datatypes import types
from oracle_embedded.engine.datatypes.types import CURSOR, SqlType
from oracle_embedded.engine.plsql.composites import PlType, TableType, copied, initial, listed
from oracle_embedded.engine.plsql.declaring import declare, resolve_type
from oracle_embedded.engine.plsql.state import Cell, Closure, Frame, Overloads
from oracle_embedded.engine.plsql.values import Found, assign, coerce, evaluate, look
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql import plsql_nodes as nodes

Given = dict[str, ast.Expr]
_LOOSE = {"number", "text", "date", "timestamp", "tz", "ltz", "float", "double", "clob", "raw"}
_SCALARS = _LOOSE | {"blob", "bool", "ids", "iym", "rowid"}


def call(
    frame: Frame, node: ast.Call, overloads: Overloads, *, as_procedure: bool = False
) -> Found:
    """Call a routine; what a procedure gives means nothing.

    Raises:
        OracleError: PLS-00306 for arguments that no routine of this name takes, PLS-00222 for a
            procedure in an expression.
    """
    fitting = []
    for closure in overloads.routines:
        if as_procedure is (closure.routine.returns is not None):
            continue
        given = _matched(closure.routine, node)
        if given is not None:
            fitting.append((closure, given))
    if not fitting:
        name = node.name[-1]
        if not as_procedure and all(item.routine.returns is None for item in overloads.routines):
            raise frame.error(node.pos, 222, f"no function with name '{name}' exists in this scope")
        if as_procedure and all(item.routine.returns is not None for item in overloads.routines):
            raise frame.error(node.pos, 221, f"'{name}' is not a procedure or is undefined")
        raise wrong_arguments(frame, node.pos, name)
    closure, given = fitting[0] if len(fitting) == 1 else _best(frame, fitting)
    return _run(frame, closure, given)


def wrong_arguments(frame: Frame, pos: int, name: str) -> OracleError:
    """PLS-00306."""
    return frame.error(pos, 306, f"wrong number or types of arguments in call to '{name}'")


def _matched(routine: nodes.Routine, node: ast.Call) -> Given | None:
    """Arguments by parameter; None if they are too many, too few or of other names."""
    names = [item.name for item in routine.parameters]
    if len(node.args) > len(names):
        return None
    given: Given = dict(zip(names, node.args, strict=False))
    for name, value in node.named:
        if name not in names or name in given:
            return None
        given[name] = value
    if any(item.name not in given and item.default is None for item in routine.parameters):
        return None
    return given


def _best(frame: Frame, fitting: Sequence[tuple[Closure, Given]]) -> tuple[Closure, Given]:
    """The routine whose parameters are closest to the arguments."""

    def distance(one: tuple[Closure, Given]) -> int:
        closure, given = one
        inner = frame.inner(closure.text, closure.names)
        total = 0
        for item in closure.routine.parameters:
            if item.name in given:
                kind = _type_of(frame, given[item.name])
                total += _distance(kind, resolve_type(inner, item.type))
        return total

    return min(fitting, key=distance)


def _type_of(frame: Frame, node: ast.Expr) -> PlType:
    found = look(frame, node)
    return found[1] if found is not None else evaluate(frame, node)[1]


def _distance(kind: PlType, wanted: PlType) -> int:
    if kind is wanted or kind == wanted:
        return 0
    if kind is types.NULL:
        return 1
    if isinstance(kind, SqlType) and isinstance(wanted, SqlType):
        if kind.family == wanted.family:
            return 1
        return 3 if kind.family in _LOOSE and wanted.family in _LOOSE else 50
    if type(kind) is type(wanted):
        return 10
    return 100


# --- running --------------------------------------------------------------------------------------


def _run(frame: Frame, closure: Closure, given: Given) -> Found:
    routine = closure.routine
    if routine.block is None:
        raise OracleError(4067, f'not executed, package body "{closure.place}" does not exist')
    names = dict(closure.names)
    inner = frame.inner(closure.text, names)
    outs: list[tuple[nodes.Parameter, ast.Expr]] = []
    cells: dict[str, Cell] = {}
    for item in routine.parameters:
        kind = resolve_type(inner, item.type)
        cell = Cell(kind, initial(kind), constant=not item.is_out)
        argument = given.get(item.name)
        if isinstance(argument, ast.Bind):
            bind = frame.binds[argument.index]
            if not _takes(bind, item, kind):
                raise wrong_arguments(frame, argument.pos, routine.name)
            if not _matches_rows(bind.type, kind):
                text = "array bind type must match PL/SQL table row type"
                raise frame.error(argument.pos, 418, text)
        if argument is not None and item.is_out:
            outs.append((item, argument))
        if item.is_in or kind == CURSOR:
            source, node_given = (
                (frame, argument) if argument is not None else (inner, item.default)
            )
            assert node_given is not None
            value_given = evaluate(source, node_given, kind)[0]
            cell.value = copied(value_given) if item.is_out else value_given
        cells[item.name] = cell
    names.update(cells)
    with rights_of(frame.session, closure):
        if routine.block.declarations:
            declare(inner, routine.block.declarations, like=closure)
        returns = None if routine.returns is None else resolve_type(inner, routine.returns)
        if routine.is_pipelined and isinstance(returns, TableType):
            inner.piped = (returns.element, [])
        returned = frame.services.execute(inner, closure)
        if inner.piped is not None and returns is not None:
            returned = listed(inner.piped[1]), returns
        elif returns is not None:
            if returned is None:
                raise OracleError(6503, "PL/SQL: Function returned without value")
            returned = coerce(inner, *returned, returns), returns
    for item, argument in outs:
        assign(frame, argument, (cells[item.name].value, cells[item.name].type))
    return returned or (None, types.NULL)


def _takes(bind: Cell, parameter: nodes.Parameter, kind: PlType) -> bool:
    """May a bind of the client's type be passed as this parameter? That is what a compiler says
    before the block runs, whatever the value is: PL/SQL makes no BLOB of text, nor a NUMBER of
    RAW."""
    if not isinstance(bind.type, SqlType) or not isinstance(kind, SqlType):
        return True
    given, wanted = bind.type.family, kind.family
    if given == wanted or not {given, wanted} <= _SCALARS:
        return True
    if "bool" in (given, wanted):
        return False
    goes_in = (given, wanted) in IMPLICIT and (given, wanted) != ("text", "blob")
    return (goes_in or not parameter.is_in) and (
        not parameter.is_out or (wanted, given) in IMPLICIT
    )


def _matches_rows(bind: PlType, kind: PlType) -> bool:
    """Has an array of the client the type of a collection's elements?"""
    if not isinstance(bind, TableType) or not isinstance(kind, TableType):
        return True
    if not isinstance(bind.element, SqlType) or not isinstance(kind.element, SqlType):
        return True
    families = {bind.element.family, kind.element.family}
    return len(families) == 1 or not families & {"text", "number", "raw"}


@contextmanager
def rights_of(session: SessionState, closure: Closure) -> Iterator[None]:
    """Let a stored routine work with the rights and in the schema of its owner."""
    if closure.owner is None:
        yield
        return
    before = session.rights, session.schema
    session.rights, session.schema = closure.owner, closure.schema
    try:
        yield
    finally:
        session.rights, session.schema = before
