"""What do the declarations of PL/SQL make?"""

from __future__ import annotations

from collections.abc import Sequence

from oracle_embedded.engine.compile.queries import compile_select
from oracle_embedded.engine.compile.scopes import type_from_meta
from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.plsql.compile import Compiled
from oracle_embedded.engine.plsql.composites import (
    PlType,
    RecordType,
    TableType,
    initial,
)
from oracle_embedded.engine.plsql.objects import pl_type
from oracle_embedded.engine.plsql.state import (
    Cell,
    Closure,
    CursorPlan,
    DeclaredException,
    Frame,
    Overloads,
)
from oracle_embedded.engine.plsql.values import evaluate, look, named
from oracle_embedded.engine.run.environment import compilation
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql import plsql_nodes as nodes
from oracle_embedded.engine.sql.queries import parse_query
from oracle_embedded.engine.storage.catalog import TableDef, ViewDef


def declare(
    frame: Frame, declarations: Sequence[nodes.Declaration], *, like: Closure | None = None
) -> None:
    """Make what a block, a routine or a package declares; ``like`` tells of routines whose they
    are."""
    for item in declarations:
        match item:
            case nodes.Variable():
                frame.names[item.name] = variable(frame, item)
            case nodes.RecordSpec():
                fields = tuple((one.name, resolve_type(frame, one.type)) for one in item.fields)
                frame.names[item.name] = RecordType(item.name, fields)
            case nodes.TableSpec():
                element = resolve_type(frame, item.element)
                frame.names[item.name] = TableType(item.name, element, item.index, item.limit)
            case nodes.SubtypeSpec():
                frame.names[item.name] = resolve_type(frame, item.type)
            case nodes.CursorSpec():
                frame.names[item.name] = CursorPlan(item, frame.names)
            case nodes.ExceptionSpec():
                frame.names[item.name] = DeclaredException(item.name)
            case nodes.ExceptionInit():
                declared = frame.names.get(item.name)
                if isinstance(declared, DeclaredException):
                    declared.code = item.code
            case nodes.Routine():
                _declare_routine(frame, item, like)


def _declare_routine(frame: Frame, item: nodes.Routine, like: Closure | None) -> None:
    held = frame.names.get(item.name)
    overloads = held if isinstance(held, Overloads) else Overloads()
    if overloads is not held:
        frame.names[item.name] = overloads
    # A body replaces what announced it.
    overloads.routines[:] = [
        one
        for one in overloads.routines
        if one.routine.block is not None
        or _signature(one.routine.parameters) != _signature(item.parameters)
    ]
    owner, schema, place = (like.owner, like.schema, f"{like.place}.{item.name}") if like else (None, "", "")  # fmt: skip
    overloads.routines.append(Closure(item, frame.names, frame.text, owner, schema, place))


def _signature(parameters: Sequence[nodes.Parameter]) -> tuple[str, ...]:
    return tuple(item.name for item in parameters)


def variable(frame: Frame, item: nodes.Variable) -> Cell:
    """A new variable with its first value."""
    kind = resolve_type(frame, item.type)
    cell = Cell(kind, initial(kind), item.constant)
    if item.value is not None:
        cell.value = evaluate(frame, item.value, kind)[0]
    return cell


def resolve_type(frame: Frame, spec: nodes.TypeSpec) -> PlType:
    """The type that a declaration names.

    Raises:
        OracleError: PLS-00201 where there is none.
    """
    if isinstance(spec, SqlType):
        return spec
    if spec.attribute == "ROWTYPE":
        return _row_type(frame, spec)
    if spec.attribute == "TYPE":
        found = look(frame, ast.Column(spec.name, pos=spec.pos))
        if found is not None:
            return found[1]
        kind = column_type(frame, spec.name)
        if kind is not None:
            return kind
        raise frame.undeclared(spec.pos, spec.name)
    held, rest = named(frame, spec.name)
    if not rest and isinstance(held, SqlType | RecordType | TableType):
        return held
    raise frame.undeclared(spec.pos, spec.name)


def column_type(frame: Frame, name: ast.Name) -> PlType | None:
    """The type of ``[owner.]table.column``."""
    if len(name) < 2:
        return None
    fields = dict(_fields_of(frame, name[:-1]) or ())
    return fields.get(name[-1])


def _row_type(frame: Frame, spec: nodes.TypeName) -> RecordType:
    held, rest = named(frame, spec.name)
    if isinstance(held, CursorPlan) and not rest:
        assert held.spec.query is not None
        inner = frame.inner(frame.text, dict(held.names))
        for parameter in held.spec.parameters:
            inner.names[parameter.name] = Cell(resolve_type(inner, parameter.type))
        compiled = Compiled(inner, look, is_sql=True)
        plan = compile_select(compiled.state, held.spec.query)
        return RecordType("", tuple((column.name, pl_type(column.type)) for column in plan.columns))
    fields = _fields_of(frame, spec.name)
    if fields is None:
        raise frame.undeclared(spec.pos, spec.name)
    return RecordType(f"{spec.name[-1]}%ROWTYPE", fields)


def _fields_of(frame: Frame, name: ast.Name) -> tuple[tuple[str, PlType], ...] | None:
    """Names and types of the columns of a table or view."""
    session = frame.session
    owner = name[0] if len(name) > 1 else session.schema
    found = session.database.find(session, owner, name[-1])
    if isinstance(found, TableDef):
        return tuple(
            (column.name, pl_type(column.type)) for column in found.named if not column.is_invisible
        )
    if isinstance(found, ViewDef):
        plan = compile_select(compilation(session, None), parse_query(found.text))
        names = found.columns or tuple(column.name for column in plan.columns)
        return tuple(
            (name, pl_type(column.type)) for name, column in zip(names, plan.columns, strict=True)
        )
    virtual = session.database.find_virtual(session, name[-1], None) if len(name) == 1 else None
    if virtual is None:
        return None
    return tuple((meta.name, type_from_meta(meta)) for meta in virtual[0].columns)
