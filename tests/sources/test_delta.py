"""OpenLogReplicator's files and XStream's LCRs in Delta tables: the change logs that LogMiner gives, and mirrors that equal Oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake

from cdc_core.steps import Pipeline
from oracle_embedded.openlogreplicator import OpenLogReplicator
from tests.invariants.compare import Verdict, compare
from tests.openlogreplicator.olr import olr_capture
from tests.oracle.embedded import running_oracle
from tests.sources.test_same_changes import DIFFERENCES, OF_XSTREAM
from tests.xstream.lcrs import recorded, recorder_of


def logged(path: Path) -> list[dict[str, Any]]:
    """The changes of a table's change log in order."""
    rows = deltalake.DeltaTable(str(path / "changelog" / "demo.t")).to_pyarrow_table().to_pylist()
    changes = [row for row in rows if row["_cdc_op"] != "r"]
    changes.sort(key=lambda row: (row["_cdc_commit_scn"], row["_cdc_ordinal"]))
    return [
        {name: row[name] for name in row if name not in DIFFERENCES | OF_XSTREAM} for row in changes
    ]


def test_all_readers_write_the_same_delta_tables(tmp_path: Path) -> None:
    """With a DDL between the changes, a change of key, and a TRUNCATE that is followed."""
    with running_oracle() as oracle:
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, N NUMBER, DAY DATE)",
            *(f"INSERT INTO T VALUES ({n}, {n} / 7, DATE '2026-01-01' + {n})" for n in range(20)),
        )
        olr = OpenLogReplicator(oracle.database, tmp_path / "olr")
        olr.write()
        recorder = recorder_of(oracle, tmp_path / "lcrs")
        captures = {
            "logminer": {"close_at": "online"},
            "openlogreplicator": olr_capture(olr),
            "xstream": recorded(recorder),
        }
        pipelines = {
            name: Pipeline(
                oracle.config(
                    tmp_path / name, "T", capture=capture, policies={"on_truncate": "follow"},
                    lake={"path": str(tmp_path / name / "lake"), "driver_memory": "1g"},
                )
            )
            for name, capture in captures.items()
        }  # fmt: skip
        for pipeline in pipelines.values():
            list(pipeline.run_once())
        oracle.run("UPDATE T SET N = N + 0.1 WHERE ID < 5", "UPDATE T SET ID = 100 WHERE ID = 6")
        oracle.run("TRUNCATE TABLE T")
        oracle.run("ALTER TABLE T ADD (X VARCHAR2(10))")
        oracle.run("INSERT INTO T VALUES (1, 0.5, NULL, 'x')", "DELETE FROM T WHERE ID = 1")
        oracle.run("INSERT INTO T VALUES (2, 0.5, NULL, 'x')")
        olr.write()
        recorder.write()
        for pipeline in pipelines.values():
            list(pipeline.run_once())
        found = {name: logged(tmp_path / name / "lake" / "src") for name in pipelines}
        scns = {name: pipeline.reconcile().scn for name, pipeline in pipelines.items()}
        for pipeline in pipelines.values():
            pipeline.close()
        with oracle.owner() as connection:
            for name, scn in scns.items():
                mirror = tmp_path / name / "lake" / "src" / "mirror" / "demo.t"
                assert compare(connection, "T", ("ID",), mirror, scn) == Verdict(1, 1, 0, 0, 0, 0)
    truncations = [[row for row in rows if row["_cdc_op"] == "t"] for rows in found.values()]
    assert [len(rows) for rows in truncations] == [1, 1, 1]
    left = [[row for row in rows if row["_cdc_op"] != "t"] for rows in found.values()]
    assert left[0] == left[1] == left[2]
    assert [row["_cdc_op"] for row in left[0]] == [*"uuuuuu", *"cdc"]
