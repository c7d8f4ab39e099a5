"""Which kind of statement is a text, and what does it say?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from oracle_embedded.api import OracleError, StatementKind
from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql.ddl import DdlParser

_DDL = frozenset(
    {
        "CREATE",
        "ALTER",
        "DROP",
        "TRUNCATE",
        "GRANT",
        "REVOKE",
        "COMMENT",
        "RENAME",
        "PURGE",
        "ANALYZE",
        "AUDIT",
        "NOAUDIT",
        "FLASHBACK",
    }
)
_LOCK_MODES = {
    ("ROW", "SHARE"): "RS",
    ("SHARE", "UPDATE"): "RS",
    ("ROW", "EXCLUSIVE"): "RX",
    ("SHARE", "ROW", "EXCLUSIVE"): "SRX",
    ("SHARE",): "S",
    ("EXCLUSIVE",): "X",
}


@dataclass(slots=True)
class Parsed:
    """A statement: its kind, its tree, and one name per bind position."""

    kind: StatementKind
    node: Any
    bind_names: list[str] = field(default_factory=list)


def parse_statement(sql: str) -> Parsed:
    """Parse any statement but a PL/SQL block, for which the tree is None.

    Raises:
        OracleError: ORA-00900 for something else, or what is wrong with the statement.
    """
    parser = StatementParser(sql)
    return parser.statement()


class StatementParser(DdlParser):
    """Reads whole statements."""

    def statement(self) -> Parsed:
        """Read the statement."""
        token = self.token
        if token.kind == "op" and token.text == "(":
            return self._query()
        if token.kind == "end":
            raise ora(900)
        word = token.text if token.kind == "word" else ""
        if word in ("SELECT", "WITH"):
            return self._query()
        if word in ("BEGIN", "DECLARE", "CALL"):
            return Parsed(StatementKind.PLSQL, None)
        if word in ("INSERT", "UPDATE", "DELETE", "MERGE"):
            self.next()
            node = {
                "INSERT": self.insert,
                "UPDATE": self.update,
                "DELETE": self.delete,
                "MERGE": self.merge,
            }[word]()
            self.expect_end()
            return Parsed(StatementKind.DML, node, self.bind_names)
        if word in _DDL:
            node = self.ddl()
            self.expect_end()
            return Parsed(StatementKind.DDL, node)
        node = self._other(word)
        self.expect_end()
        return Parsed(StatementKind.OTHER, node)

    def _query(self) -> Parsed:
        node = self.query()
        self.expect_end()
        return Parsed(StatementKind.QUERY, node, self.bind_names)

    def _other(self, word: str) -> object:
        match word:
            case "COMMIT":
                self.next()
                self.take_word("WORK")
                if self.take_word("COMMENT"):
                    self.text()
                while self.take_any("WRITE", "WAIT", "NOWAIT", "IMMEDIATE", "BATCH"):
                    continue
                return ast.Simple("COMMIT")
            case "ROLLBACK":
                self.next()
                self.take_word("WORK")
                if self.take_word("TO"):
                    self.take_word("SAVEPOINT")
                    return ast.Simple("ROLLBACK TO", self.identifier())
                return ast.Simple("ROLLBACK")
            case "SAVEPOINT":
                self.next()
                return ast.Simple("SAVEPOINT", self.identifier())
            case "SET":
                return self._set()
            case "LOCK":
                return self._lock()
            case "EXPLAIN":
                raise unsupported("EXPLAIN PLAN", self.token.start)
        raise self.error(900)

    def _set(self) -> object:
        self.next()
        if self.take_word("ROLE"):
            raise unsupported("SET ROLE", self.token.start)
        if self.take_word("CONSTRAINT") or self.take_word("CONSTRAINTS"):
            raise unsupported("deferred constraints", self.token.start)
        if not self.take_word("TRANSACTION"):
            raise OracleError(922, "missing or invalid option", self.token.start)
        if self.take_word("READ", "ONLY"):
            action = "READ ONLY"
        elif self.take_word("READ", "WRITE") or self.take_word(
            "ISOLATION", "LEVEL", "READ", "COMMITTED"
        ):
            action = "READ WRITE"
        elif self.is_word("ISOLATION", "LEVEL", "SERIALIZABLE"):
            raise unsupported("serializable transactions", self.token.start)
        elif self.is_word("NAME"):
            action = "READ WRITE"
        else:
            raise OracleError(
                2179,
                "valid options: ISOLATION LEVEL { SERIALIZABLE | READ COMMITTED }",
                self.token.start,
            )
        if self.take_word("NAME"):
            self.text()
        return ast.Simple("SET TRANSACTION", action)

    def _lock(self) -> object:
        self.next()
        self.need_word("TABLE")
        tables = [self.table_reference()]
        while self.take_op(","):
            tables.append(self.table_reference())
        self.need_word("IN")
        words: list[str] = []
        while not self.is_word("MODE"):
            word = self.take_any("ROW", "SHARE", "EXCLUSIVE", "UPDATE")
            if word is None:
                raise self.error(905)
            words.append(word)
        self.need_word("MODE")
        mode = _LOCK_MODES.get(tuple(words))
        if mode is None:
            raise OracleError(
                1737, "valid modes: [ROW] SHARE, [[SHARE] ROW] EXCLUSIVE, SHARE UPDATE"
            )
        wait: float | None = None
        if self.take_word("NOWAIT"):
            wait = 0
        elif self.take_word("WAIT"):
            wait = self.integer()
        return ast.LockTable(tuple(tables), mode, wait)
