"""What would a snapshot read, and would Oracle keep the undo as long? Nothing is planned or kept.

Chunks are cut as a snapshot would cut them, at the present SCN. Time is rows by the rate at which
chunks of the table, or of all tables, were read before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cdc_core.errors import CdcError
from cdc_core.model.chunks import NO_ROWS
from cdc_core.model.estimates import SnapshotEstimate, TableEstimate
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.session import OracleSession
from cdc_core.preflight.tables import read_undo_seconds
from cdc_core.schema.dictionary import read_each_schema
from cdc_core.schema.table import TableSchema
from cdc_core.snapshot.plan import where_clause
from cdc_core.steps.context import Context
from cdc_core.steps.snapshots.joining import is_without_rows
from cdc_core.steps.snapshots.row_filter import configured_filter, held_filter
from cdc_core.steps.snapshots.rows import snapshot_prefix
from cdc_core.steps.snapshots.watermarks import ranges_to_read

_SIZE = """
SELECT NUM_ROWS, BLOCKS * (SELECT TO_NUMBER(VALUE) FROM V$PARAMETER WHERE NAME = 'db_block_size')
  FROM ALL_TABLES WHERE OWNER = :owner AND TABLE_NAME = :name"""
_COUNT = "SELECT COUNT(*) FROM {table}{where}"


def estimate_snapshot(ctx: Context, tables: list[TableId] | None = None) -> SnapshotEstimate:
    """What `redolake snapshot` would read now: of the named ``tables``, or of those that have no
    snapshot yet and what is left of those that are being read. A table that cannot be read says
    why.

    Raises:
        ConfigError: A named table is not captured.
    """
    ctx.find_tables(is_kept=False)
    records = {one.table: one for one in ctx.store.tables.all()}
    wanted = [
        table
        for table in ctx.configured(tables)
        if tables is not None
        or (record := records.get(table)) is None
        or record.state in ("new", "snapshotting")
    ]
    with ctx.database.session() as session:
        found = [
            _estimate(ctx, session, one, records)
            for one in read_each_schema(
                session, [ctx.config.table(table) for table in wanted]
            ).items()
        ]
        undo = read_undo_seconds(session)
    sessions = ctx.config.snapshot.sessions_at_once
    rates = _rates(ctx)
    return SnapshotEstimate(
        tables=tuple(_timed(found, rates, sessions)),
        sessions=sessions,
        rows_per_second=rates.of_all,
        undo_seconds=undo,
    )


def _estimate(
    ctx: Context,
    session: OracleSession,
    found: tuple[TableId, TableSchema | CdcError],
    records: dict[TableId, TableRecord],
) -> TableEstimate:
    table, schema = found
    if isinstance(schema, CdcError):
        return TableEstimate(table=str(table), trouble=schema.what_happened)
    record = records.get(table)
    try:
        whole = _whole(ctx, session, schema, record)
    except CdcError as error:
        return TableEstimate(table=str(table), trouble=error.what_happened)
    if record is None or record.state != "snapshotting":
        return whole
    planned = ctx.store.chunks.find(table, snapshot_id=record.snapshot_id)
    if not planned:
        return whole
    left = sum(chunk.state == "planned" for chunk in planned)
    share = left / len(planned)
    size = None if whole.bytes is None else round(whole.bytes * share)
    return replace(whole, chunks=left, rows=round(whole.rows * share), bytes=size)


def _whole(
    ctx: Context, session: OracleSession, schema: TableSchema, record: TableRecord | None
) -> TableEstimate:
    table = schema.table
    if _joins_without_rows(ctx, record, table):
        return TableEstimate(table=str(table), by="no rows")
    scn = current_scn(session)
    condition = (
        configured_filter(ctx, schema)
        if record is None or record.state == "new"
        else held_filter(ctx, record, schema)
    )
    ranges = ranges_to_read(ctx, session, schema, scn, condition)
    rows, size = _size(session, table, condition)
    return TableEstimate(
        table=str(table),
        by=ranges[0].column or ranges[0].kind,
        chunks=len(ranges),
        rows=rows,
        bytes=size,
        is_between=ctx.config.snapshot_of(table).read == "watermarks",
    )


def _joins_without_rows(ctx: Context, record: TableRecord | None, table: TableId) -> bool:
    if record is not None and record.state == "snapshotting":
        return is_without_rows(record)
    return snapshot_prefix(ctx, record, table) == NO_ROWS


def _size(session: OracleSession, table: TableId, condition: str | None) -> tuple[int, int | None]:
    binds = {"owner": table.owner, "name": table.name}
    [(rows, size)] = session.fetch_all(_SIZE, binds) or [(None, None)]
    if rows is None or condition is not None:
        sql = _COUNT.format(table=table.sql, where=where_clause(condition))
        [(rows,)] = session.fetch_all(sql)
    return int(rows), None if size is None else int(size)


@dataclass(frozen=True, slots=True)
class _Rates:
    """Rows a second that one session was measured to read, of each table and of all."""

    by_table: dict[TableId, float]
    of_all: float | None

    def of(self, table: TableId) -> float | None:
        return self.by_table.get(table, self.of_all)


def _rates(ctx: Context) -> _Rates:
    read = ctx.store.chunks.reading()
    rows, seconds = (sum(one[at] for one in read.values()) for at in (0, 1))
    return _Rates(
        {table: own / spent for table, (own, spent) in read.items() if own and spent},
        rows / seconds if rows and seconds else None,
    )


def _timed(found: Sequence[TableEstimate], rates: _Rates, sessions: int) -> list[TableEstimate]:
    """The tables with their times, in the order in which they are carried: those of most chunks
    first."""
    timed: list[TableEstimate] = []
    spent = 0.0
    for one in sorted(found, key=lambda one: -one.chunks):
        rate = rates.of(TableId.parse(one.table))
        if one.trouble is None and rate is not None:
            whole = one.rows / rate / 60
            spent += whole / sessions
            alone = whole / max(1, min(sessions, one.chunks))
            ends = max(spent, alone)
            chunk = whole / max(1, one.chunks)
            one = replace(one, minutes=alone, ends=ends, chunk_minutes=chunk)
        timed.append(one)
    return timed
