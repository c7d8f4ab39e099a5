"""Which Dagster runs work on a source, and which of them have died?

A run holds the lease ``<source>/run/<run id>``. The process of a run may die without Dagster
noticing (a machine that crashed); such a run would keep its slot and block the sensors for good.
The janitor reports it as failed as soon as its lease is known to be dead or old, or when a run
without lease has been silent for as long.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence

import dagster as dg

from assets.resource import RUN_LEASE
from assets.settings import WindowsSensorConfig
from cdc_core.config import SourceConfig
from cdc_core.errors import PartitionKeyError
from cdc_core.model.scn import Scn, window_end
from cdc_core.steps import Pipeline

SOURCE_TAG = "cdc/source"
SNAPSHOT_TAG = "cdc/snapshot"
TABLE_TAG = "cdc/table"
RANGE_START_TAG = "dagster/asset_partition_range_start"
RANGE_END_TAG = "dagster/asset_partition_range_end"
PARTITION_TAG = "dagster/partition"
PRIORITY_TAG = "dagster/priority"
MINUTES_TAG = "cdc/run-minutes"
"""How long a run stays, to take windows as they come (:mod:`assets.staying`)."""
MAINTAIN_TAG = "cdc/maintain"
SENSOR_TAG = "dagster/sensor_name"
LIVE_PRIORITY = "1"
"""Runs over new windows leave Dagster's queue, and get slots of pools, before backfills."""
RUNNING = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
WAITING = [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.QUEUED]
RUNS_PER_PAGE = 200
BACKOFF_SECONDS_FIRST = 30.0
BACKOFF_SECONDS_MAX = 900.0


def unfinished_run(
    instance: dg.DagsterInstance,
    keys: Collection[dg.AssetKey],
    tags: dict[str, str],
    *,
    taken_up_to: Scn | None = None,
) -> dg.DagsterRun | None:
    """A run, waiting or running, that has these tags or materializes one of these assets, whoever
    launched it. (A run of a whole job names no assets.)

    Args:
        taken_up_to: Every table has the windows up to here: a run over such windows alone is a
            replay, needs neither Oracle nor order, and is in nobody's way.
    """
    wanted = set(keys)
    for record in _records(instance, [*WAITING, *RUNNING]):
        run = record.dagster_run
        if not (
            tags.items() <= run.tags.items()
            or (run.asset_selection and run.asset_selection & wanted)
        ):
            continue
        if taken_up_to is None or not _is_replay(run, taken_up_to):
            return run
    return None


def _records(
    instance: dg.DagsterInstance, statuses: Sequence[dg.DagsterRunStatus]
) -> Iterator[dg.RunRecord]:
    """All runs in these states, newest first. Which of them are of a source, no filter of Dagster's
    can say, so others' runs must not fill a limit."""
    cursor: str | None = None
    while True:
        page = instance.get_run_records(
            dg.RunsFilter(statuses=list(statuses)), limit=RUNS_PER_PAGE, cursor=cursor
        )
        yield from page
        if len(page) < RUNS_PER_PAGE:
            return
        cursor = page[-1].dagster_run.run_id


def _is_replay(run: dg.DagsterRun, taken_up_to: Scn) -> bool:
    """Are all windows of the run at or below this SCN? Not where its tags do not say that, nor
    where it stays, to take new ones."""
    if MINUTES_TAG in run.tags:
        return False
    tags = [tag for tag in (RANGE_START_TAG, RANGE_END_TAG, PARTITION_TAG) if tag in run.tags]
    try:
        return bool(tags) and all(window_end(run.tags[tag]) <= taken_up_to for tag in tags)
    except PartitionKeyError:
        return False


def minutes_to_stay(options: WindowsSensorConfig) -> dict[str, str]:
    """The tag of a run that stays; none where the configuration wants runs to end."""
    return {MINUTES_TAG: f"{options.run_minutes:g}"} if options.run_minutes else {}


def needs_its_place(
    instance: dg.DagsterInstance,
    run: dg.DagsterRun,
    pools: Collection[str],
    *,
    keeps_out: Collection[dg.AssetKey] = (),
) -> str:
    """Why a run that stays should end: it was asked to, or others wait for what it has. Empty if it
    may go on.

    Args:
        pools: The pools of its steps.
        keeps_out: The source's assets, where no other process can write to the lake while the run
            does.
    """
    sensor = run.tags.get(SENSOR_TAG)
    states = [] if instance.schedule_storage is None else instance.all_instigator_state()
    if any(one.instigator_name == sensor and one.status.value == "STOPPED" for one in states):
        return f"{sensor} was switched off"
    found = [one.dagster_run for one in _records(instance, [dg.DagsterRunStatus.QUEUED, *RUNNING])]
    queued = [one for one in found if one.status is dg.DagsterRunStatus.QUEUED]
    running = [one for one in found if one.status is not dg.DagsterRunStatus.QUEUED]
    source = run.tags.get(SOURCE_TAG)
    if any(source is not None and one.tags.get(SOURCE_TAG) == source for one in queued):
        return "another run of the source waits"
    if source is not None and any(
        one.run_id != run.run_id
        and (_is_of_source(one, source, keeps_out) or one.tags.get(MAINTAIN_TAG) == source)
        for one in (found if keeps_out else [])
    ):
        return "another run of the source has to write, and the lake has one writer"
    for pool, slots in instance.event_log_storage.get_concurrency_infos(list(pools)).items():
        is_full = bool(slots.slot_count) and slots.active_slot_count >= slots.slot_count
        if slots.pending_step_count or (queued and is_full):
            return f"another run waits for a slot of the pool {pool}"
    limits = instance.get_concurrency_config().run_queue_config if queued else None
    if limits is None or not 0 <= limits.max_concurrent_runs <= len(running):
        return ""
    staying = [one.run_id for one in running if MINUTES_TAG in one.tags]
    is_oldest = staying[-1:] == [run.run_id]  # one slot is enough
    return "another run waits for a slot" if is_oldest else ""


def release_dead_runs(
    instance: dg.DagsterInstance,
    pipeline: Pipeline,
    config: SourceConfig,
    keys: Collection[dg.AssetKey],
) -> list[str]:
    """Report runs of dead processes as failed and give back what they held; return their ids."""
    released = []
    for record in list(_records(instance, RUNNING)):
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
    run_tags: dict[str, str],
    selection: list[dg.AssetKey] | None = None,
) -> dg.RunRequest:
    """One run over a range of partitions.

    Its run key names the newest run that this range has had, so that a request that is repeated
    after a crash starts one run, and one after a failure starts another. Runs may be deleted: no
    run that is left can have been asked for under the key, since it would be newer than the one
    that is named.
    """
    tags = {**tags, RANGE_START_TAG: first, RANGE_END_TAG: last}
    newest = instance.get_run_records(dg.RunsFilter(tags=tags), limit=1)
    before = newest[0].dagster_run.run_id if newest else "first"
    return dg.RunRequest(
        run_key=f"{key}:{first}:{last}:{before}",
        tags=run_tags | tags,
        asset_selection=selection,
    )


def in_a_row(
    instance: dg.DagsterInstance, partitions: dg.DynamicPartitionsDefinition, keys: Sequence[str]
) -> list[list[str]]:
    """Partition keys, cut into stretches that Dagster has one behind the other and nothing between.

    A range takes whatever lies between its ends in the order in which partitions were added: one
    that was deleted and came back is the last of all, and somebody may have typed a key of their
    own.
    """
    name = partitions.name
    assert name is not None
    places = {key: place for place, key in enumerate(instance.get_dynamic_partitions(name))}
    stretches: list[list[str]] = []
    for key in keys:
        if key not in places:
            continue
        if stretches and places[stretches[-1][-1]] + 1 == places[key]:
            stretches[-1].append(key)
        else:
            stretches.append([key])
    return stretches


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
