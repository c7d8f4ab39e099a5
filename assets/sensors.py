"""The two sensors of a source: windows up to the present, and snapshots that somebody asked for.

Both are polite (nothing is requested while a run of the same assets waits or runs), both begin by
releasing runs of dead processes, and both find their work in the metadata store, so a tick that is
lost is made up by the next one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

import dagster as dg

from assets.fleet import opened_siblings
from assets.history import add_keys
from assets.instances import instance_of
from assets.protocols import Opener
from assets.runs import (
    SNAPSHOT_TAG,
    SOURCE_TAG,
    TABLE_TAG,
    in_a_row,
    range_request,
    unfinished_run,
    wait_seconds_after_failures,
)
from assets.told import AT_ONCE, observations_of
from assets.translator import Translator
from assets.waiting import NOTHING, Tick, snapshot_keys
from cdc_core.config import SourceConfig
from cdc_core.errors import LeaseHeldError, NotYetError, TransientError
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.wording import counted
from cdc_core.steps import Pipeline

OBSERVED_EVERY = timedelta(hours=1)
"""How often an idle source's position is shown as an observation."""

WAITED_AT_MOST = timedelta(minutes=10)
"""How long what may go away by itself, such as a database that is down, is a skipped tick. After
that it is a failed one, which the UI shows in red and alerts notice; the next tick looks again all
the same."""

_FAILING_SINCE = "failing_since"
_NOTIFIED = "notified"
"""The number of the last notification that was shown."""


def windows_sensor(
    config: SourceConfig,
    names: Translator,
    open_pipeline: Opener,
    job_name: str,
    siblings: Sequence[Opener] = (),
) -> dg.SensorDefinition:
    """Cuts windows from the watermark to the present and requests one run over the next few.

    Windows of its ``siblings`` are cut at the same SCNs, and those that it reads are read for them
    too.
    """
    tags = {SOURCE_TAG: names.source}
    options = names.options.windows
    minutes = f", which continues for {options.run_minutes:g} minutes with the windows that follow"
    continues = minutes if options.run_minutes else ""

    @dg.sensor(
        name=f"{names.source}_windows_sensor",
        job_name=job_name,
        minimum_interval_seconds=options.interval_seconds,
        default_status=_status(enabled=options.enabled and options.cron is None),
        description="Cuts windows of commit SCNs up to the present, adds them as partitions, "
        f"and requests one run for them{continues}. Does nothing while such a run is in "
        "progress. If no captured table changed, the position advances without a "
        "partition or a run. Reports tables that have left the stream.",
    )
    def windows(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        with open_pipeline() as pipeline, opened_siblings(siblings) as others:
            tick = _tick(context, pipeline, config, names)
            try:
                tick.release()
                if busy := tick.busy():
                    return _skipped(context, busy)
                wait = wait_seconds_after_failures(instance_of(context), tags)
                if wait:
                    return dg.SkipReason(f"the last run failed; next attempt in {wait:.0f} s")
                asked = tick.ask(others, limit=config.capture.windows_per_run_max, is_whole=False)
            except TransientError as error:
                return _waits(context, error)
            if new := tick.not_loaded():
                context.log.warning(new)
            if asked.is_idle:
                return _quiet(context, pipeline, names, new)
            if asked.reason:
                return _skipped(context, asked.reason, asked.kept)
            return dg.SensorResult(run_requests=asked.requests, cursor=_cursor(context, asked.kept))

    return windows


def snapshots_sensor(
    config: SourceConfig, names: Translator, open_pipeline: Opener
) -> dg.SensorDefinition:
    """Takes signals, plans their chunks, and requests one run per table over the chunks that are
    not applied."""
    keys = snapshot_keys(config, names)
    options = names.options.snapshots

    @dg.sensor(
        name=f"{names.source}_snapshots_sensor",
        asset_selection=dg.AssetSelection.assets(*keys),
        minimum_interval_seconds=options.interval_seconds,
        default_status=_status(enabled=options.enabled),
        description="Processes each signal (from `redolake signal` and the signal table in "
        "Oracle) exactly once, lets stopped tables rejoin if their policy says so, "
        "plans the chunks of both, and requests a run for each table with pending "
        "chunks. Change capture continues meanwhile.",
    )
    def snapshots(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        with open_pipeline() as pipeline:
            tick = _tick(context, pipeline, config, names)
            try:
                tick.release()
                before = _rejected(pipeline)
                taken = pipeline.take_signals()
                planned = pipeline.take_policies()
            except TransientError as error:
                return _waits(context, error)
            for signal, chunks in taken:
                context.log.info(
                    f"signal {signal.id} processed: {counted(len(chunks), 'chunk')} planned"
                )
            for table in sorted({chunk.table for chunk in planned}):
                context.log.info(f"{table} takes a new snapshot, as its policy says")
            refused = [
                f"signal {name} was rejected: {reason}"
                for name, reason in _rejected(pipeline).items()
                if name not in before
            ]
            for text in refused:
                context.log.warning(text)
            told, observations = _told(context, pipeline, config, names)
            pending = pipeline.pending_chunks()
            totals: Mapping[tuple[TableId, str], int] = {}
            shown: Mapping[str, Any] = NOTHING
            if pending:
                shown = tick.show()
                totals = _chunk_totals(pipeline)
        requests = []
        by_table: dict[TableId, list[ChunkKey]] = {}
        for chunk in pending:
            by_table.setdefault(chunk.table, []).append(chunk)
        for key, table in keys.items():
            chunks = by_table.get(table, [])
            if chunks and not unfinished_run(
                instance_of(context), [key], _chunk_tags(names, table)
            ):
                requests += _chunk_requests(context, names, key, chunks, totals)
        if not requests:
            why = (
                "the runs of all pending chunks are in progress, or wait after a failure"
                if pending
                else "no chunk is pending"
            )
            return dg.SensorResult(
                skip_reason="; ".join(refused) or why,
                asset_events=observations,
                cursor=_cursor(context, {**shown, **told}),
            )
        return dg.SensorResult(
            run_requests=requests,
            asset_events=observations,
            cursor=_cursor(context, {**shown, **told}),
        )

    return snapshots


def _told(
    context: dg.SensorEvaluationContext,
    pipeline: Pipeline,
    config: SourceConfig,
    names: Translator,
) -> tuple[Mapping[str, Any], list[dg.AssetObservation]]:
    """The notifications that no tick has shown, as observations, and what to keep of it."""
    if "dagster" not in config.notifications.channels:
        return NOTHING, []
    found = pipeline.records.notifications_behind(
        int(_kept(context).get(_NOTIFIED, 0)), limit=AT_ONCE
    )
    if not found:
        return NOTHING, []
    tables = {table.table for table in config.tables}
    observations = observations_of([one for _, one in found], names, tables)
    return {_NOTIFIED: found[-1][0]}, observations


def _tick(
    context: dg.SensorEvaluationContext,
    pipeline: Pipeline,
    config: SourceConfig,
    names: Translator,
) -> Tick:
    return Tick(instance_of(context), context.log, _kept(context), config, names, pipeline)


def _status(*, enabled: bool) -> dg.DefaultSensorStatus:
    return dg.DefaultSensorStatus.RUNNING if enabled else dg.DefaultSensorStatus.STOPPED


def _waits(context: dg.SensorEvaluationContext, error: TransientError) -> dg.SensorResult:
    """Skip the tick, and keep since when; what lasts too long is an error.

    A tick that fails keeps the cursor of the one before it, so all that follow fail until something
    works again.

    Raises:
        TransientError: It has lasted for WAITED_AT_MOST.
    """
    if isinstance(error, NotYetError | LeaseHeldError):
        return _skipped(context, str(error))
    now = datetime.now(UTC)
    since = datetime.fromisoformat(_kept(context).get(_FAILING_SINCE, now.isoformat()))
    if now - since >= WAITED_AT_MOST:
        raise error
    return _skipped(context, str(error), {_FAILING_SINCE: since.isoformat()})


def _skipped(
    context: dg.SensorEvaluationContext, reason: str, more: Mapping[str, Any] = NOTHING
) -> dg.SensorResult:
    return dg.SensorResult(skip_reason=reason, cursor=_cursor(context, more))


def _kept(context: dg.SensorEvaluationContext) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(context.cursor or "{}")
    return kept


def _cursor(context: dg.SensorEvaluationContext, more: Mapping[str, Any] = NOTHING) -> str:
    """What a tick that did not fail keeps: when the position was shown last, what of the metadata
    store was, and what it adds."""
    kept = {key: value for key, value in _kept(context).items() if key != _FAILING_SINCE}
    return json.dumps(kept | dict(more))


def _quiet(
    context: dg.SensorEvaluationContext, pipeline: Pipeline, names: Translator, new: str
) -> dg.SensorResult:
    """Say up to where nothing has changed; now and then as an observation, which stays. ``new`` is
    said besides."""
    last = pipeline.records.windows(newest_first=True, limit=1)
    if not last:
        reason = "Oracle's SCN has not moved since the snapshot"
        return _skipped(context, f"{reason}; {new}" if new else reason)
    record = last[0]
    when = f" ({record.ended:%Y-%m-%d %H:%M:%S} UTC)" if record.ended else ""
    reason = f"no captured table changed up to SCN {record.window.scn_high}{when}"
    now = datetime.now(UTC)
    seen = _kept(context).get("observed")
    said = f"{reason}; {new}" if new else reason
    if not record.is_idle or (seen and now - datetime.fromisoformat(seen) < OBSERVED_EVERY):
        return _skipped(context, said)
    values: dict[str, Any] = {"cdc/position": record.window.scn_high}
    if record.ended is not None:
        values["cdc/position_time"] = dg.MetadataValue.timestamp(record.ended)
    observation = dg.AssetObservation(names.redo_key, description=reason, metadata=values)
    return dg.SensorResult(
        skip_reason=said,
        asset_events=[observation],
        cursor=_cursor(context, {"observed": now.isoformat()}),
    )


def _rejected(pipeline: Pipeline) -> dict[str, str]:
    signals = pipeline.records.signals(states=("rejected",))
    return {signal.id: signal.reason or "" for signal in signals}


def _chunk_requests(
    context: dg.SensorEvaluationContext,
    names: Translator,
    key: dg.AssetKey,
    chunks: list[ChunkKey],
    totals: Mapping[tuple[TableId, str], int],
) -> list[dg.RunRequest]:
    """A run for each snapshot of the table that has chunks to do, unless its last runs failed a
    moment ago."""
    tags = _chunk_tags(names, chunks[0].table)
    if wait_seconds_after_failures(instance_of(context), tags):
        return []
    requests = []
    for snapshot_id, group in groupby(sorted(chunks), key=lambda chunk: chunk.snapshot_id):
        table, total = chunks[0].table, totals[chunks[0].table, snapshot_id]
        if not total:
            continue  # another process has begun the table's snapshot anew
        keys = [chunk.partition_key(total) for chunk in group]
        add_keys(instance_of(context), names.chunks(table), keys)
        requests += [
            range_request(
                instance_of(context),
                key=f"{names.name(table)}:{snapshot_id}",
                first=stretch[0],
                last=stretch[-1],
                tags=tags,
                run_tags=names.options.run_tags,
                selection=[key],
            )
            for stretch in in_a_row(instance_of(context), names.chunks(table), keys)
        ]
    return requests


def _chunk_totals(pipeline: Pipeline) -> Mapping[tuple[TableId, str], int]:
    """How many chunks each snapshot of each table has."""
    return Counter((chunk.table, chunk.snapshot_id) for chunk in pipeline.records.chunks())


def _chunk_tags(names: Translator, table: TableId) -> dict[str, str]:
    return {SNAPSHOT_TAG: names.source, TABLE_TAG: str(table)}
