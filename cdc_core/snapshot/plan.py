"""Into which chunks is a table cut?

By ranges of its key or of ROWIDs. Ranges join, the first has no lower and the last no upper bound,
and bounds are read as of the snapshot's SCN: no row falls between chunks, whatever happens to the
table meanwhile. Where all values of a row identify it, ranges are of ROWIDs in any case: as of the
one SCN of all chunks each row has one, so it is in one chunk alone, wherever it moves later.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from cdc_core.config import SnapshotConfig
from cdc_core.errors import ConfigError, PreflightError, SchemaMismatchError
from cdc_core.model.identifiers import quote
from cdc_core.model.scn import Scn
from cdc_core.oracle.after_ddl import read_after_ddl
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.table import ROW_ID_COLUMN, Column, TableSchema
from cdc_core.snapshot.present_names import (
    condition_under_names,
    present_names,
    renames,
    under_names,
)

_LOG = logging.getLogger(__name__)

_DATE = "'SYYYY-MM-DD HH24:MI:SS'"
_TIMESTAMP = "'SYYYY-MM-DD HH24:MI:SS.FF9'"
_KEY_BOUNDS = """
SELECT {texts}
  FROM (SELECT {named}, ROW_NUMBER() OVER (ORDER BY {keys}) AS "_CDC_N" FROM {table}{sample} AS OF SCN :scn{where})
 WHERE MOD("_CDC_N", :chunk_rows) = 1 AND "_CDC_N" > 1
 ORDER BY "_CDC_N"
"""
_ROWS_UP_TO = "SELECT COUNT(*) FROM (SELECT 1 FROM {table} AS OF SCN :scn WHERE ROWNUM <= :most)"
_SAMPLED_PER_CHUNK = 5000
"""Rows of a sample that make a chunk. Of some dozen blocks: chunks differ by some 15 %."""
_SAMPLE_PERCENT_MAX = 10
_STATISTICS = """
SELECT NUM_ROWS FROM ALL_TABLES WHERE OWNER = :owner AND TABLE_NAME = :name AND IOT_TYPE IS NULL AND NUM_ROWS IS NOT NULL"""
_COUNT = "SELECT COUNT(*) FROM {table} AS OF SCN :scn{where}"
_EXTENTS = """
SELECT O.DATA_OBJECT_ID, E.RELATIVE_FNO, E.BLOCK_ID, E.BLOCKS
  FROM DBA_EXTENTS E, ALL_OBJECTS O
 WHERE E.OWNER = :owner AND E.SEGMENT_NAME = :name AND E.SEGMENT_TYPE LIKE 'TABLE%'
   AND O.OWNER = E.OWNER AND O.OBJECT_NAME = E.SEGMENT_NAME AND O.DATA_OBJECT_ID IS NOT NULL
   AND (O.SUBOBJECT_NAME = E.PARTITION_NAME OR (O.SUBOBJECT_NAME IS NULL AND E.PARTITION_NAME IS NULL))
 ORDER BY O.DATA_OBJECT_ID, E.RELATIVE_FNO, E.BLOCK_ID"""
_BIGFILE = 1024
"""RELATIVE_FNO of the file of a bigfile tablespace; those of other files are lower."""
_BLOCK_BITS = 22
_ROWID_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

Bound = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChunkRange:
    """A part of a table: ``low <= position < high``, either of which may be open (None).

    Bounds of ``key`` ranges are the key columns' values as text, in the key's order; of ``rowid``
    ranges one ROWID. They are row values: they stay in the metadata store and out of logs.
    ``column`` stands for the key where a signal chose another column; rows that have no value there
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

    def as_json(self) -> dict[str, Any]:
        """A JSON form for the metadata store; :meth:`from_json` is its inverse."""
        return {
            "kind": self.kind,
            "low": None if self.low is None else list(self.low),
            "high": None if self.high is None else list(self.high),
            **({} if self.column is None else {"column": self.column}),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ChunkRange:
        """Read what :meth:`as_json` wrote."""
        low, high = data["low"], data["high"]
        return cls(
            data["kind"],
            None if low is None else tuple(low),
            None if high is None else tuple(high),
            data.get("column"),
        )

    def __repr__(self) -> str:
        bounds = (bound is not None for bound in (self.low, self.high))
        return f"ChunkRange({self.kind}, bounded={tuple(bounds)})"


@dataclass(frozen=True, slots=True)
class ChunkKeys:
    """The rows of a table that have one of these keys: texts as in :class:`ChunkRange`, and as much
    to be kept out of logs."""

    keys: tuple[Bound, ...]

    def as_json(self) -> dict[str, Any]:
        """A JSON form for the metadata store; :func:`chunk_part` is its inverse."""
        return {"kind": "keys", "keys": [list(key) for key in self.keys]}

    def __repr__(self) -> str:
        return f"ChunkKeys({len(self.keys)})"


ChunkPart = ChunkRange | ChunkKeys


def chunk_part(data: dict[str, Any]) -> ChunkPart:
    """Read what ``as_json`` of a part wrote."""
    if data["kind"] == "keys":
        return ChunkKeys(tuple(tuple(key) for key in data["keys"]))
    return ChunkRange.from_json(data)


def plan_chunks(
    session: OracleSession,
    schema: TableSchema,
    *,
    scn: Scn,
    config: SnapshotConfig,
    condition: str | None = None,
    chunk_by: str | None = None,
) -> list[ChunkRange]:
    """Cut a table, as of ``scn``, into chunks of about ``config.chunk_rows`` rows; an empty one
    into one empty chunk. Seconds after a DDL of the table, Oracle may refuse to look back; that is
    waited for. Columns may have got other names since.

    Args:
        condition: A checked condition (:func:`cdc_core.snapshot.conditions.checked_condition`) that
            rows must meet.
        chunk_by: A column of the table, or ``ROWID``, in place of what the configuration says.

    Raises:
        SnapshotTooOldError: Oracle has no undo for the SCN any more.
        ConfigError: The table has no such column, or the key has a column that ranges cannot be
            made of.
    """
    column = _surrogate(schema, chunk_by)
    if column is not None:
        schema = replace(schema, key=(column,))
    names = renames(schema, present_names(session, schema.table))
    schema = under_names(schema, names)
    condition = condition and condition_under_names(condition, names)
    bounds: Sequence[Bound] | None = None
    kind: Literal["key", "rowid"] = "rowid"
    by_rowid = config.chunk_by == "rowid" if chunk_by is None else column is None
    if by_rowid:
        bounds = read_after_ddl(
            session,
            [schema.table],
            lambda: _rowid_bounds(session, schema, scn, config.chunk_rows, condition),
        )
    if bounds is None:
        kind = "rowid" if schema.is_by_all_columns else "key"
        bounds = read_after_ddl(
            session,
            [schema.table],
            lambda: _key_bounds(session, schema, scn, config, condition),
        )
    ends: list[Bound | None] = [None, *bounds, None]
    ranges = [
        ChunkRange(kind, low, high, column if kind == "key" else None)
        for low, high in pairwise(ends)
    ]
    _LOG.info(
        "chunks planned table=%s chunks=%d by=%s scn=%d", schema.table, len(ranges), kind, scn
    )
    return ranges


def _surrogate(schema: TableSchema, chunk_by: str | None) -> str | None:
    """The column in place of the key; None for ROWIDs, for the key itself, and where equal rows are
    counted, which are cut by ROWIDs in any case."""
    if chunk_by is None or schema.is_by_all_columns or chunk_by.upper() == "ROWID":
        return None
    name = chunk_by if chunk_by in schema.column_names else chunk_by.upper()
    if name not in schema.column_names:
        raise ConfigError(
            "the surrogate key is no captured column of the table",
            hint=f"Name one of {', '.join(schema.column_names)[:300]}, or ROWID.",
            table=schema.table,
            column=chunk_by[:128],
        )
    return None if schema.key == (name,) else name


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


def where_clause(*conditions: str | None) -> str:
    """``WHERE`` with all conditions that there are, each in parentheses; "" without any."""
    held = [f"({condition})" for condition in conditions if condition]
    return f" WHERE {' AND '.join(held)}" if held else ""


def bound_expression(column: Column, bind: str) -> str:
    """SQL that turns a bound's text back into the column's type."""
    return _forms(column)[1].format(bind)


def rowid_text(data_object_id: int, file: int, block: int) -> str:
    """The extended ROWID of row 0 of a block, as Oracle prints it.

    A ROWID has ten bits for the file and 22 for the block. The one file of a bigfile tablespace,
    the default of 23ai, is shown with the relative number 1024 and uses all 32 for the block, of
    which the text shows the first ten as the file. Source: Oracle Database Reference 19c, ROWID
    data type; DBMS_ROWID, ``ts_type_in``.
    """
    if file == _BIGFILE:
        file, block = divmod(block, 2**_BLOCK_BITS)
    parts = ((data_object_id, 6), (file, 3), (block, 6), (0, 3))
    return "".join(_digits(number, width) for number, width in parts)


def _key_bounds(
    session: OracleSession,
    schema: TableSchema,
    scn: Scn,
    config: SnapshotConfig,
    condition: str | None,
) -> list[Bound]:
    columns = [ROW_ID_COLUMN]
    if not schema.is_by_all_columns:
        columns = [schema.column(name) for name in schema.key]
    percent = 100 * _SAMPLED_PER_CHUNK / config.chunk_rows
    samples = percent <= _SAMPLE_PERCENT_MAX and _is_large(session, schema, config.sample_from_rows)
    if not samples and condition is None and _is_one_chunk(session, schema, scn, config.chunk_rows):
        return []
    sql = _KEY_BOUNDS.format(
        sample=f" SAMPLE BLOCK ({percent:.6f})" if samples else "",
        texts=", ".join(_forms(column)[0].format(quote(column.name)) for column in columns),
        named=", ".join(f"{column.sql} AS {quote(column.name)}" for column in columns),
        keys=", ".join(column.sql for column in columns),
        table=schema.table.sql,
        where=where_clause(condition),
    )
    each = _SAMPLED_PER_CHUNK if samples else config.chunk_rows
    # A bound with U+FFFD in it would lie elsewhere.
    rows = session.fetch_all(sql, {"scn": scn, "chunk_rows": each}, values=True)
    # Where the column may be NULL, such rows come last.
    return [tuple(str(value) for value in row) for row in rows if None not in row]


def _is_one_chunk(session: OracleSession, schema: TableSchema, scn: Scn, chunk_rows: int) -> bool:
    """Counting no more rows than a chunk has is cheap; all keys need not be sorted then."""
    sql = _ROWS_UP_TO.format(table=schema.table.sql)
    [(rows,)] = session.fetch_all(sql, {"scn": scn, "most": chunk_rows + 1})
    return int(rows) <= chunk_rows


def _is_large(session: OracleSession, schema: TableSchema, rows_min: int | None) -> bool:
    """By its statistics; index-organized tables have no blocks of rows to sample."""
    if rows_min is None:
        return False
    binds = {"owner": schema.table.owner, "name": schema.table.name}
    return any(rows >= rows_min for (rows,) in session.fetch_all(_STATISTICS, binds))


def _rowid_bounds(
    session: OracleSession, schema: TableSchema, scn: Scn, chunk_rows: int, condition: str | None
) -> list[Bound] | None:
    """First ROWIDs of all chunks but the first; None where the table has no extents that can be
    seen."""
    binds = {"owner": schema.table.owner, "name": schema.table.name}
    try:
        extents = session.fetch_all(_EXTENTS, binds)
    except PreflightError:
        _LOG.warning(
            "chunks of %s are cut without its extents, since DBA_EXTENTS cannot be read: GRANT SELECT ON SYS.DBA_EXTENTS TO %s",
            schema.table, session.user,
        )  # fmt: skip
        return None
    if not extents:
        _LOG.warning("chunks of %s are cut without extents, since it has none", schema.table)
        return None
    sql = _COUNT.format(table=schema.table.sql, where=where_clause(condition))
    rows = session.fetch_all(sql, {"scn": scn})[0][0]
    return cut_extents([tuple(map(int, extent)) for extent in extents], -(-rows // chunk_rows))


def cut_extents(extents: Sequence[tuple[int, ...]], chunks: int) -> list[Bound]:
    """Cut extents (data object, file, first block, blocks), in their order, into ``chunks`` parts
    of about as many blocks.

    Returns:
        The ROWID at which each part but the first begins. Large extents are cut inside.
    """
    total = sum(extent[3] for extent in extents)
    wanted = [total * part // chunks for part in range(1, chunks)] if chunks > 1 else []
    bounds: list[Bound] = []
    passed = 0
    for data_object, file, block, blocks in extents:
        for at in wanted:
            if passed <= at < passed + blocks and at > 0:
                bound = (rowid_text(data_object, file, block + at - passed),)
                if bound not in bounds:
                    bounds.append(bound)
        passed += blocks
    return bounds


def _compare(columns: Sequence[tuple[str, str]], strict: str, loose: str, last: str) -> str:
    (name, value), *rest = columns
    if not rest:
        return f"{name} {last} {value}"
    inner = _compare(rest, strict, loose, last)
    return f"{name} {loose} {value} AND ({name} {strict} {value} OR ({inner}))"


def _forms(column: Column) -> tuple[str, str]:
    """How a key column's value is printed as text, and read back, both exactly."""
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
        hint="Set snapshot.chunk_by to rowid, or name another key for the table.",
        column=column.name,
        data_type=kind,
    )


def _digits(number: int, width: int) -> str:
    text = ""
    for _ in range(width):
        number, digit = divmod(number, 64)
        text = _ROWID_DIGITS[digit] + text
    return text
