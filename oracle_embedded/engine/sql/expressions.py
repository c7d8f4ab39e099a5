"""How are expressions and conditions written?"""

from __future__ import annotations

from oracle_embedded.api import OracleError
from oracle_embedded.engine.errors import unsupported
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql.ast import Expr, Query
from oracle_embedded.engine.sql.documents import (
    XML_METHODS,
    read_is_json,
    read_json_call,
    read_json_equal,
    read_json_made,
    read_xml_extract,
    read_xml_made,
    read_xml_methods,
)
from oracle_embedded.engine.sql.stream import RESERVED, TokenStream
from oracle_embedded.engine.sql.types import read_datatype

_COMPARISONS = {
    "=": "=",
    "<>": "<>",
    "!=": "<>",
    "^=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_LIKES = ("LIKE", "LIKEC", "LIKE2", "LIKE4")
"""They differ in what a character is, which only combining sequences would show."""
_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_FRAME_WORDS = ("UNBOUNDED", "PRECEDING", "FOLLOWING", "CURRENT", "ROW", "BETWEEN", "AND")
_CURSOR_FACTS = ("FOUND", "NOTFOUND", "ISOPEN", "ROWCOUNT")
_AGAINST_NAMES = RESERVED - {"MODE", "SIZE", "PUBLIC", "RESOURCE", "OPTION"}


# --- conditions -----------------------------------------------------------------------------------


def read_condition(stream: TokenStream) -> Expr:
    """Read ``a OR b OR …``."""
    items = [_read_and(stream)]
    while stream.take_word("OR"):
        items.append(_read_and(stream))
    return items[0] if len(items) == 1 else ast.Logical("OR", tuple(items), pos=items[0].pos)


def _read_and(stream: TokenStream) -> Expr:
    items = [_read_not(stream)]
    while stream.take_word("AND"):
        items.append(_read_not(stream))
    return items[0] if len(items) == 1 else ast.Logical("AND", tuple(items), pos=items[0].pos)


def _read_not(stream: TokenStream) -> Expr:
    start = stream.token.start
    if stream.take_word("NOT"):
        return ast.Not(_read_not(stream), pos=start)
    return _read_predicate(stream)


def _read_predicate(stream: TokenStream) -> Expr:
    start = stream.token.start
    if stream.is_word("EXISTS") and stream.ahead().text == "(":
        stream.next()
        stream.need_op("(")
        query = stream.query()
        stream.need_op(")")
        return ast.Exists(query, pos=start)
    left = read_expression(stream)
    token = stream.token
    if token.kind == "op" and token.text in _COMPARISONS:
        stream.next()
        return _read_comparison(stream, _COMPARISONS[token.text], left, start)
    if stream.take_word("IS"):
        negated = stream.take_word("NOT")
        if stream.take_word("JSON"):
            return read_is_json(stream, left, negated=negated)
        if not stream.take_word("NULL"):
            raise OracleError(908, "missing NULL keyword", stream.token.start)
        return ast.IsNull(left, negated, pos=start)
    negated = stream.is_word("NOT") and stream.ahead().text in ("IN", "BETWEEN", *_LIKES)
    if negated:
        stream.next()
    if stream.take_any(*_LIKES) is not None:
        pattern = read_expression(stream)
        escape = read_expression(stream) if stream.take_word("ESCAPE") else None
        return ast.Like(left, pattern, escape, negated, pos=start)
    if stream.take_word("BETWEEN"):
        low = read_expression(stream)
        stream.need_word("AND")
        return ast.Between(left, low, read_expression(stream), negated, pos=start)
    if stream.take_word("IN"):
        return _read_in(stream, left, negated, start)
    return left


def _read_comparison(stream: TokenStream, op: str, left: Expr, start: int) -> Expr:
    quantifier = stream.take_any("ANY", "SOME", "ALL")
    if quantifier is None:
        return ast.Compare(op, left, read_expression(stream), pos=start)
    items, query = _read_list_or_query(stream)
    return ast.Quantified(op, left, quantifier == "ALL", items, query, pos=start)


def _read_in(stream: TokenStream, left: Expr, negated: bool, start: int) -> Expr:
    if not stream.is_op("("):
        return ast.In(left, (read_expression(stream),), None, negated, pos=start)
    items, query = _read_list_or_query(stream)
    return ast.In(left, items, query, negated, pos=start)


def _read_list_or_query(stream: TokenStream) -> tuple[tuple[Expr, ...], Query | None]:
    stream.need_op("(")
    if starts_query(stream):
        query = stream.query()
        stream.need_op(")")
        return (), query
    items = [read_expression(stream)]
    while stream.take_op(","):
        items.append(read_expression(stream))
    stream.need_op(")")
    return tuple(items), None


def starts_query(stream: TokenStream) -> bool:
    at = stream.at
    while stream.tokens[at].text == "(" and stream.tokens[at].kind == "op":
        at += 1
    return stream.tokens[at].kind == "word" and stream.tokens[at].text in ("SELECT", "WITH")


# --- arithmetic -----------------------------------------------------------------------------------


def read_expression(stream: TokenStream) -> Expr:
    """Read sums, differences and concatenations."""
    left = _read_product(stream)
    while stream.token.kind == "op" and stream.token.text in ("+", "-", "||"):
        op = stream.next()
        left = ast.Binary(op.text, left, _read_product(stream), pos=op.start)
    return left


def _read_product(stream: TokenStream) -> Expr:
    left = _read_signed(stream)
    while stream.token.kind == "op" and stream.token.text in ("*", "/"):
        op = stream.next()
        left = ast.Binary(op.text, left, _read_signed(stream), pos=op.start)
    return left


def _read_signed(stream: TokenStream) -> Expr:
    token = stream.token
    if token.kind == "op" and token.text in ("+", "-"):
        stream.next()
        return ast.Unary(token.text, _read_signed(stream), pos=token.start)
    if token.kind == "word" and token.text == "PRIOR":
        raise unsupported("hierarchical queries", token.start)
    return _read_postfix(stream, _read_primary(stream))


def _read_postfix(stream: TokenStream, operand: Expr) -> Expr:
    if stream.plsql:
        operand = read_selectors(stream, operand)
    while stream.is_word("AT"):
        if stream.take_word("AT", "TIME", "ZONE"):
            zone = None if stream.take_word("LOCAL") else _read_primary(stream)
            operand = ast.AtZone(operand, zone, pos=operand.pos)
        elif stream.take_word("AT", "LOCAL"):
            operand = ast.AtZone(operand, None, pos=operand.pos)
        else:
            break
    return operand


def read_selectors(stream: TokenStream, operand: Expr) -> Expr:
    """Read what follows a value in PL/SQL: ``.field``, ``(index)`` of an element, ``%NOTFOUND``."""
    while True:
        start = stream.token.start
        chained = isinstance(operand, ast.Call | ast.Element | ast.Member)
        if chained and stream.is_op(".") and stream.ahead().kind in ("word", "quoted"):
            stream.next()
            operand = ast.Member(operand, stream.next().text, pos=start)
        elif chained and stream.is_op("("):
            call = _read_arguments(stream, ("",), start)
            operand = ast.Element(operand, call.args, pos=start)
        elif (
            stream.is_op("%")
            and stream.ahead().kind == "word"
            and stream.ahead().text in _CURSOR_FACTS
        ):
            stream.next()
            operand = ast.Call((f"%{stream.next().text}",), (operand,), pos=start)
        else:
            return operand


def _read_arguments(stream: TokenStream, name: ast.Name, start: int) -> ast.Call:
    stream.need_op("(")
    call = _read_call(stream, name, start)
    assert isinstance(call, ast.Call)
    return call


def read_target(stream: TokenStream) -> Expr:
    """Read what a value is assigned to, or the call that a statement of PL/SQL is."""
    token = stream.token
    if token.kind not in ("word", "quoted", "bind"):
        raise stream.error(936)
    if token.kind == "bind" or (stream.ahead().text == "(" and stream.ahead().kind == "op"):
        return read_selectors(stream, _read_primary(stream))
    return read_selectors(stream, _read_named(stream, token.start))


def read_targets(stream: TokenStream) -> tuple[Expr, ...]:
    """Read the targets behind INTO."""
    found = [read_target(stream)]
    while stream.take_op(","):
        found.append(read_target(stream))
    return tuple(found)


def _read_primary(stream: TokenStream) -> Expr:
    token = stream.token
    if stream.plsql and token.text == "SQL" and token.kind == "word" and stream.ahead().text == "%":
        stream.at += 2
        return ast.Column((f"SQL%{stream.identifier()}",), pos=token.start)
    match token.kind:
        case "number":
            stream.next()
            return ast.Number(token.text, pos=token.start)
        case "string" | "nstring":
            stream.next()
            return ast.String(token.text, token.kind == "nstring", pos=token.start)
        case "bind":
            if stream.plsql and token.text in stream.row_names:
                stream.next()
                stream.need_op(".")
                return ast.Column((token.text, stream.identifier()), pos=token.start)
            return stream.bind()
        case "op" if token.text == "(":
            return read_parenthesis(stream)
        case "word":
            return _read_word(stream, token.text, token.start)
        case "quoted":
            return _read_named(stream, token.start)
    raise stream.error(936)


def read_parenthesis(stream: TokenStream) -> Expr:
    start = stream.token.start
    if starts_query(stream):
        stream.need_op("(")
        query = stream.query()
        stream.need_op(")")
        return ast.Scalar(query, pos=start)
    stream.need_op("(")
    items = [read_condition(stream)]
    while stream.take_op(","):
        items.append(read_expression(stream))
    stream.need_op(")")
    return items[0] if len(items) == 1 else ast.Row(tuple(items), pos=start)


def _read_word(stream: TokenStream, word: str, start: int) -> Expr:
    following = stream.ahead()
    match word:
        case "NULL":
            stream.next()
            return ast.Null(pos=start)
        case "DATE" | "TIMESTAMP" if following.kind == "string":
            stream.next()
            return ast.Temporal(word, stream.text(), pos=start)
        case "INTERVAL" if following.kind == "string":
            return _read_interval_literal(stream, start)
        case "CASE":
            return _read_case(stream, start)
        case "CURSOR" if following.text == "(":
            return _read_cursor(stream, start)
        case "CAST" if following.text == "(":
            return _read_cast(stream, start)
        case "XMLSERIALIZE" if following.text == "(":
            return _read_serialized(stream, start)
        case (
            "JSON_VALUE" | "JSON_QUERY" | "JSON_EXISTS" | "JSON_SERIALIZE" | "VECTOR_SERIALIZE"
        ) if following.text == "(":
            return read_json_call(stream, read_expression)
        case "JSON_OBJECT" | "JSON_ARRAY" if following.text == "(":
            return read_json_made(stream, read_expression)
        case "XMLELEMENT" | "XMLFOREST" if following.text == "(":
            return read_xml_methods(stream, read_xml_made(stream, read_expression))
        case "JSON_EQUAL" if following.text == "(":
            return read_json_equal(stream, read_expression)
        case "EXTRACT" if following.text == "(":
            return _read_extract(stream, start)
        case "TRIM" if following.text == "(":
            return _read_trim(stream, start)
        case "DISTINCT" | "UNIQUE":
            raise stream.error(936)
    if word in _AGAINST_NAMES:
        raise stream.error(936)
    return _read_named(stream, start)


def _read_interval_literal(stream: TokenStream, start: int) -> Expr:
    stream.next()
    text = stream.text()
    first = stream.take_any(*_UNITS)
    if first is None:
        raise stream.error(905)
    precision, digits = 2, 6
    if stream.take_op("("):
        precision = _read_precision(stream)
        if first == "SECOND" and stream.take_op(","):
            digits = _read_precision(stream)
        stream.need_op(")")
    last = first
    if stream.take_word("TO"):
        last = stream.take_any(*_UNITS) or ""
        if not last:
            raise stream.error(905)
        if last == "SECOND" and stream.take_op("("):
            digits = _read_precision(stream)
            stream.need_op(")")
    return ast.Interval(text, first, last, precision, digits, pos=start)


def _read_precision(stream: TokenStream) -> int:
    start = stream.token.start
    digits = stream.integer()
    if not 0 <= digits <= 9:
        raise OracleError(30088, "datetime/interval precision is out of range", start)
    return digits


def _read_case(stream: TokenStream, start: int) -> Expr:
    stream.next()
    operand = None if stream.is_word("WHEN") else read_expression(stream)
    whens = []
    while stream.take_word("WHEN"):
        when = read_condition(stream) if operand is None else read_expression(stream)
        stream.need_word("THEN")
        whens.append((when, read_expression(stream)))
    if not whens:
        raise stream.error(905)
    otherwise = read_expression(stream) if stream.take_word("ELSE") else None
    stream.need_word("END")
    return ast.Case(operand, tuple(whens), otherwise, pos=start)


def _read_cursor(stream: TokenStream, start: int) -> Expr:
    stream.next()
    stream.need_op("(")
    query = stream.query()
    stream.need_op(")")
    return ast.CursorQuery(query, pos=start)


def _read_cast(stream: TokenStream, start: int) -> Expr:
    stream.next()
    stream.need_op("(")
    operand = read_expression(stream)
    stream.need_word("AS")
    datatype = read_datatype(stream)
    stream.need_op(")")
    return ast.Cast(operand, datatype, pos=start)


def _read_serialized(stream: TokenStream, start: int) -> Expr:
    """``XMLSERIALIZE(CONTENT e AS CLOB)``: the document as it is kept."""
    stream.next()
    stream.need_op("(")
    if stream.take_any("CONTENT", "DOCUMENT") is None:
        raise stream.error(906)
    operand = read_expression(stream)
    stream.need_word("AS")
    stream.need_word("CLOB")
    stream.need_op(")")
    return ast.Call(("TO_CLOB",), (operand,), pos=start)


def _read_extract(stream: TokenStream, start: int) -> Expr:
    stream.next()
    stream.need_op("(")
    if stream.ahead().text != "FROM":
        return read_xml_extract(stream, read_expression, start)
    field = stream.take_any(*_UNITS, "TIMEZONE_HOUR", "TIMEZONE_MINUTE")
    if field is None:
        raise OracleError(30076, "invalid extract field for extract source", stream.token.start)
    stream.need_word("FROM")
    operand = read_expression(stream)
    stream.need_op(")")
    return ast.Call(("EXTRACT",), (ast.String(field), operand), pos=start)


def _read_trim(stream: TokenStream, start: int) -> Expr:
    stream.next()
    stream.need_op("(")
    side = stream.take_any("LEADING", "TRAILING", "BOTH") or "BOTH"
    characters: Expr = ast.String(" ")
    if stream.take_word("FROM"):
        operand = read_expression(stream)
    else:
        operand = read_expression(stream)
        if stream.take_word("FROM"):
            characters, operand = operand, read_expression(stream)
    stream.need_op(")")
    return ast.Call(("TRIM",), (ast.String(side), characters, operand), pos=start)


# --- names and calls ------------------------------------------------------------------------------


def _read_named(stream: TokenStream, start: int) -> Expr:
    parts = [stream.next().text]
    while stream.is_op(".") and stream.ahead().kind in ("word", "quoted"):
        stream.next()
        parts.append(stream.next().text)
    name = tuple(parts)
    if not stream.is_op("("):
        return ast.Column(name, pos=start)
    if stream.ahead().text == "+" and stream.ahead(2).text == ")":
        stream.at += 3
        return ast.Column(name, outer=True, pos=start)
    stream.next()
    call = _read_call(stream, name, start)
    *owner, method = name
    if method in XML_METHODS and len(owner) >= 2 - stream.plsql:
        operand = ast.Column(tuple(owner), pos=start)
        return ast.Call(("XMLTYPE", method), (operand, *call.args), pos=start)
    return read_xml_methods(stream, call)


def _read_call(stream: TokenStream, name: ast.Name, start: int) -> ast.Call:
    star = distinct = False
    args: list[Expr] = []
    named: list[tuple[str, Expr]] = []
    if stream.take_op("*"):
        star = True
    elif not stream.is_op(")"):
        distinct = stream.take_any("DISTINCT", "UNIQUE") is not None
        if not distinct:
            stream.take_word("ALL")
        while True:
            if stream.ahead().text == "=>":
                parameter = stream.identifier()
                stream.next()
                named.append((parameter, read_condition(stream)))
            else:
                args.append(read_condition(stream))
            if not stream.take_op(","):
                break
    truncation = _read_overflow(stream) if stream.take_word("ON", "OVERFLOW") else None
    if stream.take_word("USING"):
        if name != ("TRANSLATE",):
            raise stream.error(907)
        name = ("TO_NCHAR",) if stream.identifier() == "NCHAR_CS" else ("TO_CHAR",)
    ignore = stream.take_word("IGNORE", "NULLS")
    if not ignore:
        stream.take_word("RESPECT", "NULLS")
    stream.need_op(")")
    if ignore or stream.is_word("IGNORE", "NULLS"):
        raise unsupported("IGNORE NULLS", start)
    stream.take_word("RESPECT", "NULLS")
    within: tuple[ast.OrderItem, ...] = ()
    if stream.take_word("WITHIN", "GROUP"):
        stream.need_op("(")
        stream.need_word("ORDER", "BY")
        within = read_order_items(stream)
        stream.need_op(")")
    if stream.is_word("KEEP"):
        raise unsupported("KEEP (DENSE_RANK …)", stream.token.start)
    window = _read_window(stream) if stream.take_word("OVER") else None
    return ast.Call(
        name, tuple(args), star, distinct, window, within, tuple(named), truncation, pos=start
    )


def _read_overflow(stream: TokenStream) -> ast.Truncation | None:
    """``ERROR``, which is the default, or ``TRUNCATE [indicator] [WITH|WITHOUT COUNT]``."""
    if stream.take_word("ERROR"):
        return None
    stream.need_word("TRUNCATE")
    plain = stream.is_op(")") or stream.is_word("WITH") or stream.is_word("WITHOUT")
    indicator = None if plain else read_condition(stream)
    counts = not stream.take_word("WITHOUT", "COUNT")
    if counts:
        stream.take_word("WITH", "COUNT")
    return ast.Truncation(indicator, counts)


def _read_window(stream: TokenStream) -> ast.Window:
    stream.need_op("(")
    partition: list[Expr] = []
    if stream.take_word("PARTITION", "BY"):
        partition.append(read_expression(stream))
        while stream.take_op(","):
            partition.append(read_expression(stream))
    order = read_order_items(stream) if stream.take_word("ORDER", "BY") else ()
    frame: list[str | Expr] = []
    kind = stream.take_any("ROWS", "RANGE")
    if kind is not None:
        if not order:
            raise OracleError(
                30485,
                "missing ORDER BY expression in the window specification",
                stream.token.start,
            )
        frame.append(kind)
        while not stream.is_op(")"):
            word = stream.take_any(*_FRAME_WORDS)
            frame.append(word if word is not None else read_expression(stream))
    stream.need_op(")")
    return ast.Window(tuple(partition), order, tuple(frame))


def read_order_items(stream: TokenStream) -> tuple[ast.OrderItem, ...]:
    """Read the sort keys of an ORDER BY clause."""
    items = []
    while True:
        expr = read_expression(stream)
        descending = stream.take_any("ASC", "DESC") == "DESC"
        nulls_first: bool | None = None
        if stream.take_word("NULLS"):
            which = stream.take_any("FIRST", "LAST")
            if which is None:
                raise stream.error(905)
            nulls_first = which == "FIRST"
        items.append(ast.OrderItem(expr, descending, nulls_first))
        if not stream.take_op(","):
            return tuple(items)
