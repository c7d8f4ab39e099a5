"""Traces and metrics reach a collector of OpenTelemetry: as many spans as there was work, with its durations, and the numbers of the page."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from cdc_core.errors import PreflightError
from cdc_core.model.reports import StepReport
from tests.oracle.embedded import OWNER, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import source_of

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9))",
    "INSERT INTO T SELECT LEVEL, 'old' FROM DUAL CONNECT BY LEVEL <= 25",
)


class Collector:
    """A collector that keeps what it was sent."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.metrics: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        self.services: set[str] = set()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(self.path, body)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            traces = ExportTraceServiceRequest.FromString(body)
            for resource in traces.resource_spans:
                self._name(resource.resource)
                for scope in resource.scope_spans:
                    self.spans += scope.spans
            return
        assert path == "/v1/metrics"
        numbers = ExportMetricsServiceRequest.FromString(body)
        for of in numbers.resource_metrics:
            self._name(of.resource)
            for metrics in of.scope_metrics:
                for metric in metrics.metrics:
                    for point in (metric.sum or metric.gauge).data_points or metric.gauge.data_points:  # fmt: skip
                        labels = tuple(sorted((one.key, one.value.string_value) for one in point.attributes))  # fmt: skip
                        self.metrics[metric.name, labels] = point.as_double

    def _name(self, resource: Any) -> None:
        self.services |= {one.value.string_value for one in resource.attributes if one.key == "service.name"}  # fmt: skip

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def named(self, name: str) -> list[Any]:
        return [one for one in self.spans if one.name == name]


@pytest.fixture
def collector() -> Iterator[Collector]:
    running = Collector()
    yield running
    running.close()


def test_a_window_is_one_trace_with_its_parts(
    oracle: Oracle, collector: Collector, tmp_path: Path
) -> None:
    telemetry = {"endpoint": collector.endpoint, "service_name": "cdc"}
    with source_of(oracle, tmp_path, "T", telemetry=telemetry) as source:
        source.begin()
        oracle.run("UPDATE T SET V = 'new' WHERE ID <= 4", "DELETE FROM T WHERE ID = 5")
        source.windows()
        source.windows()
        source.pipeline.send_metrics()
        expected = {
            (one.metric.name, tuple(sorted({"source": "src", **dict(zip(one.metric.labels, one.labels, strict=True))}.items()))): one.value
            for one in source.pipeline.measure()
        }  # fmt: skip
        reports: list[StepReport] = source.reports
    assert collector.services == {"cdc"}
    for kind, name in (
        ("window-captured", "capture window"),
        ("window-applied", "apply window"),
        ("chunk-landed", "read chunk"),
        ("chunk-applied", "apply chunk"),
    ):
        told = {one.key: one for one in reports if one.kind == kind and not one.is_quiet}
        spans = {_said(one)["redolake.key"]: one for one in collector.named(name)}
        assert spans.keys() == told.keys()
        assert spans
        for key, one in spans.items():
            lasted = (one.end_time_unix_nano - one.start_time_unix_nano) / 1e9
            assert lasted == pytest.approx(told[key].seconds, abs=1e-6)
            assert int(_said(one)["redolake.rows"]) == told[key].rows
    [captured], [applied] = collector.named("capture window"), collector.named("apply window")
    assert captured.trace_id == applied.trace_id
    [table] = [one for one in collector.named(f"apply {OWNER}.T") if one.trace_id == applied.trace_id]  # fmt: skip
    assert table.parent_span_id == applied.span_id
    parts = [one for one in collector.spans if one.parent_span_id == captured.span_id]
    assert {one.name for one in parts} <= {"LogMiner start", "LogMiner fetch"}
    assert collector.metrics.keys() == expected.keys()
    moving = ("_seconds", "_oracle_scn", "_lag_")
    for (name, labels), value in expected.items():
        if not any(part in name for part in moving):
            assert collector.metrics[name, labels] == value, name


def _said(span: Any) -> dict[str, str]:
    return {one.key: one.value.string_value or str(one.value.int_value) for one in span.attributes}


def test_it_says_which_packages_are_missing(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http", None)
    telemetry = {"endpoint": "http://127.0.0.1:1"}
    with (
        pytest.raises(PreflightError, match="OpenTelemetry's packages") as refused,
        source_of(oracle, tmp_path, "T", telemetry=telemetry) as source,
    ):
        source.run()
    assert "redolake[opentelemetry]" in (refused.value.hint or "")


def test_a_collector_that_does_not_answer_costs_no_window(oracle: Oracle, tmp_path: Path) -> None:
    telemetry = {"endpoint": "http://127.0.0.1:1"}
    with (
        pytest.MonkeyPatch.context() as hurried,
        source_of(oracle, tmp_path, "T", telemetry=telemetry) as source,
    ):
        hurried.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
        source.run()
        source.check_exact("T")
