"""How does a source stand?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cdc_core.errors import CdcError, OtherDatabaseError, StoreUnavailableError
from cdc_core.lake.history.table import HistoryTable
from cdc_core.landing.layout import ORDINAL_SHIFT
from cdc_core.leases import CARRIERS, holders
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import ChunkRecord, TableRecord, WindowRecord
from cdc_core.model.reports import (
    PolicyAnswer,
    SnapshotProgress,
    SourceStatus,
    TableStatus,
    TransactionStatus,
)
from cdc_core.model.transactions import OpenTransaction
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.times import clock_of
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import RESELECT
from cdc_core.snapshot.progress import progress_in_all, progress_of
from cdc_core.steps.context import Context
from cdc_core.steps.snapshots.control import partial_tables
from cdc_core.steps.snapshots.starting import decision

OLDEST_OPEN_MAX = 5
"""Open transactions that are named; the others are counted. What a younger one keeps, the oldest
keeps too."""

_AWAITS_ROWS = (
    "its windows wait for rows that are still to be read: of a partition that was exchanged, or of a"
    " blocking snapshot"
)
_READS_ROWS = (
    "`redolake run` or `redolake snapshot` reads them; the table then takes the windows that wait."
)


def status(ctx: Context, *, ask_oracle: bool = True) -> SourceStatus:
    """How the source stands by the metadata store; with ``ask_oracle`` also how far behind Oracle
    it is.

    A database that cannot be reached, or refuses the password or what is asked, is no error here:
    ``scn_oracle`` and the lags by SCN are then None, and ``oracle_error`` says why.
    """
    now = datetime.now(UTC)
    scn, oracle_now, oracle_error = _scn_and_clock(ctx) if ask_oracle else (None, None, None)
    counts = ctx.store.windows.counts()
    waiting = ctx.store.windows.find(states=("planned", "captured"), limit=1)
    ledger = ctx.store.ledger.open_transactions()
    released = tuple(one for one in ledger if one.state == "released")
    evicted = tuple(one for one in ledger if one.state == "displaced")
    ledger = [one for one in ledger if not one.is_over]
    starts = [transaction.start_scn for transaction in ledger if transaction.start_scn is not None]
    facts = _Facts.of(ctx, scn, now, oracle_now or now)
    named = [config.table for config in ctx.config.tables]
    captured = [table for table in facts.records if table not in named]
    paused = ctx.store.signals.paused_since()
    return SourceStatus(
        source=ctx.source,
        scn_oracle=scn,
        oracle_error=oracle_error,
        windows_planned=counts.get("planned", 0),
        windows_captured=counts.get("captured", 0),
        windows_applied=counts.get("applied", 0),
        open_transactions=len(ledger),
        oldest_open_scn=min(starts, default=None),
        signals_pending=len(ctx.store.signals.pending()),
        tables=tuple(_table_status(ctx, table, facts) for table in [*named, *captured]),
        last_error=waiting[0].last_error if waiting else None,
        transactions_released=released,
        transactions_evicted=evicted,
        windows_inexact=ctx.store.windows.inexact_count(),
        oldest_open=_oldest_open(ctx, ledger, facts.oracle_now),
        snapshot_decision=str(decision(ctx)),
        carriers=tuple(
            ctx.store.machine.readable(one.lease.holder)
            for one in holders(ctx.store, ctx.source, CARRIERS)
            if one.death is None
        ),
        progress=progress_in_all(facts.unfinished, now),
        snapshots_paused=paused.isoformat(timespec="seconds") if paused else None,
    )


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the store says of all tables, read once."""

    scn: int | None
    now: datetime
    oracle_now: datetime
    records: Mapping[TableId, TableRecord]
    ends: Mapping[int, WindowRecord]
    chunk_counts: Mapping[tuple[TableId, str], tuple[int, int]]
    unfinished: Mapping[tuple[TableId, str], Sequence[ChunkRecord]]
    partial: frozenset[TableId]
    schemas: Mapping[TableId, TableSchema]

    @classmethod
    def of(cls, ctx: Context, scn: int | None, now: datetime, oracle_now: datetime) -> _Facts:
        records = {record.table: record for record in ctx.store.tables.all()}
        positions = {one.mirror_scn for one in records.values() if one.mirror_scn is not None}
        return cls(
            scn,
            now,
            oracle_now,
            records,
            ctx.store.windows.ending_at(positions),
            ctx.store.chunks.counts(),
            ctx.store.chunks.unfinished(),
            partial_tables(ctx, records.values()),
            ctx.store.schemas.newest(),
        )


def _table_status(ctx: Context, table: TableId, facts: _Facts) -> TableStatus:
    """How one table stands; one without a record is new."""
    record = facts.records.get(table) or TableRecord(source=ctx.source, table=table)
    position, snapshot_id = record.mirror_scn, record.snapshot_id
    applied, planned = facts.chunk_counts.get((table, snapshot_id or ""), (0, 0))
    taken = None if position is None else facts.ends.get(position)
    is_ahead = position is not None and (record.consistent_scn or 0) > position
    waits = record.state == "ready" and record.awaits_rows
    behind = facts.scn - position if facts.scn is not None and position is not None else None
    schema, entry = facts.schemas.get(table), ctx.config.entries.get(table)
    return TableStatus(
        table=str(table),
        state=record.state,
        position=position,
        consistent_from=record.consistent_scn if is_ahead else None,
        lag_scns=behind,
        lag_seconds=_lag(taken, facts) if taken else None,
        snapshot_id=snapshot_id,
        chunks_applied=applied,
        chunks_planned=planned,
        last_window=taken.window.key if taken else None,
        position_time=taken.ended.isoformat() if taken and taken.ended else None,
        reason=_AWAITS_ROWS if waits else record.reason,
        way_out=_READS_ROWS if waits else record.way_out,
        since=record.since.isoformat(timespec="seconds") if record.since else None,
        stopped_scn=record.stopped_scn,
        asked_by=record.asked_by,
        rows_where=record.row_filter,
        rest_waits=record.rest_waits,
        in_quarantine=record.in_quarantine,
        is_partial=table in facts.partial,
        history_scn=_history_scn(ctx, table),
        columns_omitted=tuple(map(" ".join, schema.omitted)) if schema else (),
        columns_reselected=tuple(
            f"{one.name} {one.data_type}"
            for one in (schema.columns if schema else ())
            if one.form == RESELECT
        ),
        columns_left_out=tuple(filter(entry.excludes, schema.stored)) if schema and entry else (),
        progress=_joining(facts.unfinished, table, snapshot_id, facts.now),
        snapshots=_beside(facts.unfinished, table, snapshot_id, facts.now),
        read_again=tuple(
            PolicyAnswer(f"on_{one.trouble}", one.at.isoformat(timespec="seconds"), one.reason)
            for one in record.read_again
        ),
    )


def _lag(taken: WindowRecord, facts: _Facts) -> float:
    """How old a window's end is, by the clock that dated it."""
    if taken.ended is None:
        return _age(taken.created, facts.now)
    return _age(taken.ended, facts.oracle_now)


def _age(moment: datetime, now: datetime) -> float:
    """Seconds since; none where the clock here, in place of Oracle's, is behind."""
    return max(0.0, (now - moment).total_seconds())


def _history_scn(ctx: Context, table: TableId) -> int | None:
    """The last window that a table's history has."""
    if table not in ctx.config.entries or not ctx.config.has_history(table):
        return None
    return HistoryTable(ctx.config.lake, ctx.source, table).scn()


def _joining(
    unfinished: Mapping[tuple[TableId, str], Sequence[ChunkRecord]],
    table: TableId,
    own: str | None,
    now: datetime,
) -> SnapshotProgress | None:
    """The progress of the snapshot that a table began with."""
    chunks = unfinished.get((table, own or ""))
    return None if chunks is None else progress_of(str(own), chunks, now)


def _beside(
    unfinished: Mapping[tuple[TableId, str], Sequence[ChunkRecord]],
    table: TableId,
    own: str | None,
    now: datetime,
) -> tuple[SnapshotProgress, ...]:
    """The unfinished snapshots of a table other than the one that it began with."""
    return tuple(
        progress_of(snapshot, chunks, now)
        for (of, snapshot), chunks in sorted(unfinished.items(), key=lambda one: one[0][1])
        if of == table and snapshot != own
    )


def _oldest_open(
    ctx: Context, ledger: Sequence[OpenTransaction], now: datetime
) -> tuple[TransactionStatus, ...]:
    """The first of the ledger's open transactions, which is sorted by the rows that they began
    with."""
    found = []
    for one in ledger[:OLDEST_OPEN_MAX]:
        first = one.first_ordinal >> ORDINAL_SHIFT
        windows = ctx.store.windows.find(ordinals=range(first, first + 1))
        found.append(_transaction(one, windows[0] if windows else None, now))
    return tuple(found)


def _transaction(
    one: OpenTransaction, first: WindowRecord | None, now: datetime
) -> TransactionStatus:
    seen = first.ended if first else None
    return TransactionStatus(
        xid=one.xid,
        state=one.state,
        username=one.username,
        client_id=one.client_id,
        session_id=one.session_id,
        serial=one.serial,
        start_scn=one.start_scn,
        started=one.start_timestamp.isoformat(timespec="seconds") if one.start_timestamp else None,
        seen=seen.isoformat(timespec="seconds") if seen else None,
        open_seconds=_age(seen, now) if seen else None,
        tables=one.tables,
        rows=one.rows,
        keeps_windows_from=first.window.key if first else None,
    )


def _scn_and_clock(ctx: Context) -> tuple[int | None, datetime | None, str | None]:
    """Oracle's SCN and time now, or why it cannot be asked."""
    try:
        with ctx.database.session() as session:
            return current_scn(session), clock_of(session), None
    except (OtherDatabaseError, StoreUnavailableError):
        raise
    except CdcError as error:
        return None, None, error.what_happened
