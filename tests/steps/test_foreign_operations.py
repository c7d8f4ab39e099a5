"""What does Redolake do after each operation of other people on its Delta tables? The table in docs/reference/other-writers.md.

Every case has a table of its own. All are captured by one source, one Spark does what the cases say, and one window follows for all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, QueryBuilder, write_deltalake
from deltalake.schema import PrimitiveType

from cdc_core.config import LakeConfig
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.lake.lake import Lake
from cdc_core.steps.source_checks import delta_findings
from tests.jvm import small_session
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import Source, source_of, table_id
from tests.steps.memory_lake import MemoryLake

pytestmark = pytest.mark.spark


class Fate(Enum):
    """What becomes of the table; the words of the docs page."""

    HARMLESS = "harmless"
    NAMED = "named"
    STOPPED = "stopped"
    REFUSED = "refused"


@dataclass
class Hands:
    """What somebody needs to work on one Delta table."""

    spark: Any
    layer: str
    path: Path

    @property
    def delta(self) -> DeltaTable:
        return DeltaTable(self.path)

    def sql(self, *statements: str) -> None:
        """Statements in which ``{t}`` is the table, ``{p}`` its folder, and ``{row}`` the captured row: in a change log, the one after
        the change."""
        row = "" if self.layer == "mirror" else "after."
        for statement in statements:
            self.spark.sql(
                statement.format(t=f"delta.`{self.path}`", p=self.path, row=row)
            ).collect()

    def arrow(self, **values: Any) -> pa.Table:
        """One row of the table's form, with these values and no others."""
        schema = pa.schema(self.delta.schema().to_arrow())
        return pa.Table.from_pylist([{**dict.fromkeys(schema.names), **values}], schema)


Doing = Callable[[Hands], object]


@dataclass(frozen=True)
class Case:
    """``says`` is part of the reason of a table that stopped, of what doctor finds, or of the refusal."""

    name: str
    layers: tuple[str, ...]
    do: Doing
    fate: Fate
    says: str = ""
    way_out: str = ""
    tells_of_both: bool = False


def sql(*statements: str) -> Doing:
    return lambda hands: hands.sql(*statements)


def alter(name: str, value: str) -> Doing:
    return sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{name}' = '{value}')")


M, C, BOTH = ("mirror",), ("changelog",), ("mirror", "changelog")
H, N, S, R = Fate.HARMLESS, Fate.NAMED, Fate.STOPPED, Fate.REFUSED


def restored(hands: Hands) -> None:
    hands.sql(f"RESTORE TABLE {{t}} TO VERSION AS OF {hands.delta.version() - 1}")


def restored_to_ours(hands: Hands) -> None:
    version = hands.delta.version()
    hands.sql("DELETE FROM {t}", f"RESTORE TABLE {{t}} TO VERSION AS OF {version}")


def cloned_back(hands: Hands) -> None:
    copy = hands.path.with_name(hands.path.name + "_copy")
    hands.sql(
        f"CREATE TABLE delta.`{copy}` SHALLOW CLONE {{t}}",
        f"CREATE OR REPLACE TABLE {{t}} SHALLOW CLONE delta.`{copy}`",
    )


def cloned(hands: Hands) -> None:
    copy = hands.path.with_name(hands.path.name + "_copy")
    hands.sql(f"CREATE TABLE delta.`{copy}` SHALLOW CLONE {{t}}", f"INSERT INTO delta.`{copy}` SELECT * FROM {{t}}")  # fmt: skip


def merged_schema(hands: Hands) -> None:
    row = hands.spark.read.format("delta").load(str(hands.path)).limit(1)
    extra = row.selectExpr("*", "'theirs' AS THEIRS")
    extra.write.format("delta").mode("append").option("mergeSchema", "true").save(str(hands.path))


def overwritten_schema(hands: Hands) -> None:
    row = hands.spark.read.format("delta").load(str(hands.path)).selectExpr("*", "'theirs' AS THEIRS")  # fmt: skip
    row.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(str(hands.path))  # fmt: skip


MAPPED = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
ICEBERG = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableIcebergCompatV2' = 'true')"

CASES = [
    Case("RESTORE", BOTH, restored, S, "(RESTORE)", "rebuild", tells_of_both=True),
    Case("RESTORE to ours", BOTH, restored_to_ours, H),
    Case("CREATE OR REPLACE", BOTH, sql("CREATE OR REPLACE TABLE {t} USING delta AS SELECT * FROM {t}"), S, "REPLACE", "rebuild"),
    Case("INSERT OVERWRITE", BOTH, sql("INSERT OVERWRITE {t} SELECT * FROM {t}"), S, "(WRITE)", "rebuild"),
    Case("overwriteSchema", BOTH, overwritten_schema, S, "(WRITE)", "rebuild"),
    Case("CLONE into it", BOTH, cloned_back, R, "NON_EMPTY_CLONE"),
    Case("TRUNCATE", BOTH, sql("TRUNCATE TABLE {t}"), S, "(TRUNCATE)", "rebuild"),
    Case("DELETE", BOTH, sql("DELETE FROM {t} WHERE {row}ID IN (0, 2)"), N, "DELETE"),
    Case("DELETE of all", BOTH, sql("DELETE FROM {t}"), N, "DELETE"),
    Case("INSERT", BOTH, sql("INSERT INTO {t} SELECT * FROM {t} LIMIT 1"), N, "WRITE"),
    Case("UPDATE", BOTH, sql("UPDATE {t} SET {row}NOTE = 'theirs' WHERE {row}ID IN (0, 10)"), N, "UPDATE"),
    Case("MERGE", BOTH, sql("MERGE INTO {t} t USING (SELECT 10 AS K) s ON t.{row}ID = s.K WHEN MATCHED THEN UPDATE SET {row}NOTE = 'theirs'"), N, "MERGE"),
    Case("mergeSchema", BOTH, merged_schema, N, "WRITE"),
    Case("OPTIMIZE", BOTH, sql("OPTIMIZE {t}"), H),
    Case("ZORDER", BOTH, sql("OPTIMIZE {t} ZORDER BY (_cdc_commit_scn)"), H),
    Case("VACUUM", BOTH, sql("VACUUM {t} RETAIN 168 HOURS"), H),
    Case("VACUUM LITE", BOTH, sql("VACUUM {t} LITE"), H),
    Case("REORG", BOTH, sql("REORG TABLE {t} APPLY (PURGE)"), H),
    Case("SHALLOW CLONE", BOTH, cloned, H),
    Case("CLUSTER BY", BOTH, sql("ALTER TABLE {t} CLUSTER BY (_cdc_commit_scn)", "OPTIMIZE {t}"), H),
    Case("ADD COLUMN", BOTH, sql("ALTER TABLE {t} ADD COLUMN THEIRS STRING"), H),
    Case("DROP COLUMN", BOTH, sql("ALTER TABLE {t} DROP COLUMN {row}NOTE"), R, "Column Mapping"),
    Case("RENAME COLUMN", BOTH, sql("ALTER TABLE {t} RENAME COLUMN {row}NOTE TO N2"), R, "Column Mapping"),
    Case("DROP COLUMN mapped M", M, sql(MAPPED, "ALTER TABLE {t} DROP COLUMN {row}NOTE"), S, "lacks", "table rebuild"),
    Case("DROP COLUMN mapped C", C, sql(MAPPED, "ALTER TABLE {t} DROP COLUMN {row}NOTE"), S, "altering a Delta table", "table rebuild --from-landing"),
    Case("RENAME COLUMN mapped M", M, sql(MAPPED, "ALTER TABLE {t} RENAME COLUMN {row}NOTE TO N2"), S, "lacks", "table rebuild"),
    Case("RENAME COLUMN mapped C", C, sql(MAPPED, "ALTER TABLE {t} RENAME COLUMN {row}NOTE TO N2"), S, "altering a Delta table", "table rebuild --from-landing"),
    Case("ALTER COLUMN order", BOTH, sql("ALTER TABLE {t} ALTER COLUMN {row}NOTE FIRST"), H),
    Case("ALTER COLUMN COMMENT", BOTH, sql("ALTER TABLE {t} ALTER COLUMN {row}NOTE COMMENT 'theirs'"), H),
    Case("COMMENT", BOTH, sql("COMMENT ON TABLE {t} IS 'theirs'"), H),
    Case("constraint kept", M, sql("ALTER TABLE {t} ADD CONSTRAINT kept CHECK (_cdc_commit_scn > 0)"), H),
    Case("constraint", C, sql("ALTER TABLE {t} ADD CONSTRAINT kept CHECK (_cdc_commit_scn > 0)"), S, "constraints, which Redolake cannot check", "DROP CONSTRAINT kept"),
    Case("constraint broken", M, sql("ALTER TABLE {t} ADD CONSTRAINT broken CHECK (coalesce({row}ID, 0) < 11)"), S, "constraint broken", "DROP CONSTRAINT broken"),
    Case("CONVERT", BOTH, sql("CONVERT TO DELTA parquet.`{p}`"), H),
    Case("deletion vectors", BOTH, alter("delta.enableDeletionVectors", "true"), H),
    Case("mapping", BOTH, sql(MAPPED), H),
    Case("change data", BOTH, alter("delta.enableChangeDataFeed", "true"), H),
    Case("times in commits", BOTH, alter("delta.enableInCommitTimestamps", "true"), H),
    Case("row tracking", BOTH, alter("delta.enableRowTracking", "true"), H, tells_of_both=True),
    Case("v2", BOTH, alter("delta.checkpointPolicy", "v2"), H),
    Case("widening M", M, alter("delta.enableTypeWidening", "true"), H),
    Case("widening C", C, alter("delta.enableTypeWidening", "true"), S, "typeWidening"),
    Case("iceberg", BOTH, sql(ICEBERG), H, tells_of_both=True),
    Case("append only M", M, alter("delta.appendOnly", "true"), S, "delta.appendOnly", "UNSET TBLPROPERTIES"),
    Case("append only C", C, alter("delta.appendOnly", "true"), H),
    Case("struct statistics", BOTH, sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpoint.writeStatsAsStruct' = 'true', 'delta.checkpoint.writeStatsAsJson' = 'false')"), H),
    Case("forgetting", BOTH, alter("delta.setTransactionRetentionDuration", "interval 1 hours"), S, "setTransactionRetentionDuration", "maintain"),
    Case("retention", BOTH, sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 9 days', 'delta.deletedFileRetentionDuration' = 'interval 9 days', 'delta.enableExpiredLogCleanup' = 'false')"), H),
    Case("tuning", BOTH, sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointInterval' = '1', 'delta.dataSkippingNumIndexedCols' = '1', 'delta.autoOptimize.optimizeWrite' = 'true', 'delta.autoOptimize.autoCompact' = 'true', 'delta.isolationLevel' = 'Serializable', 'delta.randomizeFilePrefixes' = 'true')"), H),
    Case("rs delete", M, lambda h: h.delta.delete('"ID" = 0'), N, "DELETE"),
    Case("rs delete of all", BOTH, lambda h: h.delta.delete(), N, "DELETE", tells_of_both=True),
    Case("rs update", M, lambda h: h.delta.update({"NOTE": "'theirs'"}, predicate='"ID" = 0'), N, "UPDATE"),
    Case("rs merge", M, lambda h: h.delta.merge(h.arrow(ID=0, NOTE="theirs"), 't."ID" = s."ID"', source_alias="s", target_alias="t").when_matched_update({"NOTE": 's."NOTE"'}).execute(), N, "MERGE"),
    Case("rs append", M, lambda h: write_deltalake(h.path, h.arrow(ID=77, NOTE="theirs"), mode="append"), N, "WRITE"),
    Case("rs add_columns", BOTH, lambda h: h.delta.alter.add_columns([Field("THEIRS", PrimitiveType("string"), nullable=True)]), H, tells_of_both=True),
    Case("rs add_constraint M", M, lambda h: h.delta.alter.add_constraint({"kept": "_cdc_commit_scn > 0"}), H),
    Case("rs add_constraint C", C, lambda h: h.delta.alter.add_constraint({"kept": "_cdc_commit_scn > 0"}), S, "cannot check", "DROP CONSTRAINT kept"),
    Case("rs repair", BOTH, lambda h: h.delta.repair(), H, tells_of_both=True),
]  # fmt: skip

TRIALS = {f"{case.name}-{layer}": (case, layer) for case in CASES for layer in case.layers}
SLOW = {
    *(f"{case.name}-changelog" for case in CASES if case.layers == BOTH and not case.tells_of_both),
    "VACUUM LITE-mirror",
    "SHALLOW CLONE-mirror",
}
"""Where the change log's fate is the mirror's, the mirror's tells most; and what takes Spark long."""
AFTER = [(0, "first"), (1, "ours"), (11, "ours")]


class SparkLake:
    """Delta tables in a folder; small mirrors are rewritten without Spark, as by default."""

    def open(self, config: LakeConfig, source: str) -> Lake:
        return DeltaLake(config, source)


@dataclass
class Outcome:
    """What was seen of one table: the refusal of the operation, doctor's findings before the next window, the table's state after it, and
    the mirror's rows in the end, where the hint was followed if there was one."""

    refusal: str = ""
    found: str = ""
    state: str = ""
    reason: str = ""
    way_out: str = ""
    rows: list[tuple[Any, ...]] = field(default_factory=list)


@pytest.fixture(scope="module")
def names(request: pytest.FixtureRequest) -> dict[str, str]:
    """Oracle's tables by trial, of those that are to run."""
    chosen = [getattr(one, "callspec", None) for one in request.session.items if one.path == request.path]  # fmt: skip
    trials = [spec.params["trial"] for spec in chosen if spec is not None]
    return {trial: f"T{number}" for number, trial in enumerate(trials)}


@pytest.fixture(scope="module")
def oracle(names: dict[str, str]) -> Iterator[Oracle]:
    with running_oracle() as running:
        for name in names.values():
            running.run(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, NOTE VARCHAR2(20))")
        change_all(running, names, "INSERT INTO {} SELECT LEVEL - 1, 'first' FROM DUAL CONNECT BY LEVEL < 4")  # fmt: skip
        yield running


def change_all(oracle: Oracle, names: dict[str, str], *statements: str) -> None:
    """The statements for each table, in one transaction."""
    with oracle.owner() as connection:
        for name in names.values():
            for statement in statements:
                connection.cursor().execute(statement.format(name))
        connection.commit()


def folder(source: Source, name: str, layer: str) -> Path:
    return Path(source.pipeline.config.lake.path) / "src" / layer / table_id(name).path


def rows(source: Source, name: str, spark: Any) -> list[tuple[Any, ...]]:
    """The mirror as delta-rs reads it, or Spark where delta-rs cannot."""
    path = folder(source, name, "mirror")
    if "typeWidening" in (DeltaTable(path).protocol().writer_features or ()):
        found = [tuple(one) for one in spark.read.format("delta").load(str(path)).select("ID", "NOTE").collect()]  # fmt: skip
    else:
        query = QueryBuilder().register("t", DeltaTable(path)).execute('SELECT "ID", "NOTE" FROM t')
        found = [tuple(one.values()) for one in pa.table(query.read_all()).to_pylist()]
    return sorted(found)


def mend(source: Source, name: str, hint: str, path: Path, spark: Any) -> None:
    """Do what the hint says; ``path`` is the Delta table that was touched."""
    table = table_id(name)
    if dropped := re.search(
        r"ALTER TABLE … (DROP CONSTRAINT \w+|UNSET TBLPROPERTIES \(.*?\))", hint
    ):
        spark.sql(f"ALTER TABLE delta.`{path}` {dropped[1]}")
    elif "redolake maintain --table" in hint:
        list(source.pipeline.maintain([table]))
    elif "Move the mirror's folder aside" in hint:
        path.rename(path.with_name(f"{name}_aside"))
        source.pipeline.rebuild_mirror(table)
    elif "table rebuild --from-landing" in hint:
        source.pipeline.rebuild_from_landing(table)
    elif "table rebuild" in hint:
        source.pipeline.rebuild_mirror(table)
    else:
        raise AssertionError(hint)
    source.pipeline.resume_tables([table])


@pytest.fixture(scope="module")
def outcomes(
    oracle: Oracle,
    names: dict[str, str],
    spark_process: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Outcome]]:
    found = {trial: Outcome() for trial in names}
    path = tmp_path_factory.mktemp("foreign")
    with source_of(oracle, path, *names.values()) as source:
        source.lake = cast("MemoryLake", SparkLake())
        source.run()
        change_all(oracle, names, "INSERT INTO {} VALUES (10, 'gone')", "DELETE FROM {} WHERE ID = 2")  # fmt: skip
        source.windows()
        spark = small_session(source.pipeline.config.lake)
        for trial, name in names.items():
            case, layer = TRIALS[trial]
            try:
                case.do(Hands(spark, layer, folder(source, name, layer)))
            except Exception as error:
                found[trial].refusal = str(error)
        source.close()
        findings, _tables = delta_findings(source.written())
        for trial, name in names.items():
            mine = [one for one in findings if one.table == table_id(name)]
            found[trial].found = " ".join(one.problem for one in mine)
        change_all(
            oracle, names, "UPDATE {} SET NOTE = 'ours' WHERE ID = 1", "DELETE FROM {} WHERE ID = 10", "INSERT INTO {} VALUES (11, 'ours')"
        )  # fmt: skip
        source.windows()
        for trial, name in names.items():
            outcome, record = found[trial], source.record(name)
            outcome.state, outcome.reason = record.state, record.reason or ""
            outcome.way_out = record.way_out or ""
            if record.state == "failed":
                mend(source, name, outcome.way_out, folder(source, name, TRIALS[trial][1]), spark)
        source.windows()
        for trial, name in names.items():
            found[trial].rows = rows(source, name, spark)
        yield found


@pytest.mark.parametrize(
    "trial",
    [pytest.param(one, marks=[pytest.mark.slow] if one in SLOW else [], id=one) for one in TRIALS],
)
def test_what_follows_an_operation_of_others(outcomes: dict[str, Outcome], trial: str) -> None:
    case, _layer = TRIALS[trial]
    seen = outcomes[trial]
    assert (case.says in seen.refusal) if case.fate is Fate.REFUSED else not seen.refusal
    assert (seen.state == "failed") is (case.fate is Fate.STOPPED)
    if case.fate is Fate.NAMED:
        assert case.says in seen.found
        assert {(1, "ours"), (11, "ours")} <= set(seen.rows)
        assert all(key != 10 for key, _note in seen.rows)
        return
    assert case.says in (seen.reason or seen.refusal)
    assert case.way_out in seen.way_out
    assert seen.rows == AFTER
    assert not seen.found or case.fate is Fate.STOPPED
