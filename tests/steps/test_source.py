"""Steps ask a source what every source can answer: one that knows nothing of LogMiner carries changes just as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cdc_core.change_reader import NextWindow, Start, WindowWork
from cdc_core.config import SourceConfig, TableConfig
from cdc_core.errors import PreflightError
from cdc_core.landing.layout import (
    ORDINAL_SHIFT,
    REDO_SCHEMA,
    TRANSACTION_SCHEMA,
    window_folder,
)
from cdc_core.landing.ledger import ledger_batch
from cdc_core.landing.manifest import LandedFile, WindowManifest, window_manifest_bytes
from cdc_core.landing.store import LandingStore
from cdc_core.model.findings import Finding
from cdc_core.model.identifiers import TableId
from cdc_core.model.operations import Operation
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.model.streams import StreamBegin
from cdc_core.oracle.database import OracleDatabase, current_scn
from cdc_core.steps import Pipeline
from cdc_core.steps.source_checks import oracle_findings
from tests.landing.facts import LANDED
from tests.oracle.embedded import OWNER, running_oracle
from tests.steps.harness import table_id
from tests.steps.memory_lake import MemoryLake

SPAN = 100


@dataclass
class ScriptedSource:
    """Brings what it was told to: ``script`` has the inserts into ONE that each window commits."""

    script: list[list[str]]
    asked: list[str] = field(default_factory=list)
    missing: list[Finding] = field(default_factory=list)
    begin: Scn = field(init=False)

    def open(self, _config: SourceConfig, database: OracleDatabase) -> ScriptedSource:
        self.database = database
        return self

    def check(self, tables: Sequence[TableConfig]) -> list[Finding]:
        self.asked.append(f"what {len(tables)} tables lack")
        return self.missing

    def read_start(self, tables: Sequence[TableId], *, is_first: bool = False) -> Start:
        self.asked.append(f"start of {', '.join(map(str, tables))}")
        with self.database.session() as session:
            self.begin = current_scn(session)
            dbid, container_dbid = session.dbid, session.container_dbid
        return Start(
            snapshot_scn=self.begin,
            mining_low=Scn(self.begin - 1),
            resetlogs_change=1,
            database_name="SCRIPTED",
            dbid=dbid,
            container_dbid=container_dbid,
        )

    def next_windows(
        self, low: Scn, *, read_from: Scn, until: Scn | None, applied: Any = None
    ) -> list[NextWindow]:
        self.asked.append(
            f"windows from +{low - self.begin}, redo from {read_from - self.begin}, until {until}"
        )
        first = (low - self.begin) // SPAN
        bounds = [low + SPAN * step for step in range(len(self.script) - first + 1)]
        return [
            NextWindow(ScnWindow(Scn(one), Scn(one + SPAN)), datetime.now(UTC))
            for one in bounds[:-1]
        ]

    def capture_window(self, work: WindowWork, landing: LandingStore) -> None:
        self.asked.append(f"window {work.record.ordinal} with {len(work.tables)} tables")
        folder = window_folder(work.source.name, work.record.window)
        rows: list[dict[str, Any]] = [
            {
                "ordinal": (work.record.ordinal << ORDINAL_SHIFT) + number,
                "scn": work.record.window.scn_low + number,
                "xid": f"{number:016x}",
                "operation_code": int(Operation.INSERT),
                "rollback": False,
                "seg_owner": OWNER,
                "table_name": "ONE",
                "row_id": f"AAAAAAAAAAAAAAA{number:03d}",
                "sql_redo": sql,
                "status": 0,
            }
            for number, sql in enumerate(self.script[work.record.ordinal], 1)
        ]
        table = str(table_id("ONE"))
        ended = [
            {
                "xid": row["xid"], "state": "commit", "start_scn": row["scn"], "commit_scn": row["scn"],
                "commit_ordinal": row["ordinal"] + len(rows), "first_ordinal": row["ordinal"], "has_rollback": False,
                "tables": [table], "table_rows": [1], "rows": 1, "windows": [work.record.ordinal] * 2,
            }
            for row in rows
        ]  # fmt: skip
        redo = [_landed(landing, folder, "redo-00000.parquet", REDO_SCHEMA, rows)] if rows else []
        with landing.writer(folder, "transactions.parquet", TRANSACTION_SCHEMA) as writer:
            writer.write(pa.RecordBatch.from_pylist(ended, schema=TRANSACTION_SCHEMA))
            writer.write(ledger_batch(work.ledger))
            transactions = writer.close()
        manifest = WindowManifest(
            source=work.source.name,
            window=work.record.window,
            ordinal=work.record.ordinal,
            mining_low=work.record.mining_low,
            redo_files=tuple(redo),
            files_by_table={table: (0,)} if rows else {},
            transactions_file=transactions,
            rows_by_table={table: len(rows)} if rows else {},
            tables_committed=(table,) if rows else (),
            transactions_committed=len(rows),
            transactions_rolled_back=0,
            transactions_open=len(work.ledger),
            logs=(),
            schemas=tuple(work.tables),
            schema_changes=(),
            resetlogs_change=1,
            seconds=0.0,
            positions=(),
            planned=work.planned,
            landed=LANDED,
            joined=tuple(StreamBegin(one, low) for one, low in work.joins.items()),
        )
        landing.write_manifest(folder, window_manifest_bytes(manifest))


def _landed(
    landing: LandingStore, folder: str, name: str, schema: pa.Schema, rows: list[dict[str, Any]]
) -> LandedFile:
    with landing.writer(folder, name, schema) as writer:
        writer.write(pa.RecordBatch.from_pylist(rows, schema=schema))
        return writer.close()


def test_a_source_that_is_not_logminer_carries_changes_into_the_mirrors(tmp_path: Path) -> None:
    """The snapshot comes from Oracle, the changes from the source; LogMiner is not called, and no view of redo is read."""
    statements: list[str] = []
    lake = MemoryLake()
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
            "INSERT INTO ONE VALUES (1, 'first')",
        )
        source = ScriptedSource([[_insert(2, "x"), _insert(3, "y")], [], [_insert(4, "z")]])
        config = oracle.config(tmp_path, "ONE")
        with Pipeline(
            config, on_statement=statements.append, open_lake=lake.open, open_reader=source.open
        ) as pipeline:
            list(pipeline.run_once())
            assert lake.image(table_id("ONE")) == [
                (1, "first"),
                (2, "x"),
                (3, "y"),
                (4, "z"),
            ]
            [table] = pipeline.status(ask_oracle=False).tables
            assert table.position == source.begin + 3 * SPAN
    assert source.asked == [
        "what 1 tables lack",
        f"start of {OWNER}.ONE",
        "windows from +0, redo from -1, until None",
        "window 0 with 1 tables",
        "window 1 with 1 tables",
        "window 2 with 1 tables",
        f"windows from +{3 * SPAN}, redo from {3 * SPAN}, until None",
    ]
    of_redo = ("LOGMNR", "V$LOG", "V$ARCHIVE", "V$THREAD", "SUPPLEMENTAL", "CDB$ROOT")
    assert [sql for sql in statements if any(word in sql for word in of_redo)] == []


def test_what_a_source_lacks_is_told_before_anything_is_begun(tmp_path: Path) -> None:
    """By the first snapshot, by doctor, and for a table that joins alone."""
    trouble = Finding("the other reader has no licence", "Buy one")
    source = ScriptedSource([[]], missing=[trouble, Finding("it is new", "", is_problem=False)])
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY)", "CREATE TABLE TWO (ID NUMBER(9) PRIMARY KEY)")  # fmt: skip
        config = oracle.config(tmp_path, "ONE")
        found, _ = oracle_findings(config, open_reader=source.open)
        assert trouble in found
        with (
            Pipeline(config, open_lake=MemoryLake().open, open_reader=source.open) as pipeline,
            pytest.raises(PreflightError, match="no licence"),
        ):
            pipeline.start_snapshot()
        source.missing = []
        with Pipeline(config, open_lake=MemoryLake().open, open_reader=source.open) as pipeline:
            pipeline.start_snapshot()
        source.missing = [Finding("it cannot read TWO", "Mend it", table_id("TWO"))]
        both = oracle.config(tmp_path, "ONE", "TWO")
        with Pipeline(both, open_lake=MemoryLake().open, open_reader=source.open) as pipeline:
            pipeline.start_snapshot()
            records = {str(one.table): one for one in pipeline.status(ask_oracle=False).tables}
    assert records[f"{OWNER}.ONE"].state != "failed"
    assert "it cannot read TWO" in (records[f"{OWNER}.TWO"].reason or "")


def _insert(number: int, text: str) -> str:
    return f"""insert into "{OWNER}"."ONE"("ID","V") values ('{number}','{text}');"""
