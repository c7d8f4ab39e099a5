"""Have the rows been read that came into a table without redo: those of a partition that was
exchanged?

What came in their place is read by the partition's bounds, as one chunk, as of the end of the
window in which the DDL is or later. Until that chunk is in the mirror, the table stands right
before the DDL, and takes no windows: an update that lacks columns would find no row to keep them
from. The others go on.

The chunk's id is the SCN of the DDL, so whoever comes to the DDL again, also in a store that was
made anew, asks for the same one.
"""

from __future__ import annotations

from cdc_core.landing.manifest import SchemaChange, WindowManifest
from cdc_core.model.chunks import NEW_ROWS
from cdc_core.model.json_form import as_json
from cdc_core.model.records import ChunkRecord
from cdc_core.snapshot.partition_condition import partition_condition
from cdc_core.snapshot.plan import ChunkRange
from cdc_core.steps.context import Context


def awaits_rows(ctx: Context, manifest: WindowManifest, change: SchemaChange) -> bool:
    """Must the table wait, right before this DDL, for rows that are not in its mirror? Their chunk
    is planned. Repeatable."""
    if not change.has_new_rows:
        return False
    chunk = chunk_of(ctx.source, manifest, change)
    known = ctx.store.chunks.get(chunk.chunk_key)
    if known is None:
        ctx.store.chunks.plan([chunk])
    return known is None or known.state != "applied"


def chunk_of(source: str, manifest: WindowManifest, change: SchemaChange) -> ChunkRecord:
    """The chunk that reads the rows which came with a DDL. Pure."""
    table = change.schema.table
    schema = next(one for one in manifest.schemas if one.table == table)
    return ChunkRecord(
        source=source,
        table=table,
        snapshot_id=f"{NEW_ROWS}{change.scn}",
        number=0,
        scn=manifest.window.scn_high,
        range=as_json(ChunkRange.whole()),
        condition=partition_condition(change.partitions, schema),
    )
