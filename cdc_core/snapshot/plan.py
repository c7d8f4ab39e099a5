"""Which rows of its table are a chunk, as Oracle is asked for them?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cdc_core.errors import ConfigError, SchemaMismatchError
from cdc_core.model.json_form import from_json
from cdc_core.model.scn import Scn
from cdc_core.schema.table import ROW_ID_COLUMN, Column, TableSchema
from cdc_core.schema.types import Printed, printed_as

_DATE = "'SYYYY-MM-DD HH24:MI:SS'"
_TIMESTAMP = "'SYYYY-MM-DD HH24:MI:SS.FF9'"
_ZONED = "'SYYYY-MM-DD HH24:MI:SS.FF9 TZH:TZM'"
Bound = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChunkRange:
    """A part of a table: ``low <= position < high``, either of which may be open (None).

    Bounds of ``key`` ranges are the key columns' values as text, in the key's order; of ``rowid``
    ranges one ROWID. They are row values: they stay in the metadata store and out of logs.
    ``column`` stands for the key where another column was chosen; rows that have no value there
    are in the last range.
    """

    kind: Literal["key", "rowid"]
    low: Bound | None
    high: Bound | None
    column: str | None = None

    @classmethod
    def whole(cls) -> ChunkRange:
        """All of a table."""
        return cls("key", None, None)

    def __repr__(self) -> str:
        bounds = (bound is not None for bound in (self.low, self.high))
        return f"ChunkRange({self.kind}, bounded={tuple(bounds)})"

    @property
    def is_whole(self) -> bool:
        """Is it all of its table?"""
        return (self.low, self.high) == (None, None)

    def are_of_key(self, schema: TableSchema) -> bool:
        """Are rows in or out of it by their key alone?"""
        if self.is_whole:
            return True
        own = "rowid" if schema.key == (ROW_ID_COLUMN.name,) else "key"
        return self.kind == own and self.column is None


@dataclass(frozen=True, slots=True)
class ChunkKeys:
    """The rows of a table that have one of these keys: texts as in :class:`ChunkRange`, and as much
    to be kept out of logs."""

    keys: tuple[Bound, ...]
    kind: Literal["keys"] = "keys"

    def __repr__(self) -> str:
        return f"ChunkKeys({len(self.keys)})"


ChunkPart = ChunkRange | ChunkKeys


def chunk_part(data: dict[str, Any]) -> ChunkPart:
    """The part that has this JSON form."""
    kind: type[ChunkPart] = ChunkKeys if data["kind"] == "keys" else ChunkRange
    return from_json(kind, data)


def part_predicate(part: ChunkPart, schema: TableSchema) -> tuple[str, dict[str, str]]:
    """The WHERE condition of a part and its binds; "" for a whole table."""
    return (
        keys_predicate(part, schema)
        if isinstance(part, ChunkKeys)
        else range_predicate(part, schema)
    )


def keys_predicate(
    part: ChunkKeys, schema: TableSchema, prefix: str = "k"
) -> tuple[str, dict[str, str]]:
    """One row per key, each as a conjunction of its columns, or one list of values where the key
    has one column: of at most 1,000 keys (ORA-01795). The names of the binds begin with
    ``prefix``."""
    binds = {
        f"{prefix}{row}_{at}": text
        for row, key in enumerate(part.keys)
        for at, text in enumerate(key)
    }
    columns = [schema.column(name) for name in schema.key]
    values = [
        [bound_expression(column, f":{prefix}{row}_{at}") for at, column in enumerate(columns)]
        for row in range(len(part.keys))
    ]
    if len(columns) == 1:
        return f"{columns[0].sql} IN ({', '.join(value for [value] in values)})", binds
    terms = (
        " AND ".join(f"{column.sql} = {value}" for column, value in zip(columns, row, strict=True))
        for row in values
    )
    return " OR ".join(f"({term})" for term in terms), binds


def range_predicate(chunk: ChunkRange, schema: TableSchema) -> tuple[str, dict[str, str]]:
    """The WHERE condition of a chunk and its binds; "" for a whole table.

    Several key columns compare one after the other (lexicographically), in a form that lets Oracle
    use the key's index.
    """
    terms: list[str] = []
    binds: dict[str, str] = {}
    key = schema.key if chunk.column is None else (chunk.column,)
    if missing := [one for one in key if one not in schema.column_names]:
        raise SchemaMismatchError(
            "the column by which the chunks were cut is not there any more",
            hint=f"`redolake snapshot --table {schema.table.argument}` reads the table again.",
            table=schema.table,
            column=", ".join(missing),
        )
    for name, bound, strict, loose, last in (
        ("low", chunk.low, ">", ">=", ">="),
        ("high", chunk.high, "<", "<=", "<"),
    ):
        if bound is None:
            continue
        if chunk.kind == "rowid":
            columns = [("ROWID", f"CHARTOROWID(:{name}0)")]
        else:
            columns = [
                (column.sql, bound_expression(column, f":{name}{at}"))
                for at, column in enumerate(map(schema.column, key))
            ]
        term = _compare(columns, strict, loose, last)
        if chunk.column is not None and name == "low" and chunk.high is None:
            term = f"({term} OR {columns[0][0]} IS NULL)"
        terms.append(term)
        binds |= {f"{name}{at}": value for at, value in enumerate(bound)}
    return " AND ".join(terms), binds


def as_of(scn: Scn | None) -> tuple[str, dict[str, int]]:
    """The flashback clause of a table, and its bind; nothing for the present."""
    return ("", {}) if scn is None else (" AS OF SCN :scn", {"scn": scn})


def where_clause(*conditions: str | None) -> str:
    """``WHERE`` with all conditions that there are, each in parentheses; "" without any."""
    held = [f"({condition})" for condition in conditions if condition]
    return f" WHERE {' AND '.join(held)}" if held else ""


def bound_expression(column: Column, bind: str) -> str:
    """SQL that turns the text of a bound, or of a key in a list, back into the column's type."""
    form = _OF_KEYS.get(printed_as(column) or column.data_type)
    return (form or key_forms(column)[1]).format(bind)


_OF_KEYS = {
    "BINARY_FLOAT": "TO_BINARY_FLOAT({})",
    "BINARY_DOUBLE": "TO_BINARY_DOUBLE({})",
    Printed.YEAR_TO_MONTH: "TO_YMINTERVAL({})",
    Printed.DAY_TO_SECOND: "TO_DSINTERVAL({})",
    Printed.ZONED: f"TO_TIMESTAMP_TZ({{}}, {_ZONED})",
}
"""Types by whose texts rows are found, and by which no ranges are cut."""


def _compare(columns: Sequence[tuple[str, str]], strict: str, loose: str, last: str) -> str:
    (name, value), *rest = columns
    if not rest:
        return f"{name} {last} {value}"
    inner = _compare(rest, strict, loose, last)
    return f"{name} {loose} {value} AND ({name} {strict} {value} OR ({inner}))"


def key_forms(column: Column) -> tuple[str, str]:
    """How a key column's value is printed as text, and read back, both exactly.

    Raises:
        ConfigError: Ranges cannot be made of values of its type.
    """
    kind = column.data_type
    if kind in {"NUMBER", "FLOAT"}:
        return "TO_CHAR({}, 'TM9')", "TO_NUMBER({})"
    if kind in {"VARCHAR2", "CHAR"}:
        return "{}", "{}"
    if kind in {"NVARCHAR2", "NCHAR"}:
        return "{}", "TO_NCHAR({})"
    if kind == "DATE":
        return f"TO_CHAR({{}}, {_DATE})", f"TO_DATE({{}}, {_DATE})"
    if kind.startswith("TIMESTAMP(") and kind.endswith(")"):
        return f"TO_CHAR({{}}, {_TIMESTAMP})", f"TO_TIMESTAMP({{}}, {_TIMESTAMP})"
    if kind == "RAW":
        return "RAWTOHEX({})", "HEXTORAW({})"
    if kind == "ROWID":
        return "ROWIDTOCHAR({})", "CHARTOROWID({})"
    raise ConfigError(
        "chunks cannot be cut by a key of this type",
        hint="Set snapshot.cut to auto or rowid, or name another key for the table.",
        column=column.name,
        data_type=kind,
    )
