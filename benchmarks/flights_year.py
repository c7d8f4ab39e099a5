"""How fast does a year of flights arrive, by the snapshot path and by the log path, and which step
takes how long?

The year runs on the demo's airport. Snapshot: all flights of the year are in Oracle, and are read,
landed and put into Delta. Log: January is in Oracle, everything that happens in the rest of the
year comes through windows. The quick form takes two months for the year.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.airport import Airport, open_airport
from benchmarks.common import Form, Result, measured
from cdc_core.model.reports import StepReport
from cdc_core.oracle.session import connect
from cdc_core.schema.types import select_expression
from pipelines.demo.workload import Plan

SNAPSHOT_GOAL = 0.6
QUICK_YEAR = Plan(date(2013, 3, 1), date(2013, 2, 28))
YEAR = Plan(date(2014, 1, 1), date(2013, 12, 31))
QUICK_LOG = Plan.of_scale("month")
LOG = Plan.of_scale("year")


def rows(form: Form = Form.NORMAL) -> list[Result]:
    """Snapshot path, then log path, each with its steps."""
    year = "two months" if form is Form.QUICK else "year"
    with tempfile.TemporaryDirectory() as folder:
        found = _snapshot(
            Path(folder) / "snapshot", QUICK_YEAR if form is Form.QUICK else YEAR, year
        )
    with tempfile.TemporaryDirectory() as folder:
        return [*found, *_log(Path(folder) / "log", QUICK_LOG if form is Form.QUICK else LOG, year)]


def _snapshot(folder: Path, plan: Plan, year: str) -> list[Result]:
    with open_airport(folder, plan) as airport:
        alone_rows, alone = _driver_alone(airport, folder / "alone.parquet")
        with measured() as watch:
            steps = list(airport.pipeline.run_snapshot())
        list(airport.pipeline.run_windows())
        correct = airport.pipeline.reconcile().differences == 0
    landed = sum(step.rows for step in steps if step.kind == "chunk-landed")
    return [
        Result(
            f"{year} of flights, snapshot path: Oracle to Delta",
            landed / watch.seconds,
            "rows/s",
            "the driver alone, FLIGHTS into one Parquet file",
            alone_rows / alone,
            goal=SNAPSHOT_GOAL,
            correct=correct,
        ),
        *_steps(
            f"{year} of flights, snapshot path", steps, ("chunk-landed", "chunk-applied"), correct
        ),
    ]


def _log(folder: Path, plan: Plan, year: str) -> list[Result]:
    with open_airport(folder, plan) as airport:
        list(airport.pipeline.run_snapshot())
        with measured() as working:
            airport.work()
        with measured() as watch:
            steps = list(airport.pipeline.run_windows())
        correct = airport.pipeline.reconcile().differences == 0
    changes = sum(step.rows for step in steps if step.kind == "window-applied")
    return [
        Result(
            f"{year} of flights, log path: redo to merged mirrors",
            changes / watch.seconds,
            "changes/s",
            "the airport's own program making these changes in the embedded Oracle",
            changes / working.seconds,
            correct=correct,
        ),
        *_steps(
            f"{year} of flights, log path", steps, ("window-captured", "window-applied"), correct
        ),
    ]


def _steps(
    question: str, steps: Iterable[StepReport], kinds: tuple[str, ...], correct: bool
) -> list[Result]:
    """Each step's rows per second, and its share of the path's seconds in the text."""
    seconds: defaultdict[str, float] = defaultdict(float)
    counted: defaultdict[str, int] = defaultdict(int)
    for step in steps:
        seconds[step.kind] += step.seconds
        counted[step.kind] += step.rows
    total = sum(seconds[kind] for kind in kinds)
    return [
        Result(
            f"{question}: {kind.replace('-', ' ')}",
            counted[kind] / seconds[kind] if seconds[kind] else None,
            "rows/s",
            f"nothing; {seconds[kind] / total:.0%} of the path's {total:.0f} s",
            correct=correct,
        )
        for kind in kinds
    ]


def _driver_alone(airport: Airport, path: Path) -> tuple[int, float]:
    """Rows and seconds of FLIGHTS fetched as Arrow batches and written to Parquet by the driver and
    pyarrow alone."""
    schema = airport.schema("FLIGHTS")
    columns = ", ".join(select_expression(column) for column in schema.columns)
    counted = 0
    writer: pq.ParquetWriter | None = None
    with connect(airport.pipeline.config.oracle) as session, measured() as watch:
        for batch in session.fetch_batches(
            f"SELECT {columns} FROM {schema.table.sql}", rows=10_000
        ):
            writer = writer or pq.ParquetWriter(path, batch.schema)
            writer.write_batch(batch)
            counted += batch.num_rows
        if writer is not None:
            writer.close()
    return counted, watch.seconds
