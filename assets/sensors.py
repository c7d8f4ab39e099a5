"""The two sensors of a source: windows up to the present, and snapshots that somebody asked for.

Both are polite (nothing is requested while a run of the same assets waits or runs), both begin by releasing runs of dead
processes, and both find their work in the metadata store, so a tick that is lost is made up by the next one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby, takewhile
from types import MappingProxyType
from typing import Any

import dagster as dg

from assets.beside import opened_beside
from assets.history import add_partitions, remove_partitions, report_history
from assets.protocols import Opener, SourcePipeline
from assets.runs import (
    SNAPSHOT_TAG,
    SOURCE_TAG,
    TABLE_TAG,
    range_request,
    release_dead_runs,
    unfinished_runs,
    wait_seconds_after_failures,
)
from assets.shown import Shown, shown_now
from assets.streams import show_streams
from assets.translator import Translator
from cdc_core.config import SourceConfig
from cdc_core.errors import LeaseHeldError, NotYetError, TransientError
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import WindowRecord
from cdc_core.steps.beside import capture_beside, cut_together
from cdc_core.steps.delta import beside_names

OBSERVED_EVERY = timedelta(hours=1)
"""How often an idle source's position is shown as an observation."""

WAITED_AT_MOST = timedelta(minutes=10)
"""How long what may go away by itself, such as a database that is down, is a skipped tick. After that it is a failed one, which the UI
shows in red and alerts notice; the next tick looks again all the same."""

_FAILING_SINCE = "failing_since"
_SHOWN = "shown"
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def window_keys(config: SourceConfig, names: Translator) -> set[dg.AssetKey]:
    """The assets on windows."""
    tables = [table.table for table in config.tables]
    return (
        {names.redo_key}
        | {names.key(layer, table) for layer in ("changelog", "mirror") for table in tables}
        | {names.beside_key(name) for name in beside_names(config)}
    )


def snapshot_keys(config: SourceConfig, names: Translator) -> dict[dg.AssetKey, TableId]:
    """The assets on chunks."""
    return {names.key("snapshot", table.table): table.table for table in config.tables}


def windows_sensor(
    config: SourceConfig,
    names: Translator,
    open_pipeline: Opener,
    job_name: str,
    beside: Sequence[Opener] = (),
) -> dg.SensorDefinition:
    """Cuts windows from the watermark to the present and requests one run over the next few.

    Windows of the sources ``beside`` it are cut at the same SCNs, and those that it reads are read for them too.
    """
    keys = window_keys(config, names)
    tables = [one.table for one in config.tables]
    tags = {SOURCE_TAG: names.source}
    options = names.options.windows

    @dg.sensor(
        name=f"{names.source}_windows_sensor",
        job_name=job_name,
        minimum_interval_seconds=options.interval_seconds,
        default_status=_status(enabled=options.enabled),
        description="Cuts windows of commit SCNs up to the present, adds them as partitions and requests one run over "
        "them. Does nothing while such a run is going. Where captured tables do not change, the position moves on without "
        "partition and run. Reports which tables have left the stream.",
    )
    def windows(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        with open_pipeline() as pipeline, opened_beside(beside) as others:
            _release(context, pipeline, config, names)
            busy = unfinished_runs(context.instance, keys, tags)
            if busy:
                return _skipped(
                    context, f"run {busy[0].run_id[:8]} is {busy[0].status.value.lower()}"
                )
            wait = wait_seconds_after_failures(context.instance, tags)
            if wait:
                return dg.SkipReason(f"the last run failed; next attempt in {wait:.0f} s")
            limit = config.capture.windows_per_run_max
            try:
                cut_together(pipeline, others, pending_max=limit)
                capture = partial(capture_beside, pipeline, others)
                is_waiting = pipeline.pass_idle_windows(capture) is not None
                pipeline.retire_windows()
            except TransientError as error:
                return _waits(context, error)
            finally:
                show_streams(context.instance, pipeline.records, names, tables)
            remove_partitions(context.instance, pipeline.records, names)
            new = _not_loaded(pipeline, tables)
            if new:
                context.log.warning(new)
            if not is_waiting:
                return _quiet(context, pipeline, names, new)
            shown = _show(context, pipeline, config, names)
            waiting = _next_windows(pipeline, limit)
            if not options.request_runs:
                why = f"{len(waiting)} windows wait; dagster.windows.request_runs is off"
                return _skipped(context, why, shown)
            pending, selection = _assets_of(pipeline, config, names, waiting)
            if selection == []:
                try:
                    for record in pending:
                        pipeline.apply_window(record.window)
                except TransientError as error:
                    return _waits(context, error)
                why = "the windows that waited change no table that takes them"
                return _skipped(context, why, shown)
        request = range_request(
            context.instance,
            key=names.source,
            first=pending[0].key,
            last=pending[-1].key,
            tags=tags | names.options.run_tags,
            selection=selection,
        )
        return dg.SensorResult(run_requests=[request], cursor=_cursor(context, shown))

    return windows


def snapshots_sensor(
    config: SourceConfig, names: Translator, open_pipeline: Opener
) -> dg.SensorDefinition:
    """Takes signals, plans their chunks, and requests one run per table over the chunks that are not applied."""
    keys = snapshot_keys(config, names)
    options = names.options.snapshots

    @dg.sensor(
        name=f"{names.source}_snapshots_sensor",
        asset_selection=dg.AssetSelection.assets(*keys),
        minimum_interval_seconds=options.interval_seconds,
        default_status=_status(enabled=options.enabled),
        description="Takes signals (of `redolake signal` and of the signal table in Oracle), each exactly "
        "once, lets stopped tables join again whose policies say so, plans the chunks of both, and requests a run for each "
        "table with chunks to do. Change capture continues.",
    )
    def snapshots(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        with open_pipeline() as pipeline:
            _release(context, pipeline, config, names)
            before = _rejected(pipeline)
            try:
                taken = pipeline.take_signals()
                planned = pipeline.take_policies()
            except TransientError as error:
                return _waits(context, error)
            for signal, chunks in taken:
                context.log.info(f"signal {signal.id} taken: {len(chunks)} chunks")
            for table in sorted({chunk.table for chunk in planned}):
                context.log.info(f"{table} is read again, as its policy says")
            refused = [
                f"signal {name} was rejected: {reason}"
                for name, reason in _rejected(pipeline).items()
                if name not in before
            ]
            for text in refused:
                context.log.warning(text)
            pending = pipeline.pending_chunks()
            totals: Mapping[tuple[TableId, str], int] = {}
            shown: Mapping[str, Any] = _NOTHING
            if pending:
                shown = _show(context, pipeline, config, names)
                totals = _chunk_totals(pipeline)
        requests = []
        by_table: dict[TableId, list[ChunkKey]] = {}
        for chunk in pending:
            by_table.setdefault(chunk.table, []).append(chunk)
        for key, table in keys.items():
            chunks = by_table.get(table, [])
            if chunks and not unfinished_runs(context.instance, [key], _chunk_tags(names, table)):
                requests += _chunk_requests(context, names, key, chunks, totals)
        if not requests:
            why = (
                "their runs are going or wait after a failure"
                if pending
                else "no chunk is asked for"
            )
            return _skipped(context, "; ".join(refused) or why, shown)
        return dg.SensorResult(run_requests=requests, cursor=_cursor(context, shown))

    return snapshots


def _status(*, enabled: bool) -> dg.DefaultSensorStatus:
    return dg.DefaultSensorStatus.RUNNING if enabled else dg.DefaultSensorStatus.STOPPED


def _waits(context: dg.SensorEvaluationContext, error: TransientError) -> dg.SensorResult:
    """Skip the tick, and keep since when; what lasts too long is an error.

    A tick that fails keeps the cursor of the one before it, so all that follow fail until something works again.

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
    context: dg.SensorEvaluationContext, reason: str, more: Mapping[str, Any] = _NOTHING
) -> dg.SensorResult:
    return dg.SensorResult(skip_reason=reason, cursor=_cursor(context, more))


def _kept(context: dg.SensorEvaluationContext) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(context.cursor or "{}")
    return kept


def _cursor(context: dg.SensorEvaluationContext, more: Mapping[str, Any] = _NOTHING) -> str:
    """What a tick that did not fail keeps: when the position was shown last, what of the metadata store was, and what it adds."""
    kept = {key: value for key, value in _kept(context).items() if key != _FAILING_SINCE}
    return json.dumps(kept | dict(more))


def _not_loaded(pipeline: SourcePipeline, tables: list[TableId]) -> str:
    """What to do about tables that patterns name now and that were no assets when definitions loaded; empty if there are none."""
    found = pipeline.records.found_tables()
    new = [str(one.table) for one in found if not one.left_out and one.table not in tables]
    if not new:
        return ""
    return f"reload the code location to see tables that patterns name now: {', '.join(new)}"


def _next_windows(pipeline: SourcePipeline, limit: int) -> list[WindowRecord]:
    """The windows of the next run: partitions in a row, so none behind an idle window that some table has yet to take."""
    pending = pipeline.pending_windows()[:limit]
    records = [pipeline.records.window(window) for window in pending]
    return list(takewhile(lambda one: not one.is_idle, filter(None, records)))


def _quiet(
    context: dg.SensorEvaluationContext, pipeline: SourcePipeline, names: Translator, new: str
) -> dg.SensorResult:
    """Say up to where nothing has changed; now and then as an observation, which stays. ``new`` is said besides."""
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


def _rejected(pipeline: SourcePipeline) -> dict[str, str]:
    signals = pipeline.records.signals(states=("rejected",))
    return {signal.id: signal.reason or "" for signal in signals}


def _chunk_requests(
    context: dg.SensorEvaluationContext,
    names: Translator,
    key: dg.AssetKey,
    chunks: list[ChunkKey],
    totals: Mapping[tuple[TableId, str], int],
) -> list[dg.RunRequest]:
    """A run for each snapshot of the table that has chunks to do, unless its last runs failed a moment ago."""
    tags = _chunk_tags(names, chunks[0].table)
    if wait_seconds_after_failures(context.instance, tags):
        return []
    requests = []
    for snapshot_id, group in groupby(sorted(chunks), key=lambda chunk: chunk.snapshot_id):
        total = totals[chunks[0].table, snapshot_id]
        keys = [chunk.partition_key(total) for chunk in group]
        requests.append(
            range_request(
                context.instance,
                key=f"{names.name(chunks[0].table)}:{snapshot_id}",
                first=keys[0],
                last=keys[-1],
                tags=tags | names.options.run_tags,
                selection=[key],
            )
        )
    return requests


def _chunk_totals(pipeline: SourcePipeline) -> Mapping[tuple[TableId, str], int]:
    """How many chunks each snapshot of each table has."""
    return Counter((chunk.table, chunk.snapshot_id) for chunk in pipeline.records.chunks())


def _chunk_tags(names: Translator, table: TableId) -> dict[str, str]:
    return {SNAPSHOT_TAG: names.source, TABLE_TAG: str(table)}


def _release(
    context: dg.SensorEvaluationContext,
    pipeline: SourcePipeline,
    config: SourceConfig,
    names: Translator,
) -> None:
    keys = window_keys(config, names) | set(snapshot_keys(config, names))
    for run_id in release_dead_runs(context.instance, pipeline, config, keys):
        context.log.warning(f"run {run_id} was reported as failed: its process is dead")


def _show(
    context: dg.SensorEvaluationContext,
    pipeline: SourcePipeline,
    config: SourceConfig,
    names: Translator,
) -> Mapping[str, Any]:
    """Show what the metadata store has and Dagster has not; what the cursor keeps of it."""
    records = pipeline.records
    before, now = Shown.of(_kept(context).get(_SHOWN)), shown_now(records)
    tables = before.tables_with_news(now, [one.table for one in config.tables])
    if add_partitions(context.instance, records, config, names, tables) or now != before:
        report_history(context.instance, records, config, names, above=before.above, tables=tables)
    return {_SHOWN: now.as_json}


def _assets_of(
    pipeline: SourcePipeline,
    config: SourceConfig,
    names: Translator,
    pending: Sequence[WindowRecord],
) -> tuple[Sequence[WindowRecord], list[dg.AssetKey] | None]:
    """The windows of the next run and its assets: all (None), or those of the tables that the windows change, which may be none.

    Only a captured window tells what it changes: where the first is not captured a run captures them all, otherwise those behind the
    captured ones wait for the next run.
    """
    if names.options.takes_all(len(config.tables)):
        return pending, None
    captured = list(takewhile(lambda one: one.state != "planned", pending))
    if not captured:
        return pending, [names.redo_key]
    changed = pipeline.changed_tables([one.window for one in captured])
    if not changed:
        return captured, []
    layers = [names.key(layer, table) for table in changed for layer in ("changelog", "mirror")]
    return captured, sorted([*layers, *(names.beside_key(name) for name in beside_names(config))])
