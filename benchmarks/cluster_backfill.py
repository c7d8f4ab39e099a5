"""How long does a backfill of many windows take through Spark on a standalone cluster of two
workers, beside Spark in Redolake's own process, and where does the time go?

The cluster is a master and two workers of one core on this machine, so both have the same cores:
the difference is what a cluster costs, and the CPU seconds by process say who was busy. Spark
itself says for how long tasks ran on the workers: that part of a window more workers could share.
Each window changes a few hundred rows of one table, and is merged by Spark. The result is right if
the mirror has the source's rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
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
ROWS = 20_000
CHANGED = 300
_WORKERS = 2


def rows(form: Form = Form.NORMAL) -> Iterator[Result]:
    """The same windows through a cluster and in this process."""
    windows = WINDOWS[form]
    stop_spark()  # a session that runs is taken, whatever master is asked for
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with cluster(place / "cluster", workers=_WORKERS) as running:
            ours, tasks, is_right = _backfill(place / "ours", windows, running.url)
            has_both = all(running.executors())
        local, _, is_local_right = _backfill(place / "local", windows, f"local[{_WORKERS}]")
    yield Result(
        f"a backfill of {windows:,} windows through a cluster of {_WORKERS} workers",
        windows / ours.seconds,
        "windows/s",
        "Spark in Redolake's process",
        windows / local.seconds,
        correct=is_right and is_local_right and has_both,
        cost=ours,
        is_warm=True,
    )
    yield Result(
        f"of each of these {windows:,} windows, tasks on {_WORKERS} workers",
        tasks / windows,
        "s",
        "the window on the clock",
        ours.seconds / windows,
        correct=is_right,
        higher_is_better=False,
        is_warm=True,
    )


def _backfill(folder: Path, windows: int, master: str) -> tuple[Cost, float, bool]:
    """What the windows took, for how many seconds tasks ran, and whether the mirror is right."""
    path = f"{folder}/lake"
    config = LakeConfig(
        path=path,
        spark_master=master,
        merge="spark",
        driver_memory="1g",
        stage_on_executors_from_rows="never",
        spark_config={"spark.executor.memory": "768m"},
    )
    lake = DeltaLake.open(config, "shop")
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

    try:
        for number in range(WARM_UP):
            window(number)
        before = _task_seconds(config)
        with measured() as watch:
            for number in range(WARM_UP, WARM_UP + windows):
                window(number)
        tasks = _task_seconds(config) - before
    finally:
        stop_spark()
    mirror = DeltaTable(DEFAULT_PATHS.path("mirror", path, "shop", source.schema.table))
    found = pa.table(
        QueryBuilder().register("t", mirror).execute('select "ID", "NAME" from t').read_all()
    )
    wanted = {row["ID"]: row["NAME"] for row in source.rows.values()}
    names = dict(zip(found["ID"].to_pylist(), found["NAME"].to_pylist(), strict=True))
    return watch.cost, tasks, found.num_rows == ROWS and names == wanted


def _task_seconds(config: LakeConfig) -> float:
    """For how long tasks have run so far, of all executors together."""
    store = parent_session(config).sparkContext._jsc.sc().statusStore()
    executors = store.executorList(False)
    ran = [float(executors.apply(at).totalDuration()) for at in range(executors.size())]
    return sum(ran) / 1000
