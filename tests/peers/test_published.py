"""What `redolake publish` sends is what Debezium's own topics would hold: topic by topic, message by message, schemas too, however often
the publisher is killed."""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from cdc_core.steps import Pipeline
from oracle_embedded.database import CAPTURE
from pipelines.config_file import load_config
from tests.kafka_broker import KafkaBroker
from tests.oracle.embedded import PASSWORDS, Oracle, running_oracle
from tests.peers.debezium import Debezium, debezium, require_debezium
from tests.peers.killed_publisher import publish_and_die
from tests.peers.two_readers import COLUMNS, LOSING, TABLES, run_load

pytestmark = pytest.mark.slow

TRANSACTIONS = 10_000
KILLS = 20
PREFIX = "peer"
VALUES = (
    "'it''s', -1.5, DATE '2024-02-29', TIMESTAMP '2024-02-29 01:02:03.456789', HEXTORAW('0AFF')"
)

THEIR_OWN = ("ts_ms", "ts_us", "ts_ns")
"""Of an envelope: when either program worked."""

OWN_SOURCE = ("version", "ssn", "start_scn", "start_ts_ms")
"""Of the block ``source``: either program's version; ``ssn``, which Debezium never fills; and ``start_scn`` and ``start_ts_ms``, which are
those of the first captured change there, and those of the transaction's beginning here."""

OF_SNAPSHOT = ("snapshot", "scn", *THEIR_OWN)
"""Of ``source`` in a row that a snapshot read: either reader has a snapshot of its own, and Debezium marks the first and the last row."""


@pytest.fixture(autouse=True)
def _peer() -> None:
    require_debezium()


def test_topics_hold_what_debeziums_would(
    tmp_path: Path, kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch, spark_process: None
) -> None:
    """10,000 transactions of three sessions, with rollbacks, savepoints and changes of keys; the publisher is killed twenty times.

    Equal but for what the constants above list, and: columns that are not part of the key are optional in our schemas, and so is
    ``source.ts_ms``; schemas have no ``doc`` and no defaults of columns; a schema change has another text of the DDL."""
    began = time.monotonic()
    with running_oracle() as oracle:
        for wart in LOSING:
            oracle.database.redo.set_wart(wart, shown=False)
        oracle.run(*(f"CREATE TABLE {name} ({COLUMNS})" for name in TABLES))
        oracle.run(*(f"INSERT INTO {name} VALUES ({-1 - key}, {VALUES})" for name in TABLES for key in range(3)))  # fmt: skip
        file = _configuration(oracle, tmp_path, kafka)
        theirs_in = tmp_path / "debezium"
        theirs_in.mkdir()
        options = {
            "snapshot.mode": "initial",
            "provide.transaction.metadata": "true",
            "include.schema.changes": "true",
            "heartbeat.interval.ms": "60000",
            "decimal.handling.mode": "precise",
            "key.converter.schemas.enable": "true",
            "value.converter.schemas.enable": "true",
        }
        names = [f"DEMO.{name}" for name in TABLES]
        with debezium(oracle.server.port, PASSWORDS[CAPTURE], theirs_in, names, **options) as peer:
            monkeypatch.setenv("PEER_PASSWORD", PASSWORDS[CAPTURE])
            config = load_config(file, environ=os.environ)
            with Pipeline(config) as pipeline:
                list(pipeline.run_once())
            run_load(oracle, peer, transactions=TRANSACTIONS)
            peer.wait(lambda: _ends(peer) >= TRANSACTIONS)
            with Pipeline(config) as pipeline:
                list(pipeline.run_windows())
            loaded = time.monotonic()
            dice, most = random.Random(7), TRANSACTIONS * 3 // 10
            killed = publish_and_die(file, [dice.randrange(most) for _ in range(KILLS)])
            seconds = time.monotonic() - loaded
            theirs = _topics((one["topic"], one["key"], one["value"]) for one in peer.records())
    ours = _topics(
        (topic, json.loads(key or b"null"), json.loads(value or b"null"))
        for topic in theirs
        for key, value in kafka.records(topic)
    )
    messages = sum(len(one.messages) for one in ours.values())
    print(
        f"load {loaded - began:.0f} s, {killed} kills and publishing {seconds:.0f} s,"
        f" {messages} messages in {len(ours)} topics"
    )
    assert killed == KILLS
    assert ours.keys() == theirs.keys()
    for topic, one in ours.items():
        assert one.schemas == theirs[topic].schemas, topic
    for name in TABLES:
        topic = f"{PREFIX}.DEMO.{name}"
        (rows, changes), (rows_there, changes_there) = map(_parts, (ours[topic], theirs[topic]))
        assert rows == rows_there
        assert len(changes) == len(changes_there) > TRANSACTIONS
        assert _differing(changes, changes_there) == {}
    ends, ends_there = (_ends_of(one[f"{PREFIX}.transaction"]) for one in (ours, theirs))
    assert len(ends) == len(ends_there) > 2 * TRANSACTIONS
    assert _differing(ends, ends_there) == {}
    definitions, definitions_there = (_definitions(one[PREFIX]) for one in (ours, theirs))
    assert len(definitions) == len(TABLES)
    assert definitions == definitions_there


@dataclass(slots=True)
class Topic:
    """What a topic holds: keys and values without their schemas, and the schemas."""

    messages: list[tuple[Any, Any]] = field(default_factory=list)
    schemas: set[str] = field(default_factory=set)


def _topics(records: Iterable[tuple[str, Any, Any]]) -> dict[str, Topic]:
    found: dict[str, Topic] = {}
    plain = lru_cache(lambda text: json.dumps(_plain(json.loads(text)), sort_keys=True))
    for name, key, value in records:
        topic = found.setdefault(name, Topic())
        parts = [one for one in (key, value) if one is not None]
        topic.schemas.update(plain(json.dumps(one["schema"])) for one in parts)
        topic.messages.append((key and key["payload"], value and value["payload"]))
    return found


def _differing(ours: Sequence[Any], theirs: Sequence[Any]) -> Counter[str]:
    """How many messages differ in which field."""
    pairs = zip(ours, theirs, strict=True)
    return Counter(path for one, other in pairs if one != other for path in _paths(one, other, ""))


def _paths(one: Any, other: Any, path: str) -> Iterator[str]:
    """The fields in which two values differ."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        one, other = dict(enumerate(one)), dict(enumerate(other))
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for name in one:
            yield from _paths(one[name], other[name], f"{path}.{name}")
    elif one != other:
        yield path


def _ends_of(topic: Topic) -> list[Any]:
    """Debezium's times are those of a transaction's first and last change, ours those of its beginning and its COMMIT."""
    return [
        (key, {name: one for name, one in value.items() if name != "ts_ms"})
        for key, value in topic.messages
    ]


def _definitions(topic: Topic) -> list[Any]:
    return sorted(
        (
            (key, value["databaseName"], value["schemaName"], value["tableChanges"])
            for key, value in topic.messages
        ),
        key=repr,
    )


def _configuration(oracle: Oracle, folder: Path, kafka: KafkaBroker) -> Path:
    attributes = {
        "name": "peer",
        "oracle": {
            **{name: text for name, text in oracle.login(CAPTURE).items() if name != "password"},
            "password_env": "PEER_PASSWORD",
        },
        "tables": [{"name": f"DEMO.{name}"} for name in TABLES],
        "landing": {"type": "local", "path": str(folder / "landing")},
        "lake": {"path": str(folder / "lake")},
        "state": {"url": f"sqlite:///{folder}/state.db"},
        "capture": {"close_at": "online"},
        "publish": {
            "bootstrap_servers": kafka.address,
            "topic_prefix": PREFIX,
            "database": "ORCLPDB1",
            "transaction_topic": "{prefix}.transaction",
            "schema_change_topic": "{prefix}",
            "heartbeat_topic": "__debezium-heartbeat.{prefix}",
            "schemas": True,
            "decimals": "precise",
        },
    }
    written = {"type": "assets.components.OracleCdc", "attributes": attributes}
    file = folder / "defs.yaml"
    file.write_text(yaml.safe_dump(written))
    return file


def _ends(peer: Debezium) -> int:
    return (peer.folder / "records.json").read_text().count('"status":"END"')


def _parts(topic: Topic) -> tuple[list[Any], list[Any]]:
    """Rows of snapshots, which have no order, and changes, in their order."""
    rows, changes = list[Any](), list[Any]()
    for key, value in topic.messages:
        if value is None:
            changes.append((key, None))
            continue
        left_out = (*OWN_SOURCE, *(OF_SNAPSHOT if value["op"] == "r" else ()))
        source = {name: one for name, one in value["source"].items() if name not in left_out}
        kept = {name: one for name, one in value.items() if name not in THEIR_OWN}
        (rows if value["op"] == "r" else changes).append((key, {**kept, "source": source}))
    return sorted(rows, key=repr), changes


def _plain(schema: Any) -> Any:
    """A schema without what is listed as different."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = {"doc", "default", "optional"}
    return {name: _plain(part) for name, part in schema.items() if name not in left_out}
