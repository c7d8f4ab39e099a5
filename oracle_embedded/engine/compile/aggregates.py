"""How do aggregates and analytic functions become SQLite SQL?"""

from __future__ import annotations

from decimal import Decimal

from oracle_embedded.api import OracleError
from oracle_embedded.engine.compile.compilation import Compilation
from oracle_embedded.engine.compile.conditions import as_equal, in_order
from oracle_embedded.engine.compile.conversions import convert, numeric
from oracle_embedded.engine.compile.plan import Sql, quoted
from oracle_embedded.engine.compile.scopes import Scope
from oracle_embedded.engine.datatypes import temporal, types
from oracle_embedded.engine.datatypes.types import FAMILY_NAMES
from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.formats.literals import interval_literal
from oracle_embedded.engine.sql import ast
from oracle_embedded.values import nanos_from_interval_ds

_MILLION = 10**6
_DAY_SECONDS = 86400

AGGREGATE_NAMES = frozenset(
    [
        "COUNT",
        "SUM",
        "AVG",
        "MIN",
        "MAX",
        "LISTAGG",
        "STDDEV",
        "STDDEV_SAMP",
        "STDDEV_POP",
        "VARIANCE",
        "VAR_SAMP",
        "VAR_POP",
        "MEDIAN",
        "APPROX_COUNT_DISTINCT",
    ]
)
_RANKING = frozenset({"ROW_NUMBER", "RANK", "DENSE_RANK", "NTILE", "PERCENT_RANK", "CUME_DIST"})
_POSITIONAL = frozenset({"LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE"})
_STATISTICS = {
    "STDDEV": "o_stddev",
    "STDDEV_SAMP": "o_stddev",
    "STDDEV_POP": "o_stddev_pop",
    "VARIANCE": "o_variance",
    "VAR_SAMP": "o_variance",
    "VAR_POP": "o_var_pop",
    "MEDIAN": "o_median",
}


def compile_aggregate(state: Compilation, name: str, node: ast.Call, scope: Scope) -> Sql:
    """An aggregate without OVER."""
    distinct = "DISTINCT " if node.distinct else ""
    if name == "COUNT":
        return _count(state, node, scope, distinct)
    if name == "LISTAGG":
        return _listagg(state, node, scope, distinct)
    if len(node.args) != 1 or node.star:
        raise ora(909, offset=node.pos)
    value = state.value(node.args[0], scope)
    return _reduce(name, value, distinct, node.pos)


def _count(state: Compilation, node: ast.Call, scope: Scope, distinct: str) -> Sql:
    if node.star:
        return Sql("o_int(count(*))", types.NUMBER, nullable=False)
    if len(node.args) != 1:
        raise ora(909, offset=node.pos)
    value = state.value(node.args[0], scope)
    return Sql(
        f"o_int(count({distinct}{as_equal(value) if distinct else value.text}))",
        types.NUMBER,
        nullable=False,
    )


def _reduce(name: str, value: Sql, distinct: str, pos: int) -> Sql:
    if name in ("MIN", "MAX"):
        if value.family in ("clob", "blob"):
            raise ora(932, "-", FAMILY_NAMES[value.family], offset=pos)
        return Sql(f"{name.lower()}({in_order(value, value.order.comparing)})", value.type)
    if name == "APPROX_COUNT_DISTINCT":
        return Sql(f"o_int(count(DISTINCT {as_equal(value)}))", types.NUMBER, nullable=False)
    number = numeric(value, pos)
    if name in ("SUM", "AVG"):
        double = number.family == "double"
        function = ("o_d" if double else "o_") + name.lower()
        return Sql(f"{function}({distinct}{number.text})", types.DOUBLE if double else types.NUMBER)
    number = convert(number, "number", pos)
    return Sql(f"{_STATISTICS[name]}({distinct}{number.text})", types.NUMBER)


def _listagg(state: Compilation, node: ast.Call, scope: Scope, distinct: str) -> Sql:
    if not 1 <= len(node.args) <= 2:
        raise ora(909, offset=node.pos)
    value = convert(state.value(node.args[0], scope), "text", node.pos)
    separator = "NULL"
    if len(node.args) == 2:
        separator = convert(state.value(node.args[1], scope), "text", node.pos).text
    keys = []
    for item in node.within:
        keys.append(state.value(item.expr, scope).text)
        keys.append(
            quoted(("d" if item.descending else "a") + ("f" if item.puts_nulls_first else "l"))
        )
    indicator, counts = "NULL", False
    if node.truncation is not None:
        given, counts = node.truncation.indicator, node.truncation.counts
        indicator = (
            quoted("...")
            if given is None
            else convert(state.value(given, scope), "text", node.pos).text
        )
    facts = [separator, str(int(bool(distinct))), indicator, str(int(counts))]
    text = f"o_listagg({', '.join([value.text, *facts, *keys])})"
    return Sql(text, types.TEXT)


# --- OVER -----------------------------------------------------------------------------------------


def compile_window(state: Compilation, name: str, node: ast.Call, scope: Scope) -> Sql:
    """A function with OVER."""
    assert node.window is not None
    if node.distinct:
        raise unsupported("DISTINCT with OVER", node.pos)
    over = _over(state, node.window, scope)
    if name in _RANKING:
        return _ranking(state, name, node, over, scope)
    if name in _POSITIONAL:
        return _positional(state, name, node, over, scope)
    if name == "COUNT":
        counted = "*" if node.star else state.value(node.args[0], scope).text
        return Sql(f"o_int(count({counted}) {over})", types.NUMBER, nullable=False)
    if name == "RATIO_TO_REPORT" and len(node.args) == 1:
        value = convert(state.value(node.args[0], scope), "number", node.pos)
        return Sql(f"o_div({value.text}, o_sum({value.text}) {over})", types.NUMBER)
    if name in ("SUM", "AVG", "MIN", "MAX") and len(node.args) == 1:
        reduced = _reduce(name, state.value(node.args[0], scope), "", node.pos)
        return Sql(f"{reduced.text} {over}", reduced.type)
    if name in AGGREGATE_NAMES:
        raise unsupported(f"{name} with OVER", node.pos)
    raise ora(904, f'"{name}"', offset=node.pos)


def _ranking(state: Compilation, name: str, node: ast.Call, over: str, scope: Scope) -> Sql:
    assert node.window is not None
    if not node.window.order:
        raise OracleError(
            30485, "missing ORDER BY expression in the window specification", node.pos
        )
    if name == "NTILE":
        if len(node.args) != 1:
            raise ora(909, offset=node.pos)
        count = convert(state.value(node.args[0], scope), "number", node.pos)
        return Sql(f"o_int(ntile(o_whole({count.text})) {over})", types.NUMBER)
    if node.args:
        raise ora(909, offset=node.pos)
    wrap = "o_real" if name in ("PERCENT_RANK", "CUME_DIST") else "o_int"
    return Sql(f"{wrap}({name.lower()}() {over})", types.NUMBER, nullable=False)


def _positional(state: Compilation, name: str, node: ast.Call, over: str, scope: Scope) -> Sql:
    args = [state.value(arg, scope) for arg in node.args]
    most = 3 if name in ("LAG", "LEAD") else 2 if name == "NTH_VALUE" else 1
    if not 1 <= len(args) <= most:
        raise ora(909, offset=node.pos)
    texts = [args[0].text]
    if len(args) > 1:
        texts.append(f"o_whole({convert(args[1], 'number', node.pos).text})")
    if len(args) > 2:
        texts.append(convert(args[2], args[0].family, node.pos).text)
    return Sql(f"{name.lower()}({', '.join(texts)}) {over}", args[0].type)


def _over(state: Compilation, window: ast.Window, scope: Scope) -> str:
    parts = []
    if window.partition:
        keys = ", ".join(as_equal(state.value(item, scope)) for item in window.partition)
        parts.append(f"PARTITION BY {keys}")
    if window.frame[:1] == ("RANGE",) and any(not isinstance(part, str) for part in window.frame):
        parts.append(_range_with_offsets(state, window, scope))
        return f"OVER ({' '.join(parts)})"
    if window.order:
        parts.append(
            "ORDER BY " + ", ".join(_order_key(state, item, scope) for item in window.order)
        )
    if window.frame:
        parts.append(_frame(state, window))
    return f"OVER ({' '.join(parts)})"


def _range_with_offsets(state: Compilation, window: ast.Window, scope: Scope) -> str:
    """ORDER BY one key and RANGE with offsets from it: both become whole numbers, millionths of a
    NUMBER or of a second.

    Raises:
        OracleError: ORA-30486 for several keys or one of text, ORA-03001 for an offset that is
            neither a literal nor a bind, and for years and months.
    """
    item = window.order[0]
    key = state.value(item.expr, scope)
    is_time = key.family in ("date", "timestamp")
    if len(window.order) > 1 or not (is_time or key.family == "number"):
        raise OracleError(
            30486, "invalid window aggregation group in the window specification", item.expr.pos
        )
    function = "o_range_time" if is_time else "o_range_number"
    whole = Sql(f"{function}({key.text})", types.NUMBER, key.nullable)
    words = [
        part if isinstance(part, str) else _offset(state, part, is_time=is_time)
        for part in window.frame
    ]
    return f"ORDER BY {sort_text(whole, item)} {' '.join(words)}"


def _offset(state: Compilation, node: ast.Expr, *, is_time: bool) -> str:
    """A literal or a bind, as SQLite wants it, in millionths: of days where the key is a time."""
    unit = _MILLION * (_DAY_SECONDS if is_time else 1)
    if isinstance(node, ast.Number):
        return str(int(Decimal(node.text) * unit))
    if isinstance(node, ast.Bind) and _is_number(state, node):
        return state.parameter(node.index, types.NUMBER, unit)
    if is_time and isinstance(node, ast.Interval) and node.first not in ("YEAR", "MONTH"):
        packed, _ = interval_literal(node.text, node.first, node.last, node.precision, node.digits)
        return str(nanos_from_interval_ds(packed) * _MILLION // temporal.SECOND)
    raise unsupported("RANGE with an offset that is no number and no interval of days", node.pos)


def _is_number(state: Compilation, node: ast.Bind) -> bool:
    """Is a bind a number, as far as it is known?"""
    kinds = state.bind_types
    return kinds is None or (node.index < len(kinds) and kinds[node.index].family == "number")


def _frame(state: Compilation, window: ast.Window) -> str:
    words = []
    for part in window.frame:
        if isinstance(part, str):
            words.append(part)
        elif isinstance(part, ast.Number) and part.text.isdigit():
            words.append(part.text)
        elif isinstance(part, ast.Bind) and _is_number(state, part):
            words.append(state.parameter(part.index, types.NUMBER, 1))
        else:
            raise unsupported("window offset that is not a whole number", part.pos)
    return " ".join(words)


def _order_key(state: Compilation, item: ast.OrderItem, scope: Scope) -> str:
    """A sort key with direction and place of NULLs."""
    return sort_text(state.value(item.expr, scope), item)


def sort_text(value: Sql, item: ast.OrderItem) -> str:
    """A compiled sort key with direction and place of NULLs.

    Raises:
        OracleError: ORA-00932 for LOBs.
    """
    if value.family in ("clob", "blob"):
        raise ora(932, "-", FAMILY_NAMES[value.family], offset=item.expr.pos)
    text = in_order(value, value.order.sorting)
    if value.family in ("tz", "ltz"):
        text = f"substr({text}, 1, 11)"
    elif value.family == "ids":
        text = f"o_interval_key({text})"
    direction = " DESC" if item.descending else ""
    if value.nullable:
        direction += " NULLS FIRST" if item.puts_nulls_first else " NULLS LAST"
    return text + direction
