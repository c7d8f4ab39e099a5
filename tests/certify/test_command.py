"""`redolake certify`, from a configuration file to the exit code."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import oracledb
import pytest
import yaml
from typer.testing import CliRunner

from diagnosis.certify.certifying import TRY_PROBES
from oracle_embedded.database import ADMIN, CAPTURE
from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from pipelines.cli import app
from tests.oracle.embedded import PASSWORDS, Oracle
from tests.oracle.fixtures import oracle_with

ROOT = Path(__file__).resolve().parents[2]


oracle = oracle_with("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(10))", scope="module")


@pytest.fixture
def file(oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    login = {"dsn": oracle.server.dsn, "user": CAPTURE, "password_env": "SHOP_PASSWORD"}
    attributes = {
        "name": "shop",
        "oracle": login,
        "tables": [{"name": "DEMO.T"}],
        "landing": {"type": "local", "path": "landing"},
        "lake": {"path": "lake"},
        "state": {"url": "sqlite:///state.db"},
    }
    monkeypatch.setenv("SHOP_PASSWORD", "capture")
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    path = tmp_path / "defs.yaml"
    path.write_text(
        yaml.safe_dump({"type": "assets.components.OracleCdc", "attributes": attributes})
    )
    return path


def run(*arguments: str) -> Any:
    return CliRunner(env={"COLUMNS": "160", "NO_COLOR": "1"}).invoke(app, list(arguments))


def test_a_database_that_is_as_believed_ends_with_0_and_a_report(
    file: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    done = run("certify", "-c", str(file), "--to", str(report))
    assert done.exit_code == 0, done.output
    assert "all required assumptions hold here" in done.output
    assert "logging.forced: FORCE LOGGING is on" in done.output, "what one lives with is told"
    assert "scn.moves-forward" not in done.output, "what holds is counted"
    found = json.loads(report.read_text())
    assert found["certified"] is True
    assert found["levels"] == ["look"]
    printed = run("certify", "-c", str(file), "--json")
    assert json.loads(printed.stdout)["counts"]["otherwise"] == found["counts"]["otherwise"]


def test_a_belief_that_does_not_hold_ends_with_1_and_says_what_follows(
    file: Path, oracle: Oracle
) -> None:
    oracle.run(f"ALTER TABLE T ADD ({'LONG' * 8} NUMBER)")
    done = run("certify", "-c", str(file), "--all")
    assert done.exit_code == 1
    assert "table.name-length" in done.output
    assert "Seen: names of up to 32 bytes." in done.output
    assert "code 255" in done.output
    assert "1 required assumption does not hold here" in done.output
    assert "scn.moves-forward" in done.output, "--all lists what holds"


def test_a_level_that_is_not_there_is_refused(file: Path) -> None:
    done = run("certify", "-c", str(file), "--level", "guess")
    assert done.exit_code == 2
    assert "Choose from look" in done.output


def test_a_report_is_a_page_too_and_another_ending_is_refused(file: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = run("certify", "-c", str(file), "--to", str(page), "--to", str(tmp_path / "r.json"))
    assert done.exit_code in (0, 1), done.output
    text = page.read_text()
    assert "<code>scn.moves-forward</code>" in text
    assert "FORCE LOGGING is on" in text
    assert "http" not in text, "nothing from elsewhere"
    refused = run("certify", "-c", str(file), "--to", str(tmp_path / "report.txt"))
    assert refused.exit_code == 2
    assert ".json or .html" in refused.output


def test_level_try_needs_a_schema_and_its_password(
    file: Path, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run("certify", "-c", str(file), "--level", "try")
    assert done.exit_code == 2
    assert "Name one with --schema" in done.output
    unknown = run("certify", "-c", str(file), "--level", "try", "--schema", "workbench")
    assert unknown.exit_code == 2
    assert "REDOLAKE_CERTIFY_PASSWORD" in unknown.output
    oracle.run(
        'CREATE USER WORKBENCH IDENTIFIED BY "hammer"',
        "GRANT CREATE SESSION, CREATE TABLE, UNLIMITED TABLESPACE TO WORKBENCH",
        user=ADMIN,
    )
    monkeypatch.setenv("REDOLAKE_CERTIFY_PASSWORD", "hammer")
    monkeypatch.setattr("diagnosis.certify.certifying.TRY_PROBES", TRY_PROBES[:3])
    tried = run("certify", "-c", str(file), "--level", "try", "--schema", "workbench", "--all")
    assert tried.exit_code == 0, tried.output
    assert "type.number: NUMBER: a snapshot reads" in tried.output


def test_a_process_that_is_killed_leaves_tables_that_the_next_one_drops(
    file: Path, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle.run(
        'CREATE USER ANVIL IDENTIFIED BY "hammer"',
        "GRANT CREATE SESSION, CREATE TABLE, UNLIMITED TABLESPACE TO ANVIL",
        user=ADMIN,
    )
    monkeypatch.setenv("REDOLAKE_CERTIFY_PASSWORD", "hammer")
    command = ["certify", "-c", str(file), "--level", "try", "--schema", "anvil"]
    held_up = Fault(FaultKind.DELAY, FaultEvent.EXECUTE, "CREATE TABLE", nth=25, times=0, delay_seconds=600)  # fmt: skip
    oracle.database.faults.arm(held_up)
    process = subprocess.Popen(
        [sys.executable, "-m", "pipelines.cli", *command], cwd=ROOT, stdout=subprocess.DEVNULL
    )
    waiting = threading.Event()
    while len(scratch_tables(oracle)) < 20 and process.poll() is None:
        waiting.wait(0.05)
    process.kill()
    oracle.database.faults.disarm_all()
    assert process.wait() == -signal.SIGKILL
    assert len(scratch_tables(oracle)) >= 20
    monkeypatch.setattr("diagnosis.certify.certifying.TRY_PROBES", TRY_PROBES[:1])
    done = run(*command)
    assert done.exit_code == 0, done.output
    assert scratch_tables(oracle) == []


def scratch_tables(oracle: Oracle) -> list[str]:
    with oracledb.connect(
        user=ADMIN, password=PASSWORDS[ADMIN], dsn=oracle.server.dsn
    ) as connection:
        found = connection.cursor().execute(
            "SELECT OBJECT_NAME FROM DBA_OBJECTS WHERE OWNER = 'ANVIL' AND OBJECT_TYPE = 'TABLE'"
        )
        return [name for (name,) in found]


def test_tables_that_a_pattern_names_are_looked_at(file: Path, oracle: Oracle) -> None:
    file.write_text(file.read_text().replace("DEMO.T", "DEMO.*"))
    done = run("certify", "-c", str(file), "--json", "--level", "mine")
    assert done.exit_code == 0, done.output
    found = {one["id"]: one for one in json.loads(done.stdout)["probes"]}
    assert found["mine.shown"]["outcome"] == "cannot tell"
    oracle.run(
        "CREATE TABLE OF_PATTERN (ID NUMBER(3) PRIMARY KEY)", "INSERT INTO OF_PATTERN VALUES (1)"
    )
    again = run("certify", "-c", str(file), "--json", "--level", "mine")
    found = {one["id"]: one for one in json.loads(again.stdout)["probes"]}
    assert found["mine.shown"]["seen"] == "1 DDL, 1 INSERT"
