"""How is a source opened by assets, sensors and jobs?"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from cdc_core.steps import Pipeline
from cdc_core.steps.spark import SparkSource


class Opener(Protocol):
    """Opens a source for a ``with`` block. Secrets are looked up here, not when definitions are
    loaded."""

    def __call__(self, *, spark: SparkSource | None = None) -> AbstractContextManager[Pipeline]:
        """``spark`` gives the Spark session to work in; by default the source starts one."""
