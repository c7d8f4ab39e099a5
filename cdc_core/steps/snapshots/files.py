"""Which files of chunks does this process write while it reads them, since it will apply them
itself?

Reading a chunk and applying it are steps of their own, and any process may do either. Whoever
carries chunks through both keeps the files that :mod:`cdc_core.lake.apply.chunk_prewrite` writes
here in between. They save time and decide nothing: a chunk without them is applied from landing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa

from cdc_core.lake.apply.chunk_prewrite import ChunkPrewrite
from cdc_core.landing.manifest import ChunkManifest
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.records import ChunkRecord
from cdc_core.model.scn import Scn
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.table import TableSchema
from cdc_core.snapshot.plan import chunk_part
from cdc_core.snapshot.read import read_chunk, unread_chunk
from cdc_core.steps.context import Context
from cdc_core.steps.snapshots.shared import fetch_options

Passing = Callable[[pa.RecordBatch], None]


class ChunkFiles:
    """The files of chunks that were read and are not applied yet. Safe for use from several
    threads."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._lock = threading.Lock()
        self._held: dict[ChunkKey, ChunkPrewrite] = {}
        self._closed = False

    def begin(self, manifest: ChunkManifest) -> ChunkPrewrite | None:
        """Begin a chunk's files; None where they are not worth while."""
        key = manifest.chunk_key
        self.discard(key)
        ahead = self._ctx.table_lake(self._ctx.table_record(key.table)).begin_chunk(manifest)
        if ahead is None:
            return None
        with self._lock:
            if not self._closed:
                self._held[key] = ahead
                return ahead
        ahead.discard()
        return None

    def take(self, key: ChunkKey) -> ChunkPrewrite | None:
        """Hand a chunk's files out; whoever takes them discards what is left of them."""
        with self._lock:
            return self._held.pop(key, None)

    def discard(self, key: ChunkKey) -> None:
        """Remove a chunk's files."""
        ahead = self.take(key)
        if ahead is not None:
            ahead.discard()

    def close(self) -> None:
        """Remove all files that nobody took; none are begun from here on."""
        with self._lock:
            self._closed = True
            left = list(self._held)
        for key in left:
            self.discard(key)


@contextmanager
def writing(files: ChunkFiles | None, manifest: ChunkManifest) -> Iterator[Passing | None]:
    """For the block that reads a chunk: what is to be called with each batch. If the block ends
    with an error, the files go."""
    ahead = None if files is None else files.begin(manifest)
    if files is None or ahead is None:
        yield None
        return
    try:
        yield ahead.write
    except BaseException:
        files.discard(manifest.chunk_key)
        raise
    ahead.end()


@contextmanager
def taken(files: ChunkFiles | None, key: ChunkKey) -> Iterator[ChunkPrewrite | None]:
    """For the block that applies a chunk: its files, if some were written. What the block does not
    take goes."""
    ahead = None if files is None else files.take(key)
    try:
        yield ahead
    finally:
        if ahead is not None:
            ahead.discard()


def land_chunk(
    session: OracleSession,
    ctx: Context,
    record: ChunkRecord,
    schema: TableSchema,
    scn: Scn,
    files: ChunkFiles | None,
    *,
    scn_high: Scn | None = None,
    settle: Callable[[], None] | None = None,
) -> ChunkManifest:
    """Read a chunk into landing, and its files with it. ``scn``, ``scn_high``, ``settle`` and
    errors are those of :func:`~cdc_core.snapshot.read.read_chunk`."""
    part = chunk_part(record.range)
    manifest = unread_chunk(ctx.source, schema, record.chunk_key, part, scn, record.condition)
    manifest = replace(manifest, scn_high=scn_high)
    with writing(files, manifest) as passing:
        return read_chunk(
            session,
            manifest,
            part,
            ctx.landing,
            fetch_options(ctx, record.table),
            masks=ctx.masks(record.table),
            passing=passing,
            settle=settle,
        )
