"""What can a user configure of metrics?"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cdc_core.config.base import ConfigModel

DEFAULT_PORT = 9464


class MetricsConfig(ConfigModel):
    """Numbers for Prometheus. Beside Dagster, the command ``redolake metrics`` serves them."""

    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Where ``redolake run --loop`` serves them, at the path ``/metrics``. Empty, the default:
    nowhere. ``redolake metrics`` takes this port too, and 9464 by default."""

    address: str = "127.0.0.1"
    """The address of this machine on which they are served. ``0.0.0.0`` is every one: the endpoint
    asks for no password, and shows names of tables and no values of rows."""

    ask_oracle: bool = True
    """Whether each scrape asks Oracle for its SCN. Without, ``redolake_oracle_up``,
    ``redolake_oracle_scn`` and lags by SCN are missing."""


class TelemetryConfig(ConfigModel):
    """Traces and metrics for OpenTelemetry. Needs ``pip install 'redolake[opentelemetry]'``."""

    endpoint: Annotated[str, Field(pattern=r"^https?://[^\s@]+$")] | None = None
    """The collector's address for OTLP over HTTP, such as ``http://collector:4318``. Each window
    and chunk is then a trace, and ``redolake run --loop`` sends the metrics too. Empty, the
    default: nothing is sent. Headers and certificates come from the variables of OpenTelemetry
    (``OTEL_EXPORTER_OTLP_HEADERS``)."""

    service_name: str = "redolake"
    """``service.name`` of everything that is sent; the source is ``redolake.source``."""

    interval_seconds: Annotated[float, Field(ge=1)] = 60
    """How often metrics are sent, in seconds."""


class OpenLineageConfig(ConfigModel):
    """Lineage for OpenLineage. Needs ``pip install 'redolake[openlineage]'``."""

    enabled: bool = False
    """Whether each applied window and chunk is reported, with its tables and columns. Where to is
    the client's own matter: ``openlineage.yml``, or ``OPENLINEAGE_URL`` and its kin."""

    namespace: str = "redolake"
    """The namespace of the jobs, which are called ``<source>.<OWNER>.<TABLE>.changelog`` and
    ``….mirror``."""
