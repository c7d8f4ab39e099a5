"""A window that lacked a COMMIT is read again, and has it now: each table gets the commit once, wherever it stands, or stops by name."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cdc_core.errors import LakeError
from cdc_core.model.scn import ScnWindow
from cdc_core.steps.windows.missing_in_lake import find_lost
from oracle_embedded.faults import Fault, FaultKind
from pipelines.cli import app
from pipelines.commands import data, tables
from tests.oracle.embedded import running_oracle
from tests.steps.harness import Source, source_of, table_id

NAMES = ("ONE", "TWO", "THREE")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    """Two instances; ONE has the first of two windows, TWO none, THREE both. The first lacks a commit, which comes with the second."""
    tables_of = [
        f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, NOTE VARCHAR2(9))" for name in NAMES
    ]
    rows = [f"INSERT INTO {name} VALUES (1, 'first')" for name in NAMES]
    with (
        running_oracle(*tables_of, *rows, threads=2) as oracle,
        source_of(oracle, tmp_path, *NAMES) as source,
    ):
        for module in (data, tables):
            monkeypatch.setattr(module, "opened", lambda *_, **__: nullcontext(source.pipeline))
        yield source


def short_window(source: Source) -> tuple[ScnWindow, ScnWindow]:
    source.begin()
    source.windows()
    pipeline, oracle = source.pipeline, source.oracle
    with oracle.owner() as late:
        late.cursor().execute("BEGIN DBMS_REDOLAKE_FAULTS.USE_THREAD(2); END;")
        for name in NAMES:
            late.cursor().execute(f"INSERT INTO {name} VALUES (90, 'late')")
        late.commit()
    oracle.run(*(f"UPDATE {name} SET NOTE = 'newer' WHERE ID = 1" for name in NAMES))
    oracle.server.faults.arm(Fault(FaultKind.SHORT_READ))
    [short] = pipeline.plan_windows()
    pipeline.capture_window(short)
    pipeline.pause_tables([table_id("TWO")])
    pipeline.apply_window(short)
    oracle.run(*(f"INSERT INTO {name} VALUES (91, 'after')" for name in NAMES))
    [bringing] = pipeline.plan_windows()
    pipeline.capture_window(bringing)
    pipeline.pause_tables([table_id("ONE")])
    pipeline.apply_window(bringing)
    pipeline.resume_tables([table_id("ONE"), table_id("TWO")])
    assert source.record("ONE").mirror_scn == short.scn_high
    assert source.record("THREE").mirror_scn == bringing.scn_high
    return short, bringing


def lose(source: Source, window: ScnWindow) -> None:
    shutil.rmtree(source.path / "landing" / "src" / "windows" / window.folder)


def check_once(source: Source, *names: str) -> None:
    source.check_current(*names)
    for name in names:
        changes = source.lake.tables[table_id(name)].changes
        late = [one for one in changes if (one["after"] or {}).get("ID") == 90]
        assert len(late) == 1, f"{name} has the late commit once"


@pytest.mark.parametrize("options", [[], ["--all"], ["--from"]], ids=["needed", "all", "from"])
def test_a_table_that_would_miss_the_late_commit_stops_and_the_others_get_it_once(
    source: Source, options: list[str]
) -> None:
    short, _ = short_window(source)
    if options == ["--from"]:
        options = ["--from", short.key]
    else:
        lose(source, short)
    said = CliRunner().invoke(app, ["recapture", *options])
    record = source.record("ONE")
    assert record.state == "failed"
    assert "was read again" in (record.reason or "")
    assert said.exit_code == 1
    assert str(table_id("ONE")) in said.stderr
    source.run()
    check_once(source, "TWO", "THREE")
    command = (record.way_out or "").split("`")[1].removeprefix("redolake ")
    assert CliRunner().invoke(app, command.split()).exit_code == 0
    source.run()
    source.check_current(*NAMES)
    assert source.record("ONE").state == "ready"


def test_a_table_that_stands_before_the_windows_loses_nothing_and_goes_on(source: Source) -> None:
    """Only the window that brings the commit is lost: it brings it again."""
    _, bringing = short_window(source)
    lose(source, bringing)
    list(source.pipeline.recapture())
    assert source.record("ONE").state == "ready"
    source.run()
    check_once(source, *NAMES)


def test_a_joined_table_whose_snapshot_has_the_commit_goes_on(source: Source) -> None:
    short, bringing = short_window(source)
    source.pipeline.resnapshot_tables([table_id("ONE")], fresh=True)
    source.run()
    for window in (short, bringing):
        lose(source, window)
    list(source.pipeline.recapture(needed_only=False))
    source.run()
    check_once(source, "TWO", "THREE")
    source.check_current("ONE")


def test_the_state_that_is_rebuilt_knows_that_the_table_stopped(source: Source) -> None:
    short, _ = short_window(source)
    lose(source, short)
    list(source.pipeline.recapture())
    source.run()
    before = source.record("ONE")
    source.pipeline.rebuild_state(replace=True)
    assert source.record("ONE") == before


def test_a_lake_of_before_cannot_take_the_commit_from_windows_that_were_read_again(
    source: Source,
) -> None:
    """Its copy has the first window as it was without the commit, and the second one as it is now does not bring it."""
    short, _ = short_window(source)
    source.run()
    lose(source, short)
    list(source.pipeline.recapture(needed_only=False))
    source.run()
    ctx = source.pipeline
    at = replace(
        ctx.lake.table(table_id("THREE")).position(),
        mirror_scn=short.scn_high,
        changelog_scn=short.scn_high,
    )
    with pytest.raises(LakeError, match="was read again"):
        find_lost(ctx, source.record("THREE"), at)
