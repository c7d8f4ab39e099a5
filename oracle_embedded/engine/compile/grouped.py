"""Which expressions may stand beside GROUP BY?"""

from __future__ import annotations

from oracle_embedded.engine.compile.aggregates import AGGREGATE_NAMES
from oracle_embedded.engine.compile.compilation import Compilation
from oracle_embedded.engine.compile.from_items import children
from oracle_embedded.engine.compile.scopes import Scope
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.sql import ast


def has_aggregate(node: ast.Expr) -> bool:
    if (
        isinstance(node, ast.Call)
        and node.window is None
        and node.name[-1] in AGGREGATE_NAMES
        and len(node.name) == 1
    ):
        return True
    return any(has_aggregate(child) for child in children(node))


def check_grouped(
    state: Compilation, node: ast.Select, order: tuple[ast.OrderItem, ...], scope: Scope
) -> None:
    """Refuse columns that are neither grouped nor inside an aggregate."""
    groups = {_plain_text(state, item, scope) for item in node.group or ()}
    code = 979 if node.group is not None else 937
    aliases = {item.alias for item in node.items if item.alias}
    for item in node.items:
        if item.star is not None:
            raise ora(code, offset=item.expr.pos)
        _check_member(state, item.expr, groups, scope, code)
    if node.having is not None:
        _check_member(state, node.having, groups, scope, 979)
    for key in order:
        named = (
            isinstance(key.expr, ast.Column)
            and key.expr.name[-1] in aliases
            and len(key.expr.name) == 1
        )
        if not named:
            _check_member(state, key.expr, groups, scope, code)


def _plain_text(state: Compilation, node: ast.Expr, scope: Scope) -> str:
    slots = len(state.plan.slots)
    text = state.value(node, scope).text
    del state.plan.slots[slots:]
    return text


def _check_member(
    state: Compilation, node: ast.Expr, groups: set[str], scope: Scope, code: int
) -> None:
    if isinstance(node, ast.Call) and node.window is None and node.name[-1] in AGGREGATE_NAMES:
        return
    if isinstance(node, ast.Column):
        text = _plain_text(state, node, scope)
        local = any(
            column.text == text for source in scope.sources for column in source.columns.values()
        )
        if local and text not in groups:
            raise ora(code, offset=node.pos)
        return
    is_condition = isinstance(node, (*ast.CONDITIONS, ast.Exists, ast.Row))
    if groups and not is_condition and _plain_text(state, node, scope) in groups:
        return
    for child in children(node):
        _check_member(state, child, groups, scope, code)
