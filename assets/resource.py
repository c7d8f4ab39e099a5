"""How does a run hold a source, so that its death is noticed?

One resource per source, opened once per run (the executor is in-process): it holds the lease ``run/<run id>`` until the run
ends, and gives the steps one pipeline, so one Spark session. The janitor looks at these leases.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg

from assets.protocols import Opener, SourcePipeline
from cdc_core.errors import CdcError, TransientError

RUN_LEASE = "run/"


def pipeline_resource(open_pipeline: Opener) -> dg.ResourceDefinition:
    """The opened source as a resource, leased for the length of the run."""

    def opened(context: dg.InitResourceContext) -> Iterator[SourcePipeline]:
        with dagster_failures(), open_pipeline() as pipeline:
            if context.run_id is None or context.run_id == "ephemeral":
                yield pipeline
                return
            with pipeline.lease(f"{RUN_LEASE}{context.run_id}"):
                yield pipeline

    return dg.ResourceDefinition(opened, description="The source, opened for the length of a run.")


def pipeline_of(context: Any, resource_key: str) -> SourcePipeline:
    """The opened source of a running step."""
    pipeline: SourcePipeline = getattr(context.resources, resource_key)
    return pipeline


@contextmanager
def dagster_failures() -> Iterator[None]:
    """Turn our errors into Dagster failures that say what to do; only what may go away by itself may be retried."""
    try:
        yield
    except CdcError as error:
        raise dg.Failure(
            description=str(error),
            metadata={
                "cdc/error": type(error).__name__,
                "cdc/what_to_do": error.hint or "See the message.",
                **{f"cdc/{name}": str(value) for name, value in error.facts.items()},
            },
            allow_retries=isinstance(error, TransientError),
        ) from error
