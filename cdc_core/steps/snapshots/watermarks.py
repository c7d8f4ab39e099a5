"""How is a chunk read of a table whose past Oracle does not give, or not for long enough?

Between two watermarks: an SCN ``low`` is asked for, a read-only transaction begins, an SCN ``high``
is asked for. The chunk is the table as of one SCN from ``low`` up to ``high``, which Oracle does
not tell. It counts as of ``low``: the windows bring every change behind that, and a change that a
row has already changes it no more. ``docs/design/watermarks.md`` says why that is exact.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from cdc_core.errors import (
    AlteredMeanwhileError,
    CdcError,
    ConfigError,
    SnapshotBrokenError,
    SnapshotTooOldError,
)
from cdc_core.landing.manifest import ChunkManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import ChunkRecord
from cdc_core.model.scn import Scn
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.hidden_rows import refuse_hidden
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.ddl_times import LastDdl, last_ddl, settled_ddl
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.schema.evolution import identified
from cdc_core.schema.table import TableSchema
from cdc_core.snapshot.plan import ChunkPart, ChunkRange, chunk_part
from cdc_core.steps.context import Context
from cdc_core.steps.snapshots.other_scn import (
    may_move_unseen,
    moved,
    refuse_altered,
    refuse_changed_key,
    rows_may_leave,
)
from cdc_core.steps.snapshots.rows import streams
from cdc_core.steps.snapshots.shared import land_chunk, ranges_of

_LOG = logging.getLogger(__name__)

ATTEMPTS = 3
"""How often a chunk is read before ORA-01555, or DDL, stops it."""

_REFUSALS = frozenset({"ORA-01031", "ORA-08185", "ORA-30052"})
"""What Oracle answers where it does not look back: no right, not for SYS, no such SCN; besides the
codes of :class:`SnapshotTooOldError`."""

_ALTERED = frozenset({"ORA-01466", "ORA-00904", "ORA-08103"})
"""What Oracle answers where a DDL came since the definition was read or the transaction began: the
table is another one, a column is not there, the segment that was being read is gone."""


def goes_between(ctx: Context, table: TableId, error: CdcError) -> bool:
    """Is a table that Oracle refuses to look back at, with this error, read between watermarks? By
    ``snapshot.read: auto``, where redo is read and rows have an identity."""
    is_refusal = isinstance(error, SnapshotTooOldError) and "ora" in error.facts
    return (
        ctx.config.snapshot_of(table).read == "auto"
        and (is_refusal or error.facts.get("ora") in _REFUSALS)
        and streams(ctx)
    )


def ranges_to_read(
    ctx: Context,
    session: OracleSession,
    schema: TableSchema,
    scn: Scn,
    condition: str | None,
    chunk_by: str | None = None,
) -> list[ChunkRange]:
    """The chunks into which a snapshot of the table is cut, as of ``scn``; as it is now where it is
    read between watermarks.

    Raises:
        ConfigError: It is to be read so, and cannot. Others as for
            :func:`~cdc_core.snapshot.cutting.plan_chunks`.
    """

    def ranges(past: Scn | None) -> list[ChunkRange]:
        return ranges_of(ctx, session, schema, past, condition, chunk_by)

    if ctx.config.snapshot_of(schema.table).read == "watermarks":
        found = ranges(None)
        refuse_between(ctx, session, schema, found[0])
        return found
    try:
        return ranges(scn)
    except CdcError as error:
        if not goes_between(ctx, schema.table, error):
            raise
        _LOG.warning("chunks are cut as a table is now: %s", error)
    return ranges(None)


def refuse_between(
    ctx: Context, session: OracleSession, schema: TableSchema, part: ChunkPart
) -> None:
    """Refuse a table of which the redo does not carry what watermarks leave to it.

    Raises:
        ConfigError: Says what to configure instead.
    """
    if not streams(ctx):
        _refuse(schema, "the source captures no changes (snapshot.mode)")
    if may_move_unseen(ctx, session, schema, part):
        _refuse(
            schema,
            "rows may come into a range that was read before, and redo does not carry LOBs and LONGs"
            " that an UPDATE leaves alone. Ranges of the key (snapshot.cut: key) are free of that",
        )


def read_between(
    session: OracleSession,
    ctx: Context,
    record: ChunkRecord,
) -> ChunkManifest:
    """Read a chunk between two watermarks, and again where a DDL came between them.

    Raises:
        ConfigError: The table cannot be read so.
        SnapshotTooOldError: Oracle does not keep the undo while one chunk is read.
        SnapshotBrokenError: A DDL moved rows between chunks.
        SchemaMismatchError: What the table has become cannot be followed.
        WindowFirstError: That may be, when windows up to the SCN are captured.
    """
    for attempt in range(ATTEMPTS):
        try:
            return _read_once(session, ctx, record)
        except CdcError as error:
            if attempt + 1 == ATTEMPTS or not _may_pass(error):
                raise
            _LOG.info("a chunk is read again: %s", error)
    raise AssertionError("every attempt returns or raises")


def _may_pass(error: CdcError) -> bool:
    """May the chunk be read if it is asked for again?"""
    if isinstance(error, SnapshotBrokenError):
        return False
    is_passing = isinstance(error, SnapshotTooOldError | AlteredMeanwhileError)
    return is_passing or error.facts.get("ora") in _ALTERED


def _read_once(
    session: OracleSession,
    ctx: Context,
    record: ChunkRecord,
) -> ChunkManifest:
    part = chunk_part(record.range)
    with ctx.database.session() as beside:
        known = settled_ddl(beside, record.table)
    schema = _definition(session, ctx, record)
    refuse_between(ctx, session, schema, part)
    if rows_may_leave(ctx, session, record, schema):
        raise moved(record)
    low = current_scn(session)
    with session.read_only():
        high = current_scn(session)
        return land_chunk(
            session,
            ctx,
            record,
            replace(schema, scn_from=low),
            low,
            scn_high=high,
            settle=lambda: _settle(ctx, record.table, known),
        )


def _definition(session: OracleSession, ctx: Context, record: ChunkRecord) -> TableSchema:
    """The present definition, as what was captured so far lets it be followed."""
    scn = current_scn(session)
    before = ctx.store.schemas.at(record.table, scn)
    config = ctx.config.table(record.table)
    schema = replace(read_table_schema(session, config, before=before), scn_from=scn)
    if before is not None:
        schema = identified(before, schema)
    refuse_changed_key(ctx, schema, scn)
    if before is not None:
        refuse_altered(record, before, ctx.visible(schema))
    return schema


def _settle(ctx: Context, table: TableId, known: LastDdl) -> None:
    """Let the rows count if nothing came that their transaction did not see: by another session."""
    with ctx.database.session() as beside:
        refuse_hidden(beside, table)
        if last_ddl(beside, table) != known:
            raise AlteredMeanwhileError(
                "the table was altered while a chunk of it was read",
                hint="Read it when no DDL runs on it.",
                table=table,
            )


def _refuse(schema: TableSchema, why: str) -> None:
    raise ConfigError(
        f"the table cannot be read between watermarks: {why}",
        hint="Set snapshot.read, or `read` of the table, to flashback.",
        table=schema.table,
    )
