"""A code location with the stand-in, for tests through Dagster's own processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assets.components import OracleCdc
from cdc_core.spark.session import SparkSource
from tests.assets.standin import StandIn, config_in

FOLDER = Path(os.environ["REDOLAKE_TEST_FOLDER"])


@contextmanager
def opened(*, spark: SparkSource | None = None) -> Iterator[StandIn]:
    made = StandIn.open(FOLDER)
    try:
        yield made
    finally:
        made.store.close()


defs = OracleCdc(config_in(FOLDER), opened).build_defs()
