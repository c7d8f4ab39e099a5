"""Into which chunks is a table cut?

By ranges of its key, of another column, or of ROWIDs. Ranges join, the first has no lower and the
last no upper bound, and bounds are read as of the snapshot's SCN: no row falls between chunks,
whatever happens to the table meanwhile.

ROWIDs are in the order of segments, files and blocks. So bounds in the middle of extents cut a
table into parts of about the same size without sorting anything, and the first ROWIDs of its
segments cut it into its partitions and subpartitions. Where all values of a row identify it, ranges
are of ROWIDs in any case: as of the one SCN of all chunks each row has one, so it is in one chunk
alone, wherever it moves later.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from cdc_core.config import SnapshotConfig
from cdc_core.errors import CdcError, ConfigError, PreflightError, TransientError
from cdc_core.model.identifiers import quote
from cdc_core.model.scn import Scn
from cdc_core.oracle.after_ddl import read_after_ddl
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.masks import masked_key
from cdc_core.schema.table import ROW_ID_COLUMN, Column, TableSchema
from cdc_core.snapshot.plan import Bound, ChunkRange, as_of, key_forms, where_clause
from cdc_core.snapshot.present_names import (
    condition_under_names,
    present_names,
    renames,
    under_names,
)

_LOG = logging.getLogger(__name__)

_KEY_BOUNDS = """
SELECT {texts}
  FROM (SELECT {named}, ROW_NUMBER() OVER (ORDER BY {keys}) AS "_CDC_N" FROM {table}{sample}{as_of}{where})
 WHERE MOD("_CDC_N", :chunk_rows) = 1 AND "_CDC_N" > 1
 ORDER BY "_CDC_N"
"""
_ROWS_UP_TO = "SELECT COUNT(*) FROM (SELECT 1 FROM {table}{as_of} WHERE ROWNUM <= :most)"
_SAMPLED_PER_CHUNK = 5000
"""Rows of a sample that make a chunk. Of some dozen blocks: chunks differ by some 15 %."""
_SAMPLE_PERCENT_MAX = 10
_STATISTICS = """
SELECT NUM_ROWS FROM ALL_TABLES WHERE OWNER = :owner AND TABLE_NAME = :name AND IOT_TYPE IS NULL AND NUM_ROWS IS NOT NULL"""
_COUNT = "SELECT COUNT(*) FROM {table}{as_of}{where}"
_HEAP = "SELECT 1 FROM ALL_TABLES WHERE OWNER = :owner AND TABLE_NAME = :name AND IOT_TYPE IS NULL"
_SEGMENTS = """
SELECT DATA_OBJECT_ID FROM ALL_OBJECTS
 WHERE OWNER = :owner AND OBJECT_NAME = :name AND DATA_OBJECT_ID IS NOT NULL
   AND OBJECT_TYPE IN ('TABLE PARTITION', 'TABLE SUBPARTITION')
 ORDER BY DATA_OBJECT_ID"""
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


@dataclass(frozen=True, slots=True)
class _Cut:
    """What a table is cut by, and the column in place of its key."""

    by: Literal["key", "rowid", "partition"]
    column: str | None = None


def plan_chunks(
    session: OracleSession,
    schema: TableSchema,
    *,
    scn: Scn | None,
    config: SnapshotConfig,
    condition: str | None = None,
    chunk_by: str | None = None,
) -> list[ChunkRange]:
    """Cut a table, as of ``scn`` (None: as it is now), into chunks of about ``config.chunk_rows``
    rows, or into its partitions; an empty one into one empty chunk. Seconds after a DDL of the
    table, Oracle may refuse to look back; that is waited for. Columns may have got other names
    since.

    Args:
        condition: A checked condition (:func:`cdc_core.snapshot.conditions.checked_condition`) that
            rows must meet.
        config: As the table has it (:meth:`~cdc_core.config.SourceConfig.snapshot_of`).
        chunk_by: A column of the table, or ``ROWID``, in place of what the configuration says.

    Raises:
        SnapshotTooOldError: Oracle has no undo for the SCN any more.
        ConfigError: The table has no such column, ranges cannot be made of its type, or Oracle
            refuses the condition.
    """
    cut = _cut(schema, config, chunk_by)
    if cut.column is not None:
        schema = replace(schema, key=(cut.column,))
    names = renames(schema, present_names(session, schema.table))
    schema = under_names(schema, names)
    condition = condition and condition_under_names(condition, names)
    if condition is not None:
        _have_parsed(session, schema, condition)

    def bounds() -> tuple[Literal["key", "rowid"], list[Bound]]:
        found: list[Bound] | None = None
        by_row_ids = cut.by == "rowid"
        if cut.by == "partition":
            found, by_row_ids = _partition_bounds(session, schema), _is_by_row_ids(schema)
        if found is None and by_row_ids:
            found = _rowid_bounds(session, schema, scn, config, condition)
        if found is not None:
            return "rowid", found
        key = [schema.column(name) for name in schema.key]
        return "key", _key_bounds(session, schema, scn, config, condition, key)

    kind, found = read_after_ddl(session, [schema.table], bounds)
    ranges = [
        ChunkRange(kind, low, high, cut.column if kind == "key" else None)
        for low, high in pairwise([None, *found, None])
    ]
    _LOG.info(
        "chunks planned table=%s chunks=%d by=%s scn=%s", schema.table, len(ranges), kind, scn
    )
    return ranges


def _have_parsed(session: OracleSession, schema: TableSchema, condition: str) -> None:
    """Let Oracle parse the condition, which runs nothing: what is wrong with it is said before
    anything is planned, and in Oracle's own words."""
    try:
        session.check_statement(f"SELECT NULL FROM {schema.table.sql}{where_clause(condition)}")
    except TransientError:
        raise
    except CdcError as error:
        raise ConfigError(
            f"Oracle refuses the condition: {error.message}",
            hint="Correct the condition.",
            table=schema.table,
            ora=error.facts.get("ora"),
        ) from error


def _cut(schema: TableSchema, config: SnapshotConfig, chunk_by: str | None) -> _Cut:
    """What is asked for: by a signal, else by the configuration. Where hashes are the key, no
    column is in the place of ROWIDs."""
    if masked_key(schema):
        return _Cut("partition" if config.cut == "partition" else "rowid")
    if chunk_by is not None and chunk_by.upper() == "ROWID":
        return _Cut("rowid")
    wanted = config.surrogate_key if chunk_by is None else chunk_by
    if wanted is not None:
        name = wanted if wanted in schema.column_names else wanted.upper()
        if name in schema.column_names:
            return _Cut("key", None if schema.key == (name,) else name)
        if chunk_by is not None:
            raise ConfigError(
                "the surrogate key is not a captured column of the table",
                hint=f"Name one of {', '.join(schema.column_names)[:300]}, or ROWID.",
                table=schema.table,
                column=chunk_by[:128],
            )
    if config.cut != "auto":
        return _Cut(config.cut)
    return _Cut("rowid" if _is_by_row_ids(schema) else "key")


def _is_by_row_ids(schema: TableSchema) -> bool:
    """Is its key one that ranges cannot be made of, or that ROWIDs stand for?"""
    if schema.is_by_row_id:
        return True
    try:
        return not [key_forms(schema.column(name)) for name in schema.key]
    except ConfigError:
        return True


def _key_bounds(
    session: OracleSession,
    schema: TableSchema,
    scn: Scn | None,
    config: SnapshotConfig,
    condition: str | None,
    columns: Sequence[Column],
) -> list[Bound]:
    """The values of some columns at which each chunk but the first begins, by the rows
    themselves."""
    percent = 100 * _SAMPLED_PER_CHUNK / config.chunk_rows
    samples = percent <= _SAMPLE_PERCENT_MAX and _is_large(session, schema, config.sample_from_rows)
    if not samples and condition is None and _is_one_chunk(session, schema, scn, config.chunk_rows):
        return []
    sql = _KEY_BOUNDS.format(
        sample=f" SAMPLE BLOCK ({percent:.6f})" if samples else "",
        texts=", ".join(key_forms(column)[0].format(quote(column.name)) for column in columns),
        named=", ".join(f"{column.sql} AS {quote(column.name)}" for column in columns),
        keys=", ".join(column.sql for column in columns),
        table=schema.table.sql,
        as_of=as_of(scn)[0],
        where=where_clause(condition),
    )
    each = _SAMPLED_PER_CHUNK if samples else config.chunk_rows
    # A bound with U+FFFD in it would lie elsewhere.
    rows = session.fetch_all(sql, {**as_of(scn)[1], "chunk_rows": each}, values=True)
    # Where the column may be NULL, such rows come last.
    return [tuple(str(value) for value in row) for row in rows if None not in row]


def _is_one_chunk(
    session: OracleSession, schema: TableSchema, scn: Scn | None, chunk_rows: int
) -> bool:
    """Counting no more rows than a chunk has is cheap; all keys need not be sorted then."""
    clause, binds = as_of(scn)
    sql = _ROWS_UP_TO.format(table=schema.table.sql, as_of=clause)
    [(rows,)] = session.fetch_all(sql, {**binds, "most": chunk_rows + 1})
    return int(rows) <= chunk_rows


def _is_large(session: OracleSession, schema: TableSchema, rows_min: int | None) -> bool:
    """By its statistics; index-organized tables have no blocks of rows to sample."""
    if rows_min is None:
        return False
    binds = {"owner": schema.table.owner, "name": schema.table.name}
    return any(rows >= rows_min for (rows,) in session.fetch_all(_STATISTICS, binds))


def _partition_bounds(session: OracleSession, schema: TableSchema) -> list[Bound] | None:
    """First ROWIDs of all segments but the first; None where the table has no partitions."""
    binds = {"owner": schema.table.owner, "name": schema.table.name}
    segments = [int(number) for (number,) in session.fetch_all(_SEGMENTS, binds)]
    return [(rowid_text(number, 0, 0),) for number in segments[1:]] if segments else None


def _rowid_bounds(
    session: OracleSession,
    schema: TableSchema,
    scn: Scn | None,
    config: SnapshotConfig,
    condition: str | None,
) -> list[Bound] | None:
    """First ROWIDs of all chunks but the first: by the table's extents, or by its rows where these
    cannot be seen. None where rows have no ROWIDs of their own: in an index-organized table."""
    binds = {"owner": schema.table.owner, "name": schema.table.name}
    if not session.fetch_all(_HEAP, binds):
        return [] if masked_key(schema) else None
    if not (extents := _extents(session, schema)):
        return _key_bounds(session, schema, scn, config, condition, [ROW_ID_COLUMN])
    clause, own = as_of(scn)
    sql = _COUNT.format(table=schema.table.sql, as_of=clause, where=where_clause(condition))
    rows = session.fetch_all(sql, own)[0][0]
    return cut_extents(extents, -(-rows // config.chunk_rows))


def _extents(session: OracleSession, schema: TableSchema) -> list[tuple[int, ...]]:
    """The extents of all segments of a table; none where they cannot be seen. Only DBA_EXTENTS has
    their blocks: there is no ALL_EXTENTS, and USER_EXTENTS has sizes alone."""
    binds = {"owner": schema.table.owner, "name": schema.table.name}
    try:
        return [tuple(map(int, extent)) for extent in session.fetch_all(_EXTENTS, binds)]
    except PreflightError:
        _LOG.info(
            "chunks of %s are cut by the ROWIDs of its rows, since DBA_EXTENTS cannot be read: "
            "GRANT SELECT ON SYS.DBA_EXTENTS TO %s",
            schema.table, session.user,
        )  # fmt: skip
        return []


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


def _digits(number: int, width: int) -> str:
    text = ""
    for _ in range(width):
        number, digit = divmod(number, 64)
        text = _ROWID_DIGITS[digit] + text
    return text
