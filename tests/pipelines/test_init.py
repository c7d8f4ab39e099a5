"""``redolake init`` against a live database: what it finds, what it leaves out, and that the result is a configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.config_file import load_config
from tests.oracle.embedded import Oracle, running_oracle

PASSWORD = "INIT_PASSWORD"


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with running_oracle() as running:
        running.run(
            "CREATE TABLE ORDERS (ID NUMBER(9) PRIMARY KEY, NOTE VARCHAR2(20), SCAN BLOB)",
            'CREATE TABLE "Order Lines" (ORDER_ID NUMBER(9), LINE NUMBER(4), PRIMARY KEY (ORDER_ID, LINE))',
            "CREATE TABLE KEYLESS (ID NUMBER(9))",
            "CREATE TABLE CUSTOMERS (ID NUMBER(9) PRIMARY KEY)",
        )
        yield running


def init(oracle: Oracle, file: Path, *patterns: str, **env: str) -> Any:
    arguments = ["init", "--dsn", oracle.server.dsn, "--user", "C##REDOLAKE", "--name", "shop"]
    arguments += ["--password-env", PASSWORD, "--file", str(file)]
    for pattern in patterns:
        arguments += ["--table", pattern]
    env = {PASSWORD: "capture", "COLUMNS": "200", "NO_COLOR": "1"} | env
    return CliRunner(env=env).invoke(app, arguments)


def test_tables_by_pattern_with_keys_and_what_is_left_out(oracle: Oracle, tmp_path: Path) -> None:
    file = tmp_path / "defs" / "defs.yaml"
    result = init(oracle, file, "demo.ord*", 'DEMO."Order*"', "DEMO.K*")
    assert result.exit_code == 0, result.output
    assert "2 tables written" in result.stdout
    assert "Left out: DEMO.KEYLESS: the table has no primary key" in result.stdout
    config = load_config(file, environ={PASSWORD: "capture"})
    assert {str(one.table): one.columns_exclude for one in config.tables} == {
        "DEMO.ORDERS": ("SCAN",),
        "DEMO.Order Lines": (),
    }
    text = file.read_text()
    assert "# key ORDER_ID, LINE" in text
    assert "#   DEMO.KEYLESS: the table has no primary key" in text
    assert "capture" not in text.replace("captured", "")
    again = init(oracle, file, "DEMO.*")
    assert again.exit_code == 2
    assert "this file is there already" in again.stderr


@pytest.mark.parametrize(
    ("patterns", "env", "said"),
    [
        pytest.param(["DEMO.NOTHING*"], {}, "no table that can be captured matches", id="nothing"),
        pytest.param(["DEMO.KEYLESS"], {}, "DEMO.KEYLESS: the table has no primary", id="useless"),
        pytest.param(["ORDERS"], {}, "a pattern needs the owner too", id="no-owner"),
        pytest.param(
            ["DEMO.*"], {PASSWORD: "wrong"}, "refused user name or password", id="password"
        ),
    ],
)
def test_what_cannot_be_done_is_told(
    oracle: Oracle, tmp_path: Path, patterns: list[str], env: dict[str, str], said: str
) -> None:
    result = init(oracle, tmp_path / "defs.yaml", *patterns, **env)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not (tmp_path / "defs.yaml").exists()
