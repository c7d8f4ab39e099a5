"""``redolake at``: one cut as a table, as JSON, as SQL for three engines, and as views in a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner, Result

from cdc_core.steps import Pipeline
from pipelines.cli import app
from pipelines.commands import listings
from tests.delta.vectors import with_vectors
from tests.oracle.embedded import running_oracle


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Tables ONE and TWO of one row each, and the command line over them."""
    with running_oracle() as oracle:
        for name in ("ONE", "TWO"):
            oracle.run(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))")
            oracle.run(f"INSERT INTO {name} VALUES (1, 'first')")
        folder = tmp_path / "lake"
        with Pipeline(
            oracle.config(tmp_path, "ONE", "TWO", lake={"path": str(folder)})
        ) as pipeline:
            list(pipeline.run_once())

            @contextmanager
            def opened(*_args: Any, **_more: Any) -> Iterator[Pipeline]:
                yield pipeline

            monkeypatch.setattr(listings, "opened", opened)
            yield folder


def _at(*words: str) -> Result:
    return CliRunner().invoke(app, ["at", *words])


def test_a_cut_is_printed_for_people_programs_and_engines(lake: Path) -> None:
    found = json.loads(_at("--json").stdout)
    [one, two] = found["tables"]
    path = str(lake / "src" / "mirror" / "demo.one")
    assert (one["path"], two["table"]) == (path, "DEMO.TWO")
    version = one["version"]
    assert f"SCN {found['scn']}" in _at().stdout
    assert _at("--format", "spark").stdout.splitlines()[0] == (
        "CREATE OR REPLACE TEMPORARY VIEW `demo_one` AS SELECT * FROM"
        f" delta.`{path}` VERSION AS OF {version};"
    )
    named = ["--tables", "lake.{owner}.{table}", "--views", "now.{table}"]
    assert _at("--format", "spark", *named).stdout.splitlines()[0] == (
        "CREATE OR REPLACE VIEW `now`.`one` AS SELECT * FROM"
        f" `lake`.`demo`.`one` VERSION AS OF {version};"
    )
    assert _at("--format", "trino", *named).stdout.splitlines()[0] == (
        'CREATE OR REPLACE VIEW "now"."one" AS SELECT * FROM'
        f' "lake"."demo"."one" FOR VERSION AS OF {version};'
    )
    assert _at("--format", "duckdb").stdout.splitlines()[0] == (
        'CREATE OR REPLACE VIEW "demo_one" AS SELECT * FROM'
        f" delta_scan('file://{path}', version => {version});"
    )


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--format", "trino"], "--tables"),
        (["--format", "spark", "--views", "{schema}"], "{owner} and {table}"),
    ],
    ids=["trino-without-names", "unknown-placeholder"],
)
def test_names_that_cannot_be_made_are_refused(lake: Path, words: list[str], hint: str) -> None:
    del lake
    said = _at(*words)
    assert said.exit_code == 2
    assert hint in said.output


def test_views_in_a_file_leave_out_what_files_alone_do_not_say(lake: Path, tmp_path: Path) -> None:
    file = tmp_path / "cut.duckdb"
    assert _at("--create", str(file)).exit_code == 0
    with duckdb.connect(str(file)) as database:
        assert database.execute("SELECT V FROM demo_one").fetchall() == [("first",)]
    with_vectors(str(lake / "src" / "mirror" / "demo.two"))
    said = _at("--create", str(file))
    assert said.exit_code == 1
    assert "deletion vectors" in said.stdout
    (tmp_path / "text").write_text("no database")
    assert "cannot open this file" in _at("--create", str(tmp_path / "text")).output
