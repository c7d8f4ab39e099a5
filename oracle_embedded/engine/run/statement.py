"""How is a statement prepared, and compiled once per set of bind types?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial

from oracle_embedded.api import BindMeta, StatementKind
from oracle_embedded.engine.compile.conversions import client_form
from oracle_embedded.engine.compile.dml import DmlPlan, compile_change
from oracle_embedded.engine.compile.plan import Plan, Sql
from oracle_embedded.engine.compile.policies import as_shown
from oracle_embedded.engine.compile.queries import compile_select
from oracle_embedded.engine.datatypes.types import SqlType, bind_type
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.run.deep import deeply
from oracle_embedded.engine.run.environment import compilation
from oracle_embedded.engine.run.prepared import PreparedStatement
from oracle_embedded.engine.run.shared_plans import shared_plan
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql.blocks import parse_block
from oracle_embedded.engine.sql.statements import parse_statement
from oracle_embedded.engine.storage.catalog import TableDef

_PLANS_MAX = 8
_PREPARED_MAX = 500
_parsed = lru_cache(maxsize=1000)(parse_statement)
"""Trees of texts that come again, in whatever database: they never change."""


def prepare(session: SessionState, sql: str) -> PreparedStatement:
    """Parse a statement, and describe it if it is a query.

    Raises:
        OracleError: What is wrong with it.
    """
    catalog = session.database.store.catalog.version
    own = f"/{session.session_id}" if session.database.store.catalog.has_temporary else ""
    key = (sql, session.rights, session.schema + own, session.container)
    kept = session.database.prepared.get(key)
    if kept is not None and kept[0] == catalog:
        kept[1].parses += 1
        return kept[1]
    statement = _prepare(session, sql)
    statement.loaded_at = session.database.store.now()
    if statement.kind in (StatementKind.QUERY, StatementKind.DML):
        if len(session.database.prepared) >= _PREPARED_MAX:
            session.database.prepared.clear()
        session.database.prepared[key] = (catalog, statement)
    return statement


def _prepare(session: SessionState, sql: str) -> PreparedStatement:
    parsed = deeply(partial(_parsed, sql))
    if parsed.kind == StatementKind.PLSQL:
        block = deeply(partial(parse_block, sql, partial(_column_type, session)))
        return PreparedStatement(sql, StatementKind.PLSQL, block, block.bind_names)
    statement = PreparedStatement(sql, parsed.kind, parsed.node, parsed.bind_names)
    if parsed.kind in (StatementKind.QUERY, StatementKind.DML):
        plan = compile_plan(session, statement, None if parsed.bind_names else ())
        if isinstance(plan, Plan):
            statement.columns = plan.shown
        else:
            statement.returning = plan.return_positions
    return statement


def _column_type(session: SessionState, name: ast.Name) -> SqlType | None:
    """The type of ``[[owner.]table.]column``, None if there is no such column."""
    if len(name) == 1:
        return None
    owner = name[0] if len(name) == 3 else session.schema
    table = session.database.find(session, owner, name[-2])
    if not isinstance(table, TableDef) or name[-1] not in table.by_name:
        return None
    return table.by_name[name[-1]].type


def compile_plan(
    session: SessionState, statement: PreparedStatement, bind_metas: Sequence[BindMeta] | None
) -> Plan | DmlPlan:
    """The plan for these bind types; kept until the catalog or the session's schema changes."""
    database = session.database
    types = None if bind_metas is None else tuple(bind_type(meta) for meta in bind_metas)
    tells_places = session.transaction is not None
    key = (
        types, database.store.catalog.version, session.schema, session.container, tells_places, session.shows_archived,
        session.nls["NLS_SORT"], session.nls["NLS_COMP"],
    )  # fmt: skip
    plan = None if database.store.catalog.has_policies else statement.plans.get(key)
    if plan is None:
        if len(statement.plans) >= _PLANS_MAX:
            statement.plans.clear()
        compiled = partial(_compile, session, statement, types, tells_places=tells_places)
        plan = deeply(compiled)
        statement.plans[key] = plan
    return plan


def _compile(
    session: SessionState,
    statement: PreparedStatement,
    types: Sequence[SqlType] | None,
    *,
    tells_places: bool,
) -> Plan | DmlPlan:
    state = compilation(session, types)
    node = statement.node
    if not isinstance(node, ast.Query):
        return compile_change(state, node)
    own = state.environment
    key = (
        statement.sql, types, tells_places, own.schema, own.user, session.container, own.filling, own.shows_archived,
        own.is_23ai, own.character_sets, session.nls["NLS_SORT"], session.nls["NLS_COMP"],
    )  # fmt: skip
    return shared_plan(
        key, own, lambda: with_outputs(compile_select(state, node, tells_places=tells_places))
    )


def with_outputs(plan: Plan) -> Plan:
    """Bring a query's result into the form in which clients get it: ROWIDs printed, local times in
    the session's zone, redacted values replaced."""
    wrapped = []
    changed = False
    plan.shown = [
        replace(column.type.meta(column.name[:128], column.nullable), is_json=column.is_json)
        for column in plan.columns
    ]
    for number, column in enumerate(plan.columns, 1):
        value = Sql(f"c{number}", column.type, mask=column.mask)
        if column.mask is not None:
            plan.locators.pop(number - 1, None)
        text = client_form(as_shown(value).text, column.type)
        changed = changed or text != f"c{number}"
        wrapped.append(text)
    if changed:
        wrapped.extend(f"l{number}" for number in range(1, len(plan.locks) + 1))
        wrapped.extend(f"p{number}" for number in range(1, len(plan.places) + 1))
        plan.text = f"SELECT {', '.join(wrapped)} FROM ({plan.text})"
    return plan
