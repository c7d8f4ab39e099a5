"""What does the store or landing know of a chunk?"""

from __future__ import annotations

from cdc_core.errors import NotYetError, WindowFirstError
from cdc_core.landing.layout import chunk_folder
from cdc_core.landing.manifest import MANIFEST_NAME, ChunkManifest, digest_of, read_chunk_manifest
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import ChunkRecord, TableRecord
from cdc_core.schema.table import TableSchema
from cdc_core.snapshot.plan import ChunkRange, chunk_part
from cdc_core.steps.context import Context


def chunk_record(ctx: Context, key: ChunkKey) -> ChunkRecord:
    record = ctx.store.chunks.get(ctx.source, key.table, key.snapshot_id, key.number)
    if record is None:
        raise NotYetError(
            "this chunk is no longer planned: the table may have started a new snapshot",
            hint="`redolake snapshot` reads and applies the chunks that are planned now.",
            table=key.table,
            chunk=key.key,
        )
    return record


def chunk_manifest(ctx: Context, key: ChunkKey) -> tuple[ChunkManifest, str]:
    folder = chunk_folder(ctx.source, key.table, key.snapshot_id, key.number)
    content = ctx.landing.read(folder, MANIFEST_NAME)
    return read_chunk_manifest(content, where=f"{folder}/{MANIFEST_NAME}"), digest_of(content)


def is_of_whole_table(chunk: ChunkRecord) -> bool:
    """Does the chunk's snapshot speak for every row of its range, so that all its chunks together speak for the whole table?"""
    return chunk.condition is None and isinstance(chunk_part(chunk.range), ChunkRange)


def applied_chunks_scn(ctx: Context, schema: TableSchema, table: TableRecord) -> int:
    """The highest SCN as of which a chunk was read that the table's mirror has since it joined; 0 where the definition does not ask for it,
    since no column of it took the name of another one."""
    if not schema.displaced:
        return 0
    applied = ctx.store.chunks.find(ctx.source, schema.table, states=("applied",))
    return max((one.scn for one in applied if one.scn >= (table.snapshot_scn or 0)), default=0)


def need_windows(ctx: Context, table: TableId, scn: int, reason: str) -> None:
    """Before a chunk's definition is refused: is all redo up to it captured, which may say how it came about?

    Raises:
        WindowFirstError: It is not.
    """
    planned = ctx.store.windows.find(ctx.source, states=("planned",), limit=1)
    if planned:
        captured = int(planned[0].window.scn_low)
    else:
        newest = ctx.store.windows.find(ctx.source, newest_first=True, limit=1)
        captured = int(newest[0].window.scn_high) if newest else 0
    if captured < scn:
        raise WindowFirstError(
            "a chunk was read behind a DDL that no window has captured yet, and the dictionary alone does not say what it did",
            hint="`redolake run` captures windows up to there, and then applies the chunk.",
            table=table,
            scn=scn,
            reason=reason,
        )
