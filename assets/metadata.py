"""What does the Dagster UI show of a finished step?

Our own values stand under ``cdc/`` (numbers are plotted over partitions), Dagster's under
``dagster/``. Never row values, never secrets.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from assets.translator import Layer
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.records import ChunkRecord, WindowRecord
from cdc_core.model.reports import (
    ColumnReport,
    Cut,
    SnapshotProgress,
    StepReport,
    TableApplied,
)
from cdc_core.model.scn import ScnWindow
from cdc_core.model.wording import counted


def of_report(report: StepReport) -> dict[str, Any]:
    """A step's SCN bounds, rows, seconds and further facts."""
    values: dict[str, Any] = {
        "cdc/seconds": round(report.seconds, 3),
        "cdc/repeated": report.repeated,
        "cdc/kind": report.kind,
    }
    if report.scn_low is not None:
        values["cdc/scn_low"] = report.scn_low
    if report.scn_high is not None:
        values["cdc/scn_high"] = report.scn_high
    if report.bytes:
        values["cdc/bytes"] = report.bytes
    return values | {f"cdc/{name}": number for name, number in report.facts.items()}


def of_cut(cut: Cut) -> dict[str, Any]:
    """What views of a consistent cut show: its SCN, the tables, and those that are left out with
    why."""
    values: dict[str, Any] = {
        "cdc/scn": cut.scn,
        "cdc/tables": len(cut.tables),
        "cdc/versions": dg.MetadataValue.json({one.table: one.version for one in cut.tables}),
    }
    if cut.left_out:
        left_out = {one.table: one.reason for one in cut.left_out}
        values["cdc/left_out"] = dg.MetadataValue.json(left_out)
    return values


def of_layer(layer: Layer, report: StepReport, applied: TableApplied) -> dict[str, Any]:
    """What a window brought to a table's change log, or did to its mirror."""
    return of_report(report) | of_applied(layer, applied)


def of_applied(layer: Layer, applied: TableApplied) -> dict[str, Any]:
    """A table's counts in one layer."""
    values: dict[str, Any] = {"cdc/seconds": round(applied.seconds, 3)}
    if layer == "changelog":
        return values | {
            "cdc/changes": applied.changes,
            "dagster/partition_row_count": applied.changes,
        }
    values |= {
        "cdc/rows_inserted": applied.rows_inserted,
        "cdc/rows_updated": applied.rows_updated,
        "cdc/rows_deleted": applied.rows_deleted,
    }
    if applied.write is not None:
        values["cdc/mirror_write"] = str(applied.write)
        if applied.merge_seconds:  # the metadata store does not keep it
            values["cdc/merge_seconds"] = round(applied.merge_seconds, 3)
        if applied.write.expected_seconds is not None:
            values["cdc/merge_seconds_expected"] = round(applied.write.expected_seconds, 1)
    if applied.quarantined:
        values["cdc/rows_quarantined"] = applied.quarantined
    if applied.in_quarantine:
        values["cdc/rows_in_quarantine"] = applied.in_quarantine
    return values


def of_window(window: ScnWindow, rows: int) -> dict[str, Any]:
    """Rows that a window added to one of the side tables."""
    return {
        "cdc/scn_low": window.scn_low,
        "cdc/scn_high": window.scn_high,
        "dagster/partition_row_count": rows,
    }


def of_chunk(chunk: ChunkRecord, total: int, rows: int) -> dict[str, Any]:
    """Which part of its snapshot a chunk is, and how large; never where its range begins and
    ends."""
    key = ChunkKey(chunk.table, chunk.snapshot_id, chunk.number)
    return {
        "cdc/chunk": key.place(total),
        "cdc/range": f"{chunk.what}, {counted(rows, 'row')}",
        "cdc/rows": rows,
        "dagster/partition_row_count": rows,
    }


def of_progress(progress: SnapshotProgress) -> dict[str, Any]:
    """How far a snapshot is, how fast it is read, and how long the rest takes, as far as that is
    known."""
    values = {
        "cdc/snapshot_chunks_applied": progress.chunks_applied,
        "cdc/snapshot_rows": progress.rows,
        "cdc/snapshot_rows_expected": progress.rows_expected,
        "cdc/rows_per_second": progress.rows_per_second,
        "cdc/seconds_left": progress.seconds_left,
    }
    return {name: value for name, value in values.items() if value is not None}


def of_times(record: WindowRecord) -> dict[str, Any]:
    """When a window ended in Oracle, when it was captured and applied, and how long after its end
    that was."""
    moments = {
        "cdc/window_end": record.ended,
        "cdc/captured_at": record.captured,
        "cdc/applied_at": record.applied,
    }
    values: dict[str, Any] = {
        name: dg.MetadataValue.timestamp(moment)
        for name, moment in moments.items()
        if moment is not None
    }
    if record.ended is not None and record.state != "planned":
        done = record.applied or datetime.now(UTC)
        values["cdc/lag_seconds"] = round(max(0.0, (done - record.ended).total_seconds()), 1)
    return values


def of_columns(columns: Sequence[ColumnReport], upstream: dg.AssetKey | None) -> dict[str, Any]:
    """A table's columns with Oracle's types, and the columns upstream that they come from (those of
    the same name)."""
    if not columns:
        return {}
    values: dict[str, Any] = {"dagster/column_schema": column_schema(columns)}
    if upstream is not None:
        values["dagster/column_lineage"] = dg.TableColumnLineage(
            {
                column.name: [dg.TableColumnDep(asset_key=upstream, column_name=column.name)]
                for column in columns
            }
        )
    return values


def of_rows(rows: int | None) -> dict[str, Any]:
    """Rows of a Delta table; nothing where they are not known."""
    return {} if rows is None else {"dagster/row_count": rows}


def column_schema(columns: Sequence[ColumnReport]) -> dg.TableSchema:
    """A table's columns with Oracle's types."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                column.name,
                type=column.type,
                description="part of the key" if column.in_key else None,
                constraints=dg.TableColumnConstraints(nullable=column.nullable),
            )
            for column in columns
        ]
    )
