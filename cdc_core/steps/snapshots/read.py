"""How does one chunk get from Oracle into landing?"""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime

from cdc_core.errors import (
    RenamedMeanwhileError,
    SchemaMismatchError,
    SnapshotBrokenError,
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
from cdc_core.schema.ddl_times import unchanged_since
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.schema.evolution import identified, judge
from cdc_core.schema.table import TableSchema
from cdc_core.snapshot.plan import ChunkRange, chunk_part
from cdc_core.snapshot.read import read_chunk
from cdc_core.steps.context import Context, seconds_since
from cdc_core.steps.overtaken import overtaken_at_chunk
from cdc_core.steps.snapshots.control import refuse_held
from cdc_core.steps.snapshots.files import ChunkFiles, writing
from cdc_core.steps.snapshots.shared import chunk_manifest, chunk_record, need_windows
from cdc_core.steps.stopping import stop_alone

_LOG = logging.getLogger(__name__)

SNAPSHOT_ATTEMPTS = 3
"""How often a chunk is read, each time at a newer SCN, before ORA-01555, or DDL, stops it."""

_ROW_MOVEMENT = "SELECT ROW_MOVEMENT FROM ALL_TABLES WHERE OWNER = :owner AND TABLE_NAME = :name"
_ALTERED_SINCE = frozenset({"ORA-01466", "ORA-00904"})
"""What Oracle answers where the table was altered since the SCN, and does not look back over
that."""


def snapshot_chunk(ctx: Context, key: ChunkKey, files: ChunkFiles | None = None) -> StepReport:
    """Read one chunk from Oracle into landing, unless it has landed, or is applied. With ``files``,
    the files of change log and mirror are written meanwhile.

    Raises:
        LandingDamagedError: It has landed and is damaged.
        SnapshotPausedError: Snapshots are paused.
        OvertakenError: Another process read it meanwhile.
        WindowFirstError: Its key can be told when windows up to its SCN are captured.
        TableStoppedError: The table failed, by something that is about it alone.
    """
    started = time.monotonic()
    refuse_held(ctx, key)
    folder = chunk_folder(ctx.source, key.table, key.snapshot_id, key.number)
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
            ctx.database.read(lambda session: _read_at_some_scn(session, ctx, key, record, files))
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
                scn_high=manifest.scn,
                repeated=repeated,
            )
        )


def _retired(ctx: Context, record: ChunkRecord) -> StepReport:
    """What there is to say of a chunk that is applied, and whose files are gone from landing."""
    return ctx.reported(
        StepReport(
            kind="chunk-landed",
            key=ChunkKey(record.table, record.snapshot_id, record.number).key,
            seconds=0.0,
            rows=record.rows or 0,
            table=record.table,
            scn_high=record.scn,
            repeated=True,
        )
    )


def _read_at_some_scn(
    session: OracleSession,
    ctx: Context,
    key: ChunkKey,
    record: ChunkRecord,
    files: ChunkFiles | None,
) -> ChunkManifest:
    """Read the chunk as of its planned SCN, or a newer one if undo is gone, or a DDL came that
    Oracle does not look back over: by the apply rule, either is right. Where equal rows are
    counted, a row that two chunks of different SCNs have counts twice, and nothing tells: there the
    planned SCN is that of all chunks. So it is where a row may have come into a range that was read
    before, and no redo has all of it (:func:`_rows_may_leave`).

    Raises:
        SnapshotBrokenError: That one SCN cannot be read any more.
        SchemaMismatchError: What the table has become cannot be followed.
        WindowFirstError: That may be, when windows up to the SCN are captured.
    """
    scn = record.scn
    planned: TableSchema | None = None
    is_altered = False
    for attempt in range(SNAPSHOT_ATTEMPTS):
        before = ctx.store.schemas.at(ctx.source, record.table, scn)
        schema = read_table_schema(session, ctx.config.table(record.table), scn=scn, before=before)
        schema = identified(before, schema) if before else schema
        _refuse_changed_key(ctx, schema, scn)
        if planned is not None:
            _refuse_altered(record, before or planned, ctx.visible(schema))
        if is_altered and (
            schema.is_by_all_columns or _rows_may_leave(ctx, session, record, schema)
        ):
            raise _altered(record)
        planned = schema

        def read(schema: TableSchema = schema, scn: Scn = scn) -> ChunkManifest:
            began = datetime.now(UTC)
            with writing(files, key, schema, scn, began) as passing:
                return read_chunk(
                    session,
                    schema,
                    chunk_part(record.range),
                    source=ctx.source,
                    snapshot_id=record.snapshot_id,
                    number=record.number,
                    scn=scn,
                    condition=record.condition,
                    landing=ctx.landing,
                    rows=ctx.config.oracle.fetch_rows,
                    masks=ctx.masks(record.table),
                    replacing=ctx.config.replacing(record.table),
                    began=began,
                    passing=passing,
                )

        try:
            return read_after_ddl(session, [record.table], read)
        except SnapshotTooOldError as error:
            if schema.is_by_all_columns:
                raise _broken(record, "its equal rows are counted") from error
            if _rows_may_leave(ctx, session, record, schema):
                raise _broken(record, "rows may have come into a range that was read") from error
            if attempt + 1 == SNAPSHOT_ATTEMPTS:
                raise
            scn = current_scn(session)
        except RenamedMeanwhileError:
            if attempt + 1 == SNAPSHOT_ATTEMPTS:
                raise
        except SchemaMismatchError as error:
            if error.facts.get("ora") not in _ALTERED_SINCE or attempt + 1 == SNAPSHOT_ATTEMPTS:
                raise
            is_altered = True
            _LOG.info("a DDL came before a chunk was read; it is read at a newer SCN table=%s chunk=%d", record.table, record.number)  # fmt: skip
            scn = current_scn(session)
    raise AssertionError("every attempt returns or raises")


def _rows_may_leave(
    ctx: Context, session: OracleSession, record: ChunkRecord, schema: TableSchema
) -> bool:
    """May a row have left the chunk's range since its SCN, for one of another chunk, or have come
    among those that the table's snapshots read, without redo that has all of it?

    Redo does not carry LOBs that an UPDATE leaves alone, and a DDL moves rows without any. A change
    of key is no question: it is an error where no chunk has the row.
    """
    part = chunk_part(record.range)
    if not isinstance(part, ChunkRange) or (part.low, part.high) == (None, None):
        return False
    lacks = any(column.is_lob for column in schema.columns)
    if lacks and ctx.table_record(record.table).row_filter is not None:
        return True
    if part.kind != "rowid":
        return lacks and part.column is not None
    if record.table not in unchanged_since(session, [record.table], record.scn):
        return True
    binds = {"owner": record.table.owner, "name": record.table.name}
    return lacks and session.fetch_all(_ROW_MOVEMENT, binds) != [("DISABLED",)]


def _refuse_altered(record: ChunkRecord, known: TableSchema, now: TableSchema) -> None:
    """Refuse a definition of which nothing that was captured says how the table came to it: another
    table under the name, or columns that may be others under new names."""
    evolution = judge(known, identified(known, now.without(known.excluded)))
    if evolution.trouble == "drop":
        raise SchemaMismatchError(
            f"a chunk cannot be read: {evolution.refusal}",
            hint=f"`redolake table resnapshot {record.table.argument}` reads the table as it is now.",
            table=record.table,
            scn=record.scn,
        )
    if evolution.refusal is not None:
        raise _altered(record)


def _altered(record: ChunkRecord) -> SnapshotBrokenError:
    return SnapshotBrokenError(
        "the table was altered after the SCN as of which this snapshot is read, and Oracle does not "
        "look back over that",
        hint=f"`redolake table resnapshot {record.table.argument}` starts its snapshot again.",
        table=record.table,
        scn=record.scn,
    )


def _broken(record: ChunkRecord, why: str) -> SnapshotBrokenError:
    return SnapshotBrokenError(
        "Oracle has no undo any more for the SCN as of which all chunks of this table are read,"
        f" since {why}",
        hint="Raise UNDO_RETENTION (and the undo tablespace) to the time that the whole table takes, or read it when little is written. "
        f"`redolake table resnapshot {record.table.argument}` then starts its snapshot again.",
        table=record.table,
        scn=record.scn,
    )


def _refuse_changed_key(ctx: Context, schema: TableSchema, scn: Scn) -> None:
    """A chunk from before a column of the key got its name has the older one."""
    table = schema.table
    versions = ctx.store.schemas.versions(ctx.source, table)
    newest = versions[-1].schema if versions else None
    if newest is not None and newest.as_logged().key != schema.as_logged().key:
        need_windows(ctx, table, scn, "its key has other columns")
        raise SchemaMismatchError(
            "the table's key has changed since it was first captured",
            hint=f"`redolake table resnapshot {table.argument} --fresh` puts it into new Delta tables.",
            table=table,
            key_before=", ".join(newest.key),
            key_now=", ".join(schema.key),
        )
