"""What can a user configure of alerts?"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cdc_core.config.base import ConfigModel


class AlertsConfig(ConfigModel):
    """When a state of the source becomes an alert: in `redolake status --check`, in Dagster's
    checks, and, from `redolake run --loop` and Dagster's alerts sensor, as notifications. A failed
    table, rows in quarantine, a gap, and a failing window are always alerts."""

    lag_minutes: Annotated[float, Field(gt=0)] | None = None
    """A table that is more than this many minutes behind Oracle is an alert. Empty, the default: no
    alert. If ``capture.close_at`` waits for log switches, use more than the time between two of
    them."""

    archived_log_hours: Annotated[float, Field(gt=0)] | None = 12
    """If Oracle will delete archived logs that Redolake needs within this many hours at the present
    lag, that is an alert; below a quarter of it, an error. Empty: no alert."""
