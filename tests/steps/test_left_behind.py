"""A command that leaves work behind says so, and does not end as if all were done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cdc_core.errors import WindowFirstError
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.reports import StepReport
from cdc_core.steps.windows import table_ranges
from oracle_embedded.database import ADMIN
from pipelines.cli import app
from pipelines.commands import data
from tests.oracle.embedded import running_oracle
from tests.steps.harness import Source, source_of, table_id


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    with running_oracle() as oracle:
        for name in ("ONE", "TWO"):
            oracle.run(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY)")
            oracle.run(f"INSERT INTO {name} VALUES (1)")
        with source_of(oracle, tmp_path, "ONE", "TWO") as source:
            monkeypatch.setattr(data, "opened", lambda *_, **__: nullcontext(source.pipeline))
            yield source


def redolake(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize("command", ["snapshot", "run"])
def test_chunks_that_wait_are_named_and_the_exit_code_is_not_0(
    source: Source, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    whole = source.pipeline.snapshot_chunk

    def waits(key: ChunkKey) -> StepReport:
        if key.table == table_id("ONE"):
            raise WindowFirstError("its columns can be told by the redo alone")
        return whole(key)

    monkeypatch.setattr(source.pipeline, "snapshot_chunk", waits)
    said = redolake(command)
    assert said.exit_code == 1
    assert f"1 chunk of {table_id('ONE')} not applied" in said.stderr
    assert "redolake run" in said.stderr
    monkeypatch.setattr(source.pipeline, "snapshot_chunk", whole)
    assert redolake("run").exit_code == 0
    source.check_current("ONE", "TWO")


def test_windows_that_a_table_did_not_take_are_named(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert redolake("run").exit_code == 0
    source.oracle.run("INSERT INTO ONE VALUES (2)", "INSERT INTO TWO VALUES (2)")
    source.oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
    is_behind = table_ranges.is_behind
    one = table_id("ONE")
    monkeypatch.setattr(
        table_ranges, "is_behind", lambda record, of: record.table == one or is_behind(record, of)
    )
    said = redolake("run")
    assert said.exit_code == 1
    assert "not applied to every table" in said.stderr
    monkeypatch.setattr(table_ranges, "is_behind", is_behind)
    assert redolake("run").exit_code == 0
    source.check_current("ONE", "TWO")
