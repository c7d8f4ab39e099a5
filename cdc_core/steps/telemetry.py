"""How do traces and numbers get to a collector of OpenTelemetry?

Each finished step is told with the durations that its report has anyway, so a trace costs nothing
while the step works. All steps of one window, in whichever process, are one trace: its identifier
is a digest of source and window.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from cdc_core.config.metrics import TelemetryConfig
from cdc_core.errors import CdcError, PreflightError
from cdc_core.model.metrics import METRICS, Metric, Sample
from cdc_core.model.reports import StepReport

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import Tracer

_LOG = logging.getLogger(__name__)
Measure = Callable[[], Sequence[Sample]]
_KEPT_SECONDS = 5.0
"""One collection asks each instrument by itself: they share what was measured so long ago."""
_NAMES = {
    "window-captured": "capture window",
    "window-applied": "apply window",
    "chunk-landed": "read chunk",
    "chunk-applied": "apply chunk",
}
"""Steps that are traced, and the names of their spans."""


class Telemetry:
    """What one source tells a collector. ``close`` sends what waits."""

    def __init__(self, source: str, how: TelemetryConfig) -> None:
        _require()
        self._source, self._how = source, how
        self._open = ExitStack()
        self._tracer = self._opened_tracer()

    def close(self) -> None:
        """Send what waits, and end; what cannot be sent is a line in the log. May be called
        twice."""
        try:
            self._open.close()
        except Exception as error:  # the packages raise no class of their own
            _LOG.warning("telemetry was not delivered: %s", type(error).__name__)

    def report(self, report: StepReport) -> None:
        """Tell a finished step: a span, with spans of its parts."""
        if report.kind not in _NAMES or report.is_quiet:
            return
        end = time.time_ns()
        start = end - _nanoseconds(report.seconds)
        attributes = {
            "redolake.source": self._source,
            "redolake.key": report.key,
            "redolake.rows": report.rows,
            "redolake.bytes": report.bytes,
            "redolake.repeated": report.repeated,
        }
        if report.table is not None:
            attributes["redolake.table"] = str(report.table)
        step = self._span(_NAMES[report.kind], self._trace_of(report), start, attributes)
        mined = start
        for part in ("start", "fetch"):
            if milliseconds := report.facts.get(f"mining_{part}_ms"):
                mined = self._part(f"LogMiner {part}", step, mined, milliseconds / 1000)
        for one in report.tables:
            named = {"redolake.table": str(one.table), "redolake.changes": one.changes}
            # Tables may be applied side by side: each ends with the step at the latest.
            begun = max(start, end - _nanoseconds(one.seconds))
            table = self._span(f"apply {one.table}", step, begun, named)
            staged = self._part("stage", table, begun, one.stage_seconds)
            self._part("merge", table, staged, one.merge_seconds)
            table.end(begun + _nanoseconds(one.seconds))
        step.end(end)

    def measure(self, measure: Measure) -> None:
        """Give the collector the metrics, every ``interval_seconds``, until ``close``."""
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

        exporter = OTLPMetricExporter(endpoint=f"{self._address}/v1/metrics")
        interval = self._how.interval_seconds * 1000
        reader = PeriodicExportingMetricReader(exporter, export_interval_millis=interval)
        provider = MeterProvider([reader], resource=self._resource())
        self._open.callback(provider.shutdown)
        meter = provider.get_meter("redolake")
        measured = _Measured(measure)
        for metric in METRICS.values():
            is_counter = metric.kind == "counter"
            create = meter.create_observable_counter if is_counter else meter.create_observable_gauge  # fmt: skip
            observe = measured.observer(metric, self._source)
            create(metric.name, callbacks=[observe], description=metric.help)

    @property
    def _address(self) -> str:
        return str(self._how.endpoint).rstrip("/")

    def _resource(self) -> Resource:
        from opentelemetry.sdk.resources import Resource

        return Resource.create(
            {"service.name": self._how.service_name, "redolake.source": self._source}
        )

    def _opened_tracer(self) -> Tracer:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        provider = TracerProvider(resource=self._resource(), shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=f"{self._address}/v1/traces")
        provider.add_span_processor(BatchSpanProcessor(exporter))
        self._open.callback(provider.shutdown)
        tracer: Any = provider.get_tracer("redolake")
        return tracer  # type: ignore[no-any-return]

    def _trace_of(self, report: StepReport) -> Any:
        """A parent that all steps of a window or chunk have."""
        from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

        digest = hashlib.sha256(f"{self._source} {report.key}".encode()).digest()
        trace, span = int.from_bytes(digest[:16], "big"), int.from_bytes(digest[16:24], "big")
        flags = TraceFlags(TraceFlags.SAMPLED)
        return NonRecordingSpan(SpanContext(trace, span, is_remote=True, trace_flags=flags))

    def _span(self, name: str, parent: Any, start: int, attributes: dict[str, Any]) -> Any:
        from opentelemetry.trace import set_span_in_context

        context = set_span_in_context(parent)
        return self._tracer.start_span(name, context, start_time=start, attributes=attributes)

    def _part(self, name: str, parent: Any, start: int, seconds: float) -> int:
        """A span without parts of its own; when it ended."""
        end = start + _nanoseconds(seconds)
        if seconds:
            self._span(name, parent, start, {}).end(end)
        return end


class _Measured:
    """The newest numbers, for all instruments of one collection."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self._at, self._samples = float("-inf"), list[Sample]()

    def observer(self, metric: Metric, source: str) -> Callable[[Any], Iterable[Any]]:
        """What gives one instrument its values. A source that cannot be measured has none."""
        from opentelemetry.metrics import Observation

        def observe(_: Any) -> Iterator[Any]:
            for one in self._now():
                if one.metric is metric:
                    labels = dict(zip(metric.labels, one.labels, strict=True))
                    yield Observation(one.value, {"source": source, **labels})

        return observe

    def _now(self) -> list[Sample]:
        if time.monotonic() - self._at > _KEPT_SECONDS:
            try:
                self._samples = list(self._measure())
            except CdcError:
                self._samples = []
            self._at = time.monotonic()
        return self._samples


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1_000_000_000)


def _require() -> None:
    try:
        import opentelemetry.exporter.otlp.proto.http
        import opentelemetry.sdk.trace  # noqa: F401
    except ImportError as error:
        raise PreflightError(
            "OpenTelemetry's packages are not installed",
            hint="pip install 'redolake[opentelemetry]'",
        ) from error
