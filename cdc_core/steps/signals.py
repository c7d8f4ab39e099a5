"""How is a signal read from its channels and acted on, exactly once?

What the channels bring is kept in the metadata store first, under its id. A signal is then taken
under a lease; the chunks planned for it carry its id. A process that dies between taking and
planning leaves a taken signal without chunks, which the next one plans. A definition is taken with
the SCN from which on it holds. The window with that SCN lands what became of it, and is recorded
together with that.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os.path import isfile  # a file in a folder that may not be looked at is none
from typing import assert_never

from cdc_core.errors import (
    CdcError,
    ConfigError,
    FencedError,
    LeaseHeldError,
    SignalsUnavailableError,
    TransientError,
)
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.reports import StepReport
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.signals import Signal
from cdc_core.oracle.database import current_scn
from cdc_core.schema.signalled_definitions import GivenTable
from cdc_core.signals.actions import run_action
from cdc_core.signals.channels import Channel, FileChannel, LandingChannel, used_before
from cdc_core.signals.data import refusal_of_id
from cdc_core.signals.data_collections import is_plain_name, tables_of_collections
from cdc_core.signals.kafka_channel import KafkaChannel
from cdc_core.signals.oracle_channel import OracleChannel, committed_scn
from cdc_core.signals.schema_changes import SchemaChanges, definitions_of
from cdc_core.signals.signal_types import (
    SCHEMA_CHANGES,
    CustomAction,
    DropTransaction,
    ExecuteSnapshot,
    LogMessage,
    PauseSnapshot,
    Request,
    ResumeSnapshot,
    StopSnapshot,
    conditions_asked,
    parse_signal,
)
from cdc_core.steps.context import Context, seconds_since
from cdc_core.steps.signal_rows import RedoChannel, captured_signal_table
from cdc_core.steps.snapshots.control import stop_snapshots
from cdc_core.steps.snapshots.plan import start_snapshot

LOG = logging.getLogger("cdc_core.steps")
LOOK_SECONDS = 2.0
"""How often signals are looked for between the chunks of a snapshot."""
_IN_STORE = frozenset({"store", "dagster"})
"""Channels whose signals the metadata store has already."""
_OUR_NAMES = (
    "SELECT SYS_CONTEXT('USERENV', 'CON_NAME'), SYS_CONTEXT('USERENV', 'DB_NAME'),"
    " SYS_CONTEXT('USERENV', 'SERVICE_NAME') FROM DUAL"
)
"""What Debezium may call the database: its ``database.pdb.name`` or ``database.dbname``."""


def add_signal(ctx: Context, signal: Signal) -> bool:
    """Put a signal into the metadata store after checking that it can be understood, and that it
    fits the tables' last known columns.

    Returns:
        Whether it is new: False where the same signal was sent before under the same id.

    Raises:
        ConfigError: It cannot be understood, does not fit, comes through a channel that is off, or
            has the id of another signal.
    """
    if signal.channel not in ctx.config.signals.enabled:
        raise ConfigError(
            "Redolake does not read signals from this channel",
            hint=f"Add {signal.channel} to signals.channels.",
            channel=signal.channel,
        )
    if refusal := refusal_of_id(signal.id):
        raise ConfigError(f"the signal cannot be sent: {refusal}", hint="Choose another --id.")
    request = parse_signal(signal.type, signal.data, ctx.config.signals.actions)
    if isinstance(request, SchemaChanges):
        ctx.configured(list(request.tables))
    if isinstance(request, ExecuteSnapshot):
        _check_conditions(ctx, request)
    if ctx.store.signals.add(signal):
        return True
    known = ctx.store.signals.get(signal.id)
    if known is not None and not _is_same(signal, known):
        raise ConfigError(
            "another signal has this id",
            hint="Choose another id; `redolake signals` lists those that were used.",
            id=signal.id,
        )
    return False


def _is_same(signal: Signal, known: Signal) -> bool:
    data = {key: value for key, value in known.data.items() if key != "scn"}
    asked = {key: value for key, value in signal.data.items() if key != "scn"}
    return (signal.type, asked) == (known.type, data)


def _is_resent(signal: Signal, known: Signal) -> bool:
    return signal.channel == known.channel and _is_same(signal, known)


def _check_conditions(ctx: Context, request: ExecuteSnapshot) -> None:
    """Nobody asks Oracle here what its database is called: what may name it is judged when the
    signal is taken."""
    conditions = [one.data_collection for one in request.additional_conditions]
    if not all(map(is_plain_name, (*request.data_collections, *conditions))):
        return
    captured = ctx.configured(None)
    tables = tables_of_collections(request.data_collections, captured, ())
    for table, text in conditions_asked(request, tables, captured, ()).items():
        if versions := ctx.store.schemas.versions(table):
            # Few signals have a condition, and its parser takes a moment to import.
            from cdc_core.snapshot.filters import checked_filter

            checked_filter(text, versions[-1].schema, is_statement=request.type == "blocking")


def take_signals(ctx: Context) -> list[tuple[Signal, list[ChunkKey]]]:
    """Take every waiting signal of every channel, and do what it asks for.

    A signal that cannot be understood is recorded as rejected with the reason and stops nothing.
    """
    taken: list[tuple[Signal, list[ChunkKey]]] = []
    outside = set(ctx.config.signals.enabled) - _IN_STORE
    if not outside and not ctx.store.signals.pending():
        return taken
    with ctx.lease("signals", wait_seconds=30):
        with _channels(ctx) as channels:
            for channel in channels:
                try:
                    _keep(ctx, channel.read(ctx.store.signals))
                    channel.acknowledge()
                except SignalsUnavailableError as error:
                    LOG.warning("the channel %s is left out: %s", channel.name, error)
        for signal in ctx.store.signals.pending():
            keys = _act(ctx, signal)
            if keys is not None:
                taken.append((signal, keys))
    return taken


def is_signal_waiting(ctx: Context) -> bool:
    """Is there a signal that nobody has taken, in the metadata store, a file or Kafka? Quick:
    Oracle is not asked."""
    file = ctx.config.signals.file
    if file is not None and "file" in ctx.config.signals.enabled and isfile(file):  # noqa: PTH113
        return True
    if ctx.store.signals.find(states=("pending",)):
        return True
    if "kafka" not in ctx.config.signals.enabled:
        return False
    try:
        return KafkaChannel(ctx.source, ctx.config.signals).is_waiting(ctx.store.signals)
    except SignalsUnavailableError as error:
        LOG.warning("the channel kafka is left out: %s", error)
        return False


class SignalWatch:
    """Takes waiting signals between the chunks of a snapshot: one may stop or pause it. Safe for
    use from several threads, of which one looks at a time.

    Args:
        ctx: The source.
        take: Takes all waiting signals.
    """

    def __init__(self, ctx: Context, take: Callable[[], object]) -> None:
        self._ctx = ctx
        self._take = take
        self._lock = threading.Lock()
        self._next = 0.0

    def look(self) -> None:
        """Take what waits, unless somebody has looked just now."""
        if time.monotonic() < self._next or not self._lock.acquire(blocking=False):
            return
        started = time.monotonic()
        try:
            if is_signal_waiting(self._ctx):
                self._take()
        except LeaseHeldError as error:
            LOG.info("signals are taken by another process: %s", error)
        finally:
            now = time.monotonic()
            # A look that waits for a channel in vain shall not hold the chunks up.
            self._next = now + max(LOOK_SECONDS, 10 * (now - started))
            self._lock.release()


@contextmanager
def _channels(ctx: Context) -> Iterator[list[Channel]]:
    """The channels that signals are read from; those of ``store`` and ``dagster`` are there
    already."""
    config = ctx.config.signals
    found: list[Channel] = []
    if "file" in config.enabled and config.file is not None:
        found.append(FileChannel(ctx.source, config.file))
    if "landing" in config.enabled:
        found.append(LandingChannel(ctx.source, ctx.landing))
    if "kafka" in config.enabled:
        found.append(KafkaChannel(ctx.source, config))
    position = ctx.captured_up_to()
    if "oracle" not in config.enabled or position is None:
        yield found
        return
    captured = captured_signal_table(ctx)
    with ctx.database.session() as session:
        queried = OracleChannel(session, ctx.config, position)
        yield [*found, RedoChannel(ctx, captured, queried) if captured else queried]


def _keep(ctx: Context, signals: Sequence[Signal]) -> None:
    """Keep signals in the metadata store. One whose id is another's is kept as rejected; one that
    was kept by a process that died before it acknowledged still waits there."""
    for signal in signals:
        if ctx.store.signals.add(signal) or signal.state == "rejected":
            continue
        known = ctx.store.signals.get(signal.id)
        if known is not None and known.state in ("pending", "taken") and _is_resent(signal, known):
            LOG.info("signal %s waits already", signal.id)
            continue
        LOG.warning("signal %s was repeated; Redolake acts on an id once", signal.id)
        ctx.store.signals.add(used_before(signal))


def _act(ctx: Context, signal: Signal) -> list[ChunkKey] | None:
    started = time.monotonic()
    try:
        request = parse_signal(signal.type, signal.data, ctx.config.signals.actions)
        if isinstance(request, SchemaChanges):
            return _take_definitions(ctx, signal, request)
        if signal.state == "pending":
            ctx.store.signals.take(signal.id)
        keys, outcome = _done(ctx, signal, request)
    except (TransientError, FencedError):
        raise
    except CdcError as error:
        ctx.store.signals.finish(signal.id, state="rejected", reason=str(error))
        LOG.warning("signal %s is rejected: %s", signal.id, error)
        ctx.reported(
            StepReport(kind="signal-rejected", key=signal.id, seconds=seconds_since(started))
        )
        return None
    ctx.store.signals.finish(signal.id, state="done", reason=outcome)
    ctx.reported(
        StepReport(
            kind="signal-taken", key=signal.id, seconds=seconds_since(started), rows=len(keys)
        )
    )
    return keys


def _done(ctx: Context, signal: Signal, request: Request) -> tuple[list[ChunkKey], str | None]:
    """Do what a signal asks for; the chunks that it planned, and what became of it in words."""
    match request:
        case ExecuteSnapshot():
            if keys := _planned_before(ctx, signal):
                return keys, None
            return _execute(ctx, signal, request)
        case StopSnapshot():
            captured = ctx.configured(None)
            named = request.data_collections
            tables = tables_of_collections(named, captured, _databases(ctx)) if named else captured
            return [], str(stop_snapshots(ctx, tables))
        case PauseSnapshot():
            is_new = ctx.store.signals.pause_snapshots()
            return [], None if is_new else "snapshots were paused already"
        case ResumeSnapshot():
            is_new = ctx.store.signals.resume_snapshots()
            return [], None if is_new else "snapshots were not paused"
        case LogMessage():
            position = ctx.captured_up_to()
            told = request.message.replace("{}", f"SCN {position}" if position else "no position")
            LOG.info("signal %s: %s", signal.id, " ".join(told.split()))
            return [], None
        case DropTransaction():
            raise _refused_drop(ctx, request)
        case CustomAction():
            path = ctx.config.signals.actions[request.type]
            position = ctx.captured_up_to()
            return [], run_action(
                path, signal.id, request.data, source=ctx.source, position=position
            )
        case SchemaChanges():
            raise AssertionError("definitions are taken by the window with their SCN")
        case _:
            assert_never(request)


def _databases(ctx: Context) -> tuple[str, ...]:
    """What the tables' database may be called."""
    with ctx.database.session() as session:
        return tuple(str(name) for name in session.fetch_all(_OUR_NAMES)[0] if name)


def _execute(
    ctx: Context, signal: Signal, request: ExecuteSnapshot
) -> tuple[list[ChunkKey], str | None]:
    """All chunks of the signal in one transaction: found again whole by :func:`_planned_before`, or
    not at all. Nothing is planned for a signal that asks for what an earlier one waits for."""
    if (same := _waiting_like(ctx, signal)) is not None:
        return [], f"it asks for the same as {same}, of which no chunk has been read yet"
    captured, databases = ctx.configured(None), _databases(ctx)
    tables = tables_of_collections(request.data_collections, captured, databases)
    conditions = conditions_asked(request, tables, captured, databases)
    keys = start_snapshot(
        ctx,
        list(tables),
        conditions=conditions,
        signal_id=signal.id,
        is_blocking=request.type == "blocking",
        chunk_by=request.surrogate_key,
    )
    return keys, None


def _waiting_like(ctx: Context, signal: Signal) -> str | None:
    """The id of an earlier signal with the same data none of whose chunks has been read."""
    chunks = [one for one in ctx.store.chunks.find() if one.signal_id is not None]
    begun = {one.signal_id for one in chunks if one.state != "planned"}
    waits = {one.signal_id for one in chunks} - begun
    for one in ctx.store.signals.find(states=("done",)):
        if one.id in waits and (one.type, one.data) == (signal.type, signal.data):
            return one.id
    return None


def _refused_drop(ctx: Context, request: DropTransaction) -> ConfigError:
    """Debezium drops a transaction to free its memory. Here one costs no memory, and a commit that
    is left out would make mirrors wrong."""
    known = {one.xid: one for one in ctx.store.ledger.open_transactions() if not one.is_over}
    found = known.get(request.xid)
    if found is None:
        raise ConfigError(
            "no such transaction is open",
            hint="`redolake status` shows the oldest open ones.",
            transaction=request.xid,
        )
    session = f"'{found.session_id},{found.serial}'" if found.session_id else "'sid,serial#'"
    return ConfigError(
        "a transaction is never dropped: it needs no memory here, and its commit would be lost",
        hint=f"End it in Oracle: ALTER SYSTEM KILL SESSION {session}. Its ROLLBACK then frees what is"
        " kept for it.",
        transaction=request.xid,
    )


def _take_definitions(
    ctx: Context, signal: Signal, request: SchemaChanges
) -> list[ChunkKey] | None:
    """Keep the SCN from which on the definitions hold; the window with that SCN makes versions of
    them. None where that was done before.

    Raises:
        ConfigError: A table is not captured, or redo of that SCN was captured already.
    """
    if signal.state == "taken":
        return None
    ctx.configured(list(request.tables))
    captured = ctx.captured_up_to() or Scn(0)
    if request.scn is not None and request.scn <= captured:
        raise ConfigError(
            "the redo of this SCN was captured before Redolake processed the signal",
            hint="Leave scn out: the definition is then valid from the SCN at which Redolake processes the signal.",
            scn=request.scn,
            captured=captured,
        )
    scn = request.scn
    if scn is None:
        with ctx.database.session() as session:
            scn = committed_scn(session, ctx.config, signal) or current_scn(session)
    ctx.store.signals.take(signal.id, data={**signal.data, "scn": scn})
    LOG.info("signal %s is taken: its definitions hold from SCN %d on", signal.id, scn)
    ctx.reported(StepReport(kind="signal-taken", key=signal.id, seconds=0.0, rows=0))
    return []


def definitions_given(ctx: Context, window: ScnWindow) -> list[GivenTable]:
    """The definitions that take effect in a window: those that wait, once their SCN has come, and
    those that took effect there when it was captured before."""
    found = []
    for signal in ctx.store.signals.find(states=("taken", "done")):
        if signal.type != SCHEMA_CHANGES:
            continue
        for one in definitions_of(signal):
            if one.scn <= window.scn_high and signal.state == "taken":
                found.append(replace(one, scn=Scn(max(one.scn, window.scn_low + 1))))
            elif window.scn_low < one.scn <= window.scn_high:
                found.append(one)
    return found


def _planned_before(ctx: Context, signal: Signal) -> list[ChunkKey]:
    return [chunk.chunk_key for chunk in ctx.store.chunks.find() if chunk.signal_id == signal.id]
