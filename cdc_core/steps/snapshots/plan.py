"""Which chunks does a snapshot consist of?"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cdc_core.errors import ConfigError
from cdc_core.model.chunks import AD_HOC, BLOCKING, ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import ChunkRecord
from cdc_core.model.reports import StepReport
from cdc_core.model.scn import Scn
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.schema.table import TableSchema
from cdc_core.snapshot.plan import ChunkPart
from cdc_core.steps.context import Context, seconds_since
from cdc_core.steps.snapshots.control import held_snapshots
from cdc_core.steps.snapshots.joining import FirstStart, join_tables, plan_joining, preflight
from cdc_core.steps.snapshots.row_filter import both, held_filter
from cdc_core.steps.snapshots.shared import chunk_records
from cdc_core.steps.snapshots.watermarks import ranges_to_read


def check(ctx: Context) -> None:
    """Check database, tables that patterns name, and set-up at once.

    Raises:
        PreflightError: Names every problem and its remedy.
    """
    ctx.find_tables()
    with ctx.database.session() as session:
        preflight(ctx, session)


def start_snapshot(
    ctx: Context,
    tables: list[TableId] | None = None,
    *,
    conditions: Mapping[TableId, str] | None = None,
    signal_id: str | None = None,
    is_blocking: bool = False,
    chunk_by: str | None = None,
    first: FirstStart | None = None,
) -> list[ChunkKey]:
    """Let every table that is new join with a snapshot, and plan an ad hoc one of the other
    ``tables`` that are named.

    Tables join one by one, and one that cannot does not keep the others from it; called again after
    a crash, a snapshot goes on where it stood. All chunks of ad hoc snapshots are planned in one
    transaction of the store, or none. ``conditions`` limit tables to some of their rows. ``first``
    is where the source begins, if it is new; now by default.

    Args:
        ctx: The source.
        tables: None for all tables without a snapshot.
        conditions: Of tables to be read again in part. Of a blocking snapshot they may be SELECTs.
        signal_id: Who asks.
        is_blocking: Tables take no windows until their chunks of an ad hoc snapshot are applied.
        chunk_by: A column, or ``ROWID``, by which an ad hoc snapshot is cut into chunks.
        first: Where the source begins, if it is new.

    Raises:
        PreflightError: The source is new, and something is missing in the database.
        ConfigError: A table is not captured, or a condition cannot be trusted.
    """
    if tables is None and not _waiting_tables(ctx):
        return []
    with ctx.lease("snapshot-plan", wait_seconds=30), ctx.database.session() as session:
        started = time.monotonic()
        wanted = ctx.configured(tables)
        states = {one.table: one.state for one in ctx.store.tables.all()}
        fresh = [table for table in wanted if states.get(table, "new") == "new"]
        again = [] if tables is None else [table for table in wanted if table not in set(fresh)]
        limited = set(conditions or {})
        _refuse(
            [table for table in fresh if table in limited],
            "a first snapshot cannot have a condition: the mirror would lack the other rows "
            "permanently",
            "Leave the condition out, or snapshot the table whole first.",
        )
        _refuse(
            [table for table in again if states[table] in {"failed", "removed"}],
            "these tables have stopped",
            "`redolake table list` says why; `redolake table resnapshot {table}` adds one back with "
            "a new snapshot.",
        )
        ad_hoc = [table for table in again if states[table] != "snapshotting"]
        join_tables(ctx, session, fresh, first=first)
        among = frozenset(wanted)
        joining = [
            record
            for record in ctx.store.tables.all()
            if record.table in among and record.state == "snapshotting"
        ]
        planned = plan_joining(ctx, session, joining)
        asked = AdHoc(conditions or {}, signal_id, is_blocking=is_blocking, chunk_by=chunk_by)
        extra = _plan_ad_hoc(session, ctx, ad_hoc, asked)
        planned += ctx.store.chunks.plan(extra)
        if planned:
            ctx.reported(
                StepReport(
                    kind="snapshot-planned",
                    key=planned[0].snapshot_id,
                    seconds=seconds_since(started),
                    rows=len(planned),
                )
            )
        return [record.chunk_key for record in planned if record.state != "applied"]


def _waiting_tables(ctx: Context) -> list[TableId]:
    """The configured tables that are new, or whose first snapshot is not applied."""
    states = {one.table: one.state for one in ctx.store.tables.all()}
    return [
        table
        for table in ctx.configured(None)
        if states.get(table, "new") in {"new", "snapshotting"}
    ]


def plan_parts(
    ctx: Context, table: TableId, scn: Scn, *, prefix: str, parts: Sequence[ChunkPart] | None
) -> list[ChunkKey]:
    """Plan an ad hoc snapshot of some parts of a table, or of the whole table, as of an SCN that
    Oracle still has the undo for.

    Args:
        ctx: The source.
        table: A table whose first snapshot is applied.
        scn: As of when its chunks are read first; a newer SCN takes its place where the undo is
            gone.
        prefix: Begins the snapshot's id.
        parts: None for the whole table.
    """
    condition: str | None = None
    with ctx.lease("snapshot-plan", wait_seconds=30):
        if parts is None:
            with ctx.database.session() as session:
                before = ctx.store.schemas.at(table, scn)
                schema = read_table_schema(session, ctx.config.table(table), scn=scn, before=before)
                condition = held_filter(ctx, ctx.table_record(table), schema)
                parts = ranges_to_read(ctx, session, schema, scn, condition)
        # Chunks of an earlier repair may lie in landing, even if the store was restored and does
        # not know them.
        snapshot_id = f"{prefix}{scn}-{uuid.uuid4().hex[:8]}"
        planned = chunk_records(ctx, table, snapshot_id, scn, parts, condition)
        return [record.chunk_key for record in ctx.store.chunks.plan(planned)]


def pending_chunks(ctx: Context, tables: list[TableId] | None = None) -> list[ChunkKey]:
    """Chunks that are planned or landed and not applied, in order of table and number; not those of
    tables that wait, nor unread ones while snapshots are paused."""
    wanted = set(ctx.configured(tables))
    goes_on = {
        record.table
        for record in ctx.store.tables.all()
        if record.state in {"snapshotting", "ready"}
    }
    records = ctx.store.chunks.find(states=("planned", "landed"))
    held = held_snapshots(ctx)
    return [
        record.chunk_key
        for record in records
        if record.table in wanted & goes_on
        and not (record.state == "planned" and held(record.snapshot_id))
    ]


def _refuse(tables: Sequence[TableId], problem: str, hint: str) -> None:
    if tables:
        raise ConfigError(
            problem,
            hint=hint.format(table=tables[0].argument),
            tables=", ".join(map(str, tables)),
        )


@dataclass(frozen=True, slots=True)
class AdHoc:
    """What an ad hoc snapshot is asked to read, and how (:func:`start_snapshot`)."""

    conditions: Mapping[TableId, str]
    signal_id: str | None
    is_blocking: bool = False
    chunk_by: str | None = None

    def condition_of(self, schema: TableSchema) -> str | None:
        """The checked condition of a table; None for all rows."""
        if (text := self.conditions.get(schema.table)) is None:
            return None
        # The parser takes a moment to import, and most runs plan no snapshot.
        from cdc_core.snapshot.filters import checked_filter

        return checked_filter(text, schema, is_statement=self.is_blocking)


def _plan_ad_hoc(
    session: OracleSession, ctx: Context, tables: Sequence[TableId], asked: AdHoc
) -> list[ChunkRecord]:
    planned: list[ChunkRecord] = []
    prefix = BLOCKING if asked.is_blocking else AD_HOC
    for table in tables:
        scn = current_scn(session)
        while ctx.store.chunks.find(table, snapshot_id=f"{prefix}{scn}"):
            time.sleep(0.2)
            scn = current_scn(session)
        before = ctx.store.schemas.at(table, scn)
        schema = read_table_schema(session, ctx.config.table(table), scn=scn, before=before)
        own = held_filter(ctx, ctx.table_record(table), schema)
        condition = both(own, asked.condition_of(schema))
        ranges = ranges_to_read(ctx, session, schema, scn, condition, asked.chunk_by)
        planned += chunk_records(
            ctx, table, f"{prefix}{scn}", scn, ranges, condition, asked.signal_id
        )
    return planned
