"""Whose landing files of chunks are needed no more?

A chunk that is applied is read from landing by ``redolake table rebuild --from-landing`` alone,
which needs all chunks of the table's present stream, and all windows that brought it changes since.
So chunks of earlier streams and of tables that left are needed by nobody; nor are those of the
present stream once such a window was retired.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from cdc_core.errors import LandingDamagedError
from cdc_core.landing.kept import RetiredWindows, kept_retired
from cdc_core.landing.layout import chunk_folder, chunks_folder
from cdc_core.landing.manifest import moment_of
from cdc_core.model.records import ChunkRecord, TableRecord
from cdc_core.steps.context import LOG, Context
from cdc_core.steps.snapshots.shared import chunk_manifest


def retire_chunks(ctx: Context) -> list[str]:
    """Remove the landing files of applied chunks that landed more than ``retention.chunk_days`` ago
    and that nothing needs any more; their folders. Repeatable. One whose manifest is damaged stays.
    """
    days = ctx.config.retention.chunk_days
    if days is None or ctx.store.source.get() is None:
        return []
    before = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=days)
    removed = []
    with ctx.lease("retire", wait_seconds=60):
        retired = kept_retired(ctx.landing, ctx.source_record())
        for record in ctx.store.tables.all():
            there = set(ctx.landing.list_folders(chunks_folder(ctx.source, record.table)))
            is_needed = _needed(record, retired)
            for chunk in ctx.store.chunks.find(record.table, states=("applied",)):
                key = chunk.chunk_key
                folder = chunk_folder(ctx.source, key)
                if folder not in there or is_needed(chunk):
                    continue
                with suppress(LandingDamagedError):
                    manifest, _ = chunk_manifest(ctx, key)
                    if moment_of(manifest.landed) < before:
                        ctx.landing.remove(folder)
                        removed.append(folder)
    if removed:
        LOG.info("landing files of chunks were removed chunks=%d", len(removed))
    return removed


def _needed(record: TableRecord, retired: RetiredWindows) -> Callable[[ChunkRecord], bool]:
    """Which chunks would a rebuild of the table from landing take?"""
    begins = record.snapshot_scn
    lacks_windows = retired.touched.get(str(record.table), 0) > (begins or 0)
    if begins is None or not record.is_captured or lacks_windows:
        return lambda _chunk: False
    return lambda chunk: chunk.snapshot_id == record.snapshot_id or chunk.scn >= begins
