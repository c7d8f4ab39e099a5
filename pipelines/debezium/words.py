"""What stands for Debezium's notifications and topics? Data of the reference page."""

from __future__ import annotations

from collections.abc import Mapping

_INITIAL, _INCREMENTAL = "Initial Snapshot", "Incremental Snapshot"
_THE_SAME = "The same."
_WITH_IN_PROGRESS = "`IN_PROGRESS` says it: each chunk is a piece of work of its own."

NOTIFICATIONS: Mapping[tuple[str, str], str] = {
    (_INITIAL, "STARTED"): "The same. The id is that of the snapshot.",
    (_INITIAL, "IN_PROGRESS"): "The same, after each chunk, with `chunk_index` and `total_chunks`.",
    (_INITIAL, "TABLE_CHUNK_IN_PROGRESS"): _WITH_IN_PROGRESS,
    (_INITIAL, "TABLE_CHUNK_COMPLETED"): _WITH_IN_PROGRESS,
    (_INITIAL, "TABLE_SCAN_COMPLETED"): "The same. `status` is `SUCCEEDED` or `EMPTY`; a table "
    "that cannot be read sends `Table`, `STOPPED`.",
    (_INITIAL, "COMPLETED"): _THE_SAME,
    (_INITIAL, "ABORTED"): "Not sent: what was read stays read, and the next run continues.",
    (_INITIAL, "SKIPPED"): _THE_SAME,
    (_INCREMENTAL, "STARTED"): _THE_SAME,
    (_INCREMENTAL, "PAUSED"): _THE_SAME,
    (_INCREMENTAL, "RESUMED"): _THE_SAME,
    (_INCREMENTAL, "ABORTED"): _THE_SAME,
    (_INCREMENTAL, "IN_PROGRESS"): "The same, without `maximum_key` and `last_processed_key`: keys "
    "are values of rows.",
    (_INCREMENTAL, "TABLE_SCAN_COMPLETED"): "The same. `status` is `SUCCEEDED` or `EMPTY`; a table "
    "without a key is refused before a signal is taken.",
    (_INCREMENTAL, "COMPLETED"): _THE_SAME,
}
"""Each notification of Debezium, by ``aggregate_type`` and ``type``."""

TOPICS: tuple[tuple[str, str, str], ...] = (
    (
        "<prefix>.<schema>.<table>", "events of a table",
        "The change log, a Delta table at `<lake.path>/<source>/changelog/<owner.table>`. "
        "`redolake table events` prints the query that gives Debezium's envelope; `redolake publish` "
        "sends it to `<publish.topic_prefix>.<OWNER>.<TABLE>`.",
    ),
    (
        "<prefix>", "schema changes",
        "The Delta table `schema_changes`, with `lake.schema_changes: true`.",
    ),
    (
        "<prefix>.transaction", "BEGIN and END of transactions",
        "The Delta table `transactions`, with `lake.transactions: true`.",
    ),
    (
        "__debezium-heartbeat.<prefix>", "heartbeats",
        "None: an idle database still closes windows. `redolake_captured_scn` shows that it does.",
    ),
    (
        "<prefix>-signal", "signals",
        "`signals.channels`: a table in Oracle, a file, objects in landing, the command, Dagster.",
    ),
    (
        "notification.sink.topic.name", "notifications",
        "`notifications.channels`: the metadata store, the log, a webhook, a class of your own.",
    ),
    (
        "schema.history.internal.kafka.topic", "the history of definitions",
        "None: the metadata store and landing hold it.",
    ),
    (
        "errors.deadletterqueue.topic.name", "events that failed",
        "The quarantine, a Delta table beside the mirror (`policies.on_undecodable`).",
    ),
)  # fmt: skip
"""Each topic that a connector writes or reads: its name, what it holds, and what stands for it."""
