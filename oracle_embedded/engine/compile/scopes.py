"""Which columns do the names of a query mean?"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache

from oracle_embedded.api import ColumnMeta, OraType
from oracle_embedded.engine.compile.plan import Mask, OutputColumn, Sql, TableUse, VirtualUse
from oracle_embedded.engine.datatypes.types import (
    NUMBER,
    SqlType,
    family_type,
)
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.storage.catalog import TableDef

ROWID_OF_SUBQUERY = "\x00ROWID"
"""Under this name a subquery gives the ROWIDs of its rows."""


@dataclass(slots=True)
class SourceColumn:
    """A column that a FROM item offers."""

    name: str
    text: str
    type: SqlType
    nullable: bool = True
    mask: Mask | None = None


@dataclass(slots=True)
class Source:
    """A FROM item: what it is called, and its columns in order."""

    alias: str
    name: str | None
    owner: str | None
    columns: dict[str, SourceColumn]
    _: KW_ONLY
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


def resolve(node: ast.Column, scope: Scope) -> Sql | None:
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
            return column_of(found[0], name)
        current = current.parent
    return None


def column_of(source: Source, name: str) -> Sql:
    """A column of a source as an expression."""
    column = source.columns[name]
    if source.virtual is not None:
        source.virtual.columns.add(name)
    return Sql(
        column.text, column.type, column.nullable, base=source.use, column=name, mask=column.mask
    )


def rowid_source(qualifier: tuple[str, ...], scope: Scope, pos: int) -> Source | None:
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


def matches(source: Source, qualifier: tuple[str, ...]) -> bool:
    """Does a qualifier mean this source?"""
    if not qualifier:
        return True
    if len(qualifier) == 1:
        return source.name == qualifier[0]
    return source.name == qualifier[1] and source.owner == qualifier[0]


def table_source(alias: str, name: str | None, use: TableUse) -> Source:
    """A stored table as FROM item."""
    table: TableDef = use.table
    columns = {
        column.name: SourceColumn(
            column.name, f"{alias}.c{column.internal_id}", column.type, column.nullable
        )
        for column in table.named
    }
    return Source(
        alias,
        name or table.name,
        table.owner,
        columns,
        use=use,
        rowid=f"{alias}.rid",
        rowscn=f"{alias}.vf",
        hidden=frozenset(column.name for column in table.named if column.is_invisible),
    )


def output_source(alias: str, name: str | None, columns: list[OutputColumn]) -> Source:
    """A compiled query as FROM item. Of columns with one name only the first can be named."""
    offered: dict[str, SourceColumn] = {}
    for number, column in enumerate(columns, 1):
        key = column.name if column.name not in offered else f"{column.name}\x00{number}"
        offered[key] = SourceColumn(
            column.name, f"{alias}.c{number}", column.type, column.nullable, column.mask
        )
    return Source(alias, name, None, offered)


@lru_cache(maxsize=4096)
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
    if meta.shape is not None and isinstance(meta.shape.known_as, SqlType):
        return meta.shape.known_as
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
