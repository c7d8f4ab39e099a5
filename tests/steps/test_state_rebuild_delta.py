"""A metadata store is made anew from the logs of real Delta tables, also of one whose mirror is lost with it."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from cdc_core.model.identifiers import TableId
from cdc_core.steps import Pipeline
from tests.invariants.compare import Verdict, compare
from tests.oracle.embedded import running_oracle
from tests.steps.test_state_rebuild import comparable


@pytest.mark.spark
@pytest.mark.slow
def test_store_and_mirror_are_lost_together(tmp_path: Path, spark_process: None) -> None:
    with running_oracle() as oracle:
        oracle.run(
            *(
                f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY, NOTE VARCHAR2(30))"
                for name in "TU"
            ),
            *(f"INSERT INTO T VALUES ({number}, 'n')" for number in range(250)),
            "INSERT INTO U VALUES (1, 'n')",
        )
        config = oracle.config(
            tmp_path, "T", "U", snapshot={"chunk_rows": 100},
            lake={"transactions": True},
        )  # fmt: skip
        with Pipeline(config) as pipeline:
            list(pipeline.run_once())
            oracle.run("UPDATE T SET NOTE = 'new' WHERE ID < 3", "DELETE FROM T WHERE ID = 7")
            list(pipeline.run_once())
            oracle.run("ALTER TABLE U ADD (MORE NUMBER(5))", "INSERT INTO U VALUES (2, 'n', 5)")
            list(pipeline.run_once())
            lost = comparable(pipeline.store.images.get())
        for file in tmp_path.glob("state.db*"):
            file.unlink()
        with Pipeline(config) as pipeline:
            assert pipeline.rebuild_state().remarks == ()
            assert comparable(pipeline.store.images.get()) == lost

        for file in tmp_path.glob("state.db*"):
            file.unlink()
        mirror = tmp_path / "lake" / "src" / "mirror" / "demo.t"
        shutil.rmtree(mirror)
        with Pipeline(config) as pipeline:
            [remark] = pipeline.rebuild_state().remarks
            assert "redolake table rebuild DEMO.T" in remark
            assert pipeline.rebuild_mirror(TableId("DEMO", "T")).rows == 249
            oracle.run("UPDATE T SET NOTE = NULL WHERE ID = 1", "DELETE FROM T WHERE ID = 9")
            list(pipeline.run_once())
            found = pipeline.reconcile()
            assert [one.differences for one in found.tables] == [0, 0]
        with oracle.owner() as connection:
            verdict = compare(connection, "T", ("ID",), mirror, found.scn)
        assert verdict == Verdict(248, 248, 0, 0, 0, 0)
        for file in tmp_path.glob(
            "state.db*"
        ):  # once more, with a mirror that was written from its change log
            file.unlink()
        with Pipeline(config) as pipeline:
            assert pipeline.rebuild_state().remarks == ()
            assert [one.state for one in pipeline.records.tables()] == ["ready", "ready"]
            list(pipeline.run_once())
            assert [one.differences for one in pipeline.reconcile().tables] == [0, 0]
    beside = tmp_path / "lake" / "src"
    transactions, logs = (
        duckdb.from_arrow(pa.concat_tables(DeltaTable(path).to_pyarrow_table(columns=columns) for path in paths))
        for columns, paths in (
            (["id", "commit_scn", "event_count"], [beside / "transactions"]),
            (["_cdc_xid", "_cdc_commit_scn", "_cdc_snapshot"], [beside / "changelog" / f"demo.{name}" for name in "tu"]),
        )
    )  # fmt: skip
    counted = logs.filter("_cdc_snapshot IS NULL").aggregate("_cdc_xid, _cdc_commit_scn, count(*)")
    assert sorted(counted.fetchall()) == sorted(transactions.fetchall())
    assert len(transactions) == 3
    changes = DeltaTable(beside / "schema_changes").to_pyarrow_table().to_pylist()
    assert [(one["table_name"], one["type"], one["ddl"]) for one in changes if one["ddl"]] == [
        ("U", "ALTER", "ALTER TABLE U ADD (MORE NUMBER(5));")
    ]
    assert sorted((one["table_name"], one["type"]) for one in changes if not one["ddl"]) == [
        ("T", "CREATE"),
        ("U", "CREATE"),
    ]
