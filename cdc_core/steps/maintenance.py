"""How are a source's Delta tables kept quick while windows go on? Table by table, each under its
own lease."""

from __future__ import annotations

from collections.abc import Iterator

from cdc_core.errors import CdcError, SparkUnavailableError
from cdc_core.lake.side_tables.source_tables import SIDE_TABLE_NAMES
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord
from cdc_core.model.reports import Maintenance
from cdc_core.steps.context import LOG, Context
from cdc_core.steps.history import history_of
from cdc_core.steps.snapshots.retire import retire_chunks
from cdc_core.steps.windows.definition_sets import remove_unnamed


def maintain(ctx: Context, tables: list[TableId] | None = None) -> Iterator[Maintenance]:
    """Maintain the Delta tables of all captured tables, or of ``tables``, yielding each.

    A table in its first snapshot is left alone: its chunks are appended, which needs a mirror that
    nothing else has touched. What goes wrong with one table keeps no other from it. Where all
    tables are maintained, so are the Delta tables beside them, and what nothing needs any more
    goes from landing: definitions, and files of chunks.

    Raises:
        ConfigError: A table is not captured.
        SparkUnavailableError: Spark does not start, or its JVM has ended.
    """
    for table in ctx.configured(tables):
        record = ctx.store.tables.get(table)
        if record is None or record.state == "snapshotting":
            yield Maintenance(table=table, left_alone="its first snapshot has not ended")
            continue
        try:
            yield _maintain(ctx, record)
        except SparkUnavailableError:
            raise
        except CdcError as error:
            LOG.warning("%s was not maintained: %s", table, error)
            yield Maintenance(table=table, left_alone=str(error), is_failed=True)
    if tables is None:
        _maintain_side_tables(ctx)
        _maintain_landing(ctx)


def _maintain_side_tables(ctx: Context) -> None:
    """The Delta tables that the source has beside change logs and mirrors."""
    for name in SIDE_TABLE_NAMES:
        try:
            with ctx.writing_side_table(name) as lease:
                beside = ctx.lake.side_table(name, fence=lease.check)
                beside.maintain(ctx.config.maintenance.vacuum_hours)
        except CdcError as error:
            LOG.warning("the table of %s was not maintained: %s", name, error)


def _maintain_landing(ctx: Context) -> None:
    """Definitions that no window names any more, and files of chunks that nobody needs."""
    for what, clean in (("definitions", remove_unnamed), ("chunks", retire_chunks)):
        try:
            clean(ctx)
        except CdcError as error:
            LOG.warning("%s in landing were not looked through: %s", what, error)


def _maintain(ctx: Context, record: TableRecord) -> Maintenance:
    table = record.table
    versions = ctx.store.schemas.versions(table)
    if not versions:
        return Maintenance(table=table, left_alone="it has no Delta tables")
    latest = versions[-1].schema
    with ctx.writing(table) as lease:
        done = ctx.table_lake(record, lease.check).maintain(
            ctx.config.maintenance_of(table), latest.key
        )
        if ctx.config.has_history(table):
            history = history_of(ctx, record, lease.check)
            history.maintain(ctx.config.maintenance.vacuum_hours)
    for one in done:
        LOG.info(
            "%s of %s maintained files=%d→%d removed=%d seconds=%.2f",
            one.layer,
            table,
            one.files_before,
            one.files_after,
            one.files_removed,
            one.seconds,
        )
    return Maintenance(table=table, done=tuple(done))
