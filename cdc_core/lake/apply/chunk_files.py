"""How do a chunk's landed files become files of both Delta tables?

They land with the mirror's columns, so that the mirror takes them as they are. A change log's file
has the same pages as the struct ``after``, beside the few columns that say of its rows what they
are. No row is read or encoded again. Where a table has other columns by now, or its files have
other names (column mapping), there is no such file, and the rows are encoded
(:class:`cdc_core.stage.snapshot.ChunkRows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq

from cdc_core.delta.appending import NewFile, remove_file
from cdc_core.delta.history import read_log
from cdc_core.delta.placed_files import place_file, place_nested
from cdc_core.lake.table_context import TableWork
from cdc_core.lake.tables import CHANGELOG_INDEXED, MIRROR_INDEXED
from cdc_core.landing.manifest import ChunkManifest
from cdc_core.schema.table import TableSchema
from cdc_core.stage.layout import change_schema, chunk_ordinal, mirror_schema
from cdc_core.stage.snapshot import reading_chunk, repeated, snapshot_values

_AFTER = "after"


@dataclass(frozen=True, slots=True)
class LandedChunk:
    """A chunk that has landed: its manifest, with the columns that the table has of it, and the
    paths of its files on this machine. ``moment`` is when it landed, where the change log says
    so."""

    manifest: ChunkManifest
    paths: Sequence[str]
    moment: datetime | None

    @property
    def name(self) -> str:
        """What the change log calls it."""
        return f"{self.manifest.snapshot_id}/{self.manifest.number}"

    @property
    def ordinal(self) -> int:
        """The ordinal of its rows."""
        return chunk_ordinal(self.manifest.scn, self.manifest.scn_high)


def mirror_files(
    work: TableWork, chunk: LandedChunk, schema: TableSchema
) -> tuple[NewFile, ...] | None:
    """The chunk's files in the mirror's folder, which no commit names yet; None where the mirror,
    whose columns ``schema`` are, has others than they.

    Raises:
        LandingDamagedError: A file is missing or cannot be read.
        StoreUnavailableError: The disk is full or fails, or the bucket cannot be reached.
    """
    columns = mirror_schema(schema)
    indexed = columns.names[:MIRROR_INDEXED]
    with reading_chunk(schema):
        if not _have_columns(work.mirror, chunk, schema):
            return None
        paths = _with_rows(chunk)
        return tuple(place_file(work.mirror, path, columns, indexed) for path in paths)


def changelog_files(
    work: TableWork, chunk: LandedChunk, schema: TableSchema
) -> tuple[NewFile, ...] | None:
    """Files with the chunk's ``r`` rows in the change log's folder, which no commit names yet; None
    where the change log, whose columns ``schema`` are, has others than the chunk. Errors as for
    :func:`mirror_files`."""
    columns = change_schema(schema)
    values = snapshot_values(
        "r", chunk.name, chunk.manifest.scn, schema, chunk.moment, chunk.ordinal
    )
    kinds = pa.schema([columns.field(name) for name in values])

    def beside(rows: int) -> pa.RecordBatch:
        arrays = [repeated(values[one.name], rows, one.type) for one in kinds]
        return pa.RecordBatch.from_arrays(arrays, schema=kinds)

    files: list[NewFile] = []
    with reading_chunk(schema):
        if not _have_columns(work.changelog, chunk, schema):
            return None
        for path in _with_rows(chunk):
            file = place_nested(
                work.changelog, path, columns, _AFTER, beside, indexed=CHANGELOG_INDEXED
            )
            if file is None:
                for one in files:
                    remove_file(work.changelog, one)
                return None
            files.append(file)
    return tuple(files)


def _have_columns(table: str, chunk: LandedChunk, schema: TableSchema) -> bool:
    """Have the files the columns of a version of the table, as its Delta table has them?"""
    log = read_log(table)
    if chunk.manifest.schema.columns != schema.columns or (log is not None and log.is_mapped):
        return False
    wanted = mirror_schema(schema)
    return all(pq.read_schema(path).equals(wanted) for path in chunk.paths)


def _with_rows(chunk: LandedChunk) -> list[str]:
    return [path for path in chunk.paths if pq.read_metadata(path).num_rows]
