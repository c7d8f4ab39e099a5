"""Does a table join with its rows, and does its source capture changes?"""

from __future__ import annotations

from cdc_core.model.chunks import NO_ROWS
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord
from cdc_core.snapshot.modes import StartState, answers_of
from cdc_core.steps.context import Context

NO_ROW_MEETS: str | None = "1 = 0"
"""The condition of the one chunk with which a table joins without rows."""


def snapshot_prefix(ctx: Context, record: TableRecord | None, table: TableId) -> str:
    """With what the id of a joining table's snapshot begins. Only a table that is new joins without
    rows: whoever reads one again wants them."""
    is_new = record is None or (record.state == "new" and record.trouble is None)
    return "s" if not is_new or _reads_rows(ctx, table) else NO_ROWS


def _reads_rows(ctx: Context, table: TableId) -> bool:
    config = ctx.config.snapshot
    return config.includes(table) and answers_of(config, StartState(has_position=False)).rows


def streams(ctx: Context) -> bool:
    """Does the source capture changes?"""
    return answers_of(ctx.config.snapshot, StartState(has_position=True)).streams
