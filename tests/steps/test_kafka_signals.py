"""Signals that a Kafka producer sends, through a real broker and the pipeline."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest

from cdc_core.errors import PreflightError
from cdc_core.signals import kafka_channel
from cdc_core.steps import signals
from tests.kafka_broker import KafkaBroker
from tests.oracle.embedded import OWNER, running_oracle
from tests.steps.harness import Source, table_id


@pytest.fixture
def topic() -> str:
    return f"asked-{uuid4().hex[:8]}"


@pytest.fixture
def source(tmp_path: Path, kafka: KafkaBroker, topic: str) -> Iterator[Source]:
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO T VALUES (1)")
        place = {"kafka_topic": topic, "kafka_servers": kafka.address}
        found = Source.of(oracle, tmp_path, "T", signals=place)
        yield found
        found.close()


def ask(kafka: KafkaBroker, topic: str, signal_id: str, key: str = "src") -> None:
    data = {"data-collections": [f"{OWNER}.T"]}
    signal = {"id": signal_id, "type": "execute-snapshot", "data": data}
    kafka.send(topic, json.dumps(signal), key=key)


def outcomes(source: Source) -> dict[str, str]:
    return {one.id: one.state for one in source.pipeline.records.signals()}


def test_a_record_asks_for_a_snapshot_once(source: Source, kafka: KafkaBroker, topic: str) -> None:
    kafka.create_topic(topic)
    ask(kafka, topic, "before")
    source.run()
    assert outcomes(source) == {"before": "rejected"}
    ask(kafka, topic, "read")
    ask(kafka, topic, "others", key="another-source")
    source.close()
    source.run()
    source.run()
    assert outcomes(source) == {"before": "rejected", "read": "done"}
    asked = [one for one in source.pipeline.records.chunks(table_id("T")) if one.signal_id]
    assert [(one.signal_id, one.state) for one in asked] == [("read", "applied")]
    source.check_current("T")


def test_a_process_that_dies_before_it_keeps_a_signal_reads_it_again(
    source: Source, kafka: KafkaBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka.create_topic(topic)
    source.run()
    ask(kafka, topic, "read")
    with monkeypatch.context() as dying:
        dying.setattr(kafka_channel.KafkaChannel, "acknowledge", _die)
        with pytest.raises(ZeroDivisionError):
            source.pipeline.take_signals()
    source.close()
    source.run()
    assert outcomes(source) == {"read": "done"}
    assert len({one.snapshot_id for one in source.pipeline.records.chunks() if one.signal_id}) == 1


def _die(*_: object) -> None:
    raise ZeroDivisionError


def test_a_broker_that_is_down_stops_nothing(
    source: Source, topic: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kafka_channel, "WAIT_SECONDS", 0.5)
    source.more = {"signals": {"kafka_topic": topic, "kafka_servers": "127.0.0.1:1"}}
    source.run()
    source.check_current("T")
    assert "the channel kafka is left out" in caplog.text


def test_without_the_client_the_remedy_is_said(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: str) -> None:
        raise ImportError

    monkeypatch.setattr(kafka_channel, "import_module", missing)
    with pytest.raises(PreflightError, match=r"redolake\[kafka\]"):
        source.run()


def test_a_look_that_waits_in_vain_does_not_hold_chunks_up(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten seconds for a broker that is down, in a snapshot of many chunks: a tenth of the time."""
    clock, looks = [0.0], []

    def waits(_: object) -> bool:
        looks.append(clock[0])
        clock[0] += 10
        return False

    monkeypatch.setattr(signals, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(signals, "is_signal_waiting", waits)
    watch = signals.SignalWatch(source.pipeline, lambda: None)
    for _ in range(300):
        watch.look()
        clock[0] += 1
    assert looks == [0.0, 110.0, 220.0]
