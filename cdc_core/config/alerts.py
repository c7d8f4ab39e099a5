"""What can a user configure of alerts?"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cdc_core.config.base import ConfigModel


class AlertsConfig(ConfigModel):
    """From when on a state of the source is an alert: in `redolake status --check`, in Dagster's
    checks, and, from `redolake run --loop` and Dagster's alerts sensor, as notifications. A table
    that failed, rows in quarantine, a gap, and a window that cannot be carried always are."""

    lag_minutes: Annotated[float, Field(gt=0)] | None = None
    """A table that is further behind Oracle than so many minutes is an alert. Empty, the default:
    none is. Longer than the time between two log switches, where ``capture.close_at`` waits for
    these."""

    archived_log_hours: Annotated[float, Field(gt=0)] | None = 12
    """Archived logs that Redolake needs, and that Oracle deletes within so many hours at the
    present lag, are an alert; an error below a quarter of it. Empty: none is."""
