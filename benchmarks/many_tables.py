"""Does the first run of a source cost more for each of its tables, the more there are?

Tables of one row each are made in the embedded Oracle; the first run plans their snapshots, lands
and applies each chunk, and carries windows; then a window with one change is carried among all of
them, by the command line and by Dagster: a tick of the windows sensor and the run that it asks for.
The lake is in memory, so that the steps themselves are measured, with the embedded Oracle's share
in the same process; Dagster keeps its events in SQLite. The result is right if all tables are ready
and equal Oracle.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from assets.settings import DagsterConfig, WindowsSensorConfig
from benchmarks.common import Cost, Form, Result, measured
from tests.assets.site import MemorySite
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import Source, source_of

TABLES = {Form.QUICK: (20, 40), Form.NORMAL: (50, 200), Form.LONG: (100, 1_000)}
ALLOWED = 1.5
CHANGED = DagsterConfig(windows=WindowsSensorConfig(assets="changed"))


def rows(form: Form = Form.NORMAL) -> Iterator[Result]:
    """CPU seconds of a first run and of one window, beside as many times those with fewer
    tables."""
    few, many = (_measured(count) for count in TABLES[form])
    yield Result(
        f"first run of {many.tables:,} tables, lake in memory",
        many.first.cpu_seconds,
        "CPU s",
        f"{ALLOWED:g} times {many.tables // few.tables} first runs of {few.tables} tables",
        ALLOWED * few.first.cpu_seconds * many.tables / few.tables,
        goal=1.0,
        correct=few.is_right and many.is_right,
        higher_is_better=False,
        cost=many.first,
        is_warm=False,
    )
    yield Result(
        f"a window with one change among {many.tables:,} tables, lake in memory",
        many.window.cpu_seconds,
        "CPU s",
        "itself",
        None,
        goal=None,
        correct=many.is_right,
        higher_is_better=False,
        cost=many.window,
        is_warm=True,
    )
    yield Result(
        f"the same in Dagster, a tick and its run among {many.tables:,} tables, lake in memory",
        many.in_dagster.cpu_seconds,
        "CPU s",
        f"{ALLOWED:g} times the same among {few.tables} tables",
        ALLOWED * few.in_dagster.cpu_seconds,
        goal=1.0,
        correct=few.is_right and many.is_right,
        higher_is_better=False,
        cost=many.in_dagster,
        is_warm=True,
    )


@dataclass(frozen=True, slots=True)
class _Measured:
    tables: int
    first: Cost
    window: Cost
    in_dagster: Cost
    is_right: bool


def _measured(count: int) -> _Measured:
    names = [f"T{number}" for number in range(count)]
    with tempfile.TemporaryDirectory() as folder, running_oracle() as oracle:
        oracle.run(
            *(f"CREATE TABLE {one} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))" for one in names),
            *(f"INSERT INTO {one} VALUES (1, 'first')" for one in names),
        )
        with source_of(oracle, Path(folder)) as source:
            source.configure({"name": "*"})
            with measured() as first:
                source.run()
            oracle.run("UPDATE T1 SET V = 'warm'")
            source.run()
            oracle.run("UPDATE T2 SET V = 'changed'")
            with measured() as window:
                source.run()
            in_dagster = _in_dagster(oracle, source, Path(folder))
            states = {one.state for one in source.pipeline.records.tables()}
            source.check_current(*names)
            return _Measured(count, first.cost, window.cost, in_dagster, states == {"ready"})


def _in_dagster(oracle: Oracle, source: Source, folder: Path) -> Cost:
    """What a tick and its run over a window with one change cost, behind a first tick that shows
    all that the command line did."""
    home = folder / "dagster"
    home.mkdir()
    logging.disable(logging.INFO)  # a run's events are for its reader
    with dg.DagsterInstance.local_temp(str(home)) as instance:
        site = MemorySite(source, instance, CHANGED)
        for value in ("shown", "counted"):
            oracle.run(f"UPDATE T3 SET V = '{value}'")
            with measured() as taken:
                if not site.windows().success:
                    raise AssertionError("the run over a window with one change failed")
    return taken.cost
