"""What do reading, applying and planning of chunks share?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from cdc_core.errors import NotYetError, WindowFirstError
from cdc_core.landing.layout import chunk_folder
from cdc_core.landing.manifest import MANIFEST_NAME, ChunkManifest, digest_of, read_chunk_manifest
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.json_form import as_json
from cdc_core.model.records import ChunkRecord, TableRecord
from cdc_core.model.scn import Scn
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.evolution import refuse_mixed_values, reused_names
from cdc_core.schema.table import TableSchema
from cdc_core.snapshot.cutting import plan_chunks
from cdc_core.snapshot.plan import ChunkPart, ChunkRange, chunk_part
from cdc_core.snapshot.read import FetchOptions, read_chunk, unread_chunk
from cdc_core.steps.context import Context
from cdc_core.steps.snapshots.row_filter import held_filter


def fetch_options(ctx: Context, table: TableId) -> FetchOptions:
    return FetchOptions(rows=ctx.config.oracle.fetch_rows, replacing=ctx.config.replacing(table))


def land_chunk(
    session: OracleSession,
    ctx: Context,
    record: ChunkRecord,
    schema: TableSchema,
    scn: Scn,
    *,
    scn_high: Scn | None = None,
    settle: Callable[[], None] | None = None,
) -> ChunkManifest:
    """Read a chunk into landing. ``scn``, ``scn_high``, ``settle`` and errors are those of
    :func:`~cdc_core.snapshot.read.read_chunk`."""
    part = chunk_part(record.range)
    manifest = unread_chunk(ctx.source, schema, record.chunk_key, part, scn, record.condition)
    return read_chunk(
        session,
        replace(manifest, scn_high=scn_high),
        part,
        ctx.landing,
        fetch_options(ctx, record.table),
        masks=ctx.masks(record.table),
        settle=settle,
    )


def chunk_record(ctx: Context, key: ChunkKey) -> ChunkRecord:
    record = ctx.store.chunks.get(key)
    if record is None:
        raise NotYetError(
            "this chunk is no longer planned: the table may have started a new snapshot",
            hint="`redolake snapshot` reads and applies the chunks that are planned now.",
            table=key.table,
            chunk=key.key,
        )
    if record.state == "dropped":
        raise NotYetError(
            "this chunk was dropped: a signal has stopped the snapshot",
            hint=f"`redolake snapshot --table {key.table.argument}` reads the table.",
            table=key.table,
            chunk=key.key,
        )
    return record


def chunk_manifest(ctx: Context, key: ChunkKey) -> tuple[ChunkManifest, str]:
    folder = chunk_folder(ctx.source, key)
    content = ctx.landing.read(folder, MANIFEST_NAME)
    return read_chunk_manifest(content, where=f"{folder}/{MANIFEST_NAME}"), digest_of(content)


def ranges_of(
    ctx: Context,
    session: OracleSession,
    schema: TableSchema,
    scn: Scn | None,
    condition: str | None,
    chunk_by: str | None = None,
) -> list[ChunkRange]:
    """The chunks into which a snapshot of the table is cut (:func:`plan_chunks`), as it was or is
    now."""
    config = ctx.config.snapshot_of(schema.table)
    return plan_chunks(
        session, schema, scn=scn, config=config, condition=condition, chunk_by=chunk_by
    )


def chunk_records(
    ctx: Context,
    table: TableId,
    snapshot_id: str,
    scn: Scn,
    parts: Sequence[ChunkPart],
    condition: str | None,
    signal_id: str | None = None,
) -> list[ChunkRecord]:
    """The parts of a table as planned chunks of one snapshot."""
    return [
        ChunkRecord(
            source=ctx.source,
            table=table,
            snapshot_id=snapshot_id,
            number=number,
            scn=scn,
            range=as_json(part),
            condition=condition,
            signal_id=signal_id,
        )
        for number, part in enumerate(parts)
    ]


def is_of_whole_table(ctx: Context, chunk: ChunkRecord, table: TableRecord) -> bool:
    """Does the chunk's snapshot speak for every row of its range that the table's snapshots read,
    so that all its chunks together speak for the whole table?"""
    if not isinstance(chunk_part(chunk.range), ChunkRange):
        return False
    if chunk.condition in (None, table.row_filter):
        return True
    schema = ctx.store.schemas.at(chunk.table, chunk.scn)
    return schema is not None and chunk.condition == held_filter(ctx, table, schema)


def refuse_mixed(ctx: Context, table: TableRecord) -> None:
    """Refuse to go on where the mirror has a chunk that was read behind a DDL which gave a column's
    name to another one, as values of the first.

    Raises:
        SchemaMismatchError: It has one (:func:`~cdc_core.schema.evolution.refuse_mixed_values`).
    """
    versions = [one.schema for one in ctx.store.schemas.versions(table.table)]
    joined = table.snapshot_scn or 0
    taken = [scn for scn in reused_names(versions) if scn > joined]
    if not taken:
        return
    applied = ctx.store.chunks.find(table.table, states=("applied",))
    read = max((one.scn for one in applied if one.scn >= joined), default=0)
    known = ctx.table_lake(table).definition()
    if known is not None:
        newest = max((scn for scn in taken if scn <= read), default=0)
        refuse_mixed_values(known, versions, newest)


def need_windows(ctx: Context, table: TableId, scn: int, reason: str) -> None:
    """Before a chunk's definition is refused: is all redo up to it captured, which may say how it
    came about?

    Raises:
        WindowFirstError: It is not.
    """
    planned = ctx.store.windows.find(states=("planned",), limit=1)
    if planned:
        captured = int(planned[0].window.scn_low)
    else:
        newest = ctx.store.windows.find(newest_first=True, limit=1)
        captured = int(newest[0].window.scn_high) if newest else 0
    if captured < scn:
        raise WindowFirstError(
            "a chunk was read after a DDL that no window has captured yet, and the dictionary alone does not show its effect",
            hint="`redolake run` captures windows up to there, and then applies the chunk.",
            table=table,
            scn=scn,
            reason=reason,
        )
