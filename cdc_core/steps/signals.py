"""How does a request from outside become an ad hoc snapshot, exactly once?

A signal is taken under a lease; the chunks planned for it carry its id. A process that dies between taking and planning
leaves a taken signal without chunks, which the next one plans.
"""

from __future__ import annotations

import logging
import time

from cdc_core.errors import CdcError, TransientError
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.reports import StepReport
from cdc_core.model.signals import Signal
from cdc_core.snapshot.conditions import checked_condition
from cdc_core.snapshot.signals import ExecuteSnapshot, parse_signal, read_signal_table
from cdc_core.steps.context import Context, seconds_since
from cdc_core.steps.snapshots.plan import start_snapshot

LOG = logging.getLogger("cdc_core.steps")


def add_signal(ctx: Context, signal: Signal) -> None:
    """Put a signal into the metadata store after checking that it can be understood, and that conditions fit the tables'
    last known columns.

    Raises:
        ConfigError: It cannot, or they do not.
    """
    request = parse_signal(signal.type, signal.data)
    for table in ctx.configured(list(request.tables)):
        condition = request.condition_of(table)
        versions = ctx.store.schema_versions(ctx.source, table)
        if condition is not None and versions:
            checked_condition(condition, versions[-1].schema)
    ctx.store.add_signal(signal)


def take_signals(ctx: Context) -> list[tuple[Signal, list[ChunkKey]]]:
    """Take every waiting signal, of the store and of Oracle's signal table, and plan what it asks for.

    A signal that cannot be understood is recorded as rejected with the reason and stops nothing.
    """
    taken = []
    with ctx.lease("signals", wait_seconds=30):
        if ctx.config.signals.table is not None:
            with ctx.database.session() as session:
                for signal in read_signal_table(session, ctx.config, ctx.store):
                    ctx.store.add_signal(signal)
        for signal in ctx.store.signals(ctx.source, states=("pending", "taken")):
            keys = _act(ctx, signal)
            if keys is not None:
                taken.append((signal, keys))
    return taken


def _act(ctx: Context, signal: Signal) -> list[ChunkKey] | None:
    started = time.monotonic()
    if signal.state == "pending":
        ctx.store.take_signal(ctx.source, signal.id)
    try:
        request = parse_signal(signal.type, signal.data)
        keys = _planned_before(ctx, signal) or _plan(ctx, signal, request)
    except TransientError:
        raise
    except CdcError as error:
        ctx.store.finish_signal(ctx.source, signal.id, state="rejected", reason=str(error))
        LOG.warning("signal %s is rejected: %s", signal.id, error)
        ctx.reported(
            StepReport(kind="signal-rejected", key=signal.id, seconds=seconds_since(started))
        )
        return None
    ctx.store.finish_signal(ctx.source, signal.id, state="done")
    ctx.reported(
        StepReport(
            kind="signal-taken", key=signal.id, seconds=seconds_since(started), rows=len(keys)
        )
    )
    return keys


def _planned_before(ctx: Context, signal: Signal) -> list[ChunkKey]:
    return [
        ChunkKey(chunk.table, chunk.snapshot_id, chunk.number)
        for chunk in ctx.store.chunks(ctx.source)
        if chunk.signal_id == signal.id
    ]


def _plan(ctx: Context, signal: Signal, request: ExecuteSnapshot) -> list[ChunkKey]:
    """All chunks of the signal in one transaction: found again whole by :func:`_planned_before`, or not at all."""
    conditions = {table: request.condition_of(table) for table in request.tables}
    return start_snapshot(
        ctx,
        list(request.tables),
        conditions={table: text for table, text in conditions.items() if text is not None},
        signal_id=signal.id,
    )
