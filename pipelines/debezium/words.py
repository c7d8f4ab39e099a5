"""What stands for Debezium's snapshot modes, signals, notifications and topics, and what does not?
Data of the reference page."""

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
        "The Delta table `schema_changes` (`lake.schema_changes`); in Kafka, "
        "`publish.schema_change_topic`.",
    ),
    (
        "<prefix>.transaction", "BEGIN and END of transactions",
        "The Delta table `transactions` (`lake.transactions`); in Kafka, `publish.transaction_topic`.",
    ),
    (
        "__debezium-heartbeat.<prefix>", "heartbeats",
        "None is needed: an idle database still closes windows, and `redolake_captured_scn` shows it. "
        "In Kafka, `publish.heartbeat_topic`.",
    ),
    (
        "<prefix>-signal", "signals",
        "`signals.channels`: a topic (`signals.kafka_topic`), a table in Oracle, a file, objects in "
        "landing, the command, Dagster.",
    ),
    (
        "notification.sink.topic.name", "notifications",
        "`notifications.channels`: the metadata store, the log, a webhook, Dagster, a class of your "
        "own.",
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

SNAPSHOT_MODES: Mapping[str, str] = {
    "always": "The same: each start reads all tables again.",
    "initial": _THE_SAME,
    "initial_only": "The same: no changes are captured.",
    "schema_only": "The older name of `no_data`, which a configuration may still use.",
    "no_data": "The same; `snapshot.start_scn` begins at an earlier SCN, such as a connector's offset.",
    "schema_only_recovery": "The older name of `recovery`, which a configuration may still use.",
    "recovery": "The same, also after DDL: definitions are read as of their SCNs. If the metadata "
    "store is lost, `redolake state rebuild` takes them from landing.",
    "when_needed": "The same, and no gap is silent: Redolake records it, and reads the tables again "
    "after it. `policies.on_redo_gone` does so for single tables.",
    "configuration_based": "The same five switches, under `snapshot.configuration_based`.",
    "custom": "A Python class (`snapshot.custom`) in place of a Java one.",
}
"""Each value of ``snapshot.mode``, and what Redolake does for it."""

SIGNALS: Mapping[str, str] = {
    "execute-snapshot": "The same, with all its fields: `data-collections` (names, patterns or "
    "expressions), `type`, `additional-conditions`, `additional-condition`, `surrogate-key`.",
    "stop-snapshot": _THE_SAME,
    "pause-snapshot": _THE_SAME,
    "resume-snapshot": _THE_SAME,
    "schema-changes": "The same, without a restart.",
    "log": _THE_SAME,
    "drop-transaction": "Rejected: an open transaction takes no memory in Redolake, and changes of a "
    "dropped one that commits after all would be lost. The reason of the rejection names the session "
    "to end in Oracle.",
    "snapshot-window-open": "Ignored: Debezium writes these watermarks for itself.",
    "snapshot-window-close": "Ignored, too.",
    "an action of your own": "A Python function, under `signals.actions`.",
}
"""Each type of signal, and what Redolake does with it."""

NOT_OFFERED: tuple[tuple[str, str, str], ...] = (
    (
        "events within a second",
        "Redolake reads redo in windows, and a window ends at an SCN up to which each redo thread has "
        "written.",
        "`capture.close_at: online`, for events within about a minute.",
    ),
    (
        "`capture.mode: downstream`",
        "A mining database has the redo but not the rows: neither chunks nor definitions can be read "
        "from it.",
        "LogMiner on a physical standby: `capture.standby_dsn`.",
    ),
    (
        "a logical standby",
        "It writes redo of its own, for the SQL that it applies: SCNs, ROWIDs and transactions differ "
        "from the primary's.",
        "A physical standby.",
    ),
    (
        "`snapshot.query.mode: custom`, `snapshot.locking.mode: custom`",
        "Chunks are flashback queries without a lock, so that any of them can be read again.",
        "`snapshot.select_overrides` chooses rows, `snapshot.custom` what a start reads.",
    ),
    (
        "`transforms`, `predicates`",
        "They work on messages, and Redolake writes rows into tables.",
        "SQL over the change log; on the way into it, `columns_mask`, `columns_as` and converters.",
    ),
    (
        "`time.precision.mode: structured`",
        "Delta has timestamps, by which readers skip files; a struct of parts has no order.",
        "`EXTRACT` in SQL; `columns_as: text` holds what no timestamp does.",
    ),
    (
        "VariableScaleDecimal in tables",
        "No SQL engine adds or compares a struct of scale and bytes.",
        "Exact text, `decimal(p,s)` or `double`; `publish.decimals: precise` in Kafka's messages.",
    ),
    (
        "`first`, `last` and similar marks in `source.snapshot`",
        "Redolake reads chunks in parallel, and the rows of a chunk have no order.",
        "The notification `COMPLETED`.",
    ),
    (
        "comments in the table of schema changes (`include.schema.comments`)",
        "`COMMENT ON` changes no definition, and logs no change of the columns.",
        "`lake.catalog` keeps comments of tables and columns current in the catalog.",
    ),
    (
        "`generated` in schema changes",
        "Virtual columns are no part of a row's redo, and are not captured.",
        "A view over the mirror.",
    ),
    (
        "`log.mining.hash.area.size`, `log.mining.sort.area.size`",
        "Redolake reads rows in the order in which LogMiner gives them, and neither sorts nor joins them.",
        "A log-on trigger of the capture user sets what your database needs.",
    ),
    (
        "PGA and UGA of the mining session",
        "Reading them takes grants on V$MYSTAT and V$STATNAME, which nothing else needs.",
        "`PGA_MAX_MEM` in V$PROCESS.",
    ),
)
"""What Debezium has and Redolake has not: why, and what to do instead."""
