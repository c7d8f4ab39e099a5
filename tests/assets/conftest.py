"""A source without Oracle and Spark, and a Dagster instance, for each test."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from assets.components import OracleCdc
from assets.settings import DagsterConfig, RetriesConfig, WindowsSensorConfig
from assets.translator import Translator
from cdc_core.steps.windows import retire
from tests.assets.standin import StandIn


@pytest.fixture(autouse=True)
def _quick_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, a tick reads the next window ahead."""
    monkeypatch.setattr(retire, "READ_SECONDS_MAX", math.inf)


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[StandIn]:
    made = StandIn.open(tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def component(pipeline: StandIn) -> OracleCdc:
    """Its steps are tried once more, at once: no test waits."""
    options = DagsterConfig(
        retries=RetriesConfig(max=1, delay_seconds=0), windows=WindowsSensorConfig(run_minutes=0)
    )
    return OracleCdc(
        pipeline.config, pipeline.opened, translator=Translator(pipeline.config.name, options)
    )


@pytest.fixture
def repository(component: OracleCdc) -> dg.RepositoryDefinition:
    return component.build_defs().get_repository_def()


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """In memory: what Dagster keeps in files is met in ``test_graphql.py``."""
    with dg.DagsterInstance.ephemeral() as made:
        yield made
