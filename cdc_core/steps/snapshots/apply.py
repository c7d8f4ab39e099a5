"""How does a landed chunk get into change log and mirror?"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from cdc_core.errors import NotYetError
from cdc_core.lake.table_context import Fence
from cdc_core.landing.layout import chunk_folder
from cdc_core.landing.manifest import MANIFEST_NAME
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.records import ChunkRecord, TableRecord
from cdc_core.model.reports import StepReport, TableApplied
from cdc_core.model.scn import Scn
from cdc_core.schema.evolution import identified, judge
from cdc_core.schema.table import TableSchema
from cdc_core.snapshot.keys import key_values
from cdc_core.snapshot.plan import ChunkKeys, chunk_part
from cdc_core.steps.context import Context, seconds_since
from cdc_core.steps.foreign_commits import refuse_foreign
from cdc_core.steps.overtaken import overtaken_at_chunk
from cdc_core.steps.positions import publish_positions
from cdc_core.steps.snapshots.shared import (
    chunk_manifest,
    chunk_record,
    is_of_whole_table,
    need_windows,
    refuse_mixed,
)
from cdc_core.steps.table_errors import retried_out_of_memory, stop_alone


def apply_chunk(ctx: Context, key: ChunkKey) -> StepReport:
    """Put a landed chunk into change log and mirror; harmless when repeated, whatever was applied
    since.

    Raises:
        OvertakenError: Another process applied it meanwhile.
        NotYetError: The chunk has not landed, or its columns can be told apart when windows up to
            its SCN are captured.
        TableStoppedError: The table failed, by something that is about it alone.
    """
    started = time.monotonic()
    with (
        overtaken_at_chunk(ctx, key),
        ctx.writing(key.table) as lease,
        stop_alone(ctx, key.table),
    ):
        record = chunk_record(ctx, key)
        if record.state == "planned":
            raise NotYetError(
                "this chunk has not landed yet",
                hint="Run `redolake snapshot`, which reads and applies chunks.",
                table=key.table,
                chunk=key.key,
            )
        table = ctx.table_record(key.table)
        if _is_of_an_earlier_stream(record, table) or _is_retired(ctx, record):
            return _report(ctx, record, started, TableApplied(table=key.table, skipped=True))
        lake = ctx.table_lake(table, lease.check)
        refuse_foreign(table, lake.position())
        manifest, _ = chunk_manifest(ctx, key)
        manifest = replace(manifest, schema=_taken_in(ctx, manifest.schema, manifest.scn))
        paths = ctx.landing.local_paths(chunk_folder(ctx.source, key), manifest.files)
        asked = _asked(record, manifest.schema)
        refuse_mixed(ctx, table)
        applied = retried_out_of_memory(
            lambda: lake.apply_chunk(manifest, paths, position=table.mirror_scn, asked=asked)
        )
        gone = retried_out_of_memory(lambda: _settle(ctx, record, table, lease.check))
        applied = replace(
            applied,
            changes=applied.changes + gone.changes,
            rows_deleted=applied.rows_deleted + gone.rows_deleted,
        )
        ctx.store.chunks.record_applied(key, seconds=seconds_since(started))
        ctx.store.tables.finish_snapshot(key.table)
        publish_positions(ctx)
        return _report(
            ctx, replace(record, rows=manifest.rows, scn=manifest.read_up_to), started, applied
        )


def _is_of_an_earlier_stream(chunk: ChunkRecord, table: TableRecord) -> bool:
    """Was the chunk applied before the table joined anew? Delta tables that were begun since do not
    know it, and have no change that deletes what it has and the new snapshot has not."""
    return chunk.state == "applied" and chunk.scn < (table.snapshot_scn or 0)


def _is_retired(ctx: Context, chunk: ChunkRecord) -> bool:
    """Is the chunk applied, and gone from landing since?"""
    folder = chunk_folder(ctx.source, chunk.chunk_key)
    return chunk.state == "applied" and not ctx.landing.exists(folder, MANIFEST_NAME)


def _report(ctx: Context, chunk: ChunkRecord, started: float, applied: TableApplied) -> StepReport:
    return ctx.reported(
        StepReport(
            kind="chunk-applied",
            key=chunk.chunk_key.key,
            seconds=seconds_since(started),
            rows=chunk.rows or 0,
            table=chunk.table,
            scn_high=chunk.scn,
            repeated=applied.skipped,
            tables=(applied,),
        )
    )


def _taken_in(ctx: Context, schema: TableSchema, scn: Scn) -> TableSchema:
    """The columns of a chunk that the table has: a column that was left out comes back when the
    table joins anew, since an ad hoc snapshot may hold some of its rows only.

    Which of them had other names, the dictionary does not say. The captured windows do, whether or
    not they are applied.
    """
    newest = ctx.store.schemas.versions(schema.table)[-1].schema
    taken = ctx.visible(schema).without(newest.excluded)
    known = ctx.store.schemas.at(schema.table, scn)
    if known is None:
        return taken
    taken = identified(known, taken)
    evolution = judge(known, taken)
    if evolution.refusal is not None:
        need_windows(ctx, schema.table, scn, evolution.refusal)
    return evolution.followed(known, taken)


def _asked(record: ChunkRecord, schema: TableSchema) -> list[tuple[Any, ...]] | None:
    part = chunk_part(record.range)
    if not isinstance(part, ChunkKeys):
        return None
    return [key_values(key, schema) for key in part.keys]


def _settle(ctx: Context, record: ChunkRecord, table: TableRecord, fence: Fence) -> TableApplied:
    """With the last chunk of a snapshot of the whole table, delete what no chunk has. With the last
    one of such a snapshot, or of a repair, the quarantine's rows up to it count no more: whatever
    they changed was read.

    It comes before the chunk is recorded as applied, so that a crash between the two finds it
    again.
    """
    gone = TableApplied(table=record.table)
    if not ctx.store.chunks.are_others_applied(record.chunk_key):
        return gone
    chunks = ctx.store.chunks.find(record.table, record.snapshot_id)
    lowest = min(chunk.scn for chunk in chunks)
    is_whole = all(is_of_whole_table(ctx, chunk, table) for chunk in chunks)
    if is_whole:
        lake = ctx.table_lake(table, fence)
        gone = lake.delete_missing_keys(record.snapshot_id, lowest, position=table.mirror_scn)
    if is_whole or all(isinstance(chunk_part(chunk.range), ChunkKeys) for chunk in chunks):
        settle_quarantine(ctx, table, lowest, fence)
    return gone


def settle_quarantine(ctx: Context, table: TableRecord, scn: int, fence: Fence) -> None:
    """Rows in quarantine that committed at or below an SCN count no more, since all that they
    changed was read as of it."""
    if table.in_quarantine:
        rows = ctx.table_lake(table, fence).resolve_quarantine(scn)
        ctx.store.tables.note_quarantine(table.table, rows)
