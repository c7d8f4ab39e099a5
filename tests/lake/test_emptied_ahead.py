"""Rows that DDL removes behind a snapshot that was read ahead of the windows, through Spark and Delta."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from cdc_core.errors import RowsGoneError
from cdc_core.lake.apply import emptied_partitions
from cdc_core.lake.apply.truncation import Truncation
from cdc_core.lake.lake import Lake
from cdc_core.model.partition_rows import PartitionRows
from cdc_core.schema.table import TableSchema
from cdc_core.steps import Pipeline
from tests.invariants.changelog import rows_of
from tests.oracle.embedded import Oracle, running_oracle
from tests.stage.landed import Row, orders_schema
from tests.stage.landed import Source as LandedSource
from tests.steps.harness import table_id
from tests.steps.test_emptied_ahead import COLUMNS, IN, OUT, after, before, folded
from tests.steps.test_emptied_partitions import DAYS_OF_REGIONS
from tests.steps.test_schema_features_delta import check

P = table_id("P")


def taken_ahead(oracle: Oracle, pipeline: Pipeline, condition: str | None) -> None:
    """A snapshot is read and applied in front of all that happened."""
    for chunk in pipeline.start_snapshot([P], condition=condition):
        pipeline.snapshot_chunk(chunk)
        pipeline.apply_chunk(chunk)


@pytest.mark.spark
def test_the_change_log_ends_what_the_mirror_did_not_show(
    tmp_path: Path, spark_process: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot of the whole table and one of a part, each read behind DDL whose window follows; the column of a bound was renamed, and the process ends
    before it is noted that the rows went. Old windows again, and a mirror that is lost."""
    with running_oracle() as oracle:
        oracle.run(f"CREATE TABLE P ({COLUMNS}) {DAYS_OF_REGIONS} ENABLE ROW MOVEMENT")
        oracle.run(*(f"INSERT INTO P VALUES ({key}, {IN}, 'note')" for key in (1, 2, 3, 4)))
        oracle.run(*(f"INSERT INTO P VALUES ({key}, {OUT}, 'note')" for key in (5, 6)))
        config = oracle.config(
            tmp_path,
            "P",
            policies={"on_truncate": "follow"},
        )
        mirror = tmp_path / "lake" / "src" / "mirror" / "demo.p"
        changelog = tmp_path / "lake" / "src" / "changelog" / "demo.p"

        def ended() -> list[int]:
            """The keys of the last DDL's ``d`` rows, which carry the key alone."""
            rows = [one for one in rows_of(changelog) if not one["_cdc_snapshot"]]
            rows = [one for one in rows if one["_cdc_op"] == "d" and one["before"]["K"] is None]
            last = max(one["_cdc_commit_scn"] for one in rows)
            return sorted(one["before"]["ID"] for one in rows if one["_cdc_commit_scn"] == last)

        with Pipeline(config) as pipeline:
            list(pipeline.run_once())
            before(oracle)
            oracle.run("ALTER TABLE P TRUNCATE SUBPARTITION D1_EU")
            after(oracle)
            taken_ahead(oracle, pipeline, None)
            list(pipeline.run_windows())
            check(oracle, pipeline, tmp_path, "P", ["ID", "K", "R"])
            assert ended() == [2, 5, 6, 20, 24, 40]
            assert set(folded(rows_of(changelog))) == {1, 2, 3, 20, 21, 50}

            oracle.run("ALTER TABLE P RENAME COLUMN R TO REGION")
            list(pipeline.run_windows())
            oracle.run(
                f"INSERT INTO P VALUES (60, {IN}, 'note')",
                "UPDATE P SET NOTE = 'changed' WHERE ID IN (50, 60)",
                "ALTER TABLE P DROP PARTITION D1",
                f"INSERT INTO P VALUES (50, {IN}, 'again')",
            )
            taken_ahead(oracle, pipeline, "ID IN (2, 50)")

            def end(*_given: Any) -> None:
                raise KeyboardInterrupt

            with monkeypatch.context() as patched:
                patched.setattr(emptied_partitions, "commit_properties", end)
                with pytest.raises(KeyboardInterrupt):
                    list(pipeline.run_windows())
            list(pipeline.run_windows())
            assert ended() == [2, 50, 60]
            check(oracle, pipeline, tmp_path, "P", ["ID", "K", "REGION"])
            version = DeltaTable(str(mirror)).version()
            for record in reversed(pipeline.store.windows.find(states=("applied",))):
                pipeline.replay_window(record.window)
            assert DeltaTable(str(mirror)).version() == version
            shutil.rmtree(mirror)
            pipeline.rebuild_mirror(P)
            check(oracle, pipeline, tmp_path, "P", ["ID", "K", "REGION"])
            assert set(folded(rows_of(changelog))) == {1, 3, 20, 21, 50}


@pytest.mark.parametrize("was_read", [False, True], ids=["never-seen", "found-gone"])
@pytest.mark.spark(merges=False)
def test_a_row_of_which_the_change_log_lacks_the_bound_stops_the_table(
    open_lake: Callable[..., Lake],
    make_source: Callable[..., LandedSource],
    row: Callable[..., Row],
    changelog: Callable[[TableSchema], list[Row]],
    was_read: bool,
) -> None:
    """A chunk saw the row gone, and a change from before that carries another column alone; the row was never seen, or the finished snapshot has deleted it as of
    the lowest SCN of its chunks, below the change. Where the change carries the column of the bounds, its row gets its end."""
    source, lake = make_source(orders_schema()), open_lake()
    tx = source.begin()
    rid = {key: tx.insert(row(key, "first")) for key in (1, 2)}
    tx.commit()
    low = source.cut().scn_high
    if was_read:
        source.chunk(scn=low, snapshot="s0").apply(lake, position=None)
    lowest = source.tick()
    tx = source.begin()
    tx.update(rid[2], {"NAME": "second"})
    tx.commit()
    window = source.cut()
    late = source.chunk(scn=window.scn_high + 5, keep=lambda one: one["ID"] == 1)
    late.apply(lake, position=low if was_read else None)
    table = source.schema.table
    if was_read:
        assert lake.table(table).delete_missing_keys("s1", lowest, position=low).rows_deleted == 1
    window.apply(lake, position=window.manifest.window.scn_low, read_scn=window.scn_high + 5)
    scn = window.scn_high + 1

    def emptied(column: str, value: str) -> Any:
        rows = PartitionRows(partition="P", column=column, listed=(value,))
        truncation = Truncation(scn=scn, ordinal=0, partitions=(rows,))
        return lake.table(table).truncate(truncation, window.transactions_paths, read_scn=scn + 4)

    found = changelog(source.schema)
    with pytest.raises(RowsGoneError, match="does not say whether a row that a snapshot found"):
        emptied("NOTE", "another note")
    assert changelog(source.schema) == found
    done = emptied("NAME", "second")
    assert (done.changes, done.rows_deleted) == (1, 0)
    [came] = [one for one in changelog(source.schema) if one not in found]
    assert (came["_cdc_op"], came["before"]["ID"], came["_cdc_commit_scn"]) == ("d", 2, scn)
