"""How are PL/SQL blocks written, as far as clients send them?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oracle_embedded.api import OracleError
from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.sql import ast, plsql_nodes
from oracle_embedded.engine.sql.statements import StatementParser
from oracle_embedded.engine.storage.catalog import TableDef

if TYPE_CHECKING:
    from oracle_embedded.engine.run.session import Session
    from oracle_embedded.engine.sql.plsql_nodes import Block, Node, Variable

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
        "OPEN",
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
_TEXT_MAX = 32767


def compile_error(
    sql: str, pos: int, code: int, text: str, kind: str = "Statement ignored"
) -> OracleError:
    """ORA-06550 with a PLS error, as the compiler of PL/SQL reports it."""
    line = sql.count("\n", 0, pos) + 1
    column = pos - (sql.rfind("\n", 0, pos) + 1) + 1
    place = f"line {line}, column {column}:\n"
    follow = f"\nORA-06550: {place}PL/SQL: {kind}" if code != 103 else ""
    return OracleError(6550, f"{place}PLS-{code:05d}: {text}{follow}", pos)


def parse_block(session: Session, sql: str) -> Block:
    """Parse an anonymous block or a CALL statement.

    Raises:
        OracleError: ORA-06550 with what the compiler of PL/SQL would say.
    """
    parser = BlockParser(session, sql)
    return parser.whole()


class BlockParser(StatementParser):
    """Reads PL/SQL."""

    text_max = _TEXT_MAX

    def __init__(self, session: Session, sql: str) -> None:
        super().__init__(sql, distinct_binds=True)
        self.session = session
        self._into: list[str | ast.Bind] = []

    def whole(self) -> Block:
        """Read the whole text."""
        try:
            if self.take_word("CALL"):
                body: tuple[Node, ...] = (self._call_statement(),)
                self.expect_end()
                return plsql_nodes.Block((), body, (), tuple(self.bind_names))
            block = self._plsql_block()
            self._semicolon()
            if self.is_op("/"):
                self.next()
        except OracleError as error:
            if error.code in (6550, 3001, 1756, 911):
                raise
            raise (
                self._unexpected() if error.code in (900, 905, 906, 907, 923, 933, 936) else error
            ) from error
        if self.token.kind != "end":
            raise self._unexpected()
        return plsql_nodes.Block(
            block.variables, block.body, block.handlers, tuple(self.bind_names)
        )

    def _unexpected(self) -> OracleError:
        token = self.token
        if token.kind == "end":
            return compile_error(
                self.sql,
                token.start,
                103,
                'Encountered the symbol "end-of-file" when expecting one of the following:',
            )
        return compile_error(
            self.sql,
            token.start,
            103,
            f'Encountered the symbol "{token.text}" when expecting one of the following:',
        )

    def _semicolon(self) -> None:
        if not self.take_op(";"):
            raise self._unexpected()

    # --- blocks ------------------------------------------------------------------------------------------------------

    def _plsql_block(self) -> Block:
        start = self.token.start
        variables: list[Variable] = []
        if self.take_word("DECLARE"):
            while not self.is_word("BEGIN"):
                variables.append(self._variable())
        if not self.take_word("BEGIN"):
            raise self._unexpected()
        body = self._statements("END", "EXCEPTION")
        handlers: list[tuple[tuple[str, ...], tuple[Node, ...]]] = []
        if self.take_word("EXCEPTION"):
            while self.take_word("WHEN"):
                names = [self.identifier()]
                while self.take_word("OR"):
                    names.append(self.identifier())
                self._need("THEN")
                handlers.append((tuple(names), self._statements("END", "WHEN")))
        self._need("END")
        if self.token.kind in ("word", "quoted"):
            self.next()
        return plsql_nodes.Block(tuple(variables), body, tuple(handlers), pos=start)

    def _need(self, *words: str) -> None:
        for word in words:
            if not self.take_word(word):
                raise self._unexpected()

    def _variable(self) -> Variable:
        if self.token.text in _NOT_HERE and self.token.kind == "word":
            raise self._unsupported()
        name = self.identifier()
        constant = self.take_word("CONSTANT")
        kind = self._variable_type()
        self.take_word("NOT", "NULL")
        value = None
        if self.take_op(":=") or self.take_word("DEFAULT"):
            value = self.condition()
        self._semicolon()
        return plsql_nodes.Variable(name, kind, value, constant)

    def _variable_type(self) -> SqlType:
        at = self.at
        while self.tokens[at + 1].text == ".":
            at += 2
        if self.tokens[at + 1].text != "%":
            return self.datatype()
        start = self.token.start
        name = self.name()
        self.next()
        if not self.take_word("TYPE"):
            raise self._unsupported()
        owner = name[0] if len(name) == 3 else self.session.schema
        table = self.session.database.find(self.session, owner, name[-2]) if len(name) > 1 else None
        if not isinstance(table, TableDef) or name[-1] not in table.by_name:
            raise compile_error(
                self.sql,
                start,
                201,
                f"identifier '{'.'.join(name)}' must be declared",
                "Item ignored",
            )
        return table.by_name[name[-1]].type

    def _unsupported(self) -> OracleError:
        return compile_error(
            self.sql,
            self.token.start,
            103,
            f'Encountered the symbol "{self.token.text}" (not supported by this database)',
        )

    # --- statements --------------------------------------------------------------------------------------------------

    def _statements(self, *ends: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not (self.token.kind == "word" and self.token.text in ends):
            if self.token.kind == "end":
                raise self._unexpected()
            node = self._statement()
            if node is not None:
                found.append(node)
        return tuple(found)

    def _statement(self) -> Node | None:
        token = self.token
        start = token.start
        if token.kind == "bind":
            target = self.bind()
            return self._assignment(target, start)
        word = token.text if token.kind == "word" else ""
        if word in ("BEGIN", "DECLARE"):
            block = self._plsql_block()
            self._semicolon()
            return block
        if self.take_word("NULL"):
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
                self.next()
                condition = self.condition() if self.take_word("WHEN") else None
                self._semicolon()
                return plsql_nodes.Exit(word == "CONTINUE", condition, pos=start)
            case "RETURN":
                self.next()
                self._semicolon()
                return plsql_nodes.Return(pos=start)
            case "RAISE" if self.ahead().text == ";":
                self.next()
                self._semicolon()
                return plsql_nodes.Raise(pos=start)
            case "EXECUTE":
                return self._execute_immediate(start)
        if self.ahead().text == ":=":
            return self._assignment(self.identifier(), start)
        node = self._call_statement()
        self._semicolon()
        return node

    def _assignment(self, target: str | ast.Bind, start: int) -> Node:
        if not self.take_op(":="):
            raise self._unexpected()
        value = self.condition()
        self._semicolon()
        return plsql_nodes.Assign(target, value, pos=start)

    def _if(self, start: int) -> Node:
        self.next()
        branches: list[tuple[ast.Expr | None, tuple[Node, ...]]] = []
        condition: ast.Expr | None = self.condition()
        self._need("THEN")
        branches.append((condition, self._statements("ELSIF", "ELSE", "END")))
        while self.take_word("ELSIF"):
            condition = self.condition()
            self._need("THEN")
            branches.append((condition, self._statements("ELSIF", "ELSE", "END")))
        if self.take_word("ELSE"):
            branches.append((None, self._statements("END")))
        self._need("END", "IF")
        self._semicolon()
        return plsql_nodes.If(tuple(branches), pos=start)

    def _for(self, start: int) -> Node:
        self.next()
        name = self.identifier()
        self._need("IN")
        reverse = self.take_word("REVERSE")
        if self.is_op("("):
            raise self._unsupported()
        low = self.expression()
        if not self.take_op(".."):
            raise self._unexpected()
        high = self.expression()
        return plsql_nodes.ForRange(name, low, high, reverse, self._loop_body(), pos=start)

    def _loop(self, start: int) -> Node:
        condition = self.condition() if self.take_word("WHILE") else None
        return plsql_nodes.Loop(condition, self._loop_body(), pos=start)

    def _loop_body(self) -> tuple[Node, ...]:
        self._need("LOOP")
        body = self._statements("END")
        self._need("END", "LOOP")
        if self.token.kind == "word":
            self.next()
        self._semicolon()
        return body

    def _execute_immediate(self, start: int) -> Node:
        self._need("EXECUTE", "IMMEDIATE")
        text = self.expression()
        into = self._targets() if self.take_word("INTO") else ()
        using: list[ast.Expr] = []
        if self.take_word("USING"):
            while True:
                self.take_word("IN")
                if self.is_word("OUT"):
                    raise self._unsupported()
                using.append(self.expression())
                if not self.take_op(","):
                    break
        self._semicolon()
        return plsql_nodes.ExecuteImmediate(text, into, tuple(using), pos=start)

    def _targets(self) -> tuple[str | ast.Bind, ...]:
        found: list[str | ast.Bind] = []
        while True:
            found.append(self.bind() if self.token.kind == "bind" else self.identifier())
            if not self.take_op(","):
                return tuple(found)

    def _call_statement(self) -> Node:
        start = self.token.start
        name = self.name()
        args: list[ast.Expr] = []
        named: list[tuple[str, ast.Expr]] = []
        if self.take_op("(") and not self.take_op(")"):
            while True:
                if self.ahead().text == "=>":
                    parameter = self.identifier()
                    self.next()
                    named.append((parameter, self.condition()))
                else:
                    args.append(self.condition())
                if not self.take_op(","):
                    break
            self.need_op(")")
        return plsql_nodes.CallProcedure(name, tuple(args), tuple(named), pos=start)

    def _sql(self, word: str, start: int) -> Node:
        into: tuple[str | ast.Bind, ...] = ()
        node: object
        if word in ("SELECT", "WITH"):
            self._into.clear()
            node = self.query()
            into = tuple(self._into)
            if not into:
                raise compile_error(
                    self.sql, start, 428, "an INTO clause is expected in this SELECT statement"
                )
            kind = "QUERY"
        elif word in ("INSERT", "UPDATE", "DELETE", "MERGE"):
            self.next()
            node = {
                "INSERT": self.insert,
                "UPDATE": self.update,
                "DELETE": self.delete,
                "MERGE": self.merge,
            }[word]()
            kind = "DML"
        else:
            node = self._other(word)
            kind = "OTHER"
        text = self.source_text(start)
        self._semicolon()
        return plsql_nodes.Sql(text, node, kind, into, pos=start)

    def _select_items_end(self) -> None:
        """SELECT … INTO: note the targets of the outermost query."""
        if self.take_word("INTO"):
            self._into.extend(self._targets())

    def _primary(self) -> ast.Expr:
        token = self.token
        if token.kind == "word" and token.text == "SQL" and self.ahead().text == "%":
            self.at += 2
            attribute = self.identifier()
            return ast.Column((f"SQL%{attribute}",), pos=token.start)
        return super()._primary()
