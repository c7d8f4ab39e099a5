"""Where and with which reason do tables leave the stream whose redo a window lacks?"""

from __future__ import annotations

from collections.abc import Sequence

from cdc_core.errors import RedoUnavailableError
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import WindowRecord
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.streams import StreamEnd
from cdc_core.model.transactions import IncompleteTransaction


def first_ends(ends: Sequence[StreamEnd]) -> tuple[StreamEnd, ...]:
    """One end per table, the first."""
    first: dict[TableId, StreamEnd] = {}
    for end in sorted(ends, key=lambda one: one.scn):
        first.setdefault(end.table, end)
    return tuple(first.values())


def out_of_reach(
    table: TableId, reach: Scn, record: WindowRecord, error: RedoUnavailableError
) -> StreamEnd:
    """A table that joins leaves at once: the redo that it needs from ``reach`` on is gone."""
    return StreamEnd(
        table,
        record.window.scn_low,
        "redo back to the oldest transaction that was open when the table joined is gone: "
        + error.what_happened,
        f"Wait until transactions that began before SCN {reach} have ended (V$TRANSACTION.START_SCN), then "
        f"`redolake table resnapshot {table.argument}`.",
    )


def incomplete_end(table: TableId, one: IncompleteTransaction, window: ScnWindow) -> StreamEnd:
    """A table leaves right before a commit that may lack changes, or with the window if that lies before it."""
    before = one.commit_scn - 1 if one.commit_scn is not None else window.scn_low
    return StreamEnd(
        table,
        max(window.scn_low, before),
        f"a committed transaction cannot be shown to be whole: {one.reason} "
        f"(xid={one.xid}, commit_scn={one.commit_scn}, start_scn={one.start_scn})",
        f"`redolake table resnapshot {table.argument}` adds the table back with a new snapshot.",
    )
