"""Landing folders that are lost behind the position: harmless where every table has the window, else read again from Oracle."""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cdc_core.errors import (
    ConfigError,
    LandingDamagedError,
    OracleUnavailableError,
    RedoUnavailableError,
)
from cdc_core.model.scn import ScnWindow
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.schema.table import TableSchema
from cdc_core.state.window_history import WindowHistory
from cdc_core.state.windows import Windows
from oracle_embedded.database import ADMIN
from pipelines.cli import app
from pipelines.commands import data
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, table_id

oracle = oracle_with(
    "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, NOTE VARCHAR2(20))",
    "CREATE TABLE TWO (ID NUMBER(9) PRIMARY KEY, NOTE VARCHAR2(20))",
    "INSERT INTO ONE VALUES (1, 'first')",
    "INSERT INTO TWO VALUES (1, 'first')",
)
source = capturing("ONE", "TWO", runs=False)


def change(source: Source, number: int) -> ScnWindow:
    """A change of both tables, captured and applied with a window of its own."""
    source.oracle.run(
        f"INSERT INTO ONE VALUES ({number}, 'new')",
        f"UPDATE ONE SET NOTE = 'seen {number}' WHERE ID = 1",
        f"INSERT INTO TWO VALUES ({number}, 'new')",
    )
    source.oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
    windows = source.pipeline.plan_windows()
    for window in windows:
        source.pipeline.capture_window(window)
    return windows[-1]


def apply_all(source: Source) -> None:
    for window in source.pipeline.pending_windows():
        source.pipeline.apply_window(window)


def folder(source: Source, window: ScnWindow) -> Path:
    return source.path / "landing" / "src" / "windows" / window.folder


def check(source: Source) -> None:
    source.run()
    source.check_current("ONE", "TWO")
    for name in ("ONE", "TWO"):
        changes = source.lake.tables[table_id(name)].changes
        places = [(one["_cdc_commit_scn"], one["_cdc_ordinal"]) for one in changes]
        assert len(set(places)) == len(places), "nothing is doubled"


def test_windows_that_every_table_has_are_harmless(source: Source) -> None:
    list(source.pipeline.run_snapshot())  # and no idle window behind it, which would be retired
    windows = [change(source, number) for number in (10, 11, 12)]
    apply_all(source)
    for window in windows[:-1]:
        shutil.rmtree(folder(source, window))
    plan = source.pipeline.plan_recapture()
    assert [record.window for record in plan.lost] == windows[:-1]
    assert plan.again == ()
    assert list(source.pipeline.recapture()) == []
    change(source, 13)
    check(source)
    with pytest.raises(LandingDamagedError, match="redolake recapture"):
        source.pipeline.replay_window(windows[0])
    assert len(list(source.pipeline.recapture(needed_only=False))) >= len(windows)
    check(source)
    source.pipeline.replay_window(windows[0])


@pytest.mark.parametrize("options", [(), ("--all",)], ids=["what-is-needed", "all"])
def test_a_dry_run_says_which_lost_windows_are_needed(
    source: Source, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    """Also where all are to be read again."""
    list(source.pipeline.run_snapshot())
    windows = [change(source, number) for number in (10, 11)]
    apply_all(source)
    windows += [change(source, number) for number in (12, 13)]
    for window in (windows[0], windows[3]):
        shutil.rmtree(folder(source, window))
    monkeypatch.setattr(data, "opened", lambda *_, **__: nullcontext(source.pipeline))
    keys = {one.window: one.key for one in source.pipeline.records.windows()}
    said = CliRunner().invoke(app, ["recapture", "--dry-run", *options]).stdout.splitlines()
    assert said[:2] == [
        f"{keys[windows[0]]} is lost; every table has applied it, but `redolake state rebuild` and `redolake replay` need it: "
        "`redolake recapture --all` rereads it while Oracle has its redo",
        f"{keys[windows[3]]} is lost; needed",
    ]
    first, count = (windows[0], "4 windows") if options else (windows[3], "1 window")
    assert said[2:] == [f"{count} would be read again, from {keys[first]} on."]
    list(source.pipeline.recapture(needed_only=not options))
    check(source)


@pytest.mark.parametrize("is_idle", [True, False], ids=["idle", "with-changes"])
def test_a_lost_window_is_called_harmless_where_state_rebuild_can_do_without_it(
    source: Source, monkeypatch: pytest.MonkeyPatch, *, is_idle: bool
) -> None:
    """The advice of the dry run is typed: what it says of ``state rebuild`` holds."""
    source.begin()
    change(source, 10)
    if is_idle:
        source.oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
        [window] = source.pipeline.plan_windows()
        source.pipeline.capture_window(window)
    else:
        window = change(source, 11)
    change(source, 12)
    apply_all(source)
    shutil.rmtree(folder(source, window))
    monkeypatch.setattr(data, "opened", lambda *_, **__: nullcontext(source.pipeline))
    said = CliRunner().invoke(app, ["recapture", "--dry-run"]).stdout
    assert ("harmless" in said) == is_idle
    assert ("recapture --all" in said) != is_idle
    if is_idle:
        assert source.pipeline.rebuild_state(replace=True, dry_run=True)
        return
    with pytest.raises(LandingDamagedError, match="does not hold all windows"):
        source.pipeline.rebuild_state(replace=True, dry_run=True)
    assert CliRunner().invoke(app, ["recapture", "--all"]).exit_code == 0
    apply_all(source)
    assert source.pipeline.rebuild_state(replace=True, dry_run=True)


@pytest.mark.parametrize("lost", [[0], [1], [2], [0, 2], [0, 1, 2]])
def test_windows_that_are_needed_are_read_again(source: Source, lost: list[int]) -> None:
    source.begin()
    windows = [change(source, number) for number in (10, 11, 12)]
    source.pipeline.pause_tables([table_id("TWO")])
    source.pipeline.apply_window(windows[0])
    source.pipeline.apply_window(windows[1])
    source.pipeline.resume_tables([table_id("TWO")])
    for number in lost:
        shutil.rmtree(folder(source, windows[number]))
    with pytest.raises(LandingDamagedError, match="redolake recapture"):
        apply_all(source)
    again = source.pipeline.plan_recapture().again
    assert [record.window for record in again] == windows[min(lost) :]
    list(source.pipeline.recapture())
    check(source)


def test_a_file_that_was_changed_is_read_again(source: Source) -> None:
    source.begin()
    window = change(source, 10)
    path = folder(source, window) / "transactions.parquet"
    path.write_bytes(b"cut")
    with pytest.raises(LandingDamagedError):
        apply_all(source)
    list(source.pipeline.recapture())
    check(source)


@pytest.mark.parametrize("lost", [[0], [1], [0, 1]])
def test_what_holds_rows_of_an_open_transaction_is_needed(source: Source, lost: list[int]) -> None:
    """Every table has the windows, and a transaction that began in them commits later."""
    source.begin()
    with source.oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO ONE VALUES (100, 'open')")
        windows = [change(source, 10)]
        cursor.execute("INSERT INTO TWO VALUES (100, 'open')")
        windows.append(change(source, 11))
        apply_all(source)
        for number in lost:
            shutil.rmtree(folder(source, windows[number]))
        assert source.pipeline.plan_recapture().again
        list(source.pipeline.recapture())
        connection.commit()
    change(source, 12)
    check(source)


def test_a_table_that_left_since_is_read_again_as_far_as_its_stream_goes(source: Source) -> None:
    source.begin()
    source.pipeline.pause_tables([table_id("TWO")])
    windows = [change(source, 10), change(source, 11)]
    source.pipeline.apply_window(windows[0])
    source.pipeline.resume_tables([table_id("TWO")])
    source.pipeline.remove_tables([table_id("TWO")])
    shutil.rmtree(folder(source, windows[0]))
    list(source.pipeline.recapture())
    change(source, 12)
    source.run()
    source.check_current("ONE")
    assert source.record("TWO").mirror_scn == windows[1].scn_high
    source.check_exact("TWO")


def test_a_recapture_that_was_cut_short_goes_on(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.begin()
    windows = [change(source, number) for number in (10, 11, 12)]
    shutil.rmtree(folder(source, windows[0]))

    class CrashError(BaseException):
        pass

    def crash(*_arguments: object) -> None:
        raise CrashError

    for part, method in ((WindowHistory, "unrecord_captured"), (Windows, "record_captured")):
        with monkeypatch.context() as patch:
            patch.setattr(part, method, crash)
            with pytest.raises(CrashError):
                list(source.pipeline.recapture())
        source.close()
    list(source.pipeline.recapture())
    check(source)


@pytest.mark.parametrize("is_lost", [True, False], ids=["lost", "there"])
def test_a_window_right_behind_idle_ones_that_are_forgotten_is_read_again(
    source: Source, *, is_lost: bool
) -> None:
    """No window is left that says which transactions were open at its beginning."""
    window = behind_forgotten_windows(source)
    if is_lost:
        shutil.rmtree(folder(source, window))
    again = list(source.pipeline.recapture(first=None if is_lost else window))
    assert [report.key for report in again] == [window.key]
    check(source)
    assert (10, "new") in source.lake.image(table_id("TWO"))


def test_a_window_behind_forgotten_ones_that_were_not_idle_stays_as_it_is(source: Source) -> None:
    """What committed in them would come a second time."""
    source.begin()
    change(source, 9)
    apply_all(source)
    window = behind_forgotten_windows(source)
    shutil.rmtree(folder(source, window))
    before = source.pipeline.store.images.get()
    with pytest.raises(RedoUnavailableError, match="were retired"):
        list(source.pipeline.recapture())
    assert source.pipeline.store.images.get()["windows"] == before["windows"]


def behind_forgotten_windows(source: Source) -> ScnWindow:
    """A window that TWO still wants, and nothing is left of those before it."""
    source.begin()
    for _ in range(3):
        source.oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
        source.windows()
    source.pipeline.pause_tables([table_id("TWO")])
    window = change(source, 10)
    apply_all(source)
    source.pipeline.resume_tables([table_id("TWO")])
    source.pipeline.store.history.retire(before=datetime.now(UTC) + timedelta(days=1))
    [oldest, *_] = source.pipeline.records.windows()
    assert oldest.window == window
    assert oldest.ordinal > 0
    return window


def test_without_its_redo_nothing_is_changed(source: Source, oracle: Oracle) -> None:
    source.begin()
    windows = [change(source, number) for number in (10, 11)]
    for _ in range(5):  # so that the log is in no online group any more
        oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
    manifest, _ = source.pipeline.window_manifest(windows[0])
    oracle.database.redo.delete_archived_log(manifest.logs[0].sequence)
    shutil.rmtree(folder(source, windows[0]))
    before = source.pipeline.store.images.get()
    with pytest.raises(RedoUnavailableError):
        list(source.pipeline.recapture())
    assert source.pipeline.store.images.get()["windows"] == before["windows"]
    assert folder(source, windows[1]).exists()


def test_a_window_read_again_with_fewer_tables_numbers_its_rows_anew(source: Source) -> None:
    """Why later windows are read again too: their ledgers name rows of open transactions by their numbers."""
    source.begin()
    with source.oracle.owner() as connection:
        source.oracle.run(*(f"INSERT INTO TWO VALUES ({number}, 'x')" for number in range(50, 60)))
        connection.cursor().execute("INSERT INTO ONE VALUES (100, 'open')")
        windows = [change(source, 10), change(source, 11)]
        apply_all(source)
        source.configure("ONE")
        source.pipeline.plan_windows()
        shutil.rmtree(folder(source, windows[0]))
        list(source.pipeline.recapture())
        connection.commit()
    source.oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
    source.run()
    source.check_current("ONE")
    assert (100, "open") in source.lake.image(table_id("ONE"))


def wrong(source: Source, monkeypatch: pytest.MonkeyPatch) -> ScnWindow:
    """A window whose DDL was read without the column that it added; its table stops, the other goes on."""
    source.begin()
    source.oracle.run("ALTER TABLE ONE ADD (EXTRA NUMBER(9))")
    source.oracle.run(
        "INSERT INTO ONE VALUES (20, 'new', 123456)", "INSERT INTO TWO VALUES (20, 'x')"
    )
    real = read_table_schema

    def read(*args: Any, **options: Any) -> TableSchema:
        schema = real(*args, **options)
        columns = tuple(one for one in schema.columns if one.name != "EXTRA")
        return replace(schema, columns=columns, stored=schema.stored[:2])

    with monkeypatch.context() as patch:
        patch.setattr("cdc_core.capture.stream_ends.ddl_rows.read_table_schema", read)
        [*_, window] = source.pipeline.plan_windows()
        for one in source.pipeline.pending_windows():
            source.pipeline.capture_window(one)
    apply_all(source)
    assert source.record("ONE").state == "failed"
    source.check_current("TWO")
    return window


def test_a_window_that_landed_under_a_wrong_definition_is_read_again(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table that has it takes nothing twice; the other goes on under the right definition."""
    window = wrong(source, monkeypatch)
    list(source.pipeline.recapture(first=window))
    source.pipeline.resume_tables([table_id("ONE")])
    check(source)
    with pytest.raises(ConfigError, match="every table has applied"):
        source.pipeline.plan_recapture(first=window)


def test_what_has_landed_is_decoded_by_the_definitions_that_are_known_now(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Oracle: the schema history got better, and the table goes on."""
    wrong(source, monkeypatch)
    with source.pipeline.database.session() as session:
        schema = read_table_schema(session, source.pipeline.config.table(table_id("ONE")))
    store = source.pipeline.store
    landed = store.schemas.versions(table_id("ONE"))[-1]
    better = replace(schema, scn_from=landed.schema.scn_from)
    store.schemas.save(replace(landed, schema=better))

    def out_of_reach() -> None:
        raise OracleUnavailableError("Oracle is out of reach")

    monkeypatch.setattr(source.pipeline.database, "session", out_of_reach)
    source.pipeline.resume_tables([table_id("ONE")])
    apply_all(source)
    assert source.lake.image(table_id("ONE"))[-1] == (20, "new", 123456)


def test_what_has_landed_stays_where_the_redo_is_gone(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = wrong(source, monkeypatch)
    before = (folder(source, window) / "manifest.json").read_bytes()

    def gone(*_args: object, **_options: object) -> None:
        raise RedoUnavailableError("no redo log covers the start of the window")

    monkeypatch.setattr("cdc_core.capture.logminer.capture_window", gone)
    with pytest.raises(RedoUnavailableError):
        list(source.pipeline.recapture(first=window))
    assert (folder(source, window) / "manifest.json").read_bytes() == before


def test_a_lost_window_that_every_table_has_and_that_is_not_finished_is_read_again(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ended between the last table and the window's record: the steps that finish it look at its files."""
    source.begin()
    window = change(source, 10)
    with monkeypatch.context() as patched:
        patched.setattr(Windows, "record_applied", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            source.pipeline.apply_window(window)
    shutil.rmtree(folder(source, window))
    assert len(list(source.pipeline.recapture())) >= 1
    change(source, 11)
    check(source)
