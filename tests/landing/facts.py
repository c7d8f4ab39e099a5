"""What every manifest says, where a test is about something else."""

from __future__ import annotations

from cdc_core.landing.manifest import PlannedWindow

LANDED = "2026-01-02T03:04:05+00:00"
PLANNED = PlannedWindow(
    key="2026-01-02T03:04:00Z_100-200",
    created="2026-01-02T03:03:00+00:00",
    ended="2026-01-02T03:04:00+00:00",
    idle_from=0,
    before_sha256=None,
)
