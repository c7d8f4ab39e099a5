"""The assets of the log path: redo windows in landing, and change logs and mirrors on the same
windows.

A table that left the stream, or was paused, is not materialized for the windows that it does not
take; the others are. A run takes a contiguous range of windows, and then those that come while it
stays (:mod:`assets.staying`).
"""

# No postponed annotations in this module: Dagster wants the classes themselves, not their names.

from collections.abc import Iterable, Iterator, Sequence

import dagster as dg

from assets.fleet import opened_siblings
from assets.protocols import Opener
from assets.resource import RedolakeResource, dagster_failures
from assets.staying import stay
from assets.streams import proof_check, stream_check, verdicts
from assets.translator import CODE_VERSION, Translator
from assets.waiting import CHANGED_TAG
from assets.window_steps import REPORTED, WindowApplication, capture_each, in_order
from cdc_core.config import SourceConfig
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import DeltaLayer
from cdc_core.steps import Pipeline
from cdc_core.steps.delta_logs import delta_uri, side_table_names, side_table_uri


def redo_windows(
    config: SourceConfig,
    names: Translator,
    open_pipeline: Opener,
    siblings: Sequence[Opener] = (),
) -> dg.AssetsDefinition:
    """The landing asset: mines the redo of all tables once per window.

    What it mines lands for its ``siblings`` as well, where they wait for a window with the
    same bounds.
    """

    @dg.multi_asset(
        name=f"{names.source}_capture",
        specs=[
            dg.AssetSpec(
                names.redo_key,
                deps=[names.key("oracle", table.table) for table in config.tables],
                group_name=names.group("landing"),
                kinds={"oracle", "parquet"},
                description="The redo of all captured tables, as it was read: immutable Parquet "
                "files with a manifest, one partition per window of commit SCNs. Each piece of redo "
                "is read from Oracle once, for all tables.",
                metadata={"cdc/source": names.source, "dagster/uri": config.landing.uri},
                code_version=CODE_VERSION,
                **names.common,
            )
        ],
        partitions_def=names.windows,
        backfill_policy=dg.BackfillPolicy.single_run(),
        retry_policy=names.retries,
        pool=names.capture_pool,
    )
    def capture(
        context: dg.AssetExecutionContext, redolake: RedolakeResource
    ) -> Iterator[dg.MaterializeResult]:
        with dagster_failures(context, names.retries), opened_siblings(siblings) as others:
            pipeline = redolake.source(names.source, open_pipeline)
            partitions = in_order(context, pipeline)
            for _ in capture_each(context, pipeline, others, names, partitions):
                pass
            yield dg.MaterializeResult(asset_key=names.redo_key, metadata=REPORTED)
            if context.run.asset_selection == {names.redo_key}:
                stay(context, pipeline, config, names, others)

    return capture


def lake_tables(
    config: SourceConfig,
    names: Translator,
    open_pipeline: Opener,
    siblings: Sequence[Opener] = (),
) -> dg.AssetsDefinition:
    """Change log and mirror of every table, and the side tables: one step, so one Spark session, of
    which any part can be chosen.

    The tables beside get a window's rows with the last table that takes the window, and are
    materialized then.

    At its end the step evaluates whether each table is in the stream (:mod:`assets.streams`); that
    check can be executed alone.
    """
    tables = [table.table for table in config.tables]

    @dg.multi_asset(
        name=f"{names.source}_apply",
        specs=[
            spec
            for table in tables
            for spec in (_changelog_spec(config, names, table), _mirror_spec(config, names, table))
        ]
        + _side_table_specs(config, names)
        + _views_specs(config, names),
        check_specs=[
            check(names, table) for table in tables for check in (stream_check, proof_check)
        ],
        partitions_def=names.windows,
        backfill_policy=dg.BackfillPolicy.single_run(),
        can_subset=True,
        retry_policy=names.retries,
        pool=names.apply_pool,
    )
    def apply(
        context: dg.AssetExecutionContext, redolake: RedolakeResource
    ) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:
        selected = context.selected_asset_keys
        chosen = [table for table in tables if selected & set(_lake_keys(names, table))]
        beside = {name: names.side_table_key(name) for name in side_table_names(config)}
        with dagster_failures(context, names.retries), opened_siblings(siblings) as others:
            pipeline = redolake.source(names.source, open_pipeline)
            changed_only = CHANGED_TAG in context.run.tags
            work = WindowApplication(
                context, pipeline, config, names, chosen, selected, changed_only
            )
            partitions = in_order(context, pipeline) if selected else []
            has_views = work.take_each(partitions, last=partitions[-1] if partitions else None)
            taken = work.having_all(partitions)
            for table in chosen:
                if table in taken:
                    for key in sorted(selected & set(_lake_keys(names, table))):
                        yield dg.MaterializeResult(asset_key=key, metadata=REPORTED)
            if all(work.finished_by_all(window) for window, _ in partitions):
                for key in sorted(selected & set(beside.values())):
                    yield dg.MaterializeResult(asset_key=key, metadata=REPORTED)
            if has_views:
                yield dg.MaterializeResult(asset_key=names.views_key, metadata=REPORTED)
            yield from _stream_results(pipeline, names, tables, context.selected_asset_check_keys)
            stay(context, pipeline, config, names, others)

    return apply


def _lake_keys(names: Translator, table: TableId) -> list[dg.AssetKey]:
    return [names.key("changelog", table), names.key("mirror", table)]


def _stream_results(
    pipeline: Pipeline,
    names: Translator,
    tables: Sequence[TableId],
    checks: Iterable[dg.AssetCheckKey],
) -> Iterator[dg.AssetCheckResult]:
    """The verdicts of the checks; none of the comparison of a table that was never compared."""
    found = verdicts(pipeline.records, names, tables)
    for check in sorted(checks):
        if check in found:
            yield found[check].as_result(check)


def _changelog_spec(config: SourceConfig, names: Translator, table: TableId) -> dg.AssetSpec:
    spec = names.spec("changelog", table)
    return spec.replace_attributes(
        skippable=True,
        deps=[
            dg.AssetDep(names.redo_key),
            dg.AssetDep(names.key("snapshot", table), partition_mapping=dg.AllPartitionMapping()),
        ],
    ).merge_attributes(metadata=_place(config, "changelog", table))


def _mirror_spec(config: SourceConfig, names: Translator, table: TableId) -> dg.AssetSpec:
    spec = names.spec("mirror", table)
    return spec.replace_attributes(
        skippable=True, deps=[names.key("changelog", table)]
    ).merge_attributes(metadata=_place(config, "mirror", table))


def _place(config: SourceConfig, layer: DeltaLayer, table: TableId) -> dict[str, str]:
    """Where a Delta table is, and its name in a catalog."""
    catalog = config.lake.catalog
    name = None if catalog is None else catalog.name_of(layer, config.name, table)
    found = {"dagster/uri": delta_uri(config, layer, table)}
    return found if name is None else {**found, "dagster/table_name": name}


def _side_table_specs(config: SourceConfig, names: Translator) -> list[dg.AssetSpec]:
    change_logs = [names.key("changelog", table.table) for table in config.tables]
    return [
        names.side_table_spec(name)
        .replace_attributes(
            skippable=True, deps=change_logs if name == "transactions" else [names.redo_key]
        )
        .merge_attributes(metadata={"dagster/uri": side_table_uri(config, name)})
        for name in side_table_names(config)
    ]


def _views_specs(config: SourceConfig, names: Translator) -> list[dg.AssetSpec]:
    if not config.lake.current_views.is_any:
        return []
    mirrors = [names.key("mirror", table.table) for table in config.tables]
    return [names.views_spec.replace_attributes(skippable=True, deps=mirrors)]
