"""A code location with the real pipeline over the lake that is kept in files, for runs in processes of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assets.components import OracleCdc
from assets.settings import DagsterConfig, RetriesConfig
from assets.translator import Translator
from cdc_core.config import SourceConfig
from cdc_core.spark.session import SparkSource
from cdc_core.steps import Pipeline
from tests.invariants.kept_lake import KeptLake

CONFIG = SourceConfig.model_validate_json(Path(os.environ["REDOLAKE_TEST_CONFIG"]).read_text())
NAMES = Translator(CONFIG.name, DagsterConfig(retries=RetriesConfig(max=1, delay_seconds=0)))


@contextmanager
def opened(*, spark: SparkSource | None = None) -> Iterator[Pipeline]:
    with Pipeline(CONFIG, spark=spark, open_lake=KeptLake(Path(CONFIG.lake.path)).open) as pipeline:
        yield pipeline


defs = OracleCdc(CONFIG, opened, translator=NAMES).build_defs()
