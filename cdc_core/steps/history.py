"""How do the histories of tables (``lake.history``) follow their change logs? Table by table,
each under the lease of its table, behind the windows and chunks that were applied."""

from __future__ import annotations

from collections.abc import Iterator

from cdc_core.errors import (
    CdcError,
    CommitConflictError,
    ConfigError,
    LeaseHeldError,
    TransientError,
)
from cdc_core.lake.history.layout import HistoryLayout
from cdc_core.lake.history.table import HistoryTable
from cdc_core.lake.table_context import Fence
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord
from cdc_core.model.reports import TableHistory
from cdc_core.steps.context import LOG, Context

_OF_ONE_TABLE = (LeaseHeldError, CommitConflictError)
"""Another process writes to the table: the next run brings its history up."""


def keep_history(
    ctx: Context, tables: list[TableId] | None = None, *, anew: bool = False
) -> Iterator[TableHistory]:
    """Bring the histories of all tables that have one, or of ``tables``, up to their change logs,
    yielding each that changed; with ``anew`` all their states are derived again.

    A table in its first snapshot is left alone. What goes wrong with one table keeps no other from
    it: it is yielded with the reason. Repeatable.

    Raises:
        ConfigError: A table is not captured, or has no history by the configuration; or the
            templates of paths have changed since its Delta tables were made.
        TransientError: The storage does not answer.
    """
    wanted = ctx.configured(tables)
    if any(map(ctx.config.has_history, wanted)):
        ctx.check_paths()
    for table in wanted:
        if not ctx.config.has_history(table):
            if tables is not None:
                raise ConfigError(
                    "the table has no history",
                    hint="Set lake.history, or history of the table, to scd2 or soft_deletes.",
                    table=table,
                )
            continue
        record = ctx.store.tables.get(table)
        if record is None or record.state == "snapshotting":
            continue
        try:
            with ctx.writing(table) as lease:
                kept = history_of(ctx, record, lease.check).follow(anew=anew)
        except CdcError as error:
            if isinstance(error, TransientError) and not isinstance(error, _OF_ONE_TABLE):
                raise
            LOG.warning("the history of %s stays behind: %s", table, error)
            yield TableHistory(table=table, failed=str(error))
        else:
            if kept is not None:
                yield kept


def history_of(ctx: Context, record: TableRecord, fence: Fence) -> HistoryTable:
    """The history of a captured table, as it is configured."""
    config, table = ctx.config, record.table
    said, days = config.lake.history_table, config.maintenance.history_days
    if config.history_kind(table) == "soft_deletes":
        layout = HistoryLayout.of_soft_deletes(said, days)
    else:
        layout = HistoryLayout.of(said, config.table(table).history_columns, days)
    return HistoryTable(config.lake, ctx.source, table, record.generation, fence, layout)
