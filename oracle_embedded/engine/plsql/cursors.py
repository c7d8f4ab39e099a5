"""How do programs open queries, fetch from them and close them?"""

from __future__ import annotations

from collections.abc import Sequence

from oracle_embedded.api import OracleError, OraType, Value
from oracle_embedded.engine.compile.queries import compile_select
from oracle_embedded.engine.compile.scopes import type_from_meta
from oracle_embedded.engine.datatypes.types import CURSOR
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.plsql.compile import Compiled
from oracle_embedded.engine.plsql.composites import (
    PlType,
    Record,
    RecordType,
    Table,
    TableType,
    listed,
)
from oracle_embedded.engine.plsql.declaring import resolve_type
from oracle_embedded.engine.plsql.state import Cell, CursorPlan, Frame, KeptLob
from oracle_embedded.engine.plsql.values import (
    Found,
    as_composite,
    assign,
    coerce,
    evaluate,
    look,
    named,
    type_of_target,
)
from oracle_embedded.engine.run.contracts import OpenCursor
from oracle_embedded.engine.run.locking import locking_query
from oracle_embedded.engine.run.query_run import ListRows, QueryRows, open_query
from oracle_embedded.engine.run.statement import with_outputs
from oracle_embedded.engine.sql import ast

_BATCH = 500
_LOBS = (OraType.CLOB, OraType.BLOB)
_HANDLE = "\x00handle:"


def open_text(frame: Frame, query: ast.Query) -> OpenCursor:
    """Open a query of a block."""
    compiled = Compiled(frame, look, is_sql=True)
    plan = with_outputs(compile_select(compiled.state, query, tells_places=True))
    rows: QueryRows | ListRows
    if plan.locks:
        rows = locking_query(frame.session, query, plan, compiled.values)
    else:
        rows = open_query(frame.session, plan, compiled.values, plan.shown)
    return OpenCursor(rows, list(rows.columns))


def cell_of(frame: Frame, target: ast.Expr) -> Cell:
    """The cursor variable, or the place of a declared cursor, that an expression names.

    Raises:
        OracleError: PLS-00382 if it is something else.
    """
    if isinstance(target, ast.Bind):
        cell = frame.binds[target.index]
        if cell.type == CURSOR:
            return cell
    if isinstance(target, ast.Column):
        held, rest = named(frame, target.name)
        if isinstance(held, CursorPlan) and not rest:
            place = held.names.setdefault(_HANDLE + held.spec.name, Cell(CURSOR))
            assert isinstance(place, Cell)
            return place
        if isinstance(held, Cell) and not rest and held.type == CURSOR:
            return held
        if held is None:
            raise frame.undeclared(target.pos, target.name)
    raise frame.error(target.pos, 382, "expression is of wrong type")


def open_cursor(frame: Frame, target: ast.Expr) -> OpenCursor | None:
    """The open query behind a cursor; None if it is not open."""
    value = cell_of(frame, target).value
    return frame.session.cursors.get(value) if isinstance(value, bytes) else None


def need_open(frame: Frame, target: ast.Expr) -> OpenCursor:
    """The open query behind a cursor.

    Raises:
        OracleError: ORA-01001.
    """
    opened = open_cursor(frame, target)
    if opened is None:
        raise OracleError(1001, "invalid cursor")
    return opened


def open_declared(frame: Frame, target: ast.Expr, args: Sequence[ast.Expr]) -> OpenCursor:
    """Open a declared cursor with its arguments."""
    held, rest = named(frame, target.name) if isinstance(target, ast.Column) else (None, ())
    if not isinstance(held, CursorPlan) or rest or held.spec.query is None:
        raise frame.error(target.pos, 382, "expression is of wrong type")
    names = dict(held.names)
    inner = frame.inner(frame.text, names)
    inner.binds = frame.binds
    for number, parameter in enumerate(held.spec.parameters):
        kind = resolve_type(frame, parameter.type)
        node = args[number] if number < len(args) else parameter.default
        if node is None:
            raise frame.error(target.pos, 306, "wrong number or types of arguments in call")
        names[parameter.name] = Cell(kind, evaluate(frame, node, kind)[0])
    return open_text(inner, held.spec.query)


def keep(frame: Frame, target: ast.Expr, opened: OpenCursor) -> None:
    """Let a cursor variable hold an open query."""
    if isinstance(target, ast.Bind):
        frame.assigned_binds.add(target.index)
    cell = cell_of(frame, target)
    if isinstance(cell.value, bytes):
        close_handle(frame, cell.value)
    cell.value = frame.session.keep_cursor(opened)


def close_handle(frame: Frame, handle: Value) -> None:
    """Close the query behind a handle, if it is open."""
    opened = frame.session.cursors.pop(handle or b"", None)
    if opened is not None:
        opened.rows.close()


def close(frame: Frame, target: ast.Expr) -> None:
    """CLOSE."""
    need_open(frame, target)
    cell = cell_of(frame, target)
    assert isinstance(cell.value, bytes)
    close_handle(frame, cell.value)
    cell.value = None


def fetch_rows(frame: Frame, opened: OpenCursor, count: int) -> list[Sequence[Found]]:
    """The next rows, each cell with its type."""
    kinds = [type_from_meta(meta) for meta in opened.columns]
    rows: list[Sequence[Found]] = []
    for row in opened.rows.fetch(count):
        cells: list[Found] = []
        for value, kind in zip(row, kinds, strict=True):
            content = value
            if value is not None and kind.ora in _LOBS and not kind.is_xml:
                content = lob_of(frame, value)
            cells.append(as_composite((content, kind)))
        rows.append(cells)
    opened.count += len(rows)
    opened.found = bool(rows)
    return rows


def lob_of(frame: Frame, handle: bytes) -> bytes:
    """The value behind a handle, which is written through it where it is a row's."""
    content = frame.session.read_lob(handle)[1]
    return KeptLob(content, handle) if frame.session.is_kept_lob(handle) else content


def record_of(opened: OpenCursor, row: Sequence[Found]) -> tuple[Record, RecordType]:
    """A row as a record."""
    names = [meta.name for meta in opened.columns]
    fields = tuple((name, kind) for name, (_, kind) in zip(names, row, strict=True))
    return Record({name: value for name, (value, _) in zip(names, row, strict=True)}), RecordType(
        "", fields
    )


def row_as(frame: Frame, opened: OpenCursor, row: Sequence[Found], wanted: PlType) -> Found:
    """A row as a value of a type: a record, or the one column."""
    if isinstance(wanted, RecordType) and not (len(row) == 1 and wanted.is_object):
        record, kind = record_of(opened, row)
        return coerce(frame, record, kind, wanted), wanted
    if len(row) != 1:
        raise ora(947)
    return coerce(frame, *row[0], wanted), wanted


def into_targets(
    frame: Frame, opened: OpenCursor, targets: Sequence[ast.Expr], row: Sequence[Found]
) -> None:
    """Assign one row to the targets of INTO."""
    if len(targets) == 1:
        kind = type_of_target(frame, targets[0])
        if isinstance(kind, RecordType) and not (len(row) == 1 and kind.is_object):
            assign(frame, targets[0], row_as(frame, opened, row, kind))
            return
    if len(targets) != len(row):
        raise ora(913 if len(targets) < len(row) else 947)
    for target, found in zip(targets, row, strict=True):
        assign(frame, target, found)


def into_collections(
    frame: Frame,
    opened: OpenCursor,
    targets: Sequence[ast.Expr],
    rows: Sequence[Sequence[Found]],
) -> None:
    """Assign rows to the collections of BULK COLLECT INTO."""
    kinds = [type_of_target(frame, target) for target in targets]
    for at, (target, kind) in enumerate(zip(targets, kinds, strict=True)):
        if not isinstance(kind, TableType):
            raise frame.error(target.pos, 497, "cannot mix between single row and multi-row (BULK)")
        element = kind.element
        if len(targets) == 1:
            values = [row_as(frame, opened, row, element)[0] for row in rows]
        else:
            values = [coerce(frame, *row[at], element) for row in rows]
        table: Table = listed(values)
        assign(frame, target, (table, kind))


def all_rows(frame: Frame, opened: OpenCursor) -> list[Sequence[Found]]:
    """All rows that are left."""
    found: list[Sequence[Found]] = []
    while True:
        rows = fetch_rows(frame, opened, _BATCH)
        found += rows
        if len(rows) < _BATCH:
            return found
