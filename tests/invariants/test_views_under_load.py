"""Joins over five mirrors, read through the views of the newest cut while TPC-C's transactions and windows go on, are always one moment: in DuckDB
and in Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import duckdb
import pytest

from cdc_core.config import SourceConfig
from cdc_core.spark.session import start_session
from cdc_core.steps import Pipeline
from tests.invariants.server import EmbeddedServer, current_scn
from tests.invariants.wild import TPCC, WildLoad, inconsistencies

READS = {"duckdb": 200, "spark": 6}
"""By engine; Spark takes some seconds for each."""
SECONDS_MAX = 400

pytestmark = [pytest.mark.slow, pytest.mark.timeout(SECONDS_MAX + 60)]


def _config(server: EmbeddedServer, folder: Path, views: Path) -> SourceConfig:
    return SourceConfig.model_validate_json(
        json.dumps(
            {
                "name": "shop",
                "oracle": {"dsn": server.dsn, "user": server.capture_user, "password": server.capture_password},
                "tables": [{"name": f"{server.user.upper()}.{name}"} for name in TPCC],
                "capture": {"close_at": "online"},
                "landing": {"type": "local", "path": str(folder / "landing")},
                "lake": {"path": str(folder / "lake"), "driver_memory": "1g", "current_views": {"duckdb": str(views)}},
                "state": {"url": f"sqlite:///{folder / 'state.db'}"},
            }
        )
    )  # fmt: skip


@contextmanager
def _beside(work: Callable[[], object]) -> Iterator[None]:
    """Call this again and again in a thread, for as long as the block lasts; its error is ours."""
    ended, errors = Event(), []

    def loop() -> None:
        try:
            while not ended.wait(0.005):
                work()
        except BaseException as error:
            errors.append(error)
            raise

    thread = Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    assert not errors, errors[0]


@contextmanager
def _under_load(folder: Path) -> Iterator[tuple[Pipeline, Path]]:
    """A source of TPC-C's tables with its first snapshot, and transactions that do not end."""
    with EmbeddedServer(folder / "oracle") as server:
        clock = server.connect_capture()
        load = WildLoad(server.connect(), 7, lambda: current_scn(clock))
        load.create(50)
        server.put_forward()
        views = folder / "current.duckdb"
        with Pipeline(_config(server, folder, views)) as pipeline:
            list(pipeline.run_once())
            pipeline.keep_current_views()
            with _beside(load.tpcc):
                yield pipeline, views


def _view(name: str) -> str:
    return f"demo_{name.lower()}"


def _in_duckdb(views: Path) -> dict[str, list[dict[str, Any]]]:
    found = {}
    with duckdb.connect(str(views), read_only=True) as database:
        for name in TPCC:
            told = database.execute(f"SELECT * FROM {_view(name)}")
            columns = [one[0] for one in told.description or ()]
            found[name] = [dict(zip(columns, row, strict=True)) for row in told.fetchall()]
    return found


def test_two_hundred_joins_in_duckdb_are_each_one_moment(tmp_path: Path) -> None:
    """A round of windows runs while others read; each connection sees one of the moments."""
    scns: set[int] = set()
    with _under_load(tmp_path) as (pipeline, views):

        def carry() -> None:
            list(pipeline.run_once())
            cut = pipeline.keep_current_views()
            assert cut is not None
            assert len(cut.tables) == len(TPCC)
            scns.add(cut.scn)

        with _beside(carry):
            orders = set()
            for _ in range(READS["duckdb"]):
                images = _in_duckdb(views)
                assert inconsistencies(images) == []
                orders.add(len(images["ORDERS"]))
    assert len(scns) > 3, "the cut went forward meanwhile"
    assert len(orders) > 3, "the readers saw it"


@pytest.mark.spark
def test_joins_in_spark_are_each_one_moment(tmp_path: Path, spark_process: None) -> None:
    with _under_load(tmp_path) as (pipeline, _):
        session = start_session(pipeline.config.lake)
        orders = set()
        for _ in range(READS["spark"]):
            list(pipeline.run_once())
            for sql in pipeline.cut_sql(pipeline.cut_at(), "spark"):
                session.sql(sql)
            images = {
                name: [
                    row.asDict() for row in session.sql(f"SELECT * FROM {_view(name)}").collect()
                ]
                for name in TPCC
            }
            assert inconsistencies(images) == []
            orders.add(len(images["ORDERS"]))
    assert len(orders) > 2, "the cut went forward meanwhile"
