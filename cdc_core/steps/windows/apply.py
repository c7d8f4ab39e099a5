"""How does a captured window get into change logs and mirrors, table by table?"""

from __future__ import annotations

import time
from dataclasses import replace

import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_core.errors import RedoUnavailableError, WindowOrderError
from cdc_core.landing.layout import ORDINAL_SHIFT, window_folder
from cdc_core.landing.manifest import WindowManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import StepReport, TableApplied
from cdc_core.model.scn import ScnWindow
from cdc_core.schema.table import TableSchema
from cdc_core.state.records import TableRecord, WindowRecord
from cdc_core.steps.context import Context, seconds_since
from cdc_core.steps.windows.capture import verify_files
from cdc_core.steps.windows.shared import captured_window, covered_scn, side_by_side, window_report


def apply_window(
    ctx: Context, window: ScnWindow, tables: list[TableId] | None = None
) -> StepReport:
    """Put a captured window into change logs and mirrors, table by table; a table that has it already is left alone.

    Raises:
        WindowOrderError: The window is not captured, or a table has not taken the window before it.
    """
    started = time.monotonic()
    with ctx.recorded(window=window):
        record = captured_window(ctx, window)
        manifest, _ = ctx.window_manifest(window)
        states = {table.table: table for table in ctx.store.tables(ctx.source)}
        todo, repeated = [], True
        for table in ctx.configured(tables):
            position = _position(states, table, window)
            if position < window.scn_high:
                repeated = False
                todo.append(table)
        applied = side_by_side(ctx, todo, lambda table: _apply_table(ctx, record, manifest, table))
        _finish_window(ctx, record, started)
        return ctx.reported(
            window_report("window-applied", window, started, applied, repeated=repeated)
        )


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
        result = TableApplied(table=table)
        if str(table) in manifest.tables_committed:
            paths, transactions = _inputs(ctx, record, manifest, table)
            state = ctx.table_record(table)
            result = ctx.lake.apply_window(
                manifest,
                table,
                _schema(manifest, table),
                paths,
                transactions,
                generation=ctx.source_record().generation,
                position=state.mirror_scn,
                covered_scn=covered_scn(ctx, table),
                earlier=[
                    version.schema
                    for version in ctx.store.schema_versions(ctx.source, table)
                    if version.schema.scn_from <= window.scn_high
                ],
                fence=lease.check,
            )
        result = replace(result, seconds=seconds_since(started))
        ctx.store.mark_table_applied(ctx.source, table, window.scn_high, result)
        return result


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
