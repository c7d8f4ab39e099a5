"""Signals through a pipeline on an embedded Oracle: all that one asks for is planned, or nothing. No Spark."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import oracledb
import pytest

from cdc_core.errors import ConfigError, NotYetError, SnapshotPausedError
from cdc_core.model.identifiers import TableId
from cdc_core.model.signals import Signal
from cdc_core.signals.channels import FileChannel
from cdc_core.steps import Pipeline
from cdc_core.steps.consistent_cut import exact_tables
from tests.oracle.embedded import OWNER, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps import told
from tests.steps.harness import Source, capturing
from tests.steps.memory_lake import MemoryLake

ONE, TWO = TableId(OWNER, "ONE"), TableId(OWNER, "TWO")

oracle = oracle_with(
    *(f"CREATE TABLE {table} (ID NUMBER(9) PRIMARY KEY)" for table in ("ONE", "TWO")),
    *(f"INSERT INTO {table} VALUES (1)" for table in ("ONE", "TWO")),
    "CREATE TABLE MANY (ID NUMBER(9) PRIMARY KEY, GRP NUMBER(9))",
    "INSERT INTO MANY SELECT LEVEL, CASE WHEN LEVEL > 20 THEN MOD(LEVEL, 30) END FROM DUAL"
    " CONNECT BY LEVEL <= 350",
)


@pytest.fixture
def pipeline(oracle: Oracle, tmp_path: Path) -> Iterator[Pipeline]:
    with Pipeline(oracle.config(tmp_path, "ONE", "TWO"), open_lake=MemoryLake().open) as opened:
        yield opened


def signal(name: str, *tables: TableId, **filters: str) -> Signal:
    conditions = [
        {"data-collection": f"{OWNER}.{table}", "filter": text} for table, text in filters.items()
    ]
    data = {"data-collections": [str(table) for table in tables]}
    return Signal(
        id=name,
        source="src",
        type="execute-snapshot",
        data=data | {"additional-conditions": conditions},
    )


def planned_for(pipeline: Pipeline, name: str) -> list[tuple[TableId, str | None]]:
    chunks = pipeline.store.chunks.find()
    return sorted((one.table, one.condition) for one in chunks if one.signal_id == name)


def test_a_signal_for_two_tables_plans_both_with_their_own_conditions(pipeline: Pipeline) -> None:
    list(pipeline.run_snapshot())
    pipeline.add_signal(signal("s1", ONE, TWO, TWO="ID > 0"))
    [(taken, keys)] = pipeline.take_signals()
    assert (taken.id, [key.table for key in keys]) == ("s1", [ONE, TWO])
    assert planned_for(pipeline, "s1") == [(ONE, None), (TWO, "ID > 0")]


def test_one_bad_condition_rejects_the_signal_whole(pipeline: Pipeline) -> None:
    list(pipeline.run_snapshot())
    bad = signal("s1", ONE, TWO, TWO="DROP TABLE TWO")
    with pytest.raises(ConfigError, match="condition"):
        pipeline.add_signal(bad)
    pipeline.store.signals.add(bad)  # as a row of Oracle's signal table comes
    assert pipeline.take_signals() == []
    assert planned_for(pipeline, "s1") == []
    [record] = pipeline.store.signals.find()
    assert (record.state, "condition" in (record.reason or "")) == ("rejected", True)


def test_what_dies_while_planning_is_planned_once_afterwards(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(pipeline.run_snapshot())
    pipeline.add_signal(signal("s1", ONE, TWO))
    with monkeypatch.context() as patched:
        patched.setattr(type(pipeline.store.signals), "finish", _dies)
        with pytest.raises(KeyboardInterrupt):
            pipeline.take_signals()
    before = planned_for(pipeline, "s1")
    [(_, keys)] = pipeline.take_signals()
    assert planned_for(pipeline, "s1") == before == [(ONE, None), (TWO, None)]
    assert [key.table for key in keys] == [ONE, TWO]
    assert pipeline.take_signals() == []


def test_new_and_known_tables_in_one_request(pipeline: Pipeline) -> None:
    """The new one gets its first snapshot, the known one an ad hoc snapshot."""
    list(pipeline.run_snapshot([ONE]))
    keys = pipeline.start_snapshot([ONE, TWO])
    assert [key.table for key in keys] == [TWO, ONE]
    with pytest.raises(ConfigError, match="not captured"):
        pipeline.start_snapshot([TableId(OWNER, "THREE")])


def test_a_table_in_its_first_snapshot_needs_no_second_one(pipeline: Pipeline) -> None:
    """Chunks of two snapshots into an empty mirror would double its rows."""
    first = pipeline.start_snapshot([ONE])
    pipeline.add_signal(signal("s1", ONE))
    [(_, keys)] = pipeline.take_signals()
    assert keys == first
    assert len(pipeline.store.chunks.find(ONE)) == 1


def _dies(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


SIGNALS = f"{OWNER}.ASKED"
ASK = f'{{"data-collections": ["{OWNER}.ONE"]}}'


@pytest.fixture
def asked(oracle: Oracle, tmp_path: Path) -> Iterator[Pipeline]:
    """A source whose signal table has a past: an old request, and Debezium's watermarks."""
    oracle.run(
        "CREATE TABLE ASKED (ID VARCHAR2(42), TYPE VARCHAR2(32), DATA VARCHAR2(2048))",
        f"INSERT INTO ASKED VALUES ('old', 'execute-snapshot', '{ASK}')",
        "INSERT INTO ASKED VALUES ('x-open', 'snapshot-window-open', '{}')",
    )
    config = oracle.config(tmp_path, "ONE", "TWO", signals={"table": SIGNALS})
    with Pipeline(config, open_lake=MemoryLake().open) as opened:
        yield opened


def states(pipeline: Pipeline) -> dict[str, tuple[str, str]]:
    found = pipeline.records.signals()
    return {one.id: (one.state, one.reason or "") for one in found}


def test_rows_that_were_there_before_the_source_are_not_acted_on(
    asked: Pipeline, oracle: Oracle
) -> None:
    assert asked.take_signals() == [], "a source that has not begun takes nothing yet"
    assert states(asked) == {}
    list(asked.run_snapshot())
    oracle.run(f"INSERT INTO ASKED VALUES ('new', 'execute-snapshot', '{ASK}')")
    assert [signal.id for signal, _ in asked.take_signals()] == ["new"]
    found = states(asked)
    assert found["old"][0] == "rejected"
    assert "before Redolake's position" in found["old"][1]
    assert found["new"] == ("done", "")
    assert set(found) == {"old", "new"}, "watermarks are no signals"


def test_rows_are_taken_in_the_order_of_their_commits(asked: Pipeline, oracle: Oracle) -> None:
    list(asked.run_snapshot())
    for name in ("z", "a", "m"):
        oracle.run(f"INSERT INTO ASKED VALUES ('{name}', 'execute-snapshot', '{ASK}')")
    assert [signal.id for signal, _ in asked.take_signals()] == ["z", "a", "m"]


def test_an_id_that_comes_again_with_another_request_is_named(
    asked: Pipeline, oracle: Oracle
) -> None:
    list(asked.run_snapshot())
    oracle.run(f"INSERT INTO ASKED VALUES ('s', 'execute-snapshot', '{ASK}')")
    assert len(asked.take_signals()) == 1
    two = ASK.replace("ONE", "TWO")
    oracle.run(
        "DELETE FROM ASKED WHERE ID = 's'",
        f"INSERT INTO ASKED VALUES ('s', 'execute-snapshot', '{two}')",
    )
    for _ in range(2):
        assert asked.take_signals() == []
        [again] = [one for one in asked.records.signals() if one.id.startswith("s…")]
        assert again.state == "rejected"
        assert "its id was used" in (again.reason or "")


def test_a_table_of_another_database_is_rejected(asked: Pipeline, oracle: Oracle) -> None:
    list(asked.run_snapshot())
    for name, database in (("far", "NOSUCHPDB"), ("near", oracle.database.engine.container_name)):
        data = ASK.replace(OWNER, f"{database}.{OWNER}")
        oracle.run(f"INSERT INTO ASKED VALUES ('{name}', 'execute-snapshot', '{data}')")
    assert [signal.id for signal, _ in asked.take_signals()] == ["near"]
    assert "another database" in states(asked)["far"][1]


def test_a_snapshot_is_running_until_its_chunks_are_applied(pipeline: Pipeline) -> None:
    list(pipeline.run_snapshot())
    pipeline.add_signal(signal("s1", ONE))
    pipeline.take_signals()
    assert pipeline.records.signal_progress() == {"s1": (0, 1)}
    [one, two] = pipeline.status(ask_oracle=False).tables
    assert [(each.chunks_applied, each.chunks_planned) for each in one.snapshots] == [(0, 1)]
    assert two.snapshots == ()
    list(pipeline.run_snapshot())
    assert pipeline.records.signal_progress() == {"s1": (1, 1)}
    assert pipeline.status(ask_oracle=False).tables[0].snapshots == ()


ACTIONS = {"tell-shop": "tests.steps.told:tell", "fail-shop": "tests.steps.told:fail"}
begun = capturing(
    "MANY", "ONE", snapshot={"chunk_rows": 100, "sessions": 1}, signals={"actions": ACTIONS}
)


@pytest.fixture
def wide(begun: Source, tmp_path: Path) -> Source:
    """A source whose first table has several chunks."""
    begun.more["signals"] = {"file": str(tmp_path / "signals.txt"), "actions": ACTIONS}
    return begun


def send(source: Source, signal_id: str, kind: str, **data: object) -> None:
    source.pipeline.add_signal(Signal(id=signal_id, source="src", type=kind, data=data))


def outcome(source: Source, signal_id: str) -> tuple[str, str]:
    found = source.pipeline.records.signals()
    [one] = [one for one in found if one.id == signal_id]
    return one.state, one.reason or ""


def test_regular_expressions_name_tables(wide: Source) -> None:
    send(wide, "all", "execute-snapshot", **{"data-collections": [rf".*\.{OWNER}\.(MANY|ONE)"]})
    [(_, keys)] = wide.pipeline.take_signals()
    assert {key.table.name for key in keys} == {"MANY", "ONE"}
    wide.run()
    wide.check_current("MANY", "ONE")


def test_equal_signals_are_one_snapshot_and_all_are_told(wide: Source) -> None:
    for name in ("a", "b", "c"):
        send(wide, name, "execute-snapshot", **{"data-collections": [f"{OWNER}.ONE"]})
    taken = wide.pipeline.take_signals()
    assert [len(keys) for _, keys in taken] == [1, 0, 0]
    assert outcome(wide, "a") == ("done", "")
    assert "the same as a" in outcome(wide, "b")[1]
    assert "the same as a" in outcome(wide, "c")[1]
    wide.run()
    send(wide, "d", "execute-snapshot", **{"data-collections": [f"{OWNER}.ONE"]})
    assert [len(keys) for _, keys in wide.pipeline.take_signals()] == [1], "rows may differ now"


def test_an_id_that_comes_twice_is_told(wide: Source, tmp_path: Path) -> None:
    signal = Signal(id="a", source="src", type="log", data={"message": "m"})
    assert wide.pipeline.add_signal(signal)
    assert not wide.pipeline.add_signal(signal)
    with pytest.raises(ConfigError, match="another signal has this id"):
        wide.pipeline.add_signal(replace(signal, data={"message": "n"}))
    line = '{"id": "a", "type": "log", "data": {"message": "m"}}\n'
    (tmp_path / "signals.txt").write_text(line)
    wide.pipeline.take_signals()
    [again] = [one for one in wide.pipeline.records.signals() if one.id.startswith("a…")]
    assert (again.state, again.channel) == ("rejected", "file")
    assert outcome(wide, "a") == ("done", "")


def test_a_file_that_was_kept_and_not_acknowledged_is_acted_on_once(
    wide: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = json.dumps(
        {"id": "f", "type": "execute-snapshot", "data": {"data-collections": [f"{OWNER}.ONE"]}}
    )
    (tmp_path / "signals.txt").write_text(f"{line}\n")
    with monkeypatch.context() as patched:
        patched.setattr(FileChannel, "acknowledge", _dies)
        with pytest.raises(KeyboardInterrupt):
            wide.pipeline.take_signals()
    [(signal, keys)] = wide.pipeline.take_signals()
    assert (signal.id, len(keys)) == ("f", 1)
    assert [one.id for one in wide.pipeline.records.signals()] == ["f"]
    assert wide.pipeline.take_signals() == []


@pytest.mark.parametrize("name", ["replace", "unlink"])
def test_a_file_that_may_not_be_taken_stops_nothing(
    wide: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It is in a folder of somebody else's: windows and other signals go on, and it is acted on
    once."""
    (tmp_path / "signals.txt").write_text('{"id": "f", "type": "log", "data": {"message": "m"}}\n')
    send(wide, "s", "log", message="m")
    with monkeypatch.context() as patched:
        patched.setattr(Path, name, _refused)
        for _ in range(2):
            wide.pipeline.take_signals()
        assert outcome(wide, "s") == ("done", "")
    wide.run()
    assert [one.id for one in wide.pipeline.records.signals() if one.id == "f"] == ["f"]
    assert list(tmp_path.glob("signals.txt*")) == []


def _refused(*_: object, **__: object) -> None:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def test_a_stopped_snapshot_keeps_what_was_read_and_removes_nothing(wide: Source) -> None:
    send(wide, "read", "execute-snapshot", **{"data-collections": [f"{OWNER}.MANY"]})
    [(_, keys)] = wide.pipeline.take_signals()
    wide.pipeline.snapshot_chunk(keys[0])
    send(wide, "stop", "stop-snapshot", **{"data-collections": [rf"{OWNER}\.M.*"]})
    wide.pipeline.take_signals()
    assert outcome(wide, "stop") == ("done", f"{OWNER}.MANY: {len(keys) - 1} chunks dropped")
    assert wide.pipeline.pending_chunks() == [keys[0]]
    with pytest.raises(NotYetError, match="dropped"):
        wide.pipeline.apply_chunk(keys[1])
    wide.run()
    assert wide.pipeline.records.signal_progress() == {"read": (1, 1)}
    wide.oracle.run("INSERT INTO MANY VALUES (1000, 1)", "DELETE FROM MANY WHERE ID = 340")
    wide.run()
    wide.check_current("MANY")
    assert not wide.status("MANY").is_partial, "its first snapshot read all rows"


unread = capturing("MANY", "ONE", snapshot={"chunk_rows": 100, "sessions": 1}, runs=False)


def test_a_first_snapshot_that_is_stopped_leaves_a_partial_table_in_the_stream(
    unread: Source,
) -> None:
    wide = unread
    keys = [one for one in wide.pipeline.start_snapshot() if one.table.name == "MANY"]
    assert len(keys) > 2
    send(wide, "stop", "stop-snapshot")
    wide.pipeline.take_signals()
    assert len(wide.pipeline.pending_chunks()) == 2, "each table keeps one chunk"
    wide.oracle.run("UPDATE MANY SET GRP = 7 WHERE ID = 300", "INSERT INTO MANY VALUES (900, 9)")
    wide.run()
    assert wide.status("MANY").is_partial
    assert not wide.status("ONE").is_partial
    found = {row[0]: row[1] for row in wide.lake.image(wide.record("MANY").table, of_oracle=True)}
    assert {str(one) for one in found} >= {"1", "300", "900"}, "changed rows come with the windows"
    assert "200" not in {str(one) for one in found}
    _, _, left = exact_tables(wide.pipeline, wide.pipeline.configured(None), None)
    assert [(one.table, "part of the rows" in one.reason) for one in left] == [
        (f"{OWNER}.MANY", True)
    ]
    send(wide, "whole", "execute-snapshot", **{"data-collections": [f"{OWNER}.MANY"]})
    wide.run()
    wide.oracle.run("DELETE FROM MANY WHERE ID = 900")
    wide.run()
    wide.check_current("MANY")
    assert not wide.status("MANY").is_partial


def test_a_pause_holds_chunks_back_and_nothing_else(wide: Source) -> None:
    send(wide, "read", "execute-snapshot", **{"data-collections": [f"{OWNER}.MANY"]})
    [(_, keys)] = wide.pipeline.take_signals()
    send(wide, "pause", "pause-snapshot")
    wide.pipeline.take_signals()
    assert wide.pipeline.pending_chunks() == []
    with pytest.raises(SnapshotPausedError, match="paused"):
        wide.pipeline.snapshot_chunk(keys[0])
    wide.oracle.run("INSERT INTO MANY VALUES (1001, 1)")
    wide.run()
    assert wide.pipeline.status(ask_oracle=False).snapshots_paused is not None
    wide.check_exact("MANY")
    send(wide, "again", "pause-snapshot")
    send(wide, "on", "resume-snapshot")
    wide.pipeline.take_signals()
    assert outcome(wide, "again") == ("done", "snapshots were paused already")
    assert len(wide.pipeline.pending_chunks()) == len(keys)
    wide.run()
    assert wide.pipeline.status(ask_oracle=False).snapshots_paused is None


def test_a_pause_is_taken_between_the_chunks_of_a_snapshot(
    wide: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdc_core.steps.signals.LOOK_SECONDS", 0.0)
    # A look takes no time, behind which the next one would come ten times as late.
    monkeypatch.setattr("cdc_core.steps.signals.time", SimpleNamespace(monotonic=lambda: 0.0))
    wide.run()
    send(wide, "read", "execute-snapshot", **{"data-collections": [f"{OWNER}.MANY"]})
    sent: list[str] = []

    def pause(call: str, _table: object) -> None:
        if call == "apply_chunk" and not sent:
            sent.append("pause")
            send(wide, "pause", "pause-snapshot")

    wide.lake.before = pause
    wide.run()
    applied, planned = wide.pipeline.records.signal_progress()["read"]
    assert 1 <= applied < planned
    send(wide, "stop", "stop-snapshot")
    send(wide, "resume", "resume-snapshot")
    wide.run()
    assert wide.pipeline.pending_chunks() == []


def test_a_blocking_snapshot_holds_its_table_s_windows_back(wide: Source) -> None:
    statement = f"SELECT * FROM {OWNER}.MANY WHERE ID <= 250"
    send(
        wide,
        "block",
        "execute-snapshot",
        **{
            "type": "blocking",
            "data-collections": [f"{OWNER}.MANY"],
            "additional-conditions": [{"data-collection": f"{OWNER}.MANY", "filter": statement}],
        },
    )
    [(_, keys)] = wide.pipeline.take_signals()
    before = wide.record("MANY").mirror_scn
    wide.oracle.run("UPDATE MANY SET GRP = 8 WHERE ID = 5", "INSERT INTO ONE VALUES (77)")
    wide.windows()
    assert wide.record("MANY").mirror_scn == before
    assert (wide.record("ONE").mirror_scn or 0) > (before or 0)
    assert "blocking snapshot" in (wide.status("MANY").reason or "")
    rows = sum(wide.pipeline.snapshot_chunk(key).rows for key in keys)
    assert rows == 250, "the statement's rows alone"
    wide.run()
    wide.oracle.run("INSERT INTO ONE VALUES (78)")
    wide.run()
    wide.check_current("MANY", "ONE")


@pytest.mark.parametrize("key", ["GRP", "rowid", "ID"])
def test_a_surrogate_key_cuts_the_chunks(wide: Source, key: str) -> None:
    """Of a column that many rows lack, too: no row is in no chunk."""
    wide.lake.image(wide.record("MANY").table)
    data = {"data-collections": [f"{OWNER}.MANY"], "surrogate-key": key}
    send(wide, "read", "execute-snapshot", **data)
    [(_, keys)] = wide.pipeline.take_signals()
    rows = sum(wide.pipeline.snapshot_chunk(one).rows for one in keys)
    assert rows >= 350
    wide.run()
    wide.oracle.run("INSERT INTO ONE SELECT MAX(ID) + 1 FROM ONE")
    wide.run()
    wide.check_exact("MANY")


def test_oracle_parses_a_condition_before_anything_is_planned(wide: Source) -> None:
    before = wide.pipeline.records.chunks()
    condition = "ID > DATE '2026-01-01'"
    data = {"data-collections": [str(ONE), f"{OWNER}.MANY"], "additional-condition": condition}
    send(wide, "read", "execute-snapshot", **data)
    wide.run()
    state, reason = outcome(wide, "read")
    assert state == "rejected"
    assert "Oracle refuses the condition: ORA-00932" in reason
    assert wide.pipeline.records.chunks() == before


def test_status_shows_how_far_a_snapshot_is(wide: Source) -> None:
    assert wide.pipeline.status(ask_oracle=False).progress is None
    [first, *others] = wide.pipeline.start_snapshot([TableId(OWNER, "MANY")])
    wide.pipeline.snapshot_chunk(first)
    wide.pipeline.apply_chunk(first)
    found = wide.pipeline.status(ask_oracle=False).progress
    assert found is not None
    assert (found.chunks_applied, found.chunks_planned) == (1, 1 + len(others))
    assert found.rows > 0
    assert found.rows_per_second is not None
    assert found.seconds_left is not None
    [own] = wide.status("MANY").snapshots
    assert (own.rows, own.rows_expected) == (found.rows, found.rows_expected)
    assert wide.pipeline.records.progress() is not None


def test_an_unknown_surrogate_key_is_rejected(wide: Source) -> None:
    data = {"data-collections": [f"{OWNER}.MANY"], "surrogate-key": "NOPE"}
    send(wide, "read", "execute-snapshot", **data)
    assert wide.pipeline.take_signals() == []
    assert "not a captured column" in outcome(wide, "read")[1]


def test_a_line_of_the_log_has_the_position(wide: Source, caplog: pytest.LogCaptureFixture) -> None:
    send(wide, "say", "log", message="we are at {}\nnow")
    with caplog.at_level("INFO", logger="cdc_core.steps"):
        wide.pipeline.take_signals()
    assert any("signal say: we are at SCN " in one.getMessage() for one in caplog.records)


def test_a_transaction_is_never_dropped(wide: Source) -> None:
    login = wide.oracle.login(OWNER)
    with oracledb.connect(**login) as connection:
        connection.cursor().execute("INSERT INTO ONE VALUES (8000)")
        wide.oracle.run("INSERT INTO ONE VALUES (8001)")
        wide.run()
        [xid] = [one.xid for one in wide.pipeline.status().oldest_open]
        send(wide, "drop", "drop-transaction", **{"transaction-id": xid.upper()})
        wide.pipeline.take_signals()
        assert outcome(wide, "drop")[0] == "rejected"
        assert "ALTER SYSTEM KILL SESSION" in outcome(wide, "drop")[1]
        connection.commit()
    wide.run()
    wide.check_current("ONE")
    send(wide, "none", "drop-transaction", **{"transaction-id": "0" * 16})
    wide.pipeline.take_signals()
    assert "no such transaction" in outcome(wide, "none")[1]


def test_an_action_of_the_user_s_own_is_called_once(wide: Source) -> None:
    told.CALLS.clear()
    send(wide, "own", "tell-shop", to="them")
    send(wide, "bad", "fail-shop")
    wide.pipeline.take_signals()
    wide.pipeline.take_signals()
    [(signal_id, data, source, position)] = told.CALLS
    assert (signal_id, data, source) == ("own", {"to": "them"}, "src")
    assert position is not None
    assert position > 0
    assert outcome(wide, "own") == ("done", "told them")
    assert outcome(wide, "bad")[0] == "rejected"
    assert "secret" not in outcome(wide, "bad")[1]


def test_a_channel_that_is_off_takes_nothing(wide: Source) -> None:
    wide.close()
    wide.more = {**wide.more, "signals": {"channels": ["dagster"]}}
    with pytest.raises(ConfigError, match=r"signals\.channels"):
        send(wide, "a", "log", message="m")
    signal = Signal(id="b", source="src", type="log", data={"message": "m"}, channel="dagster")
    assert wide.pipeline.add_signal(signal)
