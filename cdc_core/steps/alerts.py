"""What must somebody look at now? By the metadata store, Oracle's SCN and its archived logs;
nothing is planned or recorded."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial

from cdc_core.change_reader import ReadsLogs
from cdc_core.errors import CdcError
from cdc_core.leases import CARRIERS, holders
from cdc_core.model.alerts import Alert, LogHeadroom
from cdc_core.model.notifications import ALERT, Notification
from cdc_core.model.reports import SourceStatus, TableStatus
from cdc_core.model.scn import Scn
from cdc_core.model.wording import counted
from cdc_core.signals.notification_channels import open_channels
from cdc_core.steps.context import Context
from cdc_core.steps.notifications import send
from cdc_core.steps.snapshots.rows import streams
from cdc_core.steps.status import status

_LOG = logging.getLogger(__name__)
ERROR_BELOW = 0.25
"""Headroom of less than this part of ``alerts.archived_log_hours`` is an error."""


def alerts(ctx: Context, found: SourceStatus | None = None) -> tuple[Alert, ...]:
    """Everything that is an alert by the configuration, the whole source's first; empty where all
    is well.

    Args:
        ctx: The source.
        found: A status that was just read; by default a new one.
    """
    found = found or status(ctx)
    of_source = [*_of_source(found), *_of_logs(ctx, found), *_of_leases(ctx, found)]
    return (*of_source, *(one for table in found.tables for one in _of_table(ctx, table)))


def log_headroom(ctx: Context) -> LogHeadroom | None:
    """How long the archived logs stay that are still to be read; None where the source is not
    begun, reads no logs of Oracle's, or may not look.

    Raises:
        OracleUnavailableError: The database does not answer.
    """
    source = ctx.store.source.get()
    reader = ctx.change_reader
    if source is None or not isinstance(reader, ReadsLogs) or not streams(ctx):
        return None
    landed = ctx.captured_windows()
    scn = Scn(landed[0].window.scn_high) if landed else Scn(source.mining_low)
    return reader.log_headroom(scn)


def known_headroom(ctx: Context) -> LogHeadroom | None:
    """The same; None also where the database does not answer."""
    try:
        return log_headroom(ctx)
    except CdcError as error:
        _LOG.debug("the headroom of archived logs is not known: %s", error)
        return None


def tell_changes(ctx: Context, before: Sequence[Alert]) -> tuple[Alert, ...]:
    """The alerts now; those that are new since ``before``, and those that are over, go out as
    notifications. A channel that fails is a warning."""
    now = alerts(ctx)
    old, new = {one.key: one for one in before}, {one.key: one for one in now}
    told = [_notification(ctx, "RAISED", new[key]) for key in new if key not in old]
    told += [_notification(ctx, "RESOLVED", old[key]) for key in old if key not in new]
    config = ctx.config.notifications
    if not told or not config.channels:
        return now
    try:
        channels = open_channels(config)
        for one in told:
            send(ctx, channels, one)
    except CdcError as error:
        _LOG.warning("an alert was not sent: %s", error)
    return now


def _notification(ctx: Context, kind: str, alert: Alert) -> Notification:
    data = {
        "connector_name": ctx.source,
        "severity": "error" if alert.is_error else "warning",
        "what": alert.what,
        "what_to_do": alert.what_to_do,
        **({} if alert.table is None else {"scanned_collection": alert.table}),
    }
    return Notification(
        id=alert.key, aggregate_type=ALERT, type=kind, timestamp=datetime.now(UTC), data=data
    )


def _of_source(found: SourceStatus) -> Iterator[Alert]:
    if found.scn_oracle is None:
        yield Alert(
            kind="oracle",
            what=found.oracle_error or "nobody asked Oracle",
            what_to_do="`redolake doctor` says what is missing.",
        )
    if found.last_error:
        yield Alert(
            kind="window",
            what=f"the next window fails, and all tables wait: {found.last_error}",
            what_to_do="`redolake lag` says what to change.",
        )


def _of_logs(ctx: Context, found: SourceStatus) -> Iterator[Alert]:
    bound = ctx.config.alerts.archived_log_hours
    if bound is None or found.scn_oracle is None:
        return
    headroom = known_headroom(ctx)
    if headroom is None or headroom.hours is None or headroom.hours >= bound:
        return
    yield Alert(
        kind="archived_logs",
        what=f"Oracle deletes archived logs that are still to be read in about {headroom.hours:.1f} h"
        if headroom.hours
        else "Oracle has deleted archived logs that are still to be read",
        what_to_do="Have them kept longer (RMAN's deletion policy, the recovery area, RDS's "
        "retention), and see `redolake lag` for why the source is behind.",
        is_error=headroom.hours < ERROR_BELOW * bound,
    )


def _of_leases(ctx: Context, found: SourceStatus) -> Iterator[Alert]:
    if len(found.carriers) > 1:
        yield Alert(
            kind="lease",
            what=f"{len(found.carriers)} processes carry the windows of this source, and take work "
            f"from each other: {', '.join(found.carriers)}",
            what_to_do="Nothing is lost. Stop one of them: either Dagster or one "
            "`redolake run --loop` carries a source.",
            is_error=False,
        )
    held = holders(ctx.store, ctx.source, CARRIERS)
    dead = [one for one in held if one.death is not None]
    if dead and not found.carriers:
        yield Alert(
            kind="lease",
            what=f"a process died while it held {dead[0].lease.name}: {dead[0].death}",
            what_to_do="The next `redolake run`, or Dagster's next tick, takes its work over.",
            is_error=False,
        )


def _of_table(ctx: Context, one: TableStatus) -> Iterator[Alert]:
    alert = partial(Alert, table=one.table)
    if one.state == "failed":
        yield alert(
            kind="table",
            what=f"{one.table} left the stream: {one.reason}",
            what_to_do=one.way_out or "`redolake status` says what brings it back.",
            is_error=one.asked_by is None,
        )
    elif one.rest_waits:
        yield alert(
            kind="table",
            what=f"{one.table} cannot apply its remaining changes: {one.rest_waits}",
            what_to_do=f"`redolake table resume {one.table}` tries again.",
        )
    if one.in_quarantine:
        yield alert(
            kind="quarantine",
            what=f"{one.table} has {counted(one.in_quarantine, 'redo row')} in quarantine",
            what_to_do=f"`redolake table quarantine {one.table}` says why; `redolake repair --table {one.table}` reads the rows.",
        )
    bound = ctx.config.alerts.lag_minutes
    lag = one.lag_seconds if one.state == "ready" else None
    if bound is not None and lag is not None and lag > 60 * bound:
        yield alert(
            kind="lag",
            what=f"{one.table} is {counted(round(lag / 60), 'minute')} behind Oracle",
            what_to_do="`redolake lag` says why, and what to change.",
            is_error=False,
        )
