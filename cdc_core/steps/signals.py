"""How does a request from outside become an ad hoc snapshot or a table's definition, exactly once?

A signal is taken under a lease; the chunks planned for it carry its id. A process that dies between taking and planning
leaves a taken signal without chunks, which the next one plans. A definition is taken with the SCN from which on it holds. The window with
that SCN lands what became of it, and is recorded together with that.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace

from cdc_core.errors import CdcError, ConfigError, FencedError, TransientError
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import StepReport
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.signals import Signal
from cdc_core.oracle.database import current_scn
from cdc_core.schema.signalled_definitions import GivenTable
from cdc_core.snapshot.signal_table import committed_scn, take_rows
from cdc_core.snapshot.signals import (
    SCHEMA_CHANGES,
    ExecuteSnapshot,
    SchemaChanges,
    definitions_of,
    parse_signal,
    refusal_of_id,
)
from cdc_core.steps.context import Context, seconds_since
from cdc_core.steps.snapshots.plan import start_snapshot

LOG = logging.getLogger("cdc_core.steps")
_OUR_NAMES = (
    "SELECT SYS_CONTEXT('USERENV', 'CON_NAME'), SYS_CONTEXT('USERENV', 'DB_NAME'),"
    " SYS_CONTEXT('USERENV', 'SERVICE_NAME') FROM DUAL"
)
"""What Debezium may call the database: its ``database.pdb.name`` or ``database.dbname``."""


def add_signal(ctx: Context, signal: Signal) -> None:
    """Put a signal into the metadata store after checking that it can be understood, and that conditions fit the tables'
    last known columns.

    Raises:
        ConfigError: It cannot, or they do not.
    """
    if refusal := refusal_of_id(signal.id):
        raise ConfigError(f"the signal cannot be sent: {refusal}", hint="Choose another --id.")
    request = parse_signal(signal.type, signal.data)
    tables = ctx.configured(list(request.tables))
    if isinstance(request, ExecuteSnapshot):
        _check_conditions(ctx, request, tables)
    ctx.store.signals.add(signal)


def _check_conditions(ctx: Context, request: ExecuteSnapshot, tables: list[TableId]) -> None:
    # Few signals have a condition, and its parser takes a moment to import.
    from cdc_core.snapshot.conditions import checked_condition

    for table in tables:
        condition = request.condition_of(table)
        versions = ctx.store.schemas.versions(ctx.source, table)
        if condition is not None and versions:
            checked_condition(condition, versions[-1].schema)


def take_signals(ctx: Context) -> list[tuple[Signal, list[ChunkKey]]]:
    """Take every waiting signal, of the store and of Oracle's signal table, and plan what it asks for.

    A signal that cannot be understood is recorded as rejected with the reason and stops nothing.
    """
    taken = []
    with ctx.lease("signals", wait_seconds=30):
        if ctx.config.signals.table is not None and (position := _position(ctx)) is not None:
            with ctx.database.session() as session:
                take_rows(session, ctx.config, ctx.store.signals, position)
        for signal in ctx.store.signals.find(ctx.source, states=("pending", "taken")):
            keys = _act(ctx, signal)
            if keys is not None:
                taken.append((signal, keys))
    return taken


def _position(ctx: Context) -> Scn | None:
    """Up to which SCN the source has captured; None before its first snapshot has an SCN."""
    newest = ctx.store.windows.find(
        ctx.source, newest_first=True, limit=1, states=("captured", "applied")
    )
    if newest:
        return newest[0].window.scn_high
    record = ctx.store.sources.get(ctx.source)
    return record.snapshot_scn if record else None


def _check_databases(ctx: Context, named: Sequence[str]) -> None:
    """A name in three parts is of this database.

    Raises:
        ConfigError: It is of another one.
    """
    if not named:
        return
    with ctx.database.session() as session:
        ours = {str(name) for name in session.fetch_all(_OUR_NAMES)[0] if name}
    strange = [name for name in named if name not in ours]
    if strange:
        raise ConfigError(
            "data-collections names tables of another database",
            hint=f"This source reads {' or '.join(sorted(ours))}; write OWNER.TABLE or that database's name.",
            databases=", ".join(strange),
        )


def _act(ctx: Context, signal: Signal) -> list[ChunkKey] | None:
    started = time.monotonic()
    try:
        request = parse_signal(signal.type, signal.data)
        if isinstance(request, SchemaChanges):
            return _take_definitions(ctx, signal, request)
        _check_databases(ctx, request.databases)
        if signal.state == "pending":
            ctx.store.signals.take(ctx.source, signal.id)
        keys = _planned_before(ctx, signal) or _plan(ctx, signal, request)
    except (TransientError, FencedError):
        raise
    except CdcError as error:
        ctx.store.signals.finish(ctx.source, signal.id, state="rejected", reason=str(error))
        LOG.warning("signal %s is rejected: %s", signal.id, error)
        ctx.reported(
            StepReport(kind="signal-rejected", key=signal.id, seconds=seconds_since(started))
        )
        return None
    ctx.store.signals.finish(ctx.source, signal.id, state="done")
    ctx.reported(
        StepReport(
            kind="signal-taken", key=signal.id, seconds=seconds_since(started), rows=len(keys)
        )
    )
    return keys


def _take_definitions(
    ctx: Context, signal: Signal, request: SchemaChanges
) -> list[ChunkKey] | None:
    """Keep the SCN from which on the definitions hold; the window with that SCN makes versions of them. None where that was done
    before.

    Raises:
        ConfigError: A table is not captured, or redo of that SCN was captured already.
    """
    if signal.state == "taken":
        return None
    ctx.configured(list(request.tables))
    captured = _position(ctx) or Scn(0)
    if request.scn is not None and request.scn <= captured:
        raise ConfigError(
            "the redo of this SCN was captured before the signal was taken",
            hint="Leave scn out: the definition then holds from the SCN on at which the signal is taken.",
            scn=request.scn,
            captured=captured,
        )
    scn = request.scn
    if scn is None:
        with ctx.database.session() as session:
            scn = committed_scn(session, ctx.config, signal) or current_scn(session)
    ctx.store.signals.take(ctx.source, signal.id, data={**signal.data, "scn": scn})
    LOG.info("signal %s is taken: its definitions hold from SCN %d on", signal.id, scn)
    ctx.reported(StepReport(kind="signal-taken", key=signal.id, seconds=0.0, rows=0))
    return []


def definitions_given(ctx: Context, window: ScnWindow) -> list[GivenTable]:
    """The definitions that take effect in a window: those that wait, once their SCN has come, and those that took effect there when it was
    captured before."""
    found = []
    for signal in ctx.store.signals.find(ctx.source, states=("taken", "done")):
        if signal.type != SCHEMA_CHANGES:
            continue
        for one in definitions_of(signal):
            if one.scn <= window.scn_high and signal.state == "taken":
                found.append(replace(one, scn=Scn(max(one.scn, window.scn_low + 1))))
            elif window.scn_low < one.scn <= window.scn_high:
                found.append(one)
    return found


def _planned_before(ctx: Context, signal: Signal) -> list[ChunkKey]:
    return [
        ChunkKey(chunk.table, chunk.snapshot_id, chunk.number)
        for chunk in ctx.store.chunks.find(ctx.source)
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
