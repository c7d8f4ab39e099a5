"""How do metrics get to Prometheus: as text, or over HTTP?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family

from cdc_core.errors import CdcError, ConfigError
from cdc_core.model.metrics import METRICS, Metric, Sample

Measure = Callable[[], Sequence[Sample]]

UP = Metric(
    "redolake_metrics_up", "gauge", (), "1 if the source could be measured, 0 if its metadata store"
    " failed: everything else of it is missing then.",
)  # fmt: skip


class SourceCollector:
    """Measures sources at each scrape, by their names. A source that cannot be measured is told by
    ``redolake_metrics_up``, and hides no other."""

    def __init__(self, sources: Mapping[str, Measure]) -> None:
        self._sources = sources

    def collect(self) -> Iterator[Family]:
        """All metrics of all sources, as prometheus_client asks for them."""
        up = _family(UP)
        families = {name: _family(metric) for name, metric in METRICS.items()}
        for source, measure in self._sources.items():
            try:
                samples = measure()
            except CdcError:
                up.add_metric((source,), 0)
                continue
            up.add_metric((source,), 1)
            for one in samples:
                families[one.metric.name].add_metric((source, *one.labels), one.value)
        yield up
        yield from families.values()


def _family(metric: Metric) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    return kind(metric.name, metric.help, labels=("source", *metric.labels))


def exposition(sources: Mapping[str, Measure]) -> str:
    """The metrics as Prometheus reads them."""
    return generate_latest(_registry(sources)).decode()


@contextmanager
def served(sources: Mapping[str, Measure], *, address: str, port: int) -> Iterator[None]:
    """Serve the metrics for the block, from a thread.

    Raises:
        ConfigError: The address cannot be served on.
    """
    try:
        server, thread = start_http_server(port, address, registry=_registry(sources))
    except OSError as error:
        raise ConfigError(
            "metrics cannot be served on this address",
            hint="Set metrics.port to a free port, and metrics.address to an address of this machine.",
            address=address,
            port=port,
        ) from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _registry(sources: Mapping[str, Measure]) -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(SourceCollector(sources))
    return registry
