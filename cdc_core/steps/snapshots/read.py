"""How does one chunk get from Oracle into landing?"""

from __future__ import annotations

import logging
import time

from cdc_core.errors import (
    AlteredMeanwhileError,
    CdcError,
    SchemaMismatchError,
    SnapshotTooOldError,
)
from cdc_core.landing.layout import chunk_folder
from cdc_core.landing.manifest import MANIFEST_NAME, ChunkManifest
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.records import ChunkRecord
from cdc_core.model.reports import StepReport
from cdc_core.model.scn import Scn
from cdc_core.oracle.after_ddl import read_after_ddl
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.schema.evolution import identified
from cdc_core.schema.table import TableSchema
from cdc_core.steps.context import Context, seconds_since
from cdc_core.steps.overtaken import overtaken_at_chunk
from cdc_core.steps.snapshots.control import refuse_held
from cdc_core.steps.snapshots.other_scn import (
    altered,
    broken,
    refuse_altered,
    refuse_changed_key,
    rows_may_leave,
)
from cdc_core.steps.snapshots.shared import chunk_manifest, chunk_record, land_chunk
from cdc_core.steps.snapshots.watermarks import goes_between, read_between
from cdc_core.steps.table_errors import stop_alone

_LOG = logging.getLogger(__name__)

SNAPSHOT_ATTEMPTS = 3
"""How often a chunk is read, each time at a newer SCN, before ORA-01555, or DDL, stops it."""

_ALTERED_SINCE = frozenset({"ORA-01466", "ORA-00904", "ORA-08103"})
"""What Oracle answers where the table was altered since the SCN, and does not look back over
that."""


def snapshot_chunk(ctx: Context, key: ChunkKey) -> StepReport:
    """Read one chunk from Oracle into landing, unless it has landed, or is applied.

    Raises:
        LandingDamagedError: It has landed and is damaged.
        SnapshotPausedError: Snapshots are paused.
        OvertakenError: Another process read it meanwhile.
        WindowFirstError: Its key can be told when windows up to its SCN are captured.
        TableStoppedError: The table failed, by something that is about it alone.
    """
    started = time.monotonic()
    refuse_held(ctx, key)
    folder = chunk_folder(ctx.source, key)
    with (
        overtaken_at_chunk(ctx, key),
        ctx.lease(f"chunk/{key.table}/{key.key}", wait_seconds=30),
        stop_alone(ctx, key.table),
    ):
        record = chunk_record(ctx, key)
        repeated = ctx.landing.exists(folder, MANIFEST_NAME)
        if record.state == "applied" and not repeated:
            return _retired(ctx, record)
        if not repeated:
            ctx.database.read(lambda session: _read(session, ctx, record))
        manifest, sha256 = chunk_manifest(ctx, key)
        ctx.landing.local_paths(folder, manifest.files)
        if record.state == "planned":
            ctx.store.chunks.record_landed(manifest, sha256)
        return ctx.reported(
            StepReport(
                kind="chunk-landed",
                key=key.key,
                seconds=seconds_since(started),
                rows=manifest.rows,
                bytes=sum(file.bytes for file in manifest.files),
                table=key.table,
                scn_high=manifest.read_up_to,
                repeated=repeated,
            )
        )


def _retired(ctx: Context, record: ChunkRecord) -> StepReport:
    """What there is to say of a chunk that is applied, and whose files are gone from landing."""
    return ctx.reported(
        StepReport(
            kind="chunk-landed",
            key=record.chunk_key.key,
            seconds=0.0,
            rows=record.rows or 0,
            table=record.table,
            scn_high=record.scn,
            repeated=True,
        )
    )


def _read(
    session: OracleSession,
    ctx: Context,
    record: ChunkRecord,
) -> ChunkManifest:
    """Read the chunk as ``snapshot.read`` says. Errors are those of both ways."""
    if ctx.config.snapshot_of(record.table).read == "watermarks":
        return read_between(session, ctx, record)
    try:
        return _read_at_some_scn(session, ctx, record)
    except CdcError as error:
        if not goes_between(ctx, record.table, error):
            raise
        _LOG.warning("a chunk is read between watermarks: %s", error)
    return read_between(session, ctx, record)


def _read_at_some_scn(
    session: OracleSession,
    ctx: Context,
    record: ChunkRecord,
) -> ChunkManifest:
    """Read the chunk as of its planned SCN, or a newer one if undo is gone, or a DDL came that
    Oracle does not look back over: by the apply rule, either is right. Where a row may have come
    into a range that was read before, and no redo has all of it (:func:`rows_may_leave`), the
    planned SCN is that of all chunks.

    Raises:
        SnapshotBrokenError: That one SCN cannot be read any more.
        SchemaMismatchError: What the table has become cannot be followed.
        WindowFirstError: That may be, when windows up to the SCN are captured.
    """
    scn = record.scn
    planned: TableSchema | None = None
    is_altered = False
    for attempt in range(SNAPSHOT_ATTEMPTS):
        before = ctx.store.schemas.at(record.table, scn)
        schema = read_table_schema(session, ctx.config.table(record.table), scn=scn, before=before)
        schema = identified(before, schema) if before else schema
        refuse_changed_key(ctx, schema, scn)
        if planned is not None:
            refuse_altered(record, before or planned, ctx.visible(schema))
        if is_altered and rows_may_leave(ctx, session, record, schema):
            raise altered(record)
        planned = schema

        def read(schema: TableSchema = schema, scn: Scn = scn) -> ChunkManifest:
            return land_chunk(session, ctx, record, schema, scn)

        try:
            return read_after_ddl(session, [record.table], read)
        except SnapshotTooOldError as error:
            if rows_may_leave(ctx, session, record, schema):
                raise broken(record, "rows may have come into a range that was read") from error
            if attempt + 1 == SNAPSHOT_ATTEMPTS:
                raise
            scn = current_scn(session)
        except AlteredMeanwhileError:
            if attempt + 1 == SNAPSHOT_ATTEMPTS:
                raise
        except SchemaMismatchError as error:
            if error.facts.get("ora") not in _ALTERED_SINCE or attempt + 1 == SNAPSHOT_ATTEMPTS:
                raise
            is_altered = True
            _LOG.info("a DDL came before a chunk was read; it is read at a newer SCN table=%s chunk=%d", record.table, record.number)  # fmt: skip
            scn = current_scn(session)
    raise AssertionError("every attempt returns or raises")
