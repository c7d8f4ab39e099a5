"""How does a table get Delta tables again that were lost or damaged, without Oracle?

A mirror comes from its change log. Where the change log is lost too, both come from landing: the
table is set back to the moment at which its chunks had landed and nothing was applied, under a new
generation, and takes chunks and windows again by the same steps as the first time. So whatever ends
such a rebuild, the next run goes on with it.
"""

from __future__ import annotations

import logging
import time

from cdc_core.errors import ConfigError, LandingDamagedError
from cdc_core.landing.kept import kept_retired
from cdc_core.landing.layout import chunk_folder, window_folder
from cdc_core.landing.manifest import MANIFEST_NAME
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import ChunkRecord, TableRecord, WindowRecord
from cdc_core.model.reports import StepReport, TableApplied
from cdc_core.steps.context import Context, seconds_since
from cdc_core.steps.snapshots.apply import apply_chunk
from cdc_core.steps.windows.apply import apply_window

_LOG = logging.getLogger(__name__)


def rebuild_mirror(ctx: Context, table: TableId) -> StepReport:
    """Write a table's mirror anew from its change log alone, as of the last window that the change
    log holds.

    Windows that follow are applied to it as before. Repeatable; readers see the old rows until the
    one commit.

    Raises:
        ConfigError: The table is not known, or its first snapshot is not complete.
        LakeError: There is no change log, or it does not hold the beginning of every row.
    """
    started = time.monotonic()
    with ctx.writing(table) as lease:
        record = ctx.table_record(table)
        if record.mirror_scn is None:
            raise ConfigError(
                "the table's snapshot is not complete, so there is no mirror to rebuild",
                hint="`redolake snapshot` completes it.",
                table=table,
                state=record.state,
            )
        schema = ctx.visible(ctx.store.schemas.versions(table)[-1].schema)
        lake = ctx.table_lake(record, lease.check)
        rows = lake.rebuild_mirror(schema)
        # The change log may be ahead of the metadata store; windows without changes leave no mark
        # in it.
        written = lake.position().mirror_scn or 0
    _LOG.info("mirror rebuilt table=%s rows=%d", table, rows)
    return ctx.reported(
        StepReport(
            kind="mirror-rebuilt",
            key=str(table),
            seconds=seconds_since(started),
            rows=rows,
            table=table,
            scn_high=max(record.mirror_scn, written),
            tables=(TableApplied(table=table, rows_inserted=rows),),
        )
    )


def rebuild_from_landing(ctx: Context, table: TableId) -> StepReport:
    """Write a table's change log and mirror anew from the chunks and windows in landing; what is
    left of the old ones is moved aside.

    Readers find no tables until the first chunk is in. Repeatable: a rebuild that was cut short is
    gone on with by the next one, and by every run.

    Raises:
        ConfigError: The table is not captured any more, or its snapshot has not landed.
        LandingDamagedError: Landing lacks a chunk or a window; nothing has changed then.
        CdcError: As for :func:`apply_chunk` and :func:`apply_window`.
    """
    started = time.monotonic()
    # Nobody retires what was found in landing before the table wants it again.
    with ctx.lease("retire", wait_seconds=60), ctx.writing(table) as lease:
        record = ctx.table_record(table)
        chunks = _landed_chunks(ctx, record)
        windows = _landed_windows(ctx, record)
        ctx.store.tables.retake_stream(record, chunks)
        ctx.lake.table(table, record.generation + 1, lease.check).set_aside()
    _LOG.info(
        "table is rebuilt from landing table=%s chunks=%d windows=%d",
        table,
        len(chunks),
        len(windows),
    )
    for chunk in chunks:
        apply_chunk(ctx, chunk.chunk_key)
    applied = [
        one for window in windows for one in apply_window(ctx, window.window, [table]).tables
    ]
    inserted = sum(one.rows_inserted for one in applied) + sum(chunk.rows or 0 for chunk in chunks)
    return ctx.reported(
        StepReport(
            kind="table-rebuilt",
            key=str(table),
            seconds=seconds_since(started),
            rows=inserted,
            table=table,
            scn_high=ctx.table_record(table).mirror_scn,
            facts={"chunks": len(chunks), "windows": len(windows)},
        )
    )


def _landed_chunks(ctx: Context, record: TableRecord) -> list[ChunkRecord]:
    """The chunks of the table's present stream, ad hoc ones included, in the order in which they
    were read."""
    if not record.is_captured or record.snapshot_scn is None or record.snapshot_id is None:
        raise ConfigError(
            "the table is not captured now, so landing does not have its latest changes",
            hint=f"`redolake table resnapshot {record.table.argument} --fresh` reads it from Oracle into new Delta tables.",
            table=record.table,
            state=record.state,
        )
    stream = [
        chunk
        for chunk in ctx.store.chunks.find(record.table, states=("landed", "applied"))
        if chunk.snapshot_id == record.snapshot_id or chunk.scn >= record.snapshot_scn
    ]
    own = ctx.store.chunks.find(record.table, snapshot_id=record.snapshot_id)
    if not own or any(chunk.state == "planned" for chunk in own):
        raise ConfigError(
            "the table's snapshot has not landed yet",
            hint="`redolake snapshot` reads and applies the rest of it.",
            table=record.table,
        )
    for chunk in stream:
        folder = chunk_folder(ctx.source, chunk.chunk_key)
        if not ctx.landing.exists(folder, MANIFEST_NAME):
            raise _lost(record, folder=folder)
    return sorted(stream, key=lambda chunk: (chunk.scn, chunk.snapshot_id, chunk.number))


def _landed_windows(ctx: Context, record: TableRecord) -> list[WindowRecord]:
    """The captured windows of the table's present stream."""
    retired = kept_retired(ctx.landing, ctx.source_record())
    touched = retired.touched.get(str(record.table), 0)
    if touched > (record.snapshot_scn or 0):
        raise _lost(record, retired_up_to=touched)
    windows = [
        window
        for window in ctx.store.windows.find(states=("captured", "applied"))
        if window.ordinal >= record.first_ordinal
    ]
    for window in windows:
        folder = window_folder(ctx.source, window.window)
        if not ctx.landing.exists(folder, MANIFEST_NAME):
            raise _lost(record, folder=folder)
    return windows


def _lost(record: TableRecord, **facts: object) -> LandingDamagedError:
    return LandingDamagedError(
        "landing lacks chunks or windows of the table",
        hint=f"`redolake table resnapshot {record.table.argument} --fresh` reads it from Oracle into new Delta tables.",
        table=record.table,
        **facts,
    )
