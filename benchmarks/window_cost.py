"""What does a window with one change cost, beside the one MERGE that it cannot do without? And a
run with nothing to do?

The bare MERGE is written by hand: the same row, into a mirror of the same size, in the same warm
Spark, in turns with the windows. Everything above it is ours: planning, mining, landing, decoding,
the change log, bookkeeping. The run with nothing to do is a process of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.airport import Airport, open_airport
from benchmarks.common import Form, Result, alternating, repeated
from cdc_core.model.templates import DEFAULT_PATHS
from cdc_core.spark.session import expect_small_work, start_session
from pipelines.demo.settings import FILE_NAME, PASSWORD_ENV
from pipelines.demo.workload import Plan

GOAL_TIMES, GOAL_SECONDS = 1.2, 0.3
REPEATS, QUICK_REPEATS = 9, 5
WARM_UP, IDLE_RUNS = 3, 3


def rows(form: Form = Form.NORMAL) -> list[Result]:
    """A window with one change, and one with none."""
    repeats = QUICK_REPEATS if form is Form.QUICK else REPEATS
    with (
        tempfile.TemporaryDirectory() as name,
        open_airport(Path(name), Plan.of_scale("day")) as airport,
    ):
        list(airport.pipeline.run_snapshot())
        works = {
            "window": _one_change(airport),
            "bare": _bare(airport, Path(name) / "bare"),
            "empty": _no_change(airport),
        }
        alternating(works, repeats=WARM_UP)
        found = alternating(works, repeats=repeats)
        correct = airport.pipeline.reconcile().differences == 0
        idle = repeated(lambda: _idle_run(Path(name), airport), repeats=IDLE_RUNS)
    bare, ours, empty = found["bare"], found["window"], found["empty"]
    allowed = GOAL_TIMES * bare.seconds + GOAL_SECONDS
    return [
        Result(
            "a window with one change, from planning to the mirror",
            ours.seconds,
            "s",
            f"{GOAL_TIMES} times one bare MERGE ({bare.seconds:.2f} s, {bare.cpu_seconds:.2f} CPU s) and {GOAL_SECONDS} s",
            allowed,
            goal=1.0,
            correct=correct,
            higher_is_better=False,
            cost=ours,
            is_warm=True,
        ),
        Result(
            "`redolake run` with nothing to do, as a process",
            idle.seconds,
            "s",
            "nothing",
            correct=correct,
            higher_is_better=False,
            cost=idle,
            is_warm=False,
        ),
        Result(
            "a window with changes of other tables only",
            empty.seconds,
            "s",
            "half a second, and no Spark job",
            0.5,
            goal=1.0,
            correct=correct,
            higher_is_better=False,
            cost=empty,
            is_warm=True,
        ),
    ]


def _one_change(airport: Airport) -> Callable[[], None]:
    """Change one airline's row, and carry it over."""

    def work() -> None:
        _execute(
            airport, "UPDATE AIRLINES SET FLIGHTS_FLOWN = FLIGHTS_FLOWN + 1 WHERE CARRIER = 'UA'"
        )
        list(airport.pipeline.run_windows())

    return work


def _no_change(airport: Airport) -> Callable[[], None]:
    """Change a row that is not captured, so that the SCN moves, and close the window."""

    def work() -> None:
        _execute(airport, "UPDATE AIRPORT_CLOCK SET DONE = DONE + 1 WHERE NAME = 'load FLIGHTS'")
        list(airport.pipeline.run_windows())

    return work


def _execute(airport: Airport, sql: str) -> None:
    with airport.owner() as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        assert cursor.rowcount == 1
        connection.commit()


def _bare(airport: Airport, folder: Path) -> Callable[[], None]:
    """One MERGE of one row into a copy of AIRLINES' mirror."""
    config = airport.pipeline.config
    (table,) = [table.table for table in config.tables if table.table.name == "AIRLINES"]
    mirror = str(folder / "mirror")
    shutil.copytree(DEFAULT_PATHS.path("mirror", config.lake.path, config.name, table), mirror)
    session = start_session(config.lake)
    expect_small_work(session)
    [row] = session.sql(f"SELECT * FROM delta.`{mirror}` WHERE CARRIER = 'UA'").collect()
    schema = session.table(f"delta.`{mirror}`").schema

    def work() -> None:
        session.createDataFrame([row], schema).createOrReplaceTempView("one")
        session.sql(
            f"MERGE INTO delta.`{mirror}` AS t USING one AS s ON t.CARRIER = s.CARRIER"
            " WHEN MATCHED THEN UPDATE SET *"
            " WHEN NOT MATCHED THEN INSERT *"
        ).collect()

    return work


def _idle_run(folder: Path, airport: Airport) -> None:
    """Start the command, let it find nothing, and end it."""
    environment = {
        **os.environ,
        "REDOLAKE_CONFIG": str(folder / FILE_NAME),
        PASSWORD_ENV: airport.served.capture_password,
    }
    command = [sys.executable, "-m", "pipelines.cli", "run"]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
