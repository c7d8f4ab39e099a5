"""What does ``redolake demo`` do?

An Oracle database with a year of real flights starts, an airport works on it, and Redolake carries
everything into Delta Lake meanwhile: chunks of the snapshot first, then window after window; in the
end every table is compared with Oracle at one SCN. Killed at any moment and started again it goes
on, and ends with the same tables.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import oracledb
from rich.console import Console

from cdc_core.errors import LogsNotReadyError, OracleUnavailableError
from cdc_core.model.reports import TableComparison
from cdc_core.model.wording import counted
from cdc_core.steps import Pipeline
from cdc_core.steps.delta_logs import changes_applied
from pipelines.demo import settings
from pipelines.demo.screen import FinalRow, Screen, final_table, flight_time
from pipelines.demo.server import Served, serving
from pipelines.demo.settings import DemoSettings
from pipelines.demo.story import story
from pipelines.demo.workload import LiveSystem, Plan, create_tables, load_history

SECONDS_PER_FLIGHT_HOUR = {"day": 1.5, "month": 0.0, "year": 0.0}
"""How fast the airport's clock runs: a day is slowed down, so that there is something to look
at."""

SNAPSHOT_AFTER = timedelta(hours=3)
"""Flight time that passes before the snapshot: the first audit is open then, and stays open over
several windows."""

DAY_HOLDS_AFTER = timedelta(hours=8)
LAP = timedelta(hours=3)
"""A day's airport waits so often for the windows to catch up."""
SETTLE_SECONDS = 120
"""So long the mirrors may stand still behind the end of the redo."""
IDLE_SECONDS = 0.5


def run_demo(
    how: DemoSettings | None = None,
    *,
    folder: Path | None = None,
    fresh: bool = False,
    console: Console | None = None,
) -> int:
    """Run the demo, or go on with one that was cut short.

    Returns:
        0 when every table equals Oracle, 1 when one does not, 130 when it was interrupted.
    """
    console = console or Console()
    folder = settings.default_folder() if folder is None else folder
    try:
        return _demo(how or DemoSettings(), folder, fresh, console)
    except KeyboardInterrupt:
        console.print("Stopped. Run the same command to continue.")
        return 130


def _demo(how: DemoSettings, folder: Path, fresh: bool, console: Console) -> int:
    started = time.monotonic()
    plan = Plan.of_scale(how.scale)
    word = "redo row" if how.capture == "logminer" else "change"
    with Screen(console, captured=word) as screen:
        if said := settings.prepare(folder, how, fresh=fresh):
            screen.say(said)
        with serving(folder, options=settings.server_options(folder)) as served:
            screen.say(f"Oracle (embedded, not for production data) answers at {served.dsn}")
            if lost := settings.left_out(how):
                screen.say(f"Left out, since {how.capture} rounds binary floats: {', '.join(lost)}")
            config = settings.write_definitions(folder, served)
            with Pipeline(config, report=screen.step) as pipeline:
                rows, scn = _run(pipeline, served, plan, how.scale, screen)
    _print_end(screen, rows, scn, time.monotonic() - started)
    for line in story(config, screen.writes, _command(), settings.option_for(folder)):
        console.print(line, highlight=False, soft_wrap=True)
    return 1 if any(row.differences for row in rows) else 0


def _run(
    pipeline: Pipeline, served: Served, plan: Plan, scale: str, screen: Screen
) -> tuple[list[FinalRow], int]:
    with ThreadPoolExecutor(max_workers=1) as pool:
        lake = pipeline.config.lake
        is_on_cluster = not lake.spark_master.startswith("local")
        if scale != "day" or lake.merge == "spark" or is_on_cluster:  # a day needs none
            screen.bar("Spark", 0, None, "starting, while the snapshot is read without it")
            spark = pool.submit(pipeline.start_spark)
            spark.add_done_callback(lambda _: screen.bar("Spark", 1, 1, "ready"))
        _fill(served, plan, screen)
        screen.phase_ends("filling Oracle")
        pace = _Pace(
            SECONDS_PER_FLIGHT_HOUR[scale],
            holds_at=holds_at(plan, scale),
            lap=LAP if scale == "day" else None,
        )
        live = LiveSystem(lambda: _connect(served), plan, pace=pace)
        with _working(live, pace) as work, _shown(live, plan, screen):
            _await_first_hours(live, work, plan)
            _snapshot(pipeline, screen)
            screen.phase_ends("snapshot")
            pace.go_on()
            while not work.done():
                _windows(pipeline, screen)
                pace.lap_is_over()
            work.result()
            _catch_up(pipeline, screen)
        screen.phase_ends("windows")
        found = _compare(pipeline, screen)
        screen.phase_ends("comparing")
    return found


def holds_at(plan: Plan, scale: str) -> datetime:
    """The flight time at which the airport waits for the end of the snapshot, if that takes so
    long.

    Never beyond the ALTER TABLE: Oracle cannot read a table as of before its DDL (ORA-01466). A day
    waits earlier, so that its audit is open at the snapshot and over several windows, however slow
    the machine.
    """
    return plan.begins + DAY_HOLDS_AFTER if scale == "day" else plan.alters_at


def _connect(served: Served) -> oracledb.Connection:
    return oracledb.connect(user=served.user, password=served.password, dsn=served.dsn)


def _fill(served: Served, plan: Plan, screen: Screen) -> None:
    def report(table: str, done: int, rows: int) -> None:
        screen.bar(f"Oracle: {table}", done, rows, f"{done:,} rows")

    with _connect(served) as connection:
        create_tables(connection)
        load_history(connection, plan, report)
    screen.say(f"Oracle holds January's flights; the airport works from {plan.first_day:%d %B} on")


@contextmanager
def _working(live: LiveSystem, pace: _Pace) -> Iterator[Future[None]]:
    """The live system, in its own thread; it is stopped when the block ends early."""
    stop = threading.Event()
    with ThreadPoolExecutor(max_workers=1) as pool:
        try:
            yield pool.submit(live.run, stop)
        finally:
            stop.set()
            pace.release()


@contextmanager
def _shown(live: LiveSystem, plan: Plan, screen: Screen) -> Iterator[None]:
    """The airport's clock moves on the screen whatever Redolake is doing."""
    ended = threading.Event()

    def show() -> None:
        while not ended.wait(IDLE_SECONDS):
            _show_airport(live, plan, screen)

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        _show_airport(live, plan, screen)


def _await_first_hours(live: LiveSystem, work: Future[None], plan: Plan) -> None:
    while not work.done():
        now = live.progress.now
        if now is not None and now >= plan.begins + SNAPSHOT_AFTER:
            return
        time.sleep(0.05)


def _snapshot(pipeline: Pipeline, screen: Screen) -> None:
    """Plan or go on with the snapshot."""
    pipeline.check()
    pipeline.start_snapshot()
    chunks = len(pipeline.pending_chunks())
    screen.chunks.update(one.table for one in pipeline.records.chunks())
    done = itertools.count(1)
    for step in pipeline.run_snapshot():
        if step.kind == "chunk-applied":
            number = next(done)
            screen.bar("Snapshot", number, chunks, f"{number} of {chunks} chunks")


def _windows(pipeline: Pipeline, screen: Screen) -> None:
    """Carry over what there is now; a moment's rest when there is nothing, or the redo is not
    readable yet."""
    before = screen.windows_seen
    try:
        for _ in pipeline.run_windows():
            pass
    except LogsNotReadyError:
        before = screen.windows_seen
    if screen.windows_seen == before:
        time.sleep(IDLE_SECONDS)


def _show_airport(live: LiveSystem, plan: Plan, screen: Screen) -> None:
    now = live.progress.now
    passed = (now - plan.begins) / timedelta(days=1) if now else 0.0
    note = f"{flight_time(now)}, {live.progress.transactions:,} transactions"
    screen.bar("Airport", min(passed, plan.days), plan.days, note)


def _catch_up(pipeline: Pipeline, screen: Screen) -> None:
    """Windows until every mirror has passed the SCN at which the airport had done its last work.

    Raises:
        OracleUnavailableError: The mirrors stand still before that.
    """
    target: int | None = None
    reached, give_up = -1, 0.0
    while True:
        position = _position(pipeline)
        target = target or pipeline.status().scn_oracle
        if target is not None and position >= target:
            return
        if position > reached:
            reached, give_up = position, time.monotonic() + SETTLE_SECONDS
        elif time.monotonic() > give_up:
            raise OracleUnavailableError(
                "the mirrors do not reach the end of Oracle's redo",
                hint="`redolake status` says why; the demo can be started again.",
                target_scn=target,
            )
        _windows(pipeline, screen)


def _position(pipeline: Pipeline) -> int:
    """The SCN that all mirrors have passed; 0 as long as one has no position."""
    return min(table.position or 0 for table in pipeline.status(ask_oracle=False).tables)


def _compare(pipeline: Pipeline, screen: Screen) -> tuple[list[FinalRow], int]:
    tables = [table.table for table in pipeline.config.tables]
    found: list[TableComparison] = []
    scn: int | None = None
    for done, table in enumerate(tables):
        screen.bar("Comparing", done, len(tables), f"{table}, all rows, all columns")
        compared = pipeline.reconcile([table], scn=scn)
        found += compared.tables
        scn = compared.scn
    assert scn is not None
    screen.bar("Comparing", len(tables), len(tables), f"at SCN {scn}")
    changes = changes_applied(pipeline.config)
    rows = [
        FinalRow(
            table.table.partition(".")[2],
            table.rows_oracle,
            table.rows_delta,
            table.differences,
            changes[table.table],
        )
        for table in found
    ]
    return rows, scn


def _print_end(screen: Screen, rows: list[FinalRow], scn: int, seconds: float) -> None:
    screen.console.print()
    screen.console.print(final_table(rows, scn=scn))
    differences = sum(row.differences for row in rows)
    changes = sum(row.changes for row in rows)
    verdict = (
        "[green]Every table equals Oracle.[/]"
        if differences == 0
        else f"[red]{differences:,} rows differ: `redolake repair` fixes them.[/]"
    )
    phases = ", ".join(f"{name} {took:.0f} s" for name, took in screen.phases.items())
    for line in (
        f"{verdict} {counted(changes, 'change')} in {counted(screen.windows_seen, 'window')}.",
        f"{seconds:.0f} s in all: {phases}.",
    ):
        screen.console.print(line, highlight=False, soft_wrap=True)


def _command() -> str:
    """What the command is called where the demo was started."""
    return ".venv/bin/redolake" if "MAKELEVEL" in os.environ else "redolake"


class _Pace:
    """Lets flight time pass at a steady speed from the moment at which it is first asked.

    It stands still at ``holds_at`` until the snapshot is done, and from then on behind each ``lap``
    of flight time until the windows have taken what there was: as many windows are seen on a busy
    machine as on a quiet one.
    """

    def __init__(
        self, seconds_per_hour: float, *, holds_at: datetime, lap: timedelta | None = None
    ) -> None:
        self._seconds_per_hour = seconds_per_hour
        self._holds_at = holds_at
        self._lap = lap
        self._goes = threading.Condition()
        self._has_snapshot = self._is_free = False
        self._lap_ends: datetime | None = None
        self._first: tuple[datetime, float] | None = None

    def go_on(self) -> None:
        """The snapshot is done. May be called twice."""
        with self._goes:
            self._has_snapshot = True
            self._goes.notify_all()

    def lap_is_over(self) -> None:
        """The windows have taken what there was."""
        with self._goes:
            self._lap_ends = None
            self._goes.notify_all()

    def release(self) -> None:
        """Hold no more."""
        with self._goes:
            self._is_free = True
            self._goes.notify_all()

    def _may_pass(self, moment: datetime) -> bool:
        if self._is_free or moment < self._holds_at:
            return True
        if not self._has_snapshot:
            return False
        if self._lap is not None and self._lap_ends is None:
            self._lap_ends = moment + self._lap
        return self._lap_ends is None or moment < self._lap_ends

    def __call__(self, moment: datetime) -> None:
        with self._goes:
            if not self._may_pass(moment):
                self._goes.wait_for(lambda: self._may_pass(moment))
                self._first = None
        if self._first is None:
            self._first = (moment, time.monotonic())
        since, began = self._first
        due = began + (moment - since) / timedelta(hours=1) * self._seconds_per_hour
        time.sleep(max(0.0, due - time.monotonic()))
