"""How do existing rows get into the mirrors: planning, reading and applying chunks?

The first snapshot reads all tables as of one SCN, before any window. An ad hoc snapshot reads some tables again, whole or
with a condition, while windows go on; the apply rule puts its rows right.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cdc_core.capture.positions import current_scn, read_start
from cdc_core.errors import (
    ConfigError,
    PreflightError,
    SchemaMismatchError,
    SnapshotTooOldError,
    WindowOrderError,
)
from cdc_core.identifiers import TableId
from cdc_core.landing.layout import chunk_folder
from cdc_core.landing.manifest import MANIFEST_NAME, ChunkManifest, digest_of, read_chunk_manifest
from cdc_core.oracle.preflight import check_source
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.scn import Scn
from cdc_core.snapshot.conditions import checked_condition
from cdc_core.snapshot.plan import ChunkRange, plan_chunks
from cdc_core.snapshot.read import read_chunk
from cdc_core.state.records import ChunkRecord, SchemaVersion, SourceRecord, TableRecord
from cdc_core.status import ChunkKey, StepReport, TableApplied
from cdc_core.steps.context import Context, seconds_since
from cdc_core.steps.key_ranges import key_range

SNAPSHOT_ATTEMPTS = 3
"""How often a chunk is read, each time at a newer SCN, before ORA-01555 stops it."""


def check(ctx: Context) -> None:
    """Check database, tables and set-up at once.

    Raises:
        PreflightError: Names every problem and what mends it.
    """
    with ctx.oracle() as session:
        _preflight(session, ctx)


def start_snapshot(
    ctx: Context,
    tables: list[TableId] | None = None,
    *,
    conditions: Mapping[TableId, str] | None = None,
    signal_id: str | None = None,
) -> list[ChunkKey]:
    """Plan the first snapshot of every table that has none yet, and an ad hoc one of the other ``tables`` that are named.

    All chunks are planned in one transaction of the store, or none. The first snapshot is planned once: called again after a
    crash it goes on where it stood. ``conditions`` limit tables to some of their rows.

    Raises:
        PreflightError: Something that the snapshot needs is missing in the database.
        ConfigError: A table is not captured, or a condition cannot be trusted.
    """
    with ctx.lease("snapshot-plan", wait_seconds=30), ctx.oracle() as session:
        started = time.monotonic()
        source = ctx.store.source(ctx.source)
        wanted = ctx.configured(tables)
        if source is None:
            source = _begin_source(session, ctx)
        fresh = [table for table in wanted if _is_new(ctx, table)]
        again = [] if tables is None else [table for table in wanted if table not in fresh]
        _refuse_late_tables(ctx, fresh)
        _refuse_conditions(fresh, conditions or {})
        planned = _plan_first(session, ctx, source, fresh, signal_id)
        planned += _plan_ad_hoc(session, ctx, again, conditions or {}, signal_id)
        ctx.store.plan_chunks(planned)
        _begin_tables(ctx, source, fresh)
        if planned:
            ctx.reported(
                StepReport(
                    "snapshot-planned",
                    planned[0].snapshot_id,
                    seconds_since(started),
                    rows=len(planned),
                )
            )
        return [_key(record) for record in planned]


def pending_chunks(ctx: Context, tables: list[TableId] | None = None) -> list[ChunkKey]:
    """Chunks that are planned or landed and not applied, in order of table and number."""
    wanted = set(ctx.configured(tables))
    records = ctx.store.chunks(ctx.source, states=("planned", "landed"))
    return [_key(record) for record in records if record.table in wanted]


def snapshot_chunk(ctx: Context, key: ChunkKey) -> StepReport:
    """Read one chunk from Oracle into landing, unless it has landed.

    Raises:
        SnapshotTooOldError: Undo was gone at every attempt.
        LandingDamagedError: It has landed and is damaged.
    """
    started = time.monotonic()
    folder = chunk_folder(ctx.source, key.table, key.snapshot_id, key.number)
    with ctx.recorded(table=key.table), ctx.lease(f"chunk/{key.table}/{key.key}", wait_seconds=30):
        record = _chunk_record(ctx, key)
        repeated = ctx.landing.exists(folder, MANIFEST_NAME)
        if not repeated:
            ctx.with_oracle(lambda session: _read_at_some_scn(session, ctx, record))
        manifest, sha256 = _chunk_manifest(ctx, key)
        ctx.landing.local_paths(folder, manifest.files)
        if record.state == "planned":
            ctx.store.record_chunk_landed(manifest, sha256)
        return ctx.reported(
            StepReport(
                "chunk-landed",
                key.key,
                seconds_since(started),
                rows=manifest.rows,
                bytes=sum(file.bytes for file in manifest.files),
                table=key.table,
                scn_high=manifest.scn,
                repeated=repeated,
            )
        )


def apply_chunk(ctx: Context, key: ChunkKey) -> StepReport:
    """Put a landed chunk into change log and mirror; harmless when repeated, whatever was applied since.

    Raises:
        WindowOrderError: The chunk has not landed.
    """
    started = time.monotonic()
    with (
        ctx.recorded(table=key.table),
        ctx.lease(f"table/{key.table}", wait_seconds=120) as lease,
    ):
        record = _chunk_record(ctx, key)
        if record.state == "planned":
            raise WindowOrderError(
                "this chunk has not landed yet",
                hint="Run `redolake snapshot`, which reads and applies chunks.",
                table=key.table,
                chunk=key.key,
            )
        table = ctx.table_record(key.table)
        manifest, _ = _chunk_manifest(ctx, key)
        paths = ctx.landing.local_paths(
            chunk_folder(ctx.source, key.table, key.snapshot_id, key.number), manifest.files
        )
        applied = ctx.lake.apply_chunk(
            manifest,
            paths,
            first=table.mirror_scn is None,
            generation=ctx.source_record().generation,
            deletes_in=key_range(
                ChunkRange.from_json(record.range), manifest.schema, condition=manifest.condition
            ),
            fence=lease.check,
        )
        ctx.store.record_chunk_applied(
            ctx.source, key.table, key.snapshot_id, key.number, seconds=seconds_since(started)
        )
        start = ctx.source_record().snapshot_scn
        assert start is not None
        ctx.store.finish_snapshot(ctx.source, key.table, start)
        return ctx.reported(
            StepReport(
                "chunk-applied",
                key.key,
                seconds_since(started),
                rows=manifest.rows,
                table=key.table,
                scn_high=manifest.scn,
                repeated=applied.skipped,
                tables=(
                    TableApplied(
                        key.table,
                        applied.changes,
                        applied.rows_inserted,
                        applied.rows_updated,
                        applied.rows_deleted,
                        applied.seconds,
                        applied.skipped,
                    ),
                ),
            )
        )


def _preflight(session: OracleSession, ctx: Context) -> None:
    findings = [finding for finding in check_source(session, ctx.config) if finding.is_problem]
    if findings:
        raise PreflightError(
            f"{len(findings)} things are missing before this source can be captured",
            hint="Mend them, then run the command again: "
            + " | ".join(f"{finding.problem}: {finding.remedy}" for finding in findings),
            source=ctx.source,
        )


def _begin_source(session: OracleSession, ctx: Context) -> SourceRecord:
    _preflight(session, ctx)
    start = read_start(session, tables=[config.table for config in ctx.config.tables])
    record = SourceRecord(
        ctx.source,
        snapshot_scn=start.snapshot_scn,
        mining_low=start.mining_low,
        resetlogs_change=start.resetlogs_change,
        database_name=start.database_name,
        dbid=start.dbid,
    )
    ctx.store.save_source(record)
    return record


def _is_new(ctx: Context, table: TableId) -> bool:
    record = ctx.store.table(ctx.source, table)
    return record is None or record.state == "new"


def _refuse_late_tables(ctx: Context, fresh: Sequence[TableId]) -> None:
    if fresh and ctx.store.windows(ctx.source, limit=1):
        raise ConfigError(
            "tables were added after windows had been captured: changes of transactions that were open then were not kept",
            hint="Capture them as a source of their own (another `name`), or start this source anew.",
            tables=", ".join(map(str, fresh)),
        )


def _refuse_conditions(fresh: Sequence[TableId], conditions: Mapping[TableId, str]) -> None:
    limited = [table for table in fresh if table in conditions]
    if limited:
        raise ConfigError(
            "a first snapshot cannot have a condition: the mirror would lack rows for ever",
            hint="Leave the condition out, or snapshot the table whole first.",
            tables=", ".join(map(str, limited)),
        )


def _plan_first(
    session: OracleSession,
    ctx: Context,
    source: SourceRecord,
    tables: Sequence[TableId],
    signal_id: str | None,
) -> list[ChunkRecord]:
    scn = _snapshot_scn(source)
    planned: list[ChunkRecord] = []
    for table in tables:
        planned += _plan_table(session, ctx, table, scn, None, signal_id)
    return planned


def _plan_ad_hoc(
    session: OracleSession,
    ctx: Context,
    tables: Sequence[TableId],
    conditions: Mapping[TableId, str],
    signal_id: str | None,
) -> list[ChunkRecord]:
    planned: list[ChunkRecord] = []
    for table in tables:
        scn = current_scn(session)
        while ctx.store.chunks(ctx.source, table, snapshot_id=_snapshot_id(scn)):
            time.sleep(0.2)
            scn = current_scn(session)
        planned += _plan_table(session, ctx, table, scn, conditions.get(table), signal_id)
    return planned


def _plan_table(
    session: OracleSession,
    ctx: Context,
    table: TableId,
    scn: Scn,
    condition: str | None,
    signal_id: str | None,
) -> list[ChunkRecord]:
    """The chunks of one table as of one SCN: those of the store, else new ones, not stored yet."""
    if known := ctx.store.chunks(ctx.source, table, snapshot_id=_snapshot_id(scn)):
        return list(known)
    schema = read_table_schema(session, ctx.config.table(table), scn=scn)
    checked = None if condition is None else checked_condition(condition, schema)
    ranges = plan_chunks(session, schema, scn=scn, config=ctx.config.snapshot, condition=checked)
    if not ctx.store.schema_versions(ctx.source, table):
        ctx.store.save_schema_version(SchemaVersion(ctx.source, replace(schema, scn_from=scn)))
    return [
        ChunkRecord(
            ctx.source,
            table,
            _snapshot_id(scn),
            number,
            scn,
            chunk_range.as_json(),
            condition=checked,
            signal_id=signal_id,
        )
        for number, chunk_range in enumerate(ranges)
    ]


def _begin_tables(ctx: Context, source: SourceRecord, fresh: Sequence[TableId]) -> None:
    scn = _snapshot_scn(source)
    for table in fresh:
        ctx.store.save_table(
            TableRecord(
                ctx.source,
                table,
                state="snapshotting",
                snapshot_id=_snapshot_id(scn),
                snapshot_scn=scn,
                consistent_scn=scn,
            )
        )


def _snapshot_scn(source: SourceRecord) -> Scn:
    assert source.snapshot_scn is not None
    return source.snapshot_scn


def _snapshot_id(scn: Scn) -> str:
    return f"s{scn}"


def _read_at_some_scn(session: OracleSession, ctx: Context, record: ChunkRecord) -> ChunkManifest:
    """Read the chunk as of its planned SCN, or a newer one if undo is gone: by the apply rule, either is right."""
    scn = record.scn
    for attempt in range(SNAPSHOT_ATTEMPTS):
        schema = read_table_schema(session, ctx.config.table(record.table), scn=scn)
        _refuse_changed_key(ctx, schema.table, schema.key)
        try:
            return read_chunk(
                session,
                schema,
                ChunkRange.from_json(record.range),
                source=ctx.source,
                snapshot_id=record.snapshot_id,
                number=record.number,
                scn=scn,
                condition=record.condition,
                landing=ctx.landing,
                rows=ctx.config.oracle.fetch_rows,
            )
        except SnapshotTooOldError:
            if attempt + 1 == SNAPSHOT_ATTEMPTS:
                raise
            scn = current_scn(session)
    raise AssertionError("every attempt returns or raises")


def _refuse_changed_key(ctx: Context, table: TableId, key: tuple[str, ...]) -> None:
    versions = ctx.store.schema_versions(ctx.source, table)
    if versions and versions[-1].schema.key != key:
        raise SchemaMismatchError(
            "the table's key has changed since it was first captured",
            hint="Capture the table as a source of its own; its mirror is identified by the old key.",
            table=table,
            key_before=", ".join(versions[-1].schema.key),
            key_now=", ".join(key),
        )


def _chunk_record(ctx: Context, key: ChunkKey) -> ChunkRecord:
    record = ctx.store.chunk(ctx.source, key.table, key.snapshot_id, key.number)
    if record is None:
        raise ConfigError(
            "no such chunk was planned",
            hint="`redolake snapshot --table …` plans a snapshot and shows its chunks.",
            table=key.table,
            chunk=key.key,
        )
    return record


def _chunk_manifest(ctx: Context, key: ChunkKey) -> tuple[ChunkManifest, str]:
    folder = chunk_folder(ctx.source, key.table, key.snapshot_id, key.number)
    content = ctx.landing.read(folder, MANIFEST_NAME)
    return read_chunk_manifest(content, where=f"{folder}/{MANIFEST_NAME}"), digest_of(content)


def _key(record: ChunkRecord) -> ChunkKey:
    return ChunkKey(record.table, record.snapshot_id, record.number)
