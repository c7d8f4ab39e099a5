"""Which notifications follow from a finished step, and who gets them?"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from cdc_core.errors import CdcError
from cdc_core.model.identifiers import TableId
from cdc_core.model.notifications import INCREMENTAL, INITIAL, TABLE, WINDOW, Notification
from cdc_core.model.records import ChunkRecord
from cdc_core.model.reports import Reporter, StepReport
from cdc_core.signals.notification_channels import NotificationChannel, open_channels, send_to
from cdc_core.steps.context import Context

_LOG = logging.getLogger(__name__)
_BY_SIGNAL = {
    "pause-snapshot": "PAUSED",
    "resume-snapshot": "RESUMED",
    "stop-snapshot": "ABORTED",
}


class Notifier:
    """Sends what follows from the steps of a source. A failure here is a warning, never the step's.

    Args:
        ctx: The source, once it is open.
        then: Who hears of every step as well.
    """

    def __init__(self, ctx: Callable[[], Context], then: Reporter | None) -> None:
        self._ctx = ctx
        self._then = then
        self._lock = threading.Lock()
        self._channels: Sequence[NotificationChannel] | None = None
        self._started: set[str] = set()

    def __call__(self, report: StepReport) -> None:
        """A step has finished."""
        if self._then is not None:
            self._then(report)
        ctx = self._ctx()
        if not ctx.config.notifications.channels or report.repeated:
            return
        try:
            for notification in notifications_of(ctx, report):
                if notification.type != "STARTED" or self._is_first(notification.id):
                    self._send(ctx, notification)
        except CdcError as error:
            _LOG.warning("a notification was not sent: %s", error)

    def _is_first(self, key: str) -> bool:
        """A plan that is looked up again reports itself again."""
        with self._lock:
            is_first = key not in self._started
            self._started.add(key)
            return is_first

    def _send(self, ctx: Context, notification: Notification) -> None:
        with self._lock:
            if self._channels is None:
                self._channels = open_channels(ctx.config.notifications)
        send(ctx, self._channels, notification)


def send(ctx: Context, channels: Sequence[NotificationChannel], notification: Notification) -> None:
    """Send a notification to opened channels; those of ``store`` and ``dagster`` read the store."""
    config = ctx.config.notifications
    if {"store", "dagster"} & set(config.channels):
        ctx.store.notifications.add(notification, keep=config.keep)
    send_to(channels, ctx.source, notification)


def notifications_of(ctx: Context, report: StepReport) -> Iterator[Notification]:
    """What a step has brought about, in order."""
    now = datetime.now(UTC)

    def told(about: str, kind: str, key: str, **data: object) -> Notification:
        texts = {name: str(value) for name, value in data.items()}
        whole = {"connector_name": ctx.source, **texts}
        return Notification(id=key, aggregate_type=about, type=kind, timestamp=now, data=whole)

    for end in report.stopped:
        yield told(
            TABLE, "STOPPED", str(end.table), scanned_collection=end.table, reason=end.reason
        )
    match report.kind:
        case "snapshot-planned":
            chunks = ctx.store.chunks.find()
            first = next((one for one in chunks if one.snapshot_id == report.key), None)
            own = [] if first is None else [one for one in chunks if _together(one, first)]
            if all(one.state == "planned" for one in own):
                for key, about, tables in _groups(ctx, own):
                    yield told(about, "STARTED", key, data_collections=_names(tables))
        case "chunk-applied":
            yield from _of_chunk(ctx, report, told)
        case "signal-taken":
            signal = ctx.store.signals.get(report.key)
            if signal is not None and signal.type in _BY_SIGNAL:
                waits = ctx.store.chunks.find(states=("planned", "landed"))
                names = _names(sorted({one.table for one in waits}))
                kind = _BY_SIGNAL[signal.type]
                yield told(INCREMENTAL, kind, signal.id, data_collections=names)
        case "snapshot-skipped":
            yield told(INITIAL, "SKIPPED", report.key)
        case "table-joined" | "table-resumed":
            kind = "JOINED" if report.kind == "table-joined" else "RESUMED"
            yield told(TABLE, kind, report.key, scanned_collection=report.table or report.key)
        case "window-captured" if report.facts.get("is_gap"):
            yield told(WINDOW, "GAP", report.key, scn_low=report.scn_low, scn_high=report.scn_high)
        case "window-applied":
            for one in report.tables:
                if one.quarantined:
                    yield told(
                        TABLE,
                        "QUARANTINED",
                        str(one.table),
                        scanned_collection=one.table,
                        rows=one.quarantined,
                        window=report.key,
                    )
        case _:
            return


def _of_chunk(
    ctx: Context, report: StepReport, told: Callable[..., Notification]
) -> Iterator[Notification]:
    """Progress with each chunk; the end of a table's snapshot, and of all that began together."""
    assert report.table is not None
    snapshot_id, _, number = report.key.rpartition(":")
    own = ctx.store.chunks.tally(report.table, snapshot_id)
    if not own.chunks:
        return
    tables, is_over = ctx.store.chunks.begun_together(snapshot_id, own.signal_id)
    record = ctx.store.tables.get(report.table)
    is_first = own.signal_id is None and record is not None and record.snapshot_id == snapshot_id
    key, about = own.signal_id or snapshot_id, INITIAL if is_first else INCREMENTAL
    every, rows = _names(tables), own.rows
    yield told(
        about, "IN_PROGRESS", key, data_collections=every,
        current_collection_in_progress=report.table, chunk_index=int(number) + 1,
        total_chunks=own.chunks, total_rows_scanned=rows,
    )  # fmt: skip
    if own.settled < own.chunks:
        return
    yield told(
        about, "TABLE_SCAN_COMPLETED", key, data_collections=every, scanned_collection=report.table,
        total_rows_scanned=rows, status="SUCCEEDED" if rows else "EMPTY",
    )  # fmt: skip
    if is_over:
        yield told(about, "COMPLETED", key, data_collections=every)


def _together(one: ChunkRecord, other: ChunkRecord) -> bool:
    """Did the snapshots of two chunks begin together: by one signal, or at one SCN without one?"""
    if other.signal_id is not None or one.signal_id is not None:
        return one.signal_id == other.signal_id
    return one.snapshot_id == other.snapshot_id


def _groups(ctx: Context, chunks: Sequence[ChunkRecord]) -> list[tuple[str, str, list[TableId]]]:
    """Snapshots that began together: their id, what they are, and their tables."""
    found: dict[str, set[TableId]] = {}
    first = {one.snapshot_id for one in ctx.store.tables.all()}
    about: dict[str, str] = {}
    for one in chunks:
        key = one.signal_id or one.snapshot_id
        found.setdefault(key, set()).add(one.table)
        is_first = one.signal_id is None and one.snapshot_id in first
        about[key] = INITIAL if is_first else INCREMENTAL
    return [(key, about[key], sorted(tables)) for key, tables in found.items()]


def _names(tables: Sequence[TableId]) -> str:
    return ", ".join(map(str, tables))
