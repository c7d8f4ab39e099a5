"""A mirror that is lost comes back from its change log, and takes the windows that follow."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cdc_core.errors import ConfigError, LakeError
from cdc_core.model.identifiers import TableId
from cdc_core.steps import Pipeline
from tests.invariants.compare import Verdict, compare
from tests.oracle.embedded import running_oracle

T = TableId("DEMO", "T")


@pytest.mark.spark
def test_a_lost_mirror_comes_back(tmp_path: Path, spark_process: None) -> None:
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, NOTE VARCHAR2(30))",
            *(f"INSERT INTO T VALUES ({i}, 'n{i}')" for i in range(20)),
        )
        config = oracle.config(
            tmp_path, "T", lake={"path": str(tmp_path / "lake"), "driver_memory": "1g"}
        )
        with Pipeline(config) as pipeline:
            list(pipeline.run_once())
            oracle.run("UPDATE T SET NOTE = 'new' WHERE ID < 3", "DELETE FROM T WHERE ID = 7")
            list(pipeline.run_once())
            [mirror] = (tmp_path / "lake" / "src" / "mirror").iterdir()
            shutil.rmtree(mirror)
            oracle.run("INSERT INTO T VALUES (7, 'again')", "UPDATE T SET NOTE = NULL WHERE ID = 1")
            with pytest.raises(LakeError, match="redolake table rebuild"):
                pipeline.reconcile()

            assert pipeline.rebuild_mirror(T).rows == 19
            list(pipeline.run_once())
            found = pipeline.reconcile()
        with oracle.owner() as connection:
            verdict = compare(connection, "T", ("ID",), mirror, found.scn)
        assert verdict == Verdict(20, 20, 0, 0, 0, 0)


def test_a_table_without_a_complete_snapshot_has_nothing_to_rebuild(tmp_path: Path) -> None:
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO T VALUES (1)")
        with Pipeline(oracle.config(tmp_path, "T")) as pipeline:
            pipeline.start_snapshot([T])
            with pytest.raises(ConfigError, match="redolake snapshot"):
                pipeline.rebuild_mirror(T)
