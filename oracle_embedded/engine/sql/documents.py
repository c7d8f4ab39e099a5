"""How are conditions and functions of JSON and XML written?"""

from __future__ import annotations

import re
from collections.abc import Callable

from oracle_embedded.api import OracleError, OraType
from oracle_embedded.engine.datatypes.types import SqlType, varchar
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql.lexer import Token
from oracle_embedded.engine.sql.stream import TokenStream
from oracle_embedded.engine.sql.types import read_datatype

ReadExpression = Callable[[TokenStream], ast.Expr]
XML_METHODS = frozenset({"GETCLOBVAL", "GETSTRINGVAL"})
_XML_NAME = re.compile(r"[^\W\d][\w.-]*(:[^\W\d][\w.-]*)?")


def read_is_json(stream: TokenStream, operand: ast.Expr, *, negated: bool) -> ast.Expr:
    """Read what stands behind ``IS [NOT] JSON``."""
    _skip_format(stream)
    in_parentheses = stream.take_op("(")
    rules = (stream.take_any("STRICT", "LAX") or "LAX").lower()
    if in_parentheses:
        stream.need_op(")")
    word = stream.take_any("WITH", "WITHOUT")
    if word:
        stream.need_word("UNIQUE")
        stream.take_word("KEYS")
    if word == "WITH":
        rules += " unique"
    call = ast.Call(("JSON_IS",), (operand, ast.String(rules)), pos=operand.pos)
    return ast.Compare("=", call, ast.Number("0" if negated else "1"), pos=operand.pos)


def _skip_format(stream: TokenStream) -> None:
    if stream.take_word("FORMAT"):
        stream.need_word("JSON")


def read_json_call(stream: TokenStream, read: ReadExpression) -> ast.Expr:
    """Read ``JSON_VALUE(e, path [RETURNING type] [… ON ERROR])`` and its kin, and
    ``VECTOR_SERIALIZE``."""
    token = stream.next()
    operand, path = _read_operand(stream, read)
    kind = None
    if stream.take_word("RETURNING"):
        kind = _returned(stream)
    if token.text == "JSON_SERIALIZE" and (path != "$" or stream.is_word("PRETTY")):
        raise OracleError(3001, "unimplemented feature: PRETTY or a path here", stream.token.start)
    _skip_handling(stream)
    stream.need_op(")")
    call: ast.Expr = ast.Call((token.text,), (operand, ast.String(path)), pos=token.start)
    if token.text == "JSON_EXISTS":
        return ast.Compare("=", call, ast.Number("1"), pos=token.start)
    if kind is not None and kind.ora is OraType.CLOB:
        return ast.Call(("TO_CLOB",), (call,), pos=token.start)
    return call if kind is None else ast.Cast(call, kind, pos=token.start)


def read_json_made(stream: TokenStream, read: ReadExpression) -> ast.Expr:
    """Read ``JSON_OBJECT([KEY] name VALUE e [FORMAT JSON], … [NULL | ABSENT ON NULL] [RETURNING
    type])`` or JSON_ARRAY of such members without names. Its arguments are whether NULLs are kept,
    and what each member consists of."""
    token = stream.next()
    is_object = token.text == "JSON_OBJECT"
    stream.need_op("(")
    members: list[ast.Expr] = []
    while not (stream.is_op(")") or stream.is_word("RETURNING") or stream.ahead(1).text == "ON"):
        if is_object:
            stream.take_word("KEY")
            members.append(read(stream))
            if stream.take_any("VALUE", "IS") is None:
                raise stream.error(3001) if stream.is_op(":") else stream.error(907)
        value = read(stream)
        is_document = isinstance(value, ast.Call) and value.name[0].startswith(("JSON_OBJECT", "JSON_ARRAY", "JSON_QUERY"))  # fmt: skip
        if stream.take_word("FORMAT", "JSON"):
            is_document = True
        members += [value, ast.String("json" if is_document else "text")]
        if not stream.take_op(","):
            break
    keeps = is_object
    if word := stream.take_any("NULL", "ABSENT"):
        stream.need_word("ON", "NULL")
        keeps = word == "NULL"
    kind = _returned(stream) if stream.take_word("RETURNING") else None
    stream.take_any("STRICT")
    stream.take_word("WITH", "UNIQUE", "KEYS")
    stream.need_op(")")
    flag = ast.String("keep" if keeps else "drop")
    call: ast.Expr = ast.Call((token.text,), (flag, *members), pos=token.start)
    if kind is None:
        return call
    return ast.Call(("TO_CLOB",), (call,), pos=token.start) if kind.ora is OraType.CLOB else ast.Cast(call, kind, pos=token.start)  # fmt: skip


def read_xml_made(stream: TokenStream, read: ReadExpression) -> ast.Expr:
    """Read ``XMLELEMENT([NAME] name [, XMLATTRIBUTES(e [AS name], …)] [, e …])`` or ``XMLFOREST(e
    [AS name], …)``. Its arguments are the element's name, and of each member name and value; what
    is inside an element has no name."""
    token = stream.next()
    if token.text == "XMLFOREST":
        return ast.Call((token.text,), tuple(_named_members(stream, read, token)), pos=token.start)
    stream.need_op("(")
    if stream.is_word("NAME") and stream.ahead().kind in ("word", "quoted"):
        stream.next()
    parts: list[ast.Expr] = [_xml_name(stream.identifier(), token)]
    while stream.take_op(","):
        if stream.is_word("XMLATTRIBUTES") and len(parts) == 1:
            parts += _named_members(stream, read, stream.next())
        else:
            parts += [ast.Null(), read(stream)]
    stream.need_op(")")
    return ast.Call((token.text,), tuple(parts), pos=token.start)


def read_xml_methods(stream: TokenStream, operand: ast.Expr) -> ast.Expr:
    """Read the methods of a document that are called behind it."""
    while stream.is_op(".") and stream.ahead().text in XML_METHODS:
        stream.next()
        method = stream.next()
        stream.need_op("(")
        stream.need_op(")")
        operand = ast.Call(("XMLTYPE", method.text), (operand,), pos=method.start)
    return operand


def read_xml_extract(stream: TokenStream, read: ReadExpression, start: int) -> ast.Expr:
    """Read what stands in ``EXTRACT(document, path)``, of which only the path ``/`` is here."""
    operand = read(stream)
    stream.need_op(",")
    if stream.text().strip() != "/":
        raise OracleError(3001, "unimplemented feature: EXTRACT of a part of a document", start)
    stream.need_op(")")
    return read_xml_methods(stream, ast.Call(("XMLTYPE", "EXTRACT"), (operand,), pos=start))


def _named_members(stream: TokenStream, read: ReadExpression, function: Token) -> list[ast.Expr]:
    """Values, each behind its name: the one that it is given, or that of a column."""
    stream.need_op("(")
    found: list[ast.Expr] = []
    while True:
        value = read(stream)
        if stream.take_word("AS"):
            name = stream.identifier()
        elif isinstance(value, ast.Column):
            name = value.name[-1]
        else:
            place = len(found) // 2 + 1
            text = f"parameter {place} of function {function.text} must be aliased"
            raise OracleError(19208, text, value.pos)
        found += [_xml_name(name, function), value]
        if not stream.take_op(","):
            break
    stream.need_op(")")
    return found


def _xml_name(name: str, function: Token) -> ast.Expr:
    if not _XML_NAME.fullmatch(name):
        text = f"unimplemented feature: {function.text} with a name that XML does not know"
        raise OracleError(3001, text, function.start)
    return ast.String(name)


def read_json_equal(stream: TokenStream, read: ReadExpression) -> ast.Expr:
    """Read the condition ``JSON_EQUAL(e, e [ERROR | FALSE | TRUE ON ERROR])``."""
    start = stream.next().start
    stream.need_op("(")
    first = read(stream)
    stream.need_op(",", 909)
    second = read(stream)
    if stream.take_any("ERROR", "FALSE", "TRUE"):
        stream.need_word("ON", "ERROR")
    stream.need_op(")")
    call = ast.Call(("JSON_EQUAL",), (first, second), pos=start)
    return ast.Compare("=", call, ast.Number("1"), pos=start)


def _read_operand(stream: TokenStream, read: ReadExpression) -> tuple[ast.Expr, str]:
    stream.need_op("(")
    operand = read(stream)
    _skip_format(stream)
    path = "$"
    if stream.take_op(","):
        path = stream.text()
    return operand, path


def _returned(stream: TokenStream) -> SqlType:
    if stream.is_word("VARCHAR2") and stream.ahead().text != "(":
        stream.next()
        return varchar(4000)
    return read_datatype(stream)


def _skip_handling(stream: TokenStream) -> None:
    """Step over wrappers, and NULL ON ERROR and ON EMPTY, which is what happens.

    Raises:
        OracleError: ORA-03001 for another way of handling errors.
    """
    while word := stream.take_any("NULL", "ERROR", "DEFAULT", "PRETTY", "ASCII", "WITH", "WITHOUT", "FALSE", "TRUE"):  # fmt: skip
        if word in ("WITH", "WITHOUT"):
            stream.take_any("CONDITIONAL", "UNCONDITIONAL")
            stream.take_word("ARRAY")
            if word == "WITH":
                raise OracleError(3001, "unimplemented feature: WITH WRAPPER", stream.token.start)
            stream.need_word("WRAPPER")
        elif word in ("NULL", "FALSE"):
            stream.need_word("ON")
            stream.take_any("ERROR", "EMPTY", "MISMATCH")
        elif word not in ("PRETTY", "ASCII"):
            raise OracleError(3001, f"unimplemented feature: {word} ON ERROR", stream.token.start)


def read_json_table(
    stream: TokenStream, read: ReadExpression, read_alias: Callable[[TokenStream], str | None]
) -> ast.FromJson:
    """Read JSON_TABLE in FROM."""
    start = stream.next().start
    operand, path = _read_operand(stream, read)
    _skip_handling(stream)
    columns = _read_columns(stream)
    stream.need_op(")")
    return ast.FromJson(operand, path, columns, read_alias(stream), pos=start)


def _read_columns(stream: TokenStream) -> tuple[ast.JsonColumn, ...]:
    stream.need_word("COLUMNS")
    bracketed = stream.take_op("(")
    found = [_read_column(stream)]
    while stream.take_op(","):
        found.append(_read_column(stream))
    if bracketed:
        stream.need_op(")")
    return tuple(found)


def _read_column(stream: TokenStream) -> ast.JsonColumn:
    if stream.take_word("NESTED"):
        stream.take_word("PATH")
        path = stream.text()
        return ast.JsonColumn("", "nested", path, None, _read_columns(stream))
    token = stream.token
    name = stream.identifier()
    written = stream.sql[token.start : token.stop].strip('"')
    if stream.take_word("FOR", "ORDINALITY"):
        return ast.JsonColumn(name, "number", "", None)
    has_type = stream.token.kind == "word" and stream.token.text not in ("PATH", "EXISTS", "FORMAT")
    kind = _returned(stream) if has_type and not stream.is_op(",") else None
    stream.take_word("TRUNCATE")
    how = "value"
    if stream.take_word("EXISTS"):
        how = "exists"
    elif stream.is_word("FORMAT"):
        _skip_format(stream)
        how = "query"
    path = f'$."{written}"' if not stream.take_word("PATH") else stream.text()
    _skip_handling(stream)
    return ast.JsonColumn(name, how, path, kind)
