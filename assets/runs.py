"""Which Dagster runs work on a source, and which of them have died?

A run holds the lease ``<source>/run/<run id>``. The process of a run may die without Dagster noticing (a machine that
crashed); such a run would keep its slot and block the sensors for good. The janitor reports it as failed as soon as its
lease is known to be dead or old, or when a run without lease has been silent for as long.
"""

from __future__ import annotations

import time
from collections.abc import Collection

import dagster as dg

from assets.protocols import SourcePipeline
from assets.resource import RUN_LEASE
from cdc_core.config import SourceConfig

SOURCE_TAG = "cdc/source"
SNAPSHOT_TAG = "cdc/snapshot"
TABLE_TAG = "cdc/table"
RANGE_START_TAG = "dagster/asset_partition_range_start"
RANGE_END_TAG = "dagster/asset_partition_range_end"
RUNNING = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
WAITING = [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.QUEUED]
RUNS_LOOKED_AT_MAX = 200
BACKOFF_SECONDS_FIRST = 30.0
BACKOFF_SECONDS_MAX = 900.0


def unfinished_runs(
    instance: dg.DagsterInstance, keys: Collection[dg.AssetKey], tags: dict[str, str]
) -> list[dg.DagsterRun]:
    """Runs, waiting or running, that have these tags or materialize one of these assets, whoever launched them. (A run of
    a whole job names no assets.)"""
    runs = instance.get_runs(dg.RunsFilter(statuses=[*WAITING, *RUNNING]), limit=RUNS_LOOKED_AT_MAX)
    return [
        run
        for run in runs
        if tags.items() <= run.tags.items()
        or (run.asset_selection and run.asset_selection & set(keys))
    ]


def release_dead_runs(
    instance: dg.DagsterInstance,
    pipeline: SourcePipeline,
    config: SourceConfig,
    keys: Collection[dg.AssetKey],
) -> list[str]:
    """Report runs of dead processes as failed and give back what they held; return their ids."""
    released = []
    for record in instance.get_run_records(
        dg.RunsFilter(statuses=RUNNING), limit=RUNS_LOOKED_AT_MAX
    ):
        run = record.dagster_run
        if not _is_of_source(run, config.name, keys):
            continue
        held = pipeline.holders(f"{RUN_LEASE}{run.run_id}")  # one for each process of its steps
        reasons = [holder.death for holder in held]
        if not held:
            reasons = [_silence(instance, run.run_id, config.state.lease_seconds)]
        why = None if None in reasons else reasons[0]
        if why is None:
            continue
        instance.report_run_failed(
            run, f"Released: {why}. Nothing is lost: the next run continues where this one stopped."
        )
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
        for holder in held:
            pipeline.release(holder)
        released.append(run.run_id)
    return released


def wait_seconds_after_failures(
    instance: dg.DagsterInstance, tags: dict[str, str], *, now: float | None = None
) -> float:
    """How long to wait before the next request: doubles with each failed run in a row."""
    now = time.time() if now is None else now
    failures, last_end = 0, 0.0
    for record in instance.get_run_records(dg.RunsFilter(tags=tags), limit=10):
        if record.dagster_run.status != dg.DagsterRunStatus.FAILURE:
            break
        failures += 1
        last_end = max(last_end, record.end_time or record.update_timestamp.timestamp())
    if not failures:
        return 0.0
    pause = min(BACKOFF_SECONDS_FIRST * 2.0 ** (failures - 1), BACKOFF_SECONDS_MAX)
    return max(0.0, last_end + pause - now)


def range_request(
    instance: dg.DagsterInstance,
    *,
    key: str,
    first: str,
    last: str,
    tags: dict[str, str],
    selection: list[dg.AssetKey] | None = None,
) -> dg.RunRequest:
    """One run over a range of partitions. Its run key counts the runs that this range had, so that a request that is
    repeated after a crash starts one run, and one after a failure starts another."""
    tags = {**tags, RANGE_START_TAG: first, RANGE_END_TAG: last}
    before = instance.get_runs_count(dg.RunsFilter(tags=tags))
    return dg.RunRequest(
        run_key=f"{key}:{first}:{last}:{before}", tags=tags, asset_selection=selection
    )


def _is_of_source(run: dg.DagsterRun, source: str, keys: Collection[dg.AssetKey]) -> bool:
    if source in (run.tags.get(SOURCE_TAG), run.tags.get(SNAPSHOT_TAG)):
        return True
    return bool(run.asset_selection and run.asset_selection & set(keys))


def _silence(instance: dg.DagsterInstance, run_id: str, seconds: float) -> str | None:
    """Why a run without lease counts as dead: it holds one from its first step to its last."""
    records = instance.get_records_for_run(run_id, limit=1, ascending=False).records
    silent = time.time() - records[0].timestamp if records else None
    if silent is None or silent < seconds:
        return None
    return f"it holds no lease and has been silent for {silent:.0f} seconds"
