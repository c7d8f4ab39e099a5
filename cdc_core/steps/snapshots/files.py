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
from datetime import UTC, datetime

import pyarrow as pa

from cdc_core.lake.apply.chunk_prewrite import ChunkAhead
from cdc_core.landing.manifest import ChunkManifest
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.records import ChunkRecord
from cdc_core.model.scn import Scn
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.table import TableSchema
from cdc_core.snapshot.plan import ChunkRange, chunk_part
from cdc_core.snapshot.read import read_chunk
from cdc_core.steps.context import Context

Passing = Callable[[pa.RecordBatch], None]


class ChunkFiles:
    """The files of chunks that were read and are not applied yet. Safe for use from several
    threads."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._lock = threading.Lock()
        self._held: dict[ChunkKey, ChunkAhead] = {}
        self._closed = False

    def begin(
        self,
        key: ChunkKey,
        schema: TableSchema,
        scn: Scn,
        began: datetime,
        *,
        scn_high: Scn | None = None,
        have_own_keys: bool = False,
    ) -> ChunkAhead | None:
        """Begin a chunk's files; None where they are not worth while."""
        self.discard(key)
        ahead = self._ctx.table_lake(self._ctx.table_record(key.table)).begin_chunk(
            schema,
            key.snapshot_id,
            key.number,
            scn,
            began.replace(tzinfo=None),
            scn_high=scn_high,
            have_own_keys=have_own_keys,
        )
        if ahead is None:
            return None
        with self._lock:
            if not self._closed:
                self._held[key] = ahead
                return ahead
        ahead.discard()
        return None

    def take(self, key: ChunkKey) -> ChunkAhead | None:
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
def writing(
    files: ChunkFiles | None,
    key: ChunkKey,
    schema: TableSchema,
    scn: Scn,
    began: datetime,
    *,
    scn_high: Scn | None = None,
    have_own_keys: bool = False,
) -> Iterator[Passing | None]:
    """For the block that reads a chunk: what is to be called with each batch. If the block ends
    with an error, the files go."""
    ahead = None
    if files is not None:
        ahead = files.begin(key, schema, scn, began, scn_high=scn_high, have_own_keys=have_own_keys)
    if files is None or ahead is None:
        yield None
        return
    try:
        yield ahead.write
    except BaseException:
        files.discard(key)
        raise
    ahead.end()


@contextmanager
def taken(files: ChunkFiles | None, key: ChunkKey) -> Iterator[ChunkAhead | None]:
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
    key = ChunkKey(record.table, record.snapshot_id, record.number)
    part, began = chunk_part(record.range), datetime.now(UTC)
    own_keys = isinstance(part, ChunkRange) and part.are_of_key(schema)
    with writing(
        files, key, schema, scn, began, scn_high=scn_high, have_own_keys=own_keys
    ) as passing:
        return read_chunk(
            session,
            schema,
            part,
            source=ctx.source,
            snapshot_id=record.snapshot_id,
            number=record.number,
            scn=scn,
            scn_high=scn_high,
            condition=record.condition,
            landing=ctx.landing,
            rows=ctx.config.oracle.fetch_rows,
            masks=ctx.masks(record.table),
            replacing=ctx.config.replacing(record.table),
            began=began,
            passing=passing,
            settle=settle,
        )
