"""Tables have names in a Hive metastore: shown, described and queried there, through DDL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pydantic import ValidationError

from cdc_core.config import LakeConfig, SourceConfig
from cdc_core.errors import ConfigError
from cdc_core.spark.session import stop_spark
from cdc_core.steps import Pipeline
from oracle_embedded.database import ADMIN
from tests.jvm import small_session
from tests.oracle.embedded import OWNER, Oracle, running_oracle

SCHEMA = OWNER.lower()
VIEWS = "src_current"
"""Where a source's current views are."""


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    with running_oracle() as running:
        running.run(
            "CREATE TABLE ORDERS (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
            "COMMENT ON TABLE ORDERS IS 'Orders of customers'",
            "COMMENT ON COLUMN ORDERS.V IS 'What the customer''s order says'",
            "INSERT INTO ORDERS VALUES (1, 'first')",
            "CREATE TABLE OTHER (ID NUMBER(9) PRIMARY KEY)",
        )
        yield running


@pytest.fixture(scope="module")
def metastore(
    tmp_path_factory: pytest.TempPathFactory, spark_process: None
) -> Iterator[dict[str, str]]:
    """Spark's settings for a metastore of its own; a JVM has one for life."""
    stop_spark()
    folder = tmp_path_factory.mktemp("hive")
    metastore = f"jdbc:derby:;databaseName={folder / 'metastore'};create=true"
    yield {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": metastore,
        "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
        "spark.hadoop.hive.metastore.schema.verification": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dderby.stream.error.file={folder / 'derby.log'}",
    }
    stop_spark()


@pytest.fixture
def hive(metastore: dict[str, str], tmp_path: Path) -> Iterator[dict[str, str]]:
    """The same, without the names of other tests."""
    yield metastore
    lake = LakeConfig(path=str(tmp_path / "lake"), driver_memory="1g", spark_config=metastore)
    for schema in (SCHEMA, VIEWS):
        small_session(lake).sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


def _config(oracle: Oracle, path: Path, *tables: str, **lake: Any) -> SourceConfig:
    catalog = {"changelog_name": "{owner_lower}.{table_lower}_changes"}
    return oracle.config(path, *(tables or ("ORDERS",)), lake={"catalog": catalog, **lake})


def _rows(config: SourceConfig, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in small_session(config.lake).sql(sql).collect()]


def _window(oracle: Oracle, pipeline: Pipeline, *statements: str) -> None:
    oracle.run(*statements)
    oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
    list(pipeline.run_once())


def test_tables_are_named_and_followed(
    oracle: Oracle, hive: dict[str, str], tmp_path: Path
) -> None:
    config = _config(oracle, tmp_path, "ORDERS", "OTHER", spark_config=hive)
    with Pipeline(config) as pipeline:
        list(pipeline.run_once())
        found = {str(one.table): one.names for one in pipeline.register_tables()}
        assert found[f"{OWNER}.ORDERS"] == (
            f"spark_catalog.{SCHEMA}.orders",
            f"{SCHEMA}.orders_changes",
        )
        assert list(pipeline.register_tables()) == [], "nothing is new"
        assert list(pipeline.register_tables(looks_at_all=True)) == []
        _rows(config, f"DROP TABLE {SCHEMA}.orders")
        assert list(pipeline.register_tables()) == [], "the catalog is not asked"
        [back] = pipeline.register_tables(looks_at_all=True)
        assert str(back.table) == f"{OWNER}.ORDERS"
        shown = {row[1] for row in _rows(config, f"SHOW TABLES IN {SCHEMA}")}
        assert shown == {"orders", "orders_changes", "other", "other_changes"}
        described = _rows(config, f"DESCRIBE EXTENDED {SCHEMA}.orders")
        assert ("V", "string", "VARCHAR2(20): What the customer's order says") in described
        assert ("Comment", "Orders of customers", "") in described
        properties = dict(_rows(config, f"SHOW TBLPROPERTIES {SCHEMA}.orders"))
        assert (properties["redolake.source"], properties["redolake.key"]) == ("src", '["ID"]')
        _window(
            oracle,
            pipeline,
            "ALTER TABLE ORDERS ADD (W NUMBER(5))",
            "ALTER TABLE ORDERS RENAME COLUMN V TO TEXT",
            "COMMENT ON COLUMN ORDERS.W IS 'Weight in grams'",
            "INSERT INTO ORDERS VALUES (2, 'second', 7)",
        )
        assert [one.names[0] for one in pipeline.register_tables()] == [
            f"spark_catalog.{SCHEMA}.orders"
        ]
        queried = f"SELECT ID, TEXT, W FROM {SCHEMA}.orders ORDER BY ID"
        assert _rows(config, queried) == [(1, "first", None), (2, "second", 7)]
        described = _rows(config, f"DESCRIBE {SCHEMA}.orders")
        assert ("W", "bigint", "NUMBER(5,0): Weight in grams") in described
        assert ("TEXT", "string", "VARCHAR2(20): What the customer's order says") in described
        assert [one.differences for one in pipeline.reconcile().tables] == [0, 0]
        _window(oracle, pipeline, "UPDATE ORDERS SET W = 8 WHERE ID = 2")
        assert _rows(config, f"SELECT W FROM {SCHEMA}.orders WHERE ID = 2") == [(8,)]
    fewer = _config(oracle, tmp_path, spark_config=hive)
    with Pipeline(fewer) as pipeline:
        list(pipeline.run_once())
        assert list(pipeline.register_tables()) == []
    assert _rows(config, f"SELECT count(*) FROM {SCHEMA}.other") == [(0,)], "it stays where it is"


def test_a_name_of_somebody_else_is_left_alone(
    oracle: Oracle, hive: dict[str, str], tmp_path: Path
) -> None:
    config = _config(oracle, tmp_path, spark_config=hive)
    _rows(config, f"CREATE SCHEMA {SCHEMA}")
    _rows(config, f"CREATE TABLE {SCHEMA}.orders (A INT) USING delta")
    with Pipeline(config) as pipeline:
        list(pipeline.run_once())
        [refused] = pipeline.register_tables()
        assert "another table under this name" in (refused.failed or "")
        _rows(config, f"DROP TABLE {SCHEMA}.orders")
        assert [one.failed for one in pipeline.register_tables()] == [None]
        version = DeltaTable(str(tmp_path / "lake/src/mirror/demo.orders")).version()
    (tmp_path / "lake" / "src" / "catalog.json").unlink()
    with Pipeline(config) as pipeline:
        assert [one.failed for one in pipeline.register_tables()] == [None], "registered again"
    assert DeltaTable(str(tmp_path / "lake/src/mirror/demo.orders")).version() == version
    moved = _config(oracle, tmp_path, spark_config=hive, mirror_path="now/{table}")
    (tmp_path / "lake" / "now").mkdir()
    (tmp_path / "lake/src/mirror/demo.orders").rename(tmp_path / "lake/now/ORDERS")
    with Pipeline(moved) as pipeline:
        assert [one.failed for one in pipeline.register_tables()] == [None]
    assert _rows(moved, f"SELECT V FROM {SCHEMA}.orders") == [("first",)]


def test_current_views_are_there_for_the_next_session(
    oracle: Oracle, hive: dict[str, str], tmp_path: Path
) -> None:
    """In a metastore, which the catalog of Spark's own would not be."""
    views = {"current_views": {"spark": True}}
    config = _config(oracle, tmp_path, "ORDERS", "OTHER", spark_config=hive, **views)
    with Pipeline(config) as pipeline:
        list(pipeline.run_once())
        cut = pipeline.keep_current_views()
        assert cut is not None
        assert cut.scn == pipeline.cut_at().scn
    found = {row[1] for row in _rows(config, f"SHOW VIEWS IN {VIEWS}")}
    assert found == {"demo_orders", "demo_other"}
    assert _rows(config, f"SELECT V FROM {VIEWS}.demo_orders") == [("first",)]
    assert _rows(config, f"SELECT COUNT(*) FROM {VIEWS}.demo_other") == [(0,)]


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("{table}", "not the name of a table"),
        ("a.b.c.{table}", "not the name of a table"),
        ("a.{tabel}", "no field {tabel}"),
        ("a-b.{table}", "not the name of a table"),
        ("{catalog}.{owner}", "all tables alike"),
    ],
)
def test_a_template_that_is_no_name_is_refused(template: str, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        LakeConfig.model_validate({"path": "/l", "catalog": {"mirror_name": template}})


def test_tables_of_one_name_are_told_apart(oracle: Oracle, tmp_path: Path) -> None:
    catalog = {"mirror_name": "all.{table_lower}"}
    with Pipeline(_config(oracle, tmp_path, catalog=catalog)) as pipeline:
        assert pipeline.config.lake.catalog is not None
        assert list(pipeline.register_tables()) == [], "there are no Delta tables yet"
    with (
        Pipeline(_config(oracle, tmp_path, catalog=None)) as pipeline,
        pytest.raises(ConfigError, match="no catalog is configured"),
    ):
        list(pipeline.register_tables())
