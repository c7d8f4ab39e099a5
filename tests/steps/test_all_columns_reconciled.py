"""A mirror of counted rows that somebody damaged: found by ``reconcile`` with the number of copies, and repaired as a whole."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from cdc_core.model.reports import TableComparison
from cdc_core.steps import Pipeline
from tests.invariants.compare import read_delta, version_at
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import table_id

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NAMES = ["N", "NUMBER", "D"]
MANY = "INSERT INTO LOG SELECT MOD(LEVEL, 9), 'many', MOD(LEVEL, 3) / 2 FROM DUAL CONNECT BY LEVEL <= 250"


@pytest.mark.parametrize("merge", ["auto", "spark"])
def test_damage_to_counted_rows_is_found_and_repaired(
    tmp_path: Path, spark_process: None, merge: str
) -> None:
    """Columns are called as the comparison's own could be; NULLs, zeros and NaN are values like others."""
    with running_oracle() as oracle:
        oracle.run(
            'CREATE TABLE LOG (N NUMBER(9), "NUMBER" VARCHAR2(40), D BINARY_DOUBLE)',
            MANY,
            *("INSERT INTO LOG VALUES (NULL, NULL, BINARY_DOUBLE_NAN)" for _ in range(3)),
            "INSERT INTO LOG VALUES (77, 'once', 0)",
        )
        config = oracle.config(
            tmp_path,
            tables=[{"name": "DEMO.LOG", "identity": "all_columns"}],
            snapshot={"chunk_rows": 100},
            lake={"merge": merge},
        )
        with Pipeline(config) as pipeline:
            list(pipeline.run_once())
            oracle.run(
                "UPDATE LOG SET N = 1 WHERE N = 2", "DELETE FROM LOG WHERE N = 3 AND ROWNUM <= 4"
            )
            list(pipeline.run_once())
            found = compared(pipeline)
            assert (found.differences, found.double_keys_delta) == (0, 0)
            assert found.rows_oracle == found.rows_delta == 250
            assert found.digest_oracle == found.digest_delta

            mirror = DeltaTable(str(tmp_path / "lake" / "src" / "mirror" / "demo.log"))
            mirror.delete("N IS NULL AND _cdc_copy = 3")
            mirror.delete("N = 77")
            mirror.update({"_cdc_copy": "_cdc_copy + 1"}, predicate="N = 4 AND D = 0.5")
            found = compared(pipeline)
            assert found.differences == 3
            assert found.double_keys_delta == 1
            assert "77,once,0.0 (1 copy in Oracle, 0 in the mirror)" in found.keys
            assert any("(3 copies in Oracle, 2 in the mirror)" in key for key in found.keys)
            same = [key for key in found.keys if key.startswith("4,many,0.5 ")]
            assert len(same) == 1

            list(pipeline.repair())
            list(pipeline.run_once())
            found = compared(pipeline)
            assert (found.differences, found.double_keys_delta) == (0, 0)
            oracle.run(
                "DELETE FROM LOG WHERE N = 77",
                "UPDATE LOG SET N = 5 WHERE N IS NULL AND ROWNUM = 1",
            )
            list(pipeline.run_once())
            check(oracle, pipeline, tmp_path)


def compared(pipeline: Pipeline) -> TableComparison:
    [found] = pipeline.reconcile(keys_max=20).tables
    return found


def check(oracle: Oracle, pipeline: Pipeline, path: Path) -> None:
    """By the driver and delta-rs alone."""
    table = pipeline.store.tables.get(table_id("LOG"))
    assert table is not None
    scn = table.mirror_scn or 0
    with oracle.owner() as connection:
        rows = connection.cursor().execute("SELECT * FROM LOG AS OF SCN :scn", scn=scn).fetchall()
    mirror = path / "lake" / "src" / "mirror" / "demo.log"
    found = read_delta(mirror, NAMES, version_at(mirror, scn))
    assert as_texts(found) == as_texts(rows)


def as_texts(rows: list[tuple[Any, ...]]) -> Counter[str]:
    return Counter(map(repr, rows))
