"""What tests of several packages share: one Spark per test run, from the jars that set-up installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cdc_core.config import LakeConfig
from cdc_core.lake.lake import Lake
from cdc_core.lake.spark import stop_spark


@pytest.fixture(scope="session")
def spark_process() -> Iterator[None]:
    """End the JVM with the test run; it starts at first use."""
    yield
    stop_spark()


@pytest.fixture
def open_lake(spark_process: None, tmp_path: Path) -> Callable[..., Lake]:
    """Open a lake in the test's own folder."""

    def opened(**options: object) -> Lake:
        config = LakeConfig(path=str(tmp_path / "lake"), driver_memory="1g")
        return Lake.open(config, "shop", **options)  # type: ignore[arg-type]

    return opened
