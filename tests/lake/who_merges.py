"""Who merges the changes of a story of the lake: this process, or Spark? And lakes of which nobody may ask Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cdc_core.config import LakeConfig
from cdc_core.lake.delta_lake import DeltaLake

BY_SPARK = pytest.param("spark", marks=pytest.mark.spark)
BY_BOTH = ("auto", BY_SPARK)
"""``lake.merge``, for the fixture ``open_lake``: this process, and Spark."""


class SparkAskedError(Exception):
    """The lake asked for Spark."""


def no_spark(_config: LakeConfig) -> Any:
    """In the place of a Spark, where nothing needs one."""
    raise SparkAskedError


def plain_lake(folder: Path, **options: Any) -> DeltaLake:
    """A lake in which only what needs no Spark works."""
    return DeltaLake(LakeConfig(path=str(folder / "lake"), **options), "shop", spark=no_spark)
