"""How do names resolve, and how are values converted implicitly, when a statement becomes SQLite SQL?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from oracle_embedded.api import ColumnMeta, OraType, VirtualTable
from oracle_embedded.engine.compile.plan import FIRST_SLOT, Plan, Slot, Sql, TableUse, VirtualUse
from oracle_embedded.engine.datatypes.types import (
    FAMILY_NAMES,
    NUMBER,
    TEXT,
    SqlType,
    family_type,
)
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.storage.catalog import Definition, TableDef

IMPLICIT = {
    ("text", "number"), ("number", "text"), ("text", "date"), ("date", "text"), ("text", "timestamp"),
    ("timestamp", "text"), ("text", "tz"), ("tz", "text"), ("text", "ltz"), ("ltz", "text"),
    ("date", "timestamp"), ("timestamp", "date"), ("date", "tz"), ("timestamp", "tz"), ("tz", "date"),
    ("tz", "timestamp"), ("date", "ltz"), ("ltz", "date"), ("timestamp", "ltz"), ("ltz", "timestamp"),
    ("tz", "ltz"), ("ltz", "tz"), ("number", "double"), ("double", "number"), ("number", "float"),
    ("float", "number"), ("float", "double"), ("double", "float"), ("text", "double"), ("double", "text"),
    ("text", "float"), ("float", "text"), ("text", "raw"), ("raw", "text"), ("text", "rowid"),
    ("rowid", "text"), ("text", "clob"), ("clob", "text"), ("raw", "blob"), ("blob", "raw"), ("text", "ids"),
    ("ids", "text"), ("text", "iym"), ("iym", "text"), ("clob", "number"), ("number", "clob"), ("date", "clob"),
    ("bool", "number"), ("number", "bool"), ("timestamp", "clob"), ("tz", "clob"), ("text", "blob"),
}  # fmt: skip
_SAME_BYTES = {("text", "clob"), ("clob", "text"), ("raw", "blob"), ("blob", "raw")}


@dataclass(slots=True)
class SourceColumn:
    """A column that a FROM item offers."""

    name: str
    text: str
    type: SqlType
    nullable: bool = True


@dataclass(slots=True)
class Source:
    """A FROM item: what it is called, and its columns in order."""

    alias: str
    name: str | None
    owner: str | None
    columns: dict[str, SourceColumn]
    use: TableUse | None = None
    virtual: VirtualUse | None = None
    rowid: str | None = None
    rowscn: str | None = None
    hidden: frozenset[str] = frozenset()


@dataclass(slots=True)
class Scope:
    """Sources that names may mean, and the enclosing query's scope."""

    sources: list[Source] = field(default_factory=list)
    parent: Scope | None = None
    ctes: dict[str, CteSource] = field(default_factory=dict)
    merged: dict[str, Sql] = field(default_factory=dict)
    rownum: str | None = None
    level: str | None = None


@dataclass(slots=True)
class CteSource:
    """A name of a WITH clause."""

    table: str
    columns: list[SourceColumn]


@dataclass(slots=True)
class Environment:
    """What compiling may ask of the session and the database."""

    schema: str
    user: str
    find: Callable[[str, str], Definition | None]
    definition: Callable[[int], Definition | None]
    virtual: Callable[[str, str | None], tuple[VirtualTable, bool] | None]
    may_select: Callable[[Definition], bool]
    may_flashback: Callable[[Definition], bool]
    constants: Mapping[tuple[str, str], int]
    parse_view: Callable[[str], ast.Query]


def quoted(text: str) -> str:
    """A text as SQLite literal; control characters, which markers use, go through hex."""
    if any(character < " " for character in text):
        return f"CAST(x'{text.encode().hex()}' AS TEXT)"
    return "'" + text.replace("'", "''") + "'"


def blob(value: bytes) -> str:
    """Bytes as SQLite literal."""
    return f"x'{value.hex()}'"


class CompilerBase:
    """State of one compilation. ``bind_types`` are None while the statement is only described."""

    def __init__(self, environment: Environment, bind_types: Sequence[SqlType] | None) -> None:
        self.environment = environment
        self.bind_types = bind_types
        self.plan = Plan()
        self._aliases = 0
        self.view_depth = 0

    def new_alias(self, prefix: str = "q") -> str:
        """A name that no one else uses."""
        self._aliases += 1
        return f"{prefix}{self._aliases}"

    def parameter(self, position: int, kind: SqlType) -> str:
        """The SQLite parameter of a bind position."""
        self.plan.slots.append(Slot(position, kind))
        return f"?{FIRST_SLOT + len(self.plan.slots) - 1}"

    # --- names -------------------------------------------------------------------------------------------------------

    def resolve(self, node: ast.Column, scope: Scope) -> Sql | None:
        """The column that a name means, or None.

        Raises:
            OracleError: ORA-00918 when it means several.
        """
        *qualifier, name = node.name
        current: Scope | None = scope
        while current is not None:
            if not qualifier and name in current.merged:
                return current.merged[name]
            found = [
                source
                for source in current.sources
                if name in source.columns and matches(source, tuple(qualifier))
            ]
            if len(found) > 1:
                raise ora(918, offset=node.pos)
            if found:
                return self.column_of(found[0], name)
            current = current.parent
        return None

    def column_of(self, source: Source, name: str) -> Sql:
        """A column of a source as an expression."""
        column = source.columns[name]
        if source.virtual is not None:
            source.virtual.columns.add(name)
        return Sql(column.text, column.type, column.nullable, base=source.use, column=name)

    def rowid_source(self, qualifier: tuple[str, ...], scope: Scope, pos: int) -> Source | None:
        """The source whose ROWID is meant."""
        current: Scope | None = scope
        while current is not None:
            found = [
                source
                for source in current.sources
                if matches(source, qualifier) and source.rowid is not None
            ]
            if len(found) > 1:
                raise ora(918, offset=pos)
            if found:
                return found[0]
            current = current.parent
        return None

    # --- conversions -------------------------------------------------------------------------------------------------

    def convert(self, value: Sql, family: str, pos: int = 0) -> Sql:
        """An expression in another family of types, converted as Oracle does by itself.

        Raises:
            OracleError: ORA-00932 where there is no such conversion.
        """
        source = value.family
        if source == family:
            return value
        if source == "null":
            return Sql(value.text, family_type(family), True)
        if (source, family) not in IMPLICIT:
            raise ora(
                932, FAMILY_NAMES.get(family, family), FAMILY_NAMES.get(source, source), offset=pos
            )
        kind = family_type(family)
        if family == "text":
            kind = (
                TEXT
                if source != "number"
                else SqlType(OraType.VARCHAR, length=40, char_length=40, char_used="B", form=1)
            )
        if (source, family) in _SAME_BYTES:
            return Sql(value.text, kind, value.nullable, constant=value.constant)
        return Sql(
            f"cv_{source}_{family}({value.text})", kind, value.nullable, constant=value.constant
        )

    def numeric(self, value: Sql, pos: int = 0) -> Sql:
        """An operand of arithmetic: NUMBER, or BINARY_DOUBLE if it is binary."""
        if value.family == "null":
            return Sql(value.text, NUMBER)
        if value.family in ("number", "double"):
            return value
        if value.family == "float":
            return self.convert(value, "double", pos)
        if value.family in ("text", "clob", "bool"):
            return self.convert(value, "number", pos)
        raise ora(932, "NUMBER", FAMILY_NAMES.get(value.family, value.family), offset=pos)


def matches(source: Source, qualifier: tuple[str, ...]) -> bool:
    """Does a qualifier mean this source?"""
    if not qualifier:
        return True
    if len(qualifier) == 1:
        return source.name == qualifier[0]
    return source.name == qualifier[1] and source.owner == qualifier[0]


def type_from_meta(meta: ColumnMeta) -> SqlType:
    """The type of a virtual table's column."""
    if meta.type in (OraType.VARCHAR, OraType.CHAR):
        return SqlType(
            meta.type,
            length=meta.size,
            char_length=meta.char_size or meta.size,
            char_used="B",
            form=meta.charset_form or 1,
        )
    if meta.type == OraType.NUMBER:
        if meta.scale == -127:
            return NUMBER
        return SqlType(OraType.NUMBER, precision=meta.precision, scale=meta.scale)
    if meta.type == OraType.RAW:
        return SqlType(OraType.RAW, length=meta.size)
    base = family_type(SqlType(meta.type).family)
    if base.family in ("timestamp", "tz", "ltz"):
        return SqlType(meta.type, scale=meta.scale)
    return (
        SqlType(meta.type, length=meta.size, form=meta.charset_form)
        if base.family == "clob"
        else base
    )


def table_source(alias: str, name: str | None, use: TableUse) -> Source:
    """A stored table as FROM item."""
    table: TableDef = use.table
    columns = {
        column.name: SourceColumn(
            column.name, f"{alias}.c{column.internal_id}", column.type, column.nullable
        )
        for column in table.columns
    }
    return Source(
        alias,
        name or table.name,
        table.owner,
        columns,
        use=use,
        rowid=f"{alias}.rid",
        rowscn=f"{alias}.vf",
    )
