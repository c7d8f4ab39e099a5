"""How are the parts of tables written: columns, constraints, log groups?"""

from __future__ import annotations

from dataclasses import replace

from oracle_embedded.api import OracleError
from oracle_embedded.engine.errors import unsupported
from oracle_embedded.engine.sql import ddl_nodes as ddl
from oracle_embedded.engine.sql.changes import ChangeParser

_LOG_KINDS = {
    "ALL": "ALL COLUMN LOGGING",
    "PRIMARY KEY": "PRIMARY KEY LOGGING",
    "UNIQUE": "UNIQUE KEY LOGGING",
    "FOREIGN KEY": "FOREIGN KEY LOGGING",
}


class ColumnParser(ChangeParser):
    """Reads columns, constraints, supplemental log groups and sequence options."""

    def sequence_options(self) -> tuple[tuple[str, int | bool], ...]:
        """Read START WITH, INCREMENT BY …"""
        options: list[tuple[str, int | bool]] = []
        while self.token.kind == "word":
            if self.take_word("START", "WITH"):
                options.append(("start", self.integer()))
            elif self.take_word("INCREMENT", "BY"):
                options.append(("increment", self.integer()))
            elif self.take_word("RESTART"):
                options.append(("restart", True))
            elif self.token.text in ("MINVALUE", "MAXVALUE", "CACHE"):
                word = self.next().text
                options.append(
                    (
                        {"MINVALUE": "minimum", "MAXVALUE": "maximum", "CACHE": "cache"}[word],
                        self.integer(),
                    )
                )
            elif self.token.text in (
                "NOMINVALUE",
                "NOMAXVALUE",
                "NOKEEP",
                "NOSCALE",
                "GLOBAL",
                "NOSHARD",
            ):
                self.next()
            elif self.token.text in ("CYCLE", "NOCYCLE"):
                options.append(("cycle", self.next().text == "CYCLE"))
            elif self.token.text in ("ORDER", "NOORDER"):
                options.append(("order", self.next().text == "ORDER"))
            elif self.take_word("NOCACHE"):
                options.append(("cache", 0))
            else:
                break
        return tuple(options)

    def log_group(self) -> ddl.LogGroupSpec:
        """Read DATA (ALL, …) COLUMNS or GROUP name (columns) [ALWAYS]."""
        if self.take_word("GROUP"):
            name = self.identifier()
            columns = self.names() if self.is_op("(") else ()
            return ddl.LogGroupSpec("USER LOG GROUP", name, columns, self.take_word("ALWAYS"))
        self.need_word("DATA")
        self.need_op("(")
        kinds = []
        while True:
            word = self.take_any("ALL", "PRIMARY", "UNIQUE", "FOREIGN")
            if word is None:
                raise self.error(905)
            if word in ("PRIMARY", "FOREIGN"):
                self.need_word("KEY")
                word += " KEY"
            kinds.append(_LOG_KINDS[word])
            if not self.take_op(","):
                break
        self.need_op(")")
        self.need_word("COLUMNS")
        return ddl.LogGroupSpec("+".join(kinds))

    def column(self, *, modify: bool = False) -> ddl.ColumnSpec:
        """Read a column definition."""
        name = self.identifier()
        kind = None
        starters = (
            "DEFAULT",
            "NOT",
            "NULL",
            "CONSTRAINT",
            "PRIMARY",
            "UNIQUE",
            "CHECK",
            "REFERENCES",
            "GENERATED",
            "INVISIBLE",
            "VISIBLE",
        )
        if not (
            modify
            and (
                self.token.text in starters
                or self.token.text in (",", ")")
                or self.token.kind == "end"
            )
        ):
            if (
                self.token.text in starters
                and self.token.kind == "word"
                and self.token.text != "GENERATED"
            ):
                raise OracleError(
                    2263, "need to specify the datatype for this column", self.token.start
                )
            kind = self.datatype()
        default: str | None = None
        has_default = False
        nullable: bool | None = None
        identity: str | None = None
        options: tuple[tuple[str, int | bool], ...] = ()
        constraints: list[ddl.ConstraintSpec] = []
        while True:
            if self.take_word("DEFAULT"):
                if self.take_word("ON", "NULL"):
                    raise unsupported("DEFAULT ON NULL", self.token.start)
                start = self.token.start
                self.expression()
                default, has_default = self.source_text(start), True
            elif self.take_word("GENERATED"):
                identity, options = self._identity()
            elif (
                self.is_word("AS")
                or self.is_word("INVISIBLE")
                or self.is_word("COLLATE")
                or self.is_word("ENCRYPT")
            ):
                raise unsupported(f"{self.token.text} columns", self.token.start)
            elif self.take_word("VISIBLE"):
                continue
            elif self.is_inline_constraint():
                spec = self._inline(name)
                if spec is None:
                    nullable = True
                elif spec.not_null:
                    nullable = False
                    constraints.append(spec)
                else:
                    constraints.append(spec)
            else:
                break
        return ddl.ColumnSpec(
            name, kind, default, has_default, nullable, tuple(constraints), identity, options
        )

    def _identity(self) -> tuple[str, tuple[tuple[str, int | bool], ...]]:
        if self.take_word("ALWAYS"):
            how = "ALWAYS"
        else:
            if self.take_word("BY"):
                self.need_word("DEFAULT")
            how = "BY DEFAULT"
            if self.take_word("ON", "NULL"):
                how = "BY DEFAULT ON NULL"
        self.need_word("AS")
        if not self.take_word("IDENTITY"):
            raise unsupported("virtual columns", self.token.start)
        options: tuple[tuple[str, int | bool], ...] = ()
        if self.take_op("("):
            options = self.sequence_options()
            self.need_op(")")
        else:
            options = self.sequence_options()
        return how, options

    def is_inline_constraint(self) -> bool:
        """Does a column constraint come next?"""
        return self.token.kind == "word" and self.token.text in (
            "CONSTRAINT", "NOT", "NULL", "PRIMARY", "UNIQUE", "CHECK", "REFERENCES",
        )  # fmt: skip

    def _inline(self, column: str) -> ddl.ConstraintSpec | None:
        name = self.identifier() if self.take_word("CONSTRAINT") else None
        if self.take_word("NULL"):
            return None
        if self.take_word("NOT"):
            self._need_null()
            spec = ddl.ConstraintSpec(
                "C", name, (column,), f'"{column}" IS NOT NULL', not_null=True
            )
        elif self.take_word("PRIMARY"):
            self.need_word("KEY")
            spec = ddl.ConstraintSpec("P", name, (column,))
        elif self.take_word("UNIQUE"):
            spec = ddl.ConstraintSpec("U", name, (column,))
        elif self.take_word("REFERENCES"):
            spec = self._references(name, (column,))
        else:
            spec = self._check(name, (column,))
        return self._state(spec)

    def _need_null(self) -> None:
        if not self.take_word("NULL"):
            raise OracleError(908, "missing NULL keyword", self.token.start)

    def is_constraint(self) -> bool:
        """Does a table constraint come next?"""
        return self.token.kind == "word" and (
            self.token.text == "CONSTRAINT"
            or self.is_word("PRIMARY", "KEY")
            or self.is_word("FOREIGN", "KEY")
            or (self.token.text in ("UNIQUE", "CHECK") and self.ahead().text == "(")
        )

    def table_constraint(self) -> ddl.ConstraintSpec:
        """Read a table constraint."""
        name = self.identifier() if self.take_word("CONSTRAINT") else None
        if self.take_word("PRIMARY", "KEY"):
            spec = ddl.ConstraintSpec("P", name, self.names())
        elif self.take_word("UNIQUE"):
            spec = ddl.ConstraintSpec("U", name, self.names())
        elif self.take_word("FOREIGN", "KEY"):
            columns = self.names()
            self.need_word("REFERENCES")
            spec = self._references(name, columns)
        else:
            spec = self._check(name, ())
        return self._state(spec)

    def _references(self, name: str | None, columns: tuple[str, ...]) -> ddl.ConstraintSpec:
        referenced = self.name()
        referenced_columns = self.names() if self.is_op("(") else ()
        rule = None
        if self.take_word("ON", "DELETE"):
            if self.take_word("CASCADE"):
                rule = "CASCADE"
            else:
                self.need_word("SET", "NULL")
                rule = "SET NULL"
        return ddl.ConstraintSpec(
            "R", name, columns, None, False, referenced, referenced_columns, rule
        )

    def _check(self, name: str | None, columns: tuple[str, ...]) -> ddl.ConstraintSpec:
        self.need_word("CHECK")
        self.need_op("(")
        start = self.token.start
        self.condition()
        text = self.source_text(start)
        self.need_op(")")
        return ddl.ConstraintSpec("C", name, columns, text)

    def _state(self, spec: ddl.ConstraintSpec) -> ddl.ConstraintSpec:
        while True:
            if self.is_word("DEFERRABLE") or self.is_word("INITIALLY"):
                raise unsupported("deferrable constraints", self.token.start)
            if self.take_word("NOT", "DEFERRABLE") or self.take_any(
                "ENABLE", "VALIDATE", "NOVALIDATE", "RELY", "NORELY"
            ):
                continue
            if self.take_word("DISABLE"):
                spec = replace(spec, enabled=False)
            elif self.take_word("USING", "INDEX"):
                if self.token.kind in ("word", "quoted") and self.token.text not in (
                    "TABLESPACE",
                    "PCTFREE",
                    "ENABLE",
                    "DISABLE",
                    "INITRANS",
                    "STORAGE",
                ):
                    self.name()
                while self.take_any("TABLESPACE", "PCTFREE", "INITRANS"):
                    self.next()
            else:
                return spec
