"""How close does capture come to the driver alone fetching the same rows of V$LOGMNR_CONTENTS?

Ours reads, joins, resolves, counts and writes Parquet with a manifest. The driver alone starts the
same LogMiner session over the same logs, fetches the same query as Arrow batches, and throws them
away, before ours and after it. A database on another machine would show the clients' CPU seconds,
which have a row of their own. The input is a day (quick) or a week of the demo's airport.
"""

from __future__ import annotations

import tempfile
from datetime import date
from pathlib import Path

from benchmarks.airport import Airport, open_airport
from benchmarks.common import Cost, Form, Result, measured, median_cost
from cdc_core.capture.logs.coverage import cover, read_logs, read_threads
from cdc_core.capture.logs.positions import resetlogs_change
from cdc_core.capture.passes.mining import mined_batches, mining
from cdc_core.capture.passes.reading_position import Reading
from cdc_core.capture.passes.wanted_rows import WantedRows
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.oracle.session import connect
from pipelines.demo.workload import Plan

GOAL = 0.95
QUICK = Plan.of_scale("day")
WEEK = Plan(date(2013, 2, 1), date(2013, 2, 7))


def rows(form: Form = Form.NORMAL) -> list[Result]:
    """Rows of V$LOGMNR_CONTENTS per second, over all windows of the airport's work."""
    with (
        tempfile.TemporaryDirectory() as name,
        open_airport(Path(name), QUICK if form is Form.QUICK else WEEK) as airport,
    ):
        list(airport.pipeline.run_snapshot())
        airport.work()
        windows = airport.pipeline.plan_windows()
        fetched, before = _driver_alone(airport, windows)
        with measured() as watch:
            captured = sum(airport.pipeline.capture_window(window).rows for window in windows)
        again, after = _driver_alone(airport, windows)
        list(airport.pipeline.run_windows())
        correct = airport.pipeline.reconcile().differences == 0 and captured <= fetched == again
    alone, ours = median_cost([before, after]), watch.cost
    return [
        Result(
            f"the client's CPU for capturing {fetched:,} LogMiner rows",
            ours.cpu_seconds,
            "CPU s",
            "the driver alone fetching the same rows as Arrow batches",
            alone.cpu_seconds,
            goal=GOAL,
            correct=correct,
            higher_is_better=False,
            cost=ours,
        ),
        Result(
            f"capture of {fetched:,} LogMiner rows ({captured:,} row changes) into landing",
            fetched / ours.seconds,
            "rows/s",
            "the driver alone fetching the same rows as Arrow batches",
            fetched / alone.seconds,
            goal=GOAL,
            correct=correct,
            cost=ours,
        ),
    ]


def _driver_alone(airport: Airport, windows: list[ScnWindow]) -> tuple[int, Cost]:
    """Rows and cost of the bare query, window by window."""
    config = airport.pipeline.config
    tables = [airport.schema(table.table.name) for table in config.tables]
    first = airport.pipeline.store.source.get()
    assert first is not None
    assert first.mining_low is not None
    low, counted = first.mining_low, 0
    with connect(config.oracle) as session, measured() as watch, session.in_root():
        for window in windows:
            found = read_logs(session, Scn(low))
            logs = cover(
                found,
                read_threads(session),
                Scn(low),
                window.scn_high,
                resetlogs_change=resetlogs_change(session),
            )
            with mining(session, logs, Scn(low), window.scn_high):
                wanted = WantedRows(tables, {}, False, Reading(low, (), {}))
                batches = mined_batches(
                    session, wanted, window.scn_high, rows=config.oracle.fetch_rows
                )
                counted += sum(batch.num_rows for batch in batches)
            low = window.scn_high
    return counted, watch.cost
