"""What would the next run do? Nothing is done, planned or kept; Oracle is asked about tables that
are new."""

from __future__ import annotations

from collections.abc import Iterator

from cdc_core.errors import CdcError
from cdc_core.model.chunks import NO_ROWS
from cdc_core.model.identifiers import TableId
from cdc_core.model.starts import RunPlan, TablePlan
from cdc_core.model.wording import counted
from cdc_core.schema.dictionary import read_each_schema
from cdc_core.schema.table import TableSchema
from cdc_core.steps.configuration_changes import configuration_changes, leaving_tables
from cdc_core.steps.context import Context
from cdc_core.steps.snapshots.plan import pending_chunks
from cdc_core.steps.snapshots.row_filter import configured_filter
from cdc_core.steps.snapshots.rows import snapshot_prefix
from cdc_core.steps.snapshots.starting import decision


def preview(ctx: Context) -> RunPlan:
    """What a run would do under the configuration as it is now.

    Raises:
        ConfigError: No table is left to capture, or ``snapshot.custom`` cannot be used.
    """
    ctx.find_tables(is_kept=False)
    said: dict[TableId, list[str]] = {}
    for table, text in _planned(ctx):
        said.setdefault(table, []).append(text)
    waiting = ctx.store.windows.counts()
    return RunPlan(
        decision=decision(ctx),
        tables=tuple(
            TablePlan(str(table), "; ".join(texts)) for table, texts in sorted(said.items())
        ),
        windows_waiting=waiting.get("planned", 0) + waiting.get("captured", 0),
    )


def _planned(ctx: Context) -> Iterator[tuple[TableId, str]]:
    records = {one.table: one for one in ctx.store.tables.all()}
    changes = list(configuration_changes(ctx)) if records else []
    again = {change.table for change in changes if records[change.table].state == "removed"}
    new = [
        config.table
        for config in ctx.config.tables
        if config.table in again
        or config.table not in records
        or records[config.table].state == "new"
    ]
    for change in changes:
        yield change.table, change.said
    for table in leaving_tables(ctx):
        yield table, "leaves: the configuration does not name it; its Delta tables stay"
    yield from _joining(ctx, new)
    chunks: dict[TableId, int] = {}
    for key in pending_chunks(ctx):
        chunks[key.table] = chunks.get(key.table, 0) + 1
    for table, count in chunks.items():
        yield table, f"has chunks to read or apply: {count}"


def _joining(ctx: Context, tables: list[TableId]) -> Iterator[tuple[TableId, str]]:
    if not tables:
        return
    with ctx.database.session() as session:
        found = read_each_schema(session, [ctx.config.table(table) for table in tables])
    for table in tables:
        schema = found[table]
        if isinstance(schema, CdcError):
            yield table, f"cannot join: {schema.what_happened}"
        else:
            yield table, _how_it_joins(ctx, schema)


def _how_it_joins(ctx: Context, schema: TableSchema) -> str:
    try:
        condition = configured_filter(ctx, schema)
    except CdcError as error:
        return f"cannot join: {error.what_happened}"
    if snapshot_prefix(ctx, None, schema.table) == NO_ROWS:
        rows = "without its rows"
    elif condition is not None:
        rows = f"with the rows WHERE {condition}"
    else:
        rows = "with its rows"
    left_out = f", without {', '.join(schema.excluded)}" if schema.excluded else ""
    return f"joins {rows}: {counted(len(schema.columns), 'column')}{left_out}, key ({', '.join(schema.key)})"
