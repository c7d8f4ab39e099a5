"""How does a query name the ROWIDs of rows that a subquery in FROM gives?

Where the subquery selects from one table, without grouping them, each of its rows is one of that
table's, and has its ROWID. It gives that as one more column, which no other name means.
"""

from __future__ import annotations

from dataclasses import replace

from oracle_embedded.engine.compile.compilation import Compilation
from oracle_embedded.engine.compile.from_items import columns_in, find_relation
from oracle_embedded.engine.compile.grouped import has_aggregate
from oracle_embedded.engine.compile.scopes import ROWID_OF_SUBQUERY, Scope
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.storage.catalog import TableDef


def sources_of(
    state: Compilation, node: ast.Select, order: tuple[ast.OrderItem, ...], scope: Scope
) -> tuple[ast.FromItem, ...]:
    """What a block selects from; subqueries give ROWIDs where the block names one."""
    if not any(isinstance(item, ast.FromQuery) for item in node.sources):
        return node.sources
    exprs = [item.expr for item in node.items] + [item.expr for item in order]
    if node.where is not None:
        exprs.append(node.where)
    if not any(column.name[-1] == "ROWID" for expr in exprs for column in columns_in(expr)):
        return node.sources
    return tuple(
        replace(item, query=_with_rowid(state, item.query, scope))
        if isinstance(item, ast.FromQuery)
        else item
        for item in node.sources
    )


def _with_rowid(state: Compilation, query: ast.Query, scope: Scope) -> ast.Query:
    body = query.body
    if not isinstance(body, ast.Select) or query.ctes or not _keeps_rows(body):
        return query
    [table] = body.sources
    assert isinstance(table, ast.FromTable)
    is_cte = len(table.name) == 1 and table.name[0] in scope.ctes
    if is_cte or not isinstance(find_relation(state, table.name, table.pos), TableDef):
        return query
    rowid = ast.SelectItem(ast.Column(("ROWID",)), ROWID_OF_SUBQUERY)
    return replace(query, body=replace(body, items=(*body.items, rowid)))


def _keeps_rows(body: ast.Select) -> bool:
    """Is each row that a block gives one of a single table?"""
    grouped = body.group is not None or body.having is not None or body.grouping_sets is not None
    return (
        len(body.sources) == 1
        and isinstance(body.sources[0], ast.FromTable)
        and body.sources[0].name not in (("DUAL",), ("SYS", "DUAL"))
        and not (body.distinct or grouped or body.connect_by is not None)
        and not any(has_aggregate(item.expr) for item in body.items)
    )
