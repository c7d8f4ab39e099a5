"""`redolake row` shows the life of one row, and `redolake status --check` says in a line whether somebody must act."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cdc_core.steps import Pipeline
from pipelines.cli import app
from pipelines.commands import inspect
from pipelines.commands import row as command
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with

oracle = oracle_with(
    "CREATE TABLE T (NO NUMBER, DAY DATE, V VARCHAR2(20), D CLOB, PRIMARY KEY (NO, DAY))",
    "CREATE TABLE NAMED (NAME VARCHAR2(9) PRIMARY KEY, N NUMBER(9,2))",
    "INSERT INTO T VALUES (1, DATE '2024-01-01', 'old', NULL)",
)
RUNNER = CliRunner(env={"COLUMNS": "300", "NO_COLOR": "1"})


@pytest.fixture
def pipeline(oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pipeline]:
    tables = [
        {"name": "DEMO.T", "columns_as": {"NO": "decimal(38,0)"}},
        {"name": "DEMO.NAMED"},
    ]
    with Pipeline(oracle.config(tmp_path, tables=tables)) as opened:
        for module in (command, inspect):
            monkeypatch.setattr(module, "opened", lambda *_, **__: nullcontext(opened))
        list(opened.run_once())
        yield opened


def called(*words: str, code: int = 0) -> Result:
    result = RUNNER.invoke(app, list(words))
    assert result.exit_code == code, result.output
    return result


def test_the_life_of_a_row_from_snapshot_to_delete(oracle: Oracle, pipeline: Pipeline) -> None:
    oracle.run("UPDATE T SET V = 'new' WHERE NO = 1")
    oracle.run("INSERT INTO NAMED VALUES ('O''Hara', 1.50)")
    list(pipeline.run_once())
    lines = called("row", "DEMO.T", "1", "2024-01-01").stdout.splitlines()
    assert lines[0].split()[-1] == "read"
    assert lines[1].strip() == "NO 1, DAY 2024-01-01 00:00:00, V 'old'"
    assert "update" in lines[2]
    assert lines[2].endswith("DEMO")
    assert lines[3].strip() == "V 'old' → 'new'"
    assert lines[4] == "Mirror now: NO 1, DAY 2024-01-01 00:00:00, V 'new', D NULL"
    assert "NAME 'O'Hara', N 1.50" in called("row", "DEMO.NAMED", "O'Hara").stdout
    oracle.run("UPDATE T SET NO = 2", "DELETE FROM T")
    list(pipeline.run_once())
    after = called("row", "DEMO.T", "2", "2024-01-01").stdout
    assert "NO 1 → 2" in after
    assert "Mirror now: no such row; 2 changes in the change log" in after
    found = json.loads(called("row", "DEMO.T", "1", "2024-01-01", "--json").stdout)
    assert [one["op"] for one in found["changes"]] == ["r", "u", "u"]
    assert found["changes"][1]["after"] == {"V": "new"}
    assert found["mirror"] is None


def test_a_row_that_never_was(pipeline: Pipeline) -> None:
    assert "has a row with this key" in called("row", "DEMO.T", "9", "2024-01-01", code=1).stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["DEMO.T", "1"], "Give a value for each of: NO, DAY.", id="too-few"),
        pytest.param(["DEMO.T", "x", "2024-01-01"], "NO is of type decimal128(38, 0)", id="type"),
        pytest.param(["DEMO.OTHER", "1"], "It has: DEMO.NAMED, DEMO.T.", id="table"),
    ],
)
def test_a_key_that_is_none_is_told(pipeline: Pipeline, words: list[str], said: str) -> None:
    assert said in called("row", *words, code=2).stderr


def test_a_check_is_one_line_and_an_exit_code(oracle: Oracle, pipeline: Pipeline) -> None:
    assert called("status", "--check").stdout.startswith("src OK: 2 tables")
    oracle.run("DROP TABLE NAMED")
    oracle.run("UPDATE T SET V = 'x'")
    list(pipeline.run_once())
    [line] = called("status", "--check", code=2).stdout.splitlines()
    assert line.startswith("src ERROR: DEMO.NAMED left the stream: ")
