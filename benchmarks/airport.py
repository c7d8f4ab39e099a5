"""Where do the benchmarks get a loaded Oracle and a pipeline on it? From the demo's airport, in a
folder that is thrown away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import oracledb

from cdc_core.config import SnapshotConfig
from cdc_core.oracle.session import connect
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.schema.table import TableSchema
from cdc_core.spark.session import start_session
from cdc_core.steps import Pipeline
from pipelines.demo.server import Served, serving
from pipelines.demo.settings import write_definitions
from pipelines.demo.workload import LiveSystem, Plan, create_tables, load_history


@dataclass(frozen=True, slots=True)
class Airport:
    """A database that holds the past of a plan, and the pipeline of its five tables; Spark is
    warm."""

    served: Served
    plan: Plan
    pipeline: Pipeline

    def owner(self) -> oracledb.Connection:
        """A session of the tables' owner."""
        return oracledb.connect(
            user=self.served.user, password=self.served.password, dsn=self.served.dsn
        )

    def work(self) -> None:
        """Let the airport do its whole plan, at full speed."""
        LiveSystem(self.owner, self.plan).run()

    def schema(self, name: str) -> TableSchema:
        """A captured table's definition at present."""
        config = self.pipeline.config
        (table,) = [table for table in config.tables if table.table.name == name]
        with connect(config.oracle) as session:
            return read_table_schema(session, table, scn=None)


@contextmanager
def open_airport(folder: Path, plan: Plan) -> Iterator[Airport]:
    """Serve a database in ``folder``, load the plan's past, warm Spark up. Chunks are as large as
    by default."""
    folder.mkdir(parents=True, exist_ok=True)
    with serving(folder) as served:
        config = write_definitions(folder, served)
        config = config.model_copy(update={"snapshot": SnapshotConfig()})
        with Pipeline(config) as pipeline:
            airport = Airport(served, plan, pipeline)
            with airport.owner() as connection:
                create_tables(connection)
                load_history(connection, plan, lambda _table, _done, _rows: None)
            start_session(config.lake).sql("SELECT 1").collect()
            yield airport
