"""The jobs of a source: windows, a snapshot that is asked for by hand, and the comparison with
Oracle."""

# No postponed annotations in this module: Dagster wants the context's class itself, not its name.

from typing import Any

import dagster as dg
from pydantic import Field

from assets.history import add_partitions
from assets.protocols import Opener
from assets.resource import RedolakeResource, dagster_failures
from assets.runs import MAINTAIN_TAG, SOURCE_TAG
from assets.settings import MaintainScheduleConfig, ReconcileScheduleConfig
from assets.streams import show_streams
from assets.translator import Translator
from assets.waiting import window_keys
from cdc_core.config import SourceConfig
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import TableMaintained
from cdc_core.model.signals import Signal
from cdc_core.model.wording import counted

EXECUTORS = {"in_process": dg.in_process_executor, "multiprocess": dg.multiprocess_executor}


class StartSnapshot(dg.Config):
    """Which tables to read."""

    tables: list[str] = Field(
        default=[],
        description="Each table to read again, as OWNER.TABLE. Empty: all tables that have no "
        "snapshot yet.",
    )
    condition: str = Field(
        default="",
        description="An SQL condition, for example AMOUNT > 100: only rows that match are read. "
        "Requires tables.",
    )


def asset_jobs(
    config: SourceConfig,
    names: Translator,
    checks: dg.AssetChecksDefinition,
    maintain: dg.JobDefinition,
) -> dg.Definitions:
    """The job over windows, the comparison with Oracle, and the schedules of the latter and of the
    maintenance."""
    options = names.options
    executor = EXECUTORS[options.executor]
    windows = dg.define_asset_job(
        windows_job_name(names),
        selection=dg.AssetSelection.assets(*sorted(window_keys(config, names))),
        tags={SOURCE_TAG: names.source, **options.run_tags},
        executor_def=executor,
        description="Captures and applies windows. The windows sensor requests its runs. Launched for a "
        "range of old windows, it replays them.",
    )
    reconcile = dg.define_asset_job(
        f"{names.source}_reconcile",
        selection=dg.AssetSelection.checks(checks),
        tags=dict(options.run_tags),
        executor_def=executor,
        description="Compares every mirror with Oracle AS OF its SCN, in all rows and columns.",
    )
    schedules = [
        *_nightly(reconcile.name, options.reconcile, "Compares every mirror with Oracle."),
        *_nightly(
            maintain.name, options.maintain, "Compacts and cleans up every mirror and change log."
        ),
    ]
    return dg.Definitions(jobs=[windows, reconcile, maintain], schedules=schedules)


def _nightly(
    job: str,
    options: ReconcileScheduleConfig | MaintainScheduleConfig,
    description: str,
) -> list[dg.ScheduleDefinition]:
    """A job's schedule; none where the configuration wants none."""
    if options.cron is None:
        return []
    on, off = dg.DefaultScheduleStatus.RUNNING, dg.DefaultScheduleStatus.STOPPED
    schedule = dg.ScheduleDefinition(
        name=f"{job}_nightly",
        job_name=job,
        cron_schedule=options.cron,
        execution_timezone=options.timezone,
        default_status=on if options.enabled else off,
        description=description,
    )
    return [schedule]


def windows_job_name(names: Translator) -> str:
    """The job that the windows sensor requests."""
    return f"{names.source}_windows"


def snapshot_job(
    source: SourceConfig, names: Translator, open_pipeline: Opener
) -> dg.JobDefinition:
    """Plan a snapshot; the snapshots sensor then runs its chunks."""

    @dg.op(
        name=f"{names.source}_plan_snapshot",
        description="Chooses the SCN and the chunks of each table, and adds the chunks as partitions.",
        retry_policy=names.retries,
    )
    def plan_snapshot(
        context: dg.OpExecutionContext, config: StartSnapshot, redolake: RedolakeResource
    ) -> None:
        with dagster_failures(context, names.retries):
            pipeline = redolake.source(names.source, open_pipeline)
            tables = [TableId.parse(text) for text in config.tables]
            made = pipeline.decision() if tables else pipeline.begin()
            keys = pipeline.start_snapshot(tables or None, condition=config.condition or None)
            add_partitions(context.instance, pipeline.records, source, names)
            captured = [one.table for one in source.tables]
            show_streams(context.instance, pipeline.records, names, captured)
        context.log.info(
            f"{made}; {counted(len(keys), 'chunk')} planned; the snapshots sensor runs them"
        )
        context.add_output_metadata({"cdc/decision": str(made), "cdc/chunks": len(keys)})

    @dg.job(
        name=f"{names.source}_start_snapshot",
        description="Plans the first snapshot of all tables, or a new one of some tables. The snapshots "
        "sensor then requests runs that read its chunks.",
        tags={"cdc/plan": names.source, **names.options.run_tags},
    )
    def start_snapshot() -> None:
        plan_snapshot()

    return start_snapshot


class SendSignal(dg.Config):
    """A signal in Debezium's format. The launchpad's defaults name no table: Redolake rejects
    them until you add one."""

    type: str = Field(
        default="execute-snapshot",
        description="The type of the signal: execute-snapshot, stop-snapshot, pause-snapshot, "
        "resume-snapshot, and others.",
    )
    data: dict[str, Any] = Field(
        default={"data-collections": []},
        description='The data of the signal, for example {"data-collections": ["SHOP.ORDERS"]}.',
    )
    id: str = Field(
        default="",
        description="The id of the signal. Redolake processes each id once. Empty: the id of the "
        "run.",
    )


def signal_job(names: Translator, open_pipeline: Opener) -> dg.JobDefinition:
    """Send a signal and take it at once; the snapshots sensor then runs the chunks that it
    planned."""

    @dg.op(
        name=f"{names.source}_take_signal",
        description="Sends the signal and processes it. Fails if the signal is rejected.",
        retry_policy=names.retries,
    )
    def take_signal(
        context: dg.OpExecutionContext, config: SendSignal, redolake: RedolakeResource
    ) -> None:
        with dagster_failures(context, names.retries):
            pipeline = redolake.source(names.source, open_pipeline)
            signal = Signal(
                id=config.id or context.run_id,
                source=names.source,
                type=config.type,
                data=config.data,
                channel="dagster",
            )
            if not pipeline.add_signal(signal):
                context.log.info(f"signal {signal.id} was sent before; it is processed once")
            pipeline.take_signals()
            [found] = [one for one in pipeline.records.signals() if one.id == signal.id]
        if found.state == "rejected":
            raise dg.Failure(f"signal {found.id} was rejected: {found.reason}", allow_retries=False)
        why = f": {found.reason}" if found.reason else ""
        context.log.info(f"signal {found.id} is {found.state}{why}")

    @dg.job(
        name=f"{names.source}_send_signal",
        description="Sends a signal in Debezium's format, for example to start, stop, pause or resume "
        "snapshots.",
        tags={"cdc/signal": names.source, **names.options.run_tags},
    )
    def send_signal() -> None:
        take_signal()

    return send_signal


class SkipGap(dg.Config):
    """Which redo to skip."""

    replaced: bool = Field(
        default=False,
        description="The database was replaced permanently, by a restored clone or by another "
        "pluggable database of the same name: read the new one from now on.",
    )


def skip_gap_job(names: Translator, open_pipeline: Opener) -> dg.JobDefinition:
    """Let windows continue behind redo that is lost."""

    @dg.op(
        name=f"{names.source}_make_gap",
        description="Declares lost redo a gap, if a window is blocked by it.",
        retry_policy=names.retries,
    )
    def make_gap(
        context: dg.OpExecutionContext, config: SkipGap, redolake: RedolakeResource
    ) -> None:
        with dagster_failures(context, names.retries):
            pipeline = redolake.source(names.source, open_pipeline)
            found = pipeline.skip_gap(is_replaced=config.replaced)
        if found is None:
            context.log.info("nothing to skip: no window is blocked by lost redo")
            return
        window, tables = found
        if window is not None:
            context.log.warning(f"window {window.key} is now a gap")
        for table in tables:
            context.log.warning(f"{table.table} left the stream before the gap: {table.way_out}")

    @dg.job(
        name=f"{names.source}_skip_gap",
        description="Skips redo that Oracle no longer has: tables that need it leave the stream, and "
        "windows continue after it. Does nothing while Oracle has the redo.",
        tags={"cdc/gap": names.source, **names.options.run_tags},
    )
    def skip_gap() -> None:
        make_gap()

    return skip_gap


class MaintainTables(dg.Config):
    """What to maintain."""

    tables: list[str] = Field(
        default=[],
        description="Each table to maintain, as OWNER.TABLE. Empty: all captured tables.",
    )


def maintain_job(names: Translator, open_pipeline: Opener) -> dg.JobDefinition:
    """Keep mirrors and change logs quick; each of them shows what became of it as an
    observation."""

    @dg.op(
        name=f"{names.source}_maintain_tables",
        description="Maintains each table in turn, and reports each as an observation.",
        retry_policy=names.retries,
        pool=names.apply_pool,
    )
    def maintain_tables(
        context: dg.OpExecutionContext, config: MaintainTables, redolake: RedolakeResource
    ) -> None:
        failed = []
        with dagster_failures(context, names.retries):
            pipeline = redolake.source(names.source, open_pipeline)
            tables = [TableId.parse(text) for text in config.tables]
            for found in pipeline.maintain(tables or None):
                if found.left_alone:
                    context.log.warning(f"{found.table} was not maintained: {found.left_alone}")
                if found.is_failed:
                    failed.append(str(found.table))
                for one in found.done:
                    context.log_event(_observation(names.key(one.layer, one.table), one))
        if failed:
            raise dg.Failure(
                f"not maintained: {', '.join(failed)}; the log says why",
                allow_retries=False,
            )

    @dg.job(
        name=f"{names.source}_maintain",
        description="Compacts small files, turns deletion vectors on or off by size and workload, and "
        "removes old files.",
        tags={MAINTAIN_TAG: names.source, **names.options.run_tags},
    )
    def maintain() -> None:
        maintain_tables()

    return maintain


def _observation(key: dg.AssetKey, found: TableMaintained) -> dg.AssetObservation:
    return dg.AssetObservation(
        key,
        description=f"maintained: {found.files_before} files became {found.files_after}",
        metadata={
            "cdc/files_before": found.files_before,
            "cdc/files_after": found.files_after,
            "cdc/bytes_before": found.bytes_before,
            "cdc/bytes_after": found.bytes_after,
            "cdc/files_removed": found.files_removed,
            "cdc/commits_removed": found.commits_removed,
            "cdc/deletion_vectors": found.has_vectors,
            "cdc/seconds": round(found.seconds, 3),
        },
    )
