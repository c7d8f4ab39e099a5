"""How long does a backfill of many windows take through Spark on a standalone cluster of two
workers, beside Spark in Redolake's own process, and where does the time go?

The cluster is a master and two workers of one core on this machine, so both have the same cores:
the difference is what a cluster costs, and the CPU seconds by process say who was busy. Spark
itself says for how long tasks ran on the workers: that part of a window more workers could share.
Each window changes a few hundred rows of one table, and is merged by Spark. Of a long backfill
Redolake's own process does a tenth, and is compared with the cluster's first windows, as many: a
window of a table with a longer log may take longer. The result is right if the mirror has the
source's rows.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from benchmarks.common import Cost, Form, Result, measured
from cdc_core.config import LakeConfig
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.model.templates import DEFAULT_PATHS
from cdc_core.spark.session import parent_session, stop_spark
from tests.lake.cluster import cluster
from tests.stage.landed import Source, order, orders_schema

WINDOWS = {Form.QUICK: 3, Form.NORMAL: 40, Form.LONG: 1_000}
WARM_UP = 2
COMPARED_MAX = 100
ROWS = 20_000
CHANGED = 300
_WORKERS = 2


def rows(form: Form = Form.NORMAL) -> Iterator[Result]:
    """The same windows through a cluster and in this process."""
    windows = WINDOWS[form]
    compared = min(windows, COMPARED_MAX)
    stop_spark()  # a session that runs is taken, whatever master is asked for
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with cluster(place / "cluster", workers=_WORKERS) as running:
            ours = _backfill(place / "ours", windows, running.url)
            has_both = all(running.executors())
        local = _backfill(place / "local", compared, f"local[{_WORKERS}]")
    yield Result(
        f"the first {compared:,} windows of a backfill through a cluster of {_WORKERS} workers",
        compared / sum(ours.windows[:compared]),
        "windows/s",
        "Spark in Redolake's process",
        compared / sum(local.windows),
        correct=ours.is_right and local.is_right and has_both,
        is_warm=True,
    )
    yield Result(
        f"the last {compared:,} of {windows:,} windows through the cluster",
        compared / sum(ours.windows[-compared:]),
        "windows/s",
        "its first ones",
        compared / sum(ours.windows[:compared]),
        correct=ours.is_right,
        cost=ours.cost,
        is_warm=True,
    )
    yield Result(
        f"of each of these {windows:,} windows, tasks on {_WORKERS} workers",
        ours.task_seconds / windows,
        "s",
        "the window on the clock",
        ours.cost.seconds / windows,
        correct=ours.is_right,
        higher_is_better=False,
        is_warm=True,
    )


@dataclass(frozen=True, slots=True)
class _Backfill:
    """What one took: together, each window in seconds, and for how long tasks ran."""

    cost: Cost
    windows: list[float]
    task_seconds: float
    is_right: bool


def _backfill(folder: Path, windows: int, master: str) -> _Backfill:
    path = f"{folder}/lake"
    config = LakeConfig(
        path=path,
        spark_master=master,
        merge="spark",
        driver_memory="1g",
        stage_on_executors_from_rows="never",
        spark_config={"spark.executor.memory": "768m"},
    )
    lake = DeltaLake(config, "shop")
    source = Source(folder / "landing", orders_schema())
    tx = source.begin()
    rids = [tx.insert(order(at, f"name {at}", note=None)) for at in range(ROWS)]
    tx.commit()
    source.chunk().apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []

    def window(number: int) -> None:
        source.redo_paths.clear()
        tx = source.begin()
        for at in range(CHANGED):
            tx.update(rids[(number * 7919 + at * 61) % ROWS], {"NAME": f"window {number}"})
        tx.commit()
        source.cut().apply(lake)

    took: list[float] = []
    try:
        for number in range(WARM_UP):
            window(number)
        before = _task_seconds(config)
        with measured() as watch:
            for number in range(WARM_UP, WARM_UP + windows):
                begun = time.perf_counter()
                window(number)
                took.append(time.perf_counter() - begun)
        tasks = _task_seconds(config) - before
    finally:
        stop_spark()
    mirror = DeltaTable(DEFAULT_PATHS.path("mirror", path, "shop", source.schema.table))
    found = pa.table(
        QueryBuilder().register("t", mirror).execute('select "ID", "NAME" from t').read_all()
    )
    wanted = {row["ID"]: row["NAME"] for row in source.rows.values()}
    names = dict(zip(found["ID"].to_pylist(), found["NAME"].to_pylist(), strict=True))
    return _Backfill(watch.cost, took, tasks, found.num_rows == ROWS and names == wanted)


def _task_seconds(config: LakeConfig) -> float:
    """For how long tasks have run so far, of all executors together."""
    store = parent_session(config).sparkContext._jsc.sc().statusStore()
    executors = store.executorList(False)
    ran = [float(executors.apply(at).totalDuration()) for at in range(executors.size())]
    return sum(ran) / 1000
