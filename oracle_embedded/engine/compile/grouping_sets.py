"""How do several grouping sets become one query per set?"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

from oracle_embedded.engine.compile.aggregates import AGGREGATE_NAMES
from oracle_embedded.engine.errors import unsupported
from oracle_embedded.engine.sql import ast

T = TypeVar("T")
Set = tuple[ast.Expr, ...]


def by_sets(node: ast.Query) -> ast.Query:
    """A query without grouping sets: the rows of each set, one below the other."""
    body = node.body
    if not isinstance(body, ast.Select) or body.grouping_sets is None:
        return node
    if body.distinct:
        raise unsupported("DISTINCT with grouping sets", body.pos)
    order = tuple(_positioned(item, body.items) for item in node.order)
    return replace(node, body=union_of_sets(body), order=order)


def union_of_sets(node: ast.Select) -> ast.Body:
    """UNION ALL of one query block per set; an expression that is not in the set is NULL there."""
    assert node.grouping_sets is not None
    groups = node.group or ()
    found: ast.Body | None = None
    for one in node.grouping_sets:
        block = replace(
            node,
            items=tuple(
                replace(
                    item, expr=_in_set(item.expr, groups, one), alias=item.alias or _heading(item)
                )
                for item in node.items
            ),
            having=None if node.having is None else _in_set(node.having, groups, one),
            group=one,
            grouping_sets=None,
        )
        found = (
            block if found is None else ast.SetOperation("UNION ALL", found, block, pos=node.pos)
        )
    assert found is not None
    return found


def _heading(item: ast.SelectItem) -> str:
    """The name that a column has without an alias, since its expression changes."""
    if isinstance(item.expr, ast.Column):
        return item.expr.name[-1]
    return "".join(item.text.split()).upper()


def _in_set(node: T, groups: Set, chosen: Set) -> T:
    """An expression as it is in the rows of one set."""
    if isinstance(node, ast.Call) and node.name == ("GROUPING",) and len(node.args) == 1:
        return ast.Number("0" if node.args[0] in chosen else "1", pos=node.pos)  # type: ignore[return-value]
    if isinstance(node, ast.Call) and node.name == ("GROUPING_ID",):
        bits = "".join("0" if item in chosen else "1" for item in node.args)
        return ast.Number(str(int(bits, 2)), pos=node.pos)  # type: ignore[return-value]
    if isinstance(node, ast.Expr) and node in groups and node not in chosen:
        return ast.Null(pos=node.pos)  # type: ignore[return-value]
    if isinstance(node, ast.Call) and node.window is None and node.name[-1] in AGGREGATE_NAMES:
        return node
    if isinstance(node, tuple):
        return tuple(_in_set(item, groups, chosen) for item in node)  # type: ignore[return-value]
    if is_dataclass(node) and not isinstance(node, type | ast.Query):
        changed = {
            item.name: _in_set(getattr(node, item.name), groups, chosen)
            for item in fields(node)
            if isinstance(getattr(node, item.name), ast.Expr | tuple)
        }
        return replace(node, **changed)
    return node


def _positioned(item: ast.OrderItem, items: tuple[ast.SelectItem, ...]) -> ast.OrderItem:
    """A sort key as the number of the column that it is."""
    for number, one in enumerate(items, 1):
        alias = isinstance(item.expr, ast.Column) and item.expr.name == (one.alias,)
        if one.expr == item.expr or alias:
            return replace(item, expr=ast.Number(str(number), pos=item.expr.pos))
    if isinstance(item.expr, ast.Number):
        return item
    raise unsupported(
        "ORDER BY an expression that is not selected, with grouping sets", item.expr.pos
    )
