"""The airport's live system through the real driver: what it leaves behind, and that any end can be gone on from."""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path

import oracledb
import pytest

from cdc_core.errors import OracleError
from pipelines.demo import tables
from pipelines.demo.flights import read_flights
from pipelines.demo.server import Served, serving
from pipelines.demo.workload import LiveSystem, Plan, clock, create_tables, load_history

PLAN = Plan(date(2013, 1, 4), date(2013, 1, 4))


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database that holds the history; nobody serves it."""
    folder = tmp_path_factory.mktemp("history")
    with serving(folder) as served, _filled(served):
        pass
    return folder


@contextmanager
def _serving_copy(history: Path, folder: Path) -> Iterator[Served]:
    shutil.copytree(history / "oracle", folder / "oracle")
    with serving(folder) as served:
        yield served


@pytest.fixture
def served(history: Path, tmp_path: Path) -> Iterator[Served]:
    with _serving_copy(history, tmp_path) as served:
        yield served


def _connect(served: Served) -> oracledb.Connection:
    return oracledb.connect(user=served.user, password=served.password, dsn=served.dsn)


def _filled(served: Served) -> oracledb.Connection:
    connection = _connect(served)
    create_tables(connection)
    load_history(connection, PLAN, lambda _table, _done, _rows: None)
    return connection


def _content(connection: oracledb.Connection) -> dict[str, tuple[int, str]]:
    """Rows and a digest of all values, by table."""
    found = {}
    with connection.cursor() as cursor, oracledb_decimals():
        for table in tables.TABLES:
            columns = ", ".join(name for name, _ in table.columns)
            cursor.execute(f"SELECT {columns} FROM {table.name} ORDER BY {', '.join(table.key)}")
            rows = [tuple(map(str, row)) for row in cursor]
            found[table.name] = (len(rows), hashlib.sha256(repr(rows).encode()).hexdigest())
    return found


class oracledb_decimals:
    """Fetch numbers and CLOBs as plain exact values for the block."""

    def __enter__(self) -> None:
        self._before = (oracledb.defaults.fetch_decimals, oracledb.defaults.fetch_lobs)
        oracledb.defaults.fetch_decimals, oracledb.defaults.fetch_lobs = True, False

    def __exit__(self, *_: object) -> None:
        oracledb.defaults.fetch_decimals, oracledb.defaults.fetch_lobs = self._before


def test_a_day_of_work_leaves_what_the_data_says_and_survives_interruptions(
    history: Path, served: Served, tmp_path: Path
) -> None:
    with _connect(served) as connection:
        live = LiveSystem(lambda: _connect(served), PLAN)
        live.run()
        straight = _content(connection)
        known = read_flights(date(2013, 1, 1), PLAN.last_day)
        flown = [flight for flight in known if flight.departed is not None]
        assert straight["FLIGHTS"][0] == len(flown)
        with connection.cursor() as cursor:
            cursor.execute("SELECT SUM(AIR_MINUTES) FROM PLANES")
            ((minutes,),) = cursor.fetchall()
            cursor.execute("SELECT COUNT(*) FROM FLIGHTS WHERE STATUS IN ('scheduled', 'departed')")
            assert cursor.fetchall() == [(0,)]
            cursor.execute("SELECT COUNT(*) FROM FLIGHTS WHERE DELAY_CAUSE IS NOT NULL")
            assert cursor.fetchall()[0][0] > 0
            cursor.execute("SELECT COUNT(*) FROM AIRLINES WHERE CARRIER = 'ZZ'")
            assert cursor.fetchall() == [(0,)]
        planes = {row[0] for row in tables.plane_rows()}
        assert minutes == sum(
            flight.air_time or 0
            for flight in flown
            if flight.sched_dep.date() >= PLAN.first_day and flight.tailnum in planes
        )
        assert live.progress.rolled_back > 0

    with _serving_copy(history, tmp_path / "again") as other, _connect(other) as connection:
        for batches in (3, 40, 1, 10_000):
            stop = threading.Event()
            interrupted = LiveSystem(lambda: _connect(other), PLAN, pace=_StopAfter(batches, stop))
            interrupted.run(stop)
        assert _content(connection) == straight


def test_a_live_system_that_goes_on_tells_where_it_stands_before_its_first_work(
    served: Served,
) -> None:
    """Whoever waits for the airport's clock must not wait for a system that waits itself."""
    with _connect(served):
        stop = threading.Event()
        before = LiveSystem(lambda: _connect(served), PLAN, pace=_StopAfter(5, stop))
        before.run(stop)
        again = LiveSystem(lambda: _connect(served), PLAN, pace=_StopAfter(0, stop))
        again.run(stop)
        assert again.progress.now == before.progress.now
        assert again.progress.transactions == 0


class _StopAfter:
    """Ends the live system after some batches."""

    def __init__(self, batches: int, stop: threading.Event) -> None:
        self._left = batches
        self._stop = stop

    def __call__(self, _moment: datetime) -> None:
        self._left -= 1
        if self._left < 0:
            self._stop.set()


def test_loading_again_changes_nothing(served: Served) -> None:
    with _connect(served) as connection:
        before = _content(connection)
        with _filled(served):
            pass
        assert _content(connection) == before
        assert clock(connection, "load FLIGHTS") == 1
        assert clock(connection, "nothing of that name") == 0


def test_rows_that_someone_else_removed_are_noticed(served: Served) -> None:
    with _connect(served) as connection:
        stop = threading.Event()
        LiveSystem(lambda: _connect(served), PLAN, pace=_StopAfter(60, stop)).run(stop)
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM FLIGHTS WHERE STATUS = 'scheduled'")
            assert cursor.rowcount
        connection.commit()
        with pytest.raises(OracleError, match="was not there"):
            LiveSystem(lambda: _connect(served), PLAN).run()
