"""Views of the newest consistent cut follow what is applied, in DuckDB and in a catalog of Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

from cdc_core.config import SourceConfig
from cdc_core.errors import ConfigError, LakeError
from cdc_core.steps import Pipeline
from pipelines.cli import app
from pipelines.commands.data import _keep_views
from tests.oracle.embedded import Oracle, running_oracle


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    """Two tables of which each transaction changes both."""
    with running_oracle() as oracle:
        for name in ("ONE", "TWO"):
            oracle.run(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, N NUMBER(9))")
        move(oracle, 0)
        yield oracle


def move(oracle: Oracle, number: int) -> None:
    oracle.run(*(f"INSERT INTO {name} VALUES ({number}, {number})" for name in ("ONE", "TWO")))


def both(database: Any) -> Any:
    [found] = database.execute(
        "SELECT (SELECT COUNT(*) FROM demo_one), (SELECT COUNT(*) FROM demo_two)"
    ).fetchall()
    return found


def test_views_in_duckdb_follow_each_round_and_let_readers_finish(
    oracle: Oracle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever has the file open keeps the moment that it has; where no mirror is exact yet, the round counts."""
    file = tmp_path / "current.duckdb"
    lake = {"path": str(tmp_path / "lake"), "current_views": {"duckdb": str(file)}}
    with Pipeline(oracle.config(tmp_path, "ONE", "TWO", lake=lake)) as pipeline:
        _keep_views(pipeline)
        assert "no views yet" in capsys.readouterr().out
        assert not file.exists()
        list(pipeline.run_once())
        _keep_views(pipeline)
        with duckdb.connect(str(file), read_only=True) as reader:
            assert both(reader) == (1, 1)
            move(oracle, 1)
            list(pipeline.run_once())
            cut = pipeline.keep_current_views()
            assert cut is not None
            assert [one.table for one in cut.tables] == ["DEMO.ONE", "DEMO.TWO"]
            assert both(reader) == (1, 1)
        with duckdb.connect(str(file), read_only=True) as newer:
            assert both(newer) == (2, 2)
        assert [one.name for one in tmp_path.glob("current*")] == [file.name]


def written(config: SourceConfig, folder: Path) -> Path:
    """The file of a source's configuration."""
    given = json.loads(config.model_dump_json(exclude_unset=True))
    del given["oracle"]["password"]
    given["oracle"]["password_env"] = "PASSWORD"
    file = folder / "defs.yaml"
    file.write_text(json.dumps({"type": "assets.components.OracleCdc", "attributes": given}))
    return file


def test_a_file_of_views_that_cannot_be_made_is_an_error_that_says_so(
    oracle: Oracle, tmp_path: Path
) -> None:
    """It is a folder, or DuckDB cannot read a mirror: what was there before stays, the changes are
    applied, and the exit code says that something is left."""
    file = tmp_path / "current.duckdb"
    lake = {"path": str(tmp_path / "lake"), "current_views": {"duckdb": str(file)}}
    with Pipeline(oracle.config(tmp_path, "ONE", "TWO", lake=lake)) as pipeline:
        list(pipeline.run_once())
        (file / "taken").mkdir(parents=True)
        move(oracle, 1)
        command = ["run", "--config", str(written(pipeline.config, tmp_path))]
        environ = {"PASSWORD": pipeline.config.oracle.password.get_secret_value()}
        result = CliRunner(env=environ).invoke(app, command)
        assert result.exit_code == 1
        assert "the views are as they were" in result.stdout
        with pytest.raises(ConfigError, match="cannot be written"):
            pipeline.keep_current_views()
        cut = pipeline.cut_at()
        for one in Path(cut.tables[0].path).rglob("*.parquet"):
            one.unlink()
        with pytest.raises(LakeError, match="cannot read a mirror") as refused:
            pipeline.keep_current_views()
        assert refused.value.facts["table"] == "DEMO.ONE"
        assert [one.name for one in tmp_path.glob("current*")] == [file.name]


@pytest.mark.spark
def test_a_catalog_that_forgets_its_views_is_refused(
    oracle: Oracle, tmp_path: Path, spark_process: None
) -> None:
    """Those in a metastore are in tests/lake/test_catalog.py."""
    lake = {"path": str(tmp_path / "lake"), "driver_memory": "1g", "current_views": {"spark": True}}
    with Pipeline(oracle.config(tmp_path, "ONE", "TWO", lake=lake)) as pipeline:
        list(pipeline.run_once())
        with pytest.raises(ConfigError, match="forgets its views"):
            pipeline.keep_current_views()
