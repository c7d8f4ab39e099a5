"""How far was a table, by its Delta tables' logs and the windows that landing holds?

A mirror's own log says which window brought it changes last. Windows that hold nothing for the
table move its position without a commit: the position is taken over them here by the same rule as
when they are applied (:attr:`~cdc_core.landing.manifest.WindowManifest.tables_touched`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cdc_core.lake.applied_in_delta import AppliedInDelta
from cdc_core.landing.kept import RetiredWindows
from cdc_core.landing.manifest import WindowManifest
from cdc_core.model.records import TableRecord
from cdc_core.model.scn import Scn
from cdc_core.steps.windows.table_ranges import stream_end


def position_of(
    record: TableRecord,
    taken: AppliedInDelta,
    windows: Sequence[WindowManifest],
    retired: RetiredWindows,
) -> Scn:
    """The SCN of which the mirror of a table whose snapshot is complete is an image.

    Never further than the lake is; but further than the lost store said, where it had not taken a
    window yet that holds nothing for the table.

    Args:
        record: The table; its own position is what was kept last.
        taken: What the mirror's log says.
        windows: All windows since ``retired``, in order, without gaps but for idle ones.
        retired: Every table that takes windows had the windows below when they were retired.
    """
    reached = max(record.snapshot_scn or 0, record.mirror_scn or 0, taken.window_scn or 0)
    if not replace(record, mirror_scn=Scn(reached)).takes_windows:
        return Scn(reached)
    reached = max(reached, min(retired.scn, record.stopped_scn or retired.scn))
    before = retired.scn
    for manifest in windows:
        low = int(manifest.window.scn_low)
        if before <= reached < low:  # what lies between is idle
            reached = min(low, record.stopped_scn or low)
        before = manifest.window.scn_high
        end = stream_end(record, manifest)
        if end is None or reached >= end:
            continue
        if reached < low or _waits(record, taken, manifest, end):
            break
        reached = end
    return Scn(reached)


def _waits(record: TableRecord, taken: AppliedInDelta, manifest: WindowManifest, end: int) -> bool:
    """Does the window hold something for the table that the mirror's log does not show?"""
    if record.table not in manifest.tables_touched:
        return False
    if str(record.table) in manifest.tables_committed:
        return True
    changes = [one for one in manifest.schema_changes if one.schema.table == record.table]
    emptied = max((one.scn for one in changes if one.empties and one.scn <= end), default=0)
    return taken.truncated_scn < emptied or (taken.schema_scn or 0) < max(
        (one.schema.scn_from for one in changes if one.scn <= end), default=0
    )
