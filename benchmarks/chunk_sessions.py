"""How many more rows of one table do several sessions bring than one, where one session gives no
more than 20,000 rows a second?

A session of Oracle uses one CPU of the database and one connection, so it gives so many rows and no
more (``benchmarks/slowed.py``). Everything else is real: sessions, plan, chunks, landing, change
log and mirror. A result is right if the mirror has every row once, by count and sum of keys.
"""

from __future__ import annotations

import tempfile
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

import oracledb
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from benchmarks.common import Form, Result, grow, measured
from benchmarks.slowed import Slowed
from cdc_core.config import SourceConfig
from cdc_core.model.templates import DEFAULT_PATHS
from cdc_core.steps import Pipeline
from pipelines.demo.server import Served, serving

ROWS_PER_SECOND = 20_000
FETCHED_AT_ONCE = 2_000
SESSIONS = (1, 2, 4)
CHUNKS = 16
GOAL = 0.9
ROWS = {Form.QUICK: 64_000, Form.NORMAL: 400_000, Form.LONG: 5_000_000}
_TABLE = "CREATE TABLE WIDE (ID NUMBER(12) PRIMARY KEY, TEXT VARCHAR2(60), SHARE_OF NUMBER(9,2), SEEN DATE)"
_FIRST_ROWS = """
INSERT INTO WIDE SELECT LEVEL, RPAD('row ', 60, 'x'), MOD(LEVEL, 1000) / 4, SYSDATE FROM DUAL CONNECT BY LEVEL <= :many"""
_MORE_ROWS = """
INSERT INTO WIDE SELECT ID + :there, TEXT, SHARE_OF, SEEN FROM WIDE WHERE ID <= :many"""


def rows(form: Form = Form.NORMAL) -> Iterator[Result]:
    """Rows of one table a second, from Oracle into both Delta tables, with each number of
    sessions."""
    count = ROWS[form]
    with tempfile.TemporaryDirectory() as name, serving(Path(name) / "oracle") as server:
        _load(server, count)
        slowed = Slowed(ROWS_PER_SECOND, _part)
        with slowed.recording():
            _snapshot(server, Path(name) / "recorded", count, 1)
        alone: float | None = None
        for sessions in SESSIONS:
            with slowed.replaying(), measured() as watch:
                correct = _snapshot(server, Path(name) / str(sessions), count, sessions)
            correct &= slowed.fetched == count
            found = count / watch.seconds
            alone = alone or found
            yield Result(
                f"{sessions} sessions read one table of {count:,} rows from a source of {ROWS_PER_SECOND:,} rows/s a session",
                found,
                "rows/s",
                f"{sessions} times what one session brings",
                sessions * alone,
                goal=GOAL,
                correct=correct,
                cost=watch.cost,
            )


def _part(sql: str, binds: Mapping[str, Any] | None) -> Hashable | None:
    """Whose rows a query of a chunk reads, whatever the SCN of its snapshot."""
    if '"WIDE" AS OF SCN' not in sql or '"TEXT"' not in sql:
        return None
    return frozenset(one for one in (binds or {}).items() if one[0] != "scn")


def _load(server: Served, count: int) -> None:
    with (
        oracledb.connect(user=server.user, password=server.password, dsn=server.dsn) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(_TABLE)
        cursor.execute("ALTER TABLE WIDE ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS")
        grow(connection, _FIRST_ROWS, _MORE_ROWS, count)


def _snapshot(server: Served, folder: Path, count: int, sessions: int) -> bool:
    """The first snapshot into a new lake; has the mirror every row once?"""
    folder.mkdir()
    config = SourceConfig.model_validate(_configured(server, folder, count, sessions))
    with Pipeline(config) as pipeline:
        list(pipeline.run_snapshot())
    path = DEFAULT_PATHS.path("mirror", str(folder / "lake"), config.name, config.tables[0].table)
    query = QueryBuilder().register("t", DeltaTable(path))
    sums = query.execute('select count(*) as n, sum("ID") as s from t').read_all()
    [found] = pa.table(sums).to_pylist()
    return bool(found["n"] == count and int(found["s"]) == count * (count + 1) // 2)


def _configured(server: Served, folder: Path, count: int, sessions: int) -> dict[str, Any]:
    return {
        "name": "wide",
        "tables": [{"name": f"{server.user.upper()}.WIDE"}],
        "oracle": {
            "dsn": server.dsn,
            "user": server.capture_user,
            "password": server.capture_password,
            "fetch_rows": FETCHED_AT_ONCE,
        },
        "snapshot": {"sessions": sessions, "chunk_rows": -(-count // CHUNKS)},
        "landing": {"type": "local", "path": str(folder / "landing")},
        "lake": {"path": str(folder / "lake")},
        "state": {"url": f"sqlite:///{folder / 'state.db'}"},
    }
