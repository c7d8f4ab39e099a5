"""How are data changes written?"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from oracle_embedded.api import OracleError
from oracle_embedded.engine.errors import unsupported
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql.expressions import (
    read_condition,
    read_expression,
    read_parenthesis,
    read_targets,
    starts_query,
)
from oracle_embedded.engine.sql.queries import read_alias, read_from_primary, read_query
from oracle_embedded.engine.sql.stream import TokenStream


def read_insert(stream: TokenStream) -> ast.Insert | ast.MultiInsert:
    """Read INSERT behind its first word."""
    which = stream.take_any("ALL", "FIRST")
    if which is not None:
        return _read_multi_insert(stream, is_first=which == "FIRST")
    if not stream.take_word("INTO"):
        raise OracleError(925, "missing INTO keyword", stream.token.start)
    table = _read_target(stream)
    columns = stream.names() if stream.is_op("(") and not starts_query(stream) else ()
    if stream.take_word("VALUES"):
        if stream.plsql and not stream.is_op("("):
            record = read_expression(stream)
            return ast.Insert(
                table, columns, (record,), None, _read_returning(stream), is_record=True
            )
        stream.need_op("(")
        values = [_read_value(stream)]
        while stream.take_op(","):
            values.append(_read_value(stream))
        stream.need_op(")", code=917)
        return ast.Insert(table, columns, tuple(values), None, _read_returning(stream))
    if not starts_query(stream):
        raise OracleError(926, "missing VALUES keyword", stream.token.start)
    query = read_query(stream)
    if stream.is_word("RETURNING") or stream.is_word("RETURN"):
        raise stream.error(933)
    return ast.Insert(table, columns, (), query, None)


def _read_multi_insert(stream: TokenStream, *, is_first: bool) -> ast.MultiInsert:
    branches: list[ast.Branch] = []
    number = 0
    if not stream.is_word("WHEN"):
        if is_first:
            raise stream.error(905)
        _read_branches(stream, None, 0, branches)
    while stream.take_word("WHEN"):
        number += 1
        condition = read_condition(stream)
        stream.need_word("THEN")
        _read_branches(stream, condition, number, branches)
    if stream.take_word("ELSE"):
        _read_branches(stream, None, number + 1, branches)
    if not branches:
        raise OracleError(925, "missing INTO keyword", stream.token.start)
    return ast.MultiInsert(is_first, tuple(branches), read_query(stream))


def _read_branches(
    stream: TokenStream, condition: ast.Expr | None, number: int, found: list[ast.Branch]
) -> None:
    while stream.take_word("INTO"):
        table = _read_target(stream)
        columns = stream.names() if stream.is_op("(") and not starts_query(stream) else ()
        values: list[ast.Expr] | None = None
        if stream.take_word("VALUES"):
            stream.need_op("(")
            values = [_read_value(stream)]
            while stream.take_op(","):
                values.append(_read_value(stream))
            stream.need_op(")", code=917)
        given = None if values is None else tuple(values)
        found.append(ast.Branch(condition, table, columns, given, number))


def _read_target(stream: TokenStream) -> ast.FromTable:
    start = stream.token.start
    if stream.take_op("("):
        query = read_query(stream)
        stream.need_op(")", code=907)
        return ast.FromTable((), read_alias(stream), None, through=query, pos=start)
    name = stream.name()
    return ast.FromTable(name, read_alias(stream), None, pos=start)


def _read_value(stream: TokenStream) -> ast.Expr:
    if stream.is_word("DEFAULT"):
        return ast.Default(pos=stream.next().start)
    return read_expression(stream)


def read_update(stream: TokenStream) -> ast.Update:
    """Read UPDATE behind its first word."""
    stream.take_word("ONLY")
    table = _read_target(stream)
    if not stream.take_word("SET"):
        raise OracleError(971, "missing SET keyword", stream.token.start)
    assignments = _read_assignments(stream)
    where = read_condition(stream) if stream.take_word("WHERE") else None
    return ast.Update(table, assignments, where, _read_returning(stream))


def _read_assignments(stream: TokenStream) -> tuple[ast.Assignment, ...]:
    assignments = []
    while True:
        start = stream.token.start
        if stream.take_op("("):
            columns = [_read_assigned_column(stream)]
            while stream.take_op(","):
                columns.append(_read_assigned_column(stream))
            stream.need_op(")")
            _need_equals(stream)
            if not starts_query(stream):
                raise OracleError(
                    1767, "UPDATE ... SET expression must be a subquery", stream.token.start
                )
            value: ast.Expr = read_parenthesis(stream)
        else:
            columns = [_read_assigned_column(stream)]
            _need_equals(stream)
            value = _read_value(stream)
        assignments.append(ast.Assignment(tuple(columns), value, pos=start))
        if not stream.take_op(","):
            return tuple(assignments)


def _need_equals(stream: TokenStream) -> None:
    if not stream.take_op("="):
        raise OracleError(927, "missing equal sign", stream.token.start)


def _read_assigned_column(stream: TokenStream) -> str:
    return stream.name(1747)[-1]


def read_delete(stream: TokenStream) -> ast.Delete:
    """Read DELETE behind its first word."""
    stream.take_word("FROM")
    table = _read_target(stream)
    where = read_condition(stream) if stream.take_word("WHERE") else None
    return ast.Delete(table, where, _read_returning(stream))


def _read_returning(stream: TokenStream) -> ast.Returning | None:
    if stream.is_word("LOG", "ERRORS"):
        raise unsupported("LOG ERRORS", stream.token.start)
    if stream.take_any("RETURNING", "RETURN") is None:
        return None
    exprs = [read_expression(stream)]
    while stream.take_op(","):
        exprs.append(read_expression(stream))
    if stream.plsql:
        stream.is_bulk = stream.take_word("BULK", "COLLECT")
    if not stream.take_word("INTO"):
        raise OracleError(925, "missing INTO keyword", stream.token.start)
    if stream.plsql:
        targets = read_targets(stream)
        if len(targets) != len(exprs):
            raise stream.error(947 if len(targets) < len(exprs) else 913)
        return ast.Returning(tuple(exprs), (), targets)
    binds = []
    while True:
        if stream.token.kind != "bind":
            raise stream.error(936)
        binds.append(stream.bind())
        if not stream.take_op(","):
            break
    if len(binds) < len(exprs):
        raise stream.error(947)
    if len(binds) > len(exprs):
        raise stream.error(913)
    return ast.Returning(tuple(exprs), tuple(binds))


def read_merge(stream: TokenStream) -> ast.Merge:
    """Read MERGE behind its first word."""
    stream.need_word("INTO")
    table = _read_target(stream)
    stream.need_word("USING")
    source = read_from_primary(stream)
    stream.need_word("ON")
    stream.need_op("(", code=969)
    on = read_condition(stream)
    stream.need_op(")")
    assignments: tuple[ast.Assignment, ...] | None = None
    update_where = delete_where = insert_where = None
    columns: tuple[str, ...] = ()
    values: tuple[ast.Expr, ...] | None = None
    while stream.take_word("WHEN"):
        if stream.take_word("MATCHED", "THEN", "UPDATE", "SET"):
            assignments = _read_assignments(stream)
            update_where = read_condition(stream) if stream.take_word("WHERE") else None
            if stream.take_word("DELETE"):
                stream.need_word("WHERE")
                delete_where = read_condition(stream)
        elif stream.take_word("NOT", "MATCHED", "THEN", "INSERT"):
            columns = _read_merge_columns(stream) if stream.is_op("(") else ()
            stream.need_word("VALUES", code=926)
            stream.need_op("(")
            items = [_read_value(stream)]
            while stream.take_op(","):
                items.append(_read_value(stream))
            stream.need_op(")")
            values = tuple(items)
            insert_where = read_condition(stream) if stream.take_word("WHERE") else None
        else:
            raise stream.error(905)
    if assignments is None and values is None:
        raise stream.error(905)
    return ast.Merge(
        table,
        source,
        on,
        assignments,
        update_where,
        delete_where,
        columns,
        values,
        insert_where,
    )


def _read_merge_columns(stream: TokenStream) -> tuple[str, ...]:
    stream.need_op("(")
    names = [_read_assigned_column(stream)]
    while stream.take_op(","):
        names.append(_read_assigned_column(stream))
    stream.need_op(")")
    return tuple(names)


Change = ast.Insert | ast.MultiInsert | ast.Update | ast.Delete | ast.Merge
CHANGES: Mapping[str, Callable[[TokenStream], Change]] = {
    "INSERT": read_insert,
    "UPDATE": read_update,
    "DELETE": read_delete,
    "MERGE": read_merge,
}
"""The readers of data changes by their first word, which the caller has read."""
