"""DDL on a busy table, as a real LogMiner shows it: rows of several layouts in one window, those from before without names."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from cdc_core.capture.logs.positions import upper_bound
from cdc_core.oracle.database import current_scn
from cdc_core.steps import Pipeline
from oracle_embedded.redo import Wart
from tests.oracle.embedded import MERGED_BY_SPARK, running_oracle, wait_until

pytestmark = pytest.mark.spark


def test_added_and_widened_columns_are_followed_in_the_middle_of_a_window(
    tmp_path: Path, spark_process: None
) -> None:
    with running_oracle(warts=[Wart.UNNAMED_COLUMNS]) as oracle:
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, NAME VARCHAR2(10), D DATE, SECRET VARCHAR2(10))",
            "INSERT INTO T VALUES (1, 'one', DATE '2026-01-02', 'hidden')",
            "INSERT INTO T VALUES (2, 'two', NULL, NULL)",
        )
        tables = [{"name": "DEMO.T", "columns_exclude": ["SECRET"]}]
        config = oracle.config(tmp_path, tables=tables, lake=MERGED_BY_SPARK)
        with Pipeline(config) as pipeline:
            list(pipeline.run_once())
            oracle.run(
                "INSERT INTO T VALUES (3, 'three', DATE '1999-12-31', 'hidden')",
                "UPDATE T SET NAME = 'ONE' WHERE ID = 1",
                "DELETE FROM T WHERE ID = 2",
            )
            oracle.run("ALTER TABLE T ADD (N NUMBER DEFAULT 7)")
            oracle.run("INSERT INTO T VALUES (4, 'four', NULL, 'hidden', -0.5)")
            oracle.run("ALTER TABLE T MODIFY (NAME VARCHAR2(40))")
            oracle.run(
                "INSERT INTO T VALUES (5, 'twenty characters long', NULL, NULL, NULL)",
                "UPDATE T SET N = 8 WHERE ID = 3",
            )
            with pipeline.database.session() as session:
                wait_until(current_scn(session), lambda: upper_bound(session, "online"))
            list(pipeline.run_once())
            result = pipeline.reconcile()
            assert result.differences == 0
            assert [one.rows_delta for one in result.tables] == [4]
            versions = pipeline.store.schemas.versions(config.tables[0].table)
            assert [version.schema.column("NAME").char_length for version in versions] == [
                10,
                10,
                40,
            ]
    from deltalake import QueryBuilder

    mirror = QueryBuilder().register("t", _delta(tmp_path))
    found = mirror.execute('SELECT "ID", "NAME", "N" FROM t ORDER BY "ID"').read_all()
    rows = [tuple(column[at].as_py() for column in found.columns) for at in range(found.num_rows)]
    assert rows == [
        (1, "ONE", "7"),
        (3, "three", "8"),
        (4, "four", "-0.5"),
        (5, "twenty characters long", None),
    ]


def _delta(path: Path) -> DeltaTable:
    [log] = (path / "lake").glob("src/mirror/**/_delta_log")
    return DeltaTable(str(log.parent))
