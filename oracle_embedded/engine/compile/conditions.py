"""How do conditions become SQLite SQL?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from oracle_embedded.engine.compile.compilation import Compilation
from oracle_embedded.engine.compile.conversions import NUMERIC_RANK, ZONED, convert
from oracle_embedded.engine.compile.plan import IN_CODE_POINTS, Sql
from oracle_embedded.engine.compile.scopes import Scope
from oracle_embedded.engine.datatypes.types import DOCUMENTS, FAMILY_NAMES, TEMPORAL
from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.sql import ast

LIST_MAX = 1000
LIST_MAX_OF_23AI = 65_535
"""So many expressions may a comma-delimited list hold.

Source: Oracle Database SQL Language Reference 19c and 23ai, "Expression Lists"; Error Help,
ORA-01795.
"""

_CHAIN_MAX = 100
_SWAPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "<>": "<>"}


def compile_condition(state: Compilation, node: ast.Expr, scope: Scope) -> str:
    """Compile a condition to a SQLite truth value."""
    match node:
        case ast.Logical():
            parts = [state.condition(item, scope) for item in node.items]
            return _chained(node.op, parts)
        case ast.Not():
            return f"(NOT {state.condition(node.operand, scope)})"
        case ast.Compare():
            return _compare_nodes(state, node, scope)
        case ast.IsNull():
            operand = state.value(node.operand, scope)
            return f"({operand.text} IS {'NOT ' if node.negated else ''}NULL)"
        case ast.Like():
            return _like(state, node, scope)
        case ast.Between():
            low = ast.Compare(">=", node.operand, node.low, pos=node.pos)
            high = ast.Compare("<=", node.operand, node.high, pos=node.pos)
            both = f"({_compare_nodes(state, low, scope)} AND {_compare_nodes(state, high, scope)})"
            return f"(NOT {both})" if node.negated else both
        case ast.In():
            return _in(state, node, scope)
        case ast.Exists():
            text, _, _ = state.subquery(node.query, scope)
            return f"EXISTS ({text})"
        case ast.Quantified():
            return _quantified(state, node, scope)
        case ast.Call() if node.name == ("REGEXP_LIKE",):
            return _regexp_like(state, node, scope)
    raise ora(920, offset=node.pos)


def _regexp_like(state: Compilation, node: ast.Call, scope: Scope) -> str:
    """REGEXP_LIKE."""
    if not 2 <= len(node.args) <= 3:
        raise ora(909, offset=node.pos)
    args = [convert(state.value(arg, scope), "text", arg.pos).text for arg in node.args]
    return f"o_regexp_like({', '.join([*args, 'NULL'][:3])})"


def _compare_nodes(state: Compilation, node: ast.Compare, scope: Scope) -> str:
    if isinstance(node.left, ast.Row) or isinstance(node.right, ast.Row):
        return _compare_rows(state, node, scope)
    left, right = state.value(node.left, scope), state.value(node.right, scope)
    return compare(node.op, left, right, node.pos)


def _compare_rows(state: Compilation, node: ast.Compare, scope: Scope) -> str:
    if not isinstance(node.left, ast.Row) or node.op not in ("=", "<>"):
        raise ora(920, offset=node.pos)
    if isinstance(node.right, ast.Scalar):
        inside = ast.In(node.left, (), node.right.query, node.op == "<>", pos=node.pos)
        return _in(state, inside, scope)
    if not isinstance(node.right, ast.Row) or len(node.right.items) != len(node.left.items):
        raise ora(920, offset=node.pos)
    pairs = zip(node.left.items, node.right.items, strict=True)
    parts = [compare("=", state.value(a, scope), state.value(b, scope), node.pos) for a, b in pairs]
    joined = "(" + " AND ".join(parts) + ")"
    return joined if node.op == "=" else f"(NOT {joined})"


def compare(op: str, left: Sql, right: Sql, pos: int = 0) -> str:
    """Compare two values under Oracle's rules for mixed types and padded text."""
    if right.is_rowid and not left.is_rowid:
        left, right, op = right, left, _SWAPPED[op]
    if left.is_rowid and left.base is not None:
        other = convert(right, "rowid", pos)
        is_partitioned = left.base.table.partitioning is not None
        if is_partitioned or (other.is_rowid and other.base is not None):
            return f"({left.text} {op} {other.text})"
        bound = f"o_rid_of({left.base.table.data_object_id}, {other.text})"
        return f"({left.column} {op} {bound})"
    lf, rf = left.family, right.family
    if "clob" in (lf, rf) or "blob" in (lf, rf):
        raise ora(932, "-", FAMILY_NAMES["clob" if "clob" in (lf, rf) else "blob"], offset=pos)
    if lf == rf == "text":
        return _compare_text(op, left, right)
    _check_comparable(lf, rf)
    target = _comparison_family(lf, rf)
    if target is None:
        raise ora(932, FAMILY_NAMES[lf], FAMILY_NAMES[rf], offset=pos)
    a, b = convert(left, target, pos), convert(right, target, pos)
    if target in ZONED:
        return f"(substr({a.text}, 1, 11) {op} substr({b.text}, 1, 11))"
    if target == "ids":
        return f"(o_interval_key({a.text}) {op} o_interval_key({b.text}))"
    return f"({a.text} {op} {b.text})"


def _like(state: Compilation, node: ast.Like, scope: Scope) -> str:
    value = state.value(node.operand, scope)
    operand = convert(value, "text", node.pos)
    pattern = convert(state.value(node.pattern, scope), "text", node.pos)
    texts = [operand.text, pattern.text]
    if value.order.equality is not None:
        texts = [f"o_folded({text})" for text in texts]
    text = f"{texts[0]} {'NOT ' if node.negated else ''}LIKE {texts[1]}"
    if node.escape is not None:
        escape = convert(state.value(node.escape, scope), "text", node.pos)
        text += f" ESCAPE o_escape({escape.text})"
    return f"({text})"


def _in(state: Compilation, node: ast.In, scope: Scope) -> str:
    negation = "NOT " if node.negated else ""
    if node.query is not None:
        return f"({negation}{_in_query(state, node, node.query, scope)})"
    _check_length(state, node.operand, node.items)
    parts = [
        _compare_nodes(state, ast.Compare("=", node.operand, item, pos=item.pos), scope)
        for item in node.items
    ]
    if len(parts) > 4 and not isinstance(node.operand, ast.Row):
        compact = _in_list(state, node, scope)
        if compact is not None:
            return f"({negation}{compact})"
    return f"({negation}{_chained('OR', parts)})"


def _check_length(state: Compilation, left: ast.Expr, items: Sequence[ast.Expr]) -> None:
    """ORA-01795 for a list that is too long; a list of sets may have any number of them."""
    most = LIST_MAX_OF_23AI if state.environment.is_23ai else LIST_MAX
    if len(items) > most and not isinstance(left, ast.Row):
        raise ora(1795, most, offset=items[most].pos)


def _chained(op: str, parts: list[str]) -> str:
    """Conditions joined by AND or OR, in halves: SQLite takes an expression of 1,000 levels, Oracle
    many conditions side by side."""
    if len(parts) <= _CHAIN_MAX:
        return "(" + f" {op} ".join(parts) + ")"
    half = len(parts) // 2
    return f"({_chained(op, parts[:half])} {op} {_chained(op, parts[half:])})"


def _in_list(state: Compilation, node: ast.In, scope: Scope) -> str | None:
    slots = len(state.plan.slots)
    operand = state.value(node.operand, scope)
    items = [state.value(item, scope) for item in node.items]
    plain = operand.family in ("number", "date", "timestamp", "raw") or (
        operand.family == "text" and not operand.type.is_char
    )
    if not plain or any(item.family not in (operand.family, "null") for item in items):
        del state.plan.slots[slots:]
        return None
    return f"({as_equal(operand)} IN ({', '.join(item.text for item in items)}))"


def _in_query(state: Compilation, node: ast.In, query: ast.Query, scope: Scope) -> str:
    left_nodes = node.operand.items if isinstance(node.operand, ast.Row) else (node.operand,)
    text, columns, _ = state.subquery(query, scope)
    if len(columns) != len(left_nodes):
        raise ora(913 if len(columns) > len(left_nodes) else 947, offset=node.pos)
    left = [state.value(item, scope) for item in left_nodes]
    alias = state.new_alias()
    inner: list[str] = []
    outer: list[str] = []
    for number, (value, column) in enumerate(zip(left, columns, strict=True), 1):
        item = Sql(f"{alias}.c{number}", column.type)
        outer_text, inner_text = _in_pair(value, item, node.pos)
        outer.append(outer_text)
        inner.append(inner_text)
    operand = outer[0] if len(outer) == 1 else f"({', '.join(outer)})"
    return f"({operand} IN (SELECT {', '.join(inner)} FROM ({text}) {alias}))"


def _in_pair(value: Sql, item: Sql, pos: int) -> tuple[str, str]:
    if value.family == item.family == "text":
        if value.type.is_char and item.type.is_char and value.type.length != item.type.length:
            cut = replace(value, text=f"rtrim({value.text}, ' ')")
            return as_equal(cut), f"rtrim({item.text}, ' ')"
        return as_equal(value), item.text
    _check_comparable(value.family, item.family)
    target = _comparison_family(value.family, item.family)
    if target is None:
        raise ora(932, FAMILY_NAMES[value.family], FAMILY_NAMES[item.family], offset=pos)
    a, b = convert(value, target, pos).text, convert(item, target, pos).text
    return (f"substr({a}, 1, 11)", f"substr({b}, 1, 11)") if target in ZONED else (a, b)


def _quantified(state: Compilation, node: ast.Quantified, scope: Scope) -> str:
    if node.query is None:
        _check_length(state, node.left, node.items)
        parts = [
            _compare_nodes(state, ast.Compare(node.op, node.left, item, pos=node.pos), scope)
            for item in node.items
        ]
        return _chained("AND" if node.every else "OR", parts)
    if isinstance(node.left, ast.Row):
        raise unsupported("row comparison with ANY or ALL", node.pos)
    if node.op == "=" and not node.every:
        return _in(state, ast.In(node.left, (), node.query, False, pos=node.pos), scope)
    if node.op == "<>" and node.every:
        return _in(state, ast.In(node.left, (), node.query, True, pos=node.pos), scope)
    text, columns, _ = state.subquery(node.query, scope)
    alias = state.new_alias()
    left = state.value(node.left, scope)
    test = compare(node.op, left, Sql(f"{alias}.c1", columns[0].type), node.pos)
    chosen = "min" if node.every else "max"
    empty = 1 if node.every else 0
    unknown = f"count(*) > count({test})"
    decided = f"WHEN {chosen}({test}) = {empty ^ 1} THEN {empty ^ 1}"
    return f"(SELECT CASE WHEN count(*) = 0 THEN {empty} {decided} WHEN {unknown} THEN NULL ELSE {empty} END FROM ({text}) {alias})"


def in_order(value: Sql, order: str | None) -> str:
    """A text as its order is compared.

    Raises:
        OracleError: ORA-03001 for JSON and VECTOR.
    """
    _check_comparable(value.family)
    return value.text if order is None else f"({value.text}) COLLATE {order}"


def _check_comparable(*families: str) -> None:
    for family in families:
        if family in DOCUMENTS:
            raise unsupported(f"comparing values of type {FAMILY_NAMES[family]}")


def as_equal(value: Sql) -> str:
    """A value as it is found equal to others."""
    return in_order(value, value.order.equality)


def _compare_text(op: str, left: Sql, right: Sql) -> str:
    leading = right if right.type.form == 2 or left.order == IN_CODE_POINTS else left
    is_equality = op in ("=", "<>")
    order = leading.order.equality if is_equality else leading.order.comparing
    if not (left.type.is_char and right.type.is_char):
        return f"({in_order(left, order)} {op} {right.text})"
    if left.constant and right.column is not None:
        left, right, op = right, left, _SWAPPED[op]
    if left.column is not None and right.constant:
        return f"({in_order(left, order)} {op} o_pad({right.text}, {left.type.char_length}))"
    if (
        left.column is not None
        and right.column is not None
        and left.type.char_length == right.type.char_length
    ):
        return f"({in_order(left, order)} {op} {right.text})"
    if is_equality or leading.order.equality is not None:
        cut = in_order(replace(left, text=f"rtrim({left.text}, ' ')"), order)
        return f"({cut} {op} rtrim({right.text}, ' '))"
    form = max(left.type.form, right.type.form, 1)
    return f"(o_padded_order({left.text}, {right.text}, {form}) {op} 0)"


def _comparison_family(left: str, right: str) -> str | None:
    """The family in which two different families are compared."""
    if left == "null":
        return right
    if right in (left, "null"):
        return left
    pair = {left, right}
    if pair <= set(NUMERIC_RANK):
        return max(pair, key=lambda name: NUMERIC_RANK[name])
    if pair <= TEMPORAL:
        return "tz" if pair & {"tz", "ltz"} else "timestamp"
    if "text" in pair:
        (other,) = pair - {"text"}
        return (
            other
            if other in ("number", "float", "double", "raw", "rowid", "ids", "iym", *TEMPORAL)
            else None
        )
    if pair == {"bool", "number"}:
        return "number"
    return None
