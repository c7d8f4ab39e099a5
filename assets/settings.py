"""What can a user configure of Dagster's side of a source, besides the source itself?

The defaults are what a source needs. Nothing here imports Dagster: the command line reads the same
file.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cdc_core.config import ConfigModel, SourceConfig

Seconds = Annotated[int, Field(ge=1)]

ALL_TABLES_MAX = 25
"""Up to so many tables ``dagster.windows.assets: auto`` materializes all of them for each
window."""


class WindowsSensorConfig(ConfigModel):
    """The sensor, or the schedule, that cuts windows and requests runs over them."""

    interval_seconds: Seconds = 60
    """Interval at which it checks the database for redo, in seconds."""

    run_minutes: Annotated[float, Field(ge=0)] = 30
    """How long a run that the sensor requested continues, in minutes. When it has applied the
    windows for which it was requested, it looks for new ones every ``interval_seconds``, and
    applies and reports each as a separate run would. Dagster spends about five CPU seconds on a
    run, and a tenth of that on a window in a run that continues. The run ends early if another run
    needs its slot, or if you switch the sensor off. 0: a run ends with the windows for which it was
    requested."""

    cron: str | None = None
    """Run windows by a schedule, ``<source>_windows_schedule``, at these times: each tick captures
    and applies all redo up to the present, including that of missed ticks. null, the default: the
    sensor runs windows."""

    timezone: str = "UTC"
    """The time zone of ``cron``."""

    enabled: bool = False
    """Switch the sensor on with the code location, or the schedule if ``cron`` is set; by default,
    you switch it on in the UI."""

    request_runs: bool = True
    """Request a run over new windows. Otherwise the sensor only adds windows as partitions, for
    automation conditions."""

    assets: Literal["auto", "all", "changed"] = "auto"
    """Which assets the sensor's runs materialize. ``all``: those of every table in the stream, so
    that each of them has each window. ``changed``: those of tables that the windows change; all
    others advance without an event. A separate run captures windows that are not captured yet.
    ``auto``, the default: ``all`` up to 25 tables and with ``freshness``, otherwise ``changed``,
    because two assets for each table cost Dagster about a quarter of a CPU second in each run."""


class SnapshotsSensorConfig(ConfigModel):
    """The sensor that processes signals and requests runs over snapshot chunks."""

    interval_seconds: Seconds = 30
    """Interval at which it checks the metadata store, in seconds."""

    enabled: bool = False
    """Switch the sensor on with the code location."""


class AlertsSensorConfig(ConfigModel):
    """The sensor that evaluates the checks of the asset ``<source>/database``, and sends
    notifications when an alert begins or ends."""

    interval_seconds: Seconds = 60
    """Interval at which it checks the metadata store and Oracle, in seconds."""

    enabled: bool = False
    """Switch the sensor on with the code location."""


class ReconcileScheduleConfig(ConfigModel):
    """The schedule that compares all tables with Oracle."""

    cron: str | None = "30 4 * * *"
    """When, as a cron expression; null for never."""

    timezone: str = "UTC"
    """The time zone of ``cron``."""

    enabled: bool = False
    """Switch the schedule on with the code location."""


class MaintainScheduleConfig(ConfigModel):
    """The schedule that maintains the Delta tables, according to ``maintenance``."""

    cron: str | None = "0 3 * * *"
    """When, as a cron expression; null for never."""

    timezone: str = "UTC"
    """The time zone of ``cron``."""

    enabled: bool = True
    """Switch the schedule on with the code location."""


class PoolsConfig(ConfigModel):
    """Names of the Dagster pools that limit concurrent runs; by default one of each for the
    source."""

    capture: str | None = None
    """Pool of runs that capture windows, each in ``capture.sessions`` LogMiner sessions;
    ``<source>_logminer`` by default."""

    apply: str | None = None
    """Pool of runs that apply windows; ``<source>_windows`` by default."""

    snapshot: str | None = None
    """Pool of runs that read existing rows; ``<source>_snapshots`` by default."""


class RetriesConfig(ConfigModel):
    """How often a run retries a step after a temporary error."""

    max: Annotated[int, Field(ge=0, le=20)] = 2
    """Further attempts; 0 for none."""

    delay_seconds: Annotated[float, Field(ge=0)] = 15
    """Pause before the first of them; it doubles each time."""


class FreshnessConfig(ConfigModel):
    """How old a mirror's last window may be. An idle source has no windows: use this only if you
    always expect changes."""

    fail_minutes: Annotated[int, Field(ge=1)]
    """The mirror counts as stale after this many minutes without a window."""

    warn_minutes: Annotated[int, Field(ge=1)] | None = None
    """Dagster warns after this many minutes."""


class DagsterConfig(ConfigModel):
    """How a source looks and runs in Dagster."""

    windows: WindowsSensorConfig = WindowsSensorConfig()
    snapshots: SnapshotsSensorConfig = SnapshotsSensorConfig()
    alerts: AlertsSensorConfig = AlertsSensorConfig()
    reconcile: ReconcileScheduleConfig = ReconcileScheduleConfig()
    maintain: MaintainScheduleConfig = MaintainScheduleConfig()
    pools: PoolsConfig = PoolsConfig()
    retries: RetriesConfig = RetriesConfig()
    freshness: FreshnessConfig | None = None

    executor: Literal["in_process", "multiprocess"] = "in_process"
    """``in_process`` runs all steps of a run in one process, with one Spark; ``multiprocess`` runs
    each step in its own."""

    own_resource: bool = False
    """The project defines the resource `redolake` itself (a ``RedolakeResource``), for example with
    a ``PySparkResource`` of its own."""

    owners: tuple[str, ...] = ()
    """Owners of all assets: e-mail addresses, or ``team:name``."""

    tags: dict[str, str] = Field(default_factory=dict)
    """Tags of all assets."""

    run_tags: dict[str, str] = Field(default_factory=dict)
    """Tags of all runs that jobs, sensors and schedules of the source start."""

    partitions_keep: Annotated[int, Field(ge=100)] | None = 20_000
    """How many of the newest windows remain partitions in Dagster; null for all. Older ones stay in
    the metadata store, where `redolake replay` finds them."""

    def takes_all(self, tables: int) -> bool:
        """Do runs over windows of so many tables materialize the assets of all of them?"""
        if self.windows.assets == "auto":
            return tables <= ALL_TABLES_MAX or self.freshness is not None
        return self.windows.assets == "all"


class ComponentConfig(SourceConfig):
    """A source and its Dagster side: the keys under ``attributes``."""

    dagster: DagsterConfig = DagsterConfig()
    """How the source looks and runs in Dagster."""
