"""Which table does a data change through a query change?

``UPDATE (SELECT … FROM t WHERE …) SET …`` is a change of the one table in FROM, of rows that the
query gives: Oracle's inherently updatable views. JDBC's updatable result sets are such changes.
An update through a join, or of columns under other names, is in
:mod:`~oracle_embedded.engine.compile.through_join`.

Source: Oracle SQL Language Reference 19c, UPDATE and INSERT, DML_table_expression_clause; CREATE
VIEW, "Notes on Updatable Views".
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from oracle_embedded.api import OracleError
from oracle_embedded.engine.compile.compilation import Compilation
from oracle_embedded.engine.compile.from_items import columns_in, find_relation
from oracle_embedded.engine.compile.grouped import has_aggregate
from oracle_embedded.engine.compile.through_join import through_join
from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.storage.catalog import TableDef

Change = TypeVar("Change", ast.Insert, ast.Update, ast.Delete)
_PSEUDO = frozenset({"ROWID", "ORA_ROWSCN", "ROWNUM", "SYSDATE", "SYSTIMESTAMP", "USER"})


def through_join_of(state: Compilation, node: ast.Update) -> ast.Merge | None:
    """The update of a part of a join, or of columns under other names; None for any other one."""
    query = node.table.through
    select = None if query is None else query.body
    if query is None or not isinstance(select, ast.Select) or _makes_rows(query, select):
        return None
    return None if _is_plain(node, select) else through_join(state, node, select)


def through_query(state: Compilation, node: Change) -> Change:
    """The change of the table itself; as it is, where it names one.

    Raises:
        OracleError: ORA-01732 for a query whose rows are not rows of a table, ORA-00904 for a
            column that it does not give, ORA-01733 for one that it computes.
    """
    query = node.table.through
    if query is None:
        return node
    select = query.body
    if not isinstance(select, ast.Select) or _makes_rows(query, select):
        raise OracleError(
            1732, "data manipulation operation not legal on this view", node.table.pos
        )
    [source] = select.sources if len(select.sources) == 1 else [None]
    if not isinstance(source, ast.FromTable) or node.table.alias is not None:
        raise unsupported(
            "data changes through a join, a nested query or a query with a name", node.table.pos
        )
    table = find_relation(state, source.name, source.pos)
    if not isinstance(table, TableDef) or source.as_of is not None:
        raise unsupported(
            "data changes through a query of something else than a table", node.table.pos
        )
    given, computed = _outputs(select, table)
    if isinstance(node, ast.Insert):
        named = node.columns or tuple(given)
        _check(named, given, computed)
        return replace(node, table=source, columns=named)
    if isinstance(node, ast.Update):
        assigned = tuple(name for one in node.assignments for name in one.columns)
        _check(assigned, given, computed)
    read = columns_in(node.where) if node.where is not None else []
    if isinstance(node, ast.Update):
        read += [column for one in node.assignments for column in columns_in(one.value)]
    hidden = [column for column in read if len(column.name) == 1 and column.name[0] not in _PSEUDO]
    _check(tuple(column.name[0] for column in hidden), given, ())
    conditions = tuple(one for one in (select.where, node.where) if one is not None)
    where = ast.Logical("AND", conditions) if len(conditions) == 2 else next(iter(conditions), None)
    return replace(node, table=source, where=where)


def _is_plain(node: ast.Update, select: ast.Select) -> bool:
    """Is it a query of one table, whose columns keep their names?"""
    renames = any(
        isinstance(item.expr, ast.Column) and item.alias not in (None, item.expr.name[-1])
        for item in select.items
        if item.star is None
    )
    is_one = len(select.sources) == 1 and isinstance(select.sources[0], ast.FromTable)
    return is_one and node.table.alias is None and not renames


def _makes_rows(query: ast.Query, select: ast.Select) -> bool:
    """Are its rows others than those of a table?"""
    limits = query.ctes or query.offset or query.fetch or query.for_update
    grouped = select.group is not None or select.having is not None or select.connect_by is not None
    return bool(
        limits
        or grouped
        or select.distinct
        or any(has_aggregate(item.expr) for item in select.items)
    )


def _outputs(select: ast.Select, table: TableDef) -> tuple[dict[str, None], frozenset[str]]:
    """The table's columns that the query gives under their names, and the names of everything
    else."""
    given: dict[str, None] = {}
    computed = set()
    for item in select.items:
        if item.star is not None:
            given |= dict.fromkeys(column.name for column in table.shown)
        elif isinstance(item.expr, ast.Column) and item.alias in (None, item.expr.name[-1]):
            given[item.expr.name[-1]] = None
        else:
            computed.add(item.alias or "")
    return given, frozenset(computed)


def _check(
    names: tuple[str, ...], given: dict[str, None], computed: frozenset[str] | tuple[()]
) -> None:
    for name in names:
        if name in computed:
            raise ora(1733)
        if name not in given:
            raise ora(904, f'"{name}"')
