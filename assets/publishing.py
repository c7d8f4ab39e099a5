"""How do the events of the change logs get to Kafka: behind each run that brought some, and in one
that stays?"""

# No postponed annotations in this module: Dagster wants the context's class itself, not its name.

import dagster as dg

from assets.protocols import Opener
from assets.resource import RedolakeResource, dagster_failures
from assets.runs import SNAPSHOT_TAG, SOURCE_TAG
from assets.translator import Translator
from cdc_core.config import SourceConfig
from cdc_core.model.wording import counted
from cdc_core.steps import Pipeline

PUBLISHES = "cdc/publish"
"""Tag of runs that send events to Kafka."""


def report_published(
    context: dg.OpExecutionContext | dg.AssetExecutionContext,
    pipeline: Pipeline,
    names: Translator,
) -> None:
    """Send the events that wait, and show of each change log how many there were.

    Raises:
        CdcError: They cannot be sent.
    """
    for one in pipeline.publish():
        if one.table is None:
            context.log.info(f"{one.topic}: {counted(one.events, 'message')} published")
            continue
        facts = {"cdc/published": one.events, "cdc/delta_version": one.version}
        key = names.key("changelog", one.table)
        context.log_event(dg.AssetObservation(key, metadata=facts))


def publishing(config: SourceConfig, names: Translator, open_pipeline: Opener) -> dg.Definitions:
    """The job that sends events to Kafka, and the sensor that runs it behind each run of windows or
    chunks; nothing where the configuration does not say where Kafka is."""
    if config.publish.bootstrap_servers is None:
        return dg.Definitions()

    @dg.op(name=f"{names.source}_publish_events", retry_policy=names.retries)
    def publish_events(context: dg.OpExecutionContext, redolake: RedolakeResource) -> None:
        with dagster_failures(context, names.retries):
            report_published(context, redolake.source(names.source, open_pipeline), names)

    @dg.job(
        name=f"{names.source}_publish",
        description="Send the events of the change logs to Kafka, each once.",
        tags={PUBLISHES: names.source, **names.options.run_tags},
    )
    def publish() -> None:
        publish_events()

    @dg.run_status_sensor(
        name=f"{names.source}_publishes",
        run_status=dg.DagsterRunStatus.SUCCESS,
        request_job=publish,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Sends events to Kafka behind each run that brought some.",
    )
    def publishes(context: dg.RunStatusSensorContext) -> dg.RunRequest | dg.SkipReason:
        run = context.dagster_run
        if names.source not in (run.tags.get(SOURCE_TAG), run.tags.get(SNAPSHOT_TAG)):
            return dg.SkipReason("the run was not one of this source's windows or chunks")
        return dg.RunRequest(run_key=run.run_id)

    return dg.Definitions(jobs=[publish], sensors=[publishes])
