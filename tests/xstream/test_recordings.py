"""Recordings of XStream's LCRs: whatever becomes of them, nothing is lost and nothing counts twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cdc_core.errors import (
    CdcError,
    ConfigError,
    DecodeError,
    PreflightError,
    RedoUnavailableError,
)
from cdc_core.xstream import runs
from cdc_core.xstream.lcrs import DECODER, Lcr, line_of
from oracle_embedded.xstream import Recorder
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, run_random_changes, source_of, table_id
from tests.xstream.lcrs import recorded, recorder_of

oracle = oracle_with(
    "CREATE TABLE K (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))", "INSERT INTO K VALUES (1, 'a')"
)


@pytest.fixture
def recorder(oracle: Oracle, tmp_path: Path) -> Recorder:
    return recorder_of(oracle, tmp_path / "lcrs")


@pytest.fixture
def source(oracle: Oracle, recorder: Recorder, tmp_path: Path) -> Iterator[Source]:
    with source_of(oracle, tmp_path, "K", capture=recorded(recorder)) as opened:
        opened.run()
        yield opened


def newest(recorder: Recorder) -> Path:
    return max(recorder.folder.glob("*.jsonl"))


def edit(recorder: Recorder, change: Callable[[dict[str, Any]], None]) -> None:
    """Change every line of the newest file."""
    lines = [json.loads(line) for line in newest(recorder).read_text().splitlines()]
    for line in lines:
        change(line)
    newest(recorder).write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def ids_of(source: Source) -> list[int]:
    changes = source.lake.tables[table_id("K")].changes
    return [one["after"]["ID"] for one in changes if one["_cdc_op"] == "c"]


def test_a_line_that_has_not_ended_waits(
    oracle: Oracle, recorder: Recorder, source: Source
) -> None:
    """Whatever a file ends with: what is not whole yet comes with a later window, once."""
    before = newest(recorder).read_bytes()
    oracle.run("INSERT INTO K VALUES (2, 'b')", "UPDATE K SET V = 'c' WHERE ID = 2")
    recorder.write()
    whole = newest(recorder).read_bytes()
    for end in range(len(before), len(whole), 97):
        newest(recorder).write_bytes(whole[:end])
        source.windows()
    assert source.ops("K") in ("", "cu")
    newest(recorder).write_bytes(whole)
    source.windows()
    assert source.ops("K") == "cu"
    source.check_exact("K")


@pytest.mark.parametrize(("seed", "run_min"), [(0, 8), (1, 1), (2, 2)])
def test_the_recorder_and_redolake_are_killed_at_random(
    oracle: Oracle,
    recorder: Recorder,
    source: Source,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    run_min: int,
) -> None:
    """The recorder ends in the middle of a line or not, and the server gives transactions again from a random place on. Rows are read
    one by one, or in runs."""
    monkeypatch.setattr(runs, "_RUN_MIN", run_min)
    rng = Random(seed)

    def change(rng: Random, cursor: Any, key: int, *, is_new: bool) -> None:
        if is_new:
            cursor.execute("INSERT INTO K VALUES (:1, 'new')", [key + 1000])
        else:
            cursor.execute("UPDATE K SET V = :2 WHERE ID = :1", [key + 1000, str(rng.random())])
        recorder.write()
        if rng.random() < 0.4:
            if rng.random() < 0.5:
                recorder.tear()
            recorder.restart(back=rng.randrange(4))
        if rng.random() < 0.3:
            source.capture()
            source.close()  # captured, not applied
        elif rng.random() < 0.5:
            source.windows()

    run_random_changes(
        source, rng, change, steps=40, created=20, last="UPDATE K SET V = 'last' WHERE ID = 1000"
    )
    recorder.write()
    source.windows()
    source.check_exact("K")
    created = ids_of(source)
    assert len(created) == len(set(created)) == 20


@pytest.mark.parametrize("kept", range(1, 5))
def test_a_transaction_that_was_recorded_in_part_comes_whole_once(
    oracle: Oracle, recorder: Recorder, source: Source, kept: int
) -> None:
    """The recorder was killed inside of it; the next one gives it again, from its first LCR on."""
    oracle.run("UPDATE K SET V = 'b'")
    recorder.write()
    source.windows()
    recorder.restart()
    oracle.run(*(f"INSERT INTO K VALUES ({number}, 'b')" for number in range(2, 6)))
    recorder.write()
    lines = newest(recorder).read_bytes().splitlines(keepends=True)
    newest(recorder).write_bytes(b"".join(lines[: 1 + kept]))
    recorder.restart(back=2)
    recorder.write()
    source.windows()
    assert source.ops("K") == "ucccc"
    source.check_exact("K")


def test_a_recording_that_is_missing_between_two_is_noticed(
    oracle: Oracle, recorder: Recorder, source: Source
) -> None:
    oracle.run("INSERT INTO K VALUES (2, 'b')")
    recorder.write()
    source.windows()
    oracle.run("INSERT INTO K VALUES (3, 'b')")
    recorder.restart()
    recorder.write()
    gone = newest(recorder)
    oracle.run("INSERT INTO K VALUES (4, 'b')")
    recorder.restart()
    recorder.write()
    kept = gone.read_bytes()
    gone.unlink()
    with pytest.raises(RedoUnavailableError, match="LCRs between them are missing") as caught:
        source.windows()
    assert "redolake source skip-gap" in caught.value.hint
    gone.write_bytes(kept)
    source.windows()
    assert source.ops("K") == "ccc"


def _without(member: str) -> Callable[[dict[str, Any]], None]:
    def change(line: dict[str, Any]) -> None:
        line.get("attributes", {}).pop(member, None)
        line.pop(member, None)

    return change


def _set(member: str, value: Any, command: str = "INSERT") -> Callable[[dict[str, Any]], None]:
    def change(line: dict[str, Any]) -> None:
        if line.get("command") == command and line.get("attributes", {}).get("ROW_ID"):
            line[member] = value

    return change


def _of_version_2(line: dict[str, Any]) -> None:
    if line.get("command") == "INSERT":
        line.update(position=line["position"][:-2] + "02", commit_scn=line["scn"] + 1)


def _no_commit(line: dict[str, Any]) -> None:
    if line.get("command") == "COMMIT":
        line["command"] = "START_TX"


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        pytest.param(_without("ROW_ID"), PreflightError, "INCLUDE_EXTRA_ATTRIBUTE", id="no-rowid"),
        pytest.param(_without("transaction"), PreflightError, "lcr-files", id="no-transaction"),
        pytest.param(_set("position", "zz"), DecodeError, "lcr-files", id="no-position"),
        pytest.param(_of_version_2, DecodeError, "upgraded", id="another-version"),
        pytest.param(_set("flags", 0x20), CdcError, "resnapshot", id="in-flight"),
        pytest.param(_set("command", "MERGE"), DecodeError, "committed_data_only", id="unknown"),
        pytest.param(_no_commit, DecodeError, "Record the LCRs of COMMIT", id="no-commit"),
        pytest.param(_set("lcr", "other"), DecodeError, "lcr-files", id="another-kind"),
    ],
)
def test_lcrs_that_lack_something_are_refused(
    oracle: Oracle,
    recorder: Recorder,
    source: Source,
    change: Callable[[dict[str, Any]], None],
    error: type[CdcError],
    says: str,
) -> None:
    recorder.restart()
    oracle.run("INSERT INTO K VALUES (2, 'b')")
    recorder.write()
    edit(recorder, change)
    with pytest.raises(error) as caught:
        source.windows()
    assert says in caught.value.hint
    assert source.ops("K") == ""


def test_a_position_of_the_second_version_needs_the_commit_beside_it(
    oracle: Oracle, tmp_path: Path
) -> None:
    recorder = recorder_of(oracle, tmp_path / "lcrs", version=2)
    with source_of(oracle, tmp_path, "K", capture=recorded(recorder)) as source:
        source.run()
        oracle.run("INSERT INTO K VALUES (2, 'b')")
        recorder.write()
        edit(recorder, _without("commit_scn"))
        with pytest.raises(PreflightError, match="lack commit_scn"):
            source.windows()


def _column(at: int, **values: Any) -> Callable[[dict[str, Any]], None]:
    def change(line: dict[str, Any]) -> None:
        if line.get("command") == "INSERT" and len(line["new"]) > at:
            line["new"][at].update(values)

    return change


def _drop(line: dict[str, Any]) -> None:
    if line.get("command") == "INSERT":
        del line["new"][1]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param(_column(0, value="c1"), "wrong length", id="number-cut-off"),
        pytest.param(_column(0, type=12), "type 12", id="another-type"),
        pytest.param(_column(0, value="xx"), "hexadecimal", id="no-hex"),
        pytest.param(_column(1, charset=12345), "character set", id="unknown-character-set"),
        pytest.param(_column(1, value="ff"), "not in the database", id="no-utf8"),
        pytest.param(_column(1, name="OTHER"), "an INSERT lacks columns: V", id="lacks-a-column"),
        pytest.param(_drop, "an INSERT lacks columns: V", id="drops-a-column"),
        pytest.param(_column(1, flags=0x100), "encrypted", id="encrypted"),
        pytest.param(_set("command", "LOB WRITE"), "a piece of a LOB", id="piece-of-a-lob"),
        pytest.param(_set("flags", 1), "only the row's identity", id="key-only"),
    ],
)
def test_a_value_that_is_not_understood_stops_its_table_alone(
    oracle: Oracle,
    recorder: Recorder,
    source: Source,
    change: Callable[[dict[str, Any]], None],
    says: str,
) -> None:
    oracle.run("INSERT INTO K VALUES (2, 'b')")
    recorder.write()
    source.windows()
    recorder.restart()
    oracle.run("INSERT INTO K VALUES (3, 'secret')")
    recorder.write()
    edit(recorder, change)
    source.windows()
    record = source.record("K")
    assert record.state == "failed"
    assert says in (record.reason or "")
    assert "secret" not in (record.reason or "")
    assert source.ops("K") == "c"


def test_a_column_that_the_definition_lacks_is_never_left_out_silently(
    oracle: Oracle, recorder: Recorder, source: Source
) -> None:
    """The outbound server was created without DDL: the update of an added column is not understood."""
    oracle.run("ALTER TABLE K ADD (MORE NUMBER(5))")
    oracle.run("UPDATE K SET MORE = 1")
    recorder.write()
    lines = newest(recorder).read_text().splitlines(keepends=True)
    newest(recorder).write_text("".join(one for one in lines if '"lcr": "ddl"' not in one))
    source.windows()
    assert source.record("K").state == "failed"
    assert "include_ddl" in (source.record("K").reason or "")


def test_a_lob_that_is_not_captured_may_be_written_in_pieces(
    oracle: Oracle, tmp_path: Path, recorder: Recorder
) -> None:
    oracle.run("CREATE TABLE L (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9), C CLOB)")
    recorder.write()
    with source_of(oracle, tmp_path / "l", "L", capture=recorded(recorder)) as source:
        source.configure({"name": "L", "columns_exclude": ["C"]})
        source.run()
        oracle.run("INSERT INTO L VALUES (1, 'a', 'text')")
        with oracle.owner() as connection:
            cursor = connection.cursor()
            [lob] = cursor.execute("SELECT C FROM L WHERE ID = 1 FOR UPDATE").fetchone()
            lob.write("piece", 2)
            connection.commit()
        oracle.run("UPDATE L SET V = 'b'")
        recorder.write()
        assert '"command": "LOB WRITE"' in newest(recorder).read_text()
        source.windows()
        assert source.record("L").state == "ready"
        assert source.lake.image(table_id("L")) == [(1, "b")]


def test_lcrs_of_two_databases_need_the_name_of_one(
    oracle: Oracle, recorder: Recorder, source: Source
) -> None:
    oracle.run("INSERT INTO K VALUES (2, 'b')")
    oracle.run("INSERT INTO K VALUES (3, 'b')")
    recorder.restart()
    recorder.write()

    def change(line: dict[str, Any]) -> None:
        if any(one["value"] == "c103" for one in line.get("new", ())[:1]):
            change.other = line["transaction"]  # type: ignore[attr-defined]
        if line.get("transaction") == getattr(change, "other", None):
            line["database"] = "OTHER"

    edit(recorder, change)
    with pytest.raises(ConfigError, match="more than one database"):
        source.windows()
    name = oracle.database.engine.container_name
    source.more = {"capture": recorded(recorder, database=name)}
    source.configure("K")
    source.windows()
    assert ids_of(source) == [3]


def test_a_later_window_has_lcrs_of_the_same_database(
    oracle: Oracle, recorder: Recorder, source: Source
) -> None:
    """Each window may have those of one alone: the first one says which, until the configuration does."""
    oracle.run("INSERT INTO K VALUES (2, 'b')")
    recorder.write()
    source.windows()
    oracle.run("INSERT INTO K VALUES (3, 'b')")
    recorder.restart()
    recorder.write()

    def change(line: dict[str, Any]) -> None:
        if "database" in line:
            line["database"] = "OTHER"

    edit(recorder, change)
    with pytest.raises(ConfigError, match="more than one database"):
        source.windows()
    assert ids_of(source) == [2]
    source.more = {"capture": recorded(recorder, database="OTHER")}
    source.configure("K")
    source.windows()
    oracle.run("INSERT INTO K VALUES (4, 'b')")
    recorder.write()
    source.windows()
    assert ids_of(source) == [2, 3]


def test_values_that_do_not_fit_are_null_and_told(
    oracle: Oracle, recorder: Recorder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    oracle.run("CREATE TABLE B (ID NUMBER(9) PRIMARY KEY, N NUMBER(1))")
    entry = {"name": "B", "columns_as": {"N": "boolean"}, "on_unfit_value": "null"}
    with source_of(oracle, tmp_path / "b", capture=recorded(recorder)) as source:
        source.configure(entry)
        source.run()
        oracle.run("INSERT INTO B VALUES (1, 7)", "INSERT INTO B VALUES (2, 1)")
        recorder.write()
        source.windows()
        assert source.lake.image(table_id("B")) == [(1, None), (2, True)]
        totals = source.pipeline.store.totals.all()
        assert totals["redolake_unfit_values_total", ("DEMO.B",)] == 1
    assert "values that do not fit their columns are NULL table=DEMO.B values=1" in caplog.text


def test_doctor_looks_at_the_lcrs(oracle: Oracle, recorder: Recorder, source: Source) -> None:
    check = source.pipeline.change_reader.check
    tables = source.pipeline.config.tables
    assert not [one for one in check(tables) if one.is_problem]
    oracle.run("INSERT INTO K VALUES (2, 'b')")
    recorder.write()
    edit(recorder, _without("ROW_ID"))
    assert [one for one in check(tables) if "ROW_ID" in one.problem]
    for path in recorder.folder.glob("*"):
        path.unlink()
    assert [one for one in check(tables) if "no LCR has been recorded" in one.problem]


def test_lines_are_written_as_they_are_read(oracle: Oracle, recorder: Recorder) -> None:
    oracle.run("INSERT INTO K VALUES (2, NULL)", "UPDATE K SET V = 'x'")
    recorder.write()
    lines = newest(recorder).read_bytes().splitlines()
    lcrs = [DECODER.decode(line) for line in lines]
    assert [DECODER.decode(line_of(lcr)) for lcr in lcrs] == lcrs
    assert {lcr.command for lcr in lcrs} >= {"INSERT", "UPDATE", "COMMIT"}
    assert isinstance(lcrs[0], Lcr)
