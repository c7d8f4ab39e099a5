"""How are the statements and blocks of PL/SQL written?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from oracle_embedded.api import OracleError
from oracle_embedded.engine.datatypes.types import CURSOR, SqlType
from oracle_embedded.engine.sql import ast, plsql_nodes
from oracle_embedded.engine.sql.changes import CHANGES
from oracle_embedded.engine.sql.expressions import (
    read_condition,
    read_expression,
    read_target,
    read_targets,
)
from oracle_embedded.engine.sql.plsql_nodes import Block, Declaration, Node, Using
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
_NOT_HERE = frozenset(["GOTO"])
AS_CALLER = "CURRENT_USER"
_ROUTINE_OPTIONS = (
    "AUTHID", "DETERMINISTIC", "RESULT_CACHE", "PARALLEL_ENABLE", "PIPELINED", "ACCESSIBLE",
)  # fmt: skip
_UNSIZED_TEXT = 32767
_DIGITS_MAX = 9
"""Of a second's fraction: so many has a TIMESTAMP that is a parameter, whatever is passed."""
_REREAD = (900, 905, 906, 907, 923, 933, 936)

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
    """Parse an anonymous block or a CALL statement; ``column_type`` answers %TYPE, None for no such
    column.

    Raises:
        OracleError: ORA-06550 with what the compiler of PL/SQL would say.
    """
    return BlockReader(TokenStream(sql, read_query, plsql=True), column_type).whole()


class BlockReader:
    """Reads PL/SQL from one stream."""

    def __init__(self, stream: TokenStream, column_type: ColumnType) -> None:
        self.stream = stream
        self.column_type = column_type

    def whole(self) -> Block:
        """Read the whole text."""
        try:
            if self.stream.take_word("CALL"):
                block = self._call()
            else:
                block = self.block()
                self.semicolon()
                if self.stream.is_op("/"):
                    self.stream.next()
        except OracleError as error:
            raise self.as_compiler(error) from error
        if self.stream.token.kind != "end":
            raise self.unexpected()
        return plsql_nodes.Block(
            block.declarations, block.body, block.handlers, tuple(self.stream.bind_names)
        )

    def as_compiler(self, error: OracleError) -> OracleError:
        """An error in the grammar of SQL as PL/SQL's compiler puts it."""
        return self.unexpected() if error.code in _REREAD else error

    def _call(self) -> Block:
        """``CALL name(…) [INTO :bind]``."""
        start = self.stream.token.start
        called = read_target(self.stream)
        node: Node = plsql_nodes.CallProcedure(called, pos=start)  # type: ignore[arg-type]
        if self.stream.take_word("INTO"):
            target = self.stream.bind()
            node = plsql_nodes.Assign(target, called, pos=start)
        self.stream.expect_end()
        return plsql_nodes.Block((), (node,))

    def unexpected(self) -> OracleError:
        """PLS-00103 at the token under the cursor."""
        token = self.stream.token
        symbol = "end-of-file" if token.kind == "end" else token.text
        return compile_error(
            self.stream.sql,
            token.start,
            103,
            f'Encountered the symbol "{symbol}" when expecting one of the following:',
        )

    def semicolon(self) -> None:
        """Step over a semicolon or refuse."""
        if not self.stream.take_op(";"):
            raise self.unexpected()

    # --- blocks -----------------------------------------------------------------------------------

    def block(self) -> Block:
        """Read ``[DECLARE …] BEGIN … END``, without the semicolon."""
        start = self.stream.token.start
        declarations: list[Declaration] = []
        if self.stream.take_word("DECLARE"):
            while not self.stream.is_word("BEGIN"):
                declarations.append(self.declaration())
        return self.body(tuple(declarations), start)

    def body(self, declarations: tuple[Declaration, ...], start: int) -> Block:
        """Read ``BEGIN … END [name]``."""
        if not self.stream.take_word("BEGIN"):
            raise self.unexpected()
        body = self._statements("END", "EXCEPTION")
        handlers: list[tuple[tuple[str, ...], tuple[Node, ...]]] = []
        if self.stream.take_word("EXCEPTION"):
            while self.stream.take_word("WHEN"):
                names = [self.stream.name()[-1]]
                while self.stream.take_word("OR"):
                    names.append(self.stream.name()[-1])
                self.need("THEN")
                handlers.append((tuple(names), self._statements("END", "WHEN")))
        self.need("END")
        if self.stream.token.kind in ("word", "quoted"):
            self.stream.next()
        return plsql_nodes.Block(declarations, body, tuple(handlers), pos=start)

    def need(self, *words: str) -> None:
        """Step over these words or refuse."""
        for word in words:
            if not self.stream.take_word(word):
                raise self.unexpected()

    # --- declarations -----------------------------------------------------------------------------

    def declaration(self) -> Declaration:
        """Read one declaration with its semicolon."""
        stream = self.stream
        if stream.is_word("FUNCTION") or stream.is_word("PROCEDURE"):
            return self.routine()
        if stream.take_word("PRAGMA"):
            return self._pragma()
        if stream.take_word("TYPE"):
            return self._type()
        if stream.take_word("CURSOR"):
            return self._cursor()
        if stream.take_word("SUBTYPE"):
            name = stream.identifier()
            self.need("IS")
            spec = plsql_nodes.SubtypeSpec(name, self.type_spec(unsized=True))
            self._skip_not_null()
            self.semicolon()
            return spec
        name = stream.identifier()
        if stream.take_word("EXCEPTION"):
            self.semicolon()
            return plsql_nodes.ExceptionSpec(name)
        constant = stream.take_word("CONSTANT")
        variable = self._typed(name, constant=constant)
        self.semicolon()
        return variable

    def _typed(self, name: str, *, constant: bool = False) -> plsql_nodes.Variable:
        kind = self.type_spec()
        self._skip_not_null()
        value = None
        if self.stream.take_op(":=") or self.stream.take_word("DEFAULT"):
            value = read_condition(self.stream)
        return plsql_nodes.Variable(name, kind, value, constant)

    def _skip_not_null(self) -> None:
        self.stream.take_word("NOT", "NULL")

    def _pragma(self) -> Declaration:
        stream = self.stream
        if stream.take_word("AUTONOMOUS_TRANSACTION"):
            self.semicolon()
            return plsql_nodes.Autonomous()
        if stream.take_word("EXCEPTION_INIT"):
            stream.need_op("(")
            name = stream.identifier()
            stream.need_op(",")
            code = abs(stream.integer())
            stream.need_op(")")
            self.semicolon()
            return plsql_nodes.ExceptionInit(name, code)
        while not stream.is_op(";"):
            if stream.next().kind == "end":
                raise self.unexpected()
        self.semicolon()
        return plsql_nodes.ExceptionInit("", 0)

    def _type(self) -> Declaration:
        stream = self.stream
        name = stream.identifier()
        self.need("IS")
        spec: Declaration
        if stream.take_word("RECORD"):
            spec = plsql_nodes.RecordSpec(name, self.fields())
        elif stream.take_word("REF", "CURSOR"):
            if stream.take_word("RETURN"):
                self.type_spec()
            spec = plsql_nodes.SubtypeSpec(name, CURSOR)
        else:
            spec = self.collection(name)
        self.semicolon()
        return spec

    def fields(self) -> tuple[plsql_nodes.Variable, ...]:
        """Read the fields of a record in parentheses."""
        self.stream.need_op("(")
        fields = [self._typed(self.stream.identifier())]
        while self.stream.take_op(","):
            fields.append(self._typed(self.stream.identifier()))
        self.stream.need_op(")")
        return tuple(fields)

    def collection(self, name: str) -> plsql_nodes.TableSpec:
        """Read ``TABLE OF …`` or ``VARRAY(n) OF …``."""
        stream = self.stream
        limit = None
        if not stream.take_word("TABLE"):
            if not (stream.take_word("VARRAY") or stream.take_word("VARYING", "ARRAY")):
                raise self.unexpected()
            stream.need_op("(")
            limit = stream.integer()
            stream.need_op(")")
        self.need("OF")
        element = self.type_spec(unsized=True)
        self._skip_not_null()
        index = ""
        if stream.take_word("INDEX"):
            self.need("BY")
            kind = self.type_spec(unsized=True)
            is_text = isinstance(kind, SqlType) and kind.family == "text"
            index = "TEXT" if is_text else "NUMBER"
        return plsql_nodes.TableSpec(name, element, index, limit)

    def _cursor(self) -> plsql_nodes.CursorSpec:
        name = self.stream.identifier()
        parameters = self._parameters()
        query = None
        if self.stream.take_word("RETURN"):
            self.type_spec()
        if self.stream.take_word("IS"):
            query = self.stream.query()
        self.semicolon()
        return plsql_nodes.CursorSpec(name, parameters, query)

    def type_spec(self, *, unsized: bool = False) -> plsql_nodes.TypeSpec:
        """Read a type; ``unsized`` texts need no length, as in parameters."""
        stream = self.stream
        if stream.take_word("SYS_REFCURSOR"):
            return CURSOR
        at = stream.at
        while stream.tokens[at + 1].text == ".":
            at += 2
        if stream.tokens[at + 1].text == "%" and stream.tokens[at + 1].kind == "op":
            return self._type_of()
        word = stream.token.text if stream.token.kind == "word" else ""
        if unsized and stream.ahead().text != "(" and word in _UNSIZED:
            stream.next()
            return _UNSIZED[word]
        start = stream.token.start
        is_any_time = unsized and word == "TIMESTAMP" and stream.ahead().text != "("
        try:
            kind = read_datatype(stream)
            return replace(kind, scale=_DIGITS_MAX) if is_any_time else kind
        except OracleError as error:
            if error.code != 902:
                raise
            stream.at = next(n for n, token in enumerate(stream.tokens) if token.start == start)
        name = stream.name()
        return plsql_nodes.TypeName(name, pos=start)

    def _type_of(self) -> plsql_nodes.TypeSpec:
        start = self.stream.token.start
        name = self.stream.name()
        self.stream.next()
        if self.stream.take_word("ROWTYPE"):
            return plsql_nodes.TypeName(name, "ROWTYPE", pos=start)
        self.need("TYPE")
        kind = self.column_type(name)
        return plsql_nodes.TypeName(name, "TYPE", pos=start) if kind is None else kind

    # --- routines ---------------------------------------------------------------------------------

    def routine(self) -> plsql_nodes.Routine:
        """Read FUNCTION or PROCEDURE with its semicolon."""
        stream = self.stream
        start = stream.token.start
        is_function = stream.next().text == "FUNCTION"
        name = stream.name()[-1]
        parameters = self._parameters()
        returns = None
        if is_function:
            self.need("RETURN")
            returns = self.type_spec(unsized=True)
        options = self.routine_options()
        block = None
        if stream.take_any("IS", "AS"):
            block = self._routine_body(start)
        self.semicolon()
        return plsql_nodes.Routine(
            name, parameters, returns, block, AS_CALLER in options, "PIPELINED" in options, pos=start
        )  # fmt: skip

    def routine_options(self) -> set[str]:
        """Read AUTHID, DETERMINISTIC and the like: the words that are there, and AS_CALLER where
        the unit runs with its caller's rights."""
        found: set[str] = set()
        while word := self.stream.take_any(*_ROUTINE_OPTIONS):
            found.add(word)
            if word == "AUTHID" and self.stream.next().text == "CURRENT_USER":
                found.add(AS_CALLER)
            elif word == "PARALLEL_ENABLE" and self.stream.take_op("("):
                while not self.stream.take_op(")") and self.stream.token.kind != "end":
                    self.stream.next()
            elif word == "ACCESSIBLE" or (word == "PIPELINED" and self.stream.is_word("USING")):
                raise self._unsupported()
        return found

    def _routine_body(self, start: int) -> Block:
        declarations: list[Declaration] = []
        if self.stream.is_word("LANGUAGE") or self.stream.is_word("EXTERNAL"):
            raise self._unsupported()
        while not self.stream.is_word("BEGIN"):
            declarations.append(self.declaration())
        return self.body(tuple(declarations), start)

    def _parameters(self) -> tuple[plsql_nodes.Parameter, ...]:
        stream = self.stream
        found: list[plsql_nodes.Parameter] = []
        if not stream.take_op("("):
            return ()
        while True:
            name = stream.identifier()
            is_in = stream.take_word("IN")
            is_out = stream.take_word("OUT")
            stream.take_word("NOCOPY")
            kind = self.type_spec(unsized=True)
            default = None
            if stream.take_op(":=") or stream.take_word("DEFAULT"):
                default = read_condition(stream)
            found.append(plsql_nodes.Parameter(name, kind, is_in or not is_out, is_out, default))
            if not stream.take_op(","):
                break
        stream.need_op(")")
        return tuple(found)

    def _unsupported(self) -> OracleError:
        return compile_error(
            self.stream.sql,
            self.stream.token.start,
            103,
            f'Encountered the symbol "{self.stream.token.text}" (not supported by this database)',
        )

    # --- statements -------------------------------------------------------------------------------

    def _statements(self, *ends: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not (self.stream.token.kind == "word" and self.stream.token.text in ends):
            if self.stream.token.kind == "end":
                raise self.unexpected()
            node = self._statement()
            if node is not None:
                found.append(node)
        return tuple(found)

    def _label(self) -> str:
        if not self.stream.take_op("<<"):
            return ""
        name = self.stream.identifier()
        if not self.stream.take_op(">>"):
            raise self.unexpected()
        return name

    def _statement(self) -> Node | None:
        label = self._label()
        token = self.stream.token
        start = token.start
        word = token.text if token.kind == "word" else ""
        if word in ("BEGIN", "DECLARE"):
            block = self.block()
            self.semicolon()
            return block
        if self.stream.take_word("NULL"):
            self.semicolon()
            return None
        if word in _SQL_WORDS:
            return self._sql(word, start)
        if word in _NOT_HERE:
            raise self._unsupported()
        if word in ("FOR", "WHILE", "LOOP"):
            return self._for(start, label) if word == "FOR" else self._loop(start, label)
        reader = self._readers().get(word)
        if reader is not None and self.stream.ahead().text not in (":=", "("):
            return reader(start)
        return self._assignment_or_call(start)

    def _readers(self) -> dict[str, Callable[[int], Node]]:
        return {
            "IF": self._if,
            "CASE": self._case,
            "FORALL": self._forall,
            "EXIT": self._exit,
            "CONTINUE": self._exit,
            "RETURN": self._return,
            "PIPE": self._pipe,
            "RAISE": self._raise,
            "OPEN": self._open,
            "FETCH": self._fetch,
            "CLOSE": self._close,
            "EXECUTE": self._execute_immediate,
        }

    def _assignment_or_call(self, start: int) -> Node:
        target = read_target(self.stream)
        if self.stream.take_op(":="):
            value = read_condition(self.stream)
            self.semicolon()
            return plsql_nodes.Assign(target, value, pos=start)  # type: ignore[arg-type]
        if isinstance(target, ast.Bind):
            raise self.unexpected()
        self.semicolon()
        return plsql_nodes.CallProcedure(target, pos=start)  # type: ignore[arg-type]

    def _return(self, start: int) -> Node:
        self.stream.next()
        value = None if self.stream.is_op(";") else read_condition(self.stream)
        self.semicolon()
        return plsql_nodes.Return(value, pos=start)

    def _pipe(self, start: int) -> Node:
        self.stream.next()
        self.need("ROW")
        self.stream.need_op("(")
        value = read_condition(self.stream)
        self.stream.need_op(")")
        self.semicolon()
        return plsql_nodes.PipeRow(value, pos=start)

    def _raise(self, start: int) -> Node:
        self.stream.next()
        name = () if self.stream.is_op(";") else self.stream.name()
        self.semicolon()
        return plsql_nodes.Raise(name, pos=start)

    def _exit(self, start: int) -> Node:
        again = self.stream.next().text == "CONTINUE"
        label = ""
        if not self.stream.is_word("WHEN") and not self.stream.is_op(";"):
            label = self.stream.identifier()
        condition = read_condition(self.stream) if self.stream.take_word("WHEN") else None
        self.semicolon()
        return plsql_nodes.Exit(again, condition, label, pos=start)

    def _if(self, start: int) -> Node:
        self.stream.next()
        branches: list[tuple[ast.Expr | None, tuple[Node, ...]]] = []
        condition: ast.Expr | None = read_condition(self.stream)
        self.need("THEN")
        branches.append((condition, self._statements("ELSIF", "ELSE", "END")))
        while self.stream.take_word("ELSIF"):
            condition = read_condition(self.stream)
            self.need("THEN")
            branches.append((condition, self._statements("ELSIF", "ELSE", "END")))
        if self.stream.take_word("ELSE"):
            branches.append((None, self._statements("END")))
        self.need("END", "IF")
        self.semicolon()
        return plsql_nodes.If(tuple(branches), pos=start)

    def _case(self, start: int) -> Node:
        self.stream.next()
        operand = None if self.stream.is_word("WHEN") else read_expression(self.stream)
        branches: list[tuple[ast.Expr | None, tuple[Node, ...]]] = []
        while self.stream.take_word("WHEN"):
            test = read_condition(self.stream)
            if operand is not None:
                test = ast.Compare("=", operand, test, pos=test.pos)
            self.need("THEN")
            branches.append((test, self._statements("WHEN", "ELSE", "END")))
        if self.stream.take_word("ELSE"):
            branches.append((None, self._statements("END")))
        self.need("END", "CASE")
        self.semicolon()
        return plsql_nodes.If(tuple(branches), is_case=True, pos=start)

    def _for(self, start: int, label: str) -> Node:
        self.stream.next()
        name = self.stream.identifier()
        self.need("IN")
        reverse = self.stream.take_word("REVERSE")
        if self.stream.is_op("(") and self.stream.ahead().text in ("SELECT", "WITH"):
            self.stream.need_op("(")
            query = self.stream.query()
            self.stream.need_op(")")
            return plsql_nodes.ForRows(name, query, (), (), self._loop_body(), label, pos=start)
        low = read_expression(self.stream)
        if self.stream.is_word("LOOP"):
            cursor, args = _cursor_call(low)
            if not cursor:
                raise self.unexpected()
            return plsql_nodes.ForRows(
                name, None, cursor, args, self._loop_body(), label, pos=start
            )
        if not self.stream.take_op(".."):
            raise self.unexpected()
        high = read_expression(self.stream)
        return plsql_nodes.ForRange(name, low, high, reverse, self._loop_body(), label, pos=start)

    def _forall(self, start: int) -> Node:
        self.stream.next()
        name = self.stream.identifier()
        self.need("IN")
        if self.stream.is_word("VALUES"):
            raise self._unsupported()
        is_of_indices = self.stream.take_word("INDICES", "OF")
        low = high = read_expression(self.stream)
        if not is_of_indices:
            if not self.stream.take_op(".."):
                raise self.unexpected()
            high = read_expression(self.stream)
        if self.stream.is_word("SAVE") or self.stream.is_word("BETWEEN"):
            raise self._unsupported()
        statement = self._sql(self.stream.token.text, self.stream.token.start)
        if not isinstance(statement, plsql_nodes.Sql):
            raise self.unexpected()
        return plsql_nodes.ForAll(name, low, high, statement, is_of_indices, pos=start)

    def _loop(self, start: int, label: str) -> Node:
        condition = read_condition(self.stream) if self.stream.take_word("WHILE") else None
        return plsql_nodes.Loop(condition, self._loop_body(), label, pos=start)

    def _loop_body(self) -> tuple[Node, ...]:
        self.need("LOOP")
        body = self._statements("END")
        self.need("END", "LOOP")
        if self.stream.token.kind == "word":
            self.stream.next()
        self.semicolon()
        return body

    def _open(self, start: int) -> Node:
        self.stream.next()
        cursor = read_target(self.stream)
        node: Node
        if not self.stream.take_word("FOR"):
            args: tuple[ast.Expr, ...] = ()
            if isinstance(cursor, ast.Call):
                args, cursor = cursor.args, ast.Column(cursor.name, pos=cursor.pos)
            node = plsql_nodes.OpenCursor(cursor, args, pos=start)  # type: ignore[arg-type]
        elif self.stream.is_word("SELECT") or self.stream.is_word("WITH"):
            node = plsql_nodes.OpenFor(cursor, self.stream.query(), (), pos=start)  # type: ignore[arg-type]
        else:
            text = read_expression(self.stream)
            node = plsql_nodes.OpenFor(cursor, text, self._using(), pos=start)  # type: ignore[arg-type]
        self.semicolon()
        return node

    def _fetch(self, start: int) -> Node:
        self.stream.next()
        cursor = read_target(self.stream)
        bulk = self.stream.take_word("BULK", "COLLECT")
        self.need("INTO")
        into = read_targets(self.stream)
        limit = read_expression(self.stream) if self.stream.take_word("LIMIT") else None
        self.semicolon()
        return plsql_nodes.Fetch(cursor, into, bulk, limit, pos=start)  # type: ignore[arg-type]

    def _close(self, start: int) -> Node:
        self.stream.next()
        cursor = read_target(self.stream)
        self.semicolon()
        return plsql_nodes.Close(cursor, pos=start)  # type: ignore[arg-type]

    def _execute_immediate(self, start: int) -> Node:
        self.need("EXECUTE", "IMMEDIATE")
        text = read_expression(self.stream)
        bulk = self.stream.take_word("BULK", "COLLECT")
        into = read_targets(self.stream) if self.stream.take_word("INTO") else ()
        using = self._using()
        if self.stream.take_any("RETURNING", "RETURN"):
            self.need("INTO")
            outs = read_targets(self.stream)
            using = (*using, *(Using(item, is_in=False, is_out=True) for item in outs))
        self.semicolon()
        return plsql_nodes.ExecuteImmediate(text, into, using, bulk, pos=start)  # type: ignore[arg-type]

    def _using(self) -> tuple[Using, ...]:
        using: list[Using] = []
        if self.stream.take_word("USING"):
            while True:
                is_in = self.stream.take_word("IN")
                is_out = self.stream.take_word("OUT")
                value = read_target(self.stream) if is_out else read_condition(self.stream)
                using.append(Using(value, is_in or not is_out, is_out))
                if not self.stream.take_op(","):
                    break
        return tuple(using)

    def _sql(self, word: str, start: int) -> Node:
        into: tuple[ast.Expr, ...] = ()
        node: object
        self.stream.is_bulk = False
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
        bulk = self.stream.is_bulk
        text = self.stream.source_text(start)
        self.semicolon()
        return plsql_nodes.Sql(text, node, kind, into, bulk, pos=start)  # type: ignore[arg-type]


def _cursor_call(node: ast.Expr) -> tuple[ast.Name, tuple[ast.Expr, ...]]:
    match node:
        case ast.Column():
            return node.name, ()
        case ast.Call():
            return node.name, node.args
    return (), ()


def _unsized() -> dict[str, SqlType]:
    stream = TokenStream(
        f"VARCHAR2({_UNSIZED_TEXT}) CHAR(2000) NVARCHAR2(16383) NCHAR(1000) RAW({_UNSIZED_TEXT})",
        read_query,
        plsql=True,
    )
    kinds = [read_datatype(stream) for _ in range(5)]
    names = ("VARCHAR2", "CHAR", "NVARCHAR2", "NCHAR", "RAW")
    found = {
        name: replace(kind, char_used="UNTOLD") if kind.is_char else kind
        for name, kind in zip(names, kinds, strict=True)
    }
    return found | {"VARCHAR": kinds[0], "STRING": kinds[0], "CHARACTER": kinds[1]}


_UNSIZED = _unsized()
