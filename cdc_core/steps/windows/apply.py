"""How does a captured window get into change logs and mirrors, table by table?"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_core.errors import (
    CdcError,
    LakeError,
    NotYetError,
    RowsGoneError,
    SparkMemoryError,
    SparkUnavailableError,
)
from cdc_core.lake.table_part import ApplyRules, MirrorState, TablePart
from cdc_core.landing.kept import kept_retired
from cdc_core.landing.layout import ORDINAL_SHIFT, window_folder
from cdc_core.landing.manifest import SchemaChange, WindowManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord, WindowRecord
from cdc_core.model.reports import StepReport, TableApplied
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.streams import StreamEnd
from cdc_core.model.transactions import windows_of
from cdc_core.schema.table import TableSchema
from cdc_core.stage.committed import LandedInput
from cdc_core.stage.skipping import NameFilter, Skipping
from cdc_core.steps.context import Context, seconds_since
from cdc_core.steps.overtaken import overtaken_at_window, overtaken_where_forgotten
from cdc_core.steps.policies import answer_policies
from cdc_core.steps.positions import publish_positions
from cdc_core.steps.snapshots.shared import refuse_mixed
from cdc_core.steps.spark_memory import out_of_memory_alone
from cdc_core.steps.stopping import TABLE_ERRORS, stop_table
from cdc_core.steps.windows.missing_in_lake import lost_parts
from cdc_core.steps.windows.new_rows import awaits_rows
from cdc_core.steps.windows.shared import captured_window, side_by_side, window_report
from cdc_core.steps.windows.side_tables import count_transactions, keep_beside
from cdc_core.steps.windows.table_ranges import is_behind, part_of, stretches
from cdc_core.steps.windows.truncating import truncation_of

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
            ctx.source, window, untouched | _others_untouched(ctx, manifest, parts)
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
        for record in ctx.store.tables.all(ctx.source)
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
        for record in ctx.store.tables.all(ctx.source)
        if record.table in mined
        and record.table not in manifest.tables_touched
        and (part := part_of(record, manifest)) is not None
        and not is_behind(record, manifest.window)
    }


def changed_tables(ctx: Context, windows: Sequence[ScnWindow]) -> set[TableId]:
    """The tables that want a part of one of these captured windows in which something of theirs has
    changed."""
    records = ctx.store.tables.all(ctx.source)
    with overtaken_where_forgotten(partial(ctx.store.windows.get, ctx.source), windows):
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
        for record in ctx.store.tables.all(ctx.source)
        if record.table in wanted
        and part_of(record, manifest) is not None
        and is_behind(record, manifest.window)
    ]
    if not behind:
        return
    retired = kept_retired(ctx.landing, ctx.source_record())
    for record in behind:
        if retired.touched.get(str(record.table), 0) <= (record.mirror_scn or 0):
            ctx.store.history.pass_retired(ctx.source, record.table, low)


def _apply_table(
    ctx: Context, record: WindowRecord, manifest: WindowManifest, table: TableId, part: ScnWindow
) -> TableApplied | CdcError:
    """Apply the table's part; an error that is about this table alone, or the end of Spark, is
    handed back."""
    started = time.monotonic()
    with ctx.writing(table) as lease:
        state = ctx.table_record(table)
        try:
            for lost in lost_parts(ctx, state):
                before = replace(state, mirror_scn=lost.part.scn_low)
                _take_defined(ctx, lost.record, lost.manifest, before, lost.part, lease.check)
            state, low = _behind_the_lake(ctx, state, part)
            whole = ScnWindow(low, part.scn_high)
            result, reached = _take_defined(ctx, record, manifest, state, whole, lease.check)
        except (*TABLE_ERRORS, SparkUnavailableError) as error:
            lease.check()  # behind another writer a right table looks wrong, and this process must not stop it
            return error
        if record.state == "applied":  # the table takes the window later than the others
            count_transactions(ctx, manifest)
        result = replace(result, seconds=seconds_since(started))
        note_quarantine(ctx, table, manifest.window, result)
        if reached > manifest.window.scn_low:
            ctx.store.windows.advance_tables(ctx.source, manifest.window, {table: reached}, result)
        return result


def _take_defined(
    ctx: Context,
    record: WindowRecord,
    manifest: WindowManifest,
    state: TableRecord,
    part: ScnWindow,
    fence: Callable[[], None],
) -> tuple[TableApplied, Scn]:
    """Take a table's part of a window, behind the definitions that come with it; up to where?"""
    for change in manifest.schema_changes:
        is_new = change.schema.table == state.table and not change.empties
        if is_new and change.scn <= part.scn_high:
            refuse_mixed(ctx, state)
            ctx.lake.prepare_schema(
                ctx.visible(change.schema),
                generation=state.generation,
                drops_columns=ctx.config.drops_columns(state.table),
                fence=fence,
            )
    return _take_part(ctx, record, manifest, state, part, fence=fence)


def _take_part(
    ctx: Context,
    record: WindowRecord,
    manifest: WindowManifest,
    state: TableRecord,
    part: ScnWindow,
    *,
    fence: Callable[[], None],
) -> tuple[TableApplied, Scn]:
    """Take a table's part of a window: in one piece, or piece by piece where a TRUNCATE is
    followed; up to its end, or to right before a DDL whose rows are still to be read."""
    table, position = state.table, state.mirror_scn
    pieces = stretches(part, manifest, table)
    if str(table) not in manifest.tables_committed:
        pieces = [one for one in pieces if isinstance(one, SchemaChange)]
    if not pieces:
        return TableApplied(table=table), part.scn_high
    covered = ctx.store.chunks.covered_scn(ctx.source, table)
    late_above = late_commits_above(manifest, state, covered)
    if late_above is not None and any(isinstance(one, SchemaChange) for one in pieces):
        raise RowsGoneError(
            "late commits of earlier windows are in the window of a TRUNCATE",
            hint=f"`redolake table resnapshot {table.argument}` adds the table back with a new snapshot.",
            table=table,
            window=manifest.window.key,
        )
    paths, transactions = redo_inputs(ctx, record, manifest, state, late_above)
    done: list[TableApplied] = []
    for piece in pieces:
        if isinstance(piece, SchemaChange):
            if awaits_rows(ctx, manifest, piece):
                return summed(table, done), Scn(piece.scn - 1)
            truncation = truncation_of(
                piece,
                manifest,
                _files_of(ctx, manifest, table),
                ctx.config.events_of(table).skipped_operations,
            )
            done.append(
                ctx.lake.truncate(
                    table,
                    truncation,
                    transactions,
                    generation=state.generation,
                    read_scn=state.consistent_scn or 0,
                    fence=fence,
                )
            )
            position = Scn(piece.scn)
            continue
        own = replace(manifest, window=piece)
        done.append(
            ctx.lake.apply_window(
                TablePart(
                    manifest=own,
                    schema=ctx.visible(_schema(ctx, own, table)),
                    landed=LandedInput(
                        table=table,
                        window=piece,
                        redo_paths=paths,
                        transactions_paths=transactions,
                        late_above=late_above,
                    ),
                    earlier=[
                        ctx.visible(version.schema)
                        for version in ctx.store.schemas.versions(ctx.source, table)
                        if version.schema.scn_from <= part.scn_high
                    ],
                    is_inexact=record.inexact is not None and str(table) in record.inexact.tables,
                ),
                MirrorState(
                    generation=state.generation,
                    position=position,
                    covered_scn=covered,
                    read_scn=state.consistent_scn,
                ),
                _rules(ctx, table),
                fence=fence,
            )
        )
        position = piece.scn_high
        # The next piece may stop the table.
        if len(pieces) > 1 and done[-1].in_quarantine is not None:
            ctx.store.tables.note_quarantine(ctx.source, table, done[-1].in_quarantine)
    return (done[0] if len(done) == 1 else summed(table, done)), part.scn_high


def summed(table: TableId, done: Sequence[TableApplied]) -> TableApplied:
    """What several pieces of a window brought, as one."""
    return TableApplied(
        table=table,
        skipped=all(one.skipped for one in done),
        rows_inserted=sum(one.rows_inserted for one in done),
        rows_updated=sum(one.rows_updated for one in done),
        rows_deleted=sum(one.rows_deleted for one in done),
        changes=sum(one.changes for one in done),
        operations=sum((Counter(one.operations) for one in done), Counter()),
        events_skipped=sum((Counter(one.events_skipped) for one in done), Counter()),
        stage_seconds=sum(one.stage_seconds for one in done),
        merge_seconds=sum(one.merge_seconds for one in done),
        quarantined=sum(one.quarantined for one in done),
        write=next((one.write for one in reversed(done) if one.write is not None), None),
        in_quarantine=next(
            (one.in_quarantine for one in reversed(done) if one.in_quarantine is not None), None
        ),
    )


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
        ctx.store.tables.note_quarantine(ctx.source, table, applied.in_quarantine)
    if applied.quarantined:
        _LOG.warning(
            "redo rows are in quarantine table=%s window=%s rows=%d all=%d",
            table, window.key, applied.quarantined, applied.in_quarantine,
        )  # fmt: skip


def _rules(ctx: Context, table: TableId) -> ApplyRules:
    return ApplyRules(
        quarantine_max=_quarantine_max(ctx, table),
        skipping=_skipping(ctx, table),
        replacing=ctx.config.replacing(table),
        drops_columns=ctx.config.drops_columns(table),
    )


def _skipping(ctx: Context, table: TableId) -> Skipping:
    events = ctx.config.events_of(table)
    return Skipping(
        frozenset(events.skipped_operations),
        events.skip_unchanged,
        NameFilter(frozenset(events.users_include), frozenset(events.users_exclude)),
        NameFilter(frozenset(events.clients_include), frozenset(events.clients_exclude)),
    )


def _quarantine_max(ctx: Context, table: TableId) -> int | None:
    """How many rows the table's quarantine may hold; None where its policy is another."""
    if table not in ctx.config.entries or ctx.config.policy(table, "undecodable") != "quarantine":
        return None
    return ctx.config.policies.quarantine_rows_max


def _behind_the_lake(ctx: Context, state: TableRecord, part: ScnWindow) -> tuple[TableRecord, Scn]:
    """The table's record and the lower end of its part, where its mirror stands inside the part by
    its own log.

    Metadata store and landing were restored together then, and the windows are cut anew: what the
    mirror has it keeps, and the rest of the window follows.
    """
    reached = ctx.lake.position(state.table, state.generation).mirror_scn
    if reached is None or not part.scn_low < reached < part.scn_high:
        return state, part.scn_low
    _LOG.warning(
        "the mirror is ahead of the metadata store table=%s mirror=%d store=%s",
        state.table, reached, state.mirror_scn,
    )  # fmt: skip
    return replace(state, mirror_scn=Scn(reached)), Scn(reached)


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


def late_commits_above(manifest: WindowManifest, state: TableRecord, covered: int) -> int | None:
    """The SCN at which the table was read: what committed above it and came to light with this
    window is taken with it; None where the table has nothing of that kind."""
    if str(state.table) not in manifest.tables_late:
        return None
    return max(covered, state.snapshot_scn or 0)


def redo_inputs(
    ctx: Context,
    record: WindowRecord,
    manifest: WindowManifest,
    state: TableRecord,
    late_above: int | None,
) -> tuple[list[str], list[str]]:
    """The table's redo files of this window and of the earlier ones in which rows landed of a
    transaction that commits here and touched the table, and this window's transactions file.

    Windows before the table's present stream are left out: the window in which it joined has read
    their rows again.
    """
    table = state.table
    folder = window_folder(ctx.source, manifest.window)
    transactions = ctx.landing.local_paths(folder, [manifest.transactions_file])
    above = manifest.window.scn_low if late_above is None else late_above
    holding = windows_holding(transactions[0], above, str(table), record.ordinal)
    holding = {ordinal for ordinal in holding if ordinal >= state.first_ordinal}
    paths: list[str] = []
    if holding:
        for earlier in ctx.store.windows.find(
            ctx.source, ordinals=range(min(holding), max(holding) + 1)
        ):
            if earlier.ordinal not in holding:
                continue
            before, _ = ctx.window_manifest(earlier.window)
            if before.rows_by_table.get(str(table)):
                paths += _files_of(ctx, before, table)
    return [*paths, *_files_of(ctx, manifest, table)], transactions


def _files_of(ctx: Context, manifest: WindowManifest, table: TableId) -> list[str]:
    """Paths of the redo files that hold rows of a table, checked against the manifest."""
    folder = window_folder(ctx.source, manifest.window)
    return ctx.landing.local_paths(folder, manifest.files_of(table))


def windows_holding(path: str, above: int, table: str, ordinal: int) -> set[int]:
    """The windows before this one that may have rows of a transaction that touched a table and
    committed above an SCN.

    Args:
        path: The window's transactions file.
        ordinal: The window's number.
    """
    with pq.ParquetFile(path) as file:
        rows = file.read(columns=["state", "commit_scn", "first_ordinal", "tables", "windows"])
    earlier = pc.less(rows["first_ordinal"], ordinal << ORDINAL_SHIFT)
    rows = rows.filter(pc.and_(pc.equal(rows["state"], "commit"), earlier))
    found: set[int] = set()
    for row in rows.to_pylist():
        if row["commit_scn"] > above and table in row["tables"]:
            for run in windows_of(row["windows"]):
                found.update(run)
    return {one for one in found if one < ordinal}


def _schema(ctx: Context, manifest: WindowManifest, table: TableId) -> TableSchema:
    """The version with which the part ends: as the schema history has it now, which may be better
    than when the window landed."""
    landed = next(schema for schema in manifest.schemas if schema.table == table)
    known = ctx.store.schemas.at(ctx.source, table, manifest.window.scn_high)
    return landed if known is None or known.scn_from < landed.scn_from else known


def _finish_windows(ctx: Context, started: float) -> None:
    """Record as applied, in order, the windows that every table that goes on by itself has
    taken."""
    tables = ctx.store.tables.all(ctx.source)
    for record in ctx.store.windows.find(ctx.source, states=("planned", "captured")):
        if record.state == "planned":
            return
        manifest, _ = ctx.window_manifest(record.window)
        if any(part_of(table, manifest) is not None for table in tables):
            return
        keep_beside(ctx, manifest)
        ctx.store.windows.record_applied(ctx.source, record.window, seconds_since(started))
