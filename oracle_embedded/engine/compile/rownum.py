"""How do ROWNUM and the row generator CONNECT BY LEVEL become SQLite SQL?"""

from __future__ import annotations

from dataclasses import replace

from oracle_embedded.engine.compile.compilation import Compilation
from oracle_embedded.engine.compile.conversions import convert
from oracle_embedded.engine.compile.from_items import columns_in
from oracle_embedded.engine.compile.scopes import Scope
from oracle_embedded.engine.errors import unsupported
from oracle_embedded.engine.sql import ast

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
_LEVEL_MAX = 10_000_000


def rownum_limit(
    state: Compilation, conjuncts: list[ast.Expr], scope: Scope
) -> tuple[str, list[ast.Expr]]:
    """Turn conditions on ROWNUM into a row limit; gives the other conditions."""
    limits, rest = [], []
    for item in conjuncts:
        if not any(column.name == ("ROWNUM",) for column in columns_in(item)):
            rest.append(item)
            continue
        limits.extend(_rownum_bounds(state, item, scope))
    if not limits:
        return "", rest
    return " LIMIT " + (limits[0] if len(limits) == 1 else f"min({', '.join(limits)})"), rest


def _rownum_bounds(state: Compilation, item: ast.Expr, scope: Scope) -> list[str]:
    if isinstance(item, ast.Between) and not item.negated and _is_rownum(item.operand):
        low = ast.Compare(">=", item.operand, item.low, pos=item.pos)
        high = ast.Compare("<=", item.operand, item.high, pos=item.pos)
        return _rownum_bounds(state, low, scope) + _rownum_bounds(state, high, scope)
    if not isinstance(item, ast.Compare):
        raise unsupported("this condition on ROWNUM", item.pos)
    op, other = item.op, item.right
    if not _is_rownum(item.left):
        op, other = FLIPPED[op], item.left
    if any(_is_rownum(column) for column in columns_in(other)) or not (
        _is_rownum(item.left) or _is_rownum(item.right)
    ):
        raise unsupported("this condition on ROWNUM", item.pos)
    bound = convert(state.value(other, Scope(parent=scope)), "number", item.pos).text
    one = "x'c102'"
    match op:
        case "<=":
            return [f"ifnull(o_limit({bound}), 0)"]
        case "<":
            return [f"ifnull(o_limit_below({bound}), 0)"]
        case "=":
            return [f"ifnull({bound} = {one}, 0)"]
        case ">=":
            return [f"(CASE WHEN {bound} <= {one} THEN 4611686018427387903 ELSE 0 END)"]
        case ">":
            return [f"(CASE WHEN {bound} < {one} THEN 4611686018427387903 ELSE 0 END)"]
    return [f"ifnull(o_limit_below({bound}), 0)"]


def uses_rownum(node: ast.Select, order: tuple[ast.OrderItem, ...]) -> bool:
    exprs = (
        [item.expr for item in node.items] + [item.expr for item in order] + list(node.group or ())
    )
    return any(_is_rownum(column) for expr in exprs for column in columns_in(expr))


def number_rows(
    state: Compilation, source_text: str, where: str, limit: str, scope: Scope, numbered: bool
) -> tuple[str, Scope]:
    """Put FROM and WHERE into a subquery that numbers its rows, and rebind all names to it."""
    alias = state.new_alias()
    parts = []
    sources = []
    for at, source in enumerate(scope.sources):
        columns = {}
        for number, (key, column) in enumerate(source.columns.items()):
            name = f"s{at}_{number}"
            parts.append(f"{column.text} AS {name}")
            columns[key] = replace(column, text=f"{alias}.{name}")
            if source.virtual is not None:
                source.virtual.columns.add(column.name)
        rowid = None
        if source.use is not None:
            parts.append(f"{source.rowid} AS r{at}")
            parts.append(f"{source.rowscn} AS v{at}")
            rowid = f"{alias}.r{at}"
        sources.append(
            replace(source, columns=columns, rowid=rowid, rowscn=f"{alias}.v{at}", virtual=None)
        )
    if numbered:
        parts.append("row_number() OVER () AS rn")
    level = None
    if scope.level is not None:
        parts.append(f"{scope.level} AS lv")
        level = f"{alias}.lv"
    text = f"(SELECT {', '.join(parts) or '1'} FROM {source_text}{where}{limit}) {alias}"
    inner = Scope(sources, scope.parent, scope.ctes, level=level)
    inner.rownum = f"o_int({alias}.rn)" if numbered else None
    return text, inner


def generate_levels(state: Compilation, node: ast.Select, scope: Scope, texts: list[str]) -> str:
    """``CONNECT BY LEVEL <= n`` over a table of one row: a row generator."""
    condition = node.connect_by
    one_row = (
        len(node.sources) == 1
        and isinstance(node.sources[0], ast.FromTable)
        and node.sources[0].name == ("DUAL",)
    )
    if not one_row or not isinstance(condition, ast.Compare) or condition.op not in ("<=", "<"):
        raise unsupported("hierarchical queries", node.pos)
    if condition.left not in (ast.Column(("LEVEL",)), ast.Column(("ROWNUM",))):
        raise unsupported("hierarchical queries", node.pos)
    bound = convert(
        state.value(condition.right, Scope(parent=scope.parent)), "number", condition.pos
    )
    function = "o_limit" if condition.op == "<=" else "o_limit_below"
    alias, work = state.new_alias(), state.new_alias("w")
    if not bound.constant:
        # A recursive query cannot depend on the row around it.
        scope.level = f"o_int({alias}.value)"
        return f"{texts[0]} JOIN json_each(o_levels({function}({bound.text}))) {alias}"
    scope.level = f"o_int({alias}.l)"
    counted = (
        f"(WITH RECURSIVE {work}(l) AS (SELECT 1 UNION ALL SELECT l + 1 FROM {work}"
        f" WHERE l < min(ifnull({function}({bound.text}), 1), {_LEVEL_MAX})) SELECT l FROM {work}) {alias}"
    )
    return f"{texts[0]} JOIN {counted}"


def conjuncts_of(where: ast.Expr | None) -> list[ast.Expr]:
    """The conditions that AND joins."""
    if where is None:
        return []
    if isinstance(where, ast.Logical) and where.op == "AND":
        return [part for item in where.items for part in conjuncts_of(item)]
    return [where]


def _is_rownum(node: ast.Expr) -> bool:
    return isinstance(node, ast.Column) and node.name == ("ROWNUM",)
