"""How do FROM items become SQLite SQL?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, replace

from oracle_embedded.api import OracleError, OraType, VirtualTable
from oracle_embedded.engine.compile.compilation import Compilation
from oracle_embedded.engine.compile.conditions import compare
from oracle_embedded.engine.compile.conversions import convert
from oracle_embedded.engine.compile.objects import elements_source
from oracle_embedded.engine.compile.plan import (
    FIRST_SLOT,
    Flashback,
    Slot,
    Sql,
    TableUse,
    VirtualUse,
    quoted,
)
from oracle_embedded.engine.compile.policies import conditions_of, masked_columns
from oracle_embedded.engine.compile.scopes import (
    ROWID_OF_SUBQUERY,
    CteSource,
    Scope,
    Source,
    SourceColumn,
    column_of,
    matches,
    output_source,
    table_source,
    type_from_meta,
)
from oracle_embedded.engine.datatypes import rowids, types
from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql.queries import parse_expression
from oracle_embedded.engine.storage.catalog import (
    ARCHIVE_STATE,
    Definition,
    SynonymDef,
    TableDef,
    ViewDef,
)
from oracle_embedded.engine.storage.companions import not_of_its_own

_ROWID_OF_DUAL = f"x'{rowids.packed(116, rowids.address(1, 929, 0)).hex()}'"
"""AAAAB0AABAAAAOhAAA, as listings of new databases have it."""
_PLAIN_FIELDS = ("bool", "int", "int | None", "str", "str | None", "Name")
_VERSION_TIME = types.SqlType(OraType.TIMESTAMP, scale=0)
_VIEW_DEPTH_MAX = 20
_SYNONYM_DEPTH_MAX = 10
_MILLION = 1_000_000
_SCATTER = 435_761
"""Shares no factor with a million: addresses that follow each other are scattered over it."""


def compile_from_item(state: Compilation, item: ast.FromItem, scope: Scope) -> str:
    """Add the item's sources to the scope and give its text."""
    match item:
        case ast.FromTable():
            source, text = _table(state, item, scope)
            scope.sources.append(source)
            return text
        case ast.FromQuery():
            source, text = _derived(state, item, scope)
            scope.sources.append(source)
            return text
        case ast.FromJson():
            source, text = _json_table(state, item, scope)
            scope.sources.append(source)
            return text
        case ast.FromCollection():
            source, text = elements_source(state, item, scope)
            scope.sources.append(source)
            return text
        case ast.Join():
            return _join(state, item, scope)


def _json_table(state: Compilation, item: ast.FromJson, scope: Scope) -> tuple[Source, str]:
    """JSON_TABLE: its document may be a column of the items before it."""
    alias = state.new_alias()
    operand = state.value(item.operand, scope)
    is_as_kept = operand.family in ("raw", "blob", "json")
    document = operand.text if is_as_kept else convert(operand, "text").text
    columns: dict[str, SourceColumn] = {}
    for number, column in enumerate(_flat(item.columns)):
        cell = Sql(f"json_extract({alias}.value, '$[{number}]')", types.TEXT)
        kind = types.NUMBER if column.how in ("number", "exists") else column.type or types.TEXT
        if kind.family == "number":
            cell = convert(cell, "number")
        elif kind.family not in ("text", "clob"):
            cell = convert(cell, kind.family)
        columns[column.name] = SourceColumn(column.name, cell.text, kind)
    spec = quoted(json.dumps([item.path, _spec(item.columns)]))
    source = Source(alias, item.alias, None, columns)
    return source, f"json_each(o_json_rows({document}, {spec})) {alias}"


def _flat(columns: tuple[ast.JsonColumn, ...]) -> Iterator[ast.JsonColumn]:
    for column in columns:
        if column.how == "nested":
            yield from _flat(column.columns)
        else:
            yield column


def _spec(columns: tuple[ast.JsonColumn, ...]) -> list[list[object]]:
    """What the function that makes the rows is told of them."""
    return [
        [column.how, column.path, _spec(column.columns)]
        if column.how == "nested"
        else [column.how, column.path]
        for column in columns
    ]


def _derived(state: Compilation, item: ast.FromQuery, scope: Scope) -> tuple[Source, str]:
    """A subquery in FROM; it sees the names of enclosing queries, not of its neighbours."""
    alias = state.new_alias()
    outer = Scope(parent=scope.parent, ctes=scope.ctes)
    text, columns, _ = state.query(item.query, outer)
    source = output_source(alias, item.alias, columns)
    rowid = source.columns.pop(ROWID_OF_SUBQUERY, None)
    source.rowid = None if rowid is None else rowid.text
    return source, f"({text}) {alias}"


def _table(state: Compilation, item: ast.FromTable, scope: Scope) -> tuple[Source, str]:
    """A table, view, CTE or computed view by name."""
    alias = state.new_alias()
    if len(item.name) == 1 and item.as_of is None:
        cte = _cte(item.name[0], scope)
        if cte is not None:
            columns = {
                column.name: replace(column, text=f"{alias}.{column.text}")
                for column in cte.columns
            }
            return Source(alias, item.alias or item.name[0], None, columns), f"{cte.table} {alias}"
    if item.name in (("DUAL",), ("SYS", "DUAL")):
        columns = {"DUMMY": SourceColumn("DUMMY", f"{alias}.c1", types.varchar(1))}
        source = Source(alias, item.alias or "DUAL", "SYS", columns, rowid=_ROWID_OF_DUAL)
        return source, f"(SELECT 'X' AS c1) {alias}"
    flashback = _flashback(state, item, scope)
    found = find_relation(state, item.name, item.pos)
    if item.sample is not None and not isinstance(found, TableDef):
        raise unsupported("SAMPLE of what is not a table", item.pos)
    if isinstance(found, tuple):
        return _virtual(state, alias, item, found, flashback)
    if (
        flashback is not None
        and not state.view_depth
        and not state.environment.may_flashback(found)
    ):
        raise ora(1031, offset=item.pos)
    if isinstance(found, ViewDef):
        return _view(state, alias, item, found, flashback)
    if not isinstance(found, TableDef):
        raise ora(942, offset=item.pos)
    if found.external is not None:
        raise found.external.unreadable(item.pos)
    use = use_table(state, found, flashback)
    source = with_virtual(state, table_source(alias, item.alias or item.name[-1], use), found)
    source.columns |= masked_columns(state, found, source.columns)
    if item.versions is not None:
        if not state.environment.may_flashback(found):
            raise ora(1031, offset=item.pos)
        use.versions = _versions(state, item.versions, scope)
        source = _with_versions(source, alias)
    conditions = [_in_partition(found, item)] if item.partition is not None else []
    if not state.environment.shows_archived:
        conditions += active_rows(found)
    if item.sample is not None:
        conditions.append(_in_sample(item.sample))
    return source, f"{permitted_rows(state, use, 'SELECT', conditions)} {alias}"


def permitted_rows(state: Compilation, use: TableUse, kind: str, conditions: list[str]) -> str:
    """The rows of a table that meet conditions and the predicates of row-level security for a kind
    of statement."""
    predicates = state.environment.predicates(use.table, kind, False)
    if not conditions and not predicates:
        return use.marker
    inner = state.new_alias()
    if predicates:
        source = with_virtual(state, table_source(inner, None, use), use.table)
        conditions = conditions + conditions_of(state, use.table, predicates, Scope([source]))
    return f"(SELECT {inner}.* FROM {use.marker} {inner} WHERE {' AND '.join(conditions)})"


def active_rows(table: TableDef) -> list[str]:
    """The condition that leaves archived rows out, for a table that may have some."""
    column = table.by_name.get(ARCHIVE_STATE)
    return [] if column is None else [f"c{column.internal_id} = '0'"]


def _in_sample(sample: ast.Sample) -> str:
    """The same blocks or rows each time: by the address, scattered over the table."""
    place = "(rid >> 16)" if sample.is_block else "rid"
    limit = int(sample.percent * _MILLION // 100)
    return f"({place} + {sample.seed} * {_SCATTER}) * {_SCATTER} % {_MILLION} < {limit}"


def with_virtual(state: Compilation, source: Source, table: TableDef) -> Source:
    """The table's source with the expressions of its virtual columns in their places."""
    for column in table.virtual:
        value = state.value(parse_expression(column.expression or ""), Scope([source]))
        source.columns[column.name] = SourceColumn(
            column.name, convert(value, column.type.family).text, column.type
        )
    return source


def _in_partition(table: TableDef, item: ast.FromTable) -> str:
    if table.partitioning is None:
        raise OracleError(
            14109, "partition-extended object names may only be used with tables", item.pos
        )
    chosen = table.partitioning.named(item.partition or "")
    if chosen is None:
        raise OracleError(2149, "Specified partition does not exist", item.pos)
    return f"dobj IN ({', '.join(str(leaf.data_object_id) for leaf in chosen.leaves)})"


def use_table(state: Compilation, table: TableDef, flashback: Flashback | None = None) -> TableUse:
    """Note one more appearance of a stored table."""
    use = TableUse(len(state.plan.tables), table, flashback)
    state.plan.tables.append(use)
    return use


def _cte(name: str, scope: Scope) -> CteSource | None:
    current: Scope | None = scope
    while current is not None:
        if name in current.ctes:
            return current.ctes[name]
        current = current.parent
    return None


def _flashback(state: Compilation, item: ast.FromTable, scope: Scope) -> Flashback | None:
    if item.as_of is None:
        return state.flashback
    if _has_query(item.as_of.value):
        raise OracleError(22818, "subquery expressions not allowed here", item.pos)
    family = "number" if item.as_of.kind == "SCN" else "timestamp"
    value = convert(
        state.value(item.as_of.value, Scope(parent=None, ctes=scope.ctes)),
        family,
        item.as_of.value.pos,
    )
    state.plan.slots.append(Slot(-1, types.NUMBER))
    return Flashback(item.as_of.kind, value.text, FIRST_SLOT + len(state.plan.slots) - 1)


def _has_query(node: ast.Expr) -> bool:
    """Is there a subquery, which AS OF does not take? Source: SQL Language Reference 19c, SELECT,
    "Restrictions on Flashback Queries"."""
    return isinstance(node, ast.Scalar) or any(map(_has_query, children(node)))


def _versions(
    state: Compilation, versions: ast.Versions, scope: Scope
) -> tuple[Flashback, Flashback]:
    """Both ends of VERSIONS BETWEEN."""
    ends = []
    for node, word in ((versions.low, "MINVALUE"), (versions.high, "MAXVALUE")):
        kind, text = word, "NULL"
        if node is not None:
            family = "number" if versions.kind == "SCN" else "timestamp"
            kind = versions.kind
            value = state.value(node, Scope(parent=None, ctes=scope.ctes))
            text = convert(value, family, node.pos).text
        state.plan.slots.append(Slot(-1, types.NUMBER))
        ends.append(Flashback(kind, text, FIRST_SLOT + len(state.plan.slots) - 1))
    return ends[0], ends[1]


def _with_versions(source: Source, alias: str) -> Source:
    """The source with the pseudocolumns of VERSIONS BETWEEN, which ``*`` leaves out.

    Source:
        Oracle SQL Language Reference 19c, "Version Query Pseudocolumns".
    """
    pseudo = {
        "VERSIONS_STARTSCN": (f"o_rowscn({alias}.vs)", types.NUMBER),
        "VERSIONS_ENDSCN": (f"o_rowscn({alias}.ve)", types.NUMBER),
        "VERSIONS_STARTTIME": (f"o_scn_to_timestamp(o_rowscn({alias}.vs))", _VERSION_TIME),
        "VERSIONS_ENDTIME": (f"o_scn_to_timestamp(o_rowscn({alias}.ve))", _VERSION_TIME),
        "VERSIONS_XID": (f"o_version_xid({alias}.vs)", types.raw(8)),
        "VERSIONS_OPERATION": (f"{alias}.vop", types.varchar(1)),
    }
    columns = dict(source.columns)
    for name, (text, kind) in pseudo.items():
        columns.setdefault(name, SourceColumn(name, text, kind))
    return replace(source, columns=columns, hidden=source.hidden | frozenset(pseudo), rowscn=None)


def find_relation(
    state: Compilation, name: ast.Name, pos: int
) -> Definition | tuple[VirtualTable, bool]:
    """What a name in FROM means; synonyms are followed.

    Raises:
        OracleError: ORA-00942 when there is nothing, or nothing that the user may read.
    """
    owner = name[0] if len(name) > 1 else None
    environment = state.environment
    for _ in range(_SYNONYM_DEPTH_MAX):
        found = environment.find(owner or environment.schema, name[-1])
        if found is None and owner is None:
            found = environment.find("PUBLIC", name[-1])
        if found is None:
            virtual = environment.virtual(name[-1], owner)
            if virtual is None:
                raise ora(942, offset=pos)
            return virtual
        if not isinstance(found, SynonymDef):
            if not state.view_depth and not environment.may_select(found):
                raise ora(942, offset=pos)
            if isinstance(found, TableDef) and found.companion:
                raise not_of_its_own(found.companion, pos)
            return found
        owner, name = found.target_owner, (found.target_name,)
    raise OracleError(1775, "looping chain of synonyms", pos)


def _view(
    state: Compilation, alias: str, item: ast.FromTable, view: ViewDef, flashback: Flashback | None
) -> tuple[Source, str]:
    if state.view_depth >= _VIEW_DEPTH_MAX:
        raise OracleError(1731, "circular view definition encountered", item.pos)
    outer_environment, outer_flashback = state.environment, state.flashback
    state.environment = replace(outer_environment, schema=view.owner)
    state.flashback = flashback
    state.view_depth += 1
    try:
        text, columns, _ = state.query(state.environment.parse_view(view.text), None)
    except OracleError as error:
        if error.code in (904, 942):
            raise OracleError(
                4063, f'view "{view.owner}.{view.name}" has errors', item.pos
            ) from error
        raise
    finally:
        state.environment, state.flashback = outer_environment, outer_flashback
        state.view_depth -= 1
    if view.columns:
        columns = [
            replace(column, name=name) for column, name in zip(columns, view.columns, strict=True)
        ]
    source = output_source(alias, item.alias or view.name, columns)
    source.owner = view.owner
    return source, f"({text}) {alias}"


def _virtual(
    state: Compilation,
    alias: str,
    item: ast.FromTable,
    found: tuple[VirtualTable, bool],
    flashback: Flashback | None,
) -> tuple[Source, str]:
    view, dictionary = found
    if flashback is not None and not dictionary:
        raise unsupported("AS OF on this view", item.pos)
    use = VirtualUse(state.new_alias("v"), view, dictionary, flashback)
    state.plan.virtuals.append(use)
    columns = {
        meta.name: SourceColumn(
            meta.name, f"{alias}.c{number}", type_from_meta(meta), meta.nullable
        )
        for number, meta in enumerate(view.columns, 1)
    }
    source = Source(alias, item.alias or item.name[-1], "SYS", columns, virtual=use)
    return source, f"{use.name} {alias}"


# --- joins ----------------------------------------------------------------------------------------


def _join(state: Compilation, item: ast.Join, scope: Scope) -> str:
    before = len(scope.sources)
    left = compile_from_item(state, item.left, scope)
    middle = len(scope.sources)
    right = compile_from_item(state, item.right, scope)
    if isinstance(item.right, ast.Join):
        right = f"({right})"
    if item.kind == "CROSS":
        return f"{left} JOIN {right}"
    lefts, rights = scope.sources[before:middle], scope.sources[middle:]
    if item.using or item.natural:
        condition = _using(item, scope, lefts, rights)
    elif item.on is not None:
        inner = Scope(lefts + rights, scope.parent, scope.ctes, dict(scope.merged))
        condition = state.condition(item.on, inner)
    else:
        condition = "1"
    kind = "" if item.kind == "INNER" else f"{item.kind} "
    if item.kind in ("LEFT", "FULL"):
        _make_nullable(rights)
    if item.kind in ("RIGHT", "FULL"):
        _make_nullable(lefts)
    return f"{left} {kind}JOIN {right} ON {condition}"


def _using(item: ast.Join, scope: Scope, lefts: list[Source], rights: list[Source]) -> str:
    names = item.using
    if item.natural:
        offered = [name for source in lefts for name in source.columns]
        names = tuple(name for name in offered if any(name in source.columns for source in rights))
    conditions = []
    for name in names:
        a = _one_of(name, lefts, scope)
        b = _one_of(name, rights, scope)
        conditions.append(compare("=", a, b))
        kept = b if item.kind == "RIGHT" else a
        text = f"coalesce({a.text}, {b.text})" if item.kind == "FULL" else kept.text
        scope.merged[name] = Sql(text, kept.type, a.nullable or b.nullable, mask=a.mask or b.mask)
    return " AND ".join(conditions) or "1"


def _one_of(name: str, sources: list[Source], scope: Scope) -> Sql:
    if name in scope.merged:
        return scope.merged[name]
    found = [source for source in sources if name in source.columns]
    if len(found) != 1:
        raise ora(918) if found else ora(904, f'"{name}"')
    return column_of(found[0], name)


# --- the old outer join sign ----------------------------------------------------------------------


def compile_outer_joins(
    state: Compilation, texts: list[str], scope: Scope, conjuncts: list[ast.Expr]
) -> tuple[str, list[ast.Expr]]:
    """FROM text for conditions with ``(+)``, and the conditions that stay in WHERE."""
    by_source: dict[str, list[ast.Expr]] = {}
    needs: dict[str, set[str]] = {}
    rest = []
    for conjunct in conjuncts:
        marked = {
            _source_of(column, scope).alias for column in columns_in(conjunct) if column.outer
        }
        if not marked:
            rest.append(conjunct)
            continue
        if len(marked) > 1:
            raise OracleError(
                1468, "a predicate may reference only one outer-joined table", conjunct.pos
            )
        if isinstance(conjunct, ast.Logical) and conjunct.op == "OR":
            raise OracleError(
                1719, "outer join operator (+) not allowed in operand of OR or IN", conjunct.pos
            )
        (alias,) = marked
        by_source.setdefault(alias, []).append(conjunct)
        others = {
            _source_of(column, scope).alias for column in columns_in(conjunct) if not column.outer
        }
        needs.setdefault(alias, set()).update(others - {alias})
    order = [source.alias for source in scope.sources]
    by_alias = dict(zip(order, texts, strict=True))
    placed = [alias for alias in order if alias not in by_source]
    if not placed:
        raise OracleError(1416, "two tables cannot be outer-joined to each other")
    text = " JOIN ".join(by_alias[alias] for alias in placed)
    waiting = [alias for alias in order if alias in by_source]
    sources = {source.alias: source for source in scope.sources}
    while waiting:
        ready = next((alias for alias in waiting if needs[alias] <= set(placed)), None)
        if ready is None:
            raise OracleError(1416, "two tables cannot be outer-joined to each other")
        condition = " AND ".join(state.condition(item, scope) for item in by_source[ready])
        text += f" LEFT JOIN {by_alias[ready]} ON {condition}"
        waiting.remove(ready)
        placed.append(ready)
    for alias in by_source:
        _make_nullable([sources[alias]])
    return text, rest


def _source_of(column: ast.Column, scope: Scope) -> Source:
    *qualifier, name = column.name
    for source in scope.sources:
        if (name in source.columns or name == "ROWID") and matches(source, tuple(qualifier)):
            return source
    raise ora(904, ".".join(f'"{part}"' for part in column.name), offset=column.pos)


def columns_in(node: ast.Expr) -> list[ast.Column]:
    """All column names of a condition, subqueries left out."""
    if isinstance(node, ast.Column):
        return [node]
    found = []
    for child in children(node):
        found.extend(columns_in(child))
    return found


_OPERAND_FIELDS: dict[type[ast.Expr], tuple[str, ...]] = {}
"""Fields that may hold operands, of the kinds of expressions that were met."""


def _operand_fields(kind: type[ast.Expr]) -> tuple[str, ...]:
    if kind not in _OPERAND_FIELDS:
        _OPERAND_FIELDS[kind] = tuple(
            item.name for item in fields(kind) if item.type not in _PLAIN_FIELDS
        )
    return _OPERAND_FIELDS[kind]


def children(node: ast.Expr) -> list[ast.Expr]:
    """Direct operands of an expression, subqueries left out."""
    found: list[ast.Expr] = []
    for name in _operand_fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, ast.Expr):
            found.append(value)
        elif isinstance(value, tuple):
            for item in value:
                if isinstance(item, ast.Expr):
                    found.append(item)
                elif isinstance(item, ast.OrderItem):
                    found.append(item.expr)
                elif isinstance(item, tuple):
                    found.extend(part for part in item if isinstance(part, ast.Expr))
        elif isinstance(value, ast.Window):
            found.extend(value.partition)
            found.extend(item.expr for item in value.order)
    return found


def _make_nullable(sources: list[Source]) -> None:
    for source in sources:
        source.columns = {
            name: replace(column, nullable=True) for name, column in source.columns.items()
        }
