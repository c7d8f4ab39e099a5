"""The channel of a Kafka topic: which of its records are signals that nobody has taken yet?

As for Debezium, the key of a record names the source, and its value is the JSON of a signal. The
offsets stand in the metadata store and not in Kafka, so that a record counts as read when its
signal is kept, and not before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any

from cdc_core.config.signals import SignalConfig
from cdc_core.errors import PreflightError, SignalsUnavailableError
from cdc_core.model.signals import Signal
from cdc_core.signals.channels import KnownSignals, signal_of_json

KAFKA_CHANNEL = "kafka"
WAIT_SECONDS = 10.0
"""How long Kafka is waited for."""


class KafkaChannel:
    """Records of a topic, in the order of each partition; those with another key are others'.

    Records that the topic held before the first look are rejected signals: nobody knows for which
    life of the source they were meant.

    Args:
        source: The source, whose name records have as their key.
        config: Where the topic is.
    """

    name = KAFKA_CHANNEL

    def __init__(self, source: str, config: SignalConfig) -> None:
        self._source = source
        self._topic = str(config.kafka_topic)
        self._settings = {
            **config.kafka_options,
            "bootstrap.servers": config.kafka_servers,
            "group.id": f"redolake.{source}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
        if config.kafka_sasl_password is not None:
            self._settings["sasl.password"] = config.kafka_sasl_password.get_secret_value()
        self._known: KnownSignals | None = None
        self._behind: dict[int, int] = {}

    def read(self, known: KnownSignals) -> list[Signal]:
        """The records behind the known offsets, up to the end of each partition.

        Raises:
            PreflightError: Kafka's client is not installed.
            SignalsUnavailableError: Kafka cannot be reached, or has no such topic.
        """
        offsets = known.offsets(self._topic)
        self._known, self._behind = known, dict(offsets)
        found: list[Signal] = []
        with self._consumer() as consumer:
            for partition in self._partitions(consumer):
                begin = offsets.get(partition)
                records = self._records(consumer, partition, begin)
                found += [_as_old(one) if begin is None else one for one in records]
        return found

    def is_waiting(self, known: KnownSignals) -> bool:
        """Has the topic a record that was not read?

        Raises:
            As for :meth:`read`.
        """
        offsets = known.offsets(self._topic)
        with self._consumer() as consumer:
            for partition in self._partitions(consumer):
                place = self._client().TopicPartition(self._topic, partition)
                _, end = consumer.get_watermark_offsets(place, timeout=WAIT_SECONDS)
                if end != offsets.get(partition, 0):
                    return True
        return False

    def acknowledge(self) -> None:
        """Keep the offsets behind what was read."""
        if self._known is not None:
            self._known.keep_offsets(self._topic, self._behind)

    def _records(self, consumer: Any, partition: int, begin: int | None) -> list[Signal]:
        client = self._client()
        first, end = consumer.get_watermark_offsets(
            client.TopicPartition(self._topic, partition), timeout=WAIT_SECONDS
        )
        # Where the known offset lies behind the end, the topic was created anew.
        at = first if begin is None or begin > end else max(first, begin)
        consumer.assign([client.TopicPartition(self._topic, partition, at)])
        self._behind[partition] = at
        found: list[Signal] = []
        while (record := consumer.poll(WAIT_SECONDS)) is not None:
            if (error := record.error()) is None:
                self._behind[partition] = record.offset() + 1
                if record.key() == self._source.encode():
                    own_id = f"{self._topic}-{partition}-{record.offset()}"
                    value = record.value() or b""
                    found.append(signal_of_json(self._source, self.name, value, own_id))
            elif error.code() == client.KafkaError._PARTITION_EOF:
                self._behind[partition] = max(self._behind[partition], record.offset() or 0)
                return found
            else:
                raise client.KafkaException(error)
        raise _unavailable("it sends nothing")

    def _partitions(self, consumer: Any) -> list[int]:
        topic = consumer.list_topics(self._topic, timeout=WAIT_SECONDS).topics[self._topic]
        if topic.error is not None:
            raise _unavailable(topic.error.str())
        return sorted(topic.partitions)

    @contextmanager
    def _consumer(self) -> Iterator[Any]:
        client = self._client()
        try:
            consumer = client.Consumer(self._settings)
        except (client.KafkaException, ValueError) as error:
            raise _unavailable("its client refuses signals.kafka_options") from error
        try:
            yield consumer
        except client.KafkaException as error:
            raise _unavailable(error.args[0].str()) from error
        finally:
            consumer.close()

    def _client(self) -> Any:
        try:
            return import_module("confluent_kafka")
        except ImportError as error:
            raise PreflightError(
                "signals from Kafka need its client, which is not installed",
                hint="pip install 'redolake[kafka]'",
                topic=self._topic,
            ) from error


def _unavailable(reason: str) -> SignalsUnavailableError:
    return SignalsUnavailableError(
        "signals cannot be read from Kafka",
        hint="Check signals.kafka_servers, signals.kafka_topic and signals.kafka_options.",
        reason=reason[:300],
    )


def _as_old(signal: Signal) -> Signal:
    if signal.state == "rejected":
        return signal
    reason = "it was in the topic before Redolake looked at it first; send it under a new id"
    return replace(signal, state="rejected", reason=reason)
