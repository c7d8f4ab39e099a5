"""Bad input, as a user meets it: one clear error with the way out, and nothing is lost.

Every case runs the command line against an embedded Oracle through the real driver; what was landed before the mistake is
still there afterwards, and the mended input goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from cdc_core.errors import PartitionKeyError
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import ScnWindow
from cdc_core.steps import Pipeline
from pipelines.cli import main as redolake_main
from pipelines.config_file import load_config
from tests.oracle.embedded import Oracle, running_oracle

PASSWORD = "REDOLAKE_TEST_PASSWORD"


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    """A database with minimal supplemental logging only, a good table, one without ALL COLUMNS logging, one without key."""
    with running_oracle(logging=False) as running:
        running.run("ALTER DATABASE ADD SUPPLEMENTAL LOG DATA", user="REDOLAKE_ADMIN")
        running.run(
            "CREATE TABLE ORDERS (ID NUMBER(9) PRIMARY KEY, NAME VARCHAR2(30))",
            "ALTER TABLE ORDERS ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS",
            "INSERT INTO ORDERS VALUES (1, 'first')",
            "CREATE TABLE UNLOGGED (ID NUMBER(9) PRIMARY KEY)",
            "CREATE TABLE KEYLESS (A NUMBER(9))",
            "ALTER TABLE KEYLESS ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS",
        )
        yield running


Write = Callable[..., Path]


@pytest.fixture
def write(oracle: Oracle, tmp_path: Path) -> Write:
    """Write a configuration file with some attributes changed."""

    def written(**changes: Any) -> Path:
        attributes: dict[str, Any] = {
            "name": "shop",
            "oracle": {"dsn": oracle.server.dsn, "user": "C##REDOLAKE", "password_env": PASSWORD},
            "tables": [{"name": "DEMO.ORDERS"}],
            "capture": {"close_at": "online"},
            "landing": {"type": "local", "path": "landing"},
            "lake": {"path": "lake"},
            "state": {"url": f"sqlite:///{tmp_path}/state.db"},
        }
        oracle_changes = changes.pop("oracle", {})
        attributes = {**attributes, **changes}
        attributes["oracle"] = {**attributes["oracle"], **oracle_changes}
        path = tmp_path / "defs.yaml"
        path.write_text(
            yaml.safe_dump({"type": "assets.components.OracleCdc", "attributes": attributes})
        )
        return path

    return written


def run(config: Path, *arguments: str, password: str = "capture") -> Result:
    """The command as the shell runs it: exit code and what it printed."""
    from pipelines.cli import app

    env = {PASSWORD: password, "COLUMNS": "300", "NO_COLOR": "1"}
    return CliRunner(env=env).invoke(app, [*arguments, "--config", str(config)])


def landed(config: Path, oracle: Oracle) -> tuple[Pipeline, ChunkKey]:
    """A pipeline with the good table's chunk in landing."""
    pipeline = Pipeline(load_config(config, environ={PASSWORD: "capture"}))
    [key] = pipeline.start_snapshot()
    pipeline.snapshot_chunk(key)
    return pipeline, key


def is_told(result: Result, *words: str) -> None:
    """One error without a traceback, exit code 2, with all the words."""
    text = " ".join((result.stdout + (result.stderr or "")).split())
    assert result.exit_code == 2, text
    assert "Traceback" not in text
    for word in words:
        assert word in text


def test_a_wrong_password_is_told_without_it(write: Write) -> None:
    result = run(write(), "snapshot", password="not-the-one")
    is_told(result, "password")
    assert "not-the-one" not in result.stdout + (result.stderr or "")


def test_a_wrong_port_is_told_with_the_address(write: Write) -> None:
    is_told(run(write(oracle={"dsn": "127.0.0.1:1/ORCLPDB1"}), "snapshot"), "127.0.0.1")


@pytest.mark.parametrize("command", [["snapshot"], ["run"], ["doctor"]], ids=" ".join)
def test_a_host_that_cannot_be_resolved_is_told_by_every_command(
    write: Write, command: list[str]
) -> None:
    result = run(write(oracle={"dsn": "nohost.invalid:1521/ORCL"}), *command)
    text = result.stdout + (result.stderr or "")
    assert "host name cannot be resolved" in text
    assert "Traceback" not in text
    assert result.exit_code == (1 if command == ["doctor"] else 2)


def test_a_password_in_the_dsn_is_refused_and_never_printed(write: Write) -> None:
    result = run(write(oracle={"dsn": "cdc/hunter2@127.0.0.1:1/ORCL"}), "doctor")
    is_told(result, "attributes.oracle.dsn", "password_env")
    assert "hunter2" not in result.stdout + (result.stderr or "")


def test_an_unknown_table_is_told_with_names_like_it(write: Write) -> None:
    is_told(run(write(tables=[{"name": "DEMO.ORDRES"}]), "snapshot"), "DEMO.ORDRES", "DEMO.ORDERS")


def test_a_table_without_key_is_told_with_the_option_that_takes_it_in(write: Write) -> None:
    is_told(run(write(tables=[{"name": "DEMO.KEYLESS"}]), "snapshot"), "KEYLESS", "identity: rowid")


def test_missing_supplemental_logging_is_told_with_the_statement_that_mends_it(
    write: Write,
) -> None:
    result = run(write(tables=[{"name": "DEMO.UNLOGGED"}]), "snapshot")
    is_told(result, "UNLOGGED", "ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS")


def test_all_problems_are_told_at_once(write: Write) -> None:
    tables = [{"name": "DEMO.UNLOGGED"}, {"name": "DEMO.KEYLESS"}]
    result = run(write(tables=tables), "snapshot")
    is_told(result, "UNLOGGED", "KEYLESS", "redolake doctor")
    lines = [line for line in result.stderr.splitlines() if line.startswith("  ")]
    assert len(lines) >= 2, "one line for each problem"


def test_an_unknown_configuration_key_is_told_with_file_line_and_the_right_word(
    write: Write,
) -> None:
    is_told(run(write(tabels=[]), "snapshot"), "defs.yaml", "tabels", "tables")


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-20], lambda data: data[:40] + b"x" + data[41:]]
)
def test_a_damaged_landing_file_stops_the_chunk_and_the_whole_one_goes_on(
    write: Write, oracle: Oracle, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    config = write()
    pipeline, key = landed(config, oracle)
    pipeline.close()
    [file] = (tmp_path / "landing").rglob("rows-*.parquet")
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    is_told(run(config, "snapshot"), "landing file", "Restore it")
    file.write_bytes(whole)
    with Pipeline(load_config(config, environ={PASSWORD: "capture"})) as mended:
        assert mended.snapshot_chunk(key).repeated


def test_a_damaged_manifest_stops_the_chunk(write: Write, oracle: Oracle, tmp_path: Path) -> None:
    config = write()
    pipeline, _ = landed(config, oracle)
    pipeline.close()
    [file] = [one for one in (tmp_path / "landing").rglob("manifest.json") if "/chunks/" in one.as_posix()]  # fmt: skip
    file.write_text(file.read_text().replace('"rows":1', '"rows":2'))
    is_told(run(config, "snapshot"), "manifest", "digest")


@pytest.mark.parametrize(
    "key", ["", "7", "9-7", "7-7", "a-b", "1-2-3", "٣-٤", "0-99999999999999999999"]
)
def test_a_partition_key_that_is_no_window_is_refused(key: str) -> None:
    with pytest.raises(PartitionKeyError, match="window"):
        ScnWindow.parse(key)


@pytest.mark.parametrize("key", ["", "s1", "s1:", ":3", "s1:x", "s1_3", "s1_0-of-3", "s1_4-of-3"])
def test_a_partition_key_that_is_no_chunk_is_refused(key: str) -> None:
    with pytest.raises(PartitionKeyError, match="chunk"):
        ChunkKey.parse(TableId("DEMO", "ORDERS"), key)


def test_a_window_that_was_never_planned_is_told(write: Write, oracle: Oracle) -> None:
    config = write()
    pipeline, _ = landed(config, oracle)
    pipeline.close()
    is_told(run(config, "replay", "1-2"), "window")


def test_the_command_is_what_the_console_script_runs() -> None:
    assert callable(redolake_main)
