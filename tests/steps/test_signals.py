"""Signals through a pipeline on an embedded Oracle: all that one asks for is planned, or nothing. No Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from cdc_core.model.signals import Signal
from cdc_core.steps import Pipeline
from tests.oracle.embedded import OWNER, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.memory_lake import MemoryLake

ONE, TWO = TableId(OWNER, "ONE"), TableId(OWNER, "TWO")

oracle = oracle_with(
    *(f"CREATE TABLE {table} (ID NUMBER(9) PRIMARY KEY)" for table in ("ONE", "TWO")),
    *(f"INSERT INTO {table} VALUES (1)" for table in ("ONE", "TWO")),
    scope="module",
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
    chunks = pipeline.store.chunks.find("src")
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
    [record] = pipeline.store.signals.find("src")
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
    assert len(pipeline.store.chunks.find("src", ONE)) == 1


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
    oracle.run("DROP TABLE ASKED PURGE")


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
