"""What becomes of a window whose redo is gone: a gap.

No table takes part in a gap. Those that needed its redo have left, and come back by snapshots of
their own with a later window; so a window without tables is a gap, read or not. It lands with
nothing but its place in the order, so windows still join each other, and the window behind it
begins like the first one of a source: nothing is open, and redo is read from where its tables join.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime

from cdc_core.errors import RedoUnavailableError
from cdc_core.landing.definitions import keep_definitions
from cdc_core.landing.layout import TRANSACTION_SCHEMA, window_folder
from cdc_core.landing.manifest import WindowManifest, window_manifest_bytes
from cdc_core.landing.store import LandingStore
from cdc_core.model.records import TableRecord, WindowRecord
from cdc_core.model.scn import Scn
from cdc_core.source import WindowWork
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


def leave(
    ctx: Context, record: WindowRecord, tables: list[TableRecord], error: RedoUnavailableError
) -> list[TableRecord]:
    """End the streams of tables right before a window whose redo is gone; those that had not ended
    by themselves meanwhile."""
    left = []
    for table in tables:
        is_ended = ctx.store.tables.stop(
            ctx.source,
            table.table,
            reason=f"redo that the table needs is gone: {error.what_happened}",
            way_out=f"`redolake table resnapshot {table.table.argument}` adds the table back with a new snapshot.",
            scn=record.window.scn_low,
            trouble="redo_gone",
        )
        if is_ended:
            _LOG.warning(
                "table left before a gap table=%s scn=%d", table.table, record.window.scn_low
            )
            left.append(table)
    return left
