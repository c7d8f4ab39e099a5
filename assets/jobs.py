"""The jobs of a source: windows, a snapshot that is asked for by hand, and the comparison with Oracle."""

# No postponed annotations in this module: Dagster wants the context's class itself, not its name.

import dagster as dg
from pydantic import Field

from assets.history import add_partitions
from assets.protocols import Opener
from assets.resource import RedolakeResource, dagster_failures
from assets.runs import SOURCE_TAG
from assets.sensors import window_keys
from assets.streams import show_streams
from assets.translator import Translator
from cdc_core.config import SourceConfig
from cdc_core.model.identifiers import TableId

EXECUTORS = {"in_process": dg.in_process_executor, "multiprocess": dg.multiprocess_executor}


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


def asset_jobs(
    config: SourceConfig, names: Translator, checks: dg.AssetChecksDefinition
) -> dg.Definitions:
    """The job over windows, the comparison with Oracle, and the schedule of the latter."""
    options = names.options
    executor = EXECUTORS[options.executor]
    windows = dg.define_asset_job(
        windows_job_name(names),
        selection=dg.AssetSelection.assets(*sorted(window_keys(config, names))),
        tags={SOURCE_TAG: names.source, **options.run_tags},
        executor_def=executor,
        description="Capture and apply windows. The windows sensor requests it; by hand it takes any range.",
    )
    reconcile = dg.define_asset_job(
        f"{names.source}_reconcile",
        selection=dg.AssetSelection.checks(checks),
        tags=dict(options.run_tags),
        executor_def=executor,
        description="Compare every mirror with Oracle AS OF the position, all rows and all columns.",
    )
    schedules = []
    if options.reconcile.cron is not None:
        on, off = dg.DefaultScheduleStatus.RUNNING, dg.DefaultScheduleStatus.STOPPED
        schedule = dg.ScheduleDefinition(
            name=f"{names.source}_reconcile_nightly",
            job=reconcile,
            cron_schedule=options.reconcile.cron,
            execution_timezone=options.reconcile.timezone,
            default_status=on if options.reconcile.enabled else off,
            description="Compares every mirror with Oracle.",
        )
        schedules.append(schedule)
    return dg.Definitions(jobs=[windows, reconcile], schedules=schedules)


def windows_job_name(names: Translator) -> str:
    """The job that the windows sensor requests."""
    return f"{names.source}_windows"


def snapshot_job(
    source: SourceConfig, names: Translator, open_pipeline: Opener
) -> dg.JobDefinition:
    """Plan a snapshot; the snapshots sensor then runs its chunks."""

    @dg.op(name=f"{names.source}_plan_snapshot", retry_policy=names.retries)
    def plan_snapshot(
        context: dg.OpExecutionContext, config: StartSnapshot, redolake: RedolakeResource
    ) -> None:
        with dagster_failures():
            pipeline = redolake.source(names.source, open_pipeline)
            tables = [TableId.parse(text) for text in config.tables]
            keys = pipeline.start_snapshot(tables or None, condition=config.condition)
            add_partitions(context.instance, pipeline.records, source, names)
            captured = [one.table for one in source.tables]
            show_streams(context.instance, pipeline.records, names, captured)
        context.log.info(f"{len(keys)} chunks planned; the snapshots sensor runs them")

    @dg.job(
        name=f"{names.source}_start_snapshot",
        description="Plan the first snapshot, or an ad hoc one of some tables. The snapshots sensor runs its chunks.",
        tags={"cdc/plan": names.source, **names.options.run_tags},
    )
    def start_snapshot() -> None:
        plan_snapshot()

    return start_snapshot
