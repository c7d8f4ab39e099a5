"""How are ALTER statements written?"""

from __future__ import annotations

from oracle_embedded.api import OracleError
from oracle_embedded.engine.errors import unsupported
from oracle_embedded.engine.sql import ddl_nodes as ddl
from oracle_embedded.engine.sql.columns import ColumnParser


class AlterParser(ColumnParser):
    """Reads ALTER TABLE, SESSION, SYSTEM, DATABASE, USER, SEQUENCE and INDEX."""

    def alter(self) -> object:
        """Read ALTER behind its first word."""
        if self.take_word("TABLE"):
            return self._alter_table()
        if self.take_word("SESSION"):
            return self._alter_session()
        for target in ("SYSTEM", "DATABASE"):
            if self.take_word(target):
                return self._alter_system(target)
        if self.take_word("PLUGGABLE", "DATABASE"):
            return self._alter_system("PLUGGABLE DATABASE")
        if self.take_word("USER"):
            return self._alter_user()
        if self.take_word("SEQUENCE"):
            return ddl.CreateSequence(self.name(), self.sequence_options(), alter=True)
        if self.take_word("INDEX"):
            name = self.name()
            if self.take_word("REBUILD"):
                self.take_word("ONLINE")
                return ddl.AlterSystem("INDEX", ".".join(name))
        raise OracleError(940, "invalid ALTER command", self.token.start)

    # --- session and system ------------------------------------------------------------------------------------------

    def _alter_session(self) -> ddl.AlterSession:
        settings: list[tuple[str, str]] = []
        if self.take_any("ENABLE", "DISABLE", "FORCE"):
            while self.token.kind != "end":
                self.next()
            return ddl.AlterSession(())
        if not self.take_word("SET"):
            raise OracleError(922, "missing or invalid option", self.token.start)
        while self.token.kind != "end":
            settings.append(self._setting())
        if not settings:
            raise OracleError(2248, "invalid option for ALTER SESSION", self.token.start)
        return ddl.AlterSession(tuple(settings))

    def _setting(self) -> tuple[str, str]:
        name = self.identifier()
        if not self.take_op("="):
            raise OracleError(927, "missing equal sign", self.token.start)
        token = self.next()
        value = token.text
        if token.kind == "op" and token.text in "+-":
            value += self.next().text
            if self.take_op(":"):
                value += ":" + self.next().text
        elif token.kind not in ("string", "word", "quoted", "number"):
            raise OracleError(922, "missing or invalid option", token.start)
        return name, value

    def _alter_system(self, target: str) -> ddl.AlterSystem:
        if target == "SYSTEM" and self.take_word("SET"):
            settings = []
            while self.token.kind != "end":
                settings.append(self._setting())
                while self.take_any("SCOPE", "COMMENT", "SID", "CONTAINER"):
                    self.need_op("=", 927)
                    self.next()
                self.take_op(",")
            return ddl.AlterSystem(target, "", tuple(settings))
        start = self.token.start
        while self.token.kind != "end":
            self.next()
        return ddl.AlterSystem(target, self.source_text(start))

    def user_options(self) -> bool | None:
        """Read DEFAULT TABLESPACE, QUOTA … ACCOUNT LOCK; tells whether the account is locked."""
        locked: bool | None = None
        while self.token.kind != "end":
            if self.take_word("ACCOUNT"):
                which = self.take_any("LOCK", "UNLOCK")
                locked = which == "LOCK"
            elif self.take_any("QUOTA"):
                self.next()
                self.need_word("ON")
                self.identifier()
            elif (
                self.take_word("DEFAULT", "TABLESPACE")
                or self.take_word("TEMPORARY", "TABLESPACE")
                or self.take_word("PROFILE")
            ):
                self.identifier()
            elif self.take_word("CONTAINER"):
                self.need_op("=", 927)
                self.next()
            else:
                raise OracleError(922, "missing or invalid option", self.token.start)
        return locked

    def _alter_user(self) -> ddl.CreateUser:
        name = self.identifier()
        password = None
        if self.take_word("IDENTIFIED", "BY"):
            token = self.next()
            password = self.sql[token.start : token.stop].strip('"')
        return ddl.CreateUser(name, password, self.user_options(), alter=True)

    # --- ALTER TABLE -------------------------------------------------------------------------------------------------

    def _alter_table(self) -> object:
        name = self.name()
        if self.take_word("RENAME", "TO"):
            return ddl.RenameTable(name, self.identifier())
        actions: list[tuple[str, object]] = []
        while self.token.kind != "end":
            actions.extend(self._action())
        if not actions:
            raise OracleError(1735, "invalid ALTER TABLE option", self.token.start)
        return ddl.AlterTable(name, tuple(actions))

    def _action(self) -> list[tuple[str, object]]:
        start = self.token.start
        if self.take_word("ADD"):
            return self._add()
        if self.take_word("MODIFY"):
            return self._modify()
        if self.take_word("DROP"):
            return self._drop_part()
        if self.take_word("RENAME", "COLUMN"):
            old = self.identifier()
            self.need_word("TO")
            return [("rename column", (old, self.identifier()))]
        if self.take_word("RENAME", "CONSTRAINT"):
            old = self.identifier()
            self.need_word("TO")
            return [("rename constraint", (old, self.identifier()))]
        if self.take_word("SET", "UNUSED"):
            self.take_word("COLUMN")
            names = self.names() if self.is_op("(") else (self.identifier(),)
            return [("drop column", names)]
        switch = self.take_any("ENABLE", "DISABLE")
        if switch is not None:
            if self.take_word("ROW", "MOVEMENT"):
                return [("nothing", None)]
            self.take_any("VALIDATE", "NOVALIDATE")
            self.need_word("CONSTRAINT")
            return [("enable constraint", (self.identifier(), switch == "ENABLE"))]
        if self.take_any("LOGGING", "NOLOGGING", "CACHE", "NOCACHE", "PARALLEL", "NOPARALLEL"):
            return [("nothing", None)]
        if self.token.kind == "word" and self.token.text in (
            "MOVE",
            "SHRINK",
            "SPLIT",
            "EXCHANGE",
            "TRUNCATE",
            "MERGE",
        ):
            raise unsupported(f"ALTER TABLE … {self.token.text}", start)
        raise OracleError(1735, "invalid ALTER TABLE option", start)

    def _add(self) -> list[tuple[str, object]]:
        if self.take_word("SUPPLEMENTAL", "LOG"):
            return [("add log group", self.log_group())]
        if self.is_constraint():
            return [("add constraint", self.table_constraint())]
        self.take_word("COLUMN")
        if not self.is_op("("):
            return [("add column", self.column())]
        self.need_op("(")
        actions: list[tuple[str, object]] = []
        while True:
            if self.is_constraint():
                actions.append(("add constraint", self.table_constraint()))
            else:
                actions.append(("add column", self.column()))
            if not self.take_op(","):
                break
        self.need_op(")")
        return actions

    def _modify(self) -> list[tuple[str, object]]:
        if self.take_word("CONSTRAINT"):
            raise unsupported("MODIFY CONSTRAINT", self.token.start)
        if not self.is_op("("):
            return [("modify column", self.column(modify=True))]
        self.need_op("(")
        actions: list[tuple[str, object]] = [("modify column", self.column(modify=True))]
        while self.take_op(","):
            actions.append(("modify column", self.column(modify=True)))
        self.need_op(")")
        return actions

    def _drop_part(self) -> list[tuple[str, object]]:
        if self.take_word("SUPPLEMENTAL", "LOG"):
            return [("drop log group", self.log_group())]
        if self.take_word("PRIMARY", "KEY"):
            self.take_word("CASCADE")
            return [("drop primary key", None)]
        if self.take_word("CONSTRAINT"):
            name = self.identifier()
            self.take_word("CASCADE")
            return [("drop constraint", name)]
        if self.take_word("UNUSED", "COLUMNS"):
            return [("nothing", None)]
        if self.take_word("COLUMN"):
            names: tuple[str, ...] = (self.identifier(),)
        elif self.is_op("("):
            names = self.names()
        else:
            raise OracleError(905, "missing keyword", self.token.start)
        self.take_word("CASCADE", "CONSTRAINTS")
        return [("drop column", names)]
