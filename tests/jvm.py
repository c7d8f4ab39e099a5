"""How do the JVMs of tests run? Like those of users, but for what a short life and small work make a waste."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cdc_core.config import LakeConfig

SHORT_LIVED = (
    # The quick compiler alone: no JVM of a test lives long enough for what the second one makes to pay for itself.
    "-XX:TieredStopAtLevel=1",
    # By itself its code cache is 48 MB. Spark and Delta fill it within some tests, and the JVM then throws compiled code away again and again.
    "-XX:ReservedCodeCacheSize=240m",
    # No full collections while classes are loaded, and few copies of what dies with its statement.
    "-XX:MetaspaceSize=240m",
    "-XX:NewRatio=1",
    # Where a statement was called from is asked for again and again, through hundreds of frames.
    "-XX:MaxJavaStackTraceDepth=64",
    # Delta keeps plans of each table for an hour. Each test has tables of its own.
    "-Ddelta.log.cacheSize=16",
)
"""Options of a JVM that lives for some windows, or for a test run."""

SMALL_WORK = {
    # Each sort and each hash table of a task takes a page of memory. Spark makes it 8 MB here: too long for the young generation, and a few
    # tasks fill the old one.
    "spark.buffer.pageSize": "1m",
    # A listing of files beside the driver has a task for each name, up to ten thousand of them: half a minute of a VACUUM by hand.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
    # Each expression of a DataFrame would note the line that made it.
    "spark.sql.dataFrameQueryContext.enabled": "false",
    # What a UI would show of the last thousand statements, with the text and the graph of each plan.
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "10",
    "spark.sql.ui.explainMode": "simple",
}
"""Settings of a Spark that works on tables of some rows, all day long: without them, full collections are most of its CPU time in the end."""


def spark_submit_options() -> str:
    """Both, for ``SPARK_SUBMIT_OPTS``: a JVM takes Spark's settings as properties."""
    return " ".join((*SHORT_LIVED, *(f"-D{name}={value}" for name, value in SMALL_WORK.items())))


def small_session(lake: Path | LakeConfig) -> Any:
    """A session for a test's own statements, whose plans are interpreted and taken as they are."""
    from cdc_core.config import LakeConfig
    from cdc_core.spark.session import expect_small_work, start_session

    config = LakeConfig(path=str(lake), driver_memory="1g") if isinstance(lake, Path) else lake
    session = start_session(config)
    expect_small_work(session)
    return session
