"""How does a table join the stream, for the first time or again, while windows of the others go on?

The order of the steps is what makes it right. While no window can be planned, an SCN is read, then
the oldest open transaction, then the SCN ``S`` of the snapshot; the table's stream begins with the
window that is planned next. ``S`` is at or above that window's lower end, so what ended at or below
it is in the snapshot, and what was open is read again from above ``mining_low``. A snapshot may
later be read at a newer SCN: the redo from ``S`` on is there in any case, and the apply rule does
the rest.

A row belongs to the object that it was written to, and an object is one table's at a time. A table
that was renamed is captured under its old name until the redo up to the rename has been read; only
then does it join under the new one.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cdc_core.change_reader import Start
from cdc_core.errors import CdcError, PreflightError, SnapshotTooOldError
from cdc_core.model.chunks import NO_ROWS
from cdc_core.model.findings import Finding
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import ChunkRecord, SourceRecord, TableRecord
from cdc_core.model.scn import Scn
from cdc_core.model.streams import ReadAgain
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.session import OracleSession
from cdc_core.preflight.tables import check_tables
from cdc_core.schema.ddl_times import unchanged_since
from cdc_core.schema.dictionary import read_each_schema
from cdc_core.schema.evolution import held_by, identified, judge
from cdc_core.schema.segments import (
    PAST_ERRORS,
    knowing,
    knowing_data_objects,
    read_data_objects,
    with_segments,
)
from cdc_core.schema.table import TableSchema
from cdc_core.snapshot.plan import ChunkRange
from cdc_core.steps.context import Context
from cdc_core.steps.snapshots.row_filter import configured_filter, held_filter
from cdc_core.steps.snapshots.rows import NO_ROW_MEETS, snapshot_prefix
from cdc_core.steps.snapshots.shared import chunk_records
from cdc_core.steps.snapshots.watermarks import ranges_to_read
from cdc_core.steps.table_errors import READING_ERRORS, stop_alone

_LOG = logging.getLogger(__name__)

PLAN_ATTEMPTS = 3
"""How often the chunks of a table are planned, each time at a newer SCN, before ORA-01555 stops
it."""


@dataclass(frozen=True, slots=True)
class FirstStart:
    """Where a new source may begin, and the definitions of its tables as they were right before
    that was fixed."""

    start: Start
    before: Mapping[TableId, TableSchema | None]

    @property
    def snapshot_scn(self) -> Scn:
        """The SCN as of which its tables are to be read."""
        return self.start.snapshot_scn

    def read_at(self, scn: Scn) -> FirstStart:
        """The same with tables that are read as of a later SCN that Oracle has reached. What is
        open then was open when the start was fixed, or began after ``mining_low``."""
        assert scn >= self.snapshot_scn
        return replace(self, start=replace(self.start, snapshot_scn=scn))


def read_first_start(ctx: Context, session: OracleSession) -> FirstStart:
    """Fix where a new source may begin, for :func:`join_tables`.

    Raises:
        PreflightError: Something is missing in the database.
    """
    preflight(ctx, session)
    tables = ctx.configured(None)
    before = _definitions_now(ctx, session, tables)
    return FirstStart(ctx.change_reader.read_start(tables, is_first=True), before)


def join_tables(
    ctx: Context,
    session: OracleSession,
    tables: Sequence[TableId],
    *,
    fresh: bool = False,
    because: Mapping[TableId, ReadAgain] | None = None,
    first: FirstStart | None = None,
) -> list[TableRecord]:
    """Let tables join with the window that is planned next; return their records. Their chunks are
    planned afterwards.

    A table that cannot join is recorded as failed, and does not keep the others from it. One whose
    Delta tables cannot hold its definition as it is now begins new ones. One that is, under its old
    name, in the stream still waits, and stays as it is.

    Args:
        tables: Of the configuration, and not captured.
        fresh: Put the rows into new Delta tables and move the old ones aside, in any case.
        because: Why a policy lets a table join.
        first: Where the source begins, if it is new; now by default.

    Raises:
        PreflightError: The source is new, and something is missing.
    """
    if not tables:
        return []
    is_new = ctx.store.source.get() is None
    given = first if is_new else None
    if is_new and given is None:
        preflight(ctx, session)
    able = list(tables) if is_new else _able(ctx, session, tables)
    if not able:
        return []
    before = given.before if given else _definitions_now(ctx, session, able)
    with ctx.lease("window-plan", wait_seconds=60):
        start = given.start if given else ctx.change_reader.read_start(able, is_first=is_new)
        if is_new:
            _begin_source(ctx, start)
        last = ctx.store.windows.find(newest_first=True, limit=1)
        objects = captured_objects(ctx)
        definitions = _definitions_at(
            ctx, session, able, start.snapshot_scn, [one for one in before.values() if one]
        )
        joined = []
        for table in able:
            record = _joining(ctx, table, start.snapshot_scn, (because or {}).get(table))
            if last:
                record = replace(
                    record, first_ordinal=last[0].ordinal + 1, mining_low=start.mining_low
                )
            with stop_alone(ctx, record.table, joining=record):
                schema = _definition(definitions[table])
                if (other := objects.get(schema.object_id, table)) != table:
                    _LOG.warning(
                        "a table waits until the redo up to its rename is captured table=%s captured_as=%s", table, other
                    )  # fmt: skip
                    continue
                followed = None if fresh else _following(ctx, schema)
                record = replace(record, row_filter=configured_filter(ctx, schema))
                if followed is None:
                    record = replace(record, generation=record.generation + 1)
                else:
                    schema = followed
                ctx.store.tables.begin_stream(record, replace(schema, scn_from=start.snapshot_scn))
                joined.append(record)
                ctx.tell("table-joined", table)
        return joined


def plan_joining(
    ctx: Context, session: OracleSession, records: Sequence[TableRecord]
) -> list[ChunkRecord]:
    """Plan the chunks of tables that have joined, unless they are planned; a table that they cannot
    be planned for fails.

    Where Oracle has no undo for the snapshot's SCN any more, the snapshot begins anew at a newer
    one. A table whose chunks are all applied becomes ready: the process that applied the last one
    may have ended before it said so.
    """
    known = {
        record.table: ctx.store.chunks.find(record.table, snapshot_id=record.snapshot_id)
        for record in records
    }
    for table, chunks in known.items():
        if chunks and all(chunk.state in ("applied", "dropped") for chunk in chunks):
            ctx.store.tables.finish_snapshot(table)
    definitions = _definitions_of(
        ctx, session, [record for record in records if not known[record.table]]
    )
    return [
        chunk
        for record in records
        for chunk in known[record.table]
        or _plan_table(ctx, session, record, definitions[record.table])
    ]


def _plan_table(
    ctx: Context, session: OracleSession, record: TableRecord, found: TableSchema | CdcError
) -> list[ChunkRecord]:
    with stop_alone(ctx, record.table, joining=record):
        for attempt in range(PLAN_ATTEMPTS):
            try:
                return _plan_chunks(ctx, session, record, _definition(found))
            except SnapshotTooOldError:
                if attempt + 1 == PLAN_ATTEMPTS:
                    raise
                prefix = NO_ROWS if is_without_rows(record) else "s"
                record = _at(ctx, record, current_scn(session), prefix)
                found = _definitions_of(ctx, session, [record])[record.table]
    return []


def captured_objects(ctx: Context) -> dict[int, TableId]:
    """The captured tables by the numbers of their objects."""
    newest = ctx.store.schemas.newest()
    captured = [one.table for one in ctx.store.tables.all() if one.is_captured]
    numbers = {newest[table].object_id: table for table in captured if table in newest}
    numbers.pop(0, None)
    return numbers


def preflight(ctx: Context, session: OracleSession) -> None:
    """Check database, tables and set-up at once.

    Raises:
        PreflightError: Names every problem and its remedy.
    """
    tables = ctx.config.tables
    rows = check_tables(session, tables, ctx.config.snapshot.read)
    findings = [*ctx.change_reader.check(tables), *rows]
    _refuse(ctx, findings)
    _warn(findings)


def _warn(findings: Sequence[Finding]) -> None:
    """What an operator should know of the tables that join."""
    for one in findings:
        if one.table is not None and not one.is_problem:
            _LOG.warning("%s. %s", one.problem, one.remedy)


def _refuse(ctx: Context, findings: Sequence[Finding]) -> None:
    problems = list(dict.fromkeys(finding for finding in findings if finding.is_problem))
    if problems:
        raise PreflightError(
            "this source cannot be captured yet",
            hint="Have these fixed, then run the command again. `redolake doctor` shows what is left.",
            source=ctx.source,
        ).listing([f"{finding.problem}: {finding.remedy}" for finding in problems])


def _able(ctx: Context, session: OracleSession, tables: Sequence[TableId]) -> list[TableId]:
    """Those of the tables that can be captured; the others are recorded as failed."""
    able = []
    configs = [ctx.config.table(table) for table in tables]
    rows = check_tables(session, configs, ctx.config.snapshot.read)
    findings = [*ctx.change_reader.check(configs), *rows]
    _warn(findings)
    for table in tables:
        record = ctx.store.tables.get(table) or TableRecord(source=ctx.source, table=table)
        with stop_alone(ctx, record.table, joining=record):
            _refuse(ctx, [one for one in findings if one.table in (None, table)])
            able.append(table)
    return able


def _definitions_now(
    ctx: Context, session: OracleSession, tables: Sequence[TableId]
) -> dict[TableId, TableSchema | None]:
    """The present definitions; None where there is none that can be captured, which reading it as
    of the snapshot's SCN tells."""
    found = read_each_schema(session, [ctx.config.table(table) for table in tables])
    for one in found.values():
        if isinstance(one, CdcError) and not isinstance(one, READING_ERRORS):
            raise one
    schemas = [one for one in found.values() if isinstance(one, TableSchema)]
    now = read_data_objects(session, [one.table for one in schemas])
    known = {one.table: replace(one, data_objects=now.get(one.table)) for one in schemas}
    return {table: known.get(table) for table in found}


def _definitions_at(
    ctx: Context,
    session: OracleSession,
    tables: Sequence[TableId],
    scn: Scn,
    before: Sequence[TableSchema],
) -> dict[TableId, TableSchema | CdcError]:
    """The definitions as of an SCN, with the data objects as of it, and the segments that the
    tables have now."""
    configs = [ctx.config.table(table) for table in tables]
    found = read_each_schema(session, configs, scn=scn, before=before)
    found |= _unchanged_since(session, found, scn, before)
    schemas = [one for one in found.values() if isinstance(one, TableSchema)]
    schemas = knowing_data_objects(session, with_segments(session, schemas), scn, before)
    return {**found, **{one.table: one for one in schemas}}


def _unchanged_since(
    session: OracleSession,
    found: Mapping[TableId, TableSchema | CdcError],
    scn: Scn,
    before: Sequence[TableSchema],
) -> dict[TableId, TableSchema | CdcError]:
    """Known definitions of tables that Oracle cannot look back at, and that no DDL has changed
    since."""
    lost = [one for one in before if isinstance(found[one.table], PAST_ERRORS)]
    if not lost:
        return {}
    settled = unchanged_since(session, [one.table for one in lost], scn)
    for one in lost:
        _LOG.info("the definition as of SCN %d is the known one: table=%s", scn, one.table)
    return {one.table: replace(one, scn_from=scn) for one in lost if one.table in settled}


def _definitions_of(
    ctx: Context, session: OracleSession, records: Sequence[TableRecord]
) -> dict[TableId, TableSchema | CdcError]:
    """The definitions of joining tables as of their snapshots' SCNs, of which there are few: tables
    join together."""
    by_scn: dict[Scn, list[TableId]] = {}
    for record in records:
        assert record.snapshot_scn is not None
        by_scn.setdefault(record.snapshot_scn, []).append(record.table)
    found: dict[TableId, TableSchema | CdcError] = {}
    for scn, tables in by_scn.items():
        before = [ctx.store.schemas.at(table, scn) for table in tables]
        found |= _definitions_at(ctx, session, tables, scn, [one for one in before if one])
    return found


def _definition(found: TableSchema | CdcError) -> TableSchema:
    if isinstance(found, CdcError):
        raise found
    return found


def _begin_source(ctx: Context, start: Start) -> None:
    ctx.store.source.save(
        SourceRecord(
            name=ctx.source,
            snapshot_scn=start.snapshot_scn,
            mining_low=start.mining_low,
            resetlogs_change=start.resetlogs_change,
            database_name=start.database_name,
            dbid=start.dbid,
            container_dbid=start.container_dbid,
        )
    )


def _joining(ctx: Context, table: TableId, scn: Scn, because: ReadAgain | None) -> TableRecord:
    before = ctx.store.tables.get(table) or TableRecord(source=ctx.source, table=table)
    prefix = "s" if because is not None else snapshot_prefix(ctx, before, table)
    record = replace(_at(ctx, before, scn, prefix), first_ordinal=0, mining_low=None)
    if because is None:
        return record
    others = [one for one in before.read_again if one.trouble != because.trouble]
    return replace(record, read_again=(*others, because))


def _following(ctx: Context, schema: TableSchema) -> TableSchema | None:
    """The definition as the Delta tables that the table may have can follow it; None if they cannot
    hold it, or shall not be written anew to do so."""
    held = held_by([version.schema for version in ctx.store.schemas.versions(schema.table)])
    if held is None:
        return schema
    schema = identified(held, schema)
    evolution = judge(held, schema.keeping(held))
    policy = ctx.config.policy(schema.table, "widened_column")
    if evolution.refusal is not None or (evolution.widened and policy != "rewrite"):
        return None
    return evolution.followed(held, schema)


def is_without_rows(record: TableRecord) -> bool:
    """Does, or did, the table join without its rows?"""
    return (record.snapshot_id or "").startswith(NO_ROWS)


def _at(ctx: Context, record: TableRecord, scn: Scn, prefix: str) -> TableRecord:
    """The record with a snapshot as of ``scn`` that has a name of its own."""
    name = number = f"{prefix}{scn}"
    again = 1
    while ctx.store.chunks.find(record.table, snapshot_id=name):
        again += 1
        name = f"{number}-{again}"
    return replace(record, snapshot_id=name, snapshot_scn=scn, consistent_scn=scn)


def _plan_chunks(
    ctx: Context, session: OracleSession, record: TableRecord, schema: TableSchema
) -> list[ChunkRecord]:
    scn, name = record.snapshot_scn, record.snapshot_id
    assert scn is not None
    assert name is not None
    before = ctx.store.schemas.at(record.table, scn)
    schema = knowing(schema, before.segments if before else ())
    if before is not None:
        schema = identified(before, schema)
        schema = judge(before, schema).followed(before, schema)
    if is_without_rows(record):
        ranges, condition = [ChunkRange.whole()], NO_ROW_MEETS
    else:
        condition = held_filter(ctx, record, schema)
        ranges = ranges_to_read(ctx, session, schema, scn, condition)
    chunks = chunk_records(ctx, record.table, name, scn, ranges, condition)
    return ctx.store.tables.plan_chunks(record, replace(schema, scn_from=scn), chunks)
