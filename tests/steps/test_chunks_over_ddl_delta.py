"""A DDL between a snapshot's chunks, to the end in Delta: chunks of two definitions, applied before the window that has the DDL."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_core.steps import Pipeline
from tests.oracle.embedded import running_oracle
from tests.steps.harness import table_id
from tests.steps.test_schema_features_delta import check

_COLUMNS = {
    "ADDED": ["ID", "NAME", "PRICE", "LABEL", "NOTE"],
    "DROPPED": ["ID", "NAME", "PRICE"],
    "RENAMED": ["NUM", "TITLE", "PRICE", "LABEL"],
    "WIDER": ["ID", "NAME", "PRICE", "LABEL"],
}


@pytest.mark.slow
@pytest.mark.spark
def test_chunks_of_two_definitions_reach_delta(
    tmp_path: Path, spark_process: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdc_core.oracle.after_ddl._WAIT_SECONDS", 0)
    with running_oracle() as oracle:
        for name in _COLUMNS:
            oracle.run(
                f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, NAME VARCHAR2(30), PRICE NUMBER(9), LABEL VARCHAR2(30))",
                f"INSERT INTO {name} SELECT LEVEL, 'name ' || LEVEL, LEVEL * 10, 'label ' || LEVEL FROM DUAL CONNECT BY LEVEL <= 250",
            )
        config = oracle.config(
            tmp_path,
            tables=[{"name": f"DEMO.{name}"} for name in _COLUMNS],
            snapshot={"chunk_rows": 100},
        )
        with Pipeline(config) as pipeline:
            for key in pipeline.start_snapshot():
                if key.number == 0:
                    pipeline.snapshot_chunk(key)
                    pipeline.apply_chunk(key)
            oracle.run(
                "ALTER TABLE ADDED ADD (NOTE VARCHAR2(9) DEFAULT 'new')",
                "ALTER TABLE DROPPED DROP COLUMN LABEL",
                "ALTER TABLE RENAMED RENAME COLUMN NAME TO TITLE",
                "ALTER TABLE RENAMED RENAME COLUMN ID TO NUM",
                "ALTER TABLE WIDER MODIFY (PRICE NUMBER(15))",
            )
            for name in _COLUMNS:
                oracle.run(f"UPDATE {name} SET PRICE = PRICE + 1 WHERE PRICE < 1500")
            list(pipeline.run_once())
            list(pipeline.run_once())
            for name, columns in _COLUMNS.items():
                check(oracle, pipeline, tmp_path, name, columns)
            assert pipeline.reconcile([table_id(name) for name in _COLUMNS]).differences == 0
