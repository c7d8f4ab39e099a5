"""The assets of the snapshot path: the Oracle tables, and their chunks."""

# No postponed annotations in this module: Dagster wants the context's class itself, not its name.

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import dagster as dg

from assets import metadata
from assets.protocols import Opener
from assets.resource import RedolakeResource, dagster_failures
from assets.streams import show_streams
from assets.translator import Translator
from assets.windows import REPORTED, finished
from cdc_core.config import SourceConfig
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.steps.overtaken import look_again


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
    """The chunks of one table: read from Oracle, landed, applied to change log and mirror.

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
            columns: dict[str, Any] = {}
            for chunk, partition in chunks_in_order(table, list(context.partition_keys)):
                landed = look_again(partial(pipeline.snapshot_chunk, chunk))
                applied = look_again(partial(pipeline.apply_chunk, chunk))
                of_snapshot = pipeline.records.chunks(table, snapshot_id=chunk.snapshot_id)
                if not columns and applied.scn_high is not None:
                    found = pipeline.records.columns(table, Scn(applied.scn_high))
                    columns = metadata.of_columns(found, names.key("oracle", table))
                record = next(one for one in of_snapshot if one.number == chunk.number)
                values = metadata.of_report(landed) | {
                    **metadata.of_chunk(record, len(of_snapshot), landed.rows),
                    "cdc/seconds_landing": round(landed.seconds, 3),
                    "cdc/seconds_lake": round(applied.seconds, 3),
                    "cdc/seconds": round(landed.seconds + applied.seconds, 3),
                }
                finished(context, key, partition, values | columns)
        if columns:
            seen = {"dagster/column_schema": columns["dagster/column_schema"]}
            context.log_event(dg.AssetObservation(names.key("oracle", table), metadata=seen))
        yield dg.MaterializeResult(asset_key=key, metadata=REPORTED)

    return snapshot


def chunks_in_order(table: TableId, keys: list[str]) -> list[tuple[ChunkKey, str]]:
    """The chunks of a run with their partition keys, by snapshot and number.

    Raises:
        PartitionKeyError: A key is not a chunk.
    """
    return sorted((ChunkKey.parse(table, key), key) for key in keys)
