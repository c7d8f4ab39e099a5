"""What goes into the topics beside those of the tables: ends of transactions, changes of
definitions, heartbeats?"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow.parquet as pq

from cdc_core.config import SourceConfig
from cdc_core.delta.errors import at_work
from cdc_core.delta.history import commits_after, filesystem_of, read_log
from cdc_core.delta.log_files import data_file
from cdc_core.lake.side_tables.source_tables import SideTableName, side_table_path
from cdc_core.model.reports import TopicPublished
from cdc_core.steps.publishing.topics import Message, Topics
from cdc_core.views import connect
from cdc_core.views.envelope import Origin
from cdc_core.views.transaction_order import TransactionLog

_LOG = logging.getLogger(__name__)
TRANSACTIONS_AT_ONCE = 10_000
_SCHEMA_CHANGES: SideTableName = "schema_changes"
_TRANSACTIONS = "transactions"


def send(
    config: SourceConfig, topics: Topics, origin: Origin, log: TransactionLog | None
) -> Iterator[TopicPublished]:
    """Send what is not out yet to each topic that the configuration names."""
    how = config.publish
    if how.transaction_topic is not None and log is not None:
        topic = topics.beside(how.transaction_topic)
        yield _told(topic, _transactions(config, topics, origin, log, topic))
    if how.schema_change_topic is not None:
        topic = topics.beside(how.schema_change_topic)
        yield _told(topic, _schema_changes(config, topics, origin, topic))
    if how.heartbeat_topic is not None:
        topic = topics.beside(how.heartbeat_topic)
        topics.commit([_heartbeat(config, topics, topic)])
        yield _told(topic, 1)


def _told(topic: str, messages: int) -> TopicPublished:
    _LOG.info("published topic=%s messages=%d", topic, messages)
    return TopicPublished(topic=topic, events=messages)


def _heartbeat(config: SourceConfig, topics: Topics, topic: str) -> Message:
    has_schemas = config.publish.schemas
    key = connect.HEARTBEAT_KEY if has_schemas else None
    value = connect.HEARTBEAT if has_schemas else None
    return Message(
        topic,
        connect.message(key, {"serverName": topics.prefix}),
        connect.message(value, {"ts_ms": _now()}),
    )


def _transactions(
    config: SourceConfig, topics: Topics, origin: Origin, log: TransactionLog, topic: str
) -> int:
    """Send BEGIN and END of the transactions that all tables have: a window at a time."""
    known = topics.position(_TRANSACTIONS)
    if known is None:
        known = {"scn": 0 if config.publish.begin == "beginning" else int(log.complete)}
        topics.commit((), _TRANSACTIONS, known)
    sent, skipped = 0, int(known.get("transactions", 0))
    for window in log.windows(known["scn"]):
        found = list(log.changes(window).transactions())
        for start in range(skipped, len(found), TRANSACTIONS_AT_ONCE):
            some = found[start : start + TRANSACTIONS_AT_ONCE]
            is_last = start + len(some) == len(found)
            after = {"scn": int(window.scn_high)} if is_last else {
                "scn": int(window.scn_low),
                "transactions": start + len(some),
            }  # fmt: skip
            messages = [one for each in some for one in _both_ends(config, origin, each, topic)]
            topics.commit(messages, _TRANSACTIONS, after)
            sent += len(messages)
        skipped = 0
    return sent


def _both_ends(
    config: SourceConfig, origin: Origin, transaction: dict[str, Any], topic: str
) -> Iterator[Message]:
    has_schemas = config.publish.schemas
    key = connect.message(
        connect.TRANSACTION_KEY if has_schemas else None, {"id": transaction["id"]}
    )
    counts = transaction["events"]
    collections = [
        {"data_collection": f"{origin.database}.{table}", "event_count": count}
        for table, count in counts.items()
    ]
    for status, at, count, named in (
        ("BEGIN", transaction["began"], None, None),
        ("END", transaction["committed"], sum(counts.values()), collections),
    ):
        value = {
            "status": status,
            "id": transaction["id"],
            "event_count": count,
            "data_collections": named,
            "ts_ms": _millis(at, origin),
        }
        schema = connect.TRANSACTION if has_schemas else None
        yield Message(topic, key, connect.message(schema, value))


def _schema_changes(config: SourceConfig, topics: Topics, origin: Origin, topic: str) -> int:
    """Send the rows that came into the table of schema changes, a commit at a time."""
    path = side_table_path(config.lake.path, config.name, _SCHEMA_CHANGES)
    log, known = read_log(path), topics.position(_SCHEMA_CHANGES)
    if log is None:
        if known is None:  # what comes is new
            topics.commit((), _SCHEMA_CHANGES, {"version": -1})
        return 0
    if known is None:
        known = {"version": -1 if config.publish.begin == "beginning" else log.version}
    sent = 0
    for commit, files in commits_after(path, known["version"], up_to=log.version):
        said, rows = commit.metadata, list[dict[str, Any]]()
        if said.get("kind") == _SCHEMA_CHANGES and files:
            rows = _rows(path, files, int(said["scn_high"]))
        messages = [_schema_change(config, origin, row, topic) for row in rows]
        topics.commit(messages, _SCHEMA_CHANGES, {"version": commit.version})
        sent += len(messages)
    return sent


def _rows(path: str, files: list[str], window: int) -> list[dict[str, Any]]:
    """A window's rows, in the order of their SCNs; other windows' rows stand in a file that was
    rewritten."""
    filesystem, root = filesystem_of(path)
    rows: list[dict[str, Any]] = []
    with at_work("reading the table of schema changes", {"path": path}):
        for name in files:
            read = pq.read_table(
                data_file(root, name),
                filesystem=filesystem,
                filters=[("scn_high", "=", window)],
                partitioning=None,
            )
            rows += read.to_pylist()
    return sorted(rows, key=lambda one: (one["scn"], one["owner"], one["table_name"]))


def _schema_change(
    config: SourceConfig, origin: Origin, row: dict[str, Any], topic: str
) -> Message:
    has_schemas = config.publish.schemas
    at = None if row["timestamp"] is None else _millis(row["timestamp"], origin)
    source = {
        **dict.fromkeys(one["field"] for one in connect.SOURCE["fields"]),
        "version": origin.version,
        "connector": "oracle",
        "name": origin.name,
        "ts_ms": at,
        "snapshot": "false",
        "db": origin.database,
        "schema": row["owner"],
        "table": row["table_name"],
        "scn": str(row["scn"]),
    }
    identifier = ".".join(f'"{one}"' for one in (origin.database, row["owner"], row["table_name"]))
    value = {
        "source": source,
        "ts_ms": _now(),
        "databaseName": origin.database,
        "schemaName": row["owner"],
        "ddl": row["ddl"],
        "tableChanges": []
        if row["type"] == "TRUNCATE"
        else [{"type": row["type"], "id": identifier, "table": _table(row)}],
    }
    return Message(
        topic,
        connect.message(
            connect.SCHEMA_CHANGE_KEY if has_schemas else None, {"databaseName": origin.database}
        ),
        connect.message(connect.SCHEMA_CHANGE if has_schemas else None, value),
    )


def _table(row: dict[str, Any]) -> dict[str, Any] | None:
    if row["columns"] is None:
        return None
    return {
        "defaultCharsetName": None,
        "primaryKeyColumnNames": row["key"],
        "columns": [
            {
                "name": one["name"],
                "jdbcType": connect.jdbc_type(one["type_name"]),
                "nativeType": None,
                "typeName": one["type_name"],
                "typeExpression": one["type_name"],
                "charsetName": None,
                "length": one["length"],
                "scale": one["scale"],
                "position": one["position"],
                "optional": one["nullable"],
                "autoIncremented": one["identity"],
                "generated": False,
                "comment": None,
                "defaultValueExpression": one["default"],
                "enumValues": None,
            }
            for one in row["columns"]
        ],
        "comment": None,
    }


def _millis(moment: datetime, origin: Origin) -> int:
    """Milliseconds since 1970 of one of the database's times."""
    return int(moment.replace(tzinfo=ZoneInfo(origin.time_zone)).timestamp() * 1000)


def _now() -> int:
    return int(datetime.now(UTC).timestamp() * 1000)
