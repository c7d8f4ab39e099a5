"""How do changes get into the mirrors: planning, capturing, applying and replaying windows?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_core.capture.logminer import capture_window as mine_window
from cdc_core.capture.logminer import ledger_from_landing
from cdc_core.capture.logs import read_logs
from cdc_core.capture.positions import upper_bound
from cdc_core.capture.windows import cut_windows
from cdc_core.errors import ConfigError, RedoUnavailableError, WindowOrderError
from cdc_core.identifiers import TableId
from cdc_core.landing.layout import ORDINAL_SHIFT, window_folder
from cdc_core.landing.manifest import MANIFEST_NAME, WindowManifest
from cdc_core.schema.table import TableSchema
from cdc_core.scn import Scn, ScnWindow
from cdc_core.state.records import ChunkRecord, TableRecord, WindowRecord
from cdc_core.status import StepKind, StepReport, TableApplied
from cdc_core.steps.context import Context, seconds_since


def plan_windows(ctx: Context, *, until: int | None = None) -> list[ScnWindow]:
    """Cut windows from the last planned one to the present (or to ``until``) and record them; return the new ones.

    An idle database gives a window too, so that the position never ages out. Nothing is planned while the first snapshot
    has not been applied.

    Raises:
        RedoUnavailableError: Redo behind the position is gone; names the tables that need a snapshot.
        LogsNotReadyError: Redo is not archived yet.
    """
    started = time.monotonic()
    with ctx.lease("window-plan", wait_seconds=30):
        source = ctx.source_record()
        unready = _unready(ctx)
        if unready:
            raise WindowOrderError(
                "windows begin when the first snapshot has been applied",
                hint="Run `redolake snapshot`, which goes on where it stood.",
                tables=", ".join(map(str, unready)),
            )
        last = ctx.store.windows(ctx.source, newest_first=True, limit=1)
        low = last[0].window.scn_high if last else source.snapshot_scn
        assert low is not None
        mining_low = low if last else source.mining_low
        assert mining_low is not None
        with ctx.oracle() as session:
            high = upper_bound(session)
            if until is not None:
                high = min(high, Scn(until))
            if high <= low:
                return []
            logs = read_logs(session, Scn(mining_low))
        bounds = cut_windows(low, high, logs, ctx.config.capture.window_redo_bytes_max)
        ctx.store.plan_windows(ctx.source, bounds, mining_low)
        ctx.reported(
            StepReport(
                "windows-planned",
                f"{low}-{high}",
                seconds_since(started),
                rows=len(bounds),
                scn_low=low,
                scn_high=high,
            )
        )
        return list(bounds)


def pending_windows(ctx: Context) -> list[ScnWindow]:
    """Windows that are planned or captured and not applied, in order."""
    return [
        record.window for record in ctx.store.windows(ctx.source, states=("planned", "captured"))
    ]


def capture_window(ctx: Context, window: ScnWindow) -> StepReport:
    """Read a window's redo into landing, unless it has landed; record it and the open transactions after it.

    Raises:
        WindowOrderError: The window before it is not captured.
        RedoUnavailableError: Redo is gone, or the database was opened with RESETLOGS.
    """
    started = time.monotonic()
    with ctx.recorded(window=window), ctx.lease("capture", wait_seconds=120):
        record = ctx.window_record(window)
        repeated = ctx.landing.exists(window_folder(ctx.source, window), MANIFEST_NAME)
        if not repeated:
            _mine(ctx, record)
        manifest, sha256 = ctx.window_manifest(window)
        verify_files(ctx, manifest)
        if record.state == "planned":
            ledger = ledger_from_landing(ctx.landing, manifest)
            ctx.store.record_captured(ctx.source, manifest, sha256, ledger)
        files = (*manifest.redo_files, manifest.transactions_file)
        return ctx.reported(
            StepReport(
                "window-captured",
                window.key,
                seconds_since(started),
                rows=sum(manifest.rows_by_table.values()),
                bytes=sum(file.bytes for file in files),
                scn_low=window.scn_low,
                scn_high=window.scn_high,
                facts={
                    "transactions_committed": manifest.transactions_committed,
                    "transactions_rolled_back": manifest.transactions_rolled_back,
                    "transactions_open": manifest.transactions_open,
                    "schema_changes": len(manifest.schema_changes),
                    "logs": len(manifest.logs),
                },
                repeated=repeated,
            )
        )


def apply_window(
    ctx: Context, window: ScnWindow, tables: list[TableId] | None = None
) -> StepReport:
    """Put a captured window into change logs and mirrors, table by table; a table that has it already is left alone.

    Raises:
        WindowOrderError: The window is not captured, or a table has not taken the window before it.
    """
    started = time.monotonic()
    with ctx.recorded(window=window):
        record = _captured(ctx, window)
        manifest, _ = ctx.window_manifest(window)
        states = {table.table: table for table in ctx.store.tables(ctx.source)}
        todo, repeated = [], True
        for table in ctx.configured(tables):
            position = _position(states, table, window)
            if position < window.scn_high:
                repeated = False
                todo.append(table)
        applied = _side_by_side(ctx, todo, lambda table: _apply_table(ctx, record, manifest, table))
        _finish_window(ctx, record, started)
        return ctx.reported(_report("window-applied", window, started, applied, repeated=repeated))


def replay_window(
    ctx: Context, window: ScnWindow, tables: list[TableId] | None = None
) -> StepReport:
    """Take an old window again: its keys are derived once more from the change log, so an undamaged mirror stays as it is.

    Raises:
        WindowOrderError: A table has not taken the window yet: apply it first.
    """
    started = time.monotonic()
    _captured(ctx, window)
    manifest, _ = ctx.window_manifest(window)
    states = {table.table: table for table in ctx.store.tables(ctx.source)}
    wanted = ctx.configured(tables)
    for table in wanted:
        state = states.get(table)
        if state is None or state.mirror_scn is None or state.mirror_scn < window.scn_high:
            raise WindowOrderError(
                "only a window that was applied can be replayed",
                hint="Run `redolake run` (or materialize the window) first.",
                window=window.key,
                table=table,
            )
    touched = [table for table in wanted if str(table) in manifest.tables_committed]
    applied = _side_by_side(ctx, touched, lambda table: _replay_table(ctx, manifest, table))
    return ctx.reported(_report("window-replayed", window, started, applied, repeated=True))


def verify_files(ctx: Context, manifest: WindowManifest) -> list[str]:
    """Paths of a window's redo files, checked against the manifest."""
    folder = window_folder(ctx.source, manifest.window)
    ctx.landing.local_paths(folder, [manifest.transactions_file])
    return ctx.landing.local_paths(folder, manifest.redo_files)


def _unready(ctx: Context) -> list[TableId]:
    states = {record.table: record.state for record in ctx.store.tables(ctx.source)}
    return [config.table for config in ctx.config.tables if states.get(config.table) != "ready"]


def _mine(ctx: Context, record: WindowRecord) -> None:
    before = ctx.store.windows(ctx.source, ordinals=range(record.ordinal - 1, record.ordinal))
    if before and before[0].state == "planned":
        raise WindowOrderError(
            "the window before this one is not captured",
            hint="Capture windows in order: the open transactions of one are the next one's beginning.",
            window=record.window.key,
            before=before[0].window.key,
        )
    source = ctx.source_record()
    versions = {
        config.table: ctx.store.schema_at(ctx.source, config.table, record.window.scn_low)
        for config in ctx.config.tables
    }
    missing = [table for table, schema in versions.items() if schema is None]
    if missing:
        raise ConfigError(
            "the schema history has no version of these tables for the window",
            hint="Run `redolake snapshot` for them first.",
            tables=", ".join(map(str, missing)),
            window=record.window.key,
        )
    ctx.with_oracle(
        lambda session: mine_window(
            session,
            source=ctx.source,
            record=record,
            tables=[schema for schema in versions.values() if schema is not None],
            configs=ctx.config.tables,
            ledger=ctx.store.open_transactions(ctx.source),
            landing=ctx.landing,
            rows=ctx.config.oracle.fetch_rows,
            resetlogs_change=source.resetlogs_change,
        )
    )


def _captured(ctx: Context, window: ScnWindow) -> WindowRecord:
    record = ctx.window_record(window)
    if record.state == "planned":
        raise WindowOrderError(
            "this window is not captured yet",
            hint="Capture it first (`redolake capture`).",
            window=window.key,
        )
    return record


def _position(states: dict[TableId, TableRecord], table: TableId, window: ScnWindow) -> int:
    """The mirror's position, if the window may come next or is behind it."""
    state = states.get(table)
    if state is None or state.state != "ready" or state.mirror_scn is None:
        raise WindowOrderError(
            "the table's first snapshot is not applied yet",
            hint="Run `redolake snapshot`, which goes on where it stood.",
            table=table,
            window=window.key,
        )
    if state.mirror_scn < window.scn_low:
        raise WindowOrderError(
            "the mirror has not taken the window before this one",
            hint="Apply the windows in order (`redolake apply`).",
            table=table,
            window=window.key,
            position=state.mirror_scn,
        )
    return state.mirror_scn


def _side_by_side(
    ctx: Context, tables: Sequence[TableId], work: Callable[[TableId], TableApplied]
) -> list[TableApplied]:
    """Run the tables' work in a few threads; the first error is raised after all have ended."""
    with ThreadPoolExecutor(max_workers=ctx.config.lake.tables_at_once) as pool:
        futures = [pool.submit(work, table) for table in tables]
    return [future.result() for future in futures]


def _apply_table(
    ctx: Context, record: WindowRecord, manifest: WindowManifest, table: TableId
) -> TableApplied:
    started = time.monotonic()
    window = manifest.window
    with (
        ctx.recorded(table=table),
        ctx.lease(f"table/{table}", wait_seconds=120) as lease,
    ):
        for change in manifest.schema_changes:
            if change.schema.table == table:
                ctx.lake.prepare_schema(change, fence=lease.check)
        result = TableApplied(table, 0, 0, 0, 0, 0.0)
        if str(table) in manifest.tables_committed:
            paths, transactions = _inputs(ctx, record, manifest, table)
            state = ctx.table_record(table)
            done = ctx.lake.apply_window(
                manifest,
                table,
                _schema(manifest, table),
                paths,
                transactions,
                generation=ctx.source_record().generation,
                position=state.mirror_scn,
                covered_scn=_covered_scn(ctx, table),
                fence=lease.check,
            )
            result = replace(
                result,
                changes=done.changes,
                rows_inserted=done.rows_inserted,
                rows_updated=done.rows_updated,
                rows_deleted=done.rows_deleted,
                skipped=done.skipped,
            )
        ctx.store.mark_table_applied(ctx.source, table, window.scn_high)
        return replace(result, seconds=seconds_since(started))


def _replay_table(ctx: Context, manifest: WindowManifest, table: TableId) -> TableApplied:
    started = time.monotonic()
    with ctx.lease(f"table/{table}", wait_seconds=120) as lease:
        latest = ctx.store.schema_versions(ctx.source, table)[-1].schema
        done = ctx.lake.replay_window(
            manifest,
            table,
            latest,
            generation=ctx.source_record().generation,
            covered_scn=_covered_scn(ctx, table),
            fence=lease.check,
        )
        return TableApplied(
            table,
            done.changes,
            done.rows_inserted,
            done.rows_updated,
            done.rows_deleted,
            seconds_since(started),
            done.skipped,
        )


def _covered_scn(ctx: Context, table: TableId) -> int:
    """The SCN as of which the newest complete snapshot of the whole table knows every key, also those that are not there."""
    snapshots: dict[str, list[ChunkRecord]] = {}
    for chunk in ctx.store.chunks(ctx.source, table):
        snapshots.setdefault(chunk.snapshot_id, []).append(chunk)
    return max(
        (
            min(int(chunk.scn) for chunk in chunks)
            for chunks in snapshots.values()
            if all(chunk.state == "applied" and chunk.condition is None for chunk in chunks)
        ),
        default=0,
    )


def _inputs(
    ctx: Context, record: WindowRecord, manifest: WindowManifest, table: TableId
) -> tuple[list[str], list[str]]:
    """Redo files of this window and of every earlier one in which a transaction that commits here began and touched the
    table, and this window's transactions file."""
    folder = window_folder(ctx.source, manifest.window)
    transactions = ctx.landing.local_paths(folder, [manifest.transactions_file])
    first = _first_window(transactions[0], manifest.window, str(table), record.ordinal)
    paths: list[str] = []
    if first < record.ordinal:
        for earlier in ctx.store.windows(ctx.source, ordinals=range(first, record.ordinal)):
            before, _ = ctx.window_manifest(earlier.window)
            if before.rows_by_table.get(str(table)):
                paths += verify_files(ctx, before)
    return [*paths, *verify_files(ctx, manifest)], transactions


def _first_window(path: str, window: ScnWindow, table: str, ordinal: int) -> int:
    rows = pq.read_table(path, columns=["state", "commit_scn", "first_ordinal", "tables"])
    rows = rows.filter(
        pc.and_(
            pc.equal(rows["state"], "commit"),
            pc.less(rows["first_ordinal"], ordinal << ORDINAL_SHIFT),
        )
    )
    began = [
        first
        for scn, first, tables in zip(
            rows["commit_scn"].to_pylist(),
            rows["first_ordinal"].to_pylist(),
            rows["tables"].to_pylist(),
            strict=True,
        )
        if window.scn_low < scn <= window.scn_high and table in tables
    ]
    return min(began) >> ORDINAL_SHIFT if began else ordinal


def _schema(manifest: WindowManifest, table: TableId) -> TableSchema:
    for schema in manifest.schemas:
        if schema.table == table:
            return schema
    raise RedoUnavailableError(
        "the landed window does not know this table",
        hint="The table was added to the configuration later; capture it as a source of its own.",
        table=table,
        window=manifest.window.key,
    )


def _finish_window(ctx: Context, record: WindowRecord, started: float) -> None:
    """When every table has taken the window, it is applied."""
    if record.state == "applied":
        return
    positions = {state.table: state.mirror_scn for state in ctx.store.tables(ctx.source)}
    tables = [config.table for config in ctx.config.tables]
    if all((positions.get(table) or 0) >= record.window.scn_high for table in tables):
        ctx.store.record_applied(ctx.source, record.window, tables, seconds_since(started))


def _report(
    kind: StepKind,
    window: ScnWindow,
    started: float,
    applied: Iterable[TableApplied],
    *,
    repeated: bool,
) -> StepReport:
    done = tuple(applied)
    return StepReport(
        kind,
        window.key,
        seconds_since(started),
        rows=sum(table.changes for table in done),
        tables=done,
        scn_low=window.scn_low,
        scn_high=window.scn_high,
        repeated=repeated,
    )
