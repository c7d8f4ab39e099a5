"""Numbers for Prometheus: as many as there were, under the names of the page, also on the shipped dashboard and rules."""

from __future__ import annotations

import json
import re
import socket
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable
from prometheus_client.parser import text_string_to_metric_families

from cdc_core.errors import ConfigError, StoreUnavailableError
from cdc_core.model.metrics import METRICS, NO_METRIC, Sample
from cdc_core.model.reports import StepReport
from cdc_core.steps import Pipeline
from pipelines.debezium.words import NOTIFICATIONS
from pipelines.metrics_server import exposition, served
from tests.free_port import free_port
from tests.oracle.embedded import OWNER, Oracle, running_oracle

MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"

JMX = """
Connected CapturedTables LastEvent MilliSecondsSinceLastEvent TotalNumberOfEventsSeen
TotalNumberOfCreateEventsSeen TotalNumberOfUpdateEventsSeen TotalNumberOfDeleteEventsSeen
NumberOfEventsFiltered NumberOfErroneousEvents NumberOfUnchangedEventsSkipped MilliSecondsBehindSource
NumberOfCommittedTransactions SourceEventPosition LastTransactionId QueueTotalCapacity
QueueRemainingCapacity MaxQueueSizeInBytes CurrentQueueSizeInBytes
CurrentScn OffsetScn CommittedScn OldestScn OldestScnAgeInMilliseconds
MiningSessionLowerBounds MiningSessionUpperBounds MiningFetchLowerBounds MiningFetchUpperBounds
ScnFreezeCount CurrentLogFileNames MinedLogFileNames MinimumMinedLogCount MaximumMinedLogCount
CurrentMinedLogCount RedoLogStatuses LogSwitchCount
TotalProcessedRows TotalChangesCount FetchQueryCount LastDurationOfFetchQueryInMilliseconds
MaxDurationOfFetchQueryInMilliseconds LastBatchProcessingTimeInMilliseconds
MinBatchProcessingTimeInMilliseconds MaxBatchProcessingTimeInMilliseconds
TotalBatchProcessingTimeInMilliseconds LastBatchProcessingThroughput MaxBatchProcessingThroughput
AverageBatchProcessingThroughput CommitThroughput LastCommitDurationInMilliseconds
MaxCommitDurationInMilliseconds TotalCommitTime LastMiningSessionStartTimeInMilliseconds
MaxMiningSessionStartTimeInMilliseconds TotalMiningSessionStartTimeInMilliseconds TotalParseTime
TotalResultSetNextTime LastCapturedDmlCount MaxCapturedDmlCountInBatch TotalCapturedDmlCount
NumberOfActiveTransactions NumberOfEventsInBuffer NumberOfRolledBackTransactions RolledBackTransactionIds
AbandonedTransactionIds AbandonedTransactionCount NumberOfOversizedTransactions
NumberOfPartialRollbackCount MillisecondsToKeepTransactionsInBuffer
LagFromSourceInMilliseconds MinLagFromSourceInMilliseconds MaxLagFromSourceInMilliseconds
MiningSessionUserGlobalAreaMemoryInBytes MiningSessionUserGlobalAreaMaxMemoryInBytes
MiningSessionProcessGlobalAreaMemoryInBytes MiningSessionProcessGlobalAreaMaxMemoryInBytes
WarningCount ErrorCount TotalSchemaChangeParseErrorCount
TotalTableCount RemainingTableCount SnapshotRunning SnapshotPaused SnapshotAborted SnapshotCompleted
SnapshotSkipped SnapshotDurationInSeconds SnapshotPausedDurationInSeconds RowsScanned TableChunkCounts
TableChunksCompletedCounts ChunkId ChunkFrom ChunkTo TableFrom TableTo
Status RecoveryStartTime ChangesRecovered ChangesApplied MilliSecondsSinceLastRecoveredChange
MilliSecondsSinceLastAppliedChange LastRecoveredChange LastAppliedChange HitCount MissCount PoolSize
HitRatioPercent
"""
"""The attributes of Debezium's contexts streaming, snapshot and schema history."""


def scraped(port: int) -> dict[tuple[str, ...], float]:
    """What Prometheus's own reader finds: by name and labels but the source's."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        return parsed(answer.read().decode())


def parsed(text: str) -> dict[tuple[str, ...], float]:
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if not sample.name.endswith("_created"):
                assert sample.labels["source"] == "src"
                names = METRICS[sample.name].labels if sample.name in METRICS else ()
                found[(sample.name, *(sample.labels[name] for name in names))] = sample.value
    return found


@pytest.fixture
def port() -> int:
    return free_port()


def logged(config: Any, table: str) -> list[dict[str, Any]]:
    """The table's change log, read without Redolake."""
    path = f"{config.lake.path}/src/changelog/{OWNER.lower()}.{table.lower()}"
    found = DeltaTable(path).to_pyarrow_table(columns=["_cdc_op", "_cdc_skipped"])
    return list(found.to_pylist())


def test_a_scrape_counts_what_was_loaded(tmp_path: Path, port: int) -> None:
    """Each number beside one that was counted in another way: in Oracle, in the change log, in the reports, in landing."""
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9))",
            "INSERT INTO T SELECT LEVEL, 'old' FROM DUAL CONNECT BY LEVEL <= 250",
        )
        config = oracle.config(
            tmp_path,
            "T",
            snapshot={"chunk_rows": 100},
            events={"skip_unchanged": True},
        )
        reports: list[StepReport] = []
        with Pipeline(config, report=reports.append) as pipeline:
            with served({"src": pipeline.measure}, address="127.0.0.1", port=port):
                before = scraped(port)
                assert (before["redolake_oracle_up",], before["redolake_redo_rows_total",]) == (
                    1,
                    0,
                )
                load(oracle, pipeline)
                found = scraped(port)
            events = Counter(one["_cdc_op"] for one in logged(config, "T"))
            skipped = Counter(one["_cdc_skipped"] for one in logged(config, "T"))
            status, windows = pipeline.status(), pipeline.records.windows()
            text = exposition({"src": lambda: pipeline.measure(status)})
        table = f"{OWNER}.T"
        assert {op: found["redolake_events_total", table, op] for op in events} == events
        assert events == {"r": 250, "c": 3, "u": 11, "d": 5}
        assert (
            found["redolake_events_skipped_total", table, "unchanged"] == skipped["unchanged"] == 1
        )
        assert found["redolake_snapshot_rows_total", table] == 250
        chunks = [one for one in reports if one.kind == "chunk-applied"]
        assert found["redolake_snapshot_chunks_total", table] == len(chunks) == 3
        captured = [one for one in reports if one.kind == "window-captured"]
        assert found["redolake_windows_captured_total",] == len(captured)
        assert found["redolake_redo_rows_total",] == sum(one.rows for one in captured)
        assert found["redolake_mined_rows_total",] >= found["redolake_redo_rows_total",]
        landed = [one for one in (tmp_path / "landing").rglob("*.parquet") if "window" in str(one)]
        size = sum(one.bytes for one in captured)  # an idle window's file is removed
        assert found["redolake_redo_bytes_total",] == size
        assert size >= sum(one.stat().st_size for one in landed) > 0
        assert found["redolake_transactions_total", "committed"] == 4
        ended = sum(one.facts["transactions_rolled_back"] for one in captured)
        assert found["redolake_transactions_total", "rolled_back"] == ended
        open_ones = [one for one in status.oldest_open if one.state == "open"]
        assert (len(open_ones), ended + status.open_transactions) == (1, 2), "one was rolled back"
        assert found["redolake_open_transactions",] == status.open_transactions
        assert found["redolake_windows", "applied"] == len(windows)
        assert found["redolake_captured_scn",] == max(one.window.scn_high for one in windows)
        assert found["redolake_table_position_scn", table] == status.tables[0].position
        assert found["redolake_table_state", table, "ready"] == 1
        assert found["redolake_tables", "ready"] == 1
        assert found["redolake_mirror_rows_total", table, "deleted"] == 5
        assert found["redolake_log_sequence", "1"] >= 1
        parts = ("redolake_stage_seconds_total", "redolake_merge_seconds_total")
        assert all(found[part, table] > 0 for part in parts)
        assert (
            found["redolake_mining_fetch_seconds_total",]
            <= found["redolake_capture_seconds_total",]
        )
        assert parsed(text)["redolake_oracle_scn",] == status.scn_oracle


def load(oracle: Oracle, pipeline: Pipeline) -> None:
    """A snapshot of 250 rows; three inserts, ten updates and one that changes nothing, five deletes; a rollback, a transaction that
    stays open."""
    list(pipeline.run_once())
    with oracle.owner() as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE T SET V = 'no' WHERE ID = 30")
        connection.rollback()
        cursor.execute("INSERT INTO T SELECT 1000 + LEVEL, 'new' FROM DUAL CONNECT BY LEVEL <= 3")
        connection.commit()
    oracle.run("UPDATE T SET V = 'upd' WHERE ID <= 10")
    list(pipeline.run_windows())
    oracle.run("UPDATE T SET V = V WHERE ID = 20")
    oracle.run("DELETE FROM T WHERE ID > 245 AND ID <= 250")
    with oracle.owner() as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE T SET V = 'open' WHERE ID = 31")
        list(pipeline.run_windows())


def test_a_source_that_cannot_be_measured_hides_no_other() -> None:
    def fails() -> list[Sample]:
        raise StoreUnavailableError("the metadata store is down", hint="Start it.")

    text = exposition(
        {"src": lambda: [Sample(METRICS["redolake_oracle_scn"], (), 7.0)], "b": fails}
    )
    assert 'redolake_metrics_up{source="src"} 1.0' in text
    assert 'redolake_metrics_up{source="b"} 0.0' in text
    assert 'redolake_oracle_scn{source="src"} 7.0' in text
    assert "# HELP redolake_oracle_scn Oracle's SCN now. Debezium: CurrentScn." in text


def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(ConfigError, match="cannot be served") as refused,
            served({}, address="127.0.0.1", port=port),
        ):
            pass
    assert refused.value.facts["port"] == port


def test_each_attribute_of_debezium_is_answered_once() -> None:
    answered = [jmx for one in METRICS.values() for jmx in one.debezium]
    reasons = [jmx for names in NO_METRIC for jmx in names.split()]
    assert Counter(answered + reasons) == Counter(JMX.split())


def test_reasons_name_metrics_that_are_there() -> None:
    named = re.findall(r"redolake_\w+", " ".join(NO_METRIC.values()))
    assert named
    assert set(named) <= METRICS.keys()


def test_each_notification_of_debezium_has_an_answer() -> None:
    initial = "STARTED IN_PROGRESS TABLE_CHUNK_IN_PROGRESS TABLE_CHUNK_COMPLETED TABLE_SCAN_COMPLETED COMPLETED ABORTED SKIPPED"
    later = "STARTED PAUSED RESUMED ABORTED IN_PROGRESS TABLE_SCAN_COMPLETED COMPLETED"
    assert NOTIFICATIONS.keys() == {
        *(("Initial Snapshot", one) for one in initial.split()),
        *(("Incremental Snapshot", one) for one in later.split()),
    }


@pytest.mark.parametrize("metric", METRICS.values(), ids=list(METRICS))
def test_names_follow_prometheuss_rules(metric: Any) -> None:
    assert re.fullmatch(r"redolake_[a-z_]+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert metric.said.endswith(".")


def expressions_of_rules() -> list[str]:
    [group] = yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert set(rule["annotations"]) == {"summary", "description"}
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))
    assert len({rule["alert"] for rule in group["rules"]}) == len(group["rules"])
    return [rule["expr"] for rule in group["rules"]]


def expressions_of_dashboard() -> list[str]:
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    panels = dashboard["panels"]
    places = [panel["gridPos"] for panel in panels]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({(one["x"], one["y"]) for one in places}) == len(panels)
    assert all(one["x"] + one["w"] <= 24 for one in places), "Grafana has 24 columns"
    return [target["expr"] for panel in panels for target in panel["targets"]]


@pytest.mark.parametrize("expressions", [expressions_of_rules, expressions_of_dashboard])
def test_what_is_shipped_names_metrics_and_labels_that_are_there(expressions: Any) -> None:
    known = {*METRICS, "redolake_metrics_up"}
    for expression in expressions():
        names = re.findall(r"redolake_\w+", expression)
        assert names or expression.startswith("up")
        assert set(names) <= known, expression
        assert expression.count("(") == expression.count(")")
        for name, labels in re.findall(r"(redolake_\w+)\{([^}]*)\}", expression):
            own = {"source", *METRICS[name].labels}
            assert set(re.findall(r"(\w+)\s*=~?", labels)) <= own, expression
        for name in names:
            if name in METRICS and METRICS[name].kind == "counter":
                assert re.search(rf"(rate|increase)\({name}", expression), expression
