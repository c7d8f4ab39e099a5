"""How does a window's redo get into landing?"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from cdc_core.change_reader import PrefetchedRedo, Prefetcher, WindowWork
from cdc_core.errors import (
    ConfigError,
    IncarnationError,
    NotYetError,
    OracleUnavailableError,
    OtherDatabaseError,
    PreflightError,
    RedoUnavailableError,
    RedoUnreadableError,
)
from cdc_core.landing.layout import window_folder
from cdc_core.landing.ledger import ledger_from_landing
from cdc_core.landing.manifest import MANIFEST_NAME, PlannedWindow, WindowManifest
from cdc_core.model.data_objects import DataObjects
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord, WindowRecord
from cdc_core.model.reports import StepReport
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.transactions import OpenTransaction
from cdc_core.schema.segments import knowing
from cdc_core.schema.table import TableSchema
from cdc_core.state.schemas import SchemaVersion
from cdc_core.steps.context import Context, seconds_since
from cdc_core.steps.definition_changes import new_and_left_out
from cdc_core.steps.overtaken import overtaken_at_window
from cdc_core.steps.policies import answer_policies
from cdc_core.steps.signals import definitions_given
from cdc_core.steps.windows.gap import begin_incarnation, begun_anew, land_gap, leave
from cdc_core.steps.windows.prefetch import Prefetches
from cdc_core.steps.windows.reselecting import reselects, with_reselected
from cdc_core.steps.windows.shared import verify_files
from cdc_core.steps.windows.values_as_of import values_as_of

_LOG = logging.getLogger(__name__)


def capture_window(ctx: Context, window: ScnWindow) -> StepReport:
    """Read a window's redo into landing, unless it has landed; record it and the open transactions
    after it. What was read of it before its turn is used.

    A table whose redo cannot be followed leaves at the SCN where that begins: the report names it,
    and the window holds the others' redo whole.

    Raises:
        NotYetError: The window before it is not captured.
        OvertakenError: Another process captured it meanwhile.
        RedoUnavailableError: Redo is gone, or the database was opened with RESETLOGS.
    """
    started = time.monotonic()
    with (
        ctx.recorded(window),
        overtaken_at_window(ctx, window, ("captured", "applied")),
        ctx.lease("capture", wait_seconds=120),
    ):
        record = ctx.window_record(window)
        repeated = ctx.landing.exists(window_folder(ctx.source, window), MANIFEST_NAME)
        if not repeated and record.state == "planned":
            _read_in_turn(ctx, record)
        manifest, sha256 = ctx.window_manifest(window)
        verify_files(ctx, manifest)
        if record.state == "planned":
            ledger = ledger_from_landing(ctx.landing, manifest)
            ctx.store.windows.record_captured(manifest, sha256, ledger)
            _tell_left_out(ctx, manifest)
            answer_policies(ctx)
        files = (*manifest.redo_files, manifest.transactions_file)
        return ctx.reported(
            StepReport(
                kind="window-captured",
                key=window.key,
                seconds=seconds_since(started),
                rows=sum(manifest.rows_by_table.values()),
                bytes=sum(file.bytes for file in files),
                scn_low=window.scn_low,
                scn_high=window.scn_high,
                facts=manifest.facts,
                repeated=repeated,
                stopped=manifest.left,
            )
        )


def _tell_left_out(ctx: Context, manifest: WindowManifest) -> None:
    """Tell which columns came that are not captured."""
    for change in manifest.schema_changes:
        table = change.schema.table
        before = ctx.store.schemas.at(table, Scn(change.scn - 1))
        if before is not None and (came := new_and_left_out(before, change.schema)):
            _LOG.warning(
                "new columns are not captured table=%s scn=%d columns=%s",
                table, change.scn, ", ".join(came),
            )  # fmt: skip


def _read_in_turn(ctx: Context, record: WindowRecord) -> None:
    try:
        with ctx.turns.turn(record.window) as prefetched:
            _read(ctx, record, prefetched)
    except (OracleUnavailableError, PreflightError) as error:
        if not ctx.turns.read_no_further(record.window, error):
            raise
        with ctx.turns.turn(record.window) as prefetched:
            _read(ctx, record, prefetched)


def _read(ctx: Context, record: WindowRecord, prefetched: PrefetchedRedo | None) -> None:
    """Read a window into landing. Where its redo is gone, the tables leave whose policy says so,
    and it is read for the others."""
    work = _work(ctx, record)
    try:
        land_window(ctx, work, prefetched)
    except IncarnationError as error:
        asked = ctx.config.with_policy("redo_gone", "resnapshot")
        captured = [one.table for one in ctx.store.tables.all() if one.is_captured]
        if not asked.issuperset(captured):
            raise
        begin_incarnation(ctx, error, tables_of)
        land_window(ctx, _work(ctx, record), None)
    except RedoUnavailableError as error:
        if "sequence" not in error.facts or isinstance(error, RedoUnreadableError):
            raise  # another database or incarnation, or a file that may come back
        asked = ctx.config.with_policy("redo_gone", "resnapshot")
        leaving = [one for one in tables_of(ctx, record) if one.table in asked]
        if not leave(ctx, record.window.scn_low, leaving, error):
            raise
        land_window(ctx, _work(ctx, record), None)


def land_window(ctx: Context, work: WindowWork, prefetched: PrefetchedRedo | None = None) -> None:
    """Read a window into landing; one without tables is a gap, of which nothing is read."""
    if not work.tables:
        land_gap(work, ctx.landing)
    elif prefetched is None:
        ctx.change_reader.capture_window(work, ctx.landing)
    else:
        prefetched.capture_window(work, ctx.landing)


def next_gap(ctx: Context) -> tuple[WindowRecord, RedoUnavailableError] | None:
    """The first window that is not captured, if its redo is gone, and the error that says so. It is
    tried again: the redo may have come back, and the window is captured then."""
    planned = ctx.store.windows.find(states=("planned",), limit=1)
    if not planned or planned[0].last_error is None:
        return None
    try:
        capture_window(ctx, planned[0].window)
    except RedoUnavailableError as error:
        return planned[0], error
    return None


def skip_gap(
    ctx: Context, *, is_replaced: bool = False
) -> tuple[WindowRecord | None, list[TableRecord]] | None:
    """Where redo of the first window that is not captured is gone: end the streams of all tables
    that need it, and let the window be a gap; the window, if one was planned, and the tables. After
    RESETLOGS all tables need it. None where there is no gap.

    Args:
        ctx: The source.
        is_replaced: The database may be another one than that which the source began with, and is
            from now on the source's.

    Raises:
        OtherDatabaseError: The database is another one.
        RedoUnavailableError: It is not redo that lacks.
        NotYetError: SCNs that windows or snapshots have reached will recur in the present database.
    """
    try:
        with ctx.database.session():
            found = next_gap(ctx)
    except OtherDatabaseError as other:
        if not is_replaced:
            raise
        with ctx.lease("capture", wait_seconds=120):
            planned = ctx.store.windows.find(states=("planned",), limit=1)
            left = begin_incarnation(ctx, other, tables_of)
        for waiting in planned:
            capture_window(ctx, waiting.window)
        return (planned[0] if planned else None), left
    if found is None:
        return None
    record, error = found
    is_reset = isinstance(error, IncarnationError)
    if not is_reset and {"expected", "resetlogs_change"} & error.facts.keys():
        raise error
    with ctx.lease("capture", wait_seconds=120):
        if isinstance(error, IncarnationError):
            left = begin_incarnation(ctx, error, tables_of)
        else:
            left = leave(ctx, record.window.scn_low, tables_of(ctx, record), error)
    capture_window(ctx, record.window)
    return record, left


def tables_of(ctx: Context, record: WindowRecord) -> list[TableRecord]:
    """The tables whose redo a window holds, or is to hold."""
    return [table for table in ctx.store.tables.all() if _belongs(ctx, table, record)]


def _work(ctx: Context, record: WindowRecord) -> WindowWork:
    before = ctx.store.windows.find(ordinals=range(record.ordinal - 1, record.ordinal))
    if before and before[0].state == "planned":
        raise NotYetError(
            "the window before this one is not captured",
            hint="`redolake capture` captures windows in order: the open transactions of one are the next one's beginning.",
            window=record.window.key,
            before=before[0].window.key,
        )
    ledger = ctx.store.ledger.open_transactions()
    return window_work(ctx, record, before[0] if before else None, ledger)


def window_work(
    ctx: Context,
    record: WindowRecord,
    before: WindowRecord | None,
    ledger: Sequence[OpenTransaction],
) -> WindowWork:
    """What a window is read with, given the window before it and the transactions that were open
    then."""
    streams = tables_of(ctx, record)
    versions = ctx.store.schemas.by_table()
    landed = _manifest_of(ctx, before)
    _refuse_another_reader(ctx, record, landed)
    work = WindowWork(
        source=ctx.source_record(),
        record=record,
        tables=[_schema(ctx, table, record, versions.get(table.table, ())) for table in streams],
        ledger=ledger,
        positions=before.positions if before else (),
        joins={
            table.table: table.mining_low or record.mining_low
            for table in streams
            if table.first_ordinal == record.ordinal
        },
        read_at={one.table: one.snapshot_scn for one in streams if one.snapshot_scn is not None},
        planned=PlannedWindow(
            key=record.key,
            created=record.created.isoformat(),
            ended=record.ended.isoformat() if record.ended else None,
            idle_from=ctx.store.windows.idle_from(record.ordinal),
            before_sha256=before.manifest_sha256 if before else None,
        ),
        data_objects=_data_objects(record, landed, streams, versions),
        complete=partial(with_reselected, ctx, record) if reselects(ctx.config) else None,
        given=definitions_given(ctx, record.window),
        reader=landed.reader if landed else {},
        values_as_of=partial(values_as_of, ctx),
    )
    return begun_anew(work) if before is not None and before.is_gap else work


def _manifest_of(ctx: Context, before: WindowRecord | None) -> WindowManifest | None:
    """What landed of the window before; None where there is none, or it is gone from landing."""
    folder = window_folder(ctx.source, before.window) if before else ""
    if before is None or not ctx.landing.exists(folder, MANIFEST_NAME):
        return None
    return ctx.window_manifest(before.window)[0]


def _refuse_another_reader(
    ctx: Context, record: WindowRecord, landed: WindowManifest | None
) -> None:
    """Transactions that are open between two windows are known to the reader of the first one.

    Raises:
        ConfigError: ``capture.type`` was changed.
    """
    if landed is None or landed.is_gap:
        return
    if bool(landed.reader) != (ctx.config.capture.type != "logminer"):
        raise ConfigError(
            "another reader captured the window before this one, and its open transactions are not known to this one",
            hint="Set capture.type to what it was. To change the reader, start the source over under another name.",
            window=record.window.key,
            type=ctx.config.capture.type,
        )


def _data_objects(
    record: WindowRecord,
    landed: WindowManifest | None,
    streams: Sequence[TableRecord],
    versions: Mapping[TableId, Sequence[SchemaVersion]],
) -> Mapping[TableId, DataObjects] | None:
    """What the window before knew; of a table whose snapshot was read later, what that one saw.
    None where the window before is gone, since this one is read again."""
    found: dict[TableId, DataObjects] = {}
    if record.ordinal > 0:
        if landed is None:
            return None
        known = landed.data_objects
        found = {TableId.parse(name): one for name, one in known.items()}
    for one in streams:
        scn = one.snapshot_scn or Scn(0)
        if scn < record.window.scn_low and one.first_ordinal < record.ordinal:
            continue
        seen = (each.schema for each in versions.get(one.table, ()) if each.schema.scn_from == scn)
        numbers = next((schema.data_objects for schema in seen), None)
        found.pop(one.table, None)
        found |= {one.table: numbers} if numbers is not None else {}
    return found


def _belongs(ctx: Context, table: TableRecord, record: WindowRecord) -> bool:
    """Does the window hold the table's redo? One that is read again also holds that of a table
    whose stream ended later."""
    ended_later = (table.stopped_scn or 0) > record.window.scn_low
    return (
        table.table in ctx.config.entries
        and (table.is_captured or ended_later)
        and table.first_ordinal <= record.ordinal
    )


def _schema(
    ctx: Context, table: TableRecord, record: WindowRecord, versions: Sequence[SchemaVersion]
) -> TableSchema:
    """The definition at the window's lower end; of a table that joins with it, the one that its
    snapshot reads. With it every segment that the table is known to have had, since rows come
    late."""
    at = max(record.window.scn_low, table.snapshot_scn or Scn(0))
    known = [version.schema for version in versions if version.schema.scn_from <= at]
    if not known:
        raise ConfigError(
            "the schema history has no version of this table for the window",
            hint=f"`redolake table resnapshot {table.table.argument}` adds the table back with a new snapshot.",
            table=table.table,
            window=record.window.key,
        )
    schema = known[-1]
    for version in versions:
        schema = knowing(schema, version.schema.segments)
    return ctx.visible(schema)


@contextmanager
def prefetching(ctx: Context, windows: Sequence[ScnWindow]) -> Iterator[None]:
    """Read the redo of these windows before their turn, for the block in which they are captured in
    order: of those that are planned, in ``capture.sessions`` sessions."""
    sessions = ctx.config.capture.prefetch_sessions
    planned = {one.window for one in ctx.store.windows.find(states=("planned",))}
    waiting = [window for window in windows if window in planned]
    if sessions == 1 or len(waiting) < 2 or not isinstance(ctx.change_reader, Prefetcher):
        yield
        return
    reads = Prefetches(waiting, partial(_prefetch, ctx), sessions=sessions)
    ctx.turns.prefetches = reads
    try:
        yield
    finally:
        ctx.turns.prefetches = None
        reads.close()


def _prefetch(ctx: Context, window: ScnWindow, stop: threading.Event) -> PrefetchedRedo | None:
    work = window_work(ctx, ctx.window_record(window), None, ())
    source = ctx.change_reader
    if not work.tables or not isinstance(source, Prefetcher):
        return None
    return source.prefetch(work, ctx.landing, stop)
