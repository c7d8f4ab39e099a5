"""How are queries written?"""

from __future__ import annotations

from decimal import Decimal

from oracle_embedded.api import OracleError
from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql.documents import read_json_table
from oracle_embedded.engine.sql.expressions import (
    read_condition,
    read_expression,
    read_order_items,
    read_targets,
    starts_query,
)
from oracle_embedded.engine.sql.grouping import read_group
from oracle_embedded.engine.sql.stream import RESERVED, TokenStream

_SMALLEST_SAMPLE = Decimal("0.000001")
_AFTER_FROM_ITEM = frozenset(
    [
        "ON",
        "USING",
        "LEFT",
        "RIGHT",
        "FULL",
        "INNER",
        "CROSS",
        "JOIN",
        "NATURAL",
        "WHERE",
        "GROUP",
        "HAVING",
        "ORDER",
        "CONNECT",
        "START",
        "UNION",
        "MINUS",
        "INTERSECT",
        "EXCEPT",
        "FETCH",
        "OFFSET",
        "FOR",
        "SET",
        "VALUES",
        "SELECT",
        "WHEN",
        "RETURNING",
        "AS",
        "OUTER",
        "PARTITION",
        "PIVOT",
        "UNPIVOT",
        "MODEL",
        "VERSIONS",
        "LATERAL",
        "WITH",
    ]
)


def parse_query(text: str) -> ast.Query:
    """Read the query that a text begins with."""
    return read_query(query_stream(text))


def parse_expression(text: str) -> ast.Expr:
    """Read the expression that a text begins with."""
    return read_expression(query_stream(text))


def parse_condition(text: str) -> ast.Expr:
    """Read the condition that a text begins with."""
    return read_condition(query_stream(text))


def query_stream(text: str) -> TokenStream:
    """The tokens of a text in SQL."""
    return TokenStream(text, read_query)


# --- queries --------------------------------------------------------------------------------------


def read_query(stream: TokenStream) -> ast.Query:
    """Read a whole query with WITH, ORDER BY, row limits and FOR UPDATE."""
    start = stream.token.start
    ctes = _read_with(stream) if stream.take_word("WITH") else ()
    body = _read_set_operations(stream)
    order: tuple[ast.OrderItem, ...] = ()
    if stream.take_word("ORDER"):
        stream.take_word("SIBLINGS")
        stream.need_word("BY", code=924)
        order = read_order_items(stream)
    offset, fetch, with_ties, is_percent = _read_row_limits(stream)
    for_update = _read_for_update(stream) if stream.is_word("FOR", "UPDATE") else None
    return ast.Query(body, ctes, order, offset, fetch, with_ties, for_update, is_percent, pos=start)


def _read_with(stream: TokenStream) -> tuple[ast.Cte, ...]:
    ctes = []
    while True:
        name = stream.identifier()
        columns = stream.names() if stream.is_op("(") else ()
        stream.need_word("AS")
        stream.need_op("(")
        query = read_query(stream)
        stream.need_op(")")
        if stream.is_word("SEARCH") or stream.is_word("CYCLE"):
            raise unsupported("SEARCH and CYCLE clauses", stream.token.start)
        ctes.append(ast.Cte(name, columns, query))
        if not stream.take_op(","):
            return tuple(ctes)


def _read_set_operations(stream: TokenStream) -> ast.Body:
    left = _read_block(stream)
    while True:
        start = stream.token.start
        word = stream.take_any("UNION", "MINUS", "INTERSECT", "EXCEPT")
        if word is None:
            return left
        op = "MINUS" if word == "EXCEPT" else word
        if stream.take_word("ALL"):
            if op != "UNION":
                raise stream.error(928)
            op = "UNION ALL"
        left = ast.SetOperation(op, left, _read_block(stream), pos=start)


def _read_block(stream: TokenStream) -> ast.Body:
    if stream.take_op("("):
        query = read_query(stream)
        stream.need_op(")")
        return query
    start = stream.token.start
    if not stream.take_word("SELECT"):
        raise stream.error(928)
    distinct = stream.take_any("DISTINCT", "UNIQUE") is not None
    if not distinct:
        stream.take_word("ALL")
    items = [_read_select_item(stream)]
    while stream.take_op(","):
        items.append(_read_select_item(stream))
    _read_select_items_end(stream)
    if not stream.take_word("FROM"):
        raise stream.error(923)
    sources = [_read_from_item(stream)]
    while stream.take_op(","):
        sources.append(_read_from_item(stream))
    where = read_condition(stream) if stream.take_word("WHERE") else None
    connect_by = _read_connect_by(stream)
    group: tuple[ast.Expr, ...] | None = None
    sets: tuple[tuple[ast.Expr, ...], ...] | None = None
    having = read_condition(stream) if stream.take_word("HAVING") else None
    if stream.take_word("GROUP"):
        stream.need_word("BY", code=924)
        group, sets = read_group(stream)
        if stream.take_word("HAVING"):
            having = read_condition(stream)
    return ast.Select(
        tuple(items), distinct, tuple(sources), where, group, having, connect_by, start, sets
    )


def _read_select_items_end(stream: TokenStream) -> None:
    """What may follow a select list; in PL/SQL that is INTO."""
    if stream.plsql:
        stream.is_bulk = stream.take_word("BULK", "COLLECT")
        if stream.take_word("INTO"):
            stream.into.extend(read_targets(stream))
        return
    if stream.is_word("INTO") or stream.is_word("BULK"):
        raise ora(905, offset=stream.token.start)


def _read_connect_by(stream: TokenStream) -> ast.Expr | None:
    if stream.is_word("START", "WITH"):
        raise unsupported("hierarchical queries", stream.token.start)
    if not stream.take_word("CONNECT", "BY"):
        return None
    stream.take_word("NOCYCLE")
    return read_condition(stream)


def _read_select_item(stream: TokenStream) -> ast.SelectItem:
    start = stream.token.start
    if stream.take_op("*"):
        return ast.SelectItem(ast.Null(pos=start), None, ())
    if stream.token.kind in ("word", "quoted"):
        at = 0
        while stream.ahead(at).kind in ("word", "quoted") and stream.ahead(at + 1).text == ".":
            at += 2
        if at and stream.ahead(at).text == "*" and stream.ahead(at).kind == "op":
            qualifier = tuple(stream.ahead(count).text for count in range(0, at, 2))
            stream.at += at + 1
            return ast.SelectItem(ast.Null(pos=start), None, qualifier)
    expr = read_expression(stream)
    text = stream.source_text(start)
    alias = None
    if (
        stream.take_word("AS")
        or stream.token.kind == "quoted"
        or (stream.token.kind == "word" and stream.token.text not in ("FROM", "INTO", "BULK"))
    ):
        alias = stream.identifier(code=923)
    return ast.SelectItem(expr, alias, None, text)


def _read_row_limits(
    stream: TokenStream,
) -> tuple[ast.Expr | None, ast.Expr | None, bool, bool]:
    offset = fetch = None
    with_ties = is_percent = False
    if stream.take_word("OFFSET"):
        offset = read_expression(stream)
        if stream.take_any("ROW", "ROWS") is None:
            raise stream.error(905)
    if stream.take_word("FETCH"):
        if stream.take_any("FIRST", "NEXT") is None:
            raise stream.error(905)
        fetch = (
            ast.Number("1")
            if stream.is_word("ROW") or stream.is_word("ROWS")
            else read_expression(stream)
        )
        is_percent = stream.take_word("PERCENT")
        if stream.take_any("ROW", "ROWS") is None:
            raise stream.error(905)
        with_ties = stream.take_word("WITH", "TIES")
        if not with_ties:
            stream.need_word("ONLY")
    return offset, fetch, with_ties, is_percent


def _read_for_update(stream: TokenStream) -> ast.ForUpdate:
    stream.need_word("FOR", "UPDATE")
    of: list[ast.Name] = []
    if stream.take_word("OF"):
        of.append(stream.name(904))
        while stream.take_op(","):
            of.append(stream.name(904))
    if stream.take_word("NOWAIT"):
        return ast.ForUpdate(tuple(of), 0)
    if stream.take_word("WAIT"):
        return ast.ForUpdate(tuple(of), stream.integer())
    skip = stream.take_word("SKIP", "LOCKED")
    return ast.ForUpdate(tuple(of), None, skip)


# --- FROM -----------------------------------------------------------------------------------------


def _read_from_item(stream: TokenStream) -> ast.FromItem:
    left = read_from_primary(stream)
    while True:
        natural = stream.is_word("NATURAL") and stream.ahead().text in (
            "JOIN",
            "INNER",
            "LEFT",
            "RIGHT",
            "FULL",
        )
        if natural:
            stream.next()
        kind = _read_join_kind(stream)
        if kind is None:
            return left
        right = read_from_primary(stream)
        on: ast.Expr | None = None
        using: tuple[str, ...] = ()
        if kind != "CROSS" and not natural:
            if stream.take_word("ON"):
                on = read_condition(stream)
            elif stream.take_word("USING"):
                using = stream.names()
            else:
                raise stream.error(905)
        left = ast.Join(kind, left, right, on, using, natural)


def _read_join_kind(stream: TokenStream) -> str | None:
    if stream.take_word("JOIN") or stream.take_word("INNER", "JOIN"):
        return "INNER"
    if stream.take_word("CROSS", "JOIN"):
        return "CROSS"
    if stream.is_word("CROSS", "APPLY") or stream.is_word("OUTER", "APPLY"):
        raise unsupported("APPLY", stream.token.start)
    for side in ("LEFT", "RIGHT", "FULL"):
        if stream.take_word(side, "OUTER", "JOIN") or stream.take_word(side, "JOIN"):
            return side
    return None


def read_from_primary(stream: TokenStream) -> ast.FromItem:
    start = stream.token.start
    if stream.is_op("("):
        if starts_query(stream):
            stream.next()
            query = read_query(stream)
            stream.need_op(")")
            return ast.FromQuery(query, read_alias(stream), pos=start)
        stream.next()
        item = _read_from_item(stream)
        stream.need_op(")")
        return item
    if stream.is_word("JSON_TABLE") and stream.ahead().text == "(":
        return read_json_table(stream, read_expression, read_alias)
    if stream.is_word("TABLE") and stream.ahead().text == "(":
        stream.at += 2
        operand = read_expression(stream)
        stream.need_op(")")
        return ast.FromCollection(operand, read_alias(stream), pos=start)
    if stream.is_word("LATERAL") or stream.is_word("TABLE") or stream.is_word("XMLTABLE"):
        raise unsupported(f"{stream.token.text} in FROM", start)
    return read_table_reference(stream)


def read_table_reference(stream: TokenStream) -> ast.FromTable:
    """Read a table's name with flashback clause and alias."""
    start = stream.token.start
    name = stream.name()
    if stream.is_op("("):
        raise unsupported("table functions", start)
    partition = None
    if stream.is_word("PARTITION") and stream.ahead().text == "(":
        stream.next()
        [partition] = stream.names()
    sample = _read_sample(stream)
    if stream.is_word("SUBPARTITION") and stream.ahead().text == "(":
        raise unsupported("SUBPARTITION clause", stream.token.start)
    versions = _read_versions(stream)
    as_of = None
    if stream.is_word("AS", "OF"):
        stream.at += 2
        kind = stream.take_any("SCN", "TIMESTAMP")
        if kind is None:
            raise stream.error(905)
        as_of = ast.AsOf(kind, read_expression(stream))
    if stream.token.text in ("PIVOT", "UNPIVOT", "MODEL") and stream.token.kind == "word":
        raise unsupported(stream.token.text, stream.token.start)
    return ast.FromTable(name, read_alias(stream), as_of, partition, sample, versions, pos=start)


def _read_versions(stream: TokenStream) -> ast.Versions | None:
    if not stream.take_word("VERSIONS", "BETWEEN"):
        return None
    kind = stream.take_any("SCN", "TIMESTAMP")
    if kind is None:
        raise stream.error(905)
    low = None if stream.take_word("MINVALUE") else read_expression(stream)
    stream.need_word("AND")
    return ast.Versions(
        kind, low, None if stream.take_word("MAXVALUE") else read_expression(stream)
    )


def _read_sample(stream: TokenStream) -> ast.Sample | None:
    if not (stream.is_word("SAMPLE") and stream.ahead().text in ("(", "BLOCK")):
        return None
    stream.next()
    is_block = stream.take_word("BLOCK")
    stream.need_op("(")
    token = stream.next()
    if token.kind != "number":
        raise OracleError(933, "SQL command not properly ended", token.start)
    percent = Decimal(token.text)
    if not _SMALLEST_SAMPLE <= percent < 100:
        raise OracleError(
            30562, "SAMPLE percentage must be in the range [0.000001,100)", token.start
        )
    stream.need_op(")")
    seed = 0
    if stream.take_word("SEED"):
        stream.need_op("(")
        seed = stream.integer()
        stream.need_op(")")
    return ast.Sample(percent, is_block, seed)


def read_alias(stream: TokenStream) -> str | None:
    if stream.is_word("AS") and stream.ahead().text != "OF":
        raise stream.error(933)
    if stream.token.kind == "quoted" or (
        stream.token.kind == "word"
        and stream.token.text not in _AFTER_FROM_ITEM | RESERVED
        and not _begins_clause(stream)
    ):
        return stream.identifier(code=933)
    return None


def _begins_clause(stream: TokenStream) -> bool:
    """Does a word that may be an alias as well begin a clause here? What follows it tells."""
    after = stream.ahead()
    match stream.token.text:
        case "LOG":
            return after.text == "ERRORS"
        case "SAMPLE":
            return after.text in ("(", "BLOCK")
        case "RETURN":
            return after.text == "(" or (
                after.kind not in ("op", "end") and after.text not in _AFTER_FROM_ITEM
            )
    return False
