"""How are PL/SQL blocks written, as far as clients send them?"""

from __future__ import annotations

from collections.abc import Callable

from oracle_embedded.api import OracleError
from oracle_embedded.engine.datatypes.types import CURSOR, SqlType
from oracle_embedded.engine.sql import ast, plsql_nodes
from oracle_embedded.engine.sql.changes import CHANGES
from oracle_embedded.engine.sql.expressions import read_condition, read_expression
from oracle_embedded.engine.sql.plsql_nodes import Block, Node, Variable
from oracle_embedded.engine.sql.queries import read_query
from oracle_embedded.engine.sql.statements import read_control
from oracle_embedded.engine.sql.stream import TokenStream
from oracle_embedded.engine.sql.types import read_datatype

_SQL_WORDS = (
    "SELECT",
    "WITH",
    "INSERT",
    "UPDATE",
    "DELETE",
    "MERGE",
    "LOCK",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT",
    "SET",
)
_NOT_HERE = frozenset(
    [
        "FETCH",
        "CLOSE",
        "CURSOR",
        "FORALL",
        "GOTO",
        "PIPE",
        "PRAGMA",
        "TYPE",
        "FUNCTION",
        "PROCEDURE",
        "SUBTYPE",
        "CASE",
    ]
)

ColumnType = Callable[[ast.Name], SqlType | None]


def compile_error(
    sql: str, pos: int, code: int, text: str, kind: str = "Statement ignored"
) -> OracleError:
    """ORA-06550 with a PLS error, as the compiler of PL/SQL reports it."""
    line = sql.count("\n", 0, pos) + 1
    column = pos - (sql.rfind("\n", 0, pos) + 1) + 1
    place = f"line {line}, column {column}:\n"
    follow = f"\nORA-06550: {place}PL/SQL: {kind}" if code != 103 else ""
    return OracleError(6550, f"{place}PLS-{code:05d}: {text}{follow}", pos)


def parse_block(sql: str, column_type: ColumnType) -> Block:
    """Parse an anonymous block or a CALL statement; ``column_type`` answers %TYPE, None for no such column.

    Raises:
        OracleError: ORA-06550 with what the compiler of PL/SQL would say.
    """
    return _BlockReader(TokenStream(sql, read_query, plsql=True), column_type).whole()


class _BlockReader:
    """Reads the statements of a block from one stream."""

    def __init__(self, stream: TokenStream, column_type: ColumnType) -> None:
        self.stream = stream
        self.column_type = column_type

    def whole(self) -> Block:
        """Read the whole text."""
        try:
            if self.stream.take_word("CALL"):
                body: tuple[Node, ...] = (self._call_statement(),)
                self.stream.expect_end()
                return plsql_nodes.Block((), body, (), tuple(self.stream.bind_names))
            block = self._plsql_block()
            self._semicolon()
            if self.stream.is_op("/"):
                self.stream.next()
        except OracleError as error:
            if error.code in (6550, 3001, 1756, 911):
                raise
            raise (
                self._unexpected() if error.code in (900, 905, 906, 907, 923, 933, 936) else error
            ) from error
        if self.stream.token.kind != "end":
            raise self._unexpected()
        return plsql_nodes.Block(
            block.variables, block.body, block.handlers, tuple(self.stream.bind_names)
        )

    def _unexpected(self) -> OracleError:
        token = self.stream.token
        if token.kind == "end":
            return compile_error(
                self.stream.sql,
                token.start,
                103,
                'Encountered the symbol "end-of-file" when expecting one of the following:',
            )
        return compile_error(
            self.stream.sql,
            token.start,
            103,
            f'Encountered the symbol "{token.text}" when expecting one of the following:',
        )

    def _semicolon(self) -> None:
        if not self.stream.take_op(";"):
            raise self._unexpected()

    # --- blocks ------------------------------------------------------------------------------------------------------

    def _plsql_block(self) -> Block:
        start = self.stream.token.start
        variables: list[Variable] = []
        if self.stream.take_word("DECLARE"):
            while not self.stream.is_word("BEGIN"):
                variables.append(self._variable())
        if not self.stream.take_word("BEGIN"):
            raise self._unexpected()
        body = self._statements("END", "EXCEPTION")
        handlers: list[tuple[tuple[str, ...], tuple[Node, ...]]] = []
        if self.stream.take_word("EXCEPTION"):
            while self.stream.take_word("WHEN"):
                names = [self.stream.identifier()]
                while self.stream.take_word("OR"):
                    names.append(self.stream.identifier())
                self._need("THEN")
                handlers.append((tuple(names), self._statements("END", "WHEN")))
        self._need("END")
        if self.stream.token.kind in ("word", "quoted"):
            self.stream.next()
        return plsql_nodes.Block(tuple(variables), body, tuple(handlers), pos=start)

    def _need(self, *words: str) -> None:
        for word in words:
            if not self.stream.take_word(word):
                raise self._unexpected()

    def _variable(self) -> Variable:
        if self.stream.token.text in _NOT_HERE and self.stream.token.kind == "word":
            raise self._unsupported()
        name = self.stream.identifier()
        constant = self.stream.take_word("CONSTANT")
        kind = self._variable_type()
        self.stream.take_word("NOT", "NULL")
        value = None
        if self.stream.take_op(":=") or self.stream.take_word("DEFAULT"):
            value = read_condition(self.stream)
        self._semicolon()
        return plsql_nodes.Variable(name, kind, value, constant)

    def _variable_type(self) -> SqlType:
        if self.stream.take_word("SYS_REFCURSOR"):
            return CURSOR
        at = self.stream.at
        while self.stream.tokens[at + 1].text == ".":
            at += 2
        if self.stream.tokens[at + 1].text != "%":
            return read_datatype(self.stream)
        start = self.stream.token.start
        name = self.stream.name()
        self.stream.next()
        if not self.stream.take_word("TYPE"):
            raise self._unsupported()
        kind = self.column_type(name)
        if kind is None:
            raise compile_error(
                self.stream.sql,
                start,
                201,
                f"identifier '{'.'.join(name)}' must be declared",
                "Item ignored",
            )
        return kind

    def _unsupported(self) -> OracleError:
        return compile_error(
            self.stream.sql,
            self.stream.token.start,
            103,
            f'Encountered the symbol "{self.stream.token.text}" (not supported by this database)',
        )

    # --- statements --------------------------------------------------------------------------------------------------

    def _statements(self, *ends: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not (self.stream.token.kind == "word" and self.stream.token.text in ends):
            if self.stream.token.kind == "end":
                raise self._unexpected()
            node = self._statement()
            if node is not None:
                found.append(node)
        return tuple(found)

    def _statement(self) -> Node | None:
        token = self.stream.token
        start = token.start
        if token.kind == "bind":
            target = self.stream.bind()
            return self._assignment(target, start)
        word = token.text if token.kind == "word" else ""
        if word in ("BEGIN", "DECLARE"):
            block = self._plsql_block()
            self._semicolon()
            return block
        if self.stream.take_word("NULL"):
            self._semicolon()
            return None
        if word in _SQL_WORDS:
            return self._sql(word, start)
        if word in _NOT_HERE:
            raise self._unsupported()
        match word:
            case "IF":
                return self._if(start)
            case "FOR":
                return self._for(start)
            case "WHILE" | "LOOP":
                return self._loop(start)
            case "EXIT" | "CONTINUE":
                self.stream.next()
                condition = read_condition(self.stream) if self.stream.take_word("WHEN") else None
                self._semicolon()
                return plsql_nodes.Exit(word == "CONTINUE", condition, pos=start)
            case "RETURN":
                self.stream.next()
                self._semicolon()
                return plsql_nodes.Return(pos=start)
            case "RAISE" if self.stream.ahead().text == ";":
                self.stream.next()
                self._semicolon()
                return plsql_nodes.Raise(pos=start)
            case "OPEN":
                return self._open_for(start)
            case "EXECUTE":
                return self._execute_immediate(start)
        if self.stream.ahead().text == ":=":
            return self._assignment(self.stream.identifier(), start)
        node = self._call_statement()
        self._semicolon()
        return node

    def _assignment(self, target: str | ast.Bind, start: int) -> Node:
        if not self.stream.take_op(":="):
            raise self._unexpected()
        value = read_condition(self.stream)
        self._semicolon()
        return plsql_nodes.Assign(target, value, pos=start)

    def _if(self, start: int) -> Node:
        self.stream.next()
        branches: list[tuple[ast.Expr | None, tuple[Node, ...]]] = []
        condition: ast.Expr | None = read_condition(self.stream)
        self._need("THEN")
        branches.append((condition, self._statements("ELSIF", "ELSE", "END")))
        while self.stream.take_word("ELSIF"):
            condition = read_condition(self.stream)
            self._need("THEN")
            branches.append((condition, self._statements("ELSIF", "ELSE", "END")))
        if self.stream.take_word("ELSE"):
            branches.append((None, self._statements("END")))
        self._need("END", "IF")
        self._semicolon()
        return plsql_nodes.If(tuple(branches), pos=start)

    def _for(self, start: int) -> Node:
        self.stream.next()
        name = self.stream.identifier()
        self._need("IN")
        reverse = self.stream.take_word("REVERSE")
        if self.stream.is_op("("):
            raise self._unsupported()
        low = read_expression(self.stream)
        if not self.stream.take_op(".."):
            raise self._unexpected()
        high = read_expression(self.stream)
        return plsql_nodes.ForRange(name, low, high, reverse, self._loop_body(), pos=start)

    def _loop(self, start: int) -> Node:
        condition = read_condition(self.stream) if self.stream.take_word("WHILE") else None
        return plsql_nodes.Loop(condition, self._loop_body(), pos=start)

    def _loop_body(self) -> tuple[Node, ...]:
        self._need("LOOP")
        body = self._statements("END")
        self._need("END", "LOOP")
        if self.stream.token.kind == "word":
            self.stream.next()
        self._semicolon()
        return body

    def _open_for(self, start: int) -> Node:
        self.stream.next()
        is_bind = self.stream.token.kind == "bind"
        cursor = self.stream.bind() if is_bind else self.stream.identifier()
        if not self.stream.take_word("FOR"):
            raise self._unsupported()
        if self.stream.is_word("SELECT") or self.stream.is_word("WITH"):
            node = plsql_nodes.OpenFor(cursor, self.stream.query(), (), pos=start)
        else:
            text = read_expression(self.stream)
            node = plsql_nodes.OpenFor(cursor, text, self._using(), pos=start)
        self._semicolon()
        return node

    def _execute_immediate(self, start: int) -> Node:
        self._need("EXECUTE", "IMMEDIATE")
        text = read_expression(self.stream)
        into = self.stream.targets() if self.stream.take_word("INTO") else ()
        using = self._using()
        self._semicolon()
        return plsql_nodes.ExecuteImmediate(text, into, using, pos=start)

    def _using(self) -> tuple[ast.Expr, ...]:
        using: list[ast.Expr] = []
        if self.stream.take_word("USING"):
            while True:
                self.stream.take_word("IN")
                if self.stream.is_word("OUT"):
                    raise self._unsupported()
                using.append(read_expression(self.stream))
                if not self.stream.take_op(","):
                    break
        return tuple(using)

    def _call_statement(self) -> Node:
        start = self.stream.token.start
        name = self.stream.name()
        args: list[ast.Expr] = []
        named: list[tuple[str, ast.Expr]] = []
        if self.stream.take_op("(") and not self.stream.take_op(")"):
            while True:
                if self.stream.ahead().text == "=>":
                    parameter = self.stream.identifier()
                    self.stream.next()
                    named.append((parameter, read_condition(self.stream)))
                else:
                    args.append(read_condition(self.stream))
                if not self.stream.take_op(","):
                    break
            self.stream.need_op(")")
        return plsql_nodes.CallProcedure(name, tuple(args), tuple(named), pos=start)

    def _sql(self, word: str, start: int) -> Node:
        into: tuple[str | ast.Bind, ...] = ()
        node: object
        if word in ("SELECT", "WITH"):
            self.stream.into.clear()
            node = self.stream.query()
            into = tuple(self.stream.into)
            if not into:
                raise compile_error(
                    self.stream.sql,
                    start,
                    428,
                    "an INTO clause is expected in this SELECT statement",
                )
            kind = "QUERY"
        elif word in CHANGES:
            self.stream.next()
            node = CHANGES[word](self.stream)
            kind = "DML"
        else:
            node = read_control(self.stream, word)
            kind = "OTHER"
        text = self.stream.source_text(start)
        self._semicolon()
        return plsql_nodes.Sql(text, node, kind, into, pos=start)
