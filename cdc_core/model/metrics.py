"""Which numbers does a source give to those who watch it, and what are they called?

The one table of them: the endpoint, ``redolake status --json``, the reference page and the answers
to Debezium's metrics are made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

MetricKind = Literal["counter", "gauge"]

Counts = Mapping[tuple[str, tuple[str, ...]], float]
"""What is added to counters: by the metric's name and the values of its labels."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of a source under its stable name. ``labels`` stand behind the label ``source``,
    which each has; ``debezium`` are the JMX attributes that it answers."""

    name: str
    kind: MetricKind
    labels: tuple[str, ...]
    said: str
    debezium: tuple[str, ...] = ()

    @property
    def help(self) -> str:
        """The text that goes with it to Prometheus, with Debezium's names for who looks for
        them."""
        theirs = f" Debezium: {', '.join(self.debezium)}." if self.debezium else ""
        return f"{self.said}{theirs}"


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of a metric, with the values of its labels in their order."""

    metric: Metric
    labels: tuple[str, ...]
    value: float

    def as_json(self) -> dict[str, Any]:
        """Name, labels by name, and value."""
        labels = dict(zip(self.metric.labels, self.labels, strict=True))
        return {"name": self.metric.name, "labels": labels, "value": self.value}


def _metrics(*rows: tuple[str, MetricKind, str, str, str]) -> dict[str, Metric]:
    found = (
        Metric(name, kind, tuple(labels.split()), said, tuple(theirs.split()))
        for name, kind, labels, said, theirs in rows
    )
    return {one.name: one for one in found}


METRICS = _metrics(
    # -- how it stands ---------------------------------------------------------------------------
    (
        "redolake_oracle_up", "gauge", "",
        "1 if Oracle answers, 0 if not.", "Connected",
    ),
    (
        "redolake_oracle_scn", "gauge", "",
        "Oracle's SCN now.", "CurrentScn",
    ),
    (
        "redolake_captured_scn", "gauge", "",
        "SCN up to which redo has landed.", "CommittedScn",
    ),
    (
        "redolake_position_scn", "gauge", "",
        "SCN up to which every table in the stream has applied the windows.",
        "OffsetScn SourceEventPosition",
    ),
    (
        "redolake_oldest_open_scn", "gauge", "",
        "SCN at which the oldest open transaction began.", "OldestScn",
    ),
    (
        "redolake_oldest_open_seconds", "gauge", "",
        "For how long the oldest open transaction has been known to be open.",
        "OldestScnAgeInMilliseconds ScnFreezeCount",
    ),
    (
        "redolake_open_transactions", "gauge", "",
        "Transactions with rows of captured tables and without an end.",
        "NumberOfActiveTransactions",
    ),
    (
        "redolake_open_transaction_rows", "gauge", "",
        "Landed redo rows of the open transactions.", "NumberOfEventsInBuffer",
    ),
    (
        "redolake_windows", "gauge", "state",
        "Windows in each state: planned, captured, applied (those that retention keeps).", "",
    ),
    (
        "redolake_windows_inexact", "gauge", "",
        "Windows that lacked commits which a later window brought.", "",
    ),
    (
        "redolake_window_blocked", "gauge", "",
        "1 if the first window that is not applied has failed, so that all tables wait.", "",
    ),
    (
        "redolake_log_sequence", "gauge", "thread",
        "Log sequence up to which a redo thread was read; it grows with each log switch.",
        "LogSwitchCount",
    ),
    (
        "redolake_signals_pending", "gauge", "",
        "Signals that wait for their turn.", "",
    ),
    (
        "redolake_snapshot_paused", "gauge", "",
        "1 while `pause-snapshot` pauses snapshots.", "SnapshotPaused",
    ),
    (
        "redolake_snapshot_paused_seconds", "gauge", "",
        "How long snapshots have been paused, in seconds.", "SnapshotPausedDurationInSeconds",
    ),
    # -- tables ----------------------------------------------------------------------------------
    (
        "redolake_tables", "gauge", "state",
        "Tables in each state: new, snapshotting, ready, paused, failed, removed.",
        "TotalTableCount RemainingTableCount SnapshotRunning SnapshotCompleted",
    ),
    (
        "redolake_table_state", "gauge", "table state",
        "1 for the state in which a table is.", "CapturedTables",
    ),
    (
        "redolake_table_position_scn", "gauge", "table",
        "SCN of which the mirror is an exact image.", "",
    ),
    (
        "redolake_table_lag_seconds", "gauge", "table",
        "How far the mirror is behind Oracle, by the database's clock.",
        "MilliSecondsBehindSource LagFromSourceInMilliseconds",
    ),
    (
        "redolake_table_lag_scns", "gauge", "table",
        "How far the mirror is behind Oracle, in SCNs.", "",
    ),
    (
        "redolake_table_last_change_timestamp_seconds", "gauge", "table",
        "When the table took its last change, in seconds since 1970.",
        "LastEvent MilliSecondsSinceLastEvent",
    ),
    (
        "redolake_snapshot_chunks", "gauge", "table state",
        "Chunks of the table's snapshot that are applied, and all that are planned.",
        "TableChunkCounts TableChunksCompletedCounts",
    ),
    (
        "redolake_quarantine_rows", "gauge", "table",
        "Redo rows that could not be decoded and wait in quarantine.", "",
    ),
    (
        "redolake_differences", "gauge", "table",
        "Rows that differed when the table was last compared with Oracle.", "",
    ),
    # -- capture ---------------------------------------------------------------------------------
    (
        "redolake_windows_captured_total", "counter", "",
        "Windows whose redo was read.", "FetchQueryCount",
    ),
    (
        "redolake_gaps_total", "counter", "",
        "Windows of which nothing was read, since no table takes part in them.", "",
    ),
    (
        "redolake_window_failures_total", "counter", "",
        "Attempts at a window that ended with an error.", "ErrorCount",
    ),
    (
        "redolake_mined_rows_total", "counter", "",
        "Rows that LogMiner's passes gave: those of captured tables, and ends of transactions.",
        "TotalProcessedRows",
    ),
    (
        "redolake_redo_rows_total", "counter", "",
        "Redo rows of captured tables that landed.",
        "TotalCapturedDmlCount LastCapturedDmlCount MaxCapturedDmlCountInBatch TotalChangesCount",
    ),
    (
        "redolake_redo_bytes_total", "counter", "",
        "Bytes of landed files.", "",
    ),
    (
        "redolake_logs_mined_total", "counter", "",
        "Redo logs that passes read, each as often as it was read.",
        "CurrentMinedLogCount MinimumMinedLogCount MaximumMinedLogCount",
    ),
    (
        "redolake_mining_start_seconds_total", "counter", "",
        "Seconds for naming logs and starting LogMiner.",
        "TotalMiningSessionStartTimeInMilliseconds LastMiningSessionStartTimeInMilliseconds "
        "MaxMiningSessionStartTimeInMilliseconds",
    ),
    (
        "redolake_mining_fetch_seconds_total", "counter", "",
        "Seconds in which Redolake waited for LogMiner's rows.",
        "LastDurationOfFetchQueryInMilliseconds MaxDurationOfFetchQueryInMilliseconds "
        "TotalResultSetNextTime",
    ),
    (
        "redolake_capture_seconds_total", "counter", "",
        "Seconds of capture, from the first look at the logs to the manifest.",
        "TotalBatchProcessingTimeInMilliseconds LastBatchProcessingTimeInMilliseconds "
        "MinBatchProcessingTimeInMilliseconds MaxBatchProcessingTimeInMilliseconds "
        "LastBatchProcessingThroughput MaxBatchProcessingThroughput "
        "AverageBatchProcessingThroughput",
    ),
    (
        "redolake_transactions_total", "counter", "outcome",
        "Transactions by how they ended: committed, rolled_back (once another one uses their undo "
        "slot), released (given up, since Oracle no longer knows them), evicted (no end was seen, "
        "and another one uses their slot), late.",
        "NumberOfCommittedTransactions NumberOfRolledBackTransactions AbandonedTransactionCount",
    ),
    (
        "redolake_schema_changes_total", "counter", "",
        "DDLs of captured tables that changed a definition.", "ChangesApplied",
    ),
    # -- lake ------------------------------------------------------------------------------------
    (
        "redolake_events_total", "counter", "table operation",
        "Rows of the change log by operation: c, u, d, t from redo, r from snapshots.",
        "TotalNumberOfEventsSeen TotalNumberOfCreateEventsSeen TotalNumberOfUpdateEventsSeen "
        "TotalNumberOfDeleteEventsSeen CommitThroughput",
    ),
    (
        "redolake_events_skipped_total", "counter", "table reason",
        "Changes that `events` marks as none: user, client, operation, unchanged.",
        "NumberOfEventsFiltered NumberOfUnchangedEventsSkipped",
    ),
    (
        "redolake_mirror_rows_total", "counter", "table change",
        "Rows of the mirror that windows inserted, updated and deleted.", "",
    ),
    (
        "redolake_quarantined_total", "counter", "table",
        "Redo rows that could not be decoded and went into quarantine.",
        "NumberOfErroneousEvents WarningCount",
    ),
    (
        "redolake_unfit_values_total", "counter", "table",
        "Values of changes and snapshots that are NULL because their column's form does not hold "
        "them (`on_unfit_value`).", "",
    ),
    (
        "redolake_stage_seconds_total", "counter", "table",
        "Seconds from landed rows to the change log: reading, decoding, writing.",
        "TotalParseTime",
    ),
    (
        "redolake_merge_seconds_total", "counter", "table",
        "Seconds from the change log to the mirror.", "",
    ),
    (
        "redolake_apply_seconds_total", "counter", "table",
        "Seconds in which windows were applied to the table, all together.",
        "TotalCommitTime LastCommitDurationInMilliseconds MaxCommitDurationInMilliseconds",
    ),
    (
        "redolake_snapshot_rows_total", "counter", "table",
        "Rows that chunks brought.", "RowsScanned",
    ),
    (
        "redolake_snapshot_chunks_total", "counter", "table",
        "Chunks that were applied.", "",
    ),
    (
        "redolake_snapshot_read_seconds_total", "counter", "table",
        "Seconds in which chunks were read from Oracle.", "SnapshotDurationInSeconds",
    ),
    (
        "redolake_snapshot_apply_seconds_total", "counter", "table",
        "Seconds in which chunks were applied.", "",
    ),
)  # fmt: skip
"""Every metric by its name, in the order of the page."""

NO_METRIC: Mapping[str, str] = {
    "Status RecoveryStartTime ChangesRecovered MilliSecondsSinceLastRecoveredChange "
    "LastRecoveredChange": "No history of definitions is recovered at a start: the metadata store "
    "holds it.",
    "MilliSecondsSinceLastAppliedChange LastAppliedChange": "`redolake schema show` prints each "
    "definition with its SCN and its DDL.",
    "HitCount MissCount PoolSize HitRatioPercent": "There is no cache of definitions.",
    "QueueTotalCapacity QueueRemainingCapacity MaxQueueSizeInBytes CurrentQueueSizeInBytes": "There "
    "is no queue: rows wait in files. `redolake_windows{state=\"captured\"}` says how many windows "
    "wait for the lake.",
    "MiningSessionLowerBounds MiningSessionUpperBounds MiningFetchLowerBounds "
    "MiningFetchUpperBounds": "Each window is such a range: `redolake windows` lists them.",
    "CurrentLogFileNames MinedLogFileNames RedoLogStatuses": "Names are no numbers. Each window's "
    "manifest lists the logs that were read; V$LOG has the others.",
    "LastTransactionId RolledBackTransactionIds AbandonedTransactionIds": "Ids are no numbers. "
    "`redolake status` names open and abandoned transactions; the ledger in landing has all.",
    "NumberOfOversizedTransactions": "No transaction is too large.",
    "MillisecondsToKeepTransactionsInBuffer": "No transaction is given up because it is old.",
    "NumberOfPartialRollbackCount": "Rows that a ROLLBACK TO SAVEPOINT takes back are not counted: "
    "they leave no change.",
    "MinLagFromSourceInMilliseconds MaxLagFromSourceInMilliseconds": "Let Prometheus do it: "
    "`min_over_time` and `max_over_time` of `redolake_table_lag_seconds`.",
    "MiningSessionUserGlobalAreaMemoryInBytes MiningSessionUserGlobalAreaMaxMemoryInBytes "
    "MiningSessionProcessGlobalAreaMemoryInBytes MiningSessionProcessGlobalAreaMaxMemoryInBytes":
    "Not recorded: it takes grants on V$MYSTAT and V$STATNAME. `PGA_MAX_MEM` of V$PROCESS has it "
    "while a window is captured.",
    "TotalSchemaChangeParseErrorCount": "A DDL that cannot be followed stops its table: "
    "`redolake_tables{state=\"failed\"}`.",
    "SnapshotAborted SnapshotSkipped": "Notifications say so: `ABORTED`, `SKIPPED`.",
    "ChunkId ChunkFrom ChunkTo TableFrom TableTo": "Bounds of chunks are values of rows, which no "
    "metric shows. `redolake_snapshot_chunks` has the progress.",
}  # fmt: skip
"""JMX attributes of Debezium that no metric answers, with the reason."""
