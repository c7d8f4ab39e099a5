"""Which events does OpenLineage get of windows and chunks that were applied?

Two jobs per table: from the Oracle table to the change log, and from there to the mirror. Each
applied window or chunk is a run of both; a table that leaves its stream is a run that failed. Runs
are named by source, table and window, so a repeated window repeats its run.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from cdc_core.config import SourceConfig
from cdc_core.errors import ConfigError, PreflightError
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import StepReport
from cdc_core.schema.table import TableSchema
from cdc_core.steps.definition_changes import type_text
from cdc_core.steps.delta_logs import delta_path

_LOG = logging.getLogger(__name__)
_PRODUCER = "urn:redolake"
"""Whose events these are: OpenLineage asks for a URI."""
_EASY_CONNECT = re.compile(r"(?:tcps?://)?(?P<host>[^/()@\s]+)/(?P<service>[A-Za-z0-9_.$#-]+)")
SchemaOf = Callable[[TableId], TableSchema | None]


class Lineage:
    """Tells OpenLineage's client what was applied. ``schema_of`` gives a table's newest
    definition."""

    def __init__(self, config: SourceConfig, schema_of: SchemaOf) -> None:
        self._config, self._schema_of = config, schema_of
        self._client = _client()

    def close(self) -> None:
        """Send what waits; what cannot be sent is a line in the log. May be called twice."""
        try:
            self._client.close(timeout=10.0)
        except Exception as error:  # a transport raises what it likes
            _LOG.warning("lineage was not delivered: %s", type(error).__name__)

    def report(self, report: StepReport) -> None:
        """Tell a finished step. What the transport cannot deliver is a line in the log, and never
        stops the pipeline."""
        if report.repeated:
            return
        try:
            for event in self._events(report):
                self._client.emit(event)
        except Exception as error:  # a transport raises what it likes
            _LOG.warning("lineage was not delivered: %s", type(error).__name__)

    def _events(self, report: StepReport) -> Iterator[Any]:
        from openlineage.client.event_v2 import RunState

        end = datetime.now(UTC)
        start = end - timedelta(seconds=report.seconds)
        is_applied = report.kind in ("window-applied", "chunk-applied")
        for one in report.tables if is_applied else ():
            if (
                one.changes
                and not one.skipped
                and (schema := self._schema_of(one.table)) is not None
            ):
                for layer in ("changelog", "mirror"):
                    yield self._event(RunState.START, start, report, schema, layer)
                    yield self._event(RunState.COMPLETE, end, report, schema, layer, one.changes)
        for left in report.stopped:
            if (schema := self._schema_of(left.table)) is not None:
                yield self._event(RunState.START, start, report, schema, "changelog")
                why = left.reason
                yield self._event(RunState.FAIL, end, report, schema, "changelog", why=why)

    def _event(
        self,
        state: Any,
        at: datetime,
        report: StepReport,
        schema: TableSchema,
        layer: str,
        rows: int | None = None,
        why: str | None = None,
    ) -> Any:
        from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent
        from openlineage.client.facet_v2 import error_message_run, output_statistics_output_dataset

        table, how = schema.table, self._config.openlineage
        oracle, log = self._oracle(table), _delta(delta_path(self._config, "changelog", table))
        mirror = _delta(delta_path(self._config, "mirror", table))
        taken, given = (oracle, log) if layer == "changelog" else (log, mirror)
        name = f"redolake/{self._config.name}/{table}/{report.kind}/{report.key}/{layer}"
        facets: dict[str, Any] = {}
        if why is not None:
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(why, "Python")
        statistics: dict[str, Any] = {}
        if rows is not None:
            facet = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet
            statistics["outputStatistics"] = facet(rowCount=rows)
        return RunEvent(
            eventTime=at.isoformat(),
            eventType=state,
            producer=_PRODUCER,
            run=Run(str(uuid.uuid5(uuid.NAMESPACE_URL, name)), facets),
            job=Job(how.namespace, f"{self._config.name}.{table}.{layer}"),
            inputs=[InputDataset(*taken)],
            outputs=[
                OutputDataset(*given, statistics, facets=_columns(schema, layer, taken)),
            ],
        )

    def _oracle(self, table: TableId) -> tuple[str, str]:
        """Namespace and name of a table in Oracle, as OpenLineage wants them."""
        found = _EASY_CONNECT.fullmatch(self._config.oracle.dsn)
        host = found["host"] if found else "database"
        service = found["service"] if found else self._config.oracle.pdb or self._config.name
        return f"oracle://{host}", f"{service}.{table.owner}.{table.name}"


def _delta(path: str) -> tuple[str, str]:
    """Namespace and name of a folder."""
    scheme, _, rest = path.rpartition("://")
    bucket, _, key = rest.partition("/")
    return (f"{scheme}://{bucket}", key) if scheme and scheme != "file" else ("file", rest)


def _columns(schema: TableSchema, layer: str, taken: tuple[str, str]) -> dict[str, Any]:
    """The columns of a Delta table, and of which column each is made: the change log calls it by
    its first name for life, the mirror by its present one."""
    from openlineage.client.facet_v2 import column_lineage_dataset as lineage
    from openlineage.client.facet_v2 import schema_dataset

    masked, fields, columns = dict(schema.masked), {}, []
    for column in schema.columns:
        logged = f"after.{column.stored_as}"
        source, target = (column.source, logged) if layer == "changelog" else (logged, column.name)
        is_masked = layer == "changelog" and column.name in masked
        made = lineage.Transformation(
            "DIRECT", "TRANSFORMATION" if is_masked else "IDENTITY", masking=is_masked
        )
        fields[target] = lineage.Fields([lineage.InputField(*taken, source, [made])])
        columns.append(schema_dataset.SchemaDatasetFacetFields(target, type_text(column)))
    return {
        "schema": schema_dataset.SchemaDatasetFacet(columns),
        "columnLineage": lineage.ColumnLineageDatasetFacet(fields),
    }


def _client() -> Any:
    try:
        from openlineage.client import OpenLineageClient
    except ImportError as error:
        raise PreflightError(
            "OpenLineage's client is not installed", hint="pip install 'redolake[openlineage]'"
        ) from error
    try:
        return OpenLineageClient()
    except Exception as error:  # of its own configuration, of whichever transport
        raise ConfigError(
            "OpenLineage's client does not take its configuration",
            hint="Check openlineage.yml, or OPENLINEAGE_URL and its kin.",
            reason=type(error).__name__,
        ) from error
