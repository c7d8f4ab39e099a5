"""Which SCN range of a landed window does a table still take?

A window belongs to the tables whose redo it holds. A table takes what committed after the SCN of
which its mirror is an image: all of the window, or what follows its snapshot, or what precedes the
end of its stream.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

from cdc_core.landing.manifest import SchemaChange, WindowManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord
from cdc_core.model.scn import Scn, ScnWindow

_LOG = logging.getLogger(__name__)

Standing: TypeAlias = list[tuple[TableRecord, ScnWindow]]
"""Tables as they stand, each with its part."""


def takers(tables: Iterable[TableRecord], manifest: WindowManifest) -> tuple[Standing, Standing]:
    """The tables that take a part of the window now, and those that must take an earlier window
    first."""
    ready: Standing = []
    behind: Standing = []
    for table in tables:
        if (part := part_of(table, manifest)) is not None:
            (behind if is_behind(table, manifest.window) else ready).append((table, part))
    return ready, behind


def part_of(table: TableRecord, manifest: WindowManifest) -> ScnWindow | None:
    """The part that is still to be taken; None if there is none, or if the table waits (paused, or
    in its snapshot).

    A table that left the stream takes what belongs to it; one that failed in the lake takes nothing
    before it is resumed.
    """
    end = stream_end(table, manifest)
    if end is None or not table.takes_windows:
        return None
    if table.mirror_scn is None or table.mirror_scn >= end:
        return None
    return ScnWindow(Scn(max(table.mirror_scn, manifest.window.scn_low)), end)


def stretches(
    part: ScnWindow, manifest: WindowManifest, table: TableId
) -> list[ScnWindow | SchemaChange]:
    """A table's part in the order in which it is taken: what committed before a TRUNCATE that is
    followed, the TRUNCATE, and what committed behind it. All of the part where there is none."""
    found: list[ScnWindow | SchemaChange] = []
    low, high = int(part.scn_low), int(part.scn_high)
    own = (one for one in manifest.schema_changes if one.empties and one.schema.table == table)
    for change in sorted(own, key=lambda one: one.scn):
        if not low < change.scn <= high:
            continue
        if low < change.scn - 1:
            found.append(ScnWindow(Scn(low), Scn(change.scn - 1)))
        found.append(change)
        low = change.scn
    return [*found, ScnWindow(Scn(low), Scn(high))] if low < high else found


def behind_the_lake(
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


def stream_end(table: TableRecord, manifest: WindowManifest) -> Scn | None:
    """The SCN up to which the window holds redo of the table's present stream; None if it holds
    none."""
    if table.table not in manifest.tables_held or manifest.ordinal < table.first_ordinal:
        return None
    ends = [int(manifest.window.scn_high)]
    ends += [end.scn for end in manifest.left if end.table == table.table]
    if table.stopped_scn is not None:
        ends.append(table.stopped_scn)
    end = min(ends)
    return Scn(end) if end > manifest.window.scn_low else None


def is_behind(table: TableRecord, window: ScnWindow) -> bool:
    """Must the table take an earlier window first?"""
    return table.mirror_scn is not None and table.mirror_scn < window.scn_low
