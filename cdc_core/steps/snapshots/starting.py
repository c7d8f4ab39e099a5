"""What does a source do when it starts, by ``snapshot.mode``?

:func:`cdc_core.snapshot.modes.decide` decides; here it is told what is there, and what it decided
is done.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from cdc_core.errors import CdcError, ConfigError
from cdc_core.model.reports import StepReport
from cdc_core.model.starts import Decision
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.snapshot.modes import Answers, StartState, answers_of, decide
from cdc_core.state.schemas import SchemaVersion
from cdc_core.steps.context import Context
from cdc_core.steps.table_lifecycle import resnapshot_tables
from cdc_core.steps.windows.capture import next_gap

_LOG = logging.getLogger(__name__)


def decision(ctx: Context) -> Decision:
    """What a start would do, by the metadata store alone.

    Raises:
        ConfigError: ``snapshot.custom`` cannot be used.
    """
    found = _found(ctx)
    return decide(found, answers_of(ctx.config.snapshot, found), ctx.config.snapshot.mode)


def begin(ctx: Context) -> Decision:
    """Decide what this start does, and plan the snapshots that it asks for. Tables that are new
    join with the next snapshot that is planned, with or without their rows.

    Raises:
        ConfigError: The mode cannot start from what is there.
    """
    found = _found(ctx)
    answers = answers_of(ctx.config.snapshot, found)
    found = replace(found, has_redo=_has_redo(ctx, found, answers))
    made = decide(found, answers, ctx.config.snapshot.mode)
    if made.refusal is not None:
        raise ConfigError(made.refusal, hint=made.hint, mode=ctx.config.snapshot.mode)
    _LOG.info("start: %s", made)
    if made.work == "again":
        resnapshot_tables(ctx, ctx.configured(None))
    if made.work in ("stream", "nothing"):
        mode = ctx.config.snapshot.mode
        ctx.reported(StepReport(kind="snapshot-skipped", key=mode, seconds=0.0))
    if made.work == "definitions":
        _read_lost_definitions(ctx)
    return made


def _found(ctx: Context) -> StartState:
    records = ctx.store.tables.all()
    known = ctx.store.schemas.newest()
    return StartState(
        has_position=ctx.store.source.get() is not None,
        is_unfinished=any(one.state == "snapshotting" for one in records),
        has_definitions=all(one.table in known for one in records if one.is_captured),
    )


def _has_redo(ctx: Context, found: StartState, answers: Answers) -> bool:
    """Asked where it makes a difference; otherwise the window that needs the redo says in full what
    is gone."""
    if not (found.has_position and answers.on_lost_redo and answers.streams):
        return True
    try:
        return next_gap(ctx) is None
    except CdcError as error:  # which the window says too
        _LOG.info("whether redo is gone cannot be said now: %s", error)
        return True


def _read_lost_definitions(ctx: Context) -> None:
    """Keep the definitions, as of the tables' positions, that the metadata store has lost. Oracle
    looks back by the dictionary of then, so a DDL since is met by the windows."""
    known = ctx.store.schemas.newest()
    lost = [
        one
        for one in ctx.store.tables.all()
        if one.is_captured and one.table not in known and one.snapshot_scn is not None
    ]
    if not lost:
        return
    with ctx.database.session() as session:
        for record in lost:
            scn = record.mirror_scn or record.snapshot_scn
            schema = read_table_schema(session, ctx.config.table(record.table), scn=scn)
            since = record.snapshot_scn or schema.scn_from
            ctx.store.schemas.save(SchemaVersion(ctx.source, replace(schema, scn_from=since)))
            _LOG.warning("a lost definition was read as of SCN %s table=%s", scn, record.table)
