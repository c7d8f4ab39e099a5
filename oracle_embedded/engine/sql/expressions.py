"""How are expressions and conditions written?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oracle_embedded.api import OracleError
from oracle_embedded.engine.errors import unsupported
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql.stream import RESERVED
from oracle_embedded.engine.sql.types import TypeParser

if TYPE_CHECKING:
    from oracle_embedded.engine.sql.ast import Expr, Query

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
_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_FRAME_WORDS = ("UNBOUNDED", "PRECEDING", "FOLLOWING", "CURRENT", "ROW", "BETWEEN", "AND")
_AGAINST_NAMES = RESERVED - {"MODE", "SIZE", "PUBLIC", "RESOURCE", "OPTION"}


class ExpressionParser(TypeParser):
    """Reads expressions and conditions; queries inside come from the subclass."""

    def query(self) -> Query:
        """Read a query; the query parser says how."""
        raise unsupported("queries here", self.token.start)

    # --- conditions --------------------------------------------------------------------------------------------------

    def condition(self) -> Expr:
        """Read ``a OR b OR …``."""
        items = [self._and()]
        while self.take_word("OR"):
            items.append(self._and())
        return items[0] if len(items) == 1 else ast.Logical("OR", tuple(items), pos=items[0].pos)

    def _and(self) -> Expr:
        items = [self._not()]
        while self.take_word("AND"):
            items.append(self._not())
        return items[0] if len(items) == 1 else ast.Logical("AND", tuple(items), pos=items[0].pos)

    def _not(self) -> Expr:
        start = self.token.start
        if self.take_word("NOT"):
            return ast.Not(self._not(), pos=start)
        return self._predicate()

    def _predicate(self) -> Expr:
        start = self.token.start
        if self.is_word("EXISTS") and self.ahead().text == "(":
            self.next()
            self.need_op("(")
            query = self.query()
            self.need_op(")")
            return ast.Exists(query, pos=start)
        left = self.expression()
        token = self.token
        if token.kind == "op" and token.text in _COMPARISONS:
            self.next()
            return self._comparison(_COMPARISONS[token.text], left, start)
        if self.take_word("IS"):
            negated = self.take_word("NOT")
            if not self.take_word("NULL"):
                raise OracleError(908, "missing NULL keyword", self.token.start)
            return ast.IsNull(left, negated, pos=start)
        negated = self.is_word("NOT") and self.ahead().text in ("IN", "LIKE", "BETWEEN")
        if negated:
            self.next()
        if self.take_word("LIKE"):
            pattern = self.expression()
            escape = self.expression() if self.take_word("ESCAPE") else None
            return ast.Like(left, pattern, escape, negated, pos=start)
        if self.take_word("BETWEEN"):
            low = self.expression()
            self.need_word("AND")
            return ast.Between(left, low, self.expression(), negated, pos=start)
        if self.take_word("IN"):
            return self._in(left, negated, start)
        return left

    def _comparison(self, op: str, left: Expr, start: int) -> Expr:
        quantifier = self.take_any("ANY", "SOME", "ALL")
        if quantifier is None:
            return ast.Compare(op, left, self.expression(), pos=start)
        items, query = self._list_or_query()
        return ast.Quantified(op, left, quantifier == "ALL", items, query, pos=start)

    def _in(self, left: Expr, negated: bool, start: int) -> Expr:
        if not self.is_op("("):
            return ast.In(left, (self.expression(),), None, negated, pos=start)
        items, query = self._list_or_query()
        return ast.In(left, items, query, negated, pos=start)

    def _list_or_query(self) -> tuple[tuple[Expr, ...], Query | None]:
        self.need_op("(")
        if self._starts_query():
            query = self.query()
            self.need_op(")")
            return (), query
        items = [self.expression()]
        while self.take_op(","):
            items.append(self.expression())
        self.need_op(")")
        return tuple(items), None

    def _starts_query(self) -> bool:
        at = self.at
        while self.tokens[at].text == "(" and self.tokens[at].kind == "op":
            at += 1
        return self.tokens[at].kind == "word" and self.tokens[at].text in ("SELECT", "WITH")

    # --- arithmetic --------------------------------------------------------------------------------------------------

    def expression(self) -> Expr:
        """Read sums, differences and concatenations."""
        left = self._product()
        while self.token.kind == "op" and self.token.text in ("+", "-", "||"):
            op = self.next()
            left = ast.Binary(op.text, left, self._product(), pos=op.start)
        return left

    def _product(self) -> Expr:
        left = self._signed()
        while self.token.kind == "op" and self.token.text in ("*", "/"):
            op = self.next()
            left = ast.Binary(op.text, left, self._signed(), pos=op.start)
        return left

    def _signed(self) -> Expr:
        token = self.token
        if token.kind == "op" and token.text in ("+", "-"):
            self.next()
            return ast.Unary(token.text, self._signed(), pos=token.start)
        if token.kind == "word" and token.text == "PRIOR":
            raise unsupported("hierarchical queries", token.start)
        return self._postfix(self._primary())

    def _postfix(self, operand: Expr) -> Expr:
        while self.is_word("AT"):
            if self.take_word("AT", "TIME", "ZONE"):
                zone = None if self.take_word("LOCAL") else self._primary()
                operand = ast.AtZone(operand, zone, pos=operand.pos)
            elif self.take_word("AT", "LOCAL"):
                operand = ast.AtZone(operand, None, pos=operand.pos)
            else:
                break
        return operand

    def _primary(self) -> Expr:
        token = self.token
        match token.kind:
            case "number":
                self.next()
                return ast.Number(token.text, pos=token.start)
            case "string" | "nstring":
                self.next()
                return ast.String(token.text, token.kind == "nstring", pos=token.start)
            case "bind":
                return self.bind()
            case "op" if token.text == "(":
                return self._parenthesis()
            case "word":
                return self._word(token.text, token.start)
            case "quoted":
                return self._named(token.start)
        raise self.error(936)

    def _parenthesis(self) -> Expr:
        start = self.token.start
        if self._starts_query():
            self.need_op("(")
            query = self.query()
            self.need_op(")")
            return ast.Scalar(query, pos=start)
        self.need_op("(")
        items = [self.condition()]
        while self.take_op(","):
            items.append(self.expression())
        self.need_op(")")
        return items[0] if len(items) == 1 else ast.Row(tuple(items), pos=start)

    def _word(self, word: str, start: int) -> Expr:
        following = self.ahead()
        match word:
            case "NULL":
                self.next()
                return ast.Null(pos=start)
            case "DATE" | "TIMESTAMP" if following.kind == "string":
                self.next()
                return ast.Temporal(word, self.text(), pos=start)
            case "INTERVAL" if following.kind == "string":
                return self._interval_literal(start)
            case "CASE":
                return self._case(start)
            case "CAST" if following.text == "(":
                return self._cast(start)
            case "EXTRACT" if following.text == "(":
                return self._extract(start)
            case "TRIM" if following.text == "(":
                return self._trim(start)
            case "DISTINCT" | "UNIQUE":
                raise self.error(936)
        if word in _AGAINST_NAMES:
            raise self.error(936)
        return self._named(start)

    def _interval_literal(self, start: int) -> Expr:
        self.next()
        text = self.text()
        first = self.take_any(*_UNITS)
        if first is None:
            raise self.error(905)
        if self.is_op("("):
            self.next()
            self.integer()
            if self.take_op(","):
                self.integer()
            self.need_op(")")
        last = first
        if self.take_word("TO"):
            last = self.take_any(*_UNITS) or ""
            if not last:
                raise self.error(905)
            if self.is_op("("):
                self.next()
                self.integer()
                self.need_op(")")
        return ast.Interval(text, first, last, pos=start)

    def _case(self, start: int) -> Expr:
        self.next()
        operand = None if self.is_word("WHEN") else self.expression()
        whens = []
        while self.take_word("WHEN"):
            when = self.condition() if operand is None else self.expression()
            self.need_word("THEN")
            whens.append((when, self.expression()))
        if not whens:
            raise self.error(905)
        otherwise = self.expression() if self.take_word("ELSE") else None
        self.need_word("END")
        return ast.Case(operand, tuple(whens), otherwise, pos=start)

    def _cast(self, start: int) -> Expr:
        self.next()
        self.need_op("(")
        operand = self.expression()
        self.need_word("AS")
        datatype = self.datatype()
        self.need_op(")")
        return ast.Cast(operand, datatype, pos=start)

    def _extract(self, start: int) -> Expr:
        self.next()
        self.need_op("(")
        field = self.take_any(*_UNITS, "TIMEZONE_HOUR", "TIMEZONE_MINUTE")
        if field is None:
            raise OracleError(30076, "invalid extract field for extract source", self.token.start)
        self.need_word("FROM")
        operand = self.expression()
        self.need_op(")")
        return ast.Call(("EXTRACT",), (ast.String(field), operand), pos=start)

    def _trim(self, start: int) -> Expr:
        self.next()
        self.need_op("(")
        side = self.take_any("LEADING", "TRAILING", "BOTH") or "BOTH"
        characters: Expr = ast.String(" ")
        if self.take_word("FROM"):
            operand = self.expression()
        else:
            operand = self.expression()
            if self.take_word("FROM"):
                characters, operand = operand, self.expression()
        self.need_op(")")
        return ast.Call(("TRIM",), (ast.String(side), characters, operand), pos=start)

    # --- names and calls ---------------------------------------------------------------------------------------------

    def _named(self, start: int) -> Expr:
        parts = [self._name_part()]
        while self.is_op(".") and self.ahead().kind in ("word", "quoted"):
            self.next()
            parts.append(self._name_part())
        name = tuple(parts)
        if not self.is_op("("):
            return ast.Column(name, pos=start)
        if self.ahead().text == "+" and self.ahead(2).text == ")":
            self.at += 3
            return ast.Column(name, outer=True, pos=start)
        self.next()
        return self._call(name, start)

    def _name_part(self) -> str:
        token = self.next()
        return token.text

    def _call(self, name: ast.Name, start: int) -> Expr:
        star = distinct = False
        args: list[Expr] = []
        named: list[tuple[str, Expr]] = []
        if self.take_op("*"):
            star = True
        elif not self.is_op(")"):
            distinct = self.take_any("DISTINCT", "UNIQUE") is not None
            if not distinct:
                self.take_word("ALL")
            while True:
                if self.ahead().text == "=>":
                    parameter = self.identifier()
                    self.next()
                    named.append((parameter, self.condition()))
                else:
                    args.append(self.condition())
                if not self.take_op(","):
                    break
        if self.is_word("ON", "OVERFLOW"):
            raise unsupported("LISTAGG … ON OVERFLOW", self.token.start)
        if self.take_word("USING"):
            if name != ("TRANSLATE",):
                raise self.error(907)
            self.identifier()
        ignore = self.take_word("IGNORE", "NULLS")
        if not ignore:
            self.take_word("RESPECT", "NULLS")
        self.need_op(")")
        if ignore or self.is_word("IGNORE", "NULLS"):
            raise unsupported("IGNORE NULLS", start)
        self.take_word("RESPECT", "NULLS")
        within: tuple[ast.OrderItem, ...] = ()
        if self.take_word("WITHIN", "GROUP"):
            self.need_op("(")
            self.need_word("ORDER", "BY")
            within = self.order_items()
            self.need_op(")")
        if self.is_word("KEEP"):
            raise unsupported("KEEP (DENSE_RANK …)", self.token.start)
        window = self._window() if self.take_word("OVER") else None
        return ast.Call(name, tuple(args), star, distinct, window, within, tuple(named), pos=start)

    def _window(self) -> ast.Window:
        self.need_op("(")
        partition: list[Expr] = []
        if self.take_word("PARTITION", "BY"):
            partition.append(self.expression())
            while self.take_op(","):
                partition.append(self.expression())
        order = self.order_items() if self.take_word("ORDER", "BY") else ()
        frame: list[str | Expr] = []
        kind = self.take_any("ROWS", "RANGE")
        if kind is not None:
            if not order:
                raise OracleError(
                    30485,
                    "missing ORDER BY expression in the window specification",
                    self.token.start,
                )
            frame.append(kind)
            while not self.is_op(")"):
                word = self.take_any(*_FRAME_WORDS)
                frame.append(word if word is not None else self.expression())
        self.need_op(")")
        return ast.Window(tuple(partition), order, tuple(frame))

    def order_items(self) -> tuple[ast.OrderItem, ...]:
        """Read the sort keys of an ORDER BY clause."""
        items = []
        while True:
            expr = self.expression()
            descending = self.take_any("ASC", "DESC") == "DESC"
            nulls_first: bool | None = None
            if self.take_word("NULLS"):
                which = self.take_any("FIRST", "LAST")
                if which is None:
                    raise self.error(905)
                nulls_first = which == "FIRST"
            items.append(ast.OrderItem(expr, descending, nulls_first))
            if not self.take_op(","):
                return tuple(items)
