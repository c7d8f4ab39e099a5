"""Maintenance goes table by table: whom it leaves alone, and that one table's trouble is its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_core.errors import ConfigError, LakeError, SparkUnavailableError
from tests.oracle.embedded import running_oracle
from tests.steps.harness import source_of, table_id

T, U = table_id("T"), table_id("U")


def test_each_table_is_maintained_by_itself(tmp_path: Path) -> None:
    with running_oracle() as oracle:
        oracle.run(
            *(f"CREATE TABLE {name} (ID NUMBER(9) PRIMARY KEY)" for name in "TU"),
            "INSERT INTO U SELECT LEVEL FROM DUAL CONNECT BY LEVEL <= 5",
        )
        more = {"maintenance": {"vacuum_hours": 24}}
        with source_of(oracle, tmp_path, "T", "U", **more) as source:
            source.configure(
                {"name": "T", "cluster_by_key": True, "deletion_vectors": "never"}, "U"
            )
            waiting = source.pipeline.start_snapshot()
            assert {one.left_alone for one in source.pipeline.maintain()} == {
                "its first snapshot has not ended"
            }
            assert waiting
            source.run()

            source.lake.fail(T, LakeError("no such file"))
            first, second = source.pipeline.maintain()
            assert (first.table, first.is_failed, second.is_failed) == (T, True, False)
            assert "no such file" in (first.left_alone or "")
            done = list(source.pipeline.maintain())
            assert [one.left_alone for one in done] == [None, None]
            assert [call for call in source.lake.calls if call[0] == "maintain"] == [
                ("maintain", "U", "auto clustered=False 24 h ('ID',)"),
                ("maintain", "T", "never clustered=True 24 h ('ID',)"),
                ("maintain", "U", "auto clustered=False 24 h ('ID',)"),
            ]
            source.lake.fail(T, SparkUnavailableError("Spark's JVM has ended"))
            with pytest.raises(SparkUnavailableError):
                list(source.pipeline.maintain())
            with pytest.raises(ConfigError, match="not captured"):
                list(source.pipeline.maintain([table_id("NOWHERE")]))
            source.run()
            source.check_current("T", "U")
