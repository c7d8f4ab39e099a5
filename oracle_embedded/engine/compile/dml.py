"""How do INSERT, UPDATE, DELETE and MERGE become queries that find rows and compute values?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from oracle_embedded.api import OracleError
from oracle_embedded.engine.compile.compilation import Compilation
from oracle_embedded.engine.compile.conversions import client_form, convert
from oracle_embedded.engine.compile.from_items import (
    active_rows,
    columns_in,
    compile_from_item,
    find_relation,
    permitted_rows,
    use_table,
    with_virtual,
)
from oracle_embedded.engine.compile.objects import assignable
from oracle_embedded.engine.compile.plan import FIRST_SLOT, OutputColumn, Plan, Slot, Sql
from oracle_embedded.engine.compile.policies import (
    as_policy,
    as_shown,
    masked_columns,
    parsed_predicate,
    refuse_redacted,
    with_mask,
)
from oracle_embedded.engine.compile.queries import compile_where
from oracle_embedded.engine.compile.rownum import conjuncts_of, rownum_limit
from oracle_embedded.engine.compile.scopes import (
    Scope,
    Source,
    SourceColumn,
    output_source,
    table_source,
)
from oracle_embedded.engine.compile.through_query import through_join_of, through_query
from oracle_embedded.engine.datatypes import types
from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql.queries import parse_expression
from oracle_embedded.engine.storage.catalog import ColumnDef, TableDef, ViewDef
from oracle_embedded.engine.storage.companions import is_external_only

CHANGES = ("INSERT", "UPDATE", "DELETE")


@dataclass(slots=True)
class RowPlan:
    """Expressions over one row that is given as parameters: the address, then the columns in
    order."""

    text: str
    slots: list[Slot]
    columns: list[OutputColumn]
    count: int
    locators: dict[int, str]
    """LOB columns among the expressions: position and name."""


@dataclass(slots=True)
class DmlPlan:
    """A compiled data change. The query's columns are, for

    * INSERT: one per target column;
    * UPDATE: address, all columns, then one per assigned column;
    * DELETE: address, all columns;
    * MERGE: address, all columns, update condition, assigned columns, delete is judged afterwards,
      insert condition, inserted columns.
    """

    kind: str
    table: TableDef
    query: Plan
    targets: list[ColumnDef]
    plain_binds: list[int | None] | None = None
    returning: RowPlan | None = None
    return_positions: tuple[int, ...] = ()
    insert_targets: list[ColumnDef] = field(default_factory=list)
    delete_where: RowPlan | None = None
    updates: bool = False
    inserts: bool = False
    branches: tuple[BranchPlan, ...] = ()
    is_first: bool = False
    check: RowPlan | None = None
    """Conditions of row-level security that each new row must meet."""


@dataclass(slots=True)
class BranchPlan:
    """One INTO of a multi-table INSERT: where its condition and its values are in the row, and what
    it inserts into.

    ``otherwise`` says that no WHEN may have been true.
    """

    insert: DmlPlan
    first: int
    condition_at: int | None
    values_at: int
    otherwise: bool


def _target(state: Compilation, node: ast.FromTable, privilege: str) -> TableDef:
    """The table to change.

    Raises:
        OracleError: ORA-00942 without it or without the right, ORA-01031 when only reading is
            allowed, ORA-38301 in the recycle bin.
    """
    if node.through is not None:
        raise unsupported("MERGE and multi-table INSERT through a query", node.pos)
    found = find_relation(state, node.name, node.pos)
    if isinstance(found, ViewDef):
        raise unsupported("data changes through a view", node.pos)
    if not isinstance(found, TableDef):
        raise OracleError(2030, "can only select from fixed tables/views", node.pos)
    if found.query is not None and state.environment.filling != found.object_id:
        raise OracleError(1732, "data manipulation operation not legal on this view", node.pos)
    if found.original_name is not None:
        raise ora(38301, offset=node.pos)
    if found.external is not None:
        raise is_external_only(node.pos)
    if not state.environment.may_change(found, privilege):
        raise ora(1031, offset=node.pos)
    return found


# --- INSERT ---------------------------------------------------------------------------------------


def compile_insert(state: Compilation, node: ast.Insert) -> DmlPlan:
    """Compile INSERT."""
    table = _target(state, node.table, "INSERT")
    named = _columns(table, node.columns) if node.columns else list(table.shown)
    if node.query is None:
        if len(node.values) != len(named):
            raise ora(913 if len(node.values) > len(named) else 947)
        node = replace(node, values=_without_virtual(node.values, named))
    elif any(column.expression for column in named):
        raise OracleError(54013, "INSERT operation disallowed on virtual columns")
    named = [column for column in named if not column.expression]
    targets = list(named)
    if node.query is None:
        values = [
            _insert_value(state, value, column)
            for value, column in zip(node.values, named, strict=True)
        ]
    else:
        text, columns, _ = state.query(node.query, None)
        refuse_redacted(column.mask for column in columns)
        if len(columns) != len(named):
            raise ora(913 if len(columns) > len(named) else 947)
        values = [
            _assignable(Sql(f"s.c{number}", item.type), column)
            for number, (item, column) in enumerate(zip(columns, named, strict=True), 1)
        ]
    plain = _plain_binds(state, node, named)
    for column in table.columns:
        if column not in named:
            targets.append(column)
            values.append(_default(state, column))
            if values[-1].text != "NULL":
                plain = None
            elif plain is not None:
                plain.append(None)
    suffix = f" FROM ({text}) s" if node.query is not None else ""
    state.plan.text = f"SELECT {', '.join(value.text for value in values)}{suffix}"
    plan = DmlPlan("INSERT", table, state.plan, targets, plain)
    plan.check = _row_check(state, table, "INSERT")
    _add_returning(state, plan, node.returning)
    return plan


def _without_virtual(
    values: tuple[ast.Expr, ...], named: Sequence[ColumnDef]
) -> tuple[ast.Expr, ...]:
    """The values of stored columns; a virtual one takes DEFAULT alone."""
    given = list(zip(values, named, strict=True))
    if any(column.expression and not isinstance(value, ast.Default) for value, column in given):
        raise OracleError(54013, "INSERT operation disallowed on virtual columns")
    return tuple(value for value, column in given if not column.expression)


def compile_multi_insert(state: Compilation, node: ast.MultiInsert) -> DmlPlan:
    """Compile INSERT ALL and INSERT FIRST: one query that gives conditions and values of all
    branches."""
    text, columns, _ = state.query(node.query, None)
    refuse_redacted(column.mask for column in columns)
    source = output_source("s", None, columns)
    scope = Scope([source])
    selected: list[str] = []
    branches: list[BranchPlan] = []
    conditional = any(branch.condition is not None for branch in node.branches)
    for branch in node.branches:
        table = _target(state, branch.table, "INSERT")
        if state.environment.predicates(table, "INSERT", True):
            raise unsupported("multi-table INSERT under a policy that checks new rows")
        named = _columns(table, branch.columns) if branch.columns else list(table.columns)
        if branch.values is None:
            given = [Sql(f"s.c{number}", item.type) for number, item in enumerate(columns, 1)]
        else:
            given = [
                _default(state, column)
                if isinstance(item, ast.Default)
                else state.value(item, scope)
                for item, column in zip(branch.values, named, strict=False)
            ]
        count = len(columns) if branch.values is None else len(branch.values)
        if count != len(named):
            raise ora(913 if count > len(named) else 947, offset=branch.table.pos)
        condition_at = None
        if branch.condition is not None:
            condition_at = len(selected)
            selected.append(f"({state.condition(branch.condition, scope)})")
        targets, values_at = list(named), len(selected)
        values = [_assignable(value, column) for value, column in zip(given, named, strict=True)]
        for column in table.columns:
            if column not in named:
                targets.append(column)
                values.append(_default(state, column))
        selected += [value.text for value in values]
        otherwise = conditional and branch.condition is None
        insert = DmlPlan("INSERT", table, Plan(), targets)
        branches.append(BranchPlan(insert, branch.first, condition_at, values_at, otherwise))
    state.plan.text = f"SELECT {', '.join(selected)} FROM ({text}) s"
    first = branches[0].insert.table
    return DmlPlan(
        "INSERT ALL", first, state.plan, [], branches=tuple(branches), is_first=node.is_first
    )


def _columns(table: TableDef, names: Sequence[str]) -> list[ColumnDef]:
    found = []
    columns = {column.name: column for column in table.named}
    for name in names:
        column = columns.get(name)
        if column is None:
            raise ora(1747) if name == "ROWID" else ora(904, f'"{name}"')
        if column in found:
            raise ora(957)
        found.append(column)
    return found


def _plain_binds(
    state: Compilation, node: ast.Insert, named: list[ColumnDef]
) -> list[int | None] | None:
    """Bind positions where every value is a bind of its column's family: then no query is
    needed."""
    if node.query is not None or state.bind_types is None:
        return None
    positions: list[int | None] = []
    for value, column in zip(node.values, named, strict=True):
        if isinstance(value, ast.Null) and not column.identity:
            positions.append(None)
            continue
        if not isinstance(value, ast.Bind) or column.identity:
            return None
        family = state.bind_types[value.index].family
        if family != column.type.family or family in ("ltz", "rowid", "bool", "tz"):
            return None
        positions.append(value.index)
    return positions


def _insert_value(state: Compilation, value: ast.Expr, column: ColumnDef) -> Sql:
    if isinstance(value, ast.Default):
        return _default(state, column)
    if column.identity == "ALWAYS":
        raise OracleError(32795, "cannot insert into a generated always identity column")
    compiled = _assignable(state.value(value, Scope()), column)
    if column.identity == "BY DEFAULT ON NULL":
        return Sql(f"ifnull({compiled.text}, {_default(state, column).text})", compiled.type)
    return compiled


def _default(state: Compilation, column: ColumnDef) -> Sql:
    if column.default_text is None:
        return Sql("NULL", types.NULL)
    return _assignable(state.value(parse_expression(column.default_text), Scope()), column)


def _assignable(value: Sql, column: ColumnDef) -> Sql:
    if column.type.user is not None:
        return assignable(value, column.type)
    try:
        return convert(value, column.type.family)
    except OracleError as error:
        if (
            error.code == 932
            and value.family in ("clob", "text")
            and column.type.family in ("blob", "raw")
        ):
            return convert(convert(value, "text"), "raw")
        raise


# --- UPDATE and DELETE ----------------------------------------------------------------------------


def compile_update(state: Compilation, node: ast.Update) -> DmlPlan:
    """Compile UPDATE."""
    table = _target(state, node.table, "UPDATE")
    source, alias_text = _target_source(state, node.table, table, "UPDATE")
    scope = Scope([source])
    targets, values = _assigned(state, table, node.assignments, scope)
    where = _where_text(state, node.where, scope)
    selected = [
        f"{source.alias}.rid",
        *_all(source, table),
        *(value.text for value in values),
    ]
    state.plan.text = f"SELECT {', '.join(selected)} FROM {alias_text}{where}"
    plan = DmlPlan("UPDATE", table, state.plan, targets)
    plan.check = _row_check(state, table, "UPDATE")
    _add_returning(state, plan, node.returning)
    return plan


def compile_delete(state: Compilation, node: ast.Delete) -> DmlPlan:
    """Compile DELETE."""
    table = _target(state, node.table, "DELETE")
    source, alias_text = _target_source(state, node.table, table, "DELETE")
    where = _where_text(state, node.where, Scope([source]))
    selected = ", ".join([f"{source.alias}.rid", *_all(source, table)])
    state.plan.text = f"SELECT {selected} FROM {alias_text}{where}"
    plan = DmlPlan("DELETE", table, state.plan, [])
    _add_returning(state, plan, node.returning)
    return plan


def _where_text(state: Compilation, where: ast.Expr | None, scope: Scope) -> str:
    if where is None:
        return ""
    limit, rest = rownum_limit(state, conjuncts_of(where), scope)
    text = compile_where(state, rest, scope)
    return text + limit


def _target_source(
    state: Compilation, node: ast.FromTable, table: TableDef, kind: str
) -> tuple[Source, str]:
    alias = state.new_alias()
    use = use_table(state, table)
    source = with_virtual(state, table_source(alias, node.alias or node.name[-1], use), table)
    source.columns |= masked_columns(state, table, source.columns)
    conditions = [] if state.environment.shows_archived else active_rows(table)
    return source, f"{permitted_rows(state, use, kind, conditions)} {alias}"


def _all(source: Source, table: TableDef) -> list[str]:
    return [f"{source.alias}.c{internal_id}" for internal_id in table.ids]


def _assigned(
    state: Compilation, table: TableDef, assignments: tuple[ast.Assignment, ...], scope: Scope
) -> tuple[list[ColumnDef], list[Sql]]:
    targets: list[ColumnDef] = []
    values: list[Sql] = []
    for assignment in assignments:
        columns = _columns(table, assignment.columns)
        if any(column in targets for column in columns):
            raise ora(957, offset=assignment.pos)
        for at, column in enumerate(columns):
            if column.expression:
                raise OracleError(
                    54017, "UPDATE operation disallowed on virtual columns", assignment.pos
                )
            targets.append(column)
            values.append(_assigned_value(state, assignment, at, column, scope))
    return targets, values


def _assigned_value(
    state: Compilation, assignment: ast.Assignment, at: int, column: ColumnDef, scope: Scope
) -> Sql:
    if column.identity == "ALWAYS":
        raise OracleError(32796, "cannot update a generated always identity column", assignment.pos)
    value = assignment.value
    if isinstance(value, ast.Default):
        return _default(state, column)
    if len(assignment.columns) == 1:
        return _assignable(_given(state, value, scope), column)
    assert isinstance(value, ast.Scalar)
    text, columns, single = state.subquery(value.query, scope)
    if len(columns) != len(assignment.columns):
        raise ora(913 if len(columns) > len(assignment.columns) else 947, offset=assignment.pos)
    alias = state.new_alias()
    picked = f"{alias}.c{at + 1}" if single else f"o_single({alias}.c{at + 1})"
    return _assignable(Sql(f"(SELECT {picked} FROM ({text}) {alias})", columns[at].type), column)


def _given(state: Compilation, value: ast.Expr, scope: Scope) -> Sql:
    """A value that a change writes, which no redacted column may give."""
    state.masks = []
    found = state.value(value, scope)
    refuse_redacted(state.masks)
    return found


def _row_check(state: Compilation, table: TableDef, kind: str) -> RowPlan | None:
    """The conditions of row-level security that new rows must meet."""
    predicates = state.environment.predicates(table, kind, True)
    if not predicates:
        return None
    if any(one.owner != predicates[0].owner for one in predicates):
        raise unsupported(
            "policies whose functions have several owners, all of which check new rows"
        )
    with as_policy(state, predicates[0].owner):
        parsed = [parsed_predicate(one) for one in predicates]
        return compile_row_plan(state, table, parsed, conditions=True)


# --- MERGE ----------------------------------------------------------------------------------------


def compile_merge(state: Compilation, node: ast.Merge) -> DmlPlan:
    """Compile MERGE."""
    table = _target(state, node.table, "UPDATE" if node.assignments else "INSERT")
    scope = Scope()
    source_text = compile_from_item(state, node.source, scope)
    sources = list(scope.sources)
    if any(state.environment.predicates(table, kind, False) for kind in CHANGES):
        raise OracleError(28132, "The MERGE INTO syntax does not support the security policy.")
    target, target_text = _target_source(state, node.table, table, "UPDATE")
    both = Scope([*sources, target])
    condition = state.condition(node.on, both)
    selected = [f"{target.alias}.rid", *_all(target, table)]
    targets: list[ColumnDef] = []
    if node.assignments is not None:
        targets, values = _assigned(state, table, node.assignments, both)
        test = state.condition(node.update_where, both) if node.update_where is not None else "1"
        selected += [f"({test})", *(value.text for value in values)]
    insert_targets: list[ColumnDef] = []
    if node.insert_values is not None:
        insert_targets, values = _merge_insert(state, node, table, Scope(sources))
        test = (
            state.condition(node.insert_where, Scope(sources))
            if node.insert_where is not None
            else "1"
        )
        selected += [f"({test})", *(value.text for value in values)]
    join = "LEFT JOIN" if node.insert_values is not None else "JOIN"
    state.plan.text = (
        f"SELECT {', '.join(selected)} FROM {source_text} {join} {target_text} ON {condition}"
    )
    plan = DmlPlan("MERGE", table, state.plan, targets, insert_targets=insert_targets)
    plan.updates, plan.inserts = node.assignments is not None, node.insert_values is not None
    if node.delete_where is not None:
        unbound = {name for source in sources for name in source.columns}
        if any(
            column.name[-1] in unbound and column.name[-1] not in table.by_name
            for column in columns_in(node.delete_where)
        ):
            raise unsupported("DELETE WHERE over the source of MERGE")
        plan.delete_where = compile_row_plan(
            state, table, [node.delete_where], conditions=True, name=node.table.alias or table.name
        )
    return plan


def _merge_insert(
    state: Compilation, node: ast.Merge, table: TableDef, scope: Scope
) -> tuple[list[ColumnDef], list[Sql]]:
    named = _columns(table, node.insert_columns) if node.insert_columns else list(table.shown)
    given = node.insert_values or ()
    if len(given) != len(named):
        raise ora(913 if len(given) > len(named) else 947)
    given = _without_virtual(given, named)
    named = [column for column in named if not column.expression]
    values = [
        _default(state, column)
        if isinstance(value, ast.Default)
        else _assignable(_given(state, value, scope), column)
        for value, column in zip(given, named, strict=True)
    ]
    targets = list(named)
    for column in table.columns:
        if column not in named:
            targets.append(column)
            values.append(_default(state, column))
    return targets, values


# --- expressions over one row ---------------------------------------------------------------------


def _add_returning(state: Compilation, plan: DmlPlan, returning: ast.Returning | None) -> None:
    if returning is not None:
        plan.return_positions = tuple(bind.index for bind in returning.binds)
        wanted = [state.bind_types[at] for at in plan.return_positions] if state.bind_types else []
        plan.returning = compile_row_plan(state, plan.table, list(returning.exprs), wanted=wanted)


def compile_row_plan(
    state: Compilation,
    table: TableDef,
    exprs: list[ast.Expr],
    *,
    conditions: bool = False,
    name: str | None = None,
    wanted: Sequence[SqlType] = (),
) -> RowPlan:
    """Compile expressions over a row that comes as parameters; into the types ``wanted``, where
    these are told."""
    outer = state.plan
    state.plan = Plan()
    use = use_table(state, table)
    columns = {
        column.name: SourceColumn(
            column.name, f"r.c{column.internal_id}", column.type, column.nullable
        )
        for column in table.named
    }
    source = Source(
        "r", name or table.name, table.owner, columns, use=use, rowid="r.rid", rowscn="0"
    )
    source = with_virtual(state, source, table)
    scope = Scope([source])
    if conditions:
        values = [Sql(state.condition(expr, scope), types.NUMBER) for expr in exprs]
    else:
        source.columns |= masked_columns(state, table, source.columns)
        values = []
        for expr in exprs:
            state.masks = []
            values.append(as_shown(with_mask(state.value(expr, scope), state.masks)))
    if wanted:
        values = [
            convert(value, kind.family, expr.pos)
            for value, kind, expr in zip(values, wanted, exprs, strict=True)
        ]
    if len(state.plan.tables) > 1:
        raise unsupported("subqueries here")
    first = FIRST_SLOT + len(state.plan.slots)
    names = ["rid", *(f"c{internal_id}" for internal_id in table.ids)]
    given = ", ".join(f"?{first + at} AS {item}" for at, item in enumerate(names))
    shown = [OutputColumn("", value.type, value.nullable) for value in values]
    texts = [client_form(value.text, value.type) for value in values]
    text = f"SELECT {', '.join(texts)} FROM (SELECT {given}) r"
    if "r.dobj" in text:
        raise unsupported("RETURNING the ROWID of a partitioned table's row")
    slots = state.plan.slots
    state.plan = outer
    by_text = {column.text: column.name for column in columns.values()}
    locators = {
        at: by_text[value.text]
        for at, value in enumerate(values)
        if value.type.has_locators and value.text in by_text
    }
    return RowPlan(text, slots, shown, first + len(names) - 1, locators)


def compile_change(state: Compilation, node: object) -> DmlPlan:
    """Compile a data change of any kind.

    Raises:
        OracleError: ORA-28081 where a redacted column is a source of it.
    """
    plan = _compile_change(state, node)
    refuse_redacted(state.source_masks)
    return plan


def _compile_change(state: Compilation, node: object) -> DmlPlan:
    match node:
        case ast.Insert():
            return compile_insert(state, through_query(state, node))
        case ast.MultiInsert():
            return compile_multi_insert(state, node)
        case ast.Update():
            merge = through_join_of(state, node)
            if merge is not None:
                return compile_merge(state, merge)
            return compile_update(state, through_query(state, node))
        case ast.Delete():
            return compile_delete(state, through_query(state, node))
        case ast.Merge():
            return compile_merge(state, node)
    raise AssertionError(f"no plan for {type(node)}")
