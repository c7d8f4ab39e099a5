"""What can a user configure of metrics?"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cdc_core.config.base import ConfigModel

DEFAULT_PORT = 9464


class MetricsConfig(ConfigModel):
    """Metrics for Prometheus. If you use Dagster, the command ``redolake metrics`` serves them."""

    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port on which ``redolake run --loop`` serves them, at the path ``/metrics``. Empty, the
    default: not at all. ``redolake metrics`` uses this port as well, or else 9464."""

    address: str = "127.0.0.1"
    """The address of this machine on which to serve them. ``0.0.0.0`` means all addresses: the
    endpoint asks for no password, and shows names of tables but no row values."""

    ask_oracle: bool = True
    """Whether each scrape queries Oracle for its SCN. Otherwise, ``redolake_oracle_up``,
    ``redolake_oracle_scn`` and lags by SCN are missing."""


class TelemetryConfig(ConfigModel):
    """Traces and metrics for OpenTelemetry. Needs ``pip install 'redolake[opentelemetry]'``."""

    endpoint: Annotated[str, Field(pattern=r"^https?://[^\s@]+$")] | None = None
    """The collector's address for OTLP over HTTP, such as ``http://collector:4318``. Each window
    and chunk is then a trace, and ``redolake run --loop`` also sends the metrics. Empty, the
    default: Redolake sends nothing. Headers and certificates come from the variables of
    OpenTelemetry (``OTEL_EXPORTER_OTLP_HEADERS``)."""

    service_name: str = "redolake"
    """``service.name`` of all traces and metrics; the source is ``redolake.source``."""

    interval_seconds: Annotated[float, Field(ge=1)] = 60
    """Interval at which Redolake sends metrics, in seconds."""


class OpenLineageConfig(ConfigModel):
    """Lineage for OpenLineage. Needs ``pip install 'redolake[openlineage]'``."""

    enabled: bool = False
    """Whether Redolake reports each applied window and chunk, with its tables and columns. The
    client's configuration (``openlineage.yml``, or variables such as ``OPENLINEAGE_URL``) says
    where to."""

    namespace: str = "redolake"
    """The namespace of the jobs ``<source>.<OWNER>.<TABLE>.changelog`` and ``….mirror``."""
