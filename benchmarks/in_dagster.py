"""What does a window cost in Dagster, with its webserver, its daemon and a code location?

``redolake ui`` serves a source with its sensors on. First the source rests, with a tick every
minute; then a transaction is committed each interval. CPU seconds are those of Dagster's whole
process tree, runs that have ended included, and of no other process: the database has one of its
own, and what writes to it is the benchmark. A window's price is what the tree used beyond its rest,
by the windows taken. Its delay is the time from the commit to the mirror's position behind it.

In the long form the interval is a minute and a run stays for thirty, as by default, for an hour.
The shorter forms keep the proportion: a run takes thirty windows. The quick form takes five
minutes.
"""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import oracledb
import yaml

from benchmarks.common import Cost, Form, Result, cpu_of, descendants
from cdc_core.model.scn import Scn
from cdc_core.oracle.database import current_scn
from cdc_core.steps import Pipeline
from pipelines.config_file import CONFIG_ENV, load_config
from pipelines.demo.server import Served, serving
from pipelines.demo.settings import COMPONENT, PASSWORD_ENV

SOURCE, TABLES = "orders", ("ORDERS", "CUSTOMERS", "STOCK")
ROWS, CHANGED = 20_000, 20
COLUMNS = 13
WINDOWS_PER_RUN = 30
MINUTE, SETTLED_SECONDS = 60, 30
READY_SECONDS, POLL_SECONDS, TAKEN_SECONDS_MAX = 180, 0.25, 60
GOAL_CPU, GOAL_P50, GOAL_P99, GOAL_IDLE = 1.0, 3.0, 10.0, 150.0
KINDS = {
    "webserver": "webserver",
    "dagster._daemon": "daemon",
    "dagster-daemon": "daemon",
    "code-server": "code server",
    "api grpc": "code location",
    "execute_run": "runs",
    "execute_step": "runs",
}


@dataclass(frozen=True, slots=True)
class _Plan:
    """Seconds between two commits, how many there are, how long the source rests before, and how
    long with a tick every minute."""

    interval: int
    commits: int
    rest_seconds: int
    quiet_seconds: int


PLANS = {
    Form.QUICK: _Plan(5, 12, 30, 120),
    Form.NORMAL: _Plan(6, 60, 120, 300),
    Form.LONG: _Plan(60, 60, 300, 900),
}


def rows(form: Form = Form.NORMAL) -> Iterator[Result]:
    """The rest, the price of a window, and its delay."""
    plan = PLANS[form]
    with tempfile.TemporaryDirectory() as name, serving(Path(name)) as served:
        folder = Path(name)
        _make_tables(served)
        path = _configured(folder, served, MINUTE)
        os.environ[PASSWORD_ENV] = served.capture_password
        with Pipeline(load_config(path, environ=os.environ)) as pipeline:
            list(pipeline.run_once())
            with _owner(served) as connection, connection.cursor() as cursor:
                for table in TABLES:  # compiled code is in its cache before Dagster starts
                    cursor.execute(f"UPDATE {table} SET AMOUNT = 0 WHERE ID = 1")
                connection.commit()
            list(pipeline.run_windows())
            yield _at_rest(path, served, pipeline, plan)
            _configured(folder, served, plan.interval)
            with _dagster(path, served) as process:
                time.sleep(plan.interval * 2)
                rest = _spent(process, lambda: time.sleep(plan.rest_seconds))
                delays: list[float] = []
                before = _windows(pipeline)
                work = _spent(process, lambda: delays.extend(_commit(served, pipeline, plan)))
                windows = len(_windows(pipeline) - before)
            is_right = pipeline.reconcile().differences == 0 and len(delays) == plan.commits
    idle = {name: used / rest.seconds for name, used in rest.cpu.items()}
    beyond = {
        name: max(0.0, used - idle.get(name, 0.0) * work.seconds) for name, used in work.cpu.items()
    }
    yield Result(
        f"a window of {CHANGED} changes through Dagster, one each {plan.interval} s, beyond its rest",
        sum(beyond.values()) / max(1, windows),
        "CPU s",
        "the goal",
        GOAL_CPU,
        goal=1.0,
        correct=is_right and windows >= plan.commits // 2,
        higher_is_better=False,
        cost=Cost(work.seconds, beyond, windows),
        is_warm=True,
    )
    if not delays:
        return
    ordered = sorted(delays)
    for part, allowed in ((0.5, GOAL_P50), (0.99, GOAL_P99)):
        yield Result(
            f"commit to mirror through Dagster, p{100 * part:.0f}",
            ordered[min(len(ordered) - 1, int(part * len(ordered)))],
            "s",
            f"the interval and {allowed:g} s",
            plan.interval + allowed,
            goal=1.0,
            correct=is_right,
            higher_is_better=False,
            is_warm=True,
        )


def _at_rest(path: Path, served: Served, pipeline: Pipeline, plan: _Plan) -> Result:
    """What Dagster uses while nothing changes, once it has started and shown what is there."""
    before, high = _windows(pipeline), _newest_window(pipeline)
    with _dagster(path, served) as process:
        time.sleep(SETTLED_SECONDS)
        rest = _spent(process, lambda: time.sleep(plan.quiet_seconds))
    return Result(
        "Dagster with a source at rest, sensors on, a tick every minute",
        3600 * rest.cpu_seconds / rest.seconds,
        "CPU s an hour",
        "the goal",
        GOAL_IDLE,
        goal=1.0,
        correct=_windows(pipeline) == before and _newest_window(pipeline) > high,
        higher_is_better=False,
        cost=rest,
        is_warm=True,
    )


def _make_tables(served: Served) -> None:
    columns = ", ".join(f"C{n} VARCHAR2(40)" for n in range(COLUMNS - 3))
    numbers = ", ".join(f":{n + 4}" for n in range(COLUMNS - 3))
    chosen = random.Random(1)
    with _owner(served) as connection, connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(
                f"CREATE TABLE {table} (ID NUMBER(9) PRIMARY KEY, AMOUNT NUMBER(12,2), "
                f"CHANGED TIMESTAMP, {columns})"
            )
            cursor.execute(f"ALTER TABLE {table} ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS")
            made = [
                (number, number / 4, None, *(chosen.randbytes(12).hex() for _ in range(10)))
                for number in range(ROWS)
            ]
            cursor.executemany(f"INSERT INTO {table} VALUES (:1, :2, :3, {numbers})", made)
        connection.commit()


def _configured(folder: Path, served: Served, interval: int) -> Path:
    """Write the source's file."""
    attributes = {
        "name": SOURCE,
        "oracle": {"dsn": served.dsn, "user": served.capture_user, "password_env": PASSWORD_ENV},
        "tables": [{"name": f"{served.user.upper()}.{table}"} for table in TABLES],
        "capture": {"close_at": "online"},
        "landing": {"type": "local", "path": str(folder / "landing")},
        "lake": {"path": str(folder / "lake")},
        "state": {"url": f"sqlite:///{folder / 'state.db'}"},
        "dagster": {
            "windows": {
                "enabled": True,
                "interval_seconds": interval,
                "run_minutes": interval * WINDOWS_PER_RUN / 60,
            },
            "snapshots": {"enabled": True},
        },
    }
    path = folder / "defs.yaml"
    path.write_text(yaml.safe_dump({"type": COMPONENT, "attributes": attributes}))
    return path


def _owner(served: Served) -> oracledb.Connection:
    return oracledb.connect(user=served.user, password=served.password, dsn=served.dsn)


@contextmanager
def _dagster(path: Path, served: Served) -> Iterator[int]:
    """``redolake ui``; its process, when it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "pipelines.cli", "ui", "--port", str(port)]
    environment = {
        **os.environ,
        CONFIG_ENV: str(path),
        PASSWORD_ENV: served.capture_password,
        "DAGSTER_HOME": str(path.parent / "dagster"),
    }
    child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + READY_SECONDS
        while True:
            with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/server_info"):
                break
            if time.monotonic() > end or child.poll() is not None:
                raise RuntimeError("Dagster did not start")
            time.sleep(1)
        yield child.pid
    finally:
        child.terminate()
        child.wait()


def _spent(process: int, work: Callable[[], object]) -> Cost:
    """What Dagster's process tree used while something else was done."""

    def used() -> dict[str, float]:
        return cpu_of([process, *descendants(process)], _kind_of, ended="runs")

    before, started = used(), time.monotonic()
    work()
    seconds, after = time.monotonic() - started, used()
    return Cost(seconds, {name: spent - before.get(name, 0.0) for name, spent in after.items()})


def _kind_of(process: int) -> str:
    try:
        command = (Path("/proc") / str(process) / "cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return "runs"
    return next((kind for word, kind in KINDS.items() if word in command.decode()), "runs")


def _commit(served: Served, pipeline: Pipeline, plan: _Plan) -> Iterator[float]:
    """Commit a transaction over two tables each interval; the seconds until the mirrors stood
    behind it, of each."""
    chosen, open_commits = random.Random(2), dict[Scn, float]()
    with _owner(served) as connection, connection.cursor() as cursor:
        started = time.monotonic()
        for number in range(plan.commits):
            for table in chosen.sample(TABLES, 2):
                cursor.executemany(
                    f"UPDATE {table} SET AMOUNT = AMOUNT + 1, C0 = :1 WHERE ID = :2",
                    [
                        (chosen.randbytes(12).hex(), chosen.randrange(ROWS))
                        for _ in range(CHANGED // 2)
                    ],
                )
            connection.commit()
            open_commits[_newest(pipeline)] = time.monotonic()
            yield from _taken(pipeline, open_commits, started + (number + 1) * plan.interval)
    end = time.monotonic() + plan.interval + TAKEN_SECONDS_MAX
    while open_commits and time.monotonic() < end:
        yield from _taken(pipeline, open_commits, time.monotonic() + 1)


def _windows(pipeline: Pipeline) -> set[int]:
    """The windows with changes that all tables have."""
    found = pipeline.records.windows(states=("applied",))
    return {one.ordinal for one in found if not one.is_idle}


def _newest_window(pipeline: Pipeline) -> Scn:
    [found] = pipeline.records.windows(newest_first=True, limit=1)
    return found.window.scn_high


def _newest(pipeline: Pipeline) -> Scn:
    with pipeline.database.session() as session:
        return current_scn(session)


def _taken(pipeline: Pipeline, commits: dict[Scn, float], until: float) -> Iterator[float]:
    while time.monotonic() < until:
        position = min(one.mirror_scn or 0 for one in pipeline.records.tables())
        for scn in [scn for scn in commits if scn <= position]:
            yield time.monotonic() - commits.pop(scn)
        time.sleep(POLL_SECONDS)
