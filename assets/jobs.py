"""The jobs of a source: windows, a snapshot that is asked for by hand, and the comparison with Oracle."""

# No postponed annotations in this module: Dagster wants the context's class itself, not its name.

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from pydantic import Field

from assets.history import add_partitions
from assets.resource import dagster_failures, pipeline_of
from assets.runs import SOURCE_TAG
from assets.sensors import window_keys
from assets.translator import Translator
from cdc_core.config import SourceConfig
from cdc_core.model.identifiers import TableId

RECONCILE_CRON = "30 4 * * *"


class StartSnapshot(dg.Config):
    """What to snapshot."""

    tables: list[str] = Field(
        default=[],
        description="OWNER.TABLE of each table to read again. Empty: the first snapshot of all tables that have none.",
    )
    condition: str | None = Field(
        default=None,
        description="Read only rows for which this is true, for example AMOUNT > 100. Needs tables.",
    )


def windows_job(config: SourceConfig, names: Translator) -> UnresolvedAssetJobDefinition:
    """Redo windows, change logs and mirrors over a range of windows."""
    return dg.define_asset_job(
        f"{names.source}_windows",
        selection=dg.AssetSelection.assets(*sorted(window_keys(config, names))).without_checks(),
        tags={SOURCE_TAG: names.source},
        description="Capture and apply windows. The windows sensor requests it; by hand it takes any range.",
    )


def reconcile_job(
    names: Translator, checks: dg.AssetChecksDefinition
) -> UnresolvedAssetJobDefinition:
    """Compare all mirrors with Oracle."""
    return dg.define_asset_job(
        f"{names.source}_reconcile",
        selection=dg.AssetSelection.checks(checks),
        description="Compare every mirror with Oracle AS OF the position, all rows and all columns.",
    )


def reconcile_schedule(
    names: Translator, job: UnresolvedAssetJobDefinition
) -> dg.ScheduleDefinition:
    """The comparison, nightly; off until it is switched on."""
    return dg.ScheduleDefinition(
        name=f"{names.source}_reconcile_nightly",
        job=job,
        cron_schedule=RECONCILE_CRON,
        description="Compares every mirror with Oracle, once a night.",
    )


def snapshot_job(source: SourceConfig, names: Translator) -> dg.JobDefinition:
    """Plan a snapshot; the snapshots sensor then runs its chunks."""

    @dg.op(name=f"{names.source}_plan_snapshot", required_resource_keys={names.resource_key})
    def plan_snapshot(context: dg.OpExecutionContext, config: StartSnapshot) -> None:
        pipeline = pipeline_of(context, names.resource_key)
        with dagster_failures():
            tables = [TableId.parse(text) for text in config.tables]
            keys = pipeline.start_snapshot(tables or None, condition=config.condition)
            add_partitions(context.instance, pipeline.store, source, names)
        context.log.info(f"{len(keys)} chunks planned; the snapshots sensor runs them")

    @dg.job(
        name=f"{names.source}_start_snapshot",
        description="Plan the first snapshot, or an ad hoc one of some tables. The snapshots sensor runs its chunks.",
        tags={"cdc/plan": names.source},
    )
    def start_snapshot() -> None:
        plan_snapshot()

    return start_snapshot
