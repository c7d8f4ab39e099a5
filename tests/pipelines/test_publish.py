"""Events go to a real Kafka broker: each once, whatever is killed, and as the query of the change log has them."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cdc_core.config import SourceConfig
from cdc_core.config.publish import PublishConfig
from cdc_core.errors import ConfigError, StoreUnavailableError
from cdc_core.steps import Pipeline
from cdc_core.steps.publishing import side_topics, tables, topics
from tests.kafka_broker import KafkaBroker
from tests.lake.test_envelope import events_by_duckdb, written
from tests.oracle.embedded import OWNER, Oracle, running_oracle
from tests.steps.harness import source_of, table_id

TOPIC = f"shop.{OWNER}.T"
DDL = "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9), PRICE NUMBER(9,2), AT DATE, RAW_V RAW(9))"


class KilledError(Exception):
    """What a kill is in a test."""


def kill_after(messages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next run die after it has handed so many messages to the client."""
    left = [messages]
    produce = topics.Topics._produce

    def produce_some(self: Any, *message: Any) -> None:
        if left[0] == 0:
            raise KilledError
        left[0] -= 1
        produce(self, *message)

    monkeypatch.setattr(topics.Topics, "_produce", produce_some)


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
        publish={
            "bootstrap_servers": kafka.address,
            "topic_prefix": "shop",
            "database": "DB",
            **more,
        },
    )


def test_each_event_arrives_once(
    tmp_path: Path, kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of a snapshot, changes, a changed key; the publisher dies in twelve places."""
    monkeypatch.setattr(tables, "EVENTS_PER_TRANSACTION", 7)
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
            assert value["source"] == {**row["source"], "name": "shop", "txSeq": None}
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


def test_a_source_may_begin_now(tmp_path: Path, kafka: KafkaBroker) -> None:
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


@pytest.mark.parametrize("begin", ["beginning", "now"])
def test_events_of_delta_tables_that_were_begun_again_arrive_once(
    tmp_path: Path, kafka: KafkaBroker, begin: str
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


MOVES = [
    "INSERT INTO T (ID, V) VALUES (7, 'a')",
    "INSERT INTO U VALUES (1, 9.5)",
    "UPDATE T SET ID = 8 WHERE ID = 7",
    "UPDATE U SET N = 10.25 WHERE ID = 1",
    "DELETE FROM T WHERE ID = 8",
]


def test_topics_beside_the_tables_get_each_message_once(
    tmp_path: Path, kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transactions over two tables, definitions, heartbeats; events know their place in their transaction; the publisher dies often."""
    monkeypatch.setattr(tables, "EVENTS_PER_TRANSACTION", 3)
    monkeypatch.setattr(side_topics, "TRANSACTIONS_AT_ONCE", 1)
    with running_oracle() as oracle:
        oracle.run(DDL, "CREATE TABLE U (ID NUMBER(9) PRIMARY KEY, N NUMBER)")
        how = {
            "topic_prefix": "beside",
            "topic": "{prefix}.{table_lower}",
            "transaction_topic": "{prefix}.transaction",
            "schema_change_topic": "{prefix}",
            "heartbeat_topic": "__debezium-heartbeat.{prefix}",
            "schemas": True,
            "decimals": "precise",
        }
        lake = {"path": str(tmp_path / "lake"), "driver_memory": "1g"}
        publish = {"bootstrap_servers": kafka.address, "database": "DB", **how}
        config = oracle.config(tmp_path, "T", "U", lake=lake, publish=publish)
        with Pipeline(config) as pipeline:
            list(pipeline.run_once())
            for _ in range(2):
                with oracle.owner() as connection, connection.cursor() as cursor:
                    for statement in MOVES:
                        cursor.execute(statement)
                    connection.commit()
                oracle.run("DELETE FROM U")
                list(pipeline.run_windows())
            oracle.run("ALTER TABLE T ADD (MORE NUMBER(4,1))", "INSERT INTO T (ID) VALUES (2)")
            list(pipeline.run_windows())
            for messages in (0, 2, 5, 1, 9, 3, 14, 30):
                with monkeypatch.context() as dying:
                    kill_after(messages, dying)
                    with suppress(KilledError):
                        list(pipeline.publish())
            list(pipeline.publish())
            queried_of = {
                name: events_by_duckdb(
                    pipeline.records.events_sql(table_id(name), "duckdb", "UTC", "DB")
                )
                for name in ("T", "U")
            }
        for name, rows in queried_of.items():
            sent = [value for _, value in received(kafka, f"beside.{name.lower()}") if value]
            assert len(rows) == len(sent) > 4
            for value, row in zip(sent, rows, strict=True):
                assert value["payload"]["transaction"] == row["transaction"]
                assert value["payload"]["source"]["txSeq"] == row["source"]["txSeq"]
                assert fits(value["schema"], value["payload"])
        ends = received(kafka, "beside.transaction")
        assert all(fits(one["schema"], one["payload"]) for _, one in ends)
        said = [(one["payload"]["status"], one["payload"]["event_count"]) for _, one in ends]
        assert said == [("BEGIN", None), ("END", 6), ("BEGIN", None), ("END", 1)] * 2 + [
            ("BEGIN", None),
            ("END", 1),
        ]
        assert ends[1][1]["payload"]["data_collections"] == [
            {"data_collection": f"DB.{OWNER}.T", "event_count": 4},
            {"data_collection": f"DB.{OWNER}.U", "event_count": 2},
        ]
        changes = [(key["payload"], one) for key, one in received(kafka, "beside")]
        assert [key for key, _ in changes] == [{"databaseName": "DB"}] * 3
        assert all(fits(one["schema"], one["payload"]) for _, one in changes)
        [added] = changes[-1][1]["payload"]["tableChanges"]
        assert (added["type"], added["id"]) == ("ALTER", f'"DB"."{OWNER}"."T"')
        more = added["table"]["columns"][-1]
        assert (more["name"], more["length"], more["scale"], more["jdbcType"]) == ("MORE", 4, 1, 2)
        [*_, (key, heartbeat)] = received(kafka, "__debezium-heartbeat.beside")
        assert key["payload"] == {"serverName": "beside"}
        assert fits(heartbeat["schema"], heartbeat["payload"])
        numbers = [one["after"]["N"] for one in payloads(kafka, "beside.u") if one["after"]]
        assert numbers[0] == {"scale": 1, "value": "Xw=="}, "95 with one digit behind the point"


def payloads(kafka: KafkaBroker, topic: str) -> list[dict[str, Any]]:
    return [value["payload"] for _, value in received(kafka, topic) if value]


PLAIN: dict[str, Any] = {
    "string": str,
    "bytes": str,
    "boolean": bool,
    **dict.fromkeys(("int8", "int16", "int32", "int64"), int),
    **dict.fromkeys(("float", "double"), (int, float)),
}


def fits(schema: dict[str, Any], value: Any) -> bool:
    """Is a value what its Connect schema says, with every field named there and no other?"""
    if value is None:
        return bool(schema["optional"])
    match schema["type"]:
        case "struct":
            fields = {one["field"]: one for one in schema["fields"]}
            return fields.keys() == value.keys() and all(
                fits(fields[name], part) for name, part in value.items()
            )
        case "array":
            return all(fits(schema["items"], one) for one in value)
    return isinstance(value, PLAIN[schema["type"]])


def test_tables_never_share_a_topic(tmp_path: Path, kafka: KafkaBroker) -> None:
    lake = {"path": str(tmp_path / "lake")}
    publish = {"bootstrap_servers": kafka.address, "topic": "all.{owner}.{table}"}
    with running_oracle() as oracle:
        names = ('"A$B"', '"A#B"')
        oracle.run(*(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY)" for name in names))
        with source_of(oracle, tmp_path, "A$B", "A#B", lake=lake) as source:
            source.run()
            for name in ("A$B", "A#B"):
                written(source, name)
            config = source.pipeline.config.model_copy(
                update={"publish": PublishConfig(bootstrap_servers=kafka.address)}
            )
            with Pipeline(config) as pipeline, pytest.raises(ConfigError, match="share a topic"):
                list(pipeline.publish())
            named = PublishConfig(**publish)
            with Pipeline(config.model_copy(update={"publish": named})) as pipeline:
                assert len(list(pipeline.publish())) == 2


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
            hurried.setattr(topics, "WAIT_SECONDS", 1.0)
            with pytest.raises(StoreUnavailableError, match="Kafka"):
                list(source.pipeline.publish())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param({"options": {"sasl.password": "tiger"}}, "sasl_password_env", id="a secret"),
        pytest.param({"options": {"acks": "1"}}, "Redolake sets", id="acks"),
        pytest.param({"topic_prefix": "a b"}, "pattern", id="a blank in the prefix"),
        pytest.param({"topic": "{prefix}.all"}, "all tables alike", id="one topic for all"),
        pytest.param({"transaction_topic": "{table}.t"}, "fields of this topic", id="a table"),
        pytest.param({"heartbeat_topic": "a/b"}, "letters, digits", id="a slash"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        PublishConfig(**given)
