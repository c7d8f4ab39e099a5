"""How fast do changes land that OpenLogReplicator or XStream has read, beside a JSON parser alone?

A table of ten columns in the embedded Oracle, which writes what OpenLogReplicator would, and
recordings of XStream's LCRs. Redolake reads each up to the manifest: decoding, transactions,
Parquet. msgspec alone reads each line into objects, and throws them away. Rows are counted per
second of CPU, the database's not included. A result is right if every change has landed, and the
mirror equals Oracle.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import oracledb

from benchmarks.common import Cost, Form, Result, measured
from cdc_core.config import SourceConfig
from cdc_core.steps import Pipeline
from pipelines.demo.server import Served, serving

READERS = ("openlogreplicator", "xstream")
ROWS = {Form.QUICK: 4_000, Form.NORMAL: 40_000, Form.LONG: 400_000}
ROWS_PER_COMMIT = 500
CHANGES_PER_ROW = 2
"""Each row is inserted; half of them are changed, and half deleted."""
_SCHEMA = "NYC"
_WAIT_SECONDS = 600
_CREATE = (
    "CREATE TABLE WIDE (ID NUMBER(9) PRIMARY KEY, CODE CHAR(5), NAME VARCHAR2(40), NOTE VARCHAR2(80),"
    " PRICE NUMBER(12,2), FACTOR NUMBER, DAY DATE, AT TIMESTAMP(6), SEAL RAW(8), PLACE VARCHAR2(20))",
    "ALTER TABLE WIDE ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS",
)
_INSERT = (
    "INSERT INTO WIDE VALUES (:1, 'abc', 'name ' || :1, 'a note of some length for row ' || :1, :1 / 4, :1 / 7,"
    " DATE '2026-01-01' + MOD(:1, 1000), TIMESTAMP '2026-01-01 00:00:00.123456' + MOD(:1, 1000), HEXTORAW('00FF'), NULL)"
)


def rows(form: Form = Form.NORMAL) -> Iterator[Result]:
    """Changed rows per CPU second, by reader."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = [f"--openlogreplicator={folder}/openlogreplicator", f"--xstream={folder}/xstream"]
        with serving(folder / "database", options=options) as served:
            _create(served)
            pipelines = {reader: Pipeline(_config(folder, served, reader)) for reader in READERS}
            for pipeline in pipelines.values():
                _until_begun(folder)
                list(pipeline.run_snapshot())
            _work(served, ROWS_PER_COMMIT)
            for reader, pipeline in pipelines.items():
                _land(folder / reader, pipeline)  # compiled code and imports, as any later run has
            count = _work(served, ROWS[form])
            for reader, pipeline in pipelines.items():
                yield _result(folder / reader, reader, pipeline, count)


def _result(folder: Path, reader: str, pipeline: Pipeline, count: int) -> Result:
    landed, cost = _land(folder, pipeline)
    lines = [line for path in folder.glob("*.json*") for line in path.read_bytes().splitlines()]
    with measured() as watch:
        for line in lines:
            msgspec.json.decode(line)
    list(pipeline.run_windows())
    is_equal = pipeline.reconcile().differences == 0
    pipeline.close()
    return Result(
        f"{count:,} changes of ten columns through {reader}, into landing",
        landed / cost.cpu["driver"],
        "rows per CPU second",
        "msgspec alone, each line into objects",
        count / watch.cpu["driver"],
        correct=is_equal and landed == count,
        cost=cost,
        is_warm=True,
    )


def _land(folder: Path, pipeline: Pipeline) -> tuple[int, Cost]:
    """Capture all that has committed, once it is written; how many changes landed, and at what
    cost."""
    target = pipeline.status().scn_oracle
    assert target is not None
    until = time.monotonic() + _WAIT_SECONDS
    while _written(folder) < target and time.monotonic() < until:
        time.sleep(0.2)
    windows, landed = pipeline.plan_windows(), 0
    with measured() as watch:
        for window in windows:
            landed += pipeline.capture_window(window).rows
    return landed, Cost(watch.seconds, watch.cpu, len(windows))


def _written(folder: Path) -> int:
    """The SCN up to which changes are written: a checkpoint's, or a low watermark's."""
    newest = max(folder.glob("*.json*"), key=lambda path: path.stat().st_mtime)
    line = newest.read_bytes().rpartition(b"\n")[0].rpartition(b"\n")[2]
    found = msgspec.json.decode(line or b"{}")
    return int(found.get("c_scn") or found.get("scn") or 0)


def _work(served: Served, count: int) -> int:
    """Change rows; how often a row was changed."""
    with _owner(served) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(max(ID), 0) FROM WIDE")
        [(first,)] = cursor.fetchall()
        for start in range(first, first + count, ROWS_PER_COMMIT):
            keys = range(start + 1, min(start + ROWS_PER_COMMIT, first + count) + 1)
            cursor.executemany(_INSERT.replace(":1", ":K"), [{"K": one} for one in keys])
            connection.commit()
            low, high = keys[0], keys[-1]
            cursor.execute(
                "UPDATE WIDE SET NOTE = NOTE || '!', FACTOR = FACTOR * 3 WHERE ID BETWEEN :1 AND :2"
                " AND MOD(ID, 2) = 0",
                [low, high],
            )
            connection.commit()
            cursor.execute(
                "DELETE FROM WIDE WHERE ID BETWEEN :1 AND :2 AND MOD(ID, 2) = 1", [low, high]
            )
            connection.commit()
    return count * CHANGES_PER_ROW


def _create(served: Served) -> None:
    with _owner(served) as connection, connection.cursor() as cursor:
        for statement in _CREATE:
            cursor.execute(statement)


def _until_begun(folder: Path) -> None:
    while len({path.parent for path in folder.glob("*/*.json*")}) < len(READERS):
        time.sleep(0.1)


def _owner(served: Served) -> oracledb.Connection:
    return oracledb.connect(user=served.user, password=served.password, dsn=served.dsn)


def _config(folder: Path, served: Served, reader: str) -> SourceConfig:
    user, password = served.capture_user, served.capture_password
    return SourceConfig.model_validate(
        {
            "name": reader,
            "oracle": {"dsn": served.dsn, "user": user, "password": password},
            "tables": [{"name": f"{_SCHEMA}.WIDE"}],
            "capture": {"type": reader, "folder": str(folder / reader)},
            "landing": {"type": "local", "path": str(folder / "landing")},
            "lake": {"path": str(folder / "lake")},
            "state": {"url": f"sqlite:///{folder}/{reader}.db"},
        }
    )
