"""How does a run hold its sources and Spark?

One typed resource for all sources of a code location, :class:`RedolakeResource`. A run opens each
source once per process, under the lease ``run/<run id>/<process id>`` until it ends, so that the
janitor notices its death. Spark comes from dagster-pyspark's resource inside it, configured as
Dagster users configure Spark.
"""

# No postponed annotations in this module: Dagster wants the classes themselves, not their names.

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Self

import dagster as dg
from dagster_pyspark import LazyPySparkResource, PySparkResource
from pydantic import Field, PrivateAttr

from assets.protocols import Opener
from cdc_core.config import LakeConfig
from cdc_core.errors import CdcError, TransientError, noticing_memory
from cdc_core.steps import Pipeline
from cdc_core.steps.spark import parent_session

RUN_LEASE = "run/"
RESOURCE_KEY = "redolake"


class DeltaSparkResource(LazyPySparkResource):
    """A Spark session with Delta Lake's jars and the Spark settings of the source, started when a
    step first needs it."""

    spark_config: dict[str, Any] = Field(
        default={}, description="Further Spark settings, nested or dotted. They take precedence."
    )

    def session(self, lake: LakeConfig) -> Any:
        """The process's session; started with a source's settings if this is its first use."""
        settings = {**lake.spark_config, **dotted(self.spark_config)}
        return parent_session(lake.model_copy(update={"spark_config": settings}))


class RedolakeResource(dg.ConfigurableResource):
    """Opens sources, and a Spark session where one is needed, for the length of a run. To bring
    your own Spark, define this resource in your project, and set dagster.own_resource in the file
    of each source.
    """

    pyspark: dg.ResourceDependency[LazyPySparkResource | PySparkResource]
    """Where Spark comes from."""

    _run_id: str | None = PrivateAttr(default=None)
    _stack: ExitStack = PrivateAttr(default_factory=ExitStack)
    _opened: dict[str, Pipeline] = PrivateAttr(default_factory=dict)

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator[Self]:
        """For the length of the run, or of the step where each step has its own process."""
        self._run_id = None if context.run_id == "ephemeral" else context.run_id
        self._opened = {}
        with ExitStack() as self._stack:
            yield self

    def source(self, name: str, open_pipeline: Opener) -> Pipeline:
        """The source, opened at the first call."""
        if name not in self._opened:
            pipeline = self._stack.enter_context(open_pipeline(spark=self._spark))
            if self._run_id is not None:
                lease = f"{RUN_LEASE}{self._run_id}/{os.getpid()}"
                self._stack.enter_context(pipeline.lease(lease, of_process=True))
            self._opened[name] = pipeline
        return self._opened[name]

    def _spark(self, lake: LakeConfig) -> Any:
        if isinstance(self.pyspark, DeltaSparkResource):
            return self.pyspark.session(lake)
        return self.pyspark.spark_session


REDOLAKE = RedolakeResource(pyspark=DeltaSparkResource())
"""What components share where the project defines none: Dagster wants one value under one key."""


def dotted(settings: Mapping[str, Any]) -> dict[str, str]:
    """Nested settings as Spark names them: ``{"spark": {"ui": {"enabled": False}}}`` →
    ``spark.ui.enabled=false``."""
    flat: dict[str, str] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{inner}": found for inner, found in dotted(value).items()}
        else:
            flat[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return flat


@contextmanager
def dagster_failures(context: Any, retries: dg.RetryPolicy | None) -> Iterator[None]:
    """Turn our errors into Dagster failures that say what to do.

    Only what may go away by itself is tried again. The last attempt forbids a further one, since
    the run would fail with "Exceeded max_retries" in place of the reason; earlier ones log theirs.

    Args:
        context: The step's.
        retries: The step's policy.
    """
    try:
        with noticing_memory():
            yield
    except CdcError as error:
        step = getattr(context, "op_execution_context", context)
        left = (retries.max_retries if retries else 0) - step.retry_number
        is_tried_again = isinstance(error, TransientError) and left > 0
        if is_tried_again:
            step.log.error(f"{error} ({left} more attempts)")
        raise dg.Failure(
            description=str(error),
            metadata={
                "cdc/error": type(error).__name__,
                "cdc/what_to_do": error.hint or "See the message.",
                **{f"cdc/{name}": str(value) for name, value in error.facts.items()},
            },
            allow_retries=is_tried_again,
        ) from error
