"""Does the first run of a source cost more for each of its tables, the more there are?

Tables of one row each are made in the embedded Oracle; the first run plans their snapshots, lands
and applies each chunk, and carries windows; then a window with one change is carried among all of
them, by the command line and by Dagster: a tick of the windows sensor and the run that it asks for.
At last Dagster loads a code location of as many tables from nothing, as when the UI starts.

The lake is in memory, so that the steps themselves are measured, with the embedded Oracle's share
in the same process; Dagster keeps its events as under `redolake ui`. The result is right if all
tables are ready and equal Oracle.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import yaml

from assets.settings import DagsterConfig, WindowsSensorConfig
from benchmarks.common import Cost, Form, Result, measured
from pipelines.config_file import CONFIG_ENV
from pipelines.demo.settings import COMPONENT
from pipelines.ui import ROOT, prepare_home
from tests.assets.site import MemorySite
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import Source, source_of

TABLES = {Form.QUICK: (20, 40), Form.NORMAL: (50, 1_000), Form.LONG: (100, 2_000)}
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

    yield Result(
        f"Dagster loads a code location of {many.tables:,} tables",
        many.loading.seconds,
        "s",
        f"the same with {few.tables} tables",
        few.loading.seconds,
        correct=few.is_loaded and many.is_loaded,
        higher_is_better=False,
        cost=many.loading,
        is_warm=False,
    )


@dataclass(frozen=True, slots=True)
class _Measured:
    tables: int
    first: Cost
    window: Cost
    in_dagster: Cost
    loading: Cost
    is_right: bool
    is_loaded: bool


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
        with measured() as loading:
            is_loaded = _is_loaded(Path(folder), names)
    return _Measured(
        count,
        first.cost,
        window.cost,
        in_dagster,
        loading.cost,
        states == {"ready"},
        is_loaded,
    )


def _in_dagster(oracle: Oracle, source: Source, folder: Path) -> Cost:
    """What a tick and its run over a window with one change cost, behind a first tick that shows
    all that the command line did."""
    home = folder / "dagster"
    prepare_home(home)
    os.environ["DAGSTER_HOME"] = str(home)
    logging.disable(logging.INFO)  # a run's events are for its reader
    with dg.DagsterInstance.from_config(str(home)) as instance:
        site = MemorySite(source, instance, CHANGED)
        for value in ("shown", "counted"):
            oracle.run(f"UPDATE T3 SET V = '{value}'")
            with measured() as taken:
                if not site.windows().success:
                    raise AssertionError("the run over a window with one change failed")
    return taken.cost


def _is_loaded(folder: Path, names: Sequence[str]) -> bool:
    """Let Dagster load a source with these tables in a process of its own: it imports the
    definitions and asks for all assets, jobs and sensors, as its webserver does."""
    attributes = {
        "name": "many",
        "oracle": {"dsn": "nowhere:1521/none", "user": "nobody", "password_env": "NO_PASSWORD"},
        "tables": [{"name": f"APP.{name}"} for name in names],
        "landing": {"type": "local", "path": str(folder / "many" / "landing")},
        "lake": {"path": str(folder / "many" / "lake")},
        "state": {"url": f"sqlite:///{folder / 'many.db'}"},
    }
    path = folder / "defs.yaml"
    path.write_text(yaml.safe_dump({"type": COMPONENT, "attributes": attributes}))
    environment = {**os.environ, CONFIG_ENV: str(path), "DAGSTER_HOME": str(folder / "dagster")}
    command = [sys.executable, "-m", "dagster", "definitions", "validate"]
    command += ["-m", "pipelines.definitions", "-d", str(ROOT)]
    return subprocess.run(command, env=environment, capture_output=True).returncode == 0
