"""The Dagster component: one YAML file describes one source.

``type: assets.components.OracleCdc`` in a ``defs.yaml``, below any project's ``defs`` folder. :mod:`assets.config_file` reads
the file, for the command line too, so both say the same about a wrong one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import dagster as dg
from pydantic import BaseModel, ConfigDict

from assets.checks import reconcile_checks
from assets.chunks import oracle_tables, snapshot_chunks
from assets.config_file import attributes_json_schema, load_config
from assets.jobs import reconcile_job, reconcile_schedule, snapshot_job, windows_job
from assets.opened import pipeline_resource
from assets.ports import Opener, SourcePipeline
from assets.sensors import snapshots_sensor, windows_sensor
from assets.translator import Translator
from assets.windows import lake_tables, redo_windows
from cdc_core.config import SourceConfig


class Attributes(BaseModel):
    """What stands under ``attributes``. Editors see the real schema; values are checked by our own reader, which says more."""

    model_config = ConfigDict(extra="allow")

    @classmethod
    def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
        """The schema of a source's configuration, for editors and ``dg``."""
        return attributes_json_schema()


class OracleCdc(dg.Component):
    """One Oracle database, its captured tables, and everything that Dagster does with them."""

    def __init__(
        self, config: SourceConfig, open_pipeline: Opener, *, translator: Translator | None = None
    ) -> None:
        self.config = config
        self.open_pipeline = open_pipeline
        self.translator = translator or Translator(config.name)

    @classmethod
    def get_model_cls(cls) -> type[BaseModel]:
        """What Dagster checks before :meth:`load`."""
        return Attributes

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> Self:
        """Read the component's own file.

        Raises:
            ConfigError: It is wrong; names every problem with its line.
        """
        del attributes  # read again with positions
        return cls.from_file(context.path)

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """The source that a configuration file describes. Secrets are looked up when it is opened, not now.

        Raises:
            ConfigError: The file is wrong; names every problem with its line.
        """
        return cls(load_config(path, environ=None), opener(path))

    def build_defs(self, context: dg.ComponentLoadContext | None = None) -> dg.Definitions:
        """Assets, checks, jobs, sensors and schedules of the source."""
        del context  # the file has said everything
        config, names = self.config, self.translator
        checks = reconcile_checks(config, names)
        windows = windows_job(config, names)
        reconcile = reconcile_job(names, checks)
        return dg.Definitions(
            assets=[
                *oracle_tables(config, names),
                redo_windows(config, names),
                lake_tables(config, names),
                *(snapshot_chunks(config, names, table) for table in config.tables),
            ],
            asset_checks=[checks],
            jobs=[windows, reconcile, snapshot_job(config, names)],
            schedules=[reconcile_schedule(names, reconcile)],
            sensors=[
                windows_sensor(config, names, self.open_pipeline, windows),
                snapshots_sensor(config, names, self.open_pipeline),
            ],
            resources={names.resource_key: pipeline_resource(self.open_pipeline)},
            executor=dg.in_process_executor,
        )


def opener(path: Path) -> Opener:
    """Opens the source that a file describes, with the secrets of the environment."""

    @contextmanager
    def open_pipeline() -> Iterator[SourcePipeline]:
        from cdc_core.steps import Pipeline

        with Pipeline(load_config(path, environ=os.environ)) as pipeline:
            yield pipeline

    return open_pipeline
