"""Names that a plain Delta table refuses, from Oracle to Delta: chunks, windows, DDL, replay, repair and rebuild."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder

from cdc_core.delta.history import read_log
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.model.identifiers import TableId
from cdc_core.steps import Pipeline
from tests.invariants.compare import version_at
from tests.lake.who_merges import no_spark
from tests.oracle.embedded import MERGED_BY_SPARK, OWNER, Oracle, running_oracle

ODD = TableId(OWNER, "order lines/2.x")
LATER = TableId(OWNER, "SELECT")


@pytest.mark.parametrize(
    ("lake", "open_lake"),
    [
        pytest.param({}, partial(DeltaLake, spark=no_spark), id="without-spark"),
        pytest.param(MERGED_BY_SPARK, DeltaLake, marks=pytest.mark.spark, id="by-spark"),
    ],
)
def test_odd_names_reach_delta(
    tmp_path: Path, request: pytest.FixtureRequest, lake: dict[str, Any], open_lake: Any
) -> None:
    """One table has such names from its first chunk on, the other gets them by ADD and RENAME COLUMN."""
    if lake:
        request.getfixturevalue("spark_process")
    with running_oracle() as oracle:
        oracle.run(
            'CREATE TABLE "order lines/2.x" ("order id" NUMBER(9) PRIMARY KEY, "a.b" VARCHAR2(40), "a" NUMBER(9), '
            '"x = y; (and) {,}" NUMBER, "Größe €" VARCHAR2(40), "tab\there" DATE, "WHERE" CLOB)',
            'CREATE TABLE "SELECT" (ID NUMBER(9) PRIMARY KEY, "from" VARCHAR2(40))',
            *(
                f"""INSERT INTO "order lines/2.x" VALUES ({key}, 'ab {key}', {key}, 1.5, 'ä', DATE '2026-01-01', 'a long text')"""
                for key in range(1, 6)
            ),
            """INSERT INTO "SELECT" VALUES (1, 'one')""",
        )
        config = oracle.config(
            tmp_path,
            tables=[{"name": str(ODD)}, {"name": str(LATER)}],
            lake=lake,
        )
        with Pipeline(config, open_lake=open_lake) as pipeline:
            list(pipeline.run_once())
            oracle.run(
                """UPDATE "order lines/2.x" SET "a.b" = 'x = y', "x = y; (and) {,}" = 2 WHERE "order id" = 1""",
                'UPDATE "order lines/2.x" SET "order id" = 20, "Größe €" = NULL WHERE "order id" = 2',
                'DELETE FROM "order lines/2.x" WHERE "order id" = 3',
                """INSERT INTO "order lines/2.x" ("order id", "a.b", "WHERE") VALUES (7, 'new', 'short')""",
                """INSERT INTO "SELECT" VALUES (2, 'two')""",
            )
            list(pipeline.run_once())
            check(oracle, pipeline, tmp_path)
            assert not read_log(str(delta(tmp_path, "changelog", LATER))).is_mapped  # type: ignore[union-attr]
            first = pipeline.records.windows(newest_first=True, limit=1)[0].window

            oracle.run(
                'ALTER TABLE "order lines/2.x" ADD ("p. q" NUMBER(9) DEFAULT 4)',
                'ALTER TABLE "order lines/2.x" RENAME COLUMN "a.b" TO "b, a"',
                'ALTER TABLE "SELECT" ADD ("late one" NUMBER(9))',
                'ALTER TABLE "SELECT" RENAME COLUMN "from" TO "to (whom)"',
            )
            oracle.run(
                """UPDATE "order lines/2.x" SET "b, a" = 'renamed', "p. q" = 5 WHERE "order id" = 4""",
                """INSERT INTO "SELECT" VALUES (3, 'three', 33)""",
                """UPDATE "SELECT" SET "to (whom)" = 'me' WHERE ID = 2""",
            )
            list(pipeline.run_once())
            check(oracle, pipeline, tmp_path)

            pipeline.replay_window(first)
            [one, other] = pipeline.reconcile().tables
            assert (one.differences, other.differences) == (0, 0)
            pipeline.rebuild_mirror(ODD)
            check(oracle, pipeline, tmp_path)
            check_files(tmp_path)


def delta(path: Path, role: str, table: TableId) -> Path:
    return path / "lake" / "src" / role / table.path


def query(table: DeltaTable, sql: str) -> pa.Table:
    return pa.table(QueryBuilder().register("t", table).execute(sql).read_all())


def check(oracle: Oracle, pipeline: Pipeline, path: Path) -> None:
    """The mirror's version of its position equals Oracle there, by the driver and delta-rs alone; DuckDB reads what delta-rs gives."""
    for table in (ODD, LATER):
        record = pipeline.store.tables.get(table)
        assert record is not None
        scn = record.mirror_scn
        assert scn is not None
        names, rows = oracle_rows(oracle, table, scn)
        mirror = delta(path, "mirror", table)
        found = query(DeltaTable(str(mirror), version_at(mirror, scn)), "SELECT * FROM t")
        listed = ", ".join(f'"{name}"' for name in names)
        duck = duckdb.connect().register("found", found)
        read = duck.sql(f"SELECT {listed} FROM found").fetchall()
        assert sorted(map(plain, read)) == sorted(map(plain, rows))


def plain(row: tuple[Any, ...]) -> tuple[str, ...]:
    """Comparable: a NUMBER without a scale is text in Delta, and a float for the driver."""
    return tuple(str(int(v) if isinstance(v, float) and v.is_integer() else v) for v in row)


def oracle_rows(oracle: Oracle, table: TableId, scn: int) -> tuple[list[str], list[Any]]:
    with oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute(f"SELECT * FROM {table.sql} AS OF SCN :scn", scn=scn)
        names = [one.name for one in cursor.description]
        rows = [tuple(v.read() if hasattr(v, "read") else v for v in row) for row in cursor]
    return names, rows


def check_files(path: Path) -> None:
    """What was appended without Spark has the names and numbers of Delta's schema, and statistics under these names."""
    log = read_log(str(delta(path, "changelog", ODD)))
    assert log is not None
    after = log.file_names.of("after", "order id").split(".")
    assert after[1] not in {"order id", ""}
    for file in delta(path, "changelog", ODD).glob("part-*.zstd.parquet"):
        schema = pq.read_schema(file)
        key = schema.field(after[0]).type.field(after[1])
        number = str(log.file_names.numbers["after", "order id"])
        assert key.metadata == {b"PARQUET:field_id": number.encode()}
    added = pa.table(DeltaTable(str(delta(path, "changelog", ODD))).get_add_actions(flatten=True))
    assert added[f"min.{log.file_names.of('_cdc_window')}"].null_count == 0
