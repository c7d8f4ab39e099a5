"""How does a source write to Kafka: topics, transactions, and positions that stand in the same
transaction as the messages in front of them?

A position is the newest message of its key in a compacted topic. Whoever reads committed messages
alone sees each message once, however often the publisher is killed. Another process that publishes
the same source is fenced by Kafka.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from cdc_core.config.publish import PublishConfig
from cdc_core.errors import ConfigError, PreflightError, StoreUnavailableError
from cdc_core.model.identifiers import TableId
from cdc_core.model.templates import filled

WAIT_SECONDS = 60.0
_POSITIONS = "redolake-positions"


class Message(NamedTuple):
    """A message; without a value it is a tombstone."""

    topic: str
    key: Mapping[str, Any] | None
    value: Mapping[str, Any] | None


class Topics:
    """The topics of one source, as one run of publishing sees them."""

    def __init__(self, source: str, how: PublishConfig) -> None:
        self._kafka = kafka = client()
        self._source, self._how = source, how
        self.prefix = how.topic_prefix or source
        self._common: dict[str, Any] = {
            **how.options,
            "bootstrap.servers": how.bootstrap_servers,
        }
        if how.sasl_password is not None:
            self._common["sasl.password"] = how.sasl_password.get_secret_value()
        self._producer = kafka.Producer(
            {
                **self._common,
                "transactional.id": f"redolake.{self.prefix}",
                "linger.ms": 20,
                "partitioner": "murmur2_random",
            }
        )
        self._positions: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> Topics:
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.flush(WAIT_SECONDS)

    def prepare(self, tables: Sequence[TableId]) -> None:
        """Fence others, create topics that are missing, and learn what is out.

        Raises:
            ConfigError: Two tables would share a topic.
        """
        self._producer.init_transactions(WAIT_SECONDS)
        topics: dict[str, TableId] = {}
        for table in tables:
            other = topics.setdefault(self.of_table(table), table)
            if other != table:
                raise ConfigError(
                    "two tables would share a topic, in which their keys would mix",
                    hint="Tell them apart in publish.topic, for example by {digest}.",
                    tables=f"{other}, {table}",
                    topic=self.of_table(table),
                )
        how = self._how
        beside = [how.transaction_topic, how.schema_change_topic, how.heartbeat_topic]
        self._create(topics, [self.beside(one) for one in beside if one is not None])
        self._positions = self._read()

    def of_table(self, table: TableId) -> str:
        """The topic of a table's events."""
        if self._how.topic is None:
            return _clean(f"{self.prefix}.{table.owner}.{table.name}")
        return _clean(filled(self._how.topic, self._source, table, prefix=self.prefix))

    def beside(self, template: str) -> str:
        """The topic that a template without a table names."""
        return _clean(template.format(prefix=self.prefix, source=self._source))

    def position(self, of: str) -> dict[str, Any] | None:
        """What the newest committed transaction left under a name; None before the first."""
        return self._positions.get(of)

    def commit(self, messages: Iterable[Message], of: str | None = None, after: Any = None) -> None:
        """Send messages and the position behind them, all or none."""
        producer = self._producer
        producer.begin_transaction()
        try:
            for one in messages:
                self._produce(one.topic, _text(one.key), _text(one.value))
            if of is not None:
                self._produce(_clean(f"{self.prefix}.{_POSITIONS}"), of, _text(after))
            producer.commit_transaction(WAIT_SECONDS)
        except BaseException:
            with suppress(self._kafka.KafkaException):  # the next run's fence aborts it, too
                producer.abort_transaction(WAIT_SECONDS)
            raise
        if of is not None:
            self._positions[of] = after

    def _produce(self, topic: str, key: str | None, value: str | None) -> None:
        """Hand a message to the client, and let it work where its queue is full."""
        while True:
            try:
                self._producer.produce(topic, value, key)
            except BufferError:
                self._producer.poll(1)
            else:
                return

    def _create(self, tables: Iterable[str], beside: Iterable[str]) -> None:
        """Create the topics that are not there: the tables' with their partitions, others with one,
        in which all messages have an order."""
        from confluent_kafka.admin import AdminClient

        admin = AdminClient(self._common)
        there = admin.list_topics(timeout=WAIT_SECONDS).topics
        made, positions = self._kafka.cimpl.NewTopic, _clean(f"{self.prefix}.{_POSITIONS}")
        wanted = [made(one, self._how.partitions) for one in tables if one not in there]
        wanted += [made(one, 1) for one in beside if one not in there]
        if positions not in there:
            wanted.append(made(positions, 1, config={"cleanup.policy": "compact"}))
        for done in admin.create_topics(wanted).values() if wanted else ():
            done.result(WAIT_SECONDS)

    def _read(self) -> dict[str, dict[str, Any]]:
        """The newest position of each name, as committed transactions left it."""
        kafka, found = self._kafka, dict[str, dict[str, Any]]()
        consumer = kafka.Consumer(
            {
                **self._common,
                "group.id": f"redolake.{self.prefix}",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
            }
        )
        try:
            topic = _clean(f"{self.prefix}.{_POSITIONS}")
            consumer.assign([kafka.TopicPartition(topic, 0, 0)])
            while (message := consumer.poll(WAIT_SECONDS)) is not None:
                error = message.error()
                if error is None and message.value() is not None:
                    found[message.key().decode()] = json.loads(message.value())
                elif error is not None and error.code() == kafka.KafkaError._PARTITION_EOF:
                    return found
                elif error is not None:
                    raise kafka.KafkaException(error)
        finally:
            consumer.close()
        raise kafka.KafkaException(kafka.KafkaError(kafka.KafkaError._TIMED_OUT))


def _clean(topic: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", topic)


def _text(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def client() -> Any:
    """Kafka's client.

    Raises:
        PreflightError: It is not installed.
    """
    try:
        import confluent_kafka
    except ImportError as error:
        raise PreflightError(
            "Kafka's client is not installed", hint="pip install 'redolake[kafka]'"
        ) from error
    return confluent_kafka


@contextmanager
def kafka_errors() -> Iterator[None]:
    """Translate what the client raises."""
    failed = client().KafkaException
    try:
        yield
    except failed as error:
        raise StoreUnavailableError(
            "Kafka does not take the events",
            hint="Look at the brokers, and at publish.bootstrap_servers. Another process that "
            "publishes the same source ends this one. Nothing is lost: the next run continues.",
            cause=error.args[0].name() if error.args else type(error).__name__,
        ) from error
