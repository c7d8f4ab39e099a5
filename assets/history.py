"""How do windows and chunks of the metadata store become partitions that the UI shows?

Partitions are added in SCN order, only ever at the end; windows in which captured tables had
nothing are none. What the command line has done without Dagster is reported as materializations
without a run, with the times and counts that the store has, so that the UI shows the whole history,
whoever made it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import dagster as dg

from assets import metadata
from assets.streams import show_streams
from assets.translator import Layer, Translator
from cdc_core.config import SourceConfig
from cdc_core.errors import PartitionKeyError
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import ChunkRecord, WindowRecord
from cdc_core.model.reports import DeltaLayer, TableApplied
from cdc_core.model.scn import Scn, ScnWindow, window_end
from cdc_core.steps.delta_logs import SideTableName, delta_rows, side_table_names, side_table_rows
from cdc_core.steps.source_view import SourceView

WINDOWS_REPORTED_MAX = 2000
"""Newest windows whose history is reported; an event costs about 12 ms on SQLite."""

_LAYERS: tuple[tuple[DeltaLayer, Layer], ...] = (("changelog", "oracle"), ("mirror", "changelog"))


def add_partitions(
    instance: dg.DagsterInstance,
    records: SourceView,
    config: SourceConfig,
    names: Translator,
    tables: Iterable[TableId] | None = None,
    waiting: Iterable[WindowRecord] = (),
) -> int:
    """Add every window and chunk of the metadata store that is no partition yet; return how many
    were added.

    Args:
        tables: Whose chunks are looked at; by default those of all captured tables.
        waiting: Windows that are partitions afterwards in any case, also where somebody deleted
            theirs.
    """
    found = {one.ordinal: one.key for one in [*_after_known(instance, records, names), *waiting]}
    added = _add(instance, _name(names.windows), [key for _, key in sorted(found.items())])
    chunks = _chunks_by_table(records)
    for table in _captured(config) if tables is None else tables:
        partitions = chunk_partitions(chunks.get(table, ()))
        added += _add(instance, _name(names.chunks(table)), list(partitions))
    return added


def remove_partitions(instance: dg.DagsterInstance, records: SourceView, names: Translator) -> int:
    """Remove partitions of windows that the store has retired, and the oldest of too many; return
    how many were removed.

    A window that some table has yet to take stays, so that it can be requested: also when that
    table resumes after a long pause.
    """
    name = _name(names.windows)
    known = [(end, key) for key in instance.get_dynamic_partitions(name) if (end := _end(key))]
    first = records.windows(limit=1)
    low = first[0].window.scn_low if first else Scn(0)
    retired = [key for end, key in known if end <= low]
    kept = sorted((end, key) for end, key in known if end > low)
    keep = names.options.partitions_keep
    too_many = [] if keep is None else kept[: max(0, len(kept) - keep)]
    wanted_above = min((one.needs_above for one in records.tables()), default=Scn(0))
    taken = [key for end, key in too_many if end <= wanted_above]
    removed = [*retired, *taken]
    for key in removed:
        instance.delete_dynamic_partition(name, key)
    return len(removed)


def report_history(
    instance: dg.DagsterInstance,
    records: SourceView,
    config: SourceConfig,
    names: Translator,
    *,
    above: int = 0,
    tables: Iterable[TableId] | None = None,
) -> int:
    """Report steps that were done outside of Dagster, and which tables are in the stream; return
    how many events were written.

    Args:
        above: Windows that end at or below this SCN have been reported.
        tables: Whose chunks are looked at; by default those of all captured tables.
    """
    known = set(instance.get_dynamic_partitions(_name(names.windows)))
    newest = records.windows(newest_first=True, limit=WINDOWS_REPORTED_MAX)[::-1]
    windows = [one for one in newest if one.window.scn_high > above]
    captured = [one for one in windows if one.state != "planned" and one.key in known]
    count = _report(instance, names.redo_key, {one.key: _of_window(one) for one in captured})
    count += _report_tables(instance, records, config, names, captured)
    chunks = _chunks_by_table(records)
    for table in _captured(config) if tables is None else tables:
        count += _report_chunks(instance, names, table, chunks.get(table, ()))
    count += sum(
        _report_side_table(instance, config, names, name, captured)
        for name in side_table_names(config)
    )
    return count + show_streams(instance, records, names, _captured(config))


def _report_tables(
    instance: dg.DagsterInstance,
    records: SourceView,
    config: SourceConfig,
    names: Translator,
    captured: Sequence[WindowRecord],
) -> int:
    """Report windows for change logs and mirrors that have them: where runs materialize what
    windows change alone, those."""
    count = 0
    states = {state.table: state for state in records.tables()}
    brought = _brought(records, list(captured))
    takes_all = names.options.takes_all(len(config.tables))
    for table in _captured(config):
        position = states[table].mirror_scn if table in states else None
        taken = [
            one
            for one in captured
            if position is not None
            and one.window.scn_high <= position
            and (takes_all or (one.ordinal, table) in brought)
        ]
        if not taken:
            continue
        nothing = TableApplied(table=table)
        last = taken[-1]
        for layer, upstream in _LAYERS:
            known = instance.get_materialized_partitions(names.key(layer, table))
            values = {
                one.key: _of_applied(layer, one, brought.get((one.ordinal, table), nothing))
                for one in taken
                if one.key not in known
            }
            if (
                last.key in values
            ):  # columns go to the newest only, rows where the table stands there
                columns = records.columns(table, last.window.scn_high)
                values[last.key] |= metadata.of_columns(columns, names.key(upstream, table))
                if last.window.scn_high == position:
                    values[last.key] |= metadata.of_rows(delta_rows(config, layer, table))
            count += _report_each(instance, names.key(layer, table), values)
    return count


def chunk_partitions(chunks: Iterable[ChunkRecord]) -> dict[str, tuple[ChunkRecord, int]]:
    """Chunks of a table by their partitions, each with the number of chunks that its snapshot
    has."""
    chunks = list(chunks)
    totals = Counter(chunk.snapshot_id for chunk in chunks)
    return {
        ChunkKey(chunk.table, chunk.snapshot_id, chunk.number).partition_key(total): (chunk, total)
        for chunk in chunks
        if (total := totals[chunk.snapshot_id])
    }


def _report_chunks(
    instance: dg.DagsterInstance, names: Translator, table: TableId, chunks: Iterable[ChunkRecord]
) -> int:
    values = {
        partition: _of_chunk(chunk, total)
        for partition, (chunk, total) in chunk_partitions(chunks).items()
        if chunk.state == "applied"
    }
    return _report(instance, names.key("snapshot", table), values)


def _report_side_table(
    instance: dg.DagsterInstance,
    config: SourceConfig,
    names: Translator,
    name: SideTableName,
    captured: Sequence[WindowRecord],
) -> int:
    """A window's rows are in the side tables once every table in the stream has applied it."""
    done = [record for record in captured if record.state == "applied"]
    if not done:
        return 0
    span = ScnWindow(done[0].window.scn_low, done[-1].window.scn_high)
    rows = side_table_rows(config, name, span)
    values = {
        record.key: metadata.of_window(record.window, rows[record.window.scn_high])
        for record in done
    }
    return _report(instance, names.side_table_key(name), values)


def _brought(
    records: SourceView, windows: list[WindowRecord]
) -> dict[tuple[int, TableId], TableApplied]:
    found = records.brought(windows)
    return {(ordinal, one.table): one for ordinal, applied in found.items() for one in applied}


def _captured(config: SourceConfig) -> list[TableId]:
    return [one.table for one in config.tables]


def _chunks_by_table(records: SourceView) -> dict[TableId, list[ChunkRecord]]:
    """In the order of their snapshots; a snapshot's number is its SCN as planned."""
    found: dict[TableId, list[ChunkRecord]] = {}
    for chunk in sorted(
        records.chunks(),
        key=lambda chunk: (len(chunk.snapshot_id), chunk.snapshot_id, chunk.number),
    ):
        found.setdefault(chunk.table, []).append(chunk)
    return found


def _name(partitions: dg.DynamicPartitionsDefinition) -> str:
    assert partitions.name is not None
    return partitions.name


def _end(key: str) -> Scn | None:
    try:
        return window_end(key)
    except PartitionKeyError:  # somebody added it by hand; a run over it says so
        return None


def _after_known(
    instance: dg.DagsterInstance, records: SourceView, names: Translator
) -> list[WindowRecord]:
    """Windows behind the last partition that is a window; earlier ones that were deleted stay
    deleted.

    A key that somebody typed may look like one of a window to come, so only what the store has
    counts; of windows that it has retired, any.
    """
    known = set(instance.get_dynamic_partitions(_name(names.windows)))
    newest = records.windows(newest_first=True, limit=WINDOWS_REPORTED_MAX)
    shown = [one.window.scn_high for one in newest if one.key in known]
    if newest and not shown:
        below = newest[-1].window.scn_low
        shown = [end for end in map(_end, known) if end is not None and end <= below]
    last = max(shown, default=Scn(0))
    return [one for one in records.windows_after(last) if not one.is_idle]


def add_keys(
    instance: dg.DagsterInstance, partitions: dg.DynamicPartitionsDefinition, keys: Sequence[str]
) -> int:
    """Add those of the keys that are no partitions, and return how many that were."""
    return _add(instance, _name(partitions), list(keys))


def _add(instance: dg.DagsterInstance, name: str, keys: list[str]) -> int:
    known = set(instance.get_dynamic_partitions(name))
    missing = [key for key in keys if key not in known]
    if missing:
        instance.add_dynamic_partitions(name, missing)
    return len(missing)


def _report(instance: dg.DagsterInstance, key: dg.AssetKey, values: dict[str, Any]) -> int:
    if not values:
        return 0
    known = instance.get_materialized_partitions(key)
    missing = {partition: found for partition, found in values.items() if partition not in known}
    return _report_each(instance, key, missing)


def _report_each(instance: dg.DagsterInstance, key: dg.AssetKey, values: dict[str, Any]) -> int:
    for partition, found in values.items():
        instance.report_runless_asset_event(
            dg.AssetMaterialization(key, partition=partition, metadata=found)
        )
    return len(values)


def _of_window(record: WindowRecord) -> dict[str, Any]:
    facts = {f"cdc/{name}": number for name, number in record.facts.items()}
    size = {} if record.bytes is None else {"cdc/bytes": record.bytes}
    return {
        "cdc/kind": "window-captured",
        "cdc/scn_low": record.window.scn_low,
        "cdc/scn_high": record.window.scn_high,
        "cdc/seconds": round(record.seconds or 0.0, 3),
        "dagster/partition_row_count": record.rows or 0,
        **size,
        **facts,
        **metadata.of_times(record),
    }


def _of_applied(layer: Layer, record: WindowRecord, applied: TableApplied) -> dict[str, Any]:
    return {
        "cdc/kind": "window-applied",
        "cdc/scn_low": record.window.scn_low,
        "cdc/scn_high": record.window.scn_high,
        **metadata.of_applied(layer, applied),
        **metadata.of_times(record),
    }


def _of_chunk(chunk: ChunkRecord, total: int) -> dict[str, Any]:
    return {
        "cdc/kind": "chunk-applied",
        **metadata.of_chunk(chunk, total, chunk.rows or 0),
        "cdc/scn_high": chunk.scn,
        "cdc/seconds": round((chunk.seconds or 0.0) + (chunk.apply_seconds or 0.0), 3),
    }
