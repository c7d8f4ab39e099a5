"""How do windows and chunks of the metadata store become partitions that the UI shows?

Partitions are added in SCN order, only ever at the end. What the command line has done without Dagster is reported as
materializations without a run, so that the UI shows the whole history, whoever made it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import dagster as dg

from assets import metadata
from assets.translator import Layer, Translator
from assets.windows import lake_path
from cdc_core.config import SourceConfig
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import ScnWindow
from cdc_core.state.records import ChunkRecord, WindowRecord
from cdc_core.state.store import Store

WINDOWS_REPORTED_MAX = 2000
"""Newest windows whose history is reported; an event costs about 12 ms on SQLite."""


_LAYERS: tuple[tuple[Layer, Layer], ...] = (("changelog", "oracle"), ("mirror", "changelog"))


def add_partitions(
    instance: dg.DagsterInstance, store: Store, config: SourceConfig, names: Translator
) -> int:
    """Add every window and chunk of the store that is no partition yet; return how many were added."""
    windows = [record.window for record in store.windows(names.source)]
    added = _add(instance, _name(names.windows), _after_known(instance, names, windows))
    for table in config.tables:
        chunks = [chunk_key(record).key for record in _chunks(store, names, table.table)]
        added += _add(instance, _name(names.chunks(table.table)), chunks)
    return added


def report_history(
    instance: dg.DagsterInstance, store: Store, config: SourceConfig, names: Translator
) -> int:
    """Report steps that were done outside of Dagster; return how many events were written."""
    windows = store.windows(names.source, newest_first=True, limit=WINDOWS_REPORTED_MAX)[::-1]
    captured = [record for record in windows if record.state != "planned"]
    count = _report(
        instance, names.redo_key, {record.window.key: _of_window(record) for record in captured}
    )
    states = {state.table: state for state in store.tables(names.source)}
    for table in [config.table for config in config.tables]:
        position = states[table].mirror_scn if table in states else None
        taken = [r for r in captured if position is not None and r.window.scn_high <= position]
        for layer, upstream in _LAYERS:
            values = {record.window.key: _of_applied(record) for record in taken}
            if taken:  # columns and rows go to the newest only
                schema = store.schema_at(names.source, table, taken[-1].window.scn_high)
                values[taken[-1].window.key] |= metadata.of_schema(
                    schema, names.key(upstream, table)
                ) | metadata.of_rows(lake_path(config, layer, table))
            count += _report(instance, names.key(layer, table), values)
        done = [chunk for chunk in _chunks(store, names, table) if chunk.state == "applied"]
        count += _report(
            instance,
            names.key("snapshot", table),
            {chunk_key(chunk).key: _of_chunk(chunk) for chunk in done},
        )
    return count


def chunk_key(record: ChunkRecord) -> ChunkKey:
    """The partition of a chunk."""
    return ChunkKey(record.table, record.snapshot_id, record.number)


def _chunks(store: Store, names: Translator, table: TableId) -> list[ChunkRecord]:
    """In the order of their snapshots; a snapshot's number is its SCN as planned."""
    return sorted(
        store.chunks(names.source, table),
        key=lambda chunk: (len(chunk.snapshot_id), chunk.snapshot_id, chunk.number),
    )


def _name(partitions: dg.DynamicPartitionsDefinition) -> str:
    assert partitions.name is not None
    return partitions.name


def _after_known(
    instance: dg.DagsterInstance, names: Translator, windows: list[ScnWindow]
) -> list[str]:
    """Keys behind the last partition that is a window; earlier ones that were deleted stay deleted."""
    known = set(instance.get_dynamic_partitions(_name(names.windows)))
    last = max((window.scn_high for window in windows if window.key in known), default=-1)
    return [window.key for window in windows if window.scn_low >= last]


def _add(instance: dg.DagsterInstance, name: str, keys: list[str]) -> int:
    known = set(instance.get_dynamic_partitions(name))
    missing = [key for key in keys if key not in known]
    if missing:
        instance.add_dynamic_partitions(name, missing)
    return len(missing)


def _report(instance: dg.DagsterInstance, key: dg.AssetKey, values: dict[str, Any]) -> int:
    known = instance.get_materialized_partitions(key)
    missing: Iterable[str] = [partition for partition in values if partition not in known]
    count = 0
    for partition in missing:
        instance.report_runless_asset_event(
            dg.AssetMaterialization(key, partition=partition, metadata=values[partition])
        )
        count += 1
    return count


def _of_window(record: WindowRecord) -> dict[str, Any]:
    return {
        "cdc/kind": "window-captured",
        "cdc/scn_low": record.window.scn_low,
        "cdc/scn_high": record.window.scn_high,
        "cdc/seconds": round(record.seconds or 0.0, 3),
        "dagster/partition_row_count": record.rows or 0,
    }


def _of_applied(record: WindowRecord) -> dict[str, Any]:
    values: dict[str, Any] = {
        "cdc/kind": "window-applied",
        "cdc/scn_low": record.window.scn_low,
        "cdc/scn_high": record.window.scn_high,
        "cdc/window_seconds": round(record.apply_seconds or 0.0, 3),
    }
    if record.applied is not None:
        values["cdc/lag_seconds"] = round((record.applied - record.created).total_seconds(), 1)
    return values


def _of_chunk(chunk: ChunkRecord) -> dict[str, Any]:
    return {
        "cdc/kind": "chunk-applied",
        "cdc/scn_high": chunk.scn,
        "cdc/seconds": round((chunk.seconds or 0.0) + (chunk.apply_seconds or 0.0), 3),
        "dagster/partition_row_count": chunk.rows or 0,
    }
