"""What people read while the demo runs, and what the demo's files say."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from assets.config_file import load_config
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import MirrorWrite, StepReport, TableApplied
from pipelines.demo import settings
from pipelines.demo.screen import (
    FinalRow,
    Screen,
    chunk_line,
    final_table,
    window_line,
)
from pipelines.demo.server import Served, last_served
from pipelines.demo.settings import DemoSettings

FLIGHTS = TableId("NYC", "FLIGHTS")
SERVED = Served(
    dsn="127.0.0.1:1521/FREEPDB1",
    user="nyc",
    password="tiger-secret",
    capture_user="redolake",
    capture_password="cat-secret",
    port=1521,
)


def _text(console_width: int = 200) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, width=console_width), out


def test_a_window_fits_80_columns_with_counts_and_seconds() -> None:
    captured = StepReport(
        kind="window-captured", key="10-20", seconds=0.5, rows=310,
        facts={"transactions_committed": 12, "transactions_rolled_back": 1, "transactions_open": 1, "schema_changes": 1},
    )  # fmt: skip
    applied = StepReport(
        kind="window-applied", key="10-20", seconds=1.5, scn_low=10, scn_high=20,
        tables=(TableApplied(table=FLIGHTS, changes=300, rows_inserted=100, rows_updated=150, rows_deleted=50, seconds=1.2, write=MirrorWrite("merge", "the window is large")), TableApplied(table=TableId("NYC", "PLANES"))),
    )  # fmt: skip
    out = io.StringIO()
    with Screen(Console(file=out, width=200)) as screen:
        screen.step(captured)
        screen.step(applied)
    line, brought = out.getvalue().strip().splitlines()
    assert line == (
        "window (10, 20]  310 redo rows, 12 commits, 1 rolled back, 1 open, table altered  2.0 s"
    )
    assert brought == "         → FLIGHTS 300"
    assert screen.windows_seen == 1
    assert screen.changes_seen == 300
    assert screen.writes == {FLIGHTS: [MirrorWrite("merge", "the window is large")]}


def test_the_seconds_of_phases_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([10.0, 14.0, 19.0])
    monkeypatch.setattr("pipelines.demo.screen.time.monotonic", lambda: next(now))
    screen = Screen(Console(file=io.StringIO()))
    screen.phase_ends("snapshot")
    screen.phase_ends("windows")
    assert screen.phases == {"snapshot": 4.0, "windows": 5.0}


def test_a_window_that_was_captured_by_an_earlier_start_has_a_line_too() -> None:
    applied = StepReport(kind="window-applied", key="10-20", seconds=0.1, scn_low=10, scn_high=20)
    assert "no changes" in window_line(applied, None)


def test_a_chunk_is_one_line() -> None:
    landed = StepReport(
        kind="chunk-landed", key="s10:000002", seconds=0.3, rows=10_000, table=FLIGHTS
    )
    applied = StepReport(
        kind="chunk-applied", key="s10:000002", seconds=1.2, rows=10_000, table=FLIGHTS
    )
    assert "3 of 12" in chunk_line(applied, landed, 12)
    assert "10,000 rows" in chunk_line(applied, landed, 12)
    assert "landed" not in chunk_line(applied, None, 12)


def test_the_final_table_shows_both_sides() -> None:
    console, out = _text()
    console.print(final_table([FinalRow("NYC.FLIGHTS", 27_000, 26_999, 1, 500)], scn=42))
    text = out.getvalue()
    assert "SCN 42" in text
    for cell in ("27,000", "26,999", "500"):
        assert cell in text


def test_definitions_are_a_sources_configuration_without_secrets(tmp_path: Path) -> None:
    config = settings.write_definitions(tmp_path, SERVED)
    text = (tmp_path / "defs.yaml").read_text()
    assert "secret" not in text
    assert yaml.safe_load(text)["attributes"]["oracle"]["password_env"] == settings.PASSWORD_ENV
    assert [str(table.table) for table in config.tables] == [
        "NYC.AIRLINES", "NYC.AIRPORTS", "NYC.PLANES", "NYC.WEATHER", "NYC.FLIGHTS",
    ]  # fmt: skip
    assert config.oracle.user == "redolake"
    read = load_config(tmp_path, environ={settings.PASSWORD_ENV: "cat-secret"})
    assert read.model_dump(exclude={"dagster"}) == config.model_dump()


def test_the_cluster_that_the_demo_was_started_with_is_in_its_definitions(tmp_path: Path) -> None:
    """Also when a later command writes them again; the next demo chooses anew."""
    settings.prepare(tmp_path, DemoSettings(spark="spark://host:7077"))
    for _ in range(2):
        assert settings.write_definitions(tmp_path, SERVED).lake.spark_master == "spark://host:7077"
    settings.prepare(tmp_path, DemoSettings())
    assert settings.write_definitions(tmp_path, SERVED).lake.is_local


def test_another_scale_or_reader_begins_anew_and_the_same_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    assert settings.prepare(folder, DemoSettings()) is None
    (folder / "state.db").write_text("kept")
    assert "Continuing" in str(settings.prepare(folder, DemoSettings()))
    assert (folder / "state.db").exists()
    other = DemoSettings(capture="xstream")
    assert "starts from the beginning" in str(settings.prepare(folder, other))
    assert not (folder / "state.db").exists()
    (folder / "state.db").write_text("kept")
    assert "demo of a day" in str(settings.prepare(folder, DemoSettings(scale="month")))
    assert not (folder / "state.db").exists()
    (folder / "state.db").write_text("kept")
    assert "starts from the beginning" in str(
        settings.prepare(folder, DemoSettings(scale="month"), fresh=True)
    )
    assert not (folder / "state.db").exists()


def test_a_folder_that_was_never_served_has_no_record(tmp_path: Path) -> None:
    assert last_served(tmp_path) is None


def test_a_served_database_does_not_print_its_passwords() -> None:
    assert "secret" not in repr(SERVED)
