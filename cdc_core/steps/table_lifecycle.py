"""What can an operator ask of one table?

Tables are taken in, paused, resumed and taken out one by one, at any time, while the others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from cdc_core.errors import CdcError, ConfigError, NotYetError
from cdc_core.landing.layout import chunk_folder, window_folder
from cdc_core.landing.manifest import MANIFEST_NAME, read_chunk_manifest
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import AskedBy, TableRecord
from cdc_core.model.streams import StreamEnd
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.catalog import read_object_names
from cdc_core.schema.table import TableSchema
from cdc_core.steps.configuration_changes import (
    asked_for_again,
    configuration_changes,
    leaving_tables,
)
from cdc_core.steps.context import Context
from cdc_core.steps.snapshots.joining import captured_objects, join_tables
from cdc_core.steps.snapshots.plan import start_snapshot
from cdc_core.steps.snapshots.row_filter import is_filtered_otherwise
from cdc_core.steps.windows.capture import next_gap, tables_of

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PurgedColumn:
    """Where values of a purged column may still be: ``vacuum`` are Delta tables whose old files
    VACUUM removes, ``landing`` the folders of landing files that were written before the column was
    left out."""

    vacuum: tuple[str, ...]
    landing: tuple[str, ...]


def add_tables(ctx: Context, tables: Sequence[TableId]) -> list[ChunkKey]:
    """Take in tables of the configuration that are new, were removed, or could not join; return
    their chunks.

    Raises:
        ConfigError: A table is not configured, or is captured already.
    """
    wanted = ctx.configured(list(tables))
    captured = [record.table for record in _records(ctx, wanted) if record.is_captured]
    if captured:
        raise ConfigError(
            "these tables are captured already",
            hint=f"`redolake table resnapshot {captured[0].argument}` reads one again from Oracle.",
            tables=", ".join(map(str, captured)),
        )
    return _join(ctx, wanted, fresh=False)


def resnapshot_tables(
    ctx: Context, tables: Sequence[TableId], *, fresh: bool = False
) -> list[ChunkKey]:
    """Read tables anew and let them go on from there, whatever they met; return the chunks of the
    snapshot.

    A table that goes on by itself keeps its stream, and its rows are put right by an ad hoc
    snapshot; but for one whose configuration no longer leaves a column out or has another filter
    of rows, which joins anew with it, and one that needs redo which is gone, which begins a new
    stream behind the gap.

    Args:
        fresh: Begin new Delta tables and move the old ones aside.

    Raises:
        ConfigError: A table is not configured.
    """
    wanted = ctx.configured(list(tables))
    newest = ctx.store.schemas.newest()
    cut_off = _behind_gap(ctx)
    ready = {
        record.table
        for record in _records(ctx, wanted)
        if record.state == "ready"
        and record.table not in cut_off
        and not asked_for_again(ctx, ctx.config.table(record.table), newest[record.table])
        and not is_filtered_otherwise(ctx, record, newest[record.table])
    }
    joining = [table for table in wanted if fresh or table not in ready]
    keys = _join(ctx, joining, fresh=fresh) if joining else []
    again = [table for table in wanted if table not in joining]
    return keys + (start_snapshot(ctx, again) if again else [])


def _behind_gap(ctx: Context) -> set[TableId]:
    """The tables that need redo which is gone, so none of their streams can go on."""
    try:
        found = next_gap(ctx)
    except CdcError as error:  # which the next run says too
        _LOG.info("whether redo is gone cannot be said now: %s", error)
        return set()
    return set() if found is None else {one.table for one in tables_of(ctx, found[0])}


def pause_tables(ctx: Context, tables: Sequence[TableId]) -> list[TableRecord]:
    """Leave mirrors as they are while redo goes on being captured.

    Raises:
        ConfigError: A table is not captured.
    """
    return [
        ctx.store.tables.pause(
            table,
            way_out=f"`redolake table resume {table.argument}` takes the windows that were captured meanwhile.",
        )
        for table in _known(ctx, tables)
    ]


def resume_tables(ctx: Context, tables: Sequence[TableId]) -> list[TableRecord]:
    """Let paused tables, and tables that failed in the lake, go on where they stand.

    Raises:
        ConfigError: A table is not captured, or its stream has ended.
    """
    resumed = []
    for table in _known(ctx, tables):
        ctx.store.tables.resume(table)
        record = ctx.table_record(table)
        if record.snapshot_id and ctx.store.chunks.find(table, snapshot_id=record.snapshot_id):
            ctx.store.tables.finish_snapshot(table)
        resumed.append(ctx.table_record(table))
        ctx.tell("table-resumed", table)
    return resumed


def remove_tables(
    ctx: Context, tables: Sequence[TableId], *, asked_by: AskedBy = "command"
) -> list[StreamEnd]:
    """End the streams of tables with the last captured window; their Delta tables stay.

    Raises:
        ConfigError: A table is not captured.
    """
    ends = []
    with ctx.lease("capture", wait_seconds=120):
        for table in _known(ctx, tables):
            end = _removal(ctx, table, asked_by)
            ctx.store.tables.end_stream(end, state="removed", asked_by=asked_by)
            ctx.tell("table-stopped", table, stopped=(end,))
            ends.append(end)
    return ends


def purge_column(ctx: Context, table: TableId, column: str) -> PurgedColumn:
    """Remove the values of a column that the configuration leaves out from mirror and change log.

    Raises:
        ConfigError: The table is not captured, the column is part of its key, or the configuration
            does not leave it out, so that its values would come back.
    """
    record = ctx.table_record(table)
    if not ctx.config.table(table).excludes(column):
        raise ConfigError(
            "the configuration does not exclude this column, so its values would return",
            hint=f"Name it under columns_exclude of {table} first.",
            table=table,
            column=column,
        )
    versions = ctx.store.schemas.versions(table)
    with ctx.writing(table) as lease:
        lake = ctx.table_lake(record, lease.check)
        folders = lake.purge_column(column, versions[-1].schema.key) + lake.purge_quarantine()
    ctx.store.tables.forget_reason(table)
    return PurgedColumn(tuple(folders), _landed_with(ctx, table, column))


def quarantine(ctx: Context, table: TableId) -> dict[tuple[str, str], int]:
    """How many redo rows of the table are in quarantine, by operation and reason.

    Raises:
        ConfigError: The table is not known.
    """
    return ctx.table_lake(ctx.table_record(table)).quarantine_reasons()


def purge_quarantine(ctx: Context, table: TableId) -> list[str]:
    """Remove the redo text of all rows of the table that are in quarantine; return the folders on
    which VACUUM must be run.

    Raises:
        ConfigError: The table is not known.
    """
    record = ctx.table_record(table)
    with ctx.writing(table) as lease:
        return ctx.table_lake(record, lease.check).purge_quarantine()


def _landed_with(ctx: Context, table: TableId, column: str) -> tuple[str, ...]:
    """Landing folders whose files may hold values of the column: captured or read before it was
    left out."""
    with_column = [
        window_folder(ctx.source, record.window)
        for record in ctx.store.windows.find(states=("captured", "applied"))
        if ctx.landing.exists(window_folder(ctx.source, record.window), MANIFEST_NAME)
        and _had(ctx.window_manifest(record.window)[0].schemas, table, column)
    ]
    for chunk in ctx.store.chunks.find(table, states=("landed", "applied")):
        folder = chunk_folder(ctx.source, chunk.chunk_key)
        if ctx.landing.exists(folder, MANIFEST_NAME):
            manifest = read_chunk_manifest(ctx.landing.read(folder, MANIFEST_NAME), where=folder)
            if _had([manifest.schema], table, column):
                with_column.append(folder)
    return tuple(with_column)


def _had(schemas: Sequence[TableSchema], table: TableId, column: str) -> bool:
    return any(schema.table == table and column in schema.column_names for schema in schemas)


def follow_configuration(ctx: Context) -> list[StreamEnd]:
    """Carry out what the configuration says of tables now: tables that it does not name any more
    are removed, and those that it names again are new. (What is new joins with the next snapshot.)
    Patterns are looked up first.

    Raises:
        ConfigError: The templates of paths have changed since Delta tables were made.
    """
    ctx.check_paths()
    ctx.find_tables()
    if ctx.store.source.get() is None:
        return []
    for change in configuration_changes(ctx):
        change.carry_out()
    leaving = leaving_tables(ctx)
    for table in leaving:
        _LOG.warning("table was taken out of the configuration table=%s", table)
    return remove_tables(ctx, leaving, asked_by="configuration") if leaving else []


def _join(ctx: Context, tables: Sequence[TableId], *, fresh: bool) -> list[ChunkKey]:
    with ctx.lease("snapshot-plan", wait_seconds=30), ctx.database.session() as session:
        _refuse_renamed(ctx, session, tables)
        join_tables(ctx, session, tables, fresh=fresh)
    joined = [record.table for record in _records(ctx, tables) if record.state == "snapshotting"]
    return start_snapshot(ctx, joined) if joined else []


def _refuse_renamed(ctx: Context, session: OracleSession, tables: Sequence[TableId]) -> None:
    """Refuse tables that the stream still has under their old names: an object's rows are one
    table's at a time."""
    captured = captured_objects(ctx)
    names = read_object_names(session, captured)
    for number, table in captured.items():
        if names.get(number, table) != table and names[number] in tables:
            raise NotYetError(
                "Redolake still captures the table under its old name",
                hint="`redolake capture` reads the redo up to the rename; then run the command again.",
                table=names[number],
                captured_as=table,
            )


def _removal(ctx: Context, table: TableId, asked_by: AskedBy) -> StreamEnd:
    scn = ctx.captured_up_to() or ctx.source_record().snapshot_scn
    if asked_by == "configuration":
        reason = "the table was removed from the configuration"
        way_out = "Add it to the configuration again: it joins with a new snapshot."
    else:
        reason = "removed by an operator"
        way_out = f"`redolake table add {table.argument}` adds it back with a new snapshot."
    return StreamEnd(table, scn, reason, way_out)


def _known(ctx: Context, tables: Sequence[TableId]) -> list[TableId]:
    return [ctx.table_record(table).table for table in tables]


def _records(ctx: Context, tables: Sequence[TableId]) -> list[TableRecord]:
    return [record for record in ctx.store.tables.all() if record.table in tables]
