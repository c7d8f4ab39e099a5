"""How do query blocks become SQLite SQL?"""

from __future__ import annotations

from dataclasses import replace

from oracle_embedded.api import OracleError, OraType
from oracle_embedded.engine.compile.aggregates import sort_text
from oracle_embedded.engine.compile.calls import stored_call
from oracle_embedded.engine.compile.compilation import Compilation, Rules
from oracle_embedded.engine.compile.conditions import as_equal, compile_condition
from oracle_embedded.engine.compile.conversions import common_type, convert
from oracle_embedded.engine.compile.expressions import compile_cursor, compile_value
from oracle_embedded.engine.compile.from_items import (
    columns_in,
    compile_from_item,
    compile_outer_joins,
)
from oracle_embedded.engine.compile.grouped import check_grouped, has_aggregate
from oracle_embedded.engine.compile.grouping_sets import by_sets, union_of_sets
from oracle_embedded.engine.compile.plan import OutputColumn, Plan, Sql, VirtualUse
from oracle_embedded.engine.compile.policies import with_mask
from oracle_embedded.engine.compile.rownum import (
    FLIPPED,
    conjuncts_of,
    generate_levels,
    number_rows,
    rownum_limit,
    uses_rownum,
)
from oracle_embedded.engine.compile.scopes import (
    CteSource,
    Scope,
    Source,
    SourceColumn,
    column_of,
    matches,
    resolve,
)
from oracle_embedded.engine.compile.subquery_rowids import sources_of
from oracle_embedded.engine.datatypes import types
from oracle_embedded.engine.datatypes.types import DOCUMENTS, FAMILY_NAMES
from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.sql import ast

_SET_WORDS = {
    "UNION": "UNION",
    "UNION ALL": "UNION ALL",
    "MINUS": "EXCEPT",
    "INTERSECT": "INTERSECT",
}
_COMPOUND_MAX = 400
"""SQLite takes 500 queries in one chain."""
_LISTED_MAX = 8
"""Of how many values a view is told: it is asked for each of them apart."""


def compile_select(state: Compilation, node: ast.Query, *, tells_places: bool = False) -> Plan:
    """Compile a statement that is a query, for a transaction that may write LOBs of its rows with
    their places."""
    if node.for_update is not None and (node.fetch is not None or node.offset is not None):
        raise OracleError(2014, "cannot select FOR UPDATE from view with DISTINCT, GROUP BY, etc.")
    if tells_places and isinstance(node.body, ast.Select) and node.for_update is None:
        state.told_places = node.body
    text, columns, _ = state.query(node, None)
    state.plan.text = text
    state.plan.columns = columns
    return state.plan


def compile_query(
    state: Compilation, node: ast.Query, parent: Scope | None
) -> tuple[str, list[OutputColumn], bool]:
    """A query with WITH, ORDER BY and row limits."""
    node = by_sets(node)
    outer = Scope(parent=parent)
    prefix = _ctes(state, node, outer) if node.ctes else ""
    if node.with_ties or node.is_percent:
        return _ranked(state, node, outer, prefix)
    limit = _limit(state, node, outer)
    if isinstance(node.body, ast.Select):
        text, columns, single = _select(state, node.body, outer, node.order, node.for_update)
    else:
        text, columns = _body(state, node.body, outer)
        single = False
        if node.order:
            keys = ", ".join(_position_key(state, item, columns) for item in node.order)
            text = f"SELECT * FROM ({text}) ORDER BY {keys}"
        elif limit:
            text = f"SELECT * FROM ({text})"
    if node.for_update is not None and not isinstance(node.body, ast.Select):
        raise OracleError(2014, "cannot select FOR UPDATE from view with DISTINCT, GROUP BY, etc.")
    return f"{prefix}{text}{limit}", columns, single


def _limit(state: Compilation, node: ast.Query, scope: Scope) -> str:
    if node.fetch is None and node.offset is None:
        return ""
    text = " LIMIT -1"
    if node.fetch is not None:
        count = convert(state.value(node.fetch, scope), "number", node.fetch.pos)
        text = f" LIMIT ifnull(o_limit({count.text}), 0)"
    if node.offset is not None:
        count = convert(state.value(node.offset, scope), "number", node.offset.pos)
        text += f" OFFSET ifnull(o_limit({count.text}), 9223372036854775807)"
    return text


def _ranked(
    state: Compilation, node: ast.Query, outer: Scope, prefix: str
) -> tuple[str, list[OutputColumn], bool]:
    """A query whose last row is found by its rank, or by how many rows there are."""
    if node.for_update is not None:
        raise OracleError(2014, "cannot select FOR UPDATE from view with DISTINCT, GROUP BY, etc.")
    assert node.fetch is not None
    if isinstance(node.body, ast.Select):
        state.told_places = None
        text, columns, _ = _select(state, node.body, outer, node.order, is_ranked=True)
    else:
        text, columns = _body(state, node.body, outer)
        keys = ", ".join(_position_key(state, item, columns) for item in node.order)
        text = f"SELECT *{_ranks(f'ORDER BY {keys}' if keys else '')} FROM ({text})"
    offset = "0"
    if node.offset is not None:
        value = convert(state.value(node.offset, outer), "number", node.offset.pos)
        offset = f"ifnull(o_limit({value.text}), 9223372036854775807)"
    count = convert(state.value(node.fetch, outer), "number", node.fetch.pos)
    most = f"o_share(n, {count.text})" if node.is_percent else f"o_limit({count.text})"
    last = "k" if node.with_ties and node.order else "r"
    names = ", ".join(f"c{number}" for number in range(1, len(columns) + 1))
    chosen = f"r > {offset} AND {last} <= {offset} + ifnull({most}, 0)"
    return f"{prefix}SELECT {names} FROM ({text}) WHERE {chosen} ORDER BY r", columns, False


def _ranks(order: str) -> str:
    """What a row is in its order: its number, its rank, and of how many."""
    return f", row_number() OVER ({order}) AS r, rank() OVER ({order}) AS k, count(*) OVER () AS n"


# --- WITH and set operations ----------------------------------------------------------------------


def _ctes(state: Compilation, node: ast.Query, scope: Scope) -> str:
    parts = []
    for cte in node.ctes:
        if cte.name in scope.ctes:
            raise ora(918)
        table = state.new_alias("w")
        if cte.columns and _mentions(cte.query, cte.name):
            parts.append(_recursive(state, cte, table, scope))
            continue
        text, columns, _ = state.query(cte.query, scope)
        if cte.columns:
            if len(cte.columns) != len(columns):
                raise OracleError(
                    32038,
                    "number of WITH clause column names does not match number of elements in select list",
                )
            columns = [
                replace(item, name=name) for item, name in zip(columns, cte.columns, strict=True)
            ]
        names = ", ".join(f"c{number}" for number in range(1, len(columns) + 1))
        parts.append(f"{table}({names}) AS ({text})")
        scope.ctes[cte.name] = CteSource(table, _cte_columns(columns))
    return f"WITH RECURSIVE {', '.join(parts)} "


def _recursive(state: Compilation, cte: ast.Cte, table: str, scope: Scope) -> str:
    body = cte.query.body
    if not isinstance(body, ast.SetOperation) or body.op != "UNION ALL":
        raise OracleError(32040, "recursive WITH clause must use a UNION ALL operation")
    first, columns = _body(state, body.left, scope)
    columns = [
        OutputColumn(name, _widened(item), True, item.mask)
        for name, item in zip(cte.columns, columns, strict=True)
    ]
    scope.ctes[cte.name] = CteSource(table, _cte_columns(columns))
    second, others = _body(state, body.right, scope)
    if len(others) != len(columns):
        raise ora(1789)
    for item, other in zip(columns, others, strict=True):
        if other.type.family not in (item.type.family, "null"):
            raise ora(1790)
    names = ", ".join(f"c{number}" for number in range(1, len(columns) + 1))
    return f"{table}({names}) AS ({first} UNION ALL {second})"


def _body(state: Compilation, body: ast.Body, scope: Scope) -> tuple[str, list[OutputColumn]]:
    match body:
        case ast.Select() if body.grouping_sets is not None:
            return _body(state, union_of_sets(body), scope)
        case ast.Select():
            text, columns, _ = _select(state, body, scope)
            return text, columns
        case ast.Query():
            text, columns, _ = state.query(body, scope)
            if body.order or body.fetch or body.offset or body.ctes:
                text = f"SELECT * FROM ({text})"
            return text, columns
        case ast.SetOperation():
            return _set_operation(state, body, scope)


def _set_operation(
    state: Compilation, node: ast.SetOperation, scope: Scope
) -> tuple[str, list[OutputColumn]]:
    chain = [node]
    while isinstance(chain[-1].left, ast.SetOperation):
        chain.append(chain[-1].left)
    left, left_columns = _body(state, chain[-1].left, scope)
    for number, one in enumerate(reversed(chain), 1):
        if number % _COMPOUND_MAX == 0:
            left = f"SELECT * FROM ({left})"
        left, left_columns = _combined(state, one, left, left_columns, scope)
    return left, left_columns


def _combined(
    state: Compilation,
    node: ast.SetOperation,
    left: str,
    left_columns: list[OutputColumn],
    scope: Scope,
) -> tuple[str, list[OutputColumn]]:
    right, right_columns = _body(state, node.right, scope)
    if len(left_columns) != len(right_columns):
        raise ora(1789, offset=node.pos)
    if any(item.type.row for item in (*left_columns, *right_columns)):
        raise _no_cursor_here(node.pos)
    texts = [*left_columns, *right_columns] if node.op != "UNION ALL" else []
    if any(state.order_of(item.type).equality for item in texts):
        raise unsupported(f"{node.op} with NLS_COMP = LINGUISTIC", node.pos)
    columns, left_casts, right_casts = [], [], []
    for number, (a, b) in enumerate(zip(left_columns, right_columns, strict=True), 1):
        merged, casts = _merge_column(a, b, number, node)
        columns.append(merged)
        left_casts.append(casts[0])
        right_casts.append(casts[1])
    word = _SET_WORDS[node.op]
    as_it_is = [f"c{number} AS c{number}" for number in range(1, len(columns) + 1)]
    if not (isinstance(node.left, ast.SetOperation) and left_casts == as_it_is):
        left = f"SELECT {', '.join(left_casts)} FROM ({left})"
    # SQLite, too, takes set operators from left to right; nested, a few dozen would be too deep for
    # it.
    return f"{left} {word} SELECT {', '.join(right_casts)} FROM ({right})", columns


def _merge_column(
    a: OutputColumn, b: OutputColumn, number: int, node: ast.SetOperation
) -> tuple[OutputColumn, tuple[str, str]]:
    name = f"c{number}"
    families = (a.type.family, b.type.family)
    if node.op != "UNION ALL" and ("clob" in families or "blob" in families):
        raise ora(932, "-", FAMILY_NAMES["clob" if "clob" in families else "blob"], offset=node.pos)
    for family in families:
        if node.op != "UNION ALL" and family in DOCUMENTS:
            raise unsupported(f"comparing values of type {FAMILY_NAMES[family]}", node.pos)
    nullable = a.nullable or b.nullable
    if families[0] == families[1]:
        merged = OutputColumn(
            a.name, common_type(families[0], [a.type, b.type]), nullable, a.mask or b.mask
        )
        return merged, (f"{name} AS {name}", f"{name} AS {name}")
    if "null" in families:
        kept = a if families[1] == "null" else b
        merged = OutputColumn(a.name, kept.type, True, a.mask or b.mask)
        return merged, (f"{name} AS {name}", f"{name} AS {name}")
    wider = [family for family in ("number", "float", "double") if family in families]
    if len(wider) == 2:
        target = wider[-1]
        texts = [convert(Sql(name, item.type), target).text + f" AS {name}" for item in (a, b)]
        merged = OutputColumn(a.name, types.family_type(target), nullable, a.mask or b.mask)
        return merged, (texts[0], texts[1])
    raise ora(1790, offset=node.pos)


def _position_key(state: Compilation, item: ast.OrderItem, columns: list[OutputColumn]) -> str:
    position = _order_position(item.expr, columns)
    if position is None:
        raise ora(1785, offset=item.expr.pos)
    column = columns[position]
    value = Sql(f"c{position + 1}", column.type, column.nullable)
    value.order = state.order_of(column.type)
    return sort_text(value, item)


# --- one block ------------------------------------------------------------------------------------


def _select(
    state: Compilation,
    node: ast.Select,
    outer: Scope,
    order: tuple[ast.OrderItem, ...] = (),
    for_update: ast.ForUpdate | None = None,
    *,
    is_ranked: bool = False,
) -> tuple[str, list[OutputColumn], bool]:
    scope = Scope(parent=outer.parent, ctes=dict(outer.ctes))
    scope.parent = outer
    sources = sources_of(state, node, order, scope)
    texts = [compile_from_item(state, item, scope) for item in sources]
    _check_names(scope, node)
    if node.connect_by is not None:
        texts = [generate_levels(state, node, scope, texts)]
    conjuncts = conjuncts_of(node.where)
    limit, conjuncts = rownum_limit(state, conjuncts, outer)
    outer_signs = any(column.outer for item in conjuncts for column in columns_in(item))
    if outer_signs:
        source_text, conjuncts = compile_outer_joins(state, texts, scope, conjuncts)
    else:
        source_text = " JOIN ".join(texts)
    where = compile_where(state, conjuncts, scope)
    grouped = (
        node.group is not None
        or any(has_aggregate(item.expr) for item in node.items)
        or node.having is not None
    )
    numbered = uses_rownum(node, order)
    if numbered or (limit and (grouped or node.distinct or order)):
        source_text, scope = number_rows(state, source_text, where, limit, scope, numbered)
        where, limit = "", ""
    items = _items(state, node, scope)
    group = ""
    if node.group is not None:
        group = (
            " GROUP BY " + ", ".join(_group_key(state, item, scope) for item in node.group)
            if node.group
            else ""
        )
    having = f" HAVING {state.condition(node.having, scope)}" if node.having is not None else ""
    if grouped:
        check_grouped(state, node, order, scope)
    columns = [
        OutputColumn(name, value.type, _may_be_null(value), value.mask, _is_json(value))
        for name, value, _ in items
    ]
    order_text = ""
    if order:
        order_text = _order(state, order, node, items, columns, scope, by_number=not is_ranked)
    locks = ""
    if for_update is not None:
        values = [value for _, value, _ in items]
        locks = _locks(state, node, for_update, scope, grouped, values)
    elif node is state.told_places and not (grouped or node.distinct or numbered):
        locks = _places(state, scope, [value for _, value, _ in items])
    selected = ", ".join(
        f"{value.text} AS c{number}" for number, (_, value, _) in enumerate(items, 1)
    )
    distinct = "DISTINCT " if node.distinct else ""
    if node.distinct:
        selected = ", ".join(
            f"{as_equal(value)} AS c{number}" for number, (_, value, _) in enumerate(items, 1)
        )
    if is_ranked:
        if node.distinct:
            raise unsupported("DISTINCT with FETCH … PERCENT or WITH TIES", node.pos)
        selected, order_text = selected + _ranks(order_text.strip()), ""
    if any(item.type.row for item in columns) and (node.distinct or grouped or for_update):
        raise _no_cursor_here(node.pos)
    if node.distinct and any(item.type.family in ("clob", "blob") for item in columns):
        raise ora(932, "-", "CLOB", offset=node.pos)
    text = f"SELECT {distinct}{selected}{locks} FROM {source_text}{where}{group}{having}{order_text}{limit}"
    single = (
        (grouped and node.group is None)
        or limit == " LIMIT 1"
        or (
            node.connect_by is None
            and all(
                isinstance(item, ast.FromTable) and item.name == ("DUAL",) for item in node.sources
            )
        )
    )
    return text, columns, single


def _group_key(state: Compilation, item: ast.Expr, scope: Scope) -> str:
    """What groups are made by; a column of an enclosing query, which SQLite does not take, is the
    same for all rows."""
    value = state.value(item, scope)
    if isinstance(item, ast.Column) and resolve(item, replace(scope, parent=None)) is None:
        is_outer = scope.parent is not None and resolve(item, scope.parent) is not None
        return "NULL" if is_outer else as_equal(value)
    return as_equal(value)


def compile_where(state: Compilation, conjuncts: list[ast.Expr], scope: Scope) -> str:
    for item in conjuncts:
        if has_aggregate(item):
            raise ora(934, offset=item.pos)
        _push_down(state, item, scope)
    if not conjuncts:
        return ""
    return " WHERE " + " AND ".join(state.condition(item, scope) for item in conjuncts)


def _push_down(state: Compilation, item: ast.Expr, scope: Scope) -> None:
    """Tell computed views about simple conditions on their columns."""
    if not any(source.virtual for source in scope.sources):
        return
    if any(order.equality for order in state.environment.orders.values()):
        return
    if isinstance(item, ast.Between) and not item.negated:
        _push_down(state, ast.Compare(">=", item.operand, item.low), scope)
        _push_down(state, ast.Compare("<=", item.operand, item.high), scope)
        return
    if isinstance(item, ast.In) and len(item.items) == 1 and not item.negated:
        item = ast.Compare("=", item.operand, item.items[0])
    if isinstance(item, ast.In) and 1 < len(item.items) <= _LISTED_MAX and not item.negated:
        _push_list(state, item, scope)
    if not isinstance(item, ast.Compare) or item.op == "<>":
        return
    for column, op, other in (
        (item.left, item.op, item.right),
        (item.right, FLIPPED[item.op], item.left),
    ):
        if (found := _filter_of(state, column, other, scope)) is not None:
            virtual, name, text = found
            virtual.filters.append((name, op, text))


def _push_list(state: Compilation, item: ast.In, scope: Scope) -> None:
    """Tell a view of the dictionary which texts of a column a list leaves."""
    found = [_filter_of(state, item.operand, one, scope) for one in item.items]
    told = [one for one in found if one is not None]
    if len(told) < len(found):
        return
    virtual, column, _ = told[0]
    kinds = {meta.name: meta.type for meta in virtual.view.columns}
    if virtual.dictionary and kinds[column] == OraType.VARCHAR:
        virtual.filters += [(column, "in", text) for _, _, text in told]


def _filter_of(
    state: Compilation, column: ast.Expr, other: ast.Expr, scope: Scope
) -> tuple[VirtualUse, str, str] | None:
    """The computed view that has a column, the column, and the constant that it is compared with,
    as SQLite text."""
    if not isinstance(column, ast.Column) or isinstance(other, ast.Row | ast.Scalar | ast.Column):
        return None
    *qualifier, name = column.name
    sources = [
        source
        for source in scope.sources
        if name in source.columns and matches(source, tuple(qualifier))
    ]
    if len(sources) != 1 or sources[0].virtual is None or columns_in(other):
        return None
    kind = sources[0].columns[name].type
    value = state.value(other, scope)
    same = kind.family == value.family and not kind.is_char
    if value.constant and (same or (value.family == "text" and kind.family == "number")):
        return sources[0].virtual, name, convert(value, kind.family).text
    return None


# --- select list ----------------------------------------------------------------------------------


def _items(
    state: Compilation, node: ast.Select, scope: Scope
) -> list[tuple[str, Sql, ast.Expr | None]]:
    found: list[tuple[str, Sql, ast.Expr | None]] = []
    for item in node.items:
        if item.star is None:
            state.masks = []
            value = (
                compile_cursor(state, item.expr, scope)
                if isinstance(item.expr, ast.CursorQuery)
                else state.value(item.expr, scope)
            )
            value = with_mask(value, state.masks)
            found.append((item.alias or _heading(item), value, item.expr))
            continue
        if not item.star:
            found.extend((name, value, None) for name, value in scope.merged.items())
        sources = [source for source in scope.sources if matches(source, item.star)]
        if not sources:
            raise ora(904, ".".join(f'"{part}"' for part in item.star), offset=item.expr.pos)
        for source in sources:
            for key, column in source.columns.items():
                if key in source.hidden:
                    continue
                if item.star or column.name not in scope.merged:
                    found.append((column.name, column_of(source, key), None))
    return found


def _no_cursor_here(pos: int) -> OracleError:
    return OracleError(22902, "CURSOR expression not allowed", pos)


def _is_json(value: Sql) -> bool:
    return value.base is not None and value.column in value.base.table.json_columns


def _may_be_null(value: Sql) -> bool:
    """Only columns keep NOT NULL in a result, whatever else an expression can be."""
    return value.nullable or (value.column is None and not value.is_rowid)


def _order(
    state: Compilation,
    order: tuple[ast.OrderItem, ...],
    node: ast.Select,
    items: list[tuple[str, Sql, ast.Expr | None]],
    columns: list[OutputColumn],
    scope: Scope,
    *,
    by_number: bool,
) -> str:
    keys = []
    for item in order:
        position = _order_position(item.expr, columns, [alias.alias for alias in node.items])
        if position is None:
            try:
                value = state.value(item.expr, scope)
            except OracleError as error:
                # A name that several tables have means the selected column.
                position = _order_position(item.expr, columns) if error.code == 918 else None
                if position is None:
                    raise
        if position is None:
            if node.distinct and value.text not in [selected.text for _, selected, _ in items]:
                raise ora(1791, offset=item.expr.pos)
            keys.append(sort_text(value, item))
            continue
        value = items[position][1]
        key = sort_text(replace(value), item)
        simple = by_number and key.startswith(value.text)
        keys.append(f"{position + 1}{key[len(value.text) :]}" if simple else key)
    return " ORDER BY " + ", ".join(keys)


def _locks(
    state: Compilation,
    node: ast.Select,
    for_update: ast.ForUpdate,
    scope: Scope,
    grouped: bool,
    values: list[Sql],
) -> str:
    if grouped or node.distinct:
        raise OracleError(2014, "cannot select FOR UPDATE from view with DISTINCT, GROUP BY, etc.")
    wanted = [
        source for source in scope.sources if source.use is not None and source.rowid is not None
    ]
    if for_update.of:
        kept = []
        for name in for_update.of:
            *qualifier, column = name
            kept += [
                item
                for item in wanted
                if column in item.columns and matches(item, tuple(qualifier))
            ]
        wanted = [item for item in wanted if item in kept]
    if not wanted:
        raise OracleError(2014, "cannot select FOR UPDATE from view with DISTINCT, GROUP BY, etc.")
    text = ""
    for source in wanted:
        assert source.use is not None
        state.plan.locators |= _locators(source, values, len(state.plan.locks))
        state.plan.locks.append(source.use)
        text += f", {source.rowid} AS l{len(state.plan.locks)}"
    return text


def _locators(source: Source, values: list[Sql], number: int) -> dict[int, tuple[int, str]]:
    """The LOB columns of a source in a result."""
    names = {column.text: name for name, column in source.columns.items()}
    return {
        at: (number, names[value.text])
        for at, value in enumerate(values)
        if value.type.has_locators and value.text in names
    }


def _places(state: Compilation, scope: Scope, values: list[Sql]) -> str:
    """The addresses of rows of tables that hold LOBs of the result."""
    text = ""
    for source in scope.sources:
        if source.use is None or source.rowid is None or source.use.flashback is not None:
            continue
        found = _locators(source, values, len(state.plan.places))
        if found:
            state.plan.locators |= found
            state.plan.places.append(source.use)
            text += f", {source.rowid} AS p{len(state.plan.places)}"
    return text

    # --- grouping ---------------------------------------------------------------------------------


def _order_position(
    expr: ast.Expr, columns: list[OutputColumn], aliases: list[str | None] | None = None
) -> int | None:
    """The select item that a sort key names by number or alias."""
    if isinstance(expr, ast.Number):
        if not expr.text.isdigit() or not 1 <= int(expr.text) <= len(columns):
            raise ora(1785, offset=expr.pos)
        return int(expr.text) - 1
    if isinstance(expr, ast.Column) and len(expr.name) == 1:
        named = [at for at, item in enumerate(columns) if item.name == expr.name[0]]
        if aliases is None:
            return named[0] if named else None
        if expr.name[0] in aliases and len(aliases) == len(columns):
            return aliases.index(expr.name[0])
    return None


def _heading(item: ast.SelectItem) -> str:
    if isinstance(item.expr, ast.Column):
        return item.expr.name[-1]
    parts = item.text.split("'")
    parts[::2] = ["".join(part.split()).upper() for part in parts[::2]]
    return "'".join(parts)


def _check_names(scope: Scope, node: ast.Select) -> None:
    names = [source.name for source in scope.sources if source.name is not None]
    owners = [(source.owner, source.name) for source in scope.sources if source.name is not None]
    if len(set(names)) != len(names) and len(set(owners)) != len(owners):
        raise ora(918, offset=node.pos)


def _widened(item: OutputColumn) -> types.SqlType:
    kind = item.type
    return (
        types.varchar(4000)
        if kind.family == "text"
        else types.NUMBER
        if kind.family == "number"
        else kind
    )


def _cte_columns(columns: list[OutputColumn]) -> list[SourceColumn]:
    return [
        SourceColumn(item.name, f"c{number}", item.type, item.nullable, item.mask)
        for number, item in enumerate(columns, 1)
    ]


def _mentions(node: object, name: str) -> bool:
    """Does a query refer to a table of this name?"""
    if isinstance(node, ast.FromTable):
        return node.name == (name,)
    if isinstance(node, tuple):
        return any(_mentions(item, name) for item in node)
    fields = getattr(node, "__dataclass_fields__", None)
    if fields is None:
        return False
    return any(_mentions(getattr(node, field), name) for field in fields)


def _no_variable(_state: Compilation, _name: ast.Name) -> None:
    return None


SQL = Rules(compile_value, compile_condition, compile_query, _no_variable, stored_call)
"""The rules of SQL outside of PL/SQL blocks."""
