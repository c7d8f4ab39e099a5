"""From which files of landing does a table take its redo of a window?"""

from __future__ import annotations

import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_core.landing.damage import reading_file
from cdc_core.landing.layout import ORDINAL_SHIFT, window_folder
from cdc_core.landing.manifest import WindowManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord, WindowRecord
from cdc_core.model.transactions import windows_of
from cdc_core.stage.committed import LandedInput
from cdc_core.steps.context import Context


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
) -> LandedInput:
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
        for earlier in ctx.store.windows.find(ordinals=range(min(holding), max(holding) + 1)):
            if earlier.ordinal not in holding:
                continue
            before, _ = ctx.window_manifest(earlier.window)
            if before.rows_by_table.get(str(table)):
                paths += files_of(ctx, before, table)
    return LandedInput(
        table=table,
        window=manifest.window,
        redo_paths=[*paths, *files_of(ctx, manifest, table)],
        transactions_paths=transactions,
        late_above=late_above,
    )


def files_of(ctx: Context, manifest: WindowManifest, table: TableId) -> list[str]:
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
    with reading_file(path), pq.ParquetFile(path) as file:
        rows = file.read(columns=["state", "commit_scn", "first_ordinal", "tables", "windows"])
    earlier = pc.less(rows["first_ordinal"], ordinal << ORDINAL_SHIFT)
    rows = rows.filter(pc.and_(pc.equal(rows["state"], "commit"), earlier))
    found: set[int] = set()
    for row in rows.to_pylist():
        if row["commit_scn"] > above and table in row["tables"]:
            for run in windows_of(row["windows"]):
                found.update(run)
    return {one for one in found if one < ordinal}
