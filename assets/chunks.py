"""The assets of the snapshot path: the Oracle tables, and their chunks."""

# No postponed annotations in this module: Dagster wants the context's class itself, not its name.

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import dagster as dg

from assets import metadata
from assets.protocols import Opener
from assets.resource import RedolakeResource, dagster_failures
from assets.streams import show_streams
from assets.translator import Translator
from assets.window_steps import REPORTED, finished
from cdc_core.config import SourceConfig
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import StepReport
from cdc_core.model.scn import Scn


def oracle_tables(config: SourceConfig, names: Translator) -> list[dg.AssetSpec]:
    """The captured tables as external assets: the beginning of the lineage."""
    return [
        names.spec("oracle", table.table).merge_attributes(
            metadata={"dagster/uri": f"oracle://{config.oracle.dsn}/{table.table}"}
        )
        for table in config.tables
    ]


def snapshot_chunks(
    names: Translator, table: TableId, open_pipeline: Opener
) -> dg.AssetsDefinition:
    """The chunks of one table: read from Oracle, landed, applied to change log and mirror. A run
    over several of them reads ``snapshot.sessions`` at once.

    A table that its snapshot stops fails the run; its check ``in_the_stream`` is reported in either
    case.
    """
    key = names.key("snapshot", table)

    @dg.multi_asset(
        name=f"{names.name(table)}_read_chunks",
        specs=[names.spec("snapshot", table).replace_attributes(deps=[names.key("oracle", table)])],
        partitions_def=names.chunks(table),
        backfill_policy=dg.BackfillPolicy.single_run(),
        retry_policy=names.retries,
        pool=names.snapshot_pool,
    )
    def snapshot(
        context: dg.AssetExecutionContext, redolake: RedolakeResource
    ) -> Iterator[dg.MaterializeResult]:
        with dagster_failures(context, names.retries), ExitStack() as ended:
            pipeline = redolake.source(names.source, open_pipeline)
            ended.callback(show_streams, context.instance, pipeline.records, names, [table])
            partitions = {ChunkKey.parse(table, key).key: key for key in context.partition_keys}
            columns: dict[str, Any] = {}
            landed: dict[str, StepReport] = {}
            keys = [ChunkKey.parse(table, key) for key in partitions]
            for step in pipeline.carry_chunks(keys):
                if step.kind == "chunk-landed":
                    landed[step.key] = step
                if step.kind != "chunk-applied":
                    continue
                chunk = ChunkKey.parse(table, step.key)
                of_snapshot = pipeline.records.chunks(table, snapshot_id=chunk.snapshot_id)
                if not columns and step.scn_high is not None:
                    found = pipeline.records.columns(table, Scn(step.scn_high))
                    columns = metadata.of_columns(found, names.key("oracle", table))
                record = next(one for one in of_snapshot if one.number == chunk.number)
                values = _of_steps(landed[step.key], step) | metadata.of_chunk(
                    record, len(of_snapshot), step.rows
                )
                values |= metadata.of_progress(
                    pipeline.records.progress_of(table, chunk.snapshot_id)
                )
                finished(context, key, partitions[step.key], values | columns)
        if columns:
            seen = {"dagster/column_schema": columns["dagster/column_schema"]}
            context.log_event(dg.AssetObservation(names.key("oracle", table), metadata=seen))
        yield dg.MaterializeResult(asset_key=key, metadata=REPORTED)

    return snapshot


def _of_steps(landed: StepReport, applied: StepReport) -> dict[str, Any]:
    """What both steps on a chunk say of it."""
    return metadata.of_report(landed) | {
        "cdc/seconds_landing": round(landed.seconds, 3),
        "cdc/seconds_lake": round(applied.seconds, 3),
        "cdc/seconds": round(landed.seconds + applied.seconds, 3),
    }
