"""How fast does a table come from Oracle into Delta, beside the driver alone, a plain loop, Spark's
JDBC source and dlt?

One table of 19 columns in the embedded Oracle, which all read through real drivers: Redolake, the
loop and dlt by python-oracledb, Spark by Oracle's JDBC driver in two partitions. The driver alone
fetches Arrow batches and writes them into one Parquet file; the loop fetches tuples and writes
Parquet. Redolake writes a change log beside the mirror, which the others have not. A result is
right if it has every row, and Redolake's if every value is the driver's.

The embedded Oracle uses the same cores as its client, about as long for each row as Redolake does,
so no ratio to a slower peer can be larger than the cores allow; a row of its own compares the CPU
seconds of the clients, as a database on another machine would show them. dlt fetches 100 rows a
call, which is SQLAlchemy's default: with 10,000 its process uses the same CPU time (measured): rows
as tuples take it, on their way from the driver to Arrow.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import oracledb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder

from benchmarks.common import Cost, Form, Result, alternating, measured
from benchmarks.made import COLUMNS, flights
from benchmarks.peers import dlt
from cdc_core.config import SourceConfig
from cdc_core.model.templates import DEFAULT_PATHS
from cdc_core.oracle.session import connect
from cdc_core.schema.types import select_expression
from cdc_core.spark.session import start_session
from cdc_core.steps import Pipeline
from pipelines.demo.server import Served, serving
from tests.peers.jdbc import driver_jar

GOAL, CLIENT_GOAL, DLT_GOAL = 0.6, 0.7, 5.0
ROWS = {Form.QUICK: 20_000, Form.NORMAL: 300_000, Form.LONG: 2_000_000}
ROUNDS = 5
TABLE = "FLIGHTS"
_LOADED_AT_ONCE = 5_000
_FETCHED_AT_ONCE = 10_000


def rows(form: Form = Form.NORMAL) -> Iterator[Result]:
    """Redolake beside each of the others."""
    count = ROWS[form]
    with tempfile.TemporaryDirectory() as name, serving(Path(name) / "database") as served:
        source = _Source(Path(name), served, count)
        source.load()
        source.redolake()  # compiled code and imports, as any second run has them
        found = alternating({"redolake": source.redolake, "driver": source.driver}, repeats=ROUNDS)
        ours, correct = found["redolake"], source.is_right()

        def beside(
            against: str, theirs: Cost | None, goal: float | None, *, right: bool = True
        ) -> Result:
            return Result(
                f"snapshot of {count:,} rows of 19 columns: Oracle to change log and mirror",
                count / ours.seconds,
                "rows/s",
                against,
                None if theirs is None else count / theirs.seconds,
                goal=goal,
                correct=correct and right,
                cost=ours,
                is_warm=True,
            )

        yield beside("the driver alone, Arrow batches into one Parquet file", found["driver"], GOAL)
        yield Result(
            f"the same by the client's CPU: a snapshot of {count:,} rows of 19 columns",
            ours.cpu_seconds,
            "CPU s",
            "the driver alone, Arrow batches into one Parquet file",
            found["driver"].cpu_seconds,
            goal=CLIENT_GOAL,
            correct=correct,
            higher_is_better=False,
            cost=ours,
            is_warm=True,
        )
        loop, fetched = _measured(source.loop)
        yield beside(
            "a loop over fetchmany, into one Parquet file", loop, None, right=fetched == count
        )
        for what, peer, goal in (
            ("Spark's JDBC source in two partitions, into Delta (warm JVM)", source.jdbc, None),
            ("dlt, its sql_database source with pyarrow, into Delta (its own seconds)", source.dlt, DLT_GOAL),
        ):  # fmt: skip
            try:
                theirs, fetched = peer()
            except Exception as error:  # a peer that fails hides no other
                yield beside(f"{what}: not run, {_said(error)}", None, goal)
                continue
            yield beside(what, theirs, goal, right=fetched == count)


def _measured(work: Callable[[], int]) -> tuple[Cost, int]:
    with measured() as watch:
        found = work()
    return watch.cost, found


@dataclass(slots=True)
class _Source:
    """The loaded table, and each way to bring it over."""

    folder: Path
    served: Served
    count: int
    runs: int = 0

    def load(self) -> None:
        """Create the table, insert some rows, and double them until they are enough."""
        kinds = {"NUMBER": "NUMBER({0.precision},{0.scale})", "VARCHAR2": "VARCHAR2({0.length})"}
        columns = ", ".join(
            f"{one.name} {kinds.get(one.data_type, one.data_type).format(one)}" for one in COLUMNS
        )
        names = ", ".join(column.name for column in COLUMNS[1:])
        ids = np.arange(_LOADED_AT_ONCE)
        first = flights(ids, ids % 3, ids % 2).to_pylist()
        with self._owner() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {TABLE} ({columns}, PRIMARY KEY (ID))")
            cursor.execute(f"ALTER TABLE {TABLE} ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS")
            places = ", ".join(f":{at}" for at in range(1, len(COLUMNS) + 1))
            cursor.executemany(
                f"INSERT INTO {TABLE} VALUES ({places})", [tuple(row.values()) for row in first]
            )
            there = len(first)
            while there < self.count:
                more = min(there, self.count - there)
                cursor.execute(
                    f"INSERT INTO {TABLE} SELECT ID + {there}, {names} FROM {TABLE} WHERE ID < {more}"
                )
                connection.commit()
                there += more  # fmt: skip

    def _owner(self) -> oracledb.Connection:
        served = self.served
        return oracledb.connect(user=served.user, password=served.password, dsn=served.dsn)

    def _config(self, folder: Path) -> SourceConfig:
        folder.mkdir(parents=True)
        return SourceConfig.model_validate(
            {
                "name": "bench",
                "tables": [{"name": f"{self.served.user.upper()}.{TABLE}"}],
                "oracle": {
                    "dsn": self.served.dsn,
                    "user": self.served.capture_user,
                    "password": self.served.capture_password,
                },
                "landing": {"type": "local", "path": str(folder / "landing")},
                "lake": {"path": str(folder / "lake")},
                "state": {"url": f"sqlite:///{folder / 'state.db'}"},
            }
        )

    @property
    def _newest(self) -> Path:
        return self.folder / f"run-{self.runs}"

    def redolake(self) -> None:
        """The first snapshot of a new source, into a new lake."""
        self.runs += 1
        with Pipeline(self._config(self._newest)) as pipeline:
            list(pipeline.run_snapshot())

    def driver(self) -> None:
        """Arrow batches into Parquet, by driver and pyarrow alone."""
        config = self._config(self.folder / f"alone-{self.runs}")
        columns = ", ".join(select_expression(column) for column in COLUMNS)
        writer: pq.ParquetWriter | None = None
        with connect(config.oracle) as session:
            sql = f'SELECT {columns} FROM "{self.served.user.upper()}"."{TABLE}"'
            for batch in session.fetch_batches(sql, rows=_FETCHED_AT_ONCE):
                writer = writer or pq.ParquetWriter(self.folder / "alone.parquet", batch.schema)
                writer.write_batch(batch)
            assert writer is not None
            writer.close()

    def loop(self) -> int:
        """What many programs do; the rows that it wrote."""
        names, path = [column.name for column in COLUMNS], self.folder / "loop.parquet"
        schema = flights(*(np.empty(0, np.int64) for _ in range(3))).schema
        with self._owner() as connection, connection.cursor() as cursor:
            cursor.arraysize = _FETCHED_AT_ONCE
            cursor.execute(f"SELECT * FROM {TABLE}", fetch_decimals=True)
            with pq.ParquetWriter(path, schema) as writer:
                while found := cursor.fetchmany():
                    writer.write_table(
                        pa.Table.from_pylist(
                            [dict(zip(names, row, strict=True)) for row in found], schema
                        )
                    )
        return int(pq.read_metadata(path).num_rows)

    def jdbc(self) -> tuple[Cost, int]:
        """Spark reads by JDBC and writes Delta; what it took, and the rows there."""
        jar = driver_jar("ojdbc11-23")
        lake = self._config(self.folder / "jdbc").lake
        lake = lake.model_copy(update={"spark_config": {"spark.jars": str(jar)}})
        spark = start_session(lake)
        few = self._reader(spark).option("query", f"SELECT * FROM {TABLE} WHERE ID < 1000")
        few.load().write.format("delta").save(f"{lake.path}/warm")
        parts = {"lowerBound": "0", "upperBound": str(self.count), "numPartitions": "2"}
        reader = self._reader(spark).options(dbtable=TABLE, partitionColumn="ID", **parts)
        path = f"{lake.path}/{TABLE}"
        with measured() as watch:
            reader.load().write.format("delta").save(path)
        return watch.cost, _count(path)

    def _reader(self, spark: Any) -> Any:
        return spark.read.format("jdbc").options(
            url=f"jdbc:oracle:thin:@//{self.served.dsn}",
            driver="oracle.jdbc.OracleDriver",
            user=self.served.user,
            password=self.served.password,
            fetchsize=str(_FETCHED_AT_ONCE),
        )

    def dlt(self) -> tuple[Cost, int]:
        """dlt's pipeline; the seconds that its run says of itself, and the rows there."""
        served = self.served
        with measured() as watch:
            seconds, path = dlt.snapshot(
                served.dsn, served.user, served.password, TABLE, self.folder / "dlt"
            )
        return Cost(seconds, watch.cpu), _count(str(path))

    def is_right(self) -> bool:
        """Has the newest mirror the rows that the driver wrote, value by value?"""
        config = self._config(self.folder / "judge")
        path = DEFAULT_PATHS.path(
            "mirror", str(self._newest / "lake"), config.name, config.tables[0].table
        )
        query = QueryBuilder().register("t", DeltaTable(path))
        names = [column.name for column in COLUMNS]
        listed = ", ".join(f'"{name}"' for name in names)
        found = pa.table(query.execute(f'select {listed} from t order by "ID"').read_all())
        wanted = pq.read_table(self.folder / "alone.parquet").rename_columns(names).sort_by("ID")
        schema = flights(*(np.empty(0, np.int64) for _ in range(3))).schema
        return bool(found.cast(schema).equals(wanted.cast(schema)))


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0][:150] if str(error) else ''}"


def _count(path: str) -> int:
    query = QueryBuilder().register("t", DeltaTable(path))
    return int(pa.table(query.execute("select count(*) as n from t").read_all())["n"][0].as_py())
