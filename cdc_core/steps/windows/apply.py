"""How does a captured window get into change logs and mirrors, table by table?"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import replace

from cdc_core.errors import CdcError, NotYetError, SparkUnavailableError
from cdc_core.landing.kept import kept_retired
from cdc_core.landing.manifest import WindowManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import WindowRecord
from cdc_core.model.reports import StepReport, TableApplied
from cdc_core.model.scn import ScnWindow
from cdc_core.steps.context import Context, seconds_since
from cdc_core.steps.foreign_commits import heed_foreign
from cdc_core.steps.overtaken import overtaken_at_window, overtaken_where_forgotten
from cdc_core.steps.policies import answer_policies
from cdc_core.steps.positions import publish_positions
from cdc_core.steps.table_errors import TABLE_ERRORS, again_alone, stop_failed
from cdc_core.steps.windows.missing_in_lake import lost_parts
from cdc_core.steps.windows.shared import note_quarantine, side_by_side, window_report
from cdc_core.steps.windows.side_tables import count_transactions, keep_side_tables
from cdc_core.steps.windows.table_part import WindowPart
from cdc_core.steps.windows.table_ranges import Standing, behind_the_lake, part_of, takers


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
        record = ctx.captured_window(window)
        manifest, _ = ctx.window_manifest(window)
        wanted = manifest.tables_held if tables is None else frozenset(tables)
        ready = _ready(ctx, manifest, wanted)
        parts = {state.table: part for state, part in ready}
        untouched = {
            table: part.scn_high
            for table, part in parts.items()
            if table not in manifest.tables_touched
        }
        ctx.store.windows.advance_tables(window, untouched)
        todo = [table for table in parts if table in wanted and table not in untouched]

        def work(table: TableId) -> TableApplied | CdcError:
            return _apply_table(ctx, record, manifest, table, parts[table])

        done = dict(zip(todo, side_by_side(ctx, todo, work), strict=True))
        done |= again_alone(done, work)
        before = {state.table: state for state, _ in ready}
        stopped = stop_failed(ctx, done, window.scn_low, before)
        if stopped:
            answer_policies(ctx)
        applied = [one for one in done.values() if isinstance(one, TableApplied)]
        applied += [TableApplied(table=table) for table in untouched if table in wanted]
        _finish_windows(ctx, started)
        publish_positions(ctx)
        report = window_report(
            "window-applied", window, started, applied, repeated=wanted.isdisjoint(parts)
        )
        return ctx.reported(replace(report, stopped=stopped))


def _ready(ctx: Context, manifest: WindowManifest, wanted: Collection[TableId]) -> Standing:
    """The tables that take the window now, as they stand, each with its part; those that are not
    ``wanted`` too.

    A table that is taken anew from landing moves over the gaps that it meets, where windows that
    had nothing for it were retired: only idle ones are between others, and landing keeps what those
    before the first that is left brought.
    """
    ready, behind = takers(ctx.store.tables.all(), manifest)
    behind = [(state, part) for state, part in behind if state.table in wanted]
    if behind:
        retired = kept_retired(ctx.landing, ctx.source_record())
        ready += [
            (replace(state, mirror_scn=part.scn_low), part)
            for state, part in behind
            if retired.touched.get(str(state.table), 0) <= (state.mirror_scn or 0)
            and ctx.store.history.pass_retired(state.table, part.scn_low)
        ]
    if behind and not any(state.table in wanted for state, _ in ready):
        raise NotYetError(
            "the mirrors have not applied the previous window",
            hint="Apply the windows in order (`redolake apply`).",
            tables=", ".join(str(state.table) for state, _ in behind),
            window=manifest.window.key,
            position=min(state.mirror_scn or 0 for state, _ in behind),
        )
    return ready


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
            heed_foreign(state, log)
            for lost in lost_parts(ctx, state, log):
                state = replace(state, in_quarantine=0)  # they put their rows there again
                before = replace(state, mirror_scn=lost.part.scn_low)
                replace(
                    own, record=lost.record, manifest=lost.manifest, state=before, part=lost.part
                ).take()
            state, part = behind_the_lake(state, part, log.mirror_scn)
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
