"""How do readers walk over tokens and refuse what does not fit?"""

from __future__ import annotations

from collections.abc import Callable

from oracle_embedded.api import OracleError
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.sql.ast import Bind, Expr, Name, Query
from oracle_embedded.engine.sql.lexer import Token, tokenize

RESERVED = frozenset(
    [
        "ALL",
        "ALTER",
        "AND",
        "ANY",
        "AS",
        "ASC",
        "BETWEEN",
        "BY",
        "CASE",
        "CHECK",
        "CLUSTER",
        "COMPRESS",
        "CONNECT",
        "CREATE",
        "DEFAULT",
        "DELETE",
        "DESC",
        "DISTINCT",
        "DROP",
        "ELSE",
        "END_",
        "EXCLUSIVE",
        "EXISTS",
        "FOR",
        "FROM",
        "GRANT",
        "GROUP",
        "HAVING",
        "IDENTIFIED",
        "IN",
        "INDEX",
        "INSERT",
        "INTERSECT",
        "INTO",
        "IS",
        "LIKE",
        "LOCK",
        "MINUS",
        "MODE",
        "NOCOMPRESS",
        "NOT",
        "NOWAIT",
        "NULL",
        "OF",
        "ON",
        "OPTION",
        "OR",
        "ORDER",
        "PCTFREE",
        "PUBLIC",
        "RENAME",
        "RESOURCE",
        "REVOKE",
        "SELECT",
        "SET",
        "SHARE",
        "SIZE",
        "START",
        "SYNONYM",
        "TABLE",
        "THEN",
        "TO",
        "TRIGGER",
        "UNION",
        "UNIQUE",
        "UPDATE",
        "VALUES",
        "VIEW",
        "WHERE",
        "WITH",
    ]
)


_NO_BIND_NAMES = RESERVED | {"ROWID"}


class TokenStream:
    """Tokens with a position: all that readers share.

    ``read_query`` reads the queries inside expressions, which in turn consist of expressions. In
    ``plsql``, equal bind names share an index, and ``into`` collects the targets of SELECT … INTO,
    which are collections where it ``is_bulk``. In a trigger, ``row_names`` are placeholders that
    stand for its row.
    """

    def __init__(
        self, sql: str, read_query: Callable[[TokenStream], Query], *, plsql: bool = False
    ) -> None:
        self.sql = sql
        self.tokens = tokenize(sql)
        self.at = 0
        self.bind_names: list[str] = []
        self.plsql = plsql
        self.into: list[Expr] = []
        self.is_bulk = False
        self.row_names: frozenset[str] = frozenset()
        self._read_query = read_query

    @property
    def token(self) -> Token:
        """The token under the cursor."""
        return self.tokens[self.at]

    def ahead(self, count: int = 1) -> Token:
        """A later token, the end token behind the last."""
        return self.tokens[min(self.at + count, len(self.tokens) - 1)]

    def is_word(self, *words: str) -> bool:
        """Do exactly these words come next?"""
        for count, word in enumerate(words):
            token = self.ahead(count)
            if token.kind != "word" or token.text != word:
                return False
        return True

    def is_op(self, op: str) -> bool:
        """Is this operator next?"""
        return self.token.kind == "op" and self.token.text == op

    def take_word(self, *words: str) -> bool:
        """Step over these words if they come next."""
        if not self.is_word(*words):
            return False
        self.at += len(words)
        return True

    def take_any(self, *words: str) -> str | None:
        """Step over one of these words and tell which."""
        if self.token.kind == "word" and self.token.text in words:
            return self.next().text
        return None

    def take_op(self, op: str) -> bool:
        """Step over this operator if it is next."""
        if not self.is_op(op):
            return False
        self.at += 1
        return True

    def next(self) -> Token:
        """Step over one token."""
        token = self.token
        if token.kind != "end":
            self.at += 1
        return token

    def need_word(self, *words: str, code: int = 905) -> None:
        """Step over these words or refuse."""
        for word in words:
            if not self.take_word(word):
                raise self.error(code)

    def need_op(self, op: str, code: int | None = None) -> None:
        """Step over this operator or refuse."""
        if not self.take_op(op):
            raise self.error(code or {"(": 906, ")": 907}.get(op, 900))

    def error(self, code: int, *names: object) -> OracleError:
        """An error at the token under the cursor."""
        return ora(code, *names, offset=self.token.start)

    def identifier(self, code: int = 904) -> str:
        """Read one identifier."""
        token = self.token
        if token.kind == "quoted":
            if not token.text:
                raise OracleError(1741, "illegal zero-length identifier", token.start)
            self.at += 1
            return token.text
        if token.kind != "word" or token.text in RESERVED:
            if code == 904:
                raise ora(904, token.text and f'"{token.text}"', offset=token.start)
            raise self.error(code)
        self.at += 1
        return token.text

    def name(self, code: int = 903) -> Name:
        """Read a name with up to three parts, a database link refused."""
        parts = [self.identifier(code)]
        while self.is_op(".") and self.ahead().kind in ("word", "quoted"):
            self.at += 1
            parts.append(self.identifier(code))
        if self.is_op("@"):
            raise OracleError(
                2019, "connection description for remote database not found", self.token.start
            )
        return tuple(parts)

    def names(self) -> tuple[str, ...]:
        """Read ``(a, b, …)``."""
        self.need_op("(")
        names = [self.identifier()]
        while self.take_op(","):
            names.append(self.identifier())
        self.need_op(")")
        return tuple(names)

    def names_listed(self) -> tuple[str, ...]:
        """Identifiers with commas between them."""
        found = [self.identifier()]
        while self.take_op(","):
            found.append(self.identifier())
        return tuple(found)

    def integer(self) -> int:
        """Read a whole number, perhaps negative."""
        negative = self.take_op("-")
        token = self.token
        if token.kind != "number" or not token.text.isdigit():
            raise OracleError(2017, "integer value required", token.start)
        self.at += 1
        return -int(token.text) if negative else int(token.text)

    def text(self) -> str:
        """Read a string literal."""
        token = self.token
        if token.kind not in ("string", "nstring"):
            raise OracleError(1780, "string literal required", token.start)
        self.at += 1
        return token.text

    def bind(self) -> Bind:
        """Read a placeholder."""
        token = self.next()
        if not self.plsql and token.text in _NO_BIND_NAMES:
            raise OracleError(1745, "invalid host/bind variable name", token.start)
        if self.plsql and token.text in self.bind_names:
            return Bind(self.bind_names.index(token.text), token.text, pos=token.start)
        self.bind_names.append(token.text)
        return Bind(len(self.bind_names) - 1, token.text, pos=token.start)

    def query(self) -> Query:
        """Read a query inside something else."""
        return self._read_query(self)

    def expect_end(self) -> None:
        """Refuse anything behind the statement; SQL has no closing semicolon."""
        if self.token.kind != "end":
            raise self.error(911 if self.is_op(";") else 933)

    def source_text(self, start: int) -> str:
        """The statement's text from an offset up to the last token read."""
        return self.sql[start : self.tokens[self.at - 1].stop] if self.at else ""
