"""How do events get from the change logs into Kafka, each once?

A table's position is the version of its change log's Delta table, and how many changes of the next
commit are out. It stands in a compacted topic, and is written in the same Kafka transaction as the
events in front of it: who reads committed messages alone sees each event once, however often this
is killed. Another process that publishes the same source is fenced by Kafka.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from cdc_core.delta.history import commits_after
from cdc_core.errors import ConfigError, PreflightError, StoreUnavailableError
from cdc_core.lake.table_context import generation_in
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import TablePublished
from cdc_core.steps.context import Context
from cdc_core.steps.source_view import logged_tables, older_log, origin_of
from cdc_core.views.envelope import LoggedTable, Origin
from cdc_core.views.events import ChangeEvent, envelope_json, events_of, key_json

_LOG = logging.getLogger(__name__)
_BRINGS_EVENTS = frozenset({"window", "chunk", "gone", "truncate", "partitions"})
EVENTS_PER_TRANSACTION = 10_000
_WAIT_SECONDS = 60.0
_POSITIONS = "redolake-positions"


@dataclass(frozen=True, slots=True)
class _Position:
    """All commits up to ``version`` are out, and of the next one so many ``changes``: of the change
    log that was begun as the table's ``generation``-th."""

    generation: int
    version: int
    changes: int = 0


def publish(ctx: Context) -> Iterator[TablePublished]:
    """Send what is not out yet, table by table, yielding what each got.

    Raises:
        ConfigError: ``publish.bootstrap_servers`` is not set.
        PreflightError: Kafka's client is not installed.
        StoreUnavailableError: Kafka cannot be reached, or refuses.
        LakeError: Files of a commit that is not out are gone.
    """
    how = ctx.config.publish
    if how.bootstrap_servers is None:
        raise ConfigError(
            "the configuration does not say where Kafka is",
            hint="Set publish.bootstrap_servers.",
            source=ctx.source,
        )
    placeholder = how.unavailable_value_placeholder
    origin = origin_of(ctx.store, ctx.config, how.time_zone, how.database, unavailable=placeholder)
    tables = logged_tables(ctx.config)
    with _kafka_errors(), _Publisher(ctx, origin) as publisher:
        publisher.prepare([one.table for one in tables])
        for logged in tables:
            yield publisher.send(logged)


class _Publisher:
    """One run of publishing a source: a producer of its own, and the positions as Kafka has
    them."""

    def __init__(self, ctx: Context, origin: Origin) -> None:
        kafka = _client()
        how, self._origin = ctx.config.publish, origin
        self._how, self._prefix = how, how.topic_prefix or ctx.source
        self._common: dict[str, Any] = {
            **how.options,
            "bootstrap.servers": how.bootstrap_servers,
        }
        if how.sasl_password is not None:
            self._common["sasl.password"] = how.sasl_password.get_secret_value()
        self._kafka = kafka
        self._producer = kafka.Producer(
            {
                **self._common,
                "transactional.id": f"redolake.{self._prefix}",
                "linger.ms": 20,
                "partitioner": "murmur2_random",
            }
        )
        self._positions: dict[str, _Position] = {}

    def __enter__(self) -> _Publisher:
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.flush(_WAIT_SECONDS)

    def prepare(self, tables: list[TableId]) -> None:
        """Fence others, create topics that are missing, and learn what is out."""
        self._producer.init_transactions(_WAIT_SECONDS)
        positions = self._topic(_POSITIONS)
        self._create([self._topic(f"{one.owner}.{one.name}") for one in tables], positions)
        self._positions = self._read(positions)

    def send(self, logged: LoggedTable) -> TablePublished:
        """What the table's change log has behind its position; before that, the rest of older ones
        in whose place it was begun."""
        table, generation = logged.table, generation_in(logged.log)
        position = self._positions.get(str(table))
        if position is None:
            begins = -1 if self._how.begin == "beginning" else logged.log.version
            position = _Position(generation, begins)
        sent, lost = 0, []
        while position.generation < generation:
            older = older_log(logged, position.generation)
            if older is None:
                lost.append(position.generation)
            else:
                count, position = self._rest(older, position)
                sent += count
            position = _Position(position.generation + 1, -1)
        count, position = self._rest(logged, position)
        if position != self._positions.get(str(table)):
            self._transaction(logged, [], position)
        _LOG.info("published table=%s events=%d version=%d", table, sent + count, position.version)
        return TablePublished(
            table=table, events=sent + count, version=position.version, lost=tuple(lost)
        )

    def _rest(self, logged: LoggedTable, position: _Position) -> tuple[int, _Position]:
        """Send what a change log has behind a position; how many events, and the position then."""
        sent, end = 0, logged.log.version
        for commit, files in commits_after(logged.path, position.version, up_to=end):
            if commit.metadata.get("kind") in _BRINGS_EVENTS and files:
                for count, after in self._commit(logged, files, position):
                    sent, position = sent + count, after
            position = _Position(position.generation, commit.version)
        return sent, position

    def _commit(
        self, logged: LoggedTable, files: list[str], position: _Position
    ) -> Iterator[tuple[int, _Position]]:
        """Send the events of one commit, transaction by transaction; how many each had, and the
        position behind it."""
        pending: list[ChangeEvent] = []
        for event in events_of(logged, files, first=position.changes):
            is_cut = len(pending) >= EVENTS_PER_TRANSACTION and event.number > pending[-1].number
            if is_cut:  # never between the two events of one change
                after = replace(position, changes=pending[-1].number)
                yield self._transaction(logged, pending, after), after
                pending = []
            pending.append(event)
        if pending:
            after = replace(position, changes=pending[-1].number)
            yield self._transaction(logged, pending, after), after

    def _transaction(
        self, logged: LoggedTable, events: Sequence[ChangeEvent], after: _Position
    ) -> int:
        """Send events and the position behind them, all or none; how many events."""
        producer, table = self._producer, logged.table
        topic = self._topic(f"{table.owner}.{table.name}")
        producer.begin_transaction()
        try:
            for event in events:
                key = _text(key_json(event, logged.schema))
                value = _text(envelope_json(event, logged.schema, self._origin))
                self._produce(topic, key, value)
                if event.op == "d" and key is not None and self._how.tombstones:
                    self._produce(topic, key, None)
            self._produce(self._topic(_POSITIONS), str(table), _text(asdict(after)))
            producer.commit_transaction(_WAIT_SECONDS)
        except BaseException:
            with suppress(self._kafka.KafkaException):  # the next run's fence aborts it, too
                producer.abort_transaction(_WAIT_SECONDS)
            raise
        self._positions[str(table)] = after
        return len(events)

    def _produce(self, topic: str, key: str | None, value: str | None) -> None:
        """Hand a message to the client, and let it work where its queue is full."""
        while True:
            try:
                self._producer.produce(topic, value, key)
            except BufferError:
                self._producer.poll(1)
            else:
                return

    def _topic(self, name: str) -> str:
        return re.sub(r"[^A-Za-z0-9._-]", "_", f"{self._prefix}.{name}")

    def _create(self, topics: Sequence[str], positions: str) -> None:
        """Create the topics that are not there."""
        from confluent_kafka.admin import AdminClient

        admin = AdminClient(self._common)
        there = admin.list_topics(timeout=_WAIT_SECONDS).topics
        made = self._kafka.cimpl.NewTopic
        wanted = [made(one, self._how.partitions) for one in topics if one not in there]
        if positions not in there:
            wanted.append(made(positions, 1, config={"cleanup.policy": "compact"}))
        for done in admin.create_topics(wanted).values() if wanted else ():
            done.result(_WAIT_SECONDS)

    def _read(self, topic: str) -> dict[str, _Position]:
        """The newest position of each table, as committed transactions left it."""
        kafka, found = self._kafka, dict[str, _Position]()
        consumer = kafka.Consumer(
            {
                **self._common,
                "group.id": f"redolake.{self._prefix}",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
            }
        )
        try:
            consumer.assign([kafka.TopicPartition(topic, 0, 0)])
            while (message := consumer.poll(_WAIT_SECONDS)) is not None:
                error = message.error()
                if error is None and message.value() is not None:
                    found[message.key().decode()] = _Position(**json.loads(message.value()))
                elif error is not None and error.code() == kafka.KafkaError._PARTITION_EOF:
                    return found
                elif error is not None:
                    raise kafka.KafkaException(error)
        finally:
            consumer.close()
        raise kafka.KafkaException(kafka.KafkaError(kafka.KafkaError._TIMED_OUT))


def _text(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _client() -> Any:
    try:
        import confluent_kafka
    except ImportError as error:
        raise PreflightError(
            "Kafka's client is not installed", hint="pip install 'redolake[kafka]'"
        ) from error
    return confluent_kafka


@contextmanager
def _kafka_errors() -> Iterator[None]:
    """Translate what the client raises."""
    failed = _client().KafkaException
    try:
        yield
    except failed as error:
        raise StoreUnavailableError(
            "Kafka does not take the events",
            hint="Look at the brokers, and at publish.bootstrap_servers. Another process that "
            "publishes the same source ends this one. Nothing is lost: the next run continues.",
            cause=error.args[0].name() if error.args else type(error).__name__,
        ) from error
