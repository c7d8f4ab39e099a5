"""Chunks of a snapshot in Dagster: found by their place, with their size, and without the values of any key."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from cdc_core.errors import PartitionKeyError
from cdc_core.model.chunks import ChunkKey
from tests.assets.site import MemorySite
from tests.oracle.embedded import OWNER, running_oracle
from tests.steps.harness import source_of, table_id

T = table_id("T")
MARKED = "Zq7Marked"


def test_partition_keys_say_the_place_and_sort_as_chunks_do() -> None:
    keys = [ChunkKey(T, "s1533756", number).partition_key(120) for number in range(120)]
    assert keys[2] == "s1533756_003-of-120"
    assert keys == sorted(keys)
    assert [ChunkKey.parse(T, key).number for key in keys] == list(range(120))
    repair = ChunkKey(T, "r5-0a1b2c3d", 0)
    assert ChunkKey.parse(T, repair.partition_key(1)) == repair
    assert ChunkKey.parse(T, repair.key) == repair
    with pytest.raises(PartitionKeyError, match="s12345_03-of-12"):
        ChunkKey.parse(T, "s1533756_121-of-120")


def test_nothing_that_dagster_keeps_of_chunks_holds_values(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    """Chunks are cut by ranges of the key, whose bounds are row values."""
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE T (NAME VARCHAR2(40) PRIMARY KEY)")
        for start in range(0, 250, 50):
            oracle.run(
                *(f"INSERT INTO T VALUES ('{MARKED}{n:04}')" for n in range(start, start + 50))
            )
        with source_of(oracle, tmp_path, "T", snapshot={"chunk_rows": 100}) as source:
            site = MemorySite(source, instance)
            job = site.repository.get_job("src_start_snapshot")
            assert job.execute_in_process(instance=instance).success
            [request] = site.tick("snapshots")
            assert site.run(request).success
            source.check_exact("T")
            key = site.names.key("snapshot", T)
            records = instance.fetch_materializations(key, limit=10, ascending=True).records
    records = sorted(records, key=lambda one: str(one.partition_key))  # they come as they land
    shown = [record.asset_materialization for record in records]
    values = [dict(one.metadata) for one in shown if one is not None]
    assert [one["cdc/chunk"].value for one in values] == ["1 of 3", "2 of 3", "3 of 3"]
    assert [one["cdc/range"].value for one in values] == [
        "a key range, 100 rows",
        "a key range, 100 rows",
        "a key range, 50 rows",
    ]
    assert {one["cdc/snapshot_rows"].value for one in values} <= {100, 150, 200, 250}
    paces = [one["cdc/rows_per_second"].value for one in values]
    assert all(isinstance(pace, float) and pace > 0 for pace in paces)
    assert any("cdc/seconds_left" in one for one in values)
    assert [str(record.partition_key).partition("_")[2] for record in records] == [
        "1-of-3",
        "2-of-3",
        "3-of-3",
    ]
    events = [str(log) for run in instance.get_runs() for log in instance.all_logs(run.run_id)]
    assert events
    assert not [text for text in (*events, str(request)) if MARKED in text]


def test_a_signal_from_the_launchpad_is_taken_once(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    """The run's id is the signal's; a rejected one fails the run with the reason."""
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO T VALUES (1)")
        with source_of(oracle, tmp_path, "T") as source:
            source.run()
            site = MemorySite(source, instance)
            job = site.repository.get_job("src_send_signal")

            def send(kind: str, **data: object) -> dg.ExecuteInProcessResult:
                config = {"ops": {"src_take_signal": {"config": {"type": kind, "data": data}}}}
                return job.execute_in_process(config, instance=instance, raise_on_error=False)

            done = send("execute-snapshot", **{"data-collections": [rf"{OWNER}\.T"]})
            assert done.success
            [signal] = source.pipeline.records.signals()
            assert (signal.id, signal.channel, signal.state) == (done.run_id, "dagster", "done")
            [request] = site.tick("snapshots")
            assert send("pause-snapshot").success
            assert site.tick("snapshots") == []
            assert send("resume-snapshot").success
            [request] = site.tick("snapshots")
            assert site.run(request).success
            source.check_exact("T")
            assert not send("execute-snapshot", **{"data-collections": ["NO.TABLE"]}).success
            unedited = job.execute_in_process(instance=instance, raise_on_error=False)
            assert not unedited.success
            assert len(source.pipeline.records.signals()) == 3, "neither was taken"
            assert site.repository.get_job("src_skip_gap").execute_in_process(instance=instance)
