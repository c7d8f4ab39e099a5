"""Templates say where the Delta tables are, and everything that looks for them follows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pydantic import ValidationError

from cdc_core.config import SourceConfig
from cdc_core.delta.history import read_log
from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from cdc_core.steps import Pipeline
from cdc_core.steps.delta_logs import delta_rows
from redolake.reader import open as open_lake
from tests.oracle.embedded import OWNER, Oracle
from tests.oracle.fixtures import oracle_with
from tests.reader.test_reader import _window

ORDERS = TableId(OWNER, "ORDERS")
LAKE = {
    "mirror_path": "bronze/{owner}/{table_lower}",
    "changelog_path": "logs/{source}/{table}",
    "history_path": "states/{table_lower}-{digest}",
    "history": "scd2",
}


oracle = oracle_with(
    "CREATE TABLE ORDERS (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    "INSERT INTO ORDERS VALUES (1, 'first')",
)


def _config(oracle: Oracle, path: Path, *tables: str, **lake: str) -> SourceConfig:
    return oracle.config(path, *(tables or ("ORDERS",)), lake=lake)


@pytest.mark.spark
def test_all_that_looks_for_tables_follows_the_templates(
    oracle: Oracle, tmp_path: Path, spark_process: None
) -> None:
    config, lake = _config(oracle, tmp_path, **LAKE), tmp_path / "lake"
    with Pipeline(config) as pipeline:
        list(pipeline.run_once())
        _window(oracle, pipeline, "UPDATE ORDERS SET V = 'second'")
        list(pipeline.keep_history())
        pipeline.replay_window(pipeline.records.windows(newest_first=True, limit=1)[0].window)
        list(pipeline.maintain())
        [cut] = pipeline.cut_at().tables
        assert cut.path == str(lake / "bronze" / OWNER / "orders")
        assert [one.differences for one in pipeline.reconcile().tables] == [0]
    assert not list(lake.glob("src/*/*/_delta_log"))
    assert delta_rows(config, "changelog", ORDERS) == 2
    assert len(list(lake.glob("states/orders-*/_delta_log"))) == 1
    table = open_lake(lake).table(f"{OWNER}.ORDERS")
    assert open_lake(lake).at().table(table.name).to_arrow()["V"].to_pylist() == ["second"]
    assert sorted(table.changes().to_arrow()["_cdc_op"].to_pylist()) == ["r", "u"]
    assert table.changelog == "logs/src/ORDERS"


def test_a_template_that_changes_asks_for_the_folders(oracle: Oracle, tmp_path: Path) -> None:
    with Pipeline(_config(oracle, tmp_path)) as pipeline:
        list(pipeline.run_once())
    lake, moved = tmp_path / "lake", _config(oracle, tmp_path, mirror_path="now/{table}")
    with Pipeline(moved) as pipeline, pytest.raises(ConfigError, match="move these") as caught:
        list(pipeline.run_once())
    assert caught.value.problems == (f"src/mirror/{ORDERS.path} → now/ORDERS",)
    (lake / "now").mkdir()
    shutil.move(lake / "src" / "mirror" / ORDERS.path, lake / "now" / "ORDERS")
    with Pipeline(moved) as pipeline:
        _window(oracle, pipeline, "UPDATE ORDERS SET V = 'moved'")
    cut = open_lake(lake).at()
    assert cut.table(f"{OWNER}.ORDERS").to_arrow()["V"].to_pylist() == ["moved"]


def test_a_folder_of_another_table_is_left_alone(oracle: Oracle, tmp_path: Path) -> None:
    oracle.run("CREATE TABLE OTHER (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO OTHER VALUES (1)")
    with Pipeline(_config(oracle, tmp_path)) as pipeline:
        list(pipeline.run_once())
    there = {"mirror_path": f"src/mirror/{ORDERS.path[:-6]}{{table_lower}}"}
    shutil.move(tmp_path / "lake/src/mirror" / ORDERS.path, tmp_path / "lake/src/mirror/demo.other")
    with Pipeline(_config(oracle, tmp_path, "OTHER", **there)) as pipeline:
        list(pipeline.run_once())
        record = pipeline.table_record(TableId(OWNER, "OTHER"))
    assert (record.state, "another table's" in (record.reason or "")) == ("failed", True)
    assert read_log(str(tmp_path / "lake/src/mirror/demo.other")) is not None


def test_a_history_of_another_source_is_left_alone(oracle: Oracle, tmp_path: Path) -> None:
    """Two sources of one lake, whose template names neither."""
    lake = {"history_path": "states/{table_lower}", "history": "scd2"}
    with Pipeline(_config(oracle, tmp_path, **lake)) as pipeline:
        list(pipeline.run_once())
        assert [one.failed for one in pipeline.keep_history()] == [None]
    there = read_log(str(tmp_path / "lake" / "states" / "orders"))
    other = oracle.config(
        tmp_path / "other", "ORDERS", lake={"path": str(tmp_path / "lake"), **lake}
    )
    with Pipeline(other.model_copy(update={"name": "other"})) as pipeline:
        list(pipeline.run_once())
        [kept] = pipeline.keep_history()
    assert "another table's Delta table" in (kept.failed or "")
    now = read_log(str(tmp_path / "lake" / "states" / "orders"))
    assert there is not None
    assert now is not None
    assert now.version == there.version


def test_a_template_of_histories_that_changes_begins_no_second_one(
    oracle: Oracle, tmp_path: Path
) -> None:
    with Pipeline(_config(oracle, tmp_path, history="scd2")) as pipeline:
        list(pipeline.run_once())
        list(pipeline.keep_history())
    moved = _config(oracle, tmp_path, history="scd2", history_path="states/{table}")
    with Pipeline(moved) as pipeline, pytest.raises(ConfigError, match="move these"):
        list(pipeline.keep_history())
    assert not (tmp_path / "lake" / "states").exists()


def test_tables_of_one_folder_are_refused_or_left_out(oracle: Oracle, tmp_path: Path) -> None:
    oracle.run(
        'CREATE TABLE "Twin" (ID NUMBER(9) PRIMARY KEY)',
        'CREATE TABLE "twin" (ID NUMBER(9) PRIMARY KEY)',
    )
    with pytest.raises(ValidationError, match="would share folders"):
        _config(oracle, tmp_path, '"Twin"', '"twin"')
    with Pipeline(_config(oracle, tmp_path, "*")) as pipeline:
        found = {one.table.name: one.left_out for one in pipeline.find_tables()}
    assert (found["Twin"], found["ORDERS"]) == ("", "")
    assert "name {digest}" in found["twin"]
