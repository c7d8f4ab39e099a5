"""How fast does a large table come from Oracle into Delta, in parallel chunks, and how much memory
does it take, if the process is killed twice on its way?

One narrow table in the embedded Oracle, a process of its own. The snapshot runs in another process,
which gets SIGKILL when a third and when two thirds of the chunks are applied: each time other
chunks are being read, landed and applied at that moment. The next process goes on with what is
left; Spark looks for double keys at the end of a snapshot of more than a million rows. Then the
mirror is compared with Oracle as of the snapshot's SCN, all columns of all rows, as
``redolake reconcile`` does it; and counts and sums, which delta-rs finds in the mirror, with those
of the rows that were made.
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import oracledb
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from benchmarks.common import GROWN_AT_ONCE, Form, Result, grow, measured, peak_megabytes
from cdc_core.config import SourceConfig
from cdc_core.model.templates import DEFAULT_PATHS
from cdc_core.steps import Pipeline
from pipelines.demo.server import Served, serving

ROWS = {Form.QUICK: 60_000, Form.NORMAL: 400_000, Form.LONG: 20_000_000}
CHUNK_ROWS = 500_000
"""As Redolake does by itself; fewer in a small table, so that there are …"""
CHUNKS_MIN = 12
SESSIONS = 4
ALLOWED_MEGABYTES = 2048
KILLS = 2

_PROCESSES = {"other": "its process", "jvm": "Spark's JVM", "database": "the embedded Oracle"}
"""By what :func:`~benchmarks.common.kind_of` calls them."""
_SAMPLED_SECONDS = 0.25
_TABLE = "CREATE TABLE NARROW (ID NUMBER(12) PRIMARY KEY, AMOUNT NUMBER(9,2), SEEN DATE)"
_FIRST_ROWS = """
INSERT INTO NARROW SELECT LEVEL, MOD(LEVEL, 1000) / 4, DATE '2026-01-01' + MOD(LEVEL, 365)
FROM DUAL CONNECT BY LEVEL <= :many"""
_MORE_ROWS = """
INSERT INTO NARROW SELECT ID + :there, AMOUNT, SEEN FROM NARROW WHERE ID <= :many"""
_SUMS = """
SELECT count(*) AS n, count(DISTINCT "ID") AS keys, sum("ID") AS ids, sum("AMOUNT") AS amounts FROM t"""


def rows(form: Form = Form.NORMAL, *, many: int | None = None) -> Iterator[Result]:
    """Rows a second over all three processes, their peak memory, and the comparison. ``many`` is
    another number of rows."""
    count = many or ROWS[form]
    with tempfile.TemporaryDirectory() as name, serving(Path(name) / "database") as served:
        amounts = _load(served, count)
        config = _configured(served, Path(name), count)
        with _sampled() as peaks, measured() as watch:
            killed = _carried(config, Path(name), count)
        with Pipeline(config) as pipeline, measured() as comparing:
            [compared] = pipeline.reconcile().tables
        wanted = {"n": count, "keys": count, "ids": count * (count + 1) // 2, "amounts": amounts}
        correct = (
            killed == KILLS
            and (compared.differences, compared.double_keys_delta) == (0, 0)
            and (compared.rows_oracle, compared.rows_delta) == (count, count)
            and _sums(config) == wanted
        )
        what = f"a snapshot of {count:,} narrow rows by {SESSIONS} sessions, killed twice"
        yield Result(
            what,
            count / watch.seconds,
            "rows/s",
            "nothing: two starts and the chunks that are read again are in it",
            correct=correct,
            cost=watch.cost,
        )
        for kind, named in _PROCESSES.items():
            if kind in peaks:
                yield Result(
                    f"{what}: peak memory of {named}",
                    peaks[kind],
                    "MB",
                    f"{ALLOWED_MEGABYTES} MB, whatever the number of rows",
                    ALLOWED_MEGABYTES,
                    goal=None if kind == "database" else 1.0,
                    correct=correct,
                    higher_is_better=False,
                )
        yield Result(
            f"{what}: rows compared with Oracle, {compared.engine}",
            count / comparing.seconds,
            "rows/s",
            "nothing",
            correct=correct,
            cost=comparing.cost,
        )


def _load(served: Served, count: int) -> float:
    """Make the rows; the sum of their amounts."""
    with (
        oracledb.connect(user=served.user, password=served.password, dsn=served.dsn) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(_TABLE)
        cursor.execute("ALTER TABLE NARROW ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS")
        grow(connection, _FIRST_ROWS, _MORE_ROWS, count)
    amounts = 0.0
    for there in range(0, count, GROWN_AT_ONCE):
        amounts += (
            sum(level % 1000 for level in range(1, min(GROWN_AT_ONCE, count - there) + 1)) / 4
        )
    return amounts


def _configured(served: Served, folder: Path, count: int) -> SourceConfig:
    return SourceConfig.model_validate(
        {
            "name": "large",
            "tables": [{"name": f"{served.user.upper()}.NARROW"}],
            "oracle": {
                "dsn": served.dsn,
                "user": served.capture_user,
                "password": served.capture_password,
            },
            "snapshot": {
                "sessions": SESSIONS,
                "chunk_rows": max(100, min(CHUNK_ROWS, count // CHUNKS_MIN)),
            },
            "landing": {"type": "local", "path": str(folder / "landing")},
            "lake": {"path": str(folder / "lake")},
            "state": {"url": f"sqlite:///{folder / 'state.db'}"},
        }
    )


def _carried(config: SourceConfig, folder: Path, count: int) -> int:
    """Let processes carry the snapshot to its end; how many were killed."""
    chunk_rows = config.snapshot.chunk_rows
    chunks, applied, killed = -(-count // chunk_rows), 0, 0
    written = folder / "config"
    written.write_bytes(pickle.dumps(config))
    for part in range(1, KILLS + 2):
        process = subprocess.Popen(
            [sys.executable, "-m", __spec__.name, str(written)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        for line in process.stdout:
            applied += line.startswith("chunk-applied")
            if part <= KILLS and applied >= chunks * part // (KILLS + 1):
                process.send_signal(signal.SIGKILL)
                break
        code = process.wait()
        killed += code == -signal.SIGKILL
        if code not in (0, -signal.SIGKILL):
            raise RuntimeError(f"the snapshot ended with exit code {code}")
    return killed


def _sums(config: SourceConfig) -> dict[str, float]:
    path = DEFAULT_PATHS.path("mirror", config.lake.root, config.name, config.tables[0].table)
    query = QueryBuilder().register("t", DeltaTable(path)).execute(_SUMS)
    [found] = pa.table(query.read_all()).to_pylist()
    return {name: float(value) for name, value in found.items()}


@contextmanager
def _sampled() -> Iterator[dict[str, float]]:
    """The highest memory of each kind of process while the block runs, those that end included."""
    peaks: dict[str, float] = {}
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_SAMPLED_SECONDS):
            for name, found in peak_megabytes().items():
                peaks[name] = max(peaks.get(name, 0.0), found)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        ended.set()
        thread.join()


def main() -> None:
    """Carry the snapshot of a configuration, and say each step."""
    config: SourceConfig = pickle.loads(Path(sys.argv[1]).read_bytes())
    with Pipeline(config) as pipeline:
        for report in pipeline.run_snapshot():
            print(report.kind, report.key, flush=True)


if __name__ == "__main__":
    main()
