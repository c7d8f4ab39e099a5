"""How is DDL written?"""

from __future__ import annotations

from oracle_embedded.api import OracleError
from oracle_embedded.engine.errors import unsupported
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.sql import ddl_nodes as nodes
from oracle_embedded.engine.sql.alter import AlterParser

_STORAGE_WORDS = frozenset(
    [
        "TABLESPACE",
        "PCTFREE",
        "PCTUSED",
        "INITRANS",
        "MAXTRANS",
        "LOGGING",
        "NOLOGGING",
        "COMPRESS",
        "NOCOMPRESS",
        "CACHE",
        "NOCACHE",
        "PARALLEL",
        "NOPARALLEL",
        "MONITORING",
        "SEGMENT",
        "STORAGE",
        "ENABLE",
        "DISABLE",
        "ROW",
        "ORGANIZATION",
        "ONLINE",
        "REVERSE",
        "COMPUTE",
        "LOB",
        "FILESYSTEM_LIKE_LOGGING",
    ]
)


class DdlParser(AlterParser):
    """Reads CREATE, DROP, TRUNCATE, GRANT, REVOKE, COMMENT; ALTER comes from the base."""

    def ddl(self) -> object:
        """Read a DDL statement."""
        word = self.next().text
        match word:
            case "CREATE":
                return self._create()
            case "ALTER":
                return self.alter()
            case "DROP":
                return self._drop()
            case "TRUNCATE":
                self._need_table()
                name = self.name()
                self._skip_words(
                    "REUSE",
                    "DROP",
                    "STORAGE",
                    "PURGE",
                    "PRESERVE",
                    "MATERIALIZED",
                    "VIEW",
                    "LOG",
                    "CASCADE",
                )
                return nodes.Truncate(name)
            case "GRANT" | "REVOKE":
                return self._grant(revoke=word == "REVOKE")
            case "COMMENT":
                return self._comment()
            case "RENAME":
                old = self.name()
                self.need_word("TO")
                return nodes.RenameTable(old, self.identifier())
        raise unsupported(word, self.tokens[0].start)

    def _need_table(self) -> None:
        if not self.take_word("TABLE"):
            raise OracleError(
                3290,
                "Invalid truncate command - missing CLUSTER or TABLE keyword",
                self.token.start,
            )

    def _skip_words(self, *words: str) -> None:
        while self.take_any(*words):
            continue

    # --- CREATE ------------------------------------------------------------------------------------------------------

    def _create(self) -> object:
        replacing = self.take_word("OR", "REPLACE")
        self._skip_words("FORCE", "NOFORCE", "EDITIONABLE", "NONEDITIONABLE")
        temporary = self.take_word("GLOBAL", "TEMPORARY")
        if temporary or self.is_word("PRIVATE"):
            raise unsupported("temporary tables", self.token.start)
        if self.take_word("TABLE"):
            return self._table()
        if self.take_word("UNIQUE"):
            self.need_word("INDEX")
            return self._index(unique=True)
        if self.take_word("INDEX"):
            return self._index(unique=False)
        if self.take_word("VIEW"):
            return self._view(replacing)
        if self.take_word("SEQUENCE"):
            return nodes.CreateSequence(self.name(), self.sequence_options())
        public = self.take_word("PUBLIC")
        if self.take_word("SYNONYM"):
            name = self.name()
            self.need_word("FOR")
            return nodes.CreateSynonym(name, self.name(), public, replacing)
        if self.take_word("USER"):
            return self._user()
        if self.take_word("ROLE"):
            return nodes.CreateUser(self.identifier(), None, role=True)
        if self.token.text in (
            "PROCEDURE",
            "FUNCTION",
            "PACKAGE",
            "TRIGGER",
            "TYPE",
            "MATERIALIZED",
            "DIRECTORY",
            "TABLESPACE",
            "BITMAP",
            "DATABASE",
        ):
            raise unsupported(f"CREATE {self.token.text}", self.token.start)
        raise OracleError(901, "invalid CREATE command", self.token.start)

    def _table(self) -> nodes.CreateTable:
        name = self.name()
        columns: list[nodes.ColumnSpec] = []
        constraints: list[nodes.ConstraintSpec] = []
        groups: list[nodes.LogGroupSpec] = []
        names: tuple[str, ...] = ()
        if self.is_op("("):
            if self._has_untyped_columns():
                names = self.names()
            else:
                self._elements(columns, constraints, groups)
        self.storage_clauses()
        query = None
        if self.take_word("AS"):
            query = self.query()
            if self.bind_names:
                raise OracleError(1027, "bind variables not allowed for data definition operations")
        elif not columns:
            raise self.error(902 if names else 906)
        return nodes.CreateTable(
            name, tuple(columns), tuple(constraints), tuple(groups), query, names
        )

    def _has_untyped_columns(self) -> bool:
        return self.ahead(2).kind == "op" and self.ahead(2).text in (",", ")")

    def _elements(
        self,
        columns: list[nodes.ColumnSpec],
        constraints: list[nodes.ConstraintSpec],
        groups: list[nodes.LogGroupSpec],
    ) -> None:
        self.need_op("(")
        while True:
            if self.is_constraint():
                constraints.append(self.table_constraint())
            elif self.take_word("SUPPLEMENTAL", "LOG"):
                groups.append(self.log_group())
            else:
                columns.append(self.column())
            if not self.take_op(","):
                break
        self.need_op(")")

    def storage_clauses(self) -> None:
        """Step over physical attributes, which do nothing here."""
        while self.token.kind == "word" and self.token.text in _STORAGE_WORDS:
            word = self.next().text
            if word == "ORGANIZATION" and not self.is_word("HEAP"):
                raise unsupported(f"ORGANIZATION {self.token.text}", self.token.start)
            if self.is_op("("):
                self._skip_parentheses()
            elif self.token.kind in ("word", "quoted", "number") and self.token.text not in (
                "AS",
                *_STORAGE_WORDS,
            ):
                self.next()
                if self.is_op("("):
                    self._skip_parentheses()
                while self.take_any(
                    "CREATION",
                    "IMMEDIATE",
                    "DEFERRED",
                    "MOVEMENT",
                    "STORE",
                    "STATISTICS",
                    "BASIC",
                    "ADVANCED",
                ):
                    continue
        if self.is_word("PARTITION") or self.is_word("CLUSTER"):
            raise unsupported(f"{self.token.text} tables", self.token.start)

    def _skip_parentheses(self) -> None:
        depth = 0
        while True:
            token = self.next()
            if token.kind == "end":
                raise self.error(907)
            depth += {"(": 1, ")": -1}.get(token.text, 0) if token.kind == "op" else 0
            if not depth:
                return

    def _index(self, *, unique: bool) -> nodes.CreateIndex:
        name = self.name()
        self.need_word("ON", code=969)
        table = self.name()
        self.need_op("(")
        columns = []
        while True:
            if self.ahead().text not in (",", ")", "ASC", "DESC"):
                raise unsupported("indexes on expressions", self.token.start)
            column = self.identifier()
            columns.append((column, self.take_any("ASC", "DESC") == "DESC"))
            if not self.take_op(","):
                break
        self.need_op(")")
        self.storage_clauses()
        return nodes.CreateIndex(name, table, tuple(columns), unique)

    def _view(self, replacing: bool) -> nodes.CreateView:
        name = self.name()
        columns = self.names() if self.is_op("(") else ()
        self.need_word("AS")
        start = self.token.start
        query = self.query()
        if self.bind_names:
            raise OracleError(1027, "bind variables not allowed for data definition operations")
        text = self.source_text(start)
        if self.take_word("WITH", "READ", "ONLY") or self.take_word("WITH", "CHECK", "OPTION"):
            text = text.strip()
        return nodes.CreateView(name, columns, text, query, replacing)

    def _user(self) -> nodes.CreateUser:
        name = self.identifier()
        if not self.take_word("IDENTIFIED", "BY"):
            raise OracleError(1935, "missing user or role name", self.token.start)
        token = self.next()
        if token.kind not in ("word", "quoted"):
            raise OracleError(988, "missing or invalid password(s)", token.start)
        password = self.sql[token.start : token.stop].strip('"')
        locked = self.user_options()
        return nodes.CreateUser(name, password, locked)

    # --- DROP, GRANT, COMMENT ----------------------------------------------------------------------------------------

    def _drop(self) -> nodes.Drop:
        public = self.take_word("PUBLIC")
        kind = self.take_any("TABLE", "VIEW", "INDEX", "SEQUENCE", "SYNONYM", "USER", "ROLE")
        if kind is None:
            if self.token.kind == "word" and self.token.text in (
                "PROCEDURE",
                "FUNCTION",
                "PACKAGE",
                "TRIGGER",
                "TYPE",
                "MATERIALIZED",
                "TABLESPACE",
            ):
                raise unsupported(f"DROP {self.token.text}", self.token.start)
            raise OracleError(950, "invalid DROP option", self.token.start)
        name = self.name()
        cascade = self.take_word("CASCADE", "CONSTRAINTS") or self.take_word("CASCADE")
        self._skip_words("PURGE", "FORCE")
        return nodes.Drop(kind, ("PUBLIC", *name) if public else name, cascade)

    def _grant(self, *, revoke: bool) -> nodes.Grant:
        privileges = [self._privilege()]
        while self.take_op(","):
            privileges.append(self._privilege())
        target: ast.Name = ()
        if self.take_word("ON"):
            target = self.name()
        self.need_word("FROM" if revoke else "TO")
        users = [self._grantee()]
        while self.take_op(","):
            users.append(self._grantee())
        while self.take_any(
            "WITH", "ADMIN", "GRANT", "OPTION", "CONTAINER", "CURRENT", "ALL"
        ) or self.take_op("="):
            continue
        return nodes.Grant(tuple(privileges), target, tuple(users), revoke)

    def _grantee(self) -> str:
        return "PUBLIC" if self.take_word("PUBLIC") else self.identifier()

    def _privilege(self) -> str:
        words: list[str] = []
        while (
            self.token.kind in ("word", "quoted")
            and not self.is_word("ON")
            and not self.is_word("TO")
            and not self.is_word("FROM")
        ):
            words.append(self.next().text)
        if not words:
            raise OracleError(990, "missing or invalid privilege", self.token.start)
        if self.is_op("("):
            raise unsupported("privileges on columns", self.token.start)
        return " ".join(words)

    def _comment(self) -> nodes.Comment:
        self.need_word("ON")
        kind = self.take_any("TABLE", "COLUMN")
        if kind is None:
            raise OracleError(
                2208, "ON keyword must be followed by TABLE or COLUMN", self.token.start
            )
        name = self.name()
        self.need_word("IS")
        return nodes.Comment(kind, name, self.text())
