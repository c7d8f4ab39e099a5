"""Commands: what they print, how they end, what they say of errors."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from cdc_core.delta.appending import create_table
from cdc_core.errors import CdcError, ConfigError, OracleUnavailableError, TransientError
from cdc_core.lake.tables import changelog_properties
from cdc_core.model.reports import (
    PolicyAnswer,
    SourceStatus,
    StepReport,
    TableStatus,
    TransactionStatus,
)
from cdc_core.model.scn import Scn
from cdc_core.model.streams import StreamEnd
from cdc_core.model.templates import DEFAULT_PATHS
from cdc_core.model.transactions import OpenTransaction
from cdc_core.stage.layout import change_schema
from cdc_core.state.schemas import SchemaVersion
from pipelines.cli import app
from pipelines.commands import data, following, inspect, listings, maintain, schema, signal, tables
from pipelines.commands.shared import unexpected
from tests.assets.standin import EMPLOYEES, JOBS, StandIn, partition
from tests.docs.json_page import keys_page
from tests.state.writing import save_table

COMMANDS = [
    "setup",
    "init",
    "doctor",
    "certify",
    "demo",
    "ui",
    "snapshot",
    "capture",
    "apply",
    "run",
    "status",
    "windows",
    "signals",
    "reconcile",
    "explain",
    "repair",
    "maintain",
    "replay",
    "signal execute-snapshot",
    "signal schema-changes",
    "signal stop-snapshot",
    "signal pause-snapshot",
    "signal resume-snapshot",
    "signal send",
    "notifications",
    "table list",
    "table add",
    "table remove",
    "table pause",
    "table resume",
    "table resnapshot",
    "table purge-column",
    "table events",
    "table quarantine",
    "schema show",
    "oracle serve",
]


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """A source in place of the one that ``--config`` would name."""
    made = StandIn.open(tmp_path)

    @contextmanager
    def opened(_: Path | None, *, oracle: bool = True) -> Iterator[StandIn]:
        yield made

    for module in (data, inspect, listings, maintain, schema, signal, tables):
        monkeypatch.setattr(module, "opened", opened)
    yield made
    made.store.close()


def redolake(*arguments: str) -> Any:
    return CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"}).invoke(app, list(arguments))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    result = redolake(*command.split(), "--help")
    assert result.exit_code == 0
    assert f"{command} [OPTIONS]" in result.stdout
    assert len(result.stdout.splitlines()) > 5


def test_the_overview_names_every_command() -> None:
    text = redolake("--help").stdout
    assert all(command.split()[0] in text for command in COMMANDS)


def test_the_version_is_that_of_the_distribution() -> None:
    result = redolake("--version")
    assert result.exit_code == 0
    assert result.stdout == f"redolake {version('redolake')}\n"


def test_an_error_is_one_message_with_the_way_out_and_exit_code_2(tmp_path: Path) -> None:
    result = redolake("status", "--config", str(tmp_path / "nothing.yaml"))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Error: there is no configuration file" in result.stderr
    assert "What to do: Name one with --config FILE" in result.stderr
    assert "Traceback" not in result.stderr


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    result = redolake("--debug", "status", "--config", str(tmp_path / "nothing.yaml"))
    assert result.exit_code == 2
    assert "Traceback" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["schema", "show", "HR.X"], "no definition of this table (t", id="no-table"),
        pytest.param(["capture", "--until", "0"], "--until", id="no-scn"),
    ],
)
def test_what_is_not_there_is_not_done(source: StandIn, arguments: list[str], said: str) -> None:
    result = redolake(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr.replace("\n", " ")


def test_an_output_that_takes_nothing_says_why() -> None:
    """`redolake status > FILE` on a full disk is no fault of Redolake."""
    error = unexpected(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "status.txt"))
    assert error.message == "the operating system refuses: No space left on device"
    assert error.facts["file"] == "status.txt"
    assert "fault of Redolake" not in error.hint
    assert "does not know" in unexpected(ValueError("a row's value")).message


def test_a_file_that_is_no_text_says_what_it_should_be(tmp_path: Path) -> None:
    (tmp_path / "defs.yaml").write_bytes(b"\xff\xfe")
    result = redolake("status", "--config", str(tmp_path))
    assert result.exit_code == 2
    assert "Name a YAML file in UTF-8" in result.stderr


def test_a_wrong_file_is_told_before_anything_is_opened(tmp_path: Path) -> None:
    file = tmp_path / "defs.yaml"
    file.write_text("type: assets.components.OracleCdc\nattributes: {nam: hr}\n")
    result = redolake("run", "--config", str(file))
    assert result.exit_code == 2
    assert f"{file}:2:14 attributes.nam: unknown key; did you mean `name`?" in result.stderr


def test_snapshot_reads_what_is_pending(source: StandIn) -> None:
    result = redolake("snapshot")
    assert result.exit_code == 0
    assert "6 chunks with 60 rows applied" in result.stdout
    assert "Nothing to read" in redolake("snapshot").stdout
    assert "3 chunks" in redolake("snapshot", "--table", "hr.jobs").stdout


def test_a_condition_needs_its_table(source: StandIn) -> None:
    result = redolake("snapshot", "--condition", "A = 1")
    assert result.exit_code == 2
    assert "Add --table" in result.stderr


def test_capture_and_apply_are_steps_of_their_own(source: StandIn) -> None:
    source.snapshotted()
    assert "2 windows with 28 redo rows captured" in redolake("capture").stdout
    assert [step for step, _ in source.calls] == ["capture", "capture"]
    assert "2 windows with 28 changes applied" in redolake("apply").stdout
    assert "0 windows" in redolake("apply").stdout


def test_replay_takes_named_windows_or_a_range(source: StandIn) -> None:
    source.snapshotted()
    redolake("capture")
    redolake("apply")
    source.calls.clear()
    assert redolake("replay", "1500-2000", "1000-1500").exit_code == 0
    assert redolake("replay", "--from", "1500").exit_code == 0
    assert source.calls == [
        ("replay", "1500-2000"),
        ("replay", "1000-1500"),
        ("replay", "1500-2000"),
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param([], "no window was named", id="none"),
        pytest.param(["yesterday"], "this is not a window key (key=yesterday)", id="no-window"),
        pytest.param(["5-5"], "window (5, 5] is empty", id="empty"),
        pytest.param(["--from", "9", "--to", "1"], "lies in this range", id="no-range"),
    ],
)
def test_replay_refuses_what_is_no_window(source: StandIn, arguments: list[str], said: str) -> None:
    result = redolake("replay", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize(
    ("close_at", "waits"),
    [
        pytest.param("completed_logs", True, id="until-the-next-log-switch"),
        pytest.param("online", False, id="for-nothing"),
    ],
)
def test_a_run_without_work_says_up_to_where_and_what_it_waits_for(
    source: StandIn, monkeypatch: pytest.MonkeyPatch, close_at: str, waits: bool
) -> None:
    capture = source.config.capture.model_copy(update={"close_at": close_at})
    source.configure(source.config.model_copy(update={"capture": capture}))
    monkeypatch.setattr(source, "run_once", lambda: iter(()), raising=False)
    assert "no captured table changed." in redolake("run").stdout
    source.snapshotted()
    shown = redolake("run").stdout
    [begun] = {record.snapshot_scn for record in source.records.tables()}
    assert f"Nothing to do: no captured table changed up to SCN {begun}." in shown
    assert ("after the next log switch" in shown) is waits


def test_a_run_whose_tables_are_stopped_does_not_say_that_nothing_changed(
    source: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window may have had changes of theirs alone."""
    monkeypatch.setattr(source, "run_once", lambda: iter(()), raising=False)
    source.snapshotted()
    source.store.tables.fail(StreamEnd(EMPLOYEES, 0, "a reason", "a way"))
    shown = redolake("run").stdout
    assert "no captured table changed" not in shown
    assert "no other table changed" in shown
    assert "1 table did not take part (`redolake status`)" in shown


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(MemoryError(), id="python"),
        pytest.param(pa.ArrowMemoryError("malloc of size 1 failed"), id="arrow"),
        pytest.param(RuntimeError("can't start new thread"), id="threads"),
        pytest.param(ImportError("libllvmlite.so: failed to map segment from shared object"), id="libraries"),
        pytest.param(OSError(12, "Cannot allocate memory"), id="processes"),
    ],
)  # fmt: skip
def test_a_process_without_memory_says_so_in_one_line(
    source: StandIn, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails() -> Iterator[StepReport]:
        yield from ()
        raise error

    monkeypatch.setattr(source, "run_once", fails, raising=False)
    result = redolake("run")
    assert result.exit_code == 2
    assert "this process does not have enough memory" in result.stderr
    assert "ulimit -v" in result.stderr
    assert "Traceback" not in result.stderr


def test_what_nobody_knows_is_named_without_its_words(
    source: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may quote values of rows."""

    def fails() -> Iterator[StepReport]:
        yield from ()
        raise KeyError("a value of a row")

    monkeypatch.setattr(source, "run_once", fails, raising=False)
    result = redolake("run")
    assert result.exit_code == 2
    assert "cause=KeyError, place=test_cli.py:" in result.stderr
    assert "a value of a row" not in result.stderr
    assert "a value of a row" in redolake("--debug", "run").stderr


@pytest.mark.parametrize(("options", "longer"), [((), 10.0), (("--retry-max", "7"), 7.0)])
def test_run_in_a_loop_waits_out_what_goes_away(
    source: StandIn, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], longer: float
) -> None:
    rounds: list[int] = []

    def run_once() -> Iterator[StepReport]:
        rounds.append(1)
        if len(rounds) == 1:
            raise OracleUnavailableError("cannot connect", hint="Start it.")
        if len(rounds) == 3:
            raise KeyboardInterrupt
        yield StepReport(kind="window-applied", key="1-2", seconds=0.1, rows=len(rounds) // 2)

    pauses: list[float] = []
    monkeypatch.setattr(source, "run_once", run_once, raising=False)
    clock = SimpleNamespace(sleep=pauses.append, monotonic=time.monotonic)
    monkeypatch.setattr(following, "time", clock)  # the loop's alone: threads of others sleep too
    result = redolake("run", "--loop", "--every", "5", *options)
    assert "cannot connect" in result.stderr
    assert "1 change in 1 window applied" in result.stdout
    assert result.exit_code == 130
    assert "Run the same command to continue" in result.stderr
    assert pauses == [longer, 5.0], "longer after an error"
    assert source.calls == 2 * [("release_sessions", "")], "no session is kept over a pause"
    assert len(rounds) == 3


def test_a_loop_waits_for_oracle_at_its_start_too(
    source: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What snapshot.mode asks of a start is done once, as soon as it can be."""
    done: list[str] = []

    def begin() -> str:
        done.append("begin")
        if len(done) == 1:
            raise OracleUnavailableError("cannot connect", hint="Start it.")
        return "reads all tables again"

    def run_once() -> Iterator[StepReport]:
        done.append("round")
        if done.count("round") == 2:
            raise KeyboardInterrupt
        yield StepReport(kind="window-applied", key="1-2", seconds=0.1, rows=0)

    snapshot = source.config.snapshot.model_copy(update={"mode": "always"})
    source.configure(source.config.model_copy(update={"snapshot": snapshot}))
    monkeypatch.setattr(source, "begin", begin, raising=False)
    monkeypatch.setattr(source, "run_once", run_once, raising=False)
    clock = SimpleNamespace(sleep=lambda _: None, monotonic=time.monotonic)
    monkeypatch.setattr(following, "time", clock)
    result = redolake("run", "--loop")
    assert result.exit_code == 130
    assert "cannot connect" in result.stderr
    assert "snapshot.mode always: reads all tables again" in result.stdout
    assert done == ["begin", "begin", "round", "round"]


@pytest.mark.parametrize("error", [TransientError("Kafka is away"), ConfigError("no such topic")])
def test_a_loop_carries_windows_while_kafka_takes_nothing(
    source: StandIn, monkeypatch: pytest.MonkeyPatch, error: CdcError
) -> None:
    """Their redo would age, and the changes wait in the change log."""
    rounds: list[int] = []

    def run_once() -> Iterator[StepReport]:
        rounds.append(1)
        if len(rounds) == 4:
            raise KeyboardInterrupt
        yield StepReport(kind="window-applied", key="1-2", seconds=0.1, rows=len(rounds))

    def publish(_: object) -> str:
        raise error

    pauses: list[float] = []
    monkeypatch.setattr(source, "run_once", run_once, raising=False)
    monkeypatch.setattr(data, "_published", publish)
    clock = SimpleNamespace(sleep=pauses.append, monotonic=time.monotonic)
    monkeypatch.setattr(following, "time", clock)
    result = redolake("run", "--loop", "--every", "5")
    assert result.exit_code == 130
    assert pauses == [5.0] * 3
    assert "3 changes in 1 window applied" in result.stdout
    assert error.message in result.stderr


def test_run_once_ends_with_the_error(source: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_once() -> Iterator[StepReport]:
        raise OracleUnavailableError("cannot connect", hint="Start it.")
        yield

    monkeypatch.setattr(source, "run_once", run_once, raising=False)
    result = redolake("run")
    assert result.exit_code == 2
    assert "What to do: Start it." in result.stderr


def test_windows_are_listed_with_times_states_and_changes(source: StandIn) -> None:
    source.snapshotted()
    redolake("capture")
    first, second = source.pending_windows()
    source.apply_window(first)
    text = redolake("windows").stdout
    assert "2026-01-01 00:25:00" in text
    assert "HR.EMPLOYEES 7, HR.JOBS 7" in text
    found = json.loads(redolake("windows", "--json").stdout)["windows"]
    assert [(one["key"], one["state"]) for one in found] == [
        (partition(1000, 1500), "applied"),
        (partition(1500, 2000), "captured"),
    ]
    assert found[0]["changes"] == {"HR.EMPLOYEES": 7, "HR.JOBS": 7}
    documented = keys_page("windows")
    assert all(key in documented for key in found[0])
    late = redolake("windows", "--since", "2026-01-01T00:30", "--json").stdout
    assert [one["window"] for one in json.loads(late)["windows"]] == [second.key]
    assert "this is not a time" in redolake("windows", "--until", "yesterday").stderr


def test_a_table_s_definition_is_shown_as_of_an_scn_with_its_history(source: StandIn) -> None:
    source.snapshotted()
    first = source.store.schemas.versions(EMPLOYEES)[0].schema
    column = first.columns[-1]
    renamed = replace(
        first,
        scn_from=Scn(1300),
        columns=(*first.columns[:-1], replace(column, name="[X]")),
    )
    dropped = replace(renamed, scn_from=Scn(1400), columns=first.columns[:-1])
    for one, ddl in ((renamed, "ALTER TABLE …"), (dropped, "ALTER TABLE EMPLOYEES DROP ([X])")):
        source.store.schemas.save(SchemaVersion("hr", one, ddl))
    found = json.loads(redolake("schema", "show", "hr.employees", "--json").stdout)
    assert [one["name"] for one in found["columns"]] == list(dropped.column_names)
    assert [(one["scn"], one["changes"]) for one in found["definitions"]] == [
        (first.scn_from, ["read for the first time"]),
        (1300, [f"{column.name} is called [X]"]),
        (1400, ["[X] was dropped; the lake keeps it"]),
    ]
    early = json.loads(redolake("schema", "show", "hr.employees", "--as-of", "1399", "--json").stdout)  # fmt: skip
    assert [one["name"] for one in early["columns"]][-1] == "[X]"
    assert len(early["definitions"]) == 2
    text = redolake("schema", "show", "hr.employees").stdout
    assert "[X] was dropped" in text
    assert "DROP ([X])" in text
    documented = keys_page("schema show")
    assert all(
        key in documented
        for part in ("columns", "definitions")
        for one in found[part]
        for key in one
    )
    for arguments in (["hr.nowhere"], ["hr.employees", "--as-of", "1"]):
        result = redolake("schema", "show", *arguments)
        assert result.exit_code == 2
        assert "no definition of this table" in result.stderr


def test_events_are_a_query_to_run(source: StandIn) -> None:
    """For the engine that is named; what cannot be shown is refused."""
    source.snapshotted()
    refused = redolake("table", "events", "hr.employees")
    assert refused.exit_code == 2
    assert "no change log yet" in refused.stderr
    config = source.config
    [schema] = [one for one in source.store.schemas.newest().values() if one.table.name == "EMPLOYEES"]  # fmt: skip
    path = DEFAULT_PATHS.path("changelog", config.lake.path, "hr", schema.table)
    properties = changelog_properties("hr", schema, 0)
    create_table(path, change_schema(schema), properties, doing="creating", facts={})
    for engine, relation in (("spark", f"delta.`{path}`"), ("duckdb", f"delta_scan('{path}')")):
        told = redolake("table", "events", "hr.employees", "--engine", engine, "--database", "it's")
        assert told.exit_code == 0
        assert told.stdout.count(relation) == 2
        assert "total_order" in told.stdout
    told = redolake(
        "table", "events", "hr.employees", "--unavailable-value-placeholder", "it's away"
    )
    assert "'it\\'s away'" in told.stdout
    for wrong in ("Europe/Berlin'", "UTC; --", ""):
        refused = redolake("table", "events", "hr.employees", "--time-zone", wrong)
        assert refused.exit_code == 2
        assert "name of a time zone" in refused.stderr


def test_signals_are_listed_with_what_became_of_them(source: StandIn) -> None:
    assert "No signals." in redolake("signals").stdout
    source.snapshotted()
    redolake("signal", "execute-snapshot", "hr.jobs", "--id", "mine")
    source.store.signals.take("mine")
    source.store.signals.finish("mine", state="rejected", reason="ORA-01722 [invalid number]")
    text = redolake("signals").stdout
    assert "rejected" in text
    assert "mine: ORA-01722 [invalid number]" in text
    (found,) = json.loads(redolake("signals", "--json").stdout)["signals"]
    assert found["tables"] == ["HR.JOBS"]
    documented = keys_page("signals")
    assert all(key in documented for key in found)


def test_help_and_a_wrong_command_import_nothing_heavy() -> None:
    code = (
        "import sys, pipelines.cli\n"
        "heavy = ('pydantic', 'sqlglot', 'sqlalchemy', 'pyarrow', 'dagster', 'numba', 'oracledb', 'yaml')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_steps_do_not_bring_pandas() -> None:
    """pyarrow imports it when a Python list becomes an array: no module may make one while it is imported."""
    code = "import sys, cdc_core.steps; print('pandas' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_a_signal_waits_in_the_store(source: StandIn) -> None:
    source.snapshotted()
    arguments = ["hr.jobs", "HR.JOBS", "--condition", "ID > 5", "--id", "mine"]
    result = redolake("signal", "execute-snapshot", *arguments)
    assert result.exit_code == 0
    (signal,) = source.store.signals.pending()
    assert signal.id == "mine"
    assert signal.data == {
        "data-collections": ["HR.JOBS"],
        "additional-conditions": [{"data-collection": "HR.JOBS", "filter": "ID > 5"}],
    }
    assert "execute-snapshot OWNER.TABLE" in redolake("signal", "execute-snapshot").stderr


def test_a_definition_is_sent_from_a_file(source: StandIn, tmp_path: Path) -> None:
    source.snapshotted()
    column = {"name": "ID", "typeName": "NUMBER", "length": 9, "scale": 0}
    table = {"primaryKeyColumnNames": ["ID"], "columns": [column]}
    data = {"changes": [{"type": "ALTER", "id": "HR.JOBS", "table": table}]}
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps(data))
    result = redolake("signal", "schema-changes", str(path), "--id", "mine", "--scn", "77")
    assert result.exit_code == 0, result.stderr
    (signal,) = source.store.signals.pending()
    assert (signal.type, signal.data) == ("schema-changes", data | {"scn": 77})
    (listed,) = json.loads(redolake("signals", "--json").stdout)["signals"]
    assert listed["tables"] == ["HR.JOBS"]
    for text, said in (
        ("[1]", "does not contain a JSON object"),
        ('{"a": 4711,', "line 1 column 12"),
    ):
        path.write_text(text)
        stderr = redolake("signal", "schema-changes", str(path)).stderr
        assert said in stderr
        assert "4711" not in stderr
    path.unlink()
    assert "No such file" in redolake("signal", "schema-changes", str(path)).stderr


def status(source: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = TableStatus(
        table=str(JOBS),
        state="ready",
        position=2000,
        consistent_from=None,
        lag_scns=5,
        lag_seconds=1.5,
        snapshot_id="s1000",
        chunks_applied=3,
        chunks_planned=3,
        last_window="1500-2000",
    )
    new = TableStatus(
        table=str(EMPLOYEES),
        state="new",
        position=None,
        consistent_from=None,
        lag_scns=None,
        lag_seconds=None,
        snapshot_id=None,
        chunks_applied=0,
        chunks_planned=0,
        last_window=None,
    )
    found = SourceStatus(
        source="hr",
        scn_oracle=2005,
        windows_planned=0,
        windows_captured=0,
        windows_applied=2,
        open_transactions=3,
        oldest_open_scn=1900,
        signals_pending=0,
        tables=(ready, new),
        transactions_released=(
            OpenTransaction(
                xid="0100020003000000",
                start_scn=1,
                first_ordinal=0,
                tables=("HR.JOBS",),
                table_rows=(0,),
                start_timestamp=datetime(2026, 1, 2),
            ),
        ),
        transactions_evicted=(
            OpenTransaction(
                xid="0300020003000000", start_scn=2, first_ordinal=1, tables=("HR.JOBS",)
            ),
        ),
        oldest_open=(
            TransactionStatus(
                xid="0200020003000000",
                state="open",
                username="HR",
                client_id="till [7]",
                session_id=42,
                serial=1201,
                start_scn=1900,
                started="2026-01-02T03:04:05",
                seen="2026-01-02T02:10:00+00:00",
                open_seconds=97_500.0,
                tables=("HR.JOBS",),
                rows=1200,
                keeps_windows_from="1500-2000",
            ),
        ),
    )
    monkeypatch.setattr(source, "status", lambda: found)


def test_status_shows_each_table(source: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    status(source, monkeypatch)
    text = redolake("status").stdout
    assert "Oracle is at SCN 2005" in text
    assert "open transactions: 3 (oldest since SCN 1900)" in text
    assert (
        "open: transaction 0200020003000000 of HR (session 42,1201), client till [7] since 2026-01-02 03:04:05 (time of the database's host), "
        "for at least 1 d 3 h: 1,200 rows of HR.JOBS; keeps windows from 1500-2000 on\n… and 2 younger open transactions.\n"
    ) in text
    assert "5 SCNs, 2 s" in text
    assert "abandoned: transaction 0100020003000000 of HR.JOBS" in text
    assert (
        "evicted: transaction 0300020003000000 of HR.JOBS. Its redo shows neither COMMIT nor ROLLBACK, and another "
        in text
    )


def test_status_json_has_its_keys(source: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    status(source, monkeypatch)
    found = json.loads(redolake("status", "--json").stdout)
    documented = keys_page("status")
    assert all(key in documented for key in found)
    assert all(key in documented for key in found["tables"][0])
    assert found["tables"][0]["position"] == 2000
    assert all(key in documented for key in found["oldest_open"][0])
    assert found["transactions_released"][0]["start_timestamp"] == "2026-01-02T00:00:00"


def test_reconcile_is_0_when_equal(source: StandIn) -> None:
    result = redolake("reconcile", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["scn"] == 2000
    assert [table["table"] for table in found["tables"]] == ["HR.EMPLOYEES", "HR.JOBS"]
    wanted = {"table", "rows_oracle", "rows_delta", "differences"}
    assert wanted <= set(found["tables"][0])


def test_reconcile_is_1_on_a_difference_and_names_keys_only_where_asked(source: StandIn) -> None:
    source.differences["HR.JOBS"] = 1
    result = redolake("reconcile")
    assert result.exit_code == 1
    assert "redolake repair" in result.stdout
    assert "ID=1" not in result.stdout + redolake("reconcile", "--json").stdout
    assert "HR.JOBS differs at: ID=1" in redolake("reconcile", "--keys", "5").stdout
    assert redolake("reconcile", "--table", "HR.EMPLOYEES").exit_code == 0


def test_maintenance_shows_what_became_of_each_table(source: StandIn) -> None:
    result = redolake("maintain")
    assert result.exit_code == 0, result.stderr
    assert "12 → 1" in result.stdout
    assert "on (new)" in result.stdout
    source.differences["HR.JOBS"] = 1
    result = redolake("maintain")
    assert result.exit_code == 1
    assert "HR.JOBS was left alone: Delta refused" in result.stdout
    assert "HR.EMPLOYEES  mirror" in result.stdout
    [found] = json.loads(redolake("maintain", "--json", "-t", "HR.EMPLOYEES").stdout)["tables"]
    documented = keys_page("maintain")
    assert all(key in documented for key in [*found, *found["done"][0]])
    assert found["done"][0]["files_removed"] == 7


def test_repair_reads_again_what_differs(source: StandIn) -> None:
    source.differences["HR.JOBS"] = 1
    result = redolake("repair")
    assert result.exit_code == 0, result.stderr
    assert "1 chunk read again" in result.stdout
    assert ("repair", "HR.JOBS") in source.calls
    assert "Nothing differs" in redolake("repair").stdout


def test_doctor_json_is_json_and_exit_1_says_that_something_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.config_file.demo_config", lambda: tmp_path / "none.yaml")
    result = redolake("doctor", "--json")
    found = json.loads(result.stdout)
    assert set(found) == {"ok", "checks"}
    assert result.exit_code == (0 if found["ok"] else 1)


def test_a_failed_table_is_told_with_its_way_out_and_ends_a_run_with_one(source: StandIn) -> None:
    source.snapshotted()
    way_out = "`redolake table resnapshot HR.JOBS`"
    source.store.tables.fail(StreamEnd(JOBS, 0, "its rows were truncated", way_out))
    ended = redolake("capture")
    assert ended.exit_code == 1
    for text in (
        "HR.JOBS has failed: its rows were truncated",
        "redolake table resnapshot HR.JOBS",
    ):
        assert text in ended.stderr


def test_a_table_that_a_policy_brings_back_is_no_failure(source: StandIn) -> None:
    record = source.snapshotted().store.tables.get(JOBS)
    assert record is not None
    answered = replace(
        record, state="failed", asked_by="policy", reason="its rows were truncated",
        way_out="The policy on_truncate reads the table again with the next run.",
    )  # fmt: skip
    save_table(source.store, answered)
    ended = redolake("capture")
    assert ended.exit_code == 0
    for text in ("HR.JOBS has left: its rows were truncated", "on_truncate reads the table again"):
        assert text in ended.stderr


def test_the_list_of_tables_says_why_one_is_stopped_and_the_way_out(
    source: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = TableStatus(
        table="HR.JOBS", state="failed", position=1000, consistent_from=None, lag_scns=None, lag_seconds=None, snapshot_id="s1000", chunks_applied=1, chunks_planned=1, last_window=None,
        reason="its rows were truncated", way_out="`redolake table resnapshot HR.JOBS`", since="2026-01-02T03:04:05+00:00", stopped_scn=1000,
        read_again=(PolicyAnswer("on_truncate", "2026-01-01T00:00:00+00:00", "truncated before"),),
    )  # fmt: skip
    found = SourceStatus(
        source="hr",
        scn_oracle=None,
        oracle_error="connection refused (dsn=db:1521/X)",
        windows_planned=0,
        windows_captured=0,
        windows_applied=0,
        open_transactions=0,
        oldest_open_scn=None,
        signals_pending=0,
        tables=(jobs,),
    )
    monkeypatch.setattr(source, "status", lambda **_: found)
    shown = redolake("table", "list").stdout
    for text in (
        "failed", "truncated", "2026-01-02", "redolake table resnapshot HR.JOBS",
        "HR.JOBS was read again by on_truncate at 2026-01-01T00:00:00+00:00: truncated before",
    ):  # fmt: skip
        assert " ".join(text.split()) in " ".join(shown.split())
    shown = redolake("status").stdout
    assert "read again by on_truncate" in shown
    assert "connection refused (dsn=db:1521/X)" in shown
    [one] = json.loads(redolake("table", "list", "--json").stdout)
    assert (one["table"], one["state"], one["stopped_scn"]) == ("HR.JOBS", "failed", 1000)
