"""How does a captured window get into change logs and mirrors, table by table?"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from cdc_core.errors import (
    CdcError,
    LakeError,
    NotYetError,
    SparkMemoryError,
    SparkUnavailableError,
)
from cdc_core.landing.kept import kept_retired
from cdc_core.landing.manifest import WindowManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord, WindowRecord
from cdc_core.model.reports import StepReport, TableApplied
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.streams import StreamEnd
from cdc_core.steps.context import Context, seconds_since
from cdc_core.steps.overtaken import overtaken_at_window, overtaken_where_forgotten
from cdc_core.steps.policies import answer_policies
from cdc_core.steps.positions import publish_positions
from cdc_core.steps.table_errors import TABLE_ERRORS, out_of_memory_alone, stop_table
from cdc_core.steps.windows.missing_in_lake import lost_parts
from cdc_core.steps.windows.shared import captured_window, side_by_side, window_report
from cdc_core.steps.windows.side_tables import count_transactions, keep_side_tables
from cdc_core.steps.windows.table_part import WindowPart
from cdc_core.steps.windows.table_ranges import is_behind, part_of

_LOG = logging.getLogger(__name__)


def apply_window(
    ctx: Context, window: ScnWindow, tables: list[TableId] | None = None
) -> StepReport:
    """Put a captured window into change logs and mirrors, table by table; a table that has it
    already is left alone. Tables for which the window has nothing move on with it, chosen or not.

    A table whose redo or whose Delta tables stop it fails by itself: the report names it, its
    mirror stays as it is, and the others take the window. A table that must take an earlier window
    first is left for later.

    Raises:
        NotYetError: The window is not captured, or all tables that want it must take an earlier one
            first.
        OvertakenError: Another process applied it meanwhile.
    """
    started = time.monotonic()
    with ctx.recorded(window), overtaken_at_window(ctx, window, ("applied",)):
        record = captured_window(ctx, window)
        manifest, _ = ctx.window_manifest(window)
        parts, before = _parts(ctx, manifest, tables)
        untouched = {
            table: part.scn_high
            for table, part in parts.items()
            if table not in manifest.tables_touched
        }
        ctx.store.windows.advance_tables(
            window, untouched | _others_untouched(ctx, manifest, parts)
        )
        todo = [table for table in parts if table not in untouched]

        def work(table: TableId) -> TableApplied | CdcError:
            return _apply_table(ctx, record, manifest, table, parts[table])

        done = dict(zip(todo, side_by_side(ctx, todo, work), strict=True))
        done |= _again_alone(done, work)
        stopped = _stop_failed(ctx, done, manifest, before)
        if stopped:
            answer_policies(ctx)
        applied = [one for one in done.values() if isinstance(one, TableApplied)]
        applied += [TableApplied(table=table) for table in untouched]
        _finish_windows(ctx, started)
        publish_positions(ctx)
        report = window_report("window-applied", window, started, applied, repeated=not parts)
        return ctx.reported(replace(report, stopped=stopped))


def _parts(
    ctx: Context, manifest: WindowManifest, tables: list[TableId] | None
) -> tuple[dict[TableId, ScnWindow], dict[TableId, TableRecord]]:
    """The tables that take the window now, each with its part, and how they stand."""
    wanted = set(manifest.tables_held if tables is None else tables)
    _pass_retired(ctx, manifest, wanted)
    wanting = [
        (record, part)
        for record in ctx.store.tables.all()
        if record.table in wanted and (part := part_of(record, manifest)) is not None
    ]
    parts = {
        record.table: part for record, part in wanting if not is_behind(record, manifest.window)
    }
    if wanting and not parts:
        raise NotYetError(
            "the mirrors have not taken the window before this one",
            hint="Apply the windows in order (`redolake apply`).",
            tables=", ".join(str(record.table) for record, _ in wanting),
            window=manifest.window.key,
            position=min(record.mirror_scn or 0 for record, _ in wanting),
        )
    return parts, {record.table: record for record, _ in wanting}


def _others_untouched(
    ctx: Context, manifest: WindowManifest, parts: Mapping[TableId, ScnWindow]
) -> dict[TableId, Scn]:
    """The other tables whose redo the window holds and for which it has nothing, as far as they
    need no earlier one first, with the ends of their parts."""
    mined = manifest.tables_held - parts.keys()
    return {
        record.table: part.scn_high
        for record in ctx.store.tables.all()
        if record.table in mined
        and record.table not in manifest.tables_touched
        and (part := part_of(record, manifest)) is not None
        and not is_behind(record, manifest.window)
    }


def changed_tables(ctx: Context, windows: Sequence[ScnWindow]) -> set[TableId]:
    """The tables that want a part of one of these captured windows in which something of theirs has
    changed."""
    records = ctx.store.tables.all()
    with overtaken_where_forgotten(ctx.store.windows.get, windows):
        manifests = [ctx.window_manifest(window)[0] for window in windows]
    return {
        record.table
        for manifest in manifests
        for record in records
        if record.table in manifest.tables_touched and part_of(record, manifest) is not None
    }


def _pass_retired(ctx: Context, manifest: WindowManifest, wanted: set[TableId]) -> None:
    """Move tables over windows that were retired and had nothing for them: one that is taken anew
    from landing meets such gaps.

    Only idle windows are retired between others; what retired windows brought before the first that
    is left, landing keeps.
    """
    low = manifest.window.scn_low
    behind = [
        record
        for record in ctx.store.tables.all()
        if record.table in wanted
        and part_of(record, manifest) is not None
        and is_behind(record, manifest.window)
    ]
    if not behind:
        return
    retired = kept_retired(ctx.landing, ctx.source_record())
    for record in behind:
        if retired.touched.get(str(record.table), 0) <= (record.mirror_scn or 0):
            ctx.store.history.pass_retired(record.table, low)


def _apply_table(
    ctx: Context, record: WindowRecord, manifest: WindowManifest, table: TableId, part: ScnWindow
) -> TableApplied | CdcError:
    """Apply the table's part; an error that is about this table alone, or the end of Spark, is
    handed back."""
    started = time.monotonic()
    with ctx.writing(table) as lease:
        state = ctx.table_record(table)
        try:
            own = WindowPart(
                ctx=ctx, record=record, manifest=manifest, state=state, part=part, fence=lease.check
            )
            log = ctx.table_lake(state).position()
            for lost in lost_parts(ctx, state, log):
                state = replace(state, in_quarantine=0)  # they put their rows there again
                before = replace(state, mirror_scn=lost.part.scn_low)
                replace(
                    own, record=lost.record, manifest=lost.manifest, state=before, part=lost.part
                ).take()
            state, part = _behind_the_lake(state, part, log.mirror_scn)
            result, reached = replace(own, state=state, part=part).take()
        except (*TABLE_ERRORS, SparkUnavailableError) as error:
            lease.check()  # behind another writer a right table looks wrong, and this process must not stop it
            return error
        if record.state == "applied":  # the table takes the window later than the others
            count_transactions(ctx, manifest)
        result = replace(result, seconds=seconds_since(started))
        note_quarantine(ctx, table, manifest.window, result)
        if reached > manifest.window.scn_low:
            ctx.store.windows.advance_tables(manifest.window, {table: reached}, result)
        return result


def _again_alone(
    done: Mapping[TableId, TableApplied | CdcError],
    work: Callable[[TableId], TableApplied | CdcError],
) -> dict[TableId, TableApplied | CdcError]:
    """Where Spark ran out of memory, do the work of each table that it took along once more, one
    after the other; what a table needs by itself and does not get is about that table.

    Raises:
        SparkUnavailableError: Spark ended for another reason.
    """
    ended = {one: error for one, error in done.items() if isinstance(error, SparkUnavailableError)}
    if ended and not any(isinstance(error, SparkMemoryError) for error in ended.values()):
        raise next(iter(ended.values()))
    again = {table: work(table) for table in ended}
    for table, error in again.items():
        if isinstance(error, SparkMemoryError):
            again[table] = out_of_memory_alone(error)
        elif isinstance(error, SparkUnavailableError):
            raise error
    return again


def note_quarantine(ctx: Context, table: TableId, window: ScnWindow, applied: TableApplied) -> None:
    """Note and tell how many rows of the table are in quarantine."""
    if applied.in_quarantine is not None:
        ctx.store.tables.note_quarantine(table, applied.in_quarantine)
    if applied.unfit_values:
        _LOG.warning(
            "values that their columns do not hold are NULL table=%s window=%s values=%d",
            table, window.key, applied.unfit_values,
        )  # fmt: skip
    if applied.quarantined:
        _LOG.warning(
            "redo rows are in quarantine table=%s window=%s rows=%d all=%d",
            table, window.key, applied.quarantined, applied.in_quarantine,
        )  # fmt: skip


def _behind_the_lake(
    state: TableRecord, part: ScnWindow, reached: int | None
) -> tuple[TableRecord, ScnWindow]:
    """The table's record and part as they are where its mirror stands inside the part by its own
    log, at ``reached``.

    Metadata store and landing were restored together then, and the windows are cut anew: what the
    mirror has it keeps, and the rest of the window follows.
    """
    if reached is None or not part.scn_low < reached < part.scn_high:
        return state, part
    _LOG.warning(
        "the mirror is ahead of the metadata store table=%s mirror=%d store=%s",
        state.table, reached, state.mirror_scn,
    )  # fmt: skip
    low = Scn(reached)
    return replace(state, mirror_scn=low), ScnWindow(low, part.scn_high)


def _stop_failed(
    ctx: Context,
    done: Mapping[TableId, TableApplied | CdcError],
    manifest: WindowManifest,
    before: Mapping[TableId, TableRecord],
) -> tuple[StreamEnd, ...]:
    """Stop the tables that an error was about, as long as they stand as they did ``before``. What
    stops all of several tables is not about one of them, and is raised."""
    failed = {table: error for table, error in done.items() if isinstance(error, CdcError)}
    if (
        len(failed) > 1
        and len(failed) == len(done)
        and all(isinstance(error, LakeError) for error in failed.values())
    ):
        raise next(iter(failed.values()))
    ends = [
        stop_table(ctx, table, error, scn=manifest.window.scn_low, failed_as=before[table])
        for table, error in failed.items()
    ]
    return tuple(end for end in ends if end is not None)


def _finish_windows(ctx: Context, started: float) -> None:
    """Record as applied, in order, the windows that every table that goes on by itself has
    taken."""
    tables = ctx.store.tables.all()
    for record in ctx.store.windows.find(states=("planned", "captured")):
        if record.state == "planned":
            return
        manifest, _ = ctx.window_manifest(record.window)
        if any(part_of(table, manifest) is not None for table in tables):
            return
        keep_side_tables(ctx, manifest)
        ctx.store.windows.record_applied(record.window, seconds_since(started))
