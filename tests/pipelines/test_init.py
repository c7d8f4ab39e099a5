"""``redolake init`` against a live database: what it finds, what it leaves out, and that the result is a configuration."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.config_file import load_config
from tests.oracle.embedded import Oracle, running_oracle
from tests.oracle.fixtures import oracle_with

PASSWORD = "INIT_PASSWORD"

oracle = oracle_with(
    "CREATE TABLE ORDERS (ID NUMBER(9) PRIMARY KEY, NOTE VARCHAR2(20), SCAN LONG)",
    'CREATE TABLE "Order Lines" (ORDER_ID NUMBER(9), LINE NUMBER(4), PRIMARY KEY (ORDER_ID, LINE))',
    "CREATE TABLE KEYLESS (ID NUMBER(9))",
    "CREATE TABLE CUSTOMERS (ID NUMBER(9) PRIMARY KEY)",
    scope="module",
)


def init(oracle: Oracle, file: Path, *patterns: str, extra: Sequence[str] = (), **env: str) -> Any:
    arguments = ["init", "--dsn", oracle.server.dsn, "--user", "C##REDOLAKE", "--name", "shop"]
    arguments += ["--password-env", PASSWORD, "--file", str(file)]
    arguments += extra
    for pattern in patterns:
        arguments += ["--table", pattern]
    env = {PASSWORD: "capture", "COLUMNS": "80", "NO_COLOR": "1"} | env
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
        'DEMO."Order Lines"': (),
    }
    text = file.read_text()
    assert "# key ORDER_ID, LINE" in text
    assert "#   DEMO.KEYLESS: the table has no primary key" in text
    assert "set identity: rowid in the table's own entry" in text
    assert "capture" not in text.replace("captured", "")
    again = init(oracle, file, "DEMO.*")
    assert again.exit_code == 2
    assert "this file already exists" in again.stderr


@pytest.mark.parametrize(
    ("given", "capture", "writer"),
    [
        pytest.param(
            "/data/olr", {"folder": "/data/olr"},
            {"type": "file", "output": "/data/olr/changes_%i.json", "new-line": 1},
            id="files",
        ),
        pytest.param(
            "s3://bucket/olr", {"folder": "s3://bucket/olr"},
            {"type": "file", "output": "/data/olr/changes_%i.json", "max-file-size": 64_000_000},
            id="objects",
        ),
        pytest.param(
            "olr.example.com:8600", {"host": "olr.example.com", "port": 8600, "source": "SHOP", "queue_size": 1_000_000},
            {"type": "network", "uri": "0.0.0.0:8600", "queue-size": 1_000_000},
            id="network",
        ),
    ],
)  # fmt: skip
def test_openlogreplicators_configuration_is_written_too(
    oracle: Oracle, tmp_path: Path, given: str, capture: dict[str, Any], writer: dict[str, Any]
) -> None:
    """With the captured tables alone, and the format that Redolake reads; no secret is in it."""
    file = tmp_path / "defs.yaml"
    result = init(oracle, file, "DEMO.*", extra=["--openlogreplicator", given])
    assert result.exit_code == 0, result.output
    config = load_config(file, environ={PASSWORD: "capture"})
    assert config.capture.type == "openlogreplicator"
    assert {name: getattr(config.capture, name) for name in capture} == capture
    text = (tmp_path / "defs.openlogreplicator.json").read_text()
    made = json.loads(text)
    [source], [target] = made["source"], made["target"]
    assert (source["flags"], source["format"]["type"]) == (4128, "debezium")
    assert source["name"] == "SHOP"
    assert {one["table"] for one in source["filter"]["table"]} == {
        "ORDERS", r"Order\ Lines", "CUSTOMERS",
    }  # fmt: skip
    assert target["writer"] | writer == target["writer"]
    assert source["reader"]["password"] == ""


@pytest.mark.parametrize(("given", "key"), [("/data/lcrs", "folder"), ("XOUT", "server")])
def test_a_source_on_xstream(oracle: Oracle, tmp_path: Path, given: str, key: str) -> None:
    file = tmp_path / "defs.yaml"
    result = init(oracle, file, "DEMO.*", extra=["--xstream", given])
    assert result.exit_code == 0, result.output
    capture = load_config(file, environ={PASSWORD: "capture"}).capture
    assert (capture.type, getattr(capture, key)) == ("xstream", given)


def test_the_patterns_themselves_can_be_written(oracle: Oracle, tmp_path: Path) -> None:
    """What they name is then looked up by every run; the file says what that is now."""
    file = tmp_path / "defs.yaml"
    result = init(oracle, file, "demo.c*", "DEMO.K*", "DEMO.ORDERS", extra=["--as-patterns"])
    assert result.exit_code == 0, result.output
    assert "by their patterns" in result.stdout
    config = load_config(file, environ={PASSWORD: "capture"})
    assert [(one.name, one.is_pattern, one.columns_exclude) for one in config.tables] == [
        ("demo.c*", True, ()),
        ("DEMO.K*", True, ()),
        ("DEMO.ORDERS", False, ("SCAN",)),
    ]
    text = file.read_text()
    assert "#   DEMO.CUSTOMERS: key ID" in text
    assert "#   DEMO.KEYLESS: the table has no primary key" in text


def test_what_patterns_name_is_shown_by_a_command(oracle: Oracle, tmp_path: Path) -> None:
    file = tmp_path / "defs.yaml"
    init(oracle, file, "DEMO.O*", "DEMO.K*", extra=["--as-patterns"])
    runner = CliRunner(env={PASSWORD: "capture", "COLUMNS": "80", "NO_COLOR": "1"})
    result = runner.invoke(app, ["table", "find", "--config", str(file)])
    assert result.exit_code == 0, result.output
    assert "DEMO.ORDERS: captured without SCAN" in result.stdout
    assert "DEMO.KEYLESS: left out: the table has no primary key" in result.stdout
    found = runner.invoke(app, ["table", "find", "--json", "--config", str(file)])
    assert {"table": "DEMO.ORDERS", "columns_exclude": ["SCAN"], "left_out": None} in json.loads(
        found.stdout
    )
    doctor = runner.invoke(app, ["doctor", "--config", str(file)])
    assert "left out by its pattern: the table has no primary key" in doctor.stdout
    assert "identity: rowid" in " ".join(doctor.stdout.split()), "wrapped to the terminal"


@pytest.mark.parametrize(
    ("patterns", "env", "said"),
    [
        pytest.param(["DEMO.NOTHING*"], {}, "no table that can be captured matches", id="nothing"),
        pytest.param(["DEMO.KEYLESS"], {}, "DEMO.KEYLESS: the table has no primary", id="useless"),
        pytest.param(["ORDERS"], {}, "not a table name or a pattern", id="no-owner"),
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


def test_numbers_without_precision_get_a_form(oracle: Oracle, tmp_path: Path) -> None:
    """Keys of whole numbers are held as decimals; other numbers stay text, each with a form as a
    comment."""
    oracle.run(
        "CREATE TABLE SALES (SALE_NO NUMBER PRIMARY KEY, PRICE NUMBER, QTY NUMBER, ODD NUMBER, NONE NUMBER)",
        "INSERT INTO SALES VALUES (1, 2.5, 3, 1/3, NULL)",
        "INSERT INTO SALES VALUES (2, 7.125, 4, 2, NULL)",
        "CREATE TABLE PARTS (ID NUMBER PRIMARY KEY, SALE NUMBER REFERENCES SALES (SALE_NO))",
        "INSERT INTO PARTS VALUES (1.5, 1)",
    )
    file = tmp_path / "defs.yaml"
    result = init(oracle, file, "DEMO.SALES", "DEMO.PARTS")
    assert result.exit_code == 0, result.output
    config = load_config(file, environ={PASSWORD: "capture"})
    assert {str(one.table): one.columns_as for one in config.tables} == {
        "DEMO.PARTS": {"SALE": "decimal(38,0)"},
        "DEMO.SALES": {"SALE_NO": "decimal(38,0)"},
    }
    lines = [line.strip() for line in file.read_text().splitlines()]
    assert "'SALE_NO': 'decimal(38,0)'  # a key, only whole numbers in 2 values" in lines
    for line in (
        "#   'PRICE': 'decimal(38,4)'  # no more than 4 decimal places in 2 values; a value that does not fit stops the table",
        "#   'ODD': 'double'  # more digits than a decimal holds in 2 values; a double rounds",
        "#   'NONE': 'decimal(38,0)'  # no value yet; a value that does not fit stops the table",
        "#   'ID': 'decimal(38,2)'  # a key, no more than 2 decimal places in 1 value; a value that does not fit stops the table",
    ):
        assert line in lines, file.read_text()
    said = " ".join(result.stdout.split())
    assert "First snapshot: about 3 rows" in said
    assert "2 key columns of type NUMBER without precision" in said
    assert "5 NUMBER columns without precision will be text" in said


def test_the_doctor_warns_of_keys_that_will_be_text(oracle: Oracle, tmp_path: Path) -> None:
    oracle.run("CREATE TABLE LOTS (LOT_NO NUMBER PRIMARY KEY)")
    file = tmp_path / "defs.yaml"
    init(oracle, file, "DEMO.LOTS")
    runner = CliRunner(env={PASSWORD: "capture", "COLUMNS": "400", "NO_COLOR": "1"})
    warned = runner.invoke(app, ["doctor", "--config", str(file)]).stdout
    assert "LOT_NO of its key is NUMBER without precision, and will be text in the lake" in warned
    assert "columns_as: {LOT_NO: 'decimal(38,0)'} before the first snapshot" in warned
    file.write_text(
        file.read_text()
        .replace("      # columns_as:", "      columns_as:")
        .replace("      #   'LOT", "        'LOT")
    )
    assert load_config(file, environ={PASSWORD: "capture"}).tables[0].columns_as
    assert "of its key" not in runner.invoke(app, ["doctor", "--config", str(file)]).stdout


def test_a_file_is_utf8_and_a_name_is_printed_in_every_locale(tmp_path: Path) -> None:
    """A locale whose text is ASCII, as a cron job may have it."""
    file = tmp_path / "defs.yaml"
    with running_oracle() as oracle:
        oracle.run(
            'CREATE TABLE "Größe" (ID NUMBER(9) PRIMARY KEY)',
            'CREATE TABLE "Łąka" (ID NUMBER(9))',
        )
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pipelines.cli", "init", "--dsn", oracle.server.dsn),
                *("--user", "C##REDOLAKE", "--name", "shop", "--password-env", PASSWORD),
                *("--table", "DEMO.*", "--file", str(file)),
            ],
            capture_output=True,
            env={**os.environ, PASSWORD: "capture", **_ASCII},
        )
    assert done.returncode == 0, done.stderr
    assert rb'Left out: DEMO."\u0141\u0105ka"' in done.stdout
    [table] = load_config(file, environ={PASSWORD: "capture"}).tables
    assert table.name == 'DEMO."Größe"'


_ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_a_name_that_the_file_could_not_have_is_refused_before_it_is_written(
    oracle: Oracle, tmp_path: Path
) -> None:
    file = tmp_path / "defs.yaml"
    result = init(oracle, file, "DEMO.*", extra=["--name", "My Shop"])
    assert result.exit_code == 2
    assert "this is not a name of a source" in result.stderr
    assert not file.exists()


def test_a_folder_is_the_one_that_was_named(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths in the file are relative to the file, those of a command to where it runs."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "conf" / "defs.yaml"
    result = init(oracle, file, "DEMO.*", extra=["--xstream", "./lcrs"])
    assert result.exit_code == 0, result.output
    capture = load_config(file, environ={PASSWORD: "capture"}).capture
    assert capture.folder == str(tmp_path / "lcrs")  # type: ignore[union-attr]
