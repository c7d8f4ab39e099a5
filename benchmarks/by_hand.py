"""From redo to a merged Delta table: Redolake beside Debezium and a hand-written MERGE.

Both read one embedded Oracle through LogMiner. Debezium's connector runs in its embedded engine,
writes JSON, and reads while the changes are made; its time begins when the last of them is
committed, which is in its favour. Then Spark reads its events, keeps the last of each key, and
merges them, as such jobs are written. Redolake plans, captures and applies the same changes
afterwards, with a change log, which the other has not. A result is right if its table is Oracle's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import oracledb
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from benchmarks.common import Form, Result, measured
from benchmarks.peers.debezium import PeerUnavailableError, installed_jars
from cdc_core.config import SourceConfig
from cdc_core.model.templates import DEFAULT_PATHS
from cdc_core.spark.session import start_session
from cdc_core.steps import Pipeline
from pipelines.demo.server import Served, serving
from tests.peers.debezium import Debezium, debezium
from tests.peers.jdbc import has_java_compiler

CHANGES = {Form.QUICK: 2_000, Form.NORMAL: 20_000, Form.LONG: 200_000}
LOADED_SHARE = 4
HIDDEN = ("SPURIOUS_ROLLBACKS", "PARTIAL_XIDS")
"""Debezium loses changes where LogMiner shows these."""
TRANSACTION_ROWS = 500
_LAST = 99_999_999
_TABLE = "CREATE TABLE NOTES (ID NUMBER(10) PRIMARY KEY, V VARCHAR2(40), N NUMBER(12,2), D DATE, T TIMESTAMP(6))"
_ROWS = "INSERT INTO NOTES VALUES (:1, :2, :3, DATE '2024-02-29', TIMESTAMP '2024-02-29 01:02:03.456789')"
_CHANGE = "UPDATE NOTES SET V = :1, N = :2, D = D + 1 WHERE ID = :3"
_EVENTS = "before STRUCT<ID: STRING>, after STRUCT<ID: STRING, V: STRING, N: STRING, D: BIGINT, T: BIGINT>, op STRING"
_ROW = (
    "CAST(after.ID AS BIGINT) AS ID, after.V AS V, CAST(after.N AS DECIMAL(12,2)) AS N,"
    " TIMESTAMP_MICROS(after.D * 1000) AS D, TIMESTAMP_MICROS(after.T) AS T"
)
_MERGE = """
MERGE INTO delta.`{mirror}` t USING (
  SELECT * FROM (
    SELECT op, CAST(COALESCE(after.ID, before.ID) AS BIGINT) AS KEY, {row},
           ROW_NUMBER() OVER (PARTITION BY COALESCE(after.ID, before.ID) ORDER BY place DESC) AS newest
    FROM events)
  WHERE newest = 1
) s ON t.ID = s.KEY
WHEN MATCHED AND s.op = 'd' THEN DELETE
WHEN MATCHED THEN UPDATE SET t.V = s.V, t.N = s.N, t.D = s.D, t.T = s.T
WHEN NOT MATCHED AND s.op <> 'd' THEN INSERT (ID, V, N, D, T) VALUES (s.ID, s.V, s.N, s.D, s.T)"""


def rows(form: Form = Form.NORMAL) -> Iterator[Result]:
    """One row: changes a second, of both."""
    changes = CHANGES[form]
    with (
        tempfile.TemporaryDirectory() as name,
        serving(Path(name) / "database", options=[f"--hide={name}" for name in HIDDEN]) as served,
    ):
        place = _Place(Path(name), served, changes)
        with Pipeline(place.config()) as pipeline:
            place.load()
            list(pipeline.run_snapshot())
            against = "Debezium, then Spark reading its JSON and one hand-written MERGE (warm JVM)"
            theirs: float | None = None
            right = True
            try:
                theirs, right = _by_hand(place)
            except Exception as error:  # the peer's failure must not hide our figure
                said = (str(error).splitlines() or [""])[0][:150]
                against = (
                    f"Debezium and a hand-written MERGE, not run: {type(error).__name__}: {said}"
                )
                if not place.is_changed():
                    place.change()
            with measured() as watch:
                list(pipeline.run_windows())
        correct = right and place.is_right(place.mirror)
    yield Result(
        f"{changes:,} changes of 5 columns, from redo to the merged table",
        changes / watch.seconds,
        "changes/s",
        against,
        None if theirs is None else changes / theirs,
        correct=correct,
        cost=watch.cost,
        is_warm=theirs is not None,
    )


def _by_hand(place: _Place) -> tuple[float, bool]:
    """Seconds from the last commit to the end of the MERGE; and whether the table is right."""
    if not has_java_compiler():
        raise PeerUnavailableError("there is no JDK (javac) on the path")
    installed_jars()
    mirror = f"{place.folder}/by-hand"
    session = start_session(place.config().lake)
    session.conf.set("spark.sql.timestampType", "TIMESTAMP_LTZ")
    columns = "ID BIGINT, V STRING, N DECIMAL(12,2), D TIMESTAMP, T TIMESTAMP"
    session.sql(f"CREATE TABLE delta.`{mirror}` ({columns}) USING delta")
    session.sql(f"INSERT INTO delta.`{mirror}` SELECT * FROM delta.`{place.mirror}`".replace("*", "ID, V, N, CAST(D AS TIMESTAMP), CAST(T AS TIMESTAMP)")).collect()  # fmt: skip
    folder = place.folder / "debezium"
    folder.mkdir()
    served = place.served
    table = f"{served.user.upper()}.NOTES"
    with debezium(served.port, served.capture_password, folder, [table]) as running:
        place.change()
        with measured() as watch:
            running.wait(lambda: _has_come(running))
            events = session.read.schema(_EVENTS).json(str(folder / "events.json"))
            numbered = events.selectExpr("*", "MONOTONICALLY_INCREASING_ID() AS place")
            numbered.createOrReplaceTempView("events")
            session.sql(_MERGE.format(mirror=mirror, row=_ROW)).collect()
    return watch.seconds, place.is_right(mirror)


def _has_come(running: Debezium) -> bool:
    """Is the event of the last row there?"""
    with (running.folder / "events.json").open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - 20_000))
        return f'"{_LAST}"'.encode() in file.read()


@dataclass(frozen=True, slots=True)
class _Place:
    """The database, its one table, and Redolake's folder."""

    folder: Path
    served: Served
    changes: int

    @property
    def mirror(self) -> str:
        """Redolake's mirror."""
        config = self.config()
        return DEFAULT_PATHS.path("mirror", config.lake.path, config.name, config.tables[0].table)

    def config(self) -> SourceConfig:
        """Redolake's configuration."""
        return SourceConfig.model_validate(
            {
                "name": "bench",
                "tables": [{"name": f"{self.served.user.upper()}.NOTES"}],
                "oracle": {
                    "dsn": self.served.dsn,
                    "user": self.served.capture_user,
                    "password": self.served.capture_password,
                },
                "capture": {"close_at": "online"},
                "landing": {"type": "local", "path": str(self.folder / "landing")},
                "lake": {"path": str(self.folder / "lake")},
                "state": {"url": f"sqlite:///{self.folder / 'state.db'}"},
            }
        )

    def load(self) -> None:
        """Create the table and some rows."""
        with self._owner() as connection, connection.cursor() as cursor:
            cursor.execute(_TABLE)
            cursor.execute("ALTER TABLE NOTES ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS")
            cursor.executemany(_ROWS, [self._row(at) for at in range(self.changes // LOADED_SHARE)])
            connection.commit()

    def change(self) -> None:
        """Change random rows, insert others, delete some; the last change is an insert of the last
        key."""
        loaded = self.changes // LOADED_SHARE
        with self._owner() as connection, connection.cursor() as cursor:
            updates = [
                (f"changed {at}", Decimal(at) / 4, at * 7919 % loaded)
                for at in range(self.changes // 2)
            ]
            new = [self._row(loaded + at) for at in range(self.changes // 2 - loaded // 10 - 1)]
            for at in range(0, self.changes // 2, TRANSACTION_ROWS):
                cursor.executemany(_CHANGE, updates[at : at + TRANSACTION_ROWS])
                if more := new[at : at + TRANSACTION_ROWS]:
                    cursor.executemany(_ROWS, more)
                connection.commit()
            cursor.execute("DELETE FROM NOTES WHERE ID < :1", [loaded // 10])
            cursor.execute(_ROWS, self._row(_LAST))
            connection.commit()  # fmt: skip

    def is_changed(self) -> bool:
        """Is the last change made?"""
        with self._owner() as connection, connection.cursor() as cursor:
            [(found,)] = cursor.execute(f"SELECT COUNT(*) FROM NOTES WHERE ID = {_LAST}").fetchall()
        return bool(found)

    def _row(self, number: int) -> tuple[Any, ...]:
        return number, f"it's {number}", Decimal(number) / 4

    def _owner(self) -> oracledb.Connection:
        served = self.served
        return oracledb.connect(user=served.user, password=served.password, dsn=served.dsn)

    def is_right(self, mirror: str) -> bool:
        """Has a Delta table what Oracle has?"""
        with self._owner() as connection, connection.cursor() as cursor:
            wanted = cursor.execute(
                "SELECT ID, V, N, D, T FROM NOTES ORDER BY ID", fetch_decimals=True
            ).fetchall()
        sql = 'select "ID", "V", "N", "D", "T" from t order by "ID"'
        found = pa.table(QueryBuilder().register("t", DeltaTable(mirror)).execute(sql).read_all())
        return [_plain(row.values()) for row in found.to_pylist()] == [_plain(row) for row in wanted]  # fmt: skip


def _plain(row: Any) -> list[Any]:
    return [
        value.replace(tzinfo=None)
        if isinstance(value, datetime)
        else value
        if value is None or isinstance(value, str)
        else Decimal(value)
        for value in row
    ]
