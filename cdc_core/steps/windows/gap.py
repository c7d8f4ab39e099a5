"""What becomes of a window whose redo is gone: a gap.

No table takes part in a gap. Those that needed its redo have left, and come back by snapshots of
their own with a later window; so a window without tables is a gap, read or not. It lands with
nothing but its place in the order, so windows still join each other, and the window behind it
begins like the first one of a source: nothing is open, and redo is read from where its tables join.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from cdc_core.change_reader import WindowWork
from cdc_core.errors import NotYetError, RedoUnavailableError
from cdc_core.landing.definitions import keep_definitions
from cdc_core.landing.kept import keep_source
from cdc_core.landing.layout import TRANSACTION_SCHEMA, window_folder
from cdc_core.landing.manifest import WindowManifest, window_manifest_bytes
from cdc_core.landing.store import LandingStore
from cdc_core.model.records import TableRecord, WindowRecord
from cdc_core.model.scn import Scn
from cdc_core.model.streams import StreamEnd
from cdc_core.steps.context import Context

_LOG = logging.getLogger(__name__)
_TRANSACTIONS_NAME = "transactions.parquet"


def land_gap(work: WindowWork, landing: LandingStore) -> None:
    """Land a window without tables, without Oracle."""
    source, window = work.source, work.record.window
    folder = window_folder(source.name, window)
    landing.remove_unlanded(folder)
    with landing.writer(folder, _TRANSACTIONS_NAME, TRANSACTION_SCHEMA) as writer:
        transactions_file = writer.close()
    manifest = WindowManifest(
        source=source.name,
        window=window,
        ordinal=work.record.ordinal,
        mining_low=int(window.scn_low),
        redo_files=(),
        files_by_table={},
        transactions_file=transactions_file,
        rows_by_table={},
        tables_committed=(),
        transactions_committed=0,
        transactions_rolled_back=0,
        transactions_open=0,
        logs=(),
        schemas=(),
        schema_changes=(),
        resetlogs_change=source.resetlogs_change,
        seconds=0.0,
        positions=(),
        planned=work.planned,
        landed=datetime.now(UTC).isoformat(),
        is_gap=True,
    )
    definitions = keep_definitions(landing, source.name, manifest.schemas)
    landing.write_manifest(folder, window_manifest_bytes(manifest, definitions))
    _LOG.warning("a window is a gap: no table takes part in it window=%s", window.key)


def begun_anew(work: WindowWork) -> WindowWork:
    """The work of a window behind a gap: all its tables join with it, and nothing is known of what
    came before."""
    low = min([*work.joins.values(), work.record.window.scn_low])
    return replace(
        work,
        source=replace(work.source, snapshot_scn=work.record.window.scn_low, mining_low=Scn(low)),
        record=replace(work.record, mining_low=Scn(low)),
        ledger=(),
        positions=(),
        data_objects={},
    )


def begin_incarnation(
    ctx: Context,
    error: RedoUnavailableError,
    tables_of: Callable[[Context, WindowRecord], list[TableRecord]],
) -> list[TableRecord]:
    """After RESETLOGS, or where another database stands in the place of the captured one: end all
    streams, and continue the source in the present one. All windows that wait become gaps; tables
    come back by snapshots of their own.

    The caller holds the lease ``capture``.

    Args:
        ctx: The source.
        error: What capture met.
        tables_of: The tables that take part in a window.

    Raises:
        NotYetError: SCNs that windows or snapshots have reached come again in the present one.
    """
    planned = ctx.store.windows.find(states=("planned",))
    with ctx.lease("window-plan", wait_seconds=60):
        source = ctx.source_record()
        newest = ctx.store.windows.find(newest_first=True, limit=1)
        end = newest[0].window.scn_high if newest else source.snapshot_scn
        reached = max([end, *_read_up_to(ctx)])
        start = ctx.change_reader_now().read_start([])
        if start.snapshot_scn <= reached:
            raise NotYetError(
                "SCNs that windows or snapshots have reached will recur in the present database",
                hint="Wait until the database has passed the SCN, or start the source over under"
                " another name.",
                scn=reached,
                current=start.snapshot_scn,
            )
        left = []
        for record in planned:
            left += leave(ctx, record.window.scn_low, tables_of(ctx, record), error)
        joined = [one for one in ctx.store.tables.all() if one.is_captured]
        left += leave(ctx, end, joined, error)
        source = replace(
            source,
            resetlogs_change=start.resetlogs_change,
            database_name=start.database_name,
            dbid=start.dbid,
            container_dbid=start.container_dbid,
            revision=source.revision + 1,
        )
        ctx.store.source.save(source)
        keep_source(ctx.landing, source)
    return left


def _read_up_to(ctx: Context) -> Iterator[int]:
    """The SCNs that rows of the lake may have: a newer row is never replaced by an older one."""
    for one in ctx.store.tables.all():
        yield from filter(None, (one.snapshot_scn, one.consistent_scn, one.mirror_scn))
    yield from (one.scn for one in ctx.store.chunks.find())


def leave(
    ctx: Context, scn: Scn, tables: list[TableRecord], error: RedoUnavailableError
) -> list[TableRecord]:
    """End the streams of tables at an SCN, above which their redo is gone; those that had not ended
    by themselves meanwhile."""
    left = []
    for table in tables:
        end = StreamEnd(
            table.table,
            scn,
            f"redo that the table needs is gone: {error.what_happened}",
            f"`redolake table resnapshot {table.table.argument}` adds the table back with a new snapshot.",
            "redo_gone",
        )
        if ctx.store.tables.end_stream(end):
            _LOG.warning("table left before a gap table=%s scn=%d", table.table, scn)
            left.append(table)
    return left
