"""How are queries written?"""

from __future__ import annotations

from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql.expressions import ExpressionParser
from oracle_embedded.engine.sql.stream import RESERVED

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
        "LOG",
        "RETURNING",
        "RETURN",
        "AS",
        "OUTER",
        "PARTITION",
        "SAMPLE",
        "PIVOT",
        "UNPIVOT",
        "MODEL",
        "VERSIONS",
        "LATERAL",
        "WITH",
    ]
)


class QueryParser(ExpressionParser):
    """Reads SELECT."""

    # --- queries -----------------------------------------------------------------------------------------------------

    def query(self) -> ast.Query:
        """Read a whole query with WITH, ORDER BY, row limits and FOR UPDATE."""
        start = self.token.start
        ctes = self._with() if self.take_word("WITH") else ()
        body = self._set_operations()
        order: tuple[ast.OrderItem, ...] = ()
        if self.take_word("ORDER"):
            self.take_word("SIBLINGS")
            self.need_word("BY", code=924)
            order = self.order_items()
        offset, fetch, with_ties = self._row_limits()
        for_update = self._for_update() if self.is_word("FOR", "UPDATE") else None
        return ast.Query(body, ctes, order, offset, fetch, with_ties, for_update, pos=start)

    def _with(self) -> tuple[ast.Cte, ...]:
        ctes = []
        while True:
            name = self.identifier()
            columns = self.names() if self.is_op("(") else ()
            self.need_word("AS")
            self.need_op("(")
            query = self.query()
            self.need_op(")")
            if self.is_word("SEARCH") or self.is_word("CYCLE"):
                raise unsupported("SEARCH and CYCLE clauses", self.token.start)
            ctes.append(ast.Cte(name, columns, query))
            if not self.take_op(","):
                return tuple(ctes)

    def _set_operations(self) -> ast.Body:
        left = self._block()
        while True:
            start = self.token.start
            word = self.take_any("UNION", "MINUS", "INTERSECT", "EXCEPT")
            if word is None:
                return left
            op = "MINUS" if word == "EXCEPT" else word
            if self.take_word("ALL"):
                if op != "UNION":
                    raise self.error(928)
                op = "UNION ALL"
            left = ast.SetOperation(op, left, self._block(), pos=start)

    def _block(self) -> ast.Body:
        if self.take_op("("):
            query = self.query()
            self.need_op(")")
            return query
        start = self.token.start
        if not self.take_word("SELECT"):
            raise self.error(928)
        distinct = self.take_any("DISTINCT", "UNIQUE") is not None
        if not distinct:
            self.take_word("ALL")
        items = [self._select_item()]
        while self.take_op(","):
            items.append(self._select_item())
        self._select_items_end()
        if not self.take_word("FROM"):
            raise self.error(923)
        sources = [self._from_item()]
        while self.take_op(","):
            sources.append(self._from_item())
        where = self.condition() if self.take_word("WHERE") else None
        connect_by = self._connect_by()
        group: tuple[ast.Expr, ...] | None = None
        having = self.condition() if self.take_word("HAVING") else None
        if self.take_word("GROUP"):
            self.need_word("BY", code=924)
            group = self._group()
            if self.take_word("HAVING"):
                having = self.condition()
        return ast.Select(
            tuple(items), distinct, tuple(sources), where, group, having, connect_by, pos=start
        )

    def _select_items_end(self) -> None:
        """What may follow a select list; in PL/SQL that is INTO."""
        if self.is_word("INTO") or self.is_word("BULK"):
            raise ora(905, offset=self.token.start)

    def _connect_by(self) -> ast.Expr | None:
        if self.is_word("START", "WITH"):
            raise unsupported("hierarchical queries", self.token.start)
        if not self.take_word("CONNECT", "BY"):
            return None
        self.take_word("NOCYCLE")
        return self.condition()

    def _group(self) -> tuple[ast.Expr, ...]:
        items: list[ast.Expr] = []
        while True:
            if self.token.text in ("ROLLUP", "CUBE", "GROUPING") and self.token.kind == "word":
                raise unsupported(f"GROUP BY {self.token.text}", self.token.start)
            item = self.expression()
            items.extend(item.items if isinstance(item, ast.Row) else [item])
            if not self.take_op(","):
                return tuple(items)

    def _select_item(self) -> ast.SelectItem:
        start = self.token.start
        if self.take_op("*"):
            return ast.SelectItem(ast.Null(pos=start), None, ())
        if self.token.kind in ("word", "quoted"):
            at = 0
            while self.ahead(at).kind in ("word", "quoted") and self.ahead(at + 1).text == ".":
                at += 2
            if at and self.ahead(at).text == "*" and self.ahead(at).kind == "op":
                qualifier = tuple(self.ahead(count).text for count in range(0, at, 2))
                self.at += at + 1
                return ast.SelectItem(ast.Null(pos=start), None, qualifier)
        expr = self.expression()
        text = self.source_text(start)
        alias = None
        if (
            self.take_word("AS")
            or self.token.kind == "quoted"
            or (self.token.kind == "word" and self.token.text not in ("FROM", "INTO", "BULK"))
        ):
            alias = self.identifier(code=923)
        return ast.SelectItem(expr, alias, None, text)

    def _row_limits(self) -> tuple[ast.Expr | None, ast.Expr | None, bool]:
        offset = fetch = None
        with_ties = False
        if self.take_word("OFFSET"):
            offset = self.expression()
            if self.take_any("ROW", "ROWS") is None:
                raise self.error(905)
        if self.take_word("FETCH"):
            if self.take_any("FIRST", "NEXT") is None:
                raise self.error(905)
            fetch = (
                ast.Number("1")
                if self.is_word("ROW") or self.is_word("ROWS")
                else self.expression()
            )
            if self.is_word("PERCENT"):
                raise unsupported("FETCH … PERCENT", self.token.start)
            if self.take_any("ROW", "ROWS") is None:
                raise self.error(905)
            with_ties = self.take_word("WITH", "TIES")
            if not with_ties:
                self.need_word("ONLY")
        return offset, fetch, with_ties

    def _for_update(self) -> ast.ForUpdate:
        self.need_word("FOR", "UPDATE")
        of: list[ast.Name] = []
        if self.take_word("OF"):
            of.append(self.name(904))
            while self.take_op(","):
                of.append(self.name(904))
        if self.take_word("NOWAIT"):
            return ast.ForUpdate(tuple(of), 0)
        if self.take_word("WAIT"):
            return ast.ForUpdate(tuple(of), self.integer())
        skip = self.take_word("SKIP", "LOCKED")
        return ast.ForUpdate(tuple(of), None, skip)

    # --- FROM --------------------------------------------------------------------------------------------------------

    def _from_item(self) -> ast.FromItem:
        left = self._from_primary()
        while True:
            natural = self.is_word("NATURAL") and self.ahead().text in (
                "JOIN",
                "INNER",
                "LEFT",
                "RIGHT",
                "FULL",
            )
            if natural:
                self.next()
            kind = self._join_kind()
            if kind is None:
                return left
            right = self._from_primary()
            on: ast.Expr | None = None
            using: tuple[str, ...] = ()
            if kind != "CROSS" and not natural:
                if self.take_word("ON"):
                    on = self.condition()
                elif self.take_word("USING"):
                    using = self.names()
                else:
                    raise self.error(905)
            left = ast.Join(kind, left, right, on, using, natural)

    def _join_kind(self) -> str | None:
        if self.take_word("JOIN") or self.take_word("INNER", "JOIN"):
            return "INNER"
        if self.take_word("CROSS", "JOIN"):
            return "CROSS"
        if self.is_word("CROSS", "APPLY") or self.is_word("OUTER", "APPLY"):
            raise unsupported("APPLY", self.token.start)
        for side in ("LEFT", "RIGHT", "FULL"):
            if self.take_word(side, "OUTER", "JOIN") or self.take_word(side, "JOIN"):
                return side
        return None

    def _from_primary(self) -> ast.FromItem:
        start = self.token.start
        if self.is_op("("):
            if self._starts_query():
                self.next()
                query = self.query()
                self.need_op(")")
                return ast.FromQuery(query, self._alias(), pos=start)
            self.next()
            item = self._from_item()
            self.need_op(")")
            return item
        if self.is_word("LATERAL") or self.is_word("TABLE") or self.is_word("XMLTABLE"):
            raise unsupported(f"{self.token.text} in FROM", start)
        return self.table_reference()

    def table_reference(self) -> ast.FromTable:
        """Read a table's name with flashback clause and alias."""
        start = self.token.start
        name = self.name()
        if self.is_op("("):
            raise unsupported("table functions", start)
        if self.token.text in (
            "PARTITION",
            "SUBPARTITION",
            "SAMPLE",
            "VERSIONS",
        ) and self.ahead().text in ("(", "BETWEEN", "BLOCK"):
            raise unsupported(f"{self.token.text} clause", self.token.start)
        as_of = None
        if self.is_word("AS", "OF"):
            self.at += 2
            kind = self.take_any("SCN", "TIMESTAMP")
            if kind is None:
                raise self.error(905)
            as_of = ast.AsOf(kind, self.expression())
        if self.token.text in ("PIVOT", "UNPIVOT", "MODEL") and self.token.kind == "word":
            raise unsupported(self.token.text, self.token.start)
        return ast.FromTable(name, self._alias(), as_of, pos=start)

    def _alias(self) -> str | None:
        if self.is_word("AS") and self.ahead().text != "OF":
            raise self.error(933)
        if self.token.kind == "quoted" or (
            self.token.kind == "word" and self.token.text not in _AFTER_FROM_ITEM | RESERVED
        ):
            return self.identifier(code=933)
        return None
