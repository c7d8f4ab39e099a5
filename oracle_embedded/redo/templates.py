"""How are the statements of one table compiled into functions that print them?

A statement is a list of parts, constants and Python expressions, that become one ``b"".join`` over
a tuple. Names in expressions: ``old`` and ``new`` look up a value by column id, ``row_id`` is the
ROWID's bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import cast

from oracle_embedded.api import StoredColumn, TableVersion, Value
from oracle_embedded.redo.literals import LiteralCache, is_text, quoted

Lookup = Callable[[int], Value]
Render = Callable[[Lookup, Lookup, bytes], bytes]


@dataclass(frozen=True, slots=True)
class Style:
    """Options of START_LOGMNR that shape statements."""

    rowid: bool = True
    delimiter: bool = True
    pretty: bool = False


@dataclass(frozen=True, slots=True)
class Expression:
    """A Python expression that gives bytes."""

    source: str


Part = bytes | Expression
ROWID_PREDICATE: Sequence[Part] = (b"ROWID = '", Expression("row_id"), b"'")


@dataclass(slots=True)
class Template:
    """Builds the statements of one table definition; ``raw`` prints stored bytes whatever the
    columns' types."""

    table: TableVersion
    style: Style
    literals: LiteralCache
    raw: bool = False
    names: dict[str, object] = field(default_factory=lambda: {"quoted": quoted})

    def insert(self, columns: Sequence[StoredColumn], source: str) -> Render:
        """``insert into … values (…)`` of all columns; ``source`` is ``old`` or ``new``."""
        if self.style.pretty:
            sets = [[self.name(c) + b" = ", self.value(c, source)] for c in columns]
            return self.compile(
                [
                    b"insert into " + self.target + b"\n values\n    ",
                    *_join(sets, b",\n    "),
                    self.end,
                ]
            )
        names = b",".join([self.name(c) for c in columns])
        head = b"insert into " + self.target + b"(" + names + b") values ("
        literals = [[self.value(c, source)] for c in columns]
        return self.compile([head, *_join(literals, b","), b")" + self.end])

    def update(
        self, columns: Sequence[StoredColumn], source: str, where: Sequence[Sequence[Part]]
    ) -> Render:
        """``update … set … where …``."""
        head, between = (b" set ", b", ")
        if self.style.pretty:
            head, between = (b"\n  set\n    ", b",\n    ")
        sets = [[self.name(c) + b" = ", self.value(c, source)] for c in columns]
        parts = [b"update " + self.target + head, *_join(sets, between)]
        return self.compile([*parts, *self.where(where), self.end])

    def delete(self, where: Sequence[Sequence[Part]]) -> Render:
        """``delete from … where …``."""
        return self.compile([b"delete from " + self.target, *self.where(where), self.end])

    def where(self, predicates: Sequence[Sequence[Part]]) -> list[Part]:
        """`` where … and …``; nothing when there is no predicate."""
        if not predicates:
            return []
        head, between = (b" where ", b" and ")
        if self.style.pretty:
            head, between = (b"\n where\n    ", b" and\n    ")
        return [head, *_join(predicates, between)]

    def predicate(self, column: StoredColumn, source: str) -> list[Part]:
        """``"C" = literal`` or ``"C" IS NULL``."""
        at = column.internal_id
        self.names[f"is{at}"] = self.name(column) + b" = "
        self.names[f"null{at}"] = self.name(column) + b" IS NULL"
        literal = self._literal(column)
        return [Expression(f"null{at} if (v := {source}({at})) is None else is{at} + {literal}")]

    def rowid_predicate(self) -> list[Sequence[Part]]:
        """``ROWID = '…'``, unless the session wants none."""
        return [ROWID_PREDICATE] if self.style.rowid else []

    def value(self, column: StoredColumn, source: str) -> Part:
        """The literal of a column's value."""
        at = column.internal_id
        if self._is_text(column):
            return Expression(
                f"b'NULL' if (v := {source}({at})) is None else {self._literal(column)}"
            )
        return Expression(f"{self._memo(column)}[{source}({at})]")

    def _literal(self, column: StoredColumn) -> str:
        """An expression for the literal of ``v``, which is not None."""
        if self._is_text(column):
            return """b"'%b'" % (v.replace(b"'", b"''") if b"'" in v else v)"""
        return f"{self._memo(column)}[v]"

    def _is_text(self, column: StoredColumn) -> bool:
        return not self.raw and is_text(column)

    def _memo(self, column: StoredColumn) -> str:
        name = f"memo{column.internal_id}"
        if name not in self.names:
            self.names[name] = self.literals.memo(column, raw=self.raw, scn=self.table.scn_from)
        return name

    def compile(self, parts: Iterable[Part]) -> Render:
        """Make the function that prints the parts."""
        names = dict(self.names)
        sources: list[str] = []
        constant = b""
        for part in [*parts, b""]:
            if isinstance(part, bytes):
                constant += part
                continue
            if constant:
                names[f"c{len(sources)}"] = constant
                sources.append(f"c{len(sources)}")
            constant = b""
            sources.append(f"({part.source})")
        if constant:
            names[f"c{len(sources)}"] = constant
            sources.append(f"c{len(sources)}")
        body = f"lambda old, new, row_id: b''.join(({', '.join(sources)},))"
        # The source is made of column ids and fixed text only; names and literals are bound, never
        # pasted in.
        return cast(Render, eval(_code(body), names))  # noqa: S307

    @property
    def target(self) -> bytes:
        """``"OWNER"."TABLE"``."""
        return f'"{self.table.owner}"."{self.table.name}"'.encode()

    @property
    def end(self) -> bytes:
        """The delimiter."""
        return b";" if self.style.delimiter else b""

    def name(self, column: StoredColumn) -> bytes:
        """``"COLUMN"``."""
        return f'"{column.name}"'.encode()


@lru_cache(maxsize=4096)
def _code(body: str) -> CodeType:
    """The same few expressions come with every pass over the redo, and compiling one takes longer
    than printing many rows."""
    return compile(body, "<statement>", "eval")


def _join(groups: Iterable[Sequence[Part]], between: bytes) -> list[Part]:
    joined: list[Part] = []
    for group in groups:
        if joined:
            joined.append(between)
        joined.extend(group)
    return joined
