"""The assets of the snapshot path: the Oracle tables, and their chunks."""

# No postponed annotations in this module: Dagster wants the context's class itself, not its name.

from collections.abc import Iterator

import dagster as dg

from assets import metadata
from assets.resource import dagster_failures, pipeline_of
from assets.translator import Translator
from assets.windows import finished, lake_uri
from cdc_core.config import SourceConfig, TableConfig
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId


def oracle_tables(config: SourceConfig, names: Translator) -> list[dg.AssetSpec]:
    """The captured tables as external assets: the beginning of the lineage."""
    return [
        names.spec("oracle", table.table).merge_attributes(
            metadata={"dagster/uri": f"oracle://{config.oracle.dsn}/{table.table}"}
        )
        for table in config.tables
    ]


def snapshot_chunks(
    config: SourceConfig, names: Translator, table_config: TableConfig
) -> dg.AssetsDefinition:
    """The chunks of one table: read from Oracle, landed, applied to change log and mirror."""
    table = table_config.table
    key = names.key("snapshot", table)

    @dg.multi_asset(
        name=f"{names.name(table)}_snapshot",
        specs=[
            names.spec("snapshot", table)
            .replace_attributes(deps=[names.key("oracle", table)])
            .merge_attributes(metadata={"dagster/uri": lake_uri(config, "mirror", table)})
        ],
        partitions_def=names.chunks(table),
        backfill_policy=dg.BackfillPolicy.single_run(),
        required_resource_keys={names.resource_key},
        pool=names.snapshot_pool,
    )
    def snapshot(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult]:
        pipeline = pipeline_of(context, names.resource_key)
        with dagster_failures():
            keys = chunks_in_order(table, list(context.partition_keys))
            scn = None
            for chunk in keys:
                landed = pipeline.snapshot_chunk(chunk)
                applied = pipeline.apply_chunk(chunk)
                scn = applied.scn_high
                values = metadata.of_report(landed) | {
                    "cdc/seconds_landing": round(landed.seconds, 3),
                    "cdc/seconds_lake": round(applied.seconds, 3),
                    "cdc/seconds": round(landed.seconds + applied.seconds, 3),
                    "dagster/partition_row_count": landed.rows,
                }
                finished(context, key, chunk.key, values)
            schema = pipeline.store.schema_at(names.source, table, scn) if scn else None  # type: ignore[arg-type]
        if schema is not None:
            context.log_event(
                dg.AssetObservation(
                    names.key("oracle", table), metadata=metadata.of_schema(schema, None)
                )
            )
        yield dg.MaterializeResult(
            asset_key=key, metadata=metadata.of_schema(schema, names.key("oracle", table))
        )

    return snapshot


def chunks_in_order(table: TableId, keys: list[str]) -> list[ChunkKey]:
    """The chunks of a run, by snapshot and number.

    Raises:
        PartitionKeyError: A key is not a chunk.
    """
    return sorted(ChunkKey.parse(table, key) for key in keys)
