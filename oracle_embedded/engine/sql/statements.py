"""Which kind of statement is a text, and what does it say?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from oracle_embedded.api import OracleError, StatementKind
from oracle_embedded.engine.errors import ora, unsupported
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql.changes import CHANGES
from oracle_embedded.engine.sql.ddl import read_ddl
from oracle_embedded.engine.sql.queries import query_stream, read_query, read_table_reference
from oracle_embedded.engine.sql.stream import TokenStream

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
    return read_statement(query_stream(sql))


def read_statement(stream: TokenStream) -> Parsed:
    """Read the statement."""
    token = stream.token
    if token.kind == "op" and token.text == "(":
        return _read_query_statement(stream)
    if token.kind == "end":
        raise ora(900)
    word = token.text if token.kind == "word" else ""
    if word in ("SELECT", "WITH"):
        return _read_query_statement(stream)
    if word in ("BEGIN", "DECLARE", "CALL"):
        return Parsed(StatementKind.PLSQL, None)
    if word in CHANGES:
        stream.next()
        change = CHANGES[word](stream)
        stream.expect_end()
        return Parsed(StatementKind.DML, change, stream.bind_names)
    if word in _DDL:
        node = read_ddl(stream)
        stream.expect_end()
        return Parsed(StatementKind.DDL, node)
    node = read_control(stream, word)
    stream.expect_end()
    return Parsed(StatementKind.OTHER, node)


def _read_query_statement(stream: TokenStream) -> Parsed:
    node = read_query(stream)
    stream.expect_end()
    return Parsed(StatementKind.QUERY, node, stream.bind_names)


def read_control(stream: TokenStream, word: str) -> object:
    match word:
        case "COMMIT":
            stream.next()
            stream.take_word("WORK")
            if stream.take_word("COMMENT"):
                stream.text()
            while stream.take_any("WRITE", "WAIT", "NOWAIT", "IMMEDIATE", "BATCH"):
                continue
            return ast.Simple("COMMIT")
        case "ROLLBACK":
            stream.next()
            stream.take_word("WORK")
            if stream.take_word("TO"):
                stream.take_word("SAVEPOINT")
                return ast.Simple("ROLLBACK TO", stream.identifier())
            return ast.Simple("ROLLBACK")
        case "SAVEPOINT":
            stream.next()
            return ast.Simple("SAVEPOINT", stream.identifier())
        case "SET":
            return _read_set(stream)
        case "LOCK":
            return _read_lock(stream)
        case "EXPLAIN":
            raise unsupported("EXPLAIN PLAN", stream.token.start)
    raise stream.error(900)


def _read_set(stream: TokenStream) -> object:
    stream.next()
    if stream.take_word("ROLE"):
        raise unsupported("SET ROLE", stream.token.start)
    if stream.take_word("CONSTRAINT") or stream.take_word("CONSTRAINTS"):
        return _read_set_constraints(stream)
    if not stream.take_word("TRANSACTION"):
        raise OracleError(922, "missing or invalid option", stream.token.start)
    if stream.take_word("READ", "ONLY"):
        action = "READ ONLY"
    elif stream.take_word("READ", "WRITE") or stream.take_word(
        "ISOLATION", "LEVEL", "READ", "COMMITTED"
    ):
        action = "READ WRITE"
    elif stream.take_word("ISOLATION", "LEVEL", "SERIALIZABLE"):
        action = "SERIALIZABLE"
    elif stream.is_word("NAME"):
        action = "READ WRITE"
    else:
        raise OracleError(
            2179,
            "valid options: ISOLATION LEVEL { SERIALIZABLE | READ COMMITTED }",
            stream.token.start,
        )
    if stream.take_word("NAME"):
        stream.text()
    return ast.Simple("SET TRANSACTION", action)


def _read_set_constraints(stream: TokenStream) -> ast.SetConstraints:
    names: list[ast.Name] = []
    if not stream.take_word("ALL"):
        names.append(stream.name())
        while stream.take_op(","):
            names.append(stream.name())
    mode = stream.take_any("IMMEDIATE", "DEFERRED")
    if mode is None:
        raise stream.error(905)
    return ast.SetConstraints(tuple(names), mode == "DEFERRED")


def _read_lock(stream: TokenStream) -> object:
    stream.next()
    stream.need_word("TABLE")
    tables = [read_table_reference(stream)]
    while stream.take_op(","):
        tables.append(read_table_reference(stream))
    stream.need_word("IN")
    words: list[str] = []
    while not stream.is_word("MODE"):
        word = stream.take_any("ROW", "SHARE", "EXCLUSIVE", "UPDATE")
        if word is None:
            raise stream.error(905)
        words.append(word)
    stream.need_word("MODE")
    mode = _LOCK_MODES.get(tuple(words))
    if mode is None:
        raise OracleError(1737, "valid modes: [ROW] SHARE, [[SHARE] ROW] EXCLUSIVE, SHARE UPDATE")
    wait: float | None = None
    if stream.take_word("NOWAIT"):
        wait = 0
    elif stream.take_word("WAIT"):
        wait = stream.integer()
    return ast.LockTable(tuple(tables), mode, wait)
