"""Archived logs are gone for good. Every way out that is documented is typed here, and ends in tables that equal Oracle."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cdc_core.capture.logs import coverage as logs
from cdc_core.capture.source import LogMinerReader
from cdc_core.change_reader import Start
from cdc_core.errors import (
    ConfigError,
    IncarnationError,
    LogsNotReadyError,
    NotYetError,
    RedoUnavailableError,
)
from cdc_core.model.scn import ScnWindow
from oracle_embedded.database import ADMIN
from pipelines.cli import app
from pipelines.commands import data, tables
from tests.oracle.embedded import running_oracle
from tests.steps.harness import Source, source_of, table_id

NAMES = ("ONE", "TWO")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    tables_of = [
        f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, NOTE VARCHAR2(20))" for name in NAMES
    ]
    rows = [f"INSERT INTO {name} VALUES (1, 'first')" for name in NAMES]
    with (
        running_oracle(*tables_of, *rows) as oracle,
        source_of(oracle, tmp_path, *NAMES) as source,
    ):
        for module in (data, tables):
            monkeypatch.setattr(module, "opened", lambda *_, **__: nullcontext(source.pipeline))
        yield source


def redolake(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def switch(source: Source, times: int = 1) -> None:
    for _ in range(times):
        source.oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)


def change(source: Source, key: int) -> None:
    for name in NAMES:
        source.oracle.run(
            f"INSERT INTO {name} VALUES ({key}, 'new')",
            f"UPDATE {name} SET NOTE = 'seen {key}' WHERE ID = 1",
        )


def current_log(source: Source) -> int:
    with source.pipeline.database.session() as session:
        [(found,)] = session.fetch_all("SELECT SEQUENCE# FROM V$LOG WHERE STATUS = 'CURRENT'")
    return int(found)


def lose_redo(source: Source, *, is_forgotten: bool = False, over: Sequence[str] = ()) -> ScnWindow:
    """A window whose log is deleted, behind one that was captured and applied; changes lie before, in and behind it."""
    source.begin()
    change(source, 10)
    source.windows()
    switch(source)
    source.windows()
    change(source, 11)
    log = current_log(source)
    with source.oracle.owner() as connection:
        for statement in over[:1]:
            connection.cursor().execute(statement)
        switch(source)
        [window] = source.pipeline.plan_windows()[:1]
        for statement in over[1:]:
            connection.cursor().execute(statement)
        connection.commit()
    switch(source, 5)  # so that the log is in no online group any more
    redo = source.oracle.database.redo
    (redo.forget_archived_log if is_forgotten else redo.delete_archived_log)(log)
    change(source, 12)
    switch(source)
    assert source.record("ONE").mirror_scn == window.scn_low
    return window


def stops(source: Source) -> Result:
    with pytest.raises(RedoUnavailableError) as caught:
        source.run()
    assert "redolake source skip-gap" in caught.value.hint
    said = redolake("run")
    assert said.exit_code != 0
    return said


def check(source: Source, window: ScnWindow) -> None:
    """All is current, the gap is one window in the order, and the store can be made anew from what landed."""
    change(source, 13)
    switch(source)
    source.run()
    change(source, 14)
    source.run()
    source.check_current(*NAMES)
    assert all(source.record(name).state == "ready" for name in NAMES)
    windows = source.pipeline.records.windows()
    gaps = [one for one in windows if one.is_gap]
    for at in (window.scn_low + 1, gaps[0].window.scn_high):
        with pytest.raises(ConfigError, match="redo is gone around this SCN"):
            source.pipeline.cut_at(at)
    assert window.scn_low in {one.window.scn_low for one in gaps}
    records = {name: source.record(name) for name in NAMES}
    source.pipeline.rebuild_state(replace=True)
    assert {name: source.record(name) for name in NAMES} == records
    change(source, 15)
    source.run()
    source.check_current(*NAMES)


@pytest.mark.parametrize(
    "way",
    [
        [["table", "resnapshot", "DEMO.ONE", "DEMO.TWO"]],
        [["table", "resnapshot", "DEMO.ONE"], ["table", "resnapshot", "DEMO.TWO"]],
        [["table", "resnapshot", "--fresh", "DEMO.ONE", "DEMO.TWO"]],
        [["table", "remove", "DEMO.ONE", "DEMO.TWO"], ["table", "add", "DEMO.ONE", "DEMO.TWO"]],
        [["source", "skip-gap"], ["table", "resnapshot", "DEMO.ONE"], ["table", "resnapshot", "DEMO.TWO"]],
    ],
    ids=["resnapshot", "one-by-one", "fresh", "remove-and-add", "skip-gap"],
)  # fmt: skip
def test_each_way_out_that_is_documented_works_as_typed(
    source: Source, way: list[list[str]]
) -> None:
    window = lose_redo(source)
    stops(source)
    for words in way:
        said = redolake(*words)
        assert said.exit_code == 0, said.output
    assert redolake("run").exit_code == 0
    check(source, window)


def test_skip_gap_names_the_tables_and_what_brings_them_back(source: Source) -> None:
    window = lose_redo(source)
    stops(source)
    said = redolake("source", "skip-gap")
    assert said.exit_code == 0
    ways = re.findall(r"`redolake ([^`]*)`", said.stdout)
    assert [way.split() for way in ways] == [["table", "resnapshot", f"DEMO.{name}"] for name in NAMES]  # fmt: skip
    for name in NAMES:
        record = source.record(name)
        assert (record.state, record.trouble) == ("failed", "redo_gone")
        assert record.stopped_scn == window.scn_low
        source.check_exact(name)
    assert "There is no gap" in redolake("source", "skip-gap").stdout
    assert redolake("run").exit_code == 1, "the tables are still out"
    for way in ways:
        assert redolake(*way.split()).exit_code == 0
    check(source, window)


def test_the_policy_does_it_without_a_hand(source: Source) -> None:
    source.more["policies"] = {"on_redo_gone": "resnapshot"}
    window = lose_redo(source)
    assert redolake("run").exit_code == 0
    check(source, window)
    assert source.record("ONE").read_again[0].trouble == "redo_gone"


def test_a_table_of_another_policy_holds_the_windows(source: Source) -> None:
    source.tables = [{**one, "on_redo_gone": "resnapshot"} if "ONE" in one["name"] else one for one in source.tables]  # fmt: skip
    window = lose_redo(source)
    stops(source)
    assert source.record("ONE").read_again[0].trouble == "redo_gone"
    assert source.record("TWO").state == "ready"
    assert redolake("table", "resnapshot", "DEMO.TWO").exit_code == 0
    check(source, window)


def test_a_window_whose_redo_is_there_is_no_gap(source: Source) -> None:
    """The log was restored since, or the error was another one: the window is captured, and no table leaves."""
    source.begin()
    change(source, 11)
    switch(source)
    [*_, window] = source.pipeline.plan_windows()
    source.pipeline.store.windows.record_error(window, "a redo log that the window needs was deleted")  # fmt: skip
    assert "There is no gap" in redolake("source", "skip-gap").stdout
    source.run()
    source.check_current(*NAMES)
    assert not any(one.is_gap for one in source.pipeline.records.windows())


def test_a_log_that_nobody_shows_is_gone_some_time_after_a_later_one_was_archived(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = lose_redo(source, is_forgotten=True)
    with pytest.raises(LogsNotReadyError):
        source.run()
    monkeypatch.setattr(logs, "MISSING_SECONDS", 0)
    with pytest.raises(RedoUnavailableError) as caught:
        source.run()
    sequence = caught.value.facts["sequence"]
    assert f"RESTORE ARCHIVELOG SEQUENCE {sequence} THREAD 1" in caught.value.hint
    assert "CATALOG START WITH" in caught.value.hint
    assert redolake("table", "resnapshot", "DEMO.ONE", "DEMO.TWO").exit_code == 0
    check(source, window)


def test_a_transaction_that_was_open_over_the_gap_is_whole(source: Source) -> None:
    """It began behind the lost log, and commits behind the windows that are a gap."""
    window = lose_redo(source)
    with source.oracle.owner() as connection:
        connection.cursor().execute("INSERT INTO ONE VALUES (100, 'open')")
        switch(source)
        stops(source)
        assert redolake("table", "resnapshot", "DEMO.ONE", "DEMO.TWO").exit_code == 0
        connection.cursor().execute("UPDATE ONE SET NOTE = 'changed' WHERE ID = 100")
        switch(source)
        source.run()
        connection.commit()
    check(source, window)
    assert (100, "changed") in source.lake.image(table_id("ONE"))


def test_a_transaction_of_the_gap_that_the_snapshots_have_stops_no_table(source: Source) -> None:
    """It began in the gap, and had committed behind it when the tables were read again."""
    over = ("INSERT INTO ONE VALUES (100, 'new')", "UPDATE ONE SET NOTE = 'behind' WHERE ID = 100")
    window = lose_redo(source, over=over)
    stops(source)
    assert redolake("table", "resnapshot", "DEMO.ONE", "DEMO.TWO").exit_code == 0
    check(source, window)
    assert (100, "behind") in source.lake.image(table_id("ONE"))


def test_windows_behind_a_gap_are_captured_again_from_its_end(source: Source) -> None:
    window = lose_redo(source)
    stops(source)
    assert redolake("table", "resnapshot", "DEMO.ONE", "DEMO.TWO").exit_code == 0
    source.run()
    for record in source.pipeline.records.windows():
        if record.window.scn_low >= window.scn_low:
            path = source.path / "landing" / "src" / "windows" / record.window.folder
            (path / "transactions.parquet").unlink()
    change(source, 20)
    list(source.pipeline.recapture(needed_only=False))
    check(source, window)


def reset(source: Source) -> None:
    """Windows are captured, and one is planned; then the database is opened with RESETLOGS."""
    source.begin()
    change(source, 10)
    source.windows()
    change(source, 11)
    switch(source)
    source.oracle.database.redo.open_resetlogs()
    change(source, 12)
    switch(source)


def test_after_resetlogs_tables_come_back_behind_a_gap(source: Source) -> None:
    reset(source)
    with pytest.raises(IncarnationError, match="RESETLOGS"):
        source.run()
    found = redolake("source", "skip-gap")
    assert found.exit_code == 0, found.output
    for name in NAMES:
        assert f"{name} left the stream" in found.output
        assert "RESETLOGS" in (source.record(name).reason or "")
        assert redolake("table", "resnapshot", str(table_id(name))).exit_code == 0
    source.run()
    change(source, 13)
    source.run()
    source.check_current(*NAMES)
    newest = source.pipeline.records.windows(newest_first=True, limit=1)[0]
    assert newest.state == "applied"
    rebuilt = source.pipeline.rebuild_state(replace=True)
    assert rebuilt.is_written
    change(source, 14)
    source.run()
    source.check_current(*NAMES)


def test_a_policy_brings_all_tables_back_after_resetlogs(source: Source) -> None:
    source.more = {"policies": {"on_redo_gone": "resnapshot"}}
    reset(source)
    source.run()
    source.run()
    source.check_current(*NAMES)
    assert [one.is_gap for one in source.pipeline.records.windows()].count(True) >= 1


def test_scns_that_come_again_are_waited_for(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    reset(source)
    with pytest.raises(IncarnationError):
        source.run()
    low = source.record("ONE").mirror_scn
    assert low is not None
    start = Start(
        snapshot_scn=low,
        mining_low=low,
        resetlogs_change=1,
        database_name="ORCL",
        dbid=1,
        container_dbid=1,
    )
    monkeypatch.setattr(LogMinerReader, "read_start", lambda *_, **__: start)
    with pytest.raises(NotYetError, match="will recur"):
        source.pipeline.skip_gap()
    assert source.record("ONE").state == "ready"
