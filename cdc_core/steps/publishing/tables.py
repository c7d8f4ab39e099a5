"""How do events get from the change logs into Kafka, each once?

A table's position is the version of its change log's Delta table, and how many changes of the next
commit are out.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from cdc_core.config.publish import PublishConfig
from cdc_core.delta.history import DeltaCommit, commits_after
from cdc_core.errors import ConfigError
from cdc_core.lake.table_context import generation_in
from cdc_core.model.reports import TopicPublished
from cdc_core.steps.context import Context
from cdc_core.steps.publishing import side_topics
from cdc_core.steps.publishing.topics import Message, Topics, client, kafka_errors
from cdc_core.steps.source_view import SourceView, logged_tables, older_log, origin_of
from cdc_core.views import connect
from cdc_core.views.envelope import LoggedTable, Origin
from cdc_core.views.events import ChangeEvent, envelope_json, events_of, key_json
from cdc_core.views.transaction_order import (
    BRINGS_EVENTS,
    NO_ORDER,
    TableOrder,
    TransactionLog,
    window_of,
)

_LOG = logging.getLogger(__name__)
EVENTS_PER_TRANSACTION = 10_000


@dataclass(frozen=True, slots=True)
class _Position:
    """All commits up to ``version`` are out, and of the next one so many ``changes``: of the change
    log that was begun as the table's ``generation``-th."""

    generation: int
    version: int
    changes: int = 0


def publish(ctx: Context) -> Iterator[TopicPublished]:
    """Send what is not out yet, table by table, then what belongs into the topics beside them,
    yielding what each got.

    Raises:
        ConfigError: ``publish.bootstrap_servers`` is not set, or two tables would share a topic.
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
    client()
    placeholder = how.unavailable_value_placeholder
    origin = origin_of(ctx.store, ctx.config, how.time_zone, how.database, unavailable=placeholder)
    # Before the tables are looked at: what they have by then, they have for all their windows.
    complete = SourceView(ctx.store, ctx.config).taken_up_to
    tables = logged_tables(ctx.config)
    with kafka_errors(), Topics(ctx.source, how) as topics:
        origin = replace(origin, name=topics.prefix)
        topics.prepare([one.table for one in tables])
        log = None if how.transaction_topic is None else TransactionLog(tables, complete)
        publisher = _Publisher(topics, how, origin, log)
        for logged in tables:
            yield publisher.send(logged)
        yield from side_topics.send(ctx.config, topics, origin, log)


class _Publisher:
    """Sends the tables' events. With a ``log`` of transactions, events say their place in them, and
    wait until all tables have their window."""

    def __init__(
        self, topics: Topics, how: PublishConfig, origin: Origin, log: TransactionLog | None
    ) -> None:
        self._topics, self._how, self._origin, self._log = topics, how, origin, log

    def send(self, logged: LoggedTable) -> TopicPublished:
        """What the table's change log has behind its position; before that, the rest of older ones
        in whose place it was begun."""
        table, generation = logged.table, generation_in(logged.log)
        known = self._topics.position(str(table))
        if known is None:
            begins = -1 if self._how.begin == "beginning" else logged.log.version
            position = _Position(generation, begins)
        else:
            position = _Position(**known)
        sent, lost = 0, []
        while position.generation < generation:
            older = older_log(logged, position.generation)
            if older is None:
                lost.append(position.generation)
            else:
                count, position = self._rest(older, position)
                sent += count
                if position.version < older.log.version:
                    break
            position = _Position(position.generation + 1, -1)
        if position.generation == generation:
            count, position = self._rest(logged, position)
            sent += count
        if asdict(position) != self._topics.position(str(table)):
            self._topics.commit((), str(table), asdict(position))
        _LOG.info("published table=%s events=%d version=%d", table, sent, position.version)
        return TopicPublished(
            topic=self._topics.of_table(table),
            events=sent,
            table=table,
            version=position.version,
            lost=tuple(lost),
        )

    def _rest(self, logged: LoggedTable, position: _Position) -> tuple[int, _Position]:
        """Send what a change log has behind a position; how many events, and the position then:
        its end, or before the first window that another table does not have yet."""
        sent, end = 0, logged.log.version
        for commit, files in commits_after(logged.path, position.version, up_to=end):
            if commit.metadata.get("kind") in BRINGS_EVENTS and files:
                if self._log is not None and not self._log.has_all(commit):
                    break
                for count, after in self._commit(logged, commit, files, position):
                    sent, position = sent + count, after
            position = _Position(position.generation, commit.version)
        return sent, position

    def _commit(
        self, logged: LoggedTable, commit: DeltaCommit, files: list[str], position: _Position
    ) -> Iterator[tuple[int, _Position]]:
        """Send the events of one commit, transaction by transaction; how many each had, and the
        position behind it."""
        window = window_of(commit)
        order = NO_ORDER
        if self._log is not None and window is not None:
            order = self._log.order(logged, window)
        pending: list[ChangeEvent] = []
        for event in events_of(logged, files, first=position.changes):
            is_cut = len(pending) >= EVENTS_PER_TRANSACTION and event.number > pending[-1].number
            if is_cut:  # never between the two events of one change
                after = replace(position, changes=pending[-1].number)
                yield self._transaction(logged, pending, order, after), after
                pending = []
            pending.append(event)
        if pending:
            after = replace(position, changes=pending[-1].number)
            yield self._transaction(logged, pending, order, after), after

    def _transaction(
        self,
        logged: LoggedTable,
        events: Sequence[ChangeEvent],
        order: TableOrder,
        after: _Position,
    ) -> int:
        """Send events and the position behind them, all or none; how many events."""
        messages = self._messages(logged, events, order)
        self._topics.commit(messages, str(logged.table), asdict(after))
        return len(events)

    def _messages(
        self, logged: LoggedTable, events: Sequence[ChangeEvent], order: TableOrder
    ) -> Iterator[Message]:
        topic, how, schema = self._topics.of_table(logged.table), self._how, logged.schema
        of_key, of_value = None, None
        if how.schemas:
            of_key = connect.key_schema(schema, topic, how.decimals)
            of_value = connect.envelope_schema(schema, topic, how.decimals)
        for event in events:
            key = key_json(event, schema, how.decimals)
            if key is not None:
                key = connect.message(of_key, key)
            value = envelope_json(event, schema, self._origin, how.decimals, order.of(event))
            yield Message(topic, key, connect.message(of_value, value))
            if event.op == "d" and key is not None and how.tombstones:
                yield Message(topic, key, None)
