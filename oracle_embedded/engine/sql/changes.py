"""How are data changes written?"""

from __future__ import annotations

from oracle_embedded.api import OracleError
from oracle_embedded.engine.errors import unsupported
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql.queries import QueryParser


class ChangeParser(QueryParser):
    """Reads INSERT, UPDATE, DELETE and MERGE."""

    def insert(self) -> ast.Insert:
        """Read INSERT behind its first word."""
        if self.is_word("ALL") or self.is_word("FIRST"):
            raise unsupported("multi-table INSERT", self.token.start)
        if not self.take_word("INTO"):
            raise OracleError(925, "missing INTO keyword", self.token.start)
        table = self._target()
        columns = self.names() if self.is_op("(") and not self._starts_query() else ()
        if self.take_word("VALUES"):
            self.need_op("(")
            values = [self._value()]
            while self.take_op(","):
                values.append(self._value())
            self.need_op(")", code=917)
            return ast.Insert(table, columns, tuple(values), None, self._returning())
        if not self._starts_query():
            raise OracleError(926, "missing VALUES keyword", self.token.start)
        query = self.query()
        if self.is_word("RETURNING") or self.is_word("RETURN"):
            raise self.error(933)
        return ast.Insert(table, columns, (), query, None)

    def _target(self) -> ast.FromTable:
        start = self.token.start
        if self.is_op("("):
            raise unsupported("data changes through a query", start)
        name = self.name()
        return ast.FromTable(name, self._alias(), None, pos=start)

    def _value(self) -> ast.Expr:
        if self.is_word("DEFAULT"):
            return ast.Default(pos=self.next().start)
        return self.expression()

    def update(self) -> ast.Update:
        """Read UPDATE behind its first word."""
        self.take_word("ONLY")
        table = self._target()
        if not self.take_word("SET"):
            raise OracleError(971, "missing SET keyword", self.token.start)
        assignments = self._assignments()
        where = self.condition() if self.take_word("WHERE") else None
        return ast.Update(table, assignments, where, self._returning())

    def _assignments(self) -> tuple[ast.Assignment, ...]:
        assignments = []
        while True:
            start = self.token.start
            if self.take_op("("):
                columns = [self._assigned_column()]
                while self.take_op(","):
                    columns.append(self._assigned_column())
                self.need_op(")")
                self._need_equals()
                if not self._starts_query():
                    raise OracleError(
                        1767, "UPDATE ... SET expression must be a subquery", self.token.start
                    )
                value: ast.Expr = self._parenthesis()
            else:
                columns = [self._assigned_column()]
                self._need_equals()
                value = self._value()
            assignments.append(ast.Assignment(tuple(columns), value, pos=start))
            if not self.take_op(","):
                return tuple(assignments)

    def _need_equals(self) -> None:
        if not self.take_op("="):
            raise OracleError(927, "missing equal sign", self.token.start)

    def _assigned_column(self) -> str:
        return self.name(1747)[-1]

    def delete(self) -> ast.Delete:
        """Read DELETE behind its first word."""
        self.take_word("FROM")
        table = self._target()
        where = self.condition() if self.take_word("WHERE") else None
        return ast.Delete(table, where, self._returning())

    def _returning(self) -> ast.Returning | None:
        if self.is_word("LOG", "ERRORS"):
            raise unsupported("LOG ERRORS", self.token.start)
        if self.take_any("RETURNING", "RETURN") is None:
            return None
        exprs = [self.expression()]
        while self.take_op(","):
            exprs.append(self.expression())
        if not self.take_word("INTO"):
            raise OracleError(925, "missing INTO keyword", self.token.start)
        binds = []
        while True:
            if self.token.kind != "bind":
                raise self.error(936)
            binds.append(self.bind())
            if not self.take_op(","):
                break
        if len(binds) < len(exprs):
            raise self.error(947)
        if len(binds) > len(exprs):
            raise self.error(913)
        return ast.Returning(tuple(exprs), tuple(binds))

    def merge(self) -> ast.Merge:
        """Read MERGE behind its first word."""
        self.need_word("INTO")
        table = self._target()
        self.need_word("USING")
        source = self._from_primary()
        self.need_word("ON")
        self.need_op("(", code=969)
        on = self.condition()
        self.need_op(")")
        assignments: tuple[ast.Assignment, ...] | None = None
        update_where = delete_where = insert_where = None
        columns: tuple[str, ...] = ()
        values: tuple[ast.Expr, ...] | None = None
        while self.take_word("WHEN"):
            if self.take_word("MATCHED", "THEN", "UPDATE", "SET"):
                assignments = self._assignments()
                update_where = self.condition() if self.take_word("WHERE") else None
                if self.take_word("DELETE"):
                    self.need_word("WHERE")
                    delete_where = self.condition()
            elif self.take_word("NOT", "MATCHED", "THEN", "INSERT"):
                columns = self._merge_columns() if self.is_op("(") else ()
                self.need_word("VALUES", code=926)
                self.need_op("(")
                items = [self._value()]
                while self.take_op(","):
                    items.append(self._value())
                self.need_op(")")
                values = tuple(items)
                insert_where = self.condition() if self.take_word("WHERE") else None
            else:
                raise self.error(905)
        if assignments is None and values is None:
            raise self.error(905)
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

    def _merge_columns(self) -> tuple[str, ...]:
        self.need_op("(")
        names = [self._assigned_column()]
        while self.take_op(","):
            names.append(self._assigned_column())
        self.need_op(")")
        return tuple(names)
