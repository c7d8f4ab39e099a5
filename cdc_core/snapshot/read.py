"""How is one chunk read from Oracle into landing, with exact values and bounded memory?"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.decode.column_forms import in_form_or_null
from cdc_core.decode.masking import Masks, masked
from cdc_core.decode.printed import day_to_second_text, year_to_month_text, zoned_text
from cdc_core.delta.appending import ROW_GROUP_ROWS
from cdc_core.errors import ANY_TABLE, RESNAPSHOT, DecodeError
from cdc_core.landing.layout import chunk_folder
from cdc_core.landing.manifest import ChunkManifest, LandedFile, chunk_manifest_bytes
from cdc_core.landing.store import LandingStore
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import quote
from cdc_core.model.scn import Scn
from cdc_core.model.texts import (
    NOT_TEXT,
    NOT_TEXT_IN_ROWS,
    NOTHING_REPLACED,
    TextReplacement,
    is_utf8,
    replaced,
    spoiled_rows,
)
from cdc_core.oracle.hidden_rows import seeing_all
from cdc_core.oracle.session import NO_SUCH_DAY, OracleSession, no_such_day
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import (
    Printed,
    arrow_schema,
    as_read,
    empty_lob_expression,
    is_held_otherwise,
    is_moment,
    is_read_as_bytes,
    is_timestamp_text,
    printed_as,
    select_expression,
)
from cdc_core.snapshot.plan import (
    ChunkKeys,
    ChunkPart,
    ChunkRange,
    as_of,
    keys_predicate,
    part_predicate,
    where_clause,
)
from cdc_core.snapshot.present_names import (
    condition_under_names,
    renames,
    steady_names,
    under_names,
)
from cdc_core.stage.layout import chunk_ordinal, mirror_schema

_LOG = logging.getLogger(__name__)

FILE_ROWS_MAX = 2_000_000

_NATIONAL = frozenset({"NCHAR", "NVARCHAR2", "NCLOB"})

_PART = "cdc part"
"""Which of several parts a row belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOptions:
    """How rows are fetched.

    Attributes:
        rows: Rows per batch; nothing beyond a row group is held.
        names: The names that columns have now (:func:`~cdc_core.snapshot.present_names.renames`).
        replacing: In which columns U+FFFD may stand for bytes that are no UTF-8.
        unfit: Told of values that are NULL because the form of their column does not hold them.
    """

    rows: int
    names: Mapping[str, str] = field(default_factory=dict)
    replacing: TextReplacement = NOTHING_REPLACED
    unfit: Callable[[int], None] | None = None


def unread_chunk(
    source: str,
    schema: TableSchema,
    key: ChunkKey,
    part: ChunkPart,
    scn: Scn,
    condition: str | None = None,
) -> ChunkManifest:
    """The manifest of a chunk whose reading begins now, as of an SCN. ``condition`` is a checked
    one (:func:`cdc_core.snapshot.conditions.checked_condition`), or None."""
    return ChunkManifest(
        source=source,
        schema=schema,
        snapshot_id=key.snapshot_id,
        number=key.number,
        scn=scn,
        files=(),
        rows=0,
        condition=condition,
        seconds=0.0,
        landed=datetime.now(UTC).isoformat(),
        have_own_keys=isinstance(part, ChunkRange) and part.are_of_key(schema),
    )


def read_chunk(
    session: OracleSession,
    unread: ChunkManifest,
    chunk: ChunkPart,
    landing: LandingStore,
    options: FetchOptions,
    *,
    masks: Masks,
    settle: Callable[[], None] | None = None,
) -> ChunkManifest:
    """Read the rows of a chunk ``AS OF SCN`` into landing files, and finish with the manifest; with
    a ``scn_high``, as the session sees them, which is as of one SCN from ``scn`` up to it.

    Args:
        unread: The chunk (:func:`unread_chunk`).
        options: How its rows are fetched; what they are called now is asked here.
        masks: What lands in place of values.
        settle: Called when all rows have landed; what it raises keeps them from counting.

    Returns:
        The manifest that was written. There is one file at least, which is empty if no row is in
        the range.

    Raises:
        SnapshotTooOldError: Oracle has no undo for the SCN any more (ORA-01555).
        SchemaMismatchError: The table was altered after the SCN (ORA-01466), or a column is not
            there any more (ORA-00904).
        AlteredMeanwhileError: Columns got other names while rows were read; nothing has landed.
        UnsupportedTypeError: A column's type is not captured.
        DecodeError: A value is none that the lake can hold.
        PreflightError: A policy hides rows or values of the table from the capture user; nothing
            has landed.
    """
    started, schema = time.monotonic(), unread.schema
    folder = chunk_folder(unread.source, unread.chunk_key)
    landing.remove_unlanded(folder)
    unfit: list[int] = []
    hint = f"{RESNAPSHOT} reads the table again."
    with (
        steady_names(session, schema.table, what="rows of a chunk", hint=hint) as present,
        seeing_all(session, schema.table),
    ):
        options = replace(options, names=renames(schema, present), unfit=unfit.append)
        found = exact_rows(
            session,
            schema,
            chunk,
            unread.scn if unread.is_exact else None,
            unread.condition,
            options,
        )
        with closing(found) as batches:
            exact = (masked(batch, masks) for batch in batches)
            files = _land(exact, landing, folder, unread)
    if settle is not None:
        settle()
    manifest = replace(
        unread,
        files=tuple(files),
        rows=sum(file.rows for file in files),
        seconds=time.monotonic() - started,
        unfit_values=sum(unfit),
    )
    landing.write_manifest(folder, chunk_manifest_bytes(manifest))
    _LOG.info(
        "chunk read table=%s snapshot=%s chunk=%d rows=%d seconds=%.2f",
        schema.table, unread.snapshot_id, unread.number, manifest.rows, manifest.seconds,
    )  # fmt: skip
    return manifest


def exact_rows(
    session: OracleSession,
    schema: TableSchema,
    chunk: ChunkPart,
    scn: Scn | None,
    condition: str | None,
    options: FetchOptions,
) -> Generator[pa.RecordBatch]:
    """The rows of a chunk ``AS OF SCN`` (None: as the session sees them), in batches of the table's
    Arrow schema. Close it before you use the session otherwise. Errors as for
    :func:`read_chunk`."""
    wanted = arrow_schema(schema)
    asked = under_names(schema, options.names)
    condition = condition and condition_under_names(condition, options.names)
    sql, binds = chunk_query(asked, chunk, scn, condition)
    read = replace(asked, columns=tuple(map(as_read, asked.columns)))
    batches = session.fetch_batches(sql, binds, rows=options.rows, schema=_driver_schema(read))
    try:
        with closing(_of_table(batches, schema)) as found:
            for batch in found:
                exact = _exact(_texts(batch, schema, options.replacing), read)
                yield _held(exact, schema, wanted, options.unfit)
    except DecodeError as error:
        if error.message != NO_SUCH_DAY or "column" in error.facts:
            raise
        found_in = _without_days(session, asked, chunk, scn, condition)
        own = zip(schema.column_names, found_in, strict=True)
        columns = [name for name, is_one in own if is_one]
        raise no_such_day(*columns, table=schema.table) from error


def _without_days(
    session: OracleSession,
    schema: TableSchema,
    chunk: ChunkPart,
    scn: Scn | None,
    condition: str | None,
) -> list[bool]:
    """Which columns have a day that Delta's calendar lacks? The driver does not say where it met
    one, so Oracle is asked, with one more reading of the rows."""
    asked = [
        f"MAX(CASE WHEN TO_CHAR({quote(one.name)}, 'SYYYY') LIKE '-%' "
        f"OR TO_CHAR({quote(one.name)}, 'YYYYMMDD') IN ({_JULIAN_DAYS}) THEN 1 ELSE 0 END)"
        if is_moment(one) and not is_timestamp_text(as_read(one))
        else "0"
        for one in schema.columns
    ]
    rows, binds = _rows_of(schema, chunk, scn, condition)
    [found] = session.fetch_all(f"SELECT COUNT(*), {', '.join(asked)} {rows}", binds)
    return [bool(one) for one in found[1:]]


_JULIAN_DAYS = ", ".join(f"'{year:04}0229'" for year in range(100, 1600, 100) if year % 400)
"""Leap days of the Julian calendar alone, in which Oracle counts up to 1582."""


def exact_rows_by_scn(
    session: OracleSession,
    schema: TableSchema,
    parts: Sequence[tuple[Scn, ChunkKeys]],
    options: FetchOptions,
) -> Generator[tuple[pa.Array, pa.RecordBatch]]:
    """The rows of keys, each ``AS OF`` its own SCN, by one statement: batches as :func:`exact_rows`
    gives them, each behind the places in ``parts`` of its rows (``int64``). In no order. Close it
    before you use the session otherwise. Errors as for :func:`read_chunk`.

    Source:
        Oracle Database Development Guide 19c, "Using Oracle Flashback Query": tables of one
        statement may have SCNs of their own, in joins and set operations. UNION ALL takes LOBs,
        other set operations do not (SQL Language Reference 19c, "The Set Operators").
    """
    wanted = arrow_schema(schema)
    named = under_names(schema, options.names)
    sql, binds = keys_by_scn_query(named, parts)
    read = replace(named, columns=tuple(map(as_read, named.columns)))
    asked = _driver_schema(read).append(pa.field(_PART, pa.int64()))
    batches = session.fetch_batches(sql, binds, rows=options.rows, schema=asked)
    with closing(_of_table(batches, schema)) as found:
        for batch in found:
            texts = _texts(batch, schema, options.replacing)
            yield batch[_PART], _held(_exact(texts, read), schema, wanted, options.unfit)


def _land(
    batches: Iterator[pa.RecordBatch], landing: LandingStore, folder: str, unread: ChunkManifest
) -> list[LandedFile]:
    """Write the batches into files of about ``FILE_ROWS_MAX`` rows, one at least, as the mirror and
    the change log take them (:mod:`cdc_core.lake.apply.chunk_files`)."""
    schema, files = mirror_schema(unread.schema), list[LandedFile]()
    rows = (_as_of(batch, unread, schema) for batch in batches)
    batch = next(rows, None)
    while batch is not None or not files:
        with landing.writer(folder, f"rows-{len(files):05d}.parquet", schema) as writer:
            held = group = 0
            while batch is not None and held < FILE_ROWS_MAX:
                writer.write(batch)
                held, group = held + batch.num_rows, group + batch.num_rows
                if group >= ROW_GROUP_ROWS:
                    writer.end_group()
                    group = 0
                batch = next(rows, None)
            files.append(writer.close())
    return files


def _as_of(batch: pa.RecordBatch, unread: ChunkManifest, schema: pa.Schema) -> pa.RecordBatch:
    """Rows with the SCN and the ordinal that those of a chunk have in the mirror."""
    place = (unread.scn, chunk_ordinal(unread.scn, unread.scn_high))
    columns = (pa.repeat(pa.scalar(one, pa.int64()), batch.num_rows) for one in place)
    return pa.RecordBatch.from_arrays([*batch.columns, *columns], schema=schema)


def chunk_query(
    schema: TableSchema, chunk: ChunkPart, scn: Scn | None, condition: str | None
) -> tuple[str, dict[str, object]]:
    """The query of a chunk and its binds: the columns of the table's Arrow schema, then one for
    each LOB that says whether it is empty."""
    rows, binds = _rows_of(schema, chunk, scn, condition)
    return f"SELECT {', '.join(_selected(schema))} {rows}", binds


def _rows_of(
    schema: TableSchema, chunk: ChunkPart, scn: Scn | None, condition: str | None
) -> tuple[str, dict[str, object]]:
    predicate, binds = part_predicate(chunk, schema)
    where = where_clause(predicate, condition)
    clause, past = as_of(scn)
    return f"FROM {schema.table.sql}{clause}{where}", {**past, **binds}


def keys_by_scn_query(
    schema: TableSchema, parts: Sequence[tuple[Scn, ChunkKeys]]
) -> tuple[str, dict[str, object]]:
    """The query of :func:`exact_rows_by_scn` and its binds: the columns of :func:`chunk_query`, and
    the place of each row's part."""
    columns = ", ".join(_selected(schema))
    queries: list[str] = []
    binds: dict[str, object] = {}
    for place, (scn, keys) in enumerate(parts):
        predicate, own = keys_predicate(keys, schema, f"p{place}_k")
        queries.append(
            f'SELECT {columns}, {place} AS "{_PART}" FROM {schema.table.sql} AS OF SCN :p{place}_scn WHERE {predicate}'
        )
        binds |= {f"p{place}_scn": scn, **own}
    return " UNION ALL ".join(queries), binds


def _selected(schema: TableSchema) -> list[str]:
    """What is selected: the columns, then one for each LOB that says whether it is empty."""
    columns = [select_expression(as_read(column)) for column in schema.columns]
    return columns + [empty_lob_expression(one) for one in schema.columns if one.may_be_empty]


def _driver_schema(schema: TableSchema) -> pa.Schema:
    """What the driver is asked for: the types in which columns are read, with 64-bit offsets for
    text and bytes, and numbers for truth values."""
    asked = {
        pa.string(): pa.large_string(),
        pa.binary(): pa.large_binary(),
        pa.bool_(): pa.int64(),
    }
    fields = [
        field.with_type(
            pa.large_binary() if is_read_as_bytes(column) else asked.get(field.type, field.type)
        )
        for column, field in zip(schema.columns, arrow_schema(schema), strict=True)
    ]
    lobs = [column for column in schema.columns if column.may_be_empty]
    return pa.schema(
        [*fields, *(pa.field(f"{column.name} is empty", pa.int64()) for column in lobs)]
    )


def _held(
    batch: pa.RecordBatch,
    schema: TableSchema,
    wanted: pa.Schema,
    told: Callable[[int], None] | None,
) -> pa.RecordBatch:
    """The rows in the forms that the lake holds."""
    columns = []
    for column, values in zip(schema.columns, batch.columns, strict=True):
        if is_held_otherwise(column):
            values, unfit = in_form_or_null(values, column)
            if unfit and told is not None:
                told(unfit)
            if unfit:
                _LOG.warning(
                    "values that do not fit their column are NULL table=%s column=%s values=%d",
                    schema.table, column.name, unfit,
                )  # fmt: skip
        columns.append(values)
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def _of_table(batches: Generator[pa.RecordBatch], schema: TableSchema) -> Generator[pa.RecordBatch]:
    """The batches; what the driver cannot give is an error about the table, and about the columns
    that may be meant."""
    try:
        with closing(batches):
            yield from batches
    except DecodeError as error:
        facts = {"table": schema.table, **error.facts}
        if error.message == NOT_TEXT:
            national = (one.name for one in schema.columns if one.data_type in _NATIONAL)
            facts["column"] = ", ".join(national)
        raise DecodeError(error.message, hint=error.hint, **facts) from error


def _texts(
    batch: pa.RecordBatch, schema: TableSchema, replacing: TextReplacement
) -> pa.RecordBatch:
    """A batch whose texts are UTF-8: the driver puts their bytes into Arrow's columns as they come.

    Raises:
        DecodeError: One is not, and nothing may stand for it.
    """
    for at, column in enumerate(schema.columns):
        texts = batch.column(at)
        if not pa.types.is_large_string(texts.type) or is_utf8(texts):
            continue
        if not replacing.takes(column.name, schema.key):
            raise DecodeError(
                NOT_TEXT, hint=NOT_TEXT_IN_ROWS, table=schema.table, column=column.name
            )
        field = batch.schema.field(at)
        batch = batch.set_column(at, field, replaced(texts, spoiled_rows(texts)))
    return batch


def _exact(batch: pa.RecordBatch, schema: TableSchema) -> pa.RecordBatch:
    columns = []
    wanted = arrow_schema(schema)
    emptiness = iter(batch.columns[len(schema.columns) :])
    for column, array, own in zip(
        schema.columns, batch.columns[: len(schema.columns)], wanted, strict=True
    ):
        if is_read_as_bytes(column):
            array = _numbers(_number_text(array), schema, column, own.type)
        elif column.may_be_empty:
            nothing = b"" if pa.types.is_binary(own.type) else ""
            is_empty = pc.is_valid(next(emptiness))
            array = pc.if_else(is_empty, pa.scalar(nothing, array.type), array)
        elif is_timestamp_text(column):
            array = _unsigned_timestamps(array)
        elif printed := printed_as(column):
            array = _canonical(array, printed, schema, column)
        columns.append(array if array.type == own.type else array.cast(own.type))
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def _unsigned_timestamps(printed: pa.Array) -> pa.Array:
    """Timestamps without the place that a year's sign has, unless it is before Christ."""
    return pc.utf8_ltrim(printed, " ")


def _numbers(text: pa.Array, schema: TableSchema, column: Column, kind: pa.DataType) -> pa.Array:
    """Canonical text as the type that the lake has.

    Raises:
        DecodeError: A number does not fit.
    """
    try:
        return text.cast(kind)
    except pa.ArrowInvalid:
        raise DecodeError(
            f"a number does not fit the type {column.form} that columns_as sets for its column",
            hint=f"Name a larger decimal, text or double there, then run `redolake table resnapshot --fresh {ANY_TABLE}`.",
            table=schema.table,
            column=column.name,
        ) from None


def _canonical(printed: pa.Array, kind: Printed, schema: TableSchema, column: Column) -> pa.Array:
    """Times with zone and intervals in the form of the lake.

    Raises:
        DecodeError: A time is before the year 1, or a day that the Gregorian calendar lacks.
    """
    form = _CANONICAL[kind]
    texts = [None if text is None else form(text) for text in printed.to_pylist()]
    array = pa.array(texts, pa.string())
    if array.null_count != printed.null_count:
        raise no_such_day(column.name, as_text=False, table=schema.table)
    return array


_CANONICAL = {
    Printed.ZONED: zoned_text,
    Printed.YEAR_TO_MONTH: year_to_month_text,
    Printed.DAY_TO_SECOND: day_to_second_text,
}


def _number_text(stored: pa.Array) -> pa.Array:
    # The compiled decoder takes a second to import, and most tables have no column that needs it.
    from cdc_core.decode.values import number_text

    return number_text(stored)
