"""What does Redolake do by itself with a table that met what cannot be followed?

The configuration has a policy for each trouble. A table is taken out at once; one that is to be
read again joins with the next windows or the next snapshot that is planned, as
``redolake table resnapshot`` would let it. What belongs to the old stream is applied first.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from cdc_core.config import Policy
from cdc_core.errors import LeaseHeldError
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord
from cdc_core.model.streams import ReadAgain
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.catalog import existing_tables
from cdc_core.steps.context import Context
from cdc_core.steps.snapshots.joining import join_tables
from cdc_core.steps.snapshots.plan import start_snapshot

_LOG = logging.getLogger(__name__)

Answer = Literal["stop", "stop for good", "resnapshot", "remove"]


def answer_to(record: TableRecord, policy: Policy, *, life: timedelta) -> Answer:
    """What becomes of a stopped table by the policy for its trouble.

    It stops for good where the policy had it read again after the same trouble, and that new
    snapshot is not complete, or is younger than ``life``.
    """
    if policy in {
        "ignore",
        "quarantine",
        "skip",
        "follow",
        "rewrite",
    }:  # stopped under another policy, or by what is not about one row
        return "stop"
    if policy == "stop" or policy == "remove":
        return policy
    before = next((one for one in record.read_again if one.trouble == record.trouble), None)
    if before is None or record.since is None:
        return "resnapshot"
    is_same_life = record.mirror_scn is None or record.since - before.at < life
    return "stop for good" if is_same_life else "resnapshot"


def answer_policies(ctx: Context) -> list[TableId]:
    """Take tables out whose policy says so, and say of the others what their policies will do;
    return those to be read again."""
    configured = {config.table for config in ctx.config.tables}
    again = []
    for record in ctx.store.tables.all():
        if record.state != "failed" or record.trouble is None or record.table not in configured:
            continue
        policy = ctx.config.policy(record.table, record.trouble)
        life = timedelta(hours=ctx.config.policies.resnapshot_hours_min)
        answer = answer_to(record, policy, life=life)
        if answer == "resnapshot":
            again.append(record.table)
        answered = _answered(record, answer)
        if answered != record:
            _LOG.warning("policy on_%s says %s table=%s", record.trouble, answer, record.table)
            ctx.store.tables.answer(answered, before=record)
    return again


def follow_policies(ctx: Context) -> list[TableId]:
    """Let the tables join again whose policies say so; return them. Their chunks are planned with
    the next snapshot.

    Does nothing while another process plans a snapshot, so that windows do not wait for it: the
    next call makes up for it.
    """
    if not _waiting(ctx, answer_policies(ctx)):
        return []
    try:
        with ctx.lease("snapshot-plan"), ctx.database.session() as session:
            waiting = _there(session, _waiting(ctx, answer_policies(ctx)))
            because = {record.table: _reason(record) for record in waiting}
            joined = join_tables(ctx, session, list(because), because=because)
    except LeaseHeldError as error:
        _LOG.info("policies wait: %s", error)
        return []
    return [record.table for record in joined]


def take_policies(ctx: Context) -> list[ChunkKey]:
    """Do the same, and plan the chunks of all tables that have joined and have none."""
    follow_policies(ctx)
    configured = {config.table for config in ctx.config.tables}
    unplanned = [
        record.table
        for record in ctx.store.tables.all()
        if record.state == "snapshotting"
        and record.table in configured
        and not ctx.store.chunks.find(record.table, snapshot_id=record.snapshot_id)
    ]
    return start_snapshot(ctx, unplanned) if unplanned else []


def _waiting(ctx: Context, again: list[TableId]) -> list[TableRecord]:
    """Those that have taken what belongs to their old stream."""
    if not again:
        return []
    return [
        record
        for record in ctx.store.tables.all()
        if record.table in again and not record.takes_windows
    ]


def _there(session: OracleSession, records: list[TableRecord]) -> list[TableRecord]:
    """Those without the tables that were dropped or renamed and are not there again."""
    dropped = [record.table for record in records if record.trouble == "drop"]
    gone = set(dropped) - existing_tables(session, dropped)
    return [record for record in records if record.table not in gone]


def _reason(record: TableRecord) -> ReadAgain:
    assert record.trouble is not None
    return ReadAgain(record.trouble, datetime.now(UTC), record.rest_waits or record.reason or "")


def _answered(record: TableRecord, answer: Answer) -> TableRecord:
    by_hand = f"`redolake table resnapshot {record.table.argument}` adds the table back with a new snapshot."
    if answer == "remove":
        way_out = f"Its Delta tables stay. `redolake table add {record.table.argument}` adds it back with a new snapshot."
        return replace(record, state="removed", asked_by="policy", way_out=way_out, trouble=None)
    if answer == "resnapshot":
        when = (
            "as soon as there is a table of that name again"
            if record.trouble == "drop"
            else "with the next run"
        )
        way_out = f"The policy on_{record.trouble} reads the table again {when}."
        return replace(record, asked_by="policy", way_out=way_out)
    if answer == "stop for good":
        reason = (
            f"{record.reason}; the policy on_{record.trouble} has the table read again only once"
        )
        return replace(record, asked_by=None, reason=reason, way_out=by_hand, trouble=None)
    if record.asked_by == "policy":  # which the configuration has taken back since
        return replace(record, asked_by=None, way_out=by_hand)
    return record
