"""How does a prepared statement run?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oracle_embedded.api import (
    BindMeta,
    OracleError,
    OraType,
    OutBind,
    Outcome,
    StatementKind,
    Value,
)
from oracle_embedded.charsets import CharacterSet, CharacterSets
from oracle_embedded.engine.compile.dml import DmlPlan
from oracle_embedded.engine.compile.plan import Plan
from oracle_embedded.engine.datatypes import rowids
from oracle_embedded.engine.datatypes.types import bind_type
from oracle_embedded.engine.ddl.run import run_ddl
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.plsql.run import run_block
from oracle_embedded.engine.run.contracts import LobPlace, SessionState
from oracle_embedded.engine.run.control import run_control
from oracle_embedded.engine.run.dml_run import Change, ChangeRunner
from oracle_embedded.engine.run.locking import locking_query
from oracle_embedded.engine.run.prepared import PreparedStatement
from oracle_embedded.engine.run.query_run import ListRows, QueryRows, open_query
from oracle_embedded.engine.run.statement import compile_plan
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.storage.fitting import fit_object

_CONSTRAINT_CODES = frozenset({1, 2290, 2291, 2292})
_LOB_TYPES = frozenset({OraType.CLOB, OraType.BLOB})
_TEXT_TYPES = frozenset({OraType.VARCHAR, OraType.CHAR, OraType.LONG, OraType.CLOB})
_NEVER_BATCHED = frozenset({1013})


def run_statement(
    session: SessionState,
    statement: PreparedStatement,
    binds: Sequence[Sequence[Value]],
    bind_metas: Sequence[BindMeta],
    *,
    batch_errors: bool,
) -> Outcome:
    """Execute a statement once per row of binds, or once without.

    Raises:
        OracleError: As Oracle would; for array DML with the number of rows done in ``row_count``.
    """
    binds = _fitted_objects(binds, bind_metas, session.database.character_sets)
    match statement.kind:
        case StatementKind.QUERY:
            return _run_query(session, statement, binds, bind_metas)
        case StatementKind.DML:
            return _run_dml(session, statement, binds, bind_metas, batch_errors=batch_errors)
        case StatementKind.PLSQL:
            return run_block(session, statement.sql, statement.node, binds, bind_metas)
        case StatementKind.DDL:
            has_warning = run_ddl(session, statement.node, statement.sql)
            return Outcome(StatementKind.DDL, has_warning=has_warning)
    run_control(session, statement.node)
    return Outcome(StatementKind.OTHER)


def kept_binds(
    binds: Sequence[Sequence[Value]], bind_metas: Sequence[BindMeta], own: CharacterSet
) -> Sequence[Sequence[Value]]:
    """Binds as a database holds them: text of its own set, without characters that the set does not
    have."""
    if own.is_universal or not binds:
        return binds
    width = len(binds[0])
    metas = bind_metas if len(bind_metas) >= width else default_metas(binds, width)
    places = [
        at for at, meta in enumerate(metas) if meta.type in _TEXT_TYPES and meta.charset_form != 2
    ]
    rows = [list(row) for row in binds]
    for row in rows:
        for at in places:
            row[at] = _kept(row[at], own)
    return rows


def _kept(value: Any, own: CharacterSet) -> Any:
    """A bind, or the elements of an array, in a set."""
    if isinstance(value, list):
        return [_kept(item, own) for item in value]
    return None if value is None else own.keep_utf8(value)


def _fitted_objects(
    binds: Sequence[Sequence[Value]], bind_metas: Sequence[BindMeta], sets: CharacterSets
) -> Sequence[Sequence[Value]]:
    """Binds whose objects are as their types hold them."""
    places = [at for at, meta in enumerate(bind_metas) if meta.shape is not None]
    if not places:
        return binds
    rows = [list(row) for row in binds]
    for at in places:
        fit = fit_object(bind_type(bind_metas[at]), sets)
        for row in rows:
            value = row[at] if at < len(row) else None
            row[at] = None if value is None else fit(value)
    return rows


def default_metas(binds: Sequence[Sequence[Value]], count: int) -> list[BindMeta]:
    """Types of binds whose caller did not say: text."""
    return [
        BindMeta(OraType.VARCHAR, 4000, 1) for _ in range(max(count, len(binds[0]) if binds else 0))
    ]


def _metas(
    statement: PreparedStatement, binds: Sequence[Sequence[Value]], given: Sequence[BindMeta]
) -> Sequence[BindMeta]:
    if len(given) < len(statement.bind_names):
        if binds and len(binds[0]) < len(statement.bind_names) - len(statement.returning):
            raise ora(1008)
        return default_metas(binds, len(statement.bind_names))
    return given


# --- queries --------------------------------------------------------------------------------------


def _run_query(
    session: SessionState,
    statement: PreparedStatement,
    binds: Sequence[Sequence[Value]],
    bind_metas: Sequence[BindMeta],
) -> Outcome:
    row = list(binds[0]) if binds else []
    if len(row) < len(statement.bind_names):
        raise ora(1008)
    plan = compile_plan(session, statement, _metas(statement, binds, bind_metas))
    assert isinstance(plan, Plan)
    columns = plan.shown
    rows: QueryRows | ListRows
    if plan.locks:
        assert isinstance(statement.node, ast.Query)
        rows = locking_query(session, statement.node, plan, row)
    else:
        rows = open_query(session, plan, row, columns)
    return Outcome(StatementKind.QUERY, rows=rows)


# --- data changes ---------------------------------------------------------------------------------


def _run_dml(
    session: SessionState,
    statement: PreparedStatement,
    binds: Sequence[Sequence[Value]],
    bind_metas: Sequence[BindMeta],
    *,
    batch_errors: bool,
) -> Outcome:
    outcome = Outcome(StatementKind.DML)
    given = _metas(statement, binds, bind_metas)
    plan = compile_plan(session, statement, given)
    assert isinstance(plan, DmlPlan)
    rows = _complete(binds, statement)
    changes: list[Change] = []
    with session.database.store.lock:
        session.enter(session.database.store.writer.context)
        runner = ChangeRunner(session, plan)
        for number, row in enumerate(rows):
            try:
                change = runner.run(row)
            except OracleError as error:
                if not batch_errors or error.code in _NEVER_BATCHED:
                    error.row_counts = [item.count for item in changes]
                    error.row_count = sum(error.row_counts)
                    raise
                outcome.batch_errors.append((number, error))
                change = Change()
            changes.append(change)
    # Values that cannot be are found before any row is written, and with them their errors.
    outcome.batch_errors.sort(key=lambda item: item[1].code in _CONSTRAINT_CODES)
    outcome.row_counts = [change.count for change in changes]
    outcome.row_count = sum(outcome.row_counts)
    last = next((change.last for change in reversed(changes) if change.last is not None), None)
    outcome.last_rowid = rowids.printed(*last) if last is not None else None
    if plan.returning is not None:
        outcome.out_binds = _returned(session, plan, changes, given)
    return outcome


def _complete(
    binds: Sequence[Sequence[Value]], statement: PreparedStatement
) -> Sequence[Sequence[Value]]:
    """Bind rows with a place for every position; RETURNING positions may be missing."""
    count = len(statement.bind_names)
    if not binds:
        if count > len(statement.returning):
            raise ora(1008)
        return [[None] * count]
    if all(len(row) == count for row in binds):
        return binds
    if all(len(row) == count - len(statement.returning) for row in binds):
        filled = []
        for row in binds:
            values = iter(row)
            filled.append(
                [None if at in statement.returning else next(values) for at in range(count)]
            )
        return filled
    raise ora(1008)


def _returned(
    session: SessionState, plan: DmlPlan, changes: list[Change], given: Sequence[BindMeta]
) -> list[OutBind]:
    assert plan.returning is not None
    found = []
    for at, position in enumerate(plan.return_positions):
        column = plan.returning.locators.get(at)
        out = OutBind(position, given[position])
        out.has_handles = column is not None and given[position].type in _LOB_TYPES
        for change in changes:
            values = [row[at] for row in change.returned]
            if column is not None and out.has_handles:
                places = [LobPlace(plan.table, column, rid) for rid in change.addresses]
                values = [
                    None if content is None else session.keep_lob(out.meta.type, content, place)
                    for content, place in zip(values, places, strict=True)
                ]
            out.values.append(values)
        found.append(out)
    return found
