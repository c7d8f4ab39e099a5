"""How do a chunk's landed rows become rows of change log and mirror?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cdc_core.decode.defaults import default_scalar
from cdc_core.decode.widened import widened
from cdc_core.errors import LandingDamagedError
from cdc_core.landing.damage import unless_away
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import arrow_schema
from cdc_core.stage.layout import (
    CHUNK_ORDINAL,
    COMMIT_SCN,
    ORDINAL,
    change_schema,
    mirror_schema,
)

BATCH_ROWS = 50_000

NAMES_MAX = 1_000_000
"""So many names of absent columns are held at once: each row of the change log lists its own."""


class ChunkRows:
    """The rows of a chunk with all columns of ``schema``, under its names: columns that were added
    after it was read (as ``own``) have their default, those that are left out now, or were dropped,
    are NULL."""

    def __init__(self, paths: Sequence[str], own: TableSchema, schema: TableSchema) -> None:
        self._paths = paths
        self._own = own
        self._schema = schema
        read = {one.stored_as: one.name for one in own.columns}
        self._names = {
            one.name: read[one.stored_as] for one in schema.columns if one.stored_as in read
        }

    def keys(self) -> pa.Table:
        """The key columns of all rows.

        Raises:
            LandingDamagedError: A file is missing or cannot be read.
        """
        names = list(self._schema.key)
        kinds = pa.schema([arrow_schema(self._schema).field(name) for name in names])
        return pa.Table.from_batches((batch.select(names) for batch in self.batches(names)), kinds)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows, or some of their columns.

        Raises:
            LandingDamagedError: A file is missing or cannot be read.
            SchemaMismatchError: A default is not a literal, so nobody knows the value of a row that
                does not carry it.
        """
        wanted = arrow_schema(self._schema)
        if columns is not None:
            wanted = pa.schema([wanted.field(name) for name in columns])
        own = [self._names[name] for name in wanted.names if name in self._names]
        with reading_chunk(self._schema):
            for path in self._paths:
                with pq.ParquetFile(path) as file:
                    for batch in file.iter_batches(BATCH_ROWS, columns=own):
                        arrays = [self._values(batch, field) for field in wanted]
                        yield pa.RecordBatch.from_arrays(arrays, schema=wanted)

    def _values(self, batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
        if field.name in self._names:
            return widened(batch[self._names[field.name]], field.type)
        default, column = None, self._schema.column(field.name)
        if field.name not in self._own.excluded and column.stored_as not in self._schema.dropped:
            default = default_scalar(column)
        if default is None:
            return pa.nulls(batch.num_rows, field.type)
        return pa.repeat(default.cast(field.type), batch.num_rows)

    def as_changes(
        self,
        name: str,
        scn: int,
        landed: datetime | None = None,
        *,
        ordinal: int = CHUNK_ORDINAL,
    ) -> Iterator[pa.RecordBatch]:
        """``r`` rows of the change log; ``name`` is the chunk's, ``scn`` the one as of which it was
        read, ``landed`` when, as far as the change log holds that, ``ordinal`` that of its rows
        (:func:`~cdc_core.stage.layout.chunk_ordinal`)."""
        fields = list(arrow_schema(self._schema.as_logged()))
        images = (
            pa.StructArray.from_arrays(batch.columns, fields=fields) for batch in self.batches()
        )
        values = snapshot_values("r", name, scn, self._schema, landed, ordinal)
        return image_rows("after", images, values, self._schema)

    def as_mirror(self, scn: int, *, ordinal: int = CHUNK_ORDINAL) -> Iterator[pa.RecordBatch]:
        """Rows of the mirror (:func:`mirror_rows`)."""
        return mirror_rows(self.batches(), scn, self._schema, ordinal=ordinal)


@contextmanager
def reading_chunk(schema: TableSchema) -> Iterator[None]:
    """For a block that reads the landed files of a chunk of a table.

    Raises:
        LandingDamagedError: A file is missing or cannot be read.
        StoreUnavailableError: The disk or the share does not give it now.
    """
    try:
        yield
    except (OSError, ValueError, KeyError) as error:
        damaged = LandingDamagedError(
            "a chunk's file is missing or cannot be read",
            hint="Check the folder; capture the chunk again if its files are damaged.",
            table=schema.table,
        )
        raise unless_away(error, damaged) from error


def image_rows(
    which: str, images: Iterable[pa.StructArray], values: Mapping[str, Any], schema: TableSchema
) -> Iterator[pa.RecordBatch]:
    """Rows of the change log that have one image each (``which``: ``before`` or ``after``), and in
    other columns the same ``values``, NULL where none is named."""
    target = change_schema(schema)
    for image in images:
        columns = [
            image.cast(one.type)
            if one.name == which
            else repeated(values.get(one.name), len(image), one.type)
            for one in target
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=target)


def mirror_rows(
    rows: Iterable[pa.RecordBatch],
    scn: int,
    schema: TableSchema,
    *,
    ordinal: int = CHUNK_ORDINAL,
) -> Iterator[pa.RecordBatch]:
    """Rows of the mirror, of rows with the columns of ``schema`` that were read as of ``scn``;
    ``ordinal`` is as for :meth:`ChunkRows.as_changes`."""
    columns = mirror_schema(schema)
    for batch in rows:
        place = [
            pa.repeat(pa.scalar(value, pa.int64()), batch.num_rows) for value in (scn, ordinal)
        ]
        yield pa.RecordBatch.from_arrays([*batch.columns, *place], schema=columns)


def are_double(keys: pa.Table) -> bool:
    """Does a key occur in two rows?"""
    if keys.num_rows == 0:
        return False
    first = keys.column(0)
    if keys.num_columns == 1 and pa.types.is_integer(first.type) and not first.null_count:
        # A tenth of the CPU of a hash table (measured), and most keys are such ones.
        numbers = np.sort(first.to_numpy())
        return bool((numbers[1:] == numbers[:-1]).any())
    counts = keys.group_by(keys.column_names, use_threads=False).aggregate([([], "count_all")])
    return bool(counts.num_rows < keys.num_rows)


def deletions(
    keys: Iterable[pa.RecordBatch],
    name: str,
    scn: int,
    schema: TableSchema,
    landed: datetime | None = None,
) -> Iterator[pa.RecordBatch]:
    """``d`` rows of the change log for keys that a snapshot found gone; they carry the key
    alone."""
    values = snapshot_values("d", name, scn, schema, landed)
    return image_rows("before", key_images(keys, schema), values, schema)


def key_images(keys: Iterable[pa.RecordBatch], schema: TableSchema) -> Iterator[pa.StructArray]:
    """The change log's images of rows of which nothing but the key is known, as many at once as
    :data:`NAMES_MAX` allows."""
    fields, columns = list(arrow_schema(schema.as_logged())), schema.column_names
    rows_max = min(BATCH_ROWS, max(1, NAMES_MAX // len(fields)))
    for batch in keys:
        for start in range(0, batch.num_rows, rows_max):
            rows = batch.slice(start, rows_max)
            values = [
                rows[name].cast(field.type)
                if name in schema.key
                else pa.nulls(rows.num_rows, field.type)
                for name, field in zip(columns, fields, strict=True)
            ]
            yield pa.StructArray.from_arrays(values, fields=fields)


def absent_of_keys(schema: TableSchema) -> list[str]:
    """What such a row of the change log lists as absent."""
    return [one.stored_as for one in schema.columns if one.name not in schema.key]


def replacing(rows: pa.Table, gone: pa.Table, schema: TableSchema) -> pa.Table:
    """What ``lake.mirror.merge.replace_sql`` and ``stage.merge.ReplaceMerge`` read: each key once
    as ``del``, and its row.

    Args:
        rows: Rows with the columns of ``stage.layout.mirror_schema``.
        gone: The key's columns of other keys, which have no row.
        schema: The table.
    """
    columns, own = mirror_schema(schema), rows.select(list(schema.key))
    keys = pa.concat_tables([own, gone.cast(own.schema)])
    deleted = pa.Table.from_arrays(
        [
            keys[one.name] if one.name in schema.key else pa.nulls(len(keys), one.type)
            for one in columns
        ],
        schema=columns,
    )
    kinds = pa.concat_arrays([pa.repeat("row", len(rows)), pa.repeat("del", len(keys))])
    return pa.concat_tables([rows, deleted]).append_column("_cdc_kind", kinds)


def snapshot_values(
    op: str,
    name: str,
    scn: int,
    schema: TableSchema,
    landed: datetime | None,
    ordinal: int = CHUNK_ORDINAL,
) -> dict[str, Any]:
    """What all rows of the change log that a chunk brought (``r``), or whose keys a snapshot found
    gone (``d``), say beside their images; NULL is left out."""
    absent = [] if op == "r" else absent_of_keys(schema)
    values = {
        "_cdc_op": op,
        COMMIT_SCN: scn,
        ORDINAL: ordinal,
        "_cdc_scn": scn,
        "_cdc_window": scn,
        "_cdc_snapshot": name,
        "_cdc_absent": absent,
        "_cdc_before_absent": absent,
        "_cdc_columns": len(schema.columns),
        "_cdc_landed": landed,
    }
    return {name: value for name, value in values.items() if value is not None}


def repeated(value: Any, rows: int, kind: pa.DataType) -> pa.Array:
    """One value for all rows. Arrow repeats a list row by row, which took a fifth of the CPU of a
    chunk's change log: offsets do it at once."""
    if value is None:
        return pa.nulls(rows, kind)
    if not isinstance(value, list):
        return pa.repeat(pa.scalar(value, kind), rows)
    offsets = np.arange(rows + 1, dtype=np.int32) * len(value)
    items = pa.array(value, kind.value_type).take(np.tile(np.arange(len(value)), rows))
    return pa.ListArray.from_arrays(offsets, items).cast(kind)
