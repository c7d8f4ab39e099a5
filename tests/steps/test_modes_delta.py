"""A table that joins without its rows, and is read later, in Delta tables that Spark writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_core.model.signals import Signal
from cdc_core.steps import Pipeline
from tests.oracle.embedded import running_oracle
from tests.steps.harness import table_id


@pytest.mark.spark
@pytest.mark.slow  # its rules are in tests/steps/test_modes.py, its chunks in tests/lake/test_chunks.py
def test_a_table_without_rows_becomes_whole_in_delta(tmp_path: Path, spark_process: None) -> None:
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, NOTE VARCHAR2(20))",
            "INSERT INTO T SELECT LEVEL, 'old' FROM DUAL CONNECT BY LEVEL <= 250",
        )
        config = oracle.config(
            tmp_path,
            "T",
            snapshot={"mode": "no_data", "chunk_rows": 100},
        )
        with Pipeline(config) as pipeline:
            assert pipeline.begin().work == "snapshot"
            list(pipeline.run_once())
            oracle.run(
                "UPDATE T SET NOTE = 'new' WHERE ID <= 3", "INSERT INTO T VALUES (900, 'new')"
            )
            list(pipeline.run_once())
            [table] = pipeline.status(ask_oracle=False).tables
            assert table.is_partial
            asked = {"data-collections": [r".*\.T"], "type": "blocking"}
            pipeline.add_signal(
                Signal(id="whole", source="src", type="execute-snapshot", data=asked)
            )
            list(pipeline.run_once())
            oracle.run("DELETE FROM T WHERE ID IN (2, 200)")
            list(pipeline.run_once())
            [compared] = pipeline.reconcile([table_id("T")]).tables
            assert (compared.rows_oracle, compared.rows_delta, compared.differences) == (
                249,
                249,
                0,
            )
            [table] = pipeline.status(ask_oracle=False).tables
            assert not table.is_partial
