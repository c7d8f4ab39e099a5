"""The command `redolake explain`: what it prints, in 80 columns, how it ends, and that errors tell no values."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipelines.cli import app
from tests.explain.exports import Rows


def explain(*arguments: object) -> Any:
    runner = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"})
    return runner.invoke(app, ["explain", *map(str, arguments)])


def test_transactions_and_their_rows(redo: Rows, script: Path, tmp_path: Path) -> None:
    result = explain(redo.write(tmp_path / "export.csv"), "--tables", script)
    assert result.exit_code == 0, result.output
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    said = " ".join(result.stdout.split())
    for text in (
        "committed at SCN", "by DEMO (4 rows, 2 changes)", "insert DEMO.ORDERS ID=1 LINE=1 AMOUNT='10.50'",
        "(3,990 characters)", "its transaction took it back itself (partial rollback)", "AMOUNT '10.50' → '3.00'",
        "it writes a part of a LOB: of the change at row", "open by DEMO", "waits insert DEMO.ORDERS ID=3",
        "rolled back at SCN", "transactions with rows of the described tables: 2 committed, 1 open, 1 rolled back",
        "column EXTRA of DEMO.NOTES is left out", "CREATE TABLE ORDERS",
    ):  # fmt: skip
        assert text in said, text


def test_one_transaction(redo: Rows, script: Path, tmp_path: Path) -> None:
    export = redo.write(tmp_path / "export.csv")
    at, code = redo.columns.index("XID"), redo.columns.index("OPERATION_CODE")
    xid = next(row[at] for row in redo.rows if row[code] == 10)
    result = explain(export, "--tables", script, "--transaction", xid)
    assert "BODY → 'xyyy" in result.stdout
    assert "ORDERS" not in result.stdout
    result = explain(export, "--tables", script, "--transaction", "1.2.3")
    assert result.exit_code == 2
    assert "no such transaction" in result.stderr
    result = explain(export, "--tables", script, "--transaction", "it")
    assert result.exit_code == 2
    assert "--transaction is not an XID" in result.stderr


def test_what_is_written_is_not_printed(redo: Rows, script: Path, tmp_path: Path) -> None:
    to = tmp_path / "rows.jsonl"
    result = explain(redo.write(tmp_path / "export.csv"), "--tables", script, "--to", to)
    assert result.exit_code == 0
    assert "statements written to" in result.stdout
    assert "AMOUNT" not in result.stdout
    assert '"AMOUNT": "10.50"' in to.read_text()
    result = explain(tmp_path / "export.csv", "--tables", script, "--to", to)
    assert result.exit_code == 2
    assert "the file exists already" in result.stderr


def test_damage_ends_with_exit_code_1_and_errors_tell_no_values(
    redo: Rows, script: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    number = next(at for at, row in enumerate(redo.rows, start=1) if "10.5" in str(row))
    damaged = redo.changed(number, XID="secret-4711").changed(number + 5, SQL_REDO="secret-4711")
    result = explain(damaged.write(tmp_path / "export.csv"), "--tables", script)
    assert result.exit_code == 1
    assert f"row {number}: XID is neither 16 hexadecimal digits" in " ".join(result.stdout.split())
    findings = result.stdout[result.stdout.index("statements:") :]
    assert "secret" not in findings + result.stderr + caplog.text
    result = explain(script, "--tables", script)
    assert result.exit_code == 2
    assert "does not say what it holds" in result.stderr
    result = explain(tmp_path / "export.csv", "--tables", script, "--key", "DEMO.ORDERS")
    assert result.exit_code == 2
    assert "--key does not say which columns" in result.stderr
