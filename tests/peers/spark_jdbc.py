"""What do Spark's JDBC source and catalog do with a database? A program that checks it and prints each result, a process of its own
since the driver's jar must be there when the JVM starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cdc_core.runtime.folders import default_runtime_folder, shim_folder
from cdc_core.runtime.java import find_java

ROWS = 1000
PARTITIONS = 4
_CREATED = (
    "CREATE TABLE SPARK_READ (ID NUMBER(10) PRIMARY KEY, V VARCHAR2(60), N NUMBER(12,2), W NUMBER(38), D DATE, T TIMESTAMP(6),"
    " Z TIMESTAMP(6) WITH TIME ZONE, R RAW(8), F BINARY_DOUBLE, C CLOB)"
)
_INSERTED = (
    "INSERT INTO SPARK_READ SELECT LEVEL, CASE WHEN MOD(LEVEL, 10) = 0 THEN NULL ELSE 'naïve ✓ ' || MOD(LEVEL, 7) END,"
    " LEVEL / 4, 12345678901234567890123456789012345678, DATE '2024-02-29' + MOD(LEVEL, 300) + 1 / 4,"
    " TIMESTAMP '2024-02-29 01:02:03.456789', TIMESTAMP '2024-02-29 01:02:03.456789 +02:00', HEXTORAW('0AFF'), LEVEL / 8,"
    f" RPAD('x', MOD(LEVEL, 3) * 1500 + 1, 'é') FROM DUAL CONNECT BY LEVEL <= {ROWS}"
)


def run_checks(jar: Path, dsn: str, password: str) -> dict[str, str]:
    """Run the program; the result of each of its checks by name, ``ok`` or what went wrong."""
    java = find_java(shim_folder(default_runtime_folder()))
    command = [sys.executable, "-m", __name__, str(jar), dsn, password]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "JAVA_HOME": str(java.path)},
        cwd=Path(__file__).parents[2],
    )
    results = dict(line.split("\t", 1) for line in done.stdout.splitlines() if "\t" in line)
    if done.returncode != 0:
        results["the program ends well"] = done.stderr.strip()[-400:]
    return results


@contextmanager
def _spark(jar: str, options: dict[str, str]) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.jars", jar)
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.catalog.oracle": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        **{f"spark.sql.catalog.oracle.{name}": value for name, value in options.items()},
        "spark.sql.catalog.oracle.pushDownAggregate": "true",
        "spark.sql.catalog.oracle.pushDownLimit": "true",
        "spark.sql.catalog.oracle.pushDownOffset": "true",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:TieredStopAtLevel=1",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


class Checks:
    """The checks by name; ``owner`` is a connection of python-oracledb, which says what is really there."""

    def __init__(self, spark: Any, owner: Any, options: dict[str, str]) -> None:
        self.spark, self.owner, self.options = spark, owner, options

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What the driver reads."""
        found: list[tuple[Any, ...]] = self.owner.cursor().execute(sql).fetchall()
        return found

    def reader(self, **options: str) -> Any:
        """Spark's reader with the connection's options and these."""
        return self.spark.read.format("jdbc").options(**self.options, **options)

    def writer(self, table: str, mode: str, frame: Any, **options: str) -> Any:
        """Write a frame."""
        written = frame.write.format("jdbc").options(**self.options, dbtable=table, **options)
        return written.mode(mode).save()

    def read(self) -> None:
        """Each type as Spark's dialect of Oracle reads it."""
        frame = self.reader(dbtable="SPARK_READ").load()
        kinds = dict(frame.dtypes)
        wanted = {
            "ID": "decimal(10,0)", "V": "string", "N": "decimal(12,2)", "W": "decimal(38,0)", "D": "timestamp", "T": "timestamp",
            "Z": "timestamp", "R": "binary", "F": "double", "C": "string",
        }  # fmt: skip
        assert kinds == wanted, kinds
        found = {int(row["ID"]): row for row in frame.collect()}
        assert len(found) == ROWS, len(found)
        theirs = self.rows("SELECT ID, V, N, W, D, F, DBMS_LOB.GETLENGTH(C) FROM SPARK_READ")
        for key, v, n, w, d, f, length in theirs:
            row = found[key]
            assert (row["V"], float(row["N"]), row["W"], row["F"], len(row["C"])) == (
                v,
                n,
                Decimal(w),
                f,
                length,
            ), key
            assert row["D"] == d, (row["D"], d)
            assert bytes(row["R"]) == b"\x0a\xff"
            assert row["T"] == datetime(2024, 2, 29, 1, 2, 3, 456789), row["T"]
        instants = frame.selectExpr("unix_micros(Z) AS U").distinct().collect()
        zoned = datetime(2024, 2, 28, 23, 2, 3, 456789, tzinfo=UTC)
        assert [row["U"] for row in instants] == [
            int((zoned - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 1_000_000 + 456789
        ], instants

    def partitioned_read(self) -> None:
        """By a number and by a date: each row in one partition."""
        for column, low, high in (
            ("ID", "1", str(ROWS)),
            ("D", "2024-02-29 00:00:00", "2024-12-25 00:00:00"),
        ):
            frame = self.reader(
                dbtable="SPARK_READ",
                partitionColumn=column,
                lowerBound=low,
                upperBound=high,
                numPartitions=str(PARTITIONS),
                sessionInitStatement="ALTER SESSION SET NLS_DATE_FORMAT = 'YYYY-MM-DD HH24:MI:SS'",
            ).load()
            assert frame.rdd.getNumPartitions() == PARTITIONS
            ids = sorted(int(row["ID"]) for row in frame.select("ID").collect())
            assert ids == list(range(1, ROWS + 1)), (column, len(ids))

    def predicates(self) -> None:
        """A partition for each condition."""
        frame = self.spark.read.jdbc(
            self.options["url"],
            "SPARK_READ",
            predicates=["ID <= 10", "ID BETWEEN 11 AND 30"],
            properties={
                name: self.options[name] for name in ("user", "password", "driver", "fetchsize")
            },
        )
        assert frame.rdd.getNumPartitions() == 2
        assert frame.count() == 30

    def query_and_prepared_query(self) -> None:
        """A SELECT of one's own, a WITH before it, and a statement at the session's start."""
        frame = self.reader(
            prepareQuery="WITH few AS (SELECT ID, N FROM SPARK_READ WHERE ID <= 20)",
            query="SELECT MOD(ID, 2) AS ODD, SUM(N) AS N FROM few GROUP BY MOD(ID, 2)",
            sessionInitStatement="BEGIN EXECUTE IMMEDIATE 'ALTER SESSION SET NLS_SORT = BINARY'; END;",
        ).load()
        found = sorted((int(row["ODD"]), float(row["N"])) for row in frame.collect())
        assert found == [(0, 27.5), (1, 25.0)], found

    def pushed_filters(self) -> None:
        """Conditions that Spark hands down, and none of them evaluated by Spark again where the catalog says so."""
        table = self.spark.table("oracle.DEMO.SPARK_READ")
        cases: tuple[tuple[str, str], ...] = (
            ("ID = 7", "ID = 7"),
            ("ID IN (1, 2, 999)", "ID IN (1, 2, 999)"),
            ("N > 100 AND N <= 120.25", "N > 100 AND N <= 120.25"),
            ("V IS NULL OR ID < 4", "V IS NULL OR ID < 4"),
            ("V LIKE 'naïve%'", "V LIKE 'naïve%'"),
            ("V LIKE '%✓ 3'", "V LIKE '%✓ 3'"),
            ("NOT (ID > 5)", "NOT (ID > 5)"),
            ("D >= TIMESTAMP '2024-12-01 00:00:00'", "D >= DATE '2024-12-01'"),
            ("D < DATE '2024-03-05'", "D < DATE '2024-03-05'"),
            ("T = TIMESTAMP_NTZ '2024-02-29 01:02:03.456789'", "1 = 1"),
            ("abs(F - 10) < 1", "ABS(F - 10) < 1"),
            ("upper(V) = 'NAÏVE ✓ 1'", "UPPER(V) = 'NAÏVE ✓ 1'"),
        )
        for condition, in_oracle in cases:
            frame = table.where(condition).select("ID")
            found = sorted(int(row["ID"]) for row in frame.collect())
            theirs = sorted(
                row[0] for row in self.rows(f"SELECT ID FROM SPARK_READ WHERE {in_oracle}")
            )
            assert found == theirs, (condition, len(found), len(theirs))
        self._pushed(
            table.where("ID = 7").select("V"), "PushedFilters: [ID IS NOT NULL, ID = 7", "ReadSchema: struct<V:string>"
        )  # fmt: skip
        plain = self.reader(dbtable="SPARK_READ").load().where("ID < 3 AND V LIKE 'naïve%'")
        self._pushed(plain, "LessThan(ID,3", "StringStartsWith(V,naïve)")
        assert plain.count() == 2

    def pushed_aggregates(self) -> None:
        """GROUP BY with sums, counts and extremes, made by Oracle."""
        table = self.spark.table("oracle.DEMO.SPARK_READ")
        table.createOrReplaceTempView("read")
        frame = self.spark.sql(
            "SELECT V, count(*) AS C, sum(N) AS S, min(D) AS MIND, max(ID) AS M, avg(F) AS A, count(DISTINCT N) AS DN"
            " FROM read WHERE ID <= 500 GROUP BY V"
        )
        self._pushed(frame, "PushedAggregates: [COUNT(*), SUM(N), MIN(D), MAX(ID), AVG(F)")
        found = {row["V"]: (row["C"], float(row["S"]), row["MIND"], int(row["M"]), row["A"]) for row in frame.collect()}  # fmt: skip
        theirs = self.rows(
            "SELECT V, COUNT(*), SUM(N), MIN(D), MAX(ID), AVG(F) FROM SPARK_READ WHERE ID <= 500 GROUP BY V"
        )
        assert found == {row[0]: row[1:] for row in theirs}, found

    def pushed_limits(self) -> None:
        """LIMIT, OFFSET and the first rows of an order."""
        table = self.spark.table("oracle.DEMO.SPARK_READ")
        limited = table.select("ID").limit(5)
        self._pushed(limited, "PushedLimit: LIMIT 5")
        assert len(limited.collect()) == 5
        top = table.orderBy(table["N"].desc()).select("ID").limit(3)
        self._pushed(top, "PushedTopN: ORDER BY [N DESC")
        assert [int(row["ID"]) for row in top.collect()] == [ROWS, ROWS - 1, ROWS - 2]
        paged = table.select("ID").offset(990)
        self._pushed(paged, "PushedOffset: OFFSET 990")
        assert len(paged.collect()) == ROWS - 990

    def catalog(self) -> None:
        """Tables shown, described, made, changed and dropped through Spark's catalog."""
        run = self.spark.sql
        shown = [row["tableName"] for row in run("SHOW TABLES IN oracle.DEMO").collect()]
        assert "SPARK_READ" in shown, shown
        run("CREATE TABLE oracle.DEMO.SPARK_MADE (ID DECIMAL(10), V STRING)")
        run("INSERT INTO oracle.DEMO.SPARK_MADE VALUES (1, 'a'), (2, NULL)")
        run("ALTER TABLE oracle.DEMO.SPARK_MADE ADD COLUMNS (W DOUBLE)")
        run("ALTER TABLE oracle.DEMO.SPARK_MADE RENAME COLUMN V TO X")
        assert self.rows("SELECT ID, X, W FROM SPARK_MADE ORDER BY ID") == [(1, "a", None), (2, None, None)]  # fmt: skip
        run("ALTER TABLE oracle.DEMO.SPARK_MADE DROP COLUMN X")
        run("DROP TABLE oracle.DEMO.SPARK_MADE")
        assert self.rows("SELECT COUNT(*) FROM USER_TABLES WHERE TABLE_NAME = 'SPARK_MADE'") == [(0,)]  # fmt: skip

    def _frame(self, low: int, high: int) -> Any:
        from pyspark.sql import Row

        return self.spark.createDataFrame(
            [
                Row(
                    ID=at,
                    V=None if at % 5 == 0 else f"é{at}",
                    N=Decimal(at) / 4,
                    B=at % 2 == 0,
                    F=at / 8,
                    D=date(2024, 2, 29),
                    T=datetime(2024, 2, 29, 1, 2, 3, 456789),
                    R=bytes([at % 256]),
                )
                for at in range(low, high)
            ],
            "ID long, V string, N decimal(12,2), B boolean, F double, D date, T timestamp, R binary",
        )

    def write(self) -> None:
        """A table that Spark makes, appends to, truncates, and makes anew."""
        self.writer("SPARK_WRITTEN", "error", self._frame(0, 300), numPartitions="2", batchsize="70")  # fmt: skip
        first = self.rows('SELECT "ID", V, N, B, F, D, T, R FROM SPARK_WRITTEN ORDER BY ID')
        assert len(first) == 300, len(first)
        assert first[1][:5] == (1, "é1", 0.25, 0, 0.125), first[1]
        assert first[5][1] is None
        assert first[1][5] == datetime(2024, 2, 29), first[1]
        assert first[1][6] == datetime(2024, 2, 29, 1, 2, 3, 456789), first[1]
        kind = first[1][7]
        assert (kind.read() if hasattr(kind, "read") else kind) == b"\x01", first[1]
        self.writer("SPARK_WRITTEN", "append", self._frame(300, 310), isolationLevel="NONE")
        assert self.rows("SELECT COUNT(*) FROM SPARK_WRITTEN") == [(310,)]
        self.writer("SPARK_WRITTEN", "ignore", self._frame(0, 2))
        assert self.rows("SELECT COUNT(*) FROM SPARK_WRITTEN") == [(310,)]
        self.writer("SPARK_WRITTEN", "overwrite", self._frame(0, 20), truncate="true")
        assert self.rows("SELECT COUNT(*) FROM SPARK_WRITTEN") == [(20,)]
        self.writer("SPARK_WRITTEN", "overwrite", self._frame(0, 10), createTableColumnTypes="V VARCHAR(77)")  # fmt: skip
        assert self.rows(
            "SELECT COUNT(*), MAX((SELECT DATA_LENGTH FROM USER_TAB_COLUMNS WHERE TABLE_NAME = 'SPARK_WRITTEN' AND COLUMN_NAME = 'V'))"
            " FROM SPARK_WRITTEN"
        ) == [(10, 77)]

    def write_into_a_table_that_is_there(self) -> None:
        """Rows into a table of one's own with a key, and none of a partition's rows where one of them is refused."""
        self.owner.cursor().execute(
            "CREATE TABLE SPARK_OWN (ID NUMBER(10) PRIMARY KEY, V VARCHAR2(20), N NUMBER(12,2))"
        )
        frame = self._frame(0, 100).select("ID", "V", "N")
        self.writer("SPARK_OWN", "append", frame, batchsize="7")
        mine = sorted((int(row["ID"]), row["V"], float(row["N"])) for row in frame.collect())
        assert self.rows("SELECT ID, V, N FROM SPARK_OWN ORDER BY ID") == mine
        twice = self._frame(99, 120).select("ID", "V", "N").coalesce(1)
        with pytest.raises(Exception, match="ORA-00001"):
            self.writer("SPARK_OWN", "append", twice)
        assert self.rows("SELECT COUNT(*) FROM SPARK_OWN") == [(100,)]

    def read_and_write_back(self) -> None:
        """A table read in partitions and written into another, whole."""
        frame = self.reader(
            dbtable="SPARK_READ",
            partitionColumn="ID",
            lowerBound="1",
            upperBound=str(ROWS),
            numPartitions="3",
        ).load()
        self.owner.cursor().execute(
            "CREATE TABLE SPARK_COPY (ID NUMBER(10), V VARCHAR2(60), N NUMBER(12,2), F BINARY_DOUBLE, C CLOB)"
        )
        self.writer("SPARK_COPY", "append", frame.select("ID", "V", "N", "F", "C"))
        assert self.rows(
            "SELECT COUNT(*) FROM SPARK_COPY c JOIN SPARK_READ r ON r.ID = c.ID AND r.N = c.N AND r.F = c.F"
            " AND DBMS_LOB.COMPARE(c.C, r.C) = 0 AND (r.V = c.V OR r.V IS NULL AND c.V IS NULL)"
        ) == [(ROWS,)]

    def _pushed(self, frame: Any, *words: str) -> None:
        plan = str(frame._jdf.queryExecution().executedPlan().toString())
        plan += str(frame._jdf.queryExecution().explainString(_formatted(self.spark)))
        for word in words:
            assert word in plan, f"{word!r} is not in {' '.join(plan.split())[:1500]}"

    def named(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """The checks."""
        for check in (
            self.read, self.partitioned_read, self.predicates, self.query_and_prepared_query, self.pushed_filters,
            self.pushed_aggregates, self.pushed_limits, self.catalog, self.write, self.write_into_a_table_that_is_there,
            self.read_and_write_back,
        ):  # fmt: skip
            yield check.__name__.replace("_", " "), check


CHECKS = {
    "read", "partitioned read", "predicates", "query and prepared query", "pushed filters", "pushed aggregates", "pushed limits",
    "catalog", "write", "write into a table that is there", "read and write back",
}  # fmt: skip


def _formatted(spark: Any) -> Any:
    return spark._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted")


def main() -> None:
    """Make a table, run the checks against it, print them."""
    import oracledb

    jar, dsn, password = sys.argv[1:]
    options = {
        "url": f"jdbc:oracle:thin:@//{dsn}",
        "driver": "oracle.jdbc.OracleDriver",
        "user": "DEMO",
        "password": password,
        "fetchsize": "200",
    }
    with oracledb.connect(user="DEMO", password=password, dsn=dsn) as owner:
        owner.cursor().execute(_CREATED)
        owner.cursor().execute(_INSERTED)
        owner.commit()
        with _spark(jar, options) as spark:
            for name, check in Checks(spark, owner, options).named():
                try:
                    check()
                    result = "ok"
                except Exception as error:
                    result = f"{type(error).__name__}: {' '.join(str(error).split())[:1200]}"
                print(f"{name}\t{result}", flush=True)


if __name__ == "__main__":
    main()
