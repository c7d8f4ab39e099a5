"""Every metric under a load, each beside a number that was counted without the code that counts it: from Oracle's views, the change logs
and mirrors read by delta-rs, the metadata store read by SQLite, the reports of the steps."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import oracledb
import pytest
from deltalake import DeltaTable

from cdc_core.model.metrics import METRICS
from cdc_core.model.reports import Reconciliation, StepReport
from cdc_core.model.signals import Signal
from cdc_core.steps import Pipeline
from oracle_embedded.redo import Wart
from pipelines.metrics_server import exposition
from tests.oracle.embedded import ADMIN, OWNER, Oracle, running_oracle
from tests.pipelines.test_metrics import parsed

NAMES = ("T", "U", "Q")
Numbers = dict[tuple[str, ...], float]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was measured, and what there was."""

    found: Numbers
    reports: list[StepReport]
    compared: Reconciliation
    folder: Path
    between: tuple[float, float]
    """The seconds since 1970 between which the load ran."""

    scns: tuple[int, int]
    """Oracle's SCN before and behind the measurement."""

    oracle: Mapping[str, Any]
    """What Oracle's views said at the end."""

    def of(self, kind: str) -> list[StepReport]:
        """Of what was done once: a step that found its work done reports it again."""
        return [one for one in self.reports if one.kind == kind and not one.repeated]

    def facts(self, name: str) -> int:
        return sum(one.facts.get(name, 0) for one in self.of("window-captured"))

    def stored(self, sql: str) -> list[tuple[Any, ...]]:
        with sqlite3.connect(self.folder / "state.db") as connection:
            return connection.execute(sql).fetchall()

    def delta(self, layer: str, table: str) -> DeltaTable:
        return DeltaTable(f"{self.folder}/lake/src/{layer}/{OWNER.lower()}.{table.lower()}")

    def logged(self, table: str) -> list[dict[str, Any]]:
        return list(self.delta("changelog", table).to_pyarrow_table().to_pylist())

    def applied(self, table: str, name: str) -> float:
        """A number of all windows that were applied to a table."""
        return sum(
            getattr(one, name)
            for report in self.of("window-applied")
            for one in report.tables
            if one.table.name == table
        )


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    folder = tmp_path_factory.mktemp("metrics")
    began = time.time()
    with running_oracle() as oracle:  # whose clock is ten seconds ahead
        oracle.database.redo.set_wart(Wart.LATE_REDO, shown=False)
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9))",
            "CREATE TABLE U (ID NUMBER(9) PRIMARY KEY, FLAG NUMBER(1))",
            "CREATE TABLE Q (ID NUMBER(9) PRIMARY KEY, FLAG NUMBER(1))",
            "INSERT INTO T SELECT LEVEL, 'old' FROM DUAL CONNECT BY LEVEL <= 250",
        )
        tables: list[Any] = [
            {"name": f"{OWNER}.T"},
            {"name": f"{OWNER}.U", "columns_as": {"FLAG": "boolean"}, "on_unfit_value": "null"},
            {"name": f"{OWNER}.Q", "columns_as": {"FLAG": "boolean"}, "on_unfit_value": "refuse"},
        ]
        config = oracle.config(
            folder,
            tables=tables,
            snapshot={"chunk_rows": 100},
            events={"skip_unchanged": True},
            policies={"on_undecodable": "quarantine"},
        )
        reports: list[StepReport] = []
        with (
            Pipeline(config, report=reports.append) as pipeline,
            oracle.owner() as connection,
            connection.cursor() as cursor,
        ):
            _load(oracle, pipeline, cursor)
            compared = pipeline.reconcile()
            views = _views(oracle)
            before = _scn(oracle)
            found = parsed(exposition({"src": pipeline.measure}))
            yield Loaded(
                found, reports, compared, folder, (began, time.time()), (before, _scn(oracle)), views
            )  # fmt: skip


def _load(oracle: Oracle, pipeline: Pipeline, cursor: Any) -> None:
    """A snapshot; changes of three tables with one that changes nothing, one that does not fit, one that cannot be decoded; a DDL; a
    transaction that was rolled back and one that stays open; chunks that are held back, and a signal that waits."""
    list(pipeline.run_once())
    cursor.execute("UPDATE T SET V = 'no' WHERE ID = 30")
    cursor.connection.rollback()
    oracle.run("INSERT INTO T SELECT 1000 + LEVEL, 'new' FROM DUAL CONNECT BY LEVEL <= 3")
    oracle.run("UPDATE T SET V = 'upd' WHERE ID <= 10")
    list(pipeline.run_windows())
    oracle.run(
        "UPDATE T SET V = V WHERE ID = 20",
        "DELETE FROM T WHERE ID > 245 AND ID <= 250",
        "INSERT INTO U VALUES (1, 1)",
        "INSERT INTO U VALUES (2, 7)",
        "INSERT INTO Q VALUES (1, 1)",
        "INSERT INTO Q VALUES (2, 7)",
    )
    list(pipeline.run_windows())
    oracle.run("ALTER TABLE T ADD (MORE NUMBER(5))", "UPDATE T SET MORE = 1 WHERE ID = 1")
    list(pipeline.run_windows())
    cursor.execute("UPDATE T SET V = 'open' WHERE ID IN (31, 32)")
    oracle.run("INSERT INTO T (ID) VALUES (2000)")
    pipeline.add_signal(Signal(id="hold", source="src", type="pause-snapshot", data={}))
    list(pipeline.run_once())
    wanted = {"data-collections": [f"{OWNER}.T"]}
    pipeline.add_signal(Signal(id="wait", source="src", type="execute-snapshot", data=wanted))


def _views(oracle: Oracle) -> dict[str, Any]:
    with _admin(oracle) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT MIN(START_SCN), COUNT(*) FROM V$TRANSACTION")
        oldest, number = cursor.fetchone()
        cursor.execute("SELECT SEQUENCE# FROM V$LOG WHERE STATUS = 'CURRENT'")
        return {"oldest": oldest, "open": number, "sequence": cursor.fetchone()[0]}


def _admin(oracle: Oracle) -> Any:
    login = oracle.login(ADMIN)
    return oracledb.connect(user=ADMIN, password=login["password"], dsn=login["dsn"])


def _scn(oracle: Oracle) -> int:
    with _admin(oracle) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT CURRENT_SCN FROM V$DATABASE")
        return int(cursor.fetchone()[0])


Range = tuple[float, float]
Expected = Mapping[tuple[str, ...], float | Range]
"""By the values of the labels: the number, or the two between which it lies."""


def one(value: float | Range) -> Expected:
    return {(): value}


def by_table(value: Any) -> Expected:
    """A number of each table, where it is not 0."""
    found = {(f"{OWNER}.{name}",): value(name) for name in NAMES}
    return {labels: number for labels, number in found.items() if number}


def changes(loaded: Loaded, table: str) -> list[dict[str, Any]]:
    return [row for row in loaded.logged(table) if row["_cdc_snapshot"] is None]


def positions(loaded: Loaded) -> dict[str, int]:
    """By Delta's own transaction identifiers, or by the newest report of a window."""
    newest = max(int(report.scn_high or 0) for report in loaded.of("window-applied"))
    return dict.fromkeys(NAMES, newest)


def quarantined(loaded: Loaded, table: str) -> int:
    path = f"{loaded.folder}/lake/src/quarantine/{OWNER.lower()}.{table.lower()}"
    return DeltaTable(path).to_pyarrow_table().num_rows if DeltaTable.is_deltatable(path) else 0


def near(value: float) -> Range:
    """A sum of seconds, which the store rounds and adds."""
    return value - 0.01, value + 0.01


def chunks(loaded: Loaded, kind: str, name: str) -> float:
    return sum(
        report.seconds for report in loaded.of(kind) if report.table and report.table.name == name
    )


OTHERWISE: dict[str, Any] = {
    "redolake_oracle_up": lambda _: one(1),
    "redolake_oracle_scn": lambda load: one(load.scns),
    "redolake_captured_scn": lambda load: one(max(report.scn_high for report in load.of("window-captured"))),
    "redolake_position_scn": lambda load: one(min(positions(load).values())),
    "redolake_oldest_open_scn": lambda load: one(load.oracle["oldest"]),
    "redolake_oldest_open_seconds": lambda load: one((-20, load.between[1] - load.between[0])),
    "redolake_open_transactions": lambda load: one(load.oracle["open"]),
    "redolake_open_transaction_rows": lambda load: one(2),
    "redolake_windows": lambda load: {
        (state,): load.stored(f"SELECT COUNT(*) FROM windows WHERE state = '{state}'")[0][0]
        for state in ("planned", "captured", "applied")
    },
    "redolake_windows_inexact": lambda load: one(0),
    "redolake_window_blocked": lambda load: one(0),
    "redolake_log_sequence": lambda load: {("1",): load.oracle["sequence"]},
    "redolake_signals_pending": lambda load: one(load.stored("SELECT COUNT(*) FROM signals WHERE state = 'pending'")[0][0]),
    "redolake_snapshot_paused": lambda load: one(load.stored("SELECT COUNT(*) FROM snapshot_pauses")[0][0]),
    "redolake_snapshot_paused_seconds": lambda load: one((0.0001, load.between[1] - load.between[0])),
    "redolake_tables": lambda load: {
        (state,): 3 if state == "ready" else 0
        for state in ("new", "snapshotting", "ready", "paused", "failed", "removed")
    },
    "redolake_table_state": lambda load: {(f"{OWNER}.{name}", "ready"): 1 for name in NAMES},
    "redolake_table_position_scn": lambda load: by_table(lambda name: positions(load)[name]),
    "redolake_table_lag_seconds": lambda load: by_table(lambda _: (0, load.between[1] - load.between[0])),
    "redolake_table_lag_scns": lambda load: by_table(
        lambda name: tuple(scn - positions(load)[name] for scn in load.scns)
    ),
    "redolake_table_last_change_timestamp_seconds": lambda load: by_table(lambda _: load.between),
    "redolake_snapshot_chunks": lambda load: {
        (f"{OWNER}.{name}", state): sum(report.table.name == name for report in load.of("chunk-applied"))
        for name in NAMES for state in ("applied", "planned")
    },
    "redolake_quarantine_rows": lambda load: {(f"{OWNER}.{name}",): quarantined(load, name) for name in NAMES},
    "redolake_differences": lambda load: {
        (compared.table,): compared.differences for compared in load.compared.tables
    },
    "redolake_windows_captured_total": lambda load: one(len(load.of("window-captured"))),
    "redolake_gaps_total": lambda load: one(0),
    "redolake_window_failures_total": lambda load: one(0),
    "redolake_mined_rows_total": lambda load: one(load.facts("rows_mined")),
    "redolake_redo_rows_total": lambda load: one(sum(report.rows for report in load.of("window-captured"))),
    "redolake_redo_bytes_total": lambda load: one(sum(report.bytes for report in load.of("window-captured"))),
    "redolake_logs_mined_total": lambda load: one(load.facts("logs")),
    "redolake_mining_start_seconds_total": lambda load: one(near(load.facts("mining_start_ms") / 1000)),
    "redolake_mining_fetch_seconds_total": lambda load: one(near(load.facts("mining_fetch_ms") / 1000)),
    "redolake_capture_seconds_total": lambda load: one((
        (load.facts("mining_start_ms") + load.facts("mining_fetch_ms")) / 1000,
        load.between[1] - load.between[0],
    )),
    "redolake_transactions_total": lambda load: {
        (outcome,): {"committed": 5, "rolled_back": load.facts("transactions_rolled_back")}.get(outcome, 0)
        for outcome in ("committed", "rolled_back", "released", "evicted", "late")
    },
    "redolake_schema_changes_total": lambda load: one(1),
    "redolake_events_total": lambda load: {
        (f"{OWNER}.{name}", op): number
        for name in NAMES for op, number in Counter(row["_cdc_op"] for row in load.logged(name)).items()
    },
    "redolake_events_skipped_total": lambda load: {
        (f"{OWNER}.{name}", reason): number
        for name in NAMES
        for reason, number in Counter(row["_cdc_skipped"] for row in load.logged(name)).items() if reason
    },
    "redolake_mirror_rows_total": lambda load: {
        (f"{OWNER}.T", "inserted"): 4, (f"{OWNER}.T", "updated"): 12, (f"{OWNER}.T", "deleted"): 5,
        (f"{OWNER}.U", "inserted"): 2, (f"{OWNER}.Q", "inserted"): 1,
    },
    "redolake_quarantined_total": lambda load: by_table(lambda name: quarantined(load, name)),
    "redolake_unfit_values_total": lambda load: by_table(
        lambda name: sum(
            row["after"]["FLAG"] is None for row in changes(load, name) if name == "U"
        )
    ),
    "redolake_stage_seconds_total": lambda load: by_table(lambda name: near(load.applied(name, "stage_seconds"))),
    "redolake_merge_seconds_total": lambda load: by_table(lambda name: near(load.applied(name, "merge_seconds"))),
    "redolake_apply_seconds_total": lambda load: by_table(lambda name: near(load.applied(name, "seconds"))),
    "redolake_snapshot_rows_total": lambda load: by_table(
        lambda name: sum(row["_cdc_op"] == "r" for row in load.logged(name))
    ),
    "redolake_snapshot_chunks_total": lambda load: by_table(
        lambda name: sum(report.table.name == name for report in load.of("chunk-applied"))
    ),
    "redolake_snapshot_read_seconds_total": lambda load: by_table(
        lambda name: (0, chunks(load, "chunk-landed", name) + 0.01)
    ),
    "redolake_snapshot_apply_seconds_total": lambda load: by_table(
        lambda name: (0, chunks(load, "chunk-applied", name) + 0.01)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_is_what_there_was(name: str, loaded: Loaded) -> None:
    expected = OTHERWISE[name](loaded)
    found = {labels[1:]: value for labels, value in loaded.found.items() if labels[0] == name}
    assert found.keys() == expected.keys()
    for labels, value in found.items():
        wanted = expected[labels]
        if isinstance(wanted, tuple):
            assert wanted[0] <= value <= wanted[1], (labels, value, wanted)
        else:
            assert value == wanted, labels


def test_no_metric_is_left_out() -> None:
    assert OTHERWISE.keys() == METRICS.keys()
