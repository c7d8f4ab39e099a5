"""Which numbers does a source give at this moment?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from cdc_core.model.metrics import METRICS, Sample
from cdc_core.model.reports import SourceStatus, TableStatus
from cdc_core.state.totals import OUTCOMES
from cdc_core.steps.context import Context
from cdc_core.steps.source_view import SourceView
from cdc_core.steps.status import status

TABLE_STATES = ("new", "snapshotting", "ready", "paused", "failed", "removed")


def measure(
    ctx: Context, found: SourceStatus | None = None, *, ask_oracle: bool = True
) -> list[Sample]:
    """Every metric that has a value now: gauges by a status that was just read (``found``), or else
    by the metadata store and, with ``ask_oracle``, by Oracle; counters by what was added up since
    the store was made. In the order of :data:`~cdc_core.model.metrics.METRICS`."""
    found = found or status(ctx, ask_oracle=ask_oracle)
    samples = [
        *_of_source(ctx, found, asked=ask_oracle),
        *(one for table in found.tables for one in _of_table(table)),
        *(
            _sample("redolake_differences", compared.differences, str(table))
            for table, compared in ctx.store.comparisons.newest().items()
        ),
        *_counters(ctx),
    ]
    order = {name: place for place, name in enumerate(METRICS)}
    return sorted(samples, key=lambda one: order[one.metric.name])


def _sample(name: str, value: float, *labels: str) -> Sample:
    return Sample(METRICS[name], labels, float(value))


def _of_source(ctx: Context, found: SourceStatus, *, asked: bool) -> Iterator[Sample]:
    view = SourceView(ctx.store, ctx.config)
    if asked:
        yield _sample("redolake_oracle_up", found.scn_oracle is not None)
    landed = ctx.captured_windows()
    paused = ctx.store.signals.paused_since()
    held = 0.0 if paused is None else (datetime.now(UTC) - paused).total_seconds()
    known = {
        "redolake_oracle_scn": found.scn_oracle,
        "redolake_captured_scn": landed[0].window.scn_high if landed else None,
        "redolake_position_scn": view.taken_up_to or None,
        "redolake_oldest_open_scn": found.oldest_open_scn,
        "redolake_oldest_open_seconds": next(
            (one.open_seconds for one in found.oldest_open if one.open_seconds is not None), 0
        ),
        "redolake_open_transactions": found.open_transactions,
        "redolake_open_transaction_rows": sum(
            one.rows for one in ctx.store.ledger.open_transactions() if not one.is_over
        ),
        "redolake_windows_inexact": found.windows_inexact,
        "redolake_window_blocked": found.last_error is not None,
        "redolake_signals_pending": found.signals_pending,
        "redolake_snapshot_paused": paused is not None,
        "redolake_snapshot_paused_seconds": held,
    }
    for name, value in known.items():
        if value is not None:
            yield _sample(name, value)
    yield _sample("redolake_windows", found.windows_planned, "planned")
    yield _sample("redolake_windows", found.windows_captured, "captured")
    yield _sample("redolake_windows", found.windows_applied, "applied")
    for position in landed[0].positions or () if landed else ():
        if position.address is not None:
            sequence = position.address.sequence
            yield _sample("redolake_log_sequence", sequence, str(position.thread))
    states = Counter(table.state for table in found.tables)
    for state in TABLE_STATES:
        yield _sample("redolake_tables", states[state], state)


def _of_table(table: TableStatus) -> Iterator[Sample]:
    name = table.table
    yield _sample("redolake_table_state", 1, name, table.state)
    for metric, value in (
        ("redolake_table_position_scn", table.position),
        ("redolake_table_lag_seconds", table.lag_seconds),
        ("redolake_table_lag_scns", table.lag_scns),
        ("redolake_quarantine_rows", table.in_quarantine),
    ):
        if value is not None:
            yield _sample(metric, value, name)
    yield _sample("redolake_snapshot_chunks", table.chunks_applied, name, "applied")
    yield _sample("redolake_snapshot_chunks", table.chunks_planned, name, "planned")


def _counters(ctx: Context) -> Iterator[Sample]:
    """What was added up; a counter of the whole source that has not begun is 0."""
    of_source = [one.name for one in METRICS.values() if one.kind == "counter" and not one.labels]
    none: dict[tuple[str, tuple[str, ...]], float] = dict.fromkeys(
        ((name, ()) for name in of_source), 0.0
    )
    none |= dict.fromkeys((("redolake_transactions_total", (one,)) for one in OUTCOMES), 0.0)
    for (name, labels), value in {**none, **ctx.store.totals.all()}.items():
        if name in METRICS:
            yield _sample(name, value, *labels)
