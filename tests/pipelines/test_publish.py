"""Events go to a real Kafka broker: each once, whatever is killed, and as the query of the change log has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cdc_core.config import SourceConfig
from cdc_core.config.publish import PublishConfig
from cdc_core.errors import ConfigError, StoreUnavailableError
from cdc_core.steps import Pipeline, publishing
from tests.kafka_broker import KafkaBroker
from tests.lake.test_envelope import events_by_duckdb
from tests.oracle.embedded import OWNER, Oracle, running_oracle
from tests.steps.harness import source_of, table_id

TOPIC = f"shop.{OWNER}.T"
DDL = "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9), PRICE NUMBER(9,2), AT DATE, RAW_V RAW(9))"


class KilledError(Exception):
    """What a kill is in a test."""


def kill_after(messages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next run die after it has handed so many messages to the client."""
    left = [messages]
    produce = publishing._Publisher._produce

    def produce_some(self: Any, *message: Any) -> None:
        if left[0] == 0:
            raise KilledError
        left[0] -= 1
        produce(self, *message)

    monkeypatch.setattr(publishing._Publisher, "_produce", produce_some)


def received(kafka: KafkaBroker, topic: str = TOPIC) -> list[tuple[Any, Any]]:
    """Committed messages: key and value, which is None for a tombstone."""
    return [
        (json.loads(key or "null"), json.loads(value or "null"))
        for key, value in kafka.records(topic)
    ]


def queried(pipeline: Pipeline) -> list[dict[str, Any]]:
    """The same by the query of the change log: another engine, and no code of publishing."""
    sql = pipeline.records.events_sql(table_id("T"), "duckdb", "UTC", "DB")
    return events_by_duckdb(sql)


def config_of(oracle: Oracle, folder: Path, kafka: KafkaBroker, **more: Any) -> SourceConfig:
    return oracle.config(
        folder,
        "T",
        lake={"path": str(folder / "lake"), "driver_memory": "1g"},
        publish={
            "bootstrap_servers": kafka.address,
            "topic_prefix": "shop",
            "database": "DB",
            **more,
        },
    )


@pytest.mark.spark
def test_each_event_arrives_once(
    tmp_path: Path, kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch, spark_process: None
) -> None:
    """Rows of a snapshot, changes, a changed key; the publisher dies in twelve places."""
    monkeypatch.setattr(publishing, "EVENTS_PER_TRANSACTION", 7)
    with running_oracle() as oracle:
        oracle.run(
            DDL,
            "INSERT INTO T SELECT LEVEL, 'old', LEVEL / 4, DATE '2026-03-04', HEXTORAW('0A') FROM DUAL CONNECT BY LEVEL <= 50",
        )
        config = config_of(oracle, tmp_path, kafka)
        with Pipeline(config) as pipeline:
            list(pipeline.run_once())
            first = [one.events for one in pipeline.publish()]
            oracle.run("UPDATE T SET V = 'new', PRICE = NULL WHERE ID <= 30")
            oracle.run("UPDATE T SET ID = 900 WHERE ID = 40")
            list(pipeline.run_windows())
            oracle.run("DELETE FROM T WHERE ID IN (1, 2)")
            list(pipeline.run_windows())
            for messages in (0, 3, 1, 9, 4, 2, 9, 0, 4, 11, 1, 3):
                with monkeypatch.context() as dying:
                    kill_after(messages, dying)
                    with pytest.raises(KilledError):
                        list(pipeline.publish())
            last = [one.events for one in pipeline.publish()]
            again = [one.events for one in pipeline.publish()]
            expected = queried(pipeline)
        assert (first, again) == ([50], [0])
        assert 0 < last[0] < 34, "some came through before"
        messages_in = received(kafka)
        events = [(key, value) for key, value in messages_in if value is not None]
        expected[:50] = sorted(expected[:50], key=lambda row: row["after"]["ID"])  # a chunk's rows
        assert len(events) == len(expected) == 50 + 30 + 2 + 2
        for (key, value), row in zip(events, expected, strict=True):
            image = row["after"] or row["before"]
            assert key == {"ID": image["ID"]}
            assert value["op"] == row["op"]
            for side in ("before", "after"):
                assert value[side] == form(row[side])
            ours = {name: text for name, text in row["source"].items() if name != "txSeq"}
            assert value["source"] == ours
            assert (value["ts_us"], value["transaction"]) == (row["ts_us"], None)
        tombstones = [key for key, value in messages_in if value is None]
        assert tombstones == [{"ID": 40}, {"ID": 1}, {"ID": 2}]
        places = [at for at, (_, value) in enumerate(messages_in) if value is None]
        assert all(messages_in[at - 1][1]["op"] == "d" for at in places)


def form(image: dict[str, Any] | None) -> dict[str, Any] | None:
    """A row as Debezium's JSON has it."""
    if image is None:
        return None
    price = image["PRICE"]
    return {
        **image,
        "PRICE": None if price is None else f"{price:.2f}",
        "AT": 1_772_582_400_000 if image["AT"] is not None else None,
        "RAW_V": "Cg==" if image["RAW_V"] is not None else None,
    }


@pytest.mark.spark
def test_a_source_may_begin_now(tmp_path: Path, kafka: KafkaBroker, spark_process: None) -> None:
    with running_oracle() as oracle:
        oracle.run(DDL, "INSERT INTO T (ID) VALUES (1)")
        more = {"begin": "now", "topic_prefix": "now", "tombstones": False}
        with Pipeline(config_of(oracle, tmp_path, kafka, **more)) as pipeline:
            list(pipeline.run_once())
            assert [one.events for one in pipeline.publish()] == [0]
            oracle.run("DELETE FROM T")
            list(pipeline.run_windows())
            assert [one.events for one in pipeline.publish()] == [1]
        [(key, value)] = received(kafka, f"now.{OWNER}.T")
        assert (key, value["op"], value["after"]) == ({"ID": 1}, "d", None)
        [(table, position)] = received_positions(kafka, "now")[-1:]
        assert table == f"{OWNER}.T"
        assert position["changes"] == 0


@pytest.mark.spark
@pytest.mark.parametrize("begin", ["beginning", "now"])
def test_events_of_delta_tables_that_were_begun_again_arrive_once(
    tmp_path: Path, kafka: KafkaBroker, begin: str, spark_process: None
) -> None:
    """What the old change log had and was not out comes first; nothing of it comes again while the new one has not begun."""
    with running_oracle() as oracle:
        oracle.run(DDL, "INSERT INTO T (ID) VALUES (1)")
        prefix = f"again-{begin}"
        config = config_of(oracle, tmp_path, kafka, begin=begin, topic_prefix=prefix)
        with Pipeline(config) as pipeline:
            list(pipeline.run_once())
            list(pipeline.publish())
            oracle.run("INSERT INTO T (ID) VALUES (2)")
            list(pipeline.run_windows())
            keys = pipeline.resnapshot_tables([table_id("T")], fresh=True)
            assert [one.events for one in pipeline.publish()] == [1], "the change of key 2"
            oracle.run("INSERT INTO T (ID) VALUES (3)")
            for key in keys:
                pipeline.snapshot_chunk(key)
                pipeline.apply_chunk(key)
            list(pipeline.run_once())
            list(pipeline.publish())
            list(pipeline.publish())
        events = [(v["op"], v["after"]["ID"]) for _, v in received(kafka, f"{prefix}.{OWNER}.T")]
        first = [("r", 1)] if begin == "beginning" else []
        assert events == [*first, ("c", 2), ("r", 1), ("r", 2), ("c", 3)]


def received_positions(kafka: KafkaBroker, prefix: str) -> list[tuple[str, Any]]:
    topic = f"{prefix}.redolake-positions"
    return [
        ((key or b"").decode(), json.loads(value or b"")) for key, value in kafka.records(topic)
    ]


def test_it_says_where_kafka_is_missing(tmp_path: Path) -> None:
    with running_oracle() as oracle:
        oracle.run(DDL)
        with source_of(oracle, tmp_path, "T") as source, pytest.raises(ConfigError) as refused:
            list(source.pipeline.publish())
        assert "publish.bootstrap_servers" in (refused.value.hint or "")
        zone = {"publish": {"bootstrap_servers": "k:1", "time_zone": "no zone; DROP"}}
        with (
            source_of(oracle, tmp_path / "a", "T", **zone) as source,
            pytest.raises(ConfigError, match="time zone"),
        ):
            list(source.pipeline.publish())
        away = {"bootstrap_servers": "127.0.0.1:1", "options": {"socket.timeout.ms": "300"}}
        publishing_config = {"publish": away}
        with (
            source_of(oracle, tmp_path / "b", "T", **publishing_config) as source,
            pytest.MonkeyPatch.context() as hurried,
        ):
            hurried.setattr(publishing, "_WAIT_SECONDS", 1.0)
            with pytest.raises(StoreUnavailableError, match="Kafka"):
                list(source.pipeline.publish())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param({"options": {"sasl.password": "tiger"}}, "sasl_password_env", id="a secret"),
        pytest.param({"options": {"acks": "1"}}, "Redolake sets", id="acks"),
        pytest.param({"topic_prefix": "a b"}, "pattern", id="a blank in the prefix"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        PublishConfig(**given)
