"""Which chunks does a snapshot consist of?"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cdc_core.capture.positions import current_scn, read_start
from cdc_core.errors import (
    ConfigError,
    PreflightError,
)
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import StepReport
from cdc_core.model.scn import Scn
from cdc_core.oracle.preflight import check_source
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.snapshot.conditions import checked_condition
from cdc_core.snapshot.plan import plan_chunks
from cdc_core.state.records import ChunkRecord, SchemaVersion, SourceRecord, TableRecord
from cdc_core.steps.context import Context, seconds_since


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


def _preflight(session: OracleSession, ctx: Context) -> None:
    findings = [finding for finding in check_source(session, ctx.config) if finding.is_problem]
    if findings:
        raise PreflightError(
            "this source cannot be captured yet",
            hint="Have these fixed, then run the command again. `redolake doctor` shows what is left.",
            source=ctx.source,
        ).listing([f"{finding.problem}: {finding.remedy}" for finding in findings])


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


def _key(record: ChunkRecord) -> ChunkKey:
    return ChunkKey(record.table, record.snapshot_id, record.number)
