"""The source's alerts in Dagster: checks of the asset ``<source>/database``, which a sensor
evaluates between runs. What concerns one table stands on its mirror (:mod:`assets.streams`)."""

# No postponed annotations in this module: Dagster wants the context's class itself, not its name.

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import dagster as dg

from assets.protocols import Opener
from assets.resource import RedolakeResource, dagster_failures
from assets.streams import Verdict, report_changed
from assets.translator import Translator
from cdc_core.config import SourceConfig
from cdc_core.model.alerts import Alert, AlertKind

CHECKS: dict[AlertKind, tuple[str, str]] = {
    "oracle": ("oracle_answers", "Redolake can connect to the database."),
    "window": ("windows_advance", "The next window can be captured and applied, and is no gap."),
    "archived_logs": (
        "archived_logs_kept",
        "Oracle will keep the archived logs that Redolake still has to read for at least "
        "alerts.archived_log_hours, judged by how it has deleted logs so far.",
    ),
    "lease": (
        "one_active_process",
        "One live process at most holds the lease on the source's windows: no dead process blocks "
        "them, and no two processes take the work from each other.",
    ),
    "lag": ("tables_keep_up", "No table is more than alerts.lag_minutes behind Oracle."),
}


def database_asset(config: SourceConfig, names: Translator) -> dg.AssetSpec:
    """The database as an external asset."""
    return dg.AssetSpec(
        names.database_key,
        group_name=names.group("oracle"),
        kinds={"oracle"},
        description="The Oracle database of this source. Its checks are the source's alerts, which "
        f"{names.source}_alerts_sensor evaluates.",
        metadata={"dagster/uri": f"oracle://{config.oracle.dsn}", "cdc/source": names.source},
        **names.common,
    )


def alert_checks(names: Translator, open_pipeline: Opener) -> dg.AssetChecksDefinition:
    """A check for each kind of alert."""

    @dg.multi_asset_check(
        name=f"{names.source}_alerts",
        specs=[
            dg.AssetCheckSpec(name, asset=names.database_key, description=description)
            for name, description in CHECKS.values()
        ],
        can_subset=True,  # else the UI executes none of them
        retry_policy=names.retries,
    )
    def evaluate(
        context: dg.AssetCheckExecutionContext, redolake: RedolakeResource
    ) -> Iterator[dg.AssetCheckResult]:
        with dagster_failures(context, names.retries):
            found = redolake.source(names.source, open_pipeline).alerts()
        for key, one in _verdicts(names, found).items():
            if key in context.selected_asset_check_keys:
                yield one.as_result(key)

    return evaluate


def alerts_sensor(names: Translator, open_pipeline: Opener) -> dg.SensorDefinition:
    """Evaluates the checks between runs, and sends notifications of what changed."""
    options = names.options.alerts
    on, off = dg.DefaultSensorStatus.RUNNING, dg.DefaultSensorStatus.STOPPED

    @dg.sensor(
        name=f"{names.source}_alerts_sensor",
        minimum_interval_seconds=options.interval_seconds,
        default_status=on if options.enabled else off,
        description="Evaluates the alerts, which are the checks of the asset "
        f"{names.source}/database: does Oracle answer, do windows advance, will archived logs last? "
        "Reports each alert that begins or ends, and sends notifications of it.",
    )
    def alerts(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        before = None if context.cursor is None else json.loads(context.cursor)
        with open_pipeline() as pipeline:
            found = pipeline.tell_changes([Alert(**one) for one in before or ()])
        was = {} if before is None else _verdicts(names, [Alert(**one) for one in before])
        events = [
            one.as_event(key)
            for key, one in _verdicts(names, found).items()
            if key not in was or was[key].description != one.description
        ]
        return dg.SensorResult(
            skip_reason="; ".join(one.what for one in found) or "all is well",
            asset_events=events,
            cursor=json.dumps([asdict(one) for one in found]),
        )

    return alerts


def show_alerts(instance: dg.DagsterInstance, names: Translator, found: Sequence[Alert]) -> int:
    """Report the checks where they differ from their last evaluation; return how many events were
    written."""
    return report_changed(instance, _verdicts(names, found))


def _verdicts(names: Translator, found: Sequence[Alert]) -> dict[dg.AssetCheckKey, Verdict]:
    return {
        dg.AssetCheckKey(names.database_key, name): _verdict(
            [one for one in found if one.kind == kind]
        )
        for kind, (name, _) in CHECKS.items()
    }


def _verdict(found: Sequence[Alert]) -> Verdict:
    if not found:
        return Verdict(True, "all is well")
    is_error = any(one.is_error for one in found)
    return Verdict(
        False,
        "; ".join(one.what for one in found),
        dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN,
        {"cdc/what_to_do": found[0].what_to_do},
    )
