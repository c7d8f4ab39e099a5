"""How far is a source behind, on which stretch of the way, and with what did its last windows spend
their time?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from cdc_core.change_reader import NextWindow
from cdc_core.config import LogMinerConfig
from cdc_core.errors import CdcError, OracleUnavailableError
from cdc_core.leases import is_abandoned
from cdc_core.model.identifiers import TableId
from cdc_core.model.lag import LagFacts, LagPart, RecentWork, Stretch, TableWork, WaitingTable
from cdc_core.model.records import TableRecord, WindowRecord
from cdc_core.model.reports import SourceStatus, TableApplied, WriteWay
from cdc_core.model.scn import Scn
from cdc_core.oracle.times import times_of
from cdc_core.steps.context import Context
from cdc_core.steps.snapshots.rows import streams
from cdc_core.steps.status import status

WINDOWS_LOOKED_AT = 20
_STRETCHES: tuple[Stretch, ...] = ("table", "apply", "capture", "open")


def lag(ctx: Context, *, windows: int = WINDOWS_LOOKED_AT, now: datetime | None = None) -> LagFacts:
    """How far the source is behind Oracle: the whole lag in parts, and the numbers of its newest
    ``windows``. Nothing is planned or recorded; the reader of redo is asked where a window could
    end, as planning asks it.

    Args:
        now: This host's time, for the time since the last step; by default the present.
    """
    now = now or datetime.now(UTC)
    found = status(ctx)
    newest = ctx.store.windows.find(newest_first=True, limit=1)
    waiting = ctx.store.windows.find(states=("planned", "captured"))
    closable, not_closable = _closable(ctx, newest, is_asked=found.scn_oracle is not None)
    records = [one for one in ctx.store.tables.all() if one.state != "removed"]
    captured = ctx.captured_up_to()
    taken = [one.mirror_scn for one in records if one.mirror_scn is not None]
    taking = [one.mirror_scn for one in records if one.mirror_scn and one.takes_windows]
    planned = newest[0].window.scn_high if newest else captured
    end = closable[-1].window.scn_high if closable else planned
    chain = _rising(min(taken, default=None), min(taking, default=None), captured, end, found)
    seconds, oracle_now = _seconds(ctx, chain)
    how = ctx.config.capture
    return LagFacts(
        source=ctx.source,
        scn_oracle=found.scn_oracle,
        scn_closable=end,
        scn_captured=captured,
        scn_applied=min(taking, default=None),
        scn_table=min(taken, default=None),
        parts=tuple(
            LagPart(what=what, scn_low=low, scn_high=high, seconds=took)
            for what, low, high, took in zip(_STRETCHES, chain, chain[1:], seconds, strict=False)
        ),
        oracle_error=found.oracle_error,
        not_closable=not_closable,
        last_error=found.last_error,
        windows_to_capture=found.windows_planned + len(closable),
        windows_to_apply=found.windows_captured,
        work_waits_seconds=_work_waits(waiting, closable, oracle_now),
        idle_seconds=_idle(ctx, now),
        holders=_holders(ctx),
        waiting=_waiting(records, found),
        oldest_open=found.oldest_open[0] if found.oldest_open else None,
        work=_recent_work(ctx, windows),
        reader=how.type,
        waits_for_log_switch=how.waits_for_log_switch,
        can_close_online=isinstance(how, LogMinerConfig) and not how.reads_archived_only,
        reads_dictionary=isinstance(how, LogMinerConfig) and how.strategy == "redo_log_catalog",
        sessions=how.sessions if isinstance(how, LogMinerConfig) else 1,
        merges_by_spark=ctx.config.lake.merge == "spark",
    )


def _closable(
    ctx: Context, newest: Sequence[WindowRecord], *, is_asked: bool
) -> tuple[list[NextWindow], tuple[str, str] | None]:
    """The windows that could be planned now, or why the reader gives none."""
    source = ctx.store.source.get()
    if source is None or not is_asked or not streams(ctx):
        return [], None
    low = newest[0].window.scn_high if newest else source.snapshot_scn
    read_from = low if newest else source.mining_low
    try:
        return ctx.change_reader.next_windows(Scn(low), read_from=Scn(read_from), until=None), None
    except OracleUnavailableError:
        raise
    except CdcError as error:
        return [], (error.what_happened, error.hint)


def _rising(
    table: int | None,
    applied: int | None,
    captured: int | None,
    closable: int | None,
    found: SourceStatus,
) -> list[int]:
    """The SCNs between which the parts of the lag lie. A table that joined later may be ahead of
    the windows; none is behind itself. Empty without a table or without Oracle."""
    if table is None or captured is None or found.scn_oracle is None:
        return []
    chain = [table]
    for scn in (captured if applied is None else applied, captured, closable, found.scn_oracle):
        chain.append(max(chain[-1], scn or 0))
    return chain


def _seconds(ctx: Context, chain: Sequence[int]) -> tuple[list[float], datetime | None]:
    """The seconds of each part, and Oracle's time now."""
    if not chain:
        return [], None
    with ctx.database.session() as session:
        times = times_of(session, [Scn(scn) for scn in chain])
    return [(high - low).total_seconds() for low, high in pairwise(times)], times[-1]


def _work_waits(
    waiting: Sequence[WindowRecord], closable: Sequence[NextWindow], now: datetime | None
) -> float | None:
    """For how long the oldest window could have been carried, by Oracle's clock."""
    ends = [one.ended for one in waiting if one.ended] + [one.ended for one in closable]
    return (now - min(ends)).total_seconds() if ends and now is not None else None


def _idle(ctx: Context, now: datetime) -> float | None:
    """How long ago a window was captured or applied last."""
    newest = ctx.store.windows.find(newest_first=True, limit=WINDOWS_LOOKED_AT)
    ends = [moment for one in newest for moment in (one.captured, one.applied) if moment]
    return (now - max(ends)).total_seconds() if ends else None


def _holders(ctx: Context) -> tuple[str, ...]:
    """The leases of the source that living processes hold."""
    return tuple(
        lease.name
        for lease in ctx.store.leases.all()
        if lease.name.startswith(f"{ctx.source}/") and not is_abandoned(ctx.store, lease)
    )


def _waiting(records: Sequence[TableRecord], found: SourceStatus) -> tuple[WaitingTable, ...]:
    shown = {one.table: one for one in found.tables}
    return tuple(
        WaitingTable(
            table=str(one.table),
            state=one.state,
            position=one.mirror_scn,
            reason=shown[str(one.table)].reason or one.rest_waits or "its snapshot is not complete",
            way_out=shown[str(one.table)].way_out or "`redolake run` reads its snapshot",
        )
        for one in records
        if not one.takes_windows
    )


def _recent_work(ctx: Context, limit: int) -> RecentWork:
    newest = ctx.captured_windows(limit)[::-1]
    ends = [one.ended for one in newest if one.ended]
    facts = [one.facts for one in newest]
    return RecentWork(
        windows=len(newest),
        redo_seconds=(ends[-1] - ends[0]).total_seconds() if len(ends) > 1 else None,
        logs=sum(one.get("logs", 0) for one in facts),
        rows_mined=sum(one.get("rows_mined", 0) for one in facts),
        rows_landed=sum(one.rows or 0 for one in newest),
        capture_seconds=sum(one.seconds or 0 for one in newest),
        start_seconds=sum(one.get("mining_start_ms", 0) for one in facts) / 1000,
        fetch_seconds=sum(one.get("mining_fetch_ms", 0) for one in facts) / 1000,
        apply_seconds=sum(one.apply_seconds or 0 for one in newest),
        tables=_table_work(ctx, newest),
    )


def _table_work(ctx: Context, windows: Sequence[WindowRecord]) -> tuple[TableWork, ...]:
    if not windows:
        return ()
    ordinals = range(windows[0].ordinal, windows[-1].ordinal + 1)
    by_table: dict[TableId, list[TableApplied]] = defaultdict(list)
    for brought in ctx.store.windows.table_counts(ordinals).values():
        for one in brought:
            by_table[one.table].append(one)
    totals = ctx.store.totals.all()
    found = (_work_of(table, applied, totals) for table, applied in by_table.items())
    return tuple(sorted(found, key=lambda one: (-one.seconds, one.table)))


def _work_of(
    table: TableId,
    applied: Sequence[TableApplied],
    totals: Mapping[tuple[str, tuple[str, ...]], float],
) -> TableWork:
    ways: Counter[WriteWay] = Counter()
    for one in applied:
        if one.write is not None:
            ways[one.write.way] += max(1, round(one.seconds * 1000))
    labels = (str(table),)
    return TableWork(
        table=str(table),
        changes=sum(one.changes for one in applied),
        seconds=sum(one.seconds for one in applied),
        ways=tuple(way for way, _ in ways.most_common()),
        stage_seconds=totals.get(("redolake_stage_seconds_total", labels), 0.0),
        merge_seconds=totals.get(("redolake_merge_seconds_total", labels), 0.0),
    )
