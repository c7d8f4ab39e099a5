"""What the next run would do, said before it is done."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.commands import plan as command
from tests.oracle.embedded import OWNER
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing

oracle = oracle_with(
    *(
        f"CREATE TABLE {one} (ID NUMBER(9) PRIMARY KEY, N NUMBER(9), X NUMBER(9))"
        for one in ("A", "B", "C")
    ),
    "CREATE TABLE KEYLESS (ID NUMBER(9))",
)


source = capturing("A", "B", runs=False)


def plan(source: Source) -> dict[str, str]:
    found = source.pipeline.preview()
    return {one.table.removeprefix(f"{OWNER}."): one.said for one in found.tables}


def test_a_first_run(source: Source) -> None:
    source.close()
    overrides = {f"{OWNER}.A": "ID > 5"}
    source.more = {"snapshot": {"include": [f"{OWNER}.A"], "select_overrides": overrides}}
    assert plan(source) == {
        "A": "joins with the rows WHERE ID > 5: 3 columns, key (ID)",
        "B": "joins without its rows: 3 columns, key (ID)",
    }
    assert source.pipeline.preview().decision.work == "snapshot"
    assert source.pipeline.records.tables() == []


def test_a_changed_configuration(source: Source) -> None:
    source.begin()
    assert plan(source) == {}
    before = source.pipeline.records.tables()
    source.configure({"name": "A", "columns_exclude": ["N"]}, "C", "KEYLESS")
    found = plan(source)
    assert found["A"] == "loses columns: N"
    assert found["B"].startswith("leaves")
    assert found["C"] == "joins with its rows: 3 columns, key (ID)"
    assert found["KEYLESS"].startswith("cannot join")
    source.configure({"name": "A", "key": ["N"]}, "B")
    found = plan(source)
    assert found["A"].startswith("stops, and needs new Delta tables: the key is (N) now")
    assert source.pipeline.records.tables() == before
    source.configure("A")
    source.run()
    source.configure("A", "B")
    assert plan(source) == {"B": "is configured again; joins with its rows: 3 columns, key (ID)"}


def test_the_command_says_it_and_does_nothing(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "opened", lambda *_, **__: nullcontext(source.pipeline))
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["plan"])
    assert done.exit_code == 0, done.output
    assert "start: read all tables, then capture changes" in done.output
    assert f"{OWNER}.A joins with its rows: 3 columns, key (ID)" in done.output
    assert source.pipeline.records.tables() == []
